"""Text that is there twice: dev or test lines in the training text, and training pairs that differ in little.

Lines are compared normalised and without case, and once more without punctuation and with every digit as 0. Hashes are
remembered, not lines.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass, field

from transduce.corpora.cleaning import Hashes, Tally

__all__ = ["Leakage", "NearDuplicates", "Overlap", "TrainingLines", "normalised_line"]

N_FIRST = 3
SHORT_WORDS = 2  # words: such lines come again in any text
MAX_CHARACTERS = 5_000  # of a line that are compared
SEVERE_SHARE = 0.01  # of the lines

_DIGIT = re.compile(r"\d")
_NO_LETTER = re.compile(r"[\W_]+")


@dataclass(slots=True)
class Overlap:
    """How many lines of dev or test are in the training text, and the first of them, each with its line there."""

    count: int = 0
    first: list[tuple[int, int]] = field(default_factory=list)

    def add(self, line: int, train_line: int) -> None:
        """Count ``line``, which is ``train_line`` of the training text."""
        self.count += 1
        if len(self.first) < N_FIRST:
            self.first.append((line, train_line))

    def __str__(self) -> str:
        lines = ", ".join(f"line {line:,} is line {train_line:,} there" for line, train_line in self.first)
        return lines if self.count == len(self.first) else f"first: {lines}"


@dataclass(slots=True)
class Leakage:
    """What of dev or test is in the training text. Each line counts once, as the first of these that it is."""

    n_lines: int = 0
    pairs: Overlap = field(default_factory=Overlap)
    near_pairs: Overlap = field(default_factory=Overlap)  # the same but for case, punctuation and digits
    sources: Overlap = field(default_factory=Overlap)  # with another translation
    targets: Overlap = field(default_factory=Overlap)  # of another source
    short: Overlap = field(default_factory=Overlap)  # any of the kinds above, of one or two words

    @property
    def is_severe(self) -> bool:
        """Whether scores on this text are those of text that has been learned by heart."""
        return self.pairs.count + self.near_pairs.count + self.sources.count > max(1, SEVERE_SHARE * self.n_lines)

    def sentence(self, train: str) -> str | None:
        """What was found, for people; None where nothing was."""
        kinds = (
            (self.pairs, ("pair", "pairs")),
            (self.near_pairs, ("pair but for case, punctuation or digits", "pairs but for them")),
            (self.sources, ("source with another translation", "sources with another translation")),
            (self.targets, ("target of another source", "targets of other sources")),
            (self.short, ("line of one or two words", "lines of one or two words")),
        )
        n_found = sum(found.count for found, _ in kinds)
        if not n_found:
            return None
        told = ", ".join(
            f"{found.count:,} {words[found.count != 1]} ({found})" for found, words in kinds if found.count
        )
        advice = "; scores on it say little about new text: leave these lines out of one of the two"
        return f"{n_found:,} of {self.n_lines:,} lines are in {train}, too: {told}{advice if self.is_severe else ''}"


NO_KEY = 1  # where a line is empty
LineHashes = tuple[int, int, int, int, int, int]  # pair, near pair, source, near source, target, near target


class TrainingLines:
    """Dev or test text, whose lines are looked for while the training text goes by."""

    def __init__(self, pairs: Iterable[tuple[str, str] | None]) -> None:
        self._lines = [None if pair is None else (_keys(*pair), _is_short(pair[0])) for pair in pairs]
        self._found: dict[int, int] = {key: 0 for line in self._lines if line for key in line[0]}
        self._found.pop(NO_KEY, None)
        self._n_train = 0

    def observe(self, pair: tuple[str, str] | None) -> None:
        """The next pair of the training text."""
        self._n_train += 1
        if pair is not None:
            found = self._found
            for key in _keys(*pair):
                if found.get(key) == 0:
                    found[key] = self._n_train

    def result(self) -> Leakage:
        """What was found so far."""
        leakage = Leakage(len(self._lines))
        found = self._found | {NO_KEY: 0}
        for number, line in enumerate(self._lines, start=1):
            if line is None:
                continue
            (pair, near_pair, src, near_src, tgt, near_tgt), is_short = line
            places = (
                (found[pair], leakage.pairs),
                (found[near_pair], leakage.near_pairs),
                (found[src] or found[near_src], leakage.sources),
                (found[tgt] or found[near_tgt], leakage.targets),
            )
            place, overlap = next((each for each in places if each[0]), (0, leakage.pairs))
            if place:
                (leakage.short if is_short else overlap).add(number, place)
        return leakage


@dataclass(slots=True)
class NearDuplicates:
    """Pairs of the training text that came before but for case or punctuation; not those that came exactly."""

    tally: Tally = field(default_factory=Tally)
    _exact: Hashes = field(default_factory=Hashes)
    _near: Hashes = field(default_factory=Hashes)
    _n_lines: int = 0

    def observe(self, pair: tuple[str, str] | None) -> None:
        """The next pair."""
        self._n_lines += 1
        if pair is None:
            return
        src, tgt = _plain(pair[0]), _plain(pair[1])
        near_src, near_tgt = _NO_LETTER.sub(" ", src).strip(), _NO_LETTER.sub(" ", tgt).strip()
        if not (near_src and near_tgt):
            return
        is_new = self._exact.add(_key("pair", pair[0].strip(), pair[1].strip()))
        if not self._near.add(_key("near pair", near_src, near_tgt)) and is_new:
            self.tally.add(self._n_lines)


def _keys(src: str, tgt: str) -> LineHashes:
    src, tgt = _plain(src), _plain(tgt)
    near_src, near_tgt = normalised_line(src), normalised_line(tgt)
    return (
        _key("pair", src, tgt),
        _key("near pair", near_src, near_tgt),
        _key("source", src),
        _key("near source", near_src),
        _key("target", tgt),
        _key("near target", near_tgt),
    )


def _plain(line: str) -> str:
    """A line without case, in one form of Unicode, with single spaces; of a very long one the beginning."""
    line = " ".join(line[:MAX_CHARACTERS].split())
    return line.lower() if line.isascii() else unicodedata.normalize("NFC", line).casefold()


def _key(*parts: str) -> int:
    return hash(parts) & (2**64 - 1) | 2 if all(parts) else NO_KEY  # good in this process alone; never NO_KEY else


def normalised_line(line: str) -> str:
    """What is left of a line without punctuation, and with every digit as 0.

    >>> normalised_line("call 112, quickly!"), normalised_line("...")
    ('call 000 quickly', '')
    """
    return _NO_LETTER.sub(" ", _DIGIT.sub("0", line)).strip()


def _is_short(line: str) -> bool:
    return len(line.split()) <= SHORT_WORDS

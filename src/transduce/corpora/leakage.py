"""Data leakage and near-duplicates: dev or test lines in the training text, and training pairs that are almost equal.

Lines are compared twice: normalised as a tokenizer does and lower-cased, then also without punctuation and with every
digit as 0. Only hashes of lines are held in memory.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cache

from transduce.corpora.cleaning import Hashes, Tally
from transduce.text.characters import SPACELESS, marks
from transduce.text.normalise import normalise

__all__ = ["Leakage", "LeakageSearch", "NearDuplicates", "Overlap", "folded_line", "normalised_line"]

N_FIRST = 3  # line numbers shown
SHORT_WORDS = 2  # lines of at most this many words repeat in any text
MAX_CHARACTERS = 5_000  # compared at the beginning of each line
SEVERE_SHARE = 0.01  # of the lines; more overlap is severe

_DIGIT = re.compile(r"\d")
_WORD = re.compile(rf"[{SPACELESS}]{{1,3}}|[^\W{SPACELESS}][^\s{SPACELESS}]*")


@dataclass(slots=True)
class Overlap:
    """Number of dev or test lines found in the training text; the first ones as (line, where it is in training)."""

    count: int = 0
    first: list[tuple[int, str]] = field(default_factory=list)

    def add(self, line: int, place: str) -> None:
        """Count ``line``, which equals that in a ``place`` of the training text."""
        self.count += 1
        if len(self.first) < N_FIRST:
            self.first.append((line, place))

    def __str__(self) -> str:
        lines = ", ".join(f"line {line:,} is {place}" for line, place in self.first)
        return lines if self.count == len(self.first) else f"first: {lines}"


@dataclass(slots=True)
class Leakage:
    """Overlap of dev or test text with the training text. Each line counts once, in the first field that applies."""

    n_lines: int = 0
    pairs: Overlap = field(default_factory=Overlap)
    near_pairs: Overlap = field(default_factory=Overlap)  # equal except for case, punctuation and digits
    sources: Overlap = field(default_factory=Overlap)  # same source, another translation
    targets: Overlap = field(default_factory=Overlap)  # same target, another source
    short: Overlap = field(default_factory=Overlap)  # lines of one or two words, of any kind above

    @property
    def is_severe(self) -> bool:
        """Whether so much leaks that scores on this text would measure memorisation."""
        return self.pairs.count + self.near_pairs.count + self.sources.count > max(1, SEVERE_SHARE * self.n_lines)

    def sentence(self, train: str) -> str | None:
        """One sentence describing the overlap, for messages; None if there is none."""
        kinds = (
            (self.pairs, ("pair", "pairs")),
            (self.near_pairs, ("near-duplicate pair", "near-duplicate pairs")),
            (self.sources, ("source with another translation", "sources with another translation")),
            (self.targets, ("target of another source", "targets of other sources")),
            (self.short, ("line of one or two words", "lines of one or two words")),
        )
        n_found = sum(overlap.count for overlap, _ in kinds)
        if not n_found:
            return None
        details = ", ".join(
            f"{overlap.count:,} {words[overlap.count != 1]} ({overlap})" for overlap, words in kinds if overlap.count
        )
        advice = "; scores on it would measure memorisation: remove these lines from one of the two"
        return f"{n_found:,} of {self.n_lines:,} lines are also in {train}: {details}{advice if self.is_severe else ''}"


EMPTY_HASH = 1  # of an empty line; no other hash is 1
LineHashes = tuple[int, int, int, int, int, int]  # pair, near pair, source, near source, target, near target


class LeakageSearch:
    """Search for the lines of a dev or test text in a stream of training pairs."""

    def __init__(self, pairs: Iterable[tuple[str, str] | None]) -> None:
        self._lines = [None if pair is None else (_line_hashes(*pair), _is_short(pair[0])) for pair in pairs]
        # Hash -> the first training line that has it; 0 if none so far.
        self._train_lines = {hash_: 0 for line in self._lines if line for hash_ in line[0]}
        self._train_lines.pop(EMPTY_HASH, None)
        self._n_train = 0
        self._texts = list[tuple[str, int]]()  # name, lines before it

    def begin(self, text: str) -> None:
        """Begin the training text of this name, if there are several."""
        self._texts.append((text, self._n_train))

    def observe(self, pair: tuple[str, str] | None) -> None:
        """Read the next training pair."""
        self._n_train += 1
        if pair is not None:
            for hash_ in _line_hashes(*pair):
                if self._train_lines.get(hash_) == 0:
                    self._train_lines[hash_] = self._n_train

    def result(self) -> Leakage:
        """Return the overlap with the training pairs read so far."""
        leakage = Leakage(len(self._lines))
        train_lines = self._train_lines | {EMPTY_HASH: 0}
        for number, line in enumerate(self._lines, start=1):
            if line is None:
                continue
            (pair, near_pair, src, near_src, tgt, near_tgt), is_short = line
            candidates = (
                (train_lines[pair], leakage.pairs),
                (train_lines[near_pair], leakage.near_pairs),
                (train_lines[src] or train_lines[near_src], leakage.sources),
                (train_lines[tgt] or train_lines[near_tgt], leakage.targets),
            )
            train_line, overlap = next((each for each in candidates if each[0]), (0, leakage.pairs))
            if train_line:
                (leakage.short if is_short else overlap).add(number, self._place(train_line))
        return leakage

    def _place(self, train_line: int) -> str:
        """Return where a line of all training text is: its text, if there are several, and its number in that."""
        if len(self._texts) < 2:
            return f"line {train_line:,} there"
        text, n_before = next(each for each in reversed(self._texts) if each[1] < train_line)
        return f"line {train_line - n_before:,} of {text}"


@dataclass(slots=True)
class NearDuplicates:
    """Training pairs that repeat an earlier one except for case or punctuation; exact duplicates do not count."""

    tally: Tally = field(default_factory=Tally)
    _exact: Hashes = field(default_factory=Hashes)
    _near: Hashes = field(default_factory=Hashes)
    _n_lines: int = 0

    def observe(self, pair: tuple[str, str] | None) -> None:
        """Read the next pair."""
        self._n_lines += 1
        if pair is None:
            return
        near_src, near_tgt = (_punctuation().sub(" ", folded_line(side)).strip() for side in pair)
        if not (near_src and near_tgt):
            return
        is_new = self._exact.add(_hash_of("pair", pair[0].strip(), pair[1].strip()))
        if not self._near.add(_hash_of("near pair", near_src, near_tgt)) and is_new:
            self.tally.add(self._n_lines)


def _line_hashes(src: str, tgt: str) -> LineHashes:
    src, tgt = folded_line(src), folded_line(tgt)
    near_src, near_tgt = normalised_line(src), normalised_line(tgt)
    return (
        _hash_of("pair", src, tgt),
        _hash_of("near pair", near_src, near_tgt),
        _hash_of("source", src),
        _hash_of("near source", near_src),
        _hash_of("target", tgt),
        _hash_of("near target", near_tgt),
    )


def folded_line(line: str) -> str:
    """Return a line normalised and case-folded, cut after MAX_CHARACTERS."""
    return normalise(line[:MAX_CHARACTERS]).casefold()


def _hash_of(*parts: str) -> int:
    # Valid in this process only: Python's hash is seeded. Setting bit 1 makes it different from EMPTY_HASH.
    return hash(parts) & (2**64 - 1) | 2 if all(parts) else EMPTY_HASH


def normalised_line(line: str) -> str:
    """Return a line without punctuation and with every digit as 0.

    >>> normalised_line("call 112, quickly!"), normalised_line("...")
    ('call 000 quickly', '')
    """
    return _punctuation().sub(" ", _DIGIT.sub("0", line)).strip()


@cache
def _punctuation() -> re.Pattern[str]:
    """What is no part of a word; combining marks are, such as the vowel signs of Hindi, unless they follow none."""
    return re.compile(rf"[\W_](?:(?<=\A.)|(?<![{marks()}]))[\W_]*")


def _is_short(line: str) -> bool:
    """Whether a line has few words; without spaces, three characters count as one."""
    return len(_WORD.findall(line)) <= SHORT_WORDS

"""Corpus cleaning: a filter over a stream of training pairs, with a report of what was dropped and why.

A pair is dropped for the first of these reasons that holds:

    too long to be read a line above the reader's limit (``transduce.files.MAX_LINE_BYTES``)
    not two columns     a line of source TAB target without exactly one tab (the reader yields None)
    not UTF-8           invalid bytes (the reader yields them as lone surrogates)
    control characters  a control character that is not whitespace, as in binary data or text decoded with the wrong
                        encoding (C1 controls); tab, form feed, NEL and the like are whitespace
    empty               only whitespace on a side
    too long            more than ``max_characters`` on a side
    length ratio        one side is many times as long as the other, so probably not its translation
    identical sides     not translated; kept with ``drop_identical=False``
    duplicate           the pair occurred before; always counted, dropped only with ``drop_duplicates=True``

Whitespace around a line is ignored, as in training. Pairs that pass are yielded unchanged.

Only training text is cleaned. To leave out a line of dev or test would change the score, so there it is an error.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field
from hashlib import blake2b
from typing import Literal, Self, get_args

from transduce.config import ParallelCorpora
from transduce.errors import ConfigError
from transduce.files import TruncatedLine

__all__ = ["CONTROL", "SURROGATE", "CleaningReport", "CleaningRules", "Hashes", "Reason", "Tally", "clean"]

Reason = Literal[
    "too long to be read",
    "not two columns",
    "not UTF-8",
    "control characters",
    "empty",
    "too long",
    "length ratio",
    "identical sides",
    "duplicate",
]

N_FIRST_LINES = 3
N_TABLES = 64

SURROGATE = re.compile("[\ud800-\udfff]")
CONTROL = re.compile("[\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f]")  # category Cc without what str.isspace calls whitespace


@dataclass(frozen=True, slots=True)
class CleaningRules:
    """Thresholds of the filter. Lengths are in characters, without whitespace around the line.

    ``max_length_ratio`` bounds the length of the longer side over that of the shorter, which counts as at least
    ``ratio_floor`` characters, so "Ja." may have a long translation.

    Raises ConfigError for a limit below 1.
    """

    max_characters: int = 5_000
    max_length_ratio: float = 9.0
    ratio_floor: int = 10
    drop_identical: bool = True
    drop_duplicates: bool = False

    @classmethod
    def of(cls, config: ParallelCorpora) -> Self:
        """Return the rules of a configuration."""
        return cls(
            max_characters=config.max_characters,
            max_length_ratio=config.max_length_ratio,
            drop_identical=config.drop_identical,
            drop_duplicates=config.drop_duplicates,
        )

    def __post_init__(self) -> None:
        for name in ("max_characters", "max_length_ratio", "ratio_floor"):
            if not getattr(self, name) >= 1:  # "< 1" would accept NaN
                raise ConfigError(f"{name} should be 1 or more, got {getattr(self, name)}")


@dataclass(slots=True)
class Tally:
    """Number of pairs, with the line numbers of the first ones."""

    count: int = 0
    first_lines: list[int] = field(default_factory=list)

    def add(self, line: int) -> None:
        """Count the pair on ``line``."""
        self.count += 1
        if len(self.first_lines) < N_FIRST_LINES:
            self.first_lines.append(line)

    def __str__(self) -> str:
        noun = "line" if self.count == 1 else "lines"
        first = "" if self.count == len(self.first_lines) else "first at "
        return f"{first}{noun} {', '.join(f'{line:,}' for line in self.first_lines)}"


def _tallies() -> dict[Reason, Tally]:
    return {reason: Tally() for reason in get_args(Reason)}


@dataclass(slots=True)
class CleaningReport:
    """Counts of pairs that ``clean`` has read, kept and dropped so far; always ``n_read == n_kept + n_dropped``.

    ``noticed`` counts kept pairs that are duplicates or have identical sides.
    """

    n_read: int = 0
    n_kept: int = 0
    dropped: dict[Reason, Tally] = field(default_factory=_tallies)
    noticed: dict[Reason, Tally] = field(default_factory=_tallies)

    @property
    def n_dropped(self) -> int:
        """Total number of dropped pairs; each is counted under exactly one reason."""
        return sum(tally.count for tally in self.dropped.values())

    def lines(self) -> list[str]:
        """Readable report: one line of totals and one for each reason that occurred."""
        total = f"read {self.n_read:,} pairs, kept {self.n_kept:,}, dropped {self.n_dropped:,}"
        dropped = [f"dropped {each.count:,}: {reason} ({each})" for reason, each in self.dropped.items() if each.count]
        noticed = [
            f"noticed {each.count:,}: {reason} ({each}), kept" for reason, each in self.noticed.items() if each.count
        ]
        return [total, *dropped, *noticed]

    def as_json(self) -> dict[str, object]:
        """The report as a JSON object, including reasons with a count of 0."""
        return asdict(self)


def clean(
    pairs: Iterable[tuple[str, str] | None], rules: CleaningRules, report: CleaningReport
) -> Iterator[tuple[str, str]]:
    """Yield the pairs that satisfy ``rules``, unchanged; ``report`` is updated as they are consumed.

    None is a line that is not a pair. Lines are counted from 1, one for each pair, continuing from ``report.n_read``.
    Duplicates are found by a 64-bit hash of each pair, in 16 to 32 bytes of memory a pair.
    Among 100 million different pairs, the probability of a collision is 1 / 3,700.

    >>> report = CleaningReport()
    >>> list(clean([("a dog", "ein Hund"), ("a cat", " ")], CleaningRules(), report))
    [('a dog', 'ein Hund')]
    >>> print(*report.lines(), sep="; ")
    read 2 pairs, kept 1, dropped 1; dropped 1: empty (line 2)
    """
    seen = Hashes()
    for pair in pairs:
        report.n_read += 1
        if pair is None:
            report.dropped["not two columns"].add(report.n_read)
            continue
        if any(isinstance(side, TruncatedLine) for side in pair):
            report.dropped["too long to be read"].add(report.n_read)
            continue
        src, tgt = pair[0].strip(), pair[1].strip()
        fault = _fault(src, tgt, rules)
        if fault is not None:
            report.dropped[fault].add(report.n_read)
            continue
        is_duplicate = not seen.add(_hash_of(src, tgt))
        if is_duplicate and rules.drop_duplicates:
            report.dropped["duplicate"].add(report.n_read)
            continue
        if is_duplicate:
            report.noticed["duplicate"].add(report.n_read)
        if src == tgt:
            report.noticed["identical sides"].add(report.n_read)
        report.n_kept += 1
        yield pair


def _fault(src: str, tgt: str, rules: CleaningRules) -> Reason | None:
    """Return the reason to drop a pair, None to keep it. Does not check for duplicates."""
    if not (src.isprintable() and tgt.isprintable()):  # a fast test: surrogates and controls are not printable
        if SURROGATE.search(src) or SURROGATE.search(tgt):
            return "not UTF-8"
        if CONTROL.search(src) or CONTROL.search(tgt):
            return "control characters"
    shorter, longer = sorted((len(src), len(tgt)))
    if shorter == 0:
        return "empty"
    if longer > rules.max_characters:
        return "too long"
    if longer > rules.max_length_ratio * max(shorter, rules.ratio_floor):
        return "length ratio"
    if rules.drop_identical and src == tgt:
        return "identical sides"
    return None


def _hash_of(src: str, tgt: str) -> int:
    """Return a reproducible 64-bit hash, never 0. The separator NUL occurs in neither side."""
    return int.from_bytes(blake2b(f"{src}\0{tgt}".encode(), digest_size=8).digest(), "little") or 1


class Hashes:
    """Compact set of nonzero 64-bit hashes, in many tables: while one grows, the others need no second copy."""

    def __init__(self) -> None:
        self._tables = [_Table() for _ in range(N_TABLES)]

    def add(self, number: int) -> bool:
        """Insert a hash; return whether it was new."""
        return self._tables[number % N_TABLES].add(number)


class _Table:
    """Open addressing with a load of at most one half; 0 marks a free slot."""

    __slots__ = ("_n_hashes", "_slots")

    def __init__(self) -> None:
        self._slots = array("Q", bytes(8 * 8))
        self._n_hashes = 0

    def add(self, number: int) -> bool:
        """Insert a hash; return whether it was new."""
        if 2 * self._n_hashes >= len(self._slots):
            self._grow()
        slots = self._slots
        mask = len(slots) - 1  # the size is a power of 2
        index = number // N_TABLES & mask
        while stored := slots[index]:
            if stored == number:
                return False
            index = (index + 1) & mask
        slots[index] = number
        self._n_hashes += 1
        return True

    def _grow(self) -> None:
        old = self._slots
        self._slots = array("Q", bytes(2 * old.itemsize * len(old)))
        self._n_hashes = 0
        for number in old:
            if number:
                self.add(number)

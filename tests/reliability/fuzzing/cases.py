"""A case of the fuzzer, its folders, and its faults."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random

__all__ = ["Case", "CaseFolders", "Fault", "Format", "names_of", "require", "shortened", "told"]


class Fault(Exception):
    """A failure: its ``kind``, the same for similar cases, and the details of this case."""

    def __init__(self, kind: str, detail: str = "") -> None:
        self.kind, self.detail = kind, detail
        super().__init__(f"{kind}: {detail}" if detail else kind)


def told(error: BaseException) -> str:
    """The traceback of an error without its middle, where it is long; first, where in transduce it was."""
    frames = traceback.extract_tb(error.__traceback__)
    inside = [frame for frame in frames if "/transduce/" in frame.filename]
    where = [
        f"where: transduce/{each.filename.split('/transduce/')[-1]}:{each.lineno} {each.name}" for each in inside[-3:]
    ]
    return "\n".join([*where[::-1], shortened("".join(traceback.format_exception(error)))])


def shortened(text: str, *, most: int = 3000) -> str:
    """A text without its middle, where it is long."""
    return text if len(text) <= most else f"{text[: most // 2]}\n...\n{text[-most // 2 :]}"


def require(condition: bool, kind: str, detail: object = "") -> None:
    """Raise Fault unless a condition holds."""
    if not condition:
        raise Fault(kind, shortened(str(detail)))


@dataclass(frozen=True, slots=True)
class Case:
    """A case, determined by its name ``format/stem#seed``."""

    name: str

    @property
    def format(self) -> str:
        return self.name.partition("/")[0]

    @property
    def stem(self) -> str:
        """What is done, without the format and the seed."""
        return self.name.partition("/")[2].rpartition("#")[0]

    @property
    def parts(self) -> list[str]:
        """The stem at its slashes."""
        return self.stem.split("/")

    def draw(self) -> Random:
        """Return the random generator of a case in its initial state."""
        return Random(self.name)


@dataclass(frozen=True, slots=True)
class CaseFolders:
    """The folders of a case."""

    folder: Path  # its own, to write to; the working folder of its commands
    outside: Path  # beside it, with files that nobody may touch
    streams: Path  # where its standard streams are kept
    hang_s: float = 20.0  # what takes longer hangs


@dataclass(frozen=True, slots=True)
class Format:
    """A kind of input that is fuzzed."""

    name: str
    stems: Sequence[str]
    play: Callable[[Case, CaseFolders], str]  # returns the outcome in a word or two; raises Fault
    cases_per_child: int = 1  # commands change their process, so that each has one of its own


def names_of(format: Format, n_cases: int, first_seed: int = 0) -> Iterator[str]:
    """Return the names of ``n`` cases: all stems in mixed order with one seed, then with the next seed."""
    if not format.stems:
        return
    seed, n_given = first_seed, 0
    while n_given < n_cases:
        stems = list(format.stems)
        Random(f"{format.name}#{seed}").shuffle(stems)
        for stem in stems[: n_cases - n_given]:
            yield f"{format.name}/{stem}#{seed}"
        n_given += len(stems)
        seed += 1

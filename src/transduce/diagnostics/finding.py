"""A finding: what was looked at, how it is, and what would help; and the care that the sick need."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from transduce.corpora.cleaning import Tally
from transduce.errors import TransduceError

__all__ = ["Finding", "Status", "counted", "found", "good", "guard", "note", "on_lines", "problem"]

Status = Literal["good", "note", "problem"]


@dataclass(frozen=True, slots=True)
class Finding:
    """One line of an examination. A note is worth a look; a problem should be mended before the thing is used."""

    status: Status
    subject: str
    message: str


def found(status: Status, subject: object, message: str) -> Finding:
    """A finding, on one line that any terminal can show: names of files may hold anything.

    >>> found("note", "a\\nb\\udcff", "Öl").subject
    'a\\\\nb\\\\udcff'
    """
    return Finding(status, _shown(str(subject)), _shown(message))


def good(subject: object, message: str) -> Finding:
    """All is well with ``subject``, and this is what it is."""
    return found("good", subject, message)


def note(subject: object, message: str) -> Finding:
    """Nothing is broken, but a person may want to know."""
    return found("note", subject, message)


def problem(subject: object, message: str) -> Finding:
    """Something is wrong; the message says what, and what would help."""
    return found("problem", subject, message)


def _shown(text: str) -> str:
    return "".join(
        character if character.isprintable() else character.encode("unicode_escape").decode("ascii")
        for character in text
    )


def guard(subject: object, findings: Iterator[Finding]) -> Iterator[Finding]:
    """The ``findings``, and where making them fails, why: what is examined may be broken in any way whatever."""
    try:
        yield from findings
    except TransduceError as error:
        yield problem(subject, _without_subject(str(error), str(subject)))
    except OSError as error:
        place = f": {error.filename}" if error.filename else ""
        yield problem(subject, f"cannot be read: {error.strerror or error}{place}")
    except (KeyboardInterrupt, SystemExit, GeneratorExit):
        raise
    except BaseException as error:  # libraries raise what they like over broken bytes; a panic in Rust is no Exception
        reason = (str(error).splitlines() or [""])[0]
        yield problem(subject, f"cannot be examined: {type(error).__name__}: {reason}")


def _without_subject(message: str, subject: str) -> str:
    """The message of an error that may begin with what it is told of anyway.

    >>> _without_subject("run/store/train has no ids", "run/store"), _without_subject("run has no ids", "run")
    ('train has no ids', 'has no ids')
    """
    begins = (begin for end in ("/", ": ", " ") if message.startswith(begin := subject + end))
    return message.removeprefix(next(begins, ""))


def counted(count: int, noun: str) -> str:
    """A number and what it counts.

    >>> counted(1, "line"), counted(2000, "line")
    ('1 line', '2,000 lines')
    """
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def on_lines(status: Status, subject: object, tally: Tally, noun: str, what: str, advice: str) -> Iterator[Finding]:
    """What is odd on some lines: how often, on which ones, and what would help; nothing if it is on none."""
    if tally.count:
        yield found(status, subject, f"{counted(tally.count, noun)} {what} ({tally}); {advice}")

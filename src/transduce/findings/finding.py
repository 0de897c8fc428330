"""Findings of the diagnostics, and a guard that turns exceptions into findings."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from transduce.corpora.cleaning import Tally
from transduce.errors import TransduceError

__all__ = ["Finding", "Status", "counted", "good", "guard", "make_finding", "note", "on_lines", "problem"]

Status = Literal["good", "note", "problem"]


@dataclass(frozen=True, slots=True)
class Finding:
    """One line of the report. A note is worth checking; a problem should be fixed before use."""

    status: Status
    subject: str
    message: str


def make_finding(status: Status, subject: object, message: str) -> Finding:
    """Create a finding, with unprintable characters escaped, since file names may contain any.

    >>> make_finding("note", "a\\nb\\udcff", "Öl").subject
    'a\\\\nb\\\\udcff'
    """
    return Finding(status, _escaped(str(subject)), _escaped(message))


def good(subject: object, message: str) -> Finding:
    """Return a finding that ``subject`` is fine, with a description of it."""
    return make_finding("good", subject, message)


def note(subject: object, message: str) -> Finding:
    """Return a finding that is not an error, but worth knowing."""
    return make_finding("note", subject, message)


def problem(subject: object, message: str) -> Finding:
    """Return a finding of an error; the message says what is wrong and how to fix it."""
    return make_finding("problem", subject, message)


def _escaped(text: str) -> str:
    return "".join(
        character if character.isprintable() else character.encode("unicode_escape").decode("ascii")
        for character in text
    )


def guard(subject: object, findings: Iterator[Finding]) -> Iterator[Finding]:
    """Yield the ``findings``; turn an exception raised while producing them into a finding."""
    try:
        yield from findings
    except TransduceError as error:
        yield problem(subject, _without_subject(str(error), str(subject)))
    except OSError as error:
        where = f": {error.filename}" if error.filename else ""
        yield problem(subject, f"cannot be read: {error.strerror or error}{where}")
    except (KeyboardInterrupt, SystemExit, GeneratorExit):
        raise
    except BaseException as error:  # libraries raise any type on damaged bytes; a Rust panic is not an Exception
        reason = (str(error).splitlines() or [""])[0]
        yield problem(subject, f"cannot be examined: {type(error).__name__}: {reason}")


def _without_subject(message: str, subject: str) -> str:
    """Remove the subject from the beginning of an error message, since it is printed beside it.

    >>> _without_subject("run/store/train has no ids", "run/store"), _without_subject("run has no ids", "run")
    ('train has no ids', 'has no ids')
    """
    prefixes = (prefix for end in ("/", ": ", " ") if message.startswith(prefix := subject + end))
    return message.removeprefix(next(prefixes, ""))


def counted(count: int, noun: str) -> str:
    """Return a number with its noun.

    >>> counted(1, "line"), counted(2000, "line")
    ('1 line', '2,000 lines')
    """
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def on_lines(status: Status, subject: object, tally: Tally, noun: str, what: str, advice: str) -> Iterator[Finding]:
    """Yield a finding about the lines of a tally: their number, examples, and advice; nothing if it is empty."""
    if tally.count:
        yield make_finding(status, subject, f"{counted(tally.count, noun)} {what} ({tally}); {advice}")

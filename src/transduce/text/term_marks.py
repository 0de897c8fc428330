"""Term marks: a source text has the translations of some of its words beside them, which the model then writes.

``power plant`` becomes ``⟨ power plant| Kraftwerk⟩``, with three characters of Unicode's private use area, each one
token (Dinu et al., 2019; the marks around a term as in Bergmanis and Pinnis, 2021). Not in the paper.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from transduce.patterns import compiled_on_use
from transduce.text.byte_level import to_byte_level
from transduce.text.changes import with_changes
from transduce.text.masks import MASKS
from transduce.text.tokenizer_pipelines import CONTINUATION

__all__ = ["TERM_MARKS", "ids_of_term_marks", "strip_term_marks", "with_hints"]

TERM_MARKS = tuple(chr(ord(MASKS[-1]) + n) for n in (1, 2, 3))  # before a term, after it, after its translation
_MARK = compiled_on_use(f"[{TERM_MARKS[0]}-{TERM_MARKS[-1]}]")

Hint = tuple[int, int, str]  # the (start, end) of a term in a text, and its translation


def with_hints(text: str, hints: Iterable[Hint]) -> str:
    """Return a text with translations of terms, which are in order and do not overlap, beside them.

    A space before a term stays before its first word, which is then the same token as elsewhere.

    >>> with_hints("a dog.", [(2, 5, "Hund")]) == "a{} dog{} Hund{}.".format(*TERM_MARKS)
    True
    """
    before, between, after = TERM_MARKS
    starts = ((start - text[:start].endswith(" "), end, target) for start, end, target in hints)
    return with_changes(
        text, [(start, end, f"{before}{text[start:end]}{between} {target}{after}") for start, end, target in starts]
    )


def strip_term_marks(text: str) -> str:
    """Return a text without term marks, which only ``with_hints`` may write."""
    return _MARK.sub("", text)


def ids_of_term_marks(id_of: Callable[[str], int | None]) -> list[int]:
    """Return the ids of all forms of the term marks in a vocabulary; none if it lacks one."""
    marks = list(map(to_byte_level, TERM_MARKS))
    if any(id_of(mark) is None for mark in marks):
        return []
    return [id for mark in marks for form in (mark, CONTINUATION + mark) if (id := id_of(form)) is not None]

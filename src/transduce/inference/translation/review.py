"""What a person who reviews translations should know of each text: ``transduce.review`` shows it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from transduce.inference.translation.parts import Flag, Translation
from transduce.inference.translation.remembered import asked, is_plain, known
from transduce.review import KeptTerm, ReviewedText, SimilarPair
from transduce.text.pieces import Piece, pieces_of

if TYPE_CHECKING:
    from transduce.documents import Segment
    from transduce.inference.translation.document_translation import DocumentTranslation
    from transduce.memories import Memory
    from transduce.terms import Terms

__all__ = ["reviewed_line", "reviewed_segments"]

MEMORY = "memory"  # the state of a text that a memory has


def reviewed_segments(
    work: DocumentTranslation, lines: Sequence[Translation], terms: Terms, memory: Memory | None
) -> Iterator[ReviewedText]:
    """Yield the texts of a document that is finished, given the translations of its units, with links.

    What has no words, and nothing to say, is left out.
    """
    wanted = [each.unit for each, outcome, _ in work.outcomes() if outcome.kept not in ("no-words", "not-wanted")]
    remembered = iter(known(memory, [(each, "") for each in wanted]) if memory is not None else ())
    for segment, outcome, number in work.outcomes():
        if outcome.kept == "no-words":
            continue
        match = None if outcome.kept == "not-wanted" else next(remembered, None)
        line = lines[number] if number is not None else match if outcome.is_remembered else None
        key = asked(segment.unit) if segment.unit.nodes and is_plain(segment.unit) else ""
        if line is not None:
            state = MEMORY if outcome.is_remembered else outcome.kept or ""
            target = line.pieces or (line.matches[0].target if outcome.is_remembered else line.text,)
            yield _reviewed(
                segment.place, pieces_of(segment.unit), target, line, terms, state=state, flags=outcome.flags,
                detail=outcome.detail, key=key,
            )  # fmt: skip
        else:
            yield ReviewedText(segment.place, pieces_of(segment.unit), _before(segment), outcome.kept or "", key=key)


def reviewed_line(number: int, line: Translation, terms: Terms) -> ReviewedText:
    """Return a line of a text and its translation."""
    is_remembered = bool(line.matches) and line.matches[0].similarity == 1
    return _reviewed(
        f"line {number:,}", (line.source,), (line.text,), line, terms, state=MEMORY if is_remembered else "",
        flags=line.warnings,
    )  # fmt: skip


def _reviewed(
    place: str,
    source: Sequence[Piece],
    target: Sequence[Piece],
    line: Translation,
    terms: Terms,
    *,
    state: str,
    flags: Iterable[Flag],
    detail: str = "",
    key: str = "",
) -> ReviewedText:
    before, after = _words(source), _words(target)
    lost = [*terms.lost(before, after)]
    listed = [KeptTerm(each.source, each.target, each not in lost) for each in dict.fromkeys(terms.found(before))]
    avoided = [KeptTerm("", each, is_kept=False) for each in terms.said(after)]
    similar = [SimilarPair(each.source, each.target, each.similarity) for each in line.matches]
    return ReviewedText(
        place, source, target, state, tuple(flags), detail, (*listed, *avoided), tuple(similar), line.words, key
    )


def _words(pieces: Sequence[Piece]) -> str:
    return "".join(each for each in pieces if isinstance(each, str))


def _before(segment: Segment) -> tuple[Piece, ...]:
    """Return what a document has in the place of a translation."""
    return (segment.target,) if segment.target else pieces_of(segment.unit)

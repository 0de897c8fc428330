"""The review page: its data, and the file.

The template (``review_page.html``, ``.css``, ``.js``) lies beside this file. The page works offline, from a disk; edits
stay in the browser until they are saved as TMX.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from transduce.files import write_text
from transduce.pages import filled_page
from transduce.patterns import compiled_on_use
from transduce.text.pieces import Piece, Tag

__all__ = ["KeptTerm", "ReviewedText", "SimilarPair", "review_page", "write_review"]

_EMBEDDED = compiled_on_use("([\ufdd1-\ufdef])[0-9]+\\1")  # the place of a text inside a tag: ``Embedded``


class KeptTerm(NamedTuple):
    """A term of a text: its translation in the list, and whether the translation has it."""

    source: str
    target: str
    is_kept: bool


class SimilarPair(NamedTuple):
    """A pair of a memory that is like a text."""

    source: str
    target: str
    similarity: float  # 1: equal


@dataclass(frozen=True, slots=True)
class ReviewedText:
    """A text, its translation, and what a person should know of it."""

    place: str
    source: Sequence[Piece]
    target: Sequence[Piece]
    state: str = ""  # "memory", or why the text stays as it was; "": a model translated it
    warnings: Sequence[str] = ()
    detail: str = ""
    terms: Sequence[KeptTerm] = ()
    similar: Sequence[SimilarPair] = ()
    words: Sequence[tuple[str, float]] = ()  # of the translation, with log p(word | source, words before) in nats
    key: str = ""  # what a memory knows it as, if its tags are words there: placeholders


def write_review(path: Path, texts: Sequence[ReviewedText], *, name: str, direction: tuple[str, str]) -> None:
    """Write the page of a translated document, whole or not at all."""
    write_text(path, review_page(texts, name=name, direction=direction))


def review_page(texts: Sequence[ReviewedText], *, name: str, direction: tuple[str, str]) -> str:
    """Return the page as HTML. ``direction``: the codes of the languages."""
    records = [_record(each) for each in texts]
    source, target = direction
    key = hashlib.sha256(repr((name, direction, records)).encode("utf-8", "surrogatepass")).hexdigest()[:16]
    return filled_page(
        __package__, "review_page.html", style="review_page.css",
        scripts=("review_parts.js", "review_edit.js", "review_page.js"),
        data={"name": name, "src": source, "tgt": target, "key": key, "texts": records}, name=name,
    )  # fmt: skip


def _record(text: ReviewedText) -> dict[str, object]:
    """Return what the page knows of a text; what is empty is left out."""
    return {
        key: value
        for key, value in (
            ("place", text.place),
            ("source", [_packed(each) for each in text.source]),
            ("target", [_packed(each) for each in text.target]),
            ("key", text.key),
            ("state", text.state),
            ("warnings", list(text.warnings)),
            ("detail", text.detail),
            ("terms", [list(each) for each in text.terms]),
            ("similar", [[each.source, each.target, int(100 * each.similarity)] for each in text.similar]),
            ("words", [[word, round(log_prob, 2)] for word, log_prob in text.words]),
        )
        if value
    }


def _packed(piece: Piece) -> str | list[object]:
    return [piece.kind, piece.number, _EMBEDDED.sub("…", piece.text)] if isinstance(piece, Tag) else piece

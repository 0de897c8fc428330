"""Texts to translations: their sentences are queued, and put together again when all are done."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from transduce.errors import ConfigError
from transduce.inference.translation.parts import FLAGS, Flag
from transduce.inference.translation.text_division import Splitting
from transduce.serving.http import ApiError
from transduce.serving.models import AlignJob, ServedTranslator, TranslateJob
from transduce.terms import Terms
from transduce.text.markup import MarkupRules, Unit

__all__ = [
    "MAX_ALTERNATIVES", "WARNINGS_HEADER", "Splitting", "TranslatedText", "counted_flags", "translate_texts",
    "warnings_header",
]  # fmt: skip

MAX_ALTERNATIVES = 10
LONG = 2000  # characters, from which on text is divided and put together in another thread
WARNINGS_HEADER = "X-Transduce-Warnings"

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class TranslatedText:
    """The best translation of a text, others that differ from it, and what may be wrong with the best."""

    text: str
    alternatives: tuple[str, ...] = ()
    warnings: tuple[Flag, ...] = ()


async def translate_texts(
    served: ServedTranslator,
    texts: Sequence[str | Unit],
    *,
    rules: MarkupRules | None = None,
    splitting: Splitting = "lines",
    n_alternatives: int = 0,
    terms: Terms | None = None,
    deadline: float,
) -> list[TranslatedText]:
    """Translate texts, with tags if there are ``rules``, or units of documents.

    Spaces at the ends and empty lines stay. ``terms`` must be kept; what has none of them is translated in batches with
    other requests. ``deadline``: of all, by ``time.monotonic``. Raises as ``Served.submit``, and ApiError if the model
    cannot keep terms.
    """
    n_characters, n_best = sum(len(each.text if isinstance(each, Unit) else each) for each in texts), 1 + n_alternatives
    is_long, is_document = n_characters >= LONG, any(isinstance(each, Unit) for each in texts)

    async def done(step: Callable[[], T]) -> T:
        return await asyncio.to_thread(step) if is_long else step()

    if terms is not None:
        try:
            await asyncio.to_thread(served.term_translators.of, served.model, terms)  # may load an engine
        except ConfigError as error:
            raise ApiError(400, f"The model cannot keep terms: {error}") from error
    work = await done(
        lambda: served.model.divided(texts, rules=rules, splitting=splitting, is_recalled=not is_document)
    )
    jobs = await done(
        lambda: [
            TranslateJob(each.text, n_best=n_best, terms=terms if terms and terms.found(each.text) else None)
            for each in work.sentences
        ]
    )
    translated = await served.submit(jobs, timeout_s=deadline - time.monotonic())
    served.metrics.characters(n_characters)
    pairs = await done(lambda: work.pairs(translated))
    alignments = [AlignJob(*pair) for pair in pairs]
    aligned = await served.submit(alignments, timeout_s=deadline - time.monotonic())
    translations = await done(lambda: work.put_together(translated, aligned, n_best=n_best))
    return [
        TranslatedText(each.text, tuple(other.text for other in each.n_best[1:]), each.warnings)
        for each in translations
    ]


def counted_flags(results: Iterable[TranslatedText]) -> Counter[Flag]:
    """Return in how many texts each thing may be wrong."""
    return Counter(flag for each in results for flag in each.warnings)


def warnings_header(counts: Mapping[Flag, int]) -> dict[str, str]:
    """Return the header that says what may be wrong with how many texts; none if nothing is.

    >>> texts = [TranslatedText("a", warnings=("lost",)), TranslatedText("b", warnings=("source-cut", "lost"))]
    >>> warnings_header(counted_flags(texts))
    {'X-Transduce-Warnings': 'source-cut=1, lost=2'}
    """
    found = [f"{flag}={counts[flag]}" for flag in FLAGS if counts.get(flag)]
    return {WARNINGS_HEADER: ", ".join(found)} if found else {}

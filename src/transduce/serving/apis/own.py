"""The server's own API: sentences, alternatives and attention for the page; parsing.

Shapes: X target words, Y source words.
"""

from __future__ import annotations

import asyncio
import math
import time
from typing import Any

from transduce.inference import Parse
from transduce.inference.translation.prefixes import Prefix
from transduce.inference.translation.word_alignment import AlignedSentence
from transduce.serving.api import Api, Ask, endpoint
from transduce.serving.fields import Fields, Texts, field
from transduce.serving.http import ApiError, too_long_if_data_error
from transduce.serving.models import (
    AlignJob,
    AlternativesJob,
    ParseJob,
    ServedParser,
    ServedTranslator,
    TranslateJob,
)
from transduce.serving.routing import AUTO, sources_of, stays
from transduce.serving.translating import MAX_ALTERNATIVES, counted_flags, translate_texts, warnings_header
from transduce.text import Segment, word_spans

__all__ = ["OwnApi"]

MAX_WEIGHTS = 1 << 18  # between the words of a sentence and of its translation, in an answer
PARSE = {"words": [str], "tree": str | None, "score": float | None}
SENTENCE = {"q": "A cat", "source": "en", "target": "de"}


class TextFields(Fields):
    """The fields of /sentences."""

    q: str = field()
    source: str = field(AUTO, 'Language code, or "auto"')
    target: str = field(description="Language code", low=1)


class CompletionFields(TextFields):
    """The fields of /completion."""

    prefix: str = field("", "How the translation begins")


class AlternativesFields(CompletionFields):
    """The fields of /alternatives."""

    n: int = field(5, low=1, high=MAX_ALTERNATIVES)


class AlignmentFields(TextFields):
    """The fields of /alignment."""

    translation: str = field()


class ParseFields(Fields):
    """The fields of /parse."""

    q: Texts = field(description="Sentences whose words are separated by spaces")
    raw: bool = field(False, "Whether texts are to be tokenised")
    model: str = field("", "The parser; by default the first")


class OwnApi(Api):
    """The endpoints."""

    name, tag = "transduce", "transduce"

    @endpoint(
        "POST", "/sentences", example=SENTENCE,
        gives={"source": str, "target": str, "sentences": [{"source": str, "space": str, "translation": str}]},
    )  # fmt: skip
    async def sentences(self, ask: Ask[TextFields]) -> dict[str, Any]:
        """The sentences of a text, each with its translation."""
        text = ask.fields.q
        with ask.counted(1, len(text)):
            source, target = await self._direction(ask)
            if stays(self.state, source, target):
                unchanged = {"source": text, "space": "", "translation": text}
                return {"source": source, "target": target, "sentences": [unchanged]}
            served = self.state.translators[source, target]
            segments = await asyncio.to_thread(_segments_of, served, text)
            texts, deadline = [each.text for each in segments], time.monotonic() + self.state.request_timeout_s
            translated = await ask.done(translate_texts(served, texts, splitting="none", deadline=deadline))
        ask.headers.update(warnings_header(counted_flags(translated)))
        sentences = [
            {"source": segment.text, "space": segment.space, "translation": each.text}
            for segment, each in zip(segments, translated, strict=True)
        ]
        return {"source": source, "target": target, "sentences": sentences}

    @endpoint("POST", "/alternatives", gives={"alternatives": [{"text": str, "score": float | None}]}, example=SENTENCE)
    async def alternatives(self, ask: Ask[AlternativesFields]) -> dict[str, Any]:
        """Translations of a sentence that differ from the end of a prefix on."""
        text, prefix = ask.fields.q, ask.fields.prefix
        found = await self._of_sentence(ask, AlternativesJob(text, prefix, ask.fields.n), len(text) + len(prefix))
        return {"alternatives": [{"text": each.text, "score": _finite(each.score)} for each in found]}

    @endpoint("POST", "/completion", gives={"translation": str}, example=SENTENCE)
    async def completion(self, ask: Ask[CompletionFields]) -> dict[str, Any]:
        """The best translation of a sentence that begins with a prefix."""
        text, prefix = ask.fields.q, ask.fields.prefix
        found = await self._of_sentence(ask, TranslateJob(text, prefix=Prefix(prefix)), len(text) + len(prefix))
        return {"translation": found.n_best[0].text or text}

    @endpoint(
        "POST", "/alignment", example=SENTENCE | {"translation": "Eine Katze"},
        gives={
            "source": str, "translation": str, "source_words": [[int]], "target_words": [[int]],
            "attention": [[float]], "probabilities": [float],
        },
    )  # fmt: skip
    async def alignment(self, ask: Ask[AlignmentFields]) -> dict[str, Any]:
        """Attention between the words of a sentence and its translation, and the model's probability of each word.

        The probability is not a measure of quality.
        """
        job = AlignJob(ask.fields.q, ask.fields.translation)
        if len(word_spans(job.text)) * len(word_spans(job.translation)) > MAX_WEIGHTS:
            raise ApiError(400, "Invalid request: q and translation have too many words; align single sentences")
        found = await self._of_sentence(ask, job, len(job.text) + len(job.translation))
        return await asyncio.to_thread(_alignment, found)

    async def _of_sentence(
        self, ask: Ask[Any], job: TranslateJob | AlternativesJob | AlignJob, n_characters: int
    ) -> Any:
        """Return the result of a job of a translator, within the limits of the client."""
        with ask.counted(1, n_characters), too_long_if_data_error("q or prefix"):
            source, target = await self._direction(ask)
            if stays(self.state, source, target):
                raise ApiError(400, f"Invalid request: the text is in the target language, {target}")
            served = self.state.translators[source, target]
            [found] = await ask.done(served.submit([job], timeout_s=self.state.request_timeout_s))
        if not isinstance(job, AlignJob):
            served.metrics.characters(n_characters)
        return found

    async def _direction(self, ask: Ask[Any]) -> tuple[str, str]:
        """Return source and target language. Raises ApiError."""
        [detected], target = await sources_of(self.state, [ask.fields.q], ask.fields.source, ask.fields.target)
        return detected.language, target

    @endpoint("POST", "/parse", gives=(PARSE, {"parses": [PARSE]}), example={"q": "the dog sleeps ."})
    async def parse(self, ask: Ask[ParseFields]) -> dict[str, Any]:
        """Trees of sentences in Penn brackets."""
        texts: list[str] = ask.fields.q
        with ask.counted(len(texts), sum(map(len, texts))):
            served = self._parser(ask.fields.model)
            if ask.fields.raw:
                from transduce.text.treebank_words import treebank_words

                texts = [" ".join(treebank_words(text)) for text in texts]
            jobs = [ParseJob(text) for text in texts]
            results: list[Parse] = await ask.done(served.submit(jobs, timeout_s=self.state.request_timeout_s))
        answers = [
            {
                "words": each.words, "tree": None if each.tree is None else str(each.tree),
                "score": _finite(each.score),
            }
            for each in results
        ]  # fmt: skip
        return {"parses": answers} if ask.fields.q.is_list else answers[0]

    def _parser(self, name: str) -> ServedParser:
        found = [each for each in self.state.parsers if name in ("", each.name)]
        if not found:
            raise ApiError(400, "Invalid request: there is no such parser" if name else "No parser is served")
        return found[0]


def _alignment(aligned: AlignedSentence) -> dict[str, Any]:
    return {
        "source": aligned.source,
        "translation": aligned.target,
        "source_words": aligned.source_words,
        "target_words": aligned.target_words,
        "attention": [[round(weight, 4) for weight in row] for row in aligned.weights_XY.tolist()],
        "probabilities": [round(math.exp(log_prob), 4) for log_prob in aligned.log_probs_X],
    }


def _segments_of(served: ServedTranslator, text: str) -> list[Segment]:
    """Return the sentences of all lines; the space after the last one of a line is its end."""
    segments = list[Segment]()
    for number, line in enumerate(text.split("\n")):
        if number:
            segments[-1] = Segment(segments[-1].text, segments[-1].space + "\n")
        segments += served.model.split_line(line)
    return segments


def _finite(score: float) -> float | None:
    return score if math.isfinite(score) else None

"""The server's own API: sentences, alternatives and attention for the page; parsing; generation; operation.

Shapes: X target words, Y source words.
"""

from __future__ import annotations

import asyncio
import json
import math
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from typing import Any

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from transduce.config import MAX_SEED
from transduce.errors import DataError
from transduce.inference import Continuation, Parse, ScoredText
from transduce.inference.translation.translator import Prefix
from transduce.inference.translation.word_alignment import AlignedSentence
from transduce.search.sampling import Sampling
from transduce.serving.access import Client
from transduce.serving.http import ApiError, Fields, as_api_error, counted, json_response, read_fields, while_connected
from transduce.serving.libretranslate import over_quota
from transduce.serving.metrics import CONTENT_TYPE
from transduce.serving.models import (
    AlignJob,
    AlternativesJob,
    GenerateJob,
    ParseJob,
    ServedLanguageModel,
    ServedParser,
    ServedTranslator,
    TranslateJob,
)
from transduce.serving.routing import AUTO, direction_of, languages_of, stays, target_of
from transduce.serving.state import ServerState
from transduce.serving.translating import MAX_ALTERNATIVES, translate_texts, warnings_header
from transduce.text import Segment, word_spans

__all__ = ["Native"]

MAX_TOKENS = 4096  # of a generated text
MAX_WEIGHTS = 1 << 18  # between the words of a sentence and of its translation, in an answer
# The fields of each endpoint, besides the key.
KEYS = ("api_key", "auth_key")
DIRECTION = ("q", "source", "target")
FIELDS = {
    "sentences": DIRECTION, "alternatives": (*DIRECTION, "prefix", "n"), "completion": (*DIRECTION, "prefix"),
    "alignment": (*DIRECTION, "translation"), "parse": ("q", "raw", "model"),
    "generate": ("prompt", "model", "max_tokens", "temperature", "top_k", "top_p", "seed", "stream"),
}  # fmt: skip


class Native:
    """The endpoints."""

    def __init__(self, state: ServerState) -> None:
        self.state = state

    async def ready(self, request: Request) -> Response:
        """GET /ready."""
        if self.state.is_ready:
            return json_response({"status": "ready"})
        return json_response({"status": "stopping"}, 503)

    async def metrics(self, request: Request) -> Response:
        """GET /metrics."""
        return Response(self.state.metrics.text(), media_type=CONTENT_TYPE)

    async def sentences(self, request: Request) -> Response:
        """POST /sentences: the sentences of a text, each with its translation."""
        fields = await _read(request, "sentences")
        with self._counted(request, fields) as (text, _):
            source, target = await self._direction(fields, text)
            if stays(self.state, source, target):
                unchanged = {"source": text, "space": "", "translation": text}
                return json_response({"source": source, "target": target, "sentences": [unchanged]})
            served = self.state.translators[source, target]
            segments = await asyncio.to_thread(_segments_of, served, text)
            texts, timeout_s = [each.text for each in segments], self.state.request_timeout_s
            translated = await while_connected(
                request, translate_texts(served, texts, splitting="none", timeout_s=timeout_s)
            )
        answers = [
            {"source": segment.text, "space": segment.space, "translation": each.text}
            for segment, each in zip(segments, translated, strict=True)
        ]
        body = {"source": source, "target": target, "sentences": answers}
        return json_response(body, headers=warnings_header(translated))

    async def alternatives(self, request: Request) -> Response:
        """POST /alternatives: other translations of a sentence, from the end of a prefix on."""
        fields = await _read(request, "alternatives")
        with self._counted(request, fields) as (text, n_characters), _prefix_blamed():
            served = await self._translator(fields, text)
            n, prefix = fields.integer("n", 5, low=1, high=MAX_ALTERNATIVES), fields.text("prefix", "")
            job = AlternativesJob(text, prefix, n)
            [found] = await while_connected(request, served.ask([job], timeout_s=self.state.request_timeout_s))
        scored: list[ScoredText] = found
        served.metrics.characters(n_characters)
        return json_response({"alternatives": [{"text": each.text, "score": _finite(each.score)} for each in scored]})

    async def completion(self, request: Request) -> Response:
        """POST /completion: the best translation of a sentence that begins with a prefix."""
        fields = await _read(request, "completion")
        with self._counted(request, fields) as (text, n_characters), _prefix_blamed():
            served = await self._translator(fields, text)
            job = TranslateJob(text, prefix=Prefix(fields.text("prefix", "")))
            [found] = await while_connected(request, served.ask([job], timeout_s=self.state.request_timeout_s))
        served.metrics.characters(n_characters)
        return json_response({"translation": found.n_best[0].text or text})

    async def alignment(self, request: Request) -> Response:
        """POST /alignment: attention between the words of a sentence and of its translation, and probabilities."""
        fields = await _read(request, "alignment")
        with self._counted(request, fields) as (text, _):
            served = await self._translator(fields, text)
            job = AlignJob(text, fields.text("translation"))
            if len(word_spans(job.source)) * len(word_spans(job.target)) > MAX_WEIGHTS:
                raise ApiError(400, "Invalid request: q and translation have too many words; align single sentences")
            [found] = await while_connected(request, served.ask([job], timeout_s=self.state.request_timeout_s))
        return await asyncio.to_thread(_alignment_response, found)

    @contextmanager
    def _counted(self, request: Request, fields: Fields) -> Iterator[tuple[str, int]]:
        """Yield the text of a request and its size, within the limits of its client."""
        client = self.state.client(request, fields)
        text = fields.text("q")
        n_characters = len(text) + len(fields.text("translation", "")) + len(fields.text("prefix", ""))
        with counted(client, 1, n_characters, over_quota=over_quota()):
            yield text, n_characters

    async def _direction(self, fields: Fields, text: str) -> tuple[str, str]:
        """Return source and target language. Raises ApiError."""
        source, target = fields.filled("source", AUTO), fields.filled("target")
        if source.lower() != AUTO:
            return direction_of(self.state, source, target)
        target = target_of(self.state, target)
        [detected] = await languages_of(self.state, [text], target)
        return detected.language, target

    async def _translator(self, fields: Fields, text: str) -> ServedTranslator:
        source, target = await self._direction(fields, text)
        if stays(self.state, source, target):
            raise ApiError(400, f"Invalid request: the text is in the target language, {target}")
        return self.state.translators[source, target]

    async def parse(self, request: Request) -> Response:
        """POST /parse: trees of sentences in Penn brackets."""
        fields = await _read(request, "parse")
        client = self.state.client(request, fields)
        texts, is_list = fields.texts("q")
        with counted(client, len(texts), sum(map(len, texts)), over_quota=over_quota()):
            served, timeout_s = self._parser(fields), self.state.request_timeout_s
            if fields.flag("raw", False):
                from transduce.text.treebank_words import treebank_words

                texts = [" ".join(treebank_words(text)) for text in texts]
            jobs = [ParseJob(text) for text in texts]
            results: list[Parse] = await while_connected(request, served.ask(jobs, timeout_s=timeout_s))
        answers = [
            {
                "words": list(each.words), "tree": None if each.tree is None else str(each.tree),
                "score": _finite(each.score),
            }
            for each in results
        ]  # fmt: skip
        return json_response({"parses": answers} if is_list else answers[0])

    def _parser(self, fields: Fields) -> ServedParser:
        name = fields.text("model", "")
        found = [each for each in self.state.parsers if name in ("", each.name)]
        if not found:
            raise ApiError(400, "Invalid request: there is no such parser" if name else "No parser is served")
        return found[0]

    async def generate(self, request: Request) -> Response:
        """POST /generate: the continuation of a prompt, streamed as events or whole."""
        fields = await _read(request, "generate")
        client = self.state.client(request, fields)
        prompt = fields.text("prompt")
        with counted(client, 1, len(prompt), over_quota=over_quota()):
            return await self._generated(request, fields, prompt, client)

    async def _generated(self, request: Request, fields: Fields, prompt: str, client: Client) -> Response:
        """Generate text, whose characters count as well."""
        served = self._language_model(fields)
        sampling = Sampling(
            fields.number("temperature", 1.0, low=0.0, high=1000.0),
            fields.integer("top_k", 0, low=0, high=10**6) or None,
            fields.number("top_p", 1.0, low=1e-6, high=1.0) if "top_p" in fields else None,
        )
        is_cancelled, pieces, loop = threading.Event(), asyncio.Queue[str](), asyncio.get_running_loop()

        def receive(piece: str) -> None:
            client.use(len(piece))
            pieces.put_nowait(piece)

        def pass_on(piece: str) -> None:
            loop.call_soon_threadsafe(receive, piece)

        job = GenerateJob(
            prompt, fields.integer("max_tokens", 100, low=1, high=MAX_TOKENS), sampling,
            fields.integer("seed", 1, low=0, high=MAX_SEED), pass_on, is_cancelled.is_set,
        )  # fmt: skip
        if fields.flag("stream", True):
            work = asyncio.ensure_future(served.ask([job], timeout_s=self.state.request_timeout_s))
            first = await _first_event(work, pieces)
            return StreamingResponse(
                _events(work, pieces, first, is_cancelled), media_type="text/event-stream",
                headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"},
            )  # fmt: skip
        try:
            [continued] = await while_connected(request, served.ask([job], timeout_s=self.state.request_timeout_s))
        finally:
            is_cancelled.set()
        return json_response({"text": continued.text, **_summary(continued)})

    def _language_model(self, fields: Fields) -> ServedLanguageModel:
        models = self.state.language_models
        name = fields.text("model", "")
        if name and name not in models:
            raise ApiError(400, "Invalid request: there is no such language model")
        if not models:
            raise ApiError(400, "No language model is served")
        return models[name] if name else next(iter(models.values()))


async def _read(request: Request, endpoint: str) -> Fields:
    """Return the fields of a request. Raises ApiError for one that the endpoint does not have."""
    fields = await read_fields(request)
    fields.require_known((*FIELDS[endpoint], *KEYS))
    return fields


def _alignment_response(aligned: AlignedSentence) -> Response:
    return json_response(
        {
            "source": aligned.source,
            "translation": aligned.target,
            "source_words": aligned.source_words,
            "target_words": aligned.target_words,
            "attention": [[round(weight, 4) for weight in row] for row in aligned.weights_XY.tolist()],
            "probabilities": [round(math.exp(log_prob), 4) for log_prob in aligned.log_probs_X],
        }
    )


@contextmanager
def _prefix_blamed() -> Iterator[None]:
    """Say what is wrong where only the prefix can be."""
    try:
        yield
    except DataError as error:
        raise ApiError(400, "Invalid request: prefix has more tokens than the model reads") from error


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


def _summary(continued: Continuation) -> dict[str, Any]:
    return {
        "log_prob": _finite(continued.log_prob), "tokens": continued.tokens, "is_ended": continued.is_ended
    }  # fmt: skip


async def _first_event(work: asyncio.Future[list[Any]], pieces: asyncio.Queue[str]) -> str:
    """Return the first piece of text; if the work fails before it, raise: the answer can still be an error."""
    piece = asyncio.ensure_future(pieces.get())
    try:
        await asyncio.wait((work, piece), return_when=asyncio.FIRST_COMPLETED)
    except asyncio.CancelledError:
        work.cancel()
        raise
    finally:
        if not piece.done():
            piece.cancel()
    if piece.done() and not piece.cancelled():
        return piece.result()
    work.result()
    return ""


async def _events(
    work: asyncio.Future[list[Any]], pieces: asyncio.Queue[str], first: str, is_cancelled: threading.Event
) -> AsyncIterator[str]:
    """Yield server-sent events: pieces of text, then a summary. A client that goes away ends the work."""
    try:
        if first:
            yield _event({"text": first})
        while not work.done() or not pieces.empty():
            piece = asyncio.ensure_future(pieces.get())
            await asyncio.wait((work, piece), return_when=asyncio.FIRST_COMPLETED)
            if piece.done():
                yield _event({"text": piece.result()})
            else:
                piece.cancel()
        try:
            [continued] = work.result()
        except Exception as error:
            yield _event({"error": as_api_error(error).message})
        else:
            yield _event({"done": True, **_summary(continued)})
    finally:
        is_cancelled.set()
        work.cancel()


def _event(value: dict[str, Any]) -> str:
    return f"data: {json.dumps(value, ensure_ascii=False)}\n\n"

"""The server's own API: the continuation of prompts."""

from __future__ import annotations

import asyncio
import json
import math
import threading
from collections.abc import AsyncIterator
from typing import Any

from starlette.responses import StreamingResponse

from transduce.config import MAX_SEED
from transduce.inference import Continuation
from transduce.search.sampling import Sampling
from transduce.serving.api import Api, Ask, endpoint
from transduce.serving.fields import Fields, field
from transduce.serving.http import ApiError, as_api_error, too_long_if_data_error
from transduce.serving.models import GenerateJob, ServedLanguageModel

__all__ = ["GenerationApi"]

MAX_TOKENS = 4096  # of a generated text


class GenerateFields(Fields):
    """The fields of /generate."""

    prompt: str = field()
    model: str = field("", "The language model; by default the first")
    max_tokens: int = field(100, low=1, high=MAX_TOKENS)
    temperature: float = field(1.0, low=0.0, high=1000.0)
    top_k: int = field(0, "Draw from so many most probable tokens; 0 for all", low=0, high=10**6)
    top_p: float = field(1.0, "Draw from the fewest tokens with at least this probability", low=1e-6, high=1.0)
    seed: int = field(1, low=0, high=MAX_SEED)
    stream: bool = field(True)


class EventStream(StreamingResponse):
    """Server-sent events."""

    media_type = "text/event-stream"


class GenerationApi(Api):
    """The endpoint."""

    name, tag = "transduce", "transduce"

    @endpoint(
        "POST", "/generate", example={"prompt": "the", "stream": False, "max_tokens": 2},
        gives=(EventStream, {"text": str, "log_prob": float | None, "tokens": int, "is_ended": bool}),
    )  # fmt: skip
    async def generate(self, ask: Ask[GenerateFields]) -> EventStream | dict[str, Any]:
        """The continuation of a prompt by a language model.

        Server-sent events, each with JSON {"text"} or, last, {"done", "log_prob", "tokens", "is_ended"}; whole with
        stream = false.
        """
        with ask.counted(1, len(ask.fields.prompt)):
            return await self._generated(ask, ask.fields)

    async def _generated(self, ask: Ask[GenerateFields], asked: GenerateFields) -> EventStream | dict[str, Any]:
        """Generate text, whose characters count as well."""
        served, top_p = self._language_model(asked.model), asked.top_p if asked.top_p < 1 else None
        is_cancelled, pieces, loop = threading.Event(), asyncio.Queue[str](), asyncio.get_running_loop()

        def receive(piece: str) -> None:
            ask.client.use(len(piece))
            pieces.put_nowait(piece)

        def pass_on(piece: str) -> None:
            loop.call_soon_threadsafe(receive, piece)

        job = GenerateJob(
            asked.prompt, asked.max_tokens, Sampling(asked.temperature, asked.top_k or None, top_p), asked.seed,
            pass_on, is_cancelled.is_set,
        )  # fmt: skip
        work = served.submit([job], timeout_s=self.state.request_timeout_s)
        if asked.stream:
            begun = asyncio.ensure_future(work)
            with too_long_if_data_error("prompt"):
                first = await _first_event(begun, pieces)
            headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
            return EventStream(_events(begun, pieces, first, is_cancelled), headers=headers)
        try:
            with too_long_if_data_error("prompt"):
                [continued] = await ask.done(work)
        finally:
            is_cancelled.set()
        return {"text": continued.text, **_summary(continued)}

    def _language_model(self, name: str) -> ServedLanguageModel:
        models = self.state.language_models
        if name and name not in models:
            raise ApiError(400, "Invalid request: there is no such language model")
        if not models:
            raise ApiError(400, "No language model is served")
        return models[name] if name else next(iter(models.values()))


def _summary(continued: Continuation) -> dict[str, Any]:
    log_prob = continued.log_prob if math.isfinite(continued.log_prob) else None
    return {"log_prob": log_prob, "tokens": continued.tokens, "is_ended": continued.is_ended}


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

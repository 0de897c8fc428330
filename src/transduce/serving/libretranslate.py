"""The API of LibreTranslate, at the root."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from transduce.corpora.languages import language_name
from transduce.serving.detection import Detected
from transduce.serving.http import ApiError, counted, json_response, read_fields, require_within, while_connected
from transduce.serving.state import ServerState
from transduce.serving.translating import MAX_ALTERNATIVES, TranslatedText, translate_texts, warnings_header
from transduce.text.markup import html_rules

__all__ = ["LibreTranslate", "detected_of", "error_response", "name_of", "over_quota"]

FRONTEND_TIMEOUT_MS = 500  # the client's, after the last key


def error_response(error: ApiError) -> Response:
    """Return an error as LibreTranslate writes it."""
    return json_response({"error": error.message}, error.status, error.headers)


def over_quota() -> ApiError:
    """Return the error of a client whose quota is used up."""
    return ApiError(403, "The quota of this month is used up")


def name_of(code: str) -> str:
    """Return the English name of a language."""
    return language_name(code).removesuffix(f" ({code})")


class LibreTranslate:
    """The endpoints."""

    def __init__(self, state: ServerState) -> None:
        self.state = state

    async def translate(self, request: Request) -> Response:
        """POST /translate."""
        fields = await read_fields(request)
        client = self.state.client(request, fields)
        texts, is_list = fields.texts("q")
        source, target = fields.text("source"), fields.text("target")
        kind = fields.text("format", "text")
        if kind not in ("text", "html"):
            raise ApiError(400, "Invalid request: format should be text or html")
        n_alternatives = fields.integer("alternatives", 0, low=0, high=MAX_ALTERNATIVES)
        n_characters = sum(map(len, texts))
        with counted(client, len(texts), n_characters, over_quota=over_quota()):
            detected = [await detected_of(self.state, text, target) for text in texts] if source == "auto" else []
            sources = [each.language for each in detected] or [source] * len(texts)
            results = await while_connected(
                request, self._translated(texts, sources, target, is_html=kind == "html", n_alternatives=n_alternatives)
            )
        answer: dict[str, Any] = {"translatedText": [each.text for each in results]}
        if detected:
            answer["detectedLanguage"] = [_as_json(each) for each in detected]
        if n_alternatives:
            answer["alternatives"] = [list(each.alternatives) for each in results]
        return json_response(
            answer if is_list else {name: values[0] for name, values in answer.items()},
            headers=warnings_header(results),
        )

    async def _translated(
        self, texts: Sequence[str], sources: Sequence[str], target: str, *, is_html: bool, n_alternatives: int
    ) -> list[TranslatedText]:
        """Translate texts of several source languages."""
        indices_of = defaultdict[str, list[int]](list)
        for index, source in enumerate(sources):
            indices_of[source].append(index)
        results: dict[int, TranslatedText] = {}
        for source, indices in indices_of.items():
            if source == target and source in (*self.state.sources, *self.state.targets):
                results |= {index: TranslatedText(texts[index]) for index in indices}
                continue
            translated = await translate_texts(
                self.state.translator(source, target), [texts[index] for index in indices],
                rules=html_rules() if is_html else None, n_alternatives=n_alternatives,
                timeout_s=self.state.request_timeout_s,
            )  # fmt: skip
            results |= dict(zip(indices, translated, strict=True))
        return [results[index] for index in range(len(texts))]

    async def detect(self, request: Request) -> Response:
        """POST /detect."""
        fields = await read_fields(request)
        client = self.state.client(request, fields)
        texts, _ = fields.texts("q")
        require_within(client, len(texts), sum(map(len, texts)))
        ranked = await asyncio.to_thread(self.state.detector.rank, " ".join(texts))
        return json_response([_as_json(each) for each in ranked])

    async def languages(self, request: Request) -> Response:
        """GET /languages."""
        codes = sorted({*self.state.sources, *self.state.targets})
        return json_response(
            [{"code": code, "name": name_of(code), "targets": self.state.targets_of(code)} for code in codes]
        )

    async def settings(self, request: Request) -> Response:
        """GET /frontend/settings."""
        access = self.state.access
        limits = None if access.anonymous is None else access.anonymous.limits
        first = next(iter(self.state.translators), None)
        language = {} if first is None else {
            side: {"code": code, "name": name_of(code)} for side, code in zip(("source", "target"), first, strict=True)
        }  # fmt: skip
        return json_response(
            {
                "apiKeys": access.has_keys, "keyRequired": access.anonymous is None,
                "charLimit": -1 if limits is None else limits.characters, "frontendTimeout": FRONTEND_TIMEOUT_MS,
                "language": language, "suggestions": False, "filesTranslation": False, "supportedFilesFormat": [],
            }
        )  # fmt: skip

    async def health(self, request: Request) -> Response:
        """GET /health."""
        return json_response({"status": "ok"})


async def detected_of(state: ServerState, text: str, target: str | None) -> Detected:
    """Return the language of a text, among those that are translated into ``target`` if there are any."""
    sources = [source for source in state.sources if target in (None, *state.targets_of(source))]
    ranked = await asyncio.to_thread(state.detector.rank, text, among=sources or None)
    if not ranked:
        raise ApiError(400, "There is no translator to recognise languages for")
    return ranked[0]


def _as_json(detected: Detected) -> dict[str, Any]:
    return {"language": detected.language, "confidence": detected.confidence}

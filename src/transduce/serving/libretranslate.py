"""The API of LibreTranslate, at the root."""

from __future__ import annotations

import asyncio
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from transduce.serving.detection import Detected
from transduce.serving.http import ApiError, counted, json_response, read_fields, require_within, while_connected
from transduce.serving.routing import AUTO, direction_of, languages_of, name_of, target_of, translated
from transduce.serving.state import ServerState
from transduce.serving.translating import MAX_ALTERNATIVES, warnings_header
from transduce.text.markup import rules_of

__all__ = ["LibreTranslate", "error_response", "over_quota"]

FRONTEND_TIMEOUT_MS = 500  # the client's, after the last key


def error_response(error: ApiError) -> Response:
    """Return an error as LibreTranslate writes it."""
    return json_response({"error": error.message}, error.status, error.headers)


def over_quota() -> ApiError:
    """Return the error of a client whose quota is used up."""
    return ApiError(403, "The quota of this month is used up")


class LibreTranslate:
    """The endpoints."""

    def __init__(self, state: ServerState) -> None:
        self.state = state

    async def translate(self, request: Request) -> Response:
        """POST /translate."""
        fields = await read_fields(request)
        client = self.state.client(request, fields)
        texts, is_list = fields.texts("q")
        source, target = fields.filled("source"), fields.filled("target")
        kind = fields.filled("format", "text")
        if kind not in ("text", "html"):
            raise ApiError(400, "Invalid request: format should be text or html")
        n_alternatives = fields.integer("alternatives", 0, low=0, high=MAX_ALTERNATIVES)
        is_auto = source.lower() == AUTO
        with counted(client, len(texts), sum(map(len, texts)), over_quota=over_quota()):
            if is_auto:
                target = target_of(self.state, target)
                detected = await languages_of(self.state, texts, target)
                sources = [each.language for each in detected]
            else:
                source, target = direction_of(self.state, source, target)
                detected, sources = [], [source] * len(texts)
            results = await while_connected(
                request,
                translated(self.state, texts, sources, target, rules=rules_of(kind), n_alternatives=n_alternatives),
            )
        answer: dict[str, Any] = {"translatedText": [each.text for each in results]}
        if is_auto:
            answer["detectedLanguage"] = [_as_json(each) for each in detected]
        if n_alternatives:
            answer["alternatives"] = [list(each.alternatives) for each in results]
        return json_response(
            answer if is_list else {name: values[0] for name, values in answer.items()},
            headers=warnings_header(results),
        )

    async def detect(self, request: Request) -> Response:
        """POST /detect."""
        fields = await read_fields(request)
        client = self.state.client(request, fields)
        texts, _ = fields.texts("q")
        require_within(client, len(texts), sum(map(len, texts)))
        ranked = await asyncio.to_thread(self.state.detector.rank, " ".join(texts))
        if not ranked:  # there are no letters; clients take the first answer
            ranked = [Detected(code, 0.0) for code in self.state.languages[:1]]
        return json_response([_as_json(each) for each in ranked])

    async def languages(self, request: Request) -> Response:
        """GET /languages."""
        codes = self.state.languages
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


def _as_json(detected: Detected) -> dict[str, Any]:
    return {"language": detected.language, "confidence": detected.confidence}

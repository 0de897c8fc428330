"""The application: which endpoint answers which route."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cache
from importlib import resources
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route

from transduce.serving import deepl, libretranslate
from transduce.serving.deepl import DeepL
from transduce.serving.docs_page import docs_html
from transduce.serving.front import Front
from transduce.serving.http import ApiError, Endpoint, Shape, answered, json_response
from transduce.serving.libretranslate import LibreTranslate
from transduce.serving.native import Native
from transduce.serving.page import PAGE_HEADERS, page_html
from transduce.serving.state import ServerState

__all__ = ["make_app", "openapi"]


def make_app(state: ServerState, *, cors_origins: Sequence[str] = ("*",), prefix: str = "") -> Starlette:
    """Return the application with the models of ``state``.

    ``cors_origins``: sites whose scripts may use it. ``prefix``: what all paths begin with, as in "/translator".
    """
    libre, deep, native = LibreTranslate(state), DeepL(state), Native(state)

    def routes(api: str, shape: Shape, *entries: tuple[str, Sequence[str], Endpoint]) -> list[Route]:
        return [
            Route(path, answered(state, api, path, shape, endpoint), methods=list(methods))
            for path, methods, endpoint in entries
        ]

    async def spec(request: Request) -> Response:
        return json_response(openapi() | ({"servers": [{"url": prefix}]} if prefix else {}))

    get, post, both = ["GET"], ["POST"], ["GET", "POST"]
    all_routes = [
        *routes(
            "libretranslate", libretranslate.error_response,
            ("/translate", post, libre.translate), ("/detect", post, libre.detect),
            ("/languages", get, libre.languages), ("/frontend/settings", get, libre.settings),
            ("/health", get, libre.health), ("/spec", get, spec), ("/docs", get, _docs),
        ),
        *routes(
            "deepl", deepl.error_response,
            ("/v1/translate", both, deep.translate), ("/v2/translate", both, deep.translate),
            ("/v2/languages", both, deep.languages),
            ("/v2/usage", both, deep.usage), ("/v2/glossaries", get, deep.glossaries),
            ("/v2/glossary-language-pairs", get, deep.glossary_languages),
        ),
        *routes(
            "transduce", libretranslate.error_response,
            ("/", get, _page), ("/openapi.json", get, spec), ("/ready", get, native.ready),
            ("/metrics", get, native.metrics), ("/sentences", post, native.sentences),
            ("/alternatives", post, native.alternatives), ("/completion", post, native.completion),
            ("/alignment", post, native.alignment), ("/parse", post, native.parse),
            ("/generate", post, native.generate),
        ),
    ]  # fmt: skip
    cors = Middleware(
        CORSMiddleware, allow_origins=list(cors_origins), allow_methods=["GET", "POST"],
        allow_headers=["Authorization", "Content-Type"], expose_headers=["Retry-After", "X-Transduce-Warnings"],
        max_age=86_400,
    )  # fmt: skip
    front = Middleware(Front, answer=_error_response, origins=list(cors_origins), prefix=prefix)
    app = Starlette(
        routes=all_routes,
        middleware=[*([cors] if cors_origins else []), front],
        exception_handlers={HTTPException: _http_error},
    )
    app.router.redirect_slashes = False
    return app


def _error_response(path: str, error: ApiError) -> Response:
    """Return an error in the shape of the API that a path belongs to."""
    shape = deepl.error_response if path.startswith(("/v1/", "/v2/")) else libretranslate.error_response
    return shape(error)


async def _http_error(request: Request, error: Exception) -> Response:
    """Answer an unknown path or method in the shape of its API."""
    assert isinstance(error, HTTPException)
    response = _error_response(request.url.path, ApiError(error.status_code, error.detail))
    response.headers.update(error.headers or {})
    return response


async def _page(request: Request) -> Response:
    return HTMLResponse(page_html(), headers=PAGE_HEADERS)


async def _docs(request: Request) -> Response:
    return HTMLResponse(docs_html(openapi()), headers=PAGE_HEADERS)


@cache
def openapi() -> dict[str, Any]:
    """Return the description of all routes: the content of ``openapi.json``, and older names of routes."""
    text = (resources.files("transduce.serving") / "openapi.json").read_text(encoding="utf-8")
    described: dict[str, Any] = json.loads(text)
    described["paths"]["/v1/translate"] = described["paths"]["/v2/translate"]
    return described

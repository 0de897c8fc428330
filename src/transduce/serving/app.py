"""The application: the routes of all APIs, and what every request passes first."""

from __future__ import annotations

from collections.abc import Sequence

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import Request
from starlette.responses import Response

from transduce.serving.api import Api, all_apis, error_response
from transduce.serving.front import Front
from transduce.serving.http import ApiError
from transduce.serving.state import ServerState

__all__ = ["make_app"]


def make_app(state: ServerState, *, cors_origins: Sequence[str] = ("*",), prefix: str = "") -> Starlette:
    """Return the application with the models of ``state``.

    ``cors_origins``: sites whose scripts may use it. ``prefix``: what all paths begin with, as in "/translator".
    """
    routes = [route for api in all_apis() for route in api(state, prefix).routes()]
    cors = Middleware(
        CORSMiddleware, allow_origins=list(cors_origins), allow_methods=["GET", "POST", "PUT", "PATCH", "DELETE"],
        allow_headers=["Authorization", "Content-Type"], expose_headers=["Retry-After", "X-Transduce-Warnings"],
        max_age=86_400,
    )  # fmt: skip
    front = Middleware(Front, answer=_error_response, origins=list(cors_origins), prefix=prefix)
    app = Starlette(
        routes=routes,
        middleware=[*([cors] if cors_origins else []), front],
        exception_handlers={HTTPException: _http_error},
    )
    app.router.redirect_slashes = False
    return app


def _error_response(path: str, error: ApiError) -> Response:
    """Return an error in the shape of the API that a path belongs to."""
    owners = {prefix: api for api in all_apis() for prefix in api.prefixes if path.startswith(prefix)}
    return error_response(owners[max(owners, key=len)] if owners else Api, error)


async def _http_error(request: Request, error: Exception) -> Response:
    """Answer an unknown path or method in the shape of its API."""
    assert isinstance(error, HTTPException)
    response = _error_response(request.url.path, ApiError(error.status_code, error.detail))
    response.headers.update(error.headers or {})
    return response

"""What every request passes first: limits of HTTP, sites that may not use the server, and paths as they are written."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from starlette.datastructures import Headers
from starlette.responses import RedirectResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from transduce.serving.http import ApiError

__all__ = ["MAX_HEADER_BYTES", "Front"]

MAX_HEADER_BYTES = 32 << 10
VERSIONS = ("1.0", "1.1")


class Front:
    """The application behind a prefix of paths, for the scripts of some sites.

    ``answer`` writes an error in the shape of the API that a path belongs to. ``origins``: the sites, ``"*"`` for all.
    """

    def __init__(
        self, app: ASGIApp, *, answer: Callable[[str, ApiError], Response], origins: Sequence[str], prefix: str = ""
    ) -> None:
        self._app, self._answer, self._origins, self._prefix = app, answer, origins, prefix

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or pass it on with the path that its route has."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        path = re.sub("/{2,}", "/", scope["path"])  # clients append paths to addresses that end with a slash
        inner = self._without_prefix(path)
        error = _fault(scope) or self._refusal(Headers(scope=scope))
        if error is None and inner is None:
            error = ApiError(404, "Not Found")
        if error is not None:
            await self._answer(inner or path, error)(scope, receive, send)
        elif not inner:
            await RedirectResponse(f"{self._prefix}/")(scope, receive, send)
        else:
            await self._app({**scope, "path": inner, "raw_path": inner.encode()}, receive, send)

    def _without_prefix(self, path: str) -> str | None:
        """Return the path of a route; None outside the prefix, "" for the prefix without a slash."""
        inner = path.removeprefix(self._prefix)
        if (self._prefix and inner == path) or inner[:1] not in ("", "/"):
            return None
        return inner if inner in ("", "/") else inner.removesuffix("/")

    def _refusal(self, headers: Headers) -> ApiError | None:
        """Return the error for a script of a site that may not use the server; a browser says whose it is."""
        if "*" in self._origins:
            return None
        origin = headers.get("origin")
        if origin is None:
            is_foreign = headers.get("sec-fetch-site") == "cross-site" and headers.get("sec-fetch-mode") != "navigate"
        else:
            is_foreign = origin not in self._origins and origin.partition("://")[2] != headers.get("host")
        return ApiError(403, "Scripts of this site may not use the server") if is_foreign else None


def _fault(scope: Scope) -> ApiError | None:
    """Return the error for a request that no proper client sends."""
    if scope["http_version"] not in VERSIONS:
        return ApiError(505, "The version of HTTP should be 1.0 or 1.1", closes=True)
    size = sum(len(name) + len(value) for name, value in scope["headers"])
    if size + len(scope["raw_path"]) + len(scope["query_string"]) > MAX_HEADER_BYTES:
        return ApiError(431, f"The address and headers of the request exceed {MAX_HEADER_BYTES:,} bytes", closes=True)
    names = {name for name, _ in scope["headers"]}
    if {b"content-length", b"transfer-encoding"} <= names:
        return ApiError(400, "Invalid request: Content-Length and Transfer-Encoding exclude each other", closes=True)
    return None

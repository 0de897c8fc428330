"""What operates a server: whether it runs, measurements, the description of its routes, and the page for people."""

from __future__ import annotations

from typing import Any

from starlette.responses import HTMLResponse, PlainTextResponse, Response

from transduce.serving.api import Api, endpoint
from transduce.serving.docs_page import docs_html
from transduce.serving.http import json_response
from transduce.serving.metrics import CONTENT_TYPE
from transduce.serving.openapi import openapi
from transduce.serving.page import PAGE_HEADERS, page_html

__all__ = ["Operation"]

STATUS = {"status": str}


class Operation(Api):
    """The endpoints."""

    name, tag = "transduce", "operation"

    @endpoint("GET", "/", gives=HTMLResponse)
    async def page(self) -> HTMLResponse:
        """The page."""
        return HTMLResponse(page_html(), headers=PAGE_HEADERS)

    @endpoint("GET", "/docs", gives=HTMLResponse)
    async def docs(self) -> HTMLResponse:
        """This description, as a page."""
        return HTMLResponse(docs_html(openapi()), headers=PAGE_HEADERS)

    @endpoint("GET", "/openapi.json", "/spec", gives=dict)
    async def spec(self) -> dict[str, Any]:
        """This description; at /spec, where LibreTranslate has its own."""
        return openapi() | ({"servers": [{"url": self.prefix}]} if self.prefix else {})

    @endpoint("GET", "/health", gives=STATUS)
    async def health(self) -> dict[str, str]:
        """Whether the process answers."""
        return {"status": "ok"}

    @endpoint("GET", "/ready", gives=STATUS, statuses={503: "The server is stopping"})
    async def ready(self) -> dict[str, str] | Response:
        """Whether the server takes requests."""
        return {"status": "ready"} if self.state.is_ready else json_response({"status": "stopping"}, 503)

    @endpoint("GET", "/metrics", gives=PlainTextResponse)
    async def metrics(self) -> PlainTextResponse:
        """Measurements in the text format of Prometheus."""
        return PlainTextResponse(self.state.metrics.text(), media_type=CONTENT_TYPE)

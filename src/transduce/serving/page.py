"""The page of the server: one HTML file without external assets, made of the template and files beside this one."""

from __future__ import annotations

import base64
import hashlib
from functools import cache
from importlib import resources
from string import Template

__all__ = ["PAGE_HEADERS", "page_html"]

PAGE_HEADERS = {
    "Cache-Control": "no-cache",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}


@cache
def page_html() -> str:
    """Return the page. Its content security policy allows its own script and style, and requests to its server."""
    style = _asset("page.css")
    script = "".join(map(_asset, ("page.js", "page_alternatives.js", "page_files.js")))
    return Template(_asset("page.html")).substitute(
        style=style, style_hash=_content_hash(style), script=script, script_hash=_content_hash(script)
    )


def _asset(name: str) -> str:
    return (resources.files("transduce.serving") / name).read_text(encoding="utf-8")


def _content_hash(text: str) -> str:
    """Return the content-security-policy hash of an inline script or style."""
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode("utf-8")).digest()).decode("ascii")

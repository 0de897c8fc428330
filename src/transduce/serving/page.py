"""The page of the server: one HTML file without external assets, made of the template and files beside this one."""

from __future__ import annotations

from functools import cache

from transduce.pages import filled_page

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
    scripts = ("page.js", "page_alternatives.js", "page_files.js")
    return filled_page(__package__, "page.html", style="page.css", scripts=scripts)

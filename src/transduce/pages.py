"""Self-contained HTML pages: a template with its style, its script and its data.

A page's content security policy allows no network and no script but its own, so text that looks like HTML stays text.
"""

from __future__ import annotations

import base64
import hashlib
import html
import json
from collections.abc import Sequence
from importlib import resources
from string import Template

__all__ = ["content_hash", "filled_page"]


def filled_page(
    package: str, template: str, *, style: str, scripts: Sequence[str], data: object = None, **texts: str
) -> str:
    """Return a page: a template of a package with the contents of its other files, data, and texts, escaped.

    It has the places ``$style``, ``$style_hash``, ``$script``, ``$script_hash``, ``$data``, and those of the texts.
    """
    css = _asset(package, style)
    script = "".join(_asset(package, each) for each in scripts)
    return Template(_asset(package, template)).substitute(
        style=css, style_hash=content_hash(css), script=script, script_hash=content_hash(script),
        data=_script_safe_json(data), **{name: html.escape(text) for name, text in texts.items()},
    )  # fmt: skip


def _asset(package: str, name: str) -> str:
    return (resources.files(package) / name).read_text(encoding="utf-8")


def content_hash(text: str) -> str:
    """Return the content-security-policy hash of an inline script or style."""
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode("utf-8")).digest()).decode("ascii")


def _script_safe_json(value: object) -> str:
    r"""Return JSON that cannot end the script element around it: ASCII, with ``<`` escaped.

    >>> _script_safe_json("</script>")
    '"\\u003c/script>"'
    """
    return json.dumps(value, separators=(",", ":")).replace("<", "\\u003c")

"""Helpers of all drawings of attention: head colours, opacity of a weight, XML-safe text, the SVG document."""

from __future__ import annotations

import re
from typing import Any
from xml.sax.saxutils import escape, quoteattr

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "HEAD_COLOURS", "INK", "QUIET", "RULE", "Weights", "document", "shade", "shortened", "shortened_text", "text",
    "xml_text",
]  # fmt: skip

Weights = NDArray[np.floating[Any]]  # of attention, from 0 to 1

# One per head, as on the attention page; heads 9 to 16 repeat them. Measured in the tests: they differ under
# protanopia, deuteranopia and tritanopia by more than the palette of Okabe and Ito does.
HEAD_COLOURS = ("#315bd7", "#b9202b", "#a09404", "#4b1f7a", "#1399f8", "#e769a0", "#6f0920", "#8d4c84")
INK, QUIET, RULE = "#1d1f24", "#5d626d", "#dcd8cf"  # text, secondary text, lines
FONT = "system-ui, 'Segoe UI', Roboto, 'Helvetica Neue', 'Liberation Sans', Arial, sans-serif"

_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def shade(weight: float) -> float:
    """Return the opacity of a weight, 0 to 1; the exponent below 1 keeps weak weights visible."""
    return float(max(0.0, min(1.0, weight)) ** 0.7)


def shortened(word: str, longest: int) -> str:
    """Return the word cut to at most ``longest`` characters, with an ellipsis where it was cut.

    >>> shortened("Donaudampfschiff", 8)
    'Donauda…'
    """
    return word if len(word) <= longest else word[: longest - 1] + "…"


def shortened_text(content: str, longest: int) -> str:
    """Return the text cut after a whole word to at most ``longest`` characters, with an ellipsis where it was cut.

    >>> shortened_text("the old dog sleeps", 12), shortened_text("Donaudampfschiff", 8), shortened_text("a dog", 5)
    ('the old dog…', 'Donauda…', 'a dog')
    """
    if len(content) <= longest:
        return content
    words, space, _ = content[:longest].rpartition(" ")
    return words.rstrip(" ,;:") + "…" if space and words.strip() else shortened(content, longest)


def xml_text(content: str) -> str:
    """Escape a text for XML; characters that XML does not allow become U+FFFD.

    >>> print(xml_text("<b> & \\x1b"))
    &lt;b&gt; &amp; \ufffd
    """
    return escape(_NOT_XML.sub(chr(0xFFFD), content))


def text(content: str, x: float, y: float, **attributes: str | float) -> str:
    """Return a text element; ``font_size=12`` becomes ``font-size="12"``. Escapes as ``xml_text`` does."""
    named = "".join(f" {name.replace('_', '-')}={quoteattr(str(value))}" for name, value in attributes.items())
    return f'<text x="{x:g}" y="{y:g}"{named}>{xml_text(content)}</text>'


def document(parts: list[str], *, width: float, height: float, title: str) -> str:
    """Return an SVG document on white, legible on light and dark pages; ``title`` is its alternative text."""
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" role="img" width="{width:g}" height="{height:g}" '
            f'viewBox="0 0 {width:g} {height:g}" font-family="{FONT}" font-size="14" fill="{INK}">',
            f"<title>{xml_text(title)}</title>",
            f'<rect width="{width:g}" height="{height:g}" rx="8" fill="#ffffff"/>',
            *parts,
            "</svg>\n",
        ]
    )

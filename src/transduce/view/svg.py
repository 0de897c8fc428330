"""What all drawings of attention share: colours, the strength of a weight, and text that is safe in XML."""

from __future__ import annotations

import re
from typing import Any
from xml.sax.saxutils import escape, quoteattr

import numpy as np
from numpy.typing import NDArray

__all__ = ["HEAD_COLOURS", "INK", "QUIET", "RULE", "Weights", "document", "shade", "shortened", "text", "xml_text"]

Weights = NDArray[np.floating[Any]]  # of attention, from 0 to 1

# One for each head, as on the attention page; heads 9 to 16 take them again.
HEAD_COLOURS = ("#315bd7", "#b9202b", "#a09404", "#4b1f7a", "#1399f8", "#e769a0", "#6f0920", "#8d4c84")
INK, QUIET, RULE = "#1d1f24", "#5d626d", "#dcd8cf"
FONT = "system-ui, 'Segoe UI', Roboto, 'Helvetica Neue', 'Liberation Sans', Arial, sans-serif"

_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def shade(weight: float) -> float:
    """How dark a weight is drawn, 0 to 1: weak weights are lifted a little, so that they can be seen at all."""
    return float(max(0.0, min(1.0, weight)) ** 0.7)


def shortened(word: str, longest: int) -> str:
    """The word, cut where it is longer than so many characters.

    >>> shortened("Donaudampfschiff", 8)
    'Donauda…'
    """
    return word if len(word) <= longest else word[: longest - 1] + "…"


def xml_text(content: str) -> str:
    """Text as it stands in XML; what XML cannot hold is U+FFFD.

    >>> print(xml_text("<b> & \\x1b"))
    &lt;b&gt; &amp; \ufffd
    """
    return escape(_NOT_XML.sub(chr(0xFFFD), content))


def text(content: str, x: float, y: float, **attributes: str | float) -> str:
    """A text element; ``font_size=12`` becomes ``font-size="12"``, and what XML cannot hold U+FFFD."""
    named = "".join(f" {name.replace('_', '-')}={quoteattr(str(value))}" for name, value in attributes.items())
    return f'<text x="{x:g}" y="{y:g}"{named}>{xml_text(content)}</text>'


def document(parts: list[str], *, width: float, height: float, title: str) -> str:
    """A whole drawing on white, which reads well on any page."""
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

"""The attention of translations as one HTML file that needs nothing else. Section 3.2.3; figures 3 to 5.

The page's parts lie beside this file (``attention_page.html``, ``.css``, two ``.js``) and are inlined with the data.
Weights travel as bytes, ``round(255 * weight)``, deflated, in base64. Its own content policy forbids the page to load
anything and to run any script but its own, so a sentence that looks like HTML stays a sentence.
"""
# L layers, H heads, S source, T target

from __future__ import annotations

import base64
import hashlib
import html
import json
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from string import Template

import numpy as np

from transduce.errors import DataError, ShapeError
from transduce.files import write_text
from transduce.view.svg import Weights

__all__ = ["AttentionMaps", "attention_page", "write_attention_page"]

N_STEPS = 255  # weights are rounded to 1 / 255
ROUNDING_SLACK = 1e-2  # a softmax in bfloat16 may exceed 1 by about this much


@dataclass(frozen=True, slots=True, eq=False)
class AttentionMaps:
    """What every head of every layer attended to while one sentence was translated.

    The decoder reads ``tgt_tokens`` (``<s>`` first) and, at each of these T positions, writes ``tgt_predicted``
    (``</s>`` last). A row of ``decoder`` or ``cross`` belongs to such a position; the page names it by what is written.

    Raises ShapeError if a shape does not fit the pieces, if a weight is not between 0 and 1,
    or if ``decoder`` looks ahead.

    >>> maps = AttentionMaps(
    ...     source="a cat", translation="eine Katze", src_tokens=("a", "cat", "</s>"),
    ...     tgt_tokens=("<s>", "eine", "Katze"), tgt_predicted=("eine", "Katze", "</s>"),
    ...     encoder=np.full((1, 2, 3, 3), 1 / 3), decoder=np.tile(np.eye(3), (1, 2, 1, 1)),
    ...     cross=np.full((1, 2, 3, 3), 1 / 3),
    ... )
    >>> maps.cross.shape
    (1, 2, 3, 3)
    """

    source: str
    translation: str
    src_tokens: tuple[str, ...]  # S pieces, ``</s>`` included
    tgt_tokens: tuple[str, ...]  # T pieces that the decoder reads
    tgt_predicted: tuple[str, ...]  # T pieces that it writes
    encoder: Weights  # (L, H, S, S) encoder self-attention
    decoder: Weights  # (L, H, T, T) decoder self-attention, causal
    cross: Weights  # (L, H, T, S) encoder-decoder attention

    def __post_init__(self) -> None:
        n_src, n_tgt = len(self.src_tokens), len(self.tgt_tokens)
        if len(self.tgt_predicted) != n_tgt:
            raise ShapeError(
                f"tgt_predicted has {len(self.tgt_predicted)} pieces, tgt_pieces {n_tgt}; "
                "each position that is read writes one piece"
            )
        _check_weights("encoder", self.encoder, n_rows=n_src, n_columns=n_src)
        _check_weights("decoder", self.decoder, n_rows=n_tgt, n_columns=n_tgt)
        _check_weights("cross", self.cross, n_rows=n_tgt, n_columns=n_src)
        if np.triu(self.decoder, k=1).any():
            raise ShapeError("decoder has weights above the diagonal; a position may not look at later ones")


def _check_weights(name: str, weights_LHQK: Weights, *, n_rows: int, n_columns: int) -> None:
    """Raise ShapeError unless the array is ``(layers, heads, n_rows, n_columns)`` of weights from 0 to 1."""
    shape = weights_LHQK.shape
    if len(shape) != 4 or 0 in shape or shape[2:] != (n_rows, n_columns):
        raise ShapeError(
            f"{name} has shape {shape}; the pieces ask for (layers, heads, {n_rows}, {n_columns}), none of them 0"
        )
    low, high = float(weights_LHQK.min()), float(weights_LHQK.max())
    if not (low >= 0.0 and high <= 1.0 + ROUNDING_SLACK):  # also false for NaN
        raise ShapeError(f"{name} goes from {low:g} to {high:g}; attention weights lie between 0 and 1")


def write_attention_page(path: Path, examples: Sequence[AttentionMaps], *, title: str) -> None:
    """Write one page in which sentence, kind of attention, layer and head are chosen, whole or not at all.

    A view has a link: ``page.html#sentence=1&kind=cross&layer=2&head=all&word=4``, all counted from 1 as in the page;
    ``kind`` is ``encoder``, ``decoder`` or ``cross``. Raises DataError if there is no example.
    """
    if not examples:
        raise DataError(f"{path} would show nothing: got no examples; give at least one translation")
    write_text(path, attention_page(examples, title=title))


def attention_page(examples: Sequence[AttentionMaps], *, title: str) -> str:
    """The page that ``write_attention_page`` writes."""
    style = _part("attention_page.css")
    script = _part("attention_drawing.js") + _part("attention_page.js")
    return Template(_part("attention_page.html")).substitute(
        title=html.escape(title),
        style=style,
        style_hash=_content_hash(style),
        script=script,
        script_hash=_content_hash(script),
        data=_script_safe_json([_record(maps) for maps in examples]),
    )


def _part(name: str) -> str:
    return (resources.files("transduce.view") / name).read_text(encoding="utf-8")


def _content_hash(text: str) -> str:
    """The hash by which a content policy allows one inline script or style."""
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode("utf-8")).digest()).decode("ascii")


def _script_safe_json(value: object) -> str:
    r"""JSON that cannot end the script element around it: pure ASCII, and ``<`` is escaped too.

    >>> _script_safe_json("</script>")
    '"\\u003c/script>"'
    """
    return json.dumps(value, separators=(",", ":")).replace("<", "\\u003c")


def _record(maps: AttentionMaps) -> dict[str, object]:
    return {
        "source": maps.source,
        "translation": maps.translation,
        "src": maps.src_tokens,
        "read": maps.tgt_tokens,
        "written": maps.tgt_predicted,
        "maps": {"encoder": _packed(maps.encoder), "decoder": _packed(maps.decoder), "cross": _packed(maps.cross)},
    }


def _packed(weights_LHQK: Weights) -> dict[str, object]:
    steps = np.rint(np.clip(weights_LHQK, 0.0, 1.0) * N_STEPS).astype(np.uint8)
    deflated = zlib.compress(steps.tobytes(), level=9)
    return {"shape": weights_LHQK.shape, "weights": base64.b64encode(deflated).decode("ascii")}

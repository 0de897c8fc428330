"""The attention weights of translations as one self-contained HTML page. Section 3.2.3; figures 3 to 5.

The template (``attention_page.html``, ``.css``, two ``.js``) lies beside this file and is inlined with the data.
Weights are stored as bytes, ``round(255 * weight)``, deflated, in base64.

Shapes: L layers, H heads, T target or query positions, S source or key positions.
"""

from __future__ import annotations

import base64
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from transduce.errors import DataError, ShapeError
from transduce.files import write_text
from transduce.model import AttentionKind
from transduce.pages import filled_page
from transduce.view.svg import Weights, shortened_text

__all__ = ["AttentionMaps", "Picture", "attention_page", "write_attention_page"]

N_STEPS = 255  # weights are rounded to 1 / 255
MAX_HEADING_LENGTH = 72  # characters
ROUNDING_SLACK = 1e-2  # a softmax in bfloat16 may exceed 1 by about this much


@dataclass(frozen=True, slots=True, eq=False)
class Picture:
    """What a source of images or audio looks like: the image, or the spectrogram of a recording."""

    name: str  # as the page calls it: "Image", "Spectrogram"
    pixels: NDArray[np.uint8]  # (rows, columns): 0 is the ground, 255 is ink or a loud sound
    boxes: NDArray[np.int32]  # (S, 4): left, top, right and bottom of the part that each source position stands for


@dataclass(frozen=True, slots=True, eq=False)
class AttentionMaps:
    """The attention weights of all layers and heads for one sentence and its translation, or for one text.

    A source of images or audio has a ``picture``; its tokens are names of places in it. The text of a causal language
    model is a target without a source, that of a masked one a source without a target.
    At each of T positions the decoder reads a token of ``tgt_tokens`` (``<s>`` first) and predicts one of
    ``tgt_predicted`` (``</s>`` last). A row of ``decoder`` or ``cross`` is the query of such a position; the page names
    it by the predicted token.

    Raises ShapeError if there are no weights, if a shape does not fit the tokens, if a weight is not between 0 and 1,
    or if ``decoder`` has a weight on a later position.

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
    src_tokens: tuple[str, ...]  # S tokens, ``</s>`` included
    tgt_tokens: tuple[str, ...]  # T tokens that the decoder reads
    tgt_predicted: tuple[str, ...]  # T tokens that it predicts
    cross: Weights | None = None  # (L, H, T, S) encoder-decoder attention, if the model has it
    encoder: Weights | None = None  # (L, H, S, S) encoder self-attention, if the model has it
    decoder: Weights | None = None  # (L, H, T, T) decoder self-attention, causal, if the model has it
    picture: Picture | None = None  # of a source of images or audio

    def __post_init__(self) -> None:
        n_src, n_tgt = len(self.src_tokens), len(self.tgt_tokens)
        if len(self.tgt_predicted) != n_tgt:
            raise ShapeError(
                f"tgt_predicted has {len(self.tgt_predicted)} tokens, tgt_tokens {n_tgt}; "
                "each position reads one token and predicts one"
            )
        if self.picture is not None and self.picture.boxes.shape != (n_src, 4):
            raise ShapeError(f"picture has boxes of shape {self.picture.boxes.shape}; its source needs ({n_src}, 4)")
        if not self.by_kind:
            raise ShapeError("there are no weights; give encoder, decoder or cross")
        if self.cross is not None:
            _check_weights("cross", self.cross, n_rows=n_tgt, n_columns=n_src)
        if self.encoder is not None:
            _check_weights("encoder", self.encoder, n_rows=n_src, n_columns=n_src)
        if self.decoder is None:
            return
        _check_weights("decoder", self.decoder, n_rows=n_tgt, n_columns=n_tgt)
        if np.triu(self.decoder, k=1).any():
            raise ShapeError("decoder has weights above the diagonal; a position must not attend to later ones")

    @property
    def by_kind(self) -> dict[AttentionKind, Weights]:
        """The kinds of attention that the model has, and their weights."""
        all_kinds: dict[AttentionKind, Weights | None] = {
            "encoder": self.encoder, "decoder": self.decoder, "cross": self.cross
        }  # fmt: skip
        return {kind: weights for kind, weights in all_kinds.items() if weights is not None}


def _check_weights(name: str, weights_LHTS: Weights, *, n_rows: int, n_columns: int) -> None:
    """Raise ShapeError unless the array is ``(layers, heads, n_rows, n_columns)`` of weights from 0 to 1."""
    shape = weights_LHTS.shape
    if len(shape) != 4 or 0 in shape or shape[2:] != (n_rows, n_columns):
        raise ShapeError(
            f"{name} has shape {shape}; its tokens need (layers, heads, {n_rows}, {n_columns}), none of them 0"
        )
    low, high = float(weights_LHTS.min()), float(weights_LHTS.max())
    if not (low >= 0.0 and high <= 1.0 + ROUNDING_SLACK):  # also false for NaN
        raise ShapeError(f"{name} has weights from {low:g} to {high:g}; attention weights lie between 0 and 1")


def write_attention_page(path: Path, examples: Sequence[AttentionMaps], *, title: str) -> None:
    """Write one page, atomically, with choices of sentence, kind of attention, layer, head and query.

    A link to a view is ``page.html#sentence=1&kind=cross&layer=2&head=all&word=4``: numbers count from 1, ``kind`` is
    ``encoder``, ``decoder`` or ``cross``, ``word`` is the query. Raises DataError if there is no example.
    """
    if not examples:
        raise DataError(f"{path}: no examples to show; give at least one translation")
    write_text(path, attention_page(examples, title=title))


def attention_page(examples: Sequence[AttentionMaps], *, title: str) -> str:
    """Return the page of ``write_attention_page`` as HTML. Its heading is ``title``, cut after 72 characters."""
    return filled_page(
        __package__, "attention_page.html", style="attention_page.css",
        scripts=("attention_drawing.js", "attention_page.js", "attention_maps.js"),
        data=[_record(maps) for maps in examples], title=title, heading=shortened_text(title, MAX_HEADING_LENGTH),
    )  # fmt: skip


def _record(maps: AttentionMaps) -> dict[str, object]:
    picture = {} if maps.picture is None else {"picture": _packed_picture(maps.picture)}
    return {
        "source": maps.source,
        "translation": maps.translation,
        "src": maps.src_tokens,
        "read": maps.tgt_tokens,
        "written": maps.tgt_predicted,
        "maps": {kind: _packed(weights) for kind, weights in maps.by_kind.items()},
        **picture,
    }


def _packed(weights_LHTS: Weights) -> dict[str, object]:
    steps = np.rint(np.clip(weights_LHTS, 0.0, 1.0) * N_STEPS).astype(np.uint8)
    return {"shape": weights_LHTS.shape, "weights": _deflated(steps)}


def _packed_picture(picture: Picture) -> dict[str, object]:
    boxes, pixels = picture.boxes.tolist(), picture.pixels
    return {"name": picture.name, "boxes": boxes, "shape": pixels.shape, "weights": _deflated(pixels)}


def _deflated(steps: NDArray[np.uint8]) -> str:
    return base64.b64encode(zlib.compress(steps.tobytes(), level=9)).decode("ascii")

"""The attention weights of a model that reads images or listens to audio, with the picture of what it attends to.

Shapes: B batch of one file, T target positions, Z columns of pixels or frames, X width of a feature.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from transduce.config import TransformerConfig
from transduce.data.media import padded_features
from transduce.inference import MediaModel
from transduce.media import Features
from transduce.media.audio import FRAMES_PER_SECOND
from transduce.text import BOS_ID, EOS_ID, normalise
from transduce.view.attention_page import AttentionMaps, Picture
from transduce.view.translation_attention import MAX_TOKENS, recorded_weights, require_at_most

__all__ = ["attention_of_media"]


@torch.no_grad()
def attention_of_media(model: MediaModel, file: str | Path, text: str | None = None) -> AttentionMaps:
    """Return the weights of all layers and heads for a file and its text (default: the text that the model finds).

    Raises DataError if the file cannot be read, or has more than ``MAX_TOKENS`` positions.
    """
    features, config = model.features(Path(file)), model.model.config
    require_at_most(config.n_source_positions(len(features)), MAX_TOKENS, str(file))
    if text is None:
        found = model.texts_of_features(lambda: False, [features])
        assert found is not None  # not interrupted
        (text,) = found
    text, tokenizer = normalise(text), model.tokenizers.tgt
    tgt_ids = tokenizer.encode(text, max_tokens=MAX_TOKENS)
    require_at_most(len(tgt_ids) + 1, MAX_TOKENS, "its text")
    device = model.model.output_weight.device
    source_BZX = padded_features([features], stride=config.source_stride).to(device)
    tgt_BT = torch.tensor([[BOS_ID, *tgt_ids]], device=device)
    weights_of = recorded_weights(lambda hook: model.model(source_BZX, tgt_BT, attention_hook=hook))
    boxes = _boxes(config, source_BZX.shape[1])
    return AttentionMaps(
        source=str(file),
        translation=text,
        src_tokens=tuple(_place(box, config) for box in boxes.tolist()),
        tgt_tokens=tuple(tokenizer.pieces([BOS_ID, *tgt_ids])),
        tgt_predicted=tuple(tokenizer.pieces([*tgt_ids, EOS_ID])),
        picture=Picture(_NAMES[config.source], _pixels(features, config, source_BZX.shape[1]), boxes),
        **weights_of,
    )


_NAMES = {"patches": "Image", "frames": "Spectrogram"}


def _boxes(config: TransformerConfig, n_columns: int) -> NDArray[np.int32]:
    """Return left, top, right and bottom of what each source position stands for, in the picture."""
    stride, n_rows = config.source_stride, config.n_source_rows
    height = config.source_width // n_rows
    return np.array(
        [
            [left, row * height, left + stride, (row + 1) * height]
            for left in range(0, n_columns, stride)
            for row in range(n_rows)
        ],
        np.int32,
    )


def _place(box: list[int], config: TransformerConfig) -> str:
    """Return the name of a source position: its time, or its column of pixels and its row of patches."""
    left, top, _, bottom = box
    if config.source == "frames":
        return f"{left / FRAMES_PER_SECOND:.2f} s"
    return f"{left}" if config.n_source_rows == 1 else f"{left}, row {top // (bottom - top) + 1}"


def _pixels(features: Features, config: TransformerConfig, n_columns: int) -> NDArray[np.uint8]:
    """Return the picture: of an image its ink, of audio the log-mel bands, low frequencies at the bottom."""
    if config.source == "patches":
        pixels = features.T
    else:
        bands = features.astype(np.float32)
        low, high = np.percentile(bands, [2, 99.5])
        pixels = np.rint(np.clip((bands - low) / max(high - low, 1e-6), 0, 1) * 255).astype(np.uint8).T[::-1]
    return np.pad(pixels, ((0, 0), (0, n_columns - pixels.shape[1])))

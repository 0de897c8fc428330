"""Search for the text of images or audio, in batches of similar length.

Shapes: B batch of images or recordings, N rows of a decoding batch, T new tokens of a row, V vocabulary, Z columns or
frames, X width of a feature.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from hashlib import shake_128
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from transduce.config import InferencePrecision, SampledSearchConfig, SearchConfig, TransformerConfig
from transduce.data import plan_by_length
from transduce.data.media import padded_features
from transduce.inference.batch_search import max_positions
from transduce.inference.run_search import run_search
from transduce.model import DecodingState, Transformer, for_inference
from transduce.model.padding import PaddingInfo
from transduce.search import Hypothesis
from transduce.text import Tokenizer

__all__ = ["MAX_SOURCE_POSITIONS", "MediaSearch"]

MAX_SOURCE_POSITIONS = 4096  # attention is quadratic in them


class MediaSearch:
    """Search with one model. Most weights are copied: make a new search after changing them."""

    def __init__(self, model: Transformer, tokenizer: Tokenizer, *, precision: InferencePrecision = "fp32") -> None:
        self.config: TransformerConfig = model.config
        self._model = for_inference(model, precision)
        self._tokenizer, self._device = tokenizer, model.output_weight.device
        self._max_output = max_positions(model)

    @torch.no_grad()
    def __call__(
        self,
        features: Sequence[NDArray[Any]],
        search: SearchConfig,
        *,
        should_stop: Callable[[], bool] = lambda: False,
        is_scored: bool = True,
    ) -> list[tuple[Hypothesis, ...]] | None:
        """Return the n-best hypotheses for each features (Z, X).

        None if ``should_stop``, checked before each batch, is true.
        """
        lengths = [self.config.n_source_positions(len(each)) for each in features]
        results: dict[int, tuple[Hypothesis, ...]] = {}
        for rows in plan_by_length(lengths, max_tokens=search.max_tokens_per_batch):
            if should_stop():
                return None
            source_BZX = padded_features([features[row] for row in rows], stride=self.config.source_stride)
            lengths_B = np.array([lengths[row] for row in rows], np.int64)
            max_lengths = [min(search.max_output_tokens(int(n)), self._max_output) for n in lengths_B]
            padding = PaddingInfo.from_lengths(lengths_B, n_positions=int(lengths_B.max()), device=self._device)
            found = run_search(
                _PaddedSource(self._model, padding),
                source_BZX.to(self._device),
                torch.tensor(max_lengths, device=self._device),
                search,
                suppressed_ids=self._tokenizer.suppressed_ids,
                is_scored=is_scored,
                generators=_generators(search, [features[row] for row in rows]),
            )
            results |= {int(row): tuple(n_best) for row, n_best in zip(rows, found, strict=True)}
        return [results[row] for row in range(len(features))]


class _PaddedSource:
    """A decoder whose source has a known padding, which features, unlike ids, do not show."""

    def __init__(self, model: Transformer, padding: PaddingInfo) -> None:
        self._model, self._padding = model, padding

    def start(self, source_BZX: Tensor, /) -> DecodingState:
        """Encode the sources and return the initial state."""
        return self._model.start(source_BZX, padding=self._padding)

    def step(self, last_ids_N: Tensor, state: DecodingState, /) -> tuple[Tensor, DecodingState]:
        """As the model does."""
        return self._model.step(last_ids_N, state)

    def extend(
        self, ids_NT: Tensor, state: DecodingState, n_new_N: Tensor | None = None, /
    ) -> tuple[Tensor, DecodingState]:
        """As the model does."""
        return self._model.extend(ids_NT, state, n_new_N)


def _generators(search: SearchConfig, features: Sequence[NDArray[Any]]) -> list[torch.Generator]:
    """Return the generator of each source: its draws follow from the seed and the source, not from the others."""
    if not isinstance(search, SampledSearchConfig):
        return []
    digests = (shake_128(f"{search.seed} ".encode() + each.tobytes()).digest(7) for each in features)
    return [torch.Generator().manual_seed(int.from_bytes(digest)) for digest in digests]

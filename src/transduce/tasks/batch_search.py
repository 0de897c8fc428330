"""Batched search: texts are grouped by length into batches; results are in input order.

Shapes: B sentences, S source positions, N rows of a decoding batch, V vocabulary.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from typing import Any, Protocol, assert_never, cast

import torch
from torch import Tensor

from transduce.config import (
    AnySearchConfig,
    BeamSearchConfig,
    ConvS2SConfig,
    GreedySearchConfig,
    InferencePrecision,
    SearchConfig,
    TransformerConfig,
)
from transduce.data import pad_rows, plan_by_length
from transduce.errors import ConfigError
from transduce.model import EncoderDecoder, Ensemble, for_inference
from transduce.model.shortlist import Shortlist, ShortlistDecoder
from transduce.search import Hypothesis, LogProbsProcessor, StateT, beam_search, greedy_search
from transduce.text import BOS_ID, EOS_ID, PAD_ID, Tokenizer, normalise

__all__ = [
    "MAX_SOURCE_TOKENS", "BatchSearch", "SearchResult", "StepDecoder", "max_positions", "require_sequence",
    "run_search",
]  # fmt: skip

# Longer sources are truncated: no model is trained on such sentences, and attention is quadratic in their length.
MAX_SOURCE_TOKENS = 1024

# Makes the log-probability processor of a batch from its text indices and maximum output lengths.
ProcessorMaker = Callable[[Sequence[int], Sequence[int]], LogProbsProcessor]


@dataclass(frozen=True, slots=True)
class SearchResult:
    """Search result of one text."""

    hypotheses: tuple[Hypothesis, ...]  # best first; empty for an empty text
    n_src_tokens: int  # EOS included; a lower bound for a truncated source
    is_truncated: bool  # the source was too long


class BatchSearch:
    """Search with a model or an ensemble. Most weights are copied: make a new search after changing them."""

    def __init__(
        self,
        models: Sequence[EncoderDecoder],
        src_tokenizer: Tokenizer,
        *,
        precision: InferencePrecision = "fp32",
        shortlist: Shortlist | None = None,
        suppressed_ids: Sequence[int] = (),
    ) -> None:
        """``shortlist``: score only its tokens. ``suppressed_ids``: tokens that are never generated.

        Raises ConfigError for a shortlist with an ensemble.
        """
        copies = [for_inference(each, precision) for each in models]
        if shortlist is not None and len(copies) > 1:
            raise ConfigError("a shortlist cannot be used with an ensemble; leave one of them out")
        self._shortlist = shortlist
        self._decoder: StepDecoder[Any] = Ensemble(copies) if len(copies) > 1 else copies[0]
        self._max_positions = min(map(max_positions, models))
        self._suppressed_ids = tuple(suppressed_ids)
        self._src_tokenizer, self._device = src_tokenizer, models[0].output_weight.device

    @property
    def max_source_tokens(self) -> int:
        """Maximum source length, EOS included; longer sources are truncated."""
        return min(MAX_SOURCE_TOKENS, self._max_positions)

    @property
    def max_output_tokens(self) -> int:
        """Maximum length of an output, EOS included: unlimited unless positions are learned."""
        return self._max_positions

    def source_ids(self, texts: Sequence[str]) -> list[list[int]]:
        """Encode texts without EOS; of an overlong text, return just enough tokens to exceed the maximum."""
        return self._src_tokenizer.encode_batch(
            [normalise(text) for text in texts], max_tokens=self.max_source_tokens - 1
        )

    @torch.no_grad()
    def __call__(
        self,
        texts: Sequence[str],
        search: SearchConfig,
        *,
        should_stop: Callable[[], bool] = lambda: False,
        processor: ProcessorMaker | None = None,
        min_tokens: Sequence[int] | None = None,
        is_scored: bool = True,
    ) -> list[SearchResult] | None:
        """Return one result per text; None if ``should_stop``, checked before each batch, is true.

        ``min_tokens``: for each text, the least value of its maximum output length, EOS included. Without
        ``is_scored``, the hypotheses of greedy search have no scores.
        """
        encoded = self.source_ids(texts)
        sources = [ids[: self.max_source_tokens - 1] for ids in encoded]
        nonempty = [index for index, ids in enumerate(sources) if ids]
        lengths = [len(sources[index]) + 1 for index in nonempty]
        results: dict[int, tuple[Hypothesis, ...]] = {}
        for rows in plan_by_length(lengths, max_tokens=search.max_tokens_per_batch):
            if should_stop():
                return None
            batch = [nonempty[row] for row in rows]
            max_lengths = [min(lengths[row] + search.max_extra_tokens, self._max_positions) for row in rows]
            if min_tokens is not None:
                max_lengths = [max(length, min_tokens[index]) for length, index in zip(max_lengths, batch, strict=True)]
            process = None if processor is None else processor(batch, max_lengths)
            src_BS = pad_rows([[*sources[index], EOS_ID] for index in batch]).to(self._device)
            max_lengths_B = torch.tensor(max_lengths, device=self._device)
            hypotheses = self._search(src_BS, max_lengths_B, search, process, is_scored=is_scored)
            results |= {index: tuple(n_best) for index, n_best in zip(batch, hypotheses, strict=True)}
        return [
            SearchResult(results.get(index, ()), len(ids) + 1, is_truncated=len(sources[index]) < len(ids))
            for index, ids in enumerate(encoded)
        ]

    def _search(
        self,
        src_BS: Tensor,
        max_lengths_B: Tensor,
        search: SearchConfig,
        process: LogProbsProcessor | None,
        *,
        is_scored: bool,
    ) -> list[list[Hypothesis]]:
        if self._shortlist is None:
            return run_search(
                self._decoder, src_BS, max_lengths_B, search, process, suppressed_ids=self._suppressed_ids,
                is_scored=is_scored,
            )  # fmt: skip
        # Its tokens occur in translations, which have none of the suppressed ones.
        if process is not None:  # it would see the shortlist's numbers of the tokens
            raise ConfigError("a prefix cannot be used with a shortlist; leave one of them out")
        decoder = ShortlistDecoder(cast(EncoderDecoder, self._decoder), self._shortlist, src_BS)
        hypotheses = run_search(decoder, src_BS, max_lengths_B, search, is_scored=is_scored)
        return [[replace(each, ids=decoder.ids(each.ids)) for each in n_best] for n_best in hypotheses]


def max_positions(model: EncoderDecoder) -> int:
    """Return the maximum length of a model's inputs and outputs: unlimited unless positions are learned."""
    match model.config:
        case TransformerConfig(positions="learned") | ConvS2SConfig(positions="learned") as config:
            return config.n_positions
        case _:
            return sys.maxsize


def require_sequence(texts: object, expected: str, for_one: str) -> None:
    """Raise TypeError for a single string (the message ends with ``for_one``) and for unordered collections."""
    if isinstance(texts, str | bytes):
        raise TypeError(f"{expected}; {for_one}")
    if isinstance(texts, Mapping | Set) or not isinstance(texts, Iterable):
        raise TypeError(f"{expected}, got {type(texts).__name__}")


class StepDecoder(Protocol[StateT]):
    """Incremental decoder of a model or an ensemble."""

    def start(self, src_BS: Tensor, /) -> StateT:
        """Encode the sources and return the initial state, one row per sentence."""

    def step(self, last_ids_N: Tensor, state: StateT, /) -> tuple[Tensor, StateT]:
        """Append ``last_ids`` and return the logits of the next token, (N, V), and the new state."""


def run_search(
    model: StepDecoder[StateT],
    src_BS: Tensor,
    max_lengths_B: Tensor,
    search: SearchConfig,
    process: LogProbsProcessor | None = None,
    *,
    suppressed_ids: Sequence[int] = (),
    is_scored: bool = True,
) -> list[list[Hypothesis]]:
    """Run greedy or beam search, as configured; returns the n-best hypotheses of each sentence. Section 6.1.

    ``suppressed_ids``: tokens that are not generated, besides padding and BOS. Without ``is_scored``, the hypotheses of
    greedy search have no scores.
    """
    state = model.start(src_BS)
    suppressed_ids = (PAD_ID, BOS_ID, *suppressed_ids)
    match cast(AnySearchConfig, search):
        case BeamSearchConfig(beam_size=beam_size) if beam_size > 1:
            return beam_search(
                model.step,
                state,
                max_lengths_B=max_lengths_B,
                beam_size=beam_size,
                alpha=search.alpha,
                n_best=search.n_best,
                bos_id=BOS_ID,
                eos_id=EOS_ID,
                suppressed_ids=suppressed_ids,
                process=process,
            )
        case BeamSearchConfig() | GreedySearchConfig():
            best = greedy_search(
                model.step,
                state,
                max_lengths_B=max_lengths_B,
                bos_id=BOS_ID,
                eos_id=EOS_ID,
                suppressed_ids=suppressed_ids,
                alpha=search.alpha,
                process=process,
                is_scored=is_scored,
            )
            return [[hypothesis] for hypothesis in best]
        case never:
            assert_never(never)

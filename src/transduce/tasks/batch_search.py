"""Search over many texts at a time: batches of about equal length, one list of hypotheses for each text, in order.

Shapes: B sentences, S source positions, N rows, V vocabulary.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
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
from transduce.model import EncoderDecoder, Ensemble, for_inference
from transduce.search import Hypothesis, LogProbsProcessor, StateT, beam_search, greedy_search
from transduce.text import BOS_ID, EOS_ID, PAD_ID, Tokenizer, normalise

__all__ = ["BatchSearch", "SearchResult", "StepDecoder", "require_several", "run_search"]

# Longer sources are cut. No model is trained on sentences like that, and attention costs their square.
MAX_SOURCE_TOKENS = 1024

# For the texts at some places, with the most symbols that each output may have: what changes log-probabilities.
ProcessorMaker = Callable[[Sequence[int], Sequence[int]], LogProbsProcessor]


@dataclass(frozen=True, slots=True)
class SearchResult:
    """What a search found for a text."""

    hypotheses: tuple[Hypothesis, ...]  # best first; none for a blank text
    n_src_tokens: int  # its end symbol included; of a source that is cut, at least so many
    is_truncated: bool  # the source was too long and lost its end


class BatchSearch:
    """One model that writes, or several together, and the tokenizer of what they read.

    The weights are those that the models have when this is made.
    """

    def __init__(
        self, models: Sequence[EncoderDecoder], src_tokenizer: Tokenizer, *, precision: InferencePrecision = "fp32"
    ) -> None:
        fast = [for_inference(each, precision) for each in models]
        self._decoder: StepDecoder[Any] = Ensemble(fast) if len(fast) > 1 else fast[0]
        self._max_positions = min(map(_max_positions, models))
        self._src_tokenizer, self._device = src_tokenizer, models[0].output_weight.device

    @property
    def max_source_tokens(self) -> int:
        """The longest source that is not cut, its end symbol included."""
        return min(MAX_SOURCE_TOKENS, self._max_positions)

    def source_ids(self, texts: Sequence[str]) -> list[list[int]]:
        """Each text in ids without the end symbol: all of one that can be read whole, and too many of any other."""
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
    ) -> list[SearchResult] | None:
        """One result for each text; None if ``should_stop``, which is asked before each batch, says so.

        ``min_tokens``: how many symbols an output may have whatever the length of its source, the end included.
        """
        encoded = self.source_ids(texts)
        cut = [ids[: self.max_source_tokens - 1] for ids in encoded]
        places = [place for place, ids in enumerate(cut) if ids]
        found: dict[int, tuple[Hypothesis, ...]] = {}
        for rows in plan_by_length([len(cut[place]) + 1 for place in places], max_tokens=search.max_tokens_per_batch):
            if should_stop():
                return None
            chosen = [places[row] for row in rows]
            max_lengths = [min(len(cut[place]) + 1 + search.max_extra_tokens, self._max_positions) for place in chosen]
            if min_tokens is not None:
                max_lengths = [max(limit, min_tokens[place]) for limit, place in zip(max_lengths, chosen, strict=True)]
            process = None if processor is None else processor(chosen, max_lengths)
            src_BS = pad_rows([[*cut[place], EOS_ID] for place in chosen]).to(self._device)
            hypotheses = run_search(
                self._decoder, src_BS, torch.tensor(max_lengths, device=self._device), search, process
            )
            found |= {place: tuple(each) for place, each in zip(chosen, hypotheses, strict=True)}
        return [
            SearchResult(found.get(place, ()), len(ids) + 1, is_truncated=len(cut[place]) < len(ids))
            for place, ids in enumerate(encoded)
        ]


def _max_positions(model: EncoderDecoder) -> int:
    """How many positions a model knows."""
    match model.config:
        case TransformerConfig(positions="learned") | ConvS2SConfig(positions="learned") as config:
            return config.n_positions
        case _:
            return sys.maxsize


def require_several(texts: object, wanted: str, for_one: str) -> None:
    """Raises TypeError for a single text, which would be taken letter by letter, and for what has no order."""
    if isinstance(texts, str | bytes):
        raise TypeError(f"{wanted}; {for_one}")
    if isinstance(texts, Mapping | Set) or not isinstance(texts, Iterable):
        raise TypeError(f"{wanted}, got {type(texts).__name__}")


class StepDecoder(Protocol[StateT]):
    """What writes translations, a step at a time: a model or several."""

    def start(self, src_BS: Tensor, /) -> StateT:
        """Encode, and prepare to write one row for each sentence."""

    def step(self, last_ids_N: Tensor, state: StateT, /) -> tuple[Tensor, StateT]:
        """Scores of the token after ``last_ids``, (N, V), and the state that has seen it."""


def run_search(
    model: StepDecoder[StateT],
    src_BS: Tensor,
    max_lengths_B: Tensor,
    search: SearchConfig,
    process: LogProbsProcessor | None = None,
) -> list[list[Hypothesis]]:
    """Greedy or beam search with a model's step function, as the configuration asks. Section 6.1."""
    state = model.start(src_BS)
    suppressed_ids = (PAD_ID, BOS_ID)
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
            )
            return [[hypothesis] for hypothesis in best]
        case never:
            assert_never(never)

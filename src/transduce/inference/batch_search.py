"""Batched search: texts are grouped by length into batches; results are in input order.

Shapes: B sentences, S source positions, N rows of a decoding batch, T new tokens of a row, V vocabulary, R lengths that
are tried for a sentence.
"""

from __future__ import annotations

import copy
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from functools import partial
from hashlib import shake_128
from typing import Any, Generic, cast

import torch
from torch import Tensor

from transduce.config import (
    ConvS2SConfig,
    InferencePrecision,
    MaskPredictSearchConfig,
    SampledSearchConfig,
    SearchConfig,
    TransformerConfig,
)
from transduce.data import pad_rows, plan_by_length
from transduce.errors import ConfigError
from transduce.inference.run_search import Decoder, requested_processors, run_search
from transduce.model import BlockDecoder, EncoderDecoder, Ensemble, MaskedTransformer, Transformer, for_inference
from transduce.model.masked_transformer import MASK_ID
from transduce.model.shortlist import Shortlist, ShortlistDecoder
from transduce.search import (
    MAX_UNIT,
    Chain,
    Drafter,
    DraftLength,
    HeadsDrafter,
    Hypothesis,
    LogProbsProcessor,
    ModelDrafter,
    NoLoops,
    PassCounts,
    RewindableT,
    mask_predict,
    n_repeats,
)
from transduce.text import BOS_ID, EOS_ID, PAD_ID, Tokenizer, normalise

__all__ = [
    "MAX_SOURCE_TOKENS", "BatchSearch", "SearchResult", "max_positions", "require_sequence",
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
    """Search with a model or an ensemble. Most weights are copied: make a new search after changing them.

    ``counts`` are the passes of the model in greedy search with drafts, and in sampling.
    """

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

        Raises ConfigError for a shortlist with an ensemble, or a model for mask-predict with either.
        """
        copies = [for_inference(each, precision) for each in models]
        if shortlist is not None and len(copies) > 1:
            raise ConfigError("a shortlist cannot be used with an ensemble; leave one of them out")
        self._is_masked = any(isinstance(model, MaskedTransformer) for model in models)
        if self._is_masked and (len(copies) > 1 or shortlist is not None):
            raise ConfigError("a model for mask-predict works alone: no ensemble, no shortlist")
        self._shortlist = shortlist
        self.counts = PassCounts()
        self.on_step: Callable[[], object] | None = None  # is called before each step of the decoder
        self._draft: BatchSearch | None = None
        self._draft_length = DraftLength(1)
        self._decoder: Decoder[Any] = Ensemble(copies) if len(copies) > 1 else copies[0]
        self._max_positions = min(map(max_positions, models))
        self._suppressed_ids = tuple(suppressed_ids)
        self._src_tokenizer, self._device = src_tokenizer, models[0].output_weight.device

    def with_draft(self, draft: BatchSearch, length: DraftLength) -> BatchSearch:
        """The same search, for which the model of another one drafts tokens.

        Both have the same vocabularies; a shortlist of the other one makes drafts faster and changes no result. Raises
        ConfigError for a shortlist of this one.
        """
        if self._is_masked or draft._is_masked:
            raise ConfigError("a draft needs two models that write from left to right; one of them is for mask-predict")
        if self._shortlist is not None:
            raise ConfigError(
                "the model that verifies drafts scores its whole vocabulary; a shortlist is for the draft"
            )
        other = copy.copy(self)
        other.counts, other._draft, other._draft_length = PassCounts(), draft, length
        return other

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
        has_loops: bool = True,
        report: Callable[[int], object] = lambda n_done: None,
    ) -> list[SearchResult] | None:
        """Return one result per text; None if ``should_stop``, checked before each batch, is true.

        ``min_tokens``: for each text, the least value of its maximum output length, EOS included. Without
        ``is_scored``, the hypotheses of greedy search have no scores. Without ``has_loops``, few tokens do not follow
        each other again and again, unless they do so in the source; for beam search and greedy search. ``report`` gets
        the number of texts done, after each batch. Raises ConfigError if model and search do not go together.
        """
        if self._is_masked != isinstance(search, MaskPredictSearchConfig):
            needed = "search.kind = 'mask-predict'" if self._is_masked else "another search.kind"
            raise ConfigError(f"this model needs {needed}, got search.kind = {search.kind!r}")
        encoded = self.source_ids(texts)
        sources = [ids[: self.max_source_tokens - 1] for ids in encoded]
        nonempty = [index for index, ids in enumerate(sources) if ids]
        lengths = [len(sources[index]) + 1 for index in nonempty]
        results: dict[int, tuple[Hypothesis, ...]] = {}
        for rows in plan_by_length(lengths, max_tokens=search.max_tokens_per_batch):
            if should_stop():
                return None
            batch = [nonempty[row] for row in rows]
            max_lengths = [min(search.max_output_tokens(lengths[row]), self._max_positions) for row in rows]
            if min_tokens is not None:
                max_lengths = [max(length, min_tokens[index]) for length, index in zip(max_lengths, batch, strict=True)]
            process = None if processor is None else processor(batch, max_lengths)
            src_BS = pad_rows([[*sources[index], EOS_ID] for index in batch]).to(self._device)
            max_lengths_B = torch.tensor(max_lengths, device=self._device)
            generators = _generators(search, [sources[index] for index in batch])
            loops = None if has_loops else NoLoops([_max_repeats(sources[index]) for index in batch])
            hypotheses = self._search(src_BS, max_lengths_B, search, process, loops, generators, is_scored=is_scored)
            results |= {index: tuple(n_best) for index, n_best in zip(batch, hypotheses, strict=True)}
            report(len(results))
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
        loops: NoLoops | None,
        generators: Sequence[torch.Generator],
        *,
        is_scored: bool,
    ) -> list[list[Hypothesis]]:
        if isinstance(search, MaskPredictSearchConfig):
            return self._mask_predict(src_BS, max_lengths_B, search)
        if process is not None and self._shortlist is not None:  # it would see the shortlist's numbers of the tokens
            raise ConfigError("a prefix cannot be used with a shortlist; leave one of them out")
        if loops is not None:
            process = loops if process is None else Chain((loops, process))
        if self._shortlist is None:
            draft, decoder = None if loops is not None else self._draft, self._decoder
            drafter: Drafter[Any] | None = None
            # A model with a short table of positions drafts nothing for long sentences.
            if draft is not None and max(src_BS.shape[1], int(max_lengths_B.max())) <= draft._max_positions:
                drafter = draft._drafter(src_BS, self._draft_length)
            elif process is None and not requested_processors(search) and _has_blocks(decoder, search):
                decoder = BlockDecoder(cast(Transformer, decoder), block_size=getattr(search, "block_size", None))
                drafter = HeadsDrafter(decoder.ahead)
            return run_search(
                self._attended(decoder), src_BS, max_lengths_B, search, process, suppressed_ids=self._suppressed_ids,
                is_scored=is_scored, drafter=drafter, generators=generators, counts=self.counts,
            )  # fmt: skip
        # Its tokens occur in translations, which have none of the suppressed ones.
        decoder = ShortlistDecoder(cast(EncoderDecoder, self._decoder), self._shortlist, src_BS)
        hypotheses = run_search(
            self._attended(decoder), src_BS, max_lengths_B, search, process, is_scored=is_scored, generators=generators,
            counts=self.counts,
        )  # fmt: skip
        return [[replace(each, ids=decoder.ids(each.ids)) for each in n_best] for n_best in hypotheses]

    def _attended(self, decoder: Decoder[RewindableT]) -> Decoder[RewindableT]:
        return decoder if self.on_step is None else _Attended(decoder, self.on_step)

    def _drafter(self, src_BS: Tensor, length: DraftLength) -> ModelDrafter[Any]:
        """What drafts for a batch of sources."""
        if self._shortlist is None:
            state = self._decoder.start(src_BS)
            return ModelDrafter(self._decoder.extend, state, length=length, eos_id=EOS_ID)
        decoder = ShortlistDecoder(cast(EncoderDecoder, self._decoder), self._shortlist, src_BS)
        return ModelDrafter(decoder.extend_by_ids, decoder.start(src_BS), length=length, eos_id=EOS_ID)

    def _mask_predict(
        self, src_BS: Tensor, max_lengths_B: Tensor, search: MaskPredictSearchConfig
    ) -> list[list[Hypothesis]]:
        """Predict all tokens at once, several times."""
        model = cast(MaskedTransformer, self._decoder)
        memory = model.encode(src_BS)
        src_lengths_B = (src_BS != PAD_ID).sum(dim=1) - 1
        lengths_BR = model.likely_lengths(memory, src_lengths_B, max_lengths_B - 1, search.n_lengths)
        best = mask_predict(
            partial(model.predict, memory),
            lengths_BR,
            n_iterations=search.n_iterations,
            mask_id=MASK_ID,
            eos_id=EOS_ID,
            pad_id=PAD_ID,
            suppressed_ids=(PAD_ID, BOS_ID, *self._suppressed_ids),
            counts=self.counts,
        )
        return [[hypothesis] for hypothesis in best]


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


class _Attended(Generic[RewindableT]):
    """A decoder that calls a function before each step."""

    def __init__(self, decoder: Decoder[RewindableT], on_step: Callable[[], object]) -> None:
        self._decoder, self._on_step, self.start = decoder, on_step, decoder.start

    def step(self, last_ids_N: Tensor, state: RewindableT, /) -> tuple[Tensor, RewindableT]:
        self._on_step()
        return self._decoder.step(last_ids_N, state)

    def extend(
        self, ids_NT: Tensor, state: RewindableT, n_new_N: Tensor | None = None, /
    ) -> tuple[Tensor, RewindableT]:
        self._on_step()
        return self._decoder.extend(ids_NT, state, n_new_N)


def _has_blocks(model: Decoder[Any], search: SearchConfig) -> bool:
    """Whether a model proposes blocks of tokens by further heads, and the search is greedy."""
    if not isinstance(model, Transformer) or model.further_heads is None or isinstance(search, SampledSearchConfig):
        return False
    return search.beam_size == 1 and getattr(search, "block_size", None) != 1


def _max_repeats(source: Sequence[int]) -> list[int]:
    """How often 1, 2, ... tokens may follow each other in the translation of a source: as in it, but at least twice."""
    return [max(2 + (unit == 1), n_repeats(source, unit)) for unit in range(1, MAX_UNIT + 1)]


def _generators(search: SearchConfig, sources: Sequence[Sequence[int]]) -> list[torch.Generator]:
    """The generator of each sentence: its draws follow from the seed and the sentence, not from the others."""
    if not isinstance(search, SampledSearchConfig):
        return []
    digests = (shake_128(f"{search.seed} {list(ids)}".encode()).digest(7) for ids in sources)
    return [torch.Generator().manual_seed(int.from_bytes(digest)) for digest in digests]

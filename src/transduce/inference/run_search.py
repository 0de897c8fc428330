"""The search that a configuration asks for, over the functions of a model.

Shapes: B sentences, S source positions.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import assert_never, cast

import torch
from torch import Tensor

from transduce.config import (
    AnySearchConfig,
    BeamSearchConfig,
    GreedySearchConfig,
    MaskPredictSearchConfig,
    SampledSearchConfig,
    SearchConfig,
)
from transduce.config.decoding import DecodingOptions
from transduce.errors import ConfigError
from transduce.inference.decoders import Decoder
from transduce.search import (
    REQUESTED,
    Drafter,
    Hypothesis,
    LengthPenalty,
    LogProbsProcessor,
    PassCounts,
    RewindableT,
    Sampling,
    WantedPhrases,
    beam_search,
    greedy_search,
    requested_processor,
    speculative_search,
)
from transduce.search.arguments import MIN_PHRASE_BEAM
from transduce.text import BOS_ID, EOS_ID, PAD_ID

__all__ = ["run_search"]


def run_search(
    model: Decoder[RewindableT],
    src_BS: Tensor,
    max_lengths_B: Tensor,
    search: SearchConfig,
    process: LogProbsProcessor | None = None,
    *,
    suppressed_ids: Sequence[int] = (),
    is_scored: bool = True,
    drafter: Drafter[RewindableT] | None = None,
    generators: Sequence[torch.Generator] = (),
    counts: PassCounts | None = None,
    phrases: WantedPhrases | None = None,
) -> list[list[Hypothesis]]:
    """Run the configured search; returns the n-best hypotheses of each sentence. Section 6.1.

    ``suppressed_ids``: tokens that are not generated, besides padding and BOS. Without ``is_scored``, the hypotheses of
    greedy search have no scores. ``drafter``: what drafts tokens in greedy search and sampling; ``generators``: those
    of the sentences, for sampling. ``counts`` are added to where drafts or draws are made. ``phrases``, which the
    outputs have, make the beam at least ``MIN_PHRASE_BEAM``.
    Raises ConfigError for a draft with a beam, or a constraint with draws.
    """
    state, penalty = model.start(src_BS), LengthPenalty.of(search)
    suppressed_ids = (PAD_ID, BOS_ID, *suppressed_ids)
    process = requested_processor(search, process, eos_id=EOS_ID)
    is_constrained = process is not None or phrases is not None
    if is_constrained and (drafter is not None or isinstance(search, SampledSearchConfig)):
        names = ", ".join(name for each in REQUESTED for name in each.fields)
        raise ConfigError(f"constraints (a prefix, {names}) need beam search or greedy search, without a draft")
    if phrases is not None:
        beam_size = max(MIN_PHRASE_BEAM, search.beam_size)
        search = DecodingOptions(beam_size=beam_size, n_best=search.n_best).applied_to(search)
    match cast(AnySearchConfig, search):
        case BeamSearchConfig(beam_size=beam_size) if beam_size > 1:
            if drafter is not None:
                raise ConfigError(f"a draft is for greedy search and for sampling, got a beam of {beam_size}")
            return beam_search(
                model.step,
                state,
                max_lengths_B=max_lengths_B,
                beam_size=beam_size,
                penalty=penalty,
                n_best=search.n_best,
                bos_id=BOS_ID,
                eos_id=EOS_ID,
                suppressed_ids=suppressed_ids,
                process=process,
                phrases=phrases,
            )
        case BeamSearchConfig() | GreedySearchConfig() if drafter is None:
            best = greedy_search(
                model.step,
                state,
                max_lengths_B=max_lengths_B,
                bos_id=BOS_ID,
                eos_id=EOS_ID,
                suppressed_ids=suppressed_ids,
                penalty=penalty,
                process=process,
                is_scored=is_scored,
            )
        case BeamSearchConfig() | GreedySearchConfig() | SampledSearchConfig() as search:
            best = speculative_search(
                model.extend,
                state,
                drafter=drafter,
                max_lengths_B=max_lengths_B,
                bos_id=BOS_ID,
                eos_id=EOS_ID,
                suppressed_ids=suppressed_ids,
                sampling=_sampling(search),
                generators=generators,
                penalty=penalty,
                is_scored=is_scored,
                counts=counts,
            )
        case MaskPredictSearchConfig():
            raise ConfigError("search.kind = 'mask-predict' needs a model of that task")
        case never:
            assert_never(never)
    return [[hypothesis] for hypothesis in best]


def _sampling(search: SearchConfig) -> Sampling | None:
    if not isinstance(search, SampledSearchConfig):
        return None
    return Sampling(temperature=search.temperature, top_k=search.top_k, top_p=search.top_p)

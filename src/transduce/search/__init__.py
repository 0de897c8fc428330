"""Greedy and beam search (section 6.1) and less sequential ones over functions of a model; independent of models."""

from __future__ import annotations

from typing import TYPE_CHECKING

from transduce.imports import imported_on_use

if TYPE_CHECKING:
    from transduce.search.beam import beam_search
    from transduce.search.continuation import Draws, ReadFunction, sample_continuations
    from transduce.search.draft_length import DraftLength
    from transduce.search.drafting import Drafter, Drafts, HeadsDrafter, ModelDrafter
    from transduce.search.forced_prefix import ForcedPrefix
    from transduce.search.greedy import greedy_search
    from transduce.search.hypothesis import Hypothesis
    from transduce.search.length_penalty import NO_PENALTY, LengthPenalty
    from transduce.search.mask_predict import mask_predict
    from transduce.search.no_loops import NoLoops
    from transduce.search.pass_counts import PassCounts
    from transduce.search.phrases import AvoidedPhrases, WantedPhrases
    from transduce.search.processor import Chain, Constrained, Constraint, LogProbsProcessor, Prefixes
    from transduce.search.protocol import (
        DecodingState,
        ExtendFunction,
        RewindableState,
        RewindableT,
        StateT,
        StepFunction,
    )
    from transduce.search.repetition import MAX_UNIT, n_repeats
    from transduce.search.requested import REQUESTED, MinLength, NoRepeatNgrams, requested_processor
    from transduce.search.sampling import Sampling
    from transduce.search.speculative import speculative_search

__all__ = [
    "MAX_UNIT", "NO_PENALTY", "REQUESTED", "AvoidedPhrases", "Chain", "Constrained", "Constraint", "DecodingState",
    "DraftLength", "Drafter", "Drafts", "Draws", "ExtendFunction", "ForcedPrefix", "HeadsDrafter", "Hypothesis",
    "LengthPenalty", "LogProbsProcessor", "MinLength", "ModelDrafter", "NoLoops", "NoRepeatNgrams", "PassCounts",
    "Prefixes", "ReadFunction", "RewindableState", "RewindableT", "Sampling", "StateT", "StepFunction",
    "WantedPhrases", "beam_search", "greedy_search", "mask_predict", "n_repeats",
    "requested_processor", "sample_continuations", "speculative_search",
]  # fmt: skip

imported_on_use(__name__)

"""Greedy and beam search (section 6.1) over a step function; independent of models."""

from transduce.search.beam import beam_search
from transduce.search.constraint import Constraint
from transduce.search.forced_prefix import ForcedPrefix
from transduce.search.greedy import greedy_search
from transduce.search.hypothesis import Hypothesis
from transduce.search.length_penalty import length_penalty
from transduce.search.processor import Constrained, LogProbsProcessor, Prefixes
from transduce.search.protocol import DecodingState, StateT, StepFunction

__all__ = [
    "Constrained", "Constraint", "DecodingState", "ForcedPrefix", "Hypothesis", "LogProbsProcessor", "Prefixes",
    "StateT", "StepFunction", "beam_search", "greedy_search", "length_penalty",
]  # fmt: skip

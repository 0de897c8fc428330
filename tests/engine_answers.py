"""What an engine answers to requests of many kinds. Imports no torch."""

from __future__ import annotations

from typing import Any

from transduce.config import BeamSearchConfig, GreedySearchConfig, SampledSearchConfig
from transduce.inference.engine import Constraints, Engine, ForcedPair, Request
from transduce.text import BOS_ID, EOS_ID

SOURCES = [[5, 6, 7, EOS_ID], [9, EOS_ID], [8, 8, 4, 10, 11, 12, EOS_ID]]
PROMPTS = [[BOS_ID, 5, 6, 7], [BOS_ID], [BOS_ID, 8, 9]]
BEAM, GREEDY = BeamSearchConfig(beam_size=3, n_best=3), GreedySearchConfig(min_length=3)
SAMPLED = SampledSearchConfig(seed=3, top_k=5)


def answers(engine: Engine, *, is_lm: bool) -> list[Any]:
    """Return them as JSON values."""
    prompts = [Request(9, prompt=ids, number=number) for number, ids in enumerate(PROMPTS)]
    sources = [Request(9, ids) for ids in SOURCES]
    begun = [Request(9, ids, constraints=Constraints(prefix=[6, 7])) for ids in SOURCES]
    asked = [(prompts, BEAM), (prompts, SAMPLED)] if is_lm else []
    if not is_lm:
        asked = [(sources, BEAM), (sources, GREEDY), (sources, SAMPLED), (begun, BEAM), (begun, GREEDY)]
    said: list[Any] = []
    for requests, search in asked:
        found = engine.hypotheses(requests, search)
        assert found is not None  # not interrupted
        said += [[list(each.ids), each.log_prob, each.score] for n_best in found for each in n_best]
    pairs = [ForcedPair(ids, [6, 7, EOS_ID]) for ids in (PROMPTS if is_lm else SOURCES)]
    said += [each.log_probs_T.tolist() for each in engine.forced_scores(pairs, max_tokens=20)]
    if not is_lm:
        said += [list(map(list, gap)) for gap in engine.next_tokens(sources[:1], 3)[0]]
    return said

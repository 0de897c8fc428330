"""Vocabulary shortlists: the search is that of the full model, restricted to each sentence's tokens."""

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from transduce.config import BeamSearchConfig, GreedySearchConfig, ModelConfig, SearchConfig
from transduce.inference.run_search import run_search
from transduce.model import Transformer, for_inference, has_int8_products
from transduce.model.shortlist import Shortlist
from transduce.model.shortlist_decoder import ShortlistDecoder, allowed_tokens
from transduce.search import Hypothesis

V = 60
CONFIG = ModelConfig(
    n_encoder_layers=1, n_decoder_layers=1, d_model=32, d_ff=64, n_heads=2, d_k=16, d_v=16, src_vocab_size=V,
    tgt_vocab_size=V,
)  # fmt: skip
SEARCHES = [BeamSearchConfig(beam_size=3, n_best=3), GreedySearchConfig()]


@pytest.fixture
def model() -> Transformer:
    torch.manual_seed(1)
    return Transformer(CONFIG).double().eval()


def shortlist(k: int) -> Shortlist:
    candidates_VR = np.random.default_rng(2).integers(4, V, (V, k), np.int32)
    return Shortlist(candidates_VR, np.array([7, 9], np.int32))


def sources() -> Tensor:
    random = torch.Generator().manual_seed(3)
    src_BS = torch.randint(4, V, (5, 7), generator=random)
    src_BS[1, 4:] = 0
    src_BS[3, 2:] = 0
    return src_BS


def searched(decoder: Any, src_BS: Tensor, search: SearchConfig, process: Any = None) -> list[list[Hypothesis]]:
    with torch.no_grad():
        return run_search(decoder, src_BS, torch.full((len(src_BS),), 9), search, process)


def by_shortlist(model: Any, list_: Shortlist, src_BS: Tensor, search: SearchConfig) -> list[list[tuple[Any, ...]]]:
    decoder = ShortlistDecoder(model, list_, src_BS)
    found = searched(decoder, src_BS, search)
    return [[(decoder.ids(each.ids), each.score) for each in n_best] for n_best in found]


def require_same(got: list[list[tuple[Any, ...]]], expected: list[list[tuple[Any, ...]]], tolerance: float) -> None:
    for ours, theirs in zip(got, expected, strict=True):
        assert [ids for ids, _ in ours] == [ids for ids, _ in theirs]
        assert [score for _, score in ours] == pytest.approx([score for _, score in theirs], rel=tolerance)


@pytest.mark.parametrize("search", SEARCHES, ids=["beam", "greedy"])
def test_a_shortlist_of_all_tokens_changes_nothing(model: Transformer, search: SearchConfig) -> None:
    everything = Shortlist(np.tile(np.arange(V, dtype=np.int32), (V, 1)), np.array([7], np.int32))
    fast, src_BS = for_inference(model, "fp32"), sources()
    expected = [[(each.ids, each.score) for each in n_best] for n_best in searched(fast, src_BS, search)]
    require_same(by_shortlist(fast, everything, src_BS, search), expected, 1e-9)


@pytest.mark.parametrize("search", SEARCHES, ids=["beam", "greedy"])
def test_it_is_the_search_in_which_other_tokens_have_probability_zero(model: Transformer, search: SearchConfig) -> None:
    """The reference: the full model, with the logits of other tokens set to minus infinity."""
    fast, src_BS, short = for_inference(model, "fp32"), sources(), shortlist(3)
    allowed_BV = allowed_tokens(short, src_BS, V)

    class Masked:
        """One sentence at a time, so that the row of the mask is known."""

        def __init__(self, allowed_V: Tensor) -> None:
            self.allowed_V = allowed_V

        def start(self, src_1S: Tensor) -> Any:
            return fast.start(src_1S)

        def step(self, last_ids_N: Tensor, state: Any) -> tuple[Tensor, Any]:
            logits_NV, state = fast.step(last_ids_N, state)
            return logits_NV.masked_fill(~self.allowed_V, -torch.inf), state

    expected = []
    for row, src_S in enumerate(src_BS):
        src_1S = src_S[src_S != 0].unsqueeze(0)
        found = searched(Masked(allowed_BV[row]), src_1S, search)[0]
        expected.append([(each.ids, each.score) for each in found])
        assert all(bool(allowed_BV[row, list(each.ids)].all()) for each in found)
    require_same(by_shortlist(fast, short, src_BS, search), expected, 1e-9)


def test_no_translation_depends_on_the_rest_of_the_batch(model: Transformer) -> None:
    fast, src_BS, short = for_inference(model, "fp32"), sources(), shortlist(3)
    together = by_shortlist(fast, short, src_BS, SEARCHES[0])
    alone = [by_shortlist(fast, short, src_S[src_S != 0].unsqueeze(0), SEARCHES[0])[0] for src_S in src_BS]
    require_same(together, alone, 1e-9)


@pytest.mark.skipif(not has_int8_products("cpu"), reason="needs int8 products")
def test_rows_of_the_output_are_quantised_as_in_the_whole(model: Transformer) -> None:
    fast = for_inference(model.float(), "int8")
    src_BS = sources()
    decoder = ShortlistDecoder(fast, shortlist(3), src_BS)
    state, full_state = decoder.start(src_BS), fast.start(src_BS)
    with torch.no_grad():
        logits_BX, _ = decoder.step(torch.ones(5, dtype=torch.int64), state)
        logits_BV, _ = fast.step(torch.ones(5, dtype=torch.int64), full_state)
    is_scored_BX = logits_BX > -torch.inf
    torch.testing.assert_close(logits_BX[is_scored_BX], logits_BV[:, decoder.ids_X][is_scored_BX])


def test_special_tokens_keep_their_ids(model: Transformer) -> None:
    decoder = ShortlistDecoder(for_inference(model, "fp32"), shortlist(2), sources())
    assert decoder.ids_X[:4].tolist() == [0, 1, 2, 3]
    assert decoder.ids((4,)) == (int(decoder.ids_X[4]),)

"""Two-level softmax against torch's adaptive softmax and against its definition."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor, nn

from said import naming
from transduce.errors import ConfigError
from transduce.paper.notes.adaptive_softmax import _ranks, make_adaptive_softmax
from transduce.paper.notes.two_level_softmax import TwoLevelSoftmax
from transduce.paper.report import Table

D, V, N_FREQUENT = 12, 50, 15


@pytest.fixture
def layer() -> TwoLevelSoftmax:
    torch.manual_seed(3)
    return TwoLevelSoftmax(D, V, n_frequent=N_FREQUENT, d_tail=3).double()


@pytest.fixture
def states_ND() -> Tensor:
    return 4 * torch.randn(200, D, dtype=torch.float64, generator=torch.Generator().manual_seed(4))


@pytest.fixture
def ids_N() -> Tensor:
    return torch.randint(V, (200,), generator=torch.Generator().manual_seed(5))


def test_two_level_softmax_matches_torch(layer: TwoLevelSoftmax, states_ND: Tensor, ids_N: Tensor) -> None:
    reference = nn.AdaptiveLogSoftmaxWithLoss(D, V, [N_FREQUENT], div_value=4.0).double()
    weights = (reference.head.weight, reference.tail[0][0].weight, reference.tail[0][1].weight)
    ours = (layer.head.weight, layer.projection.weight, layer.tail.weight)
    with torch.no_grad():
        for theirs, mine in zip(weights, ours, strict=True):
            theirs.copy_(mine)
        torch.testing.assert_close(layer.log_probabilities(states_ND), reference.log_prob(states_ND))
        torch.testing.assert_close(layer.log_p_of(states_ND, ids_N), reference(states_ND, ids_N).output)
        loss = layer.loss(states_ND, ids_N)
        torch.testing.assert_close(loss.loss_nats / loss.n_tokens, reference(states_ND, ids_N).loss)
        assert torch.equal(layer.most_probable(states_ND), reference.log_prob(states_ND).argmax(dim=1))


def test_probabilities_match_the_definition(layer: TwoLevelSoftmax, states_ND: Tensor) -> None:
    """P(word) = P(entry), or P(cluster) P(word | cluster), computed with exponentials and sums."""
    head, projection, tail = (each.weight.tolist() for each in (layer.head, layer.projection, layer.tail))

    def dot(one: list[float], other: list[float]) -> float:
        return sum(a * b for a, b in zip(one, other, strict=True))

    def softmax(scores: list[float]) -> list[float]:
        total = sum(map(math.exp, scores))
        return [math.exp(score) / total for score in scores]

    for state, log_p in zip(states_ND[:5].tolist(), layer.log_probabilities(states_ND[:5]).tolist(), strict=True):
        first = softmax([dot(row, state) for row in head])
        small = [dot(row, state) for row in projection]
        within = softmax([dot(row, small) for row in tail])
        expected = [*first[:-1], *(first[-1] * p for p in within)]
        assert [math.exp(each) for each in log_p] == pytest.approx(expected, rel=1e-9)
        assert sum(expected) == pytest.approx(1, abs=1e-12)


def test_probabilities_sum_to_one(layer: TwoLevelSoftmax, states_ND: Tensor) -> None:
    torch.testing.assert_close(layer.log_probabilities(states_ND).exp().sum(dim=1), torch.ones(200).double())


@pytest.mark.parametrize("kind", ["mixed", "frequent only", "rare only", "nothing"])
def test_log_p_of_matches_log_probabilities(
    layer: TwoLevelSoftmax, states_ND: Tensor, ids_N: Tensor, kind: str
) -> None:
    ids_N = {
        "mixed": ids_N,
        "frequent only": ids_N.clamp(max=N_FREQUENT - 1),
        "rare only": ids_N.clamp(min=N_FREQUENT),
        "nothing": ids_N[:0],
    }[kind]
    states_ND = states_ND[: len(ids_N)]
    alone_N = layer.log_p_of(states_ND, ids_N)
    of_all_N = layer.log_probabilities(states_ND).gather(1, ids_N.unsqueeze(1)).squeeze(1)
    torch.testing.assert_close(alone_N, of_all_N)
    weights = list(layer.parameters())
    gradients = (torch.autograd.grad(log_p_N.sum(), weights, materialize_grads=True) for log_p_N in (alone_N, of_all_N))
    for one, other in zip(*gradients, strict=True):
        torch.testing.assert_close(one, other)


def test_most_probable_word_with_a_probable_cluster(layer: TwoLevelSoftmax, states_ND: Tensor) -> None:
    with torch.no_grad():
        layer.head.weight[-1] += 0.6 * layer.head.weight[0] + 0.6 * layer.head.weight[1]
        log_p_NV, most_probable_N = layer.log_probabilities(states_ND), layer.most_probable(states_ND)
        head_NP = layer.head(states_ND)
    assert torch.equal(most_probable_N, log_p_NV.argmax(dim=1))
    needs_tail_N = head_NP[:, -1] > head_NP[:, :-1].amax(dim=1)
    # All three cases occur: second level skipped, a frequent word wins, a rare word wins.
    assert 0 < needs_tail_N.sum() < 200
    assert 0 < (most_probable_N[needs_tail_N] >= N_FREQUENT).sum() < needs_tail_N.sum()


@pytest.mark.parametrize("n_frequent", [0, V])
def test_each_level_needs_a_word(n_frequent: int) -> None:
    with pytest.raises(ConfigError, match=naming("n_frequent", 1, 49, n_frequent)):
        TwoLevelSoftmax(D, V, n_frequent=n_frequent, d_tail=3)


def test_ids_are_ranked_by_frequency() -> None:
    # 7 occurs three times, EOS (2) twice, 5 once; unseen ids are ordered by number.
    assert _ranks([[7, 7], [7, 5]], 8).tolist() == [3, 4, 1, 5, 6, 2, 7, 0]


def test_short_report() -> None:
    part = make_adaptive_softmax(is_short=True)
    times, losses = (section for section in part.sections if isinstance(section, Table))
    assert [row[0] for row in times.rows] == [100, 200]
    for _, full, blocks, two_levels, faster, find_full, find_two_levels, faster_to_find in times.rows:
        assert faster == pytest.approx(min(full, blocks) / two_levels)  # over the better of the two full ones
        assert faster_to_find == pytest.approx(find_full / find_two_levels)
    [(size, share, full, two_levels, difference)] = losses.rows
    assert size == 300
    assert 0 < share < 1
    assert difference == pytest.approx(two_levels - full)

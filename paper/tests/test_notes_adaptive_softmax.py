"""Two-level softmax with one and several clusters against torch's adaptive softmax and against its definition."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

from messages import naming
from transduce.corpora import BUILT_IN
from transduce.errors import ConfigError, DataError
from transduce_paper import Experiments
from transduce_paper.notes.adaptive_softmax import TEST, _claims, _times, make_adaptive_softmax
from transduce_paper.notes.softmax_losses import Curve, LossSizes, losses, ranks, text_of_words
from transduce_paper.notes.two_level_softmax import LAYOUTS, Layout, TwoLevelSoftmax
from transduce_paper.report import Table

D, V = 12, 50
# One cluster; three, narrower and narrower; two of full width; clusters of one word.
STARTS = ((15,), (8, 20, 35), (10, 30), (48, 49))


@pytest.fixture(params=STARTS, ids=str)
def layer(request: pytest.FixtureRequest) -> TwoLevelSoftmax:
    return random_layer(request.param)


def random_layer(starts: tuple[int, ...], vocab_size: int = V) -> TwoLevelSoftmax:
    """A layer in float64 whose clusters have a half, a fourth, ... of the width."""
    torch.manual_seed(3)
    widths = [max(1, D // 2**c) for c in range(1, len(starts) + 1)]
    return TwoLevelSoftmax(D, vocab_size, starts=starts, widths=widths).double()


@pytest.fixture
def states_ND() -> Tensor:
    return 4 * torch.randn(200, D, dtype=torch.float64, generator=torch.Generator().manual_seed(4))


@pytest.fixture
def ids_N() -> Tensor:
    return torch.randint(V, (200,), generator=torch.Generator().manual_seed(5))


def torch_weights(layer: nn.AdaptiveLogSoftmaxWithLoss) -> list[Tensor]:
    return [layer.head.weight, *(part.weight for cluster in layer.tail for part in cluster)]


def our_weights(layer: TwoLevelSoftmax) -> list[Tensor]:
    of_clusters = zip(layer.projections, layer.clusters, strict=True)
    return [layer.head.weight, *(part.weight for cluster in of_clusters for part in cluster)]


@pytest.mark.parametrize("div_value", [1.0, 2.0])  # clusters of full and of decreasing width
@pytest.mark.parametrize("starts", STARTS, ids=str)
def test_two_level_softmax_matches_torch(
    starts: tuple[int, ...], div_value: float, states_ND: Tensor, ids_N: Tensor
) -> None:
    widths = [int(D // div_value ** (c + 1)) for c in range(len(starts))]
    layer = TwoLevelSoftmax(D, V, starts=starts, widths=widths).double()
    reference = nn.AdaptiveLogSoftmaxWithLoss(D, V, list(starts), div_value=div_value).double()
    with torch.no_grad():
        for theirs, mine in zip(torch_weights(reference), our_weights(layer), strict=True):
            theirs.copy_(mine)
        torch.testing.assert_close(layer.log_probabilities(states_ND), reference.log_prob(states_ND))
        torch.testing.assert_close(layer.log_p_of(states_ND, ids_N), reference(states_ND, ids_N).output)
        assert torch.equal(layer.most_probable(states_ND), reference.predict(states_ND))
    gradients = []
    for weights, mean_loss in (
        (our_weights(layer), lambda states_ND: layer.loss(states_ND, ids_N).loss_nats / len(ids_N)),
        (torch_weights(reference), lambda states_ND: reference(states_ND, ids_N).loss),
    ):
        inputs_ND = states_ND.clone().requires_grad_()
        loss = mean_loss(inputs_ND)
        gradients.append((loss.detach(), *torch.autograd.grad(loss, [inputs_ND, *weights])))
    for mine, theirs in zip(*gradients, strict=True):
        torch.testing.assert_close(mine, theirs)


def test_probabilities_match_the_definition(layer: TwoLevelSoftmax, states_ND: Tensor) -> None:
    """P(word) = P(entry), or P(cluster) P(word | cluster), computed with exponentials and sums."""
    head, *of_clusters = (weight.tolist() for weight in our_weights(layer))

    def dot(one: list[float], other: list[float]) -> float:
        return sum(a * b for a, b in zip(one, other, strict=True))

    def softmax(scores: list[float]) -> list[float]:
        total = sum(map(math.exp, scores))
        return [math.exp(score) / total for score in scores]

    for state, log_p in zip(states_ND[:5].tolist(), layer.log_probabilities(states_ND[:5]).tolist(), strict=True):
        first = softmax([dot(row, state) for row in head])
        expected, of_entries = first[: layer.n_frequent], first[layer.n_frequent :]
        for of_cluster, projection, words in zip(of_entries, of_clusters[::2], of_clusters[1::2], strict=True):
            small = [dot(row, state) for row in projection]
            expected += [of_cluster * p for p in softmax([dot(row, small) for row in words])]
        assert [math.exp(each) for each in log_p] == pytest.approx(expected, rel=1e-9)
        assert sum(expected) == pytest.approx(1, abs=1e-12)


@settings(max_examples=40)
@given(starts=st.sets(st.integers(1, 29), min_size=1, max_size=6), scale=st.floats(0, 30), seed=st.integers(0, 99))
def test_probabilities_sum_to_one(starts: set[int], scale: float, seed: int) -> None:
    layer = random_layer(tuple(sorted(starts)), vocab_size=30)
    states_ND = scale * torch.randn(20, D, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))
    log_p_NV = layer.log_probabilities(states_ND)
    assert log_p_NV.shape == (20, 30)
    torch.testing.assert_close(log_p_NV.exp().sum(dim=1), torch.ones(20).double())


@pytest.mark.parametrize("kind", ["mixed", "frequent only", "rare only", "nothing"])
def test_log_p_of_matches_log_probabilities(
    layer: TwoLevelSoftmax, states_ND: Tensor, ids_N: Tensor, kind: str
) -> None:
    ids_N = {
        "mixed": ids_N,
        "frequent only": ids_N.clamp(max=layer.n_frequent - 1),
        "rare only": ids_N.clamp(min=layer.n_frequent),
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


def test_each_word_has_the_number_of_its_cluster() -> None:
    layer = random_layer((8, 20, 35))
    numbers = layer.cluster_numbers(torch.arange(V)).tolist()
    assert numbers == [0] * 8 + [1] * 12 + [2] * 15 + [3] * 15


@pytest.mark.parametrize("starts", [(15,), (8, 20, 35)], ids=str)
def test_most_probable_word_with_probable_clusters(starts: tuple[int, ...], states_ND: Tensor) -> None:
    layer = random_layer(starts)
    with torch.no_grad():
        layer.head.weight[layer.n_frequent :] += 0.6 * layer.head.weight[0] + 0.6 * layer.head.weight[1]
        log_p_NV, most_probable_N = layer.log_probabilities(states_ND), layer.most_probable(states_ND)
        entry_N = layer.head(states_ND).argmax(dim=1)
        by_levels_N = layer.level_by_level(states_ND)
    assert torch.equal(most_probable_N, log_p_NV.argmax(dim=1))
    in_cluster_N = entry_N >= layer.n_frequent
    # All three cases occur: second level skipped, a frequent word wins, a rare word wins.
    assert 0 < in_cluster_N.sum() < 200
    assert 0 < (most_probable_N[in_cluster_N] >= layer.n_frequent).sum() < in_cluster_N.sum()
    # Level by level: the best entry, or the best word of its cluster, which may be less probable than another word.
    assert torch.equal(by_levels_N[~in_cluster_N], entry_N[~in_cluster_N])
    for number, (start, end) in enumerate(pairwise((*starts, V))):
        here_N = entry_N == layer.n_frequent + number
        assert torch.equal(by_levels_N[here_N], start + log_p_NV[here_N, start:end].argmax(dim=1))
    assert 0 < (by_levels_N != most_probable_N).sum() < in_cluster_N.sum()


@pytest.mark.parametrize("starts", [(), (0,), (V,), (20, 20), (20, 10), (10, V)], ids=str)
def test_each_level_and_cluster_needs_a_word(starts: tuple[int, ...]) -> None:
    with pytest.raises(ConfigError, match=naming("starts", 1, 49)):
        TwoLevelSoftmax(D, V, starts=starts, widths=[3] * len(starts))


def test_each_cluster_needs_a_width() -> None:
    with pytest.raises(ConfigError, match=naming("widths", 2)):
        TwoLevelSoftmax(D, V, starts=(10, 20), widths=(3,))


def test_a_layout_divides_vocabulary_and_width() -> None:
    layer = Layout((27, 9, 3), (2, 4, 8)).layer(16, 270)
    assert layer.starts == (10, 30, 90)
    assert [each.out_features for each in layer.projections] == [8, 4, 2]
    assert [each.out_features for each in layer.clusters] == [20, 60, 180]
    multiplications = sum(each.weight.numel() for each in (layer.head, *layer.clusters)) - 3 * 16  # entries of clusters
    assert Layout((27, 9, 3), (2, 4, 8)).share_of_multiplications == pytest.approx(multiplications / (16 * 270))


def test_ids_are_ranked_by_frequency() -> None:
    # 7 occurs three times, EOS (2) twice, 5 once; unseen ids are ordered by number.
    assert ranks([[7, 7], [7, 5]], 8).tolist() == [3, 4, 1, 5, 6, 2, 7, 0]


def test_text_of_words_has_the_most_frequent_words_first() -> None:
    sizes = LossSizes((BUILT_IN,), n_updates=1, n_dev=10)
    text, smaller = (text_of_words(sizes, vocab_size, None) for vocab_size in (10_000, 100))
    ids = [id for row in text.train for id in row]
    counts = [ids.count(id) for id in range(4, 12)]
    assert counts == sorted(counts, reverse=True)
    assert min(counts) > 0
    assert max(ids) == text.n_different + 3  # every word has an id after the 4 special tokens
    assert smaller.n_different == text.n_different
    assert [len(row) for row in smaller.dev] == [len(row) for row in text.dev]
    assert len(text.dev) == 20  # both sides of 10 pairs
    flat = [id for row in smaller.dev for id in row]
    assert max(flat) < 100
    assert smaller.unknown == flat.count(3) / len(flat) > text.unknown


def test_losses_are_measured_once(tmp_path: Path) -> None:
    log: list[str] = []
    experiments = Experiments(tmp_path / "runs", tmp_path / "work", scale="test", log=log.append)
    curves = losses(experiments, 300, TEST.of_losses)
    assert list(curves) == ["full", *LAYOUTS]
    assert [len(curve.nats) for curve in curves.values()] == [2, 2, 2]
    assert len({curve.nats[-1] for curve in curves.values()}) == 3
    assert curves["full"].rare == curves["full"].differs == 0
    assert 0 < curves["one cluster"].rare < curves["three clusters"].rare < 1
    assert len(log) == 1
    again = losses(experiments, 300, TEST.of_losses)
    assert {name: list(curve.nats) for name, curve in again.items()} == {
        name: list(curve.nats) for name, curve in curves.items()
    }
    assert len(log) == 1  # read from its file
    (path,) = (tmp_path / "runs" / "test").iterdir()
    losses(experiments, 300, LossSizes((BUILT_IN,), n_updates=1, n_dev=10))
    assert len(log) == 2  # other settings
    path.write_text(json.dumps(json.loads(path.read_text()) | {"losses": 3}))
    with pytest.raises(DataError, match=naming(path, "losses")):
        losses(experiments, 300, LossSizes((BUILT_IN,), n_updates=1, n_dev=10))


def test_verdicts_follow_from_the_numbers() -> None:
    times = [
        replace(_times(vocab_size, TEST), search_full=9.0, search_levels=dict.fromkeys(LAYOUTS, 1.0))
        for vocab_size in TEST.timed
    ]
    slow = [
        replace(each, full=each.vocab_size, blocks=each.vocab_size, levels=dict.fromkeys(LAYOUTS, 1e9))
        for each in times
    ]
    fast = [replace(each, full=9.0, blocks=9.0, levels=dict.fromkeys(LAYOUTS, 1.0)) for each in times]

    def learned(differs: float, before: float = 5.501) -> dict[int, dict[str, Curve]]:
        full = {"full": Curve("full", (9, 10), (5.1, 5.0), 0.0, 0.0, 900, 0.1)}
        levels = {name: Curve(name, (9, 10), (before, 5.5), 0.2, differs, 900, 0.1) for name in LAYOUTS}
        return {300: full | levels}

    assert [claim.verdict for claim in _claims(slow, learned(0.0))] == ["agrees", "does not", "agrees"]
    claims = _claims(fast, learned(0.25))
    assert [claim.verdict for claim in claims] == ["does not", "agrees", "does not"]
    assert "9.0 and 9.0" in claims[1].found
    assert "+0.50" in claims[1].found
    assert "25.0%" in claims[2].found
    assert _claims(fast, learned(0.25, before=5.51))[2].verdict == "not trained to the end"  # perplexity fell by 1 %


def test_short_report(tmp_path: Path) -> None:
    part = make_adaptive_softmax(Experiments(tmp_path / "runs", tmp_path / "work", scale="test"))
    times, of_losses = (section for section in part.blocks() if isinstance(section, Table))
    softmaxes = ["full", "full, in blocks", "one cluster", "three clusters"]
    assert [row[:2] for row in times.rows] == [(size, softmax) for size in (100, 200) for softmax in softmaxes]
    for of_size in (times.rows[:4], times.rows[4:]):
        full, blocks, *levels = (row[2:] for row in of_size)
        for training, faster, finding, faster_to_find in levels:
            assert faster == pytest.approx(min(full[0], blocks[0]) / training)  # over the better of the two full ones
            assert faster_to_find == pytest.approx(full[2] / finding)
    (size, softmax, full_nats, *_), *of_levels = of_losses.rows
    assert (size, softmax) == (300, "full")
    assert [row[:2] for row in of_levels] == [(300, name) for name in LAYOUTS]
    for _, _, nats, difference, rare, differs in of_levels:
        assert difference == pytest.approx(nats - full_nats)
        assert 0 < rare < 1
        assert 0 <= differs <= 1
    assert len(part.claims) == 3

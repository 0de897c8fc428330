"""Recurrent networks: recall by distance, BLEU by length, and the verdicts that follow from them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from transduce.config import RecurrentConfig
from transduce_paper import Experiments, RunRecord, Table
from transduce_paper.notes.length_scores import KINDS as ATTENTIONS
from transduce_paper.notes.length_scores import Attention, BinScore, length_bins, length_scores, recurrence_experiment
from transduce_paper.notes.recall import (
    FIRST_NOISE,
    KINDS,
    N_SYMBOLS,
    Kind,
    Reader,
    Recall,
    RecallSizes,
    gradient_by_distance,
    recall,
    recall_batch,
)
from transduce_paper.notes.recurrence import (
    FULL,
    _draw_lengths,
    _table_of_lengths,
    claims_on_attention,
    claims_on_recall,
    make_recurrence,
)
from transduce_paper.notes.tiny import seeded


@pytest.fixture
def experiments(tmp_path: Path) -> Experiments:
    return Experiments(tmp_path / "runs", tmp_path / "work", scale="test")


def new_reader(kind: Kind) -> Reader:
    with seeded(3):
        return Reader(kind)


def test_the_answer_is_the_first_token() -> None:
    batch = recall_batch([[5, FIRST_NOISE, FIRST_NOISE + 1], [7, FIRST_NOISE, FIRST_NOISE]])
    assert batch.targets_N.tolist() == [5, 7]


@pytest.mark.parametrize("kind", KINDS)
def test_gradients_are_those_of_finite_differences(kind: Kind) -> None:
    """The norm at distance 2 over that at distance 1, from the loss of embeddings moved in every direction."""
    model, batch = new_reader(kind), recall_batch([[5, FIRST_NOISE, FIRST_NOISE + 2, FIRST_NOISE + 1]])
    found = gradient_by_distance(model, batch)
    assert len(found) == 3
    assert found[0] == 1
    model.double()
    x_1TD = model.embedding(batch.ids_BT).detach()

    def norm_at(position: int) -> float:
        slopes = []
        for dimension in range(x_1TD.shape[2]):
            losses = []
            for step in (1e-5, -1e-5):
                moved = x_1TD.clone()
                moved[0, position, dimension] += step
                losses.append(float(model.output.loss(model.last_states(moved), batch.targets_N).loss_nats))
            slopes.append((losses[0] - losses[1]) / 2e-5)
        return float(torch.tensor(slopes, dtype=torch.float64).norm())

    with torch.no_grad():
        assert found[1] == pytest.approx(norm_at(1) / norm_at(2), rel=1e-4)


def test_gradients_of_a_plain_rnn_vanish_and_those_of_attention_do_not() -> None:
    batch = recall_batch([[5 + n % N_SYMBOLS, *([FIRST_NOISE] * 40)] for n in range(4)])
    rnn, transformer = (gradient_by_distance(new_reader(kind), batch)[-1] for kind in ("rnn", "transformer"))
    assert rnn < 1e-6
    assert transformer > 1e-3


def test_a_transformer_learns_a_short_recall() -> None:
    sizes = RecallSizes((1, 2, 3), n_updates=60, n_validations=6, n_tested=64)
    found = recall("transformer", 1, sizes)
    assert min(found.accuracies) > 0.9
    assert found.n_updates_to_learn in range(10, 61, 10)
    assert len(found.gradients_before) == len(found.gradients_after) == 3


@given(st.lists(st.integers(1, 40), min_size=1), st.integers(1, 6))
def test_bins_cover_each_length_once(lengths: list[int], n_bins: int) -> None:
    bins = length_bins(lengths, n_bins)
    assert 1 <= len(bins) <= n_bins
    for length in lengths:
        assert sum(shortest <= length <= longest for shortest, longest in bins) == 1
    assert all(any(low <= length <= high for length in lengths) for low, high in bins)


def test_the_runs_differ_in_attention_and_seed_only(tmp_path: Path) -> None:
    experiments = Experiments(tmp_path, tmp_path, scale="cpu")
    runs = [recurrence_experiment(experiments, attention, seed) for attention in ATTENTIONS for seed in (1, 2)]
    assert [run.name for run in runs] == [
        f"recurrence-lstm-{name}-seed{seed}" for name in ("attention", "none") for seed in (1, 2)
    ]
    models = [run.config.model for run in runs]
    assert [model.attention for model in models if isinstance(model, RecurrentConfig)] == [
        "additive", "additive", "none", "none",
    ]  # fmt: skip
    assert len({model.model_copy(update={"attention": "none"}).model_dump_json() for model in models}) == 1
    assert {run.config.training.max_updates for run in runs} == {2250}


def test_short_part(experiments: Experiments, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    part = make_recurrence(experiments)
    of_recall, of_lengths = (section for section in part.blocks() if isinstance(section, Table))
    assert of_recall.column("layer") == ["plain RNN", "LSTM", "GRU", "Transformer"]
    assert all(0 <= cell <= 1 for cell in of_recall.column("recall at 4"))
    assert sum(of_lengths.column("sentences")) == 12
    assert len(part.drawings) == 2
    for name, draw in part.drawings.items():
        draw(tmp_path / f"{name}.svg")
        assert (tmp_path / f"{name}.svg").stat().st_size > 1000


def test_scores_by_length_are_cached(experiments: Experiments, tmp_path: Path) -> None:
    run = recurrence_experiment(experiments, "none", 1)
    scores = length_scores(experiments, run)
    elsewhere = Experiments(tmp_path / "runs", tmp_path / "other", scale="test")
    assert length_scores(elsewhere, run) == scores
    assert not (tmp_path / "other").exists()


def recalls_of(kind_of: dict[Kind, tuple[float, float, int | None]]) -> dict[Kind, list[Recall]]:
    """Make three seeds of each kind from gradient before training, accuracy and updates to learn."""
    return {
        kind: [Recall((1.0, gradient), (1.0, 1.0), (1.0, accuracy), n_updates)] * 3
        for kind, (gradient, accuracy, n_updates) in kind_of.items()
    }


def test_claims_on_recall() -> None:
    as_expected: dict[Kind, tuple[float, float, int | None]] = {
        "rnn": (1e-20, 0.12, None),
        "lstm": (1e-9, 1.0, 150),
        "gru": (1e-9, 1.0, 100),
        "transformer": (0.5, 1.0, 30),
    }
    sizes = replace(FULL, tested_distances=(1, 2))
    claims = claims_on_recall(recalls_of(as_expected), sizes)
    assert [claim.verdict for claim in claims] == ["agrees", "agrees", "cannot tell"]  # it differs in more than paths
    assert "plain RNN never/never/never" in claims[2].found
    otherwise = as_expected | {"rnn": (0.3, 1.0, 20), "lstm": (0.1, 0.2, None)}
    claims = claims_on_recall(recalls_of(otherwise), sizes)
    assert [claim.verdict for claim in claims] == ["does not", "cannot tell", "cannot tell"]
    slower = as_expected | {"rnn": (1e-20, 1.0, 20), "lstm": (1e-9, 1.0, 20), "gru": (1e-9, 1.0, 20)}
    assert claims_on_recall(recalls_of(slower), sizes)[2].verdict == "does not"


def scores_of(bleus: dict[Attention, Sequence[Sequence[float]]]) -> dict[Attention, list[list[BinScore]]]:
    """Make the scores of seeds and, within each, of ranges of five lengths."""
    return {
        attention: [
            [BinScore(5 * n + 1, 5 * n + 5, 100, bleu, "signature") for n, bleu in enumerate(of_seed)]
            for of_seed in of_kind
        ]
        for attention, of_kind in bleus.items()
    }


class Scored(RunRecord):
    """A record of which only the BLEU counts."""

    def __init__(self, bleu: float, last_fall: float | None = 0.001) -> None:
        object.__setattr__(self, "test_scores", {"sacrebleu": {"score": bleu}})
        object.__setattr__(self, "last_fall", last_fall)


@pytest.mark.parametrize(
    ("without", "expected"),
    [
        ([[20, 10, 5], [21, 11, 4]], ["agrees", "agrees", "agrees"]),  # its share falls with the length
        ([[5, 10, 20], [4, 11, 21]], ["agrees", "does not", "agrees"]),
        ([[30, 31, 29], [31, 30, 30]], ["cannot tell", "cannot tell", "cannot tell"]),
    ],
)
def test_claims_on_attention(without: list[list[float]], expected: list[str]) -> None:
    with_attention = [[30, 31, 30], [31, 30, 29]]
    means = {"additive": with_attention, "none": without}
    records = {attention: [Scored(sum(seed) / 3) for seed in of_kind] for attention, of_kind in means.items()}
    claims = claims_on_attention(records, scores_of(means))
    assert [claim.verdict for claim in claims] == expected
    still_learning = {**records, "none": [Scored(5, 0.02), Scored(6, 0.001)]}
    claims = claims_on_attention(still_learning, scores_of(means))
    assert {claim.verdict for claim in claims} == {"not trained to the end"}


def test_without_bleu_no_share_is_computed() -> None:
    scores = scores_of({"additive": [[0, 1], [1, 1]], "none": [[1, 1], [1, 2]]})
    records = {attention: [Scored(1), Scored(2)] for attention in ATTENTIONS}
    assert claims_on_attention(records, scores)[1].verdict == "cannot tell"


def test_shares_are_of_the_same_seed(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    scores = scores_of({"additive": [[20, 40], [40, 20]], "none": [[10, 10], [10, 10]]})
    table = _table_of_lengths(scores)
    assert table.column("share, %") == pytest.approx([37.5, 37.5])  # means of 50 and 25 %
    assert table.column("difference") == [20, 20]
    _draw_lengths(scores, tmp_path / "lengths.svg")
    assert "6 to 10" in (tmp_path / "lengths.svg").read_text(encoding="utf-8")

"""Batch norm and layer norm against torch's, and how a batch affects a sentence with each."""

from __future__ import annotations

import copy
import math
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from transduce.model import StackConfig, TransformerLM
from transduce_paper import Experiments
from transduce_paper.notes.normalisation import CHANGES, NOTES_TABLE, make_normalisation, standardise
from transduce_paper.notes.padded_batch_norm import BatchNormLanguageModel
from transduce_paper.notes.tiny import grammar_text, language_batch, trained
from transduce_paper.report import Table


def test_both_norms_match_torch() -> None:
    x_ND = torch.randn(9, 5, generator=torch.Generator().manual_seed(1))
    batch = nn.BatchNorm1d(5, affine=False, eps=1e-6)
    layer = nn.LayerNorm(5, elementwise_affine=False, eps=1e-6)
    torch.testing.assert_close(standardise(x_ND, dim=0, eps=1e-6), batch(x_ND))
    torch.testing.assert_close(standardise(x_ND, dim=1, eps=1e-6), layer(x_ND))


def test_worked_table_of_the_notes(tmp_path: Path) -> None:
    part = make_normalisation(Experiments(tmp_path, tmp_path, scale="test"))
    worked, changes, losses = (section for section in part.blocks() if isinstance(section, Table))
    cells = {row[0]: row[1:] for row in worked.rows}
    # Of instance 1, 1 3 5 3, by hand: mean 3, deviation sqrt((4 + 0 + 4 + 0) / 4).
    assert cells["instance 1"] == (1.0, 3.0, 5.0, 3.0, 3.0, pytest.approx(math.sqrt(2)))
    assert cells["instance 1, layer norm"][:4] == pytest.approx((-math.sqrt(2), 0, math.sqrt(2), 0))
    # Of f4, 3 2 1: mean 2, deviation sqrt(2 / 3).
    f4 = [cells[f"instance {n}, batch norm"][3] for n in (1, 2, 3)]
    assert f4 == pytest.approx([math.sqrt(1.5), 0, -math.sqrt(1.5)])
    # The legible means of the notes are the computed ones.
    printed, computed = cells["as the notes print it"], cells["mean (batch norm)"]
    legible = [(one, round(other, 1)) for one, other in zip(printed, computed, strict=True) if isinstance(one, float)]
    assert legible == [(4.3, 4.3), (2.0, 2.0)]
    assert len(NOTES_TABLE) == 3
    assert [row[0] for row in changes.rows] == list(CHANGES)
    assert [row[0] for row in losses.rows] == [1, 2]


SMALL = StackConfig(n_layers=2, d_model=16, d_ff=32, n_heads=4, d_k=4, d_v=4, p_drop=0.0)


def test_only_the_norms_differ() -> None:
    torch.manual_seed(1)
    layer = TransformerLM(SMALL, vocab_size=40)
    torch.manual_seed(1)
    batch = BatchNormLanguageModel(SMALL, vocab_size=40)
    weights = dict(layer.named_parameters())
    assert [name for name, _ in batch.named_parameters()] == list(weights)
    assert all(torch.equal(weight, weights[name]) for name, weight in batch.named_parameters())
    norms = [module for module in batch.modules() if isinstance(module, nn.BatchNorm1d)]
    assert len(norms) == 4
    assert not any(isinstance(module, nn.LayerNorm) for module in batch.modules())


def test_batch_norm_statistics_include_padding() -> None:
    model = BatchNormLanguageModel(SMALL, vocab_size=40)
    inputs_of_norm: list[Tensor] = []
    norm = model.decoder[0].self_attention_residual.norm
    norm.register_forward_hook(lambda module, inputs, output: inputs_of_norm.append(inputs[0]))
    ids_BT = torch.tensor([[1, 5, 6, 7], [1, 8, 0, 0]])
    states_ND = model(ids_BT)
    assert states_ND.shape == (6, 16)
    assert inputs_of_norm[0].shape == (8, 16)
    torch.testing.assert_close(norm.running_mean, 0.1 * inputs_of_norm[0].mean(dim=0))


@pytest.fixture(scope="module")
def models() -> dict[str, TransformerLM]:
    """A model with each norm after some updates; the one with batch norm in both modes."""
    text = grammar_text(n_train=60, n_dev=1, vocab_size=300)
    models = {
        name: trained(text, kind=kind, config=SMALL, n_updates=5, peak_lr=1e-2)
        for name, kind in (("layer", TransformerLM), ("batch, evaluation", BatchNormLanguageModel))
    }
    return models | {"batch, training": copy.deepcopy(models["batch, evaluation"]).train()}


SENTENCE, OTHERS = [10, 11, 12, 13, 14], [[20, 21, 22, 23, 24], [30, 31, 32, 33, 34]]


@pytest.mark.parametrize(
    ("name", "is_independent"), [("layer", True), ("batch, evaluation", True), ("batch, training", False)]
)
@pytest.mark.parametrize("change", ["others", "padding", "alone", "last token"])
def test_states_depend_on_the_batch_only_with_batch_norm_in_training_mode(
    models: dict[str, TransformerLM], name: str, is_independent: bool, change: str
) -> None:
    def states(rows: list[list[int]], n_padding: int = 0) -> Tensor:
        return models[name](language_batch(rows, n_padding=n_padding).ids_BT)[: len(SENTENCE)].detach()

    before_TD = states([SENTENCE, *OTHERS])
    after_TD = {
        "others": lambda: states([SENTENCE, [40, 41, 42, 43, 44], OTHERS[1]]),
        "padding": lambda: states([SENTENCE, *OTHERS], n_padding=3),
        "alone": lambda: states([SENTENCE]),
        "last token": lambda: states([[*SENTENCE[:-1], 99], *OTHERS]),  # only positions before it are compared
    }[change]()
    difference = float((after_TD - before_TD).norm() / before_TD.norm())
    assert (difference < 1e-5) == is_independent
    assert is_independent or difference > 1e-3

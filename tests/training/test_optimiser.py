"""Muon for the matrices of the layers, Adam for the rest."""

from __future__ import annotations

from typing import Literal

import pytest
import torch
from torch import nn

from transduce.config import ModelConfig, TrainingConfig
from transduce.model import Transformer
from transduce.training import make_optimiser
from transduce.training.muon import Muon
from transduce.training.optimiser import ADAM_MOMENTS, MUON_MOMENTS, MuonAndAdam, moment_names

CONFIG = ModelConfig(
    n_encoder_layers=1, n_decoder_layers=2, d_model=16, d_ff=24, n_heads=2, d_k=8, d_v=8, src_vocab_size=20,
    tgt_vocab_size=20, embeddings="separate",
)  # fmt: skip


def with_gradients() -> Transformer:
    torch.manual_seed(1)
    model = Transformer(CONFIG)
    for weight in model.parameters():
        weight.grad = torch.randn_like(weight)
    return model


def test_each_weight_is_moved_by_one_of_the_two() -> None:
    model = with_gradients()
    optimiser = make_optimiser(model, TrainingConfig(optimiser="muon"))
    assert isinstance(optimiser, MuonAndAdam)
    before = {name: weight.detach().clone() for name, weight in model.named_parameters()}
    for group in optimiser.param_groups:
        group["lr"] = 0.01
    optimiser.step()
    for name, weight in model.named_parameters():
        is_matrix = weight.ndim == 2 and name.startswith(("encoder.", "decoder."))
        assert moment_names(optimiser, weight) == (MUON_MOMENTS if is_matrix else ADAM_MOMENTS), name
        assert tuple(optimiser.state[weight]) == moment_names(optimiser, weight)
        step = (weight.detach() - before[name]).pow(2).mean().sqrt().item()
        assert step == pytest.approx(0.002 if is_matrix else 0.01, rel=0.35), name  # 0.2 times the RMS of Adam's


def test_a_step_of_muon_is_nearly_orthogonal() -> None:
    model = with_gradients()
    optimiser = make_optimiser(model, TrainingConfig(optimiser="muon"))
    weight = model.encoder[0].feed_forward.w_1.weight  # type: ignore[union-attr]
    before = weight.detach().clone()
    for group in optimiser.param_groups:
        group["lr"] = 1.0
    optimiser.step()
    singular_values = torch.linalg.svdvals(weight.detach() - before)
    assert singular_values.max() < 2 * singular_values.min()


@pytest.mark.parametrize("is_fast", [False, True], ids=["fp32", "bf16"])
def test_steps_are_those_of_torch(is_fast: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("transduce.training.muon.fast_precision", lambda device: "bf16" if is_fast else "fp32")
    torch.manual_seed(2)
    shapes = ((6, 9), (9, 6), (3, 3), (6, 9), (3, 3))
    own, other = (nn.ParameterList([torch.ones(shape) for shape in shapes]) for _ in range(2))
    muon = Muon(own, weight_decay=0.1)
    reference = torch.optim.Muon(other, lr=0.02, weight_decay=0.1, adjust_lr_fn="match_rms_adamw")
    muon.param_groups[0]["lr"] = 0.02
    for _ in range(3):
        for weight, same in zip(own, other, strict=True):
            weight.grad = same.grad = torch.randn(weight.shape)
        muon.step()
        reference.step()  # type: ignore[no-untyped-call]
    for weight, same in zip(own, other, strict=True):
        torch.testing.assert_close(weight, same, rtol=0, atol=1e-4 if is_fast else 1e-3)


@pytest.mark.parametrize("name", ["adam", "muon"])
def test_weight_decay_shrinks_matrices_by_itself(name: Literal["adam", "muon"]) -> None:
    steps = []
    for weight_decay in (0.0, 0.1):
        model = with_gradients()
        optimiser = make_optimiser(model, TrainingConfig(optimiser=name, weight_decay=weight_decay))
        before = {key: weight.detach().clone() for key, weight in model.named_parameters()}
        for group in optimiser.param_groups:
            group["lr"] = 0.01
        optimiser.step()
        steps.append({key: weight.detach() - before[key] for key, weight in model.named_parameters()})
    for key, start in before.items():
        expected = steps[0][key] - 0.01 * 0.1 * start if start.ndim > 1 else steps[0][key]
        torch.testing.assert_close(steps[1][key], expected, rtol=1e-5, atol=1e-7, msg=key)

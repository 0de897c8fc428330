"""Muon for the matrices of the layers, Adam for the rest."""

from __future__ import annotations

import math
from typing import Literal

import pytest
import torch
from torch import Tensor, nn

from transduce.config import LastStateConfig, ModelConfig, TrainingConfig
from transduce.model import Transformer, make_model
from transduce.training import make_optimiser
from transduce.training.muon import Muon, orthogonalised
from transduce.training.optimiser import ADAM_MOMENTS, MUON_MOMENTS, MuonAndAdam, moment_names

CONFIG = ModelConfig(
    n_encoder_layers=1, n_decoder_layers=2, d_model=16, d_ff=24, n_heads=2, d_k=8, d_v=8, src_vocab_size=20,
    tgt_vocab_size=20, embeddings="separate",
)  # fmt: skip


def with_gradients(config: ModelConfig = CONFIG) -> Transformer:
    torch.manual_seed(1)
    model = Transformer(config)
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
        assert step == pytest.approx(0.002 if is_matrix else 0.01, rel=0.35), name  # about 0.2 times the RMS of Adam's


def test_experts_are_moved_once() -> None:
    """Their stack is within that of the layers."""
    model = with_gradients(CONFIG.model_copy(update={"n_experts": 3, "n_active_experts": 2}))
    optimiser = make_optimiser(model, TrainingConfig(optimiser="muon"))
    weights = [weight for group in optimiser.param_groups for weight in group["params"]]
    assert sorted(map(id, weights)) == sorted(map(id, model.parameters()))


def test_a_model_without_linear_maps_in_its_layers_learns_by_adam() -> None:
    config = LastStateConfig(n_encoder_layers=1, n_decoder_layers=1, d_model=8, src_vocab_size=9, tgt_vocab_size=9)
    model = make_model(config)
    optimiser = make_optimiser(model, TrainingConfig(optimiser="muon"))
    assert {moment_names(optimiser, weight) for weight in model.parameters()} == {ADAM_MOMENTS}


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
def test_steps_of_muon_are_near_those_of_exact_factors(is_fast: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of torch.optim.Muon with the orthogonal factor of a singular value decomposition."""
    monkeypatch.setattr("transduce.training.muon.fast_precision", lambda device: "bf16" if is_fast else "fp32")
    torch.manual_seed(2)
    weights = nn.ParameterList([torch.ones(shape) for shape in ((6, 12), (12, 6), (3, 8), (6, 12), (3, 8))])
    muon = Muon(weights, weight_decay=0.1)
    muon.param_groups[0]["lr"] = 0.02
    momenta, before = [torch.zeros_like(weight) for weight in weights], [weight.detach().clone() for weight in weights]
    for _ in range(3):
        for weight in weights:
            weight.grad = torch.randn(weight.shape)
        muon.step()
        for weight, momentum, old in zip(weights, momenta, before, strict=True):
            assert weight.grad is not None
            momentum.lerp_(weight.grad, 0.05)
            exact = orthogonal_factor(weight.grad.lerp(momentum, 0.95))
            size = 0.02 * 0.18 * math.sqrt(max(weight.shape))
            taken = (old * (1 - 0.02 * 0.1) - weight.detach()) / size
            assert torch.linalg.matrix_norm(taken - exact, ord=2) < (0.2 if is_fast else 0.1)
            old.copy_(weight.detach())


def orthogonal_factor(matrix: Tensor) -> Tensor:
    u, _, v_transposed = torch.linalg.svd(matrix, full_matrices=False)
    return u @ v_transposed


@pytest.mark.parametrize("is_fast", [False, True], ids=["fp32", "bf16"])
def test_singular_values_become_one_unless_they_are_tiny(is_fast: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("transduce.training.muon.fast_precision", lambda device: "bf16" if is_fast else "fp32")
    torch.manual_seed(3)
    u, v = (orthogonal_factor(torch.randn(64, 64)) for _ in range(2))
    values = torch.logspace(0, -4, 64)
    matrix = u @ torch.diag(values) @ v
    for scale in (1.0, 1e-12, 1e12):
        [found] = orthogonalised(scale * matrix[None])
        assert found.dtype == (torch.bfloat16 if is_fast else torch.float32)
        became = (u.T @ found.float() @ v.T).diagonal()
        large = values > 0.025
        assert (became[large] > (0.85 if is_fast else 0.9)).all()
        assert (became < (1.15 if is_fast else 1.1)).all()
        assert (became[values < 0.002] < 0.15).all()  # noise stays small


@pytest.mark.parametrize("is_fast", [False, True], ids=["fp32", "bf16"])
def test_matrices_of_low_rank_stay_so(is_fast: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("transduce.training.muon.fast_precision", lambda device: "bf16" if is_fast else "fp32")
    ones = torch.ones(1, 300, 5)
    assert torch.linalg.svdvals(orthogonalised(ones).float()).flatten().tolist() == pytest.approx(
        [1, 0, 0, 0, 0], abs=0.12
    )
    assert (orthogonalised(torch.zeros(2, 3, 4)) == 0).all()


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

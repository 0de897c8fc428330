"""Figure 2: footnote 4 against known results, and the NumPy reference against torch's multi-head attention."""

from __future__ import annotations

import csv
import math
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from transduce.config import ModelConfig
from transduce_paper import ARTEFACTS, Experiments, Request, write_report
from transduce_paper.figure2 import COMPONENTS, _softmax_statistics, saturation, variance_of_products
from transduce_paper.figure2.numpy_attention import agreements, multi_head, scaled_dot_product


@pytest.mark.parametrize("kind", COMPONENTS)
@pytest.mark.parametrize("d_k", [1, 7, 128])
def test_the_variance_is_d_k(kind: str, d_k: int) -> None:
    measured = variance_of_products(d_k, n=5000, generator=torch.Generator().manual_seed(4), kind=kind)
    assert abs(measured.value - d_k) < 4 * max(measured.error, 1e-3)
    assert measured.error < 0.1 * d_k


@pytest.mark.parametrize("kind", COMPONENTS)
def test_components_have_mean_0_and_variance_1(kind: str) -> None:
    drawn = COMPONENTS[kind]((50_000,), torch.Generator().manual_seed(1))
    assert float(drawn.mean()) == pytest.approx(0, abs=0.02)
    assert float(drawn.var()) == pytest.approx(1, abs=0.02)


@pytest.mark.parametrize("scale", [1.0, 0.25])
def test_softmax_statistics_match_autograd(scale: float) -> None:
    torch.manual_seed(1)
    q, k = torch.randn(3, 16, dtype=torch.float64), torch.randn(3, 5, 16, dtype=torch.float64)
    measured = _softmax_statistics(q, k, scale)
    for row in range(3):

        def weights_of(query: Tensor, row: int = row) -> Tensor:
            return (k[row] @ query * scale).softmax(dim=0)

        weights = weights_of(q[row])
        by_query = torch.autograd.functional.jacobian(weights_of, q[row])
        by_scores = torch.autograd.functional.jacobian(lambda scores: scores.softmax(dim=0), k[row] @ q[row] * scale)
        entropy = torch.distributions.Categorical(probs=weights).entropy()
        expected = torch.stack([entropy, weights.max(), by_scores.norm(), by_query.norm()])
        torch.testing.assert_close(measured[:, row], expected)


def test_softmax_saturates_only_without_scaling() -> None:
    def statistics(d_k: int, power: float) -> tuple[float, float, float]:
        generator = torch.Generator().manual_seed(1)
        each = saturation(d_k, n_queries=100, scale=d_k**power, generator=generator)
        return each.entropy_nats, each.gradient_median, each.vanished_share

    small, large = statistics(16, 0.0), statistics(512, 0.0)
    assert large[0] < 0.3 * small[0]
    assert large[1] < 0.1 * small[1]
    assert large[2] > 0.3
    for d_k in (16, 512):
        entropy, gradient, vanished = statistics(d_k, -0.5)
        # Scores of N(0, 1): the mean entropy of their softmax is near log n - 1/2.
        assert entropy == pytest.approx(math.log(64) - 0.5, abs=0.1)
        assert gradient == pytest.approx(0.18, abs=0.02)
        assert vanished == 0


def test_numpy_reference_matches_torch_multi_head_attention() -> None:
    torch.manual_seed(2)
    theirs = torch.nn.MultiheadAttention(12, 3, bias=False, batch_first=True, dtype=torch.float64)
    x, memory = torch.randn(5, 12, dtype=torch.float64), torch.randn(7, 12, dtype=torch.float64)
    parts = theirs.in_proj_weight.detach().chunk(3)
    w_q, w_k, w_v = (part.view(3, 4, 12).transpose(1, 2).numpy() for part in parts)
    w_o = theirs.out_proj.weight.detach().numpy().T
    for keys, mask in ((memory, None), (x, torch.ones(5, 5, dtype=torch.bool).tril())):
        with torch.no_grad():
            expected, _ = theirs(x, keys, keys, attn_mask=None if mask is None else ~mask)
        allow = None if mask is None else mask.numpy()
        output = multi_head(x.numpy(), keys.numpy(), w_q_HDK=w_q, w_k_HDK=w_k, w_v_HDU=w_v, w_o=w_o, allow_TS=allow)
        np.testing.assert_allclose(output, expected.numpy(), atol=1e-14)


def test_equation_1_by_hand() -> None:
    q, k, v = np.array([[2.0, 0.0, 0.0, 0.0]]), np.eye(2, 4) * math.log(3), np.array([[1.0], [5.0]])
    # Scores log 3 and 0 after division by 2: weights 3/4 and 1/4.
    np.testing.assert_allclose(scaled_dot_product(q, k, v), [[0.75 * 1 + 0.25 * 5]])
    np.testing.assert_allclose(scaled_dot_product(q, k, v, is_scaled=False), [[0.9 * 1 + 0.1 * 5]])


def test_layers_match_the_formulas_and_an_unscaled_kernel_does_not(monkeypatch: pytest.MonkeyPatch) -> None:
    config = ModelConfig(d_model=32, n_heads=4, d_k=8, d_v=6)
    torch.manual_seed(1)
    right = agreements(config)
    assert len(right) == 6
    assert all(each.difference < 1e-13 < 1e-2 < each.difference_unscaled for each in right)

    without_factor = partial(F.scaled_dot_product_attention, scale=1.0)
    monkeypatch.setattr(F, "scaled_dot_product_attention", without_factor)
    wrong = {each.use: each for each in agreements(config) if each.kernel == "fused"}
    assert all(each.difference > 1e-2 for each in wrong.values())


def test_short_report(tmp_path: Path) -> None:
    experiments = Experiments(tmp_path / "runs", tmp_path / "work", scale="test")
    report = ARTEFACTS["figure2"](experiments, Request())
    names = {path.name for path in write_report(report, tmp_path / "out")}
    assert names == {
        "figure2.md",
        "figure2-variance.csv",
        "figure2-softmax.csv",
        "figure2-multi-head.csv",
        "figure2.svg",
    }
    with (tmp_path / "out" / "figure2-multi-head.csv").open(encoding="utf-8", newline="") as lines:
        assert all(float(row["largest difference"]) < 1e-13 for row in csv.DictReader(lines))
    again = write_report(ARTEFACTS["figure2"](experiments, Request()), tmp_path / "again")
    for path in again:
        assert path.read_bytes() == (tmp_path / "out" / path.name).read_bytes()

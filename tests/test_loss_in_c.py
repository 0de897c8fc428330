"""The loss in C: values and gradients of the formula, in one or two passes."""

from __future__ import annotations

import re

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from transduce import loss as module
from transduce import native_library
from transduce.errors import ConfigError
from transduce.loss import _is_in_c, _logits_to_gradient_, cross_entropy, cross_entropy_reference, r_drop
from transduce.native_library import computes

pytestmark = pytest.mark.skipif(not computes(1), reason="the library is not compiled")


def drawn(n_passes: int, n_rows: int, vocab_size: int, seed: int) -> tuple[Tensor, Tensor]:
    torch.manual_seed(seed)
    return torch.randn(n_passes, n_rows + 2, vocab_size) * 3, torch.randint(vocab_size, (n_rows,))


@settings(max_examples=60, deadline=None)
@given(
    n_passes=st.integers(1, 2),
    n_rows=st.integers(0, 9),
    vocab_size=st.integers(1, 70),
    seed=st.integers(0, 1000),
    dtype=st.sampled_from((torch.float32, torch.bfloat16)),
)
def test_sums_and_gradients_are_those_of_torch(
    n_passes: int, n_rows: int, vocab_size: int, seed: int, dtype: torch.dtype
) -> None:
    z_XRV, targets = drawn(n_passes, n_rows, vocab_size, seed)
    ours, theirs = z_XRV.to(dtype), z_XRV.to(dtype).double()
    assert _is_in_c(ours)
    assert not _is_in_c(theirs)
    results = [
        _logits_to_gradient_(z[:, :n_rows], targets, 0.9, 2.0, torch.promote_types(z.dtype, torch.float32))
        for z in (ours, theirs)
    ]
    for got, wanted in zip(*results, strict=True):
        assert float(got) == pytest.approx(float(wanted), rel=1e-5, abs=1e-4)
    tolerance = {torch.float32: 2e-6, torch.bfloat16: 0.006}[dtype]
    assert (ours - theirs).norm() <= tolerance * max(1.0, float(theirs.norm()))
    assert torch.equal(ours[:, n_rows:], z_XRV.to(dtype)[:, n_rows:])  # other rows stay


def test_it_is_the_same_with_more_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    results = []
    for n_threads in (1, 2, 8):
        monkeypatch.setattr(torch, "get_num_threads", lambda n=n_threads: n)
        z_XRV, targets = drawn(2, 5, 40, 1)
        results.append((z_XRV, *_logits_to_gradient_(z_XRV[:, :5], targets, 1.0, 1.0, torch.float32)))
    for result in results[1:]:
        assert all(torch.equal(a, b) for a, b in zip(result, results[0], strict=True))


def test_a_target_that_is_no_class_is_refused() -> None:
    for target in (-1, 12):
        z_XRV, _ = drawn(1, 1, 12, 1)
        with pytest.raises(IndexError, match="vocabulary"):
            _logits_to_gradient_(z_XRV[:, :1], torch.tensor([target]), 1.0, 0.0, torch.float32)


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_what_is_not_finite_is_seen_in_the_loss(bad: float) -> None:
    z_XRV, targets = drawn(2, 3, 20, 1)
    z_XRV[1, 1, 7] = bad
    nll, _, _ = _logits_to_gradient_(z_XRV[:, :3], targets, 1.0, 1.0, torch.float32)
    assert not torch.isfinite(nll)


@pytest.mark.parametrize("n_passes", [1, 2])
def test_without_the_library_torch_computes_the_same(n_passes: int, monkeypatch: pytest.MonkeyPatch) -> None:
    torch.manual_seed(1)
    states, weight, targets = torch.randn(n_passes, 30, 8), torch.randn(50, 8), torch.randint(50, (30,))
    results = []
    for is_here in (True, False):
        if not is_here:
            monkeypatch.setattr(module, "computes", lambda n_threads: False)
        own = [x.clone().requires_grad_() for x in (states, weight)]
        if n_passes == 1:
            found = cross_entropy(own[0][0], own[1], targets, eps_ls=0.1, smoothing="uniform")
            exact = cross_entropy_reference(states[0], weight, targets, eps_ls=0.1, smoothing="uniform")
            assert float(found.loss_nats.detach()) == pytest.approx(float(exact.loss_nats), rel=1e-5)
        else:
            found = r_drop(own[0], own[1], targets, eps_ls=0.1, smoothing="uniform", alpha=2.0)
        found.loss_nats.backward()
        results.append((found.loss_nats.detach(), found.nll_nats, *(x.grad for x in own)))
    for ours, theirs in zip(*results, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-5)


def test_several_threads_are_those_of_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where its OpenMP is another than GNU's, torch computes in them, and one thread computes in C."""
    monkeypatch.setattr(native_library, "_gomp_parallel", lambda: None)
    assert computes(1)
    assert not computes(2)
    z_XRV, _ = drawn(1, 3, 20, 1)
    assert _is_in_c(z_XRV) == (torch.get_num_threads() == 1)


@pytest.mark.parametrize(("status", "error"), [(3, MemoryError), (4, ConfigError)])
def test_what_goes_wrong_is_said(status: int, error: type[Exception], monkeypatch: pytest.MonkeyPatch) -> None:
    """As an error of this project, or one that the command line has a line for."""

    def fails(shared: int) -> None:
        native_library._Shared.from_address(shared).status = status

    monkeypatch.setattr(native_library, "_functions", lambda name: (0, fails))
    monkeypatch.setattr(torch, "get_num_threads", lambda: 1)
    z_XRV, targets = drawn(1, 2, 12, 1)
    with pytest.raises(error, match=re.escape(native_library.FAULTS[status][1])):
        _logits_to_gradient_(z_XRV[:, :2], targets, 1.0, 0.0, torch.float32)

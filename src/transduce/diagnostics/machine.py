"""Diagnostics of PyTorch on this machine: threads, devices, and the accuracy of their kernels.

Shapes: B sentences, H heads, T positions, K d_k, N rows, D d_model.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import torch
from torch import Tensor

from transduce.config import InferencePrecision, TransformerConfig
from transduce.diagnostics.resources import available_cores
from transduce.findings.finding import Finding, counted, good, note, problem
from transduce.machine_limits import CGROUPS, PROC
from transduce.model import Transformer, fast_precision, for_inference, has_int8_products
from transduce.model.attention import dot_product_attention, fused_attention

__all__ = ["examine_devices", "examine_products", "examine_threads"]

GB = 1e9

# Maximum error relative to the largest entry: well above rounding errors.
TOLERANCE: dict[InferencePrecision, float] = {"fp32": 1e-4, "bf16": 5e-2, "int8": 5e-2}
DTYPES: dict[InferencePrecision, torch.dtype] = {"fp32": torch.float32, "bf16": torch.bfloat16}


def examine_threads(proc: Path = PROC, cgroups: Path = CGROUPS) -> Iterator[Finding]:
    """Check that torch has as many threads as this process has cores."""
    n_threads, n_cores = torch.get_num_threads(), available_cores(proc, cgroups)
    numbers = f"{counted(n_threads, 'thread')} on {counted(n_cores, 'core')}"
    setting = os.environ.get("OMP_NUM_THREADS")
    if n_threads > n_cores:
        why = "" if setting is None else f" (OMP_NUM_THREADS is {setting})"
        yield problem("threads", f"{numbers}{why}: they slow each other down; set OMP_NUM_THREADS={n_cores}")
    elif setting is not None and n_threads < n_cores:
        yield note("threads", f"{numbers}, since OMP_NUM_THREADS is {setting}; training would be faster with more")
    else:
        yield good("threads", numbers)


def examine_devices() -> Iterator[Finding]:
    """Report the devices, and the precisions in which their matrix products are fast."""
    int8 = "int8 kernels" if has_int8_products("cpu") else "no int8 kernels"
    bf16 = "fast bf16 kernels" if fast_precision("cpu") == "bf16" else "no fast bf16 kernels (use fp32)"
    yield good("processor", f"{bf16}, {int8}")
    if torch.cuda.is_available():
        for number in range(torch.cuda.device_count()):
            device = torch.cuda.get_device_properties(number)
            free, _ = torch.cuda.mem_get_info(number)
            kind = "bf16" if fast_precision(f"cuda:{number}") == "bf16" else "no bf16"
            yield good(
                f"GPU {number}",
                f"{device.name}, {device.total_memory / GB:.1f} GB of memory, {free / GB:.1f} free, {kind}",
            )
    elif (PROC / "driver" / "nvidia").exists() and torch.version.cuda is None:
        yield note(
            "GPUs",
            "there is an NVIDIA driver, but torch was built without CUDA; install a CUDA build to use a GPU",
        )
    else:
        build = "without CUDA" if torch.version.cuda is None else f"for CUDA {torch.version.cuda}"
        yield good("GPUs", f"none; torch was built {build}")


def examine_products() -> Iterator[Finding]:
    """Compare small matrix products and attention, forward and backward, with float64, on each device."""
    devices = ["cpu", *(f"cuda:{number}" for number in range(torch.cuda.device_count()))]
    for device in devices:
        errors: dict[InferencePrecision, float] = {}
        for precision, dtype in DTYPES.items():
            if device == "cpu" or precision == "fp32" or fast_precision(device) == "bf16":
                errors[precision] = _error_of_attention(device, dtype)
        for precision in TOLERANCE if device == "cpu" else ():
            if precision != "int8" or has_int8_products(device):
                errors[precision] = _max_error([errors.get(precision, 0.0), _error_of_inference(device, precision)])
        accuracy = ", ".join(f"{precision} to {error:.0e}" for precision, error in errors.items())
        wrong = [precision for precision, error in errors.items() if not error <= TOLERANCE[precision]]
        subject = f"numbers on {device}"
        if wrong:
            yield problem(
                subject,
                f"products and attention in {' and '.join(wrong)} are wrong: relative to float64, {accuracy}; use"
                " another build of torch, or another --device or precision",
            )
        else:
            yield good(subject, f"products and attention, forward and backward, agree with float64: {accuracy}")


def _error_of_attention(device: str, dtype: torch.dtype) -> float:
    """Return the maximum error of a matrix product, of both attention kernels and of their gradients."""
    generator = torch.Generator().manual_seed(1)
    # Queries, keys, values and the output's gradient, each (B, H, T, K).
    numbers = torch.randn(4, 2, 3, 48, 32, generator=generator, dtype=torch.float64).to(dtype)
    exact, inputs = numbers.double(), numbers.to(device)
    errors = [_error(inputs[0] @ inputs[1].mT, exact[0] @ exact[1].mT)]
    expected = _forward_backward(lambda q, k, v: dot_product_attention(q, k, v)[0], exact)
    for kernel in (lambda q, k, v: dot_product_attention(q, k, v)[0], fused_attention):
        errors += map(_error, _forward_backward(kernel, inputs), expected)
    return _max_error(errors)


def _forward_backward(kernel: Callable[[Tensor, Tensor, Tensor], Tensor], inputs: Tensor) -> tuple[Tensor, ...]:
    """Return a kernel's output and the gradients of queries, keys and values."""
    sources = [tensor.detach().clone().requires_grad_() for tensor in inputs[:3]]
    out = kernel(*sources)
    return (out.detach(), *torch.autograd.grad(out, sources, inputs[3]))


def _error_of_inference(device: str, precision: InferencePrecision) -> float:
    """Return the maximum error of the output projection with weights converted for inference."""
    config = TransformerConfig(
        n_encoder_layers=1, n_decoder_layers=1, d_model=64, d_ff=64, n_heads=1, src_vocab_size=96, tgt_vocab_size=96
    )
    with torch.random.fork_rng(devices=[]), torch.no_grad():
        torch.manual_seed(1)
        model = Transformer(config).to(device).eval()
        states_ND = torch.randn(24, config.d_model, device=device)
        logits = for_inference(model, precision).logits(states_ND)
        return _error(logits, states_ND.double() @ model.output_weight.double().mT)


def _max_error(errors: Sequence[float]) -> float:
    """Return the maximum, or NaN if there is one, which ``max`` would ignore."""
    return float(torch.tensor(errors, dtype=torch.float64).max())


def _error(actual: Tensor, expected: Tensor) -> float:
    """Return the maximum difference relative to the largest expected entry; NaN if there is one."""
    actual, expected = actual.detach().double().cpu(), expected.detach().double().cpu()
    return float((actual - expected).abs().max() / expected.abs().max())

"""The machine: threads, memory, disks, what processors can do, and whether they compute what they should."""

from __future__ import annotations

import math
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import torch
from torch import Tensor

from transduce.config import InferencePrecision, TransformerConfig
from transduce.corpora import cache_folder
from transduce.diagnostics.finding import Finding, counted, good, note, problem
from transduce.model import Transformer, fast_precision, for_inference, has_int8_products
from transduce.model.attention import attention, fused_attention
from transduce.training.machine_limits import CGROUPS, PROC, control_groups, free_memory, numbers_in

__all__ = ["cores_to_use", "examine_devices", "examine_disks", "examine_memory", "examine_products", "examine_threads"]

GB = 1e9
LITTLE_MEMORY, LITTLE_DISK = 1 * GB, 1 * GB  # a small model is trained with more, and so is a corpus unpacked

# The greatest error of a result, in parts of its greatest entry, that rounding explains with a good margin.
TOLERANCE: dict[InferencePrecision, float] = {"fp32": 1e-4, "bf16": 5e-2, "int8": 5e-2}
DTYPES: dict[InferencePrecision, torch.dtype] = {"fp32": torch.float32, "bf16": torch.bfloat16}


def examine_threads(proc: Path = PROC, cgroups: Path = CGROUPS) -> Iterator[Finding]:
    """As many as there are cores that this process may use, not more."""
    n_threads, n_cores = torch.get_num_threads(), cores_to_use(proc, cgroups)
    told = f"{counted(n_threads, 'thread')} on {counted(n_cores, 'core')}"
    wanted = os.environ.get("OMP_NUM_THREADS")
    if n_threads > n_cores:
        why = "" if wanted is None else f" (OMP_NUM_THREADS is {wanted})"
        yield problem("threads", f"{told}{why}: they wait for each other; set OMP_NUM_THREADS={n_cores}")
    elif wanted is not None and n_threads < n_cores:
        yield note("threads", f"{told}, since OMP_NUM_THREADS is {wanted}; training would be faster with more")
    else:
        yield good("threads", told)


def cores_to_use(proc: Path = PROC, cgroups: Path = CGROUPS) -> int:
    """The cores that this process is allowed, and a container's share of them, rounded up."""
    n_cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    for folder in control_groups(proc, cgroups, "cpu"):
        quota, period = [*numbers_in(folder / "cpu.max"), None, None][:2]
        if quota is None:  # version 1
            quota = next(numbers_in(folder / "cpu.cfs_quota_us"), None)
            period = next(numbers_in(folder / "cpu.cfs_period_us"), None)
        if quota is not None and period and quota > 0:
            n_cores = min(n_cores, max(1, math.ceil(quota / period)))
    return n_cores


def examine_memory(
    proc: Path = PROC, cgroups: Path = CGROUPS, limits: Mapping[str, int] | None = None
) -> Iterator[Finding]:
    """What the machine has free, or a container or this process may still take."""
    free = free_memory(proc, cgroups, limits)
    if free is None:
        yield note("memory", "how much is free, this system does not tell")
        return
    whose = {"": "", "container": "this container may use", "process": "this process may use (see: ulimit -a)"}[free.of]
    told = f"{free.n_bytes / GB:.1f} GB free"
    if free.limit is not None:
        told += f" of the {free.limit / GB:.1f} GB that {whose}"
    if free.n_bytes < LITTLE_MEMORY:
        yield problem("memory", f"{told}: too little to train; end other programs, or take a larger machine")
    else:
        yield good("memory", told)


def examine_disks() -> Iterator[Finding]:
    """Room and permission where runs, corpora and temporary files go."""
    places = {
        "disk of runs": (Path.cwd(), "name another place with --out"),
        "disk of corpora": (cache_folder(), "set XDG_CACHE_HOME, or name a data folder with --data and --out"),
        "disk of temporary files": (Path(tempfile.gettempdir()), "set TMPDIR"),
    }
    for subject, (wanted, help) in places.items():
        folder = next(path for path in (wanted, *wanted.parents) if path.exists())
        free = shutil.disk_usage(folder).free
        told = f"{free / GB:,.1f} GB free in {wanted}"
        if not os.access(folder, os.W_OK | os.X_OK):
            yield note(subject, f"{folder} cannot be written to by this user; {help}")
        elif free < LITTLE_DISK:
            yield problem(subject, f"{told}: too little for checkpoints and corpora; free some, or {help}")
        else:
            yield good(subject, told)


def examine_devices() -> Iterator[Finding]:
    """What can compute, and in which precisions products are fast."""
    int8 = "products of int8" if has_int8_products("cpu") else "no products of int8"
    bf16 = "fast products of bf16" if fast_precision("cpu") == "bf16" else "no fast products of bf16 (use fp32)"
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
            "there is a driver of NVIDIA's, but this torch is a build without CUDA; install one with it to use a GPU",
        )
    else:
        build = "without CUDA" if torch.version.cuda is None else f"for CUDA {torch.version.cuda}"
        yield good("GPUs", f"none; torch is a build {build}")


def examine_products() -> Iterator[Finding]:
    """Small products and attention, there and back, against the same in float64, on each device."""
    devices = ["cpu", *(f"cuda:{number}" for number in range(torch.cuda.device_count()))]
    for device in devices:
        errors: dict[InferencePrecision, float] = {}
        for precision, dtype in DTYPES.items():
            if device == "cpu" or precision == "fp32" or fast_precision(device) == "bf16":
                errors[precision] = _error_of_attention(device, dtype)
        for precision in TOLERANCE if device == "cpu" else ():
            if precision != "int8" or has_int8_products(device):
                errors[precision] = _greatest([errors.get(precision, 0.0), _error_of_translator(device, precision)])
        told = ", ".join(f"{precision} to {error:.0e}" for precision, error in errors.items())
        wrong = [precision for precision, error in errors.items() if not error <= TOLERANCE[precision]]
        subject = f"numbers on {device}"
        if wrong:
            yield problem(
                subject,
                f"products and attention in {' and '.join(wrong)} are wrong: against float64, {told}; use another build"
                " of torch, or another --device or precision",
            )
        else:
            yield good(subject, f"products and attention, forward and backward, are those of float64: {told}")


def _error_of_attention(device: str, dtype: torch.dtype) -> float:
    """The greatest error of a product and of attention by both kernels, and of their gradients."""
    generator = torch.Generator().manual_seed(1)
    # Queries, keys, values, and the gradient of what comes out; each is (B, H, T, K).
    numbers = torch.randn(4, 2, 3, 48, 32, generator=generator, dtype=torch.float64).to(dtype)
    exact, inputs = numbers.double(), numbers.to(device)
    errors = [_error(inputs[0] @ inputs[1].mT, exact[0] @ exact[1].mT)]
    wanted = _there_and_back(lambda q, k, v: attention(q, k, v)[0], exact)
    for kernel in (lambda q, k, v: attention(q, k, v)[0], fused_attention):
        errors += map(_error, _there_and_back(kernel, inputs), wanted)
    return _greatest(errors)


def _there_and_back(kernel: Callable[[Tensor, Tensor, Tensor], Tensor], inputs: Tensor) -> tuple[Tensor, ...]:
    """What a kernel makes of queries, keys and values, and their gradients."""
    sources = [tensor.detach().clone().requires_grad_() for tensor in inputs[:3]]
    out = kernel(*sources)
    return (out.detach(), *torch.autograd.grad(out, sources, inputs[3]))


def _error_of_translator(device: str, precision: InferencePrecision) -> float:
    """The greatest error of scores as a translator computes them, with weights in its own order."""
    config = TransformerConfig(
        n_encoder_layers=1, n_decoder_layers=1, d_model=64, d_ff=64, n_heads=1, src_vocab_size=96, tgt_vocab_size=96
    )
    with torch.random.fork_rng(devices=[]), torch.no_grad():
        torch.manual_seed(1)
        model = Transformer(config).to(device).eval()
        states_ND = torch.randn(24, config.d_model, device=device)
        got = for_inference(model, precision).logits(states_ND)
        return _error(got, states_ND.double() @ model.output_weight.double().mT)


def _greatest(errors: Sequence[float]) -> float:
    """NaN where there is one, which ``max`` would overlook."""
    return float(torch.tensor(errors, dtype=torch.float64).max())


def _error(got: Tensor, wanted: Tensor) -> float:
    """The greatest difference, in parts of the greatest entry; NaN where there is one."""
    got, wanted = got.detach().double().cpu(), wanted.detach().double().cpu()
    return float((got - wanted).abs().max() / wanted.abs().max())

"""What a report says of the machine that it ran on."""

from __future__ import annotations

import os
import platform
import time
from statistics import median

import torch

from transduce.config import Precision

__all__ = ["machine_description", "sustained_flops"]

ENOUGH_S = 3.0


def sustained_flops(device: torch.device, precision: Precision) -> float:
    """Return the FLOP/s of a large matrix product: the median of seven, after one warm-up; of fewer if it is slow."""
    size = 8192 if device.type == "cuda" else 1536
    dtype = torch.bfloat16 if precision == "bf16" else torch.float32
    left, right = (torch.randn(size, size, device=device, dtype=dtype) for _ in range(2))
    seconds = []
    for _ in range(8):
        started = time.perf_counter()
        (left @ right)[0, 0].item()  # waits for the device
        seconds.append(time.perf_counter() - started)
        if sum(seconds) > ENOUGH_S:
            break
    return 2 * size**3 / median(seconds[1:] or seconds)


def machine_description(device: torch.device) -> str:
    """Describe a device: a GPU by its name, a CPU by its model and the number of threads in use."""
    if device.type == "cuda":
        return torch.cuda.get_device_name(device)
    model = platform.processor() or platform.machine()
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as lines:
            model = next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), model)
    except OSError:
        pass
    return f"{model}, {torch.get_num_threads()} of {os.cpu_count()} threads"

"""Time and memory of self-attention over one long sequence, restricted and full.

    python benchmarks/long_sequences.py [--json] [--lengths 4096 8192 16384 32768 65536] [--r 65] [--rounds 3]

A decoder-only model of a few layers reads one sequence of n random tokens and computes a gradient, as in training, and
in a second setting reads them as a prompt for cached decoding, then writes some tokens. Each length, attention and
setting has a process of its own, whose peak memory is that of the system's counter, less that of the same process
before the sequence. Times are medians over the rounds. Full attention uses the fused kernel, which does not store its
weights, up to ``--full-up-to`` tokens, since its time is quadratic.

``time_exponent`` and ``memory_exponent`` are the slopes of a straight line through the logarithms: 1 is linear growth.
They leave out lengths above 32,768, as the claim does.
"""

from __future__ import annotations

import argparse
import json
import math
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from statistics import median
from typing import Any

import torch
from machine import machine, peak_memory_mb

from transduce.config import LanguageModelConfig
from transduce.model import TransformerLM

SEED = 1
N_WRITTEN = 8  # tokens, after the prompt
MAX_FITTED = 32_768
SETTINGS = ("training", "decoding")


def main() -> None:
    """Measure all and print; with ``--one``, be the process of one measurement."""
    parser = argparse.ArgumentParser(description="Measure self-attention over long sequences.")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--lengths", type=int, nargs="*", default=[4096, 8192, 16_384, 32_768, 65_536])
    parser.add_argument("--r", type=int, default=65, help="positions of a neighbourhood")
    parser.add_argument("--full-up-to", type=int, default=16_384, help="longest sequence with full attention")
    parser.add_argument("--layers", type=int, default=4)
    parser.add_argument("--d-model", type=int, default=256)
    parser.add_argument("--vocab-size", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--one", nargs=3, metavar=("SETTING", "ATTENTION", "LENGTH"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.one is not None:
        setting, attention, length = arguments.one
        print(json.dumps(measured(arguments, setting, attention, int(length))))
        return
    rows = [
        one_process(setting, attention, length)
        for setting in SETTINGS
        for attention in ("restricted", "full")
        for length in arguments.lengths
        if attention == "restricted" or length <= arguments.full_up_to
    ]
    result = {"r": arguments.r, "rows": rows, "exponents": exponents(rows), "machine": machine()}
    print(json.dumps(result) if arguments.json else as_text(result))


def one_process(setting: str, attention: str, length: int) -> dict[str, Any]:
    """Measure one length in a process of its own."""
    command = [sys.executable, *sys.argv, "--one", setting, attention, str(length)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{setting}, {attention}, {length:,} tokens: {done.stderr[-2000:]}")
    print(f"{setting}, {attention}: {length:,} tokens", file=sys.stderr)
    return dict(json.loads(done.stdout))


def measured(arguments: argparse.Namespace, setting: str, attention: str, length: int) -> dict[str, Any]:
    """Return time and memory of one length."""
    torch.manual_seed(SEED)
    config = LanguageModelConfig(
        n_layers=arguments.layers, d_model=arguments.d_model, d_ff=4 * arguments.d_model,
        n_heads=max(1, arguments.d_model // 64), d_k=64, d_v=64, p_drop=0.0, vocab_size=arguments.vocab_size,
        n_positions=length, attention=attention, neighbourhood=arguments.r,
    )  # fmt: skip
    model = TransformerLM.from_config(config)
    ids_1T = torch.randint(4, arguments.vocab_size, (1, length))
    run = train_once if setting == "training" else decode_once
    run(model, ids_1T[:, : min(length, 512)])  # warm-up
    before_mb = peak_memory_mb()
    times = [seconds(run, model, ids_1T) for _ in range(arguments.rounds)]
    memory_mb = peak_memory_mb() - before_mb
    return {
        "setting": setting, "attention": attention, "n": length, "time_s": median(times),
        "tokens_per_s": length / median(times), "memory_mb": memory_mb,
    }  # fmt: skip


def seconds(run: Callable[[TransformerLM, torch.Tensor], None], model: TransformerLM, ids_1T: torch.Tensor) -> float:
    """Return the time of one call."""
    start = time.perf_counter()
    run(model, ids_1T)
    return time.perf_counter() - start


def train_once(model: TransformerLM, ids_1T: torch.Tensor) -> None:
    """Compute the gradient of a sequence."""
    model.zero_grad(set_to_none=True)
    states_ND = model(ids_1T)
    model.output.loss(states_ND[:-1], ids_1T[0, 1:]).loss_nats.backward()


@torch.no_grad()
def decode_once(model: TransformerLM, ids_1T: torch.Tensor) -> None:
    """Read a prompt, of which only the last logits are needed, and write some tokens."""
    state = model.start(1)
    x_NTD, positions = model.source.extend(ids_1T, state.positions)
    states_NTD, state = model.decoder.extend(x_NTD, state, positions)
    last_N = model.output.logits(states_NTD[:, -1]).argmax(dim=1)
    for _ in range(N_WRITTEN):
        logits_NV, state = model.step(last_N, state)
        last_N = logits_NV.argmax(dim=1)


def exponents(rows: Sequence[dict[str, Any]]) -> dict[str, dict[str, float]]:
    """Return the exponents of growth of each setting and attention that has two lengths or more."""
    found = {}
    for setting in SETTINGS:
        for attention in ("restricted", "full"):
            own = [row for row in rows if (row["setting"], row["attention"]) == (setting, attention)]
            own = [row for row in own if row["n"] <= MAX_FITTED and row["memory_mb"] > 0]
            if len(own) > 1:
                found[f"{setting}, {attention}"] = {
                    f"{what}_exponent": slope([row["n"] for row in own], [row[key] for row in own])
                    for what, key in (("time", "time_s"), ("memory", "memory_mb"))
                }
    return found


def slope(x: Sequence[float], y: Sequence[float]) -> float:
    """Return the slope of the least-squares line through the logarithms.

    >>> round(slope([1, 2, 4], [3, 12, 48]), 6)
    2.0
    """
    log_x, log_y = [math.log(each) for each in x], [math.log(each) for each in y]
    mean_x, mean_y = sum(log_x) / len(x), sum(log_y) / len(y)
    products = sum((a - mean_x) * (b - mean_y) for a, b in zip(log_x, log_y, strict=True))
    return products / sum((a - mean_x) ** 2 for a in log_x)


def as_text(result: dict[str, Any]) -> str:
    """Return a Markdown table and the exponents."""
    lines = ["| setting | attention | n | s | tokens a second | MB |", "| --- | --- | --- | --- | --- | --- |"]
    lines += [
        f"| {row['setting']} | {row['attention']} | {row['n']:,} | {row['time_s']:.2f} | {row['tokens_per_s']:,.0f}"
        f" | {row['memory_mb']:,.0f} |"
        for row in result["rows"]
    ]
    lines += [
        f"{name}: time n^{each['time_exponent']:.2f}, memory n^{each['memory_exponent']:.2f}"
        for name, each in result["exponents"].items()
    ]
    return "\n".join(lines)


if __name__ == "__main__":
    main()

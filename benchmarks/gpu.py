"""Training and decoding speed on one GPU: base and big, in bf16, on synthetic token data as in ``train.py``.

    python benchmarks/gpu.py [--json] [--sizes base big] [--measure training decoding] [--minutes 4] [--device cuda]

Training uses the trainer of ``transduce train`` on batches of 25,000 tokens on each side (section 5.1), without
compilation ("eager") and with every layer compiled ("compiled"). If such a batch does not fit into memory, it is halved
until it does, and the result says so. Rates are real target tokens per second, without the first updates, in which
layers are compiled; "graphs_late" counts compilations after them, which would distort the rate. "MFU" is the model's
FLOP rate divided by the GPU's measured rate of large bf16 matrix products. Decoding is beam search with beam 4 on
batches of 256 sentences, ``--precision bf16``; its rate counts the tokens of the translations.

Shapes: B sentences, S source positions.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from pathlib import Path
from random import Random
from typing import Any

import torch
from batches import MAX_LENGTH_WITH_EOS, open_batches, write_token_store
from decoders import make_model, make_sources
from machine import machine, matrix_rate, peak_memory_mb
from systems import MICRO
from torch._dynamo.utils import counters

from transduce.config import SearchConfig, TrainingConfig, TransformerConfig
from transduce.data import pad_rows
from transduce.errors import TrainingError
from transduce.inference.run_search import run_search
from transduce.model import Transformer, cost_of, for_inference
from transduce.recipes import preset
from transduce.tasks.objective import PairObjective
from transduce.training import Trainer, inverse_sqrt_lr

VOCABULARY = 37_000
TOKENS = {"base": 25_000, "big": 25_000, "micro": 200}  # per batch; micro is for tests
N_BATCHES = 64
N_UNCOUNTED = 20  # warm-up updates, in which layers are compiled and memory is allocated
MEASUREMENTS = ("training", "decoding")
NEVER = 10**9
BEAM_SIZE, N_SENTENCES, N_TOKENS = 4, 256, 32


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="Measure training and decoding speed on one GPU.")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--sizes", nargs="+", choices=TOKENS, default=["base", "big"])
    parser.add_argument("--measure", nargs="+", choices=MEASUREMENTS, default=MEASUREMENTS)
    parser.add_argument("--minutes", type=float, default=4.0, help="total training time, without warm-up updates")
    parser.add_argument("--device", default="cuda")
    arguments = parser.parse_args()
    device = torch.device(arguments.device)
    rate = matrix_rate("bf16", device)
    result: dict[str, Any] = {"matrix_gflops_per_s": round(rate / 1e9)}
    seconds = 60 * arguments.minutes / len(arguments.sizes) / 2
    with tempfile.TemporaryDirectory() as folder:
        for size in arguments.sizes:
            config = MICRO if size == "micro" else preset(size).model.with_vocabulary(VOCABULARY, VOCABULARY)
            result[size] = {}
            if "training" in arguments.measure:
                result[size]["training"] = {
                    "compiled" if is_compiled else "eager": train_within_memory(
                        config,
                        Path(folder) / f"{size}-{is_compiled}",
                        device,
                        max_tokens=TOKENS[size],
                        seconds=seconds,
                        is_compiled=is_compiled,
                        rate=rate,
                    )
                    for is_compiled in ((False, True) if device.type == "cuda" else (False,))
                }
            if "decoding" in arguments.measure:
                result[size]["decoding_batch256_beam4"] = decode(config, device)
    result["machine"] = machine() | {"device": _device_name(device)}
    print(json.dumps(result) if arguments.json else as_text(result))


def train_within_memory(
    config: TransformerConfig, folder: Path, device: torch.device, *, max_tokens: int, **options: Any
) -> dict[str, float]:
    """``train`` with the largest batches that fit into memory: ``max_tokens``, or a half, a quarter, ... of it."""
    while True:
        store = folder / str(max_tokens)
        write_token_store(store, vocab_size=config.tgt_vocab_size, n_tgt_tokens=N_BATCHES * max_tokens)
        try:
            return train(config, store, device, max_tokens=max_tokens, **options)
        except TrainingError as error:
            if "memory" not in str(error) or max_tokens // 2 < MAX_LENGTH_WITH_EOS:
                raise
            echo(f"{max_tokens:,} tokens per batch: {error}")
        max_tokens //= 2


def train(
    config: TransformerConfig,
    store: Path,
    device: torch.device,
    *,
    max_tokens: int,
    seconds: float,
    is_compiled: bool,
    rate: float,
) -> dict[str, float]:
    """Return tokens per second, MFU and peak memory of some updates of the trainer."""
    training = TrainingConfig(
        precision="bf16",
        max_tokens_per_batch=max_tokens,
        max_updates=NEVER,
        validate_every_updates=NEVER,
        checkpoint_every_updates=NEVER,
        log_every_updates=NEVER,
    )
    torch.manual_seed(1)
    if device.type == "cuda":
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats(device)
    torch._dynamo.reset()
    counters.clear()
    model = Transformer(config).to(device)
    if is_compiled:
        for layer in [*model.encoder, *model.decoder]:
            layer.compile(dynamic=True)
    start, end, tokens_before, graphs_before = 0.0, 0.0, 0, 0

    def should_stop() -> bool:
        nonlocal start, end, tokens_before, graphs_before
        if trainer.state.update == N_UNCOUNTED:
            _wait(device)
            start, tokens_before = time.perf_counter(), trainer.state.tgt_tokens
            graphs_before = counters["stats"]["unique_graphs"]
        end = time.perf_counter()  # before the final checkpoint
        return trainer.state.update > N_UNCOUNTED and end > start + seconds

    trainer = Trainer(
        model=model,
        objective=PairObjective(model, training),
        batches=open_batches(store, max_tokens=max_tokens, device=device),
        learning_rate=lambda step: inverse_sqrt_lr(step, d_model=config.d_model, warmup_steps=training.warmup_steps),
        config=training,
        checkpoints=store.with_name(f"{store.name}-{is_compiled}"),
        should_stop=should_stop,
    )
    trainer.run()
    tokens_per_s = (trainer.state.tgt_tokens - tokens_before) / (end - start)
    echo(f"{'compiled' if is_compiled else 'eager'}: {tokens_per_s:,.0f} target tokens a second")
    return {
        "max_tokens_per_batch": max_tokens,
        "tokens_per_s": round(tokens_per_s),
        "mfu": round(tokens_per_s * cost_of(config).flops_per_token / rate, 3),
        "updates": trainer.state.update - N_UNCOUNTED,
        "graphs": graphs_before,
        "graphs_late": counters["stats"]["unique_graphs"] - graphs_before,
        "peak_memory_mb": _peak_memory_mb(device),
    }


def decode(config: TransformerConfig, device: torch.device) -> dict[str, float]:
    """Return the tokens of translations per second, in the second of two passes."""
    if device.type == "cuda":
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats(device)
    model = for_inference(make_model(config).to(device), "bf16")
    sources = make_sources(N_SENTENCES, N_TOKENS, vocab_size=config.src_vocab_size, random=Random(1))
    src_BS = pad_rows(sources).to(device)
    max_lengths_B = torch.full((N_SENTENCES,), N_TOKENS, device=device)
    elapsed_s = 0.0
    with torch.no_grad():
        for _ in range(2):
            start = time.perf_counter()
            run_search(model, src_BS, max_lengths_B, SearchConfig(beam_size=BEAM_SIZE))
            _wait(device)
            elapsed_s = time.perf_counter() - start
    tokens_per_s = N_SENTENCES * N_TOKENS / elapsed_s
    echo(f"decoding: {tokens_per_s:,.0f} tokens a second")
    return {"tokens_per_s": round(tokens_per_s), "peak_memory_mb": _peak_memory_mb(device)}


def as_text(result: dict[str, Any]) -> str:
    """Format the result as text."""
    about = result["machine"]
    lines = [
        f"{about['device']}, torch {about['versions']['torch']}, {result['matrix_gflops_per_s']:,} GFLOP/s in bf16"
    ]
    for size in TOKENS.keys() & result.keys():
        for kind, of_kind in result[size].get("training", {}).items():
            lines.append(
                f"{size}, training, {kind}: {of_kind['tokens_per_s']:,} target tokens a second, "
                f"MFU {of_kind['mfu']:.1%}, "
                f"{of_kind['peak_memory_mb']:,} MB, {of_kind['updates']} updates of "
                f"{of_kind['max_tokens_per_batch']:,} tokens"
            )
        if (decoding := result[size].get("decoding_batch256_beam4")) is not None:
            lines.append(
                f"{size}, decoding: {decoding['tokens_per_s']:,} tokens a second, {decoding['peak_memory_mb']:,} MB"
            )
    return "\n".join(lines)


def echo(line: str) -> None:
    """Print progress on stderr."""
    print(line, file=sys.stderr, flush=True)


def _peak_memory_mb(device: torch.device) -> int:
    """Return the peak of tensors on a GPU since the last reset; on a CPU, of the process."""
    return round(torch.cuda.max_memory_allocated(device) / 1e6 if device.type == "cuda" else peak_memory_mb())


def _wait(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def _device_name(device: torch.device) -> str:
    return torch.cuda.get_device_name(device) if device.type == "cuda" else str(device)


if __name__ == "__main__":
    main()

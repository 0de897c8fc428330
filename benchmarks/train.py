"""Training speed, compared with transformers' Marian, x-transformers and torch.nn.Transformer.

    python benchmarks/train.py --size base [--json] [--precision bf16|fp32|both] [--rounds 8] [--minutes 9]

Every system trains on the same batches of synthetic token data (``batches.py``) in its own process (``workers.py``).
In each round every system in turn does a few updates while the others sleep; each round starts with another system.
Each system does three warm-up updates before the rounds, and two before each turn. Rates are real target tokens per
second, EOS included, as medians over the rounds with their range; memory is the peak of the process.

Ours is the trainer of ``transduce train``. Each peer is measured twice: with its defaults (attention, torch.optim.Adam
and memory allocator), and as "-tuned" with our settings (the allocator keeps freed memory, fused Adam) and the fastest
of its attention implementations, chosen by a short measurement. The table is followed by the remaining differences
between the models (``peers.py``). "MFU" is the model's FLOP rate divided by the machine's rate of matrix products of
the same precision, measured in this process in the same rounds.

By default the base model is measured in bf16 only, within ten minutes on two cores; its seven processes together need
about 14 GB. OpenNMT-py 3.5 (torch below 2.3) and JoeyNMT 2.3 (protobuf below 3.21) cannot be installed beside this
package.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import get_args

import torch
from batches import MAX_LENGTH_WITH_EOS, write_token_store
from machine import matrix_rate
from report import Measured, as_json, as_text
from systems import CHOICES, MICRO, NAMES, OURS, TUNED, Setup
from workers import Worker, WorkerError

from transduce.config import Precision, TrainingConfig, TransformerConfig
from transduce.recipes import preset

MODULES = {"marian": "transformers", "x-transformers": "x_transformers"}
N_BATCHES = 64  # of the token data; further updates repeat them
NEVER = 10**9


@dataclass(frozen=True, slots=True)
class Size:
    """A model and its measurement settings."""

    model: TransformerConfig
    precisions: tuple[Precision, ...]  # that fit into ten minutes
    max_tokens_per_batch: int
    updates_per_round: int


SIZES = {
    "base": Size(preset("base").model.with_vocabulary(37_000, 37_000), ("bf16",), 2100, 2),
    "small": Size(preset("small").model.with_vocabulary(8000, 8000), ("bf16", "fp32"), 4200, 4),
    "micro": Size(MICRO, ("fp32",), 200, 1),  # for tests
}


def main() -> None:
    """Measure and print."""
    arguments = _arguments()
    size = SIZES[arguments.size]
    tokens = arguments.tokens or size.max_tokens_per_batch
    n_updates = arguments.updates_per_round or size.updates_per_round
    torch.set_num_threads(arguments.threads)
    precisions: tuple[Precision, ...] = size.precisions
    if arguments.precision is not None:
        precisions = ("bf16", "fp32") if arguments.precision == "both" else (arguments.precision,)
    start = time.monotonic()
    measured: dict[Precision, Measured] = {}
    try:
        with tempfile.TemporaryDirectory() as folder:
            store = Path(folder) / "store"
            write_token_store(store, vocab_size=size.model.tgt_vocab_size, n_tgt_tokens=N_BATCHES * tokens)
            for number, precision in enumerate(precisions, start=1):
                training = endless_training(precision, max_tokens_per_batch=tokens)
                setups = make_setups(arguments.systems, size.model, training, store, n_threads=arguments.threads)
                deadline = start + 60 * arguments.minutes * number / len(precisions)
                measured[precision] = measure(setups, n_updates, n_rounds=arguments.rounds, deadline=deadline)
    except WorkerError as error:
        sys.exit(str(error))
    about = {"size": arguments.size, "max_tokens_per_batch": tokens, "updates_per_round": n_updates}
    result = about | as_json(measured, size.model)
    print(json.dumps(result) if arguments.json else as_text(result))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Measure training speed and compare it with other libraries.")
    parser.add_argument("--size", choices=SIZES, default="base")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--precision", choices=[*get_args(Precision), "both"], help="default: by size")
    parser.add_argument("--rounds", type=int, default=8, help="maximum number of rounds")
    parser.add_argument("--minutes", type=float, default=9.0, help="time limit, which reduces the number of rounds")
    parser.add_argument("--updates-per-round", type=int, help="updates of each system per round; default: by size")
    parser.add_argument("--tokens", type=int, help="batch size: rows x longest row on each side; default: by size")
    parser.add_argument("--systems", nargs="+", choices=NAMES, default=NAMES, metavar="SYSTEM", help=", ".join(NAMES))
    parser.add_argument("--threads", type=int, default=2)
    arguments = parser.parse_args()
    for peer, module in MODULES.items():
        if importlib.util.find_spec(module) is None and any(name.startswith(peer) for name in arguments.systems):
            parser.error(f'{peer} is not installed: pip install -e ".[bench]", or choose other --systems')
    return arguments


def endless_training(precision: Precision, *, max_tokens_per_batch: int) -> TrainingConfig:
    """Return the paper's training settings, without end, validation and checkpoints."""
    return TrainingConfig(
        precision=precision,
        max_tokens_per_batch=max_tokens_per_batch,
        max_updates=NEVER,
        validate_every_updates=NEVER,
        checkpoint_every_updates=NEVER,
    )


def make_setups(
    names: Sequence[str], model: TransformerConfig, training: TrainingConfig, store: Path, *, n_threads: int
) -> list[Setup]:
    """Return the setup of each worker; the attention of tuned peers is chosen later."""
    return [
        Setup(
            system=name.removesuffix("-tuned"),
            is_tuned=name == OURS or name in TUNED,
            attention=CHOICES[name.removesuffix("-tuned")][0],
            model=model,
            training=training,
            store=store,
            n_threads=n_threads,
        )
        for name in names
    ]


def measure(setups: Sequence[Setup], n_updates: int, *, n_rounds: int, deadline: float) -> Measured:
    """Measure all systems in turn, for ``n_rounds`` rounds or until the deadline."""
    setups = [with_faster_attention(setup) if setup.is_tuned else setup for setup in setups]
    result = Measured({setup.name: [] for setup in setups}, attention={setup.name: setup.attention for setup in setups})
    with ExitStack() as stack:
        workers = warm_workers(setups, stack)
        result.n_parameters = {worker.setup.name: worker.n_parameters for worker in workers}
        for number in range(n_rounds):
            round_started = time.monotonic()
            first = number % len(workers)
            for worker in workers[first:] + workers[:first]:
                result.matrix_flops_per_s.append(matrix_rate(worker.setup.training.precision))
                turn = worker.train(n_updates)
                result.tokens_per_s[worker.setup.name].append(turn.tokens_per_s)
                result.peak_memory_mb[worker.setup.name] = turn.peak_memory_mb
            now = time.monotonic()
            echo(
                f"{setups[0].training.precision}: round {number + 1} of at most {n_rounds}, {now - round_started:.0f} s"
            )
            if now + (now - round_started) > deadline:
                break
    return result


def with_faster_attention(setup: Setup) -> Setup:
    """Return the setup with the fastest attention, measured in two rounds of one update with smaller batches."""
    small = max(setup.training.max_tokens_per_batch // 4, MAX_LENGTH_WITH_EOS)
    training = setup.training.model_copy(update={"max_tokens_per_batch": small})
    choices = [replace(setup, training=training, attention=attention) for attention in CHOICES[setup.system]]
    if len(choices) < 2:
        return setup
    seconds = dict.fromkeys(choices, 0.0)
    with ExitStack() as stack:
        workers = warm_workers(choices, stack)
        for worker in [*workers, *reversed(workers)]:
            seconds[worker.setup] += worker.train(1).seconds
    attention = min(seconds, key=seconds.__getitem__).attention
    echo(f"{setup.training.precision}: {setup.name} with {attention} attention")
    return replace(setup, attention=attention)


def warm_workers(setups: Sequence[Setup], stack: ExitStack) -> list[Worker]:
    """Return a worker for each setup; all are built concurrently, then each does its warm-up updates."""
    workers = [stack.enter_context(Worker(setup)) for setup in setups]
    for worker in workers:
        echo(f"{worker.setup.training.precision}: {worker.setup.name}, {worker.n_parameters:,} parameters")
    for worker in workers:
        worker.train(1)
    return workers


def echo(line: str) -> None:
    """Print progress on stderr."""
    print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()

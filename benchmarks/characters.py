"""Training speed of a small causal language model over characters, beside the plain loop that such models have.

    python benchmarks/characters.py TEXT [--rounds 5] [--updates 200] [--threads N] [--precision bf16 fp32] [--json]

Both train the CPU setting of nanoGPT: 4 layers, 4 heads, width 128, segments of 64 characters, batches of 12. Ours is
the trainer of ``transduce train`` with ``lm-characters``, without validation and checkpoints. The plain
loop is written here for the comparison: torch modules, random segments of one array, AdamW, clipping; in fp32, as
nanoGPT runs on a CPU, and in bf16 by autocast. Each round starts a new process for each system, in turn; a rate is the
median over the updates after the first quarter.

Shapes: B segments, T positions, D width, H heads, V vocabulary.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from machine import machine
from rates import ratio, summary, table
from torch import Tensor, nn

from transduce.cli.machine import keep_freed_memory
from transduce.files import read_lines
from transduce.model import make_model
from transduce.recipes import read_recipe
from transduce.tasks import open_prepared, prepare
from transduce.tasks.registry import task_of
from transduce.training import Trainer, learning_rate

RECIPE = Path("lm-characters")
OURS, PLAIN = "transduce", "plain loop"
N_LAYERS, N_HEADS, WIDTH, BLOCK, BATCH = 4, 4, 128, 64, 12
UNIT = "tokens_per_s"


class Block(nn.Module):
    """A pre-norm layer without biases."""

    def __init__(self) -> None:
        super().__init__()
        self.norms = nn.ModuleList(nn.LayerNorm(WIDTH, bias=False) for _ in range(2))
        self.w_qkv, self.w_o = nn.Linear(WIDTH, 3 * WIDTH, bias=False), nn.Linear(WIDTH, WIDTH, bias=False)
        self.w_1, self.w_2 = nn.Linear(WIDTH, 4 * WIDTH, bias=False), nn.Linear(4 * WIDTH, WIDTH, bias=False)

    def forward(self, x_BTD: Tensor) -> Tensor:
        """Attention and the feed-forward network."""
        q, k, v = (
            part.unflatten(-1, (N_HEADS, -1)).transpose(1, 2)
            for part in self.w_qkv(self.norms[0](x_BTD)).split(WIDTH, dim=-1)
        )
        context_BHTK = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x_BTD = x_BTD + self.w_o(context_BHTK.transpose(1, 2).flatten(2))
        return x_BTD + self.w_2(F.gelu(self.w_1(self.norms[1](x_BTD))))


class PlainModel(nn.Module):
    """A decoder-only model with learned positions and one matrix for embedding and output."""

    def __init__(self, vocab_size: int) -> None:
        super().__init__()
        self.tokens, self.positions = nn.Embedding(vocab_size, WIDTH), nn.Embedding(BLOCK, WIDTH)
        self.blocks = nn.Sequential(*(Block() for _ in range(N_LAYERS)))
        self.norm = nn.LayerNorm(WIDTH, bias=False)

    def forward(self, ids_BT: Tensor) -> Tensor:
        """Return the logits, (B, T, V)."""
        x_BTD = self.tokens(ids_BT) + self.positions(torch.arange(ids_BT.shape[1]))
        return F.linear(self.norm(self.blocks(x_BTD)), self.tokens.weight)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("text", type=Path, help="a file of plain text")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--updates", type=int, default=200, help="of each round")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--precision", nargs="+", choices=["fp32", "bf16"], default=["fp32", "bf16"])
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.worker:
        print(json.dumps(measure(**json.loads(arguments.worker))))
        return
    rates: dict[str, list[float]] = {}
    with tempfile.TemporaryDirectory() as folder:
        store = Path(folder) / "store"
        prepare(read_recipe(RECIPE, own_text(arguments.text)).data, store)
        systems = [(name, precision) for precision in arguments.precision for name in (OURS, PLAIN)]
        for number in range(arguments.rounds):
            for name, precision in systems[:: -1 if number % 2 else 1]:
                task = {
                    "name": name, "precision": precision, "text": str(arguments.text), "store": str(store),
                    "n_updates": arguments.updates, "n_threads": arguments.threads,
                }  # fmt: skip
                command = [sys.executable, __file__, str(arguments.text), "--worker", json.dumps(task)]
                done = subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True)
                rates.setdefault(f"{name} {precision}", []).append(json.loads(done.stdout))
            print(f"round {number + 1} of {arguments.rounds}", file=sys.stderr)
    ours, plain = ([each for each in rates if each.startswith(name)] for name in (OURS, PLAIN))
    quotient = ratio(rates, ours, plain)
    if arguments.json:
        systems_json = {name: summary(each, UNIT) for name, each in rates.items()}
        print(json.dumps({"systems": systems_json, "ratio": quotient, "machine": machine()}))
        return
    about: dict[str, Any] = machine()
    print(f"{about['cpu']}, {arguments.threads} threads, torch {about['versions']['torch']}")
    print(table("Training a small model over characters", rates, UNIT))
    print(f"  ours relative to the plain loop, each in its faster precision: {quotient:.2f} x tokens per second")


def own_text(text: Path) -> list[str]:
    """Return the settings that read a file of text."""
    path = json.dumps(str(text.resolve()))
    return ["data.corpus=files", f"data.train_text={path}", f"data.dev_text={path}"]


def measure(*, name: str, precision: str, text: str, store: str, n_updates: int, n_threads: int) -> float:
    """Train one system; return its tokens per second."""
    torch.set_num_threads(n_threads)
    torch.manual_seed(1)
    keep_freed_memory()
    ends: list[tuple[float, int]] = []  # time and tokens so far, before each update
    if name == OURS:
        train_ours(Path(text), Path(store), precision, n_updates, lambda n: ends.append((time.perf_counter(), n)))
    else:
        train_plain(Path(text), precision, n_updates, lambda n: ends.append((time.perf_counter(), n)))
    later = ends[len(ends) // 4 :]
    return median(
        (tokens - tokens_before) / (end - start) for (start, tokens_before), (end, tokens) in itertools.pairwise(later)
    )


def train_ours(text: Path, store: Path, precision: str, n_updates: int, on_update: Callable[[int], None]) -> None:
    """Train by our trainer; ``on_update`` receives the tokens so far."""
    config = read_recipe(RECIPE, [*own_text(text), f"training.precision={precision}"])
    prepared, task = open_prepared(store), task_of(config)
    model_config = task.model_config(config.model, *prepared.tokenizers.sizes)
    config = config.model_copy(update={"model": model_config})
    model = make_model(config.model, prepared.tokenizers)

    def should_stop() -> bool:
        on_update(trainer.state.tgt_tokens)
        return trainer.state.update >= n_updates

    trainer: Trainer[Any] = Trainer(
        model=model,
        objective=task.objective(model, config),
        batches=task.batches(prepared.train, config, torch.device("cpu")),
        learning_rate=lambda step: learning_rate(step, d_model=config.model.d_model, config=config.training),
        config=config.training.model_copy(
            update={"max_updates": 10**9, "validate_every_updates": 10**9, "checkpoint_every_updates": 10**9}
        ),
        checkpoints=store / "checkpoints",
        should_stop=should_stop,
    )
    trainer.run()


def train_plain(text: Path, precision: str, n_updates: int, on_update: Callable[[int], None]) -> None:
    """Train by the plain loop; ``on_update`` receives the tokens so far."""
    whole = "\n".join(read_lines(text))
    ids_of = {character: id for id, character in enumerate(sorted(set(whole)))}
    data = np.array([ids_of[character] for character in whole], dtype=np.uint16)
    model = PlainModel(len(ids_of))
    optimiser = torch.optim.AdamW(model.parameters(), lr=1e-3, betas=(0.9, 0.99), weight_decay=0.1)
    for update in range(n_updates + 1):
        on_update(update * BATCH * BLOCK)
        starts = torch.randint(len(data) - BLOCK - 1, (BATCH,)).tolist()
        ids_BX = torch.stack([torch.from_numpy(data[start : start + BLOCK + 1].astype(np.int64)) for start in starts])
        with torch.autocast("cpu", torch.bfloat16, enabled=precision == "bf16"):
            logits_BTV = model(ids_BX[:, :-1])
            loss = F.cross_entropy(logits_BTV.flatten(0, 1), ids_BX[:, 1:].flatten())
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
        optimiser.zero_grad(set_to_none=True)


if __name__ == "__main__":
    main()

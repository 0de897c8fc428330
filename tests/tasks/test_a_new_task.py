"""A task that no module knows: a decoder-only model learns to say digits backwards, through the public API alone."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from transduce.data import Ids, StoreBatches, pad_rows, write_store
from transduce.errors import ConfigError
from transduce.model import LanguageModel, StackConfig, cost_of
from transduce.recipes import read_recipe
from transduce.tasks import TASKS, Task, new_prepared, prepare, register, train
from transduce.tasks.model_folder import read_model_folder
from transduce.text import BOS_ID, EOS_ID, Tokenizers, train_symbols
from transduce.training import Score, Validation


@dataclass(frozen=True)
class Digits:
    ids_BT: Tensor
    targets_N: Tensor
    is_answer_N: Tensor  # what stands behind the bar, which is to be learned

    def tensors(self) -> dict[str, Tensor]:
        return vars(self)


class Backwards(Task[Digits]):
    """After "5 2 7 |" comes "7 2 5"."""

    name, doing = "backwards", "reversing"

    def prepare(self, config: Any, folder: Path, *, data_folder: Any, tell: Any) -> None:
        symbols, chance = train_symbols(["0 1 2 3 4 5 6 7 8 9 |"]), random.Random(config.corpus_seed)

        def rows(n: int) -> Iterator[dict[str, list[int]]]:
            for digits in (chance.choices("0123456789", k=chance.randint(1, 5)) for _ in range(n)):
                yield {"ids": symbols.encode(" ".join([*digits, "|", *reversed(digits)]))}

        tokenizers, columns = Tokenizers(symbols, symbols), {"ids": Ids(vocab_size=symbols.size)}
        with new_prepared(config, folder, {"dev": "other digits"}) as place:
            tokenizers.save(place)
            for name, n in (("train", config.n_pairs), ("dev", 100)):
                write_store(place / name, {name: rows(n)}, columns, tokenizer_fingerprint=tokenizers.fingerprint)

    def build_model(self, config: Any, tokenizers: Any) -> LanguageModel:
        return LanguageModel(StackConfig.of(config, config.n_decoder_layers), vocab_size=config.tgt_vocab_size)

    def cost(self, config: Any) -> Any:
        with torch.device("meta"):
            n_weights = sum(weight.numel() for weight in self.build_model(config, None).parameters())
        return replace(cost_of(config), parameters=n_weights)

    def batches(self, store: Any, config: Any, device: Any) -> StoreBatches[Digits]:
        column, n_tokens = store.columns["ids"], config.training.max_tokens_per_batch

        def collate(rows_B: Any) -> Digits:
            rows = [column.row(row).tolist() for row in rows_B]
            is_answer = [place >= len(row) // 2 + 1 for row in rows for place in range(len(row) + 1)]
            targets = torch.tensor([id for row in rows for id in (*row, EOS_ID)])
            return Digits(pad_rows([[BOS_ID, *row] for row in rows]), targets, torch.tensor(is_answer))

        lengths = column.lengths_N + 1
        return StoreBatches(store, collate, src_lengths=lengths, tgt_lengths=lengths, max_tokens=n_tokens, seed=1)

    def objective(self, model: Any, config: Any) -> Any:
        return lambda batch, update: model.output.loss(
            model(batch.ids_BT)[batch.is_answer_N], batch.targets_N[batch.is_answer_N]
        )

    def validator(self, model: Any, prepared: Any, config: Any, *, device: Any, processes: Any = None) -> Any:
        batch = self.batches(prepared.dev, config, device).batch(0, 0)

        def validate(should_stop: Any) -> Validation:
            loss = self.objective(model(), config)(batch, 0)
            said_N = model().output.logits(model()(batch.ids_BT)).argmax(dim=1)
            right = (said_N == batch.targets_N)[batch.is_answer_N].double().mean()
            return Validation(float(loss.nll_nats) / loss.n_tokens, {"accuracy": Score(float(right))})

        return validate

    def load(self, model_folder: Path, *, device: Any = "cpu") -> Any:
        read = read_model_folder(model_folder, device=torch.device(device))

        @torch.no_grad()
        def backwards(digits: str) -> str:
            ids, said = torch.tensor([[BOS_ID, *read.tokenizers.src.encode(f"{digits} |")]]), []
            logits_1TV, state = read.model.extend(ids, read.model.start(1))
            last_1 = logits_1TV[:, -1].argmax(dim=1)
            while last_1.item() != EOS_ID and len(said) < 9:
                said.append(last_1.item())
                logits_1V, state = read.model.step(last_1, state)
                last_1 = logits_1V.argmax(dim=1)
            return read.tokenizers.tgt.decode(said)

        return backwards

    def evaluate(self, model_folder: Path, prepared: Any, split: str, *, device: Any, also: Any) -> Any:
        backwards, dev = self.load(model_folder, device=device), prepared.dev
        lines = [prepared.tokenizers.src.decode(dev.columns["ids"].row(row)) for row in range(len(dev))]
        pairs = [line.split(" | ") for line in lines]
        return Right(sum(backwards(digits) == answer for digits, answer in pairs) / len(pairs))


@dataclass(frozen=True)
class Right:
    share: float

    def as_json(self) -> dict[str, float]:
        return {"right": self.share}


RECIPE = """
preset = "tiny"
[model]
n_decoder_layers = 2
d_model = 64
p_drop = 0.0
embeddings = "separate"
[data]
task = "backwards"
n_pairs = 3000
shared_vocabulary = false
[training]
max_tokens_per_batch = 800
warmup_steps = 100
max_updates = 500
validate_every_updates = 250
checkpoint_every_updates = 250
log_every_updates = 10
average_last = 1
"""


@pytest.fixture
def recipe(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr("transduce.tasks.registry.TASKS", TASKS)
    monkeypatch.delitem(TASKS, "backwards", raising=False)
    path = tmp_path / "backwards.toml"
    path.write_text(RECIPE, encoding="utf-8")
    return path


def records(run: Path, kind: str) -> list[dict[str, Any]]:
    lines = (run / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
    return [record for record in map(json.loads, lines) if record["kind"] == kind]


def test_it_is_prepared_trained_resumed_and_saved(
    recipe: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(ConfigError, match="backwards"):
        prepare(read_recipe(recipe).data, tmp_path / "prepared")
    monkeypatch.setitem(TASKS, "backwards", Backwards())
    store = prepare(read_recipe(recipe).data, tmp_path / "prepared").folder
    half, whole = ["training.max_updates=250", "training.average_last=1"], []
    first = train(read_recipe(recipe, half), tmp_path / "run", store=store)
    assert (first.updates, first.scored_split) == (250, "dev")
    again = train(read_recipe(recipe, whole), tmp_path / "run", resume=True)
    assert again.updates == 500
    assert again.scores is not None
    assert again.scores.as_json()["right"] > 0.99
    before, after = records(tmp_path / "run", "validation")
    assert before["accuracy"] < after["accuracy"] > 0.99
    backwards = TASKS["backwards"].load(tmp_path / "run" / "model")
    assert [backwards(digits) for digits in ("7", "1 2 3", "9 9 0 8 4")] == ["7", "3 2 1", "4 8 0 9 9"]
    assert "A Transformer for backwards" in (tmp_path / "run" / "model" / "README.md").read_text(encoding="utf-8")


def test_a_resumed_run_is_that_which_was_not_stopped(
    recipe: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(TASKS, "backwards", Backwards())
    fixed = ["training.checkpoint_every_updates=10", "training.keep_checkpoints=2"]
    train(read_recipe(recipe, [*fixed, "training.max_updates=20"]), tmp_path / "whole")
    train(read_recipe(recipe, [*fixed, "training.max_updates=10"]), tmp_path / "halves")
    train(read_recipe(recipe, [*fixed, "training.max_updates=20"]), tmp_path / "halves", resume=True)
    whole, halves = ([each["loss_nats"] for each in records(tmp_path / name, "update")] for name in ("whole", "halves"))
    assert whole == halves
    weights = [(tmp_path / name / "model" / "model.safetensors").read_bytes() for name in ("whole", "halves")]
    assert weights[0] == weights[1]


def test_register_makes_it_known(recipe: Path) -> None:
    register(Backwards())
    assert TASKS.pop("backwards").name == "backwards"

"""A new task with the public API alone: a decoder-only model learns to reverse digits."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from transduce.cli.output import print_scores
from transduce.data import Batch, Ids, StoreBatches, pad_rows, write_store
from transduce.diagnostics import examine
from transduce.errors import ConfigError
from transduce.loss import LossSum
from transduce.model import StackConfig, TransformerLM, cost_of
from transduce.recipes import read_recipe
from transduce.tasks import TASKS, Task, new_prepared, prepare, register, train
from transduce.tasks.model_folder import read_model_folder
from transduce.text import BOS_ID, EOS_ID, PAD_ID, Tokenizer, Tokenizers, train_word_level
from transduce.training import Score, Validation


class Right(dict[str, float]):
    as_json = dict.copy


class Backwards(Task[Batch]):
    """After "5 2 7 |" comes "7 2 5"."""

    name, doing = "backwards", "reversing"

    def prepare(self, config: Any, folder: Path, *, data_folder: Any, log: Any, n_workers: int = 1) -> None:
        tokens, chance = train_word_level(["0 1 2 3 4 5 6 7 8 9 |"]), random.Random(config.corpus_seed)
        tokenizers, columns = Tokenizers(tokens, tokens), {"ids": Ids(vocab_size=tokens.size)}
        with new_prepared(config, folder, {"dev": "other digits"}) as place:
            tokenizers.save(place)
            for name, n in (("train", config.n_pairs), ("dev", 100)):
                drawn = [chance.choices("0123456789", k=chance.randint(1, 3)) for _ in range(n)]
                rows = [{"ids": tokens.encode(" ".join([*digits, "|", *reversed(digits)]))} for digits in drawn]
                write_store(place / name, {name: rows}, columns, tokenizer_fingerprint=tokenizers.fingerprint)

    def build_model(self, config: Any, tokenizers: Any) -> TransformerLM:
        return TransformerLM(StackConfig.from_config(config, config.n_decoder_layers), vocab_size=config.tgt_vocab_size)

    def cost(self, config: Any) -> Any:
        with torch.device("meta"):
            model = self.build_model(config, None)
        return replace(cost_of(config), parameters=sum(weight.numel() for weight in model.parameters()))

    def batches(self, store: Any, config: Any, device: Any) -> StoreBatches[Batch]:
        def collate(rows_B: Any) -> Batch:
            rows = [store.columns["ids"].row(row).tolist() for row in rows_B]
            ids_BT = pad_rows([[BOS_ID, *row] for row in rows])
            output_ids_N = torch.tensor([id for row in rows for id in (*row, EOS_ID)])
            return Batch(ids_BT, ids_BT, output_ids_N, len(output_ids_N), len(output_ids_N), tuple(rows_B))

        lengths, n_tokens = store.columns["ids"].lengths_R + 1, config.training.max_tokens_per_batch
        return StoreBatches(store, collate, src_lengths=lengths, tgt_lengths=lengths, max_tokens=n_tokens, seed=1)

    def objective(self, model: Any, config: Any) -> Any:
        def loss(batch: Batch, update: int) -> LossSum:  # of the tokens after the bar
            is_answer_N = (batch.tgt_in_BT == BAR).cumsum(1)[batch.tgt_in_BT != PAD_ID] > 0
            return model.output.loss(model(batch.tgt_in_BT)[is_answer_N], batch.tgt_out_N[is_answer_N])

        return loss

    def validator(self, model: Any, prepared: Any, config: Any, *, device: Any, distributed: Any = None) -> Any:
        def validate(should_stop: Any) -> Validation:
            loss = self.objective(model(), config)(self.batches(prepared.dev, config, device).batch(0, 0), 0)
            return Validation(float(loss.nll_nats) / loss.n_tokens, {"right": Score(right(model(), prepared))})

        return validate

    def load(self, model_folder: Path, *, device: Any = "cpu") -> Any:
        read = read_model_folder(model_folder, device=torch.device(device))
        return lambda digits: backwards(read.model, read.tokenizers.src, digits)

    def evaluate(self, model_folder: Path, prepared: Any, split: str, *, device: Any, also: Any) -> Right:
        return Right(right=right(read_model_folder(model_folder, device=torch.device(device)).model, prepared))


@torch.no_grad()
def backwards(model: TransformerLM, tokenizer: Tokenizer, digits: str) -> str:
    """Greedy search with the decoding state: prefill the prompt, then decode token by token."""
    ids, output = torch.tensor([[BOS_ID, *tokenizer.encode(f"{digits} |")]]), list[int]()
    logits_1TV, state = model.extend(ids, model.start(1))
    last_1 = logits_1TV[:, -1].argmax(dim=1)
    while last_1.item() != EOS_ID and len(output) < 9:
        output.append(int(last_1))
        logits_1V, state = model.step(last_1, state)
        last_1 = logits_1V.argmax(dim=1)
    return tokenizer.decode(output)


def right(model: TransformerLM, prepared: Any) -> float:
    """The fraction of dev rows that the model reverses correctly."""
    tokenizer, column = prepared.tokenizers.src, prepared.dev.columns["ids"]
    pairs = [tokenizer.decode(column.row(row)).split(" | ") for row in range(len(prepared.dev))]
    return sum(backwards(model, tokenizer, digits) == answer for digits, answer in pairs) / len(pairs)


BAR = 14  # after the special tokens and ten digits

RECIPE = """
preset = "tiny"
[model]
n_decoder_layers = 2
d_model = 48
d_ff = 96
d_k = 12
d_v = 12
p_drop = 0.0
embeddings = "separate"
[data]
task = "backwards"
n_pairs = 3000
shared_vocabulary = false
[training]
max_tokens_per_batch = 500
warmup_steps = 50
lr_factor = 0.25
max_updates = 400
validate_every_updates = 200
checkpoint_every_updates = 200
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
    half, whole = ["training.max_updates=200", "training.average_last=1"], []
    first = train(read_recipe(recipe, half), tmp_path / "run", store=store)
    assert (first.updates, first.scored_split) == (200, "dev")
    again = train(read_recipe(recipe, whole), tmp_path / "run", resume=True)
    assert again.updates == 400
    assert again.scores is not None
    assert again.scores.as_json()["right"] > 0.97
    before, after = records(tmp_path / "run", "validation")
    assert before["right"] <= after["right"] > 0.97
    backwards = TASKS["backwards"].load(tmp_path / "run" / "model")
    assert [backwards(digits) for digits in ("7", "1 2 3", "9 9 0")] == ["7", "3 2 1", "0 9 9"]
    found = list(examine([str(tmp_path / "run" / "model")]))
    assert {finding.status for finding in found} == {"good"}
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


def test_its_scores_are_told(capsys: pytest.CaptureFixture[str]) -> None:
    print_scores(Right(right=0.75))
    assert capsys.readouterr().out.split() == ["right", "0.75"]

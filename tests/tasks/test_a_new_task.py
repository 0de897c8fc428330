"""A new task with the public API alone: a decoder-only model learns to reverse digits."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from small_recipes import SmallRuns
from task_suite import CHECKS, SmallTask, run_once

from run_records import records
from said import naming
from transduce.cli.output import print_scores
from transduce.config import DataConfig, LanguageModelConfig, Split
from transduce.corpora import Source
from transduce.data import Batch, ColumnKind, Ids, StoreBatches, pad_rows
from transduce.errors import ConfigError
from transduce.inference.folder import read_model_folder
from transduce.loss import LossSum
from transduce.model import TransformerLM
from transduce.recipes import read_recipe
from transduce.runs import train
from transduce.tasks import TASKS, Preparation, Row, Task, prepare, register, task_named
from transduce.text import BOS_ID, EOS_ID, PAD_ID, Tokenizer, Tokenizers, train_word_level
from transduce.training import Score, Validation


class Right(dict[str, float]):
    as_json = dict.copy


class Digits(Source[list[str]]):
    """Random digits; the items of every split are others."""

    def __init__(self, config: DataConfig) -> None:
        super().__init__(config)
        self.config = config

    def train(self, corpus: str) -> Iterator[list[str]]:
        return self._drawn("train", self.config.n_pairs)

    def of(self, split: Split) -> Iterator[list[str]]:
        return self._drawn(split, 40)

    def name_of(self, split: Split) -> str:
        return "other digits" if split == "dev" else ""

    def _drawn(self, split: Split, n: int) -> Iterator[list[str]]:
        chance = random.Random(f"{split} {self.config.corpus_seed}")
        return (chance.choices("0123456789", k=chance.randint(1, 2)) for _ in range(n))


class DigitPreparation(Preparation[list[str], Any]):
    def make_source(self, config: Any) -> Digits:
        if config.corpus != "grammar":
            raise ConfigError("task = 'backwards' draws its digits; leave out data.corpus")
        return Digits(config)

    def make_tokenizers(self) -> Tokenizers:
        tokens = train_word_level(["0 1 2 3 4 5 6 7 8 9 |"])
        return Tokenizers(tokens, tokens)

    def columns(self) -> dict[str, ColumnKind]:
        return {"ids": Ids(vocab_size=self.tokenizers.src.size)}

    def rows(self, item: list[str]) -> Iterator[Row]:
        yield {"ids": self.tokenizers.src.encode(" ".join([*item, "|", *reversed(item)]))}


class Backwards(Task[Batch]):
    """After "5 2 7 |" comes "7 2 5"."""

    name, progress_verb, preparation = "backwards", "reversing", DigitPreparation

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
        model = read.stored_as(LanguageModelConfig).module
        return lambda digits: backwards(model, read.tokenizers.src, digits)

    def evaluate(self, model_folder: Path, prepared: Any, split: str, **options: Any) -> Right:
        device = torch.device(options["device"])
        return Right(right=right(read_model_folder(model_folder, device=device).model, prepared))


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
model.system = "language-model"
model.n_layers = 1
model.d_model = 32
model.d_ff = 64
model.d_k = 8
model.d_v = 8
model.p_drop = 0.0
data.task = "backwards"
data.n_pairs = 300
training.max_tokens_per_batch = 200
training.warmup_steps = 4
training.max_updates = 6
training.validate_every_updates = 3
training.checkpoint_every_updates = 3
training.log_every_updates = 2
training.average_last = 2
"""
BACKWARDS = SmallTask(
    name="backwards",
    recipe=RECIPE,
    score="right",
    validated="right",
    card=("d_model 32", "- right: "),
    kind="function",
    use=lambda backwards, files: backwards("5 2"),
    mistakes=(("data.dev_trees=few.ptb", ("dev_trees", "'parsing'")), ("data.corpus=files", ("data.corpus",))),
    text="data.corpus",
)


@pytest.fixture(autouse=True)
def own_registry(monkeypatch: pytest.MonkeyPatch) -> None:
    """The tasks that a test registers are not those of other tests."""
    monkeypatch.setattr("transduce.tasks.registry.TASKS", dict(TASKS))


def test_it_passes_the_suite(small_runs: SmallRuns, tmp_path: Path) -> None:
    (tmp_path / "recipe.toml").write_text(RECIPE, encoding="utf-8")
    with pytest.raises(ConfigError, match=naming("backwards")):
        prepare(read_recipe(tmp_path / "recipe.toml").data, tmp_path / "prepared")
    register(Backwards())
    run = run_once(BACKWARDS, tmp_path / "backwards")
    for name, check in CHECKS.items():
        check(run, tmp_path / name, small_runs["translation"])


@pytest.mark.merge
def test_it_learns(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "recipe.toml").write_text(RECIPE, encoding="utf-8")
    register(Backwards())
    longer = [
        "model.n_layers=2", "model.d_model=48", "model.d_ff=96", "model.d_k=12", "model.d_v=12",
        "data.n_pairs=1000", "training.max_updates=300", "training.warmup_steps=50", "training.lr_factor=0.3",
        "training.eps_ls=0.0", "training.validate_every_updates=150", "training.checkpoint_every_updates=150",
    ]  # fmt: skip
    result = train(read_recipe(tmp_path / "recipe.toml", longer), tmp_path / "run")
    assert result.scores is not None
    assert result.scores.as_json()["right"] > 0.9
    assert [record["right"] > 0.5 for record in records(tmp_path / "run", "validation")] == [True, True]
    backwards = task_named("backwards").load(tmp_path / "run" / "model")
    assert [backwards(digits) for digits in ("7", "1 2", "9 0")] == ["7", "2 1", "0 9"]
    print_scores(result.scores)
    assert capsys.readouterr().out.split()[0] == "right"


class Drawn(Digits):
    def _drawn(self, split: Split, n: int) -> Iterator[list[str]]:
        return ([random.choice("0123456789")] for _ in range(n))


class DrawnPreparation(DigitPreparation):
    def make_source(self, config: Any) -> Digits:
        return Drawn(config)


class DrawsItsText(Backwards):
    """Its text follows from a global random state."""

    preparation = DrawnPreparation


class DrawsItsOrder(Backwards):
    """The order of its batches follows from a global random state."""

    def batches(self, store: Any, config: Any, device: Any) -> StoreBatches[Batch]:
        batches = super().batches(store, config, device)
        batches.seed = random.randrange(10**6)
        return batches


class ForgetsAWeight(Backwards):
    """The position-wise layers are never updated."""

    def start_model(self, model: Any, prepared: Any, config: Any) -> None:
        for name, weight in model.named_parameters():
            weight.requires_grad_("feed_forward" not in name)


class DrawsItsScore(Backwards):
    """Its score is another one each time."""

    def evaluate(self, *arguments: Any, **options: Any) -> Right:
        return Right(right=random.random())


class LoadsAnything(Backwards):
    """It does not look at the task of a model folder."""

    def load(self, model_folder: Path, *, device: Any = "cpu") -> Any:
        return lambda digits: str(digits)


@pytest.mark.parametrize(
    ("broken", "check"),
    [
        (DrawsItsText, "data"),
        (DrawsItsOrder, "resume"),
        (ForgetsAWeight, "training"),
        (DrawsItsScore, "evaluation"),
        (LoadsAnything, "loading"),
    ],
)
def test_the_suite_finds_what_is_broken(
    small_runs: SmallRuns, tmp_path: Path, broken: type[Backwards], check: str
) -> None:
    register(broken())
    run = run_once(BACKWARDS, tmp_path / "backwards")
    with pytest.raises((AssertionError, pytest.fail.Exception)):
        CHECKS[check](run, tmp_path / check, small_runs["translation"])

"""A run from recipe to model folder, resumed, averaged and evaluated."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from small_recipes import SmallRuns
from task_suite import check_resume, few_evaluated_sentences, run_once

from run_records import records
from said import naming, says
from transduce.config import RunConfig
from transduce.corpora import generate_pairs, parallel_text
from transduce.errors import ConfigError, DataError
from transduce.files import write_manifest
from transduce.inference import Translator, evaluate
from transduce.inference.run_search import run_search
from transduce.inference.translation import line_statistics
from transduce.model.weights_file import read_tensors
from transduce.recipes import read_recipe
from transduce.runs import average_run, read_run_config, train
from transduce.runs.folder import store_of
from transduce.tasks import open_prepared, prepare
from transduce.tasks.pairs import translation
from transduce.training import UpdateRecord, ValidationRecord, average_weights, checkpoint_folders

pytestmark = pytest.mark.reliability


def test_a_finished_run_has_its_folders(micro_run: Path) -> None:
    names = {path.name for path in micro_run.iterdir()}
    assert {"run.json", "metrics.jsonl", "store", "checkpoints", "model", "tensorboard"} <= names
    assert [r["update"] for r in records(micro_run, "update")] == [10, 20, 30]
    validations = records(micro_run, "validation")
    assert [r["update"] for r in validations] == [15, 30]
    assert validations[1]["nll_nats"] < validations[0]["nll_nats"]
    assert validations[1]["signature"].startswith("nrefs:1|case:mixed")


def test_curves_reach_tensorboard(micro_run: Path) -> None:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    events = EventAccumulator(str(micro_run / "tensorboard"))
    events.Reload()
    assert [point.step for point in events.Scalars("train/loss_nats")] == [10, 20, 30]
    assert [point.step for point in events.Scalars("dev/perplexity")] == [15, 30]


def test_the_model_is_the_mean_of_the_last_scheduled_checkpoints(micro_run: Path) -> None:
    newest = checkpoint_folders(micro_run / "checkpoints")[-2:]
    assert [path.name for path in newest] == ["update-00000020", "update-00000030"]
    ours = read_tensors(micro_run / "model" / "model.safetensors")
    for name, weight in average_weights(newest).items():
        assert torch.equal(ours[name], weight)


@pytest.fixture
def recipe(small_runs: SmallRuns) -> Iterator[Path]:
    """The recipe of a smaller translator, of few sentences."""
    with few_evaluated_sentences():
        yield small_runs["translation"].recipe


@pytest.mark.parametrize(
    ("switches", "card"),
    [
        (("training.precision=bf16",), "bf16"),
        (("training.n_accumulate=3",), "x 3"),
        (("training.optimiser=muon",), "optimiser muon"),
        (("training.r_drop=3",), "r_drop 3"),
        (("training.r_drop=3", "training.r_drop_after=4"), "r_drop_after 4"),
        (("training.decay=linear",), "decay linear"),
        (("training.bidirectional_epochs=1",), "bidirectional_epochs 1"),
        (("model.norm=pre",), "pre-norm"),
        (("data.tokenizer=wordpiece", "data.vocab_size=700"), "1 + 1 layers"),
        (("data.terms=true",), "1 + 1 layers"),
    ],
)
def test_switches_learn_resume_exactly_and_are_on_the_card(
    small_runs: SmallRuns, tmp_path: Path, switches: tuple[str, ...], card: str
) -> None:
    settings = (*switches, "training.validation_bleu=false", "model.p_drop=0.05")
    run = run_once(small_runs["translation"].task, tmp_path, settings)
    check_resume(run, tmp_path / "cut", run)
    losses = [record["loss_nats"] for record in records(run.folder, "update")]
    assert losses[-1] < losses[0]
    assert card in (run.model / "README.md").read_text(encoding="utf-8")


def test_weights_and_dropout_resume_exactly(recipe: Path, tmp_path: Path) -> None:
    """Sampling of pairs and encodings is a function of seed and epoch, so a resumed run is exact."""
    for name, sentence in (("one", "A dog number {} runs.\tHund Nummer {} läuft.\n"), ("two", "{} cats\t{} Katzen\n")):
        (tmp_path / name).mkdir()
        lines = [sentence.format(number, number).strip().split("\t") for number in range(60)]
        for side, language in enumerate(("en", "de")):
            text = "".join(f"{line[side]}\n" for line in lines)
            (tmp_path / name / f"train.{language}").write_text(text, encoding="utf-8")
    settings = [
        "data.corpus={one=1.5, two=0.5}",
        "data.bpe_dropout=0.2",
        "data.n_encodings=3",
        "training.max_updates=12",
        "training.max_tokens_per_batch=400",
        "training.checkpoint_every_updates=4",
        "model.p_drop=0.1",
    ]
    config = read_recipe(recipe, settings)
    messages: list[str] = []
    train(config, tmp_path / "whole", data_folder=tmp_path, log=messages.append)
    assert any(says(line, "train", 120, "one 60", "two 60", 3) for line in messages)
    seen: list[object] = []
    listener = lambda record: seen.append(record) if isinstance(record, UpdateRecord) else None  # noqa: E731
    train(config, tmp_path / "cut", data_folder=tmp_path, listeners=[listener], should_stop=lambda: len(seen) >= 7)
    train(config, tmp_path / "cut", resume=True)
    whole, cut = (read_tensors(tmp_path / name / "model" / "model.safetensors") for name in ("whole", "cut"))
    assert all(torch.equal(whole[name], cut[name]) for name in whole)
    card = (tmp_path / "cut" / "model" / "README.md").read_text(encoding="utf-8")
    assert any(re.search(r"\bone\b.*\b60\b.*\b1\.5\b.*\btwo\b.*\b60\b.*\b0\.5\b", line) for line in card.splitlines())


@pytest.mark.parametrize(
    ("precision", "fast", "is_told"), [("bf16", "fp32", True), ("bf16", "bf16", False), ("fp32", "fp32", False)]
)
def test_a_processor_without_bf16_is_told(
    recipe: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, precision: str, fast: str, is_told: bool
) -> None:
    monkeypatch.setattr("transduce.runs.run.fast_precision", lambda device: fast)
    messages: list[str] = []
    settings = [f"training.precision={precision}", "training.validation_bleu=false"]
    train(read_recipe(recipe, settings), tmp_path / "run", log=messages.append, should_stop=lambda: True)
    assert any("precision=fp32" in line for line in messages) == is_told


def test_separate_vocabularies(recipe: Path, tmp_path: Path) -> None:
    settings = ["data.shared_vocabulary=false", "model.embeddings=target", "training.max_updates=2"]
    messages: list[str] = []
    result = train(read_recipe(recipe, settings), tmp_path / "run", log=messages.append)
    assert messages[-2] == f"translating {parallel_text.GRAMMAR_TEST_PAIRS:,} sentences of grammar test"
    assert says(messages[-1], "--more", "doctor")  # it has learnt nothing yet
    assert result.model_folder is not None
    names = {path.name for path in result.model_folder.iterdir()}
    assert {"tokenizer.src.json", "tokenizer.tgt.json"} <= names
    assert len(Translator.load(result.model_folder).translate(["The dog sleeps.", ""])) == 2


def test_files_of_one_s_own_without_dev_or_test(recipe: Path, tmp_path: Path) -> None:
    tsv = tmp_path / "pairs.tsv"
    tsv.write_text("one dog\tein Hund\n\tleer\ntwo dogs\tzwei Hunde\n" * 20, encoding="utf-8")
    settings = ["data.corpus=files", f"data.train_tsv={tsv}", "training.max_updates=2", "data.max_dropped_share=0.5"]
    messages: list[str] = []
    result = train(read_recipe(recipe, settings), tmp_path / "run", log=messages.append)
    assert result.scores is None
    assert any(says(line, "files", 20, "empty", "2, 5, 8") for line in messages)
    assert any(says(line, "files", 38, "duplicate", "4, 6, 7") for line in messages)
    assert any(says(line, "train", 40) for line in messages)
    assert len(open_prepared(tmp_path / "run" / "store").train) == 40


@pytest.mark.parametrize("decay", ["inverse_sqrt", "linear"])
def test_only_a_learning_rate_that_does_not_know_the_end_may_go_beyond_it(
    recipe: Path, tmp_path: Path, decay: str
) -> None:
    settings = [f"training.decay={decay}", "training.validation_bleu=false"]
    train(read_recipe(recipe, [*settings, "training.max_updates=2"]), tmp_path / "run")
    longer = read_recipe(recipe, [*settings, "training.max_updates=4"])
    if decay == "inverse_sqrt":
        assert train(longer, tmp_path / "run", resume=True).updates == 4
    else:
        with pytest.raises(ConfigError, match=naming("training.max_updates", 2, 4)):
            train(longer, tmp_path / "run", resume=True)


@pytest.mark.parametrize("decay", ["inverse_sqrt", "linear"])
def test_minutes_are_fixed_where_the_learning_rate_falls_by_them(recipe: Path, tmp_path: Path, decay: str) -> None:
    def by_recipe(*settings: str) -> RunConfig:
        more = ("training.validation_bleu=false", "training.max_updates=2")
        return read_recipe(recipe, [f"training.decay={decay}", *more, *settings])

    run = tmp_path / "run"
    train(by_recipe("training.max_minutes=50"), run)
    if decay == "linear":
        with pytest.raises(ConfigError, match=naming("training.max_minutes", 50.0, 60.0, "--more")):
            train(by_recipe("training.max_minutes=60"), run, resume=True)
    else:
        train(by_recipe("training.max_minutes=60"), run, resume=True)
    train(by_recipe(), run, resume=True)
    assert read_run_config(run).training.max_minutes == (50 if decay == "linear" else None)


@pytest.mark.merge
def test_validation_bleu_is_that_of_evaluate(tmp_path: Path) -> None:
    """Validation and evaluation use the same functions: a single averaged checkpoint has its validation BLEU.

    It has learnt enough to repeat no words: a translator mends what does, validation does not.
    """
    tsv = tmp_path / "pairs.tsv"
    pairs = [(pair.en, pair.de) for pair in generate_pairs("train", n_pairs=5, seed=1)]
    tsv.write_text("".join(f"{src}\t{tgt}\n" for src, tgt in pairs * 4), encoding="utf-8")
    recipe = tmp_path / "learn-by-heart.toml"
    recipe.write_text(f"""
        [model]
        n_encoder_layers = 1
        n_decoder_layers = 1
        d_model = 64
        d_ff = 64
        n_heads = 4
        p_drop = 0.0
        [data]
        corpus = "files"
        train_tsv = "{tsv}"
        dev_tsv = "{tsv}"
        vocab_size = 400
        [training]
        max_updates = 200
        max_tokens_per_batch = 400
        warmup_steps = 30
        validate_every_updates = 200
        keep_checkpoints = 1
        average_last = 1
        [search]
        beam_size = 2
        max_extra_tokens = 5
    """)
    train(read_recipe(recipe), tmp_path / "run")
    (validation,) = records(tmp_path / "run", "validation")
    assert validation["bleu"] > 5  # it has learned something
    dev = open_prepared(tmp_path / "run" / "store").text("dev")
    assert dev is not None
    score = evaluate(Translator.load(tmp_path / "run" / "model"), *dev).scores.sacrebleu
    assert (score.score, score.signature) == (pytest.approx(validation["bleu"]), validation["signature"])


def test_validation_decodes_batches_no_larger_than_the_training_s(
    micro_recipe: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shapes: list[tuple[int, ...]] = []

    def recorded_search(decoder: Any, src_BS: torch.Tensor, *arguments: Any, **options: Any) -> Any:
        shapes.append(tuple(src_BS.shape))
        return run_search(decoder, src_BS, *arguments, **options)

    monkeypatch.setenv("TRANSDUCE_ENGINE", "torch")
    monkeypatch.setattr("transduce.inference.torch_engine.run_search", recorded_search)
    settings = ["training.max_updates=16", "training.max_tokens_per_batch=120", "search.max_tokens_per_batch=4000"]
    validated: list[object] = []

    def listen(record: object) -> None:
        validated.extend([record] if isinstance(record, ValidationRecord) else [])

    train(
        read_recipe(micro_recipe, settings), tmp_path / "run", listeners=[listen], should_stop=lambda: bool(validated)
    )
    assert sum(rows for rows, _ in shapes) == 20
    assert max(rows * columns for rows, columns in shapes) <= 120


def test_another_text_under_a_run_is_noticed(recipe: Path, tmp_path: Path) -> None:
    """The prepared folder is made again with the same settings but other text files."""
    tsv = tmp_path / "pairs.tsv"
    settings = ["data.corpus=files", f"data.train_tsv={tsv}", "training.max_updates=2"]
    config = read_recipe(recipe, settings)
    tsv.write_text("one dog\tein Hund\ntwo dogs\tzwei Hunde\n" * 20, encoding="utf-8")
    prepare(config.data, tmp_path / "store")
    train(config, tmp_path / "run", store=tmp_path / "store")
    shutil.rmtree(tmp_path / "store")
    tsv.write_text("one cat\teine Katze\ntwo cats\tzwei Katzen\n" * 20, encoding="utf-8")
    prepare(config.data, tmp_path / "store")
    with pytest.raises(DataError, match=naming(tmp_path / "store", tmp_path / "run")):
        train(config, tmp_path / "run", store=tmp_path / "store", resume=True)
    with pytest.raises(DataError, match=naming(tmp_path / "store", tmp_path / "run")):
        average_run(tmp_path / "run", last=1)


def test_another_store_is_refused_and_the_run_goes_on_with_its_own(recipe: Path, tmp_path: Path) -> None:
    config = read_recipe(recipe, ["training.max_updates=2"])
    train(config, tmp_path / "run")
    train_store = shutil.copytree(tmp_path / "run" / "store", tmp_path / "other") / "train"
    ids = np.load(train_store / "src.ids.npy")
    ids[:2] = ids[1::-1]
    assert ids[0] != ids[1]
    np.save(train_store / "src.ids.npy", ids)
    write_manifest(train_store)
    longer = read_recipe(recipe, ["training.max_updates=3"])
    with pytest.raises(DataError, match=naming(tmp_path / "other", tmp_path / "run")):
        train(longer, tmp_path / "run", resume=True, store=tmp_path / "other")
    assert train(longer, tmp_path / "run", resume=True).updates == 3


def test_the_same_ids_are_the_same_text_however_they_are_told(recipe: Path, tmp_path: Path) -> None:
    prepared = prepare(read_recipe(recipe).data, tmp_path / "prepared")
    fingerprint, summary = prepared.fingerprint, tmp_path / "prepared" / "train" / "store.json"
    summary.write_text(summary.read_text() + " ")
    write_manifest(summary.parent)
    assert open_prepared(tmp_path / "prepared").fingerprint == fingerprint


def test_a_store_that_is_gone_is_named(recipe: Path, tmp_path: Path) -> None:
    config = read_recipe(recipe, ["training.max_updates=2"])
    prepare(config.data, tmp_path / "prepared")
    train(config, tmp_path / "run", store=tmp_path / "prepared")
    shutil.rmtree(tmp_path / "prepared")
    with pytest.raises(DataError, match=naming(tmp_path / "run", tmp_path / "prepared")):
        train(config, tmp_path / "run", resume=True)
    assert not (tmp_path / "prepared").exists()


def test_the_store_that_was_named_is_read_where_another_was_left(recipe: Path, tmp_path: Path) -> None:
    config = read_recipe(recipe, ["training.max_updates=2"])
    prepare(config.data, tmp_path / "prepared")
    prepare(read_recipe(recipe, ["data.corpus_seed=9"]).data, tmp_path / "run" / "store")
    train(config, tmp_path / "run", store=tmp_path / "prepared")
    assert store_of(tmp_path / "run") == tmp_path / "prepared"
    assert train(config, tmp_path / "run", resume=True).updates == 2


def test_an_empty_store_may_be_made_before_the_run(recipe: Path, tmp_path: Path) -> None:
    (tmp_path / "run" / "store").mkdir(parents=True)
    assert train(read_recipe(recipe, ["training.max_updates=1"]), tmp_path / "run").updates == 1


@pytest.mark.parametrize(
    ("setting", "named"),
    [
        ("training.max_tokens_per_batch=5", "max_tokens_per_batch"),
        ("data.corpus={grammar=0.001}", r"\bpairs?\b"),
    ],
)
def test_what_no_epoch_can_do_is_refused_before_the_run_begins(
    recipe: Path, tmp_path: Path, setting: str, named: str
) -> None:
    with pytest.raises((DataError, ConfigError), match=named):
        train(read_recipe(recipe, [setting]), tmp_path / "run")
    sound = read_recipe(recipe, ["training.max_updates=1"])
    assert train(sound, tmp_path / "run").updates == 1


def test_weights_may_differ_from_those_of_the_store_but_not_from_those_of_the_run(recipe: Path, tmp_path: Path) -> None:
    settings = ["training.max_updates=1", "data.corpus={grammar=1.0}"]
    prepare(read_recipe(recipe, settings).data, tmp_path / "prepared")
    other = read_recipe(recipe, ["training.max_updates=1", "data.corpus={grammar=0.5}"])
    train(other, tmp_path / "run", store=tmp_path / "prepared")
    with pytest.raises(ConfigError, match=naming("data.corpus")):
        train(read_recipe(recipe, settings), tmp_path / "run", resume=True)


def test_what_a_killed_preparation_left_does_not_block_the_run(recipe: Path, tmp_path: Path) -> None:
    (tmp_path / "run" / ".store.999999999.tmp").mkdir(parents=True)
    config = read_recipe(recipe, ["training.max_updates=1"])
    assert train(config, tmp_path / "run").updates == 1
    assert not list((tmp_path / "run").glob(".store*"))


def test_text_that_is_all_dropped_is_told_with_the_reasons(recipe: Path, tmp_path: Path) -> None:
    tsv = tmp_path / "latin-1.tsv"
    tsv.write_bytes("a door\tTür ö\n".encode("latin-1") * 3)
    config = read_recipe(recipe, ["data.corpus=files", f"data.train_tsv={tsv}"])
    with pytest.raises(DataError, match=naming("files", 3, "UTF-8", "1, 2, 3")):
        prepare(config.data, tmp_path / "prepared")


def test_empty_test_text_is_found_before_the_tokenizer_is_learned(recipe: Path, tmp_path: Path) -> None:
    tsv, empty = tmp_path / "pairs.tsv", tmp_path / "empty.tsv"
    tsv.write_text("a dog\tein Hund\n")
    empty.write_text("")
    config = read_recipe(recipe, ["data.corpus=files", f"data.train_tsv={tsv}", f"data.test_tsv={empty}"])
    messages: list[str] = []
    with pytest.raises(DataError, match=naming(empty, "test")):
        prepare(config.data, tmp_path / "prepared", log=messages.append)
    assert messages == []


def test_a_missing_dev_file_is_found_before_any_work(recipe: Path, tmp_path: Path) -> None:
    tsv = tmp_path / "pairs.tsv"
    tsv.write_text("one dog\tein Hund\n", encoding="utf-8")
    settings = ["data.corpus=files", f"data.train_tsv={tsv}", "data.dev_tsv=nowhere.tsv"]
    messages: list[str] = []
    with pytest.raises(DataError, match=naming("nowhere.tsv", "No such file")):
        train(read_recipe(recipe, settings), tmp_path / "run", log=messages.append)
    assert messages == []


def test_only_a_model_folder_is_replaced_by_a_model_folder(own_run: Path) -> None:
    before = {path: path.read_bytes() for path in own_run.rglob("*") if path.is_file()}
    with pytest.raises(DataError, match=naming(own_run, "exists")):
        average_run(own_run, last=1, out=own_run)
    assert {path: path.read_bytes() for path in own_run.rglob("*") if path.is_file()} == before
    average_run(own_run, last=1, out=own_run / "model")
    assert (own_run / "model" / "model.safetensors").read_bytes() != before[own_run / "model" / "model.safetensors"]


def test_others_may_read_a_model_folder(micro_model: Path) -> None:
    modes = {path.name: path.stat().st_mode & 0o777 for path in micro_model.iterdir()}
    assert modes["model.safetensors"] == modes["config.json"]


@pytest.mark.parametrize("name", [".run.json.99999.tmp", ".prepared_at.json.99999.tmp", ".metrics.jsonl.4194305.tmp"])
def test_what_a_killed_process_left_of_a_file_does_not_block_the_run(recipe: Path, tmp_path: Path, name: str) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / name).write_text("{")
    config = read_recipe(recipe, ["training.max_updates=1", "training.validation_bleu=false"])
    train(config, tmp_path / "run", should_stop=lambda: True)
    assert not (tmp_path / "run" / name).exists()


def test_a_run_without_an_update_may_begin_with_another_budget(recipe: Path, tmp_path: Path) -> None:
    """As the out-of-memory message suggests; after the first update, the batch settings are fixed."""
    train(read_recipe(recipe), tmp_path / "run", should_stop=lambda: True)
    other = read_recipe(recipe, ["training.max_tokens_per_batch=200", "training.n_accumulate=2"])
    updates: list[object] = []
    follow = [updates.append]
    stopped = train(other, tmp_path / "run", resume=True, listeners=follow, should_stop=lambda: bool(updates))
    assert (stopped.reason, stopped.updates) == ("interrupted", 1)
    with pytest.raises(ConfigError, match=naming("training.max_tokens_per_batch", 200, 400)):
        train(read_recipe(recipe), tmp_path / "run", resume=True)


def test_a_run_tells_which_torch_it_was_begun_with(own_run: Path, micro_recipe: Path) -> None:
    values = json.loads((own_run / "run.json").read_text())
    (own_run / "run.json").write_text(json.dumps({**values, "torch": "2.11.0"}))
    train(read_recipe(micro_recipe, ["training.max_updates=31"]), own_run, resume=True, should_stop=lambda: True)
    assert json.loads((own_run / "run.json").read_text())["torch"] == "2.11.0"


def test_a_model_folder_says_how_sure_the_model_is(own_run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (line_statistics, translation):
        monkeypatch.setattr(module, "MIN_MEASURED_LINES", 2)
    model_folder, _, _ = average_run(own_run)
    translator = Translator.load(model_folder)
    assert translator.statistics is not None
    prepared = open_prepared(store_of(own_run))
    (sources, _) = prepared.text("dev") or ([], [])
    segments = translator.translate_segments(sources, translator.search, is_checked=False)
    assert segments is not None
    expected = np.quantile([each.mean_log_prob for each in segments], 0.01)
    assert translator.statistics.least_log_prob == pytest.approx(expected, abs=1e-4)

"""Runs that start from another model: which weights are taken, and that the chain of models is recorded."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
import torch

from transduce import Translator
from transduce.config import LanguageModelConfig, ModelConfig
from transduce.errors import CheckpointError, ConfigError, DataError
from transduce.inference.folder import SavedWeights
from transduce.model import Transformer, TransformerLM
from transduce.model.weights import NamedOnDisk
from transduce.model.weights_file import read_tensors
from transduce.recipes import read_recipe
from transduce.runs import train
from transduce.runs.starting_weights import take_weights
from transduce.tasks import prepare
from transduce.text import Tokenizers, train_bpe

pytestmark = pytest.mark.reliability

ONE, ANOTHER = (train_bpe([text] * 3, vocab_size=262) for text in ("ab ab", "cd cd"))
SHARED = Tokenizers(ONE, ONE)
N = ONE.size
SIZES = {"d_model": 16, "d_ff": 24, "n_heads": 2, "d_k": 8, "d_v": 8, "norm": "pre"}
TRANSLATOR = ModelConfig(n_encoder_layers=2, n_decoder_layers=2, src_vocab_size=N, tgt_vocab_size=N, **SIZES)
CAUSAL = LanguageModelConfig(n_layers=2, vocab_size=N, **SIZES)
MASKED = LanguageModelConfig(n_layers=2, vocab_size=N, is_causal=False, **SIZES)


def build(config: ModelConfig, seed: int) -> NamedOnDisk:
    torch.manual_seed(seed)
    return TransformerLM.from_config(config) if isinstance(config, LanguageModelConfig) else Transformer(config)


def saved(config: ModelConfig, tokenizers: Tokenizers = SHARED) -> SavedWeights:
    weights = {name: weight.detach() for name, weight in build(config, 2).canonical().items()}
    return SavedWeights(config, "some-task", tokenizers, weights, ())


def test_the_same_architecture_takes_everything() -> None:
    model, other = build(TRANSLATOR, 1), saved(TRANSLATOR)
    taken = take_weights(model, TRANSLATOR, SHARED, other)
    assert (taken.drawn, taken.unused) == ((), ())
    assert all(torch.equal(weight, other.weights[name]) for name, weight in model.canonical().items())


@pytest.mark.parametrize(("source", "stack", "side"), [(MASKED, "encoder", "src"), (CAUSAL, "decoder", "tgt")])
def test_a_language_model_becomes_one_side(source: LanguageModelConfig, stack: str, side: str) -> None:
    config = TRANSLATOR.model_copy(update={"embeddings": "separate"})
    model, before, other = build(config, 1), build(config, 1).canonical(), saved(source)
    taken = take_weights(model, config, SHARED, other)
    assert taken.unused == ()
    for name, weight in model.canonical().items():
        place = name.replace(stack, "decoder").replace(f"{side}_", "src_")
        is_taken = name.startswith((stack, f"{stack}_norm")) and "cross_attention" not in name
        if is_taken:
            assert torch.equal(weight, other.weights[place]), name
        elif "embedding" in name:  # one vocabulary for both sides: the other side's embedding is taken, too
            assert torch.equal(weight, other.weights["src_embedding.weight"])
        else:
            assert torch.equal(weight, before[name]), name
            assert name in taken.drawn


def test_one_matrix_for_both_sides_is_taken_from_a_language_model_and_given_back() -> None:
    for config, other in ((TRANSLATOR, MASKED), (TRANSLATOR, CAUSAL), (MASKED, TRANSLATOR), (CAUSAL, TRANSLATOR)):
        model, source = build(config, 1), saved(other)
        take_weights(model, config, SHARED, source)
        (embedding,) = (weight for name, weight in model.canonical().items() if "embedding" in name)
        (theirs,) = (weight for name, weight in source.weights.items() if "embedding" in name)
        assert torch.equal(embedding, theirs)


def test_what_does_not_fit_is_drawn_and_named() -> None:
    deeper = TRANSLATOR.model_copy(update={"n_encoder_layers": 3, "d_ff": 32})
    model, before, other = build(deeper, 1), build(deeper, 1).canonical(), saved(TRANSLATOR)
    taken = take_weights(model, deeper, SHARED, other)
    assert all(("feed_forward.w_" in name and "w_2.bias" not in name) or "encoder.2." in name for name in taken.drawn)
    assert any("encoder.2." in name for name in taken.drawn)
    for name, weight in model.canonical().items():
        assert torch.equal(weight, before[name] if name in taken.drawn else other.weights[name])
    assert taken.differing == ()
    lines = taken.lines(Path("other"))
    assert lines[0] == f"took {len(taken.taken)} weights of other"
    assert lines[1].startswith("drawn at random: encoder.")
    assert lines[1].endswith("more")


def test_settings_that_weights_depend_on_are_named() -> None:
    config = TRANSLATOR.model_copy(update={"norm": "post", "n_heads": 4, "d_k": 4, "d_v": 4})
    taken = take_weights(build(config, 1), config, SHARED, saved(TRANSLATOR))
    assert ("norm", "pre", "post") in taken.differing
    assert ("n_heads", 2, 4) in taken.differing
    (warning,) = (line for line in taken.lines(Path("other")) if line.startswith("warning"))
    assert "norm 'pre' there and 'post' here" in warning


def test_embeddings_of_another_vocabulary_are_not_taken() -> None:
    config = TRANSLATOR.model_copy(update={"embeddings": "separate"})
    assert (ONE.size, ONE.fingerprint != ANOTHER.fingerprint) == (ANOTHER.size, True)
    other = saved(config, Tokenizers(ONE, ANOTHER))
    model = build(config, 1)
    taken = take_weights(model, config, SHARED, other)
    assert taken.drawn == ("output.weight",)
    assert taken.unused == ("tgt_embedding.weight", "output.weight")
    # Both sides have the vocabulary that is their source side's.
    for name in ("src_embedding.weight", "tgt_embedding.weight"):
        assert torch.equal(model.canonical()[name], other.weights["src_embedding.weight"])


RECIPE = """
preset = "tiny"
[model]
d_model = 32
d_ff = 48
n_heads = 2
d_k = 16
d_v = 16
{model}
[data]
vocab_size = 500
{data}
[training]
max_updates = 6
max_tokens_per_batch = 500
warmup_steps = 4
checkpoint_every_updates = 3
validate_every_updates = 3
validation_bleu = false
average_last = 1
"""
MASKED_RECIPE = {
    "model": 'system = "language-model"\nn_layers = 2\nis_causal = false\nn_positions = 32',
    "data": 'task = "masked-lm"\ncorpus = "grammar"\nlanguage = "en"\nn_pairs = 120',
}
PAIRS = [(f"the dog sees {n} cats", f"der Hund sieht {n} Katzen") for n in range(60)]  # no test set, which takes time


def recipe(path: Path, texts: dict[str, str]) -> Path:
    path.write_text(RECIPE.format(**texts), encoding="utf-8")
    return path


def translation_recipe(folder: Path) -> Path:
    """A recipe of a translator, and its text."""
    for name, pairs in (("train", PAIRS), ("dev", PAIRS[:3])):
        (folder / f"{name}.tsv").write_text("".join(f"{a}\t{b}\n" for a, b in pairs), encoding="utf-8")
    files = "\n".join(f"{name}_tsv = {json.dumps(str(folder / f'{name}.tsv'))}" for name in ("train", "dev"))
    data = f'corpus = "files"\n{files}'
    return recipe(folder / "translation.toml", {"model": "n_encoder_layers = 2\nn_decoder_layers = 1", "data": data})


def start_from(model: Path) -> list[str]:
    """What ``--from`` sets."""
    path = json.dumps(str(model))
    return [f"training.init_from={path}", f"data.tokenizer_from={path}"]


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A masked language model, a translator that starts from it, and one that starts from that."""
    folder = tmp_path_factory.mktemp("runs")
    train(read_recipe(recipe(folder / "masked.toml", MASKED_RECIPE)), folder / "masked")
    translation = translation_recipe(folder)
    log: list[str] = []
    train(read_recipe(translation, start_from(folder / "masked" / "model")), folder / "first", log=log.append)
    assert any(line.startswith("took ") and "masked" in line for line in log)
    assert any(line.startswith("drawn at random: decoder.0.") for line in log)
    settings = [*start_from(folder / "first" / "model"), "training.lr_factor=1e-9"]
    train(read_recipe(translation, settings), folder / "second")
    return folder


def test_the_weights_come_with_the_vocabulary(runs: Path) -> None:
    files = [runs / name / "model" / "tokenizer.json" for name in ("masked", "first", "second")]
    assert len({path.read_bytes() for path in files}) == 1
    first, second = (read_tensors(runs / name / "model" / "model.safetensors") for name in ("first", "second"))
    assert first.keys() == second.keys()
    assert all(torch.allclose(first[name], second[name], atol=1e-6) for name in first)  # a learning rate of nearly 0
    assert Translator.load(runs / "second" / "model").translate(["the dog"])


def test_the_chain_of_models_is_told(runs: Path) -> None:
    chain = json.loads((runs / "second" / "model" / "config.json").read_text())["ancestry"]
    assert [(each["name"], each["task"]) for each in chain] == [
        ("masked/model", "masked-lm"), ("first/model", "translation"),
    ]  # fmt: skip
    card = (runs / "second" / "model" / "README.md").read_text(encoding="utf-8")
    assert "started from first/model (translation" in card
    assert "which started from masked/model (masked-lm" in card
    assert "started from" not in (runs / "masked" / "model" / "README.md").read_text(encoding="utf-8")


def test_a_store_with_the_same_vocabulary_is_used(runs: Path, tmp_path: Path) -> None:
    """Whatever the settings say that it was made by."""
    config = read_recipe(runs / "masked.toml", start_from(runs / "masked" / "model"))
    train(config, tmp_path / "more", store=runs / "masked" / "store")
    assert (tmp_path / "more" / "model").is_dir()


def test_cleaning_is_counted_without_training_a_vocabulary(runs: Path, tmp_path: Path) -> None:
    pairs = "".join(f"word {n}\tWort {n}\n" for n in range(10)) + "no tab\n" * 30
    for name in ("train", "dev"):
        (tmp_path / f"{name}.tsv").write_text(pairs if name == "train" else "a\tb\n", encoding="utf-8")
    files = [f"data.{name}_tsv={json.dumps(str(tmp_path / f'{name}.tsv'))}" for name in ("train", "dev")]
    settings = [*start_from(runs / "masked" / "model"), "data.corpus=files", *files]
    with pytest.raises(DataError, match="max_dropped_share"):
        train(read_recipe(runs / "translation.toml", settings), tmp_path / "run")


def test_from_need_not_be_repeated(runs: Path, tmp_path: Path) -> None:
    """A run resumed before its first checkpoint starts from the model again, and records it again."""
    settings = [*start_from(runs / "masked" / "model"), "training.max_updates=4"]
    stopped = train(
        read_recipe(runs / "translation.toml", settings), tmp_path / "run", should_stop=iter([True]).__next__
    )
    assert stopped.reason == "interrupted"
    shutil.rmtree(tmp_path / "run" / "checkpoints", ignore_errors=True)
    train(read_recipe(runs / "translation.toml", ["training.max_updates=4"]), tmp_path / "run", resume=True)
    whole = train(read_recipe(runs / "translation.toml", settings), tmp_path / "whole")
    assert whole.model_folder is not None
    weights = [(tmp_path / name / "model" / "model.safetensors").read_bytes() for name in ("run", "whole")]
    assert weights[0] == weights[1]


def test_what_is_refused(runs: Path, tmp_path: Path) -> None:
    translation = read_recipe(runs / "translation.toml")
    store = prepare(translation.data, tmp_path / "store").folder
    model = runs / "masked" / "model"
    init_only = read_recipe(runs / "translation.toml", start_from(model)[:1])
    with pytest.raises(ConfigError, match="tokenizer_from"):
        train(init_only, tmp_path / "run", store=store)
    with pytest.raises(CheckpointError):
        train(read_recipe(runs / "translation.toml", start_from(tmp_path)), tmp_path / "other")
    settings = [*start_from(model), "data.shared_vocabulary=false", "model.embeddings=separate"]
    with pytest.raises(ConfigError, match="shared_vocabulary"):
        train(read_recipe(runs / "translation.toml", settings), tmp_path / "separate")
    with pytest.raises(ConfigError, match="masks"):
        train(read_recipe(runs / "translation.toml", [*start_from(model), "data.masks=true"]), tmp_path / "masks")
    (tmp_path / "plain.toml").write_text((runs / "translation.toml").read_text(), encoding="utf-8")
    train(read_recipe(tmp_path / "plain.toml"), tmp_path / "plain")
    with pytest.raises(ConfigError, match="no mask token"):
        train(read_recipe(runs / "masked.toml", start_from(tmp_path / "plain" / "model")), tmp_path / "lm")

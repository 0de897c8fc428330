"""The verbs of language models on models with random weights, and ``train --from``."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch

from commands import CommandLine
from said import says
from small_models import write_model
from transduce.config import LanguageModelConfig, ModelConfig, SearchConfig
from transduce.model import Transformer, TransformerLM
from transduce.text import LANGUAGE_MODEL_TOKENS, Tokenizers, byte_tokenizer, train_bpe

SIZES = {"d_model": 16, "d_ff": 16, "n_heads": 2, "d_k": 8, "d_v": 8}
TASKS = ("causal-lm", "masked-lm", "span-corruption")


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a model folder for each task."""
    folder, tokenizer = tmp_path_factory.mktemp("models"), byte_tokenizer(extra_tokens=LANGUAGE_MODEL_TOKENS)
    n = tokenizer.size
    for task in TASKS:
        torch.manual_seed(1)
        config: ModelConfig = LanguageModelConfig(
            n_layers=1, vocab_size=n, n_positions=24, is_causal=task == "causal-lm", **SIZES
        )
        model: torch.nn.Module = TransformerLM.from_config(config) if task != "span-corruption" else torch.nn.Module()
        if task == "span-corruption":
            config = ModelConfig(n_encoder_layers=1, n_decoder_layers=1, src_vocab_size=n, tgt_vocab_size=n, **SIZES)
            model = Transformer(config)
        search = SearchConfig(max_extra_tokens=3)
        write_model(folder / task, model, Tokenizers(tokenizer, tokenizer), search=search, task=task)
    return folder


@pytest.mark.parametrize("task", ["masked-lm", "span-corruption"])
def test_fill(transduce: CommandLine, models: Path, task: str) -> None:
    texts = b"A <mask> sees <mask>.\nno gap\n"
    outcome = transduce("fill", models / task, "--n-best", "2", "--json", stdin=texts)
    assert outcome.code == 0, outcome.err
    first, second = map(json.loads, outcome.out.splitlines())
    assert (first["line"], second["line"], second["text"], second["fills"]) == (1, 2, "no gap", [])
    assert len(first["fills"]) == 2
    for gap in first["fills"]:
        assert 1 <= len(gap) <= 2
        assert all(each.keys() == {"token", "probability"} and 0 <= each["probability"] <= 1 for each in gap)
    plain = transduce("fill", models / task, stdin=texts)
    assert len(plain.out.splitlines()) == 2
    assert "<mask>" not in plain.out


def test_each_kind_says_what_it_cannot_do(transduce: CommandLine, models: Path, tmp_path: Path) -> None:
    (tmp_path / "text").write_text("text\n", encoding="utf-8")
    for arguments, facts in (
        (("fill", models / "causal-lm"), ("causal-lm", "masked-lm")),
        (("generate", models / "masked-lm"), ("masked-lm", "causal-lm")),
        (("perplexity", models / "span-corruption", tmp_path / "text"), ("span-corruption",)),
        (("translate", models / "masked-lm"), ("masked-lm", "translator", "transduce fill")),
        (("fill", models / "masked-lm", "--device", "cpu"), ("window", 24)),
        (("perplexity", models / "causal-lm", tmp_path / "text", "--stride", "25"), ("stride", 25, 24)),
    ):
        outcome = transduce(*arguments, stdin=b"a text that is longer than the window of the models\n")
        assert (outcome.code, len(outcome.err.splitlines())) == (1, 1), outcome.err
        assert says(outcome.err, *facts)


def test_beams(transduce: CommandLine, models: Path) -> None:
    one, again = (transduce("generate", models / "causal-lm", "--beam", "3", "--json", stdin=b"a\nThe\n") for _ in "ab")
    assert one.code == 0, one.err
    assert one.out == again.out
    assert [json.loads(line)["prompt"] for line in one.out.splitlines()] == ["a", "The"]
    both = transduce("generate", models / "causal-lm", "--beam", "3", "--top-k", "2", stdin=b"a\n")
    assert (both.code, len(both.err.splitlines())) == (1, 1)
    assert "beam" in both.err


def test_pseudo_perplexity(transduce: CommandLine, models: Path, tmp_path: Path) -> None:
    (tmp_path / "text").write_text("The dog.\n\nA cat.\n", encoding="utf-8")
    values = json.loads(transduce("perplexity", models / "masked-lm", tmp_path / "text", "--json").out)
    assert values["bytes"] == len("The dog.\nA cat.\n")
    assert values["tokens"] == values["bytes"] + 2  # the space before each line; no end


@pytest.mark.parametrize("task", TASKS)
def test_attention(transduce: CommandLine, models: Path, task: str, tmp_path: Path) -> None:
    out = tmp_path / "page.html"
    outcome = transduce("attention", models / task, "--src", "a <mask>", "--out", out)
    assert outcome.code == 0, outcome.err
    assert out.read_text(encoding="utf-8").startswith("<!doctype html>")
    refused = transduce("attention", models / task, "--src", "a", "--tgt", "b", "--out", out)
    assert (refused.code, says(refused.err, "--tgt", task)) == (1, True)


def test_train_from_a_model(transduce: CommandLine, models: Path, tmp_path: Path) -> None:
    recipe = tmp_path / "translation.toml"
    recipe.write_text(
        'preset = "tiny"\n[model]\nn_encoder_layers = 1\nn_decoder_layers = 1\nd_model = 16\nd_ff = 16\nn_heads = 2\n'
        "d_k = 8\nd_v = 8\n[data]\nn_pairs = 50\n[training]\nmax_updates = 2\nmax_tokens_per_batch = 400\n"
        "average_last = 1\n[search]\nmax_extra_tokens = 1\nbeam_size = 1\n",
        encoding="utf-8",
    )
    outcome = transduce("train", recipe, "--from", models / "masked-lm", "--out", tmp_path / "run")
    assert outcome.code == 0, outcome.err
    assert says(outcome.err, "took", models / "masked-lm")
    config = json.loads((tmp_path / "run" / "model" / "config.json").read_text(encoding="utf-8"))
    assert [each["task"] for each in config["ancestry"]] == ["masked-lm"]
    assert transduce("doctor", tmp_path / "run").code == 0
    for wrong in (tmp_path / "nowhere", tmp_path / "run", recipe):
        refused = transduce("train", recipe, "--from", wrong, "--out", tmp_path / "other")
        assert (refused.code, len(refused.err.splitlines())) == (1, 1), refused.err
        assert says(refused.err, wrong)


def test_a_vocabulary_without_a_mask_is_refused(transduce: CommandLine, models: Path, tmp_path: Path) -> None:
    """A folder that says masked-lm, but whose vocabulary has no mask token, is named in one line."""
    tokenizer = train_bpe(["a b"] * 3, vocab_size=261)
    config = LanguageModelConfig(n_layers=1, vocab_size=tokenizer.size, n_positions=24, is_causal=False, **SIZES)
    model = TransformerLM.from_config(config)
    write_model(tmp_path / "model", model, Tokenizers(tokenizer, tokenizer), task="masked-lm")
    outcome = transduce("fill", tmp_path / "model", stdin=b"a <mask>\n")
    assert (outcome.code, len(outcome.err.splitlines())) == (1, 1), outcome.err


@pytest.mark.parametrize(
    ("content", "words"),
    [(b"%PDF-1.7\n", "PDF"), ("A dog sleeps.\n".encode("utf-16"), "UTF-16"), (b'msgid ""\nmsgstr ""\n', "PO")],
)
def test_what_is_no_text_is_named(
    transduce: CommandLine, models: Path, tmp_path: Path, content: bytes, words: str
) -> None:
    path = tmp_path / "file"
    path.write_bytes(content)
    for verb, task in (("generate", "causal-lm"), ("fill", "masked-lm"), ("perplexity", "causal-lm")):
        arguments, name = ((path,), path) if verb == "perplexity" else ((), "stdin")
        outcome = transduce(verb, models / task, *arguments, stdin=content)
        assert (outcome.code, outcome.out, len(outcome.err.splitlines())) == (1, "", 1)
        assert says(outcome.err, name, words)

"""Every verb: results on stdout, everything else on stderr, and the documented JSON keys."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from commands import CommandLine
from said import says
from transduce.cli.decoding import FLAGS, SHARED_FIELDS
from transduce.config import SearchConfig
from transduce.config.decoding import DecodingOptions
from transduce.files import write_manifest
from transduce.model import has_int8_products

needs_int8 = pytest.mark.skipif(not has_int8_products("cpu"), reason="no products of int8 on this processor")
SCORE_KEYS = {"sacrebleu", "chrf", "sentences"}
TOKENISED = ["--paper-bleu", "--multi30k-bleu"]
LINES = "".join(f"The {'old ' * (n % 5)}dog sleeps.{' A cat.' * (n % 3)}\n" for n in range(13)).encode()


@pytest.fixture
def parallel(tmp_path: Path) -> tuple[Path, Path]:
    src, ref = tmp_path / "src.en", tmp_path / "ref.de"
    src.write_text("The dog sleeps.\nThe woman sees the dog.\n", encoding="utf-8")
    ref.write_text("Der Hund schläft.\nDie Frau sieht den Hund.\n", encoding="utf-8")
    return src, ref


def test_score(transduce: CommandLine, parallel: tuple[Path, Path]) -> None:
    _, ref = parallel
    outcome = transduce("score", "--ref", ref, ref, "--json")
    assert outcome.code == 0
    scores = json.loads(outcome.out)
    assert scores.keys() == SCORE_KEYS
    assert scores["sentences"] == 2
    for name in SCORE_KEYS - {"sentences"}:
        assert scores[name]["score"] == pytest.approx(100.0)
        assert "version:" in scores[name]["signature"]
    text = transduce("score", "--ref", ref, ref).out
    assert "100.00" in text
    assert scores["sacrebleu"]["signature"] in text
    assert "multi30k_bleu" not in text
    both = json.loads(transduce("score", "--ref", ref, ref, *TOKENISED, "--json").out)
    assert both.keys() == SCORE_KEYS | {"paper_bleu", "multi30k_bleu"}
    french = json.loads(transduce("score", "--ref", ref, ref, *TOKENISED, "--language", "fr", "--json").out)
    assert ("tok:moses-de|" in both["multi30k_bleu"]["signature"], french["multi30k_bleu"]["score"]) == (True, 100.0)
    assert "tok:moses-fr|" in french["multi30k_bleu"]["signature"]


def test_score_warns_of_tokenised_text(transduce: CommandLine, parallel: tuple[Path, Path], tmp_path: Path) -> None:
    _, ref = parallel
    tokenised = tmp_path / "tokenised.de"
    tokenised.write_text("Der Hund schläft .\nDie Frau sieht den Hund .\n", encoding="utf-8")
    outcome = transduce("score", "--ref", ref, tokenised)
    assert outcome.code == 0
    assert says(outcome.err, re.compile("^warning: "), tokenised, "tokenised")


def test_score_against_another_system(transduce: CommandLine, tmp_path: Path) -> None:
    names = ["Der Hund", "Die Katze", "Das Kind", "Die Frau", "Der Mann", "Der Vogel"]
    files = {"ref": "{} schläft heute tief.", "good": "{} schläft heute tief.", "bad": "{} schlafen heute tief."}
    for file, sentence in files.items():
        lines = [sentence.format(name) for name in names]
        (tmp_path / file).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    paths = ["--ref", tmp_path / "ref", tmp_path / "good", "--against", tmp_path / "bad"]
    scores = json.loads(transduce("score", *paths, "--resamples", 200, "--seed", 7, "--json").out)
    test = scores.pop("paired_bootstrap")
    assert scores.keys() == SCORE_KEYS
    assert (test["n_resamples"], test["seed"]) == (200, 7)
    assert test["difference"] == pytest.approx(test["b"]["score"] - test["a"]["score"])
    assert test["b"]["score"] == pytest.approx(scores["sacrebleu"]["score"]) == pytest.approx(100.0)
    low, high = test["interval"]
    assert low - 1e-9 <= test["difference"] <= high + 1e-9
    text = transduce("score", *paths).out
    assert says(text, f"{test['difference']:+.2f}")
    assert says(text, "bootstrap", "1,000", 1)


def test_evaluate(transduce: CommandLine, micro_model: Path, parallel: tuple[Path, Path], tmp_path: Path) -> None:
    src, ref = parallel
    out = tmp_path / "hyp.de"
    outcome = transduce("evaluate", micro_model, "--src", src, "--ref", ref, "--out", out, "--json")
    assert outcome.code == 0
    scores = json.loads(outcome.out)
    assert scores.keys() == SCORE_KEYS
    assert len(out.read_text(encoding="utf-8").splitlines()) == 2
    assert json.loads(transduce("score", "--ref", ref, out, "--json").out) == scores
    asked = transduce("evaluate", micro_model, "--src", src, "--ref", ref, "--paper-bleu", "--json")
    assert json.loads(asked.out).keys() == SCORE_KEYS | {"paper_bleu"}
    calibrated = transduce("evaluate", micro_model, "--src", src, "--ref", ref, "--calibration", "--json")
    calibration = json.loads(calibrated.out)["calibration"]
    assert 0 <= calibration["error"] <= 1
    assert sum(each["n"] for each in calibration["bins"]) == calibration["tokens"]
    shown = transduce("evaluate", micro_model, "--src", src, "--ref", ref, "--calibration").out
    assert says(shown, "calibration", f"{calibration['tokens']:,}", f"{100 * calibration['error']:.2f}")


def test_evaluate_a_text_of_a_data_folder(
    transduce: CommandLine, micro_model: Path, parallel: tuple[Path, Path], tmp_path: Path
) -> None:
    src, ref = parallel
    folder = tmp_path / "data" / "multi30k"
    folder.mkdir(parents=True)
    src.rename(folder / "test_2016_flickr.en")
    ref.rename(folder / "test_2016_flickr.de")
    data = ["--data", folder.parent]
    by_split = transduce("evaluate", micro_model, "--text", "multi30k/test", *data, "--json")
    by_stem = transduce("evaluate", micro_model, "--text", "multi30k/test_2016_flickr", *data, "--json")
    assert by_split.code == by_stem.code == 0
    assert json.loads(by_split.out) == json.loads(by_stem.out)
    assert json.loads(by_split.out).keys() == SCORE_KEYS | {"multi30k_bleu"}
    missing = transduce("evaluate", micro_model, "--text", "multi30k/val", *data)
    assert missing.code == 1
    assert says(missing.err, "multi30k/val", "en", "de", "transduce corpus get multi30k")
    unknown = transduce("evaluate", micro_model, "--text", "multi30k/tset", *data)
    assert says(unknown.err, re.compile("^error: "), "multi30k/tset", "multi30k/test_2016_flickr")
    generated = transduce("evaluate", micro_model, "--text", "grammar/test", *data)
    assert says(generated.err, re.compile("^error: "), "transduce corpus get grammar --out FOLDER", "--src")
    neither = transduce("evaluate", micro_model)
    assert neither.code == 1
    assert says(neither.err, "--src", "--ref", "--text")


def test_translate_writes_one_line_for_each_line(transduce: CommandLine, micro_model: Path) -> None:
    odd = "\n".join(
        ["The dog sleeps.", "", "   ", "The\tdog\u2028sleeps.", "🐕 сон 犬", "nul \0 byte", "word " * 3000, "last"]
    )
    outcome = transduce("translate", micro_model, "--no-split", stdin=odd.encode())
    assert outcome.code == 0
    lines = outcome.out.split("\n")
    assert lines.pop() == ""
    assert len(lines) == 8
    assert (lines[1], lines[2]) == ("", "   ")
    assert says(outcome.err, re.compile("^warning: "), 7, "1,024")
    assert transduce("translate", micro_model, stdin=b"The dog sleeps.").out.rstrip("\n") == lines[0]


def test_translate_json_and_n_best(transduce: CommandLine, micro_model: Path) -> None:
    outcome = transduce("translate", micro_model, "--n-best", 3, "--json", stdin=b"The dog sleeps.\nA cat.\n")
    first, second = (json.loads(line) for line in outcome.out.splitlines())
    assert first.keys() == {"line", "source", "translation", "score", "warnings", "n_best"}
    assert (first["line"], second["line"]) == (1, 2)
    assert first["source"] == "The dog sleeps."
    scores = [best["score"] for best in first["n_best"]]
    assert 1 <= len(scores) <= 3
    assert scores == sorted(scores, reverse=True)
    assert first["n_best"][0] == {"translation": first["translation"], "score": first["score"]}
    plain = transduce("translate", micro_model, "--n-best", 3, stdin=b"The dog sleeps.\n").out.splitlines()
    assert len(plain) == len(scores)
    assert plain[0].split("\t")[0] == "1"


def test_translate_with_a_shortlist(transduce: CommandLine, micro_run: Path, tmp_path: Path) -> None:
    made = transduce("shortlist", micro_run / "store", "--out", tmp_path / "short", "--candidates", 5, "--json")
    assert json.loads(made.out) == {"folder": str(tmp_path / "short"), "candidates": 6, "frequent": 200}
    lines = b"The dog sleeps.\nThe cat sees the dog.\n"
    again = transduce("shortlist", micro_run / "store", "--out", tmp_path / "short")
    assert (again.code, says(again.err, tmp_path / "short"), "learning" in again.err) == (1, True, False)
    short = transduce("translate", micro_run / "model", "--shortlist", tmp_path / "short", stdin=lines)
    assert (short.code, len(short.out.splitlines())) == (0, 2)
    every = ("--candidates", 1, "--frequent", 10_000)  # scores every token
    assert transduce("shortlist", micro_run / "store", "--out", tmp_path / "every", *every).code == 0
    whole = transduce("translate", micro_run / "model", "--shortlist", tmp_path / "every", stdin=lines)
    assert whole.out == transduce("translate", micro_run / "model", stdin=lines).out
    ensemble = transduce("translate", *[micro_run / "model"] * 2, "--shortlist", tmp_path / "short", stdin=lines)
    assert (ensemble.code, says(ensemble.err, "ensemble")) == (1, True)
    (tmp_path / "short" / "shortlist.safetensors").write_bytes(b"damaged")
    damaged = transduce("translate", micro_run / "model", "--shortlist", tmp_path / "short", stdin=lines)
    assert (damaged.code, says(damaged.err, "shortlist.safetensors")) == (1, True)


@pytest.mark.parametrize("precision", ["bf16", pytest.param("int8", marks=needs_int8)])
def test_translate_in_other_precisions(transduce: CommandLine, micro_model: Path, precision: str) -> None:
    outcome = transduce("translate", micro_model, "--precision", precision, "--json", stdin=b"The dog sleeps.\n")
    exact = transduce("translate", micro_model, "--json", stdin=b"The dog sleeps.\n")
    scores = [json.loads(result.out)["score"] for result in (outcome, exact)]
    assert scores[0] == pytest.approx(scores[1], rel=0.1)
    assert scores[0] != scores[1]  # the precisions do differ
    together = transduce("translate", micro_model, micro_model, stdin=b"The dog sleeps.\n")
    assert together.out == transduce("translate", micro_model, stdin=b"The dog sleeps.\n").out
    refused = transduce("translate", micro_model, "--precision", "fp8")
    assert refused.code == 1
    assert says(refused.err, "--precision", "fp32", "bf16", "int8", "auto", "fp8")


def test_a_reverse_model_chooses(transduce: CommandLine, micro_model: Path, own_model: Path) -> None:
    config = own_model / "config.json"
    config.write_text(config.read_text(encoding="utf-8").replace('"en-de"', '"de-en"'), encoding="utf-8")
    write_manifest(own_model, exempt=("README.md",))
    alone = transduce("translate", micro_model, "--json", "--n-best", 4, stdin=b"The dog sleeps.\n")
    chosen = transduce(
        *("translate", micro_model, "--json", "--n-best", 4, "--rerank", own_model, "--rerank-weight", 2),
        stdin=b"The dog sleeps.\n",
    )
    before, after = (
        {best["translation"]: best["score"] for best in json.loads(outcome.out)["n_best"]}
        for outcome in (alone, chosen)
    )
    assert before.keys() == after.keys()
    assert all(after[text] < before[text] for text in before)
    refused = transduce("translate", micro_model, "--rerank", micro_model, stdin=b"The dog sleeps.\n")
    assert refused.code == 1
    assert says(refused.err, "en-de", "en-de", "de-en")


@pytest.mark.merge
@pytest.mark.parametrize(("n_workers", "buffer"), [(2, 3), (3, 1), (2, 250)])
def test_translate_with_workers_writes_what_one_process_writes(
    transduce: CommandLine, micro_model: Path, n_workers: int, buffer: int
) -> None:
    alone = transduce("translate", micro_model, stdin=LINES)
    together = transduce("translate", micro_model, "--workers", n_workers, "--buffer", buffer, stdin=LINES)
    assert (together.code, together.out, together.err) == (0, alone.out, alone.err)


@pytest.mark.merge
def test_workers_write_records_and_nothing_for_no_text(transduce: CommandLine, micro_model: Path) -> None:
    records = transduce("translate", micro_model, "--workers", 2, "--json", "--n-best", 2, stdin=LINES)
    expected = transduce("translate", micro_model, "--json", "--n-best", 2, stdin=LINES)
    for record, other in zip(records.out.splitlines(), expected.out.splitlines(), strict=True):
        got, wanted = json.loads(record), json.loads(other)
        assert got["translation"] == wanted["translation"]
        assert got["score"] == pytest.approx(wanted["score"], abs=1e-4)
    assert transduce("translate", micro_model, "--workers", 2, stdin=b"").out == ""


@pytest.mark.merge
def test_workers_have_the_shortlist(transduce: CommandLine, micro_run: Path, tmp_path: Path) -> None:
    assert transduce("shortlist", micro_run / "store", "--out", tmp_path / "short", "--candidates", 5).code == 0
    command = ("translate", micro_run / "model", "--shortlist", tmp_path / "short")
    together = transduce(*command, "--workers", 2, "--buffer", 1, stdin=LINES)
    assert (together.code, together.out) == (0, transduce(*command, stdin=LINES).out)


@pytest.mark.merge
def test_an_error_of_a_worker_is_one_line(transduce: CommandLine, micro_model: Path) -> None:
    refused = transduce("translate", micro_model, "--workers", 2, "--precision", "fp8", stdin=b"The dog sleeps.\n")
    assert refused.code == 1
    assert says(refused.err, "--precision", "fp8")
    assert len(refused.err.splitlines()) == 1


def test_translate_replaces_what_is_not_utf8(transduce: CommandLine, micro_model: Path) -> None:
    outcome = transduce("translate", micro_model, stdin=b"good\nbad \xff byte\n")
    assert outcome.code == 0
    assert outcome.out.count("\n") == 2
    assert says(outcome.err, re.compile("^warning: "), 2, "UTF-8")


def test_a_bigger_n_best_widens_the_beam() -> None:
    assert DecodingOptions(n_best=6).applied_to(SearchConfig(beam_size=4)).beam_size == 6
    assert DecodingOptions(n_best=2).applied_to(SearchConfig(beam_size=4)).beam_size == 4
    changed = DecodingOptions(beam_size=1, alpha=0.0).applied_to(SearchConfig(beam_size=4, alpha=0.6))
    assert changed == SearchConfig(beam_size=1, alpha=0.0)


def test_model(transduce: CommandLine, micro_model: Path) -> None:
    outcome = transduce("model", "big", "--vocab-size", 37000, "--json")
    values = json.loads(outcome.out)
    assert values["parameters"] == 214_171_648
    assert {"parameters_without_embeddings", "flops_per_token", "attention_flops_per_token"} <= values.keys()
    base = json.loads(transduce("model", "base", "--vocab-size", "37000", "--json").out)
    assert base["flops_per_token"] / 1e6 == pytest.approx(378, abs=0.5)
    text = transduce("model", "tiny").out
    assert "4 x: Layer" in text
    assert "d_model" not in text
    assert transduce("model", micro_model).code == 0
    of_parser, of_translator = (transduce("model", name) for name in ("parsing-gum", "multi30k-en-de"))
    assert "too many" in of_parser.err
    assert "too many" not in of_translator.err


def test_prepare_then_train_from_the_store(transduce: CommandLine, micro_recipe: Path, tmp_path: Path) -> None:
    store, run = tmp_path / "store", tmp_path / "run"
    outcome = transduce("prepare", micro_recipe, "--out", store, "--json")
    assert json.loads(outcome.out)["train_pairs"] == 600
    settings = ["--set", "training.max_updates=3", "--set", "training.checkpoint_every_updates=1"]
    outcome = transduce("train", micro_recipe, "--store", store, "--out", run, *settings, "--json")
    assert outcome.code == 0
    result = json.loads(outcome.out)
    assert (result["updates"], result["reason"], result["split"]) == (3, "max_updates", "test")
    assert result["scores"].keys() == SCORE_KEYS
    assert not (run / "store").exists()
    card = (Path(result["model"]) / "README.md").read_text(encoding="utf-8")
    assert says(card, 2, "checkpoints")
    assert "| sacrebleu |" in card
    assert "paper_bleu" not in card
    assert "multi30k_bleu" not in card
    refused = transduce("train", micro_recipe, "--store", store, "--set", "data.n_pairs=601", "--out", tmp_path / "x")
    assert refused.code == 1
    assert "data.n_pairs" in refused.err


def test_average(transduce: CommandLine, micro_run: Path, tmp_path: Path) -> None:
    outcome = transduce("average", micro_run, "--last", 1, "--out", tmp_path / "one", "--json")
    assert outcome.code == 0
    assert json.loads(outcome.out)["scores"].keys() == SCORE_KEYS
    names = {path.name for path in (tmp_path / "one").iterdir()}
    assert names == {"config.json", "model.safetensors", "tokenizer.json", "manifest.json", "README.md"}


def test_corpus(transduce: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("TRANSDUCE_DATA", raising=False)
    data = tmp_path / "data"
    for name in ("multi30k/train.en", "multi30k/train.fr", "wmt_news/newstest2010.en", "wmt_news/newstest2010.de"):
        (data / name).parent.mkdir(parents=True, exist_ok=True)
        (data / name).write_text("a line\n")
    (data / "trees" / "gum").mkdir(parents=True)
    (data / "trees" / "gum" / "train.ptb").write_text("(TOP (NN dog))\n")
    listed = json.loads(transduce("corpus", "list", "--json", "--data", data).out)
    assert {bank["name"]: bank["is_here"] for bank in listed["treebanks"]} == {
        "gum": True, "craft": False, "wsj-sample": False,
    }  # fmt: skip
    rows = listed["corpora"]
    here = {row["name"]: row["here"] for row in rows}
    assert {"grammar", "multi30k", "wmt14-en-de", "wmt14-en-fr", "newstest", "libreoffice-help"} <= here.keys()
    assert (here["grammar"], here["multi30k"], here["wmt14-en-de"]) == (["en-de"], ["en-fr"], [])
    assert here["newstest"] == []  # one of its texts is there
    for row in rows:
        assert row["is_here"] is bool(row["here"])
        assert row["languages"]
        assert row["size"]
        assert row["licence"]
        assert row["source"]
    text = transduce("corpus", "list", "--data", data).out
    assert says(text, "multi30k", "en", "de", "fr", "en-fr")
    assert not says(text, "multi30k", "en-de")
    assert says(text, "newstest", "en", "de", "fr")
    assert says(text, "wesnoth", "18,577", "19,895")  # from a local copy: its licence is in the next line
    assert says(text, "GPL-2+", "CC BY-SA 4.0", "Wesnoth")
    unknown = transduce("corpus", "get", "mutli30k")
    assert unknown.code == 1
    assert says(unknown.err, "mutli30k", "multi30k")
    assert says(transduce("corpus", "get", "wsj-sample").err, "DIR/trees/nltk_wsj_sample", "train.ptb")
    out = tmp_path / "text"
    outcome = transduce("corpus", "get", "grammar", "--out", out, "--pairs", 50, "--seed", 3, "--json")
    assert json.loads(outcome.out)["pairs"]["train"] == 50
    for kind in ("en", "de", "trees"):
        assert len((out / f"train.{kind}").read_text(encoding="utf-8").splitlines()) == 50
    again = transduce("corpus", "get", "grammar", "--out", out)
    assert again.code == 1
    assert says(again.err, out, "exists")


def test_attention_page(transduce: CommandLine, micro_model: Path, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    outcome = transduce("attention", micro_model, "--src", "The dog sleeps.", "--out", page)
    assert outcome.code == 0
    assert str(page) in outcome.out
    assert "The dog sleeps." in page.read_text(encoding="utf-8")


def test_parseval(transduce: CommandLine, tmp_path: Path) -> None:
    gold, test = tmp_path / "gold.mrg", tmp_path / "test.mrg"
    tree = "(TOP (S (NP (DT a) (NN dog)) (VP (VBZ sleeps)) (. .)))\n"
    gold.write_text(tree * 3)
    test.write_text(tree + tree.replace("(VP (", "(PP (") + "(())\n")
    outcome = transduce("parseval", gold, test, "--json", "--details")
    values = json.loads(outcome.out)
    assert (values["valid"], values["skipped"], values["errors"]) == (2, 1, 0)
    assert values["f1"] == pytest.approx(100 * 5 / 6)
    assert values["tagging_accuracy"] == 100
    assert values["length_40"]["f1"] == values["f1"]
    assert [each["status"] for each in values["sentences"]] == ["valid", "valid", "skipped"]
    assert {"recall", "precision", "complete_match", "average_crossing", "no_crossing"} <= values.keys()
    text = transduce("parseval", gold, test).out
    assert re.search(r"^labelled F1 +83\.33 +83\.33$", text, re.MULTILINE)
    assert "correct tags" not in text
    assert "correct tags" in transduce("parseval", gold, test, "--details").out
    test.write_text(tree + "(S (NN dog)\n" + tree)
    broken = transduce("parseval", gold, test)
    (line,) = broken.err.splitlines()
    assert says(line, re.compile("^warning: "), test, 2, 1, "'S'")
    assert re.search(r"^error sentences +1 +1$", broken.out, re.MULTILINE)
    swapped = transduce("parseval", test, gold)
    assert swapped.code == 1
    (line,) = swapped.err.splitlines()
    assert says(line, re.compile("^error: "), test, 2, 1, "'S'", "--plain")
    test.write_text(tree)
    assert says(transduce("parseval", gold, test).err, gold, 3, test, 1)


def test_generate_and_perplexity(transduce: CommandLine, tmp_path: Path) -> None:
    recipe = tmp_path / "lm.toml"
    recipe.write_text(
        'preset = "tiny"\n[model]\nsystem = "language-model"\nn_layers = 1\nd_model = 16\nd_ff = 16\nn_heads = 1\n'
        'n_positions = 16\n[data]\ntask = "causal-lm"\nlanguage = "en"\nn_pairs = 50\ntokenizer = "bytes"\n'
        "[training]\nmax_updates = 2\nmax_tokens_per_batch = 200\naverage_last = 1\n",
        encoding="utf-8",
    )
    assert transduce("train", recipe, "--out", tmp_path / "run").code == 0
    model, prompts = tmp_path / "run" / "model", b"The dog\na \\n b\n"
    one, again = (transduce("generate", model, "--max-tokens", "9", "--seed", "3", stdin=prompts) for _ in range(2))
    assert one.code == 0
    assert one.out == again.out
    assert one.out.startswith("The dog")
    lines = [json.loads(line) for line in transduce("generate", model, "--json", stdin=prompts).out.splitlines()]
    assert [(each["line"], each["prompt"]) for each in lines] == [(1, "The dog"), (2, "a \n b")]
    assert all({"text", "log_prob", "tokens"} <= each.keys() for each in lines)
    text = tmp_path / "text"
    text.write_text("The dog sleeps.\n\nA cat.\n", encoding="utf-8")
    values = json.loads(transduce("perplexity", model, text, "--json").out)
    assert values["bytes"] == len("The dog sleeps.\nA cat.\n")
    assert values["tokens"] == values["bytes"] + 2 + 2  # the space before each line, and the end of each document
    assert "bits per byte" in transduce("perplexity", model, text).out
    text.write_text("", encoding="utf-8")
    empty = transduce("perplexity", model, text)
    assert (empty.code, len(empty.err.splitlines())) == (1, 1)
    long = transduce("generate", model, stdin=b"far too long a prompt for this window\n")
    assert (long.code, len(long.err.splitlines())) == (1, 1)
    assert says(long.err, "window", 16)


def test_the_overview_describes_verbs_as_they_do_themselves() -> None:
    import typer

    from transduce.cli.verbs import VERBS, make_app

    overview, own = (typer.main.get_command(make_app(is_overview=each)).commands for each in (True, False))  # type: ignore[attr-defined]
    assert {name: overview[name].help for name in VERBS} == {name: own[name].help for name in VERBS}


# Those of each verb; of serve and translate, those that are no fields of searches.
OPTIONS = {
    "attention": "--device --out --src --tgt",
    "align": "--characters --device --engine --json --out --precision --src --tgt",
    "average": "--around --device --json --last --out --update",
    "corpus get": "--direction --from --json --out --pairs --seed",
    "corpus list": "--data --json",
    "demo": "--corpus --data --device --json --minutes --out --seed --set",
    "distil": "--alpha --back --beam --device --engine --json --out --precision --sample --seed --src --workers",
    "doctor": "--data --json",
    "sweep": "--alpha --beam --device --engine --json --precision --ref --src",
    "evaluate": (
        "--alpha --beam --calibration --data --device --engine --json --media --multi30k-bleu --out --paper-bleu"
        " --precision --ref --rerank --rerank-weight --split --src --text --tokenize"
    ),
    "help": "",
    "import": "--direction --json --out",
    "init": (
        "--data --device --direction --from --json --max-dropped-share --minutes --mix --out --po --src --terms"
        " --tgt --tmx --tsv --xliff"
    ),
    "memory build": "--json --out --src --tgt",
    "memory export": "--out",
    "memory search": "--json --n",
    "model": "--json --length --vocab-size",
    "export": "--json --license --out --precision --text --to",
    "fill": "--device --engine --json --n-best",
    "generate": (
        "--beam --best-of --device --engine --json --max-tokens --reward-model --samples --seed --temperature"
        " --top-k --top-p"
    ),
    "perplexity": "--device --engine --json --stride",
    "parse": (
        "--alpha --beam --buffer --device --engine --json --precision --pretty --raw --svg --trees --unconstrained"
    ),
    "parseval": "--details --json --plain",
    "rank": "--beam --device --engine --json --out --precision --ref --samples --seed --src --temperature",
    "prepare": "--data --json --out --set --treebank --workers",
    "read": "--alpha --beam --device --engine --json --n-best --precision --sample --seed",
    "score": (
        "--against --device --engine --json --language --model --multi30k-bleu --paper-bleu --precision --ref"
        " --resamples --seed --src --tokenize"
    ),
    "train": (
        "--break-lock --data --device --from --json --list --minutes --mix --more --on-nan --out --po --resume"
        " --set --shard --store --tmx --treebank --xliff"
    ),
    "serve": (
        "--avoid --batch --cors --device --drain-s --engine --glossaries --host --keys --memory --port --precision"
        " --prefix --queue --terms --terms-hard --timeout-s --wait-ms --watch"
    ),
    "transcribe": "--alpha --beam --device --engine --json --n-best --precision --sample --seed",
    "shortlist": "--candidates --frequent --json --out --pairs",
    "translate": (
        "--alignment --avoid --best-of --buffer --device --draft --draft-probability --draft-tokens --engine"
        " --format --in --json --memory --no-split --out --precision --prefix --ray --report --rerank"
        " --rerank-weight --review --reward-model --shortlist --terms --terms-hard --trust --wanted --warnings"
        " --workers"
    ),
}


def test_every_verb_and_flag_is_known() -> None:
    """The options of the command line are frozen: a change affects users and must be documented in the README.

    Those of decoding are the fields of searches, which ``translate`` has all, and ``serve`` those of beam search.
    """
    import typer

    from transduce.cli.verbs import VERBS, make_app

    found: dict[str, list[str]] = {}
    commands = typer.main.get_command(make_app()).commands  # type: ignore[attr-defined]
    for name, command in ((name, commands[name]) for name in VERBS):
        for verb, leaf in getattr(command, "commands", {"": command}).items():
            options = [max(p.opts, key=len) for p in leaf.params if p.opts[0].startswith("-")]
            found[f"{name} {verb}".strip()] = sorted(options)
    expected = {verb: options.split() for verb, options in OPTIONS.items()}
    expected["serve"] = sorted({*expected["serve"], *(FLAGS[name].name for name in SHARED_FIELDS)})
    expected["translate"] = sorted({*expected["translate"], *(flag.name for flag in FLAGS.values())})
    assert found == expected

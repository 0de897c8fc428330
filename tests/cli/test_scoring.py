"""``score`` and ``evaluate``: tokenizers by language, several references, and the same warnings about the text."""

from __future__ import annotations

import json
import re
import unicodedata
from pathlib import Path
from typing import Any

import pytest

from commands import CommandLine
from run_records import records
from said import says
from transduce.cli.output import print_scores
from transduce.config import SPLITS
from transduce.corpora import generate_pairs
from transduce.inference import Translator
from transduce.metrics import Score, TranslationScores
from transduce.recipes import read_recipe
from transduce.runs import train
from transduce.runs.averaging import average_run
from transduce.tasks.pairs.translation import TranslationTask

THAI = ("สุนัขแก่ตัวนั้นนอนหลับอยู่ใต้ต้นไม้ในสวนวันนี้", "สุนัขแก่ตัวนั้นนอนหลับอยู่ใต้ต้นไม้ในสวนเมื่อวาน")
CHINESE = ("那条老狗今天在花园的树下睡觉。", "那条老狗昨天在花园的树下睡觉。")


def write(path: Path, *lines: str) -> Path:
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return path


def tokenizer_of(outcome: Any) -> tuple[str, float]:
    assert outcome.code == 0, outcome.err
    score = json.loads(outcome.out)["sacrebleu"]
    return score["signature"].split("tok:")[1].split("|")[0], score["score"]


@pytest.mark.parametrize(
    ("name", "pair", "options", "tokenizer"),
    [
        ("ref.zh", CHINESE, [], "zh"),
        ("ref", CHINESE, [], "zh"),
        ("ref", CHINESE, ["--language", "zh-Hant"], "zh"),
        ("ref", CHINESE, ["--tokenize", "char"], "char"),
        ("ref.th.gz", THAI, [], "char"),
        ("ref.txt", THAI, ["--language", "th"], "char"),
        ("ref.de", ("Der Hund schläft heute.", "Der Hund schläft heute."), [], "13a"),
        ("ref.de", ("Der Hund schläft heute.", "Der Hund schläft heute."), ["--tokenize", "intl"], "intl"),
    ],
)
def test_the_tokenizer_of_score(
    transduce: CommandLine, tmp_path: Path, name: str, pair: tuple[str, str], options: list[str], tokenizer: str
) -> None:
    ref = write(tmp_path / name.removesuffix(".gz"), pair[0])
    if name.endswith(".gz"):
        import gzip

        ref = ref.with_name(name)
        ref.write_bytes(gzip.compress(f"{pair[0]}\n".encode()))
    hyp = write(tmp_path / "hyp", pair[1])
    found, score = tokenizer_of(transduce("score", "--ref", ref, hyp, *options, "--json"))
    assert found == tokenizer
    assert score > 60
    test = json.loads(transduce("score", "--ref", ref, hyp, "--against", ref, *options, "--json").out)[
        "paired_bootstrap"
    ]
    assert f"|tok:{tokenizer}|" in test["a"]["signature"]


def test_unknown_tokenizers_are_refused_before_anything_is_read(
    transduce: CommandLine, micro_model: Path, tmp_path: Path
) -> None:
    for arguments in (("score", "--ref", tmp_path / "no", tmp_path / "no"),
                      ("evaluate", micro_model, "--src", tmp_path / "no", "--ref", tmp_path / "no")):  # fmt: skip
        outcome = transduce(*arguments, "--tokenize", "words")
        assert (outcome.code, outcome.out) == (1, "")
        assert says(outcome.err, "13a", "char", "words"), outcome.err


def test_several_references(transduce: CommandLine, micro_model: Path, tmp_path: Path) -> None:
    pairs = list(generate_pairs("dev", n_pairs=4, seed=3))
    src = write(tmp_path / "src.en", *(pair.en for pair in pairs))
    right = write(tmp_path / "right.de", *(pair.de for pair in pairs))
    mixed = [pair.de if n % 2 else f"Nein, {pair.de} Ja." for n, pair in enumerate(pairs)]
    one, other = write(tmp_path / "one.de", *mixed), write(tmp_path / "other.de", *reversed(mixed))
    both = transduce("score", "--ref", one, "--ref", other, right, "--json")
    scores = json.loads(both.out)
    assert scores["sacrebleu"]["signature"].startswith("nrefs:2|")
    assert scores["chrf"]["signature"].startswith("nrefs:2|")
    of_one = json.loads(transduce("score", "--ref", one, right, "--json").out)
    assert scores["sacrebleu"]["score"] > of_one["sacrebleu"]["score"]
    assert json.loads(transduce("score", "--ref", other, "--ref", one, right, "--json").out) == scores
    evaluated = transduce("evaluate", micro_model, "--src", src, "--ref", one, "--ref", other, "--json")
    out = write(tmp_path / "out.de", *Translator.load(micro_model).translate([pair.en for pair in pairs], split=False))
    assert json.loads(evaluated.out) == json.loads(transduce("score", "--ref", one, "--ref", other, out, "--json").out)
    for verb in (("score", right), ("evaluate", micro_model, "--src", src)):
        twice = transduce(*verb, "--ref", one, "--ref", one)
        assert (twice.code, says(twice.err, one, "twice")) == (1, True)
        stdin = transduce(*verb, "--ref", "-", "--ref", one, stdin=one.read_bytes())
        assert stdin.code == 0, stdin.err
        short = transduce(*verb, "--ref", one, "--ref", write(tmp_path / "short.de", *mixed[:3]))
        assert (short.code, says(short.err, "short.de", 3, 4)) == (1, True)


def test_references_in_another_form_of_unicode_score_the_same(
    transduce: CommandLine, micro_model: Path, tmp_path: Path
) -> None:
    pairs = list(generate_pairs("dev", n_pairs=6, seed=3))
    src = write(tmp_path / "src.en", *(pair.en for pair in pairs))
    forms = {
        form: [unicodedata.normalize(form, f"{pair.de} Schön für Übung.") for pair in pairs] for form in ("NFC", "NFD")
    }
    scores = {}
    for form, lines in forms.items():
        outcome = transduce(
            "evaluate", micro_model, "--src", src, "--ref", write(tmp_path / f"{form}.de", *lines), "--json"
        )
        scores[form] = json.loads(outcome.out)
        assert ("norm:NFC" in scores[form]["sacrebleu"]["signature"]) == (form == "NFD")
        assert ("norm:NFC" in scores[form]["chrf"]["signature"]) == (form == "NFD")
    for name in ("sacrebleu", "chrf"):
        assert scores["NFC"][name]["score"] == scores["NFD"][name]["score"]
    assert scores["NFC"]["chrf"]["score"] > 0


@pytest.mark.parametrize(
    ("lines", "fact"),
    [
        (["Der Hund schläft .", "Die Frau , die lacht ."], "tokenised"),
        (["Der Hu@@ nd schläft.", "Die Frau lacht."], "@@"),
        (["▁Der ▁Hund ▁schläft .", "▁Die ▁Frau ▁lacht ."], "▁"),
    ],
)
def test_score_and_evaluate_warn_alike(
    transduce: CommandLine, micro_model: Path, tmp_path: Path, lines: list[str], fact: str
) -> None:
    src, ref = write(tmp_path / "src.en", "The dog sleeps.", "The woman laughs."), write(tmp_path / "ref.de", *lines)
    hyp = write(tmp_path / "hyp.de", "Der Hund schläft.", "Die Frau lacht.")
    warned = [
        [line for line in transduce(*verb, "--ref", ref).err.splitlines() if str(ref) in line]
        for verb in (("score", hyp), ("evaluate", micro_model, "--src", src))
    ]
    assert warned[0] == warned[1]
    assert len(warned[0]) == 1
    assert says(warned[0][0], re.compile("^warning: "), ref, fact)


def test_moses_rules_are_those_of_the_language(transduce: CommandLine, tmp_path: Path) -> None:
    ref = write(tmp_path / "ref.pt", "O cão dorme.")
    outcome = transduce("score", "--ref", ref, ref, "--multi30k-bleu", "--language", "pt-BR", "--json")
    assert "tok:moses-pt|" in json.loads(outcome.out)["multi30k_bleu"]["signature"]
    assert "warning" not in outcome.err
    for code in ("", "d", "deutsch", "d3"):
        outcome = transduce("score", "--ref", ref, ref, "--language", code)
        assert (outcome.code, says(outcome.err, "--language")) == (1, True)


def test_test_sets_are_translated_as_lines_of_users_are(
    transduce: CommandLine, micro_model: Path, tmp_path: Path
) -> None:
    """Capitals are read as lower case in both, with and without splitting."""
    lines = ["THE OLD DOG SLEEPS.", "THE WOMAN SEES THE DOG.", "the dog sleeps."]
    src, out = write(tmp_path / "src.en", *lines), tmp_path / "out.de"
    assert transduce("evaluate", micro_model, "--src", src, "--ref", src, "--out", out).code == 0
    translated = transduce("translate", micro_model, "--in", src).out.splitlines()
    assert out.read_text(encoding="utf-8").splitlines() == translated
    assert transduce("translate", micro_model, "--in", src, "--no-split").out.splitlines() == translated
    assert all(line == line.upper() for line in translated[:2])


def test_validation_and_card_have_the_tokenizer_of_the_target_language(micro_recipe: Path, tmp_path: Path) -> None:
    pairs = [(f"dog {n}", f"狗{n}在睡觉。") for n in range(20)]
    src, tgt = write(tmp_path / "a.en", *(en for en, _ in pairs)), write(tmp_path / "a.zh", *(zh for _, zh in pairs))
    settings = ["data.corpus=files", "data.direction=en-zh", "data.vocab_size=300", "training.validate_every_updates=1"]
    settings += [f"data.{split}_{side}={path}" for split in SPLITS for side, path in (("src", src), ("tgt", tgt))]
    result = train(read_recipe(micro_recipe, [*settings, "training.max_updates=2"]), tmp_path / "run")
    assert isinstance(result.scores, TranslationScores)
    assert "|tok:zh|" in result.scores.sacrebleu.signature
    assert " tok:zh " in (tmp_path / "run" / "model" / "README.md").read_text(encoding="utf-8")
    signatures = [each["signature"] for each in records(tmp_path / "run") if "bleu" in each]
    assert len(signatures) == 2
    assert all("|tok:zh|" in each for each in signatures)


class Figures:
    def as_json(self) -> dict[str, Any]:
        return {"perplexity": 5.010590350348768, "tokens": 12345, "f1": {"score": 50.0, "signature": "a:b"}}


def test_figures_are_printed_with_few_decimals(capsys: pytest.CaptureFixture[str]) -> None:
    print_scores(Figures())
    perplexity, tokens, f1 = capsys.readouterr().out.splitlines()
    assert perplexity.split() == ["perplexity", "5.0106"]
    assert tokens.split() == ["tokens", "12,345"]
    assert f1.split() == ["f1", "50.00", "a:b"]


@pytest.mark.parametrize(("bleu", "has_learnt"), [(0.18, False), (1.99, False), (2.0, True), (36.0, True)])
def test_a_run_that_has_learnt_next_to_nothing_says_so(
    own_run: Path, monkeypatch: pytest.MonkeyPatch, bleu: float, has_learnt: bool
) -> None:
    told: list[str] = []
    score = Score(bleu, "tok:13a")
    scores = TranslationScores(sacrebleu=score, chrf=score, sentences=100)
    monkeypatch.setattr(TranslationTask, "evaluate", lambda *_, **__: scores)
    average_run(own_run, last=1, out=own_run / "other", log=told.append)
    assert any(says(line, "learnt", "--more") for line in told) == (not has_learnt)

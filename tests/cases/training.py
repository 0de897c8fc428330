"""Training of one's own text: what is told before, and which model is left at the end."""

from __future__ import annotations

import json
import math
import re
import tempfile
from itertools import product
from pathlib import Path
from typing import Any

from register import Setting, case, wrong


@case("bpe-text", "cr-line-ends", "tokenised-text", "tsv-3-columns")
def _doctor(setting: Setting) -> str | None:
    told = {}
    for name, files, fact in (
        ("bpe-text", ["bpe.en", "bpe.de"], "@@"),
        ("cr-line-ends", ["cr.en", "cr.de"], "CR"),
        ("tokenised-text", ["tok.en", "tok.de"], "tokenised"),
        ("tsv-3-columns", ["anki.tsv"], "column"),
    ):
        paths = [setting.cases / name / file for file in files]
        with tempfile.TemporaryDirectory() as folder:
            if name == "cr-line-ends":  # a copy of the case may have lost them
                for path in paths:
                    (Path(folder) / path.name).write_bytes(path.read_bytes().replace(b"\n", b"\r"))
                paths = [Path(folder) / path.name for path in paths]
            _, out, errors = setting.run("doctor", *paths)
        told[name] = fact in out + errors
    return None if all(told.values()) else wrong(told)


@case("hindi-tokens")
def _marks_belong_to_words(setting: Setting) -> str | None:
    from transduce.text import train_bpe

    lines = setting.input("hindi-tokens", "hi.hi").split("\n")
    tokenizer = train_bpe(lines * 50, vocab_size=4000)
    n_tokens = len(tokenizer.encode("किताब खिड़की विद्यार्थी"))
    return None if n_tokens <= 4 else wrong(n_tokens)


@case("region-code", "same-language")
def _directions(setting: Setting) -> str | None:
    with tempfile.TemporaryDirectory() as folder:
        english, other = ("dog cat house tree book door".split(), "cão gato casa árvore livro porta".split())
        lines = [
            (f"the {english[i]} {n} sees the {english[j]} {m}", f"o {other[i]} {n} vê o {other[j]} {m}")
            for n, (i, j, m) in enumerate(product(range(6), range(6), range(30)))
        ]
        for column, name in enumerate(("a.en", "a.pt")):
            (Path(folder) / name).write_text("".join(f"{line[column]}\n" for line in lines), encoding="utf-8")
        typos = (Path(folder) / "a.en").read_text().replace("the ", "teh ", 700)
        (Path(folder) / "a.typos").write_text(typos)
        sides = {"en-pt_BR": ("a.en", "a.pt"), "en-pt-BR": ("a.en", "a.pt"), "en-en": ("a.typos", "a.en")}
        codes = {
            direction: setting.run(
                "init", "--src", f"{folder}/{src}", "--tgt", f"{folder}/{tgt}", "--direction", direction,
                "--minutes", 1, "--out", f"{folder}/{direction}.toml",
            )[::2]
            for direction, (src, tgt) in sides.items()
        }  # fmt: skip
    return None if not any(code for code, _ in codes.values()) else wrong(codes)


@case("parse-length")
def _targets_that_outputs_cannot_reach(setting: Setting) -> str | None:
    told, recipe = [], setting.cases / "parse-length" / "par.toml"
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for split, n_deep in (("train", 12), ("dev", 0)):  # 200 trees, of which some are deep
            trees = [_tree(number, 20 if number < n_deep else number % 3) for number in range(200)]
            (folder / f"wsj-{split}.ptb").write_text("".join(f"{tree}\n" for tree in trees))
        options: tuple[str, ...] = ()
        for out in ("short", "long"):
            _, errors = setting.output("prepare", recipe, "--out", folder / out, *options, folder=folder)
            found = re.search(r"(\d+) of (\d+) training targets .*(search.max_extra_tokens = \d+)", errors)
            told.append(found.groups() if found else None)
            if found:
                options = ("--set", found[3].replace(" ", ""))
    return None if told[0] is not None and told[0][:2] == ("12", "200") and told[1] is None else wrong(told)


def _tree(number: int, n_clauses: int) -> str:
    start = f"(S (NP (NNP P{number})) (VP (VBZ says) (SBAR (IN that) "
    return "(TOP " + start * n_clauses + "(S (NP (PRP they)) (VP (VBP sleep)))" + ")))" * n_clauses + ")"


@case("best-checkpoint", models=["over"])
def _the_folder_is_around_the_best(setting: Setting) -> str | None:
    run = setting.model("over").parent
    best = [each["update"] for each in _records(run) if each["kind"] == "validation" and each["is_best"]][-1]
    perplexities = {"folder": _perplexity(setting, run / "model")}
    with tempfile.TemporaryDirectory() as folder:
        for name, options in (("best", ("--update", best)), ("last", ("--last", 5))):
            setting.output("average", run, *options, "--out", f"{folder}/{name}")
            perplexities[name] = _perplexity(setting, Path(folder) / name)
    is_right = perplexities["folder"] < 1.1 * perplexities["best"] < 0.7 * perplexities["last"]
    return None if is_right else wrong(best, perplexities)


def _perplexity(setting: Setting, model: Path) -> float:
    folder = setting.cases / "best-checkpoint"
    out, _ = setting.output("score", "--model", model, "--src", folder / "od.en", folder / "od.de", "--json")
    lines = [json.loads(line) for line in out.split("\n")[:-1]]
    return math.exp(-sum(line["log_prob"] for line in lines) / sum(line["tokens"] for line in lines))


@case("dpo-short", models=["policy"])
def _what_preferences_measure(setting: Setting) -> str | None:
    texts = setting.models / "policy.text"
    settings = ("training.precision=fp32", "training.max_tokens_per_batch=1500", "training.max_updates=20",
                "training.validate_every_updates=10", "training.checkpoint_every_updates=20",
                "training.log_every_updates=10", "data.corpus=files", f"data.train_prompts={texts / 'rankings.tsv'}",
                f"data.dev_prompts={texts / 'rankings-dev.tsv'}")  # fmt: skip
    bad = []
    with tempfile.TemporaryDirectory() as folder:
        for task, of_validation in (("dpo", ("accuracy", "margin", "kl")), ("reward", ("accuracy", "margin"))):
            recipe, run = f"alignment/{task}", Path(folder) / task
            options = [word for each in settings for word in ("--set", each)]
            _, errors = setting.output("train", recipe, "--from", setting.model("policy"), "--out", run, *options)
            told = [line.lower() for line in errors.split("\n") if re.match(r"update \d+", line)]
            updates, validations = (
                [each for each in _records(run) if each["kind"] == kind] for kind in ("update", "validation")
            )
            is_right = (
                all(name in line for line in told for name in ("accuracy", "margin"))
                and all({"accuracy", "margin"} <= each.keys() for each in updates)
                and all(validations[1][name] >= validations[0][name] > 0 for name in of_validation)
                and validations[1]["accuracy"] > 0.9
                and all(name in line for line in told if "dev" in line for name in of_validation)
                and (task == "dpo" or "perplexity" not in errors)  # that of DPO is of the best responses' tokens
            )
            if not is_right or len(told) != 4:
                bad.append((task, told, validations))
    return wrong(bad) if bad else None


def _records(run: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (run / "metrics.jsonl").read_text().split("\n")[:-1]]

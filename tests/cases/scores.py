"""Scores of scripts, references and forms of Unicode."""

from __future__ import annotations

import json

from register import Setting, case, wrong


@case("score-zh")
def _scores_by_language(setting: Setting) -> str | None:
    found = []
    for language in ("zh", "ja"):
        folder = setting.cases / "score-zh"
        _, out, _ = setting.run(
            "score", folder / f"hyp.{language}", "--ref", folder / f"ref.{language}", "--language", language, "--json"
        )
        found.append(json.loads(out)["sacrebleu"]["score"] if out else 0)
    return None if min(found) > 50 else wrong(found)


@case("score-multi-ref")
def _several_references(setting: Setting) -> str | None:
    folder = setting.cases / "score-multi-ref"
    code, out, errors = setting.run(
        "score", "--ref", folder / "ref1", "--ref", folder / "ref2", folder / "hyp", "--json"
    )
    return None if code == 0 and abs(json.loads(out)["sacrebleu"]["score"] - 90.64) < 0.01 else wrong(out, errors)


@case("score-nfd")
def _canonically_equal(setting: Setting) -> str | None:
    folder = setting.cases / "score-nfd"
    scores = []
    for ref, hypothesis in (("ref.nfd", "hyp.nfc"), ("ref.hi", "hyp.hi")):
        _, out, _ = setting.run("score", "--ref", folder / ref, folder / hypothesis, "--json")
        scores.append(json.loads(out)["sacrebleu"]["score"])
    return None if min(scores) > 50 else wrong(scores)


@case("nfd-evaluate", models=["demo"])
def _evaluated_in_nfc(setting: Setting) -> str | None:
    folder = setting.cases / "nfd-evaluate"
    found = []
    for ref in ("ref.de", "ref.nfd.de"):
        options = ("--src", folder / "src.en", "--ref", folder / ref, "--json")
        found.append(json.loads(setting.run("evaluate", setting.model("demo"), *options)[1])["sacrebleu"]["score"])
    return None if found[0] == found[1] else wrong(found)

"""``translate`` with a memory, terms, and phrases to be avoided."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from commands import CommandLine
from said import says
from transduce.inference import Translator
from transduce.memories import Memory, write_memory
from transduce.terms import Term, Terms
from transduce.text import Tokenizer

TEXT = b"The dog sleeps.\nThe woman sees the dog.\n"


@pytest.fixture
def terms(tmp_path: Path) -> Path:
    path = tmp_path / "terms.tsv"
    path.write_text("dog\tKatze\nsleeps\tsieht\n", "utf-8")
    return path


def test_required_terms_are_written(transduce: CommandLine, micro_model: Path, terms: Path) -> None:
    outcome = transduce("translate", micro_model, "--terms", terms, "--terms-hard", stdin=TEXT)
    assert outcome.code == 0
    first, second = outcome.out.splitlines()
    assert {"katze", "sieht"} <= set(first.lower().replace(".", "").split())
    assert "Katze" in second
    assert says(outcome.err, "terms", "3 of 3")
    soft = transduce("translate", micro_model, "--terms", terms, stdin=TEXT)
    assert says(soft.err, "terms", "of 3")


def test_avoided_phrases_are_not_written(transduce: CommandLine, micro_model: Path, tmp_path: Path) -> None:
    plain = transduce("translate", micro_model, stdin=TEXT).out.splitlines()
    word = max(plain[0].strip(".").split(), key=len)
    avoided = tmp_path / "avoided.txt"
    avoided.write_text(f"{word}\n", "utf-8")
    outcome = transduce("translate", micro_model, "--avoid", avoided, stdin=TEXT)
    assert outcome.code == 0
    assert word not in outcome.out.replace(".", "").split()
    assert says(outcome.err, "terms: 0 phrases that were to be avoided")


@pytest.mark.parametrize("engine", ["native", "torch"])
def test_both_engines_avoid(micro_model: Path, engine: Any) -> None:
    translator = Translator.load(micro_model, engine=engine)
    [plain] = translator.translate(["The dog sleeps."])
    words = tuple(plain.strip(".").split())
    other = translator.with_terms(Terms(avoided=words[:1])).translate(["The dog sleeps."])[0]
    assert words[0] not in other.strip(".").split()


def test_what_has_its_terms_is_as_without_them(micro_model: Path) -> None:
    translator = Translator.load(micro_model)
    [plain] = translator.translate(["The dog sleeps."])
    word = plain.strip(".").split()[0]
    terms = Terms((Term("dog", word),), avoided=("never said",))
    assert translator.with_terms(terms, are_required=True).translate(["The dog sleeps."]) == [plain]


def test_a_memory_is_asked_first(transduce: CommandLine, micro_model: Path, tmp_path: Path) -> None:
    path = tmp_path / "my.tm"
    pairs = [("The dog sleeps.", "Der Hund ruht."), ("The woman sees a dog.", "Die Frau sieht einen Hund.")]
    write_memory(path, [pairs], src_language="en", tgt_language="de")
    plain = transduce("translate", micro_model, stdin=TEXT).out.splitlines()
    outcome = transduce("translate", micro_model, "--memory", path, "--json", stdin=TEXT)
    first, second = map(json.loads, outcome.out.splitlines())
    assert (first["translation"], first["memory"][0]["similarity"]) == ("Der Hund ruht.", 1)
    assert second["translation"] == plain[1]
    assert [each["target"] for each in second["memory"]] == ["Die Frau sieht einen Hund."]
    assert says(outcome.err, "memory", "1 of 2", "1 others")


def test_lists_that_cannot_be_used(transduce: CommandLine, micro_model: Path, terms: Path, tmp_path: Path) -> None:
    write_memory(tmp_path / "fr.tm", [[("a", "b")]], src_language="en", tgt_language="fr")
    (tmp_path / "list.csv").write_text("dog,Hund\n")
    for options, named in (
        (["--terms-hard"], "--terms"),
        (["--terms", tmp_path / "no.tsv"], "no.tsv"),
        (["--terms", terms, "--sample"], "--sample"),
        (["--terms", terms, "--draft", micro_model], "--draft"),
        (["--memory", tmp_path / "list.csv"], "list.csv"),
        (["--memory", tmp_path / "fr.tm"], "en-fr"),
    ):
        outcome = transduce("translate", micro_model, *options, stdin=TEXT)
        assert (outcome.code, outcome.err.count("\n")) == (1, 1)
        assert named in outcome.err
    assert Memory(tmp_path / "fr.tm").languages == ("en", "fr")


def test_a_model_with_term_marks_is_told_its_terms(micro_model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    translator = Translator.load(micro_model)
    asked: list[str] = []
    search = translator._text_search
    monkeypatch.setattr(Tokenizer, "has_term_marks", True)
    told = translator.with_terms(Terms((Term("dog", "Hund"),)))

    def kept(texts: list[str], *arguments: Any, **options: Any) -> Any:
        asked.extend(each.translate({0xE00A: "<", 0xE00B: "|", 0xE00C: ">"}) for each in texts)
        return search(texts, *arguments, **options)

    told._text_search = kept  # type: ignore[assignment]
    told.translate_segments(["The \ue00adog sleeps.", "A cat."], translator.search, is_checked=False)
    assert asked == ["The< dog| Hund> sleeps.", "A cat."]

"""The page for reviewing translations: what it is told, and that text stays text."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, get_args

import pytest

from commands import CommandLine
from said import says
from transduce.inference import Translator
from transduce.inference.translation.document_translation import REMARKED, Kept
from transduce.inference.translation.parts import FLAGS
from transduce.memories import write_memory
from transduce.review import ReviewedText, write_review
from transduce.terms import Term, Terms
from transduce.text.pieces import Tag

HTML = (
    '<p>The <b title="a > b">dog</b> caf&eacute; eats.<img src="x.png"> The woman.</p><p>2019</p>'
    '<p translate="no">Name</p><p>A &lt;/script&gt;&lt;b&gt; cat.</p>'
)


def texts_of(page: Path) -> list[dict[str, Any]]:
    """The data of a page."""
    source = page.read_text("utf-8")
    [data] = re.findall(r'<script type="application/json" id="review-data">(.*?)</script>', source, re.DOTALL)
    texts: list[dict[str, Any]] = json.loads(data)["texts"]
    return texts


def words_of(pieces: list[Any]) -> str:
    return "".join(each for each in pieces if isinstance(each, str))


def tags_of(pieces: list[Any]) -> list[tuple[Any, ...]]:
    return sorted(tuple(each) for each in pieces if not isinstance(each, str))


def test_a_document_has_texts_tags_and_probabilities(micro_model: Path, tmp_path: Path) -> None:
    (tmp_path / "page.html").write_text(HTML, "utf-8")
    translator = Translator.load(micro_model)
    terms = Terms((Term("dog", "Hund"), Term("woman", "Ziege")))
    report = translator.with_terms(terms).translate_file(
        tmp_path / "page.html", tmp_path / "out.html", review=tmp_path / "review.html"
    )
    plain = translator.with_terms(terms).translate_file(tmp_path / "page.html", tmp_path / "plain.html")
    assert (tmp_path / "out.html").read_bytes() == (tmp_path / "plain.html").read_bytes()
    assert report.translated == plain.translated
    of_tag, first, second = texts_of(tmp_path / "review.html")
    assert of_tag["source"] == ["a > b"]
    assert first["source"] == [
        "The ", ["open", 1, '<b title="…">'], "dog", ["close", 1, "</b>"], " café eats.",
        ["single", 2, '<img src="x.png">'], " The woman.",
    ]  # fmt: skip
    assert tags_of(first["target"]) == tags_of(first["source"])
    written = (tmp_path / "out.html").read_text("utf-8")
    assert all(word in written for word, _ in first["words"] if word.isalpha())
    assert words_of(first["target"]).split()  # words, without entities
    assert "".join(word for word, _ in first["words"]) == "".join(words_of(first["target"]).split())
    assert all(log_prob <= 0 for _, log_prob in first["words"])
    assert ["woman", "Ziege", False] in first["terms"]
    assert [each[2] for each in second["source"] if not isinstance(each, str)] == ["&lt;", "&gt;", "&lt;", "&gt;"]


def test_the_command_line_writes_it(transduce: CommandLine, micro_model: Path, tmp_path: Path) -> None:
    lines, page = tmp_path / "lines.txt", tmp_path / "review.html"
    lines.write_text("The dog sleeps.\n\nThe cat sleeps.\n", "utf-8")
    memory = tmp_path / "old.tm"
    write_memory(memory, [[("The dog sleeps.", "Der Hund <ruht>.")]], src_language="en", tgt_language="de")
    command = ("translate", micro_model, "--in", lines, "--memory", memory)
    outcome = transduce(*command, "--review", page)
    assert (outcome.code, outcome.out) == (0, transduce(*command).out)
    first, second = texts_of(page)
    assert (first["place"], first["state"], first["target"]) == ("line 1", "memory", ["Der Hund <ruht>."])
    assert (second["place"], second["source"]) == ("line 3", ["The cat sleeps."])
    assert second["similar"] == [["The dog sleeps.", "Der Hund <ruht>.", 75]]
    document = tmp_path / "page.html"
    document.write_text("<p>The dog sleeps.</p><p>A cat.</p>", "utf-8")
    command = ("translate", micro_model, "--in", document, "--out", tmp_path / "out.html", "--memory", memory)
    assert transduce(*command, "--review", page).code == 0
    first, second = texts_of(page)
    assert (first["state"], first["target"]) == ("memory", ["Der Hund <ruht>."])
    assert second.get("state", "") in ("", "untranslated", "equal")


def test_what_cannot_be_reviewed_is_refused(transduce: CommandLine, micro_model: Path, tmp_path: Path) -> None:
    lines = tmp_path / "lines.txt"
    lines.write_text("The dog sleeps.\n", "utf-8")
    for others, named in (
        (("--review", lines), lines),
        (("--review", tmp_path / "out", "--out", tmp_path / "out"), "--out"),
        (("--review", tmp_path), tmp_path),
        (("--review", tmp_path / "page.html", "--workers", 2), "--workers"),
    ):
        refused = transduce("translate", micro_model, "--in", lines, *others)
        assert (refused.code, says(refused.err, named)) == (1, True)
    assert lines.read_text("utf-8") == "The dog sleeps.\n"


@pytest.mark.parametrize("evil", ["</script><script>alert(1)</script>", "<!--<script>", "\ud800 \0 \u2028", "\"'&<>"])
def test_text_stays_text(tmp_path: Path, evil: str) -> None:
    text = ReviewedText(evil, (evil, Tag("single", 1, evil)), (evil,), detail=evil, words=((evil, -1.0),))
    write_review(tmp_path / "page.html", [text], name=evil.replace("\ud800", ""), direction=("en", "de"))
    assert texts_of(tmp_path / "page.html")[0]["source"] == [evil, ["single", 1, evil]]
    page = (tmp_path / "page.html").read_text("utf-8")
    assert "<script>alert" not in page
    assert not re.search(r'(src|href)=(?!"data:)', page.partition("<script")[0])  # nothing is fetched


def test_the_page_explains_all_warnings() -> None:
    source = (Path(__file__).parents[2] / "src/transduce/review/review_parts.js").read_text("utf-8")
    warnings, states = (source.partition(f"const {name} = {{")[2].partition("}")[0] for name in ("WARNINGS", "STATES"))
    known = [set(re.findall(r"^\s*'?([a-z-]+)'?:", table, re.MULTILINE)) for table in (warnings, states)]
    assert known == [{*FLAGS}, {*get_args(Kept), "memory"}]
    assert re.findall(r"const BAD_STATES = \[(.*)\]", source) == [", ".join(f"'{each}'" for each in REMARKED)]

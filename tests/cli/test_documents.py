"""Documents on the command line: what is one, what comes back byte by byte, what is told, and what is refused."""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Iterable, Iterator
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

from commands import CommandLine
from said import naming, says
from transduce.config import SearchConfig
from transduce.errors import ConfigError
from transduce.inference import ScoredText, Translation
from transduce.text import word_spans
from transduce.text.markup import Unit, rules_of

VERBS = [import_module(f"transduce.cli.{name}") for name in ("documents", "translate")]  # both load translators


class Found:
    """A translator that makes text upper-case, and finds something wrong with it."""

    search, src_language, tgt_language, has_masks, memory = SearchConfig(), None, "de", True, None
    max_source_tokens = 50

    def translate_lines(
        self, lines: Iterable[str | Unit], is_scored: bool = True, **_: object
    ) -> Iterator[Translation]:
        assert is_scored  # some warnings follow from the score
        for line in lines:
            if isinstance(line, str):
                yield Translation(line, (ScoredText(f"line: {line}", -1.0),))
                continue
            text = line.text.upper()
            words = word_spans(text)
            rendered = line.put_back(text, words, np.eye(len(words), dtype=np.float32))
            yield Translation(line.raw, (ScoredText(rendered, -1.0),), ("source-cut", "lost"))


@pytest.fixture
def model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A model folder that must not be read."""
    for verb in VERBS:
        monkeypatch.setattr(verb, "load_translator", None)
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "config.json").touch()
    return tmp_path / "model"


@pytest.fixture
def found(monkeypatch: pytest.MonkeyPatch, model: Path) -> Path:
    for verb in VERBS:
        monkeypatch.setattr(verb, "load_translator", lambda *_, **__: Found())
    return model


@pytest.mark.parametrize(
    "text",
    ["<a/>", "\ufeff\r\n<a\n>\u2028é <b>x</b>\r</a>\n\n ", "<!--" + "a" * (5 << 20) + "-->\n<a>b</a>"],
    ids=range(3),
)
def test_all_but_the_texts_stays(transduce: CommandLine, found: Path, tmp_path: Path, text: str) -> None:
    source, out = tmp_path / "in.xml.gz", tmp_path / "out.xml.gz"
    source.write_bytes(gzip.compress(text.encode()))
    expected = re.sub(r"(?<=>)[^<>]+(?=<)", lambda match: match[0].upper(), text)
    assert transduce("translate", found, "--in", source, "--out", out).code == 0
    assert gzip.decompress(out.read_bytes()) == expected.encode()
    assert transduce("translate", found, "--format", "xml", stdin=text.encode()).out == expected


def test_what_is_a_document(transduce: CommandLine, found: Path, tmp_path: Path) -> None:
    page = b"<!doctype html><html><p>a dog</p></html>\n"
    for name, options, expected in (
        ("page.htm", [], b"<p>A DOG</p>"),
        ("page.HTML", [], b"<p>A DOG</p>"),
        ("page", [], b"<p>A DOG</p>"),  # by its content
        ("page.html", ["--format", "text"], b"line: <!doctype"),
        ("page.txt", [], b"line: <!doctype"),
        ("page.txt", ["--format", "html"], b"<p>A DOG</p>"),
        ("page.en", ["--format", "txt"], b"<!DOCTYPE HTML>"),
    ):
        (tmp_path / name).write_bytes(page)
        outcome = transduce("translate", found, "--in", tmp_path / name, "--out", tmp_path / "out", *options)
        assert outcome.code == 0, outcome.err
        assert expected in (tmp_path / "out").read_bytes(), name
    assert transduce("translate", found, stdin=page).out == f"line: {page.decode()}"
    (tmp_path / "text.en").write_bytes(b"one\ntwo\n")
    assert transduce("translate", found, "--in", tmp_path / "text.en").out == "line: one\nline: two\n"


def test_out_may_be_a_folder(transduce: CommandLine, found: Path, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    for name, content, expected in (("a.html", "<p>a</p>", "<p>A</p>"), ("a.txt", "a\n", "line: a\n")):
        (tmp_path / name).write_text(content)
        assert transduce("translate", found, "--in", tmp_path / name, "--out", tmp_path / "out").code == 0
        assert (tmp_path / "out" / name).read_text() == expected
    assert says(transduce("translate", found, "--in", tmp_path / "a.html", "--out", tmp_path).err, "error:", "a.html")


def test_what_is_told(transduce: CommandLine, found: Path, tmp_path: Path) -> None:
    told, report, out = (tmp_path / name for name in ("told", "report.json", "out.xml"))
    options = ("--format", "xml", "--warnings", told, "--report", report, "--json", "--out", out)
    outcome = transduce("translate", found, *options, stdin=b"<a>\n<b>x</b></a>\n")
    assert out.read_bytes() == b"<a>\n<b>X</b></a>\n"
    assert says(outcome.err, "line 2", 50)
    lines = [line.split("\t")[:2] for line in told.read_text().splitlines()]
    assert lines == [["line 2", "source-cut"], ["line 2", "lost"]]
    values = json.loads(report.read_text())
    assert json.loads(outcome.out) == values
    assert values == {
        "document": "stdin", "format": "xml", "segments": 1, "translated": 1, "remembered": 0,
        "kept": {}, "warnings": {"source-cut": 1, "lost": 1},
        "remarks": [
            {"place": "line 2", "kind": "source-cut", "text": "x", "detail": ""},
            {"place": "line 2", "kind": "lost", "text": "x", "detail": ""},
        ],
    }  # fmt: skip


@pytest.mark.parametrize(
    ("options", "facts"),
    [
        (["--n-best", 2], ["--n-best"]),
        (["--n-best", 2, "--json"], ["--n-best"]),
        (["--alignment", "--buffer", 3], ["--alignment", "--buffer"]),
        (["--workers", 2], ["--workers"]),
        (["--prefix", "Ein"], ["--prefix"]),
        (["--json"], ["--json", "--out"]),
    ],
    ids=str,
)
def test_what_belongs_to_lines_is_refused(
    transduce: CommandLine, model: Path, options: list[object], facts: list[str]
) -> None:
    outcome = transduce("translate", model, "--format", "html", *options, stdin=b"<p>a dog</p>")
    assert (outcome.code, outcome.out) == (1, "")
    assert re.search(naming("error:", *facts), outcome.err.strip())


@pytest.mark.parametrize(
    ("options", "fact"),
    [(["--report", "r.json"], "--report"), (["--wanted", "all"], "--wanted"), (["--trust"], "--trust")],
    ids=str,
)
def test_what_belongs_to_documents_is_refused(
    transduce: CommandLine, model: Path, options: list[object], fact: str, tmp_path: Path
) -> None:
    assert says(transduce("translate", model, *options, stdin=b"a dog\n").err, "error:", fact)
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a").write_text("a dog\n")
    folder = transduce("translate", model, *options, "--in", tmp_path / "in", "--out", tmp_path / "out")
    assert says(folder.err, "error:", "lines of text", fact)


def test_documents_of_a_folder_have_no_prefix(transduce: CommandLine, model: Path, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.html").write_text("<p>a dog</p>")
    (tmp_path / "in" / "b").write_text("a dog\n")
    folder = ("translate", model, "--in", tmp_path / "in", "--out", tmp_path / "out")
    for format in ("auto", "html"):
        assert says(transduce(*folder, "--format", format, "--prefix", "Ein").err, "error:", "documents", "--prefix")
    assert not (tmp_path / "out").exists()


def test_no_document_is_cut_or_mended(
    transduce: CommandLine, found: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("transduce.inference.translation.document_files.MAX_DOCUMENT_BYTES", 100)
    translate = ("translate", found, "--out", tmp_path / "out", "--format")
    for format, content, facts in (
        ("xml", b"<p>\n a dog \xe9t\xe9</p>", ["stdin", "byte 11", "utf-8"]),
        ("xml", b"<p>a</b>", ["stdin", "line 1"]),
        ("html", b"<p>" * 34, ["stdin", 100]),
    ):
        outcome = transduce(*translate, format, stdin=content)
        assert (outcome.code, outcome.out) == (1, "")
        assert re.search(naming("error:", *facts), outcome.err.strip())
    damaged = tmp_path / "a.html.gz"
    damaged.write_bytes(gzip.compress(b"<p>a dog</p>")[:-6])
    assert says(transduce(*translate, "html", "--in", damaged).err, "error:", damaged)
    assert not (tmp_path / "out").exists()
    monkeypatch.setattr(VERBS[0], "is_interactive", lambda _: True)
    assert says(transduce(*translate, "html").err, "error:", "--format", "--in")


def test_an_unknown_format(transduce: CommandLine, model: Path) -> None:
    assert says(transduce("translate", model, "--format", "pdf").err, "error:", "--format", "html", "text", "'pdf'")
    with pytest.raises(ConfigError, match=naming("html", "xml", "text", "'pdf'")):
        rules_of("pdf")


def test_an_output_that_is_named_as_another_format_is_refused(
    transduce: CommandLine, found: Path, tmp_path: Path
) -> None:
    (tmp_path / "a.html").write_text("<p>a dog</p>", "utf-8")
    (tmp_path / "a.txt").write_text("a dog\n", "utf-8")
    for source, out, wanted in (
        ("a.html", "c.docx", ".html"),
        ("a.html", "c.txt", ".html"),
        ("a.txt", "c.odt", ".txt"),
    ):
        refused = transduce("translate", found, "--in", tmp_path / source, "--out", tmp_path / out)
        assert (refused.code, (tmp_path / out).exists()) == (1, False)
        assert says(refused.err, out, wanted)
    for source, out in (("a.html", "c.htm.gz"), ("a.html", "c.new"), ("a.txt", "c.json")):
        assert transduce("translate", found, "--in", tmp_path / source, "--out", tmp_path / out).code == 0

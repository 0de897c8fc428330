"""Documents of HTML and XML: what comes back byte by byte, what is told, and what is refused in one line."""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from said import naming, says
from transduce.config import SearchConfig, TextFormat
from transduce.errors import ConfigError
from transduce.files import MAX_LINE_BYTES
from transduce.inference import ScoredText, Translation
from transduce.text.markup import rules_of

CommandLine = Callable[..., Any]
VERB = import_module("transduce.cli.translate")  # the package has a function of that name


@pytest.fixture
def model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A model folder that must not be read."""
    monkeypatch.setattr(VERB, "load_translator", None)
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "config.json").touch()
    return tmp_path / "model"


class Found:
    """A translator that makes text upper-case, and finds something wrong with it."""

    search, src_language = SearchConfig(), None
    max_source_tokens = 50

    def translate_lines(self, lines: list[str], *, format: TextFormat, **_: object) -> list[Translation]:
        assert format == "xml"
        return [Translation(line, (ScoredText(line.upper(), -1.0),), ("source-cut", "lost")) for line in lines]


@pytest.fixture
def found(monkeypatch: pytest.MonkeyPatch, model: Path) -> Path:
    monkeypatch.setattr(VERB, "load_translator", lambda *_, **__: Found())
    return model


@pytest.mark.parametrize(
    "text", ["", "\n", "<a>", "\ufeff\r\n<a\n>\u2028é\r</a>\n\n \0", "<!--" + "a" * (MAX_LINE_BYTES + 1)], ids=range(5)
)
def test_the_whole_input_is_one_document(transduce: CommandLine, found: Path, tmp_path: Path, text: str) -> None:
    source, out = tmp_path / "in.xml.gz", tmp_path / "out.xml.gz"
    source.write_bytes(gzip.compress(text.encode()))
    assert transduce("translate", found, "--format", "xml", "--in", source, "--out", out).code == 0
    assert gzip.decompress(out.read_bytes()) == text.upper().encode()
    assert transduce("translate", found, "--format", "xml", stdin=text.encode()).out == text.upper()


def test_the_document_is_told_of_as_one(transduce: CommandLine, found: Path) -> None:
    told = found / "told"
    outcome = transduce("translate", found, "--format", "xml", "--warnings", told, stdin=b"<a>\n</a>\n")
    assert says(outcome.err, "document", 50)
    assert not re.search(r"\bline\b", outcome.err)
    assert [line.split("\t")[:2] for line in told.read_text().splitlines()] == [["1", "source-cut"], ["1", "lost"]]
    [line] = transduce("translate", found, "--format", "xml", "--json", stdin=b"<a>\n</a>\n").out.splitlines()
    assert json.loads(line).items() >= {"line": 1, "source": "<a>\n</a>\n", "translation": "<A>\n</A>\n"}.items()


@pytest.mark.parametrize(
    ("options", "facts"),
    [
        (["--n-best", 2], ["--n-best"]),
        (["--n-best", 2, "--json"], ["--n-best"]),
        (["--alignment", "--buffer", 3], ["--alignment", "--buffer"]),
        (["--workers", 2], ["--workers"]),
    ],
    ids=str,
)
def test_what_belongs_to_lines_is_refused(
    transduce: CommandLine, model: Path, options: list[object], facts: list[str]
) -> None:
    outcome = transduce("translate", model, "--format", "html", *options, stdin=b"<p>a dog</p>")
    assert (outcome.code, outcome.out) == (1, "")
    assert re.search(naming("error:", *facts), outcome.err.strip())


def test_no_document_is_cut_or_mended(
    transduce: CommandLine, model: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    translate = ("translate", model, "--format", "html")
    monkeypatch.setattr("transduce.files.lines.MAX_TEXT_BYTES", 100)
    for content, facts in (
        (b"<p>\n a dog \xe9t\xe9</p>", ["stdin:2", "UTF-8", "0xe9", 8]),
        (b"<p>" * 34, ["stdin", 100]),
        (b"%PDF-1.7", ["stdin", "PDF"]),
    ):
        outcome = transduce(*translate, stdin=content)
        assert (outcome.code, outcome.out) == (1, "")
        assert re.search(naming("error:", *facts), outcome.err.strip())
    damaged = tmp_path / "a.html.gz"
    damaged.write_bytes(gzip.compress(b"<p>a dog</p>")[:-6])
    assert says(transduce(*translate, "--in", damaged).err, "error:", damaged)
    monkeypatch.setattr(VERB, "is_interactive", lambda _: True)
    assert says(transduce(*translate).err, "error:", "--format", "--in")


def test_an_unknown_format(transduce: CommandLine, model: Path) -> None:
    assert transduce("translate", model, "--format", "pdf").code == 1
    with pytest.raises(ConfigError, match=naming("html", "xml", "text", "'pdf'")):
        rules_of("pdf")

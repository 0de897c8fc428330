"""The server, the library, the command line and bulk translation give the same text for the same text."""

from __future__ import annotations

import json
import random
import re
import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, get_args

import pytest
import torch
from serving_tools import serving, translator
from starlette.testclient import TestClient

from said import says
from transduce.bulk import TranslationJob
from transduce.bulk.worker import ShardTranslator
from transduce.config import TextFormat
from transduce.config.decoding import LoadingOptions
from transduce.inference import Translation, Translator

LINES = [
    "The dog sleeps.", "", "  ", "2024", "-", "\0", "...", "The dog sleeps. The old woman sees the cat.", "\tThe dog",
    "  The dog sleeps. \t The cat\u2003 ", "the cat\u2028the dog", "the man\x0b", "\u00a0a book", "THE DOG SLEEPS NOW.",
    "https://example.org/a?b=c", "See https://example.org/a?b=c&d or mail a@b.org about {name}.", "%s", "%d dogs",
    "dog, dog, dog", "He has 12 dogs since 2024. 5", "dog " * 60, "a" * 100, "👍 the cat 👍", "© 2024",
    "东京。我来了！",    "the \ufffd dog", "<b>the dog</b> sees", "the dog\u200b sees\u00a0the cat",
]  # fmt: skip
MARKUP = [
    "\ufeff<p>The <b>dog</b> sees https://a.org &amp; 5.</p>\r\n<p>2024</p>\n<!-- cat -->\n\n", "", "the\ncat</i>",
    "dog<br>cat", "<i>-</i>", "a <img> b", "<t><g>The dog.</g><g>The <x>cat</x></g></t>", "<![CDATA[the dog]]> cat",
]  # fmt: skip
PIECES = [
    "<p>", "</p>", "<b>", "</b>", "<br>", "<!-- a cat -->", "<script>the('dog')</script>", "\r\n", "\n\n", "  ", "\t",
    "2024", "&amp;", "&nbsp;", "<td title='the dog'>", "</td>", "<?x y?>", "< ", "The dog sleeps.", "a cat ", "sees ",
]  # fmt: skip
TAGS = re.compile(r"<(?:!\[CDATA\[|[^<>]*>)")


@pytest.fixture(scope="module", params=[False, True], ids=["without masks", "with masks"])
def folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("models") / "model"
    return translator(folder, masks=request.param, positions="learned", n_positions=40)  # short texts are too long


@pytest.fixture(scope="module")
def own_client(folder: Path) -> Iterator[TestClient]:
    with serving(folder) as client:
        yield client


@pytest.fixture(scope="module")
def expected(folder: Path) -> list[Translation]:
    return list(Translator.load(folder).translate_lines(LINES, is_scored=False))


def flags_of(header: str) -> Counter[str]:
    return Counter({flag: int(count) for flag, count in re.findall(r"([a-z-]+)=(\d+)", header)})


def test_by_the_server(own_client: TestClient, expected: list[Translation]) -> None:
    answer = own_client.post("/translate", json={"q": LINES, "source": "en", "target": "de"})
    texts = [each.text for each in expected]
    assert answer.json()["translatedText"] == texts
    told = flags_of(answer.headers["X-Transduce-Warnings"])
    assert told == Counter(flag for each in expected for flag in each.warnings)
    assert told["source-cut"] == 1
    fields = {"text": LINES, "source_lang": "EN", "target_lang": "DE", "split_sentences": "0"}
    deepl = own_client.post("/v2/translate", json=fields)
    assert [each["text"] for each in deepl.json()["translations"]] == texts
    assert flags_of(deepl.headers["X-Transduce-Warnings"]) == told
    whole = own_client.post("/translate", json={"q": "\n".join(LINES), "source": "en", "target": "de"})
    assert whole.json()["translatedText"] == "\n".join(texts)
    plain = own_client.post("/translate", json={"q": "2024\n5", "source": "en", "target": "de"})
    assert plain.json() == {"translatedText": "2024\n5"}
    assert "X-Transduce-Warnings" not in plain.headers


@pytest.mark.parametrize("format", get_args(TextFormat)[1:])
def test_with_tags(
    folder: Path, own_client: TestClient, transduce: Callable[..., Any], tmp_path: Path, format: TextFormat
) -> None:
    fields = {"text": MARKUP, "source_lang": "EN", "target_lang": "DE", "tag_handling": format}
    served = [each["text"] for each in own_client.post("/v2/translate", json=fields).json()["translations"]]
    if format == "html":
        fields = {"q": MARKUP, "source": "en", "target": "de", "format": "html"}
        assert own_client.post("/translate", json=fields).json()["translatedText"] == served
    for source, result in zip(MARKUP, served, strict=True):
        assert sorted(TAGS.findall(result)) == sorted(TAGS.findall(source))
    lines = Translator.load(folder).translate_lines(MARKUP, format=format, chunk_lines=2, is_scored=False)
    assert [each.text for each in lines] == served
    number = {"html": 0, "xml": 6}[format]  # a whole document
    for document, expected in [(MARKUP[number], served[number])]:
        out = tmp_path / "out"
        options = ("--device", "cpu", "--format", format, "--out", out)
        assert transduce("translate", folder, *options, stdin=document.encode()).code == 0
        assert out.read_bytes() == expected.encode()


@pytest.mark.parametrize("format", get_args(TextFormat)[1:])
def test_markup_and_what_has_no_words_stay(folder: Path, format: TextFormat) -> None:
    draw = random.Random(7)
    documents = ["".join(draw.choices(PIECES, k=draw.randint(0, 12))) for _ in range(60)]
    translated = Translator.load(folder).translate(documents, beam_size=1, format=format)
    for document, result in zip(documents, translated, strict=True):
        assert sorted(TAGS.findall(result)) == sorted(TAGS.findall(document))
        if not re.search("[a-z]", TAGS.sub("", document.replace("&nbsp;", "").replace("&amp;", ""))):
            assert result == document


def test_by_the_command_line(
    folder: Path, expected: list[Translation], transduce: Callable[..., Any], tmp_path: Path
) -> None:
    source = tmp_path / "in"
    source.write_bytes("".join(f"{line}\n" for line in LINES).encode())
    outcome = transduce("translate", folder, "--in", source, "--device", "cpu", "--json", "--buffer", 5)
    records = [json.loads(line) for line in outcome.out.splitlines()]
    assert [each["translation"] for each in records] == [each.text for each in expected]
    assert [each["warnings"] for each in records] == [list(each.warnings) for each in expected]
    first = "".join(f"{line}\n" for line in LINES[:12]).encode()
    assert transduce("translate", folder, "--device", "cpu", "--out", tmp_path / "out", stdin=first).code == 0
    assert (tmp_path / "out").read_bytes() == "".join(f"{each.text}\n" for each in expected[:12]).encode()


def test_in_bulk(folder: Path, expected: list[Translation], tmp_path: Path) -> None:
    (tmp_path / "in").write_bytes("".join(f"{line}\n" for line in LINES).encode())
    (tmp_path / "out" / "done").mkdir(parents=True)
    n_threads = torch.get_num_threads()
    result = ShardTranslator(TranslationJob(LoadingOptions([folder]))).translate(
        tmp_path / "in", tmp_path / "out", "in"
    )
    torch.set_num_threads(n_threads)
    assert (tmp_path / "out" / "in").read_bytes() == "".join(f"{each.text}\n" for each in expected).encode()
    assert result.truncated_lines == sum(each.is_truncated for each in expected) == 1


@pytest.mark.merge
def test_documents_in_bulk_and_as_a_stream(folder: Path, transduce: Callable[..., Any], tmp_path: Path) -> None:
    documents = {
        "a.html": "<p>a <b>dog</b></p>\r\n<br>",
        "b.html": "<br>",
        "c.html": "\ufeff<p>the cat sleeps.\n the dog",
    }
    (tmp_path / "in").mkdir()
    for name, document in documents.items():
        (tmp_path / "in" / name).write_bytes(document.encode())
    expected = Translator.load(folder).translate(list(documents.values()), format="html")
    assert list(Translator.load(folder).translate_iter(iter(documents.values()), format="html")) == expected
    options = ("--in", tmp_path / "in" / "*.html", "--out", tmp_path / "out", "--format", "html", "--device", "cpu")
    assert transduce("translate", folder, *options).code == 0
    assert [(tmp_path / "out" / name).read_bytes().decode() for name in documents] == expected
    manifest = json.loads((tmp_path / "out" / "manifest.json").read_text())
    assert manifest.keys() == {  # without --format, those of every version: a folder may have been begun by an earlier
        "format", "models", "shortlist", "precision", "beam", "alpha", "prefix", "split", "threads_per_worker",
        "chunk_lines", "shards", "format_of_shards",
    }  # fmt: skip


@pytest.mark.merge
def test_a_folder_of_documents_and_texts(folder: Path, transduce: Callable[..., Any], tmp_path: Path) -> None:
    files = {
        "a.html": b"<p>the <b>dog</b> sleeps</p>", "bad.xml": b"<p>the dog", "c.txt": b"the dog\r\n",
        "d.en": b"the cat\n",
    }  # fmt: skip
    source, out, report = tmp_path / "in", tmp_path / "out", tmp_path / "report.json"
    (source / "deeper").mkdir(parents=True)
    (source / "deeper" / "a.html").write_bytes(files["a.html"])
    for name, content in files.items():
        (source / name).write_bytes(content)
    translate = ("translate", folder, "--in", source, "--out", out, "--device", "cpu", "--report", report)
    outcome = transduce(*translate)
    assert (outcome.code, says(outcome.err, "1 of 5", "bad.xml", "line 1")) == (1, True)  # the others are translated
    model = Translator.load(folder)
    assert (out / "a.html").read_text() == model.translate([files["a.html"].decode()], format="html")[0]
    assert (out / "c.txt").read_text() == f"{model.translate(['the dog'])[0]}\n"
    assert (out / "deeper" / "a.html").read_bytes() == (out / "a.html").read_bytes()
    told = json.loads(report.read_text())
    assert [(each["document"], each["format"], each["segments"]) for each in told["documents"]] == [
        ("a.html", "html", 1),
        ("deeper/a.html", "html", 1),
    ]
    assert "line 1" in told["failed"]["bad.xml"]
    (source / "bad.xml").write_text("<p>the dog</p>")
    assert says(transduce(*translate).err, "1 file translated", "4 were done before")  # only what was mended
    (source / "a.html").unlink()
    assert says(transduce(*translate).err, "error:", "shards")  # one that was translated is gone
    (source / "bad.xml").unlink()
    shutil.rmtree(out)
    shutil.rmtree(source / "deeper")
    (source / "a.html").write_bytes(files["a.html"])
    assert says(transduce(*translate).err, "3 files translated")
    shards = json.loads((out / "manifest.json").read_text())["shards"]
    assert [(each["name"], each["lines"], "report" in each) for each in shards] == [
        ("a.html", 1, True), ("c.txt", 1, False), ("d.en", 1, False),
    ]  # fmt: skip


def test_what_never_happens(expected: list[Translation]) -> None:
    for each in expected:
        assert any(map(str.isalnum, each.text)) == any(map(str.isalnum, each.source))
        assert "\ufffd" not in each.text
        for kept in ("https://example.org/a?b=c", "a@b.org", "{name}", "%s", "%d"):
            assert each.text.count(kept) == each.source.count(kept)
        for number in ("12", "2024"):
            assert (number in each.text) == (number in each.source)
        assert (
            each.text[: len(each.text) - len(each.text.lstrip())]
            == each.source[: len(each.source) - len(each.source.lstrip())]
        )

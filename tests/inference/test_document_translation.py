"""Documents by a translator: what is translated, what stays byte for byte, and what the report says."""

from __future__ import annotations

import gzip
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

import pytest

from said import naming
from talking_model import write_talking_model
from transduce.documents import Document, Format, Reading, Segment, formats
from transduce.documents.encodings import decoded
from transduce.documents.spliced import SplicedText
from transduce.errors import ConfigError, DataError
from transduce.inference import Translator
from transduce.inference.translation.document_files import translate_document, translate_file
from transduce.inference.translation.document_translation import DocumentReport, DocumentTranslation, held
from transduce.inference.translation.parts import Flag, ScoredText, Translation
from transduce.memories import Memory, write_memory
from transduce.terms import Term, Terms
from transduce.text import word_spans
from transduce.text.markup import Unit, divide, html_rules

HTML = b"<p>a <b>dog</b> sleeps</p>\r\n<p>a <b>dog</b> sleeps</p>\n<pre>2024</pre><p>the END &eacute;t&eacute;</p>"


class Tagged(SplicedText):
    """A document whose segments may be unwanted, as "(no) ..." is."""

    @property
    def segments(self) -> list[Segment]:  # type: ignore[override]
        return [
            Segment(each, f"text {number}", is_wanted=not each.text.startswith("(no)"))
            for number, each in enumerate((part for part in self.parts if isinstance(part, Unit)), start=1)
        ]


def read(data: bytes, reading: Reading) -> Document:
    text, encoding = decoded(data)
    return Tagged(divide(text, html_rules(), is_protected=reading.is_protected), encoding)


@pytest.fixture(autouse=True)
def tagged(monkeypatch: pytest.MonkeyPatch) -> None:
    """A format of documents with tags."""
    added = Format("tagged", (".tagged",), read, "text/x-tagged", lambda data: data.startswith(b"<p>"))
    known = formats.all_formats()
    monkeypatch.setattr(formats, "all_formats", lambda: (*known, added))


class Loud:
    """A translator that makes text upper-case, with its tags where they were; texts with "equal" stay."""

    search, tgt_language, has_masks, memory = None, "de", True, None

    def __init__(self) -> None:
        self.seen = list[str]()

    def translate_lines(self, lines: Iterable[Unit], **_: object) -> Iterator[Translation]:
        import numpy as np

        for unit in lines:
            self.seen.append(unit.text)
            text = unit.text if "equal" in unit.text else unit.text.upper()
            words = word_spans(text)
            rendered = unit.put_back(text, words, np.eye(len(words), dtype=np.float32))
            flags: Sequence[Flag] = ("lost",) if "dog" in unit.text else ()
            yield Translation(unit.raw, (ScoredText(rendered, 0.0),), tuple(flags))


class Quick(Loud):
    """One that says how far it is."""

    def translate_lines(
        self, lines: Sequence[Unit], *, report: Callable[[int], object], **_: object
    ) -> Iterator[Translation]:  # type: ignore[override]
        yield from super().translate_lines(lines)
        report(len(lines))


def test_texts_are_translated_once_and_the_rest_stays() -> None:
    loud = Loud()
    result = translate_document(loud, HTML, "a.tagged")  # type: ignore[arg-type]
    assert result.data == (
        "<p>A <b>DOG</b> SLEEPS</p>\r\n<p>A <b>DOG</b> SLEEPS</p>\n<pre>2024</pre><p>THE END ÉTÉ</p>".encode()
    )
    assert loud.seen == ["a dog sleeps", "the END été"]
    report = result.report
    assert (report.segments, report.translated, report.kept, report.warnings) == (4, 3, {"no-words": 1}, {"lost": 2})
    assert [(each.place, each.kind, each.text) for each in report.remarks] == [
        ("text 1", "lost", "a dog sleeps"), ("text 2", "lost", "a dog sleeps"),
    ]  # fmt: skip
    assert report.summary() == "3 of 4 texts translated; kept: 1 no-words"


@pytest.mark.parametrize(
    "data",
    [b"", b"\n", b"<p>equal &eacute; <b>te</b>  xt<br>\r\n", b"<p>(no) a dog</p>", "\ufeff<p>equal\u00a0é".encode()],
    ids=str,
)
def test_what_is_not_changed_has_the_same_bytes(data: bytes) -> None:
    assert translate_document(Loud(), data, "a.tagged").data == data  # type: ignore[arg-type]


def test_a_memory_is_asked_first(tmp_path: Path) -> None:
    memory = tmp_path / "my.tm"
    write_memory(
        memory,
        [[("1 < 2, see page 3", "1 < 2, siehe Seite 3"), ("a dog sleeps", "x")]],
        src_language="en",
        tgt_language="de",
    )
    loud = Loud()
    loud.memory = Memory(memory)  # type: ignore[assignment]
    result = translate_document(loud, b"<p>1 &lt; 2, see page 7</p><p>a <b>dog</b> sleeps</p>", "a.tagged")  # type: ignore[arg-type]
    assert result.data == b"<p>1 &lt; 2, siehe Seite 7</p><p>A <b>DOG</b> SLEEPS</p>"  # what has tags is translated
    assert (loud.seen, result.report.translated, result.report.remembered) == (["a dog sleeps"], 2, 1)


def work_of(data: bytes, **options: object) -> DocumentTranslation:
    return DocumentTranslation.of(data, "a.tagged", tgt_language="de", **options)  # type: ignore[arg-type]


def test_why_a_text_is_kept() -> None:
    data = b"<p>(no) one</p><p>two <b>b</b></p><p>three %s</p><p>four</p><p>five</p><p>six</p>"
    work = work_of(
        data,
        recall=lambda segments: ["sechs" if each.unit.text == "six" else None for each in segments],
        check=lambda segment, target: "%s is missing" if "%s" in segment.unit.text and "%s" not in target else "",
    )
    assert [each.text for each in work.units] == ["two b", "three %s", "four", "five"]
    result = work.finished([("zwei b", ()), ("drei", ()), ("four", ("untranslated",)), ("fünf", ("short",))])
    assert result.data.decode() == data.decode().replace("five", "fünf").replace("six", "sechs")
    report = result.report
    assert report.kept == {"not-wanted": 1, "untranslated": 1, "placeholders": 1, "tags": 1}
    assert (report.translated, report.remembered, report.warnings) == (2, 1, {"short": 1})
    assert [(each.place, each.kind, each.detail) for each in report.remarks] == [
        ("text 2", "tags", "the translation lacks <b> </b>"), ("text 3", "placeholders", "%s is missing"),
        ("text 4", "untranslated", ""), ("text 5", "short", ""),
    ]  # fmt: skip
    assert report.as_json()["remarks"][0] == {
        "place": "text 2", "kind": "tags", "text": "two b", "detail": "the translation lacks <b> </b>"
    }  # fmt: skip


def test_terms_that_a_translation_lacks_are_named() -> None:
    work = work_of(b"<p>A red dog</p><p>A cat</p>")
    terms = Terms((Term("dog", "Hund"),), avoided=("Katze",))
    report = work.finished([("Ein roter Kater", ("short", "terms")), ("Eine Katze", ("terms",))], terms).report
    assert [(each.kind, each.detail) for each in report.remarks] == [
        ("short", ""), ("terms", "dog should be Hund"), ("terms", "Katze is to be avoided"),
    ]  # fmt: skip


def test_a_format_is_found_by_name_or_content_or_given() -> None:
    assert work_of(HTML).format == "tagged"
    assert DocumentTranslation.of(HTML, "upload", tgt_language="de").format == "tagged"
    assert DocumentTranslation.of(HTML, "a.tagged", tgt_language="de", format="txt").format == "txt"
    with pytest.raises(ConfigError, match=naming("'pdf'", "txt", "tagged")):
        work_of(HTML, format="pdf")
    with pytest.raises(DataError, match=naming("'upload'", ".txt", ".tagged")):
        DocumentTranslation.of(b"\0", "upload", tgt_language="de")
    with pytest.raises(DataError, match=naming("a.tagged", "byte 3", "utf-8")):
        work_of(b"<p>\xff")


def test_files(tmp_path: Path) -> None:
    source, out = tmp_path / "a.tagged.gz", tmp_path / "out"
    source.write_bytes(gzip.compress(b"<p>cat</p>"))
    out.mkdir()
    report: DocumentReport = translate_file(Loud(), source, out)  # type: ignore[arg-type]
    assert gzip.decompress((out / "a.tagged.gz").read_bytes()) == b"<p>CAT</p>"
    assert (report.name, report.translated) == (str(tmp_path / "a.tagged"), 1)
    with pytest.raises(ConfigError, match=naming(source, "overwrite")):
        translate_file(Loud(), source, source)  # type: ignore[arg-type]


def test_a_model_translates_files(micro_model: Path, tmp_path: Path) -> None:
    folder = write_talking_model(micro_model, tmp_path / "model")
    translator, seen = Translator.load(folder), list[tuple[int, int]]()
    (tmp_path / "a.tagged").write_bytes(HTML)
    report = translator.translate_file(
        tmp_path / "a.tagged", tmp_path / "b.tagged", progress=lambda *done: seen.append(done)
    )
    assert seen[-1] == (2, 2)
    written = (tmp_path / "b.tagged").read_bytes().decode()
    assert written.count("<b>") == written.count("</b>") == 2
    assert (report.segments, report.translated, report.kept) == (4, 3, {"no-words": 1})
    assert [written] == translator.translate([HTML.decode()], format="html")
    (tmp_path / "a.txt").write_bytes("\ufeffa dog sleeps\r\n\r\n2024\tthe cat".encode())
    translator.translate_file(tmp_path / "a.txt", tmp_path / "b.txt")
    lines = translator.translate(["a dog sleeps", "the cat"])
    assert (tmp_path / "b.txt").read_bytes().decode() == f"\ufeff{lines[0]}\r\n\r\n2024\t{lines[1]}"


def test_what_a_document_refuses_is_left_out() -> None:
    targets = [None if n % 10 == 0 else str(n) for n in range(60)]
    n_calls = 0

    def written(chosen: Sequence[str | None]) -> bytes:
        nonlocal n_calls
        n_calls += 1
        for each in chosen:
            if each in refused:
                raise DataError(f"it has {each}")
        return ",".join(each or "-" for each in chosen).encode()

    refused = ["7", "13", "59"]
    data, reasons = held(written, targets)
    assert data == ",".join("-" if each in (None, *refused) else each for each in targets).encode()
    assert reasons == {int(each): f"it has {each}" for each in refused}
    assert n_calls < 40
    refused = [each for each in targets if each]
    with pytest.raises(DataError, match="it has"):
        held(written, targets)
    assert held(written, [None, None]) == (b"-,-", {})
    with pytest.raises(DataError, match="never"):
        held(lambda chosen: (_ for _ in ()).throw(DataError("never")), [None])


def test_a_long_text_is_translated_in_pieces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("transduce.inference.translation.document_files.PIECE_BYTES", 30)
    source, out = tmp_path / "a.txt", tmp_path / "b.txt"
    for text in ("", "\n", "a dog\r\n\n" * 20 + "a cat", "\u2028x\n" * 40, "long " * 20):
        for encoding in ("utf-8", "utf-8-sig", "utf-16"):
            source.write_bytes(text.encode(encoding))
            report = translate_file(Loud(), source, out)  # type: ignore[arg-type]
            assert out.read_bytes() == text.upper().encode(encoding)
            assert report.segments == report.translated == len(re.findall(r"\w[ \w]*", text))
    source.write_bytes(b"a dog\n" * 20)
    seen = list[tuple[int, int]]()
    report = translate_file(Quick(), source, out, progress=lambda *done: seen.append(done))  # type: ignore[arg-type]
    assert seen == [(5, 20), (10, 20), (15, 20), (20, 20)]
    assert [each.place for each in report.remarks] == [f"line {n}" for n in range(1, 21)]
    assert (report.name, report.warnings, report.segments) == (str(source), {"lost": 20}, 20)
    source.write_bytes(b"a dog\n" * 20 + b"\xff\n")
    with pytest.raises(DataError, match=naming(source, "line 21", "byte 0")):
        translate_file(Loud(), source, tmp_path / "c.txt")  # type: ignore[arg-type]
    assert not (tmp_path / "c.txt").exists()

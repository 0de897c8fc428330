"""Documents of real life, by format: what stays when they are read, written, and translated.

    python benchmarks/documents.py FOLDER... [--model MODEL] [--most 200] [--most-texts 400] [--out translated]

Each document below the folders is

- read and written without translations: the same bytes;
- translated to itself: the same bytes (``DocumentTranslation`` leaves equal texts alone);
- translated by putting accents on vowels, and read again: as many texts, and of each XML or HTML part as many elements
  of each name, but for runs of characters, which are joined and divided, and marks of where a page ended on a screen;
- with ``--model``, translated by greedy search, and read again: as many texts; the same tree of elements, as lxml
  reads it, in which only what is inside a text has moved; in each text the same tags and the same placeholders; and PO
  files that ``msgfmt --check`` took are taken again. ``--out`` keeps the results.

It prints tables: how many documents of each format were so. One line on stderr names each that was not, and what was
refused as a document. ``--most`` limits the documents of a format; those with more than ``--most-texts`` are left out.
"""

from __future__ import annotations

import argparse
import io
import re
import shutil
import subprocess
import sys
import zipfile
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from html import unescape
from pathlib import Path
from random import Random

import numpy as np
from lxml import etree, html

from transduce.documents import Document, Segment, all_formats, read_document
from transduce.documents.pairs import PAIR_ENDINGS
from transduce.errors import DataError
from transduce.inference import Translator
from transduce.inference.translation.document_translation import DocumentTranslation
from transduce.text import needs_translation, word_spans
from transduce.text.markup import Unit
from transduce.text.tag_placing import Node
from transduce.text.verbatim import verbatim_strings

SEED = 1
ACCENTS = str.maketrans("aeiouAEIOU", "áéíóúÁÉÍÓÚ")
RUNS = {
    b"w:r", b"w:t", b"w:proofErr", b"w:lastRenderedPageBreak", b"a:r", b"a:t", b"r", b"t", b"text:span", b"text:s",
    b"text:soft-page-break",
}  # fmt: skip
RUN_NAMES = {name.rpartition(b":")[2].decode() for name in RUNS}
PROPERTIES = re.compile(rb"<((?:w:|a:)?rPr)\b[^>]*?(?:/>|>.*?</\1>)", re.DOTALL)  # of runs
LOOK = re.compile(r"<((?:w:|a:)?rPr)\b[^>]*?(?:/>|>.*?</\1>)|text:style-name=\"[^\"]*\"", re.DOTALL)
LANGUAGE = re.compile(r"\s(?:w:)?lang=\"[^\"]*\"|<w:lang\b[^>]*>")
MARK = re.compile("([\ufdd1-\ufdef])[0-9]+\\1")  # of a text inside a tag
TAGS = re.compile("<[^<>]*>")
TAG = re.compile(rb"<([A-Za-z][\w:.-]*)")
MARKUP = (b"<?xml", b"<!DOCTYPE", b"<html", b"\xef\xbb\xbf<?xml")
PARAGRAPHS = ("p", "h", "si", "is")  # of office formats: what is inside moves
OFFICE = ("docx", "pptx", "xlsx", "odt", "ods", "odp", "odg")
WHOLE = ("same bytes", "same bytes by the identity", "accents")
NUMBERS = ("translated", "texts compared", "runs", "runs gone")
BY_MODEL = ("every text", "tree", "tags", "placeholders", "msgfmt")


@dataclass
class Tally:
    """What was found of the documents of a format."""

    counts: Counter[str] = field(default_factory=Counter)
    kept: Counter[str] = field(default_factory=Counter)  # texts that were not translated, by reason
    warnings: Counter[str] = field(default_factory=Counter)
    refused: Counter[str] = field(default_factory=Counter)


def main() -> None:
    """Try all documents; exit status 1 if one was not as it should be."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--model", type=Path)
    parser.add_argument("--most", type=int, default=200, help="documents of a format")
    parser.add_argument("--most-texts", type=int, default=1_000_000, help="of a document")
    parser.add_argument("--out", type=Path, help="keep the translations of the model in this folder")
    arguments = parser.parse_args()
    translator = Translator.load(arguments.model, precision="int8") if arguments.model else None
    is_wrong = False
    tallies = dict[str, Tally]()
    for name, paths in documents(arguments.folders, arguments.most).items():
        tally = tallies[name] = Tally()
        for path in paths:
            data = path.read_bytes()
            try:
                document = read_document(data, path.name)
            except DataError as error:
                tally.refused[str(error).removeprefix(f"{path.name}: ")[:100]] += 1
                continue
            if len(document.segments) > arguments.most_texts:
                tally.counts["left out"] += 1
                continue
            tally.counts["documents"] += 1
            tally.counts["texts"] += len(document.segments)
            tried = list(faults(document, data, path.name))
            if translator is not None:
                tried += model_faults(translator, document, data, path, tally, arguments.out)
            for what, fault in tried:
                tally.counts[what] += not fault
                if fault:
                    is_wrong = True
                    print(f"{path}: {what}: {fault}"[:400], file=sys.stderr, flush=True)
        print(name, dict(tally.counts), dict(tally.refused), file=sys.stderr, flush=True)
    print_tables(tallies, has_model=translator is not None)
    sys.exit(is_wrong)


def print_tables(tallies: dict[str, Tally], *, has_model: bool) -> None:
    """Print what was found, as Markdown."""
    columns = [*WHOLE, *(BY_MODEL if has_model else ())]
    rows = [
        [name, *(tally.counts[each] for each in ("documents", "texts", *columns))] for name, tally in tallies.items()
    ]
    rows.append(["all", *(sum(values) for values in zip(*(row[1:] for row in rows), strict=True))])
    print_table(["format", "documents", "texts", *columns], rows)
    if has_model:
        reasons = sorted({each for tally in tallies.values() for each in tally.kept})
        warnings = sorted({each for tally in tallies.values() for each in tally.warnings})
        print()
        print_table(
            ["format", *NUMBERS, *(f"kept: {each}" for each in reasons), *warnings],
            [
                [name, *(tally.counts[each] for each in NUMBERS), *(tally.kept[each] for each in reasons)]
                + [tally.warnings[each] for each in warnings]
                for name, tally in tallies.items()
            ],
        )


def print_table(head: list[str], rows: list[list[str | int]]) -> None:
    """Print a table as Markdown."""
    for row in (head, ["---"] * len(head), *rows):
        print("|", " | ".join(f"{each:,}" if isinstance(each, int) else each for each in row), "|")


def documents(folders: list[Path], most: int) -> dict[str, list[Path]]:
    """Return the documents below some folders by format, different ones, at most so many of each, drawn at random."""
    endings = {ending: each.name for each in all_formats() for ending in each.endings}
    found = defaultdict[str, dict[int, Path]](dict)
    for folder in folders:
        for path in sorted(folder.rglob("*")):
            if path.suffix.lower() in endings and path.is_file() and not path.is_symlink():
                found[endings[path.suffix.lower()]].setdefault(hash(path.read_bytes()), path)
    random = Random(SEED)
    return {name: random.sample(list(paths.values()), min(most, len(paths))) for name, paths in sorted(found.items())}


def faults(document: Document, data: bytes, name: str) -> Iterator[tuple[str, str]]:
    """Yield what was tried without a model, and what was wrong; "" if nothing was."""
    yield WHOLE[0], "" if document.written([None] * len(document.segments)) == data else "other bytes"
    work = DocumentTranslation.of(data, name, tgt_language="", wanted="all")
    itself = work.finished([(rendered(unit, unit.text), ()) for unit in work.units])
    yield WHOLE[1], "" if itself.data == data else "other bytes"
    try:
        accented = work.finished([(rendered(unit, unit.text.translate(ACCENTS)), ()) for unit in work.units])
        yield WHOLE[2], changed(document, data, accented.data, name)
    except DataError as error:
        yield WHOLE[2], str(error)


def model_faults(
    translator: Translator, document: Document, data: bytes, path: Path, tally: Tally, out: Path | None
) -> Iterator[tuple[str, str]]:
    """Yield what a translation was tried for, and what was wrong; "" if nothing was."""
    greedy = translator.search.model_copy(update={"beam_size": 1})
    is_pairs = path.suffix in PAIR_ENDINGS["po"] + PAIR_ENDINGS["xliff"]
    language = "" if is_pairs else translator.tgt_language  # those of other languages are tried, too
    work = DocumentTranslation.of(
        data, path.name, tgt_language=language, is_protected=not translator.has_masks, wanted="all"
    )
    lines = list(translator.translate_lines(work.units, search=greedy, is_scored=False))
    try:
        translated = work.finished([(each.text, each.warnings) for each in lines])
        again = read_document(translated.data, path.name)
    except DataError as error:
        yield from ((each, str(error)) for each in BY_MODEL)
        return
    if out is not None:
        out.mkdir(parents=True, exist_ok=True)
        (out / path.name).write_bytes(translated.data)
    report = translated.report
    tally.counts["translated"] += report.translated
    tally.kept.update(report.kept)
    tally.warnings.update(report.warnings)
    before, after = document.segments, again.segments
    yield BY_MODEL[0], "" if is_pairs else lost_text([each.text for each in lines], translated.data, after)
    yield BY_MODEL[1], other_tree(data, translated.data, report.format)
    # A line end inside a clause may end a text of the translation: then there are others.
    pairs = list(zip(before, after, strict=True)) if len(before) == len(after) else []
    tally.counts["texts compared"] += len(pairs)
    if report.format in OFFICE:
        runs = [(looks(one.unit), looks(other.unit)) for one, other in pairs]
        tally.counts["runs"] += sum(len(one) for one, _ in runs)
        tally.counts["runs gone"] += sum(len(one - other) for one, other in runs)
        yield BY_MODEL[2], next((f"new runs {other - one}" for one, other in runs if other - one), "")
    else:
        yield BY_MODEL[2], next((fault for pair in pairs if (fault := other_tags(*pair))), "")
    yield BY_MODEL[3], next((fault for pair in pairs if (fault := other_placeholders(*pair))), "")
    yield BY_MODEL[4], "" if report.format != "po" or checks(translated.data) or not checks(data) else "no longer valid"


def lost_text(translations: Iterable[str], written: bytes, found: Iterable[Segment]) -> str:
    """Return a translation that is not in a document; "" if all are. Letters and digits count, tags do not."""
    parts = [part for part in parts_of(written).values() if part.lstrip()[:200].startswith(MARKUP)]
    there = [part.decode("utf-8", "replace") for part in parts]
    there += [each.unit.raw for each in found]  # those inside tags, too
    whole = "".join(map(characters, there))
    words = ((each, characters(each)) for each in translations if needs_translation(TAGS.sub("", each)))
    return next((repr(each[:200]) for each, key in words if key not in whole), "")


def characters(markup: str) -> str:
    """Return the letters and digits of a text with tags."""
    return "".join(filter(str.isalnum, unescape(TAGS.sub("", markup))))


def rendered(unit: Unit, text: str) -> str:
    """Return a translation that has the words of the source in their order, with the tags."""
    words, translated = word_spans(unit.text), word_spans(text)
    return unit.put_back(text, translated, np.eye(len(translated), len(words), dtype=np.float32))


def changed(document: Document, data: bytes, written: bytes, name: str) -> str:
    """Return what a translated document has lost; "" if nothing."""
    again = read_document(written, name)
    if len(again.segments) != len(document.segments):
        return f"{len(document.segments):,} texts, then {len(again.segments):,}"
    before, after = elements(data), elements(written)
    for part in before:
        if before[part] != after.get(part):
            lost = before[part] - after.get(part, Counter())
            return f"elements of {part} changed: {dict((lost or after[part] - before[part]).most_common(3))}"
    return ""


def elements(data: bytes) -> dict[str, Counter[bytes]]:
    """Return how often each element stands in each part of a document that is, or has, XML or HTML."""
    return {
        name: Counter(match[1] for match in TAG.finditer(PROPERTIES.sub(b"", part)) if match[1] not in RUNS)
        for name, part in parts_of(data).items()
        if part.lstrip()[:200].startswith(MARKUP)
    }


def parts_of(data: bytes) -> dict[str, bytes]:
    """Return the members of an archive, or the document itself."""
    if not data.startswith(b"PK\x03\x04"):
        return {"the document": data}
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        assert archive.testzip() is None
        return {name: archive.read(name) for name in archive.namelist()}


def other_tree(data: bytes, written: bytes, format: str) -> str:
    """Return where the trees of two documents differ; "" if they do not, or have none."""
    before, after = parts_of(data), parts_of(written)
    parse = html.document_fromstring if format == "html" else etree.fromstring
    if list(before) != list(after):
        return "other members"
    for name, part in before.items():
        if part == after[name] or not (format == "html" or part.lstrip()[:200].startswith(MARKUP)):
            continue
        try:
            root = parse(part)
        except etree.LxmlError:
            continue  # it was none before
        try:
            fault = other_element(root, parse(after[name]), is_office=format in OFFICE)
        except etree.LxmlError as error:
            fault = str(error)
        if fault:
            return f"{name}: {fault}"
    return ""


def other_element(before: etree._Element, after: etree._Element, *, is_office: bool) -> str:
    """Return where two trees differ; inside a text, tags move, and runs are joined and divided."""
    if before.tag != after.tag:
        return f"<{before.tag}> is <{after.tag}>"
    children, others = ([each for each in one if isinstance(each.tag, str)] for one in (before, after))
    has_text = any(text and text.strip() for text in (before.text, *(each.tail for each in before)))
    if has_text or (is_office and etree.QName(before).localname in PARAGRAPHS):
        names, other_names = (Counter(inside(one, is_office=is_office)) for one in (before, after))
        return (
            ""
            if names == other_names
            else f"in <{before.tag}>: {dict(names - other_names)}, {dict(other_names - names)}"
        )
    if len(children) != len(others):
        if {each.tag for each in children} == {"target"} or etree.QName(before).localname in ("trans-unit", "segment"):
            others = [each for each in others if etree.QName(each).localname != "target"]
            children = [each for each in children if etree.QName(each).localname != "target"]
        if len(children) != len(others):
            return f"<{before.tag}> has {len(children)} elements, then {len(others)}"
    pairs = zip(children, others, strict=True)
    return next((fault for pair in pairs if (fault := other_element(*pair, is_office=is_office))), "")


def inside(element: etree._Element, *, is_office: bool) -> Iterator[str]:
    """Yield the names of the elements inside one; of office formats without runs and their properties."""
    for each in element:
        if isinstance(each.tag, str):
            name = etree.QName(each).localname
            if is_office and name == "rPr":
                continue
            if not (is_office and name in {*RUN_NAMES, "span"}):
                yield each.tag
            yield from inside(each, is_office=is_office)


def other_tags(before: Segment, after: Segment) -> str:
    """Return which tags of a text are others; "" if none is."""
    tags, others = (Counter(tags_of(each.unit.nodes)) for each in (before, after))
    return "" if tags == others else f"{before.place}: {dict(tags - others)} {dict(others - tags)}"


def looks(unit: Unit) -> set[str]:
    """Return the properties of the runs of a text, but for its language."""
    raw = "".join([unit.before, *(f"{node.opening}{node.closing}" for node in all_nodes(unit.nodes)), unit.after])
    return {LANGUAGE.sub("", match[0]) for match in LOOK.finditer(raw)}


def tags_of(nodes: Iterable[Node]) -> Iterator[str]:
    """Yield the tags of a text."""
    return (" ".join(MARK.sub("*", f"{node.opening}{node.closing}").split()) for node in all_nodes(nodes))


def all_nodes(nodes: Iterable[Node]) -> Iterator[Node]:
    """Yield nodes and those inside them."""
    for node in nodes:
        yield node
        yield from all_nodes(node.children)


def other_placeholders(before: Segment, after: Segment) -> str:
    """Return which placeholders of a text its translation lacks; "" if none."""
    target = after.target or after.unit.text
    source = Counter(each.text for each in verbatim_strings(before.unit.text) if each.kind == "placeholder")
    lost = [each for each, n in source.items() if target.count(each) < n]
    return f"{before.place}: {lost}" if lost else ""


def checks(data: bytes) -> bool:
    """Whether gettext takes a file of messages; True without gettext."""
    if shutil.which("msgfmt") is None:
        return True
    return (
        subprocess.run(["msgfmt", "--check", "-o", "/dev/null", "-"], input=data, capture_output=True).returncode == 0
    )


if __name__ == "__main__":
    main()

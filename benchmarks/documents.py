"""Documents of real life, by format: what stays when they are read, written, and translated.

    python benchmarks/documents.py FOLDER... [--model MODEL] [--most 200] [--out translated]

Each document below the folders is

- read and written without translations: the same bytes;
- translated to itself: the same bytes (``DocumentTranslation`` leaves equal texts alone);
- translated by putting accents on vowels, and read again: as many texts, and of each XML or HTML part as many elements
  of each name, but for runs of characters, which are joined and divided, and marks of where a page ended on a screen;
- with ``--model``, translated and read again: as many texts and the same tags. ``--out`` keeps the results.

One JSON object for each format says how many documents were so, and one line for each that was not. What is refused
as a document is counted with its reason. ``--most`` limits the documents of a format.
"""

from __future__ import annotations

import argparse
import io
import json
import re
import sys
import zipfile
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from random import Random

import numpy as np

from transduce.documents import Document, all_formats, read_document
from transduce.errors import DataError
from transduce.inference import Translator
from transduce.inference.translation.document_translation import DocumentTranslation
from transduce.text import word_spans
from transduce.text.markup import Unit

SEED = 1
ACCENTS = str.maketrans("aeiouAEIOU", "áéíóúÁÉÍÓÚ")
RUNS = {
    b"w:r", b"w:t", b"w:proofErr", b"w:lastRenderedPageBreak", b"a:r", b"a:t", b"r", b"t", b"text:span",
    b"text:soft-page-break",
}  # fmt: skip
PROPERTIES = re.compile(rb"<((?:w:|a:)?rPr)\b[^>]*?(?:/>|>.*?</\1>)", re.DOTALL)  # of runs
TAG = re.compile(rb"<([A-Za-z][\w:.-]*)")
MARKUP = (b"<?xml", b"<!DOCTYPE", b"<html", b"\xef\xbb\xbf<?xml")


def main() -> None:
    """Try all documents; exit status 1 if one was not as it should be."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--model", type=Path)
    parser.add_argument("--most", type=int, default=200, help="documents of a format")
    parser.add_argument("--out", type=Path, help="keep the translations of the model in this folder")
    arguments = parser.parse_args()
    translator = Translator.load(arguments.model) if arguments.model else None
    is_wrong = False
    for name, paths in documents(arguments.folders, arguments.most).items():
        counts, refusals = Counter[str](), Counter[str]()
        for path in paths:
            data = path.read_bytes()
            try:
                document = read_document(data, path.name)
            except DataError as error:
                refusals[str(error).removeprefix(f"{path.name}: ")[:80]] += 1
                continue
            counts["documents"] += 1
            counts["texts"] += len(document.segments)
            for what, fault in faults(document, data, path, translator, arguments.out):
                counts[what] += not fault
                if fault:
                    is_wrong = True
                    print(f"{path}: {what}: {fault}"[:300], file=sys.stderr)
        print(json.dumps({"format": name, **counts, "refused": dict(refusals.most_common(5))}), flush=True)
    sys.exit(is_wrong)


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


def faults(
    document: Document, data: bytes, path: Path, translator: Translator | None, out: Path | None
) -> Iterator[tuple[str, str]]:
    """Yield what was tried, and what was wrong; "" if nothing was."""
    yield "same bytes", "" if document.written([None] * len(document.segments)) == data else "other bytes"
    work = DocumentTranslation.of(data, path.name, tgt_language="", wanted="all")
    itself = work.finished([(rendered(unit, unit.text), ()) for unit in work.units])
    yield "same bytes by the identity", "" if itself.data == data else "other bytes"
    try:
        accented = work.finished([(rendered(unit, unit.text.translate(ACCENTS)), ()) for unit in work.units])
        yield "accents", changed(document, data, accented.data, path)
    except DataError as error:
        yield "accents", str(error)
    if translator is None:
        return
    try:
        translated = translator.translate_document(data, path.name)
    except DataError as error:
        yield "translated", str(error)
        return
    yield "translated", changed(document, data, translated.data, path)
    if out is not None:
        out.mkdir(parents=True, exist_ok=True)
        (out / path.name).write_bytes(translated.data)


def rendered(unit: Unit, text: str) -> str:
    """Return a translation that has the words of the source in their order, with the tags."""
    words, translated = word_spans(unit.text), word_spans(text)
    return unit.put_back(text, translated, np.eye(len(translated), len(words), dtype=np.float32))


def changed(document: Document, data: bytes, written: bytes, path: Path) -> str:
    """Return what a translated document has lost; "" if nothing."""
    again = read_document(written, path.name)
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
    if data.startswith(b"PK\x03\x04"):
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            parts = {name: archive.read(name) for name in archive.namelist()}
    else:
        parts = {"the document": data}
    return {
        name: Counter(match[1] for match in TAG.finditer(PROPERTIES.sub(b"", part)) if match[1] not in RUNS)
        for name, part in parts.items()
        if part.lstrip()[:200].startswith(MARKUP)
    }


if __name__ == "__main__":
    main()

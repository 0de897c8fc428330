"""Files of terms: tables of source TAB target, and TBX (ISO 30042, the dialects Basic, Core and Min)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from xml.parsers import expat

from transduce.errors import DataError
from transduce.files import open_binary, read_lines
from transduce.terms.terms import Term
from transduce.text import normalise

__all__ = ["read_avoided", "read_terms"]

MAX_BYTES = 64 << 20
_CONCEPTS, _LANGUAGES = ("termEntry", "conceptEntry"), ("langSet", "langSec")  # of TBX 2 and 3


def read_terms(path: Path, *, src_language: str, tgt_language: str) -> tuple[Term, ...]:
    """Return the terms of a file. Raises DataError for a line without a TAB, or a damaged file."""
    if path.suffix.lower() in (".tbx", ".xml"):
        return tuple(dict.fromkeys(_terms_of_tbx(path, src_language, tgt_language)))
    return tuple(dict.fromkeys(_terms_of_lines(path)))


def read_avoided(path: Path) -> tuple[str, ...]:
    """Return the phrases of a file, one for each line."""
    return tuple(dict.fromkeys(phrase for line in read_lines(path) if (phrase := normalise(line))))


def _terms_of_lines(path: Path) -> Iterator[Term]:
    for number, line in enumerate(read_lines(path), start=1):
        if not normalise(line):
            continue
        source, tab, rest = line.partition("\t")
        term = Term(normalise(source), normalise(rest.partition("\t")[0]))
        if not (tab and term.source and term.target):
            raise DataError(f"{path}:{number} is no term; write source TAB target")
        yield term


def _terms_of_tbx(path: Path, src_language: str, tgt_language: str) -> Iterator[Term]:
    for by_language in _concepts(path):
        sources, targets = (_of_language(by_language, each) for each in (src_language, tgt_language))
        for source, target in product(sources, targets[:1]):  # the first is the preferred one
            yield Term(source, target)


def _of_language(by_language: dict[str, list[str]], wanted: str) -> list[str]:
    """Return the terms of a language: the one that is wanted, else one of another region."""
    wanted = wanted.lower().replace("_", "-")
    names = [each for each in by_language if each == wanted] or [
        each for each in by_language if each.partition("-")[0] == wanted.partition("-")[0]
    ]
    return [term for name in names for term in by_language[name]]


def _concepts(path: Path) -> list[dict[str, list[str]]]:
    """Return the terms of each concept, by language."""
    concepts, language, text = list[dict[str, list[str]]](), "", list[str]()
    is_in_term = False
    parser = expat.ParserCreate()

    def start(name: str, attributes: dict[str, str]) -> None:
        nonlocal language, is_in_term
        if name in _CONCEPTS:
            concepts.append(defaultdict(list))
        elif name in _LANGUAGES:
            language = attributes.get("xml:lang", "").lower().replace("_", "-")
        elif name == "term":
            is_in_term = True
            text.clear()

    def end(name: str) -> None:
        nonlocal is_in_term
        if name == "term":
            is_in_term = False
            if (term := normalise("".join(text))) and concepts:
                concepts[-1][language].append(term)

    def characters(data: str) -> None:
        if is_in_term:
            text.append(data)

    def entity(name: str, *_: object) -> None:
        raise DataError(f"{path} declares the entity {name}; write what it stands for instead")

    parser.StartElementHandler, parser.EndElementHandler = start, end
    parser.CharacterDataHandler, parser.EntityDeclHandler = characters, entity
    with open_binary(path) as stream:
        data = stream.read(MAX_BYTES + 1)
    if len(data) > MAX_BYTES:
        raise DataError(f"{path} is longer than {MAX_BYTES >> 20} MB; divide it")
    try:
        parser.Parse(data, True)
    except (expat.ExpatError, LookupError, ValueError) as error:  # the last two: of its encoding
        raise DataError(f"{path} is no TBX: {error}; write source TAB target to a .tsv") from None
    if not concepts:
        raise DataError(f"{path} has no termEntry and no conceptEntry; it should be TBX, or a .tsv")
    return concepts

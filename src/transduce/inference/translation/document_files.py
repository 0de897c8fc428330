"""Translation of documents and files by a translator in this process."""

from __future__ import annotations

from codecs import BOM_UTF16_BE, BOM_UTF16_LE, BOM_UTF32_BE
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path, PurePath
from typing import IO, TYPE_CHECKING, Unpack

from transduce.config import SearchConfig
from transduce.documents import all_formats, format_named
from transduce.errors import ConfigError, DataError
from transduce.files import READ_ERRORS, atomic_write, compressing, open_binary
from transduce.inference.translation.document_translation import (
    NO_TERMS,
    DocumentOptions,
    DocumentReport,
    DocumentTranslation,
    TranslatedDocument,
)
from transduce.inference.translation.progress import Progress, progress_callback
from transduce.inference.translation.remembered import recalled
from transduce.review import ReviewedText, write_review
from transduce.terms import Terms

if TYPE_CHECKING:
    from transduce.inference.translation.best_of_samples import BestOfSamples
    from transduce.inference.translation.reranking import Reranker
    from transduce.inference.translation.translator import Translator

__all__ = [
    "document_name", "format_of_file", "output_path", "read_bytes", "require_ending", "translate_document",
    "translate_file", "write_bytes",
]  # fmt: skip

LINES = "txt"  # the format that is translated line by line
ZIP = b"PK\x03\x04"
N_BEGINNING = 1 << 16  # bytes by which a format is recognised, except those of zip files
MAX_DOCUMENT_BYTES = 256 << 20
PIECE_BYTES = 1 << 20  # of plain text, which is read, translated and written piece by piece
CHUNK_UNITS = 2000  # that are translated together: texts of equal length share a batch


def translate_document(
    translator: Translator | Reranker | BestOfSamples,
    data: bytes,
    name: str,
    *,
    search: SearchConfig | None = None,
    split: bool = True,
    progress: bool | Progress = False,
    review_terms: Terms | None = None,
    **options: Unpack[DocumentOptions],
) -> TranslatedDocument:
    """Translate the bytes of a document, which messages call ``name``.

    ``search`` and ``split`` are those of ``Translator.translate_lines``, ``options`` those of ``DocumentTranslation``.
    With ``review_terms``, which may be none, the result has the texts for a review, and the model reads them once more.
    ``progress=True`` shows a bar on stderr; a function gets the number of texts done, and of all. Raises DataError and
    ConfigError as ``DocumentTranslation``.
    """
    if translator.memory is not None:
        options.setdefault("recall", partial(recalled, translator.memory))
    work = DocumentTranslation.of(
        data, name, tgt_language=translator.tgt_language, is_protected=not translator.has_masks, **options
    )
    with progress_callback(progress, len(work.units)) as show:
        lines = translator.translate_lines(
            work.units, search=search, split=split, chunk_lines=CHUNK_UNITS, is_linked=review_terms is not None,
            report=lambda n_done: show(n_done, len(work.units)),
        )  # fmt: skip
        translations = [*lines]
    terms: Terms = getattr(translator, "terms", NO_TERMS)  # a reranker has none
    finished = work.finished([(each.text, each.warnings) for each in translations], terms)
    if review_terms is None:
        return finished
    from transduce.inference.translation.review import reviewed_segments

    reviewed = reviewed_segments(work, translations, review_terms, translator.memory)
    return replace(finished, reviewed=[*reviewed])


def translate_file(
    translator: Translator | Reranker | BestOfSamples,
    source: Path,
    out: Path,
    *,
    search: SearchConfig | None = None,
    progress: bool | Progress = False,
    review: Path | None = None,
    terms: Terms | None = None,
    **options: Unpack[DocumentOptions],
) -> DocumentReport:
    """Translate a document to a file, or to one of its name in the folder ``out``; as ``Translator.translate_file``.

    Files whose names end in .gz or .xz are compressed. Plain text is translated in pieces, whose report is one. The
    page ``review`` says which ``terms`` are kept.
    """
    review_terms = None if review is None else terms or Terms()
    target, name, format = output_path(source, out), document_name(source), options.get("format", "")
    if target.exists() and target.samefile(source):
        raise ConfigError(f"{target} would overwrite the document itself; name another file")
    ending = PurePath(name).suffix.lower()
    is_text = format == LINES or (not format and ending in format_named(LINES).endings)
    require_ending(target, format or (LINES if is_text else format_of_file(source)), source)
    report: DocumentReport | None = None
    reviewed = list[ReviewedText]()
    if is_text:
        options["format"], n_done, n_lines = LINES, 0, _n_lines(source) if progress else 0
        with (
            open_binary(source) as stream,
            atomic_write(target) as raw,
            compressing(raw, target.suffix) as written,
            progress_callback(progress, n_lines) as show,
        ):
            for data in _pieces(stream, str(source)):
                n_more, options["first_line"] = data.count(b"\n"), n_done + 1
                of_piece = translate_document(
                    translator, data, f"{name} from line {n_done + 1:,}" if n_done else name, search=search,
                    progress=lambda done, n: show(n_done + n_more * done // max(1, n), n_lines),  # noqa: B023 - called at once
                    review_terms=review_terms, **options,
                )  # fmt: skip
                written.write(of_piece.data)
                reviewed += of_piece.reviewed
                report = of_piece.report if report is None else report.joined(of_piece.report)
                n_done += n_more
    else:
        with open_binary(source) as stream:
            data = read_bytes(stream, str(source))
        translated = translate_document(
            translator, data, name, search=search, progress=progress, review_terms=review_terms, **options
        )
        write_bytes(target, translated.data)
        report, reviewed = translated.report, [*translated.reviewed]
    assert report is not None
    if review is not None:
        direction = translator.src_language, translator.tgt_language
        write_review(review, reviewed, name=source.name, direction=direction)
    return report


def _n_lines(source: Path) -> int:
    """Return the number of lines of a text. Raises DataError for a damaged file."""
    with open_binary(source) as stream:
        return sum(data.count(b"\n") for data in _pieces(stream, str(source)))


def _pieces(stream: IO[bytes], name: str) -> Iterator[bytes]:
    """Yield plain text in pieces that end with a line, at least one; a text in UTF-16 or UTF-32 as a whole.

    Raises DataError for a stream that is damaged, and for a line that is too long for a document.
    """
    n_bytes = PIECE_BYTES
    try:
        data = stream.read(n_bytes)
        if data.startswith((BOM_UTF16_LE, BOM_UTF16_BE, BOM_UTF32_BE)):
            n_bytes = MAX_DOCUMENT_BYTES
            data += stream.read(n_bytes)
        while True:
            if len(data) >= n_bytes and not data.endswith(b"\n"):
                data += stream.readline(MAX_DOCUMENT_BYTES)
            if len(data) >= MAX_DOCUMENT_BYTES:
                raise DataError(f"{name} has a line that is longer than {MAX_DOCUMENT_BYTES:,} bytes; divide it")
            yield data
            data = stream.read(n_bytes)
            if not data:
                return
    except READ_ERRORS as error:
        raise DataError(f"{name} cannot be read: {error}") from error


def document_name(path: PurePath) -> str:
    """Return the name by which a document is read: without the ending of a compression.

    >>> document_name(PurePath("in/page.html.gz"))
    'in/page.html'
    """
    return str(path.with_suffix("") if path.suffix in (".gz", ".xz") else path)


def format_of_file(path: Path) -> str:
    """Return the document format of a file, by its name or its content; "" for plain text and what is unknown.

    Raises MissingFileError if there is no such file.
    """
    name = document_name(path)
    ending = PurePath(name).suffix.lower()
    known = next((each for each in all_formats() if ending in each.endings), None)
    if known is None and path.is_file():
        with open_binary(path) as stream, suppress(*READ_ERRORS):
            beginning = stream.read(N_BEGINNING)
            data = beginning + (stream.read(MAX_DOCUMENT_BYTES) if beginning.startswith(ZIP) else b"")
            known = next((each for each in all_formats() if each.recognises(data)), None)
    return "" if known is None or known.name == LINES else known.name


def output_path(source: Path, out: Path) -> Path:
    """Return the file that is written for ``source``: in the folder ``out``, or ``out`` itself."""
    return out / source.name if out.is_dir() else out


def require_ending(out: Path, format: str, source: PurePath | None) -> None:
    """Raise ConfigError for an output whose name ends as another document format does than what is written.

    Lines of text, whose format is "", may have any name but that of an office document or a book.
    """
    ending, of_source = (PurePath(document_name(each)).suffix.lower() for each in (out, source or PurePath()))
    known = next((each for each in all_formats() if ending in each.endings), None)
    if known is None or known.name == format or ending == of_source:
        return
    if format:
        wanted = format_named(format).endings[0]
        raise ConfigError(f"{out} is named as {known.name}, but {format} is written; name a file that ends in {wanted}")
    if known.media_type.startswith(("application/vnd.", "application/epub")):
        raise ConfigError(f"{out} is named as {known.name}, but lines of text are written; name a file such as out.txt")


def read_bytes(stream: IO[bytes], name: str) -> bytes:
    """Return all of an open stream. Raises DataError for one that is damaged or too large for a document."""
    try:
        data = stream.read(MAX_DOCUMENT_BYTES + 1)
    except READ_ERRORS as error:
        raise DataError(f"{name} cannot be read: {error}") from error
    if len(data) > MAX_DOCUMENT_BYTES:
        raise DataError(f"{name} is longer than {MAX_DOCUMENT_BYTES:,} bytes; divide it into several documents")
    return data


def write_bytes(out: Path, data: bytes) -> None:
    """Write a file whole or not at all; one whose name ends in .gz or .xz is compressed."""
    with atomic_write(out) as raw, compressing(raw, out.suffix) as stream:
        stream.write(data)

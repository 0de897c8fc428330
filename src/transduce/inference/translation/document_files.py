"""Translation of documents and files by a translator in this process."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path, PurePath
from typing import IO, TYPE_CHECKING, Unpack

from transduce.config import SearchConfig
from transduce.documents import all_formats
from transduce.errors import ConfigError, DataError
from transduce.files import READ_ERRORS, atomic_write, compressing, open_binary
from transduce.inference.translation.document_translation import (
    DocumentOptions,
    DocumentReport,
    DocumentTranslation,
    TranslatedDocument,
)
from transduce.inference.translation.progress import Progress, progress_callback

if TYPE_CHECKING:
    from transduce.inference.translation.best_of_samples import BestOfSamples
    from transduce.inference.translation.reranking import Reranker
    from transduce.inference.translation.translator import Translator

__all__ = [
    "document_name", "format_of_file", "output_path", "read_bytes", "translate_document", "translate_file",
    "write_bytes",
]  # fmt: skip

LINES = "txt"  # the format that is translated line by line
ZIP = b"PK\x03\x04"
N_BEGINNING = 1 << 16  # bytes by which a format is recognised, except those of zip files
MAX_DOCUMENT_BYTES = 256 << 20
CHUNK_UNITS = 2000  # that are translated together: texts of equal length share a batch


def translate_document(
    translator: Translator | Reranker | BestOfSamples,
    data: bytes,
    name: str,
    *,
    search: SearchConfig | None = None,
    split: bool = True,
    progress: bool | Progress = False,
    **options: Unpack[DocumentOptions],
) -> TranslatedDocument:
    """Translate the bytes of a document, which messages call ``name``.

    ``search`` and ``split`` are those of ``Translator.translate_lines``, ``options`` those of ``DocumentTranslation``.
    ``progress=True`` shows a bar on stderr; a function gets the number of texts done, and of all. Raises DataError and
    ConfigError as ``DocumentTranslation``.
    """
    work = DocumentTranslation.of(
        data, name, tgt_language=translator.tgt_language, is_protected=not translator.has_masks, **options
    )
    with progress_callback(progress, len(work.units)) as show:
        lines = translator.translate_lines(
            work.units, search=search, split=split, is_scored=False, chunk_lines=CHUNK_UNITS,
            report=lambda n_done: show(n_done, len(work.units)),
        )  # fmt: skip
        return work.finished([(each.text, each.warnings) for each in lines])


def translate_file(
    translator: Translator | Reranker | BestOfSamples,
    source: Path,
    out: Path,
    *,
    search: SearchConfig | None = None,
    split: bool = True,
    progress: bool | Progress = False,
    **options: Unpack[DocumentOptions],
) -> DocumentReport:
    """Translate a document to a file, or to one of its name in the folder ``out``; as ``Translator.translate_file``.

    Files whose names end in .gz or .xz are compressed.
    """
    target = output_path(source, out)
    if target.exists() and target.samefile(source):
        raise ConfigError(f"{target} would overwrite the document itself; name another file")
    with open_binary(source) as stream:
        data = read_bytes(stream, str(source))
    translated = translate_document(
        translator, data, document_name(source), search=search, split=split, progress=progress, **options
    )
    write_bytes(target, translated.data)
    return translated.report


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

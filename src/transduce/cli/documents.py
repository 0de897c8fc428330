"""Translation of a document (``translate --in report.docx --out report.de.docx``)."""

from __future__ import annotations

import sys
from contextlib import nullcontext
from pathlib import Path, PurePath
from typing import TYPE_CHECKING

from transduce.cli.line_warnings import LineWarnings
from transduce.cli.models import load_translator
from transduce.cli.output import STANDARD, print_json
from transduce.cli.paths import require_writable
from transduce.cli.progress import LineProgress
from transduce.cli.stdin import is_interactive
from transduce.cli.text_output import is_terminal, line_writer
from transduce.config.decoding import DecodingOptions, LoadingOptions
from transduce.errors import ConfigError
from transduce.files import open_binary, write_json

if TYPE_CHECKING:
    from transduce.inference.translation.document_translation import DocumentOptions

__all__ = ["AUTO", "LINES", "document_format", "output_file", "require_ending", "translate_document"]

AUTO, LINES = "auto", "text"  # what --format may be besides the names of formats


def document_format(format: str, source: Path | None) -> str:
    """Return the format of a document that is to be translated; "" for lines of text.

    Raises ConfigError for an unknown one, MissingFileError if there is no such file.
    """
    if format == LINES or (format == AUTO and source in (None, STANDARD)):
        return ""
    if format == AUTO:
        from transduce.inference.translation.document_files import format_of_file

        assert source is not None
        return format_of_file(source)
    from transduce.documents import all_formats

    known = [each.name for each in all_formats()]
    if format not in known:
        raise ConfigError(f"--format should be {AUTO}, {LINES}, {', '.join(known)}, got {format!r}")
    return format


def require_ending(out: Path | None, format: str, source: Path | None) -> None:
    """Raise ConfigError for an output whose name ends as another document format does than what is written."""
    if out is not None and out != STANDARD:
        from transduce.inference.translation import document_files

        document_files.require_ending(out, format, source)


def output_file(source: Path | None, out: Path | None) -> Path | None:
    """Return the file that is written: of the name of the source, if a folder is named."""
    if source is None or source == STANDARD or out is None:
        return out
    from transduce.inference.translation.document_files import output_path

    return output_path(source, out)


def translate_document(
    loading: LoadingOptions,
    decoding: DecodingOptions,
    source: Path | None,
    out: Path | None,
    *,
    split: bool,
    read: DocumentOptions,
    report: Path | None,
    review: Path | None,
    warnings: Path | None,
    is_json: bool,
) -> None:
    """Translate a document, and print what was not translated. Raises ConfigError, DataError or CheckpointError."""
    from transduce.inference.translation import document_files
    from transduce.inference.translation.loading import read_term_lists
    from transduce.review import write_review

    if is_interactive(source):
        raise ConfigError(f"--format {read['format']} translates a document; name it with --in, or redirect it: < FILE")
    if is_json and out in (None, STANDARD):
        raise ConfigError("--json prints the report of a document; name a file for the document with --out")
    if report is not None:
        require_writable("--report", report)
    data, name = _input(source)
    if b"\0" in data and is_terminal(out):
        raise ConfigError("the document is no text that a terminal shows; name a file for it with --out")
    translator = load_translator(loading)
    direction = translator.src_language, translator.tgt_language
    review_terms = None if review is None else read_term_lists(loading, *direction)
    with LineProgress("translating", None, is_enabled=not is_terminal(out)) as progress:
        translated = document_files.translate_document(
            translator, data, name, search=decoding.applied_to(translator.search), split=split,
            progress=lambda n_done, n_texts: progress.reach(n_done, of=n_texts), review_terms=review_terms, **read,
        )  # fmt: skip
        if out is None or out == STANDARD:
            sys.stdout.buffer.write(translated.data)
            sys.stdout.buffer.flush()
        else:
            document_files.write_bytes(out, translated.data)
        progress.log(translated.report.summary())
        with nullcontext(lambda line: None) if warnings is None else line_writer(warnings) as write:
            told = LineWarnings(progress.log, max_source_tokens=translator.max_source_tokens, write=write)
            told.observe_document(translated.report)
            told.log_counts("texts")
    if review is not None:
        write_review(review, translated.reviewed, name=PurePath(name).name, direction=direction)
    if report is not None:
        write_json(report, translated.report.as_json())
    if is_json:
        print_json(translated.report.as_json())


def _input(source: Path | None) -> tuple[bytes, str]:
    """Return the bytes of a document and its name. Raises DataError."""
    from transduce.inference.translation.document_files import document_name, read_bytes

    if source is None or source == STANDARD:
        return read_bytes(sys.stdin.buffer, "stdin"), "stdin"
    with open_binary(source) as stream:
        return read_bytes(stream, str(source)), document_name(source)

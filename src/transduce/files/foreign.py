"""Files that are no lines of text, told by their beginning: read as text, they would give garbage."""

from __future__ import annotations

import io
import re
from collections import Counter
from typing import IO

from transduce.errors import DataError

__all__ = ["N_BEGINNING", "foreign_beginning", "is_xliff", "require_text_stream"]

N_BEGINNING = 1 << 13  # bytes of a stream that are looked at; of a pipe, those that have arrived
MIN_UTF16_BYTES = 20  # to recognise UTF-16 without a byte-order mark
MIN_ODD_BYTES = 32  # fewer bytes that no text has are faults of single lines
MAX_CONTROL, MAX_INVALID = 0.05, 0.4  # share of control characters, and of bytes that are not UTF-8, in damaged text

_SAVE_AS_TEXT = "save it as plain text in UTF-8, one sentence a line"
_ONE_FILE = "one a line, to a file of each language"
_PAIRS = "transduce init, and train --from, take its pairs with"
_EXTRACT = "unpack it and give the files in it"
_DATABASE = "export its text to a .tsv file: source TAB target"
_BOM = rb"(?:\xef\xbb\xbf)?"
_XML_DECLARATION = _BOM + rb"(?:<\?xml[^>]*>)?\s*"
_XML = _BOM + rb"(?:<\?xml[^>]*>|<!--(?s:.{0,4000}?)-->|<!DOCTYPE[^>]*>|\s)*+"  # a comment ends at the first -->
_XLIFF = _XML + rb"<(?:\w+:)?xliff\b(?!:)"
_COMMENTS = _BOM + rb"(?:[ \t]*#[^\n]*\n|[ \t\r]*\n)*"

# Regular expressions of how files begin, and what is said about them.
_BEGINNINGS = (
    (rb"\xff\xfe\0\0|\0\0\xfe\xff", "is UTF-32; convert it, as in: iconv -f UTF-32 -t UTF-8"),
    (rb"\xff\xfe|\xfe\xff", "is UTF-16; convert it, as in: iconv -f UTF-16 -t UTF-8"),
    (rb"%PDF-", f"is a PDF; extract its text (pdftotext), or {_SAVE_AS_TEXT}"),
    (rb"\xd0\xcf\x11\xe0", f"is a document of an old office program (.doc, .xls); {_SAVE_AS_TEXT}"),
    (rb"\{\\rtf", f"is rich text (RTF); {_SAVE_AS_TEXT}"),
    (rb"PK\x03\x04(?s:.)*?word/", f"is a Word document (.docx); {_SAVE_AS_TEXT}"),
    (rb"PK\x03\x04(?s:.)*?xl/", f"is a spreadsheet (.xlsx); {_DATABASE}"),
    (rb"PK\x03\x04(?s:.)*?ppt/", f"is a presentation (.pptx); {_SAVE_AS_TEXT}"),
    (rb"PK\x03\x04(?s:.)*?\[Content_Types\]\.xml", f"is an office document (.docx, .xlsx); {_SAVE_AS_TEXT}"),
    (rb"PK\x03\x04(?s:.{26})mimetypeapplication/epub", f"is an EPUB book; {_SAVE_AS_TEXT}"),
    (
        rb"PK\x03\x04(?s:.)*?(?:application/vnd\.oasis|content\.xml)",
        f"is an OpenDocument file (.odt, .ods); {_SAVE_AS_TEXT}",
    ),
    (rb"PK\x03\x04|PK\x05\x06", f"is a zip archive; {_EXTRACT}"),
    (rb"(?s:.{257})ustar", f"is a tar archive; {_EXTRACT}"),
    (rb"7z\xbc\xaf", f"is a 7z archive; {_EXTRACT}"),
    (rb"Rar!", f"is a RAR archive; {_EXTRACT}"),
    (rb"BZh\d1AY&SY", "is compressed with bzip2; decompress it, or recompress it as .gz or .xz"),
    (rb"\x28\xb5\x2f\xfd", "is compressed with zstd; decompress it, or recompress it as .gz or .xz"),
    (rb"SQLite format 3", f"is a SQLite database; {_DATABASE}"),
    (rb"PAR1", f"is Parquet; {_DATABASE}"),
    (
        rb"\x89PNG\r\n|\xff\xd8\xff|GIF8[79]a|RIFF(?s:.{4})WEBP|II\*\0|MM\0\*",
        "is an image; transduce read finds its text with a model of image-to-text",
    ),
    (
        rb"RIFF(?s:.{4})WAVE|fLaC|OggS\0|ID3[\x02-\x04]",
        "is a recording; transduce transcribe finds its text with a model of speech-to-text",
    ),
    (rb"\xde\x12\x04\x95|\x95\x04\x12\xde", "is a compiled file of gettext (.mo); use its PO file"),
    (
        _COMMENTS + rb"[ \t]*msg(?:id|ctxt)[ \t]+\"",
        f"is a PO file of gettext; {_PAIRS} --po",
    ),
    (_XLIFF, f"is XLIFF; {_PAIRS} --xliff"),
    (_XML + rb"<tmx\b", f"is TMX, a translation memory; {_PAIRS} --tmx"),
    (_XML + rb"<(?:martif|tbx)\b", "is TBX, a list of terms; translate takes it with --terms"),
    (
        _XML + rb"<TS\b[^>]*\bversion=|" + _XML_DECLARATION + rb"<!DOCTYPE TS\b",
        f"is a Qt translation file (.ts); write its texts, {_ONE_FILE}",
    ),
)
_COMPRESSED = ((b"\x1f\x8b", "gzip", ".gz"), (b"\xfd7zXZ\0", "xz", ".xz"))
_CONTROL = bytes({*range(9), *range(14, 27), *range(28, 32), 127})  # those that text files do not have


def require_text_stream(stream: IO[bytes], name: str) -> None:
    """Raise DataError if a stream begins like something else than lines of UTF-8 text. Nothing is consumed."""
    reason = foreign_beginning(_beginning(stream), name)
    if reason is not None:
        raise DataError(f"{name} {reason}")


def foreign_beginning(beginning: bytes, name: str = "") -> str | None:
    """Return what is wrong with a file of some name by its first bytes ("is a PDF; ..."); None for text.

    >>> foreign_beginning(b"Rar!")
    'is a RAR archive; unpack it and give the files in it'
    """
    for magic, how, suffix in _COMPRESSED:
        if beginning.startswith(magic):
            if name.endswith((".gz", ".xz")):
                return "is compressed twice; decompress it once"
            return f"is compressed with {how}, and its name does not end in {suffix}; rename or decompress it"
    reason = next((reason for pattern, reason in _BEGINNINGS if re.match(pattern, beginning)), None)
    return reason or _utf16(beginning) or _no_text(beginning)


def is_xliff(beginning: bytes) -> bool:
    """Whether the first bytes are those of an XLIFF file."""
    return re.match(_XLIFF, beginning) is not None


def _utf16(beginning: bytes) -> str | None:
    """Recognise UTF-16 without a byte-order mark: most of every second byte is one control character."""
    if len(beginning) < MIN_UTF16_BYTES:
        return None
    for name, letters, high in (("LE", beginning[::2], beginning[1::2]), ("BE", beginning[1::2], beginning[::2])):
        [(byte, n)] = Counter(high).most_common(1)
        if byte in _CONTROL and n > 0.6 * len(high) and letters.count(0) < 0.02 * len(letters):
            return f"is UTF-16 without a byte-order mark; convert it, as in: iconv -f UTF-16{name} -t UTF-8"
    return None


def _no_text(beginning: bytes) -> str | None:
    """Recognise binary files, and text in other encodings."""
    n_control = len(beginning) - len(beginning.translate(None, _CONTROL))
    if n_control >= MIN_ODD_BYTES and n_control > MAX_CONTROL * len(beginning):
        share = n_control / len(beginning)
        return f"is not text: {share:.0%} of its first bytes are control characters; give plain text in UTF-8"
    n_invalid = len(beginning) - len(beginning.decode("utf-8", "ignore").encode())
    if n_invalid >= MIN_ODD_BYTES and n_invalid > MAX_INVALID * len(beginning):
        return "is not UTF-8 but has another encoding; convert it, as in: iconv -f GB18030 -t UTF-8"
    return None


def _beginning(stream: IO[bytes]) -> bytes:
    if isinstance(stream, io.BufferedReader):
        return stream.peek(N_BEGINNING)[:N_BEGINNING]
    position = stream.tell()
    beginning = stream.read(N_BEGINNING)
    stream.seek(position)
    return beginning

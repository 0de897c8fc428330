"""Bytes to text and back, without loss."""

from __future__ import annotations

import codecs

from transduce.errors import DataError
from transduce.patterns import compiled_on_use

__all__ = ["FORBIDDEN_IN_XML", "decoded", "encoded", "xml_text"]

FORBIDDEN_IN_XML = compiled_on_use("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")  # characters
_MARKS = (  # the longer first
    (codecs.BOM_UTF32_LE, "utf-32-le"), (codecs.BOM_UTF32_BE, "utf-32-be"), (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"),
)  # fmt: skip
_NO_ENCODINGS = ("idna", "punycode", "raw-unicode-escape", "unicode-escape")  # of files; the first two are quadratic
_DECLARED = compiled_on_use(r"""\s*<\?xml\s[^>]{0,200}?\bencoding\s*=\s*["']([\w.:-]+)["']""")  # by XML


def decoded(data: bytes, declared: str | None = None) -> tuple[str, str]:
    """Return a text and its encoding: that of its byte order mark, which stays in the text, the declared one, or UTF-8.

    Raises DataError for bytes that are none of that encoding, and for an encoding that is unknown.
    """
    encoding = next((name for mark, name in _MARKS if data.startswith(mark)), declared or "utf-8")
    try:
        if codecs.lookup(encoding).name in _NO_ENCODINGS:
            raise LookupError(encoding)
        text = data.decode(encoding)
        is_kept = text.encode(encoding) == data
    except UnicodeDecodeError as error:
        raise DataError(f"byte {error.start:,} is not {encoding}; save it as UTF-8, or declare its encoding") from None
    except (LookupError, ValueError):
        raise DataError(f"its encoding is {encoding!r}, which is unknown here; save it as UTF-8") from None
    if not is_kept:
        raise DataError(f"it would not be the same bytes when written again in {encoding}; save it as UTF-8")
    return text, encoding


def xml_text(data: bytes) -> tuple[str, str]:
    """Return an XML document as text, and its encoding, as ``decoded``."""
    declared = _DECLARED.match(data[:1000].decode("latin-1"))
    return decoded(data, declared and declared[1])


def encoded(text: str, encoding: str, *, errors: str = "strict") -> bytes:
    """Return the bytes of a text. Raises DataError, with the character, if the encoding lacks it.

    ``errors="xmlcharrefreplace"`` writes such characters as entities.
    """
    try:
        return text.encode(encoding, errors)
    except UnicodeEncodeError as error:
        raise DataError(
            f"the translation has {text[error.start]!r}, which {encoding} lacks; save the document as UTF-8 first"
        ) from None

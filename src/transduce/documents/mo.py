"""MO files: the messages of a program as gettext compiles them. They are only read."""

from __future__ import annotations

import struct
from collections.abc import Iterator

from transduce.documents.encodings import decoded
from transduce.documents.po_reading import header_values
from transduce.errors import DataError

__all__ = ["read_mo"]

MAGIC = 0x950412DE
_CHARSET = "charset="


def read_mo(data: bytes) -> tuple[str, list[tuple[str, str, str, str]]]:
    """Return the language of the translations, and the messages: context, singular, plural, and the first translation.

    Of a message with a plural, there are two: the singular, without ``plural``, and the plural with the last
    translation. Raises DataError for what is no MO file.
    """
    order = next((order for order in "<>" if data[:4] == struct.pack(f"{order}I", MAGIC)), None)
    if order is None:
        raise DataError("it does not begin as an MO file does")
    try:
        raw = list(_strings(data, order))
    except struct.error:
        raise DataError("it is shorter than its tables say") from None
    header = next((target for source, target in raw if source == b""), b"").decode("ascii", errors="replace")
    values = header_values(header)
    encoding = values.get("content-type", "").partition(_CHARSET)[2] or None
    messages = list[tuple[str, str, str, str]]()
    for source, target in raw:
        context, separator, text = decoded(source, encoding)[0].rpartition("\x04")
        singular, _, plural = text.partition("\x00")
        forms = decoded(target, encoding)[0].split("\x00")
        if singular:
            messages.append((context if separator else "", singular, "", forms[0]))
        if plural and len(forms) > 1:
            messages.append((context, singular, plural, forms[-1]))
    return values.get("language", ""), messages


def _strings(data: bytes, order: str) -> Iterator[tuple[bytes, bytes]]:
    n, sources_at, targets_at = struct.unpack_from(f"{order}3I", data, 8)
    if n > len(data):
        raise DataError("it is shorter than its tables say")
    for index in range(n):
        pair = []
        for table in (sources_at, targets_at):
            length, offset = struct.unpack_from(f"{order}2I", data, table + 8 * index)
            if offset + length > len(data):
                raise DataError("it is shorter than its tables say")
            pair.append(data[offset : offset + length])
        yield pair[0], pair[1]

"""A memory as TMX, the format that all memories exchange."""

from __future__ import annotations

from collections.abc import Iterable
from importlib.metadata import version
from pathlib import Path
from xml.sax.saxutils import escape, quoteattr

from transduce.files import atomic_write
from transduce.patterns import compiled_on_use

__all__ = ["write_tmx"]

_NOT_IN_XML = compiled_on_use("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def write_tmx(path: Path, pairs: Iterable[tuple[str, str]], *, src_language: str, tgt_language: str) -> int:
    """Write pairs as TMX 1.4; return their number."""
    n_pairs, src, tgt = 0, quoteattr(src_language), quoteattr(tgt_language)
    with atomic_write(path) as stream:
        stream.write(
            '<?xml version="1.0" encoding="UTF-8"?>\n<tmx version="1.4">\n'
            f'<header creationtool="transduce" creationtoolversion="{version("transduce")}" segtype="sentence" '
            f'o-tmf="transduce" adminlang="en" srclang={src} datatype="plaintext"/>\n<body>\n'.encode()
        )
        for source, target in pairs:
            stream.write(f"<tu>{_variant(src, source)}{_variant(tgt, target)}</tu>\n".encode())
            n_pairs += 1
        stream.write(b"</body>\n</tmx>\n")
    return n_pairs


def _variant(language: str, text: str) -> str:
    return f"<tuv xml:lang={language}><seg>{escape(_NOT_IN_XML.sub('', text))}</seg></tuv>"

"""The byte-level alphabet: one printable character for each byte, in which vocabularies and words are written."""

from __future__ import annotations

__all__ = ["BYTE_CHARACTERS", "bytes_of", "from_byte_level", "to_byte_level"]


def _alphabet() -> dict[str, bytes]:
    """Character to byte: printable Latin-1 characters are their own bytes, U+0100 and following the other bytes."""
    printable = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    others = [byte for byte in range(256) if byte not in printable]
    alphabet = {chr(byte): bytes([byte]) for byte in printable}
    return alphabet | {chr(0x100 + n): bytes([byte]) for n, byte in enumerate(others)}


_BYTE_OF_CHARACTER = _alphabet()
_CHARACTER_OF_BYTE = {byte[0]: character for character, byte in _BYTE_OF_CHARACTER.items()}

BYTE_CHARACTERS = tuple(sorted(_BYTE_OF_CHARACTER))  # the 256 characters of the alphabet


def to_byte_level(text: str) -> str:
    """Return ``text`` in the byte-level alphabet, the form of vocabulary entries.

    >>> to_byte_level("ä b")
    'Ã¤Ġb'
    """
    return "".join(_CHARACTER_OF_BYTE[byte] for byte in text.encode("utf-8", "surrogateescape"))


def bytes_of(token: str) -> bytes:
    """Return the bytes of a vocabulary entry; a character outside the alphabet stands for itself."""
    return b"".join(_BYTE_OF_CHARACTER.get(character, character.encode("utf-8")) for character in token)


def from_byte_level(word: str) -> str:
    """Return the text of a word in the byte-level alphabet, as ``to_byte_level`` takes it back.

    A byte that is no part of a character, where a word was split inside one, is a lone surrogate.

    >>> from_byte_level("Ã¤Ġb"), from_byte_level("Ã")
    ('ä b', '\\udcc3')
    """
    return bytes_of(word).decode("utf-8", "surrogateescape")

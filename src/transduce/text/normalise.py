"""Text normalisation, applied before a tokenizer is trained or used."""

from __future__ import annotations

from transduce.composition import composed
from transduce.patterns import compiled_on_use
from transduce.text.characters import EMOJI, JOINING_SCRIPTS

__all__ = ["INVISIBLE", "LONE_JOINERS", "composed", "normalise", "visible", "without_surrogates"]

_SURROGATE = compiled_on_use("[\ud800-\udfff]")

# Characters that show nothing and mean nothing to a reader: control characters that are no space, soft hyphens, marks
# of direction, zero-width spaces, byte order marks, signs of annotation, and others that are ignored by default.
_NOTHING = (
    "\0-\x08\x0e-\x1b\x7f\xad\u061c\u17b4\u17b5\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\ufeff\ufff0-\ufffb"
    "\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000\U000e0001\U000e0080-\U000e0fff"
)
# Characters that show nothing but change another: variation selectors, the letters of a flag.
_VARIATIONS, _FLAG_LETTERS = "\ufe00-\ufe0f", "\U000e0020-\U000e007f"
_JOINERS = "[\u200c\u200d]"

# Regular expressions of what ``normalise`` removes, in this order.
INVISIBLE = f"[{_NOTHING}{_VARIATIONS}{_FLAG_LETTERS}]"
LONE_JOINERS = f"{_JOINERS}(?<![{JOINING_SCRIPTS}{EMOJI}]{_JOINERS})"  # not in a word or picture that needs one

_INVISIBLE, _LONE_JOINERS = compiled_on_use(INVISIBLE), compiled_on_use(LONE_JOINERS)
_SUSPECT = compiled_on_use(f"{INVISIBLE}|{_JOINERS}")
_ALWAYS_INVISIBLE = compiled_on_use(f"[{_NOTHING}]")
_WITHOUT_PICTURE = compiled_on_use(
    f"[{_VARIATIONS}](?<![{EMOJI}][{_VARIATIONS}])(?!\u20e3)"
    f"|[{_FLAG_LETTERS}](?<![\U0001f3f4{_FLAG_LETTERS}][{_FLAG_LETTERS}])[{_FLAG_LETTERS}]*"
)
_JOINS_NOTHING = compiled_on_use(f"{_JOINERS}(?<![{JOINING_SCRIPTS}{EMOJI}{_VARIATIONS}{_FLAG_LETTERS}]{_JOINERS})")


def normalise(text: str) -> str:
    """Return ``text`` in NFC, without invisible characters, and with each run of whitespace replaced by one space.

    Whitespace is Unicode whitespace: tabs, line ends, control separators, the no-break space, U+2028; there is none at
    the ends. The result is one line; normalising is idempotent. Joiners stay between letters of Arabic, Indian and
    other scripts that need them, and between emoji.

    Every string is accepted: a lone surrogate becomes U+FFFD, the replacement character (a surrogate pair becomes its
    character); U+034F splits a run of more than 64 combining marks, as in the stream-safe text format of Unicode
    Standard Annex 15.

    >>> normalise("  Ein\\u00a0Ma\\u0308d\\xadchen\\tlacht.\\u2028")
    'Ein Mädchen lacht.'
    """
    text = without_surrogates(text)
    text = text if _is_plain(text) else _without_invisible(text)
    return " ".join((text if text.isascii() else composed(text)).split())


def _without_invisible(text: str) -> str:
    """Return ``text`` without invisible characters, also those joiners that stand alone when others are removed."""
    text, before = _INVISIBLE.sub("", text), ""
    while text != before:
        before = text
        text = composed(_LONE_JOINERS.sub("", text))  # which may bring marks into another order
    return text


def visible(text: str) -> str:
    """Return ``text`` without its invisible characters, except those that belong to an emoji.

    Surrogates become what ``normalise`` makes of them.

    >>> visible("a soft\\xadhyphen,\\ta mark\\ufeff"), visible("\\u2764\\ufe0f") == "\\u2764\\ufe0f"
    ('a softhyphen,\\ta mark', True)
    """
    text = without_surrogates(text)  # first, else two that an invisible character parts become a pair
    if _is_plain(text):
        return text
    return _JOINS_NOTHING.sub("", _WITHOUT_PICTURE.sub("", _ALWAYS_INVISIBLE.sub("", text)))


def _is_plain(text: str) -> bool:
    """Whether a text has no invisible character."""
    return (text.isascii() and text.isprintable()) or _SUSPECT.search(text) is None


def without_surrogates(text: str) -> str:
    """Return ``text`` with U+FFFD for each lone surrogate, and their character for surrogate pairs.

    >>> without_surrogates("x\\ud800y")
    'x\ufffdy'
    """
    if text.isascii() or not _SURROGATE.search(text):
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")

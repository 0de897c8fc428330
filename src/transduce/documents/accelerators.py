"""Accelerators: a sign in a menu entry before the letter of its key, as in ``_File`` or ``Cu&t``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from transduce.patterns import compiled_on_use
from transduce.text.characters import SPACELESS

__all__ = ["SIGNS", "accelerator_of", "usual_sign", "with_accelerator", "without_accelerators"]

SIGNS = "_&~"
MAX_CHARACTERS = 60  # of a message with an accelerator
# A doubled sign is the sign itself; "&amp;" is none, and a name such as "log_file" or "AT&T" has none.
_AT_WORD = {sign: compiled_on_use(rf"(?<![\w{sign}]){sign}(?=[^\W_])(?!\w+;)") for sign in SIGNS}
_IN_WORD = {
    sign: compiled_on_use(rf"(?<!\w)[^\W\d_a-zß-ÿ][^\W\d_A-ZÀ-Þ]*{sign}(?=[^\W\d_A-ZÀ-Þ])(?!\w+;)") for sign in SIGNS
}
_ANY = {sign: compiled_on_use(rf"(?<!{sign}){sign}(?=[^\W_])(?!\w+;)") for sign in SIGNS}
_IN_BRACKETS = {sign: compiled_on_use(rf"\s?\({sign}[A-Za-z0-9]\)") for sign in SIGNS}
_SPACELESS_TEXT = compiled_on_use(f"[{SPACELESS}\uac00-\ud7af]")
_END = compiled_on_use(r"(?<![\s.…:：。])[\s.…:：。]*+$")
_LETTER = compiled_on_use(r"[^\W\d_]")
_PLACEHOLDER = compiled_on_use(r"%\S+|\{[^{}]*\}|<[^<>]*>|\$\w+")


def usual_sign(messages: Iterable[str]) -> str:
    """Return the sign that the messages of a file use; "" if they have no accelerators.

    >>> usual_sign(["_File", "R&D", "log_file"]), usual_sign(["snake_case"])
    ('_', '')
    """
    counts = Counter(
        sign
        for message in messages
        if len(message) <= MAX_CHARACTERS
        for sign in SIGNS
        if message.count(sign) == 1 and (found := _AT_WORD[sign].search(message)) and message[found.end()].isupper()
    )
    return max(counts, key=lambda sign: counts[sign], default="")


def accelerator_of(message: str, sign: str) -> str:
    """Return the letter of the accelerator of a message; "" if it has none.

    >>> accelerator_of("Cu_t", "_"), accelerator_of("the log_file", "_"), accelerator_of("AT&T", "&")
    ('t', '', '')
    """
    if not sign or message.count(sign) != 1 or len(message) > MAX_CHARACTERS:
        return ""
    found = _AT_WORD[sign].search(message) or _IN_WORD[sign].search(message)
    return message[found.end()] if found else ""


def without_accelerators(message: str, sign: str) -> str:
    """Return a message without the signs of accelerators.

    >>> without_accelerators("Save _As", "_"), without_accelerators("文件(_F)...", "_")
    ('Save As', '文件...')
    """
    return _ANY[sign].sub("", _IN_BRACKETS[sign].sub("", message))


def with_accelerator(message: str, sign: str, *, like: str = "", letter: str = "") -> str:
    """Return a message with one accelerator: where ``like`` has it, at the letter, or at the first one.

    In writing without Latin letters it stands in brackets.

    >>> with_accelerator("Datei", "_"), with_accelerator("Alles öffnen", "&", letter="f")
    ('_Datei', 'Alles ö&ffnen')
    >>> with_accelerator("文件...", "_", letter="f")
    '文件(_F)...'
    """
    if (first := _ANY[sign].search(like)) and without_accelerators(like, sign) == message:
        return like[: first.end()] + _ANY[sign].sub("", like[first.end() :])
    if _SPACELESS_TEXT.search(message) and letter:
        end = _END.search(message)
        assert end is not None
        return f"{message[: end.start()]}({sign}{letter.upper()}){message[end.start() :]}"
    taken = [match.span() for match in _PLACEHOLDER.finditer(message)]
    places = [
        match.start()
        for match in _LETTER.finditer(message)
        if not any(start <= match.start() < end for start, end in taken)
    ]
    same = [place for place in places if message[place].casefold() == letter.casefold()]
    at_word = [place for place in same if place == 0 or not message[place - 1].isalnum()]
    place = next(iter([*at_word, *same, *places]), None)
    return message if place is None else message[:place] + sign + message[place:]

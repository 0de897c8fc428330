"""The messages of a program, as gettext has compiled them, as pairs of lines."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from transduce.config import base_language, canonical_code
from transduce.corpora.cleaning import CONTROL
from transduce.corpora.source import Pair
from transduce.corpora.splitting import is_translation
from transduce.documents.accelerators import accelerator_of, usual_sign, without_accelerators
from transduce.documents.message_lines import message_parts
from transduce.documents.mo import read_mo
from transduce.patterns import compiled_on_use
from transduce.text import needs_translation
from transduce.text.verbatim import verbatim_strings

__all__ = ["message_pairs"]

MAX_CHARACTERS = 1000  # on a side; longer are licences and the like
CODES = ("tag", "placeholder", "entity")  # kinds of verbatim strings that both sides must have alike

# Context before a message, of those that have no field for it: KDE 4, Freeciv, Wesnoth, and older programs of GNOME.
_QUALIFIER = compiled_on_use(r"_:[^\n]*\n|\?[\w :-]{1,30}:|[\w '-]{1,30}\^|[\w -]{1,30}\|(?=\S)")
_MARK_WITHIN_WORD = compiled_on_use(r"[a-zß-ÿ][&~][a-zß-ÿ]")  # the sign of an accelerator that was not recognised
_CONTINUED = compiled_on_use(r"(?<=\S)\n(?: {8,}|\t+ *)(?=[^\s-])")  # the description of an option goes on
# Messages that translators answer with their names.
_CREDITS = compiled_on_use(r"(?i)translator[-_ ]credits?|(?:your|names?|e-?mails?) (?:names|emails|of translators)")


def message_pairs(catalogue: bytes, language: str) -> Iterator[Pair]:
    """Yield (English text, translation) of each line of the messages of an MO file.

    Accelerator marks and contexts are taken out, a wrapped paragraph is one line, and of a message with plural forms
    there are two pairs, for one and for many. A message whose sides have different numbers of lines is one line.

    Skipped are untranslated lines, those without words, sides of very different length (``is_translation``), sides with
    different placeholders or tags or with a mark that stays, and files in another language.

    Raises DataError for what is no MO file.

    >>> _lines("Usage:\\n  -v  say more\\n", "Aufruf:\\n  -v  mehr sagen\\n")
    [('Usage:', 'Aufruf:'), ('say more', 'mehr sagen')]
    """
    its_language, messages = read_mo(catalogue)
    if base_language(canonical_code(its_language) or language) != language:
        return
    sign = usual_sign(singular for _, singular, _, _ in messages)
    for _, singular, plural, translation in messages:
        message = _without_qualifier(plural or singular, translation)
        if accelerator_of(message, sign) or accelerator_of(translation, sign):
            message, translation = (without_accelerators(each, sign) for each in (message, translation))
        if not _CREDITS.search(message):
            yield from filter(_is_usable, _lines(message, translation))


def _without_qualifier(message: str, translation: str) -> str:
    """Return a message without a context before it that the translation has not."""
    found = _QUALIFIER.match(message)
    return message if found is None or found[0][-1] in translation else message[found.end() :]


def _lines(message: str, translation: str) -> list[Pair]:
    """Return the lines of a message with those of its translation; as one if their numbers differ."""
    if "\n" in message.strip():
        ours, theirs = (
            [part.text for part in message_parts(_CONTINUED.sub(" ", text)) if not isinstance(part, str)]
            for text in (message, translation)
        )
        if len(ours) == len(theirs):
            return [(_on_one_line(one), _on_one_line(other)) for one, other in zip(ours, theirs, strict=True)]
    return [(_on_one_line(message), _on_one_line(translation))]


def _on_one_line(text: str) -> str:
    return " ".join(text.split())


def _is_usable(pair: Pair) -> bool:
    english, other = pair
    return (
        max(map(len, pair)) <= MAX_CHARACTERS
        and is_translation(english, other)
        and not any(CONTROL.search(side) or _MARK_WITHIN_WORD.search(side) for side in pair)
        and _codes(english) == _codes(other)
        and needs_translation(english)
    )


def _codes(text: str) -> Counter[str]:
    return Counter(each.text for each in verbatim_strings(text) if each.kind in CODES)

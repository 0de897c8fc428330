"""Texts without their numbers, placeholders and addresses, so that one translation serves all of them.

"Page 3 of 12" and "Page 7 of 9" have the same pattern. A translation of the first becomes one of the second when the
numbers in it are replaced; where that is not certain, there is none.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from transduce.patterns import compiled_on_use
from transduce.text import normalise
from transduce.text.changes import Change, with_changes
from transduce.text.numbers import number_value, style_of
from transduce.text.verbatim import placeholder_spans

__all__ = ["Abstraction", "abstract", "adapted"]

_NUMBER = compiled_on_use(r"(?<![\w.,])\d{1,15}(?:[.,]\d{1,15})*(?!\w)")
_GROUP = compiled_on_use(r"(?<=\d)(?=(?:\d{3})+$)")
# Languages whose nouns have one form for 2 to 4 and another for 5 to 20; numbers of one kind may replace each other.
_COUNTING = frozenset("be bs cs hr lt lv pl ru sk sl sr uk".split())
_OTHERS_BY_NUMBER = frozenset("ar cy ga mt".split())  # with more forms: no number replaces another
# What stands for a slot: a string that is copied, and numbers by the forms of words that they may demand.
_COPIED, _ONE, _ENDS_IN_ONE, _FEW, _MANY, _FRACTION = "\u2400\u2401\u2402\u2403\u2404\u2405"


@dataclass(frozen=True, slots=True)
class Slot:
    """A number, or a string that is copied."""

    start: int
    end: int
    text: str
    is_number: bool


@dataclass(frozen=True, slots=True)
class Abstraction:
    """A text, normalised, and what stands for it in a memory."""

    text: str
    key: str
    slots: tuple[Slot, ...]


def abstract(text: str, languages: tuple[str, str]) -> Abstraction:
    """Return a text with a sign for each number and each placeholder; ``languages``: its own, and the target's.

    >>> abstract("See  page 12.", ("en", "de")).key == abstract("See page 7.", ("en", "de")).key
    True
    >>> abstract("1 file", ("en", "de")).key == abstract("2 file", ("en", "de")).key
    False
    """
    text = normalise(text)
    slots = tuple(_slots(text))
    signs = [(slot.start, slot.end, _form(slot, languages) if slot.is_number else _COPIED) for slot in slots]
    return Abstraction(text, with_changes(text, signs), slots)


def _slots(text: str) -> Iterator[Slot]:
    """Yield the numbers, without their units, and the placeholders and addresses of a text."""
    position = 0
    for start, end in [*placeholder_spans(text), (len(text), len(text))]:
        for match in _NUMBER.finditer(text, position, start):
            yield Slot(*match.span(), match[0], is_number=True)
        if start < end:
            yield Slot(start, end, text[start:end], is_number=False)
        position = end


def _form(slot: Slot, languages: tuple[str, str]) -> str:
    """Return the sign of a number: what it demands of the words beside it, in either language."""
    value = number_value(slot.text, languages[0])
    codes = {each.lower().replace("_", "-").partition("-")[0] for each in languages}
    if value is None or codes & _OTHERS_BY_NUMBER:
        return slot.text
    if not value.isdigit():
        return _FRACTION
    if value == "1":
        return _ONE
    if codes & _COUNTING and value[-2:-1] != "1" and value[-1] in "1234":
        return _ENDS_IN_ONE if value[-1] == "1" else _FEW
    return _MANY


def adapted(known: Abstraction, target: str, wanted: Abstraction, languages: tuple[str, str]) -> str | None:
    """Return the translation of a text, given that of another of the same pattern; None if a slot is not in it.

    >>> known, wanted = (abstract(f"It has {n} km, {{a}}.", ("en", "de")) for n in ("1,500.5", "2.25"))
    >>> adapted(known, "Es hat 1.500,5 km, {a}.", wanted, ("en", "de"))
    'Es hat 2,25 km, {a}.'
    """
    changes = dict[str, Slot]()
    for old, new in zip(known.slots, wanted.slots, strict=True):
        if changes.setdefault(old.text, new).text != new.text or new.is_number != old.is_number:
            return None  # which of two equal ones is which in the target is unknown
    written, in_target = list[Change](), list(_slots(target))
    for text, new in changes.items():
        if text == new.text:
            continue
        of_source = [each for each in known.slots if each.text == text]
        places = [each for each in in_target if _is_same(of_source[0], each, languages)]
        if len(places) != len(of_source):
            return None
        for place in places:
            number = new.text if place.text == text else _as_written(new, languages)
            if number is None:
                return None
            written.append((place.start, place.end, number))
    return with_changes(target, written)


def _is_same(of_source: Slot, of_target: Slot, languages: tuple[str, str]) -> bool:
    if of_source.text == of_target.text:
        return True
    if not (of_source.is_number and of_target.is_number):
        return False
    value = number_value(of_source.text, languages[0])
    return value is not None and value == number_value(of_target.text, languages[1])


def _as_written(slot: Slot, languages: tuple[str, str]) -> str | None:
    """Return a number as the target language writes it."""
    value, style = number_value(slot.text, languages[0]), style_of(languages[1])
    if value is None or style is None:
        return None
    whole, point, fraction = value.partition(".")
    is_grouped = not slot.text.partition(".")[0].isdigit() and len(whole) > 3
    group = "\u00a0" if style.group == " " else style.group
    return (_GROUP.sub(group, whole) if is_grouped else whole) + (style.decimal + fraction if point else "")

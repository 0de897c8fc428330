"""English inflection: the forms of a verb and the choice of a or an, as pure functions of dictionary forms."""

from __future__ import annotations

import re
from typing import NamedTuple

__all__ = ["EnglishVerb", "starts_with_vowel_sound", "verb_from_dictionary"]

_BE_PRESENT = ("(VBP am)", "(VBP are)", "(VBZ is)", "(VBP are)", "(VBP are)")
_BE_PAST = ("(VBD was)", "(VBD were)", "(VBD was)", "(VBD were)", "(VBD were)")
_DOUBLED = ("admit", "begin", "forget", "regret")  # two syllables, and the last one is stressed


class EnglishVerb(NamedTuple):
    """All forms of a verb as leaves of a tree; ``present`` and ``past`` are indexed by person."""

    lemma: str  # with its particle: "turn on"
    base: str
    present: tuple[str, ...]
    past: tuple[str, ...]
    participle: str
    gerund: str
    particle: str  # "(PRT (RP on))", or ""
    has_one_form: bool  # present and past look the same: "they read"


def starts_with_vowel_sound(word: str) -> bool:
    """Whether the indefinite article before the word is ``an``.

    >>> [starts_with_vowel_sound(word) for word in ("apple", "university", "honest")]
    [True, False, True]
    """
    if word.startswith(("hon", "hour")) and not word.startswith("honey"):
        return True
    return word[0] in "aeiou" and not word.startswith(("uni", "use", "eu"))


def _third_person(base: str) -> str:
    if base == "have":
        return "has"
    if base.endswith(("s", "x", "z", "ch", "sh", "o")):
        return base + "es"
    return re.sub(r"(?<=[^aeiou])y$", "ie", base) + "s"


def _doubled(base: str) -> str:
    """Return the stem before -ed and -ing, with a final consonant doubled after one short stressed vowel."""
    is_short = re.fullmatch(r"[^aeiou]*[aeiou][^aeiouwxy]", base.replace("qu", "q")) is not None
    return base + base[-1] if is_short or base in _DOUBLED else base


def _weak_past(base: str) -> str:
    if base.endswith("e"):
        return base + "d"
    return re.sub(r"(?<=[^aeiou])y$", "i", _doubled(base)) + "ed"


def _gerund(base: str) -> str:
    if base.endswith("e") and not base.endswith("ee"):
        return base[:-1] + "ing"
    return _doubled(base) + "ing"


def verb_from_dictionary(base: str, past: str = "", participle: str = "", *, particle: str = "") -> EnglishVerb:
    """Make all forms from the dictionary forms; those omitted are regular.

    >>> verb = verb_from_dictionary("stop")
    >>> verb.present[2], verb.past[2], verb.gerund
    ('(VBZ stops)', '(VBD stopped)', '(VBG stopping)')
    """
    if base == "be":
        return EnglishVerb("be", "(VB be)", _BE_PRESENT, _BE_PAST, "(VBN been)", "(VBG being)", "", has_one_form=False)
    plain = f"(VBP {base})"
    past = past or _weak_past(base)
    return EnglishVerb(
        lemma=f"{base} {particle}".rstrip(),
        base=f"(VB {base})",
        present=(plain, plain, f"(VBZ {_third_person(base)})", plain, plain),
        past=(f"(VBD {past})",) * 5,
        participle=f"(VBN {participle or past})",
        gerund=f"(VBG {_gerund(base)})",
        particle=f"(PRT (RP {particle}))" if particle else "",
        has_one_form=past == base,
    )

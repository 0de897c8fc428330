"""German inflection: cases, articles, adjective endings, nouns and verbs, as pure functions of dictionary forms.

A *column* of a table of endings is what articles and adjectives agree with: one of three genders, or the plural.
A *person* is one of I, you, he, we, they; "you" is always the familiar singular (du), so ``ihr`` is not needed.
"""

from __future__ import annotations

import re
from enum import IntEnum
from typing import NamedTuple

__all__ = [
    "CONTRACTIONS", "DEFINITE", "MIXED", "RELATIVE_PRONOUNS", "STRONG", "WEAK", "Case", "Column", "Endings",
    "GermanVerb", "Person", "adjective_stem", "dative_plural", "genitive_singular", "noun_forms", "pronominal_forms",
    "verb_from_dictionary",
]  # fmt: skip


class Case(IntEnum):
    """Rows of every table of endings."""

    NOMINATIVE = 0
    ACCUSATIVE = 1
    DATIVE = 2
    GENITIVE = 3


class Column(IntEnum):
    """Columns of every table of endings: the three genders, and the plural."""

    MASCULINE = 0
    FEMININE = 1
    NEUTER = 2
    PLURAL = 3


class Person(IntEnum):
    """Person and number of the subject; HE is the third person singular of any gender."""

    I = 0  # noqa: E741  (the pronoun)
    YOU = 1
    HE = 2
    WE = 3
    THEY = 4


Endings = tuple[tuple[str, ...], ...]  # [case][column]

DEFINITE: Endings = (
    ("der", "die", "das", "die"),
    ("den", "die", "das", "die"),
    ("dem", "der", "dem", "den"),
    ("des", "der", "des", "der"),
)
RELATIVE_PRONOUNS: Endings = (*DEFINITE[:2], ("dem", "der", "dem", "denen"), ("dessen", "deren", "dessen", "deren"))

# Adjective endings after der-words (weak), after ein-words (mixed), and without an article (strong).
WEAK: Endings = (("e", "e", "e", "en"), ("en", "e", "e", "en"), ("en", "en", "en", "en"), ("en", "en", "en", "en"))
MIXED: Endings = (("er", "e", "es", "en"), ("en", "e", "es", "en"), *WEAK[2:])
STRONG: Endings = (("er", "e", "es", "e"), ("en", "e", "es", "e"), ("em", "er", "em", "en"), ("en", "er", "en", "er"))

_DIESER: Endings = (*STRONG[:3], ("es", "er", "es", "er"))
_EIN: Endings = (("", "e", "", "e"), ("en", "e", "", "e"), *_DIESER[2:])

CONTRACTIONS = {
    ("an", "das"): "ans",
    ("an", "dem"): "am",
    ("bei", "dem"): "beim",
    ("in", "das"): "ins",
    ("in", "dem"): "im",
    ("von", "dem"): "vom",
    ("zu", "dem"): "zum",
    ("zu", "der"): "zur",
}


def pronominal_forms(stem: str, *, like_ein: bool) -> Endings:
    """Return all forms of a word inflected like ``ein`` (mein, kein) or like ``dieser`` (jeder, alle, viele).

    >>> pronominal_forms("mein", like_ein=True)[Case.ACCUSATIVE]
    ('meinen', 'meine', 'mein', 'meine')
    """
    return tuple(tuple(stem + ending for ending in row) for row in (_EIN if like_ein else _DIESER))


def adjective_stem(adjective: str) -> str:
    """Return the stem to which adjective endings are added.

    >>> [adjective_stem(word) for word in ("alt", "hoch", "teuer", "dunkel", "müde", "sauber")]
    ['alt', 'hoh', 'teur', 'dunkl', 'müd', 'sauber']
    """
    if adjective == "hoch":
        return "hoh"
    if adjective.endswith("e"):
        return adjective[:-1]
    return re.sub(r"e(l)$|(?<=[aeu]u)e(r)$", r"\1\2", adjective)


def dative_plural(plural: str) -> str:
    """Return the dative plural: the plural plus ``-n``, unless it ends in ``-n`` or ``-s``.

    >>> [dative_plural(word) for word in ("Hunde", "Gärten", "Autos", "Mütter")]
    ['Hunden', 'Gärten', 'Autos', 'Müttern']
    """
    return plural if plural.endswith(("n", "s")) else plural + "n"


def genitive_singular(noun: str, *, plural: str) -> str:
    """Return the genitive of a strong masculine or neuter noun: ``-es`` after one syllable or a sibilant, else ``-s``.

    Nouns that end in a vowel sound or have a plural in ``-s`` take ``-s``, too (des Schuhs, des Parks).

    >>> [genitive_singular("Mann", plural="Männer"), genitive_singular("Lehrer", plural="Lehrer")]
    ['Mannes', 'Lehrers']
    """
    if plural.startswith(noun + "s") and noun.endswith("s"):  # Busse, Geheimnisse
        return noun + "ses"
    if noun.endswith(("s", "ß", "x", "z")):
        return noun + "es"
    is_monosyllable = len(re.findall(r"[aeiouyäöü]+", noun.lower())) == 1
    takes_bare_s = plural.endswith("s") or re.search(r"([aeiou]|[aeiou]h)$", noun) is not None
    return noun + ("es" if is_monosyllable and not takes_bare_s else "s")


def noun_forms(singular: str, plural: str, column: Column, *, is_weak: bool) -> Endings:
    """Return all forms of a noun, ``[number][case]``; number 0 is the singular, 1 the plural.

    >>> noun_forms("Junge", "Jungen", Column.MASCULINE, is_weak=True)[0]
    ('Junge', 'Jungen', 'Jungen', 'Jungen')
    """
    if is_weak:
        singular_forms = (singular, plural, plural, plural)
    elif column is Column.FEMININE:
        singular_forms = (singular,) * 4
    else:
        singular_forms = (singular, singular, singular, genitive_singular(singular, plural=plural))
    return singular_forms, (plural, plural, dative_plural(plural), plural)


class GermanVerb(NamedTuple):
    """Every form of a verb that the grammar uses; ``present`` and ``preterite`` have one form per ``Person``."""

    infinitive: str  # with its separable prefix: aufmachen
    zu_infinitive: str  # aufzumachen
    prefix: str  # "auf", or ""
    present: tuple[str, ...]  # without the prefix
    preterite: tuple[str, ...]  # only of sein, haben, werden; else empty
    participle: str
    imperative: str  # without the prefix
    takes_sein: bool


_PRESENT = {
    "sein": ("bin", "bist", "ist", "sind", "sind"),
    "haben": ("habe", "hast", "hat", "haben", "haben"),
    "werden": ("werde", "wirst", "wird", "werden", "werden"),
    "wissen": ("weiß", "weißt", "weiß", "wissen", "wissen"),
}
_PRETERITE = {
    "sein": ("war", "warst", "war", "waren", "waren"),
    "haben": ("hatte", "hattest", "hatte", "hatten", "hatten"),
    "werden": ("wurde", "wurdest", "wurde", "wurden", "wurden"),
}
_INSEPARABLE = ("be", "ent", "er", "ge", "ver", "zer", "über", "unter", "um")
_NOT_PREFIXED = ("bellen", "beten")  # their first letters only look like a prefix


def _needs_e(stem: str) -> bool:
    """Whether an e is inserted between the stem and -st or -t: arbeit-e-t, öffn-e-t, but lern-t."""
    return stem.endswith(("d", "t")) or re.search(r"(ch|[^aeiouäöülrhmn])[mn]$", stem) is not None


def _stem(infinitive: str) -> str:
    return infinitive[:-1] if infinitive.endswith(("eln", "ern")) else infinitive[:-2]


def _syncopated(infinitive: str) -> str:
    """First person singular and imperative of a verb in -eln (lächeln: ich lächle, lächle!); empty for other verbs."""
    return infinitive[:-3] + "le" if infinitive.endswith("eln") else ""


def _present(infinitive: str, third: str) -> tuple[str, ...]:
    if infinitive in _PRESENT:
        return _PRESENT[infinitive]
    stem = _stem(infinitive)
    if third == "hält":
        second = "hältst"
    elif third.endswith(("st", "ßt", "zt")) and not _needs_e(stem):  # du liest, du sitzt
        second = third
    else:
        second = third[:-1] + "st"
    first = _syncopated(infinitive) or stem + "e"
    return first, second, third, infinitive, infinitive


def _weak_participle(base: str, stem: str, prefix: str) -> str:
    ending = "et" if _needs_e(stem) else "t"
    takes_no_ge = base.endswith("ieren") or (not prefix and base.startswith(_INSEPARABLE) and base not in _NOT_PREFIXED)
    return prefix + ("" if takes_no_ge else "ge") + stem + ending


def _last_vowel(text: str) -> str:
    groups: list[str] = re.findall(r"[aeiouäöü]+", text)
    return groups[-1] if groups else ""


def _imperative(base: str, stem: str, third: str) -> str:
    if _last_vowel(stem) == "e" and _last_vowel(third[:-1]) in ("i", "ie"):
        return third[:-1]  # lies, gib, hilf: the vowel of the third person, and no ending
    takes_e = _needs_e(stem) or base.endswith(("ern", "ieren"))
    return _syncopated(base) or (stem + "e" if takes_e else stem)


def verb_from_dictionary(infinitive: str, third: str = "", participle: str = "", *, takes_sein: bool) -> GermanVerb:
    """Return all forms of a verb from its principal parts; omitted parts are formed as for a weak verb.

    ``|`` in the infinitive ends a separable prefix; ``third`` is the third person singular of the present.

    >>> verb = verb_from_dictionary("auf|machen", takes_sein=False)
    >>> verb.present[Person.HE], verb.participle, verb.zu_infinitive
    ('macht', 'aufgemacht', 'aufzumachen')
    """
    prefix, _, base = infinitive.rpartition("|")
    stem = _stem(base)
    weak_third = stem + ("et" if _needs_e(stem) else "t")
    return GermanVerb(
        infinitive=prefix + base,
        zu_infinitive=f"{prefix}zu{base}" if prefix else f"zu {base}",
        prefix=prefix,
        present=_present(base, third or weak_third),
        preterite=_PRETERITE.get(base, ()),
        participle=participle or _weak_participle(base, stem, prefix),
        imperative=_imperative(base, stem, third),
        takes_sein=takes_sein,
    )

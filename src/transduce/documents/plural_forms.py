"""Plural forms of messages: which of them a number takes, as the header of a PO file says or a language has."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from transduce.config import base_language
from transduce.errors import DataError, quoted
from transduce.patterns import compiled_on_use

__all__ = ["PluralForms", "plural_forms_of", "read_plural_forms"]

N_TRIED = 1001  # numbers for which forms are compared
MAX_FORMS = 10
MAX_CHARACTERS = 2000
# Read up to the second semicolon, as gettext does.
_HEADER = compiled_on_use(r"\s*nplurals\s*=\s*(\d+)\s*;\s*plural\s*=\s*([^;]+?)\s*(?:;.*)?", re.DOTALL)

_EAST_SLAVIC = "(n%10==1 && n%100!=11 ? 0 : n%10>=2 && n%10<=4 && (n%100<10 || n%100>=20) ? 1 : 2)"
# Languages by their rules, as the manual of gettext and the plural rules of CLDR have them.
_RULES = {
    "nplurals=1; plural=0;": "ay bo dz id ja jbo jv ka km ko lo ms my sah su th to tt ug vi wo zh",
    "nplurals=2; plural=(n > 1);": "ach ak am arn br fil fr gun ln mfe mg mi oc tg ti tr uz wa",
    "nplurals=2; plural=(n%10!=1 || n%100==11);": "is mk",
    "nplurals=3; plural=(n==1 ? 0 : n>=2 && n<=4 ? 1 : 2);": "cs sk",
    f"nplurals=3; plural={_EAST_SLAVIC};": "be bs hr ru sr uk",
    "nplurals=3; plural=(n==1 ? 0 : n%10>=2 && n%10<=4 && (n%100<10 || n%100>=20) ? 1 : 2);": "pl",
    "nplurals=3; plural=(n%10==1 && n%100!=11 ? 0 : n%10>=2 && (n%100<10 || n%100>=20) ? 1 : 2);": "lt",
    "nplurals=3; plural=(n%10==1 && n%100!=11 ? 0 : n != 0 ? 1 : 2);": "lv",
    "nplurals=3; plural=(n==1 ? 0 : (n==0 || (n%100>0 && n%100<20)) ? 1 : 2);": "ro",
    "nplurals=4; plural=(n%100==1 ? 0 : n%100==2 ? 1 : n%100==3 || n%100==4 ? 2 : 3);": "sl hsb dsb",
    "nplurals=4; plural=(n==1 || n==11 ? 0 : n==2 || n==12 ? 1 : n>2 && n<20 ? 2 : 3);": "gd",
    "nplurals=4; plural=(n==1 ? 0 : n==0 || (n%100>1 && n%100<11) ? 1 : n%100>10 && n%100<20 ? 2 : 3);": "mt",
    "nplurals=4; plural=(n==1 ? 0 : n==2 ? 1 : n!=8 && n!=11 ? 2 : 3);": "cy",
    "nplurals=5; plural=(n==1 ? 0 : n==2 ? 1 : n<7 ? 2 : n<11 ? 3 : 4);": "ga",
    "nplurals=6; plural=(n==0 ? 0 : n==1 ? 1 : n==2 ? 2 : n%100>=3 && n%100<=10 ? 3 : n%100>=11 ? 4 : 5);": "ar",
    "nplurals=2; plural=(n != 1);": (
        "af an as ast az bg bn brx ca da de doi el en eo es et eu fa ff fi fo fur fy gl gu ha he hi hne hu hy ia it"
        " kk kl kn ku ky lb mai ml mn mni mr nah nap nb ne nl nn no nso or pa pap pms ps pt rm rw"
        " sat sco sd se si so son sq sv sw ta te tk ur yo"
    ),
}


@dataclass(frozen=True, slots=True)
class PluralForms:
    """The plural forms of a language."""

    header: str  # "nplurals=2; plural=(n != 1);"
    n: int
    form_of_one: int  # the number of the form of n = 1
    is_one_alone: bool  # no other number has that form


def plural_forms_of(language: str) -> PluralForms | None:
    """Return the plural forms of a language; None for one that is unknown here.

    >>> plural_forms_of("pt-BR").header, plural_forms_of("ja").n, plural_forms_of("ru").is_one_alone
    ('nplurals=2; plural=(n > 1);', 1, False)
    """
    if language == "pt-BR":
        return read_plural_forms("nplurals=2; plural=(n > 1);")
    base = base_language(language)
    return next((read_plural_forms(header) for header, languages in _RULES.items() if base in languages.split()), None)


@lru_cache(maxsize=256)
def read_plural_forms(header: str) -> PluralForms | None:
    """Return the plural forms that a header has; None if it is empty or that of a template.

    Raises DataError for one that makes no sense.
    """
    if len(header) > MAX_CHARACTERS:
        raise DataError(f"Plural-Forms has {len(header):,} characters; gettext reads 1,000")
    if not header.strip() or "INTEGER" in header:
        return None
    match = _HEADER.fullmatch(header)
    n = int(match[1][:4]) if match else 0
    if match is None or not 1 <= n <= MAX_FORMS:
        raise DataError(f"Plural-Forms should be as in 'nplurals=2; plural=(n != 1);', got {quoted(header)}")
    forms = _forms(match[2], header)
    if not all(0 <= form < n for form in forms):
        raise DataError(f"Plural-Forms gives a number that has no form: {quoted(header)}")
    return PluralForms(header.strip(), n, forms[1], forms.count(forms[1]) == 1)


def _forms(expression: str, header: str) -> list[int]:
    """Return the forms of the first numbers."""
    from gettext import c2py  # the reader of the standard library, which knows such expressions only

    try:
        form_of = c2py(expression)
        return [form_of(number) for number in range(N_TRIED)]
    except (ValueError, RecursionError, ZeroDivisionError):
        raise DataError(f"Plural-Forms has no expression in n: {quoted(header)}") from None

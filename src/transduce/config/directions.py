"""Language codes and directions, as in ``en-de``, ``en-pt-BR`` and ``zh-Hans-en``.

A code is a language of ISO 639 in lower case; a script ("Hans") and a region ("BR", "419") may follow. They begin with
a capital or a digit, so it is certain where the second code of a direction begins.
"""

from __future__ import annotations

import re

__all__ = [
    "DIRECTION_PATTERN", "LANGUAGE_PATTERN", "base_language", "canonical_code", "canonical_direction",
    "split_direction",
]  # fmt: skip

LANGUAGE_PATTERN = "[a-z]{2,3}(?:-[A-Z][a-z]{3})?(?:-(?:[A-Z]{2}|[0-9]{3}))?"
DIRECTION_PATTERN = f"({LANGUAGE_PATTERN})-({LANGUAGE_PATTERN})"


def split_direction(direction: str) -> tuple[str, str]:
    """Return the source and the target language of a direction. Raises ValueError.

    >>> split_direction("en-de"), split_direction("zh-Hans-pt-BR")
    (('en', 'de'), ('zh-Hans', 'pt-BR'))
    """
    found = re.fullmatch(DIRECTION_PATTERN, direction)
    if found is None:
        raise ValueError(f"a direction is two languages, as in en-de or en-pt-BR, got {direction!r}")
    return found[1], found[2]


def canonical_code(name: str) -> str | None:
    """Return a language code with the usual capitals, None for what is none.

    >>> canonical_code("EN"), canonical_code("pt_br"), canonical_code("ZH-HANS"), canonical_code("english")
    ('en', 'pt-BR', 'zh-Hans', None)
    """
    language, *others = name.replace("_", "-").split("-")
    code = "-".join((language.lower(), *(each.title() if len(each) == 4 else each.upper() for each in others)))
    return code if re.fullmatch(LANGUAGE_PATTERN, code) else None


def canonical_direction(name: str) -> str | None:
    """Return a direction with the usual capitals; None for what is none, or can be read in two ways.

    >>> canonical_direction("EN-DE"), canonical_direction("en-pt_BR"), canonical_direction("en-pt-br")
    ('en-de', 'en-pt-BR', None)
    """
    if re.fullmatch(DIRECTION_PATTERN, name):
        return name
    parts = name.split("-")
    cuts = [("-".join(parts[:cut]), "-".join(parts[cut:])) for cut in range(1, len(parts))]
    pairs = [(src, tgt) for one, other in cuts if (src := canonical_code(one)) and (tgt := canonical_code(other))]
    return "-".join(pairs[0]) if len(pairs) == 1 else None


def base_language(code: str) -> str:
    """Return a code without script and region.

    >>> base_language("pt-BR"), base_language("en")
    ('pt', 'en')
    """
    return code.partition("-")[0]

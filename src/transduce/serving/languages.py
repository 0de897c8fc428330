"""Language codes as clients write them, and the codes of the models that they mean."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from transduce.config import canonical_code
from transduce.corpora.languages import short_code

__all__ = ["LanguageTag", "served_codes"]

# Codes of LibreTranslate's models, of older standards, and of a written form that goes by the language's own code.
_ALIASES = {"zt": "zh-Hant", "pb": "pt-BR", "iw": "he", "in": "id", "ji": "yi", "jw": "jv", "nb": "no"}
_SCRIPTS_OF_CHINESE = {"CN": "Hans", "SG": "Hans", "TW": "Hant", "HK": "Hant", "MO": "Hant"}


@dataclass(frozen=True, slots=True)
class LanguageTag:
    """A language, with its script and region if they are given.

    >>> LanguageTag.of("zh_tw"), LanguageTag.of("DEU"), LanguageTag.of("klingon")
    (LanguageTag(language='zh', script='Hant', region='TW'), LanguageTag(language='de', script='', region=''), None)
    """

    language: str
    script: str = ""
    region: str = ""

    @classmethod
    def of(cls, name: str) -> LanguageTag | None:
        """Return the tag of a code in any capitals, with "-" or "_"; None for what is no code."""
        code = canonical_code(name.strip())
        if code is None:
            return None
        code = _ALIASES.get(code, code)
        others = code.split("-")[1:]
        script, region = (
            "".join(each for each in others if (len(each) == 4) == is_script) for is_script in (True, False)
        )
        language = short_code(code)
        return cls(language, script or (_SCRIPTS_OF_CHINESE.get(region, "") if language == "zh" else ""), region)

    def fits(self, other: LanguageTag) -> bool:
        """Whether the two may mean the same: what both give is equal."""
        return self.language == other.language and all(
            not one or not another or one == another
            for one, another in ((self.script, other.script), (self.region, other.region))
        )


def served_codes(name: str, served: Iterable[str]) -> list[str]:
    """Return the codes among ``served`` that a client's code may mean, the nearest first.

    >>> served_codes("EN-US", ["de", "en"]), served_codes("zh_TW", ["zh-Hans", "zh-Hant"])
    (['en'], ['zh-Hant'])
    >>> served_codes("zh-Hant", ["zh-Hans"]), served_codes("zh", ["zh-Hant", "zh-Hans"])
    ([], ['zh-Hans', 'zh-Hant'])
    """
    wanted = LanguageTag.of(name)
    if wanted is None:
        return []
    tags = {code: tag for code in served if (tag := LanguageTag.of(code)) is not None and tag.fits(wanted)}

    def distance(code: str) -> int:
        return (tags[code].script != wanted.script) + (tags[code].region != wanted.region)

    return sorted(tags, key=lambda code: (code != name, distance(code), code))

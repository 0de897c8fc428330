"""Numbers as languages write them: 1,000.5 in English is 1.000,5 in German and 1 000,5 in French."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from dataclasses import dataclass
from functools import cache

from transduce.patterns import compiled_on_use

__all__ = [
    "articles", "has_word_of_number", "number_value", "number_words", "plain_digits", "style_of", "translated_number",
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class NumberStyle:
    """How a language writes numbers."""

    decimal: str
    group: str  # " " stands for any space
    sign_is_first: bool  # "$3.50", not "3.50 $"


_POINT = NumberStyle(".", ",", sign_is_first=True)
_COMMA = NumberStyle(",", ".", sign_is_first=False)
_COMMA_SIGN_FIRST = NumberStyle(",", ".", sign_is_first=True)
_SPACE = NumberStyle(",", " ", sign_is_first=False)
_LANGUAGES = {
    _POINT: "ar bn cy en fil ga gu he hi ja kn ko ml mr ms mt my ne pa si sw ta te th tl ur zh",
    _COMMA: "bs ca da de el es eu gl hr id is it ro sl sr vi",
    _COMMA_SIGN_FIRST: "nl pt tr az",
    _SPACE: "be bg cs et fi fr hu hy ka kk ky lt lv mk nb nn no pl ru sk sq sv uk uz",
}
_STYLE_OF = {language: style for style, languages in _LANGUAGES.items() for language in languages.split()}
_SPACES = " \u00a0\u2009\u202f"
_SIGN = compiled_on_use("[A-Z]{0,3}[$€£¥]")  # US$
_NUMBER = compiled_on_use(rf"\d(?:[\d.,'’{_SPACES}]*\d)?")

# Zero to twelve as words, without those that are articles; forms of one number are separated by a slash.
_WORDS = {
    "de": "null eins zwei drei vier fünf sechs sieben acht neun zehn elf zwölf",
    "en": "zero one two three four five six seven eight nine ten eleven twelve",
    "es": "cero - dos tres cuatro cinco seis siete ocho nueve diez once doce",
    "fr": "zéro - deux trois quatre cinq six sept huit neuf dix onze douze",
    "it": "zero - due tre quattro cinque sei sette otto nove dieci undici dodici",
    "nl": "nul één twee drie vier vijf zes zeven acht negen tien elf twaalf",
    "pl": "zero jeden/jedna/jedno dwa/dwie/dwóch trzy/trzech cztery/czterech pięć sześć siedem osiem dziewięć dziesięć"
    " jedenaście dwanaście",
    "pt": "zero - dois/duas três quatro cinco seis sete oito nove dez onze doze",
    "ru": "ноль один/одна/одно/одного/одной два/две/двух три/трёх/трех четыре/четырёх пять/пяти шесть семь восемь"
    " девять десять одиннадцать двенадцать",
    "sv": "noll - två tre fyra fem sex sju åtta nio tio elva tolv",
}
# How ordinals begin, from the first.
_ORDINALS = {
    "de": "erst zweit dritt viert fünft sechst siebt acht neunt zehnt elft zwölft",
    "en": "first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth",
    "es": "primer segund tercer cuart quint sext séptim octav noven décim",
    "fr": "premi deuxi troisi quatri cinqui sixi septi huiti neuvi dixi onzi douzi",
    "it": "prim second terz quart quint sest settim ottav non decim",
    "nl": "eerst tweed derd vierd vijfd zesd zevend achtst negend tiend elfd twaalfd",
    "pl": "pierwsz drug trzec czwart piąt szóst siódm ósm dziewiąt dziesiąt",
    "pt": "primeir segund terceir quart quint sext sétim oitav non décim",
    "ru": "перв втор трет четв пят шест седьм восьм девят десят",
    "sv": "först andr tredj fjärd femt sjätt sjund ått nion tion elft tolft",
}
_ARTICLES = {
    "de": "ein|eine|einen|einem|einer|eines",
    "es": "un|una",
    "fr": "une?",
    "it": "un|una|uno|un(?=')",
    "nl": "een",
    "pt": "uma?",
    "sv": "en|ett",
}
_CHINESE_DIGITS = dict(zip("〇一二三四五六七八九十", map(str, range(11)), strict=True)) | {"两": "2", "兩": "2"}


def style_of(language: str) -> NumberStyle | None:
    """Return how a language writes numbers, None if unknown. A region or script is ignored: ``pt-BR``."""
    return _STYLE_OF.get(_base(language))


def number_value(text: str, language: str) -> str | None:
    """Return a number in plain form, as "1000.5"; None if ``text`` is no number with a sensible reading.

    A separator that the language does not use so is read as the decimal one. Leading zeros are left
    out; digits of every script count.

    >>> [number_value("1.500", language) for language in ("de", "en")], number_value("24.12.2025", "de")
    (['1500', '1.500'], None)
    """
    text = re.sub(f"[{_SPACES}]", " ", plain_digits(text))
    style = style_of(language) or _POINT
    for each in (style, _POINT, _COMMA, _SPACE):
        group = "[ '’]" if each.group == " " else f"[{re.escape(each.group)} '’]"
        grouped = rf"\d{{1,3}}(?:{group}\d{{3}})+|\d{{1,2}}(?:,\d\d)+,\d{{3}}"  # the second is Indian: 1,00,000
        match = re.fullmatch(rf"({grouped}|\d+)(?:{re.escape(each.decimal)}(\d+))?", text)
        if match and not _is_address(text):
            whole = re.sub(r"\D", "", match[1]).lstrip("0") or "0"
            return f"{whole}.{match[2]}" if match[2] else whole
    return None


def translated_number(text: str, src_language: str, tgt_language: str, *, has_unit: bool = False) -> str:
    """Return a number, or a range of numbers, with its unit or currency sign as the target language writes it.

    Without unit or sign, only numbers with grouped digits change: "7.4" may be a version; ``has_unit`` says that a unit
    stands elsewhere. ``text`` is returned if a language is unknown or a number in it is not written as the source
    language writes numbers.

    >>> [translated_number(each, "en", "de") for each in ("12.5 kg", "1,500-2,000 km", "US$3.50", "1,000", "7.4")]
    ['12,5 kg', '1.500-2.000 km', '3,50 US$', '1.000', '7.4']
    """
    source, target = style_of(src_language), style_of(tgt_language)
    numbers = _NUMBER.findall(text)
    if source is None or target is None:
        return text
    group = f"[{_SPACES}]" if source.group == " " else re.escape(source.group)
    number = re.compile(rf"(\d{{1,3}}(?:{group}\d{{3}})+|\d+)(?:{re.escape(source.decimal)}(\d+))?")
    parts = [number.fullmatch(each) for each in numbers]
    has_unit = has_unit or _NUMBER.sub("", text).strip("+-–±") != ""
    if not (has_unit or any(each and not each[1].isdigit() for each in parts)):
        return text
    if None in parts or any(map(_is_address, numbers)):
        return text
    tgt_group = "\u00a0" if target.group == " " else target.group

    def written(match: re.Match[str]) -> str:
        whole, _, decimals = match[0].partition(source.decimal)
        return re.sub(group, tgt_group, whole) + (target.decimal + decimals if decimals else "")

    return _with_sign(_NUMBER.sub(written, text), is_first=target.sign_is_first)


def _with_sign(text: str, *, is_first: bool) -> str:
    """Return an amount with its currency sign before it or behind it; as it is if it has no sign, or several."""
    signs = set(_SIGN.findall(text))
    if len(signs) != 1 or (not is_first and not text[-1].isdigit()):
        return text
    [sign] = signs
    amount = re.sub(r"\s?" + re.escape(sign) + r"$|" + re.escape(sign) + r"\s?", "", text)
    return re.sub(r"^[-+±]?", rf"\g<0>{sign}", amount) if is_first else f"{amount} {sign}"


def number_words(text: str, language: str) -> Counter[str]:
    """Count the numbers up to twelve that ``text`` writes as words, in plain form; none if the language is unknown.

    >>> number_words("Zwei von zwölf", "de")
    Counter({'2': 1, '12': 1})
    """
    base = _base(language)
    if base in ("zh", "ja"):
        return Counter(_CHINESE_DIGITS[character] for character in text if character in _CHINESE_DIGITS)
    values = _value_of_word(base)
    return Counter(values[word] for word in _words(text) if word in values) if values else Counter()


def has_word_of_number(text: str, value: str, language: str) -> bool:
    """Whether a word of ``text`` begins as a number up to twelve or its ordinal; true if the language is unknown.

    >>> [has_word_of_number(each, "2", "de") for each in ("zweidimensional", "der zweite", "der erste")]
    [True, True, False]
    """
    base = _base(language)
    beginnings = tuple(word for word, each in _value_of_word(base).items() if each == value)
    beginnings += tuple(_ORDINALS.get(base, "").split()[int(value) - 1 : int(value)])
    return not beginnings or any(word.startswith(beginnings) for word in _words(text))


def articles(text: str, language: str) -> list[tuple[int, int]]:
    """Return the (start, end) of each indefinite article that may stand for the number one.

    >>> articles("eine Datei und ein Ordner", "de")
    [(0, 4), (15, 18)]
    """
    forms = _ARTICLES.get(_base(language))
    return [match.span() for match in re.finditer(rf"\b(?:{forms})\b", text, re.IGNORECASE)] if forms else []


@cache
def _value_of_word(language: str) -> dict[str, str]:
    forms = _WORDS.get(language, "").split()
    return {word: str(value) for value, each in enumerate(forms) for word in each.split("/") if word != "-"}


def _words(text: str) -> list[str]:
    return re.findall(r"[^\W\d_]+", text.lower())


def _base(language: str) -> str:
    """Return the code of a language without region or script."""
    return re.split("[-_]", language.lower(), maxsplit=1)[0]


def plain_digits(text: str) -> str:
    """Return ``text`` with the digits and separators of other scripts as those of ASCII."""
    if text.isascii():
        return text
    text = text.replace("٫", ".").replace("٬", ",")
    return "".join(str(unicodedata.digit(each)) if each.isdecimal() else each for each in text)


def _is_address(text: str) -> bool:
    """Whether ``text`` is an IP address, whose parts look like groups of digits: 192.168.178.100."""
    parts = text.split(".")
    return len(parts) == 4 and all(part.isdigit() and int(part) < 256 and str(int(part)) == part for part in parts)

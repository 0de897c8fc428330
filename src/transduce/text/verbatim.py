"""Verbatim strings: what a translation copies, such as URLs, placeholders, codes, dates and numbers with units."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from transduce.patterns import compiled_on_use

__all__ = [
    "NUMBER_KINDS", "UNSPACED", "VERBATIM", "Verbatim", "address_spans", "find_verbatim", "has_verbatim",
    "placeholder_spans", "verbatim_spans", "verbatim_strings",
]  # fmt: skip

NUMBER_KINDS = ("quantity", "number")  # of verbatim strings that languages write in different ways

_FILE_ENDINGS = (
    "7z|avi|bak|bat|bin|bmp|bz2|c|cc|cfg|class|conf|cpp|cs|css|csv|dat|db|deb|dll|doc|docx|dot|eps|exe|fodt|gif|gz|h|"
    "hpp|html?|ico|img|ini|ipynb|iso|jar|java|jpe?g|js|json|jsonl|key|lock|log|lua|m4a|md|mkv|mov|mp[34]|mpe?g|odb|odf|"
    "odg|odp|ods|odt|ogg|ogv|otf|ott|pas|pdf|pem|php|pl|png|po|pptx?|ps|psd|py|rar|rb|rdf|rpm|rs|rst|rtf|sh|so|sql|"
    "svg|tar|tex|tgz|tiff?|toml|tsv|ttf|txt|vbs|wav|webm|webp|whl|woff2?|xls|xlsx|xml|xz|ya?ml|zip|zst"
)
_UNITS = (
    "km/h|m/s|mph|[kcmµμn]?m[²³]?|[kmµμ]?g|[cmd]?l|[mµμn]?s|min|h|[kMGT]?Hz|[mk]?V|mA|[kMG]?Wh?|kJ|[kMh]?Pa|mbar|bar|°|°[CF]|"
    "[kKMGTP]i?B|[kKMGT][Bb]it(?:/s)?|[Bb]it/s|[kMG]bps|dpi|ppi|px|pt|em|rpm|dB|ha|[%‰€£¥]|USD|EUR|GBP"
)
# Bounded, else quadratic time on long runs of digits. A space is inside only before a group of three digits.
_NUMBER = r"\d(?:(?:[\d.,'’\u00a0\u202f]|\ (?=\d{3}(?!\d))){0,30}\d)?"
_IN_BRACKETS = r"\([^\s<>\"'«»“”„()\ufdd0]*\)"
_URL = rf"(?:{_IN_BRACKETS}|(?!{_IN_BRACKETS})[^\s<>\"'«»“”„)\ufdd0])*"
_URL_END = rf"(?:{_IN_BRACKETS}|[^\s<>\"'«»“”„.,;:!?()\[\]{{}}\ufdd0]|(?<=[/=])\ufdd0+)"
# Between the numbers of a range or a size. A dash with spaces joins decimal numbers only: "Version 1.5 - 16 GB".
_JOINT = r"(?:\ ?[x×±]\ ?|[-‐‑–—~/]|(?:(?<=[.,]\d)|(?<=[.,]\d\d))\ [-–—]\ (?=\d+[.,]\d)|\ [-–—]\ (?=[A-Z]{0,3}[$€£¥]))"
_NO_DECADE = r"(?!\d*0s\b)"
_SIGN = r"[A-Z]{0,3}[$€£¥]"  # US$
# "$3 million" is left to the model: other languages have the sign after the word.
_NO_SCALE = r"(?![\s-]?(?i:mill?i|bill?i|trill?i|mio\b|mrd|mld|mia\b|bn\b|tn\b|thousand|hundred|м[иі]л|млн|млрд|тыс))"
_CLOCK = r"\d{1,3}:[0-5]\d(?::[0-5]\d)?(?:[.,]\d{1,3})?"
_ISO_DATE = r"\d{4}-[01]?\d-[0-3]?\d"
_BEFORE_NUMBER = r"(?<![\w.,:/$€£¥-])(?<!\d['’])"
_AFTER_NUMBER = r"(?!\w)(?![.,:/-]\d)"
_GROUPED = (
    r"(?:\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d{1,3}(?:\.\d{3})+(?:,\d+)?"
    r"|\d{1,3}(?:[\u00a0\u202f]\d{3})+(?:[.,]\d+)?|\d{1,3}(?:['’]\d{3})+(?:\.\d+)?)"
)
_GROUP_OF_DIGITS = r"(?:[ \u00a0./-]?\(?\d+(?!\d)\)?)"  # of a telephone number: a whole run of digits
_BRACED = r"\{[^{}]{0,500}\}"

# Kinds of verbatim strings, in the order in which they are tried at a position. ``\ufdd0`` stands for letters of
# scripts without spaces (``_matchable``). Not matched: "d.h." and "D.C." as files, "the 1990s" as seconds, "£5m" as
# metres, and words with digits that other languages write otherwise: "2nd", "3D", "16-bit", "4-year-old".
_KINDS = {
    "comment": r"<!--(?:(?!<!--).){0,500}?-->",  # no "<!--" inside: else quadratic time on many of them
    "tag": r"</?[A-Za-z][\w:.-]*(?:\s[^<>]*)?/?>|</?\d{1,4}\s?/?>|<[%?][^<>]*[%?]>|<<\w+>>"
    r"|<(?:URL:\s?)?(?i:https?|ftps?|mailto):[^\s<>]+>|<[\w.+-]+@[\w.-]+>|<[\w./+-]+\.\w+>",  # <sys/socket.h>
    "entity": r"&(?:[A-Za-z]{2,8}|#\d{1,7}|#x[0-9a-fA-F]{1,6});",
    "url": rf"(?:%[0-9A-Fa-f]{{2}}){{2,}}|(?i:https?|ftps?|file|git|ssh)://{_URL}{_URL_END}|(?:mailto|tel):[^\s<>\"'\ufdd0]*\w"
    rf"|\bwww\.{_URL}{_URL_END}"
    rf"|(?<![\w.@/\\-])(?:[A-Za-z0-9][A-Za-z0-9-]*\.)+[a-z]{{2,6}}/(?:{_URL}{_URL_END})?"
    r"|(?<![\w.@/\\-])(?:[A-Za-z0-9][A-Za-z0-9-]+\.)+(?:com|org|net|edu|gov|info|io|eu|de|fr|uk|ch|nl|pl|ru|cn|jp)\b"
    r"(?![.@/]\w|\()",
    "email": r"(?<![\w.+-])[\w.+-]+@\w[\w-]*(?:\.\w[\w-]*)+",
    "placeholder": r"\$(?:\{\w+\}|[A-Za-z_]\w*)(?:/[\w.+-]*\w)+"
    r"|\$\{[^{}\n]{0,200}\}|\$\(\w+\)|\{\{\{?[^{}]*\}\}\}?|\{[%#][^{}]*[%#]\}|%\{[\w.-]+\}"
    # An argument of ICU or Java, with the texts for its cases.
    r"|\{\s?\w+\s?,\s?(?:plural|select|selectordinal|number|date|time|spellout|ordinal|duration|choice|list)\b"
    rf"(?:[^{{}}]|\{{(?:[^{{}}]|{_BRACED}){{0,500}}\}}){{0,500}}\}}"
    r"|\$t\([^()]{1,200}\)"  # another message of i18next
    r"|\{\s?\$[\w-]+\s?\}|\{ ?[\w\ufdd0]*(?:[.:!\[-][^{}\s]*)? ?\}"
    r"|%\(\w+\)[-+#0 ]?\d*(?:\.\d+)?[a-zA-Z]|(?<![\w%])%[a-zA-Z](?:[-/.:]%[a-zA-Z])+|(?<![\w%])%\w+%(?!\w)|%#@\w+@"
    r"|%(?:\d+\$)?[-+#0]?(?:\d*|\*)(?:\.(?:\d+|\*))?(?:hh?|ll?|[zjtLq])?[sdifuxXcgGeEopaAn@](?![A-Za-z])"
    r"|(?<![\w%])%L?\d\d?\b|%%"
    rf"|\$\d\b(?![.,]?\d|{_JOINT}\$?\d[\d.,]*\d){_NO_SCALE}"
    r"|%[A-Z_]{2,}%?|(?<![\w$])\$[A-Za-z_]\w*(?:\.[a-z_]\w*|\$\w+)*(?:\$|\|(?:(?:\.\w+)+\|?)?)?|(?<!\$)\$\$+\w+\$\$+|(?<![\w@])@@?[A-Za-z_]\w*@{0,2}(?!\w)"
    r"|(?<![\w:/.)]):[a-z_]\w+:?(?![\w/])|\[\[[^\[\]]{1,200}\]\]|\[[A-Z]{1,3}\d+[A-Z]{0,3}\]|\[%[^\[\]]{1,100}%\]"
    r"|(?<!\w)__\w+?__(?!\w)|⟦[^⟦⟧]{0,100}⟧",
    "path": r"(?<![\w./\\])(?:~/|\.{1,2}/|[A-Za-z]:\\)[\w.+~/\\-]{0,500}\w|(?<![\w./<])/[\w.+-]+/[\w.+/-]{0,500}\w"
    rf"|(?<![\w.@/\\+-])(?!(?:\w\.)+\w\b)[\w+-]+(?:[./\\][\w+-]+)*\.(?i:{_FILE_ENDINGS})\b(?![/.]\w)",
    "time": rf"\[{_CLOCK}\s?-->\s?{_CLOCK}\]|{_CLOCK}\s-->\s{_CLOCK}"
    rf"|(?<![\w.,:/-]){_ISO_DATE}(?:[T ]{_CLOCK}(?:Z|[+-]\d\d:?\d\d)?)?(?!\w|[:-]\d)"
    rf"|(?<![\w.,:/]){_CLOCK}(?!\d|[:/]\d)",
    "code": r"(?<![\w.])[A-Z]{2}\d\d ?[A-Z0-9]{4}(?: ?\d{4}){1,6}(?: ?\d[A-Z0-9]{0,3})?(?!\w)"  # IBAN
    r"|(?<![\w-])[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}(?!\w)"  # UUID
    r"|(?<![\w:])(?:[0-9a-fA-F]{1,4}::?){3,7}[0-9a-fA-F]{1,4}(?![\w:])"  # MAC, IPv6
    r"|(?<![\w#&])#(?:[0-9a-fA-F]{6}|[0-9a-fA-F]{8}|(?=[a-fA-F]*\d)[0-9a-fA-F]{3,4}|[fF]{3}|\d+)(?!\w)"  # colour, issue
    r"|(?<![\w.,])v?\d+(?:\.\d+)+[-~+.]?(?i:rc|alpha|beta|dev|pre|post|ubuntu|deb|p|a|b)"  # version
    r"\d*(?:[.-]\d+)*(?!\w)"
    r"|(?<![\w.,])(?:\d:)?\d+\.\d+(?:(?:\.\d+)*(?!x\d)[a-z]{1,3}\d+(?:-\w+(?:[.+~]\w+)*)?|(?:\.\d+)+[a-z]?-\d+(?:[.+~-]\w+)*)(?!\w)"
    r"|\b(?:rgb|hsl)a?\([\d\s.,%/]{1,40}\)"
    r"|(?<![\w.])[A-Z]+(?:-[A-Z]*\d[A-Z0-9]*)+(?:-[A-Z]{1,4})*(?:\.\d+)*(?!\w)"  # AB-1234-X, ISO-8859-1, MPI-3.1
    r"|(?<![\w.])[A-Z]{2,}\.\d+-\d{2,}(?!\w)"  # POSIX.1-2001
    r"|(?<![\w.])[A-Za-z][A-Za-z_]*\d\w*(?:[-.]\d\w*)*(?:[.~+-][a-z]+(?:\.\d+)+)?(?!\w)"  # x86_64, MP3, BE0768880101
    r"|(?<![\w.])\d+[A-Z]+\d[A-Z0-9]*(?!\w)"
    r"|(?<![\w.,])v\d+(?:\.\d+)*(?!\w)|\b0x[0-9a-fA-F]+\b|(?<!\w)\d*[¼-¾⅐-⅞](?!\w)",  # v2, fractions
    "digits": rf"(?<![\w+])\+\d(?:{_GROUP_OF_DIGITS}{{2,8}}|[ \u00a0./-]?\(?\d{{2,}}(?!\d)\)?)(?!\w)"
    r"|(?<!\w)\(0?\d{2,5}\)[ \u00a0]?\d{3,}(?:[ /-]\d{2,})*(?!\w)"
    rf"|{_BEFORE_NUMBER}0\d{{1,4}}[ /-]\d{{2,}}(?:[ /-]\d{{2,}})*{_AFTER_NUMBER}"  # telephone
    rf"|{_BEFORE_NUMBER}\d+(?:[/-]\d+){{2,}}[Xx]?{_AFTER_NUMBER}",  # date, ISBN, telephone
    "quantity": rf"(?<![\w.,$€£¥])[-+±]?{_NO_DECADE}{_NUMBER}(?:{_JOINT}[-+]?{_NO_DECADE}{_NUMBER}){{0,2}}"
    rf"[ \u00a0\u202f]?(?:{_UNITS}|(?<=[ \u00a0\u202f])[A-Z]{{0,3}}\$(?!\{{|\())(?![\w²³])"
    rf"|(?<!\w){_SIGN}\s?{_NUMBER}(?:{_JOINT}(?:{_SIGN}\s?)?{_NUMBER})?(?!\w|[.,]?\d|{_JOINT}[$€£¥]?\d){_NO_SCALE}",
    "number": r"(?<![\w.,])\d+(?:\.\d+){2,}(?!\w)"
    rf"|{_BEFORE_NUMBER}(?:\d{{1,3}}[-–])?{_GROUPED}(?:[-–]{_GROUPED})?{_AFTER_NUMBER}"
    rf"|{_BEFORE_NUMBER}\d{{1,4}}/\d{{1,4}}{_AFTER_NUMBER}"  # fractions
    r"|(?<![\w.,:/$€£¥])(?<!\d-)\d{4,}(?:[-–]\d{4,})?(?![\w]|[.,:/]\d|-\d)",
    "emoji": "(?:[\U0001f1e6-\U0001f1ff]{2}|[0-9#*]\ufe0f?\u20e3|[\u2122\u2139]\ufe0f|"
    "(?:[\U0001f300-\U0001faff\u2600-\u27bf\u2b00-\u2bff\u231a\u231b\u23e9-\u23fa]"
    "[\ufe0f\u200d\U0001f3fb-\U0001f3ff\U000e0020-\U000e007f]*)+)+",
    "private_use": "[\ue000-\uf8ff]+",  # no model is trained on these; includes the masks
}
_ADDRESS_KINDS = ("tag", "entity", "url", "email", "placeholder", "path", "time", "code", "digits", "emoji")
# Each kind as a group, in a text whose UNSPACED runs are U+FDD0.
VERBATIM = compiled_on_use("|".join(f"(?P<{kind}>{pattern})" for kind, pattern in _KINDS.items()))
_ADDRESS = compiled_on_use("|".join(f"(?:{_KINDS[kind]})" for kind in _ADDRESS_KINDS))
_FILLED_KINDS = ("tag", "entity", "email", "placeholder")
_FILLED = compiled_on_use(
    "|".join([r"\b[a-z]+://[^\s<>\"'\ufdd0]*[\w/\ufdd0]", *(f"(?:{_KINDS[kind]})" for kind in _FILLED_KINDS)])
)
# A fast filter: every verbatim string contains a hint. Texts without one need none of the long patterns.
_HINT = compiled_on_use(r"[<&/@%${\\\d\[_:]|\.\w|#[fF]{3}|[¼-¾⅐-⅞]|[^\x00-\u2121]")
# Letters of scripts without spaces between words, and of Hangul, whose particles follow a word directly.
UNSPACED = compiled_on_use(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff\uff00-\uffef\U00020000-\U0003ffff]+"
)


@dataclass(frozen=True, slots=True)
class Verbatim:
    """A verbatim string at its place in a text."""

    kind: str  # a key of ``_KINDS``, or another where texts are compared (``kept_strings.py``)
    start: int
    end: int
    text: str


def verbatim_strings(text: str) -> Iterator[Verbatim]:
    """Yield the verbatim strings of a text, in order; they do not overlap.

    >>> [(each.kind, each.text) for each in verbatim_strings("On 2024-11-26, $Name read AB-1234 (see x.org/a).")]
    [('time', '2024-11-26'), ('placeholder', '$Name'), ('code', 'AB-1234'), ('url', 'x.org/a')]
    """
    if _HINT.search(text):
        for match in VERBATIM.finditer(_matchable(text)):
            assert match.lastgroup is not None
            yield Verbatim(match.lastgroup, match.start(), match.end(), text[match.start() : match.end()])


def find_verbatim(text: str) -> list[str]:
    """Return the substrings of ``text`` that a translation copies verbatim, in order.

    >>> find_verbatim("Mail a.b@c.org or see https://x.org/y?z=1, <b>%s</b> has 12.5 kg 👍 in {name}.txt.")
    ['a.b@c.org', 'https://x.org/y?z=1', '<b>', '%s', '</b>', '12.5 kg', '👍', '{name}']
    """
    return [each.text for each in verbatim_strings(text)]


def verbatim_spans(text: str) -> list[tuple[int, int]]:
    """Return the (start, end) of each substring of ``find_verbatim``."""
    return [(each.start, each.end) for each in verbatim_strings(text)]


def address_spans(text: str) -> list[tuple[int, int]]:
    """Return the (start, end) of each tag, URL, address, file name, placeholder, code, date and emoji.

    No model may change these; how numbers are written may differ between languages.

    >>> address_spans("see https://x.org, {name}")
    [(4, 17), (19, 25)]
    """
    return [match.span() for match in _ADDRESS.finditer(_matchable(text))] if _HINT.search(text) else []


def placeholder_spans(text: str) -> list[tuple[int, int]]:
    """Return the (start, end) of each placeholder, tag, URL and address, a fifth of the time of ``address_spans``.

    >>> placeholder_spans("see https://x.org, {name}")
    [(4, 17), (19, 25)]
    """
    return [match.span() for match in _FILLED.finditer(_matchable(text))] if _HINT.search(text) else []


def has_verbatim(text: str) -> bool:
    """Whether ``text`` has a verbatim string."""
    return next(verbatim_strings(text), None) is not None


def _matchable(text: str) -> str:
    """Return ``text`` with letters of scripts without spaces as a character that ends words, numbers and URLs."""
    return UNSPACED.sub(lambda run: "\ufdd0" * len(run[0]), text) if not text.isascii() else text

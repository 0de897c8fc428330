"""Manual pages as ``man`` reads them: the texts of a page, by section. Code and tables are left out."""

from __future__ import annotations

import re
from collections.abc import Iterator

from transduce.patterns import compiled_on_use

__all__ = ["UNKNOWN", "Block", "roff_sections"]

Block = tuple[str, str]  # the element that it begins in, and its text
UNKNOWN = "\ufffd"  # in place of what is not explained

_SECTIONS = ("SH", "SS")
_PARAGRAPHS = frozenset("PP P LP IP TP TQ HP RS RE sp br".split())
_FONTS = frozenset("B I SM SB R BR RB BI IB IR RI".split())
_LEFT_OUT = {"nf": "fi", "EX": "EE", "TS": "TE"}  # code and tables, and what ends them
_MACRO = compiled_on_use(r"[.'][ \t]*(?P<name>\w+)(?P<arguments>.*)")
_ARGUMENT = compiled_on_use(r'"((?:[^"]|"")*)"?|((?:\\.|[^\s"])(?:\\.|\S)*)')
_ESCAPE = compiled_on_use(
    r"\\(?:f(?:\[\w*\]|\(..|.)|s(?:[-+]?\d+|\[[^]]*\])|\((?P<two>..)|\[(?P<long>[^]]*)\]|(?P<one>.)|$)"
)
_CHARACTERS = {
    "-": "-", "e": "\\", "\\": "\\", " ": " ", "~": " ", "0": " ", ".": ".", "'": "'", "`": "`", "t": " ",
    "&": "", "|": "", "^": "", "%": "", "/": "", ",": "", ":": "", ")": "", "": "", "c": "",
    "aq": "'", "cq": "’", "oq": "‘", "dq": '"', "lq": "“", "rq": "”", "Bq": "„", "bq": "‚", "Fo": "«", "Fc": "»",
    "em": "—", "en": "–", "bu": "•", "co": "©", "rg": "®", "tm": "™", "ha": "^", "ti": "~", "rs": "\\", "ga": "`",
    "ss": "ß", ":a": "ä", ":o": "ö", ":u": "ü", ":A": "Ä", ":O": "Ö", ":U": "Ü", "'e": "é", "`e": "è", "`a": "à",
    "^e": "ê", "^o": "ô", ",c": "ç", "at": "@", "sh": "#", "la": "⟨", "ra": "⟩", "+-": "±", "mu": "×", "->": "→",
    "<=": "≤", ">=": "≥", "!=": "≠", "hy": "-", "mi": "−", "sq": "□", "dg": "†", "de": "°", "nb": " ", "or": "|",
}  # fmt: skip


def roff_sections(page: str) -> list[list[Block]]:
    """Return the texts of a manual page, by section; a heading is the first of its section.

    >>> roff_sections('.SH NAME\\ndog \\\\- sleep\\n.TP\\n.BI \\\\-n " NUMBER"\\nsleep\\n.I often\\n.nf\\ncode\\n.fi')
    [[], [('SH', 'NAME'), ('SH', 'dog - sleep'), ('TP term', '-n NUMBER'), ('TP', 'sleep often')]]
    """
    sections: list[list[Block]] = [[]]
    for element, text in _blocks(page):
        if element.endswith("title"):
            sections.append([])
        if any(map(str.isalpha, text)):
            sections[-1].append((element.removesuffix(" title"), text))
    return sections


def _blocks(page: str) -> Iterator[Block]:
    """Yield the texts of a page in order. The first line after ``.TP`` is a text of its own: the term."""
    element, pieces, ends_with = "", list[str](), ""  # the last: the macro that ends what is left out

    def block(after: str) -> Block:
        nonlocal element
        taken, pieces[:] = " ".join(" ".join(pieces).split()), []
        before, element = element, after
        return before, taken

    for line in page.splitlines():
        macro = _MACRO.match(line)
        name = macro["name"] if macro else ""
        if ends_with:
            ends_with = "" if name == ends_with else ends_with
        elif name in _LEFT_OUT:
            ends_with = _LEFT_OUT[name]
        elif macro is None or name in _FONTS:
            if line[:1] in (".", "'") and macro is None:  # a comment, or nothing
                continue
            pieces.append(_plain(line) if macro is None else _in_fonts(name, macro["arguments"]))
            if element.endswith((" term", " title")):
                yield block(element.rpartition(" ")[0])
        elif name in _SECTIONS:
            yield block(f"{name} title")
            if arguments := _arguments(macro["arguments"]):
                pieces.append(" ".join(arguments))
                yield block(name)
        elif name in _PARAGRAPHS:
            yield block(f"{name} term" if name in ("TP", "TQ") else name)
        elif name in ("UE", "ME") and pieces:  # with what follows a link
            pieces[-1] += "".join(_arguments(macro["arguments"]))
    yield block("")


def _arguments(text: str) -> list[str]:
    found = ((match[1], match[2]) for match in _ARGUMENT.finditer(text))
    return [_plain(bare if quoted is None else quoted.replace('""', '"')) for quoted, bare in found]


def _in_fonts(name: str, arguments: str) -> str:
    """Return the words of a macro for fonts: those with two of them join what they alternate between."""
    return ("" if len(name) == 2 and name not in ("SM", "SB") else " ").join(_arguments(arguments))


def _plain(text: str) -> str:
    r"""Return a text without escapes; an unknown one is ``UNKNOWN``.

    >>> _plain(r"the \fBdog\fP\(em\-\-all \[u2026]\*(x")
    'the dog—--all …\ufffd(x'
    """

    def character(match: re.Match[str]) -> str:
        name = match["two"] or match["long"] or match["one"] or ""
        if match["long"] and (code := re.fullmatch(r"u([0-9A-F]{4,6})", name)) is not None:
            return chr(int(code[1], 16)) if int(code[1], 16) <= 0x10FFFF else UNKNOWN
        is_font = match[0][1:2] in ("f", "s") and not match["one"]
        return "" if is_font else _CHARACTERS.get(name, UNKNOWN)

    return _ESCAPE.sub(character, text)

r"""Android's string resources: XML with escapes such as ``\'`` of its own. Names are the contexts of their texts."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from transduce.documents.document import Reading
from transduce.documents.spliced import Part, Region, with_words
from transduce.patterns import compiled_on_use
from transduce.text.markup import divide, html_rules, xml_rules
from transduce.text.markup_reading import CDATA, Token, attributes, escaped, matching_ends, read_tokens

__all__ = ["android_parts", "is_android"]

_RULES = xml_rules(ignored=("xliff:g",), non_splitting=("xliff:g",))
_ESCAPE = compiled_on_use(r"\\(?:u([0-9A-Fa-f]{4})|(.))", re.DOTALL)
_ESCAPES = {"n": "\n", "t": "\t"}
_WRITTEN = str.maketrans({"\n": "\\n", "\t": "\\t", "'": "\\'", '"': '\\"', "\\": "\\\\"})
_BREAK = compiled_on_use(r"(?<!\\)\\n")
_QUOTED = compiled_on_use(r'(\s*+")([^"]*+)("\s*+)')
_END_SPACE = compiled_on_use(r"\A +|(?<! ) +\Z")
_REFERENCE = compiled_on_use(r"\s*[@?](?:\+?[\w.:]+/)?[\w.:]+\s*")  # to another resource


def is_android(markup: str) -> bool:
    """Whether XML is a file of resources with strings."""
    for token in read_tokens(markup, _RULES):
        if token.kind == "start":
            return token.name == "resources"
    return False


def android_parts(markup: str, reading: Reading) -> list[Part]:
    """Divide resources into their strings and what stands between them."""
    tokens = list(read_tokens(markup, _RULES))
    ends, parts, index, position = matching_ends(tokens), list[Part](), 0, 0
    parent, n_items = "", 0
    while index < len(tokens):
        token, end = tokens[index], ends.get(index)
        values = attributes(token) if token.kind == "start" else {}
        if end is not None and values.get("translatable") == "false":
            index = end + 1
        elif end is not None and token.name in ("plurals", "string-array"):
            parent, n_items = values.get("name", ""), 0
            index += 1
        elif end is not None and token.name in ("string", "item"):
            key = values.get("quantity", str(n_items))
            context = values.get("name") or f"{parent}/{key}"
            n_items += 1
            parts.append("".join(each.raw for each in tokens[position : index + 1]))
            parts += _string(tokens[index + 1 : end], context, reading)
            position, index = end, end + 1
        else:
            index += 1
    return [*parts, "".join(each.raw for each in tokens[position:])]


def _string(tokens: list[Token], context: str, reading: Reading) -> Iterator[Part]:
    """Yield the parts of a string: its lines, which ``\\n`` divides, without quotation marks around it."""
    raw = "".join(token.raw for token in tokens)
    if _REFERENCE.fullmatch(raw):
        yield raw
        return
    quoted = _QUOTED.fullmatch(raw)
    opening, content, closing = quoted.groups() if quoted else ("", raw, "")
    lines = _BREAK.split(content)
    is_whole = any(token.kind == "cdata" for token in tokens) or not all(map(_is_balanced, lines))
    yield opening
    for number, line in enumerate([content] if is_whole else lines):
        before, words, after = _parted(line) if quoted is None else ("", line, "")
        yield "\\n" * (number > 0) + before
        yield _line(words, context, reading, is_first=number == 0, is_quoted=quoted is not None)
        yield after
    yield closing


def _is_balanced(markup: str) -> bool:
    tokens = list(read_tokens(markup, _RULES))
    return 2 * len(matching_ends(tokens)) == sum(token.kind in ("start", "end") for token in tokens)


def _parted(line: str) -> tuple[str, str, str]:
    """Return a line with the space at its ends, which is not read, apart; a space behind a backslash is."""
    started = line.lstrip()
    ended = started.rstrip()
    n_backslashes = len(ended) - len(ended.rstrip("\\"))
    end = len(ended) + n_backslashes % 2
    return line[: len(line) - len(started)], started[:end], started[end:]


def _line(raw: str, context: str, reading: Reading, *, is_first: bool, is_quoted: bool) -> Part:
    plain = "".join(_of_text(token, _decoded, in_section=_characters) for token in read_tokens(raw, _RULES))
    parts = [with_words(part) for part in divide(plain, _RULES, is_protected=reading.is_protected)]

    def written(text: str) -> str:
        text = "".join(_of_text(token, _encoded, in_section=_encoded) for token in read_tokens(text, _RULES))
        if not is_quoted:
            text = _END_SPACE.sub(lambda each: each[0].replace(" ", "\\u0020"), text)
        return "\\" * (is_first and text.startswith(("@", "?"))) + text

    return Region(raw, parts, written, context)


def _of_text(token: Token, change: Callable[[str], str], in_section: Callable[[str], str]) -> str:
    """Return a token with its text changed, or that in a section, which has no entities of XML."""
    if token.kind == "cdata":
        opening, closing = CDATA
        tokens = read_tokens(token.content, html_rules())
        return opening + "".join(_of_text(each, in_section, in_section) for each in tokens) + closing
    return change(token.raw) if token.kind == "text" else token.raw


def _decoded(text: str) -> str:
    r"""Return markup without escapes.

    >>> _decoded(r"it\'s one\u003cbr>two &amp; three")
    "it's one&lt;br>two &amp; three"
    """
    return _ESCAPE.sub(lambda each: escaped(chr(int(each[1], 16))) if each[1] else _characters(each[0]), text)


def _characters(text: str) -> str:
    return _ESCAPE.sub(lambda each: chr(int(each[1], 16)) if each[1] else _ESCAPES.get(each[2], each[2]), text)


def _encoded(text: str) -> str:
    return text.translate(_WRITTEN)

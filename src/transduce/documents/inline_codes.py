"""The inline elements of XLIFF and TMX: codes of another format, and marks."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from transduce.documents.elements import attributes_of, local_name
from transduce.documents.message_lines import is_wrapped, joined_message, protected_tokens
from transduce.documents.spliced import with_words
from transduce.patterns import compiled_on_use
from transduce.text import needs_translation
from transduce.text.markup import Unit, divide, unit_of
from transduce.text.markup_reading import Token, decoder, escaped, matching_ends, read_tokens, xml_rules

__all__ = ["inline_parts", "wrapped_like"]

_CODES = frozenset(("bpt", "ept", "ph", "it", "ut", "x", "bx", "ex", "sc", "ec", "cp"))  # what is in them is no text
_OPENING = {"bpt": "rid", "bx": "rid", "sc": "id", "sm": "id"}  # each with the attribute that its partner has, too
_CLOSING = {"ept": "rid", "ex": "rid", "ec": "startRef", "em": "startRef"}

_CR, _LF = r"&#(?:0*13|x0*[dD]);", r"&#(?:0*10|x0*[aA]);"
_LINE_END_REFERENCE = compiled_on_use(rf"((?:{_CR})?{_LF}|{_CR})")
_LINE_END = compiled_on_use(rf"((?:\r|{_CR})?(?:\n|{_LF})|\r|{_CR})")


def inline_parts(content: str, *, is_protected: bool, keeps_lines: bool = False) -> list[str | Unit]:
    """Return the content of a source as units, mostly one; text without words stays as it is.

    Line ends divide it if they are references or ``keeps_lines``, but for those inside a sentence or an element.

    >>> [unit] = inline_parts('One <bpt id="1">{b</bpt>two<ept id="1">}</ept>', is_protected=False)
    >>> unit.text, [(node.opening, node.closing) for node in unit.nodes]
    ('One two', [('<bpt id="1">{b</bpt>', '<ept id="1">}</ept>')])
    """
    rules = xml_rules(finds_outline=False)
    tokens = list(read_tokens(content, rules))
    if any(token.kind == "cdata" for token in tokens):
        return [with_words(part) for part in divide(content, rules, is_protected=is_protected)]
    decode = decoder(rules)
    lines = _lines(tokens, decode, _LINE_END if keeps_lines else _LINE_END_REFERENCE)
    return [_unit_or_text(line, decode, is_protected=is_protected) for line in lines]


def wrapped_like(unit: Unit, target: str, *, keeps_lines: bool) -> str:
    """Return a translation with line ends where its unit, a sentence without tags, has them."""
    ends = _LINE_END.findall(unit.raw)
    if not ends or unit.nodes or not (keeps_lines or all(end.startswith("&") for end in ends)):
        return target
    return joined_message([replace(unit, raw=_LINE_END.sub("\n", unit.raw))], [target]).replace("\n", ends[0])


def _unit_or_text(tokens: Sequence[Token], decode: Callable[[str], str], *, is_protected: bool) -> str | Unit:
    joined = list(_joined(tokens, is_protected=is_protected))
    raw = _raw(tokens)
    if not needs_translation(_text(joined, decode)):
        return raw
    return replace(unit_of(joined, decode, is_escaped=True), raw=raw)


def _lines(tokens: Sequence[Token], decode: Callable[[str], str], line_end: re.Pattern[str]) -> list[list[Token]]:
    """Divide tokens into lines, and between them the line ends."""
    lines, depth = list[list[Token]]([[]]), 0
    for token in tokens:
        depth += (token.kind == "start") - (token.kind == "end")
        pieces = line_end.split(token.raw) if token.kind == "text" and depth == 0 else [token.raw]
        lines[-1] += [replace(token, raw=piece) for piece in pieces[:1] if piece]
        for end, piece in zip(pieces[1::2], pieces[2::2], strict=True):
            lines += [[Token("text", end)], [Token("text", piece)] if piece else []]
    joined = [lines[0].copy()]
    for previous, end, line in zip(lines[::2], lines[1::2], lines[2::2], strict=False):
        if is_wrapped(_text(previous, decode), _text(line, decode)):
            joined[-1] += [*end, *line]
        else:
            joined += [end, line.copy()]
    return [line for line in joined if line]


def _raw(tokens: Sequence[Token]) -> str:
    return "".join(token.raw for token in tokens)


def _text(tokens: Sequence[Token], decode: Callable[[str], str]) -> str:
    return decode("".join(token.raw for token in tokens if token.kind == "text"))


def _joined(tokens: Sequence[Token], *, is_protected: bool) -> Iterator[Token]:
    """Yield the tokens; codes as single ones, or as the two ends of a pair."""
    ends = matching_ends(tokens)
    index = 0
    while index < len(tokens):
        token, end = tokens[index], ends.get(index, index)
        kind = local_name(token.name)
        if token.kind == "text":
            yield from _protected(token) if is_protected else [token]
        elif kind in _CODES or kind in _OPENING or kind in _CLOSING or _is_kept(token):
            yield _code(_raw(tokens[index : end + 1]), token, kind)
            index = end
        else:
            yield token
        index += 1


def _is_kept(token: Token) -> bool:
    """Whether a mark says that its content is not translated."""
    attributes = attributes_of(token.raw) if token.kind == "start" and local_name(token.name) == "mrk" else {}
    return attributes.get("mtype") == "protected" or attributes.get("translate") == "no"


def _code(raw: str, token: Token, kind: str) -> Token:
    attribute = _OPENING.get(kind) or _CLOSING.get(kind)
    attributes = attributes_of(token.raw)
    partner = attributes.get(attribute or "") or attributes.get("i") or attributes.get("id", "")
    if attribute is None or not partner or attributes.get("isolated") == "yes":
        return Token("single", raw, "code")
    return Token("start" if kind in _OPENING else "end", raw, f"code {partner}")


def _protected(token: Token) -> Iterator[Token]:
    """Yield a text, which may be the markup of another format, with its placeholders, tags and addresses apart."""
    for each in protected_tokens(decoder(xml_rules())(token.raw)):
        yield Token(each.kind, escaped(each.raw), f"text {each.name}" if each.kind in ("start", "end") else each.name)

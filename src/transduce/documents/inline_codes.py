"""The inline elements of XLIFF and TMX: codes of another format, and marks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from transduce.documents.elements import attributes_of, local_name
from transduce.documents.message_lines import protected_tokens
from transduce.documents.spliced import with_words
from transduce.text import needs_translation
from transduce.text.markup import Unit, divide, unit_of
from transduce.text.markup_reading import Token, decoder, escaped, matching_ends, read_tokens, xml_rules

__all__ = ["inline_parts"]

_CODES = frozenset(("bpt", "ept", "ph", "it", "ut", "x", "bx", "ex", "sc", "ec", "cp"))  # what is in them is no text
_OPENING = {"bpt": "rid", "bx": "rid", "sc": "id", "sm": "id"}  # each with the attribute that its partner has, too
_CLOSING = {"ept": "rid", "ex": "rid", "ec": "startRef", "em": "startRef"}


def inline_parts(content: str, *, is_protected: bool) -> list[str | Unit]:
    """Return the content of a source as units, mostly one; text without words stays as it is.

    >>> [unit] = inline_parts('One <bpt id="1">{b</bpt>two<ept id="1">}</ept>', is_protected=False)
    >>> unit.text, [(node.opening, node.closing) for node in unit.nodes]
    ('One two', [('<bpt id="1">{b</bpt>', '<ept id="1">}</ept>')])
    """
    rules = xml_rules(finds_outline=False)
    tokens = list(read_tokens(content, rules))
    if any(token.kind == "cdata" for token in tokens):
        return [with_words(part) for part in divide(content, rules, is_protected=is_protected)]
    joined = list(_joined(tokens, is_protected=is_protected))
    decode = decoder(rules)
    if not needs_translation(decode("".join(token.raw for token in joined if token.kind == "text"))):
        return [content]
    return [replace(unit_of(joined, decode, is_escaped=True), raw=content)]


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
            yield _code("".join(each.raw for each in tokens[index : end + 1]), token, kind)
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

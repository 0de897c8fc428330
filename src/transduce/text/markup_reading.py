"""Reading of HTML and XML: tags, text between them, entities. Malformed markup is text, or a tag without a partner.

Time is linear in the length of any text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Literal

from transduce.patterns import compiled_on_use
from transduce.text.punctuation import COMMAS, SENTENCE_ENDS, STRONG_PAUSES

__all__ = [
    "CDATA", "MarkupRules", "Token", "attributes", "attributes_of", "decoder", "escaped", "html_rules",
    "is_preformatted", "is_untranslated", "kept_whole", "matching_ends", "outline", "read_tokens", "untranslated_whole",
    "xml_rules",
]  # fmt: skip

_NAME = compiled_on_use(r"</?([A-Za-z][\w:.-]*+|\d++(?=\s*+/?>))")  # <0> and <1/> are tags of i18next
# What stands before a "<", ">" or "=", and a value; without its second quotation mark, "=" has none.
_ATTRIBUTE_PART = compiled_on_use(r"""[^<>=]*+(?:=\s*+(?:"[^"]*+"|'[^']*+'|[^\s"'<>][^\s<>]*+)?)?""")
_ATTRIBUTE = compiled_on_use(r"""([^\s"'<>/=]++)(?:\s*+=\s*+(?:"([^"]*+)"|'([^']*+)'|([^\s>]++)))?""")
CDATA = ("<![CDATA[", "]]>")
_DELIMITED = (("<!--", "-->"), CDATA, ("<?", "?>"), ("<!", ">"))
_BLOCKS = frozenset(
    "address article aside blockquote body br button caption center dd details dialog dir div dl dt fieldset figcaption"
    " figure footer form frameset h1 h2 h3 h4 h5 h6 head header hgroup hr html iframe legend li listing main menu meta"
    " nav noscript ol optgroup option p pre search section select summary table tbody td template textarea tfoot th"
    " thead title tr ul".split()
)
_PREFORMATTED = frozenset(("listing", "pre", "textarea"))  # a line end is one
_VOID = frozenset("area base br col embed hr img input link meta param source track wbr".split())
_RAW = ("script", "style")  # their content is no markup
_READINGS = ("rp", "rt", "rtc")  # beside the words of <ruby>: how they are read
_HTML_IGNORED = frozenset((*_RAW, *_READINGS, "code", "kbd", "math", "samp", "svg", "var"))
_NOTES = frozenset(("sub", "sup"))  # a number in them belongs to the word before: it is no word of the sentence
_ENTITY = compiled_on_use(r"&(?:#0*+(\d++)|#[xX]0*+([0-9a-fA-F]++)|[A-Za-z][A-Za-z0-9]{0,31});?")
_XML_NAMES = ("&amp;", "&lt;", "&gt;", "&quot;", "&apos;")
_PUNCTUATION = frozenset(SENTENCE_ENDS + STRONG_PAUSES + COMMAS) - {"·"}  # the dot also stands between links
MAX_DIGITS = 7  # of the number of a character


@dataclass(frozen=True, slots=True)
class MarkupRules:
    """How a markup language is read."""

    kind: Literal["html", "xml"]
    ignored: frozenset[str] = frozenset()  # elements whose content is not translated
    splitting: frozenset[str] = frozenset()  # elements that end a unit
    non_splitting: frozenset[str] = frozenset()  # XML: elements that never do
    finds_outline: bool = False  # XML: elements beside which there is no text end a unit

    def splits(self, name: str) -> bool:
        """Whether an element ends a unit by its name."""
        return name in self.splitting and name not in self.non_splitting


def html_rules(*, ignored: Collection[str] = (), splitting: Collection[str] = ()) -> MarkupRules:
    """Return the rules of HTML; code, scripts and elements with ``translate="no"`` are not translated."""
    return MarkupRules("html", _HTML_IGNORED | _lowered(ignored), _BLOCKS | _lowered(splitting))


def xml_rules(
    *,
    ignored: Collection[str] = (),
    splitting: Collection[str] = (),
    non_splitting: Collection[str] = (),
    finds_outline: bool = True,
) -> MarkupRules:
    """Return the rules of XML, whose names are case-sensitive."""
    return MarkupRules("xml", frozenset(ignored), frozenset(splitting), frozenset(non_splitting), finds_outline)


def _lowered(names: Collection[str]) -> frozenset[str]:
    return frozenset(name.lower() for name in names)


@dataclass(frozen=True, slots=True)
class Token:
    """A piece of markup. ``cdata`` is a section of XML; ``single`` a tag, or an element that stays as it is."""

    kind: Literal["text", "start", "end", "single", "cdata"]
    raw: str
    name: str = ""

    @property
    def content(self) -> str:
        """The text of a section; other tags have none."""
        return self.raw[len(CDATA[0]) : -len(CDATA[1])] if self.kind == "cdata" else ""


def read_tokens(markup: str, rules: MarkupRules) -> Iterator[Token]:
    """Yield text and tags; what is no tag is text.

    >>> [token.raw for token in read_tokens("1 < 2 <b title='>'>x</b>", html_rules())]
    ['1 < 2 ', "<b title='>'>", 'x', '</b>']
    """
    position = text_start = 0
    missing = set[str]()  # delimiters that do not occur any more
    dead_ends = set[int]()
    while (position := markup.find("<", position)) >= 0:
        token = _delimited(markup, position, rules, missing)
        if token is None and (match := _NAME.match(markup, position)):
            end = _tag_end(markup, match.end(), dead_ends)
            token = None if end is None else _tag(markup, position, end, match[1], rules, missing)
        if token is None:
            position += 1
            continue
        if text_start < position:
            yield Token("text", markup[text_start:position])
        yield token
        position = text_start = position + len(token.raw)
    if text_start < len(markup):
        yield Token("text", markup[text_start:])


def _tag_end(markup: str, position: int, dead_ends: set[int]) -> int | None:
    """Return the end of a tag whose attributes begin at a position; None if it has none.

    A value in quotation marks, as long as it may be, has any characters. ``dead_ends`` are positions from which no end
    was found: without them, many beginnings before a text without an end would take quadratic time.
    """
    tried = list[int]()
    while position not in dead_ends:
        tried.append(position)
        part = _ATTRIBUTE_PART.match(markup, position)
        assert part is not None  # it matches the empty string
        position = part.end()
        if markup.startswith(">", position):
            return position + 1
        if position == len(markup) or markup[position] == "<":
            break
    dead_ends.update(tried)
    return None


def _delimited(markup: str, position: int, rules: MarkupRules, missing: set[str]) -> Token | None:
    """Return the comment, declaration, section or instruction at a position."""
    for opening, closing in _DELIMITED:
        if markup.startswith(opening, position):
            key = opening + closing
            end = -1 if key in missing else markup.find(closing, position + len(opening))
            if end < 0:
                missing.add(key)
                return None
            is_section = opening == CDATA[0] and rules.kind == "xml"
            return Token("cdata" if is_section else "single", markup[position : end + len(closing)])
    return None


def _tag(markup: str, start: int, end: int, name: str, rules: MarkupRules, missing: set[str]) -> Token:
    raw, is_html = markup[start:end], rules.kind == "html"
    if is_html:
        name = name.lower()
    if raw.startswith("</"):
        return Token("end", raw, name)
    token = Token("single", raw, name)
    if (is_html and name in _VOID) or (raw.endswith("/>") and not (is_html and _ends_with_value(token))):
        return token
    if is_html and name in _RAW and name not in missing:
        closing = re.compile(f"</{name}\\s*+>", re.I).search(markup, end)
        if closing is not None:
            return Token("single", markup[start : closing.end()], name)
        missing.add(name)
    return Token("start", raw, name)


def _ends_with_value(token: Token) -> bool:
    """Whether the slash that ends a tag is part of a value without quotation marks: ``<a href=https://x.org/>``."""
    *_, last = [None, *attributes_of(token)]
    return last is not None and (last[4] or "").endswith("/")


def is_preformatted(token: Token, rules: MarkupRules) -> bool:
    """Whether the line ends inside an element that begins with this tag are line ends."""
    if token.kind != "start":
        return False
    return token.name in _PREFORMATTED if rules.kind == "html" else attributes(token).get("xml:space") == "preserve"


def is_untranslated(token: Token) -> bool:
    """Whether the attributes of a tag of HTML say so."""
    if "translate" not in token.raw.lower():
        return False
    values = attributes(token)
    return values.get("translate", "").lower() == "no" or "notranslate" in values.get("class", "").lower().split()


def attributes(token: Token) -> dict[str, str]:
    """Return the attributes of a tag: lower-cased name to value; the first of two equal names counts."""
    found = reversed(list(attributes_of(token)))
    return {each[1].lower(): each[2] or each[3] or each[4] or "" for each in found}


def attributes_of(token: Token) -> Iterator[re.Match[str]]:
    """Yield the attributes of a tag: a name, and a value in double, single or no quotation marks as groups 1 to 4."""
    return _ATTRIBUTE.finditer(token.raw, 1 + len(token.name), len(token.raw) - 1)


def kept_whole(tokens: Sequence[Token], rules: MarkupRules) -> list[Token]:
    """Return the tokens; each element that stays as it is becomes a single one.

    Such are elements that are not translated, and those around signs only, which models often drop: ↑, *, ®, an emoji.
    """
    translated = untranslated_whole(tokens, rules)
    return list(_merged(translated, _Signs(translated, rules).are_all_in))


def untranslated_whole(tokens: Sequence[Token], rules: MarkupRules) -> list[Token]:
    """Return the tokens; each element that is not translated becomes a single one."""

    def is_ignored(index: int, _end: int) -> bool:
        token = tokens[index]
        return token.name in rules.ignored or (rules.kind == "html" and is_untranslated(token))

    return list(_merged(tokens, is_ignored))


def _merged(tokens: Sequence[Token], is_kept: Callable[[int, int], bool]) -> Iterator[Token]:
    """Yield the tokens; the elements of which ``is_kept``, given the indices of their tags, as single ones."""
    ends = matching_ends(tokens)
    index = 0
    while index < len(tokens):
        token, end = tokens[index], ends.get(index)
        if end is not None and is_kept(index, end):
            yield Token("single", "".join(each.raw for each in tokens[index : end + 1]), token.name)
            index = end + 1
        else:
            yield token
            index += 1


class _Signs:
    """Which elements have signs and no words."""

    def __init__(self, tokens: Sequence[Token], rules: MarkupRules) -> None:
        self._tokens, decode = tokens, decoder(rules)
        texts = [decode(token.raw) if token.kind == "text" else token.content for token in tokens]
        has_letters = [any(map(str.isalpha, text)) for text in texts]
        wordless = ["" if has_letter else text for text, has_letter in zip(texts, has_letters, strict=True)]
        # Sums over the tokens before each one.
        self._letters = _sums(has_letters)
        self._digits = _sums(any(map(str.isalnum, text)) for text in wordless)
        self._signs = _sums(any(map(_is_sign, text)) for text in wordless)
        self._splits = _sums(token.kind != "text" and rules.splits(token.name) for token in tokens)

    def are_all_in(self, start: int, end: int) -> bool:
        """Whether there are signs, or numbers of notes, and nothing else between the tags of an element."""
        letters, digits, signs, splits = (
            sums[end] - sums[start + 1] for sums in (self._letters, self._digits, self._signs, self._splits)
        )
        if letters or splits:
            return False
        return digits + signs > 0 if self._tokens[start].name.lower() in _NOTES else signs > 0 and not digits


def _is_sign(character: str) -> bool:
    """Whether a character is neither of a word, nor space, nor one that ends a sentence or clause."""
    return not (character.isalnum() or character.isspace() or character in _PUNCTUATION)


def _sums(values: Iterable[bool]) -> list[int]:
    return list(accumulate(values, initial=0))


def matching_ends(tokens: Sequence[Token]) -> dict[int, int]:
    """Return the index of the end tag of each start tag that has one, if they are nested properly.

    An end tag ends the innermost open element of its name and leaves those inside it without an end.
    """
    ends, open_at, stack = dict[int, int](), dict[str, int](), list[int]()
    for index, token in enumerate(tokens):
        if token.kind == "start":
            stack.append(index)
            open_at[token.name] = open_at.get(token.name, 0) + 1
        elif token.kind == "end" and open_at.get(token.name):
            while True:
                start = stack.pop()
                open_at[tokens[start].name] -= 1
                if tokens[start].name == token.name:
                    break
            ends[start] = index
    return ends


def outline(tokens: Sequence[Token], rules: MarkupRules) -> set[int]:
    """Return the indices of the tags of elements that structure an XML text: there is no text beside them."""
    ends = matching_ends(tokens)
    starts = {end: start for start, end in ends.items()}
    tags_in: dict[int, list[int]] = {-1: []}  # by parent
    with_text = set[int]()
    stack = [-1]
    for index, token in enumerate(tokens):
        if token.kind in ("text", "cdata"):
            if token.raw.strip():
                with_text.add(stack[-1])
        elif token.kind == "end" and index in starts:
            stack.pop()
            tags_in[stack[-1]].append(index)
        else:
            tags_in[stack[-1]].append(index)
            if index in ends:
                stack.append(index)
                tags_in[index] = []
    return {
        index
        for parent, indices in tags_in.items()
        if parent not in with_text
        for index in indices
        if tokens[index].name not in rules.non_splitting
    }


def decoder(rules: MarkupRules) -> Callable[[str], str]:
    """Return what replaces the entities of a text by their characters; those that are no character stay.

    >>> decoder(html_rules())("&eacute;&#233; &copy &#0; &#99999999999;")
    'éé © &#0; &#99999999999;'
    """
    from html import unescape

    is_html = rules.kind == "html"

    def character(match: re.Match[str]) -> str:
        entity, digits = match[0], match[1] or match[2]
        if digits is not None and len(digits) > MAX_DIGITS:
            return entity
        if not is_html and (entity[-1] != ";" or (digits is None and entity not in _XML_NAMES)):
            return entity
        decoded = unescape(entity if digits is None else f"&#{'x' * (match[1] is None)}{digits};")
        return entity if decoded in ("", "\ufffd") else decoded

    return lambda text: _ENTITY.sub(character, text) if "&" in text else text


def escaped(text: str) -> str:
    """Return text as markup has it."""
    from html import escape

    return escape(text, quote=False)

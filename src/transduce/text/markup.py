"""Text with tags: tags are taken out before translation and put back after it, each exactly once.

``divide`` cuts HTML or XML (``markup_reading.py``) at its block elements into units: paragraphs, items, cells, lines of
preformatted text. A unit has plain text, which is translated, and inline elements with their places in it.
``Unit.put_back`` places them in the translation (``tag_placing.py``), given how much each of its words belongs to each
word of the source.

Shapes: X target words, Y source words.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING

from transduce.errors import ConfigError, quoted
from transduce.imports import numpy as np
from transduce.patterns import compiled_on_use
from transduce.text.changes import joined_strings
from transduce.text.characters import SPACELESS
from transduce.text.markup_reading import (
    CDATA,
    MarkupRules,
    Token,
    decoder,
    escaped,
    html_rules,
    is_preformatted,
    kept_whole,
    matching_ends,
    outline,
    read_tokens,
    xml_rules,
)
from transduce.text.normalise import composed, visible
from transduce.text.punctuation import FOLLOWING
from transduce.text.tag_placing import Node, Placing, Span
from transduce.text.verbatim import address_spans
from transduce.text.word_spans import word_spans

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = [
    "MarkupRules", "Span", "Unit", "divide", "divide_string", "html_rules", "plain_unit", "rules_of", "text_tokens",
    "unit_of", "xml_rules",
]  # fmt: skip

BYTE_ORDER_MARK = "\ufeff"  # at the start of some documents
MAX_DEPTH = 100  # of nested inline elements; deeper ones are placed as single tags
_LINE_END = compiled_on_use("(\r\n|\r|\n)")
_WORDS = compiled_on_use(rf"(?![{SPACELESS}]{{2}})[^\W_][^\W_]")
_NAMED_ENTITY = compiled_on_use(r"&[A-Za-z_][\w.-]*+;")


@dataclass(frozen=True, slots=True, eq=False)
class Unit:
    """A text to translate, with the tags inside it."""

    text: str  # without tags and entities, and without space at the ends
    nodes: tuple[Node, ...]
    before: str  # the space at its ends, as in the source
    after: str
    raw: str  # the whole unit as it is in the source
    is_escaped: bool  # the result has entities
    escape: Callable[[str], str] | None = None  # how words are written, where neither plain text nor HTML has them

    def put_back(
        self,
        target: str,
        target_words: Sequence[Span] = (),
        weights_XY: NDArray[np.float32] | None = None,
        *,
        source_words: Sequence[Span] | None = None,
    ) -> str:
        """Return a translation with the tags of the source.

        Without tags, ``target`` is all that it needs. ``target_words`` are the (start, end) of the words of ``target``,
        ``source_words`` those of ``text``, by default as ``word_spans`` finds them; ``weights_XY`` says how much each
        target word belongs to each source word. Longer pieces, such as sentences, may take the place of words. Time and
        memory grow with X times Y.
        """
        return self.placed(target, target_words, weights_XY, source_words=source_words)[0]

    def placed(
        self,
        target: str,
        target_words: Sequence[Span] = (),
        weights_XY: NDArray[np.float32] | None = None,
        *,
        source_words: Sequence[Span] | None = None,
    ) -> tuple[str, int]:
        """Return what ``put_back`` returns, and how many tags have a place that was guessed."""
        escape = self.escape or (escaped if self.is_escaped else str)
        if not self.nodes:
            return self.before + escape(target) + self.after, 0
        assert weights_XY is not None
        words = word_spans(self.text) if source_words is None else source_words
        placing = Placing.of(self.text, words, target, target_words, weights_XY)
        rendered = placing.render(self.nodes, 0, len(target_words), escape, is_whole=True)
        return self.before + rendered + self.after, len(placing.guessed)

    def lost_tags(self, rendered: str) -> list[str]:
        """Return the tags of which a translation with tags has fewer than the source."""
        counts = Counter(chain.from_iterable(map(_tags_of, self.nodes)))
        return [tag for tag, n in counts.items() if rendered.count(tag) < n]


def _tags_of(node: Node) -> Iterator[str]:
    yield from filter(None, (node.opening, node.closing))
    for child in node.children:
        yield from _tags_of(child)


def rules_of(format: str) -> MarkupRules | None:
    """Return how a text format is read; None for plain text. Raises ConfigError for a name that is none."""
    match format:
        case "text":
            return None
        case "html":
            return html_rules()
        case "xml":
            return xml_rules()
        case _:
            raise ConfigError(f"format should be text, html or xml, got {quoted(format)}")


def plain_unit(text: str, *, is_protected: bool) -> Unit:
    """Return a text without markup as a unit. ``is_protected``: its URLs, addresses and placeholders are kept apart.

    >>> unit = plain_unit(" see https://x.org now ", is_protected=True)
    >>> unit.text, unit.put_back("siehe jetzt", word_spans("siehe jetzt"), np.eye(2, dtype=np.float32))
    ('see now', ' siehe https://x.org jetzt ')
    """
    return unit_of(text_tokens(text, is_protected=is_protected), str, is_escaped=False)


def divide(markup: str, rules: MarkupRules, *, is_protected: bool = False) -> list[str | Unit]:
    """Divide markup into units and what stands between them; joined, their raw texts give the markup again.

    Entities are decoded and written anew where XML needs them. ``is_protected`` is that of ``plain_unit``. A section
    (CDATA) of XML is divided as HTML if it has tags, or as plain text.

    >>> [each if isinstance(each, str) else each.text for each in divide("<p>One <b>two</b></p><hr>", html_rules())]
    ['<p>', 'One two', '</p><hr>']
    """
    mark = BYTE_ORDER_MARK if markup.startswith(BYTE_ORDER_MARK) else ""
    tokens = kept_whole(list(read_tokens(markup.removeprefix(mark), rules)), rules)
    return joined_strings(chain([mark], _divided(tokens, rules, is_protected=is_protected)))


def _divided(tokens: Sequence[Token], rules: MarkupRules, *, is_protected: bool) -> Iterator[str | Unit]:
    decode = decoder(rules)
    structure = outline(tokens, rules) if rules.finds_outline else set[int]()
    inline: list[Token] = []

    def unit() -> str | Unit:
        """Return the text and tags so far, and begin anew."""
        taken = inline.copy()
        inline.clear()
        if any(token.kind == "text" and token.raw.strip() for token in taken):
            return unit_of(taken, decode, is_escaped=True)
        return "".join(token.raw for token in taken)

    keeps_lines_until = -1  # the index of the end of the outermost preformatted element
    ends = matching_ends(tokens)
    for index, token in enumerate(tokens):
        if index > keeps_lines_until and is_preformatted(token, rules):
            keeps_lines_until = ends.get(index, -1)
        if token.kind == "cdata":
            yield unit()
            yield from _section(token, is_protected=is_protected)
        elif token.kind != "text" and (index in structure or rules.splits(token.name)):
            yield unit()
            yield token.raw
        elif token.kind == "text":
            lines = _LINE_END.split(token.raw) if index < keeps_lines_until else [token.raw]
            for number, line in enumerate(lines):  # every second one is a line end
                if number % 2:
                    yield unit()
                    yield line
                elif line:
                    pieces = _without_unknown_entities(line, decode) if rules.kind == "xml" else [Token("text", line)]
                    for piece in pieces:
                        is_text = piece.kind == "text"
                        inline += (
                            text_tokens(piece.raw, is_protected=is_protected, decode=decode) if is_text else [piece]
                        )
        else:
            inline.append(token)
    yield unit()


def _section(token: Token, *, is_protected: bool) -> Iterator[str | Unit]:
    """Yield the parts of a section of XML."""
    opening, closing = CDATA
    yield opening
    yield from divide_string(token.content, is_protected=is_protected)
    yield closing


def divide_string(text: str, *, is_protected: bool) -> Iterator[str | Unit]:
    """Yield the units of a text that is HTML if it has tags, and else lines of plain text."""
    rules = html_rules()
    if any(each.kind != "text" for each in read_tokens(text, rules)):
        yield from divide(text, rules, is_protected=is_protected)
    else:
        for line in _LINE_END.split(text):
            yield plain_unit(line, is_protected=is_protected) if line.strip() else line


def text_tokens(text: str, *, is_protected: bool, decode: Callable[[str], str] = str) -> list[Token]:
    """Return a text as tokens. ``is_protected``: its URLs, addresses and placeholders are single tags.

    What ``decode`` makes a letter or a sign other than an angle bracket, such as "&eacute;", is no placeholder.
    """
    if not is_protected:
        return [Token("text", text)]
    spans = address_spans(text)
    return list(_cut(text, [(start, end) for start, end in spans if _is_kept(text[start:end], decode)]))


def _is_kept(string: str, decode: Callable[[str], str]) -> bool:
    return not string.startswith("&") or decode(string) in (string, "<", ">")


def _without_unknown_entities(text: str, decode: Callable[[str], str]) -> Iterator[Token]:
    """Yield a text of XML; entities that only its own declarations explain are single tags."""
    return _cut(text, [match.span() for match in _NAMED_ENTITY.finditer(text) if decode(match[0]) == match[0]])


def _cut(text: str, spans: Iterable[Span]) -> Iterator[Token]:
    """Yield a text with some spans as single tags."""
    position = 0
    for start, end in spans:
        if position < start:
            yield Token("text", text[position:start])
        yield Token("single", text[start:end])
        position = end
    if position < len(text):
        yield Token("text", text[position:])


def unit_of(
    tokens: Sequence[Token],
    decode: Callable[[str], str],
    *,
    is_escaped: bool,
    escape: Callable[[str], str] | None = None,
) -> Unit:
    """Build a unit from text and inline tags. ``decode`` replaces entities; ``is_escaped``: the result has them again.

    ``escape`` writes words as other formats have them.

    A tag need not be one of markup: a placeholder is a ``single`` token, what surrounds words a ``start`` and an
    ``end`` of one name.
    """
    texts = [composed(visible(decode(token.raw))) if token.kind == "text" else "" for token in tokens]
    ends = matching_ends(tokens)
    starts = {end: start for start, end in ends.items()}
    whole = "".join(texts)
    stripped = whole.strip()
    offset = whole.find(stripped) if stripped else 0
    first, last = (texts[0], texts[-1]) if texts else ("", "")  # "" for a tag
    before, after = first[: len(first) - len(first.lstrip())], last[len(last.rstrip()) :]
    if len(tokens) == 1 and not stripped:
        after = ""
    pieces, length = [], 0  # of the text, in which words that only a tag separates stay apart
    roots: list[Node] = []
    stack: list[tuple[int, list[Node]]] = [(-1, roots)]
    raw_position = 0
    for index, (token, text) in enumerate(zip(tokens, texts, strict=True)):
        if token.kind == "text":
            clipped = text[max(0, offset - raw_position) : max(0, offset + len(stripped) - raw_position)]
            pieces.append(clipped)
            length += len(clipped)
            raw_position += len(text)
            continue
        previous, following = whole[max(0, raw_position - 1) : raw_position], whole[raw_position : raw_position + 1]
        is_pair = token.kind in ("start", "end") and (index in ends or index in starts)
        begins_another = token.kind == "start" and index > 0 and tokens[index - 1].kind == "end"
        shows_nothing = token.name == "wbr" or token.raw.startswith(("<!", "<?"))
        if (not is_pair or begins_another) and not shows_nothing and _are_words(previous, following):
            pieces.append(" ")
            length += 1
        elif not is_pair and pieces and pieces[-1][-1:].isspace() and (following.isspace() or following in FOLLOWING):
            pieces[-1] = pieces[-1][:-1]
            length -= 1
        if index in starts and stack[-1][0] == starts[index]:
            node = stack[-2][1][-1]
            node.closing, node.end, node.has_space_after = token.raw, length, following.isspace()
            stack.pop()
            continue
        is_element = token.kind == "single" and token.name != "" and "</" in token.raw
        is_note = is_element and not previous.isspace() and (following.isspace() or following in FOLLOWING)
        node = Node(token.raw, "", length, length, previous.isspace(), following.isspace(), is_note)
        stack[-1][1].append(node)
        if index in ends and len(stack) <= MAX_DEPTH:
            stack.append((index, node.children))
    text = "".join(pieces)
    raw = "".join(token.raw for token in tokens)
    spaces = _rewritten(before, is_escaped), _rewritten(after, is_escaped)
    return Unit(text, tuple(roots), *spaces, raw, is_escaped, escape)


def _are_words(previous: str, following: str) -> bool:
    """Whether two characters would be of one word, if nothing stood between them."""
    return previous != "" and following != "" and _WORDS.fullmatch(previous + following) is not None


def _rewritten(space: str, is_escaped: bool) -> str:
    """Return space as it is written in the result: a no-break space as an entity, as it usually came."""
    return space.replace("\u00a0", "&#160;") if is_escaped else space

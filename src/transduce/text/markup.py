"""Text with tags: tags are taken out before translation and put back after it, each exactly once.

``divide`` cuts HTML or XML at its block elements into units (paragraphs, items, cells). A unit has plain text, which is
translated, and inline elements with their places in it. ``Unit.put_back`` places them in the translation, given how
much each of its words belongs to each word of the source. A pair of tags surrounds the run of target words that belongs
to the words between them in the source; a single tag, or an element that is not translated, goes where the fewest words
change sides. The result is nested as the source is.

Shapes: X target words, Y source words.
"""

from __future__ import annotations

import html
import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from transduce.text.masks import address_spans
from transduce.text.normalise import composed
from transduce.text.word_spans import word_spans

__all__ = ["MarkupRules", "Unit", "divide", "html_rules", "plain_unit", "xml_rules"]

_TAG = re.compile(r"""</?([A-Za-z][\w:.-]*+)(?:"[^"]{0,2000}"|'[^']{0,2000}'|[^"'<>])*+>""")
_UNTRANSLATED = re.compile(
    r"""\stranslate\s*=\s*["']?no\b|\sclass\s*=\s*(?:"[^"]*\bnotranslate\b|'[^']*\bnotranslate\b)""", re.I
)
_DELIMITED = (("<!--", "-->"), ("<![CDATA[", "]]>"), ("<?", "?>"), ("<!", ">"))
_BLOCKS = frozenset(
    "address article aside blockquote body br button caption center dd details dialog div dl dt fieldset figcaption"
    " figure footer form frameset h1 h2 h3 h4 h5 h6 head header hgroup hr html iframe legend li main menu meta nav"
    " noscript ol optgroup option p section select summary table tbody td template tfoot th thead title tr ul".split()
)
_VOID = frozenset("area base br col embed hr img input link meta param source track wbr".split())
_RAW = ("script", "style", "textarea")  # their content is no markup
_HTML_IGNORED = frozenset((*_RAW, "code", "kbd", "math", "samp", "svg", "var"))
_XML_ENTITY = re.compile(r"&(?:(amp|lt|gt|quot|apos)|#(\d{1,7})|#x([0-9a-fA-F]{1,6}));")
_XML_NAMED = {"amp": "&", "lt": "<", "gt": ">", "quot": '"', "apos": "'"}
MAX_DEPTH = 100  # of nested inline elements; deeper ones are placed as single tags


Span = tuple[int, int]  # (start, end)


@dataclass(frozen=True, slots=True)
class MarkupRules:
    """How a markup language is read."""

    kind: Literal["html", "xml"]
    ignored: frozenset[str] = frozenset()  # elements whose content is not translated
    splitting: frozenset[str] = frozenset()  # elements that end a unit
    non_splitting: frozenset[str] = frozenset()  # XML: elements that never do
    finds_outline: bool = False  # XML: elements beside which there is no text end a unit


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
class _Token:
    kind: Literal["text", "start", "end", "single"]
    raw: str
    name: str = ""


@dataclass(slots=True, eq=False)
class _Node:
    """An inline element, or a single tag, at characters of the unit's text."""

    opening: str  # as in the source
    closing: str
    start: int
    end: int
    has_space_before: bool  # in the source, beside the tag
    has_space_after: bool
    children: list[_Node] = field(default_factory=list)


@dataclass(frozen=True, slots=True, eq=False)
class Unit:
    """A text to translate, with the tags inside it."""

    text: str  # without tags and entities, and without space at the ends
    nodes: tuple[_Node, ...]
    before: str  # the space at its ends, as in the source
    after: str
    raw: str  # the whole unit as it is in the source
    is_escaped: bool  # the result has entities

    @property
    def has_words(self) -> bool:
        """Whether there is something to translate."""
        return any(map(str.isalpha, self.text))

    def put_back(
        self,
        target: str,
        target_words: Sequence[Span],
        weights_XY: NDArray[np.float32],
        *,
        source_words: Sequence[Span] | None = None,
    ) -> str:
        """Return a translation with the tags of the source.

        ``target_words`` are the (start, end) of the words of ``target``, ``source_words`` those of ``text``, by default
        as ``word_spans`` finds them; ``weights_XY`` says how much each target word belongs to each source word.
        Longer pieces, such as sentences, may take the place of words. Time and memory grow with X times Y.
        """
        escape = _escaped if self.is_escaped else str
        if not self.nodes:
            return self.before + escape(target) + self.after
        words = word_spans(self.text) if source_words is None else source_words
        weights_XY = _trusted(weights_XY, self.text, words, target, target_words)
        placing = _Placing(target, target_words, words, weights_XY)
        return self.before + placing.render(self.nodes, 0, len(target_words), escape, is_whole=True) + self.after


def plain_unit(text: str, *, is_protected: bool) -> Unit:
    """Return a text without markup as a unit. ``is_protected``: its URLs, addresses and placeholders are kept apart.

    >>> unit = plain_unit(" see https://x.org now ", is_protected=True)
    >>> unit.text, unit.put_back("siehe jetzt", word_spans("siehe jetzt"), np.eye(2, dtype=np.float32))
    ('see  now', ' siehe https://x.org jetzt ')
    """
    tokens = list(_protected(_Token("text", text))) if is_protected else [_Token("text", text)]
    return _unit(tokens, str, is_escaped=False)


def divide(markup: str, rules: MarkupRules, *, is_protected: bool = False) -> list[str | Unit]:
    """Divide markup into units and what stands between them; joined, their raw texts give the markup again.

    Entities are decoded and written anew where XML needs them. ``is_protected`` is that of ``plain_unit``.

    >>> [each if isinstance(each, str) else each.text for each in divide("<p>One <b>two</b></p><hr>", html_rules())]
    ['<p>', 'One two', '</p><hr>']
    """
    decode = html.unescape if rules.kind == "html" else _xml_decoded
    tokens = list(_merged_ignored(list(_tokens(markup, rules)), rules))
    outline = _outline(tokens, rules) if rules.finds_outline else set[int]()
    parts: list[str | Unit] = []
    inline: list[_Token] = []

    def end_unit() -> None:
        if any(token.kind == "text" and token.raw.strip() for token in inline):
            parts.append(_unit(inline, decode, is_escaped=True))
        else:
            parts.append("".join(token.raw for token in inline))
        inline.clear()

    for index, token in enumerate(tokens):
        is_block = token.kind != "text" and (
            index in outline or (token.name in rules.splitting and token.name not in rules.non_splitting)
        )
        if is_block:
            end_unit()
            parts.append(token.raw)
        elif token.kind == "text" and is_protected:
            inline.extend(_protected(token))
        else:
            inline.append(token)
    end_unit()
    return _joined(parts)


def _joined(parts: Sequence[str | Unit]) -> list[str | Unit]:
    """Join neighbouring strings."""
    joined: list[str | Unit] = []
    for part in parts:
        if isinstance(part, str) and joined and isinstance(joined[-1], str):
            joined[-1] += part
        elif part != "":
            joined.append(part)
    return joined


def _tokens(markup: str, rules: MarkupRules) -> Iterator[_Token]:
    """Yield text and tags; what is no tag is text. Linear in the length."""
    position = text_start = 0
    missing = set[str]()  # delimiters that do not occur any more
    while (position := markup.find("<", position)) >= 0:
        token = _delimited(markup, position, missing)
        if token is None and (match := _TAG.match(markup, position)):
            token = _tag_token(markup, match, rules, missing)
        if token is None:
            position += 1
            continue
        if text_start < position:
            yield _Token("text", markup[text_start:position])
        yield token
        position = text_start = position + len(token.raw)
    if text_start < len(markup):
        yield _Token("text", markup[text_start:])


def _delimited(markup: str, position: int, missing: set[str]) -> _Token | None:
    """Return the comment, declaration or instruction at a position."""
    for opening, closing in _DELIMITED:
        if markup.startswith(opening, position):
            key = opening + closing
            end = -1 if key in missing else markup.find(closing, position + len(opening))
            if end < 0:
                missing.add(key)
                return None
            return _Token("single", markup[position : end + len(closing)])
    return None


def _tag_token(markup: str, match: re.Match[str], rules: MarkupRules, missing: set[str]) -> _Token:
    raw, name = match[0], match[1]
    if rules.kind == "html":
        name = name.lower()
    if raw.startswith("</"):
        return _Token("end", raw, name)
    if raw.endswith("/>") or (rules.kind == "html" and name in _VOID):
        return _Token("single", raw, name)
    if rules.kind == "html" and name in _RAW and name not in missing:
        end = re.compile(f"</{name}\\s*>", re.I).search(markup, match.end())
        if end is not None:
            return _Token("single", markup[match.start() : end.end()], name)
        missing.add(name)
    return _Token("start", raw, name)


def _merged_ignored(tokens: Sequence[_Token], rules: MarkupRules) -> Iterator[_Token]:
    """Yield the tokens; each element that is not translated becomes a single one."""
    ends = _matching_ends(tokens)
    index = 0
    while index < len(tokens):
        token = tokens[index]
        is_ignored = token.kind == "start" and (
            token.name in rules.ignored or (rules.kind == "html" and _UNTRANSLATED.search(token.raw) is not None)
        )
        if is_ignored and index in ends:
            end = ends[index]
            yield _Token("single", "".join(each.raw for each in tokens[index : end + 1]), token.name)
            index = end + 1
        else:
            yield token
            index += 1


def _matching_ends(tokens: Sequence[_Token]) -> dict[int, int]:
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


def _outline(tokens: Sequence[_Token], rules: MarkupRules) -> set[int]:
    """Return the indices of the tags of elements that structure an XML text: there is no text beside them."""
    ends = _matching_ends(tokens)
    starts = {end: start for start, end in ends.items()}
    tags_in: dict[int, list[int]] = {-1: []}  # by parent
    with_text = set[int]()
    stack = [-1]
    for index, token in enumerate(tokens):
        if token.kind == "text":
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


def _protected(token: _Token) -> Iterator[_Token]:
    """Yield a text with its URLs, addresses and placeholders as single tags."""
    position = 0
    for start, end in address_spans(token.raw):
        if position < start:
            yield _Token("text", token.raw[position:start])
        yield _Token("single", token.raw[start:end])
        position = end
    if position < len(token.raw):
        yield _Token("text", token.raw[position:])


def _xml_decoded(text: str) -> str:
    def character(match: re.Match[str]) -> str:
        named, decimal, hexadecimal = match.groups()
        if named:
            return _XML_NAMED[named]
        number = int(decimal) if decimal else int(hexadecimal, 16)
        return chr(number) if 0 < number < 0x110000 and not 0xD800 <= number < 0xE000 else match[0]

    return _XML_ENTITY.sub(character, text) if "&" in text else text


def _escaped(text: str) -> str:
    return html.escape(text, quote=False)


def _unit(tokens: Sequence[_Token], decode: Callable[[str], str], *, is_escaped: bool) -> Unit:
    """Build a unit from text and inline tags."""
    texts = [composed(decode(token.raw)) if token.kind == "text" else "" for token in tokens]
    ends = _matching_ends(tokens)
    starts = {end: start for start, end in ends.items()}
    whole = "".join(texts)
    stripped = whole.strip()
    offset = whole.find(stripped) if stripped else 0
    first, last = (texts[0], texts[-1]) if texts else ("", "")  # "" for a tag
    before, after = first[: len(first) - len(first.lstrip())], last[len(last.rstrip()) :]
    if len(tokens) == 1 and not stripped:
        after = ""
    pieces, length = [], 0  # of the text, in which words that only a tag separates stay apart
    roots: list[_Node] = []
    stack: list[tuple[int, list[_Node]]] = [(-1, roots)]
    raw_position = 0
    for index, (token, text) in enumerate(zip(tokens, texts, strict=True)):
        if token.kind == "text":
            clipped = text[max(0, offset - raw_position) : max(0, offset + len(stripped) - raw_position)]
            pieces.append(clipped)
            length += len(clipped)
            raw_position += len(text)
            continue
        previous, following = whole[:raw_position][-1:], whole[raw_position : raw_position + 1]
        is_pair = token.kind in ("start", "end") and (index in ends or index in starts)
        begins_another = token.kind == "start" and index > 0 and tokens[index - 1].kind == "end"
        if (not is_pair or begins_another) and previous.isalnum() and following.isalnum():
            pieces.append(" ")
            length += 1
        if index in starts and stack[-1][0] == starts[index]:
            node = stack[-2][1][-1]
            node.closing, node.end, node.has_space_after = token.raw, length, following.isspace()
            stack.pop()
            continue
        node = _Node(token.raw, "", length, length, previous.isspace(), following.isspace())
        stack[-1][1].append(node)
        if index in ends and len(stack) <= MAX_DEPTH:
            stack.append((index, node.children))
    text = "".join(pieces)
    raw = "".join(token.raw for token in tokens)
    return Unit(text, tuple(roots), _rewritten(before, is_escaped), _rewritten(after, is_escaped), raw, is_escaped)


def _rewritten(space: str, is_escaped: bool) -> str:
    """Return space as it is written in the result: a no-break space as an entity, as it usually came."""
    return space.replace("\u00a0", "&#160;") if is_escaped else space


def _trusted(
    weights_XY: NDArray[np.float32],
    source: str,
    source_words: Sequence[Span],
    target: str,
    target_words: Sequence[Span],
) -> NDArray[np.float32]:
    """Return the weights with rows that sum to 1, without what attention is known to get wrong.

    Where nothing fits, attention rests on punctuation: so words belong to words only, and a punctuation mark to equal
    ones, or to all words alike.
    """
    n_source, n_target = len(source_words), len(target_words)
    if weights_XY.shape != (n_target, n_source):
        weights_XY = np.full((n_target, n_source), 1 / max(1, n_source), np.float32)
    is_word_Y = np.array([source[start].isalnum() for start, _ in source_words], bool)
    equal_Y = dict[str, NDArray[np.bool_]]()  # by punctuation mark
    trusted_XY = weights_XY.astype(np.float32) + np.float32(1e-6)
    for row, (start, end) in enumerate(target_words):
        word = target[start:end]
        if not word[:1].isalnum() and word not in equal_Y:
            equal_Y[word] = np.array([source[begin:stop] == word for begin, stop in source_words], bool)
        trusted_XY[row] *= is_word_Y if word[:1].isalnum() else equal_Y[word]
    totals_X1 = trusted_XY.sum(1, keepdims=True)
    return np.where(totals_X1 > 0, trusted_XY / np.where(totals_X1 > 0, totals_X1, 1), 1 / max(1, n_source))


@dataclass(frozen=True, slots=True, eq=False)
class _Placing:
    """The places of tags in one translation."""

    target: str
    target_words: Sequence[Span]
    source_words: Sequence[Span]
    weights_XY: NDArray[np.float32]
    sums_XY: list[NDArray[np.float32]] = field(default_factory=list)  # one: of the weights before each source word
    starts: list[int] = field(default_factory=list)  # of the source words
    ends: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        zeros_X1 = np.zeros((len(self.target_words), 1), np.float32)
        self.sums_XY.append(np.concatenate((zeros_X1, np.cumsum(self.weights_XY, axis=1)), axis=1))
        self.starts.extend(start for start, _ in self.source_words)
        self.ends.extend(end for _, end in self.source_words)

    def render(
        self, nodes: Sequence[_Node], low: int, high: int, escape: Callable[[str], str], *, is_whole: bool = False
    ) -> str:
        """Return the target words ``low`` to ``high`` with the tags; ``is_whole``: with what surrounds the words."""
        spans, is_inside = self._spans(nodes, low, high)
        items: list[tuple[int, int, _Node, Span | None]] = []
        for node in nodes:
            span = spans.get(id(node))
            place = self._place(node, low, high, is_inside) if span is None else span[0]
            items.append((place, span is not None, node, span))
        items.sort(key=lambda item: item[:2])  # stable: in the order of the source
        begin, end = (0, len(self.target)) if is_whole else self._characters(low, high)
        pieces, cursor, index = list[str](), begin, 0
        while index < len(items):
            place, _, node, span = items[index]
            if span is not None:
                start, stop = self._characters(*span)
                pieces += [escape(self.target[cursor:start]), node.opening]
                pieces += [self.render(node.children, *span, escape), node.closing]
                cursor = stop
                index += 1
                continue
            group = [node]
            while index + len(group) < len(items) and items[index + len(group)][:2] == (place, False):
                group.append(items[index + len(group)][2])
            gap_start = self.target_words[place - 1][1] if place > low else begin
            gap_end = self.target_words[place][0] if place < high else end
            gap_start, gap_end = max(gap_start, cursor), max(gap_end, cursor)
            pieces.append(escape(self.target[cursor:gap_start]))
            pieces.append(self._gap(group, self.target[gap_start:gap_end], escape, place > low, place < high))
            cursor = gap_end
            index += len(group)
        return "".join([*pieces, escape(self.target[cursor:end])])

    def _gap(
        self, nodes: Sequence[_Node], gap: str, escape: Callable[[str], str], follows_word: bool, precedes_word: bool
    ) -> str:
        """Return single tags between two words, with space beside them as in the source."""
        text, has_space = "", False
        other = gap.strip()  # characters that are no words
        for node in nodes:
            if node.has_space_before and (follows_word or text) and not text.endswith(" "):
                text += " "
                has_space = True
            text += node.opening + self._empty(node.children) + node.closing
        is_open = nodes[-1].has_space_after and precedes_word
        if is_open or (gap[-1:].isspace() and precedes_word and not has_space):
            text += " "
        return text + escape(other)

    def _empty(self, nodes: Sequence[_Node]) -> str:
        return "".join(node.opening + self._empty(node.children) + node.closing for node in nodes)

    def _characters(self, low: int, high: int) -> Span:
        """Return the (start, end) of the characters of target words."""
        return (self.target_words[low][0], self.target_words[high - 1][1]) if low < high else (0, 0)

    def _spans(self, nodes: Sequence[_Node], low: int, high: int) -> tuple[dict[int, Span], NDArray[np.bool_]]:
        """Return the target words of each pair of tags, disjoint, and which boundaries of words are inside one.

        A pair without words, or for which no target word is left, has none.
        """
        found = []
        for node in nodes:
            first, last = bisect_right(self.ends, node.start), bisect_left(self.starts, node.end)
            if node.start < node.end and first < last:
                values_X = self.sums_XY[0][low:high, last] - self.sums_XY[0][low:high, first] - 0.5
                if last - first == len(self.source_words):
                    values_X = np.ones_like(values_X)
                found.append((float(values_X.max(initial=-1)), node, values_X))
        found.sort(key=lambda each: -each[0])
        is_free_X, is_inside = np.ones(high - low, bool), np.zeros(high - low + 1, bool)
        spans = dict[int, Span]()
        for _, node, values_X in found:
            span = _best_run(np.where(is_free_X, values_X, TAKEN))
            if span is not None:
                is_free_X[span[0] : span[1]] = False
                is_inside[span[0] + 1 : span[1]] = True
                spans[id(node)] = (low + span[0], low + span[1])
        return spans, is_inside

    def _place(self, node: _Node, low: int, high: int, is_inside: NDArray[np.bool_]) -> int:
        """Return the number of the target word before which a single tag stands: the fewest words change sides."""
        n_before = bisect_right(self.ends, node.start)
        if high <= low or (n_before == 0 and low == 0):
            return low
        if n_before == len(self.source_words) and high == len(self.target_words):
            return high
        early_X = self.sums_XY[0][low:high, n_before]  # how much each word belongs before the tag
        wrong = np.zeros(high - low + 1)
        wrong[1:] += np.cumsum(1 - early_X)
        wrong[:-1] += np.cumsum(early_X[::-1])[::-1]
        return low + int(np.where(is_inside, np.inf, wrong).argmin())


TAKEN = -1e6  # the value of a word that belongs to another pair


def _best_run(values: NDArray[np.floating]) -> Span | None:
    """Return the (start, end) of the run with the greatest sum, at least one value; None if all are taken.

    >>> _best_run(np.array([-0.5, 0.4, -0.1, 0.3, -0.5])), _best_run(np.array([TAKEN]))
    ((1, 4), None)
    """
    if not len(values):
        return None
    sums = np.concatenate(([0.0], np.cumsum(values, dtype=np.float64)))
    lowest = np.minimum.accumulate(sums[:-1])
    end = int((sums[1:] - lowest).argmax()) + 1
    if sums[end] - lowest[end - 1] <= TAKEN / 2:
        return None
    return int(np.flatnonzero(sums[:end] == lowest[end - 1])[-1]), end

"""Inline Markdown with places: what of a paragraph is a mark of emphasis, a link, code, and what is text.

The parser is markdown-it-py's; its rules are wrapped to note where each token stands, which it does not tell.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from transduce.documents.html import RULES, marked_tag
from transduce.documents.spliced import Embedded, Region, with_words
from transduce.patterns import compiled_on_use
from transduce.text.changes import with_changes
from transduce.text.markup import text_tokens, unit_of
from transduce.text.markup_reading import Token, decoder, kept_whole, read_tokens

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.rules_inline import StateInline
    from markdown_it.token import Token as ParsedToken

__all__ = ["Inline", "Located", "parser"]

_Rule = Callable[["StateInline", bool], bool]
_ESCAPED = compiled_on_use(r"\\([!-/:-@\[-`{-~])")
_WRAP = compiled_on_use(r"(?<![ \t])[ \t]*+\n[ \t]*+")
_ACTIVE = compiled_on_use(  # characters that would be markup
    r"\\(?=[!-/:-@\[-`{-~])|`|(?<!\s)\*|\*(?!\s)|(?<![^\W_])_(?!\s)|(?<!\s)_(?![^\W_])|<(?=[A-Za-z/!?])|&(?=#?\w+;)|~(?=~)"
    r"|\](?=[(\[])|\[(?=\^|[ xX]\](?:\s|\Z)|!\w)"
    r"|(?<![\w$])\$(?=[^\s$])"
)
_WORD = compiled_on_use(r"(?:`+[^`]*`+|\]\([^()]*\)|<[^<>]*>|[^ ])+")  # what stays on one line
_MAY_BEGIN_BLOCK = compiled_on_use(r"[-+*_=:]+\Z|#{1,6}\Z|\d{1,9}[.)]\Z|[>|<]|~{3}|`{3}|\$\$|\[\^")
_LITERAL_MARK = compiled_on_use(r"(?<!\S)[*_](?!\S)|(?<=[^\W_])_(?=[^\W_])")  # which ``_escaped`` leaves as it is
_LABEL = compiled_on_use(r"\[([^\[\]]+)\]")
_TITLE = compiled_on_use(r"""\]\(\s*+(?:<[^<>]*+>|\S*+)\s++(["'(])(.*)["')]\s*\)""", re.DOTALL)
_FOOTNOTE = compiled_on_use(r"\[\^[^\[\]\s]+\]:?")
_TASK = compiled_on_use(r"\[[ xX]\](?=\s)")
_ALERT = compiled_on_use(r"\[!\w+\][ \t]*\n")
# Lines of Docusaurus and MyST (::: note), and of MkDocs (!!! note "Title", === "Title").
_DIRECTIVE = compiled_on_use(
    r'(?::{3,}[^\n]*|(?:!!!|\?{3}\+?|===\+?)[ \t]++[\w -]*+(?:"(?P<title>[^"\n]*)")?+[ \t]*+)(?:\n[ \t]*|\Z)'
)
_DEFINITION = compiled_on_use(r"[ \t]*\n[ \t]*:[ \t]+(?=\S)")
_ATTRIBUTES = compiled_on_use(r"\{[#.:][^{}\n]*\}")
_MATHS = compiled_on_use(r"\$\$[^$]+\$\$|(?<![\w$])\$(?=[^\s$])[^$\n]*(?<=[^\s$])\$(?![\w$])")
_BREAK = compiled_on_use(r"(?i)<br\s*/?>")


def parser() -> MarkdownIt:
    """Return a parser of CommonMark with GitHub's tables, struck text and notes, whose inline tokens have places."""
    from markdown_it import MarkdownIt

    markdown = MarkdownIt("commonmark").enable(["table", "strikethrough"])
    ruler = markdown.inline.ruler
    for name, before, pattern, is_first in (
        ("footnote", "link", _FOOTNOTE, False),
        ("task", "link", _TASK, True),
        ("alert", "link", _ALERT, True),
        ("attributes", "link", _ATTRIBUTES, False),
        ("maths", "escape", _MATHS, False),
    ):
        ruler.before(before, name, _kept(pattern, "hardbreak" if name == "alert" else "kept", is_first=is_first))
    ruler.before("text", "directive", _directive)
    ruler.before("newline", "definition", _kept(_DEFINITION, "hardbreak", is_first=False))
    for name, rule in zip(ruler.get_active_rules(), ruler.getRules(""), strict=True):
        if name != "text":  # the rule that takes most time and has no token
            ruler.at(name, _placed(rule))
    markdown.inline.ruler2.disable("fragments_join")  # what joins texts loses places
    markdown.core.ruler.disable("text_join")
    return markdown


def _kept(pattern: Any, kind: str, *, is_first: bool) -> _Rule:
    """Return a rule for what stays as it is. ``is_first``: at the beginning of a paragraph only."""

    def rule(state: StateInline, silent: bool) -> bool:
        match = None if is_first and state.pos else pattern.match(state.src, state.pos, state.posMax)
        if match is None:
            return False
        if not silent:
            state.push(kind, "", 0)
        state.pos = match.end()
        return True

    return rule


def _directive(state: StateInline, silent: bool) -> bool:
    """Keep a line that begins or ends a block of another dialect, but for its title."""
    start = state.pos
    while start and state.src[start - 1] in " \t":
        start -= 1
    is_at_start = start == 0 or state.src[start - 1] == "\n"
    match = _DIRECTIVE.match(state.src, state.pos, state.posMax) if is_at_start else None
    if match is None:
        return False
    if not silent:
        bounds = [*match.span("title"), match.end()] if match["title"] else [match.end()]
        for start, end in zip([match.start(), *bounds[1::2]], bounds[::2], strict=True):
            state.push("hardbreak", "", 0).meta["span"] = (start, end)
    state.pos = match.end()
    return True


def _placed(rule: _Rule) -> _Rule:
    """Return a rule that also notes the (start, end) of its tokens."""

    def placed(state: StateInline, silent: bool) -> bool:
        start, n_before = state.pos, len(state.tokens)
        if not rule(state, silent):
            return False
        end = state.pos
        for token in [] if silent else reversed(state.tokens[n_before:]):
            if "span" in token.meta:
                continue  # inside a link
            if token.type == "text":  # delimiters of emphasis, one after the other
                token.meta["span"] = (end - len(token.content), end)
                end -= len(token.content)
            elif token.type in ("link_open", "link_close") and token.markup != "autolink":
                label_end = state.md.helpers.parseLinkLabel(state, start, True)
                token.meta["span"] = (start, start + 1) if token.type == "link_open" else (label_end, state.pos)
            else:
                token.meta["span"] = (start, state.pos)
                if token.type == "image":
                    token.meta["label_end"] = state.md.helpers.parseLinkLabel(state, start + 1, False)
        return True

    return placed


@dataclass(frozen=True, slots=True)
class Located:
    """Inline Markdown without the prefixes of its lines, and where its characters are in the document."""

    text: str
    offsets: Sequence[int]  # one more than characters

    def part(self, start: int, end: int) -> Located:
        """Return a part of it."""
        return Located(self.text[start:end], self.offsets[start : end + 1])


class Inline:
    """The reader of the inline Markdown of one document."""

    def __init__(
        self, source: str, embedded: Embedded, markdown: MarkdownIt, environment: dict[str, Any], *, is_protected: bool
    ) -> None:
        """``environment`` is what the parser has found in the document, with the labels for which a link is defined."""
        self._source, self._embedded, self._is_protected = source, embedded, is_protected
        self._markdown, self._environment = markdown, environment
        self._references = frozenset(environment.get("references", ()))
        self._entities = decoder(RULES)

    def pieces(
        self,
        located: Located,
        parsed: Sequence[ParsedToken],
        write: Callable[[str], str] = str,
        *,
        is_cell: bool = False,
    ) -> Iterator[str | Region]:
        """Yield regions, with a unit each, and the hard breaks between them. ``write`` is that of the regions."""
        tokens, start, position = list[Token](), 0, 0
        escape = self._cell_escaped if is_cell else self._escaped

        def region(end: int) -> Region:
            text = self._tokens_of_text(located.text[position:end])
            unit = unit_of(kept_whole([*tokens, *text], RULES), self._decoded, is_escaped=False, escape=escape)
            has_emphasis = any(token.name[:2] in ("em", "st") for token in tokens)
            tokens.clear()
            wrap = _WRAP.search(located.text, start, end)
            n_columns = max(map(len, located.text[start:end].split("\n")))
            has_long_fence = "``" in located.text[start:end]

            def written(text: str) -> str:
                if not has_long_fence:
                    text = text.replace("``", "` `")  # two pieces of code side by side
                text = self._marked(text) if has_emphasis else text
                return write(_wrapped(text, n_columns, self._raw(located, *wrap.span())) if wrap else text)

            return Region(self._raw(located, start, end), [with_words(unit)], written)

        autolink_end = 0
        for each in parsed:
            span = self._span(each)
            if span is None or each.type == "softbreak" or span[1] <= autolink_end:
                continue
            if each.markup == "autolink":
                autolink_end = span[1]
            if each.type == "hardbreak" or _BREAK.fullmatch(located.text, *span):
                end = max(start, len(located.text[: span[0]].rstrip()))
                yield region(end)
                yield self._raw(located, end, span[1])
                position = start = span[1]
                continue
            tokens += self._tokens_of_text(located.text[position : span[0]])
            tokens += self._markup(each, located, span)
            position = span[1]
        yield region(len(located.text))

    def _marked(self, text: str) -> str:
        """Return a text with tags of HTML for marks of emphasis that are none where they stand: ``**„A“**b``."""
        (block,) = self._markdown.parseInline(text, self._environment)
        texts = [each for each in block.children or () if each.type == "text" and each.content]
        runs = list[tuple[int, int]]()  # the (start, end) of neighbouring marks
        for start, end in (each.meta["span"] for each in texts if "span" in each.meta):
            mark = text[start:end]
            if mark not in ("*", "_") or _LITERAL_MARK.match(text, start):
                continue
            if runs and runs[-1][1] == start and runs[-1][1] - runs[-1][0] < 2 and text[start - 1] == mark:
                runs[-1] = (runs[-1][0], end)
            else:
                runs.append((start, end))
        lengths = [end - start for start, end in runs]
        if lengths[::2] != lengths[1::2]:
            return text
        names = ("em" if end - start == 1 else "strong" for start, end in runs)
        tags = (f"</{name}>" if number % 2 else f"<{name}>" for number, name in enumerate(names))
        return with_changes(text, [(start, end, tag) for (start, end), tag in zip(runs, tags, strict=True)])

    def _raw(self, located: Located, start: int, end: int) -> str:
        return self._source[located.offsets[start] : located.offsets[end]]

    def _span(self, parsed: ParsedToken) -> tuple[int, int] | None:
        """Return the (start, end) of a token; None for text."""
        if parsed.type in ("text", "text_special"):
            return None
        start, end = parsed.meta["span"]
        if parsed.type in ("em_open", "strong_open", "s_open"):
            return end - len(parsed.markup), end
        if parsed.type in ("em_close", "strong_close", "s_close"):
            return start, start + len(parsed.markup)
        return start, end

    def _tokens_of_text(self, text: str) -> list[Token]:
        return text_tokens(text, is_protected=self._is_protected, decode=self._entities) if text else []

    def _markup(self, parsed: ParsedToken, located: Located, span: tuple[int, int]) -> list[Token]:
        """Return the tags that a token stands for."""
        raw = self._raw(located, *span)
        match parsed.type:
            case "link_open" if parsed.markup != "autolink":
                return [Token("start", raw, "link")]
            case "link_close":
                return [Token("end", self._target(located, span), "link")]
            case "image":
                return [Token("single", self._image(parsed, located, span))]
            case "html_inline":
                return [
                    Token(tag.kind, marked_tag(tag, self._embedded, is_protected=self._is_protected), tag.name)
                    for tag in read_tokens(raw, RULES)
                ]
            case _ if parsed.nesting and parsed.markup != "autolink":
                return [Token("start" if parsed.nesting > 0 else "end", raw, parsed.tag + parsed.markup)]
            case _:
                return [Token("single", raw)]

    def _target(self, located: Located, span: tuple[int, int]) -> str:
        """Return the end of a link, whose text may change: with its label, and its title as an embedded text."""
        start, end = span
        tail = located.text[start:end]
        if tail in ("]", "][]"):
            label = located.text[:start][self._label_start(located.text, start) :]
            return f"][{' '.join(label.split())}]"
        title = _TITLE.fullmatch(tail)
        if title is None or not title[2].strip():
            return self._raw(located, start, end)
        part = located.part(start + title.start(2), start + title.end(2))
        tokens = self._tokens_of_text(part.text)
        special = compiled_on_use(rf"\\|[{'()' if title[1] == '(' else title[1]}]|&(?=#?\w+;)")

        def escape(text: str) -> str:
            return special.sub(r"\\\g<0>", text)

        unit = with_words(unit_of(tokens, self._decoded, is_escaped=False, escape=escape))
        if isinstance(unit, str):
            return self._raw(located, start, end)
        mark = self._embedded.mark(Region(self._raw(part, 0, len(part.text)), [unit]))
        return self._raw(located, start, start + title.start(2)) + mark + self._raw(located, start + title.end(2), end)

    def _label_start(self, text: str, end: int) -> int:
        """Return where the label that ends at a position begins: behind its bracket."""
        depth, position = 1, end
        while depth and position:
            position -= 1
            if text[position] in "[]" and not (position and text[position - 1] == "\\"):
                depth += 1 if text[position] == "]" else -1
        return position + 1

    def _image(self, parsed: ParsedToken, located: Located, span: tuple[int, int]) -> str:
        """Return an image, with its text as an embedded one."""
        start, end = span
        label_end = parsed.meta["label_end"]
        label = located.part(start + 2, label_end)
        target = self._target(located, (label_end, end))
        if not label.text.strip():
            return self._raw(located, start, end)
        pieces = list(self.pieces(label, parsed.children or ()))
        marks = "".join(each if isinstance(each, str) else self._embedded.mark(each) for each in pieces)
        return self._raw(located, start, start + 2) + marks + target

    def _decoded(self, text: str) -> str:
        """Return text without wraps, escapes and entities."""
        pieces = _ESCAPED.split(_WRAP.sub(" ", text))  # every second one is a character that was escaped
        return "".join(each if number % 2 else self._entities(each) for number, each in enumerate(pieces))

    def _escaped(self, text: str) -> str:
        """Return text as Markdown has it."""
        from markdown_it.common.utils import normalizeReference

        def label(match: Any) -> str:
            is_reference = normalizeReference(match[1]) in self._references
            return "\\" * is_reference + str(match[0])

        text = _ACTIVE.sub(r"\\\g<0>", text)
        return _LABEL.sub(label, text) if self._references and "[" in text else text

    def _cell_escaped(self, text: str) -> str:
        return self._escaped(text).replace("|", "\\|")


def _wrapped(text: str, n_columns: int, line_end: str) -> str:
    """Return a text on lines of at most so many columns where that is possible; none begins another block."""
    lines = list[str]()
    for word in _WORD.findall(text):
        if lines and (len(lines[-1]) + 1 + len(word) <= n_columns or _MAY_BEGIN_BLOCK.match(word)):
            lines[-1] += f" {word}"
        else:
            lines.append(word)
    return line_end.join(lines)

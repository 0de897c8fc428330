"""A text with tags as words and tags apart, for those who show it or write it in another format."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from transduce.patterns import compiled_on_use
from transduce.text.changes import joined_strings
from transduce.text.markup import Unit
from transduce.text.tag_placing import Node

__all__ = ["Piece", "Tag", "marked", "pieces_of", "pieces_of_marked"]

START, END = "\U0001fffe", "\U0001ffff"  # no characters of any text
_WORDS = compiled_on_use(f"{START}([^{END}]*){END}")


@dataclass(frozen=True, slots=True)
class Tag:
    """An inline tag. The two of a pair have one number."""

    kind: Literal["open", "close", "single"]
    number: int  # from 1, in the order of the source
    text: str  # as in the source


Piece = str | Tag


def pieces_of(unit: Unit) -> tuple[Piece, ...]:
    """Return the text of a unit with its tags.

    >>> from transduce.text.markup import divide, html_rules
    >>> pieces_of(divide("<b>1 &lt; 2</b> x", html_rules())[0])
    (Tag(kind='open', number=1, text='<b>'), '1 < 2', Tag(kind='close', number=1, text='</b>'), ' x')
    """
    found, cursor = list[Piece](), 0
    for place, tag in _tags(unit.nodes, [0]):
        found += [unit.text[cursor:place], tag]
        cursor = place
    return tuple(filter(None, [*found, unit.text[cursor:]]))


def marked(words: str) -> str:
    """Mark words, in place of ``Unit.escape``, so that ``pieces_of_marked`` finds them in what ``put_back`` returns."""
    return f"{START}{words}{END}"


def pieces_of_marked(unit: Unit, rendered: str) -> tuple[Piece, ...]:
    """Return the pieces of a translation of a unit whose words are ``marked``."""
    unused, opened, pieces = [tag for _, tag in _tags(unit.nodes, [0])], list[int](), list[Piece]()
    for number, part in enumerate(_WORDS.split(rendered)):
        if number % 2 or not unused:
            pieces.append(part)
            continue
        while part:
            tag = next((each for each in unused if part.startswith(each.text) and _may_follow(opened, each)), None)
            pieces.append(tag or part[0])
            part = part[len(tag.text) if tag else 1 :]
            if tag is None:
                continue
            unused.remove(tag)
            if tag.kind == "open":
                opened.append(tag.number)
            elif tag.kind == "close":
                opened.pop()
    return tuple(joined_strings(pieces))


def _tags(nodes: Sequence[Node], numbers: list[int]) -> Iterator[tuple[int, Tag]]:
    """Yield the place and the tag of each node, and of those inside it; ``numbers`` has the last number."""
    for node in nodes:
        numbers[0] += 1
        number = numbers[0]
        yield node.start, Tag("open" if node.closing else "single", number, node.opening)
        yield from _tags(node.children, numbers)
        if node.closing:
            yield node.end, Tag("close", number, node.closing)


def _may_follow(opened: Sequence[int], tag: Tag) -> bool:
    """Whether a tag may come next: of the closing ones, only that of the pair which opened last."""
    return tag.text != "" and (tag.kind != "close" or opened[-1:] == [tag.number])

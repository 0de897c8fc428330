"""Constituency trees in Penn brackets: ``(S (NP (DT the) (NN dog)) (VP (VBZ sleeps)))``."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from transduce.errors import TreeError

__all__ = [
    "ROOT_LABEL",
    "TRACE",
    "Tree",
    "escape_brackets",
    "parse_tree",
    "parse_trees",
    "plain",
    "tree_or_none",
    "unescape_brackets",
    "without_function_tags",
]

ROOT_LABEL, TRACE = "TOP", "-NONE-"
OTHER_ROOT_LABELS = frozenset({"", "ROOT", "S1", ROOT_LABEL})  # what treebanks and parsers call the outermost bracket


@dataclass(frozen=True, slots=True)
class Tree:
    """A labelled node over children, or over one word (a part of speech)."""

    label: str
    children: tuple[Tree, ...] = ()
    word: str | None = None

    def __post_init__(self) -> None:
        if (self.word is None) == (not self.children):
            raise TreeError(f"a tree node needs children or a word, not both or neither; got label {self.label!r}")

    def __str__(self) -> str:
        """On one line. Without recursion, as all here: a parser may write a thousand brackets into each other."""
        parts: list[str] = []
        stack: list[Tree | str] = [self]
        while stack:
            node = stack.pop()
            if isinstance(node, str):
                parts.append(node)
            elif node.word is not None:
                parts.append(f"({node.label} {node.word})")
            else:
                parts.append(f"({node.label}")
                stack.append(")")
                for child in reversed(node.children):
                    stack += [child, " "]
        return "".join(parts)

    def nodes(self) -> Iterator[Tree]:
        """Itself and all below it, each before its children, from left to right."""
        stack = [self]
        while stack:
            node = stack.pop()
            yield node
            stack.extend(reversed(node.children))

    def leaves(self) -> Iterator[Tree]:
        """The parts of speech, from left to right.

        >>> [leaf.word for leaf in parse_tree("(S (NP (PRP He)) (VP (VBZ runs)))").leaves()]
        ['He', 'runs']
        """
        return (node for node in self.nodes() if node.word is not None)

    def words(self) -> list[str]:
        """Of its leaves."""
        return [leaf.word for leaf in self.leaves() if leaf.word is not None]


def parse_tree(text: str, *, first_line: int = 1) -> Tree:
    """Read one bracketed tree; an empty outer label, as in the treebank's files, becomes ``TOP``.

    ``first_line`` is the number of its first line in the file that it is from.
    Raises TreeError, with line and column, where the brackets do not make one tree.

    >>> str(parse_tree("( (S (VP (VB Go))))"))
    '(TOP (S (VP (VB Go))))'
    """
    tokens = _tokens(text.split("\n"), first_line)
    trees = _trees(tokens)
    tree = next(trees, None)
    if tree is None:
        raise TreeError(f"line {first_line}, column 1: expected '(', got nothing")
    another = next(tokens, None)
    if another is not None:
        token, place = another
        raise TreeError(f"{place}: the tree has ended, got {token!r}")
    return tree


def parse_trees(lines: Iterable[str]) -> Iterator[Tree]:
    """All trees of a file, however they are broken into lines. Raises TreeError, with line and column.

    >>> [str(tree) for tree in parse_trees(["( (S (VB Go)))  (S", "  (VB Stop))"])]
    ['(TOP (S (VB Go)))', '(S (VB Stop))']
    """
    return _trees(_tokens(lines, 1))


def tree_or_none(line: str, *, number: int = 1) -> Tree | None:
    """The tree of a line; None where it has no word at all, as parsers write it that found none: "", "()", "(TOP )".

    Raises TreeError, with the column and the line's ``number``.
    """
    is_bracketed = not line.strip() or line.lstrip().startswith("(")
    is_balanced = line.count("(") == line.count(")")
    if is_bracketed and is_balanced and not _LABEL_AND_WORD.search(line):
        return None
    return parse_tree(line, first_line=number)


def plain(tree: Tree) -> Tree:
    """What parsers are trained and judged on: no function tags, no traces or brackets over nothing else, root ``TOP``.

    Raises TreeError if nothing is left.

    >>> str(plain(parse_tree("( (S (NP-SBJ-1 (-NONE- *)) (VP=2 (VB Go) (PRT (RP on)))))")))
    '(TOP (S (VP (VB Go) (PRT (RP on)))))'
    """
    (kept,) = _rebuilt(tree) or (None,)
    if kept is None:
        raise TreeError("nothing but traces is in the tree")
    if kept.word is None and kept.label in OTHER_ROOT_LABELS:
        return Tree(ROOT_LABEL, kept.children)
    return Tree(ROOT_LABEL, (kept,))


def _rebuilt(tree: Tree) -> tuple[Tree, ...]:
    """The tree without tags and traces: one, or none."""
    done: list[list[Tree]] = [[]]
    stack: list[tuple[Tree, bool]] = [(tree, False)]
    while stack:
        node, is_left = stack.pop()
        if is_left:
            children = tuple(done.pop())
            if children:
                done[-1].append(Tree(without_function_tags(node.label), children))
        elif node.word is not None:
            if node.label != TRACE:
                done[-1].append(node)
        else:
            done.append([])
            stack.append((node, True))
            stack.extend((child, False) for child in reversed(node.children))
    return tuple(done[0])


def without_function_tags(label: str) -> str:
    """A constituent's label up to the first ``-`` or ``=``; one that begins so stays as it is.

    >>> without_function_tags("NP-SBJ-1"), without_function_tags("VP=2"), without_function_tags("-LRB-")
    ('NP', 'VP', '-LRB-')
    """
    return re.split("[-=]", label, maxsplit=1)[0] or label


_BRACKETS = {"(": "-LRB-", ")": "-RRB-", "[": "-LSB-", "]": "-RSB-", "{": "-LCB-", "}": "-RCB-"}
_ESCAPED = {escape: bracket for bracket, escape in _BRACKETS.items()}


def escape_brackets(word: str) -> str:
    """A word as it stands in a tree: round brackets would be read as those of the tree.

    >>> escape_brackets("("), escape_brackets("f(x)"), escape_brackets("[")
    ('-LRB-', 'f-LRB-x-RRB-', '[')
    """
    return word.replace("(", "-LRB-").replace(")", "-RRB-")


def unescape_brackets(word: str) -> str:
    """A word of a tree as people write it.

    >>> unescape_brackets("-LRB-"), unescape_brackets("-LCB-")
    ('(', '{')
    """
    return re.sub("-[LR][RSC]B-", lambda escape: _ESCAPED[escape.group()], word)


_TOKEN = re.compile(r"[()]|[^\s()]+")
_LABEL_AND_WORD = re.compile(r"[^\s()]\s+[^\s()]")


def _tokens(lines: Iterable[str], first_line: int) -> Iterator[tuple[str, str]]:
    """Brackets and words, each with its place in words."""
    for number, line in enumerate(lines, start=first_line):
        for match in _TOKEN.finditer(line):
            yield match.group(), f"line {number}, column {match.start() + 1}"


def _trees(tokens: Iterator[tuple[str, str]]) -> Iterator[Tree]:
    """The trees that the brackets make, one after the other; reads no token past the end of each."""
    open_nodes: list[_OpenNode] = []
    for token, place in tokens:
        if token == "(":
            open_nodes.append(_OpenNode(place))
        elif not open_nodes:
            raise TreeError(f"{place}: expected '(', got {token!r}")
        elif token != ")":
            open_nodes[-1].take(token, place)
        else:
            node = open_nodes.pop().closed(is_outermost=not open_nodes)
            if open_nodes:
                open_nodes[-1].children.append(node)
            else:
                yield node
    if open_nodes:
        raise TreeError(f"{open_nodes[-1].place}: the bracket {open_nodes[-1].label or ''!r} is never closed")


class _OpenNode:
    """A bracket that is being read."""

    def __init__(self, place: str) -> None:
        self.place = place
        self.label: str | None = None
        self.word: str | None = None
        self.children: list[Tree] = []

    def take(self, token: str, place: str) -> None:
        """A label, or the word after it."""
        if self.label is None and not self.children:
            self.label = token
        elif self.word is None and not self.children:
            self.word = token
        else:
            raise TreeError(f"{place}: expected '(' or ')', got {token!r}")

    def closed(self, *, is_outermost: bool) -> Tree:
        """The node, now that its bracket has ended."""
        if self.word is not None and not self.children:
            return Tree(self.label or "", word=self.word)
        if self.word is not None:
            raise TreeError(f"{self.place}: the bracket {self.label!r} has a word, {self.word!r}, and other brackets")
        if not self.children:
            raise TreeError(f"{self.place}: the bracket {self.label or ''!r} is empty")
        return Tree(self.label or (ROOT_LABEL if is_outermost else ""), tuple(self.children))

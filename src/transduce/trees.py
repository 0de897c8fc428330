"""Constituency trees in Penn brackets: ``(S (NP (DT the) (NN dog)) (VP (VBZ sleeps)))``."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from transduce.errors import TreeError, quoted
from transduce.patterns import compiled_on_use

__all__ = [
    "ROOT_LABEL", "TRACE", "Tree", "escape_brackets", "parse_tree", "parse_trees", "parse_wordless_trees", "plain",
    "sentence_of_words", "split_words", "tree_or_none", "unescaped", "without_function_tags",
]  # fmt: skip

ROOT_LABEL, TRACE = "TOP", "-NONE-"
ESCAPE_HINT = "written -LRB- and -RRB-"
MAX_OPEN_BRACKETS = 1_000_000  # nesting limit: bounds the memory that malformed input can take
ROOT_LABELS = frozenset({"ROOT", "S1", ROOT_LABEL})  # labels of the outermost bracket in treebanks and parser output


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Tree:
    """A tree node: a label with children, or a part-of-speech tag with one word.

    No method is recursive, since parser output may nest thousands of brackets.
    """

    label: str
    children: tuple[Tree, ...] = ()
    word: str | None = None

    def __post_init__(self) -> None:
        if (self.word is None) == (not self.children):
            raise TreeError(
                f"a tree node needs children or a word, not both or neither; got label {quoted(self.label)}"
            )

    def __str__(self) -> str:
        """Return the tree in Penn brackets on one line."""
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

    def __repr__(self) -> str:
        return f"<Tree {self}>"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Tree) and self._shape() == other._shape()

    def __hash__(self) -> int:
        return hash(self._shape())

    def _shape(self) -> tuple[tuple[str, int, str | None], ...]:
        return tuple((node.label, len(node.children), node.word) for node in self.nodes())

    def nodes(self) -> Iterator[Tree]:
        """Yield all nodes in pre-order."""
        stack = [self]
        while stack:
            node = stack.pop()
            yield node
            stack.extend(reversed(node.children))

    def leaves(self) -> Iterator[Tree]:
        """Yield the part-of-speech nodes from left to right.

        >>> [leaf.word for leaf in parse_tree("(S (NP (PRP He)) (VP (VBZ runs)))").leaves()]
        ['He', 'runs']
        """
        return (node for node in self.nodes() if node.word is not None)

    def words(self) -> list[str]:
        """Return the words of the leaves from left to right."""
        return [leaf.word for leaf in self.leaves() if leaf.word is not None]


def parse_tree(text: str) -> Tree:
    """Parse one bracketed tree; the outermost label may be missing, as in Penn Treebank files.

    Raises TreeError, with line and column, if the text is not exactly one tree.

    >>> parse_tree("( (S (VP (VB Go))))").children
    (<Tree (S (VP (VB Go)))>,)
    """
    tokens = _tokens(text.split("\n"))
    tree = next(_brackets(tokens, is_strict=True), None)
    if tree is None:
        raise TreeError("line 1, column 1: expected '(', got nothing")
    another = next(tokens, None)
    if another is not None:
        token, location = another
        raise TreeError(f"{location}: the tree has ended, got {quoted(token)}")
    return tree


def parse_trees(lines: Iterable[str]) -> Iterator[Tree]:
    """Yield the trees of a file; line breaks do not matter. Raises TreeError, with line and column.

    >>> [str(tree) for tree in parse_trees(["( (S (VB Go)))  (S", "  (VB Stop))"])]
    ['( (S (VB Go)))', '(S (VB Stop))']
    """
    return filter(None, _brackets(_tokens(lines), is_strict=True))


def parse_wordless_trees(lines: Iterable[str], *, first_line: int = 1) -> Iterator[Tree | None]:
    """Yield the trees of a file without their empty brackets; None for a tree with no words at all.

    >>> list(parse_wordless_trees(["(TOP (S (NP) (VB Go)))", "(TOP )"]))
    [<Tree (TOP (S (VB Go)))>, None]
    """
    return _brackets(_tokens(lines, first_line), is_strict=False)


def tree_or_none(line: str, *, number: int = 1) -> Tree | None:
    """Parse one line for PARSEVAL; None for a line without words, such as "", "()" or "(TOP )".

    Several trees side by side are joined under a ``TOP`` node, which PARSEVAL does not count.
    Raises TreeError, with the column and the line's ``number``, if brackets do not match.
    """
    trees = [tree for tree in parse_wordless_trees([line], first_line=number) if tree is not None]
    if len(trees) > 1:
        return Tree(ROOT_LABEL, tuple(trees))
    return trees[0] if trees else None


def plain(tree: Tree) -> Tree:
    """Return the tree as used in training and evaluation: root ``TOP``, no function tags, traces or empty brackets.

    Brackets without a label are replaced by their children. Raises TreeError if nothing is left.

    >>> str(plain(parse_tree("( (S (NP-SBJ-1 (-NONE- *)) (VP=2 (VB Go) (PRT (RP on)))))")))
    '(TOP (S (VP (VB Go) (PRT (RP on)))))'
    """
    kept = _normalised(tree)
    while len(kept) == 1 and kept[0].word is None and kept[0].label in ROOT_LABELS:
        kept = kept[0].children
    if not kept:
        raise TreeError("the tree holds nothing but traces")
    return Tree(ROOT_LABEL, kept)


def _normalised(tree: Tree) -> tuple[Tree, ...]:
    """Remove function tags, traces and brackets without a label; the result is any number of trees."""
    done: list[list[Tree]] = [[]]  # normalised children of each open node, outermost first
    stack: list[tuple[Tree, bool]] = [(tree, False)]
    while stack:
        node, is_visited = stack.pop()
        if is_visited:
            children = tuple(done.pop())
            label = without_function_tags(node.label)
            done[-1] += [Tree(label, children)] if children and label else children
        elif node.word is not None:
            if node.label != TRACE:
                done[-1].append(node)
        else:
            done.append([])
            stack.append((node, True))
            stack.extend((child, False) for child in reversed(node.children))
    return tuple(done[0])


def without_function_tags(label: str) -> str:
    """Return a label up to the first ``-`` or ``=``; a label that starts with one is unchanged.

    >>> without_function_tags("NP-SBJ-1"), without_function_tags("VP=2"), without_function_tags("-LRB-")
    ('NP', 'VP', '-LRB-')
    """
    return re.split("[-=]", label, maxsplit=1)[0] or label


_CHARACTER_OF = {
    "-LRB-": "(", "-RRB-": ")", "-LSB-": "[", "-RSB-": "]", "-LCB-": "{", "-RCB-": "}", "\\/": "/", "\\*": "*",
}  # fmt: skip


def escape_brackets(word: str) -> str:
    """Escape the round brackets in a word, which would otherwise be read as tree brackets.

    >>> escape_brackets("("), escape_brackets("f(x)"), escape_brackets("[")
    ('-LRB-', 'f-LRB-x-RRB-', '[')
    """
    return word.replace("(", "-LRB-").replace(")", "-RRB-")


def unescaped(word: str) -> str:
    r"""Undo the Penn Treebank's escapes in a word.

    >>> unescaped("-LRB-"), unescaped("-LCB-"), unescaped(r"1\/2")
    ('(', '{', '1/2')
    """
    return re.sub(r"-[LR][RSC]B-|\\[/*]", lambda escape: _CHARACTER_OF[escape.group()], word)


def sentence_of_words(words: Iterable[str]) -> str:
    r"""Join the words of a tree with spaces, unescaped, so that splitting on whitespace gives the same number of words.

    Unicode whitespace inside a word is removed; a word of nothing but whitespace becomes U+FFFD.

    >>> sentence_of_words(["about", "10\u00a0000", "\u00a0", "dogs"])
    'about 10000 \ufffd dogs'
    """
    return " ".join("".join(unescaped(word).replace("\0", "").split()) or "\ufffd" for word in words)


def split_words(line: str) -> list[str]:
    """Split on ASCII whitespace; other whitespace, as in ``10 000``, is part of a word.

    >>> split_words(" about 10\u00a0000 dogs")
    ['about', '10\xa0000', 'dogs']
    """
    return _WORD.findall(line)


_WORD = compiled_on_use(r"\S+", re.ASCII)
_TOKEN = compiled_on_use(r"[()]|[^\s()]+", re.ASCII)


def _tokens(lines: Iterable[str], first_line: int = 1) -> Iterator[tuple[str, str]]:
    """Yield brackets and words, each with its location: "line 1, column 1"."""
    for number, line in enumerate(lines, start=first_line):
        for match in _TOKEN.finditer(line):
            yield match.group(), f"line {number}, column {match.start() + 1}"


def _brackets(tokens: Iterator[tuple[str, str]], *, is_strict: bool) -> Iterator[Tree | None]:
    """Yield each tree as soon as its last bracket is read.

    Unless ``is_strict``, brackets without words are dropped, and None is yielded for a tree without words.
    """
    open_nodes: list[_OpenNode] = []
    for token, location in tokens:
        if token == "(":
            if len(open_nodes) == MAX_OPEN_BRACKETS:
                raise TreeError(f"{location}: more than {MAX_OPEN_BRACKETS:,} open brackets, the nesting limit")
            open_nodes.append(_OpenNode(location))
        elif not open_nodes:
            raise TreeError(f"{location}: expected '(', got {quoted(token)} outside of all brackets")
        elif token != ")":
            open_nodes[-1].add_token(token, location)
        else:
            closed = open_nodes.pop()
            node = closed.as_tree(is_strict=is_strict)
            if not open_nodes:
                yield node
            else:
                open_nodes[-1].has_brackets = True
                open_nodes[-1].children += [] if node is None else [node]
    if open_nodes:
        raise TreeError(f"{open_nodes[-1].location}: the bracket {quoted(open_nodes[-1].label)} is never closed")


class _OpenNode:
    """An opened bracket that is not closed yet."""

    def __init__(self, location: str) -> None:
        self.location = location
        self.label = ""
        self.word: str | None = None
        self.children: list[Tree] = []
        self.has_brackets = False  # also true after an empty bracket, which adds no child

    def add_token(self, token: str, location: str) -> None:
        """Set the label or the word."""
        if not self.label and not self.has_brackets:
            self.label = token
        elif self.word is None and not self.has_brackets:
            self.word = token
        else:
            raise TreeError(f"{location}: expected '(' or ')', got {quoted(token)}")

    def as_tree(self, *, is_strict: bool) -> Tree | None:
        """Return the node of the closed bracket; None if it holds no word."""
        if self.word is not None and self.has_brackets:
            raise TreeError(
                f"{self.location}: the bracket {quoted(self.label)} has a word, {quoted(self.word)}, and other brackets"
            )
        if self.word is not None:
            return Tree(self.label, word=self.word)
        if self.children:
            return Tree(self.label, tuple(self.children))
        if is_strict:
            raise TreeError(
                f"{self.location}: the bracket {quoted(self.label)} is empty; brackets that are words are {ESCAPE_HINT}"
            )
        return None

"""Constituency trees in Penn brackets: ``(S (NP (DT the) (NN dog)) (VP (VBZ sleeps)))``."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from transduce.errors import TreeError

__all__ = ["Tree", "parse_tree"]


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
        inside = self.word if self.word is not None else " ".join(map(str, self.children))
        return f"({self.label} {inside})"

    def leaves(self) -> Iterator[Tree]:
        """The parts of speech, from left to right.

        >>> [leaf.word for leaf in parse_tree("(S (NP (PRP He)) (VP (VBZ runs)))").leaves()]
        ['He', 'runs']
        """
        if self.word is not None:
            yield self
        for child in self.children:
            yield from child.leaves()


_TOKEN = re.compile(r"[()]|[^\s()]+")


def parse_tree(text: str) -> Tree:
    """Read one bracketed tree; an empty outer label, as in the treebank's files, becomes ``TOP``.

    Raises TreeError, with the column, where the brackets do not make one tree.

    >>> str(parse_tree("( (S (VP (VB Go))))"))
    '(TOP (S (VP (VB Go))))'
    """
    open_nodes: list[tuple[str, list[Tree], int]] = []
    tokens = [(match.group(), match.start() + 1) for match in _TOKEN.finditer(text)]
    position = 0
    while position < len(tokens):
        token, column = tokens[position]
        position += 1
        if token == "(":
            label = ""
            if position < len(tokens) and tokens[position][0] not in "()":
                label = tokens[position][0]
                position += 1
            open_nodes.append((label or "TOP", [], column))
            if position + 1 < len(tokens) and tokens[position][0] not in "()" and tokens[position + 1][0] == ")":
                label, _, _ = open_nodes.pop()
                node = Tree(label, word=tokens[position][0])
                position += 2
            else:
                continue
        elif token == ")" and open_nodes:
            label, children, opened_at = open_nodes.pop()
            if not children:
                raise TreeError(f"column {opened_at}: the bracket {label!r} is empty")
            node = Tree(label, tuple(children))
        else:
            raise TreeError(f"column {column}: expected '(', got {token!r}")
        if open_nodes:
            open_nodes[-1][1].append(node)
        elif position < len(tokens):
            raise TreeError(f"column {tokens[position][1]}: the tree has ended, got {tokens[position][0]!r}")
        else:
            return node
    if open_nodes:
        raise TreeError(f"column {open_nodes[-1][2]}: the bracket {open_nodes[-1][0]!r} is never closed")
    raise TreeError("column 1: expected '(', got nothing")

"""More training trees of those at hand: phrases and words change places with others of their kind. For section 6.3.

A parser that is trained on a few thousand sentences learns them by heart. Here it meets the same phrases in other
sentences and other words in the same phrases, so that it has to learn what they have in common. Such sentences seldom
mean anything; their trees are right by and large. After Shi, Livescu and Gimpel (2021), "Substructure Substitution:
Structured Data Augmentation for NLP", who exchange phrases of one label.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import NamedTuple

from transduce.trees import Tree

__all__ = ["substitute_subtrees"]


class _Kind(NamedTuple):
    """Nodes of one kind may stand in each other's place."""

    label: str
    label_above: str
    size: int  # how often its words can be halved: of about the same length
    is_first: bool  # its sentence begins with it, in capitals


class _Place(NamedTuple):
    """A node of a tree, in a list of them all, each before its children."""

    node: Tree
    above: int  # the place of the node that it is a child of; -1 for the root
    kind: _Kind
    is_all: bool  # no word of the sentence is elsewhere


_Nodes = Mapping[_Kind, Sequence[Tree]]


def substitute_subtrees(trees: Sequence[Tree], *, p_exchange: float, n_copies: int, seed: int) -> Iterator[Tree]:
    """``n_copies`` of all the trees: from the root down, each node that is not the whole sentence gives its place, with
    a probability of ``p_exchange``, to one drawn from all nodes of its kind, and what has taken a place stays as it is.

    All trees are held in memory.

    >>> from transduce.trees import parse_tree
    >>> trees = [parse_tree(f"(TOP (S (NP (NN {n})) (VP (VB {v}))))") for n, v in (("Dogs", "bark"), ("Birds", "sing"))]
    >>> [" ".join(tree.words()) for tree in substitute_subtrees(trees, p_exchange=0.5, n_copies=1, seed=4)]
    ['Dogs bark', 'Birds bark']
    """
    places_of_trees = [_places(tree) for tree in trees]
    of_kind: dict[_Kind, list[Tree]] = defaultdict(list)
    for place in chain.from_iterable(places_of_trees):
        if not place.is_all:
            of_kind[place.kind].append(place.node)
    draw = random.Random(seed)
    for _ in range(n_copies):
        for places in places_of_trees:
            yield _exchanged(places, of_kind, p_exchange, draw)


def _exchanged(places: Sequence[_Place], of_kind: _Nodes, p_exchange: float, draw: random.Random) -> Tree:
    taken: dict[int, Tree] = {}  # by place: what stands there now
    is_left_out: set[int] = set()  # places below those that were taken
    for number, place in enumerate(places[1:], start=1):
        if place.above in taken or place.above in is_left_out:
            is_left_out.add(number)
        elif not place.is_all and draw.random() < p_exchange:
            taken[number] = draw.choice(of_kind[place.kind])
    children: list[list[Tree]] = [[] for _ in places]
    for number in range(len(places) - 1, 0, -1):  # children before the node above them, the last of them first
        if number not in is_left_out:
            node = taken.get(number) or _with_children(places[number].node, children[number])
            children[places[number].above].append(node)
    return _with_children(places[0].node, children[0])


def _with_children(node: Tree, children_reversed: Sequence[Tree]) -> Tree:
    return node if node.word is not None else Tree(node.label, tuple(reversed(children_reversed)))


def _places(tree: Tree) -> list[_Place]:
    nodes, aboves = _in_order(tree)
    n_words = [int(node.word is not None) for node in nodes]
    for number in range(len(nodes) - 1, 0, -1):
        n_words[aboves[number]] += n_words[number]
    is_first = [True] * len(nodes)
    for number, above in enumerate(aboves[1:], start=1):
        is_first[number] = is_first[above] and number == above + 1  # a first child comes next after its parent
    return [
        _Place(node, above, _Kind(node.label, nodes[above].label, size.bit_length(), first), size == n_words[0])
        for node, above, size, first in zip(nodes, aboves, n_words, is_first, strict=True)
    ]


def _in_order(tree: Tree) -> tuple[list[Tree], list[int]]:
    """All nodes, each before its children, and for each the place of the one above; -1 for the root."""
    nodes: list[Tree] = []
    aboves: list[int] = []
    stack = [(tree, -1)]
    while stack:
        node, above = stack.pop()
        stack.extend((child, len(nodes)) for child in reversed(node.children))
        nodes.append(node)
        aboves.append(above)
    return nodes, aboves

"""Subtree substitution: data augmentation for parsing (section 6.3).

A parser trained on a few thousand sentences memorises them. Replacing subtrees by others of the same kind shows it the
same phrases in other sentences and other words in the same phrases. Such sentences are seldom meaningful; their trees
are mostly right. After Shi, Livescu and Gimpel (2021), "Substructure Substitution: Structured Data Augmentation for
NLP", who exchange phrases of one label.
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
    """What nodes must have in common to be exchanged."""

    label: str
    parent_label: str
    size: int  # bit length of the number of words: nodes of one kind have about the same length
    is_first: bool  # at the start of the sentence, where the first word is capitalised


class _IndexedNode(NamedTuple):
    """Entry of the pre-order list of a tree's nodes."""

    node: Tree
    parent: int  # index of the parent; -1 for the root
    kind: _Kind
    spans_sentence: bool  # it covers all words of the sentence


_Nodes = Mapping[_Kind, Sequence[Tree]]


def substitute_subtrees(trees: Sequence[Tree], *, p_exchange: float, n_copies: int, seed: int) -> Iterator[Tree]:
    """Yield ``n_copies`` of all trees, each with random subtrees replaced by others of the same kind.

    From the root down, each node that does not span the sentence is replaced with probability ``p_exchange`` by one
    drawn uniformly from all nodes of its kind; inserted subtrees are not changed again. All trees are held in memory.

    >>> from transduce.trees import parse_tree
    >>> trees = [parse_tree(f"(TOP (S (NP (NN {n})) (VP (VB {v}))))") for n, v in (("Dogs", "bark"), ("Birds", "sing"))]
    >>> [" ".join(tree.words()) for tree in substitute_subtrees(trees, p_exchange=0.5, n_copies=1, seed=4)]
    ['Dogs bark', 'Birds bark']
    """
    indexed_trees = [_indexed_nodes(tree) for tree in trees]
    nodes_of_kind: dict[_Kind, list[Tree]] = defaultdict(list)
    for each in chain.from_iterable(indexed_trees):
        if not each.spans_sentence:
            nodes_of_kind[each.kind].append(each.node)
    rng = random.Random(seed)
    for _ in range(n_copies):
        for nodes in indexed_trees:
            yield _substituted(nodes, nodes_of_kind, p_exchange, rng)


def _substituted(nodes: Sequence[_IndexedNode], nodes_of_kind: _Nodes, p_exchange: float, rng: random.Random) -> Tree:
    replacements: dict[int, Tree] = {}  # by index of the replaced node
    removed: set[int] = set()  # indices below replaced nodes
    for index, each in enumerate(nodes[1:], start=1):
        if each.parent in replacements or each.parent in removed:
            removed.add(index)
        elif not each.spans_sentence and rng.random() < p_exchange:
            replacements[index] = rng.choice(nodes_of_kind[each.kind])
    children: list[list[Tree]] = [[] for _ in nodes]
    for index in range(len(nodes) - 1, 0, -1):  # children before their parent, the last child first
        if index not in removed:
            node = replacements.get(index) or _with_children(nodes[index].node, children[index])
            children[nodes[index].parent].append(node)
    return _with_children(nodes[0].node, children[0])


def _with_children(node: Tree, children_reversed: Sequence[Tree]) -> Tree:
    return node if node.word is not None else Tree(node.label, tuple(reversed(children_reversed)))


def _indexed_nodes(tree: Tree) -> list[_IndexedNode]:
    nodes, parents = _pre_order(tree)
    n_words = [int(node.word is not None) for node in nodes]
    for index in range(len(nodes) - 1, 0, -1):
        n_words[parents[index]] += n_words[index]
    is_first = [True] * len(nodes)
    for index, parent in enumerate(parents[1:], start=1):
        is_first[index] = is_first[parent] and index == parent + 1  # in pre-order a first child follows its parent
    return [
        _IndexedNode(node, parent, _Kind(node.label, nodes[parent].label, size.bit_length(), first), size == n_words[0])
        for node, parent, size, first in zip(nodes, parents, n_words, is_first, strict=True)
    ]


def _pre_order(tree: Tree) -> tuple[list[Tree], list[int]]:
    """Return all nodes in pre-order, and the index of each node's parent (-1 for the root)."""
    nodes: list[Tree] = []
    parents: list[int] = []
    stack = [(tree, -1)]
    while stack:
        node, parent = stack.pop()
        stack.extend((child, len(nodes)) for child in reversed(node.children))
        nodes.append(node)
        parents.append(parent)
    return nodes, parents

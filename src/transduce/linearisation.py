"""Trees as sequences of symbols and back: what a parser reads and writes. Section 6.3, after Vinyals et al. (2015).

The source is the words. The target is a walk through the tree, depth first: an opening bracket with its label, a tag in
the place of each word, a closing bracket with the label of the one that it closes. The outermost TOP is left out.

    He runs    (S (NP PRP )NP (VP VBZ )VP )S

``leaves`` choose what stands in the place of a word. Vinyals et al. normalise tags to XX, which leaves a model nothing
to know a word by but how many came before. With "endings" it is XX and the last letters of the word, which the model
finds in its source: it learns sooner where in the sentence it is, and says no more than with XX.

    He runs    (S (NP XX~he )NP (VP XX~ns )VP )S

Deviates: the authors' code writes ``S`` and ``/S`` for the brackets. With ``(S`` and ``)S``, as Vinyals et al. have it,
a tag is never taken for a bracket, so that every tree comes back as it was.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal, assert_never

from transduce.errors import TreeError, quoted
from transduce.trees import ROOT_LABEL, Tree, unescaped

__all__ = [
    "ANY_TAG",
    "ENDING_MARK",
    "PUNCTUATION_TAGS",
    "Leaves",
    "delinearise",
    "ending_token",
    "leaf_token",
    "linearise",
    "max_opening_run",
    "repair",
    "tag_of",
]  # fmt: skip

# What stands in the place of a word that is no punctuation: its tag; XX for all; or XX with the end of the word.
Leaves = Literal["tags", "any", "endings"]

ANY_TAG = "XX"
ENDING_MARK = f"{ANY_TAG}~"
N_LETTERS_OF_ENDING = 2
# PARSEVAL leaves out words with these tags, so a parser must say which they are even where other tags are not told.
PUNCTUATION_TAGS = frozenset({",", ":", "``", "''", "."})
# What a repair puts round words for which there is no bracket at all.
UNKNOWN_PHRASE = "X"


def linearise(tree: Tree, *, leaves: Leaves = "tags") -> list[str]:
    """The symbols of a tree whose root is TOP.

    >>> from transduce.trees import parse_tree
    >>> " ".join(linearise(parse_tree("(TOP (S (NP (PRP He)) (VP (VBZ runs)) (. .)))"), leaves="any"))
    '(S (NP XX )NP (VP XX )VP . )S'
    """
    tokens: list[str] = []
    stack: list[Tree | str] = list(reversed(tree.children))
    while stack:
        node = stack.pop()
        if isinstance(node, str):
            tokens.append(node)
        elif node.word is not None:
            tokens.append(leaf_token(node.label, node.word, leaves))
        else:
            tokens.append(f"({node.label}")
            stack.append(f"){node.label}")
            stack.extend(reversed(node.children))
    return tokens


def max_opening_run(tree: Tree) -> int:
    """How many brackets open before a word, or after one, at most; the outermost TOP is none.

    >>> from transduce.trees import parse_tree
    >>> max_opening_run(parse_tree("(TOP (S (NP (NN dog)) (VP (VB go))))"))
    2
    """
    most = n = 0
    for token in linearise(tree):
        n = n + 1 if token.startswith("(") else 0
        most = max(most, n)
    return most


def leaf_token(tag: str, word: str, leaves: Leaves) -> str:
    """What stands in the place of a word; for punctuation, always its tag.

    >>> [leaf_token("NN", "dog", leaves) for leaves in ("tags", "any", "endings")], leaf_token(",", ",", "endings")
    (['NN', 'XX', 'XX~og'], ',')
    """
    if leaves == "tags" or tag in PUNCTUATION_TAGS:
        return tag
    match leaves:
        case "any":
            return ANY_TAG
        case "endings":
            return ending_token(word)
        case _:
            assert_never(leaves)


def ending_token(word: str) -> str:
    """XX and the last letters of a word: small, each digit 0, what is not ASCII a question mark.

    >>> [ending_token(word) for word in ("Sleeping", "I", "1984", "caf\u00e9", "n't")]
    ['XX~ng', 'XX~i', 'XX~00', 'XX~f?', "XX~'t"]
    """
    last = unescaped(word)[-N_LETTERS_OF_ENDING:]
    return ENDING_MARK + "".join("0" if c.isdigit() else c.lower() if "!" <= c <= "~" else "?" for c in last)


def tag_of(token: str) -> str:
    """The tag that a leaf's symbol tells: itself, but for endings.

    >>> tag_of("NN"), tag_of(","), tag_of("XX~og")
    ('NN', ',', 'XX')
    """
    return ANY_TAG if token.startswith(ENDING_MARK) else token


def delinearise(tokens: Iterable[str], words: Sequence[str]) -> Tree:
    """The inverse of ``linearise``. Raises TreeError where brackets do not match, or tags and words are not as many."""
    builder = _TreeBuilder()
    left = iter(words)
    for place, token in enumerate(tokens, start=1):
        if token.startswith("("):
            builder.open(token[1:])
        elif token.startswith(")"):
            if builder.innermost != token[1:]:
                raise TreeError(f"symbol {place}, {quoted(token)}, closes {quoted(builder.innermost or 'nothing')}")
            if not builder.close():
                raise TreeError(f"symbol {place}, {quoted(token)}, closes a bracket without words")
        else:
            word = next(left, None)
            if word is None:
                raise TreeError(f"symbol {place}, {quoted(token)}, is a tag for no word; there are {len(words)}")
            builder.add(Tree(tag_of(token), word=word))
    if builder.innermost is not None:
        raise TreeError(f"the bracket {quoted(builder.innermost)} is never closed")
    missing = next(left, None)
    if missing is not None:
        raise TreeError(f"there is no tag for the word {quoted(missing)}")
    return builder.tree()


def repair(tokens: Iterable[str], words: Sequence[str], known: Sequence[str | None] | None = None) -> Tree:
    """A tree over all of the words, whatever the symbols: the tree they say, where they say one.

    A closing bracket closes the innermost one of its label with all that is open inside it, or nothing; brackets
    without words go; surplus tags go; words that are left are added where the symbols end.
    ``known``: for each word the punctuation tag that it has, XX if it has none, None if that is not known.
    Raises TreeError if there are no words.
    """
    if not words:
        raise TreeError("there is no word to make a tree of")
    builder = _TreeBuilder()
    known = known or [None] * len(words)
    n_words = 0
    for token in tokens:
        if token.startswith("("):
            builder.open(token[1:])
        elif token.startswith(")"):
            if token[1:] in builder.open_labels:
                while builder.innermost != token[1:]:
                    builder.close()
                builder.close()
        elif n_words < len(words):
            builder.add(Tree(_corrected_tag(tag_of(token), known[n_words]), word=words[n_words]))
            n_words += 1
    for place in range(n_words, len(words)):
        builder.add(Tree(known[place] or ANY_TAG, word=words[place]))
    while builder.innermost is not None:
        builder.close()
    return builder.tree()


def _corrected_tag(tag: str, known: str | None) -> str:
    """The tag of a word, where something is known of its punctuation."""
    if known is None or (known not in PUNCTUATION_TAGS and tag not in PUNCTUATION_TAGS):
        return tag
    return known


class _TreeBuilder:
    """A tree from its brackets, one after the other."""

    def __init__(self) -> None:
        self.open_labels: list[str] = []
        self._children: list[list[Tree]] = [[]]  # of the root, and of each open bracket

    @property
    def innermost(self) -> str | None:
        """The label of the innermost open bracket."""
        return self.open_labels[-1] if self.open_labels else None

    def open(self, label: str) -> None:
        self.open_labels.append(label or UNKNOWN_PHRASE)
        self._children.append([])

    def add(self, node: Tree) -> None:
        self._children[-1].append(node)

    def close(self) -> bool:
        """Close the innermost bracket; whether there was a word in it."""
        label, children = self.open_labels.pop(), self._children.pop()
        if children:
            self.add(Tree(label, tuple(children)))
        return bool(children)

    def tree(self) -> Tree:
        return Tree(ROOT_LABEL, tuple(self._children[0]))

"""Linearised trees: the parser's target sequences, and back. Section 6.3, after Vinyals et al. (2015).

The source is the words. The target is the depth-first traversal of the tree: an opening bracket with its label, a tag
for each word, and a closing bracket with the same label. The outermost TOP is omitted.

    He runs    (S (NP PRP )NP (VP VBZ )VP )S

``leaves`` selects the token that stands for a word. Vinyals et al. normalise tags to XX; the model must then count to
know which word it is at. With "endings" the token is XX and the last letters of the word. The source has these
letters, so they add no information, but the model learns sooner to track its position in the sentence.

    He runs    (S (NP XX~he )NP (VP XX~ns )VP )S

Deviates: the authors' code writes brackets as ``S`` and ``/S``. ``(S`` and ``)S``, as in Vinyals et al., cannot be
confused with tags, so every tree round-trips.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal, assert_never

from transduce.errors import TreeError, quoted
from transduce.trees import ROOT_LABEL, Tree, unescaped

__all__ = [
    "ANY_TAG", "ENDING_MARK", "PUNCTUATION_TAGS", "Leaves", "delinearise", "ending_token", "leaf_token", "linearise",
    "max_opening_run", "repair", "tag_of",
]  # fmt: skip

# The token of a word that is not punctuation: its tag, XX, or XX with the last letters of the word.
Leaves = Literal["tags", "any", "endings"]

ANY_TAG = "XX"
ENDING_MARK = f"{ANY_TAG}~"
N_LETTERS_OF_ENDING = 2
# PARSEVAL ignores words with these tags, so they are kept even when other tags become XX.
PUNCTUATION_TAGS = frozenset({",", ":", "``", "''", "."})
UNKNOWN_PHRASE = "X"  # replaces an empty label


def linearise(tree: Tree, *, leaves: Leaves = "tags") -> list[str]:
    """Return the tokens of a tree whose root is TOP.

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
    """Return the length of the longest run of opening brackets; the outermost TOP is not counted.

    >>> from transduce.trees import parse_tree
    >>> max_opening_run(parse_tree("(TOP (S (NP (NN dog)) (VP (VB go))))"))
    2
    """
    longest = n = 0
    for token in linearise(tree):
        n = n + 1 if token.startswith("(") else 0
        longest = max(longest, n)
    return longest


def leaf_token(tag: str, word: str, leaves: Leaves) -> str:
    """Return the token that stands for a word; for punctuation, always its tag.

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
    """Return XX and the last letters of a word: lower case, digits as 0, non-ASCII characters as ``?``.

    >>> [ending_token(word) for word in ("Sleeping", "I", "1984", "caf\u00e9", "n't")]
    ['XX~ng', 'XX~i', 'XX~00', 'XX~f?', "XX~'t"]
    """
    last = unescaped(word)[-N_LETTERS_OF_ENDING:]
    return ENDING_MARK + "".join("0" if c.isdigit() else c.lower() if "!" <= c <= "~" else "?" for c in last)


def tag_of(token: str) -> str:
    """Return the tag of a leaf token: XX for an ending token, else the token itself.

    >>> tag_of("NN"), tag_of(","), tag_of("XX~og")
    ('NN', ',', 'XX')
    """
    return ANY_TAG if token.startswith(ENDING_MARK) else token


def delinearise(tokens: Iterable[str], words: Sequence[str]) -> Tree:
    """Invert ``linearise``. Raises TreeError if brackets do not match or the numbers of tags and words differ."""
    builder = _TreeBuilder()
    remaining = iter(words)
    for number, token in enumerate(tokens, start=1):
        if token.startswith("("):
            builder.open(token[1:])
        elif token.startswith(")"):
            if builder.innermost != token[1:]:
                raise TreeError(f"token {number}, {quoted(token)}, closes {quoted(builder.innermost or 'nothing')}")
            if not builder.close():
                raise TreeError(f"token {number}, {quoted(token)}, closes a bracket without words")
        else:
            word = next(remaining, None)
            if word is None:
                raise TreeError(f"token {number}, {quoted(token)}, is a tag too many; there are {len(words)} words")
            builder.add(Tree(tag_of(token), word=word))
    if builder.innermost is not None:
        raise TreeError(f"the bracket {quoted(builder.innermost)} is never closed")
    missing = next(remaining, None)
    if missing is not None:
        raise TreeError(f"there is no tag for the word {quoted(missing)}")
    return builder.tree()


def repair(tokens: Iterable[str], words: Sequence[str], known: Sequence[str | None] | None = None) -> Tree:
    """Build a tree over all words from any token sequence; a valid sequence gives its own tree.

    A closing bracket closes the innermost open bracket of its label and all brackets inside it; if none is open it is
    ignored. Brackets without words and surplus tags are dropped. Words without a tag are appended at the end.
    ``known``: per word, its gold punctuation tag, XX if it is not punctuation, None if unknown.
    Raises TreeError if there are no words.
    """
    if not words:
        raise TreeError("a tree needs at least one word, got none")
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
    for i in range(n_words, len(words)):
        builder.add(Tree(known[i] or ANY_TAG, word=words[i]))
    while builder.innermost is not None:
        builder.close()
    return builder.tree()


def _corrected_tag(tag: str, known: str | None) -> str:
    """Return ``known`` if it is given and the two disagree on punctuation, else ``tag``."""
    if known is None or (known not in PUNCTUATION_TAGS and tag not in PUNCTUATION_TAGS):
        return tag
    return known


class _TreeBuilder:
    """Builds a tree bracket by bracket."""

    def __init__(self) -> None:
        self.open_labels: list[str] = []
        self._children: list[list[Tree]] = [[]]  # children of the root and of each open bracket

    @property
    def innermost(self) -> str | None:
        """Return the label of the innermost open bracket, if any."""
        return self.open_labels[-1] if self.open_labels else None

    def open(self, label: str) -> None:
        self.open_labels.append(label or UNKNOWN_PHRASE)
        self._children.append([])

    def add(self, node: Tree) -> None:
        self._children[-1].append(node)

    def close(self) -> bool:
        """Close the innermost bracket, dropping it if it is empty; return whether it held a word."""
        label, children = self.open_labels.pop(), self._children.pop()
        if children:
            self.add(Tree(label, tuple(children)))
        return bool(children)

    def tree(self) -> Tree:
        return Tree(ROOT_LABEL, tuple(self._children[0]))

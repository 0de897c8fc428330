"""Dependencies between words, derived from the constituency trees of the built-in grammar with head rules.

The head of a noun phrase is its noun, of a verb phrase its main verb (not the auxiliary), of a prepositional phrase its
preposition; the other words of a phrase depend on its head. The head rules cover the trees of the grammar, not those of
a treebank.
"""

from __future__ import annotations

from dataclasses import dataclass

from transduce.trees import Tree

__all__ = ["GOVERNORS", "Dependency", "dependencies"]


@dataclass(frozen=True, slots=True)
class Dependency:
    """A labelled dependency between two words, as positions from 0."""

    dependent: int
    governor: int
    relation: str


NOUN_PHRASES = ("NP", "NP-TMP", "WHNP")
CLAUSES = ("S", "SQ", "SBARQ", "TOP")
NOUNS = ("NN", "NNS", "NNP", "NNPS", "PRP", "EX", "WP")
VERBS = ("VB", "VBD", "VBG", "VBN", "VBP", "VBZ")

# The governor of each relation.
GOVERNORS = {
    **dict.fromkeys(("determiner", "adjective", "possessor", "prepositional phrase", "relative clause"), "noun"),
    **dict.fromkeys(("subject", "object", "auxiliary", "adverbial", "clause", "question word"), "verb"),
    **dict.fromkeys(("predicate", "particle", "subordinator"), "verb"),
    "noun": "preposition",
    "second noun": "first noun",
}

# Relation of a child to the head of its phrase, by the child's label.
IN_NOUN_PHRASES = {
    **dict.fromkeys(("DT", "PRP$", "CD", "WDT", "WHADJP"), "determiner"),
    **dict.fromkeys(("JJ", "JJR"), "adjective"),
    "PP": "prepositional phrase",
    "SBAR": "relative clause",
}
WITH_VERBS = {
    **dict.fromkeys((*VERBS, "MD", "TO"), "auxiliary"),
    **dict.fromkeys(("ADVP", "NP-TMP", "PP", "RB"), "adverbial"),
    **dict.fromkeys(("S", "SBAR"), "clause"),
    **dict.fromkeys(("WHNP", "WHADVP"), "question word"),
    "ADJP": "predicate",
    "PRT": "particle",
}


def dependencies(tree: Tree) -> list[Dependency]:
    """Return the dependencies of a tree with a named relation; punctuation, conjunctions and a few rare ones have none.

    >>> from transduce.trees import parse_tree
    >>> for each in dependencies(parse_tree("(S (NP (DT the) (NN dog)) (VP (VBZ has) (VP (VBN slept))))")):
    ...     print(each.dependent, each.governor, each.relation)
    0 1 determiner
    2 3 auxiliary
    1 3 subject
    """
    collected: list[Dependency] = []
    _head_word(tree, 0, collected)
    return collected


def _head_word(node: Tree, start: int, collected: list[Dependency]) -> int:
    """Return the position of a phrase's head word; append the dependencies inside of it to ``collected``."""
    if node.word is not None:
        return start
    words, position = [], start
    for child in node.children:
        words.append(_head_word(child, position, collected))
        position += sum(1 for _ in child.leaves())
    head = _head_child(node)
    for number, child in enumerate(node.children):
        relation = _relation(node, child, is_before_head=number < head)
        if relation is not None and number != head:
            collected.append(Dependency(words[number], words[head], relation))
    return words[head]


def _head_child(node: Tree) -> int:
    """Return the index of the child with the head word; the last child if no head rule applies."""
    labels = [child.label for child in node.children]

    def indices(*heads: str) -> list[int]:
        return [number for number, label in enumerate(labels) if label in heads]

    match node.label:
        case label if label in NOUN_PHRASES:
            candidates = indices(*NOUNS)[-1:] or indices("NP")
        case label if label in CLAUSES:
            candidates = indices("S", "SQ") or indices("VP") or indices(*VERBS)
        case "VP":
            candidates = indices("VP") or indices(*VERBS)
        case "SBAR":
            candidates = indices("S")
        case "PP":
            candidates = indices("IN", "TO")
        case "ADJP":
            candidates = indices("JJ", "JJR")
        case _:
            candidates = []
    return candidates[0] if candidates else len(labels) - 1


def _relation(phrase: Tree, child: Tree, *, is_before_head: bool) -> str | None:
    if phrase.label in NOUN_PHRASES:
        if child.label == "NP":
            return "possessor" if is_before_head else "second noun"
        return IN_NOUN_PHRASES.get(child.label)
    if phrase.label in (*CLAUSES, "VP"):
        if child.label == "NP":
            return "object" if phrase.label == "VP" else "subject"
        return WITH_VERBS.get(child.label)
    if phrase.label == "PP":
        return "noun"
    if phrase.label == "SBAR":
        return "subordinator"
    return None

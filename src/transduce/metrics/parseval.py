"""PARSEVAL: labelled bracket precision, recall and F1 of parse trees.

The rules are those of EVALB with its parameter file COLLINS.prm, as reported for the Wall Street Journal (section 6.3,
Table 4). A sentence whose words, in form NFC, differ between the files is an *error* and excluded from all totals, so
F1 values are comparable only if there are no errors.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from transduce.composition import composed
from transduce.errors import DataError, TreeError
from transduce.linearisation import PUNCTUATION_TAGS
from transduce.trees import ROOT_LABEL, TRACE, Tree

__all__ = [
    "DROPPED_LABELS", "Parseval", "SentenceScore", "Status", "Totals", "constituent_label", "detail_lines",
    "parseval",
]  # fmt: skip

Status = Literal["valid", "skipped", "error"]  # skipped: no test words; error: malformed, or other words

# Words and constituents with these labels are ignored; in each file, that file's own labels decide.
DROPPED_LABELS = PUNCTUATION_TAGS | {ROOT_LABEL, TRACE}
EQUAL_LABELS = {"PRT": "ADVP"}
SHORT_LENGTH = 40  # words, including punctuation


@dataclass(frozen=True, slots=True)
class SentenceScore:
    """The counts of one sentence; a skipped sentence or an error has only ``length`` and ``n_words``."""

    length: int  # words of the gold tree without traces, including punctuation
    status: Status
    n_matched: int = 0
    n_gold: int = 0  # constituents of the gold tree
    n_test: int = 0  # constituents of the test tree
    n_crossing: int = 0  # test constituents that cross a gold one
    n_words: int = 0  # without ignored words
    n_right_tags: int = 0

    @property
    def recall(self) -> float:
        """Labelled recall in percent."""
        return _percent(self.n_matched, self.n_gold)

    @property
    def precision(self) -> float:
        """Labelled precision in percent."""
        return _percent(self.n_matched, self.n_test)

    @property
    def is_complete(self) -> bool:
        """Whether the constituents match completely."""
        return self.n_matched == self.n_gold == self.n_test

    def as_json(self) -> dict[str, Any]:
        """Return the entry of ``transduce parseval --details --json``."""
        return {
            "length": self.length,
            "status": self.status,
            "recall": self.recall,
            "precision": self.precision,
            "matched": self.n_matched,
            "gold": self.n_gold,
            "test": self.n_test,
            "crossing": self.n_crossing,
            "words": self.n_words,
            "correct_tags": self.n_right_tags,
        }


@dataclass(frozen=True, slots=True)
class Totals:
    """Corpus-level figures over the valid sentences: percentages, except ``average_crossing`` and the counts."""

    recall: float
    precision: float
    f1: float
    complete_match: float
    average_crossing: float  # crossing brackets per sentence
    no_crossing: float
    two_or_less_crossing: float
    tagging_accuracy: float | None  # None: the trees have no tags to evaluate
    valid: int
    skipped: int
    errors: int

    @staticmethod
    def from_sentences(sentences: Iterable[SentenceScore]) -> Totals:
        """Compute the totals of some sentences."""
        sentences = list(sentences)
        valid = [each for each in sentences if each.status == "valid"]
        matched, gold, test = (sum(getattr(each, name) for each in valid) for name in ("n_matched", "n_gold", "n_test"))
        recall, precision = _percent(matched, gold), _percent(matched, test)
        return Totals(
            recall=recall,
            precision=precision,
            f1=2 * recall * precision / (recall + precision) if recall + precision else 0.0,
            complete_match=_percent(sum(each.is_complete for each in valid), len(valid)),
            average_crossing=sum(each.n_crossing for each in valid) / max(1, len(valid)),
            no_crossing=_percent(sum(each.n_crossing == 0 for each in valid), len(valid)),
            two_or_less_crossing=_percent(sum(each.n_crossing <= 2 for each in valid), len(valid)),
            tagging_accuracy=_percent(sum(each.n_right_tags for each in valid), sum(each.n_words for each in valid)),
            valid=len(valid),
            skipped=sum(each.status == "skipped" for each in sentences),
            errors=sum(each.status == "error" for each in sentences),
        )


@dataclass(frozen=True, slots=True)
class Parseval:
    """The evaluation of a test file: totals over all and over short sentences (at most 40 words), and each sentence."""

    all: Totals
    length_40: Totals
    sentences: tuple[SentenceScore, ...]

    def without_tags(self) -> Parseval:
        """Return the result without tagging accuracy, for trees whose tags are all XX."""
        totals, short_totals = (replace(each, tagging_accuracy=None) for each in (self.all, self.length_40))
        return Parseval(totals, short_totals, self.sentences)


def parseval(gold: Sequence[Tree | None], test: Sequence[Tree | TreeError | None]) -> Parseval:
    """Compare trees one by one; None is a line without a tree, a TreeError a malformed one, which counts as an error.

    Raises DataError if the numbers of trees differ.

    >>> from transduce.trees import parse_tree
    >>> gold = parse_tree("(TOP (S (NP (DT a) (NN dog)) (VP (VBZ sleeps)) (. .)))")
    >>> test = parse_tree("(TOP (S (NP (DT a) (NN dog)) (ADVP (VBZ sleeps)) (. .)))")
    >>> round(parseval([gold], [test]).all.f1, 2)
    66.67
    """
    if len(gold) != len(test):
        raise DataError(f"{len(gold):,} gold trees but {len(test):,} test trees; they must align line by line")
    sentences = tuple(map(_compare, gold, test))
    short = (each for each in sentences if each.length <= SHORT_LENGTH)
    return Parseval(Totals.from_sentences(sentences), Totals.from_sentences(short), sentences)


def constituent_label(label: str) -> str:
    """Return a label as it is compared: up to the first ``-`` or ``=``, with PRT as ADVP.

    >>> constituent_label("NP-SBJ-1"), constituent_label("PRT")
    ('NP', 'ADVP')
    """
    prefix = re.split("[-=]", label, maxsplit=1)[0]
    return EQUAL_LABELS.get(prefix, prefix)


@dataclass(frozen=True, slots=True)
class _Brackets:
    """What is compared of a tree: words that are not ignored, their tags, constituents in order of opening."""

    words: tuple[str, ...]
    tags: tuple[str, ...]
    constituents: tuple[tuple[str, int, int], ...]  # label, start and end (exclusive) in words
    length: int

    @staticmethod
    def from_tree(tree: Tree | None) -> _Brackets:
        leaves = list(tree.leaves()) if tree is not None else []
        kept = [leaf for leaf in leaves if leaf.label not in DROPPED_LABELS]
        return _Brackets(
            words=tuple(composed(leaf.word or "") for leaf in kept),
            tags=tuple(EQUAL_LABELS.get(leaf.label, leaf.label) for leaf in kept),
            constituents=() if tree is None else tuple(_constituents(tree)),
            length=sum(leaf.label != TRACE for leaf in leaves),
        )


def _constituents(tree: Tree) -> list[tuple[str, int, int]]:
    """Return the constituents that cover a word and have no dropped label. Not recursive, since trees may be deep."""
    spans: list[tuple[str, int, int]] = []
    n_kept = 0
    stack: list[tuple[Tree, int | None]] = [(tree, None)]  # a node, and its index in ``spans`` once opened
    while stack:
        node, index = stack.pop()
        if index is not None:
            label, start, _ = spans[index]
            spans[index] = (label, start, n_kept)
        elif node.word is not None:
            n_kept += node.label not in DROPPED_LABELS
        else:
            stack.append((node, len(spans)))
            spans.append((constituent_label(node.label), n_kept, n_kept))
            stack.extend((child, None) for child in reversed(node.children))
    return [(label, start, end) for label, start, end in spans if start < end and label not in DROPPED_LABELS]


def _compare(gold_tree: Tree | None, test_tree: Tree | TreeError | None) -> SentenceScore:
    gold = _Brackets.from_tree(gold_tree)
    test = None if isinstance(test_tree, TreeError) else _Brackets.from_tree(test_tree)
    if test is None or (test.words and test.words != gold.words):
        return SentenceScore(gold.length, "error", n_words=len(gold.words))
    if not test.words:
        return SentenceScore(gold.length, "skipped", n_words=len(gold.words))
    matched = Counter(gold.constituents) & Counter(test.constituents)
    innermost = _innermost_spans(gold.constituents, n_words=len(gold.words))
    return SentenceScore(
        length=gold.length,
        status="valid",
        n_matched=matched.total(),
        n_gold=len(gold.constituents),
        n_test=len(test.constituents),
        n_crossing=sum(_crosses(start, end, innermost) for _, start, end in test.constituents),
        n_words=len(gold.words),
        n_right_tags=sum(a == b for a, b in zip(gold.tags, test.tags, strict=True)),
    )


def _innermost_spans(constituents: Iterable[tuple[str, int, int]], *, n_words: int) -> list[tuple[int, int]]:
    """For each gap between words, return the smallest constituent that spans it."""
    opening: list[list[int]] = [[] for _ in range(n_words + 1)]
    for _, start, end in constituents:
        opening[start].append(end)
    whole = (0, n_words)
    innermost = [whole] * (n_words + 1)
    nested: list[tuple[int, int]] = []  # open constituents, outermost first
    for gap in range(1, n_words):
        nested += [(gap - 1, end) for end in sorted(opening[gap - 1], reverse=True)]
        while nested and nested[-1][1] <= gap:
            nested.pop()
        innermost[gap] = nested[-1] if nested else whole
    return innermost


def _crosses(start: int, end: int, innermost: Sequence[tuple[int, int]]) -> bool:
    """Return whether a span crosses a gold constituent: they overlap and neither contains the other.

    It is enough to check the innermost constituents that span its two ends.
    """
    return innermost[start][1] < end or innermost[end][0] > start


def _percent(part: float, whole: float) -> float:
    return 100 * part / whole if whole else 0.0


def detail_lines(sentences: Sequence[SentenceScore]) -> Iterator[str]:
    """Yield a table for display: a header, then one line per sentence.

    >>> print("\\n".join(detail_lines([SentenceScore(3, "valid", 1, 2, 1, 0, 3, 3)])))
    sentence  length  status   recall  precision  matched  gold  test  crossing  words  correct tags
           1       3  valid     50.00     100.00        1     2     1         0      3             3
    """
    yield "sentence  length  status   recall  precision  matched  gold  test  crossing  words  correct tags"
    for number, each in enumerate(sentences, start=1):
        yield (
            f"{number:>8}  {each.length:>6}  {each.status:<7} {each.recall:>7.2f}  {each.precision:>9.2f}"
            f"  {each.n_matched:>7}  {each.n_gold:>4}  {each.n_test:>4}  {each.n_crossing:>8}  {each.n_words:>5}"
            f"  {each.n_right_tags:>12}"
        )

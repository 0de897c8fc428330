"""Heads that follow structure: how often each looks at the word that the built-in grammar's trees join with another."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from transduce.config import Split
from transduce.corpora import generate_pairs
from transduce.paper.attention.dependencies import GOVERNORS, dependencies
from transduce.paper.attention.heads import Exam, Finding, Question, find_head, greatest_other
from transduce.paper.attention.word_attention import attention_between_words, untrained
from transduce.paper.report import Cell, Table
from transduce.tasks import Translator
from transduce.trees import Tree, parse_tree

__all__ = ["ABOUT_SEARCH", "StructureFinding", "find_structure", "questions_of", "structure_table"]

LEAST_QUESTIONS = 20  # a relation with fewer, to choose a head by or to measure it, is left out
SEED = 1

ABOUT_SEARCH = (
    "The sentences are of the built-in grammar, whose trees say which word depends on which. A head's answer is the"
    " other word that it looks at most, the end symbol left out. Heads and rules are chosen on one half of the"
    " sentences, and measured on the other. A rule looks at no word: it always names the word so many places before or"
    " after, or the one at a fixed place. Untrained: the same search in the same model before training."
)


@dataclass(frozen=True, slots=True)
class StructureFinding:
    """The head that follows one relation best, and what the same search finds where nothing is learned."""

    name: str  # "determiner → noun"
    trained: Finding
    untrained: Finding


def find_structure(translator: Translator, *, n_sentences: int, farther_than: int = 0) -> list[StructureFinding]:
    """For each relation, in both directions, the head that follows it best; first those that are most above the rule.

    Heads and rules are chosen on ``n_sentences`` of the grammar's dev part and measured on as many of its test part.
    Only words further apart than ``farther_than`` are asked about.
    """

    def exams(each: Translator, split: Split) -> dict[str, Exam]:
        return _exams(each, split, n_sentences=n_sentences, farther_than=farther_than)

    choosing, measuring = exams(translator, "dev"), exams(translator, "test")
    blank = untrained(translator)
    blank_choosing, blank_measuring = exams(blank, "dev"), exams(blank, "test")
    found = [
        StructureFinding(
            name, find_head(choosing[name], measuring[name]), find_head(blank_choosing[name], blank_measuring[name])
        )
        for name in choosing
        if _is_enough(choosing, name) and _is_enough(measuring, name)
    ]
    return sorted(found, key=lambda each: each.trained.rule_share - each.trained.share)


def _is_enough(exams: Mapping[str, Exam], name: str) -> bool:
    return name in exams and len(exams[name].questions) >= LEAST_QUESTIONS


def _exams(translator: Translator, split: Split, *, n_sentences: int, farther_than: int) -> dict[str, Exam]:
    """By relation. Sentences that a tree cuts into other words than we do ("can not") are left out."""
    pairs = list(generate_pairs(split, n_pairs=n_sentences, seed=SEED))
    samples = attention_between_words(translator, [pair.en for pair in pairs])
    trees = [parse_tree(pair.tree) for pair in pairs]
    both = [
        (sample, tree)
        for sample, tree in zip(samples, trees, strict=True)
        if sample.words[:-1] == tuple(leaf.word for leaf in tree.leaves())
    ]
    chosen = [greatest_other(sample) for sample, _ in both]
    questions = questions_of([tree for _, tree in both], farther_than=farther_than)
    return {name: Exam(chosen, asked) for name, asked in questions.items()}


def questions_of(trees: Sequence[Tree], *, farther_than: int = 0) -> dict[str, list[Question]]:
    """What is asked of each sentence, by relation and direction.

    >>> for name, questions in questions_of([parse_tree("(S (NP (DT the) (NN dog)) (VP (VBZ sleeps)))")]).items():
    ...     print(name, [(question.word, question.answers) for question in questions])
    determiner → noun [(0, (1,))]
    subject → verb [(1, (2,))]
    noun → determiner [(1, (0,))]
    verb → subject [(2, (1,))]
    """
    questions: defaultdict[str, list[Question]] = defaultdict(list)
    dependents: defaultdict[tuple[str, int, int], list[int]] = defaultdict(list)
    for sentence, tree in enumerate(trees):
        for each in dependencies(tree):
            if abs(each.dependent - each.governor) > farther_than:
                name = f"{each.relation} → {GOVERNORS[each.relation]}"
                questions[name].append(Question(sentence, each.dependent, (each.governor,)))
                dependents[each.relation, sentence, each.governor].append(each.dependent)
    for (relation, sentence, governor), answers in dependents.items():
        questions[f"{GOVERNORS[relation]} → {relation}"].append(Question(sentence, governor, tuple(answers)))
    return dict(questions)


def structure_table(found: Sequence[StructureFinding], *, name: str) -> Table:
    """A row for each relation."""
    columns = (
        "from → to", "questions", "layer", "head", "head %", "its 95 % interval", "best rule", "rule %", "untrained %",
        "beats the rule",
    )  # fmt: skip
    rows: list[tuple[Cell, ...]] = [
        (
            each.name,
            each.trained.n_questions,
            each.trained.layer + 1,
            each.trained.head + 1,
            100 * each.trained.share,
            f"{100 * each.trained.low:.0f} to {100 * each.trained.high:.0f}",
            str(each.trained.rule),
            100 * each.trained.rule_share,
            100 * each.untrained.share,
            "yes" if each.trained.beats_rule else "no",
        )
        for each in found
    ]
    formats = dict.fromkeys(("head %", "rule %", "untrained %"), ".0f")
    return Table(name, columns, tuple(rows), formats=formats)

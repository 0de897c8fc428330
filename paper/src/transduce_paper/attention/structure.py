"""Probes of syntactic relations: how often heads attend along the dependencies of the built-in grammar."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from transduce.config import Split
from transduce.corpora import generate_pairs
from transduce.inference import Translator
from transduce.trees import Tree, parse_tree
from transduce_paper.attention.dependencies import GOVERNORS, dependencies
from transduce_paper.attention.heads import (
    BASELINES,
    HeadResult,
    Probe,
    ProbeItem,
    best_head,
    head_names,
    head_result,
    strongest_other,
)
from transduce_paper.attention.word_attention import attention_between_words, untrained
from transduce_paper.report import Cell, Table

__all__ = [
    "ABOUT_PROBES", "HeadTask", "RelationResult", "Specialist", "Structure", "comparison_text", "finding_on_relations",
    "follows_relations", "probe_relations", "probe_structure", "relation_probes", "relation_table", "specialists",
]  # fmt: skip

SPLITS: tuple[Split, ...] = ("dev", "test")  # to choose heads, and to measure them
MIN_ITEMS = 20  # relations with fewer items, to choose a head or to measure it, are left out
SEED = 1

Probes = Mapping[str, tuple[Probe, Probe]]  # relation -> dev and test

ABOUT_PROBES = (
    "The sentences come from the built-in grammar, whose trees give the dependencies. The answer of a head is"
    " the other word with its greatest weight, EOS excluded. For each relation the best head and the best position"
    " baseline are chosen on one half of the sentences and measured on the other. A position baseline ignores the"
    " words: it always names the word at one offset, or at one position of the sentence. A head beats it if the"
    " 95 % interval of the difference (Newcombe's, of Wilson's intervals) is above zero. “Untrained” is the same search"
    " in the same model at initialisation."
)


@dataclass(frozen=True, slots=True)
class RelationResult:
    """The best head for one relation, in the trained and in the untrained model."""

    name: str  # "determiner → noun"
    trained: HeadResult
    untrained: HeadResult


@dataclass(frozen=True, slots=True)
class HeadTask:
    """The relation in which a head leads the position baseline most on dev, and its result on test."""

    name: str
    result: HeadResult


@dataclass(frozen=True, slots=True)
class Specialist:
    """A head at its relation, beside another head at the same relation; both were chosen on dev."""

    name: str  # of the relation
    own: HeadResult
    other: HeadResult
    untrained_accuracy: float  # of the best head of the untrained model

    @property
    def is_better(self) -> bool:
        """Whether it is better than the other head, with intervals apart, and than the untrained model."""
        return self.own.low > max(self.other.high, self.untrained_accuracy)


@dataclass(frozen=True, slots=True)
class Structure:
    """How the heads of a model follow the relations of the grammar."""

    relations: tuple[RelationResult, ...]  # the best head of each, the largest lead over the baseline first
    heads: tuple[HeadTask, ...]  # the best relation of each, by layer and head
    n_untrained: int  # heads of the untrained model that beat the baseline at their best relation
    specialists: tuple[Specialist, ...]  # two heads, each best at a relation at which the other is worse; or none


def comparison_text(result: RelationResult) -> str:
    """Describe the head of a relation beside its baseline, as in "layer 3, head 1 finds ... in 22 % (...)"."""
    each = result.trained
    return (
        f"{result.name}, {head_names([each.index])}: {100 * each.accuracy:.0f} %"
        f" (95 % interval {100 * each.low:.0f} to {100 * each.high:.0f}) against {100 * each.baseline_accuracy:.0f} %"
        f" for “{each.baseline}”"
    )


def finding_on_relations(where: str, results: Sequence[RelationResult], between: str = "") -> str:
    """Say in how many relations a head beats the best position baseline; ``where`` begins the sentence."""
    beaten = [each for each in results if each.trained.beats_baseline]
    found = f"{where}, a head beats the best position baseline in {len(beaten)} of {len(results)} relations{between}"
    if beaten:
        return f"{found}, first of all {comparison_text(beaten[0])}."
    return f"{found}; the nearest is {comparison_text(results[0])}."


def follows_relations(results: Sequence[RelationResult]) -> bool | None:
    """Return whether heads beat their baselines in more relations than chance makes of 95 % intervals.

    None: in no more than one of twenty, unless all fall short of theirs; or no relation was probed.
    """
    if sum(each.trained.beats_baseline for each in results) > len(results) / 20:
        return True
    return False if results and all(each.trained.falls_short for each in results) else None


def probe_relations(translator: Translator, *, n_sentences: int, farther_than: int = 0) -> list[RelationResult]:
    """Return the best head for each relation, in both directions, the largest lead over the baseline first.

    Heads and baselines are chosen on ``n_sentences`` of the grammar's dev part, measured on as many of its test part.
    Only pairs of words further apart than ``farther_than`` count.
    """
    trained = _all_probes(translator, n_sentences=n_sentences, farther_than=farther_than)
    initial = _all_probes(untrained(translator), n_sentences=n_sentences, farther_than=farther_than)
    return _relations(trained, initial)


def probe_structure(translator: Translator, *, n_sentences: int) -> Structure:
    """Return the best head for each relation and the best relation of each head, as ``probe_relations`` measures."""
    trained = _all_probes(translator, n_sentences=n_sentences, farther_than=0)
    initial = _all_probes(untrained(translator), n_sentences=n_sentences, farther_than=0)
    relations = _relations(trained, initial)
    return Structure(
        relations=tuple(relations),
        heads=tuple(_tasks_of_heads(trained)),
        n_untrained=sum(each.result.beats_baseline for each in _tasks_of_heads(initial)),
        specialists=specialists(trained, relations),
    )


def _all_probes(translator: Translator, *, n_sentences: int, farther_than: int) -> dict[str, tuple[Probe, Probe]]:
    """Return the probes of all relations with enough items."""
    dev, test = (_probes(translator, split, n_sentences=n_sentences, farther_than=farther_than) for split in SPLITS)
    return {name: (dev[name], test[name]) for name in dev if _is_enough(dev, name) and _is_enough(test, name)}


def _relations(trained: Probes, initial: Probes) -> list[RelationResult]:
    results = [RelationResult(name, best_head(*trained[name]), best_head(*initial[name])) for name in trained]
    return sorted(results, key=lambda each: each.trained.baseline_accuracy - each.trained.accuracy)


def _tasks_of_heads(probes: Probes) -> list[HeadTask]:
    if not probes:
        return []
    names = list(probes)
    leads = np.stack([dev.accuracies() - _best_baseline_accuracy(dev) for dev, _ in probes.values()])
    return [
        HeadTask(name, head_result((layer, head), *probes[name]))
        for layer, head in np.ndindex(*leads.shape[1:])
        for name in [names[int(leads[:, layer, head].argmax())]]
    ]


def _best_baseline_accuracy(dev: Probe) -> float:
    return max(map(dev.baseline_accuracy, BASELINES))


def specialists(probes: Probes, relations: Sequence[RelationResult]) -> tuple[Specialist, ...]:
    """Return the two heads that differ most: each the best one at a relation at which the other is worse, on dev.

    Empty if the same head is the best at all relations.
    """
    accuracies = {each.name: probes[each.name][0].accuracies() for each in relations}

    def margin(pair: tuple[RelationResult, RelationResult]) -> float:
        """Return the smaller of the two leads on dev."""
        leads = [
            accuracies[one.name][one.trained.index] - accuracies[one.name][two.trained.index]
            for one, two in (pair, pair[::-1])
        ]
        return float(min(leads))

    pairs = [pair for pair in combinations(relations, 2) if pair[0].trained.index != pair[1].trained.index]
    if not pairs:
        return ()
    best = max(pairs, key=margin)
    return tuple(
        Specialist(one.name, one.trained, head_result(two.trained.index, *probes[one.name]), one.untrained.accuracy)
        for one, two in (best, best[::-1])
    )


def _is_enough(probes: Mapping[str, Probe], name: str) -> bool:
    return name in probes and len(probes[name].items) >= MIN_ITEMS


def _probes(translator: Translator, split: Split, *, n_sentences: int, farther_than: int) -> dict[str, Probe]:
    """Return probes by relation, without sentences whose trees have other word boundaries than ours ("can not")."""
    pairs = list(generate_pairs(split, n_pairs=n_sentences, seed=SEED))
    samples = attention_between_words(translator, [pair.en for pair in pairs])
    trees = [parse_tree(pair.tree) for pair in pairs]
    matched = [
        (sample, tree)
        for sample, tree in zip(samples, trees, strict=True)
        if sample.words[:-1] == tuple(leaf.word for leaf in tree.leaves())
    ]
    answers = [strongest_other(sample) for sample, _ in matched]
    items = relation_probes([tree for _, tree in matched], farther_than=farther_than)
    return {name: Probe(answers, each) for name, each in items.items()}


def relation_probes(trees: Sequence[Tree], *, farther_than: int = 0) -> dict[str, list[ProbeItem]]:
    """Return the probe items of each relation, in both directions.

    >>> for name, items in relation_probes([parse_tree("(S (NP (DT the) (NN dog)) (VP (VBZ sleeps)))")]).items():
    ...     print(name, [(item.word, item.targets) for item in items])
    determiner → noun [(0, (1,))]
    subject → verb [(1, (2,))]
    noun → determiner [(1, (0,))]
    verb → subject [(2, (1,))]
    """
    items: defaultdict[str, list[ProbeItem]] = defaultdict(list)
    dependents: defaultdict[tuple[str, int, int], list[int]] = defaultdict(list)
    for sentence, tree in enumerate(trees):
        for each in dependencies(tree):
            if abs(each.dependent - each.governor) > farther_than:
                name = f"{each.relation} → {GOVERNORS[each.relation]}"
                items[name].append(ProbeItem(sentence, each.dependent, (each.governor,)))
                dependents[each.relation, sentence, each.governor].append(each.dependent)
    for (relation, sentence, governor), targets in dependents.items():
        items[f"{GOVERNORS[relation]} → {relation}"].append(ProbeItem(sentence, governor, tuple(targets)))
    return dict(items)


def relation_table(results: Sequence[RelationResult], *, name: str) -> Table:
    """Return a table with one row per relation."""
    columns = (
        "query → key", "queries", "layer", "head", "accuracy %", "95 % interval", "position baseline",
        "baseline accuracy %", "untrained accuracy %", "beats the baseline",
    )  # fmt: skip
    rows: list[tuple[Cell, ...]] = [
        (
            each.name,
            each.trained.n_items,
            each.trained.layer + 1,
            each.trained.head + 1,
            100 * each.trained.accuracy,
            f"{100 * each.trained.low:.0f} to {100 * each.trained.high:.0f}",
            str(each.trained.baseline),
            100 * each.trained.baseline_accuracy,
            100 * each.untrained.accuracy,
            "yes" if each.trained.beats_baseline else "no",
        )
        for each in results
    ]
    formats = dict.fromkeys(("accuracy %", "baseline accuracy %", "untrained accuracy %"), ".0f")
    return Table(name, columns, tuple(rows), formats=formats)

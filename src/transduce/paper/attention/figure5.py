"""Figure 5: heads that follow the structure of the sentence."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from transduce.paper.attention.heads import Rule, greatest_other, steadiest_offsets
from transduce.paper.attention.scene import Scene, page_of, set_scene
from transduce.paper.attention.structure import ABOUT_SEARCH, StructureFinding, find_structure, structure_table
from transduce.paper.attention.word_attention import attention_between_words
from transduce.paper.experiments import Experiments
from transduce.paper.report import Cell, Report, Table
from transduce.paper.request import Request
from transduce.view import HeadLines, LinePanel

__all__ = ["make_figure5", "two_heads"]

N_DRAWN = 2  # as in the paper
SHORTEST = 3  # words that have a structure to speak of


def make_figure5(experiments: Experiments, request: Request) -> Report:
    """Ask every head about every relation, and draw two heads that follow different ones."""
    scene = set_scene(experiments, request)
    found = find_structure(scene.translator, n_sentences=scene.n_trees)
    chosen = [greatest_other(sample) for sample in attention_between_words(scene.translator, scene.dev)]
    drawn = two_heads(found) if scene.sentence.n_words >= SHORTEST else []
    drawings = {"figure5-all-heads": scene.grid([(each.trained.layer, each.trained.head) for each in drawn])}
    if drawn:
        drawings = {"figure5": scene.lines(*(_panel(scene, each) for each in drawn)), **drawings}
    return Report(
        "figure5",
        "Figure 5: heads that follow the structure of the sentence",
        (
            scene.about("figure5"),
            _about_drawing(scene, drawn),
            f"What heads follow, those relations first in which one is most above the best rule. {ABOUT_SEARCH}",
            structure_table(found, name="") if found else "There are too few words in any relation to ask about.",
            _verdict(found),
            f"The rival of structure is position. Over {len(chosen):,} sentences of {scene.record.dev_text}, the other"
            " word that they look at most is most often at a fixed distance in these heads:",
            _table_of_offsets(chosen),
        ),
        drawings,
        {page_of("figure5"): scene.page()},
    )


def two_heads(found: Sequence[StructureFinding]) -> list[StructureFinding]:
    """The first findings, of different heads and different relations, in the order given."""
    drawn: list[StructureFinding] = []
    for each in found:
        heads = {(one.trained.layer, one.trained.head) for one in drawn}
        relations = {frozenset(one.name.split(" → ")) for one in drawn}
        if (each.trained.layer, each.trained.head) not in heads and frozenset(each.name.split(" → ")) not in relations:
            drawn.append(each)
    return drawn[:N_DRAWN]


def _panel(scene: Scene, found: StructureFinding) -> LinePanel:
    each, sentence = found.trained, scene.sentence
    lines = HeadLines(f"head {each.head + 1}", each.head, sentence.weights[each.layer, each.head])
    title = (
        f"Layer {each.layer + 1}, head {each.head + 1}",
        found.name,
        f"{100 * each.share:.0f} % right, rule {100 * each.rule_share:.0f} %",
    )
    return LinePanel(title, sentence.words, sentence.words, (lines,))


def _about_drawing(scene: Scene, drawn: Sequence[StructureFinding]) -> str:
    if not drawn:
        return f"“{scene.text}” is too short, or has none of these relations: nothing is drawn."
    heads = "; ".join(f"layer {each.trained.layer + 1}, head {each.trained.head + 1} ({each.name})" for each in drawn)
    n_below = sum(not each.trained.beats_rule for each in drawn)
    text = (
        f"The sentence: “{scene.text}” The paper draws two heads of layer 5 of 6 that “clearly learned to perform"
        " different tasks”, and gives no numbers. Ours are those that the table below puts first, of different heads"
        f" and relations: {heads}."
    )
    if n_below:
        text += f" Of these, {n_below} of {len(drawn)} do not beat the rule: what is drawn may be position alone."
    return text


def _verdict(found: Sequence[StructureFinding]) -> str:
    n_better = sum(each.trained.beats_rule for each in found)
    return (
        f"In {n_better} of {len(found)} relations a head is above the best rule with all of its interval; one interval"
        " in twenty misses. The grammar's sentences are plainer than those that people write, and of another kind than"
        " the training text of a model that is not trained on them: its heads may follow more structure at home than"
        " here. And what a head looks at is not yet what the model uses."
    )


def _table_of_offsets(chosen: Sequence[np.ndarray]) -> Table:
    offsets, shares = steadiest_offsets(chosen)
    places = sorted(np.ndindex(*shares.shape), key=lambda place: -shares[place])[:8]
    rows: list[tuple[Cell, ...]] = [
        (layer + 1, head + 1, str(Rule("offset", int(offsets[layer, head]))), 100 * float(shares[layer, head]))
        for layer, head in places
    ]
    return Table("-positions", ("layer", "head", "looks at", "% of words"), tuple(rows), formats={"% of words": ".0f"})

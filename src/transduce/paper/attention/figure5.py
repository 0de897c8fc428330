"""Figure 5: heads that follow the structure of the sentence."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from transduce.paper.attention.heads import PositionBaseline, most_frequent_offsets, strongest_other
from transduce.paper.attention.inputs import PAGE, FigureInputs, figure_inputs
from transduce.paper.attention.structure import (
    ABOUT_PROBES,
    RelationResult,
    comparison_text,
    probe_relations,
    relation_table,
)
from transduce.paper.attention.word_attention import attention_between_words
from transduce.paper.experiments import Experiments
from transduce.paper.report import Cell, Report, Table, picture, verdict_line
from transduce.paper.request import Request
from transduce.view import HeadLines, LinePanel

__all__ = ["heads_to_draw", "make_figure5"]

N_DRAWN = 2  # as in the paper
MIN_WORDS = 3  # words of a sentence that is drawn


def make_figure5(experiments: Experiments, request: Request) -> Report:
    """Probe every head for every relation, and draw two heads of different relations."""
    inputs = figure_inputs(experiments, request)
    results = probe_relations(inputs.translator, n_sentences=inputs.n_trees)
    answers = [strongest_other(sample) for sample in attention_between_words(inputs.translator, inputs.dev)]
    drawn = heads_to_draw(results) if inputs.sentence.n_words >= MIN_WORDS else []
    drawings = {"figure5-all-heads": inputs.grid([(each.trained.layer, each.trained.head) for each in drawn])}
    pictures: list[str | Table] = []
    if drawn:
        heads = " and ".join(f"layer {each.trained.layer + 1}, head {each.trained.head + 1}" for each in drawn)
        alt = f"Encoder self-attention of two heads in the same sentence, all queries: {heads}"
        note = "For each query its three greatest weights; the stronger a line, the greater the weight."
        drawings = {"figure5": inputs.lines(*(_panel(inputs, each) for each in drawn), alt=alt, note=note), **drawings}
        pictures.append(picture("figure5", alt))
    return Report(
        "figure5",
        "Figure 5: heads that follow the structure of the sentence",
        (
            verdict_line(_verdict(inputs, results)),
            *pictures,
            *_sentence_sections(inputs, drawn),
            inputs.how_measured(),
            f"Relations, sorted by the lead of the best head over its baseline. {ABOUT_PROBES}",
            relation_table(results, name="") if results else "No relation has enough pairs of words.",
            "One interval in twenty misses the true value. The grammar's sentences are simpler than natural ones, and"
            " out of domain for a model trained on other text: its heads may follow more structure in domain. A weight"
            " shows what a head reads, not how the model uses it.",
            f"Many heads follow position instead. Over {len(answers):,} sentences of {inputs.record.dev_text}, these"
            " heads have their greatest weight, other than on the query itself and EOS, most often at one offset:",
            _table_of_offsets(answers),
            picture("figure5-all-heads", _grid_alt(inputs, drawn)),
            inputs.ending("figure5"),
        ),
        drawings,
        {PAGE: inputs.page()},
    )


def heads_to_draw(results: Sequence[RelationResult]) -> list[RelationResult]:
    """Return the first two results of different heads and different relations, in the given order."""
    drawn: list[RelationResult] = []
    for each in results:
        heads = {(one.trained.layer, one.trained.head) for one in drawn}
        relations = {frozenset(one.name.split(" → ")) for one in drawn}
        if (each.trained.layer, each.trained.head) not in heads and frozenset(each.name.split(" → ")) not in relations:
            drawn.append(each)
    return drawn[:N_DRAWN]


def _grid_alt(inputs: FigureInputs, drawn: Sequence[RelationResult]) -> str:
    return inputs.grid_alt() + ("; frames mark the heads drawn above" if drawn else "")


def _panel(inputs: FigureInputs, result: RelationResult) -> LinePanel:
    each, sentence = result.trained, inputs.sentence
    lines = HeadLines(f"head {each.head + 1}", each.head, sentence.weights[each.layer, each.head])
    title = (
        f"Layer {each.layer + 1}, head {each.head + 1}",
        f"probe: {result.name}",
        f"{100 * each.accuracy:.0f} % correct, baseline {100 * each.baseline_accuracy:.0f} %",
    )
    return LinePanel(title, sentence.words, sentence.words, (lines,))


def _sentence_sections(inputs: FigureInputs, drawn: Sequence[RelationResult]) -> list[str | Table]:
    if not drawn:
        return [f"“{inputs.text}” is too short, or has too few words in the probed relations: nothing is drawn."]
    heads = "; ".join(f"layer {each.trained.layer + 1}, head {each.trained.head + 1}" for each in drawn)
    n_below = sum(not each.trained.beats_baseline for each in drawn)
    text = (
        f"The sentence is “{inputs.text}” The drawn heads are the first two of the table below that differ in head and"
        " relation."
    )
    if n_below:
        text += f" {n_below} of {len(drawn)} do not beat the baseline: their patterns may be position alone."
    paper, ours = inputs.sizes
    comparison = Table(
        "-paper",
        ("", paper, ours),
        (
            ("heads", "two of layer 5 of 6", f"{heads} (of {inputs.sentence.weights.shape[0]} layers)"),
            ("relations", "not named", "; ".join(each.name for each in drawn)),
            ("accuracy", "not given", "; ".join(f"{100 * each.trained.accuracy:.0f} %" for each in drawn)),
        ),
    )
    return [text, comparison]


def _verdict(inputs: FigureInputs, results: Sequence[RelationResult]) -> str:
    if not results:
        return "Undecided: no relation has enough pairs of words to probe a head."
    n_better = sum(each.trained.beats_baseline for each in results)
    if n_better:
        best = next(each for each in results if each.trained.beats_baseline)
        return (
            f"{inputs.this_model} shows what figure 5 shows: a head beats the best position baseline in {n_better} of"
            f" {len(results)} relations, first of all {comparison_text(best)}."
        )
    return (
        f"{inputs.this_model} does not show what figure 5 shows: a head beats the best position baseline in 0 of"
        f" {len(results)} relations; the nearest is {comparison_text(results[0])}."
    )


def _table_of_offsets(answers: Sequence[np.ndarray]) -> Table:
    offsets, shares = most_frequent_offsets(answers)
    heads = sorted(np.ndindex(*shares.shape), key=lambda index: -shares[index])[:8]
    rows: list[tuple[Cell, ...]] = [
        (
            layer + 1,
            head + 1,
            str(PositionBaseline("offset", int(offsets[layer, head]))),
            100 * float(shares[layer, head]),
        )
        for layer, head in heads
    ]
    return Table("-positions", ("layer", "head", "offset", "% of words"), tuple(rows), formats={"% of words": ".0f"})

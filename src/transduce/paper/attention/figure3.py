"""Figure 3: heads that attend to long-distance dependencies.

Shapes: L layers, H heads, T word positions without EOS.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from transduce.paper.attention.heads import DISTANT, HeadStatistics, head_statistics, uniform_attention
from transduce.paper.attention.inputs import PAGE, FigureInputs, figure_inputs
from transduce.paper.attention.structure import (
    ABOUT_PROBES,
    RelationResult,
    comparison_text,
    probe_relations,
    relation_table,
)
from transduce.paper.attention.word_attention import WordAttention, attention_between_words
from transduce.paper.experiments import Experiments
from transduce.paper.report import Cell, Report, Table, picture, verdict_line
from transduce.paper.request import Request
from transduce.view import HeadLines, LinePanel

__all__ = ["DistantAttention", "head_table", "make_figure3", "most_distant_attention"]

STRONG_WEIGHT = 0.25  # of a query's attention


@dataclass(frozen=True, slots=True, eq=False)
class DistantAttention:
    """A query word in one layer, and the distant word with the greatest weight in each head."""

    layer: int  # from 0
    query: int  # word position
    keys: NDArray[np.integer[Any]]  # (H,), word positions
    weights: NDArray[np.floating[Any]]  # (H,)


def make_figure3(experiments: Experiments, request: Request) -> Report:
    """Probe heads for distant dependencies and draw the most distant attention of the sentence."""
    inputs = figure_inputs(experiments, request)
    samples = attention_between_words(inputs.translator, inputs.dev)
    results = probe_relations(inputs.translator, n_sentences=inputs.n_trees, farther_than=DISTANT)
    distant = most_distant_attention(inputs.sentence)
    drawings = {"figure3-all-heads": inputs.grid(())}
    pictures: list[str | Table] = []
    if distant is not None:
        panel = _panel(inputs.sentence, distant)
        alt = f"{panel.title[0]}: where the query “{inputs.sentence.words[distant.query]}” attends in each head"
        note = "One colour and one column of cells per head; the stronger a line or cell, the greater the weight."
        drawings = {"figure3": inputs.lines(panel, alt=alt, note=note), **drawings}
        pictures.append(picture("figure3", alt))
    return Report(
        "figure3",
        "Figure 3: heads that attend to long-distance dependencies",
        (
            verdict_line(_verdict(inputs, results)),
            *pictures,
            *_sentence_sections(inputs, distant),
            inputs.how_measured(),
            f"Relations between words more than {DISTANT} words apart. {ABOUT_PROBES}",
            relation_table(results, name="-dependencies") if results else "No relation has enough such pairs of words.",
            f"Every encoder head over {len(samples):,} sentences of {inputs.record.dev_text}, sorted by its"
            f" attention on distant words (more than {DISTANT} words away). The columns in % are shares of the"
            " attention of a word; the rest goes to other nearby words. “Distance” is the mean distance, in words, of"
            " the attention on words. The last row is uniform attention.",
            head_table(head_statistics(samples), head_statistics(uniform_attention(samples))),
            picture("figure3-all-heads", inputs.grid_alt()),
            "The drawn sentence is an example: its query and layer were chosen for distant attention. The verdict rests"
            " on the tables. A weight shows what a head reads, not how the model uses it.",
            inputs.ending("figure3"),
        ),
        drawings,
        {PAGE: inputs.page()},
    )


def most_distant_attention(sentence: WordAttention) -> DistantAttention | None:
    """Return the query and layer with the most attention on single distant words, summed over heads.

    Returns None if no two words are distant. Punctuation and EOS count neither as queries nor as keys, since many heads
    rest on them.
    """
    is_word = np.array([any(map(str.isalnum, word)) for word in sentence.words[:-1]])
    positions = np.arange(sentence.n_words)
    is_distant_TT = (np.abs(positions[:, None] - positions) > DISTANT) & is_word & is_word[:, None]
    if not is_distant_TT.any():
        return None
    distant_LHTT = np.where(is_distant_TT, sentence.weights[:, :, :-1, :-1], 0.0)
    total_LT = distant_LHTT.max(axis=-1).sum(axis=1)
    layer, query = (int(index) for index in np.unravel_index(total_LT.argmax(), total_LT.shape))
    distant_HT = distant_LHTT[layer, :, query]
    return DistantAttention(layer, query, distant_HT.argmax(axis=-1), distant_HT.max(axis=-1))


def head_table(statistics: HeadStatistics, uniform: HeadStatistics) -> Table:
    """Return the statistics of all heads, with uniform attention as the last row."""
    columns = (
        "layer",
        "head",
        "distant %",
        "distance",
        "entropy, nats",
        "itself %",
        "word before %",
        "word after %",
        "EOS %",
    )

    def row(layer: Cell, head: Cell, of: HeadStatistics, index: tuple[int, int]) -> tuple[Cell, ...]:
        shares = (of.self_mass, of.previous_mass, of.next_mass, of.eos_mass)
        return (
            layer, head, 100 * float(of.distant_mass[index]), float(of.distance[index]), float(of.entropy_nats[index]),
            *(100 * float(share[index]) for share in shares),
        )  # fmt: skip

    heads_in_order = [(int(layer), int(head)) for layer, head in np.ndindex(*statistics.distant_mass.shape)]
    heads_in_order.sort(key=lambda index: -statistics.distant_mass[index])
    rows = [row(layer + 1, head + 1, statistics, (layer, head)) for layer, head in heads_in_order]
    rows.append(row(None, "uniform", uniform, (0, 0)))
    formats = {column: ".0f" for column in columns if column.endswith("%")}
    return Table("-heads", columns, tuple(rows), formats={**formats, "distance": ".1f", "entropy, nats": ".2f"})


def _panel(sentence: WordAttention, distant: DistantAttention) -> LinePanel:
    n_layers, n_heads = sentence.weights.shape[:2]
    heads = tuple(
        HeadLines(f"head {head + 1}", head, sentence.weights[distant.layer, head], mark=str(head + 1))
        for head in range(n_heads)
    )
    title = (
        f"Encoder self-attention, layer {distant.layer + 1} of {n_layers}",
        f"query “{sentence.words[distant.query]}”, {n_heads} heads",
    )
    return LinePanel(title, sentence.words, sentence.words, heads, query=distant.query)


def _sentence_sections(inputs: FigureInputs, distant: DistantAttention | None) -> list[str | Table]:
    if distant is None:
        return [
            f"In “{inputs.text}” no two words are more than {DISTANT} words apart, so nothing is drawn. Give a longer"
            " sentence."
        ]
    sentence, n_layers = inputs.sentence, inputs.sentence.weights.shape[0]
    query, is_strong = sentence.words[distant.query], distant.weights >= STRONG_WEIGHT
    keys = [sentence.words[key] for key in dict.fromkeys(distant.keys[is_strong].tolist())]
    intro = (
        f"The sentence is “{inputs.text}” The query “{query}” (word {distant.query + 1}) in layer {distant.layer + 1}"
        f" has the most attention on single words more than {DISTANT} words away, of all queries and layers."
    )
    paper, ours = inputs.sizes
    comparison = Table(
        "-paper",
        ("", paper, ours),
        (
            ("layer", "5 of 6", f"{distant.layer + 1} of {n_layers}"),
            ("query", "making", query),
            ("distant keys", "more, difficult", ", ".join(keys) or "none"),
            (
                "heads that attend to them",
                "many (not counted)",
                f"{int(is_strong.sum())} of {len(is_strong)}, with a weight of {STRONG_WEIGHT} or more",
            ),
        ),
    )
    return [intro, comparison, _heads_of_the_query(sentence, distant)]


def _heads_of_the_query(sentence: WordAttention, distant: DistantAttention) -> Table:
    rows: list[tuple[Cell, ...]] = []
    for head, (key, weight) in enumerate(zip(distant.keys.tolist(), distant.weights.tolist(), strict=True)):
        row = sentence.weights[distant.layer, head, distant.query].astype(np.float64)
        entropy = float(-(row * np.log(np.maximum(row, 1e-30))).sum())
        best = int(row.argmax())
        rows.append(
            (
                head + 1,
                sentence.words[best],
                float(row[best]),
                sentence.words[key],
                abs(key - distant.query),
                weight,
                entropy,
            )
        )
    columns = ("head", "strongest key", "weight", "strongest distant key", "distance", "its weight", "entropy, nats")
    return Table(
        "", columns, tuple(rows), f"The heads of layer {distant.layer + 1}, query “{sentence.words[distant.query]}”:",
        dict.fromkeys(("weight", "its weight", "entropy, nats"), ".2f"),
    )  # fmt: skip


def _verdict(inputs: FigureInputs, results: Sequence[RelationResult]) -> str:
    if not results:
        return "Undecided: no relation has enough pairs of distant words to probe a head."
    n_better = sum(each.trained.beats_baseline for each in results)
    distant = f"words more than {DISTANT} words apart"
    if n_better:
        best = next(each for each in results if each.trained.beats_baseline)
        return (
            f"{inputs.this_model} shows what figure 3 shows: a head beats the best position baseline in {n_better} of"
            f" {len(results)} relations between {distant}, first of all {comparison_text(best)}."
        )
    return (
        f"{inputs.this_model} does not show what figure 3 shows: a head beats the best position baseline in 0 of"
        f" {len(results)} relations between {distant}; the nearest is {comparison_text(results[0])}."
    )

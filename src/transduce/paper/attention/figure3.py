"""Figure 3: heads that attend to long-distance dependencies."""
# L layers, H heads, N words of a sentence

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from transduce.paper.attention.heads import DISTANT, HeadStatistics, head_statistics, uniform_attention
from transduce.paper.attention.inputs import PAGE, FigureInputs, figure_inputs
from transduce.paper.attention.structure import ABOUT_PROBES, RelationResult, compared, probe_relations, relation_table
from transduce.paper.attention.word_attention import WordAttention, attention_between_words
from transduce.paper.experiments import Experiments
from transduce.paper.report import Cell, Report, Table, picture, verdict_line
from transduce.paper.request import Request
from transduce.view import HeadLines, LinePanel

__all__ = ["DistantAttention", "head_table", "make_figure3", "most_distant_attention"]

MUCH = 0.25  # of a query's attention


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
    found = most_distant_attention(inputs.sentence)
    drawings = {"figure3-all-heads": inputs.grid(())}
    pictures: list[str | Table] = []
    if found is not None:
        panel = _panel(inputs.sentence, found)
        alt = f"{panel.title[0]}: where the query “{inputs.sentence.words[found.query]}” attends in each head"
        note = "One colour and one column of cells per head; the stronger a line or cell, the greater the weight."
        drawings = {"figure3": inputs.lines(panel, alt=alt, note=note), **drawings}
        pictures.append(picture("figure3", alt))
    return Report(
        "figure3",
        "Figure 3: heads that attend to long-distance dependencies",
        (
            verdict_line(_verdict(inputs, results)),
            *pictures,
            *_of_the_sentence(inputs, found),
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
    is_distant_NN = (np.abs(positions[:, None] - positions) > DISTANT) & is_word & is_word[:, None]
    if not is_distant_NN.any():
        return None
    distant_LHNN = np.where(is_distant_NN, sentence.weights[:, :, :-1, :-1], 0.0)
    total_LN = distant_LHNN.max(axis=-1).sum(axis=1)
    layer, query = (int(index) for index in np.unravel_index(total_LN.argmax(), total_LN.shape))
    distant_HN = distant_LHNN[layer, :, query]
    return DistantAttention(layer, query, distant_HN.argmax(axis=-1), distant_HN.max(axis=-1))


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

    def row(layer: Cell, head: Cell, of: HeadStatistics, place: tuple[int, int]) -> tuple[Cell, ...]:
        shares = (of.own_mass, of.previous_mass, of.next_mass, of.end_mass)
        return (
            layer, head, 100 * float(of.distant_mass[place]), float(of.distance[place]), float(of.entropy_nats[place]),
            *(100 * float(share[place]) for share in shares),
        )  # fmt: skip

    places = [(int(layer), int(head)) for layer, head in np.ndindex(*statistics.distant_mass.shape)]
    places.sort(key=lambda place: -statistics.distant_mass[place])
    rows = [row(layer + 1, head + 1, statistics, (layer, head)) for layer, head in places]
    rows.append(row(None, "uniform", uniform, (0, 0)))
    formats = {column: ".0f" for column in columns if column.endswith("%")}
    return Table("-heads", columns, tuple(rows), formats={**formats, "distance": ".1f", "entropy, nats": ".2f"})


def _panel(sentence: WordAttention, found: DistantAttention) -> LinePanel:
    n_layers, n_heads = sentence.weights.shape[:2]
    heads = tuple(
        HeadLines(f"head {head + 1}", head, sentence.weights[found.layer, head], mark=str(head + 1))
        for head in range(n_heads)
    )
    title = (
        f"Encoder self-attention, layer {found.layer + 1} of {n_layers}",
        f"query “{sentence.words[found.query]}”, {n_heads} heads",
    )
    return LinePanel(title, sentence.words, sentence.words, heads, query=found.query)


def _of_the_sentence(inputs: FigureInputs, found: DistantAttention | None) -> list[str | Table]:
    if found is None:
        return [
            f"In “{inputs.text}” no two words are more than {DISTANT} words apart, so nothing is drawn. Give a longer"
            " sentence."
        ]
    sentence, n_layers = inputs.sentence, inputs.sentence.weights.shape[0]
    query, is_much = sentence.words[found.query], found.weights >= MUCH
    keys = [sentence.words[key] for key in dict.fromkeys(found.keys[is_much].tolist())]
    intro = (
        f"The sentence is “{inputs.text}” The query “{query}” (word {found.query + 1}) in layer {found.layer + 1} has"
        f" the most attention on single words more than {DISTANT} words away, of all queries and layers."
    )
    paper, ours = inputs.sizes
    beside = Table(
        "-paper",
        ("", paper, ours),
        (
            ("layer", "5 of 6", f"{found.layer + 1} of {n_layers}"),
            ("query", "making", query),
            ("distant keys", "more, difficult", ", ".join(keys) or "none"),
            (
                "heads that attend to them",
                "many (not counted)",
                f"{int(is_much.sum())} of {len(is_much)}, with a weight of {MUCH} or more",
            ),
        ),
    )
    return [intro, beside, _heads_of_the_query(sentence, found)]


def _heads_of_the_query(sentence: WordAttention, found: DistantAttention) -> Table:
    rows: list[tuple[Cell, ...]] = []
    for head, (key, weight) in enumerate(zip(found.keys.tolist(), found.weights.tolist(), strict=True)):
        row = sentence.weights[found.layer, head, found.query].astype(np.float64)
        entropy = float(-(row * np.log(np.maximum(row, 1e-30))).sum())
        best = int(row.argmax())
        rows.append(
            (
                head + 1,
                sentence.words[best],
                float(row[best]),
                sentence.words[key],
                abs(key - found.query),
                weight,
                entropy,
            )
        )
    columns = ("head", "strongest key", "weight", "strongest distant key", "distance", "its weight", "entropy, nats")
    return Table(
        "", columns, tuple(rows), f"The heads of layer {found.layer + 1}, query “{sentence.words[found.query]}”:",
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
            f" {len(results)} relations between {distant}, first of all {compared(best)}."
        )
    return (
        f"{inputs.this_model} does not show what figure 3 shows: a head beats the best position baseline in 0 of"
        f" {len(results)} relations between {distant}; the nearest is {compared(results[0])}."
    )

"""Figure 3: heads that attend to long-distance dependencies.

Shapes: L layers, H heads, T word positions without EOS.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import TypeAdapter

from transduce.view import HeadLines, LinePanel
from transduce_paper.attention.heads import DISTANT, MANY, HeadNumbers, are_many, entropy
from transduce_paper.attention.inputs import PAGE, FigureInputs, compared_layer, figure_inputs, lines
from transduce_paper.attention.measurements import measured, n_trees, numbers_of_heads, with_one_model
from transduce_paper.attention.models import shown_model
from transduce_paper.attention.sentences import DrawnSentence
from transduce_paper.attention.structure import (
    ABOUT_PROBES,
    RelationResult,
    finding_on_relations,
    follows_relations,
    probe_relations,
    relation_table,
)
from transduce_paper.attention.word_attention import WordAttention
from transduce_paper.experiments import Experiments
from transduce_paper.report import Cell, Claim, Draw, Report, Table, agreement, picture
from transduce_paper.request import Request
from transduce_paper.run_records import Experiment

__all__ = ["DistantAttention", "distant_attention", "head_table", "make_figure3", "most_distant_attention"]

STRONG_WEIGHT = 0.25  # of a query's attention
QUERY, COMPLETION = "making", ("more", "difficult")  # caption: completing the phrase "making...more difficult"
NOTE = "One colour and one column of cells per head; the stronger a line or cell, the greater the weight."


@dataclass(frozen=True, slots=True, eq=False)
class DistantAttention:
    """A query word in one layer, and the distant word with the greatest weight in each head."""

    layer: int  # from 0
    query: int  # word position
    keys: NDArray[np.integer[Any]]  # (H,), word positions
    weights: NDArray[np.floating[Any]]  # (H,)


def make_figure3(experiments: Experiments, request: Request) -> Report:
    """Probe heads for distant dependencies; draw the paper's query, and the most distant attention of our sentence."""
    experiments, experiment = shown_model(experiments, request)
    inputs, heads, results = with_one_model(
        experiments,
        experiment,
        lambda: (
            figure_inputs(experiments, experiment, request),
            numbers_of_heads(experiments, experiment),
            _distant_relations(experiments, experiment, n_trees(experiments)),
        ),
    )
    distant = most_distant_attention(inputs.own.words)
    drawings, pictures = _drawings(inputs, distant)
    return Report(
        "Figure 3: heads that attend to long-distance dependencies",
        (
            *pictures,
            *_sentence_sections(inputs, distant),
            inputs.how_measured(),
            f"Relations between words more than {DISTANT} words apart. {ABOUT_PROBES}",
            relation_table(results, name="-dependencies") if results else "No relation has enough such pairs of words.",
            f"Every encoder head over {heads[0].n_sentences:,} sentences of {inputs.record.dev_text}, sorted by its"
            f" attention on distant words (more than {DISTANT} words away). The columns in % are shares of the"
            " attention of a word; the rest goes to other nearby words. “Distance” is the mean distance, in words, of"
            " the attention on words. The last row is uniform attention.",
            head_table(heads),
            picture("figure3-all-heads", inputs.grid_alt()),
            "The drawn sentences are examples. The verdict rests on the tables. A weight shows what a head reads, not"
            " how the model uses it.",
            inputs.ending("figure3"),
        ),
        drawings=drawings,
        pages={PAGE: inputs.page()},
        claims=_claims(inputs, results),
        finding=_verdict(inputs, results),
        name="figure3",
    )


def _distant_relations(experiments: Experiments, experiment: Experiment, n_sentences: int) -> list[RelationResult]:
    return measured(
        experiments,
        experiment,
        "dependencies",
        TypeAdapter(list[RelationResult]),
        lambda translator: probe_relations(translator, n_sentences=n_sentences, farther_than=DISTANT),
        settings={"n_sentences": n_sentences, "farther_than": DISTANT},
    )


def most_distant_attention(sentence: WordAttention) -> DistantAttention | None:
    """Return the query and layer with the most attention on single distant words, summed over heads.

    Returns None if no two words are distant.
    """
    distant_LHTT = _distant_weights(sentence)
    if not distant_LHTT.any():
        return None
    total_LT = distant_LHTT.max(axis=-1).sum(axis=1)
    layer, query = (int(index) for index in np.unravel_index(total_LT.argmax(), total_LT.shape))
    return distant_attention(sentence, layer, query)


def distant_attention(sentence: WordAttention, layer: int, query: int) -> DistantAttention:
    """Return the distant attention of a query word in a layer, both from 0."""
    distant_HT = _distant_weights(sentence)[layer, :, query]
    return DistantAttention(layer, query, distant_HT.argmax(axis=-1), distant_HT.max(axis=-1))


def _distant_weights(sentence: WordAttention) -> NDArray[np.floating[Any]]:
    """Return the weights (L, H, T, T) between distant words, 0 elsewhere.

    Punctuation and EOS count neither as queries nor as keys, since many heads rest on them.
    """
    is_word = np.array([any(map(str.isalnum, word)) for word in sentence.words[:-1]])
    positions = np.arange(sentence.n_words)
    is_distant_TT = (np.abs(positions[:, None] - positions) > DISTANT) & is_word & is_word[:, None]
    return np.where(is_distant_TT, sentence.weights[:, :, :-1, :-1], 0.0)


def head_table(heads: Sequence[HeadNumbers]) -> Table:
    """Return the statistics of heads, sorted by distant attention; the last one, uniform attention, stays last."""
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

    def row(each: HeadNumbers) -> tuple[Cell, ...]:
        shares = (each.self_mass, each.previous_mass, each.next_mass, each.eos_mass)
        return (
            None if each.layer is None else each.layer + 1, "uniform" if each.head is None else each.head + 1,
            100 * each.distant_mass, each.distance, each.entropy_nats, *(100 * share for share in shares),
        )  # fmt: skip

    in_order = [*sorted(heads[:-1], key=lambda each: -each.distant_mass), heads[-1]]
    formats = {column: ".0f" for column in columns if column.endswith("%")}
    return Table(
        "-heads", columns, tuple(map(row, in_order)), formats={**formats, "distance": ".1f", "entropy, nats": ".2f"}
    )


def _drawings(inputs: FigureInputs, distant: DistantAttention | None) -> tuple[dict[str, Draw], list[str | Table]]:
    """Return the drawings by name, and the pictures of the two sentences."""
    shown = [("figure3-papers-sentence", inputs.governments, _compared(inputs.governments))]
    if distant is not None:
        shown.append(("figure3", inputs.own, distant))
    drawings, pictures = dict[str, Draw](), list[str | Table]()
    for name, sentence, each in shown:
        panel = _panel(sentence.words, each)
        alt = f"{panel.title[0]}: where the query “{sentence.words.words[each.query]}” attends in each head"
        drawings[name] = lines(sentence, panel, alt=alt, note=NOTE)
        pictures.append(picture(name, alt))
    return {**drawings, "figure3-all-heads": inputs.grid(())}, pictures


def _compared(sentence: DrawnSentence) -> DistantAttention:
    """Return the attention of the paper's query in the layer that is compared with the paper's."""
    return distant_attention(sentence.words, compared_layer(sentence), sentence.position(QUERY))


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
    maps, compared = inputs.governments.maps, _compared(inputs.governments)
    sections: list[str | Table] = [
        f"The sentence of the paper is “{maps.source}”; the model's translation is “{maps.translation}”. As in the"
        f" paper, the query is “{QUERY}”; the layer is the last but one, {compared.layer + 1}.",
        _about_own_sentence(inputs, distant),
        _comparison(inputs, compared, distant),
        _completion_table(inputs.governments),
    ]
    return sections if distant is None else [*sections, _heads_of_query(inputs.own.words, distant)]


def _about_own_sentence(inputs: FigureInputs, distant: DistantAttention | None) -> str:
    if distant is None:
        return (
            f"In “{inputs.own.text}” no two words are more than {DISTANT} words apart, so nothing is drawn. Give a"
            " longer sentence."
        )
    return (
        f"The other sentence is “{inputs.own.text}” The query “{inputs.own.words.words[distant.query]}” (word"
        f" {distant.query + 1}) in layer {distant.layer + 1} has the most attention on single words more than"
        f" {DISTANT} words away, of all queries and layers."
    )


def _comparison(inputs: FigureInputs, compared: DistantAttention, distant: DistantAttention | None) -> Table:
    rows = ("layer", "query", "distant keys", "heads that attend to them", "heads that attend to “more difficult”")
    many = "“many of the attention heads”"
    printed: tuple[Cell, ...] = ("5 of 6", QUERY, "“making...more difficult”", many, many)
    on_both = _completion_weights(inputs.governments)[compared.layer].sum(axis=-1)
    ours = [*_compared_cells(inputs.governments.words, compared), _strong_heads(on_both)]
    own: list[Cell] = [*_compared_cells(inputs.own.words, distant), None] if distant else [None] * len(rows)
    return Table("-paper", ("", *inputs.sizes), tuple(zip(rows, printed, ours, own, strict=True)))


def _compared_cells(sentence: WordAttention, distant: DistantAttention) -> list[Cell]:
    """Return layer, query, distant keys of strong weight, and the number of heads that attend to them."""
    is_strong = distant.weights >= STRONG_WEIGHT
    keys = [sentence.words[key] for key in dict.fromkeys(distant.keys[is_strong].tolist())]
    return [
        f"{distant.layer + 1} of {sentence.weights.shape[0]}",
        sentence.words[distant.query],
        ", ".join(keys) or "none",
        _strong_heads(distant.weights),
    ]


def _strong_heads(weights_H: NDArray[np.floating[Any]]) -> str:
    return f"{int((weights_H >= STRONG_WEIGHT).sum())} of {len(weights_H)}, with a weight of {STRONG_WEIGHT} or more"


def _completion_weights(sentence: DrawnSentence) -> NDArray[np.floating[Any]]:
    """Return the weights (L, H, 2) of the query "making" on "more" and on "difficult"."""
    keys = [sentence.position(word) for word in COMPLETION]
    return sentence.words.weights[:, :, sentence.position(QUERY)][:, :, keys]


def _completion_table(sentence: DrawnSentence) -> Table:
    """Return the heads of the compared layer at the paper's query."""
    layer, words = compared_layer(sentence), sentence.words
    rows: list[tuple[Cell, ...]] = []
    for head, (more, difficult) in enumerate(_completion_weights(sentence)[layer].tolist()):
        row = words.weights[layer, head, sentence.position(QUERY)]
        rows.append((head + 1, words.words[int(row.argmax())], float(row.max()), more, difficult, more + difficult))
    columns = ("head", "strongest key", "weight", *(f"on “{word}”" for word in COMPLETION), "on both")
    caption = f"The heads of layer {layer + 1}, query “{QUERY}” of the paper's sentence:"
    return Table("-making", columns, tuple(rows), caption, dict.fromkeys(columns[2:], ".2f"))


def _heads_of_query(sentence: WordAttention, distant: DistantAttention) -> Table:
    rows: list[tuple[Cell, ...]] = []
    for head, (key, weight) in enumerate(zip(distant.keys.tolist(), distant.weights.tolist(), strict=True)):
        row = sentence.weights[distant.layer, head, distant.query].astype(np.float64)
        best = int(row.argmax())
        strongest, distance = (sentence.words[best], float(row[best])), abs(key - distant.query)
        rows.append((head + 1, *strongest, sentence.words[key], distance, weight, float(entropy(row))))
    columns = ("head", "strongest key", "weight", "strongest distant key", "distance", "its weight", "entropy, nats")
    return Table(
        "", columns, tuple(rows),
        f"The heads of layer {distant.layer + 1}, query “{sentence.words[distant.query]}” of the other sentence:",
        dict.fromkeys(("weight", "its weight", "entropy, nats"), ".2f"),
    )  # fmt: skip


def _verdict(inputs: FigureInputs, results: Sequence[RelationResult]) -> str:
    if not results:
        return "Undecided: no relation has enough pairs of distant words to probe a head."
    between = f" between words more than {DISTANT} words apart"
    return finding_on_relations(f"Figure 3: in {inputs.this_model}", results, between)


def _claims(inputs: FigureInputs, results: Sequence[RelationResult]) -> tuple[Claim, ...]:
    """Return the sentences of the caption."""
    on_both = _completion_weights(inputs.governments).sum(axis=-1)
    layer = compared_layer(inputs.governments)
    is_strong, n_heads = on_both >= STRONG_WEIGHT, on_both.shape[1]
    n_strong = int(is_strong[layer].sum())
    n_better = sum(each.trained.beats_baseline for each in results)
    is_trained = inputs.record.is_trained_to_the_end
    return (
        Claim(
            "An example of the attention mechanism following long-distance dependencies in the encoder self-attention"
            " in layer 5 of 6.",
            "Figure 3",
            agreement(follows_relations(results), is_trained=is_trained),
            f"In {n_better} of {len(results)} relations between words more than {DISTANT} words apart, a head of any"
            " layer beats the best position baseline.",
        ),
        Claim(
            "Many of the attention heads attend to a distant dependency of the verb ‘making’, completing the phrase"
            " ‘making...more difficult’.",
            "Figure 3",
            agreement(are_many(n_strong, n_heads), is_trained=is_trained),
            f"{n_strong} of {n_heads} heads of layer {layer + 1} give “more difficult” {STRONG_WEIGHT} or more of the"
            f" attention of “making”; {MANY}. In all layers"
            f" {int(is_strong.sum())} of {is_strong.size} do.",
        ),
    )

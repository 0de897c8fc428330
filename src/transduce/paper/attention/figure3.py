"""Figure 3: heads that follow long-distance dependencies."""
# L layers, H heads, N words of a sentence

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from transduce.paper.attention.heads import FAR, HeadNumbers, everything_alike, measure_heads
from transduce.paper.attention.scene import Scene, page_of, set_scene
from transduce.paper.attention.structure import ABOUT_SEARCH, find_structure, structure_table
from transduce.paper.attention.word_attention import WordAttention, attention_between_words
from transduce.paper.experiments import Experiments
from transduce.paper.report import Cell, Report, Table
from transduce.paper.request import Request
from transduce.view import HeadLines, LinePanel

__all__ = ["FarLook", "farthest_look", "head_table", "make_figure3"]

MUCH = 0.25  # of a word's attention


@dataclass(frozen=True, slots=True, eq=False)
class FarLook:
    """One word in one layer, and where its heads look among the words that are far from it."""

    layer: int  # from 0
    word: int
    far_words: NDArray[np.integer[Any]]  # (H,), the one that each head looks at most
    far_weights: NDArray[np.floating[Any]]  # (H,), how much


def make_figure3(experiments: Experiments, request: Request) -> Report:
    """Look for far dependencies in the sentence given, in the dev text, and in sentences whose trees are known."""
    scene = set_scene(experiments, request)
    samples = attention_between_words(scene.translator, scene.dev)
    found = find_structure(scene.translator, n_sentences=scene.n_trees, farther_than=FAR)
    look = farthest_look(scene.sentence)
    drawings = {"figure3-all-heads": scene.grid(())}
    if look is not None:
        drawings = {"figure3": scene.lines(_panel(scene.sentence, look)), **drawings}
    return Report(
        "figure3",
        "Figure 3: heads that follow long-distance dependencies",
        (
            scene.about("figure3"),
            *_of_the_sentence(scene, look),
            f"Every encoder head over {len(samples):,} sentences of {scene.record.dev_text}, those first that look"
            f" furthest. Far is more than {FAR} words away. The columns in % say where the attention of a word goes;"
            " the rest goes to other words near by. Distance, in words, is that of what goes to words at all. The last"
            " row is what looking at everything alike would give.",
            head_table(measure_heads(samples), measure_heads(everything_alike(samples))),
            f"Do heads join words that depend on each other more than {FAR} words apart? {ABOUT_SEARCH}",
            structure_table(found, name="-dependencies") if found else "There are too few such words to ask about.",
            _verdict(found_any=any(each.trained.beats_rule for each in found)),
        ),
        drawings,
        {page_of("figure3"): scene.page()},
    )


def farthest_look(sentence: WordAttention) -> FarLook | None:
    """The word and layer whose heads give most to single words far away, summed over heads; None if no two are far.

    Punctuation and the end symbol neither look nor are looked at: many heads only rest there.
    """
    is_word = np.array([any(map(str.isalnum, word)) for word in sentence.words[:-1]])
    places = np.arange(sentence.n_words)
    is_far_NN = (np.abs(places[:, None] - places) > FAR) & is_word & is_word[:, None]
    if not is_far_NN.any():
        return None
    far_LHNN = np.where(is_far_NN, sentence.weights[:, :, :-1, :-1], 0.0)
    total_LN = far_LHNN.max(axis=-1).sum(axis=1)
    layer, word = (int(place) for place in np.unravel_index(total_LN.argmax(), total_LN.shape))
    far_HN = far_LHNN[layer, :, word]
    return FarLook(layer, word, far_HN.argmax(axis=-1), far_HN.max(axis=-1))


def head_table(numbers: HeadNumbers, alike: HeadNumbers) -> Table:
    """All heads of a model, and what looking at everything alike would give."""
    columns = (
        "layer",
        "head",
        "far %",
        "distance",
        "entropy, nats",
        "itself %",
        "word before %",
        "word after %",
        "end %",
    )

    def row(layer: Cell, head: Cell, of: HeadNumbers, place: tuple[int, int]) -> tuple[Cell, ...]:
        shares = (of.own_mass, of.previous_mass, of.next_mass, of.end_mass)
        return (
            layer, head, 100 * float(of.far_mass[place]), float(of.distance[place]), float(of.entropy_nats[place]),
            *(100 * float(share[place]) for share in shares),
        )  # fmt: skip

    places = [(int(layer), int(head)) for layer, head in np.ndindex(*numbers.far_mass.shape)]
    places.sort(key=lambda place: -numbers.far_mass[place])
    rows = [row(layer + 1, head + 1, numbers, (layer, head)) for layer, head in places]
    rows.append(row(None, "all alike", alike, (0, 0)))
    formats = {column: ".0f" for column in columns if column.endswith("%")}
    return Table("-heads", columns, tuple(rows), formats={**formats, "distance": ".1f", "entropy, nats": ".2f"})


def _panel(sentence: WordAttention, look: FarLook) -> LinePanel:
    n_layers, n_heads = sentence.weights.shape[:2]
    heads = tuple(HeadLines(f"head {head + 1}", head, sentence.weights[look.layer, head]) for head in range(n_heads))
    title = (
        f"Encoder self-attention, layer {look.layer + 1} of {n_layers}",
        f"where “{sentence.words[look.word]}” looks",
    )
    return LinePanel(title, sentence.words, sentence.words, heads, query=look.word)


def _of_the_sentence(scene: Scene, look: FarLook | None) -> list[str | Table]:
    if look is None:
        return [
            f"No two words of “{scene.text}” are more than {FAR} words apart: there is nothing far to look at, and"
            " nothing is drawn. Give a longer sentence."
        ]
    sentence, n_layers = scene.sentence, scene.sentence.weights.shape[0]
    word, is_much = sentence.words[look.word], look.far_weights >= MUCH
    far_words = [sentence.words[place] for place in dict.fromkeys(look.far_words[is_much].tolist())]
    intro = (
        f"The sentence: “{scene.text}” Of all its words and layers, “{word}” (word {look.word + 1}) in layer"
        f" {look.layer + 1} is the one whose heads give most to single words that are more than {FAR} words away."
    )
    beside = Table(
        "-paper",
        ("", "paper", "ours"),
        (
            ("layer", "5 of 6", f"{look.layer + 1} of {n_layers}"),
            ("the word that looks", "making", word),
            ("what it is completed by", "more difficult", ", ".join(far_words) or "nothing"),
            (
                "heads that look there",
                "many of 8",
                f"{int(is_much.sum())} of {len(is_much)}, with a weight of {MUCH} or more",
            ),
        ),
    )
    return [intro, beside, _heads_of_the_look(sentence, look)]


def _heads_of_the_look(sentence: WordAttention, look: FarLook) -> Table:
    rows: list[tuple[Cell, ...]] = []
    for head, (place, weight) in enumerate(zip(look.far_words.tolist(), look.far_weights.tolist(), strict=True)):
        row = sentence.weights[look.layer, head, look.word].astype(np.float64)
        entropy = float(-(row * np.log(np.maximum(row, 1e-30))).sum())
        best = int(row.argmax())
        rows.append(
            (
                head + 1,
                sentence.words[best],
                float(row[best]),
                sentence.words[place],
                abs(place - look.word),
                weight,
                entropy,
            )
        )
    columns = ("head", "looks most at", "weight", "and far away at", "words away", "weight there", "entropy, nats")
    return Table(
        "", columns, tuple(rows), f"Layer {look.layer + 1}, from “{sentence.words[look.word]}”:",
        dict.fromkeys(("weight", "weight there", "entropy, nats"), ".2f"),
    )  # fmt: skip


def _verdict(*, found_any: bool) -> str:
    if found_any:
        first = "Where the last column says yes, a head finds far words better than a fixed place or distance does."
    else:
        first = (
            "No head of this model does better than a rule that looks at no word: it does not show what figure 3 shows."
        )
    return (
        f"{first} A sentence that is drawn is an example, chosen among all words and layers for looking far; only the"
        " tables count. And a weight says what a head reads, not what the model makes of it."
    )

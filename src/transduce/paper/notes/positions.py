"""The three ways to number words that the notes discuss, and why the first two fail. Section 3.5.

Shapes: T positions of a sentence, D d_model, W words, B batch.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from transduce.model import LanguageModel
from transduce.model.embedding import sinusoid
from transduce.model.layers import LAYER_NORM_EPS
from transduce.paper.drawing import COLOURS, GREY, new_panels, save_svg
from transduce.paper.notes.part import Part
from transduce.paper.notes.tiny import BATCH_SIZE, TINY, LanguageBatch, ListedBatches, Rows, seeded, train
from transduce.paper.report import Cell, Table
from transduce.text import SPECIAL_TOKENS

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["OPTIONS", "distance_of_neighbours", "fractions", "integers", "make_positions"]

WHAT_THE_NOTES_SAY = """\
The notes number the words of a sentence in three ways. Option 1: every element of the position's vector is its number.
Option 2: every element is that number over the length, from 0 to 1. Then sinusoids. They give one reason against each:
large numbers distort the words, and fractions give one position another vector in each sentence. (They also say that
the vector is concatenated to the word's; the paper adds it, and so do we.) What follows is computed, at d_model
{d_model}, for words whose elements have variance 1."""

TWO_REASONS_MORE = """\
The notes' two reasons show in the numbers, and two more that they do not give. A layer norm takes the mean of the
elements away: of a vector whose elements are all equal, nothing is left behind the first norm. And the score of a query
with a key, q · k, is linear in what is added to the key: with all elements equal it is linear in the key's number, and
greatest at one end of the sentence, so no head can find the word before by its place alone."""

WHAT_WAS_LEARNED = """\
So we tried: a Transformer of one layer (width 64, 4 heads, not causal) learns to say, at each position, the token one
place to the left, from {n_tokens} tokens drawn at random, in sentences of {shortest} to {longest};
{n_updates} updates of {batch_size} sentences, seed 1. Share of right answers (guessing: {guess:.0%}):"""

WHAT_IT_CANNOT_SHOW = """\
The last column that is beyond the lengths of training shows what it is worth that sinusoids are defined everywhere; the
paper only hypothesises that a model may extrapolate with them. One seed, one layer and one task are no proof."""


Option = Callable[[int, int], Tensor]  # of n_positions and d_model: (T, D)


def integers(n_positions: int, d_model: int) -> Tensor:
    """Option 1 of the notes: every element is the position, (T, D).

    >>> integers(3, 2).tolist()
    [[0.0, 0.0], [1.0, 1.0], [2.0, 2.0]]
    """
    return torch.arange(n_positions, dtype=torch.float64).unsqueeze(1).expand(n_positions, d_model)


def fractions(n_positions: int, d_model: int) -> Tensor:
    """Option 2: every element is the position from 0, the first, to 1, the last, (T, D).

    >>> fractions(3, 2).tolist()
    [[0.0, 0.0], [0.5, 0.5], [1.0, 1.0]]
    """
    return integers(n_positions, d_model) / max(1, n_positions - 1)


def no_positions(n_positions: int, d_model: int) -> Tensor:
    """Words without order, to compare with."""
    return torch.zeros(n_positions, d_model, dtype=torch.float64)


class OptionPositions(nn.Module):
    """An option as a model's positions; all sentences of a batch have one length, which fractions need to know."""

    def __init__(self, option: Option, d_model: int) -> None:
        super().__init__()
        self.option, self.d_model = option, d_model

    def forward(self, position_N: Tensor, n_positions: int) -> Tensor:
        """The encoding (N, D) of each place in sentences of ``n_positions``."""
        return F.embedding(position_N, self.option(n_positions, self.d_model).float())


OPTIONS: Mapping[str, Option] = {"integers": integers, "fractions": fractions, "sinusoids": sinusoid}
SHORTER = 10  # the sentence that others are compared with, and
SAME_PLACE = 5  # which of its positions


def distance_of_neighbours(positions: Option, n_positions: int, d_model: int) -> float:
    """Of the last two positions of a sentence."""
    last_2D = positions(n_positions, d_model)[-2:]
    return float((last_2D[1] - last_2D[0]).norm())


def shift_of_a_place(positions: Option, n_positions: int, d_model: int) -> float:
    """How far the vector of position 5 is from that of position 5 in a sentence of 10."""
    here_D, there_D = positions(n_positions, d_model)[SAME_PLACE], positions(SHORTER, d_model)[SAME_PLACE]
    return float((here_D - there_D).norm())


def least_distance(positions: Option, n_positions: int, d_model: int) -> float:
    """Of any two positions of a sentence: 0 if one cannot be told from another."""
    encoding_TD = positions(n_positions, d_model).contiguous()
    distance_TT = torch.cdist(encoding_TD, encoding_TD)
    return float(distance_TT.fill_diagonal_(math.inf).min())


def spread_of_products(positions: Option, n_positions: int, d_model: int, offset: int) -> float:
    """PE(p) · PE(p + offset) over all p: the standard deviation over the mean's size. 0: it depends on the offset."""
    encoding_TD = positions(n_positions, d_model)
    product_T = (encoding_TD[offset:] * encoding_TD[: n_positions - offset]).sum(dim=1)
    return float(product_T.std(correction=0) / product_T.mean().abs())


def error_of_best_map(positions: Option, n_positions: int, d_model: int, offset: int) -> float:
    """What the best matrix M with PE(p + offset) = M PE(p) leaves, over the size of PE. Section 3.5."""
    encoding_TD = positions(n_positions, d_model)
    before_TD, after_TD = encoding_TD[: n_positions - offset], encoding_TD[offset:]
    map_DD = torch.linalg.lstsq(before_TD, after_TD, driver="gelsd").solution
    return float((before_TD @ map_DD - after_TD).norm() / after_TD.norm())


def cosine_with_word(encoding_TD: Tensor, words_WD: Tensor) -> Tensor:
    """Of a word and the same word at each position, the mean over words, (T,)."""
    placed_TWD = words_WD + encoding_TD.unsqueeze(1)
    return F.cosine_similarity(placed_TWD, words_WD.unsqueeze(0), dim=2).mean(dim=1)


def left_by_layer_norm(encoding_D: Tensor, words_WD: Tensor) -> float:
    """How far a position moves words behind a layer norm, over their size."""
    before_WD, after_WD = (
        F.layer_norm(each_WD, each_WD.shape[1:], eps=LAYER_NORM_EPS) for each_WD in (words_WD, words_WD + encoding_D)
    )
    return float((after_WD - before_WD).norm() / before_WD.norm())


@dataclass(frozen=True, slots=True)
class Sizes:
    """How much is done."""

    d_model: int
    lengths: tuple[int, ...]  # of sentences whose properties are computed
    n_words: int
    n_updates: int
    tested_lengths: tuple[int, ...]
    n_tested: int


WHOLE = Sizes(512, (10, 50, 200, 1000), 100, 800, (4, 8, 12, 16, 20, 24, 32, 48), 128)
SHORT = Sizes(32, (10, 50), 5, 3, (4, 20), 4)
SHORTEST, LONGEST = 4, 16  # sentences that the task is learned from
N_TOKENS = 20


def make_positions(*, is_short: bool) -> Part:
    """Properties of the three, and a task that needs them."""
    sizes = SHORT if is_short else WHOLE
    accuracies = {name: _accuracies(option, sizes) for name, option in {"none": no_positions, **OPTIONS}.items()}
    return Part(
        (
            "## Three ways to number words",
            WHAT_THE_NOTES_SAY.format(d_model=sizes.d_model),
            _table_by_length(sizes),
            _table_of_properties(sizes),
            TWO_REASONS_MORE,
            WHAT_WAS_LEARNED.format(
                n_tokens=N_TOKENS,
                shortest=SHORTEST,
                longest=LONGEST,
                n_updates=sizes.n_updates,
                batch_size=BATCH_SIZE,
                guess=1 / N_TOKENS,
            ),
            _table_of_accuracies(accuracies, sizes),
            WHAT_IT_CANNOT_SHOW,
        ),
        {"notes-positions": lambda path: _draw(accuracies, sizes, path)},
    )


def _accuracies(option: Option, sizes: Sizes) -> list[float]:
    """Of a model that has learned to say the token before, at each tested length."""
    n_special = len(SPECIAL_TOKENS)
    generator = torch.Generator().manual_seed(1)
    with seeded(1):
        model = new_model(n_special + N_TOKENS, option)

    def sentences(n_sentences: int, length: int) -> Rows:
        rows: Rows = torch.randint(n_special, n_special + N_TOKENS, (n_sentences, length), generator=generator).tolist()
        return rows

    def states(batch: LanguageBatch) -> Tensor:
        """Of all positions that have one to the left."""
        states_BTD: Tensor = model(batch.ids_BT).unflatten(0, batch.ids_BT.shape)
        return states_BTD[:, 1:].flatten(0, 1)

    lengths = torch.randint(SHORTEST, LONGEST + 1, (sizes.n_updates,), generator=generator).tolist()
    batches = ListedBatches([sentences(BATCH_SIZE, length) for length in lengths], _word_before)
    train(model, lambda batch, _: model.output.loss(states(batch), batch.targets_N), batches, peak_lr=1e-2)
    accuracies = []
    with torch.no_grad():
        for length in sizes.tested_lengths:
            batch = _word_before(sentences(sizes.n_tested, length))
            is_right_N = model.output.logits(states(batch)).argmax(dim=1) == batch.targets_N
            accuracies.append(float(is_right_N.double().mean()))
    return accuracies


def new_model(vocab_size: int, option: Option) -> LanguageModel:
    """One layer that sees the whole sentence, whose places are numbered by an option."""
    positions = OptionPositions(option, TINY.d_model)
    return LanguageModel(replace(TINY, n_layers=1), vocab_size=vocab_size, is_causal=False, positions=positions)


def _word_before(rows: Rows) -> LanguageBatch:
    """Sentences of one length, and of each token but the first the one to its left."""
    ids_BT = torch.tensor(rows)
    return LanguageBatch(ids_BT, ids_BT[:, :-1].flatten())


def _words(sizes: Sizes) -> Tensor:
    """Random words of the size that embeddings have when training begins, (W, D)."""
    generator = torch.Generator().manual_seed(1)
    return torch.randn(sizes.n_words, sizes.d_model, generator=generator, dtype=torch.float64)


def _table_by_length(sizes: Sizes) -> Table:
    words_WD = _words(sizes)
    rows: list[tuple[Cell, ...]] = []
    for name, option in OPTIONS.items():
        for length in sizes.lengths:
            last_1D = option(length, sizes.d_model)[-1:]
            rows.append(
                (
                    name,
                    length,
                    distance_of_neighbours(option, length, sizes.d_model),
                    shift_of_a_place(option, length, sizes.d_model),
                    float(last_1D.norm() / words_WD.norm(dim=1).mean()),
                    float(cosine_with_word(last_1D, words_WD)),
                )
            )
    columns = (
        "option",
        "length of the sentence",
        "distance of its last two positions",
        f"distance of position {SAME_PLACE} from position {SAME_PLACE} in a sentence of {SHORTER}",
        "size of the last position's vector over that of a word",
        "cosine of the last word with and without its position",
    )
    formats = dict.fromkeys(columns[2:4], ".3f") | dict.fromkeys(columns[4:], ".2f")
    return Table("-positions-by-length", columns, tuple(rows), "What depends on the length:", formats)


def _table_of_properties(sizes: Sizes) -> Table:
    length, offset, d_model = sizes.lengths[-1], 5, sizes.d_model
    d_map = min(64, d_model)
    words_WD = _words(sizes)
    properties: dict[str, Callable[[Option], float]] = {
        f"greatest element in a sentence of {length:,}": lambda option: float(option(length, d_model).max()),
        f"least distance of any two positions of {length:,}": lambda option: least_distance(option, length, d_model),
        f"spread of PE(p) · PE(p + {offset}) over p, relative (0: it depends on the offset alone)": (
            lambda option: spread_of_products(option, length, d_model, offset)
        ),
        f"what the best matrix from PE(p) to PE(p + {offset}) misses, relative (d_model {d_map})": (
            lambda option: error_of_best_map(option, length, d_map, offset)
        ),
        "what a layer norm leaves of the last position: how far it moves a word, relative": (
            lambda option: left_by_layer_norm(option(length, d_model)[-1], words_WD)
        ),
    }
    rows: list[tuple[Cell, ...]] = [(name, *map(of, OPTIONS.values())) for name, of in properties.items()]
    formats = dict.fromkeys(OPTIONS, ".3g")
    return Table("-positions-properties", ("property", *OPTIONS), tuple(rows), "Of one long sentence:", formats)


def _table_of_accuracies(accuracies: Mapping[str, Sequence[float]], sizes: Sizes) -> Table:
    columns = ("positions", *(f"length {length}" for length in sizes.tested_lengths))
    rows: tuple[tuple[Cell, ...], ...] = tuple((name, *found) for name, found in accuracies.items())
    return Table("-positions-learned", columns, rows, formats=dict.fromkeys(columns[1:], ".0%"))


def _draw(accuracies: Mapping[str, Sequence[float]], sizes: Sizes, path: Path) -> None:
    figure, (neighbours, cosine, product, learned) = new_panels(9.5, 7.2, n_rows=2, n_columns=2)
    colours = dict(zip(OPTIONS, (COLOURS[1], COLOURS[4], COLOURS[0]), strict=True))
    longest, words_WD = sizes.lengths[-1], _words(sizes)
    lengths = torch.logspace(1, math.log10(longest), 25).long().tolist()
    for name, option in OPTIONS.items():
        colour = colours[name]
        distances = [distance_of_neighbours(option, n, sizes.d_model) for n in lengths]
        neighbours.plot(lengths, distances, color=colour, label=name)
        cosine.plot(cosine_with_word(option(longest, sizes.d_model), words_WD).tolist(), color=colour, label=name)
        learned.plot(sizes.tested_lengths, accuracies[name], "o-", color=colour, label=name)
    neighbours.set(
        xscale="log",
        yscale="log",
        xlabel="tokens in the sentence",
        ylabel="distance of its last two positions",
        title="Neighbours",
    )
    cosine.set(
        xlabel=f"position, in a sentence of {longest:,}",
        ylabel="cosine with and without position",
        title="What is left of the word",
        ylim=(0, 1),
    )
    _draw_products(product, longest, sizes.d_model, colours)
    learned.plot(sizes.tested_lengths, accuracies["none"], "o--", color=GREY, label="none")
    learned.axvspan(SHORTEST, LONGEST, color=GREY, alpha=0.15, linewidth=0)
    learned.set(
        xlabel="tokens in the sentence (shaded: as in training)",
        ylabel="share of right answers",
        title="Learned: the token one place to the left",
        ylim=(0, 1.03),
    )
    for panel in (neighbours, cosine, product, learned):
        panel.legend(frameon=False, fontsize=9)
    save_svg(figure, path)


def _draw_products(panel: Axes, n_positions: int, d_model: int, colours: Mapping[str, str]) -> None:
    """PE(p) · PE(p + k) over PE(p) · PE(p), for some p in a sentence of ``n_positions``."""
    reach = min(40, n_positions // 3)
    places = (reach, 2 * reach, min(4 * reach, n_positions - reach - 1))
    for name, dashes in (("integers", "--"), ("sinusoids", "-")):
        encoding_TD = OPTIONS[name](n_positions, d_model)
        for place in places:
            near_KD = encoding_TD[place - reach : place + reach + 1]
            product_K = near_KD @ encoding_TD[place] / (encoding_TD[place] @ encoding_TD[place])
            label = f"{name}, p = {place}" if name == "integers" else f"{name}, all three p"
            is_first = name == "integers" or place == places[0]
            panel.plot(
                range(-reach, reach + 1),
                product_K.tolist(),
                dashes,
                color=colours[name],
                alpha=1.0 if name == "sinusoids" else 0.4 + 0.3 * places.index(place),
                label=label if is_first else None,
            )
    panel.set(
        xlabel="offset k (positions)",
        ylabel="PE(p) · PE(p + k), relative to k = 0",
        title="Does the product know the offset alone?",
    )

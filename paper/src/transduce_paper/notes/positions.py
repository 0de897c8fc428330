"""The three positional encodings that the notes discuss, and why the first two fail. Section 3.5.

Shapes: B batch, T positions of a sentence, N rows of a list (words or positions), D d_model.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from transduce.model import TransformerLM, sinusoid
from transduce.text import SPECIAL_TOKENS
from transduce_paper.drawing import COLOURS, GREY, new_panels, save_svg, set_log_axis
from transduce_paper.experiments import Experiments
from transduce_paper.notes.position_options import (
    COMPARED_POSITION,
    OPTIONS,
    SHORT_LENGTH,
    Option,
    OptionPositions,
    cosine_with_word,
    distance_of_neighbours,
    error_of_best_map,
    min_distance,
    no_positions,
    shift_after_layer_norm,
    shift_of_position,
    spread_of_products,
)
from transduce_paper.notes.tiny import BATCH_SIZE, TINY, LanguageBatch, ListedBatches, Rows, seeded, train
from transduce_paper.report import Cell, Claim, Section, Table, agreement, picture

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["make_positions", "new_model"]

ABOUT_THE_NOTES = """\
The notes discuss three encodings of a position. Integers: every element of the vector is the position. Fractions:
every element is the position divided by the length, from 0 to 1. Sinusoids: section 3.5. They give one reason against
the first and one against the second: large numbers distort the token, and with fractions one position has a different
vector in each sentence. (They also say that the vector is concatenated to the embedding; the paper adds it, and so do
we.) The numbers below are computed at d_model {d_model}, for embeddings with variance 1."""

FURTHER_REASONS = """\
The numbers confirm the notes' two reasons and show two more. First, layer norm subtracts the mean of the elements, so
it removes a vector whose elements are all equal. Second, the score q · k is linear in what is added to the
key: with all elements equal it is linear in the position and largest at one end of the sentence, so no head can find
the previous token by position alone."""

ABOUT_TRAINING = """\
A bidirectional Transformer of one layer (d_model 64, 4 heads) learns to predict, at each position, the previous token,
in sentences of {shortest} to {longest} of {n_tokens} random tokens; {n_updates} updates of {batch_size} sentences,
seed 1. Accuracy (chance: {chance:.0%}):"""

LIMITATIONS = """\
Lengths above {longest} show how far sinusoids extrapolate; the paper only hypothesises that they may. One seed, one
layer and one task are no proof."""


@dataclass(frozen=True, slots=True)
class Sizes:
    """Lengths, and numbers of words and updates."""

    d_model: int
    lengths: tuple[int, ...]  # of the sentences in the tables
    n_words: int
    n_updates: int
    tested_lengths: tuple[int, ...]
    n_tested: int


FULL = Sizes(512, (10, 50, 200, 1000), 100, 800, (4, 8, 12, 16, 20, 24, 32, 48), 128)
TEST = Sizes(32, (10, 50), 5, 3, (4, 20), 4)
SHORTEST, LONGEST = 4, 16  # sentence lengths in training
N_TOKENS = 20


def make_positions(experiments: Experiments) -> Section:
    """Compute properties of the three encodings, and train a task that needs positions."""
    sizes = experiments.pick(FULL, test=TEST)
    accuracies = _measured_accuracies(experiments, sizes)
    last = max(number for number, length in enumerate(sizes.tested_lengths) if length <= LONGEST)
    at_last = ", ".join(f"{name} {values[last]:.0%}" for name, values in reversed(accuracies.items()))
    return Section(
        "Three positional encodings",
        (
            ABOUT_THE_NOTES.format(d_model=sizes.d_model),
            _table_by_length(sizes),
            _table_of_properties(sizes),
            FURTHER_REASONS,
            ABOUT_TRAINING.format(
                n_tokens=N_TOKENS,
                shortest=SHORTEST,
                longest=LONGEST,
                n_updates=sizes.n_updates,
                batch_size=BATCH_SIZE,
                chance=1 / N_TOKENS,
            ),
            _table_of_accuracies(accuracies, sizes),
            LIMITATIONS.format(longest=LONGEST),
            picture("notes-positions", "Distances, cosines, dot products and accuracy of the encodings"),
        ),
        finding=(
            f"A one-layer Transformer finds the previous token only with sinusoids (at length"
            f" {sizes.tested_lengths[last]}: {at_last})."
        ),
        question="which of integers, fractions and sinusoids lets a model use word order?",
        summary=(
            f"a small model finds the previous token in {accuracies['sinusoids'][last]:.0%} of cases with sinusoids and"
            f" in {accuracies['integers'][last]:.0%} with integers as positions"
        ),
        drawings={"notes-positions": lambda path: _draw(accuracies, sizes, path)},
        claims=_claims(accuracies, last, sizes),
    )


def _claims(accuracies: Mapping[str, Sequence[float]], last: int, sizes: Sizes) -> tuple[Claim, ...]:
    """Return the notes' reasons for positional encodings and against two simple ones."""
    none, best = accuracies["none"][last], accuracies["sinusoids"][last]
    length = sizes.tested_lengths[last]
    difference = _joined_and_added()
    cosines = {name: [_cosine_of_last_word(name, n, sizes) for n in sizes.lengths] for name in OPTIONS}
    return (
        Claim(
            "Vector of same length as word embedding is concatenated",
            "notes",
            agreement(difference > 1e-12),
            "The paper, the model and the notes' own drawing add the two. It is no other model: a matrix times both"
            " joined is the sum of a matrix times each, so what reads the sum is the special case of equal matrices"
            f" (largest difference {difference:.0e}).",
            "algebra",
        ),
        Claim(
            "Transformers take word embeddings in parallel, so the sense of word order is lost",
            "notes",
            agreement(none < best / 2),
            f"At length {length}, a one-layer model finds the previous token in {none:.0%} of cases without positions,"
            f" in {best:.0%} with sinusoids.",
        ),
        Claim(
            "Word embeddings can be significantly distorted for larger sentences",
            "notes",
            agreement(cosines["integers"][-1] < cosines["sinusoids"][-1] / 2),
            f"The cosine of the last word with and without its position is {cosines['integers'][0]:.2f} in a sentence"
            f" of {sizes.lengths[0]} and {cosines['integers'][-1]:.2f} in one of {sizes.lengths[-1]:,} with integers,"
            f" {cosines['sinusoids'][0]:.2f} and {cosines['sinusoids'][-1]:.2f} with sinusoids.",
            "algebra",
        ),
        Claim(
            "For sentences of different length, [the] position encoding vector will be different for the same position"
            " (may confuse [the] model)",
            "notes",
            agreement(None),
            f"It is different. With fractions the model finds the previous token in {accuracies['fractions'][last]:.0%}"
            f" of cases, but with integers, whose vectors stay the same, in {accuracies['integers'][last]:.0%}: what"
            " both lack is elements that differ from each other.",
        ),
        Claim(
            "This allows the model to extrapolate to seq. lengths longer than the ones encountered during training",
            "notes",
            agreement(None),
            f"Trained up to {LONGEST} tokens, the sinusoids' accuracy is {best:.0%} at {length} tokens and"
            f" {accuracies['sinusoids'][-1]:.0%} at {sizes.tested_lengths[-1]} (chance: {1 / N_TOKENS:.0%}), of one"
            " layer and one seed.",
        ),
    )


def _joined_and_added() -> float:
    """Return the largest difference of W [x; p], with W of two equal halves, from such a half times x + p."""
    generator = torch.Generator().manual_seed(1)
    x_ND, half_DD = (torch.randn(8, 8, generator=generator, dtype=torch.float64) for _ in range(2))
    p_ND = sinusoid(8, 8)
    joined_ND = torch.cat((x_ND, p_ND), dim=1) @ torch.cat((half_DD, half_DD), dim=1).T
    return float((joined_ND - (x_ND + p_ND) @ half_DD.T).abs().max())


def _measured_accuracies(experiments: Experiments, sizes: Sizes) -> dict[str, list[float]]:
    """Return the accuracies without positions and with each option, cached beside the records."""

    def measure() -> list[dict[str, Any]]:
        options = {"none": no_positions, **OPTIONS}
        return [{"positions": name, "accuracies": _accuracies(option, sizes)} for name, option in options.items()]

    settings = {"n_updates": sizes.n_updates, "n_tested": sizes.n_tested}
    rows = experiments.measurement("notes-positions", "accuracies", measure, settings=settings)
    return {row["positions"]: row["accuracies"] for row in rows}


def _accuracies(option: Option, sizes: Sizes) -> list[float]:
    """Return the accuracy of a model trained to predict the previous token, at each tested length."""
    n_special = len(SPECIAL_TOKENS)
    generator = torch.Generator().manual_seed(1)
    with seeded(1):
        model = new_model(n_special + N_TOKENS, option)

    def sentences(n_sentences: int, length: int) -> Rows:
        rows: Rows = torch.randint(n_special, n_special + N_TOKENS, (n_sentences, length), generator=generator).tolist()
        return rows

    def states(batch: LanguageBatch) -> Tensor:
        """Return the states of all positions but the first."""
        states_BTD: Tensor = model(batch.ids_BT).unflatten(0, batch.ids_BT.shape)
        return states_BTD[:, 1:].flatten(0, 1)

    lengths = torch.randint(SHORTEST, LONGEST + 1, (sizes.n_updates,), generator=generator).tolist()
    batches = ListedBatches([sentences(BATCH_SIZE, length) for length in lengths], _previous_token_batch)
    train(model, lambda batch, _: model.output.loss(states(batch), batch.targets_N), batches, peak_lr=1e-2)
    accuracies = []
    with torch.no_grad():
        for length in sizes.tested_lengths:
            batch = _previous_token_batch(sentences(sizes.n_tested, length))
            is_right_N = model.output.logits(states(batch)).argmax(dim=1) == batch.targets_N
            accuracies.append(float(is_right_N.double().mean()))
    return accuracies


def new_model(vocab_size: int, option: Option) -> TransformerLM:
    """Return a bidirectional model of one layer with the positions of an option."""
    positions = OptionPositions(option, TINY.d_model)
    return TransformerLM(replace(TINY, n_layers=1), vocab_size=vocab_size, is_causal=False, positions=positions)


def _previous_token_batch(rows: Rows) -> LanguageBatch:
    """Return sentences of one length; the target of each token but the first is the previous one."""
    ids_BT = torch.tensor(rows)
    return LanguageBatch(ids_BT, ids_BT[:, :-1].flatten())


def _words(sizes: Sizes) -> Tensor:
    """Return random word embeddings with variance 1, (N, D)."""
    generator = torch.Generator().manual_seed(1)
    return torch.randn(sizes.n_words, sizes.d_model, generator=generator, dtype=torch.float64)


def _cosine_of_last_word(name: str, length: int, sizes: Sizes) -> float:
    """Return the mean cosine of a word with and without the last position of a sentence."""
    return float(cosine_with_word(OPTIONS[name](length, sizes.d_model)[-1:], _words(sizes)))


def _table_by_length(sizes: Sizes) -> Table:
    words_ND = _words(sizes)
    rows: list[tuple[Cell, ...]] = []
    for name, option in OPTIONS.items():
        for length in sizes.lengths:
            last_1D = option(length, sizes.d_model)[-1:]
            rows.append(
                (
                    name,
                    length,
                    distance_of_neighbours(option, length, sizes.d_model),
                    shift_of_position(option, length, sizes.d_model),
                    float(last_1D.norm() / words_ND.norm(dim=1).mean()),
                    _cosine_of_last_word(name, length, sizes),
                )
            )
    columns = (
        "option",
        "length of the sentence",
        "distance of its last two positions",
        f"distance of position {COMPARED_POSITION} from position {COMPARED_POSITION} in a sentence of {SHORT_LENGTH}",
        "norm of the last position over that of a word",
        "cosine of the last word with and without its position",
    )
    formats = dict.fromkeys(columns[2:4], ".3f") | dict.fromkeys(columns[4:], ".2f")
    return Table(
        "-positions-by-length", columns, tuple(rows), "Properties that depend on the sentence length.", formats
    )


def _table_of_properties(sizes: Sizes) -> Table:
    length, offset, d_model = sizes.lengths[-1], 5, sizes.d_model
    d_map = min(64, d_model)
    words_ND = _words(sizes)
    properties: dict[str, Callable[[Option], float]] = {
        f"greatest element in a sentence of {length:,}": lambda option: float(option(length, d_model).max()),
        f"least distance of any two positions of {length:,}": lambda option: min_distance(option, length, d_model),
        f"relative spread of PE(p) · PE(p + {offset}) over p (0: depends on the offset only)": (
            lambda option: spread_of_products(option, length, d_model, offset)
        ),
        f"residual of the best matrix from PE(p) to PE(p + {offset}), relative (d_model {d_map})": (
            lambda option: error_of_best_map(option, length, d_map, offset)
        ),
        "how far the last position moves a word after layer norm, relative": (
            lambda option: shift_after_layer_norm(option(length, d_model)[-1], words_ND)
        ),
    }
    rows: list[tuple[Cell, ...]] = [(name, *map(of, OPTIONS.values())) for name, of in properties.items()]
    formats = dict.fromkeys(OPTIONS, ".3g")
    return Table(
        "-positions-properties", ("property", *OPTIONS), tuple(rows), "Properties in one long sentence.", formats
    )


def _table_of_accuracies(accuracies: Mapping[str, Sequence[float]], sizes: Sizes) -> Table:
    columns = ("positions", *(f"length {length}" for length in sizes.tested_lengths))
    rows: tuple[tuple[Cell, ...], ...] = tuple((name, *values) for name, values in accuracies.items())
    return Table("-positions-learned", columns, rows, formats=dict.fromkeys(columns[1:], ".0%"))


def _draw(accuracies: Mapping[str, Sequence[float]], sizes: Sizes, path: Path) -> None:
    figure, (neighbours, cosine, product, learned) = new_panels(9.5, 7.2, n_rows=2, n_columns=2)
    colours = dict(zip(OPTIONS, (COLOURS[1], COLOURS[4], COLOURS[0]), strict=True))
    longest, words_ND = sizes.lengths[-1], _words(sizes)
    lengths = torch.logspace(1, math.log10(longest), 25).long().tolist()
    for name, option in OPTIONS.items():
        colour = colours[name]
        distances = [distance_of_neighbours(option, n, sizes.d_model) for n in lengths]
        neighbours.plot(lengths, distances, color=colour, label=name)
        cosine.plot(cosine_with_word(option(longest, sizes.d_model), words_ND).tolist(), color=colour, label=name)
        learned.plot(sizes.tested_lengths, accuracies[name], "o-", color=colour, label=name)
    neighbours.set_xscale("log")
    neighbours.set_yscale("log")
    set_log_axis(neighbours, "x")
    set_log_axis(neighbours, "y")
    neighbours.set(
        xlabel="tokens in the sentence",
        ylabel="distance of its last two positions",
        title="Distance of neighbours",
    )
    cosine.set(
        xlabel=f"position, in a sentence of {longest:,}",
        ylabel="cosine with and without position",
        title="Similarity to the word without position",
        ylim=(0, 1),
    )
    _draw_products(product, longest, sizes.d_model, colours)
    learned.plot(sizes.tested_lengths, accuracies["none"], "o--", color=GREY, label="none")
    learned.axvspan(SHORTEST, LONGEST, color=GREY, alpha=0.15, linewidth=0)
    learned.set(
        xlabel="tokens in the sentence (shaded: lengths in training)",
        ylabel="accuracy",
        title="Learned: the previous token",
        ylim=(0, 1.03),
    )
    for panel in (neighbours, cosine, product, learned):
        panel.legend(frameon=False, fontsize=9)
    save_svg(figure, path)


def _draw_products(panel: Axes, n_positions: int, d_model: int, colours: Mapping[str, str]) -> None:
    """Plot PE(p) · PE(p + k) over PE(p) · PE(p) for some p in a sentence of ``n_positions``."""
    reach = min(40, n_positions // 3)
    positions = (reach, 2 * reach, min(4 * reach, n_positions - reach - 1))
    for name, dashes in (("integers", "--"), ("sinusoids", "-")):
        encoding_TD = OPTIONS[name](n_positions, d_model)
        for position in positions:
            near_TD = encoding_TD[position - reach : position + reach + 1]
            product_T = near_TD @ encoding_TD[position] / (encoding_TD[position] @ encoding_TD[position])
            label = f"{name}, p = {position}" if name == "integers" else f"{name}, all three p"
            is_first = name == "integers" or position == positions[0]
            panel.plot(
                range(-reach, reach + 1),
                product_T.tolist(),
                dashes,
                color=colours[name],
                alpha=1.0 if name == "sinusoids" else 0.4 + 0.3 * positions.index(position),
                label=label if is_first else None,
            )
    panel.set(
        xlabel="offset k (positions)",
        ylabel="PE(p) · PE(p + k), relative to k = 0",
        title="Does the product depend on the offset only?",
    )

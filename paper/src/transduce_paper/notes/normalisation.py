"""Batch norm and layer norm: the table of the lecture notes, and how a batch affects the states of each sentence.

Shapes: N rows (instances or real positions), D width of a row (features or d_model), B batch, T positions.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from dataclasses import asdict, astuple, dataclass
from itertools import islice
from pathlib import Path
from statistics import mean, median
from typing import Any

import torch
from pydantic import TypeAdapter
from torch import Tensor

from transduce.model import TransformerLM
from transduce_paper.drawing import COLOURS, new_panels, save_svg, set_log_axis
from transduce_paper.experiments import Experiments
from transduce_paper.measurement_cache import validated
from transduce_paper.notes.padded_batch_norm import BatchNormLanguageModel
from transduce_paper.notes.tiny import (
    BATCH_SIZE,
    GrammarText,
    Rows,
    grammar_text,
    language_batch,
    next_token_loss,
    trained,
)
from transduce_paper.report import Cell, Claim, Section, Table, agreement, picture

__all__ = ["NOTES_TABLE", "make_normalisation", "standardise"]

# Three instances of four features. Our copy is damaged; ``ABOUT_THE_TABLE`` says which numbers are certain.
NOTES_TABLE = ((1.0, 3.0, 5.0, 3.0), (7.0, 2.0, 6.0, 2.0), (8.0, 3.0, 2.0, 1.0))

ABOUT_THE_TABLE = """\
The notes draw three instances of four features and leave mean and standard deviation as an exercise. Our copy of that
drawing is damaged. Ten of the twelve numbers are legible; f2 of the second instance looks like a 2, and f1 of the
third has a stroke before the 8. Two of the four means are legible, 4.3 and 2.0: they are the means of f3 and f4 over
the three instances, so the drawing shows batch norm. The standard deviations are blank; ours divide by the number of
values, as both norms do."""

ABOUT_MEASUREMENT = """\
Two small causal language models (2 layers, d_model 64; grammar corpus, {vocab_size} tokens) are trained for
{sizes.n_updates} updates of {batch_size} sentences: one with layer norm as in the paper, one with batch norm instead,
over all positions of the padded batch. Then a sentence of {length} tokens is put in a batch with {n_others} others of
the same length, the batch is changed, and its states are compared: the relative norm of their difference (median over
{n_trials} sentences), and the share of its predicted next tokens that change. In evaluation mode, batch norm uses
running statistics from training."""

CONCLUSION = """\
With layer norm, and batch norm in evaluation mode, only rounding errors remain: the order of a sum depends on the batch
size. In training mode, batch norm makes the output for a sentence depend on the rest of the batch and on padding, and
a position sees later tokens of its own sentence through the batch statistics, which no causal mask prevents. Training
mode does not work for a single sentence: {alone.training:.2f} nats per token alone, {many.training:.2f} in
batches of {many.batch_size} (layer norm: {many.layer:.2f} in both). Evaluation mode gives {many.evaluation:.2f} in
both, but it is a different function from the trained one: its states differ from those of training mode by
{many.difference_any_length:.0%} in batches of {many.batch_size} sentences of any length, and by
{many.difference_one_length:.0%} in batches of one length, because the running statistics come from batches with more
padding. Batch norm in large models is not tested: both models are small and trained in seconds."""


def standardise(x_ND: Tensor, *, dim: int, eps: float = 0.0) -> Tensor:
    """Subtract the mean and divide by the standard deviation, per feature (``dim=0``, batch norm) or instance (1).

    >>> standardise(torch.tensor([[1.0, 3.0], [3.0, 9.0]]), dim=0).tolist()
    [[-1.0, -1.0], [1.0, 1.0]]
    """
    variance = x_ND.var(dim=dim, correction=0, keepdim=True)
    return (x_ND - x_ND.mean(dim=dim, keepdim=True)) / (variance + eps).sqrt()


@dataclass(frozen=True, slots=True)
class Sizes:
    """Size of the experiment: numbers of sentences, updates and trials."""

    n_pairs: int
    vocab_size: int
    n_updates: int
    n_trials: int
    n_others: int  # other sentences in the batch of a trial
    n_dev: int  # sentences for the dev loss
    batch_sizes: tuple[int, ...]


FULL = Sizes(
    n_pairs=1500,
    vocab_size=600,
    n_updates=240,
    n_trials=24,
    n_others=31,
    n_dev=320,
    batch_sizes=(1, 2, 4, 8, 16, 32, 64),
)
TEST = Sizes(n_pairs=100, vocab_size=300, n_updates=4, n_trials=2, n_others=3, n_dev=8, batch_sizes=(1, 2))
N_PADDING = 16  # columns of padding added to a batch


@dataclass(frozen=True, slots=True)
class Change:
    """Effect of a change of the batch with each norm: (relative change of states, fraction of next tokens changed)."""

    name: str
    layer: tuple[float, float]
    training: tuple[float, float]  # batch norm in training mode
    evaluation: tuple[float, float]  # batch norm in evaluation mode


@dataclass(frozen=True, slots=True)
class Losses:
    """Nats per dev token, in batches of ``batch_size`` sentences."""

    batch_size: int
    layer: float
    training: float  # batch norm in training mode
    evaluation: float  # batch norm in evaluation mode
    # Relative difference of a sentence's states between the two modes of batch norm.
    difference_any_length: float
    difference_one_length: float


@dataclass(frozen=True, slots=True)
class Effects:
    """What a batch does to a model with each norm: by each change, and by its size."""

    changes: tuple[Change, ...]
    losses: tuple[Losses, ...]


def make_normalisation(experiments: Experiments) -> Section:
    """Compute the worked table with both norms, and measure two models that differ only in the norm."""
    sizes = experiments.pick(FULL, test=TEST)
    text = grammar_text(n_train=sizes.n_pairs, n_dev=2 * sizes.n_pairs // 3, vocab_size=sizes.vocab_size)
    trials = list(_trials(text.dev, sizes))
    effects = _effects(experiments, text, trials, sizes)
    changes, losses = effects.changes, effects.losses
    alone, many = losses[0], losses[-1]
    return Section(
        "Batch norm and layer norm",
        (
            ABOUT_THE_TABLE,
            _worked_table(),
            ABOUT_MEASUREMENT.format(
                vocab_size=text.tokenizer.size,
                sizes=sizes,
                batch_size=BATCH_SIZE,
                length=len(trials[0].row),
                n_others=len(trials[0].others),
                n_trials=len(trials),
            ),
            _table_of_changes(changes),
            _table_of_losses(losses),
            CONCLUSION.format(alone=alone, many=many),
            picture("notes-normalisation", "Loss and difference of states over the batch size, for both norms"),
        ),
        finding=(
            f"In training mode, batch norm makes the loss depend on the batch ({alone.training:.2f} nats per token with"
            f" one sentence, {many.training:.2f} with {many.batch_size}); layer norm does not ({many.layer:.2f})."
        ),
        question="does the output for a sentence depend on the other sentences of its batch?",
        summary=(
            f"with batch norm the loss varies with the batch ({alone.training:.2f} to {many.training:.2f} nats per"
            " token)"
        ),
        drawings={"notes-normalisation": lambda path: _draw(losses, path)},
        claims=_claims(changes[CHANGES.index(REPLACED)]),
    )


def _effects(experiments: Experiments, text: GrammarText, trials: Sequence[Trial], sizes: Sizes) -> Effects:
    """Return what batches do to both models, which are trained if that is not cached beside the records."""

    def measure() -> list[dict[str, Any]]:
        kinds = (TransformerLM, BatchNormLanguageModel)
        models = Models(*(trained(text, kind=kind, n_updates=sizes.n_updates, peak_lr=4e-3) for kind in kinds))
        changes = tuple(_change(name, models, trials) for name in CHANGES)
        dev = text.dev[: sizes.n_dev]
        losses = tuple(_losses(models, dev, trials, batch_size) for batch_size in sizes.batch_sizes)
        return [asdict(Effects(changes, losses))]

    settings = {"n_updates": sizes.n_updates, "n_trials": sizes.n_trials, "n_dev": sizes.n_dev}
    measured = experiments.measurement("notes-normalisation", "effects", measure, settings=settings)
    (effects,) = validated(TypeAdapter(tuple[Effects]), measured, where="the cached effects of notes-normalisation")
    return effects


def _claims(replaced: Change) -> tuple[Claim, ...]:
    """Return what the notes say of both norms, tested by exchanging the other sentences of a batch."""
    return tuple(
        Claim(
            sentence,
            "notes",
            agreement(is_so),
            f"With other sentences in the batch, the states of a sentence change by {change:.2%}.",
            "by construction",
        )
        for sentence, change, is_so in (
            (
                "[Layer normalization is] normalization across features, independently for each sample",
                replaced.layer[0],
                replaced.layer[0] < 1e-5,
            ),
            (
                "[Batch normalization is] normalization across [the] mini-batch",
                replaced.training[0],
                replaced.training[0] > 1e-3,
            ),
        )
    )


@dataclass(frozen=True, slots=True)
class Models:
    """A model with each norm, in evaluation mode."""

    layer: TransformerLM
    batch: TransformerLM

    def batch_in_training_mode(self) -> TransformerLM:
        """Return a copy, since a forward pass in training mode changes the running statistics."""
        return copy.deepcopy(self.batch).train()


@dataclass(frozen=True, slots=True)
class Trial:
    """A sentence whose states are compared, and other sentences for its batch."""

    row: list[int]
    others: list[list[int]]  # of the same length
    replacements: list[list[int]]  # as many and of the same length, to replace ``others``
    any_length: list[list[int]]  # other sentences, of any length


def _trials(rows: Sequence[list[int]], sizes: Sizes) -> Iterator[Trial]:
    """Yield trials for sentences of the most frequent length, with others drawn at random."""
    lengths = [len(row) for row in rows]
    length = max(set(lengths), key=lambda each: (lengths.count(each), each))
    same_length = [row for row in rows if len(row) == length]
    generator = torch.Generator().manual_seed(2)
    n_others = min(sizes.n_others, (len(same_length) - 1) // 2)
    for index in range(min(sizes.n_trials, len(same_length))):
        others = [same_length[n] for n in torch.randperm(len(same_length), generator=generator).tolist() if n != index]
        any_length = [rows[n] for n in torch.randperm(len(rows), generator=generator)[: 2 * n_others].tolist()]
        yield Trial(same_length[index], others[:n_others], others[n_others : 2 * n_others], any_length)


REPLACED, PADDING, ALONE = "other sentences in the batch", f"{N_PADDING} more columns of padding", "alone in the batch"
LAST_TOKEN, MODE = "another last token; states before it", "the other mode, training or evaluation"
CHANGES = (REPLACED, PADDING, ALONE, LAST_TOKEN, MODE)


def _change(name: str, models: Models, trials: Sequence[Trial]) -> Change:
    in_training = models.batch_in_training_mode()
    before = (models.layer, in_training, models.batch)
    after = (models.layer, models.batch, in_training) if name == MODE else before
    return Change(name, *(_difference(name, old, new, trials) for old, new in zip(before, after, strict=True)))


@torch.no_grad()
def _difference(name: str, before: TransformerLM, after: TransformerLM, trials: Sequence[Trial]) -> tuple[float, float]:
    """Return the median relative change of the states, and the mean fraction of next tokens that change."""
    relative, fractions = [], []
    for trial in trials:
        row, others, n_padding = trial.row, trial.others, 0
        n_compared = len(row) + 1  # with BOS
        if name == REPLACED:
            others = trial.replacements
        elif name == PADDING:
            n_padding = N_PADDING
        elif name == ALONE:
            others = []
        elif name == LAST_TOKEN:
            row, n_compared = [*row[:-1], trial.others[0][1]], len(row)  # a token of another sentence
        old_TD = _states(before, [trial.row, *trial.others])[:n_compared]
        new_TD = _states(after, [row, *others], n_padding=n_padding)[:n_compared]
        relative.append(float((new_TD - old_TD).norm() / old_TD.norm()))
        old_T, new_T = (before.output.logits(states_TD).argmax(dim=1) for states_TD in (old_TD, new_TD))
        fractions.append(float((old_T != new_T).double().mean()))
    return median(relative), mean(fractions)


def _states(model: TransformerLM, rows: Rows, *, n_padding: int = 0) -> Tensor:
    """Return the states of all rows, those of the first row first, (N, D)."""
    states_ND: Tensor = model(language_batch(rows, n_padding=n_padding).ids_BT)
    return states_ND


@torch.no_grad()
def _losses(models: Models, rows: Sequence[list[int]], trials: Sequence[Trial], batch_size: int) -> Losses:
    def loss(model: TransformerLM) -> float:
        batches = (language_batch(rows[start : start + batch_size]) for start in range(0, len(rows), batch_size))
        losses = [next_token_loss(model, batch) for batch in batches]
        return sum(float(each.nll_nats) for each in losses) / sum(each.n_tokens for each in losses)

    in_training = models.batch_in_training_mode()

    def difference(row: list[int], others: Sequence[list[int]]) -> float:
        batch = [row, *islice(others, batch_size - 1)]
        n_compared = len(row) + 1  # with BOS
        new_TD, old_TD = (_states(model, batch)[:n_compared] for model in (in_training, models.batch))
        return float((new_TD - old_TD).norm() / old_TD.norm())

    return Losses(
        batch_size,
        loss(models.layer),
        loss(in_training),
        loss(models.batch),
        median(difference(trial.row, trial.any_length) for trial in trials),
        median(difference(trial.row, [*trial.others, *trial.replacements]) for trial in trials),
    )


def _worked_table() -> Table:
    x_ND = torch.tensor(NOTES_TABLE, dtype=torch.float64)
    mean_D, std_D = x_ND.mean(dim=0), x_ND.std(dim=0, correction=0)
    mean_N, std_N = x_ND.mean(dim=1), x_ND.std(dim=1, correction=0)
    rows: list[tuple[Cell, ...]] = [
        (f"instance {n + 1}", *values, float(mean_N[n]), float(std_N[n])) for n, values in enumerate(NOTES_TABLE)
    ]
    rows.append(("mean (batch norm)", *mean_D.tolist(), None, None))
    rows.append(("as the notes print it", None, None, 4.3, 2.0, None, None))
    rows.append(("standard deviation (batch norm)", *std_D.tolist(), None, None))
    for name, dim in (("batch norm", 0), ("layer norm", 1)):
        for n, values in enumerate(standardise(x_ND, dim=dim).tolist()):
            rows.append((f"instance {n + 1}, {name}", *values, None, None))
    columns = ("", "f1", "f2", "f3", "f4", "mean (layer norm)", "standard deviation (layer norm)")
    return Table(
        "-normalisation-worked",
        columns,
        tuple(rows),
        "Batch norm computes mean and standard deviation of a column, layer norm of a row.",
        dict.fromkeys(columns[1:], ".2f"),
    )


def _table_of_changes(changes: Sequence[Change]) -> Table:
    columns = (
        "what changes",
        "states, layer norm",
        "states, batch norm in training mode",
        "states, batch norm in evaluation mode",
        "next tokens, layer norm",
        "next tokens, batch norm in training mode",
        "next tokens, batch norm in evaluation mode",
    )
    rows: tuple[tuple[Cell, ...], ...] = tuple(
        (change.name, *(pair[kind] for kind in (0, 1) for pair in (change.layer, change.training, change.evaluation)))
        for change in changes
    )
    caption = "Change of a sentence's states and of its predicted next tokens."
    return Table("-normalisation-changes", columns, rows, caption, dict.fromkeys(columns[1:], ".2%"))


def _table_of_losses(losses: Sequence[Losses]) -> Table:
    columns = (
        "sentences in a batch",
        "layer norm",
        "batch norm in training mode",
        "batch norm in evaluation mode",
        "difference of the two modes, any length",
        "difference of the two modes, one length",
    )
    formats = dict.fromkeys(columns[1:4], ".3f") | dict.fromkeys(columns[4:], ".1%")
    caption = "Nats per dev token, and relative difference of states between the two modes of batch norm."
    return Table("-normalisation-losses", columns, tuple(map(astuple, losses)), caption, formats)


def _draw(losses: Sequence[Losses], path: Path) -> None:
    figure, (left, right) = new_panels(9.0, 3.6, n_columns=2)
    sizes = [each.batch_size for each in losses]
    left.plot(sizes, [each.training for each in losses], "o-", color=COLOURS[1], label="batch norm, training mode")
    left.plot(sizes, [each.evaluation for each in losses], "s-", color=COLOURS[4], label="batch norm, evaluation mode")
    left.plot(sizes, [each.layer for each in losses], "^-", color=COLOURS[0], label="layer norm")
    left.set(xlabel="sentences in a batch", ylabel="nats per dev token", title="Loss of the same text")
    one_length = [each.difference_one_length for each in losses]
    any_length = [each.difference_any_length for each in losses]
    right.plot(sizes, one_length, "o-", color=COLOURS[1], label="among sentences of one length")
    right.plot(sizes, any_length, "D-", color=COLOURS[3], label="among sentences of any length")
    right.set(
        xlabel="sentences in a batch",
        ylabel="relative difference of states",
        title="Batch norm: training against evaluation mode",
    )
    right.set_ylim(bottom=0)
    for panel in (left, right):
        set_log_axis(panel, "x", sizes, base=2)
        panel.legend(frameon=False, fontsize=9)
    save_svg(figure, path)

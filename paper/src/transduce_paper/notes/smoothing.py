"""Label smoothing: the worked example of the notes, and its effect on calibration.

Shapes: N predictions, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from math import log
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from pydantic import TypeAdapter
from torch import Tensor

from transduce.corpora import ParallelText
from transduce.errors import DataError
from transduce.inference import Translator, reliability_of_tokens
from transduce.loss import Smoothing
from transduce.metrics import ReliabilityBin, expected_calibration_error, overconfidence, reliability_bins
from transduce.training import cross_entropy_reference, smoothing_weights
from transduce_paper.drawing import COLOURS, GREY, new_panels, save_svg
from transduce_paper.experiments import Experiments
from transduce_paper.measurement_cache import validated
from transduce_paper.notes.tiny import BATCH_SIZE, GrammarText, grammar_text, language_batch, next_token_loss, trained
from transduce_paper.printed import PRINTED
from transduce_paper.report import Cell, Claim, Section, Table, agreement, picture
from transduce_paper.run_records import RunRecord, about_runs
from transduce_paper.sizes import size_description
from transduce_paper.table3.rows import row_at_scale, row_experiment

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["EPSILONS", "best_logits", "make_smoothing"]

# eps_ls -> row of Table 3.
EPSILONS: Mapping[float, str] = {0.0: "D-smooth0", 0.1: "base", 0.2: "D-smooth2"}

THE_EXAMPLE = """\
The notes have two formulas: (1 - α) y + α / K ("uniform" here), and ε / (k - 1) on each wrong class, as in the
authors' code ("authors"). Their example uses the first, with K = 3 classes, the first of them right, and α = 0.1. The
targets below are those of our training; the best logits are found by minimising its loss, starting from 0."""

ABOUT_CALIBRATION = """\
A model is calibrated if nine of ten predictions with probability 0.9 are right. A prediction here is the most probable
next target token of {record.dev_text}, given the source and the reference prefix ({n_predictions:,} predictions). They
are sorted into {n_bins} bins by probability; the expected calibration error (ECE) is the mean distance between
probability and accuracy. The runs differ only in ε; each has {record.updates:,} updates and
{record.tgt_tokens:,} target tokens ({record.machine}). {about_runs}"""

ABOUT_OVERFITTING = """\
The notes speak of overfitting, which takes many epochs over one text. So three small language models (2 layers,
d_model 64) are trained on only {n_sentences} sentences of the grammar corpus, in {n_updates} updates of {batch_size}
sentences, and evaluated on {n_dev} others. Nats per token are without smoothing."""

LIMITATIONS = """\
ECE depends on the bins and hides errors that cancel within one. One seed each and no interval: perplexity and BLEU of
such runs also differ by chance."""

N_BINS = 10


def make_smoothing(experiments: Experiments) -> Section:
    """Check the worked example, three runs on real text, and three models that overfit on purpose."""
    epsilons = experiments.pick(list(EPSILONS), test=[0.1])
    runs = {eps_ls: _measured_run(experiments, eps_ls) for eps_ls in epsilons}
    sizes = experiments.pick(FULL, test=TEST)
    text = grammar_text(n_train=sizes.n_sentences // 2, n_dev=sizes.n_dev // 2, vocab_size=sizes.vocab_size)
    overfitted = _measured_overfitted(experiments, text, sizes)
    record, bins = runs[0.1]
    return Section(
        "Label smoothing",
        (
            THE_EXAMPLE,
            _table_of_the_example(),
            ABOUT_CALIBRATION.format(
                record=record,
                n_predictions=sum(each.n for each in bins),
                n_bins=N_BINS,
                about_runs=about_runs(run for run, _ in runs.values()),
            ),
            _table_of_runs(runs),
            _verdict("these runs", {eps_ls: bins for eps_ls, (_, bins) in runs.items()}),
            ABOUT_OVERFITTING.format(
                n_sentences=len(text.train),
                n_updates=sizes.n_updates,
                batch_size=BATCH_SIZE,
                n_dev=len(text.dev),
            ),
            _table_of_overfitted(overfitted),
            _verdict("the overfitted models", {eps_ls: each.bins for eps_ls, each in overfitted.items()}),
            LIMITATIONS,
            picture("notes-calibration", "Accuracy over predicted probability, for three values of label smoothing"),
        ),
        finding=_finding(record.dev_text, {eps_ls: bins for eps_ls, (_, bins) in runs.items()}, overfitted),
        question="does label smoothing make a model's probabilities match its accuracy?",
        summary=_summary(record.dev_text, {eps_ls: bins for eps_ls, (_, bins) in runs.items()}, overfitted),
        drawings={
            "notes-calibration": lambda path: _draw(
                {
                    record.dev_text: {eps_ls: bins for eps_ls, (_, bins) in runs.items()},
                    "overfitted on purpose": {eps_ls: each.bins for eps_ls, each in overfitted.items()},
                },
                path,
            )
        },
        claims=() if experiments.scale == "test" else _claims(runs, overfitted),
    )


def _claims(
    runs: Mapping[float, tuple[RunRecord, Sequence[ReliabilityBin]]], overfitted: Mapping[float, Overfitted]
) -> tuple[Claim, ...]:
    """Return the paper's sentence on accuracy, the worked example of the notes, and theirs on calibration."""
    logits = best_logits(0.1, 3, "uniform")
    right = float(logits.softmax(dim=0)[0])
    accuracies = {eps_ls: _calibration(bins)[0] for eps_ls, (_, bins) in runs.items()}
    of_runs = {eps_ls: _calibration(bins)[2] for eps_ls, (_, bins) in runs.items()}
    of_overfitted = {eps_ls: _calibration(each.bins)[2] for eps_ls, each in overfitted.items()}
    helps = [errors[0.1] < errors[0.0] for errors in (of_runs, of_overfitted)]
    difference, largest = _gradient_of_cross_entropy()
    return (
        Claim(
            "[label smoothing] improves accuracy",
            "section 5.4",
            agreement(None, is_trained=all(runs[eps_ls][0].is_trained_to_the_end for eps_ls in (0.0, 0.1))),
            f"Of the next tokens of {runs[0.1][0].dev_text}, {accuracies[0.0]:.2%} are predicted right without it and"
            f" {accuracies[0.1]:.2%} with ε = 0.1; one seed each.",
        ),
        Claim(
            "∇CE = p - y = softmax(z) - y [...] The gradient is bounded between -1 and 1",
            "notes",
            agreement(difference < 1e-12 and largest <= 1),
            f"By automatic differentiation, for random logits: the largest difference from p - y is {difference:.0e},"
            f" the largest element {largest:.3f}.",
            "algebra",
        ),
        Claim(
            "The logit vector [3.3322, 0, 0] approximates the smoothed label vector to 4 decimal places after softmax",
            "notes",
            agreement(f"{float(logits[0]):.4f}" == "3.3322" and f"{right:.4f}" == "0.9333"),
            f"The logit of least loss is {float(logits[0]):.4f}, its softmax {right:.4f}.",
            "algebra",
        ),
        Claim(
            "[smoothing] results in better model calibration and prevents overconfident predictions",
            "notes",
            agreement(all(helps) if len(set(helps)) == 1 else None),
            f"Calibration error without and with ε = 0.1: {of_runs[0.0]:.1%} and {of_runs[0.1]:.1%} for a model that"
            f" does not overfit, {of_overfitted[0.0]:.1%} and {of_overfitted[0.1]:.1%} for one that does; one"
            " seed each.",
        ),
    )


def _gradient_of_cross_entropy() -> tuple[float, float]:
    """Return how far the gradient by the logits is from p - y, and its largest absolute element, for random logits."""
    generator = torch.Generator().manual_seed(1)
    logits_NV = (10 * torch.randn(100, 20, generator=generator, dtype=torch.float64)).requires_grad_()
    right_N = torch.randint(20, (100,), generator=generator)
    loss = torch.nn.functional.cross_entropy(logits_NV, right_N, reduction="sum")
    (gradient_NV,) = torch.autograd.grad(loss, logits_NV)
    expected_NV = logits_NV.detach().softmax(dim=1) - torch.nn.functional.one_hot(right_N, 20)
    return float((gradient_NV - expected_NV).abs().max()), float(gradient_NV.abs().max())


def best_logits(eps_ls: float, n_classes: int, smoothing: Smoothing) -> Tensor:
    """Return the logits of minimum loss if the first class is right and the last logit is 0, (V,), by L-BFGS.

    >>> [f"{logit:.4f}" for logit in best_logits(0.1, 3, "uniform").tolist()]
    ['3.3322', '0.0000', '0.0000']
    """
    logits_1V = torch.zeros(1, n_classes, dtype=torch.float64, requires_grad=True)
    identity_VV, first_1 = torch.eye(n_classes, dtype=torch.float64), torch.tensor([0])
    optimiser = torch.optim.LBFGS(
        [logits_1V], max_iter=200, tolerance_grad=1e-13, tolerance_change=0.0, line_search_fn="strong_wolfe"
    )

    def loss() -> Tensor:
        optimiser.zero_grad()
        result = cross_entropy_reference(logits_1V, identity_VV, first_1, eps_ls=eps_ls, smoothing=smoothing)
        torch.autograd.backward(result.loss_nats)
        return result.loss_nats

    optimiser.step(loss)  # type: ignore[no-untyped-call]
    return logits_1V.detach()[0] - logits_1V.detach()[0, -1]


def _table_of_the_example() -> Table:
    kinds: tuple[Smoothing, ...] = ("uniform", "authors")
    weights = {kind: smoothing_weights(0.1, 3, kind) for kind in kinds}
    best = {kind: best_logits(0.1, 3, kind) for kind in kinds}
    hard = torch.tensor([10.0, 0.0, 0.0], dtype=torch.float64).softmax(dim=0)
    rows: tuple[tuple[Cell, ...], ...] = (
        ("target of the right class", 0.9333, *(right + every for right, every in weights.values())),
        ("target of each wrong class", 0.0333, *(every for _, every in weights.values())),
        ("best logit of the right class, the others 0", 3.3322, *(float(logits[0]) for logits in best.values())),
        ("its softmax", 0.9333, *(float(logits.softmax(dim=0)[0]) for logits in best.values())),
        ("log of right over wrong target: the best logit by formula", None, *map(_log_ratio, weights.values())),
        ("softmax of [10, 0, 0], the direction of unsmoothed labels", 0.9999, float(hard[0]), float(hard[0])),
    )
    columns = ("quantity", "printed in the notes", "uniform", "authors")
    return Table("-smoothing-example", columns, rows, formats=dict.fromkeys(columns[1:], ".4f"))


def _log_ratio(weights: tuple[float, float]) -> float:
    right, every = weights
    return log((right + every) / every)


def _measured_run(experiments: Experiments, eps_ls: float) -> tuple[RunRecord, tuple[ReliabilityBin, ...]]:
    """Return the record of a run and its reliability bins, cached beside the record."""
    experiment = row_experiment(experiments, EPSILONS[eps_ls], seed=1)

    def measure(model_folder: Path) -> list[dict[str, Any]]:
        translator = Translator.load(model_folder, device=experiments.device)
        pairs = list(ParallelText(experiment.config.data, experiments.data_folder).of("dev"))
        return [asdict(each) for each in reliability_of_tokens(translator, pairs, n_bins=N_BINS)]

    measured = experiments.cached_measurement(experiment, "calibration", measure, settings={"n_bins": N_BINS})
    try:
        bins = tuple(ReliabilityBin(**each) for each in measured)
    except TypeError as error:
        raise DataError(f"{experiment.name}: the cached calibration is not of this version ({error})") from error
    return experiments.run(experiment), bins  # read again: it changes if the model had to be retrained


def _confidence_and_correctness(logits_NV: Tensor, targets_N: Tensor) -> tuple[np.ndarray, np.ndarray]:
    confidence_N, most_probable_N = logits_NV.float().softmax(dim=1).max(dim=1)
    return confidence_N.cpu().numpy(), (most_probable_N == targets_N).cpu().numpy()


@dataclass(frozen=True, slots=True)
class Sizes:
    """Sizes of the overfitted models' text and training."""

    n_sentences: int
    n_dev: int
    vocab_size: int
    n_updates: int


FULL = Sizes(n_sentences=120, n_dev=600, vocab_size=600, n_updates=200)
TEST = Sizes(n_sentences=20, n_dev=20, vocab_size=300, n_updates=3)


@dataclass(frozen=True, slots=True)
class Overfitted:
    """Nats per token, unsmoothed, of the training text and of dev text, and the reliability on the latter."""

    eps_ls: float
    train_nats: float
    dev_nats: float
    bins: tuple[ReliabilityBin, ...]


def _measured_overfitted(experiments: Experiments, text: GrammarText, sizes: Sizes) -> dict[float, Overfitted]:
    """Return what the overfitted models do by their smoothing, cached beside the records."""
    measured = experiments.measurement(
        "notes-smoothing",
        "overfitted",
        lambda: [asdict(_overfitted(text, eps_ls, sizes)) for eps_ls in EPSILONS],
        settings={"n_sentences": sizes.n_sentences, "n_updates": sizes.n_updates, "n_bins": N_BINS},
    )
    where = "the cached calibration of notes-smoothing"
    return {each.eps_ls: each for each in validated(TypeAdapter(tuple[Overfitted, ...]), measured, where=where)}


def _overfitted(text: GrammarText, eps_ls: float, sizes: Sizes) -> Overfitted:
    model = trained(text, eps_ls=eps_ls, n_updates=sizes.n_updates, peak_lr=6e-3)
    with torch.no_grad():
        train_loss, dev_loss = (next_token_loss(model, language_batch(rows)) for rows in (text.train, text.dev))
        batch = language_batch(text.dev)
        bins = reliability_bins(
            *_confidence_and_correctness(model.output.logits(model(batch.ids_BT)), batch.targets_N), n_bins=N_BINS
        )
        train_nats, dev_nats = (float(loss.nll_nats) / loss.n_tokens for loss in (train_loss, dev_loss))
        return Overfitted(eps_ls, train_nats, dev_nats, bins)


def _calibration(bins: Sequence[ReliabilityBin]) -> tuple[float, float, float]:
    """Return accuracy, mean probability and ECE."""
    accuracy = sum(each.n * each.accuracy for each in bins if each.accuracy is not None) / sum(each.n for each in bins)
    return accuracy, accuracy + overconfidence(bins), expected_calibration_error(bins)


def _table_of_runs(runs: Mapping[float, tuple[RunRecord, tuple[ReliabilityBin, ...]]]) -> Table:
    columns = (
        "ε", "PPL, paper", "PPL, ours", "BLEU, paper", "BLEU, ours", "accuracy", "mean probability", "ECE",
    )  # fmt: skip
    rows = tuple(
        (
            f"{eps_ls}",
            PRINTED.table3[EPSILONS[eps_ls]].perplexity,
            record.dev_perplexity,
            PRINTED.table3[EPSILONS[eps_ls]].bleu,
            float(record.dev_scores["sacrebleu"]["score"]),
            *_calibration(bins),
        )
        for eps_ls, (record, bins) in runs.items()
    )
    record = runs[0.1][0]
    caption = (
        f"Paper: {size_description(row_at_scale('base', 'paper'))}, on newstest2013 (Table 3). Ours:"
        f" {size_description(record.config)}, on {record.dev_text}, PPL unsmoothed, BLEU"
        f" `{record.dev_scores['sacrebleu']['signature']}`, seed 1. Table 3 has the interval of seeds."
    )
    return Table("-calibration", columns, rows, caption, _formats(columns))


def _table_of_overfitted(overfitted: Mapping[float, Overfitted]) -> Table:
    columns = ("ε", "nats, learned text", "nats, other text", "accuracy", "mean probability", "ECE")
    rows = tuple(
        (f"{eps_ls}", each.train_nats, each.dev_nats, *_calibration(each.bins)) for eps_ls, each in overfitted.items()
    )
    return Table("-calibration-overfitted", columns, rows, formats=_formats(columns))


def _formats(columns: Sequence[str]) -> dict[str, str]:
    shares = {"accuracy", "mean probability", "ECE"}
    return {column: ".1%" if column in shares else ".1f" if column.startswith("BLEU") else ".2f" for column in columns}


def _summary(text: str, runs: Mapping[float, Sequence[ReliabilityBin]], overfitted: Mapping[float, Overfitted]) -> str:
    """Summarise the effect of the largest ε on the ECE."""
    pairs = ((text, runs), ("overfitted models", {eps_ls: each.bins for eps_ls, each in overfitted.items()}))
    return "label smoothing changes the calibration error " + " and ".join(
        f"from {expected_calibration_error(bins[min(bins)]):.1%} to {expected_calibration_error(bins[max(bins)]):.1%}"
        f" on {name}"
        for name, bins in pairs
    )


def _finding(text: str, runs: Mapping[float, Sequence[ReliabilityBin]], overfitted: Mapping[float, Overfitted]) -> str:
    """Summarise the ECE over ε, of the runs and of the overfitted models."""

    def listed(bins_of: Mapping[float, Sequence[ReliabilityBin]]) -> str:
        return ", ".join(f"{expected_calibration_error(bins):.1%} at {eps_ls}" for eps_ls, bins in bins_of.items())

    return (
        f"Label smoothing ε gives an expected calibration error of {listed(runs)} on {text}, and of"
        f" {listed({eps_ls: each.bins for eps_ls, each in overfitted.items()})} on overfitted models."
    )


def _verdict(who: str, bins_of: Mapping[float, Sequence[ReliabilityBin]]) -> str:
    """Summarise the calibration of some models: the best ECE, and the mean over- or underconfidence."""
    errors = {eps_ls: expected_calibration_error(bins) for eps_ls, bins in bins_of.items()}
    best = min(errors, key=errors.__getitem__)
    leaning = [
        f"{'over' if overconfidence(bins) > 0 else 'under'}confident by {abs(overconfidence(bins)):.1%} (ε = {eps_ls})"
        for eps_ls, bins in bins_of.items()
    ]
    return f"Of {who}, the one with ε = {best} is best calibrated. On average they are {', '.join(leaning)}."


def _draw(panels: Mapping[str, Mapping[float, Sequence[ReliabilityBin]]], path: Path) -> None:
    figure, axes = new_panels(9.5, 4.4, n_columns=len(panels))
    for panel, (title, bins_of) in zip(axes, panels.items(), strict=True):
        _draw_reliability(panel, bins_of)
        panel.set_title(title)
    save_svg(figure, path)


def _draw_reliability(panel: Axes, bins_of: Mapping[float, Sequence[ReliabilityBin]]) -> None:
    """Plot accuracy over probability: on the diagonal a model is calibrated; larger points have more predictions."""
    panel.plot((0, 1), (0, 1), "--", color=GREY, linewidth=1, label="calibrated; below: overconfident")
    colours = dict(zip(EPSILONS, (COLOURS[1], COLOURS[0], COLOURS[2]), strict=True))
    for eps_ls, bins in bins_of.items():
        filled = [each for each in bins if each.n]
        x = np.array([each.confidence for each in filled], dtype=float)
        y = np.array([each.accuracy for each in filled], dtype=float)
        n = sum(each.n for each in bins)
        error = expected_calibration_error(bins)
        panel.plot(x, y, color=colours[eps_ls], label=f"ε = {eps_ls}, ECE {error:.1%}")
        panel.scatter(
            x, y, s=[10 + 300 * each.n / n for each in filled], color=colours[eps_ls], alpha=0.7, linewidths=0
        )
    panel.set(xlabel="probability of the most probable token", ylabel="accuracy", xlim=(0, 1), ylim=(0, 1), aspect=1)
    panel.legend(frameon=False, fontsize=9, loc="upper left")

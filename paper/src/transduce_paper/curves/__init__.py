"""Curves of sections 3.5 and 5.3: the learning rate, sinusoids, and translation of long sentences by position encoding.

Shapes: T positions, D d_model.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path

import torch
from torch import Tensor

from transduce.config import RunConfig
from transduce.model import sinusoid
from transduce.recipes import preset
from transduce.training import inverse_sqrt_lr
from transduce_paper.curves.extrapolation import CLASSES, MAX_TRAINED, ClassScores, Positions, by_length, experiment
from transduce_paper.drawing import COLOURS, GREY, INK, new_figure, new_panels, save_svg, set_log_axis, style
from transduce_paper.experiments import Experiments
from transduce_paper.report import Cell, Claim, Report, Table, agreement, how_to_reproduce, picture
from transduce_paper.request import Request
from transduce_paper.run_records import RunRecord, about_runs, machines

__all__ = ["deviation_of_shift", "make_curves", "peak", "shift_matrix"]

PRESETS = ("base", "big")
SHIFTS = (1, 2, 10, 100, 1000)
N_POSITIONS, D_MODEL = 4096, 512
MAX_WAVELENGTH = 2 * math.pi * 10_000  # in positions, as section 3.5 says it
POSITIONS: tuple[Positions, ...] = ("sinusoidal", "learned")
COLOUR_OF: Mapping[Positions, str] = {"sinusoidal": COLOURS[0], "learned": COLOURS[1]}


def make_curves(experiments: Experiments, request: Request) -> Report:
    """Plot the learning rate of equation 3 and the sinusoids; test their linear map and long sentences."""
    runs = {positions: experiment(experiments, positions) for positions in POSITIONS}
    records = [experiments.run(run) for run in runs.values()]
    scores = {positions: by_length(experiments, run) for positions, run in runs.items()}
    deviations = [deviation_of_shift(shift_matrix(k, D_MODEL), k, N_POSITIONS) for k in SHIFTS]
    return Report(
        "Curves: learning rate and positional encoding",
        (
            how_to_reproduce(
                "curves",
                scale=experiments.scale,
                seeds="seed 1",
                hardware=machines(records),
            ),
            *_about_the_schedule(),
            picture("curves-schedule", "Learning rate over updates for base and big"),
            *_about_shifts(deviations),
            picture("curves-sinusoids", "Sinusoids as an image, single dimensions, and PE(pos) · PE(pos + k) over k"),
            *_about_lengths(scores, runs["sinusoidal"].config, records),
            picture("curves-lengths", "BLEU and perplexity by sentence length, sinusoidal and learned positions"),
        ),
        drawings={
            "curves-schedule": _draw_schedule,
            "curves-sinusoids": _draw_sinusoids,
            "curves-lengths": lambda path: _draw_lengths(scores, path),
        },
        claims=_claims(deviations, scores),
        finding=_verdict(deviations, scores),
        name="curves",
    )


def _claims(deviations: Sequence[float], scores: Mapping[Positions, Sequence[ClassScores]]) -> tuple[Claim, ...]:
    """Return the sentences of section 3.5."""
    wavelengths = _wavelengths(D_MODEL)
    ratios = [after / before for before, after in pairwise(wavelengths)]
    sinusoidal, learned = (scores[positions] for positions in POSITIONS)
    beyond = list(zip(sinusoidal, learned, strict=True))[1:]
    is_always_better = all(sine.bleu > table.bleu for sine, table in beyond)
    return (
        Claim(
            "The wavelengths form a geometric progression from 2π to 10000 · 2π",
            "section 3.5",
            agreement(max(ratios) - min(ratios) < 1e-9 and wavelengths[-1] > 0.95 * MAX_WAVELENGTH),
            f"They do, though the printed formula ends at {wavelengths[-1] / (2 * math.pi):,.0f} · 2π with d_model ="
            f" {D_MODEL}: its last exponent is (d_model - 2) / d_model, not 1.",
            "algebra",
        ),
        Claim(
            "for any fixed offset k, PE(pos+k) can be represented as a linear function of PE(pos)",
            "section 3.5",
            agreement(max(deviations) < 1e-6),
            f"With the rotation M_k, the largest difference is {max(deviations):.1e}, for k up to {SHIFTS[-1]:,}.",
            "algebra",
        ),
        Claim(
            "We chose the sinusoidal version because it may allow the model to extrapolate to sequence lengths longer"
            " than the ones encountered during training",
            "section 3.5",
            agreement(None),
            f"Trained up to {MAX_TRAINED} tokens, one seed each: sinusoids and learned positions have"
            f" {sinusoidal[0].bleu:.1f} and {learned[0].bleu:.1f} BLEU within, "
            + ", ".join(f"{sine.bleu:.1f} and {table.bleu:.1f}" for sine, table in beyond)
            + f" beyond; sinusoids are better in {'all' if is_always_better else 'some'} classes, but both lose most.",
        ),
    )


def _wavelengths(d_model: int) -> list[float]:
    """Return the wavelength of each pair of dimensions, in positions, by the formula of section 3.5."""
    return [2 * math.pi * 10_000 ** (2 * i / d_model) for i in range(d_model // 2)]


def _verdict(deviations: Sequence[float], scores: Mapping[Positions, Sequence[ClassScores]]) -> str:
    """Summarise the linear map and the first class of lengths beyond training."""
    sinusoidal, learned = (scores[positions][1] for positions in POSITIONS)
    relation = "more" if sinusoidal.bleu > learned.bleu else "no more"
    return (
        f"PE(pos+k) is a linear function of PE(pos), to within {max(deviations):.1e}, as section 3.5 says; on sentences"
        f" just longer than in training ({CLASSES[1]} tokens), sinusoids have {relation} BLEU than learned positions"
        f" ({sinusoidal.bleu:.1f} and {learned.bleu:.1f})."
    )


def peak(d_model: int, warmup_steps: int) -> tuple[int, float]:
    """Return the update with the highest learning rate, found by trying every one, and that rate."""
    rates = {step: inverse_sqrt_lr(step, d_model=d_model, warmup_steps=warmup_steps) for step in range(1, 20_001)}
    highest = max(rates, key=lambda step: rates[step])
    return highest, rates[highest]


def shift_matrix(k: int, d_model: int) -> Tensor:
    """Return M_k, (D, D), with PE(pos + k) = M_k PE(pos) for any pos: a rotation of each pair of sine and cosine.

    sin(a + b) = cos b sin a + sin b cos a, cos(a + b) = -sin b sin a + cos b cos a, with a = pos w and b = k w.
    """
    of_k_D = sinusoid(k + 1, d_model)[k]  # sin k w and cos k w, side by side for each w
    sine, cosine = of_k_D[0::2], of_k_D[1::2]
    rotations = torch.stack((torch.stack((cosine, sine), dim=-1), torch.stack((-sine, cosine), dim=-1)), dim=-2)
    matrix_DD: Tensor = torch.block_diag(*rotations)  # type: ignore[no-untyped-call]
    return matrix_DD


def deviation_of_shift(matrix_DD: Tensor, k: int, n_positions: int) -> float:
    """Return the largest |PE(pos + k) - M PE(pos)| in any dimension, for all pos below ``n_positions``."""
    table_TD = sinusoid(n_positions + k, len(matrix_DD))
    return float((table_TD[k:] - table_TD[:n_positions] @ matrix_DD.T).abs().max())


def _about_the_schedule() -> tuple[str | Table, ...]:
    rows: list[tuple[Cell, ...]] = []
    for name in PRESETS:
        run = preset(name)
        d_model, warmup_steps, last = run.model.d_model, run.training.warmup_steps, run.training.max_updates
        end = inverse_sqrt_lr(last, d_model=d_model, warmup_steps=warmup_steps)
        rows.append((name, d_model, warmup_steps, *peak(d_model, warmup_steps), last, end))
    columns = ("model", "d_model", "warmup_steps", "highest at update", "highest rate", "last update", "rate there")
    return (
        """\
## The learning rate

Section 5.3, equation 3: linear warm-up, then decay with the inverse square root of the update. The paper gives the
formula and warmup_steps = 4000, but no rates; the highest is d_model^-0.5 warmup_steps^-0.5.""",
        Table("-schedule", columns, tuple(rows), formats={"highest rate": ".3e", "rate there": ".3e"}),
    )


def _about_shifts(deviations: Sequence[float]) -> tuple[str | Table, ...]:
    rows = tuple(
        (
            k,
            deviation,
            deviation_of_shift(shift_matrix(k + 1, D_MODEL), k, N_POSITIONS),
        )
        for k, deviation in zip(SHIFTS, deviations, strict=True)
    )
    columns = ("k", "largest deviation", "with M_(k+1) instead")
    return (
        f"""\
## Positions as sinusoids

"For any fixed offset k, PE(pos+k) can be represented as a linear function of PE(pos)." The function is a matrix M_k
that rotates each pair of sine and cosine by k times its frequency. The table has the largest |PE(pos+k) - M_k PE(pos)|
over the first {N_POSITIONS:,} positions and all {D_MODEL} dimensions, in float64, and for comparison that of a wrong
matrix, M_(k+1). Since M_k is a rotation, PE(pos) · PE(pos+k) depends on k alone (last panel of the plot).""",
        Table("-shifts", columns, rows, formats={columns[1]: ".1e", columns[2]: ".2f"}),
    )


def _about_lengths(
    scores: Mapping[Positions, Sequence[ClassScores]], model: RunConfig, records: Sequence[RunRecord]
) -> tuple[str | Table, ...]:
    sinusoidal, learned = (scores[positions] for positions in POSITIONS)
    rows = tuple(
        (str(each), sine.sentences, sine.bleu, table.bleu, sine.perplexity, table.perplexity)
        for each, sine, table in zip(CLASSES, sinusoidal, learned, strict=True)
    )
    columns = ("tokens", "pairs", "BLEU, sinusoidal", "BLEU, learned", "PPL, sinusoidal", "PPL, learned")
    return (
        f"""\
## Longer sentences than trained on

Section 3.5: learned positions "produced nearly identical results"; the sinusoidal version was chosen "because it may
allow the model to extrapolate to sequence lengths longer than the ones encountered during training". The paper does not
test that. We train two models that differ only in their positions ({model.model.layers_in_words()}, d_model
{model.model.d_model}, {model.training.max_updates:,} updates, seed {model.training.seed}) on pairs of at most
{MAX_TRAINED} tokens of the built-in corpus, and evaluate them on its test pairs, grouped by the length of the longer
side.

Within the trained lengths: {sinusoidal[0].bleu:.1f} BLEU with sinusoids, {learned[0].bleu:.1f} with learned positions.
Just beyond: {sinusoidal[1].bleu:.1f} and {learned[1].bleu:.1f}; the longest: {sinusoidal[-1].bleu:.1f} and
{learned[-1].bleu:.1f}. Learned positions beyond {MAX_TRAINED} keep their random initial values, since no update changes
them. Longer sentences also have constructions that short ones lack, for both models; how much of the loss is due to
these is not measured. One seed each, so differences of a few points mean nothing. {about_runs(records)}""",
        Table(
            "-lengths",
            columns,
            rows,
            f"sacreBLEU ({sinusoidal[0].signature}) and perplexity per token of the reference.",
            dict.fromkeys(columns[2:], ".2f"),
        ),
    )


def _draw_schedule(path: Path) -> None:
    figure, (panel,) = new_panels(8.5, 4.4)
    for name, colour in zip(PRESETS, COLOURS, strict=False):
        run = preset(name)
        d_model, warmup_steps = run.model.d_model, run.training.warmup_steps
        steps = range(1, 40_001, 50)
        rates = [inverse_sqrt_lr(step, d_model=d_model, warmup_steps=warmup_steps) for step in steps]
        highest, rate = peak(d_model, warmup_steps)
        label = f"{name}, d_model = {d_model}: at most {rate:.2e}, at update {highest:,}"
        panel.plot(steps, rates, color=colour, linewidth=2, label=label)
        panel.plot([highest], [rate], color=colour, marker="o")
    panel.set(xlabel="update", ylabel="learning rate", xlim=(0, 40_000), ylim=(0, 8e-4))
    panel.set_xticks(range(0, 40_001, 5000), [f"{step:,}" for step in range(0, 40_001, 5000)])
    panel.ticklabel_format(axis="y", style="sci", scilimits=(0, 0), useMathText=True)
    panel.set_title("Equation 3", loc="left")
    panel.legend(frameon=False)
    save_svg(figure, path)


def _draw_sinusoids(path: Path) -> None:
    n_shown, dimensions, n_apart = 128, (60, 100, 140, 200), 128
    figure = new_figure(11, 6)
    grid = figure.add_gridspec(2, 3, width_ratios=(1, 1, 1.7))
    sines = figure.add_subplot(grid[:, 0])
    cosines = figure.add_subplot(grid[:, 1], sharey=sines)
    waves, similarity = (figure.add_subplot(grid[row, 2]) for row in (0, 1))
    table_TD = sinusoid(n_shown, D_MODEL).numpy()
    for panel, first, name in ((sines, 0, "Sines, even dimensions"), (cosines, 1, "Cosines, odd dimensions")):
        extent = (0, D_MODEL, n_shown, 0)
        values = table_TD[:, first::2]
        image = panel.imshow(values, "RdBu", vmin=-1, vmax=1, aspect="auto", interpolation="none", extent=extent)
        panel.set_title(name, loc="left", fontsize=11)
        panel.set(xlabel="dimension", xticks=range(0, D_MODEL + 1, 128))
    sines.set_ylabel("position")
    cosines.tick_params(labelleft=False)
    figure.colorbar(image, ax=(sines, cosines), location="bottom", shrink=0.5, ticks=[-1, 0, 1])
    for dimension, colour in zip(dimensions, COLOURS, strict=False):
        waves.plot(table_TD[:, dimension], color=colour, label=f"dimension {dimension}")
    waves.set(xlabel="position", ylabel="PE", ylim=(-1.1, 1.9), yticks=(-1, 0, 1))
    waves.set_title("Single dimensions", loc="left", fontsize=11)
    waves.legend(frameon=False, ncols=2, loc="upper center", fontsize=9)
    # Any position may be the first of the two: the middle one has all others around it here.
    all_TD = sinusoid(2 * n_apart + 1, D_MODEL)
    similarity.plot(range(-n_apart, n_apart + 1), (all_TD @ all_TD[n_apart]).numpy(), color=INK)
    similarity.set(xlabel="k, positions apart", ylabel="PE(pos) · PE(pos + k)", ylim=(0, 0.55 * D_MODEL))
    similarity.set_title("The dot product depends on the offset alone", loc="left", fontsize=11)
    for panel in (waves, similarity):
        style(panel)
    save_svg(figure, path)


def _draw_lengths(scores: Mapping[Positions, Sequence[ClassScores]], path: Path) -> None:
    figure, (bleu, perplexity) = new_panels(10.5, 4.2, 1, 2)
    x = range(len(CLASSES))
    for positions, of_class in scores.items():
        colour, label = COLOUR_OF[positions], f"{positions} positions"
        bleu.plot(x, [each.bleu for each in of_class], color=colour, marker="o", label=label)
        perplexity.plot(x, [each.perplexity for each in of_class], color=colour, marker="o", label=label)
    for panel in (bleu, perplexity):
        panel.axvspan(-0.4, 0.5, color=GREY, alpha=0.15, linewidth=0)
        panel.set_xticks(x, [str(each) for each in CLASSES])
        panel.set(xlabel="tokens of the longer side", xlim=(-0.4, len(CLASSES) - 0.6))
    for panel, height, side in ((bleu, 0.03, "bottom"), (perplexity, 0.97, "top")):  # where there are no curves
        panel.text(-0.34, height, "lengths in\ntraining", transform=panel.get_xaxis_transform(), color=GREY, va=side)
    bleu.set(ylabel="sacreBLEU", ylim=(0, 100))
    highest = max(each.perplexity for of_class in scores.values() for each in of_class)
    perplexity.set(ylabel="perplexity per token", ylim=(1, max(2.0, 1.5 * highest)))
    set_log_axis(perplexity, "y")
    bleu.set_title("BLEU by length", loc="left")
    perplexity.set_title("Perplexity by length", loc="left")
    bleu.legend(frameon=False)
    perplexity.legend(frameon=False, loc="lower right")
    save_svg(figure, path)

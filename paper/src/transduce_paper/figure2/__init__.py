"""Figure 2 and footnote 4: why dot products are divided by sqrt(d_k), and whether our layers match section 3.2.

Shapes: N rows (one query each), S keys of each query, K d_k.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import astuple, dataclass
from pathlib import Path

import torch
from torch import Tensor

from transduce.config import TransformerConfig
from transduce_paper.drawing import COLOURS, GREY, new_panels, save_svg, set_log_axis
from transduce_paper.experiments import Experiments
from transduce_paper.figure2.numpy_attention import Agreement, agreements
from transduce_paper.report import Cell, Claim, Report, Table, agreement, how_to_reproduce, picture
from transduce_paper.request import Request

__all__ = ["Saturation", "make_figure2", "saturation", "variance_of_products"]

N_KEYS = 64
VANISHED = 0.01  # a softmax whose gradient is smaller is called saturated

# Independent components with mean 0 and variance 1, as footnote 4 assumes.
COMPONENTS: Mapping[str, Callable[[tuple[int, ...], torch.Generator], Tensor]] = {
    "normal": lambda shape, generator: torch.randn(shape, generator=generator, dtype=torch.float64),
    "uniform": lambda shape, generator: (
        (2 * torch.rand(shape, generator=generator, dtype=torch.float64) - 1) * math.sqrt(3)
    ),
    "signs": lambda shape, generator: 2.0 * torch.randint(2, shape, generator=generator, dtype=torch.float64) - 1,
}


@dataclass(frozen=True, slots=True)
class Sizes:
    """Sample sizes."""

    d_k: tuple[int, ...]
    n_products: int  # for each variance
    n_queries: int  # for each softmax


FULL = Sizes(tuple(2**power for power in range(11)), n_products=20_000, n_queries=1000)
TEST = Sizes((4, 64), n_products=2000, n_queries=50)


@dataclass(frozen=True, slots=True)
class Variance:
    """Variance of q · k over independent samples, with its standard error."""

    value: float
    error: float


@dataclass(frozen=True, slots=True)
class Saturation:
    """Statistics of softmaxes over ``N_KEYS`` scores, over many queries."""

    entropy_nats: float  # mean
    largest_weight: float  # mean
    gradient_mean: float  # of the softmax by its scores: the Frobenius norm of the Jacobian
    gradient_median: float
    vanished_share: float  # of the queries: gradient below VANISHED
    query_gradient_mean: float  # of the weights by the query
    query_gradient_median: float


def make_figure2(experiments: Experiments, request: Request) -> Report:
    """Test footnote 4 with random vectors, and compare multi-head attention with NumPy."""
    sizes = experiments.pick(FULL, test=TEST)
    generator = torch.Generator().manual_seed(1)
    variances = {
        kind: [variance_of_products(d_k, n=sizes.n_products, generator=generator, kind=kind) for d_k in sizes.d_k]
        for kind in COMPONENTS
    }
    unscaled, scaled = (
        [saturation(d_k, n_queries=sizes.n_queries, scale=d_k**exponent, generator=generator) for d_k in sizes.d_k]
        for exponent in (0.0, -0.5)
    )
    with torch.random.fork_rng():
        torch.manual_seed(1)
        agreed = agreements(TransformerConfig(d_model=96, n_heads=6, d_k=16, d_v=24))
    return Report(
        "Figure 2: scaled dot-product attention and multi-head attention",
        (
            picture("figure2", "Variance of q · k, entropy and gradients over d_k, with and without 1 / sqrt(d_k)"),
            how_to_reproduce(
                "figure2",
                scale=experiments.scale,
                seeds="seed 1",
                hardware="any CPU: only rounding errors depend on it",
            ),
            *_about_variance(sizes, variances),
            *_about_saturation(sizes, unscaled, scaled),
            *_about_agreement(agreed),
        ),
        drawings={"figure2": lambda path: _draw(sizes, variances, unscaled, scaled, path)},
        claims=_claims(sizes, variances["normal"], unscaled, scaled),
        finding=_verdict(sizes, unscaled, scaled, agreed),
        name="figure2",
    )


def _claims(
    sizes: Sizes, variances: Sequence[Variance], unscaled: Sequence[Saturation], scaled: Sequence[Saturation]
) -> tuple[Claim, ...]:
    """Return the sentences of section 3.2.1 and of its footnote 4."""
    errors = [abs(each.value - d_k) / each.error for d_k, each in zip(sizes.d_k, variances, strict=True)]
    plain, divided = unscaled[-1], scaled[-1]
    return (
        Claim(
            "assume that the components of q and k are independent random variables with mean 0 and variance 1. Then"
            " their dot product [...] has mean 0 and variance d_k",
            "footnote 4",
            agreement(max(errors) < 4),
            f"Variances at d_k = {', '.join(map(str, sizes.d_k))} are within {max(errors):.1f} standard errors of d_k.",
            "algebra",
        ),
        Claim(
            "We suspect that for large values of d_k, the dot products grow large in magnitude, pushing the softmax"
            " function into regions where it has extremely small gradients. To counteract this effect, we scale the dot"
            " products by 1/sqrt(d_k)",
            "section 3.2.1",
            agreement(plain.vanished_share > 0.5 > divided.vanished_share),
            f"For random vectors at d_k = {sizes.d_k[-1]:,}, {plain.vanished_share:.0%} of the queries have a gradient"
            f" below {VANISHED} without the factor and {divided.vanished_share:.0%} with it; for the others it stays"
            " large.",
        ),
    )


def _verdict(
    sizes: Sizes, unscaled: Sequence[Saturation], scaled: Sequence[Saturation], agreed: Sequence[Agreement]
) -> str:
    return (
        f"Footnote 4 holds for random vectors: at d_k = {sizes.d_k[-1]:,}, {unscaled[-1].vanished_share:.0%} of the"
        f" queries have a softmax gradient below {VANISHED} without the factor 1 / sqrt(d_k), and"
        f" {scaled[-1].vanished_share:.0%} with it; our attention layers match the formulas to"
        f" {max(each.difference for each in agreed):.1e}."
    )


def variance_of_products(d_k: int, *, n: int, generator: torch.Generator, kind: str = "normal") -> Variance:
    """Return the variance of n dot products of d_k components; its error is that of the mean of their squares."""
    draw = COMPONENTS[kind]
    products = (draw((n, d_k), generator) * draw((n, d_k), generator)).sum(dim=1)
    squares = (products - products.mean()) ** 2
    return Variance(float(squares.mean()), float(squares.std() / math.sqrt(n)))


def saturation(d_k: int, *, n_queries: int, scale: float, generator: torch.Generator) -> Saturation:
    """Return statistics of the softmax over scores of random queries with ``N_KEYS`` random keys, times ``scale``."""
    parts = []
    for start in range(0, n_queries, 50):  # a block of keys fits into the cache
        n = min(50, n_queries - start)
        q_NK = COMPONENTS["normal"]((n, d_k), generator)
        k_NSK = COMPONENTS["normal"]((n, N_KEYS, d_k), generator)
        parts.append(_softmax_statistics(q_NK, k_NSK, scale))
    entropy, largest, gradient, query_gradient = torch.cat(parts, dim=1)
    return Saturation(
        float(entropy.mean()),
        float(largest.mean()),
        float(gradient.mean()),
        float(gradient.median()),
        float((gradient < VANISHED).double().mean()),
        float(query_gradient.mean()),
        float(query_gradient.median()),
    )


def _softmax_statistics(q_NK: Tensor, k_NSK: Tensor, scale: float) -> Tensor:
    """Return entropy, largest weight and gradient norms with respect to scores and to the query, (4, N)."""
    weights_NS = (torch.einsum("nk,nsk->ns", q_NK, k_NSK) * scale).softmax(dim=1)
    entropy_N = -torch.special.xlogy(weights_NS, weights_NS).sum(dim=1)
    jacobian_NSS = torch.diag_embed(weights_NS) - weights_NS.unsqueeze(2) * weights_NS.unsqueeze(1)
    by_query_NSK = jacobian_NSS @ k_NSK * scale
    norms = [matrix.flatten(1).norm(dim=1) for matrix in (jacobian_NSS, by_query_NSK)]
    return torch.stack([entropy_N, weights_NS.amax(dim=1), *norms])


def _about_variance(sizes: Sizes, variances: Mapping[str, Sequence[Variance]]) -> tuple[str | Table, ...]:
    kinds = list(variances)
    rows: list[tuple[Cell, ...]] = []
    for d_k, *of_d_k in zip(sizes.d_k, *variances.values(), strict=True):
        rows.append((d_k, *(part for each in of_d_k for part in (each.value, each.error / d_k))))
    columns = ("d_k", *(part for kind in kinds for part in (kind, f"{kind}: error / d_k")))
    formats = dict.fromkeys(kinds, ",.2f") | {f"{kind}: error / d_k": ".3f" for kind in kinds}
    return (
        f"""\
## The variance of q · k

Footnote 4: if the components of q and k are independent with mean 0 and variance 1, their dot product has mean 0 and
variance d_k. The distribution does not matter: the table has {sizes.n_products:,} products for each d_k, of normal
components, of uniform ones, and of signs (+1 or -1). Divided by sqrt(d_k), the products have variance 1.""",
        Table(
            "-variance",
            columns,
            tuple(rows),
            "Variance of q · k and its standard error, divided by d_k.",
            formats,
        ),
    )


def _about_saturation(
    sizes: Sizes, unscaled: Sequence[Saturation], scaled: Sequence[Saturation]
) -> tuple[str | Table, ...]:
    names = (
        "entropy",
        "largest weight",
        "gradient, mean",
        "gradient, median",
        f"below {VANISHED}",
        "by query, mean",
        "by query, median",
    )
    rows: tuple[tuple[Cell, ...], ...] = tuple(
        (d_k, factor, *astuple(statistics))
        for factor, side in (("none", unscaled), ("1 / sqrt(d_k)", scaled))
        for d_k, statistics in zip(sizes.d_k, side, strict=True)
    )
    formats = dict.fromkeys(names, ".3f") | {name: ".2e" for name in names if "median" in name}
    largest, plain, divided = sizes.d_k[-1], unscaled[-1], scaled[-1]
    return (
        f"""\
## The effect on the softmax

"We suspect that for large values of d_k, the dot products grow large in magnitude, pushing the softmax function into
regions where it has extremely small gradients." Each of {sizes.n_queries:,} queries attends to {N_KEYS} keys, all with
normal components. *Gradient* is the norm of the softmax's derivative with respect to its scores; equal weights would
have an entropy of log {N_KEYS} = {math.log(N_KEYS):.2f} nats.

With the factor, hardly anything depends on d_k. Without it, at d_k = {largest:,}, the largest of {N_KEYS} weights is
{plain.largest_weight:.2f} on average ({divided.largest_weight:.2f} with it), {plain.vanished_share:.0%} of the queries
have a gradient below {VANISHED} ({divided.vanished_share:.0%} with it), and its median is {plain.gradient_median:.1e}
({divided.gradient_median:.1e} with it).

The footnote leaves out two things. First, with growing d_k the gradient grows at first, while the weights become
uneven, and then falls. Second, it becomes small for most queries, not for all: queries with two nearly equal top scores
keep a large gradient. The derivative with respect to the query (*by query*) is multiplied by keys of length sqrt(d_k),
which without the factor are not scaled either, so its mean even grows ({plain.query_gradient_mean:.2f} against
{divided.query_gradient_mean:.2f}) while its median falls: a few queries get large steps, most get almost none. All this
is for random vectors, as at the start of training; training itself is not measured here.""",
        Table("-softmax", ("d_k", "factor", *names), rows, formats=formats),
    )


def _about_agreement(agreed: Sequence[Agreement]) -> tuple[str | Table, ...]:
    rows = tuple((each.use, each.kernel, each.difference, each.difference_unscaled) for each in agreed)
    names = ("largest difference", "largest difference without the factor")
    return (
        """\
## The layers match the formulas

`SelfAttention` and `CrossAttention` as the model uses them (one product for all heads, padded batches), against
equation 1 and section 3.2.2 in NumPy: one sentence and one head at a time, without padding, in float64, with
d_k not equal to d_v. The last column is the difference from formulas without 1 / sqrt(d_k).""",
        Table("-multi-head", ("use", "kernel", *names), rows, formats={names[0]: ".1e", names[1]: ".2f"}),
    )


def _draw(
    sizes: Sizes,
    variances: Mapping[str, Sequence[Variance]],
    unscaled: Sequence[Saturation],
    scaled: Sequence[Saturation],
    path: Path,
) -> None:
    figure, (variance, entropy, gradient, by_query) = new_panels(10.5, 7.4, 2, 2)
    d_k = sizes.d_k
    variance.plot(d_k, d_k, color=GREY, linewidth=5, alpha=0.4, label="d_k")
    for (kind, values), colour, marker in zip(variances.items(), COLOURS[2:], "osv", strict=False):
        variance.plot(d_k, [each.value for each in values], color=colour, marker=marker, linestyle="", label=kind)
    variance.set_title("Variance of q · k", loc="left")
    variance.set(ylabel="variance")
    set_log_axis(variance, "y")
    entropy.axhline(math.log(N_KEYS), color=GREY, linewidth=1)
    entropy.text(1, math.log(N_KEYS) * 1.015, f"equal weights: log {N_KEYS}", color=GREY, va="bottom")
    for side, colour, label in ((scaled, COLOURS[0], "with 1 / sqrt(d_k)"), (unscaled, COLOURS[1], "without")):
        entropy.plot(d_k, [each.entropy_nats for each in side], color=colour, marker="o", markersize=4, label=label)
        for panel, mean, median in (
            (gradient, [each.gradient_mean for each in side], [each.gradient_median for each in side]),
            (by_query, [each.query_gradient_mean for each in side], [each.query_gradient_median for each in side]),
        ):
            panel.plot(d_k, median, color=colour, marker="o", markersize=4, label=f"{label}, median")
            panel.plot(d_k, mean, color=colour, linestyle="--", label=f"{label}, mean")
    entropy.set_title("Entropy of the weights", loc="left")
    entropy.set(ylabel="nats", ylim=(0, 1.12 * math.log(N_KEYS)))
    gradient.set_title("Gradient of the softmax with respect to its scores", loc="left")
    by_query.set_title("Gradient of the weights with respect to the query", loc="left")
    for panel in (gradient, by_query):
        panel.set_yscale("log")
        set_log_axis(panel, "y")
        panel.set_ylabel("Frobenius norm")
    for panel in (variance, entropy, gradient, by_query):
        set_log_axis(panel, "x", d_k, base=2)
        panel.tick_params(axis="x", labelsize=8)
        panel.set_xlabel("d_k")
        panel.legend(frameon=False, fontsize=9)
    save_svg(figure, path)

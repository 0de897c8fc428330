"""Adaptive softmax against full softmax: time saved and loss added.

Shapes: N positions, D d_model, V vocabulary, P entries of the first level.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from statistics import median

import torch
import torch.nn.functional as F
from pydantic import TypeAdapter
from torch import Tensor, nn

from transduce.corpora import BUILT_IN
from transduce.loss import cross_entropy
from transduce_paper.drawing import COLOURS, label_ends, new_panels, save_svg, set_log_axis
from transduce_paper.experiments import Experiments
from transduce_paper.machine import machine_description
from transduce_paper.measurement_cache import validated
from transduce_paper.notes.softmax_losses import FULL_SOFTMAX, Curve, LossSizes, losses
from transduce_paper.notes.tiny import BATCH_SIZE, TINY, seeded
from transduce_paper.notes.two_level_softmax import LAYOUTS, TwoLevelSoftmax
from transduce_paper.report import Cell, Claim, Section, Table, agreement, picture

__all__ = ["make_adaptive_softmax"]

ABOUT_ADAPTIVE_SOFTMAX = """\
The notes: the first level has the most frequent words and entries for the second level, which has the words of the
clusters. They say neither how many clusters there are nor how wide. Here the other words are one cluster or three.
*One cluster*: a fifth of the words are frequent, the others share a projection to a quarter of the width (Grave et
al., 2017). *Three clusters*: one word in 27 is frequent; each cluster has three times the words of the one before,
and half its width, from d_model / 2 down to d_model / 8. P(word) = P(cluster) P(word | cluster) is exact: over all
words it sums to one (off by at most {deviation:.0e} in single precision, over {n_states} random states and {n_words:,}
words)."""

ABOUT_TIMES = """\
Time for {n_positions} states of width {d_model}, with random weights and words drawn by Zipf's law (P ~ 1 / rank; at
the largest vocabulary {rare} of them are in a cluster): loss with gradient, and finding the most probable word; a
cluster is the most probable entry for the same states. Medians of {n_rounds} interleaved rounds in milliseconds
({machine}). "Full, in blocks" is the implementation of `transduce train`; speed-ups of training are over the faster of
the two."""

ABOUT_LOSSES = """\
Loss: language models of 2 layers, d_model {d_tiny}, over whole words, English and German ({corpora}; {n_different:,}
different words; dev: {n_dev} pairs of the first). Training takes {n_updates:,} updates of {batch_size} sentences. The
models differ only in the output layer (none is tied to the embedding); seed 1. Nats per dev word are comparable for one
vocabulary; words outside it ({unknown} of dev) count as one word."""

LIMITATIONS = """\
The saving grows with the vocabulary; the notes assume whole words. With {vocab:,} tokens, as in the paper, the most
probable word is found {speedups} times as fast (one cluster, three); but beam search needs the scores of all words,
which take {shares} of the multiplications. Neither the paper nor transduce uses it.

After these trainings the loss of two levels minus that of full softmax is {min_gap:+.2f} to {max_gap:+.2f} nats. The
models are small and far from converged; the plot shows how the difference changes. The notes' example goes level by
level: it takes the most probable entry of the first level and, if that is a cluster, the most probable word in it. At
{differs} of dev positions this is not the most probable word, since the probability of a cluster is that of many
words."""


@dataclass(frozen=True, slots=True)
class Sizes:
    """Vocabulary sizes, and numbers of states and rounds."""

    timed: tuple[int, ...]  # vocabularies
    n_positions: int
    d_model: int
    n_rounds: int
    learned: tuple[int, ...]  # vocabularies
    of_losses: LossSizes


# All English-German text of the data folder.
MIXTURE = (
    "newstest", "wmt-sample10k", "tatoeba", "multi30k", "libreoffice-help", "debian_ddtp", "debian_handbook",
)  # fmt: skip
FULL = Sizes(
    timed=(4_000, 16_000, 37_000, 200_000),
    n_positions=128,
    d_model=256,
    n_rounds=5,
    learned=(37_000, 200_000),
    of_losses=LossSizes(MIXTURE, n_updates=300, n_dev=150),
)
TEST = Sizes((100, 200), 8, 16, 1, (300,), LossSizes((BUILT_IN,), n_updates=2, n_dev=10))
PAPER_VOCABULARY = 37_000  # section 5.1
COLOUR_OF = dict(zip((FULL_SOFTMAX, *LAYOUTS), (COLOURS[1], COLOURS[0], COLOURS[2]), strict=True))


def make_adaptive_softmax(experiments: Experiments) -> Section:
    """Measure times over vocabulary sizes and losses on real text, or read them from their files."""
    sizes = experiments.pick(FULL, test=TEST)
    times = _measured_times(experiments, sizes)
    learned = {size: losses(experiments, size, sizes.of_losses) for size in sizes.learned}
    gaps = _gaps(learned)
    last, of_paper = times[-1], next((each for each in times if each.vocab_size == PAPER_VOCABULARY), times[-1])
    speedups = _of_each(last.training_speedup)
    return Section(
        "Adaptive softmax",
        (
            ABOUT_ADAPTIVE_SOFTMAX.format(**_deviation_from_one(sizes)),
            ABOUT_TIMES.format(
                n_positions=sizes.n_positions,
                d_model=sizes.d_model,
                rare=" and ".join(f"{share:.0%}" for share in last.rare.values()),
                n_rounds=sizes.n_rounds,
                machine=last.machine,
            ),
            _table_of_times(times),
            ABOUT_LOSSES.format(
                d_tiny=TINY.d_model,
                corpora=", ".join(sizes.of_losses.corpora),
                n_different=next(iter(learned.values()))[FULL_SOFTMAX].n_different,
                unknown=" and ".join(f"{curves[FULL_SOFTMAX].unknown:.1%}" for curves in learned.values()),
                n_dev=sizes.of_losses.n_dev,
                n_updates=sizes.of_losses.n_updates,
                batch_size=BATCH_SIZE,
            ),
            _table_of_losses(learned),
            LIMITATIONS.format(
                vocab=of_paper.vocab_size,
                speedups=_of_each(of_paper.search_speedup),
                shares=" and ".join(f"{layout.share_of_multiplications:.0%}" for layout in LAYOUTS.values()),
                min_gap=min(gaps),
                max_gap=max(gaps),
                differs=_range_of_percent(_shares_that_differ(learned)),
            ),
            picture("notes-adaptive-softmax", "Time over the vocabulary size, and loss over updates"),
        ),
        finding=(
            f"With {last.vocab_size:,} words two-level softmax trains {speedups} times as fast as full softmax (one"
            f" cluster, three), and its loss differs by {min(gaps):+.2f} to {max(gaps):+.2f} nats per word."
        ),
        question="what does a two-level softmax save, and what does it cost?",
        summary=(
            f"two-level softmax trains {speedups} times as fast (one cluster, three), and its loss differs by"
            f" {min(gaps):+.2f} to {max(gaps):+.2f} nats"
        ),
        drawings={"notes-adaptive-softmax": lambda path: _draw(times, learned, path)},
        claims=_claims(times, learned),
    )


def _levels(curves: Mapping[str, Curve]) -> list[Curve]:
    """Return the curves of two-level softmax."""
    return [curves[name] for name in LAYOUTS]


def _gaps(learned: Mapping[int, Mapping[str, Curve]]) -> list[float]:
    """Return the losses of two-level softmax minus those of full softmax at the end of training."""
    return [curve.nats[-1] - curves[FULL_SOFTMAX].nats[-1] for curves in learned.values() for curve in _levels(curves)]


def _shares_that_differ(learned: Mapping[int, Mapping[str, Curve]]) -> list[float]:
    return [curve.differs for curves in learned.values() for curve in _levels(curves)]


def _of_each(speedup: Callable[[str], float]) -> str:
    """Return the speed-ups of the layouts as text."""
    return " and ".join(f"{speedup(name):.1f}" for name in LAYOUTS)


def _range_of_percent(shares: Sequence[float]) -> str:
    return f"{min(shares):.1%} to {max(shares):.1%}"


def _claims(times: Sequence[Times], learned: Mapping[int, Mapping[str, Curve]]) -> tuple[Claim, ...]:
    """Return the sentences of the notes on adaptive softmax."""
    first, last = times[0], times[-1]
    growth, of_vocabulary = last.full / first.full, last.vocab_size / first.vocab_size
    is_faster = all(last.training_speedup(name) > 1 and last.search_speedup(name) > 1 for name in LAYOUTS)
    differs, gaps = _shares_that_differ(learned), _gaps(learned)
    is_trained = all(curve.is_trained_to_the_end for curves in learned.values() for curve in _levels(curves))
    return (
        Claim(
            "[softmax to get the] next word: for large vocab size, this is an expensive operation",
            "notes",
            agreement(growth > of_vocabulary / 2),
            f"{last.vocab_size:,} words take {growth:.0f} times as long as {first.vocab_size:,}, which are"
            f" {of_vocabulary:.0f} times fewer.",
        ),
        Claim(
            "Adaptive softmax: instead of predicting [the] next word from [a] large vocab, predict the cluster where"
            " [the] next word belongs",
            "notes",
            agreement(is_faster),
            f"With {last.vocab_size:,} words training is {_of_each(last.training_speedup)} times as fast, and the most"
            f" probable word is found {_of_each(last.search_speedup)} times as fast (one cluster, three). What the"
            f" notes do not say: the loss differs by {min(gaps):+.2f} to {max(gaps):+.2f} nats per word.",
        ),
        Claim(
            "[if the softmax result is a cluster, the] desired word [is] in [that] cluster: compute softmax over [its]"
            " words to get next word",
            "notes",
            agreement(max(differs) == 0, is_trained=is_trained),
            f"At {_range_of_percent(differs)} of dev positions this is not the most probable word.",
        ),
    )


@torch.no_grad()
def _deviation_from_one(sizes: Sizes) -> dict[str, float]:
    """Return the largest deviation of the sum of probabilities from one, and the sizes of that check."""
    torch.manual_seed(1)
    n_words = sizes.timed[-1]
    states_ND = torch.randn(sizes.n_positions, sizes.d_model)
    layers = [layout.layer(sizes.d_model, n_words) for layout in LAYOUTS.values()]
    totals = [layer.log_probabilities(states_ND).exp().sum(dim=1) for layer in layers]
    deviation = max(float((total_N - 1).abs().max()) for total_N in totals)
    return {"deviation": deviation, "n_states": sizes.n_positions, "n_words": n_words}


@dataclass(frozen=True, slots=True)
class Times:
    """Times in milliseconds; by layout the shares of words in a cluster, and the times of two-level softmax."""

    machine: str
    vocab_size: int
    rare: Mapping[str, float]
    full: float
    blocks: float
    search_full: float
    levels: Mapping[str, float]
    search_levels: Mapping[str, float]

    def training_speedup(self, layout: str) -> float:
        """Return the speed-up over the faster full implementation."""
        return min(self.full, self.blocks) / self.levels[layout]

    def search_speedup(self, layout: str) -> float:
        """Return the speed-up of finding the most probable word."""
        return self.search_full / self.search_levels[layout]


def _measured_times(experiments: Experiments, sizes: Sizes) -> tuple[Times, ...]:
    """Return the times at each vocabulary size, cached beside the records."""
    measured = experiments.measurement(
        "notes-adaptive-softmax",
        "times",
        lambda: [asdict(_times(vocab_size, sizes)) for vocab_size in sizes.timed],
        settings={"n_positions": sizes.n_positions, "n_rounds": sizes.n_rounds},
    )
    return validated(TypeAdapter(tuple[Times, ...]), measured, where="the cached times of notes-adaptive-softmax")


def _times(vocab_size: int, sizes: Sizes) -> Times:
    generator = torch.Generator().manual_seed(1)
    with seeded(1):
        layers = {name: layout.layer(sizes.d_model, vocab_size) for name, layout in LAYOUTS.items()}
        weight_VD = nn.Parameter(torch.randn(vocab_size, sizes.d_model) * sizes.d_model**-0.5)
    zipf_V = 1 / torch.arange(1, vocab_size + 1, dtype=torch.float64)
    ids_N = torch.multinomial(zipf_V, sizes.n_positions, replacement=True, generator=generator)
    random_ND = torch.randn(sizes.n_positions, sizes.d_model, generator=generator)
    states_ND = random_ND.clone().requires_grad_()
    states_of = {name: _towards_clusters(random_ND, ids_N, layer) for name, layer in layers.items()}

    def full() -> None:
        torch.autograd.backward(F.cross_entropy(F.linear(states_ND, weight_VD), ids_N, reduction="sum"))

    def blocks() -> None:
        loss = cross_entropy(states_ND, weight_VD, ids_N, eps_ls=0.0, smoothing="uniform")
        torch.autograd.backward(loss.loss_nats)

    @torch.no_grad()
    def search_full() -> None:
        F.linear(states_ND, weight_VD).argmax(dim=1)

    def levels(name: str) -> None:
        torch.autograd.backward(-layers[name].log_p_of(states_of[name], ids_N).sum())

    @torch.no_grad()
    def search_levels(name: str) -> None:
        layers[name].most_probable(states_of[name])

    def clear_gradients() -> None:
        weight_VD.grad = None
        for each_ND in (states_ND, *states_of.values()):
            each_ND.grad = None
        for layer in layers.values():
            layer.zero_grad(set_to_none=True)

    candidates: list[Callable[[], None]] = [full, blocks, search_full]
    candidates += [partial(each, name) for each in (levels, search_levels) for name in LAYOUTS]
    full_ms, blocks_ms, search_ms, *of_levels = _interleaved(
        candidates, n_rounds=sizes.n_rounds, after_each=clear_gradients
    )
    n = len(LAYOUTS)
    return Times(
        machine_description(torch.device("cpu")),
        vocab_size,
        {name: float((layer.cluster_numbers(ids_N) > 0).double().mean()) for name, layer in layers.items()},
        full_ms,
        blocks_ms,
        search_ms,
        dict(zip(LAYOUTS, of_levels[:n], strict=True)),
        dict(zip(LAYOUTS, of_levels[n:], strict=True)),
    )


def _towards_clusters(states_ND: Tensor, ids_N: Tensor, layer: TwoLevelSoftmax) -> Tensor:
    """Return the states, those of words in a cluster moved so that its entry is the most probable one, (N, D)."""
    number_N = layer.cluster_numbers(ids_N)
    is_rare_N = number_N > 0
    entries_PD = F.normalize(layer.head.weight.detach(), dim=1) * states_ND.size(1) ** 0.5
    moved_ND = states_ND.clone()
    moved_ND[is_rare_N] += entries_PD[layer.n_frequent + number_N[is_rare_N] - 1]
    return moved_ND.requires_grad_()


def _interleaved(
    candidates: Sequence[Callable[[], None]], *, n_rounds: int, after_each: Callable[[], None]
) -> list[float]:
    """Return the milliseconds of each: the median of interleaved rounds, after one warm-up."""
    seconds: list[list[float]] = [[] for _ in candidates]
    for number in range(n_rounds + 1):
        for candidate, times in zip(candidates, seconds, strict=True):
            started = time.perf_counter()
            candidate()
            if number:
                times.append(time.perf_counter() - started)
            after_each()
    return [1000 * median(times) for times in seconds]


def _table_of_times(times: Sequence[Times]) -> Table:
    columns = ("words", "softmax", "loss with gradient", "speed-up", "most probable word", "speed-up of finding it")
    rows: list[tuple[Cell, ...]] = []
    for each in times:
        rows += [
            (each.vocab_size, FULL_SOFTMAX, each.full, None, each.search_full, None),
            (each.vocab_size, "full, in blocks", each.blocks, None, None, None),
            *(
                (each.vocab_size, name, each.levels[name], each.training_speedup(name), each.search_levels[name],
                 each.search_speedup(name)) for name in LAYOUTS
            ),
        ]  # fmt: skip
    return Table(
        "-adaptive-softmax-times", columns, tuple(rows), formats=dict.fromkeys(columns, ".1f") | {"words": ",d"}
    )


def _table_of_losses(learned: Mapping[int, Mapping[str, Curve]]) -> Table:
    columns = (
        "words",
        "softmax",
        "nats per dev word",
        "difference",
        "dev words in a cluster",
        "not found level by level",
    )
    rows: list[tuple[Cell, ...]] = []
    for size, curves in learned.items():
        full = curves[FULL_SOFTMAX].nats[-1]
        rows += [
            (size, FULL_SOFTMAX, full, None, None, None),
            *(
                (size, each.layer, each.nats[-1], each.nats[-1] - full, each.rare, each.differs)
                for each in _levels(curves)
            ),
        ]
    formats = dict(zip(columns, (",d", "", ".3f", "+.3f", ".0%", ".1%"), strict=True))
    return Table("-adaptive-softmax-losses", columns, tuple(rows), formats=formats)


def _draw(times: Sequence[Times], learned: Mapping[int, Mapping[str, Curve]], path: Path) -> None:
    figure, (left, right) = new_panels(12.5, 4.6, n_columns=2)
    sizes, ends = [each.vocab_size for each in times], []
    for name, values, colour, line in (
        ("full", [each.full for each in times], COLOUR_OF[FULL_SOFTMAX], "o-"),
        ("full, in blocks", [each.blocks for each in times], COLOURS[6], "s-"),
        ("most probable, full", [each.search_full for each in times], COLOUR_OF[FULL_SOFTMAX], "o--"),
        *((name, [each.levels[name] for each in times], COLOUR_OF[name], "^-") for name in LAYOUTS),
        *(
            (f"most probable, {name}", [each.search_levels[name] for each in times], COLOUR_OF[name], "^--")
            for name in LAYOUTS
        ),
    ):
        left.plot(sizes, values, line, color=colour, markersize=5)
        ends.append((sizes[-1], values[-1], name, colour))
    left.set_yscale("log")
    set_log_axis(left, "y")
    set_log_axis(left, "x", sizes)
    left.set(xlabel="words in the vocabulary", ylabel="milliseconds")
    left.set_title("Time", loc="left")
    curves = []
    for (size, of_size), line in zip(learned.items(), ("-", "--"), strict=False):
        for name, curve in of_size.items():
            right.plot(curve.updates, curve.nats, line, color=COLOUR_OF[name])
            curves.append((curve.updates[-1], curve.nats[-1], f"{name}, {size:,} words", COLOUR_OF[name]))
    right.set(xlabel="updates", ylabel="nats per dev word")
    right.set_title("Loss during training", loc="left")
    label_ends(figure, left, ends)
    label_ends(figure, right, curves)
    save_svg(figure, path)

"""Adaptive softmax against full softmax: time saved and loss added.

Shapes: N positions, D d_model, V vocabulary.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from transduce.loss import LossSum, cross_entropy
from transduce.model import LinearOutput, TransformerLM
from transduce.paper.drawing import COLOURS, label_ends, new_panels, save_svg, set_log_axis
from transduce.paper.experiments import machine_description
from transduce.paper.notes.part import Part
from transduce.paper.notes.tiny import (
    BATCH_SIZE,
    TINY,
    GrammarText,
    LanguageBatch,
    grammar_text,
    language_batch,
    random_batches,
    seeded,
    train,
)
from transduce.paper.notes.two_level_softmax import TwoLevelSoftmax
from transduce.paper.report import Table, picture
from transduce.text import EOS_ID

__all__ = ["make_adaptive_softmax"]

ABOUT_ADAPTIVE_SOFTMAX = """\
Adaptive softmax avoids most of a large softmax. Its first level has the frequent words and one entry for the cluster
of all other words; its second level has the words of that cluster, behind a smaller projection.
P(word) = P(cluster) P(word | cluster) is exact:
over all words it sums to one (off by at most {deviation:.0e} in single precision, over {n_states} random states and
{n_words:,} words). Here the first level has a fifth of the words, and the projection a quarter of the width, as in
Grave et al. (2017)."""

ABOUT_TIMES = """\
Time for {n_positions} states of width {d_model}, with random weights and words drawn by Zipf's law (P ~ 1 / rank;
{rare:.0%} of them are in the cluster at the largest vocabulary): loss with gradient, and finding the most probable
word; the cluster is the most probable entry for the same share of states.
Medians of {n_rounds} interleaved rounds in milliseconds ({machine}).
"Full, in blocks" is the implementation of `transduce train`."""

ABOUT_LOSSES = """\
Loss: language models of 2 layers, d_model {d_tiny}, on the grammar corpus, {n_updates} updates of {batch_size}
sentences, which differ only in the output layer (neither is tied to the embedding), seed 1. Nats per dev token are
comparable within a row; tokens of a smaller vocabulary are shorter."""

LIMITATIONS = """\
The saving grows with the vocabulary; the notes assume whole words. With {vocab:,} tokens, as in the paper, the
most probable word is found {speedup:.1f} times as fast; but beam search needs the scores of all words, for which two
levels still need 40 % of the multiplications. Neither the paper nor transduce uses it.
After these trainings the loss of two levels is {min_gap:+.2f} to {max_gap:+.2f} nats higher:
rare words have a quarter of the width and learn through two matrices. The models are small and trained in
seconds; the plot shows where the gap is still changing."""

HEAD_SHARE, TAIL_SHARE = 5, 4  # the first level has V / 5 words, the projection D / 4 values


@dataclass(frozen=True, slots=True)
class Sizes:
    """Vocabulary sizes, and numbers of states, rounds and updates."""

    timed: tuple[int, ...]  # vocabularies
    n_positions: int
    d_model: int
    n_rounds: int
    learned: tuple[int, ...]  # vocabularies
    n_pairs: int
    n_updates: int
    n_dev: int


FULL = Sizes((4_000, 16_000, 37_000, 100_000), 128, 256, 5, (1000, 2000, 4000), 3000, 300, 100)
SHORT = Sizes((100, 200), 8, 16, 1, (300,), 60, 2, 10)
N_VALIDATIONS = 10


def make_adaptive_softmax(*, is_short: bool) -> Part:
    """Measure times and losses over vocabulary sizes."""
    sizes = SHORT if is_short else FULL
    times = [_times(vocab_size, sizes) for vocab_size in sizes.timed]
    texts = [grammar_text(n_train=sizes.n_pairs, n_dev=sizes.n_dev, vocab_size=each) for each in sizes.learned]
    losses = [_losses(text, sizes) for text in texts]
    gaps = [each.gap for each in losses]
    return Part(
        "Adaptive softmax",
        "what does a two-level softmax save, and what does it cost?",
        f"two-level softmax trains {times[-1].training_speedup:.1f} times as fast for up to {max(gaps):.2f} nats more",
        f"With {times[-1].vocab_size:,} words two-level softmax trains {times[-1].training_speedup:.1f} times as fast"
        f" as full softmax, and its loss is {min(gaps):+.2f} to {max(gaps):+.2f} nats per token higher.",
        (
            ABOUT_ADAPTIVE_SOFTMAX.format(**_deviation_from_one(sizes)),
            ABOUT_TIMES.format(
                n_positions=sizes.n_positions,
                d_model=sizes.d_model,
                rare=times[-1].rare,
                n_rounds=sizes.n_rounds,
                machine=machine_description(torch.device("cpu")),
            ),
            _table_of_times(times),
            ABOUT_LOSSES.format(d_tiny=TINY.d_model, n_updates=sizes.n_updates, batch_size=BATCH_SIZE),
            _table_of_losses(losses),
            LIMITATIONS.format(
                vocab=times[-2].vocab_size,
                speedup=times[-2].search_speedup,
                min_gap=min(gaps),
                max_gap=max(gaps),
            ),
            picture("notes-adaptive-softmax", "Time over the vocabulary size, and loss over updates"),
        ),
        {"notes-adaptive-softmax": lambda path: _draw(times, losses, path)},
    )


@torch.no_grad()
def _deviation_from_one(sizes: Sizes) -> dict[str, float]:
    """Return the largest deviation of the sum of probabilities from one, and the sizes of that check."""
    torch.manual_seed(1)
    n_words = sizes.timed[-1]
    layer = _new_two_level(sizes.d_model, n_words)
    total_N = layer.log_probabilities(torch.randn(sizes.n_positions, sizes.d_model)).exp().sum(dim=1)
    return {"deviation": float((total_N - 1).abs().max()), "n_states": sizes.n_positions, "n_words": n_words}


def _new_two_level(d_model: int, vocab_size: int) -> TwoLevelSoftmax:
    return TwoLevelSoftmax(d_model, vocab_size, n_frequent=vocab_size // HEAD_SHARE, d_tail=d_model // TAIL_SHARE)


@dataclass(frozen=True, slots=True)
class Times:
    """Times in milliseconds, and the share of words in the cluster."""

    vocab_size: int
    rare: float  # share of words in the cluster
    full: float
    blocks: float
    two_level: float
    search_full: float
    search_two_level: float

    @property
    def training_speedup(self) -> float:
        """Return the speed-up over the faster full implementation."""
        return min(self.full, self.blocks) / self.two_level

    @property
    def search_speedup(self) -> float:
        """Return the speed-up of finding the most probable word."""
        return self.search_full / self.search_two_level


def _times(vocab_size: int, sizes: Sizes) -> Times:
    generator = torch.Generator().manual_seed(1)
    with seeded(1):
        two_level = _new_two_level(sizes.d_model, vocab_size)
        weight_VD = nn.Parameter(torch.randn(vocab_size, sizes.d_model) * sizes.d_model**-0.5)
    zipf_V = 1 / torch.arange(1, vocab_size + 1, dtype=torch.float64)
    ids_N = torch.multinomial(zipf_V, sizes.n_positions, replacement=True, generator=generator)
    is_rare_N = ids_N >= two_level.n_frequent
    states_ND = torch.randn(sizes.n_positions, sizes.d_model, generator=generator)
    to_cluster_D = F.normalize(two_level.head.weight[-1].detach(), dim=0) * sizes.d_model**0.5
    states_ND[is_rare_N] += to_cluster_D
    states_ND.requires_grad_()

    def full() -> None:
        torch.autograd.backward(F.cross_entropy(F.linear(states_ND, weight_VD), ids_N, reduction="sum"))

    def blocks() -> None:
        loss = cross_entropy(states_ND, weight_VD, ids_N, eps_ls=0.0, smoothing="uniform")
        torch.autograd.backward(loss.loss_nats)

    def levels() -> None:
        torch.autograd.backward(-two_level.log_p_of(states_ND, ids_N).sum())

    @torch.no_grad()
    def search_full() -> None:
        F.linear(states_ND, weight_VD).argmax(dim=1)

    @torch.no_grad()
    def search_levels() -> None:
        two_level.most_probable(states_ND)

    def clear_gradients() -> None:
        states_ND.grad = weight_VD.grad = None
        two_level.zero_grad(set_to_none=True)

    ms = _interleaved(
        [full, blocks, levels, search_full, search_levels], n_rounds=sizes.n_rounds, after_each=clear_gradients
    )
    return Times(vocab_size, float(is_rare_N.double().mean()), *ms)


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


@dataclass(frozen=True, slots=True)
class Losses:
    """Nats per dev token."""

    vocab_size: int
    rare: float  # share of dev tokens in the cluster
    updates: tuple[int, ...]  # at which the loss was measured
    full: tuple[float, ...]
    two_level: tuple[float, ...]

    @property
    def gap(self) -> float:
        """Return the loss of two levels minus that of full softmax at the end."""
        return self.two_level[-1] - self.full[-1]


def _losses(text: GrammarText, sizes: Sizes) -> Losses:
    size = text.tokenizer.size
    rank_V = _ranks(text.train, size)
    dev = language_batch(text.dev)
    is_rare_N = rank_V[dev.targets_N] >= size // HEAD_SHARE
    batches = random_batches(text.train, sizes.n_updates)

    def curve(make_output: Callable[[int, int], LinearOutput | TwoLevelSoftmax]) -> list[tuple[int, float]]:
        """Train a new model with this output layer over frequency ranks; return (update, nats)."""
        with seeded(1):
            model, output = TransformerLM(TINY, vocab_size=size), make_output(TINY.d_model, size)
        model.register_module("output", output)

        def loss(batch: LanguageBatch, update: int = 0) -> LossSum:
            return output.loss(model(batch.ids_BT), rank_V[batch.targets_N])

        def dev_nats() -> float:
            total = loss(dev)
            return float(total.nll_nats) / total.n_tokens

        return train(model, loss, batches, peak_lr=6e-3, dev_nats=dev_nats, n_validations=N_VALIDATIONS)

    full, two_level = curve(LinearOutput), curve(_new_two_level)
    updates, full_nats = zip(*full, strict=True)
    return Losses(size, float(is_rare_N.double().mean()), updates, full_nats, tuple(nats for _, nats in two_level))


def _ranks(rows: Sequence[Sequence[int]], vocab_size: int) -> Tensor:
    """Return the frequency rank of each id, EOS included, (V,)."""
    counts = Counter(id for row in rows for id in (*row, EOS_ID))
    in_order = sorted(range(vocab_size), key=lambda id: (-counts[id], id))
    rank_V = torch.empty(vocab_size, dtype=torch.int64)
    rank_V[torch.tensor(in_order)] = torch.arange(vocab_size)
    return rank_V


def _table_of_times(times: Sequence[Times]) -> Table:
    columns = (
        "words", "full", "full, in blocks", "two levels", "speed-up", "most probable word, full",
        "most probable word, two levels", "speed-up of finding it",
    )  # fmt: skip
    rows = tuple(
        (each.vocab_size, each.full, each.blocks, each.two_level, each.training_speedup,
         each.search_full, each.search_two_level, each.search_speedup) for each in times
    )  # fmt: skip
    formats = dict.fromkeys(columns[1:], ".1f") | {"words": ",d"}
    return Table("-adaptive-softmax-times", columns, rows, formats=formats)


def _table_of_losses(losses: Sequence[Losses]) -> Table:
    columns = ("tokens", "share of dev in the cluster", "full", "two levels", "difference")
    rows = tuple((each.vocab_size, each.rare, each.full[-1], each.two_level[-1], each.gap) for each in losses)
    formats = {"tokens": ",d", columns[1]: ".0%", "full": ".3f", "two levels": ".3f", "difference": "+.3f"}
    return Table("-adaptive-softmax-losses", columns, rows, formats=formats)


def _draw(times: Sequence[Times], losses: Sequence[Losses], path: Path) -> None:
    figure, (left, right) = new_panels(12.5, 4.6, n_columns=2)
    sizes, ends = [each.vocab_size for each in times], []
    for name, values, colour, line in (
        ("full", [each.full for each in times], COLOURS[1], "o-"),
        ("full, in blocks", [each.blocks for each in times], COLOURS[6], "s-"),
        ("two levels", [each.two_level for each in times], COLOURS[0], "^-"),
        ("most probable, full", [each.search_full for each in times], COLOURS[1], "o--"),
        ("most probable, two levels", [each.search_two_level for each in times], COLOURS[0], "^--"),
    ):
        left.plot(sizes, values, line, color=colour, markersize=5)
        ends.append((sizes[-1], values[-1], name, colour))
    left.set_yscale("log")
    set_log_axis(left, "y")
    set_log_axis(left, "x", sizes)
    left.set(xlabel="words in the vocabulary", ylabel="milliseconds")
    left.set_title("Time", loc="left")
    curves = []
    for each, line in zip(losses, ("-", "--", ":"), strict=False):
        for name, nats, colour in (("full", each.full, COLOURS[1]), ("two levels", each.two_level, COLOURS[0])):
            right.plot(each.updates, nats, line, color=colour)
            curves.append((each.updates[-1], nats[-1], f"{name}, {each.vocab_size:,} tokens", colour))
    right.set(xlabel="updates", ylabel="nats per dev token")
    right.set_title("Loss during training", loc="left")
    label_ends(figure, left, ends)
    label_ends(figure, right, curves)
    save_svg(figure, path)

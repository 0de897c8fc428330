"""Adaptive softmax against the full one: what it saves in time, and what it costs in loss.

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
from transduce.model import LanguageModel, LinearOutput
from transduce.paper.drawing import COLOURS, new_panels, save_svg
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
from transduce.paper.report import Table
from transduce.text import EOS_ID

__all__ = ["make_adaptive_softmax"]

WHAT_IT_IS = """\
The notes' way to spare most of a large softmax: a first level has the frequent words and one entry for the cluster of
all others, a second level has those, behind a smaller projection. P(word) = P(cluster) P(word | cluster), exactly:
over all words it sums to one (off by at most {off:.0e} in single precision, over {n_states} random states and
{n_words:,} words). Here the first level has a fifth of the words, and the projection a quarter of the
width, as Grave et al. (2017) have it."""

HOW_TIME_WAS_TAKEN = """\
Time for {n_positions} states of width {d_model}, on random weights, with words drawn by Zipf's law (P ~ 1 / rank;
{rare:.0%} of them are of the cluster at the largest vocabulary): loss with its gradient, and then the likeliest word
alone, where as many states point to the cluster. Medians of {n_rounds} rounds, in each of which every layer has its
turn, in milliseconds ({machine}). "Full, in blocks" is how `transduce train` computes it."""

HOW_LOSS_WAS_TAKEN = """\
Loss: language models of 2 layers of {d_tiny} over the grammar corpus, {n_updates} updates of {batch_size} sentences,
alike but for the output layer (neither shares the embedding's matrix), seed 1. Nats per token of dev text compare
within a row; tokens of a smaller vocabulary are shorter."""

WHAT_IT_CANNOT_SHOW = """\
The saving grows with the vocabulary: the notes have whole words in mind. With {some:,} pieces, as in the paper, the
likeliest word is found {faster:.1f} times as fast; beam search, though, wants scores of all words, and for those two
levels need 40 % of the products. The paper needs none of this, and neither do we. At the end of these trainings two
levels differ by {least:+.2f} to {most:+.2f} nats: rare words have a quarter of the width, and learn through two
matrices. The models are small and learn for seconds; the picture shows where the gap is still changing."""

HEAD_SHARE, TAIL_SHARE = 5, 4  # the first level has V / 5 words, the projection D / 4 values


@dataclass(frozen=True, slots=True)
class Sizes:
    """How much is done."""

    timed: tuple[int, ...]  # vocabularies
    n_positions: int
    d_model: int
    n_rounds: int
    learned: tuple[int, ...]  # vocabularies
    n_pairs: int
    n_updates: int
    n_dev: int


WHOLE = Sizes((4_000, 16_000, 37_000, 100_000), 128, 256, 5, (1000, 2000, 4000), 3000, 300, 100)
SHORT = Sizes((100, 200), 8, 16, 1, (300,), 60, 2, 10)
N_LOOKS = 10


def make_adaptive_softmax(*, is_short: bool) -> Part:
    """Times and losses over vocabulary sizes."""
    sizes = SHORT if is_short else WHOLE
    times = [_times(vocab_size, sizes) for vocab_size in sizes.timed]
    texts = [grammar_text(n_train=sizes.n_pairs, n_dev=sizes.n_dev, vocab_size=each) for each in sizes.learned]
    losses = [_losses(text, sizes) for text in texts]
    return Part(
        (
            "## Adaptive softmax",
            WHAT_IT_IS.format(**_sums(sizes)),
            HOW_TIME_WAS_TAKEN.format(
                n_positions=sizes.n_positions,
                d_model=sizes.d_model,
                rare=times[-1].rare,
                n_rounds=sizes.n_rounds,
                machine=machine_description(torch.device("cpu")),
            ),
            _table_of_times(times),
            HOW_LOSS_WAS_TAKEN.format(d_tiny=TINY.d_model, n_updates=sizes.n_updates, batch_size=BATCH_SIZE),
            _table_of_losses(losses),
            WHAT_IT_CANNOT_SHOW.format(
                some=times[-2].vocab_size,
                faster=times[-2].search_speedup,
                least=min(each.gap for each in losses),
                most=max(each.gap for each in losses),
            ),
        ),
        {"notes-adaptive-softmax": lambda path: _draw(times, losses, path)},
    )


@torch.no_grad()
def _sums(sizes: Sizes) -> dict[str, float]:
    """How far probabilities over all words are from one, at most."""
    torch.manual_seed(1)
    n_words = sizes.timed[-1]
    layer = _new_two_level(sizes.d_model, n_words)
    total_N = layer.log_probabilities(torch.randn(sizes.n_positions, sizes.d_model)).exp().sum(dim=1)
    return {"off": float((total_N - 1).abs().max()), "n_states": sizes.n_positions, "n_words": n_words}


def _new_two_level(d_model: int, vocab_size: int) -> TwoLevelSoftmax:
    return TwoLevelSoftmax(d_model, vocab_size, n_frequent=vocab_size // HEAD_SHARE, d_tail=d_model // TAIL_SHARE)


@dataclass(frozen=True, slots=True)
class Times:
    """Milliseconds."""

    vocab_size: int
    rare: float  # share of the words that were of the cluster
    full: float
    blocks: float
    two_level: float
    search_full: float
    search_two_level: float

    @property
    def training_speedup(self) -> float:
        """Over the faster of the two full ones."""
        return min(self.full, self.blocks) / self.two_level

    @property
    def search_speedup(self) -> float:
        """Of finding the likeliest word."""
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
        two_level.likeliest(states_ND)

    def forget() -> None:
        states_ND.grad = weight_VD.grad = None
        two_level.zero_grad(set_to_none=True)

    ms = _interleaved([full, blocks, levels, search_full, search_levels], n_rounds=sizes.n_rounds, after_each=forget)
    return Times(vocab_size, float(is_rare_N.double().mean()), *ms)


def _interleaved(
    candidates: Sequence[Callable[[], None]], *, n_rounds: int, after_each: Callable[[], None]
) -> list[float]:
    """Milliseconds of each: the median of rounds in which all have their turn, after one that is not counted."""
    seconds: list[list[float]] = [[] for _ in candidates]
    for number in range(n_rounds + 1):
        for candidate, found in zip(candidates, seconds, strict=True):
            started = time.perf_counter()
            candidate()
            if number:
                found.append(time.perf_counter() - started)
            after_each()
    return [1000 * median(found) for found in seconds]


@dataclass(frozen=True, slots=True)
class Losses:
    """Nats per token of dev text."""

    vocab_size: int
    rare: float  # share of dev tokens that are of the cluster
    updates: tuple[int, ...]  # after which they were taken
    full: tuple[float, ...]
    two_level: tuple[float, ...]

    @property
    def gap(self) -> float:
        """How far two levels are behind at the end."""
        return self.two_level[-1] - self.full[-1]


def _losses(text: GrammarText, sizes: Sizes) -> Losses:
    size = text.tokenizer.size
    rank_V = _ranks(text.train, size)
    dev = language_batch(text.dev)
    is_rare_N = rank_V[dev.targets_N] >= size // HEAD_SHARE
    batches = random_batches(text.train, sizes.n_updates)

    def looks(make_output: Callable[[int, int], LinearOutput | TwoLevelSoftmax]) -> list[tuple[int, float]]:
        """(update, nats) of a new model that learns with an output layer of its own, whose ids are ranks."""
        with seeded(1):
            model, output = LanguageModel(TINY, vocab_size=size), make_output(TINY.d_model, size)
        model.register_module("output", output)

        def loss(batch: LanguageBatch, update: int = 0) -> LossSum:
            return output.loss(model(batch.ids_BT), rank_V[batch.targets_N])

        def dev_nats() -> float:
            found = loss(dev)
            return float(found.nll_nats) / found.n_tokens

        return train(model, loss, batches, peak_lr=6e-3, dev_nats=dev_nats, n_looks=N_LOOKS)

    full, two_level = looks(LinearOutput), looks(_new_two_level)
    updates, full_nats = zip(*full, strict=True)
    return Losses(size, float(is_rare_N.double().mean()), updates, full_nats, tuple(nats for _, nats in two_level))


def _ranks(rows: Sequence[Sequence[int]], vocab_size: int) -> Tensor:
    """The place of each id when they are ordered by how often they occur, end symbols included, (V,)."""
    counts = Counter(id for row in rows for id in (*row, EOS_ID))
    in_order = sorted(range(vocab_size), key=lambda id: (-counts[id], id))
    rank_V = torch.empty(vocab_size, dtype=torch.int64)
    rank_V[torch.tensor(in_order)] = torch.arange(vocab_size)
    return rank_V


def _table_of_times(times: Sequence[Times]) -> Table:
    columns = (
        "words", "full", "full, in blocks", "two levels", "times as fast", "likeliest word, full",
        "likeliest word, two levels", "times as fast to find",
    )  # fmt: skip
    rows = tuple(
        (each.vocab_size, each.full, each.blocks, each.two_level, each.training_speedup,
         each.search_full, each.search_two_level, each.search_speedup) for each in times
    )  # fmt: skip
    formats = dict.fromkeys(columns[1:], ".1f") | {"words": ",d"}
    return Table("-adaptive-softmax-times", columns, rows, formats=formats)


def _table_of_losses(losses: Sequence[Losses]) -> Table:
    columns = ("pieces", "of the cluster, share of dev", "full", "two levels", "difference")
    rows = tuple((each.vocab_size, each.rare, each.full[-1], each.two_level[-1], each.gap) for each in losses)
    formats = {"pieces": ",d", columns[1]: ".0%", "full": ".3f", "two levels": ".3f", "difference": "+.3f"}
    return Table("-adaptive-softmax-losses", columns, rows, formats=formats)


def _draw(times: Sequence[Times], losses: Sequence[Losses], path: Path) -> None:
    figure, (left, right) = new_panels(9.0, 3.6, n_columns=2)
    sizes = [each.vocab_size for each in times]
    for name, values, colour, line in (
        ("full", [each.full for each in times], COLOURS[1], "o-"),
        ("full, in blocks", [each.blocks for each in times], COLOURS[4], "s-"),
        ("two levels", [each.two_level for each in times], COLOURS[0], "^-"),
        ("likeliest word, full", [each.search_full for each in times], COLOURS[1], "o--"),
        ("likeliest word, two levels", [each.search_two_level for each in times], COLOURS[0], "^--"),
    ):
        left.plot(sizes, values, line, color=colour, label=name, markersize=5)
    left.set(xscale="log", yscale="log", xlabel="words in the vocabulary", ylabel="milliseconds", title="Time")
    left.legend(frameon=False, fontsize=8)
    for each, line in zip(losses, ("-", "--", ":"), strict=False):
        for name, nats, colour in (("full", each.full, COLOURS[1]), ("two levels", each.two_level, COLOURS[0])):
            right.plot(each.updates, nats, line, color=colour, label=f"{name}, {each.vocab_size:,} pieces")
    right.set(xlabel="updates", ylabel="nats per token of dev text", title="Loss while training lasts")
    right.legend(frameon=False, fontsize=8)
    save_svg(figure, path)

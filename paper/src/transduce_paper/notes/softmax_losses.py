"""Losses of small language models over whole words of real text, with full and with two-level softmax.

The losses are measured once and then read from a small file, so that the report needs no text.

Shapes: B batch, T positions, N real positions, D d_model, V vocabulary.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import islice
from math import exp
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from transduce.config import DataConfig
from transduce.corpora import ParallelText
from transduce.loss import LossSum
from transduce.model import LinearOutput, TransformerLM
from transduce.text import EOS_ID, SPECIAL_TOKENS, UNK_ID
from transduce_paper.experiments import Experiments
from transduce_paper.notes.tiny import (
    BATCH_SIZE,
    TINY,
    LanguageBatch,
    ListedBatches,
    Rows,
    language_batch,
    random_batches,
    seeded,
    train,
)
from transduce_paper.notes.two_level_softmax import LAYOUTS, TwoLevelSoftmax
from transduce_paper.run_records import CONVERGED

__all__ = ["FULL_SOFTMAX", "Curve", "LossSizes", "losses", "ranks", "text_of_words"]

FULL_SOFTMAX = "full"
PEAK_LR = 6e-3
N_VALIDATIONS = 10
N_GRAMMAR_PAIRS = 300  # of the short form
MAX_WORDS = 50  # of a sentence; the rest of a longer one is left out
_WORD = re.compile(r"\w+|[^\w\s]")


@dataclass(frozen=True, slots=True)
class LossSizes:
    """The text and the length of the trainings."""

    corpora: tuple[str, ...]  # their source and target sides; the first has the dev text
    n_updates: int
    n_dev: int  # dev pairs


@dataclass(frozen=True, slots=True)
class Curve:
    """A trained model: nats per dev word during training, and its first level at the end."""

    layer: str  # full, or the name of a layout
    updates: Sequence[int]
    nats: Sequence[float]
    rare: float  # share of dev words in a cluster
    differs: float  # share of dev positions where the word found level by level is not the most probable one
    n_different: int  # words in the training text
    unknown: float  # share of dev words that are not in the vocabulary

    @property
    def is_trained_to_the_end(self) -> bool:
        """Whether dev perplexity fell by less than the share of a run that has converged, over the last tenth."""
        earlier = [
            nats for update, nats in zip(self.updates, self.nats, strict=True) if update <= 0.9 * self.updates[-1]
        ]
        return bool(earlier) and 1 - exp(self.nats[-1] - earlier[-1]) < CONVERGED


@dataclass(frozen=True, slots=True)
class WordText:
    """Sentences as ids of whole words."""

    train: Rows
    dev: Rows
    n_different: int  # words in the training text
    unknown: float  # share of dev words that are not in the vocabulary


def losses(experiments: Experiments, vocab_size: int, sizes: LossSizes) -> dict[str, Curve]:
    """Return a curve for full softmax and for each layout, over a vocabulary of whole words."""

    def measure() -> list[dict[str, Any]]:
        text = text_of_words(sizes, vocab_size, experiments.data_folder)
        return [asdict(curve) for curve in _curves(text, vocab_size, sizes)]

    settings = {"n_updates": sizes.n_updates, "n_dev": sizes.n_dev}
    rows = experiments.measurement(f"notes-adaptive-softmax-{vocab_size}", "losses", measure, settings=settings)
    return {row["layer"]: Curve(**row) for row in rows}


def text_of_words(sizes: LossSizes, vocab_size: int, data_folder: Path | None) -> WordText:
    """Return both sides of some corpora over their most frequent words.

    Raises DataError or ConfigError if a corpus is missing.
    """
    text = ParallelText(DataConfig(corpus=dict.fromkeys(sizes.corpora, 1.0), n_pairs=N_GRAMMAR_PAIRS), data_folder)
    pairs = (pair for corpus in text.corpora for pair in text.train(corpus))
    train_words = list(_sentences(pairs))
    dev_words = list(_sentences(islice(text.of("dev"), sizes.n_dev)))
    counts = Counter(word for words in train_words for word in words)
    most_frequent = [word for word, _ in counts.most_common(vocab_size - len(SPECIAL_TOKENS))]
    id_of = {word: id for id, word in enumerate(most_frequent, start=len(SPECIAL_TOKENS))}
    train_rows, dev_rows = (
        [[id_of.get(word, UNK_ID) for word in words] for words in sentences] for sentences in (train_words, dev_words)
    )
    dev_ids = [id for row in dev_rows for id in row]
    return WordText(train_rows, dev_rows, len(counts), dev_ids.count(UNK_ID) / len(dev_ids))


def _sentences(pairs: Iterable[tuple[str, str]]) -> Iterator[list[str]]:
    """Yield the first words and punctuation marks of each side."""
    return (_WORD.findall(line)[:MAX_WORDS] for pair in pairs for line in pair)


def ranks(rows: Rows, vocab_size: int) -> Tensor:
    """Return the frequency rank of each id, EOS included, (V,).

    >>> ranks([[7, 7], [7, 5]], 8).tolist()  # 7 occurs three times, EOS (2) twice, 5 once
    [3, 4, 1, 5, 6, 2, 7, 0]
    """
    counts = Counter(id for row in rows for id in (*row, EOS_ID))
    in_order = sorted(range(vocab_size), key=lambda id: (-counts[id], id))
    rank_V = torch.empty(vocab_size, dtype=torch.int64)
    rank_V[torch.tensor(in_order)] = torch.arange(vocab_size)
    return rank_V


@dataclass(frozen=True, slots=True)
class _Training:
    """What all models of one vocabulary share."""

    text: WordText
    vocab_size: int
    rank_V: Tensor
    batches: ListedBatches
    dev: Sequence[LanguageBatch]


def _curves(text: WordText, vocab_size: int, sizes: LossSizes) -> Iterator[Curve]:
    """Train one model per output layer, all else equal."""
    dev = [language_batch(text.dev[start : start + BATCH_SIZE]) for start in range(0, len(text.dev), BATCH_SIZE)]
    shared = _Training(
        text, vocab_size, ranks(text.train, vocab_size), random_batches(text.train, sizes.n_updates), dev
    )
    yield _curve(FULL_SOFTMAX, LinearOutput, shared)
    for name, layout in LAYOUTS.items():
        yield _curve(name, layout.layer, shared)


def _curve(name: str, make_output: Callable[[int, int], LinearOutput | TwoLevelSoftmax], shared: _Training) -> Curve:
    """Train a new model with this output layer over frequency ranks."""
    with seeded(1):
        model, output = TransformerLM(TINY, vocab_size=shared.vocab_size), make_output(TINY.d_model, shared.vocab_size)
    model.register_module("output", output)

    def loss(batch: LanguageBatch, update: int = 0) -> LossSum:
        return output.loss(model(batch.ids_BT), shared.rank_V[batch.targets_N])

    def dev_nats() -> float:
        sums = [loss(batch) for batch in shared.dev]
        return sum(float(each.nll_nats) for each in sums) / sum(each.n_tokens for each in sums)

    validations = train(model, loss, shared.batches, peak_lr=PEAK_LR, dev_nats=dev_nats, n_validations=N_VALIDATIONS)
    updates, nats = zip(*validations, strict=True)
    rare, differs = (0.0, 0.0) if isinstance(output, LinearOutput) else _first_level(model, output, shared)
    return Curve(name, updates, nats, rare, differs, shared.text.n_different, shared.text.unknown)


@torch.no_grad()
def _first_level(model: TransformerLM, output: TwoLevelSoftmax, shared: _Training) -> tuple[float, float]:
    """Return the share of dev words in a cluster, and that of positions where the search by levels is not exact."""
    n_rare = n_different = n_words = 0
    for batch in shared.dev:
        states_ND = model(batch.ids_BT)
        n_rare += int((output.cluster_numbers(shared.rank_V[batch.targets_N]) > 0).sum())
        n_different += int((output.level_by_level(states_ND) != output.most_probable(states_ND)).sum())
        n_words += len(states_ND)
    return n_rare / n_words, n_different / n_words

"""What the experiments of the notes share: a language model that learns in seconds, its text, and how it is trained.

Shapes: B batch, T positions, N real positions in a list.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from transduce.config import Split, TrainingConfig
from transduce.corpora import generate_pairs
from transduce.data import pad_rows
from transduce.loss import LossConfig, LossSum
from transduce.model import LanguageModel, StackConfig
from transduce.text import BOS_ID, EOS_ID, PAD_ID, Tokenizer, train_bpe
from transduce.training import Objective, Record, Trainer, Validation, ValidationRecord

__all__ = [
    "BATCH_SIZE",
    "TINY",
    "GrammarText",
    "LanguageBatch",
    "ListedBatches",
    "Rows",
    "grammar_text",
    "language_batch",
    "next_token_loss",
    "random_batches",
    "seeded",
    "train",
    "trained",
]

Rows = Sequence[Sequence[int]]

TINY = StackConfig(n_layers=2, d_model=64, d_ff=128, n_heads=4, d_k=16, d_v=16, p_drop=0.0)
BATCH_SIZE = 32  # sentences
WARM_UP_SHARE = 0.1  # of the updates


@dataclass(frozen=True, slots=True)
class GrammarText:
    """Sentences of the built-in grammar corpus, English and German, as ids of one vocabulary."""

    tokenizer: Tokenizer
    train: tuple[list[int], ...]
    dev: tuple[list[int], ...]


def grammar_text(*, n_train: int, n_dev: int, vocab_size: int) -> GrammarText:
    """So many pairs of each, every sentence for itself; the vocabulary is learned from those of training."""
    n_pairs: Mapping[Split, int] = {"train": n_train, "dev": n_dev}
    train, dev = (
        [line for pair in generate_pairs(split, n_pairs=n, seed=1) for line in (pair.en, pair.de)]
        for split, n in n_pairs.items()
    )
    tokenizer = train_bpe(train, vocab_size=vocab_size)
    return GrammarText(tokenizer, tuple(tokenizer.encode_batch(train)), tuple(tokenizer.encode_batch(dev)))


@dataclass(frozen=True, slots=True)
class LanguageBatch:
    """What a language model reads, and what it should say: one id for each state that is asked."""

    ids_BT: Tensor
    targets_N: Tensor

    def tensors(self) -> Mapping[str, Tensor]:
        """All that the objective reads."""
        return {"ids_BT": self.ids_BT, "targets_N": self.targets_N}


def language_batch(rows: Rows, *, n_padding: int = 0) -> LanguageBatch:
    """Each row after a begin symbol, and the same row with an end symbol; and more padding than the longest needs."""
    ids_BT = F.pad(pad_rows([[BOS_ID, *row] for row in rows]), (0, n_padding), value=PAD_ID)
    return LanguageBatch(ids_BT, torch.tensor([id for row in rows for id in (*row, EOS_ID)]))


class ListedBatches:
    """The batches of a training, each made of its rows; an epoch has them all."""

    def __init__(self, rows: Sequence[Rows], make: Callable[[Rows], LanguageBatch] = language_batch) -> None:
        self.rows, self.make = rows, make

    def n_batches(self, epoch: int) -> int:
        """How many there are."""
        return len(self.rows)

    def n_rows(self, epoch: int, index: int) -> int:
        """Rows of a batch."""
        return len(self.rows[index])

    def n_tokens(self, epoch: int, index: int) -> tuple[int, int]:
        """Tokens that are read, and tokens that are predicted."""
        batch = self.batch(epoch, index)
        return int((batch.ids_BT != PAD_ID).sum()), len(batch.targets_N)

    def batch(self, epoch: int, index: int, *, part: int = 0, n_parts: int = 1) -> LanguageBatch:
        """One of them, or every ``n_parts``-th row of it."""
        return self.make(self.rows[index][part::n_parts])

    def largest(self, epoch: int) -> list[int]:
        """None that memory might not suffice for."""
        return []

    def name(self, epoch: int, index: int) -> str:
        """Its number."""
        return f"batch {index}"


def random_batches(rows: Rows, n_batches: int) -> ListedBatches:
    """Each of ``BATCH_SIZE`` rows, drawn without replacement, always the same."""
    generator = torch.Generator().manual_seed(1)
    places = [torch.randperm(len(rows), generator=generator)[:BATCH_SIZE].tolist() for _ in range(n_batches)]
    return ListedBatches([[rows[place] for place in batch] for batch in places])


@contextmanager
def seeded(seed: int) -> Iterator[None]:
    """Within the block, what torch draws depends on ``seed`` alone; behind it, it goes on as before."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        yield


def train(
    model: nn.Module,
    objective: Objective[LanguageBatch],
    batches: ListedBatches,
    *,
    peak_lr: float,
    dev_nats: Callable[[], float] | None = None,
    n_looks: int = 1,
) -> list[tuple[int, float]]:
    """One update for each batch; the learning rate rises for a tenth of them and then falls to nothing.

    Returns (update, ``dev_nats()``) for so many looks on the way, the last one at the end if their number divides that
    of the updates. The model is in evaluation mode afterwards.
    """
    n_updates = batches.n_batches(0)
    n_rising = max(1, round(WARM_UP_SHARE * n_updates))
    looks: list[tuple[int, float]] = []
    config = TrainingConfig(
        max_updates=n_updates,
        validate_every_updates=max(1, n_updates // n_looks),
        checkpoint_every_updates=n_updates,
        log_every_updates=n_updates,
    )

    def learning_rate(step: int) -> float:
        return peak_lr * min(step / n_rising, (n_updates - step + 1) / (n_updates - n_rising + 1))

    def listen(record: Record) -> None:
        if isinstance(record, ValidationRecord):
            looks.append((record.update, record.nll_nats))

    with tempfile.TemporaryDirectory() as folder, seeded(1):
        Trainer(
            model=model,
            objective=objective,
            batches=batches,
            learning_rate=learning_rate,
            config=config,
            checkpoints=Path(folder),
            validate=None if dev_nats is None else lambda _: Validation(dev_nats()),
            listeners=[listen],
        ).run()
    model.eval()
    return looks


def next_token_loss(model: LanguageModel, batch: LanguageBatch, *, eps_ls: float = 0.0) -> LossSum:
    """What a language model minimises; with smoothed labels where ``eps_ls`` is above 0."""
    return model.output.loss(model(batch.ids_BT), batch.targets_N, LossConfig(eps_ls))


def trained(
    text: GrammarText,
    *,
    n_updates: int,
    peak_lr: float,
    eps_ls: float = 0.0,
    kind: type[LanguageModel] = LanguageModel,
    config: StackConfig = TINY,
) -> LanguageModel:
    """A language model of seed 1 that has learned a text."""
    with seeded(1):
        model = kind(config, vocab_size=text.tokenizer.size)
    batches = random_batches(text.train, n_updates)
    train(model, lambda batch, _: next_token_loss(model, batch, eps_ls=eps_ls), batches, peak_lr=peak_lr)
    return model

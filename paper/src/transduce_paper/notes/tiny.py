"""A language model that trains in seconds, its text and its training, shared by the checks of the notes.

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
from transduce.model import StackConfig, TransformerLM
from transduce.text import BOS_ID, EOS_ID, PAD_ID, Tokenizer, train_bpe
from transduce.training import Objective, Record, Trainer, Validation, ValidationRecord

__all__ = [
    "BATCH_SIZE", "TINY", "GrammarText", "LanguageBatch", "ListedBatches", "Rows", "grammar_text", "language_batch",
    "next_token_loss", "random_batches", "seeded", "train", "trained",
]  # fmt: skip

Rows = Sequence[Sequence[int]]

TINY = StackConfig(n_layers=2, d_model=64, d_ff=128, n_heads=4, d_k=16, d_v=16, p_drop=0.0)
BATCH_SIZE = 32  # sentences
WARM_UP_SHARE = 0.1  # share of the updates


@dataclass(frozen=True, slots=True)
class GrammarText:
    """English and German sentences of the built-in grammar corpus, encoded with one vocabulary."""

    tokenizer: Tokenizer
    train: tuple[list[int], ...]
    dev: tuple[list[int], ...]


def grammar_text(*, n_train: int, n_dev: int, vocab_size: int) -> GrammarText:
    """Return the sentences of that many pairs; the vocabulary is trained on the training sentences."""
    n_pairs: Mapping[Split, int] = {"train": n_train, "dev": n_dev}
    train, dev = (
        [line for pair in generate_pairs(split, n_pairs=n, seed=1) for line in (pair.en, pair.de)]
        for split, n in n_pairs.items()
    )
    tokenizer = train_bpe(train, vocab_size=vocab_size)
    return GrammarText(tokenizer, tuple(tokenizer.encode_batch(train)), tuple(tokenizer.encode_batch(dev)))


@dataclass(frozen=True, slots=True)
class LanguageBatch:
    """Inputs of a language model and its targets, one id per scored state."""

    ids_BT: Tensor
    targets_N: Tensor

    def tensors(self) -> Mapping[str, Tensor]:
        """Return the tensors of the batch by name."""
        return {"ids_BT": self.ids_BT, "targets_N": self.targets_N}


def language_batch(rows: Rows, *, n_padding: int = 0) -> LanguageBatch:
    """Return rows with BOS as inputs and with EOS as targets; ``n_padding`` adds columns of padding."""
    ids_BT = F.pad(pad_rows([[BOS_ID, *row] for row in rows]), (0, n_padding), value=PAD_ID)
    return LanguageBatch(ids_BT, torch.tensor([id for row in rows for id in (*row, EOS_ID)]))


class ListedBatches:
    """A batch source over a fixed list of batches; an epoch has all of them."""

    def __init__(self, rows: Sequence[Rows], make: Callable[[Rows], LanguageBatch] = language_batch) -> None:
        self.rows, self.make = rows, make

    def n_batches(self, epoch: int) -> int:
        """Return the number of batches."""
        return len(self.rows)

    def n_rows(self, epoch: int, index: int) -> int:
        """Return the number of rows of a batch."""
        return len(self.rows[index])

    def n_tokens(self, epoch: int, index: int) -> tuple[int, int]:
        """Return the numbers of input and of target tokens."""
        batch = self.batch(epoch, index)
        return int((batch.ids_BT != PAD_ID).sum()), len(batch.targets_N)

    def batch(self, epoch: int, index: int, *, part: int = 0, n_parts: int = 1) -> LanguageBatch:
        """Return a batch, or every ``n_parts``-th row of it."""
        return self.make(self.rows[index][part::n_parts])

    def largest(self, epoch: int) -> list[int]:
        """Return no batch for the memory preflight: all are small."""
        return []

    def name(self, epoch: int, index: int) -> str:
        """Return a name for messages."""
        return f"batch {index}"


def random_batches(rows: Rows, n_batches: int) -> ListedBatches:
    """Draw batches of ``BATCH_SIZE`` rows without replacement, with a fixed seed."""
    generator = torch.Generator().manual_seed(1)
    indices = [torch.randperm(len(rows), generator=generator)[:BATCH_SIZE].tolist() for _ in range(n_batches)]
    return ListedBatches([[rows[index] for index in batch] for batch in indices])


@contextmanager
def seeded(seed: int) -> Iterator[None]:
    """Seed torch's generator within the block and restore its state afterwards."""
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
    n_validations: int = 1,
) -> list[tuple[int, float]]:
    """Train with one update per batch: linear warm-up for a tenth of them, then linear decay to zero.

    Returns (update, ``dev_nats()``) of ``n_validations`` validations; the last is at the end if their number divides
    that of the updates. The model is in evaluation mode afterwards.
    """
    n_updates = batches.n_batches(0)
    n_warmup = max(1, round(WARM_UP_SHARE * n_updates))
    validations: list[tuple[int, float]] = []
    config = TrainingConfig(
        max_updates=n_updates,
        validate_every_updates=max(1, n_updates // n_validations),
        checkpoint_every_updates=n_updates,
        log_every_updates=n_updates,
    )

    def learning_rate(step: int) -> float:
        return peak_lr * min(step / n_warmup, (n_updates - step + 1) / (n_updates - n_warmup + 1))

    def collect_validation(record: Record) -> None:
        if isinstance(record, ValidationRecord):
            validations.append((record.update, record.nll_nats))

    with tempfile.TemporaryDirectory() as folder, seeded(1):
        Trainer(
            model=model,
            objective=objective,
            batches=batches,
            learning_rate=learning_rate,
            config=config,
            checkpoints=Path(folder),
            validate=None if dev_nats is None else lambda _: Validation(dev_nats()),
            listeners=[collect_validation],
        ).run()
    model.eval()
    return validations


def next_token_loss(model: TransformerLM, batch: LanguageBatch, *, eps_ls: float = 0.0) -> LossSum:
    """Return the cross-entropy of a language model, with label smoothing ``eps_ls``."""
    return model.output.loss(model(batch.ids_BT), batch.targets_N, LossConfig(eps_ls))


def trained(
    text: GrammarText,
    *,
    n_updates: int,
    peak_lr: float,
    eps_ls: float = 0.0,
    kind: type[TransformerLM] = TransformerLM,
    config: StackConfig = TINY,
) -> TransformerLM:
    """Return a language model trained on a text, with seed 1."""
    with seeded(1):
        model = kind(config, vocab_size=text.tokenizer.size)
    batches = random_batches(text.train, n_updates)
    train(model, lambda batch, _: next_token_loss(model, batch, eps_ls=eps_ls), batches, peak_lr=peak_lr)
    return model

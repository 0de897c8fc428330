"""A Transformer that learns in seconds, for the experiments of the notes: the left or the right half of figure 1.

It works on padded grids, as most toolkits do, so that padding can do harm where it does: ``transduce.model`` computes
nothing there.

Shapes: B batch, T positions, N real positions in a list, D d_model, V vocabulary.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from transduce.config import Split
from transduce.corpora import generate_pairs
from transduce.data import pad_rows
from transduce.model.embedding import sinusoid
from transduce.model.layers import LAYER_NORM_EPS
from transduce.model.mixers import FullSelfAttention
from transduce.text import BOS_ID, EOS_ID, PAD_ID, Tokenizer, train_bpe

__all__ = [
    "GrammarText",
    "LanguageBatch",
    "Norm",
    "Positions",
    "TinyTransformer",
    "encoded",
    "fit",
    "grammar_lines",
    "language_batch",
    "layer_norm",
    "next_token_loss",
    "random_batches",
]

Norm = Callable[[int], nn.Module]  # of so many features: (B, T, D) to (B, T, D)
Positions = Callable[[int, int], Tensor]  # of n_positions and d_model: (T, D)

WARM_UP_SHARE = 0.1  # of the updates


def layer_norm(d_model: int) -> nn.Module:
    """The paper's norm."""
    return nn.LayerNorm(d_model, eps=LAYER_NORM_EPS)


class TinyLayer(nn.Module):
    """Self-attention, then a feed-forward network, each in Norm(x + Sublayer(x)). Section 3.1."""

    def __init__(self, d_model: int, *, n_heads: int, is_causal: bool, make_norm: Norm) -> None:
        super().__init__()
        self.attention = FullSelfAttention(d_model, n_heads=n_heads, is_causal=is_causal)
        self.attention_norm = make_norm(d_model)
        self.w_1 = nn.Linear(d_model, 2 * d_model)
        self.w_2 = nn.Linear(2 * d_model, d_model)
        self.feed_forward_norm = make_norm(d_model)

    def forward(self, x_BTD: Tensor, is_real_BT: Tensor) -> Tensor:
        """(B, T, D) to (B, T, D)."""
        x_BTD = self.attention_norm(x_BTD + self.attention(x_BTD, is_real_BT))
        out_BTD: Tensor = self.feed_forward_norm(x_BTD + self.w_2(F.relu(self.w_1(x_BTD))))
        return out_BTD


class TinyTransformer(nn.Module):
    """Embeddings and positions, then layers. Without dropout; the output matrix is that of the embedding.

    The weights depend on ``seed`` alone.
    """

    def __init__(
        self,
        vocab_size: int,
        *,
        seed: int,
        d_model: int = 64,
        n_layers: int = 2,
        n_heads: int = 4,
        is_causal: bool = True,
        make_norm: Norm = layer_norm,
        positions: Positions = sinusoid,
    ) -> None:
        super().__init__()
        self.positions = positions
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            self.embedding = nn.Embedding(vocab_size, d_model)
            nn.init.normal_(self.embedding.weight, std=d_model**-0.5)
            self.layers = nn.ModuleList(
                TinyLayer(d_model, n_heads=n_heads, is_causal=is_causal, make_norm=make_norm) for _ in range(n_layers)
            )

    @property
    def output_weight(self) -> Tensor:
        """(V, D)."""
        return self.embedding.weight

    def forward(self, ids_BT: Tensor) -> Tensor:
        """States (B, T, D) of ids that are padded on the right with 0."""
        d_model, weight = self.embedding.embedding_dim, self.embedding.weight
        place_TD = self.positions(ids_BT.shape[1], d_model).to(weight)
        x_BTD: Tensor = self.embedding(ids_BT) * math.sqrt(d_model) + place_TD
        is_real_BT = ids_BT != PAD_ID
        for layer in self.layers:
            x_BTD = layer(x_BTD, is_real_BT)
        return x_BTD


def fit(model: nn.Module, loss_of_update: Callable[[int], Tensor], *, n_updates: int, peak_lr: float) -> None:
    """Adam, with a learning rate that rises for a tenth of the updates and then falls to nothing.

    The model is in training mode while this lasts, and in evaluation mode afterwards.
    """
    model.train()
    optimiser = torch.optim.Adam(model.parameters(), lr=peak_lr, betas=(0.9, 0.98), eps=1e-9)
    n_rising = max(1, round(WARM_UP_SHARE * n_updates))
    for update in range(n_updates):
        share = min((update + 1) / n_rising, (n_updates - update) / (n_updates - n_rising + 1))
        optimiser.param_groups[0]["lr"] = peak_lr * share
        optimiser.zero_grad(set_to_none=True)
        torch.autograd.backward(loss_of_update(update))
        optimiser.step()
    model.eval()


@dataclass(frozen=True, slots=True)
class GrammarText:
    """Sentences of the built-in grammar corpus, English and German, as ids of one vocabulary."""

    tokenizer: Tokenizer
    train: tuple[list[int], ...]
    dev: tuple[list[int], ...]


def grammar_lines(*, n_train: int, n_dev: int) -> tuple[list[str], list[str]]:
    """Training and dev text: as many pairs of each; a sentence stands for itself, so there are twice as many lines."""
    return _lines("train", n_train), _lines("dev", n_dev)


def _lines(split: Split, n_pairs: int) -> list[str]:
    return [line for pair in generate_pairs(split, n_pairs=n_pairs, seed=1) for line in (pair.en, pair.de)]


def encoded(lines: tuple[list[str], list[str]], *, vocab_size: int) -> GrammarText:
    """The lines of ``grammar_lines`` in a vocabulary that is learned from those of training."""
    train, dev = lines
    tokenizer = train_bpe(train, vocab_size=vocab_size)
    return GrammarText(tokenizer, tuple(tokenizer.encode_batch(train)), tuple(tokenizer.encode_batch(dev)))


@dataclass(frozen=True, slots=True)
class LanguageBatch:
    """What a language model reads, and what it should say: ``is_real_BT`` has as many True as ``targets_N`` ids."""

    ids_BT: Tensor
    is_real_BT: Tensor
    targets_N: Tensor


def language_batch(rows: Sequence[Sequence[int]], *, n_padding: int = 0) -> LanguageBatch:
    """Each row after a begin symbol, and the same row with an end symbol; and more padding than the longest needs."""
    ids_BT = F.pad(pad_rows([[BOS_ID, *row] for row in rows]), (0, n_padding), value=PAD_ID)
    targets_N = torch.tensor([id for row in rows for id in (*row, EOS_ID)])
    return LanguageBatch(ids_BT, ids_BT != PAD_ID, targets_N)


def random_batches(rows: Sequence[Sequence[int]], *, batch_size: int, seed: int) -> Iterator[LanguageBatch]:
    """Endless batches, each of rows drawn without replacement."""
    generator = torch.Generator().manual_seed(seed)
    while True:
        chosen = torch.randperm(len(rows), generator=generator)[:batch_size].tolist()
        yield language_batch([rows[place] for place in chosen])


def next_token_loss(model: TinyTransformer, batch: LanguageBatch, *, eps_ls: float = 0.0) -> Tensor:
    """Nats per token; with smoothed labels where ``eps_ls`` is above 0."""
    states_ND = model(batch.ids_BT)[batch.is_real_BT]
    return F.cross_entropy(F.linear(states_ND, model.output_weight), batch.targets_N, label_smoothing=eps_ls)

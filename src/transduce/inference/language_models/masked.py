"""Using a masked language model: filling gaps, and the probability of each token given all others.

Shapes: B rows of a batch, T positions, N real positions of all rows, M masked positions, V vocabulary.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Self

import torch
from torch import Tensor

from transduce.errors import ConfigError, DataError
from transduce.inference.batch_search import require_sequence
from transduce.inference.folder import ModelFolder
from transduce.inference.language_models.language_model import FilledText, LanguageModel, SpanFill, stack_of
from transduce.inference.trained_model import Capabilities
from transduce.model import AttentionHook
from transduce.text import BOS_ID
from transduce.text.gaps import GapCodec

__all__ = ["MaskedLanguageModel"]

TOKENS_PER_BATCH = 8192  # of scoring


class MaskedLanguageModel(LanguageModel):
    """An encoder-only model: each position sees all others."""

    capabilities = Capabilities(
        ("masked-lm",), "a masked language model", "fill",
        why_not_exported="BERT normalises its embeddings and has one more layer before the softmax; this model has"
        " neither",
    )  # fmt: skip
    is_pseudo = True

    @classmethod
    def from_folder(cls, loaded: ModelFolder) -> Self:
        """Return the language model of a model folder that has been read.

        Raises CheckpointError if its vocabulary has no mask token.
        """
        loaded.require_language_model_tokens()
        return cls(stack_of(loaded, is_causal=False), loaded.tokenizers.src, max_length=loaded.model.window)

    @property
    def mask_id(self) -> int:
        """The id of the mask token."""
        return self.tokenizer.mask_and_sentinel_ids[0]

    def fill(self, texts: Sequence[str], *, n_best: int = 5) -> list[FilledText]:
        """Fill the gaps of each text, written ``<mask>``: the ``n_best`` most probable tokens of each.

        All gaps of a text are predicted at once, without regard to each other. Raises TypeError for a single string,
        DataError for a text longer than the model's window.
        """
        require_sequence(texts, "fill takes a list of texts", "for one text, fill([text])[0]")
        return [self._filled(text, n_best) for text in texts]

    def read_and_written(self, text: str) -> tuple[list[int], list[int]]:
        """Return the ids of the text, its gaps as mask tokens, and none that a decoder writes."""
        codec = GapCodec(self.codec)
        return [BOS_ID, *codec.encode(text, [self.mask_id] * codec.n_gaps(text))], []

    def forward(self, read_ids: list[int], written_ids: list[int], attention_hook: AttentionHook) -> None:
        """Run the model over the ids of a text; the hook receives the attention weights."""
        self.model(torch.tensor([read_ids], device=self.device), attention_hook=attention_hook)

    @torch.no_grad()
    def _filled(self, text: str, n_best: int) -> FilledText:
        ids, _ = self.read_and_written(text)
        if len(ids) > self.max_length:
            raise DataError(
                f"the text has {len(ids):,} tokens, BOS included, the model's window {self.max_length:,}; shorten it:"
                f" {text[:50]!r}"
            )
        gaps = [position for position, id in enumerate(ids) if id == self.mask_id]
        states_ND = self.model(torch.tensor([ids], device=self.device))
        logits_MV = self.model.output.logits(states_ND[gaps])
        logits_MV[:, self.no_text] = -math.inf
        best = logits_MV.double().softmax(dim=1).topk(min(n_best, logits_MV.shape[1] - len(self.no_text)), dim=1)
        fills = []
        for position, of_gap, probabilities in zip(gaps, best.indices.tolist(), best.values.tolist(), strict=True):
            ids[position] = of_gap[0]
            pieces = self.tokenizer.pieces(of_gap)
            fills.append(tuple(SpanFill(piece, p) for piece, p in zip(pieces, probabilities, strict=True)))
        return FilledText(self.codec.decode(ids).removesuffix("\n"), tuple(fills))

    @torch.no_grad()
    def _log_probs(self, ids: Sequence[int], stride: int | None) -> Tensor:
        """Return the log-probability of each of n tokens given all others in its window, (n,), in float64.

        Each token is masked in turn, near the middle of its window; their sum is the pseudo-log-likelihood of Salazar
        et al. (2020). Raises ConfigError for a ``stride``: the window follows the token.
        """
        if stride is not None:
            raise ConfigError("a masked model hides each token in turn, its window does not slide; omit the stride")
        whole, width = torch.tensor([BOS_ID, *ids]), min(self.max_length, len(ids) + 1)
        targets = range(1, len(whole))
        windows = [(position, min(max(0, position - width // 2), len(whole) - width)) for position in targets]
        result = torch.empty(len(ids), dtype=torch.float64)
        per_batch = max(1, TOKENS_PER_BATCH // width)
        for begin in range(0, len(ids), per_batch):
            of_batch = windows[begin : begin + per_batch]
            ids_BT = torch.stack([whole[start : start + width] for _, start in of_batch])
            masked_B = torch.tensor([position - start for position, start in of_batch])
            rows_B = torch.arange(len(of_batch))
            targets_B = ids_BT[rows_B, masked_B].clone()
            ids_BT[rows_B, masked_B] = self.mask_id
            states_ND = self.model(ids_BT.to(self.device))
            logits_BV = self.model.output.logits(states_ND[(rows_B * width + masked_B).to(self.device)])
            chosen_B = logits_BV.double().log_softmax(dim=1).cpu().gather(1, targets_B.unsqueeze(1)).squeeze(1)
            result[begin : begin + len(of_batch)] = chosen_B
        return result

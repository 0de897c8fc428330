"""Using a masked language model: filling gaps, and the probability of each token given all others."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Self

from transduce.config.decoding import EngineName
from transduce.errors import ConfigError, DataError
from transduce.inference.arguments import require_sequence
from transduce.inference.engine import ForcedPair, Request
from transduce.inference.folder import ModelFolder
from transduce.inference.language_models.language_model import FilledText, LanguageModel, SpanFill, stack_of
from transduce.inference.trained_model import Capabilities
from transduce.text import BOS_ID
from transduce.text.gaps import GapCodec

if TYPE_CHECKING:
    from transduce.model import AttentionHook

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
    def from_folder(cls, loaded: ModelFolder, *, engine: EngineName = "auto") -> Self:
        """Return the language model of a model folder that has been read.

        Raises CheckpointError if its vocabulary has no mask token.
        """
        loaded.require_language_model_tokens()
        model, window = stack_of(loaded, is_causal=False)
        return cls(model, loaded.tokenizers.src, max_length=window, engine=engine)

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
        import torch

        self.model(torch.tensor([read_ids], device=self.device), attention_hook=attention_hook)

    def _filled(self, text: str, n_best: int) -> FilledText:
        ids, _ = self.read_and_written(text)
        if len(ids) > self.max_length:
            raise DataError(
                f"the text has {len(ids):,} tokens, BOS included, the model's window {self.max_length:,}; shorten it:"
                f" {text[:50]!r}"
            )
        gaps = [position for position, id in enumerate(ids) if id == self.mask_id]
        [best] = self.engine.next_tokens([Request(1, ids)], n_best)
        fills = []
        for position, of_gap in zip(gaps, best, strict=True):
            ids[position] = of_gap[0][0]
            pieces = self.tokenizer.pieces([id for id, _ in of_gap])
            fills.append(tuple(SpanFill(piece, p) for piece, (_, p) in zip(pieces, of_gap, strict=True)))
        return FilledText(self.codec.decode(ids).removesuffix("\n"), tuple(fills))

    def _log_probs(self, ids: Sequence[int], stride: int | None) -> list[float]:
        """Return the log-probability of each of n tokens given all others in its window.

        Each token is masked in turn, near the middle of its window; their sum is the pseudo-log-likelihood of Salazar
        et al. (2020). Raises ConfigError for a ``stride``: the window follows the token.
        """
        if stride is not None:
            raise ConfigError("a masked model hides each token in turn, its window does not slide; omit the stride")
        whole, width = [BOS_ID, *ids], min(self.max_length, len(ids) + 1)
        pairs = []
        for position in range(1, len(whole)):
            start = min(max(0, position - width // 2), len(whole) - width)
            window = [*whole[start:position], self.mask_id, *whole[position + 1 : start + width]]
            pairs.append(ForcedPair(window, [whole[position]]))
        return [each.log_prob for each in self.engine.forced_scores(pairs, max_tokens=TOKENS_PER_BATCH)]

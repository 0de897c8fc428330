"""Using a model that was trained on missing spans: an encoder-decoder that fills gaps of any length."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from typing import TYPE_CHECKING, Self

from transduce.config import BeamSearchConfig, SearchConfig, TransformerConfig
from transduce.config.decoding import EngineName
from transduce.data.spans import restored, spans_of
from transduce.errors import ConfigError, DataError
from transduce.inference.arguments import require_sequence
from transduce.inference.engine import Request
from transduce.inference.folder import ModelFolder
from transduce.inference.language_models.language_model import FilledText, LanguageModel, SpanFill
from transduce.inference.stored_model import StoredModel
from transduce.inference.text_search import MAX_SOURCE_TOKENS
from transduce.inference.trained_model import Capabilities
from transduce.search import Hypothesis
from transduce.text import BOS_ID, EOS_ID, UNK_ID, Tokenizer
from transduce.text.gaps import GapCodec

if TYPE_CHECKING:
    from transduce.model import AttentionHook, EncoderDecoder

__all__ = ["SpanLanguageModel"]


class SpanLanguageModel(LanguageModel):
    """An encoder-decoder that reads a text with gaps and writes what is missing."""

    capabilities = Capabilities(("span-corruption",), "a model of missing spans", "fill", exported_as="encoder-decoder")

    def __init__(
        self,
        model: EncoderDecoder | StoredModel,
        tokenizer: Tokenizer,
        search: SearchConfig,
        *,
        max_length: int,
        engine: EngineName = "auto",
    ) -> None:
        super().__init__(model, tokenizer, max_length=max_length, engine=engine)
        self.search = search
        self.max_length = min(max_length, self.engine.max_positions)

    @classmethod
    def from_folder(cls, loaded: ModelFolder, *, engine: EngineName = "auto") -> Self:
        """Return the language model of a model folder that has been read.

        Raises CheckpointError if its vocabulary has no sentinels.
        """
        loaded.require_language_model_tokens()
        model = loaded.stored_as(TransformerConfig)
        return cls(model, loaded.tokenizers.src, loaded.search, max_length=MAX_SOURCE_TOKENS, engine=engine)

    def fill(self, texts: Sequence[str], *, n_best: int = 5) -> list[FilledText]:
        """Fill the gaps of each text, written ``<mask>``, each with text of any length.

        The text has the fills of the best output of a beam search; the probability of a fill is the share of the
        outputs found that have it, so its first fill may be another. Raises TypeError for a single string, DataError
        for too many gaps or a text that is too long.
        """
        require_sequence(texts, "fill takes a list of texts", "for one text, fill([text])[0]")
        return [self._filled(text, n_best) for text in texts]

    def _filled(self, text: str, n_best: int) -> FilledText:
        source, gaps = self._source(text)
        if not gaps:
            return FilledText(self.codec.decode(source).removesuffix("\n"), ())
        best, *_ = outputs = self._outputs(source, self.search.beam_size)
        filled = restored(source, best.ids, set(self.tokenizer.mask_and_sentinel_ids))
        if n_best > len(outputs):
            outputs = self._outputs(source, n_best)
        spans = [spans_of(each.ids, set(self.tokenizer.mask_and_sentinel_ids)) for each in outputs]
        highest = max(each.log_prob for each in outputs)
        weights = [math.exp(each.log_prob - highest) for each in outputs]
        fills = []
        for gap in gaps:
            shares: dict[str, float] = defaultdict(float)
            for weight, of_output in zip(weights, spans, strict=True):
                shares[self.tokenizer.piece(of_output.get(gap, []))] += weight / math.fsum(weights)
            ranked = sorted(shares.items(), key=lambda item: -item[1])[:n_best]
            fills.append(tuple(SpanFill(span, share) for span, share in ranked))
        return FilledText(self.codec.decode(filled).removesuffix("\n"), tuple(fills))

    def read_and_written(self, text: str) -> tuple[list[int], list[int]]:
        """Return the ids of the text with its gaps as sentinels, and those of what is missing."""
        source, _ = self._source(text)
        best, *_ = self._outputs(source, self.search.beam_size)
        return [*source, EOS_ID], [BOS_ID, *best.ids, EOS_ID]

    def forward(self, read_ids: list[int], written_ids: list[int], attention_hook: AttentionHook) -> None:
        """Run the model over the ids of a text; the hook receives the attention weights."""
        import torch

        src_BS, tgt_BT = (torch.tensor([ids], device=self.device) for ids in (read_ids, written_ids[:-1]))
        self.model(src_BS, tgt_BT, attention_hook=attention_hook)

    def _source(self, text: str) -> tuple[list[int], list[int]]:
        """Return the ids of a text without EOS, and the sentinels of its gaps.

        Raises DataError for too many gaps or a text that is too long.
        """
        codec, sentinels = GapCodec(self.codec), self.tokenizer.mask_and_sentinel_ids[1:]
        n_gaps = codec.n_gaps(text)
        if n_gaps >= len(sentinels):
            raise DataError(f"the text has {n_gaps:,} gaps, at most {len(sentinels) - 1} can be filled: {text[:50]!r}")
        source = codec.encode(text, sentinels[:n_gaps])
        if len(source) >= self.max_length:
            raise DataError(
                f"the text has {len(source) + 1:,} tokens, EOS included, the model reads at most {self.max_length:,};"
                f" shorten it: {text[:50]!r}"
            )
        return source, sentinels[:n_gaps]

    def _outputs(self, source: Sequence[int], beam_size: int) -> Sequence[Hypothesis]:
        """Return the outputs of a beam search, the best first."""
        request = Request(min(self.search.max_output_tokens(len(source)), self.max_length), [*source, EOS_ID])
        search = BeamSearchConfig(beam_size=beam_size, n_best=beam_size, alpha=self.search.alpha)
        found = self.engine.hypotheses([request], search)
        assert found is not None  # not interrupted
        return found[0]

    def _suppressed_ids(self) -> list[int]:
        """Return the ids that are never written, besides padding and BOS."""
        return [UNK_ID, self.tokenizer.mask_and_sentinel_ids[0]]

    def _log_probs(self, ids: Sequence[int], stride: int | None) -> list[float]:
        raise ConfigError(
            "a model for span-corruption gives no probability to a whole text; use one for causal-lm or masked-lm"
        )

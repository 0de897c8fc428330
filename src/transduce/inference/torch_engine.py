"""The engine that runs every model of the package: PyTorch, on CPUs and GPUs.

Shapes: B sources of a batch, S source positions, T target positions, N real target positions of all pairs,
D d_model, V vocabulary, H heads, R lengths that are tried for a source, Z columns or frames, X width of a feature.
"""

from __future__ import annotations

import copy
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property, partial
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor

from transduce.config import (
    ConvS2SConfig,
    MaskPredictSearchConfig,
    SampledSearchConfig,
    SearchConfig,
    TransformerConfig,
)
from transduce.data import pad_rows
from transduce.data.media import padded_features
from transduce.errors import ConfigError
from transduce.inference.decoders import AttendedDecoder, Decoder, PaddedSource
from transduce.inference.engine import (
    PLAIN_RUN,
    Constraints,
    EngineSettings,
    ForcedPair,
    ForcedScores,
    Request,
    Run,
    forced_in_batches,
    in_batches,
)
from transduce.inference.run_search import run_search
from transduce.model import (
    AttentionKind,
    BlockDecoder,
    EncoderDecoder,
    Ensemble,
    MaskedTransformer,
    Transformer,
    for_inference,
)
from transduce.model.masked_transformer import MASK_ID
from transduce.model.padding import PaddingInfo
from transduce.model.shortlist_decoder import ShortlistDecoder
from transduce.search import (
    MAX_UNIT,
    AvoidedPhrases,
    Chain,
    Constrained,
    Drafter,
    DraftLength,
    ForcedPrefix,
    HeadsDrafter,
    Hypothesis,
    LogProbsProcessor,
    ModelDrafter,
    NoLoops,
    PassCounts,
    RewindableT,
    WantedPhrases,
    mask_predict,
    requested_processor,
)
from transduce.text import BOS_ID, EOS_ID, PAD_ID

__all__ = ["EncoderDecoderEngine"]

ANY_NUMBER = [2**31] * MAX_UNIT  # of repeats


class EncoderDecoderEngine:
    """An encoder-decoder, or an ensemble, of text, images or audio."""

    def __init__(self, models: Sequence[EncoderDecoder], settings: EngineSettings) -> None:
        """Raise ConfigError for a shortlist with an ensemble, or a model for mask-predict with either."""
        copies = [for_inference(each, settings.precision) for each in models]
        if settings.shortlist is not None and len(copies) > 1:
            raise ConfigError("a shortlist cannot be used with an ensemble; leave one of them out")
        self._is_masked = any(isinstance(model, MaskedTransformer) for model in models)
        if self._is_masked and (len(copies) > 1 or settings.shortlist is not None):
            raise ConfigError("a model for mask-predict works alone: no ensemble, no shortlist")
        self.counts = PassCounts()
        self.on_step: Callable[[], object] | None = None
        self.max_positions = min(map(_max_positions, models))
        self._model, self._device = models[0].eval(), models[0].output_weight.device
        self._first: EncoderDecoder = copies[0]
        self._decoder: Decoder[Any] = Ensemble(copies) if len(copies) > 1 else copies[0]
        self._settings, self._shortlist = settings, settings.shortlist
        self._draft: EncoderDecoderEngine | None = None
        self._draft_length = DraftLength(1)

    @property
    def is_left_to_right(self) -> bool:
        """Whether a token depends on those before it only."""
        return not self._is_masked

    def with_draft(self, draft: EncoderDecoderEngine, length: DraftLength, /) -> EncoderDecoderEngine:
        """See ``Engine``. A shortlist of the draft makes drafts faster; this engine has none."""
        if self._is_masked or draft._is_masked:
            raise ConfigError("a draft needs two models that write from left to right; one of them is for mask-predict")
        if self._shortlist is not None:
            raise ConfigError(
                "the model that verifies drafts scores its whole vocabulary; a shortlist is for the draft"
            )
        other = copy.copy(self)
        other.counts, other._draft, other._draft_length = PassCounts(), draft, length
        return other

    @torch.no_grad()
    def hypotheses(
        self, requests: Sequence[Request], search: SearchConfig, run: Run = PLAIN_RUN, /
    ) -> list[tuple[Hypothesis, ...]] | None:
        """See ``Engine``. Raises ConfigError if model and search do not go together."""
        if self._is_masked != isinstance(search, MaskPredictSearchConfig):
            needed = "search.kind = 'mask-predict'" if self._is_masked else "another search.kind"
            raise ConfigError(f"this model needs {needed}, got search.kind = {search.kind!r}")
        if self._is_masked and any(each.constraints for each in requests):
            needed = "a model that writes from left to right; this one is for mask-predict"
            raise ConfigError(f"a prefix, a term or what is to be avoided needs {needed}")

        def found(batch: Sequence[Request]) -> list[tuple[Hypothesis, ...]]:
            return list(map(tuple, self._search(batch, search, is_scored=run.is_scored)))

        return in_batches(
            requests, self._length, found, max_tokens=search.max_tokens_per_batch,
            # Phrases and drafts of others would change an output.
            kind_of=lambda each: (bool(each.constraints.phrases), self._has_draft(each)),
            should_stop=run.should_stop, report=run.report,
        )  # fmt: skip

    def _length(self, request: Request) -> int:
        return request.n_source_positions(self._model.config)

    def _has_draft(self, request: Request) -> bool:
        """Whether tokens are drafted: not for a sentence that is too long for a short table of positions."""
        if self._draft is None:
            return False
        longest = max(self._length(request), request.max_length + self._draft_length.n_tokens)  # finished rows go on
        return longest <= self._draft.max_positions

    def _read(self, batch: Sequence[Request]) -> tuple[Tensor, Decoder[Any]]:
        """Return the sources of a batch as a tensor, and the decoder that reads it."""
        features = [each.features for each in batch if each.features is not None]
        if not features:
            return pad_rows([each.source for each in batch]).to(self._device), self._decoder
        config = self._model.config
        assert isinstance(config, TransformerConfig)
        assert isinstance(self._first, Transformer)
        lengths_B = np.array(list(map(self._length, batch)), np.int64)
        padding = PaddingInfo.from_lengths(lengths_B, n_positions=int(lengths_B.max()), device=self._device)
        source_BZX = padded_features(features, stride=config.source_stride).to(self._device)
        return source_BZX, PaddedSource(self._first, padding)

    def _search(self, batch: Sequence[Request], search: SearchConfig, *, is_scored: bool) -> list[list[Hypothesis]]:
        src_BS, decoder = self._read(batch)
        max_lengths_B = torch.tensor([each.max_length for each in batch], device=self._device)
        if isinstance(search, MaskPredictSearchConfig):
            return self._mask_predict(src_BS, max_lengths_B, search)
        generators: list[torch.Generator] = []
        if isinstance(search, SampledSearchConfig):
            generators = [torch.Generator().manual_seed(each.draw_seed(search.seed)) for each in batch]
        constraints = [each.constraints for each in batch]
        process, phrases = self._processor(constraints), None
        if any(each.phrases for each in constraints):
            phrases = WantedPhrases([each.phrases for each in constraints], self._goes_on_V.to(self._device))
        if self._shortlist is None:
            drafter: Drafter[Any] | None = None
            if process is None and phrases is None:  # else nothing is drafted
                if self._draft is not None and self._has_draft(batch[0]):
                    drafter = self._draft._drafter(src_BS, self._draft_length)
                elif (blocks := _block_decoder(decoder, search)) is not None:
                    decoder, drafter = blocks, HeadsDrafter(blocks.ahead)
            return run_search(
                self._attended(decoder), src_BS, max_lengths_B, search, process,
                suppressed_ids=self._settings.suppressed_ids, is_scored=is_scored, drafter=drafter,
                generators=generators, counts=self.counts, phrases=phrases,
            )  # fmt: skip
        # Its tokens occur in translations, which have none of the suppressed ones.
        decoder = ShortlistDecoder(self._first, self._shortlist, src_BS)
        hypotheses = run_search(
            self._attended(decoder), src_BS, max_lengths_B, search, process, is_scored=is_scored, generators=generators,
            counts=self.counts,
        )  # fmt: skip
        return [[replace(each, ids=decoder.ids(each.ids)) for each in n_best] for n_best in hypotheses]

    def _attended(self, decoder: Decoder[RewindableT]) -> Decoder[RewindableT]:
        return decoder if self.on_step is None else AttendedDecoder(decoder, self.on_step)

    def _drafter(self, src_BS: Tensor, length: DraftLength) -> ModelDrafter[Any]:
        """Return what drafts for a batch of sources."""
        if self._shortlist is None:
            state = self._decoder.start(src_BS)
            return ModelDrafter(self._decoder.extend, state, length=length, eos_id=EOS_ID)
        decoder = ShortlistDecoder(self._first, self._shortlist, src_BS)
        return ModelDrafter(decoder.extend_by_ids, decoder.start(src_BS), length=length, eos_id=EOS_ID)

    def _mask_predict(
        self, src_BS: Tensor, max_lengths_B: Tensor, search: MaskPredictSearchConfig
    ) -> list[list[Hypothesis]]:
        """Predict all tokens at once, several times."""
        model = self._first
        assert isinstance(model, MaskedTransformer)
        memory = model.encode(src_BS)
        src_lengths_B = (src_BS != PAD_ID).sum(dim=1) - 1
        lengths_BR = model.likely_lengths(memory, src_lengths_B, max_lengths_B - 1, search.n_lengths)
        best = mask_predict(
            partial(model.predict, memory),
            lengths_BR,
            n_iterations=search.n_iterations,
            mask_id=MASK_ID,
            eos_id=EOS_ID,
            pad_id=PAD_ID,
            suppressed_ids=(PAD_ID, BOS_ID, *self._settings.suppressed_ids),
            counts=self.counts,
        )
        return [[hypothesis] for hypothesis in best]

    @cached_property
    def _is_inside_word_V(self) -> Tensor:
        """Which tokens do not come where a word begins."""
        is_inside_V = torch.ones(len(self._model.output_weight), dtype=torch.bool)
        is_inside_V[list(self._settings.word_start_ids())] = False
        return is_inside_V

    @cached_property
    def _goes_on_V(self) -> Tensor:
        """Which tokens go on with a word."""
        goes_on_V = torch.zeros(len(self._model.output_weight), dtype=torch.bool)
        goes_on_V[list(self._settings.word_inside_ids())] = True
        return goes_on_V

    def _processor(self, constraints: Sequence[Constraints]) -> LogProbsProcessor | None:
        """Return what makes a batch obey its constraints. Raises ConfigError for most of them with a shortlist."""
        processors: list[LogProbsProcessor] = []
        if any(each.max_repeats for each in constraints):
            processors.append(NoLoops([each.max_repeats or ANY_NUMBER for each in constraints]))
        functions = [each.allowed for each in constraints]
        if any(functions):
            every_id = range(len(self._model.output_weight))

            def allowed(sentence: int, prefix: tuple[int, ...]) -> Sequence[int]:
                function = functions[sentence]
                return every_id if function is None else function(prefix)

            processors.append(Constrained(allowed, constraints[0].pooled))
        if any(each.avoided for each in constraints):
            processors.append(AvoidedPhrases([each.avoided for each in constraints]))
        if any(each.prefix or each.starts_word for each in constraints):
            ids, are_complete = [each.prefix for each in constraints], [each.starts_word for each in constraints]
            processors = [ForcedPrefix(ids, self._is_inside_word_V, are_complete, rules=processors)]
        # Another processor than that of loops would see the shortlist's numbers of the tokens.
        if self._shortlist is not None and any(not isinstance(each, NoLoops) for each in processors):
            raise ConfigError("a prefix, a term or what is to be avoided needs all tokens; leave out the shortlist")
        return processors[0] if len(processors) == 1 else Chain(processors) if processors else None

    @torch.no_grad()
    def forced_scores(
        self, pairs: Sequence[ForcedPair], *, max_tokens: int, has_attention: bool = False
    ) -> list[ForcedScores]:
        """See ``Engine``. Of an ensemble, the first model scores."""
        return forced_in_batches(pairs, partial(self._forced, has_attention=has_attention), max_tokens=max_tokens)

    def _forced(self, pairs: Sequence[ForcedPair], *, has_attention: bool) -> list[ForcedScores]:
        src_BS = pad_rows([each.source for each in pairs]).to(self._device)
        read = [each.target if self._is_masked else [BOS_ID, *each.target[:-1]] for each in pairs]
        tgt_BT = pad_rows(read).to(self._device)
        recorded: list[Tensor] = []
        n_layers = self._model.config.layer_counts[-1]
        best_layer = n_layers - 2 if n_layers > 2 else n_layers - 1  # aligns best: the last but one, of few the last

        def record(kind: AttentionKind, layer: int, weights_BHTS: Tensor) -> None:
            if kind == "cross" and layer == best_layer:
                recorded.append(weights_BHTS.float().mean(1).cpu())

        states_ND = self._model(src_BS, tgt_BT, attention_hook=record if has_attention else None)
        if self._is_masked:  # it would see what it predicts
            states_ND = self._model(src_BS, tgt_BT.masked_fill(tgt_BT > EOS_ID, MASK_ID))
        targets_N = torch.tensor([id for each in pairs for id in each.target], device=self._device)
        log_probs_N = -F.cross_entropy(self._model.logits(states_ND), targets_N, reduction="none").double()
        scores = []
        for row, log_probs_T in enumerate(torch.split(log_probs_N.cpu(), [len(each.target) for each in pairs])):
            attention_TS: NDArray[np.float32] | None = None
            if recorded:
                attention_TS = recorded[0][row, : len(pairs[row].target), : len(pairs[row].source)].numpy()
            scores.append(ForcedScores(float(log_probs_T.sum()), log_probs_T.numpy(), attention_TS))
        return scores

    @torch.no_grad()
    def next_tokens(self, requests: Sequence[Request], n: int) -> list[list[list[tuple[int, float]]]]:
        """See ``Engine``. The requests are read one by one. Raises ConfigError for a model for mask-predict."""
        if self._is_masked:
            raise ConfigError("next tokens need a model that writes from left to right; this one is for mask-predict")
        return [[self._next_tokens(each, n)] for each in requests]

    def _next_tokens(self, request: Request, n: int) -> list[tuple[int, float]]:
        src_BS = torch.tensor([list(request.source)], device=self._device)
        states_ND = self._model(src_BS, torch.tensor([[BOS_ID, *request.constraints.prefix]], device=self._device))
        logits_V = self._model.logits(states_ND[-1:])[0].float()
        logits_V[[PAD_ID, BOS_ID, *self._settings.suppressed_ids]] = -torch.inf
        if request.constraints.starts_word:
            logits_V.masked_fill_(self._is_inside_word_V.to(self._device), -torch.inf)
        best = logits_V.double().softmax(dim=0).topk(min(n, len(logits_V)))
        return list(zip(best.indices.tolist(), best.values.tolist(), strict=True))

    def rewards(self, pairs: Sequence[ForcedPair]) -> list[float]:
        """Raise ConfigError: it has no reward model."""
        raise ConfigError("an encoder-decoder gives no rewards; load a reward model (task = 'reward')")


def _max_positions(model: EncoderDecoder) -> int:
    """Return the maximum length of a model's inputs and outputs: unlimited unless positions are learned."""
    match model.config:
        case TransformerConfig(positions="learned") | ConvS2SConfig(positions="learned") as config:
            return config.n_positions
        case _:
            return sys.maxsize


def _block_decoder(model: Decoder[Any], search: SearchConfig) -> BlockDecoder | None:
    """Return a model that proposes blocks of tokens by further heads; None without them, or if they are not wanted."""
    if not isinstance(model, Transformer) or model.lookahead_heads is None or isinstance(search, SampledSearchConfig):
        return None
    block_size = getattr(search, "block_size", None)
    if search.beam_size > 1 or block_size == 1 or requested_processor(search, eos_id=EOS_ID) is not None:
        return None
    return BlockDecoder(model, block_size=block_size)

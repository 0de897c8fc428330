"""PyTorch's engine of models with a single stack: causal and masked language models, reward models.

They are used as they are, so a policy in training may be sampled from.

Shapes: B rows of a batch, T positions, N real positions of all rows, M masked positions, V vocabulary, D d_model.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from functools import cached_property, partial

import torch
from torch import Tensor

from transduce.config import BeamSearchConfig, SampledSearchConfig, SearchConfig
from transduce.data import pad_rows
from transduce.errors import ConfigError
from transduce.inference.decoders import AttendedDecoder, Decoder, PromptDecoder
from transduce.inference.engine import (
    PLAIN_RUN,
    EngineSettings,
    ForcedPair,
    ForcedScores,
    Request,
    Run,
    forced_in_batches,
    in_batches,
)
from transduce.inference.language_models.sequences import rewards_of
from transduce.model import DecodingState, RewardLM, TransformerLM
from transduce.search import (
    DraftLength,
    Draws,
    ForcedPrefix,
    Hypothesis,
    LengthPenalty,
    PassCounts,
    Sampling,
    beam_search,
    greedy_search,
    requested_processor,
    sample_continuations,
)
from transduce.text import EOS_ID

__all__ = ["LanguageModelEngine"]

SAMPLES_PER_BATCH, REWARDS_PER_BATCH = 32, 64  # rows


class LanguageModelEngine:
    """A language model, or a reward model."""

    def __init__(self, model: TransformerLM, settings: EngineSettings) -> None:
        self._model, self._settings = model, settings
        self.on_step: Callable[[], object] | None = None
        self.counts = PassCounts()

    @property
    def max_positions(self) -> int:
        """The length of the window."""
        return sys.maxsize if self._settings.window is None else self._settings.window

    @property
    def is_left_to_right(self) -> bool:
        """Whether a token depends on those before it only."""
        return self._model.is_causal

    @property
    def _device(self) -> torch.device:
        return self._model.output.weight.device

    def with_draft(self, draft: LanguageModelEngine, length: DraftLength, /) -> LanguageModelEngine:
        """Raise ConfigError: it takes no drafts."""
        raise ConfigError("drafts are for translators; a language model writes by itself")

    @torch.no_grad()
    def hypotheses(
        self, requests: Sequence[Request], search: SearchConfig, run: Run = PLAIN_RUN, /
    ) -> list[tuple[Hypothesis, ...]] | None:
        """See ``Engine``. A beam search takes the prompts one by one."""
        if isinstance(search, BeamSearchConfig):
            return in_batches(
                requests, _prompt_length, lambda batch: [self._best(batch[0], search)], max_rows=1,
                should_stop=run.should_stop, report=run.report,
            )  # fmt: skip
        if not isinstance(search, SampledSearchConfig):
            raise ConfigError(f"a language model samples, or searches with a beam, got search.kind = {search.kind!r}")
        sampling, draws = Sampling(search.temperature, search.top_k, search.top_p), run.draws

        def drawn(batch: Sequence[tuple[int, Request]]) -> list[tuple[Hypothesis, ...]]:
            numbers, of_batch = zip(*batch, strict=True)
            decoder = self._decoder(of_batch)
            found = sample_continuations(
                decoder.read,
                self._attended(decoder).step,
                [each.prompt for each in of_batch],
                max_lengths=[each.max_length for each in of_batch],
                eos_id=EOS_ID,
                suppressed_ids=self._settings.suppressed_ids,
                sampling=sampling,
                draws=_own_draws(of_batch, search.seed)
                if draws is None
                else lambda rows: draws([numbers[row] for row in rows]),
                window=self._settings.window,
                should_stop=run.should_stop,
                on_ids=lambda row, ids: run.on_ids(numbers[row], ids),
            )
            return [(each,) for each in found]

        return in_batches(
            list(enumerate(requests)), lambda each: _prompt_length(each[1]), drawn, report=run.report,
            max_rows=SAMPLES_PER_BATCH if draws is None else None,
        )  # fmt: skip

    def _best(self, request: Request, search: BeamSearchConfig) -> tuple[Hypothesis, ...]:
        """Return the most probable continuations found by beam search, within the window. A beam of 1 is greedy."""
        decoder, begins_word = PromptDecoder(self._model, None), None
        if request.constraints.starts_word:
            begins_word = ForcedPrefix([()], self._is_inside_word_V, [True])
        room = self.max_positions - len(request.prompt) + 1
        found = (
            greedy_search
            if search.beam_size == 1
            else partial(beam_search, beam_size=search.beam_size, n_best=search.n_best)
        )
        [best] = found(
            self._attended(decoder).step,
            decoder.start(torch.tensor([list(request.prompt)], device=self._device)),
            max_lengths_B=torch.tensor([min(request.max_length, room)], device=self._device),
            penalty=LengthPenalty.of(search),
            bos_id=request.prompt[-1],  # what the state has not read
            eos_id=EOS_ID,
            suppressed_ids=self._settings.suppressed_ids,
            process=requested_processor(search, begins_word, eos_id=EOS_ID),
        )
        return (best,) if isinstance(best, Hypothesis) else tuple(best)

    @cached_property
    def _is_inside_word_V(self) -> Tensor:
        """Which tokens do not come where a word begins."""
        is_inside_V = torch.ones(len(self._model.output.weight), dtype=torch.bool, device=self._device)
        is_inside_V[list(self._settings.word_start_ids())] = False
        return is_inside_V

    def _decoder(self, requests: Sequence[Request]) -> PromptDecoder:
        """Return the decoder that begins with the prompts of a batch."""
        barred_BV: Tensor | None = None
        starts_word_B = torch.tensor([each.constraints.starts_word for each in requests], device=self._device)
        if starts_word_B.any():
            barred_BV = starts_word_B.unsqueeze(1) & self._is_inside_word_V
        return PromptDecoder(self._model, barred_BV)

    def _attended(self, decoder: PromptDecoder) -> Decoder[DecodingState]:
        return decoder if self.on_step is None else AttendedDecoder(decoder, self.on_step)

    @torch.no_grad()
    def forced_scores(
        self, pairs: Sequence[ForcedPair], *, max_tokens: int, has_attention: bool = False
    ) -> list[ForcedScores]:
        """See ``Engine``. There is no attention to a source."""
        is_causal = self._model.is_causal
        score = self._causal_scores if is_causal else self._masked_scores
        return forced_in_batches(pairs, score, max_tokens=max_tokens, is_one_text=is_causal)

    def _causal_scores(self, pairs: Sequence[ForcedPair]) -> list[ForcedScores]:
        rows = [[*each.source, *each.target] for each in pairs]
        states_ND = self._model(pad_rows([row[:-1] for row in rows]).to(self._device))
        targets_N = torch.tensor([id for row in rows for id in row[1:]], device=self._device)
        log_probs_N = _log_probs(self._model.output.logits(states_ND), targets_N)
        parts = torch.split(log_probs_N, [len(row) - 1 for row in rows])
        return [_scores(part[len(each.source) - 1 :]) for each, part in zip(pairs, parts, strict=True)]

    def _masked_scores(self, pairs: Sequence[ForcedPair]) -> list[ForcedScores]:
        logits_MV = self._at_masks([each.source for each in pairs])
        targets_M = torch.tensor([id for each in pairs for id in each.target], device=self._device)
        parts = torch.split(_log_probs(logits_MV, targets_M), [len(each.target) for each in pairs])
        return list(map(_scores, parts))

    def _at_masks(self, rows: Sequence[Sequence[int]]) -> Tensor:
        """Return the logits (M, V) at the mask tokens of all rows."""
        states_ND = self._model(pad_rows(rows).to(self._device))
        is_mask_N = torch.tensor([id == self._settings.mask_id for row in rows for id in row], device=self._device)
        return self._model.output.logits(states_ND[is_mask_N])

    @torch.no_grad()
    def next_tokens(self, requests: Sequence[Request], n: int) -> list[list[list[tuple[int, float]]]]:
        """See ``Engine``; of masked models. The requests are read one by one."""
        if self._model.is_causal:
            raise ConfigError("a causal language model has no gaps; sample a single token in place of next_tokens")
        found = []
        for each in requests:
            logits_MV = self._at_masks([list(map(int, each.source))])
            logits_MV[:, list(self._settings.suppressed_ids)] = -torch.inf
            n_shown = min(n, logits_MV.shape[1] - len(self._settings.suppressed_ids))
            best = logits_MV.double().softmax(dim=1).topk(n_shown, dim=1)
            places = zip(best.indices.tolist(), best.values.tolist(), strict=True)
            found.append([list(zip(ids, values, strict=True)) for ids, values in places])
        return found

    @torch.no_grad()
    def rewards(self, pairs: Sequence[ForcedPair]) -> list[float]:
        """See ``Engine``."""
        model = self._model
        if not isinstance(model, RewardLM):
            raise ConfigError("a language model gives no rewards; load a reward model (task = 'reward')")

        def rated(batch: Sequence[ForcedPair]) -> list[float]:
            return rewards_of(model, [each.source for each in batch], [each.target for each in batch]).tolist()

        rewards = in_batches(
            pairs, lambda pair: len(pair.source) + len(pair.target), rated, max_rows=REWARDS_PER_BATCH
        )  # fmt: skip
        assert rewards is not None  # not interrupted
        return rewards


def _prompt_length(request: Request) -> int:
    return len(request.prompt)


def _own_draws(requests: Sequence[Request], seed: int) -> Draws:
    """Return draws in which each request has a generator of its own."""
    generators = [torch.Generator().manual_seed(each.draw_seed(seed)) for each in requests]
    return lambda rows: [float(torch.rand((), generator=generators[row], dtype=torch.float64)) for row in rows]


def _log_probs(logits_NV: Tensor, targets_N: Tensor) -> Tensor:
    """Return the log-probabilities of the targets, (N,), in float64, on the CPU."""
    return logits_NV.double().log_softmax(dim=1).gather(1, targets_N.unsqueeze(1)).squeeze(1).cpu()


def _scores(log_probs_T: Tensor) -> ForcedScores:
    return ForcedScores(float(log_probs_T.sum()), log_probs_T.numpy())

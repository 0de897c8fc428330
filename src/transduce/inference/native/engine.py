"""The engine in C, for plain Transformers on a CPU: encoder-decoders, and causal language models.

It decodes as ``torch_engine.py`` does, which stays the readable reference: with fp32 weights it writes the same ids. A
sentence's result has the same bits alone and in any batch, with any number of threads.

Shapes: S source positions, T tokens of a target, V vocabulary, R target tokens of each source token, P frequent ones.
"""

from __future__ import annotations

import copy
import ctypes
from array import array
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Self

from transduce.config import (
    BeamSearchConfig,
    GreedySearchConfig,
    LanguageModelConfig,
    SampledSearchConfig,
    SearchConfig,
)
from transduce.errors import ConfigError
from transduce.imports import needing_train_extra
from transduce.imports import numpy as np
from transduce.inference.engine import (
    PLAIN_RUN,
    Engine,
    EngineSettings,
    ForcedPair,
    ForcedScores,
    Request,
    Run,
    forced_in_batches,
    in_batches,
    never,
)
from transduce.inference.native import binding as native
from transduce.inference.native.call import UNLIMITED, Call, Texts, marked, require_ids, unknown_settings
from transduce.inference.native.interrupts import interruptibly
from transduce.inference.native.model import NativeModel
from transduce.inference.threads import n_usable_threads
from transduce.search import PassCounts
from transduce.search.arguments import no_hypothesis_error
from transduce.text import BOS_ID, PAD_ID

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from transduce.search import DraftLength, Hypothesis

__all__ = ["NativeEngine"]

NO_HYPOTHESIS, NO_MEMORY, BAD_IDS = 2, 3, 4  # what the library returns
PROMPTS_PER_BATCH = 32
MAX_SHORT = 128  # tokens


class NativeEngine:
    """Decodes with a ``NativeModel``."""

    def __init__(
        self, model: NativeModel, settings: EngineSettings, instead: Callable[[], Engine] | None = None
    ) -> None:
        """``instead`` makes the engine of searches whose settings this one does not know; None: they are refused."""
        self._model, self._settings, self._instead = model, settings, instead
        self._library = native.library()
        self.on_step: Callable[[], object] | None = None
        self.counts = PassCounts()
        self._is_lm = isinstance(model.config, LanguageModelConfig)
        self._draft: tuple[NativeEngine, DraftLength] | None = None
        n_positions = model.config.n_positions if model.config.positions == "learned" else UNLIMITED
        self.max_positions = min(settings.window or UNLIMITED, n_positions)
        self.is_left_to_right = self.is_reentrant = True

    def with_draft(self, draft: Self, length: DraftLength, /) -> Self:
        """See ``Engine``."""
        if self._is_lm:
            raise ConfigError("drafts are for translators; a language model writes by itself")
        if self._settings.shortlist is not None:
            raise ConfigError(
                "the model that verifies drafts scores its whole vocabulary; a shortlist is for the draft"
            )
        other = copy.copy(self)
        other.counts, other._draft = PassCounts(), (draft, length)
        other.__dict__.pop("_other", None)
        return other

    @cached_property
    def _other(self) -> Engine:
        """The engine of searches that this one does not know."""
        assert self._instead is not None
        other = self._instead()
        if self._draft is not None and self._draft[0]._instead is not None:
            other = other.with_draft(self._draft[0]._other, self._draft[1])
        other.counts = self.counts
        return other

    def hypotheses(
        self, requests: Sequence[Request], search: SearchConfig, run: Run = PLAIN_RUN, /
    ) -> list[tuple[Hypothesis, ...]] | None:
        """See ``Engine``."""
        if not isinstance(search, BeamSearchConfig | GreedySearchConfig | SampledSearchConfig):
            raise ConfigError(f"this model needs another search.kind, got search.kind = {search.kind!r}")
        if (names := unknown_settings(search)) and self._instead is not None:
            with needing_train_extra(f"{names} of a search"):
                other = self._other
            other.on_step = self.on_step
            return other.hypotheses(requests, search, run)
        numbered = list(enumerate(requests))
        if not self._is_lm:
            return in_batches(
                numbered, lambda each: each[1].n_source_positions(self._model.config),
                lambda batch: self._search(batch, search, run),
                max_tokens=search.max_tokens_per_batch, should_stop=run.should_stop, report=run.report,
                # Phrases and drafts of others would change an output.
                kind_of=lambda each: (bool(each[1].constraints.phrases), self._has_draft(each[1])),
            )  # fmt: skip
        if isinstance(search, GreedySearchConfig):
            raise ConfigError(f"a language model samples, or searches with a beam, got search.kind = {search.kind!r}")
        is_beam = isinstance(search, BeamSearchConfig)
        if is_beam:  # within the window
            numbered = [
                (number, replace(each, max_length=min(each.max_length, self.max_positions - len(each.prompt) + 1)))
                for number, each in numbered
            ]
        return in_batches(
            numbered, lambda each: len(each[1].prompt), lambda batch: self._search(batch, search, run),
            max_rows=None if run.draws else PROMPTS_PER_BATCH, should_stop=run.should_stop if is_beam else never,
            report=run.report,
        )  # fmt: skip

    def _search(
        self, batch: Sequence[tuple[int, Request]], search: SearchConfig, run: Run
    ) -> list[tuple[Hypothesis, ...]]:
        """Search for the outputs of a batch, each thread for those of some of it; one calls ``on_step``."""
        n_threads = 1 if self._is_lm and not run.is_silent else min(n_usable_threads(), len(batch))
        stop = array("i", [0])

        def search_part(first: int) -> tuple[list[tuple[Hypothesis, ...]], list[int]]:
            return self._search_part(batch[first::n_threads], search, run, stop, None if first else self.on_step)

        def search_all() -> list[tuple[list[tuple[Hypothesis, ...]], list[int]]]:
            if n_threads == 1:
                return [search_part(0)]
            from concurrent.futures import ThreadPoolExecutor

            with ThreadPoolExecutor(n_threads - 1) as pool:
                others = [pool.submit(search_part, first) for first in range(1, n_threads)]
                return [search_part(0), *(each.result() for each in others)]

        found = search_all() if self._is_short(batch) else interruptibly(search_all, stop)
        results: list[tuple[Hypothesis, ...]] = [()] * len(batch)
        for start, (of_part, numbers) in enumerate(found):
            results[start::n_threads] = of_part
            if numbers:
                self._count(len(of_part), numbers)
        return results

    def _is_short(self, batch: Sequence[tuple[int, Request]]) -> bool:
        """Whether a search is over soon and calls nothing: an interruption waits, and no thread need be started."""
        if self._is_lm or self.on_step is not None or any(each.constraints.allowed for _, each in batch):
            return False
        return sum(each.max_length for _, each in batch) <= MAX_SHORT

    def _search_part(
        self,
        part: Sequence[tuple[int, Request]],
        search: SearchConfig,
        run: Run,
        stop: array[int],
        on_step: Callable[[], object] | None,
    ) -> tuple[list[tuple[Hypothesis, ...]], list[int]]:
        """Return the outputs of some requests, and numbers of passes where drafts or draws were made."""
        numbers, requests = zip(*part, strict=True)
        call = Call(self._model, self._settings, requests, search)
        call.listen(run, numbers, on_step)
        call.stop_with(stop)
        draft = self._draft_for(requests, search)
        if draft is not None:
            drafter, length = draft
            call.set_draft(drafter._model, length)
            call.set_shortlist(drafter._settings.shortlist, requests)
        else:
            call.set_shortlist(self._settings.shortlist, requests)
        error = ctypes.create_string_buffer(100)
        status = self._library.td_run(self._model.handle, ctypes.byref(call.search), error, len(error))
        if call.raised is not None:
            raise call.raised
        if status == NO_HYPOTHESIS:
            sentence, n_tokens = map(int, error.value.split())
            raise no_hypothesis_error(sentence, n_tokens=n_tokens)
        if status == BAD_IDS:
            sentence, got = map(int, error.value.split())
            n = self._model.config.vocab_sizes[1]
            raise IndexError(
                f"the ids that are allowed should be at most {n}, from 0 to {n - 1}, got {got} for sentence"
                f" {numbers[sentence]}"
            )
        _require_memory(status)
        found = call.hypotheses()
        return found, call.n_passes.tolist() if call.search.is_sampled or draft is not None else []

    def _has_draft(self, request: Request) -> bool:
        """Whether tokens are drafted: not for a sentence that is too long for a short table of positions."""
        longest = max(len(request.source), request.max_length)
        return self._draft is not None and longest <= self._draft[0].max_positions

    def _draft_for(self, requests: Sequence[Request], search: SearchConfig) -> tuple[NativeEngine, DraftLength] | None:
        """Return what drafts; None without one, or where outputs have phrases or may not repeat themselves.

        Raises ConfigError for a beam.
        """
        if self._draft is None or any(each.constraints.max_repeats or each.constraints.phrases for each in requests):
            return None
        if search.beam_size > 1:
            raise ConfigError(f"a draft is for greedy search and for sampling, got a beam of {search.beam_size}")
        return self._draft if self._has_draft(requests[0]) else None

    def _count(self, n_sentences: int, numbers: Sequence[int]) -> None:
        """Add numbers of passes; not in several threads of a search, which would lose some."""
        counts, (passes, tokens, drafted, accepted) = self.counts, numbers
        counts.sentences, counts.passes, counts.tokens = (
            counts.sentences + n_sentences, counts.passes + passes, counts.tokens + tokens
        )  # fmt: skip
        counts.drafted, counts.accepted = counts.drafted + drafted, counts.accepted + accepted

    def forced_scores(
        self, pairs: Sequence[ForcedPair], *, max_tokens: int, has_attention: bool = False
    ) -> list[ForcedScores]:
        """See ``Engine``."""
        score = partial(self._forced, has_attention=has_attention)
        return forced_in_batches(pairs, score, max_tokens=max_tokens, is_one_text=self._is_lm)

    def _forced(self, pairs: Sequence[ForcedPair], *, has_attention: bool) -> list[ForcedScores]:
        config = self._model.config
        if self._is_lm:
            whole = [[*each.source, *each.target] for each in pairs]
            texts = Texts(self._model, [], [text[:-1] for text in whole])
            targets = [text[1:] for text in whole]
        else:
            texts = Texts(self._model, [each.source for each in pairs], [[BOS_ID, *each.target[:-1]] for each in pairs])
            targets = [[*each.target] for each in pairs]
        wanted, offsets = native.flat(targets)
        require_ids(wanted, config.vocab_sizes[1])
        log_probs = np.zeros(len(wanted), np.float32)
        sizes = [len(each.source) * len(each.target) for each in pairs]
        attention = np.zeros(sum(sizes), np.float32) if has_attention and not self._is_lm else None
        n_layers = config.layer_counts[-1]
        _require_memory(
            self._library.td_score(
                self._model.handle, ctypes.byref(texts.search), native.address(wanted, np.int32),
                native.address(log_probs, np.float32), n_layers - 2 if n_layers > 2 else n_layers - 1,
                native.address(attention, np.float32),
            )
        )  # fmt: skip
        ends = np.cumsum(sizes)
        found = []
        for index, pair in enumerate(pairs):
            of_pair = log_probs[offsets[index] : offsets[index + 1]].astype(np.float64)[-len(pair.target) :]
            weights = None
            if attention is not None:
                weights = attention[ends[index] - sizes[index] : ends[index]].reshape(-1, len(pair.source))
                weights /= config.n_heads
            found.append(ForcedScores(float(of_pair.sum()), of_pair, weights))
        return found

    def next_tokens(self, requests: Sequence[Request], n: int) -> list[list[list[tuple[int, float]]]]:
        """See ``Engine``."""
        if self._is_lm:
            raise ConfigError("a causal language model has no gaps; sample a single token in place of next_tokens")
        return [[self._next_tokens(each, n)] for each in requests]

    def _next_tokens(self, request: Request, n: int) -> list[tuple[int, float]]:
        texts = Texts(self._model, [request.source], [[BOS_ID, *request.constraints.prefix]])
        logits_V = np.zeros(self._model.config.vocab_sizes[1], np.float32)
        _require_memory(
            self._library.td_logits(
                self._model.handle, ctypes.byref(texts.search), native.address(logits_V, np.float32)
            )
        )
        logits = logits_V.astype(np.float64)
        logits[[PAD_ID, BOS_ID, *self._settings.suppressed_ids]] = -np.inf
        if request.constraints.starts_word:
            logits[self._word_starts == 0] = -np.inf
        probabilities = np.exp(logits - logits.max())
        probabilities /= probabilities.sum()
        best = np.argsort(-probabilities, kind="stable")[:n]
        return [(int(id), float(probabilities[id])) for id in best]

    @cached_property
    def _word_starts(self) -> NDArray[np.uint8]:
        return marked(self._settings.word_start_ids(), self._model.config)

    def rewards(self, pairs: Sequence[ForcedPair]) -> list[float]:
        """Raise ConfigError: it has no reward model."""
        raise ConfigError("this model gives no rewards; load a reward model (task = 'reward')")


def _require_memory(status: int) -> None:
    if status == NO_MEMORY:
        raise MemoryError("the native engine: no memory for the batch")

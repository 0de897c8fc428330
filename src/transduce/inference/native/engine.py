"""The engine in C, for plain Transformers on a CPU: encoder-decoders of text, and causal language models.

It decodes as ``torch_engine.py`` does, which stays the readable reference: with fp32 weights it writes the same ids. A
sentence's result has the same bits alone and in any batch, with any number of threads.

Shapes: S source positions, T tokens of a target, V vocabulary, R target tokens of each source token, P frequent ones.
"""

from __future__ import annotations

import copy
import ctypes
import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from typing import Self

import numpy as np
from numpy.typing import NDArray

from transduce.config import (
    BeamSearchConfig,
    GreedySearchConfig,
    LanguageModelConfig,
    SampledSearchConfig,
    SearchConfig,
)
from transduce.errors import ConfigError
from transduce.inference.engine import (
    PLAIN_RUN,
    EngineSettings,
    ForcedPair,
    ForcedScores,
    Request,
    Run,
    in_batches,
)
from transduce.inference.native import library as native
from transduce.inference.native.call import Call, word_starts
from transduce.inference.native.model import NativeModel
from transduce.search import DraftLength, Hypothesis, PassCounts
from transduce.search.arguments import no_hypothesis_error
from transduce.text import BOS_ID, PAD_ID

__all__ = ["NativeEngine"]

UNLIMITED = 2**31 - 1
STOPPED, NO_HYPOTHESIS = 1, 2  # what td_run returns


class NativeEngine:
    """Decodes with a ``NativeModel``."""

    def __init__(self, model: NativeModel, settings: EngineSettings, *, kept: object = None) -> None:
        """``kept``: what holds the weights that the model refers to."""
        self._model, self._settings, self._kept = model, settings, kept
        self._library = native.library()
        self.on_step: Callable[[], object] | None = None
        self.counts = PassCounts()
        self._is_lm = isinstance(model.config, LanguageModelConfig)
        self._draft: tuple[NativeEngine, DraftLength] | None = None

    @property
    def max_positions(self) -> int:
        """The maximum length of inputs and outputs, EOS included."""
        if self._settings.window is not None:
            return self._settings.window
        return self._model.config.n_positions if self._model.config.positions == "learned" else UNLIMITED

    @property
    def is_left_to_right(self) -> bool:
        """True: a token depends on those before it only."""
        return True

    def with_draft(self, draft: Self, length: DraftLength, /) -> Self:
        """See ``Engine``. Greedy search uses the drafts; sampling does without."""
        other = copy.copy(self)
        other.counts, other._draft = PassCounts(), (draft, length)
        return other

    def hypotheses(
        self, requests: Sequence[Request], search: SearchConfig, run: Run = PLAIN_RUN, /
    ) -> list[tuple[Hypothesis, ...]] | None:
        """See ``Engine``."""
        if not isinstance(search, BeamSearchConfig | GreedySearchConfig | SampledSearchConfig):
            raise ConfigError(f"this model needs another search.kind, got search.kind = {search.kind!r}")
        return in_batches(
            requests, lambda each: len(each.source), lambda batch: self._search(batch, search, run.is_scored),
            max_tokens=search.max_tokens_per_batch, should_stop=run.should_stop, report=run.report,
        )  # fmt: skip

    def _search(self, batch: Sequence[Request], search: SearchConfig, is_scored: bool) -> list[tuple[Hypothesis, ...]]:
        """Search for the outputs of a batch, each thread for those of some of it."""
        n_threads = min(n_usable_threads(), len(batch)) if self.on_step is None else 1
        if n_threads == 1:
            return self._search_part(batch, search, is_scored)
        parts = [batch[start::n_threads] for start in range(n_threads)]
        with ThreadPoolExecutor(n_threads) as pool:
            found = list(pool.map(lambda part: self._search_part(part, search, is_scored), parts))
        results: list[tuple[Hypothesis, ...]] = [()] * len(batch)
        for start, of_part in enumerate(found):
            results[start::n_threads] = of_part
        return results

    def _search_part(
        self, part: Sequence[Request], search: SearchConfig, is_scored: bool
    ) -> list[tuple[Hypothesis, ...]]:
        call = Call(self._model, self._settings, part, search, is_scored=is_scored, on_step=self.on_step)
        n_passes = np.zeros(4, np.int64)
        if self._draft is not None and call.may_draft:
            drafter, length = self._draft
            call.set_draft(drafter._model, length, n_passes)
            call.set_shortlist(drafter._settings.shortlist, part)
        else:
            call.set_shortlist(self._settings.shortlist, part)
        error = ctypes.create_string_buffer(100)
        status = self._library.td_run(self._model.handle, ctypes.byref(call.search), error, len(error))
        if call.raised is not None:
            raise call.raised
        if status == NO_HYPOTHESIS:
            sentence, n_tokens = map(int, error.value.split())
            raise no_hypothesis_error(sentence, n_tokens=n_tokens)
        if status:
            raise MemoryError("the native engine: no memory for the batch")
        found = call.hypotheses(is_scored=is_scored)
        self._count(found, call, n_passes)
        return found

    def _count(self, found: Sequence[tuple[Hypothesis, ...]], call: Call, n_passes: NDArray[np.int64]) -> None:
        """Count the passes where drafts or draws were made."""
        if call.search.is_sampled:
            n_tokens = sum(len(each.ids) + each.is_finished for each, *_ in found)
            n_passes[:2] = n_tokens
        elif self._draft is None:
            return
        passes, tokens, drafted, accepted = n_passes.tolist()
        counts = self.counts
        self.counts.sentences, counts.passes, counts.tokens = (
            counts.sentences + len(found), counts.passes + passes, counts.tokens + tokens
        )  # fmt: skip
        counts.drafted, counts.accepted = counts.drafted + drafted, counts.accepted + accepted

    def forced_scores(
        self, pairs: Sequence[ForcedPair], *, max_tokens: int, has_attention: bool = False
    ) -> list[ForcedScores]:
        """See ``Engine``."""
        found = in_batches(
            pairs,
            lambda pair: (
                len(pair.source) + len(pair.target) - 1 if self._is_lm else max(len(pair.source), len(pair.target))
            ),
            lambda batch: self._forced(batch, has_attention=has_attention),
            max_tokens=max_tokens,
        )
        assert found is not None  # not interrupted
        return found

    def _forced(self, pairs: Sequence[ForcedPair], *, has_attention: bool) -> list[ForcedScores]:
        has_attention = has_attention and not self._is_lm
        if self._is_lm:
            texts = [[*each.source, *each.target] for each in pairs]
            read, targets, sources = [text[:-1] for text in texts], [text[1:] for text in texts], None
        else:
            read, targets = [[BOS_ID, *each.target[:-1]] for each in pairs], [[*each.target] for each in pairs]
            sources = native.flat([each.source for each in pairs])
        (ids, offsets), (wanted, _) = native.flat(read), native.flat(targets)
        log_probs = np.zeros(len(ids), np.float32)
        sizes = [len(row) * len(each.source) for row, each in zip(read, pairs, strict=True)]
        attention = np.zeros(sum(sizes), np.float32) if has_attention else None
        n_layers = self._model.config.layer_counts[-1]
        status = self._library.td_score(
            self._model.handle, len(pairs),
            *((None, None) if sources is None else (native.address(part, np.int32) for part in sources)),
            *(native.address(part, np.int32) for part in (ids, wanted, offsets)),
            native.address(log_probs, np.float32), n_layers - 2 if n_layers > 2 else n_layers - 1,
            native.address(attention, np.float32),
        )  # fmt: skip
        if status:
            raise MemoryError("the native engine: no memory for the batch")
        ends = np.cumsum(sizes)
        found = []
        for index, pair in enumerate(pairs):
            of_pair = log_probs[offsets[index] : offsets[index + 1]].astype(np.float64)[-len(pair.target) :]
            weights = None
            if attention is not None:
                weights = attention[ends[index] - sizes[index] : ends[index]].reshape(-1, len(pair.source))
            found.append(ForcedScores(float(of_pair.sum()), of_pair, weights))
        return found

    def next_tokens(self, requests: Sequence[Request], n: int) -> list[list[list[tuple[int, float]]]]:
        """See ``Engine``."""
        if self._is_lm:
            raise ConfigError("a causal language model has no gaps; sample a single token in place of next_tokens")
        return [[self._next_tokens(each, n)] for each in requests]

    def _next_tokens(self, request: Request, n: int) -> list[tuple[int, float]]:
        source = np.array(request.source, np.int32)
        ids = np.array([BOS_ID, *request.constraints.prefix], np.int32)
        logits_V = np.zeros(self._model.config.vocab_sizes[1], np.float32)
        self._library.td_logits(
            self._model.handle, native.address(source, np.int32), len(source), native.address(ids, np.int32), len(ids),
            native.address(logits_V, np.float32),
        )  # fmt: skip
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
        return word_starts(self._settings, self._model.config)

    def rewards(self, pairs: Sequence[ForcedPair]) -> list[float]:
        """Raise ConfigError: it has no reward model."""
        raise ConfigError("this model gives no rewards; load a reward model (task = 'reward')")


def n_usable_threads() -> int:
    """Return the threads that a batch is divided among: OMP_NUM_THREADS, else the processors of this process."""
    named = os.environ.get("OMP_NUM_THREADS", "")
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(int(named), usable) if named.isdigit() and int(named) > 0 else usable

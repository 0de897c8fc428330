"""The engine in C, for plain Transformers on a CPU: encoder-decoders of text, and causal language models.

It decodes as ``torch_engine.py`` does, which stays the readable reference: with fp32 weights it writes the same ids. A
sentence's result has the same bits alone and in any batch, with any number of threads.

Shapes: S source positions, T tokens of a target, V vocabulary, R target tokens of each source token, P frequent ones.
"""

from __future__ import annotations

import copy
import ctypes
import os
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from transduce.config import (
    BeamSearchConfig,
    GreedySearchConfig,
    LanguageModelConfig,
    SampledSearchConfig,
    SearchConfig,
    TransformerConfig,
)
from transduce.errors import ConfigError
from transduce.inference.engine import (
    PLAIN_RUN,
    Constraints,
    EngineSettings,
    ForcedPair,
    ForcedScores,
    Request,
    Run,
    in_batches,
)
from transduce.inference.native import library as native
from transduce.model.shortlist import Shortlist
from transduce.search import DraftLength, Hypothesis, PassCounts
from transduce.search.arguments import no_hypothesis_error
from transduce.text import BOS_ID, EOS_ID, PAD_ID, UNK_ID

__all__ = ["NativeEngine", "NativeModel", "supports"]

ACTIVATIONS = ("", "relu", "gelu", "gelu-tanh", "swish")
PRECISIONS = ("fp32", "bf16", "int8")
TYPES = ("float32", "bfloat16", "float16")
UNLIMITED = 2**31 - 1
STOPPED, NO_HYPOTHESIS = 1, 2  # what td_run returns

PlainConfig = TransformerConfig | LanguageModelConfig


def supports(config: object) -> bool:
    """Whether the engine knows an architecture."""
    if not isinstance(config, TransformerConfig | LanguageModelConfig):
        return False
    is_plain = config.compatibility == "scaled" and config.attention == "full" and config.n_experts == 1
    if isinstance(config, LanguageModelConfig):
        return is_plain and config.is_causal and config.output == "tokens"
    is_token_model = config.source == "tokens"
    return is_plain and is_token_model and config.decoder == "causal" and config.block_size == 1


class NativeModel:
    """The packed weights of a model. Threads share it."""

    def __init__(
        self,
        config: PlainConfig,
        tensors: Mapping[str, tuple[int, tuple[int, ...], str]],
        precision: str,
        *,
        begins_word: Sequence[NDArray[np.uint8]] = (),
    ) -> None:
        """``tensors``: the address, shape and type of each, by its name in files; they stay where they are.

        ``begins_word``: with word positions, which source ids and which target ids begin a word.

        Raises ConfigError if the library finds fault with them.
        """
        self._library = native.library()
        self.config = config
        is_lm = isinstance(config, LanguageModelConfig)
        n_encoder_layers, n_decoder_layers = (0, config.layer_counts[0]) if is_lm else config.layer_counts
        described = native.Config(
            config.d_model, config.d_ff, config.n_heads, config.d_k, config.d_v, n_encoder_layers, n_decoder_layers,
            *config.vocab_sizes, config.norm == "pre", ACTIVATIONS.index(config.activation),
            config.n_positions if config.positions == "learned" else 0, config.norm_eps,
            config.d_model**0.5 if config.scale_embeddings else 1.0,
            *(native.address(each, np.uint8) for each in begins_word),
        )  # fmt: skip
        rows = (native.Tensor * len(tensors))(*[
            native.Tensor(name.encode(), at, shape[0], shape[1] if len(shape) > 1 else 1, TYPES.index(kind))
            for name, (at, shape, kind) in tensors.items()
        ])  # fmt: skip
        error = ctypes.create_string_buffer(300)
        self.handle = self._library.td_load(
            ctypes.byref(described), rows, len(rows), PRECISIONS.index(precision), error, len(error)
        )
        if not self.handle:
            raise ConfigError(f"the native engine cannot use the model: {error.value.decode()}")

    def __del__(self) -> None:
        if getattr(self, "handle", None):
            self._library.td_free(self.handle)


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
        call = _Call(self._model, self._settings, part, search, is_scored=is_scored, on_step=self.on_step)
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

    def _count(self, found: Sequence[tuple[Hypothesis, ...]], call: _Call, n_passes: NDArray[np.int64]) -> None:
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


class _Call:
    """The request of a batch to the library, with all that it refers to."""

    def __init__(
        self,
        model: NativeModel,
        settings: EngineSettings,
        batch: Sequence[Request],
        search: SearchConfig,
        *,
        is_scored: bool,
        on_step: Callable[[], object] | None,
    ) -> None:
        self.raised: BaseException | None = None
        self._kept: list[object] = []
        self.search = native.Search(n_sentences=len(batch), eos_id=EOS_ID, is_scored=is_scored, alpha=search.alpha)
        is_lm = isinstance(model.config, LanguageModelConfig)
        if not is_lm:
            self._set_rows("src", [each.source for each in batch])
        self._set_rows("prompt", [each.prompt or [BOS_ID] for each in batch])
        self._set("max_lengths", np.array([each.max_length for each in batch], np.int32))
        suppressed = np.array([*(() if is_lm else (PAD_ID, BOS_ID)), *settings.suppressed_ids], np.int32)
        self._set("suppressed_ids", suppressed)
        self.search.n_suppressed = len(suppressed)
        self._set_search(search, batch)
        self._set_constraints(settings, model.config, [each.constraints for each in batch])
        if on_step is not None:
            self._set_function("on_step", native.ON_STEP, lambda: on_step() and 0)
        self._make_results(batch, search)
        self.may_draft = isinstance(search, GreedySearchConfig | BeamSearchConfig) and search.beam_size == 1
        self.may_draft = self.may_draft and not any(each.constraints.max_repeats for each in batch)

    def set_draft(self, draft: NativeModel, length: DraftLength, counts: NDArray[np.int64]) -> None:
        """Let a smaller model draft tokens."""
        self.search.draft, self.search.n_drafted = draft.handle, length.n_tokens
        self.search.min_draft_probability = length.min_probability
        self._set("counts", counts)

    def set_shortlist(self, shortlist: Shortlist | None, batch: Sequence[Request]) -> None:
        """Score only the listed tokens of each source. Raises ConfigError for constraints that may need others."""
        if shortlist is None:
            return
        if any(each.constraints.prefix or each.constraints.allowed for each in batch):
            raise ConfigError("a prefix cannot be used with a shortlist; leave one of them out")
        candidates_VR, frequent_P = shortlist.candidates_VR.numpy(), shortlist.frequent_P.numpy()
        always = np.concatenate((np.arange(UNK_ID + 1), frequent_P))
        self._set_rows("listed", [
            np.unique(np.concatenate((always, candidates_VR[np.asarray(each.source)].ravel()))) for each in batch
        ])  # fmt: skip

    def _set(self, name: str, array: NDArray[Any]) -> None:
        self._kept.append(array)
        setattr(self.search, name, native.address(array, array.dtype))

    def _set_rows(self, name: str, rows: Sequence[Any]) -> None:
        ids, offsets = native.flat(rows)
        self._set(f"{name}_ids", ids)
        self._set(f"{name}_offsets", offsets)

    def _set_function(self, name: str, kind: Any, function: Callable[..., Any]) -> None:
        """Give the library a function. What it raises stops the search, and is raised when that has ended."""

        def guarded(*arguments: Any) -> Any:
            try:
                return function(*arguments) or 0
            except BaseException as error:
                self.raised = self.raised or error
                return -1

        call = kind(guarded)
        self._kept.append(call)
        setattr(self.search, name, call)

    def _set_search(self, search: SearchConfig, batch: Sequence[Request]) -> None:
        self.search.n_best = search.n_best
        if isinstance(search, SampledSearchConfig):
            self.search.is_sampled, self.search.temperature = 1, search.temperature
            self.search.top_k, self.search.top_p = search.top_k or 0, search.top_p or 1.0
            seeds = [each.draw_seed(search.seed) & 0xFFFFFFFF for each in batch]
            self._set("seeds", np.array(seeds, np.uint32))
            return
        assert isinstance(search, BeamSearchConfig | GreedySearchConfig)
        self.search.beam_size = search.beam_size if search.beam_size > 1 else 0
        self.search.min_length, self.search.no_repeat_ngram = search.min_length, search.no_repeat_ngram or 0

    def _set_constraints(
        self, settings: EngineSettings, config: PlainConfig, constraints: Sequence[Constraints]
    ) -> None:
        if any(each.prefix for each in constraints):
            self._set_rows("prefix", [each.prefix for each in constraints])
        if any(each.starts_word for each in constraints):
            self._set("starts_word", np.array([each.starts_word for each in constraints], np.uint8))
            self._set("word_starts", word_starts(settings, config))
        if any(each.max_repeats for each in constraints):
            n_units = max(len(each.max_repeats) for each in constraints)
            limits = [[*each.max_repeats, *[UNLIMITED] * n_units][:n_units] for each in constraints]
            self._set("max_repeats", np.array(limits, np.int32))
            self.search.n_units = n_units
        functions = [each.allowed for each in constraints]
        if any(functions):
            self._set_allowed(functions, constraints[0].pooled, config.vocab_sizes[1])

    def _set_allowed(self, functions: Sequence[Any], pooled: Sequence[int], vocab_size: int) -> None:
        def allowed(sentence: int, ids: Any, n_ids: int, to: Any) -> int:
            function = functions[sentence]
            found = range(vocab_size) if function is None else function(tuple(ids[:n_ids]))
            np.ctypeslib.as_array(to, (vocab_size,))[: len(found)] = found
            return len(found)

        self._set_function("allowed", native.ALLOWED, allowed)
        self._set("pooled", np.array(pooled, np.int32))
        self.search.n_pooled = len(pooled)

    def _make_results(self, batch: Sequence[Request], search: SearchConfig) -> None:
        shape = (len(batch), search.n_best)
        self.search.max_length = max(each.max_length for each in batch)
        self._ids = np.zeros((*shape, self.search.max_length), np.int32)
        self._lengths, self._flags = np.full(shape, -1, np.int32), np.zeros(shape, np.uint8)
        self._log_probs, self._scores = np.zeros(shape, np.float32), np.zeros(shape, np.float32)
        self._set("ids", self._ids)
        self._set("lengths", self._lengths)
        self._set("log_probs", self._log_probs)
        self._set("scores", self._scores)
        self._set("is_finished", self._flags)

    def hypotheses(self, *, is_scored: bool) -> list[tuple[Hypothesis, ...]]:
        """Return the results of the library."""
        has_scores = is_scored or self.search.beam_size > 0 or self.search.is_sampled
        columns = (self._ids, self._lengths, self._log_probs, self._scores, self._flags)
        found = []
        for rows in zip(*(column.tolist() for column in columns), strict=True):
            n_best = [
                Hypothesis(
                    tuple(ids[:n]), log_prob if has_scores else np.nan, score if has_scores else np.nan, bool(flag)
                )
                for ids, n, log_prob, score, flag in zip(*rows, strict=True)
                if n >= 0
            ]
            found.append(tuple(n_best))
        return found


def word_starts(settings: EngineSettings, config: PlainConfig) -> NDArray[np.uint8]:
    """Return which ids come where a word begins, (V,)."""
    starts_V = np.zeros(config.vocab_sizes[1], np.uint8)
    starts_V[list(settings.word_start_ids())] = 1
    return starts_V


def n_usable_threads() -> int:
    """Return the threads that a batch is divided among: OMP_NUM_THREADS, else the processors of this process."""
    named = os.environ.get("OMP_NUM_THREADS", "")
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(int(named), usable) if named.isdigit() and int(named) > 0 else usable

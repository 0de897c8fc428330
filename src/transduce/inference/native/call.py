"""What the library is asked: the structure with all that it refers to, and its results.

Shapes: V vocabulary, R target tokens of each source token, P frequent ones.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Callable, Sequence
from itertools import accumulate, chain
from typing import TYPE_CHECKING, Any, TypeVar

from transduce.config import (
    BeamSearchConfig,
    GreedySearchConfig,
    LanguageModelConfig,
    SampledSearchConfig,
    SearchConfig,
)
from transduce.errors import ConfigError
from transduce.imports import numpy as np
from transduce.inference.engine import Constraints, EngineSettings, Request, Run
from transduce.inference.native import binding as native
from transduce.inference.native.model import NativeModel, PlainConfig
from transduce.search import Hypothesis
from transduce.search.arguments import MIN_PHRASE_BEAM
from transduce.text import BOS_ID, EOS_ID, PAD_ID, UNK_ID

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from transduce.model.shortlist import Shortlist
    from transduce.search import DraftLength

__all__ = ["Call", "Texts", "marked", "require_ids", "unknown_settings"]

NumbersT = TypeVar("NumbersT", "array[int]", "array[float]", "NDArray[Any]")

UNLIMITED = 2**31 - 1
# The settings of searches that it reads, or that are read before it.
KNOWN = frozenset(
    "kind alpha max_extra_tokens max_length max_tokens_per_batch min_length no_repeat_ngram beam_size n_best block_size"
    " temperature top_k top_p seed".split()
)


class Texts:
    """Sources and prompts, as the library reads them."""

    def __init__(
        self, model: NativeModel, sources: Sequence[Any], prompts: Sequence[Sequence[int]], n_written: int = 0
    ) -> None:
        """``sources``: not read by a language model. ``n_written``: the most that follows a prompt and is read again.

        Raises IndexError for an id outside the vocabulary, or a text that is longer than learned positions.
        """
        self._kept: list[object] = []
        self._config = model.config
        self.search = native.Search(n_sentences=len(prompts), eos_id=EOS_ID)
        if model.front_end is not None:
            states = list(map(model.front_end, sources))
            self._set("src_states", np.concatenate(states))
            self._set("src_offsets", np.cumsum([0, *map(len, states)], dtype=np.int32))
        elif not isinstance(model.config, LanguageModelConfig):
            self._set_rows("src", sources)
            self._require_positions(max(map(len, sources), default=0))
        self._set_rows("prompt", prompts)
        self._require_positions(max(map(len, prompts), default=0) + n_written)

    def _require_positions(self, n: int) -> None:
        if self._config.positions == "learned" and n > self._config.n_positions:
            raise IndexError(f"the model has {self._config.n_positions} positions, got a text of {n} ids")

    def _set(self, name: str, numbers: NumbersT) -> NumbersT:
        self._kept.append(numbers)
        setattr(self.search, name, native.address(numbers))
        return numbers

    def _set_rows(self, name: str, rows: Sequence[Any]) -> None:
        ids, offsets = native.flat(rows)
        require_ids(ids, self._config.vocab_sizes[0 if name == "src" else 1])
        self._set(f"{name}_ids", ids)
        self._set(f"{name}_offsets", offsets)


class Call(Texts):
    """A search for the outputs of a batch."""

    def __init__(
        self, model: NativeModel, settings: EngineSettings, batch: Sequence[Request], search: SearchConfig
    ) -> None:
        """Raise ConfigError for a setting or a constraint that it does not know."""
        config = model.config
        is_lm = isinstance(config, LanguageModelConfig)
        n_written = 0 if is_lm and settings.window else max((each.max_length for each in batch), default=1) - 1
        prompts = [each.prompt or [BOS_ID] for each in batch]
        super().__init__(model, [each.source for each in batch], prompts, n_written)
        self.raised: BaseException | None = None
        self.n_passes = self._set("counts", array("q", bytes(4 * 8)))
        self._set("max_lengths", array("i", [each.max_length for each in batch]))
        suppressed = [*(() if is_lm else (PAD_ID, BOS_ID)), *settings.suppressed_ids]
        self.search.n_suppressed = len(self._set("suppressed_ids", array("i", suppressed)))
        if is_lm:
            self.search.window = settings.window or 0
            self._require_positions(self.search.window)
        self._set_search(search, batch)
        self._set_constraints(settings, config, [each.constraints for each in batch])
        self._make_results(batch, search)

    def listen(self, run: Run, numbers: Sequence[int], on_step: Callable[[], object] | None) -> None:
        """Let ``run`` decide and hear, for requests with these numbers; ``on_step`` is called before each step."""
        self.search.is_scored = run.is_scored
        is_continued = bool(self.search.is_sampled and not self.search.src_offsets)  # samples of prompts

        def step() -> bool:
            if on_step is not None:
                on_step()
            return is_continued and run.should_stop()

        def draw(n: int, sentences: Any, to: Any) -> None:
            assert run.draws is not None
            np.ctypeslib.as_array(to, (n,))[:] = run.draws([numbers[each] for each in sentences[:n]])

        def heard(sentence: int, ids: Any, n: int) -> None:
            run.on_ids(numbers[sentence], ids[:n])

        if on_step is not None or is_continued:
            self._set_function("on_step", native.ON_STEP, step)
        if is_continued:
            self.search.alpha = 0
            self._set_function("on_ids", native.ON_IDS, heard)
        if is_continued and run.draws is not None:
            self._set_function("draw", native.DRAW, draw)

    def stop_with(self, stop: array[int]) -> None:
        """Let another thread stop the search, when ``stop[0]`` becomes 1."""
        self._set("stop", stop)

    def set_draft(self, draft: NativeModel, length: DraftLength) -> None:
        """Let a smaller model draft tokens."""
        self.search.draft, self.search.n_drafted = draft.handle, length.n_tokens
        self.search.min_draft_probability = length.min_probability

    def set_shortlist(self, shortlist: Shortlist | None, batch: Sequence[Request]) -> None:
        """Score only the listed tokens of each source. Raises ConfigError for constraints that may need others."""
        if shortlist is None:
            return
        if any(
            each.constraints.prefix or each.constraints.allowed or each.constraints.avoided or each.constraints.phrases
            for each in batch
        ):
            raise ConfigError("a prefix, a term or what is to be avoided needs all tokens; leave out the shortlist")
        candidates_VR, frequent_P = shortlist.candidates_VR, shortlist.frequent_P
        always = np.concatenate((np.arange(UNK_ID + 1), frequent_P))
        self._set_rows("listed", [
            np.unique(np.concatenate((always, candidates_VR[np.asarray(each.source)].ravel()))) for each in batch
        ])  # fmt: skip

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
        if names := unknown_settings(search):
            raise ConfigError(f"the engine in C does not know {names} of a search; use PyTorch's (auto, or torch)")
        self.search.n_best, self.search.alpha = search.n_best, search.alpha
        if isinstance(search, SampledSearchConfig):
            self.search.is_sampled, self.search.temperature = 1, search.temperature
            self.search.top_k, self.search.top_p = search.top_k or 0, search.top_p or 1.0
            seeds = [each.draw_seed(search.seed) & 0xFFFFFFFF for each in batch]
            self._set("seeds", array("I", seeds))
            return
        assert isinstance(search, BeamSearchConfig | GreedySearchConfig)
        self.search.beam_size = search.beam_size if search.beam_size > 1 else 0
        self.search.min_length, self.search.no_repeat_ngram = search.min_length, search.no_repeat_ngram or 0

    def _set_constraints(
        self, settings: EngineSettings, config: PlainConfig, constraints: Sequence[Constraints]
    ) -> None:
        is_constrained = any(
            each.prefix or each.max_repeats or each.phrases or each.avoided or each.allowed for each in constraints
        )
        if self.search.is_sampled and is_constrained:
            raise ConfigError("constraints need beam search or greedy search; a sample has none")
        if any(each.prefix for each in constraints):
            self._set_rows("prefix", [each.prefix for each in constraints])
        if any(each.starts_word for each in constraints):
            self._set("starts_word", array("B", [each.starts_word for each in constraints]))
            self._set("word_starts", marked(settings.word_start_ids(), config))
        if any(each.max_repeats for each in constraints):
            n_units = max(len(each.max_repeats) for each in constraints)
            limits = [[*each.max_repeats, *[UNLIMITED] * n_units][:n_units] for each in constraints]
            self._set("max_repeats", array("i", chain.from_iterable(limits)))
            self.search.n_units = n_units
        if any(each.avoided for each in constraints):
            self._set_phrases(self.search.avoided, [each.avoided for each in constraints])
        if any(each.phrases for each in constraints):
            if any(each.allowed for each in constraints):
                raise ConfigError("the engine in C has no phrases where only some ids are allowed; use PyTorch's")
            self._set_phrases(self.search.wanted, [each.phrases for each in constraints])
            self._set("goes_on", marked(settings.word_inside_ids(), config))
            self.search.beam_size = max(MIN_PHRASE_BEAM, self.search.beam_size)
        if any(each.allowed for each in constraints):
            self._set_allowed([each.allowed for each in constraints], constraints[0].pooled, config.vocab_sizes[1])

    def _set_phrases(self, field: native.Phrases, phrases: Sequence[Sequence[Sequence[int]]]) -> None:
        if not all(map(len, chain.from_iterable(phrases))):
            raise ValueError("a phrase has at least one token")  # the library reads its last one
        ids, offsets = native.flat(list(chain.from_iterable(phrases)))
        first = array("i", accumulate(map(len, phrases), initial=0))
        self._kept += (ids, offsets, first)
        field.ids, field.offsets, field.first = map(native.address, (ids, offsets, first))

    def _set_allowed(self, functions: Sequence[Any], pooled: Sequence[int], vocab_size: int) -> None:
        def allowed(sentence: int, ids: Any, n_ids: int, to: Any) -> int:
            function = functions[sentence]
            found = range(vocab_size) if function is None else function(tuple(ids[:n_ids]))
            np.ctypeslib.as_array(to, (vocab_size,))[: len(found)] = found
            return len(found)

        self._set_function("allowed", native.ALLOWED, allowed)
        self.search.n_pooled = len(self._set("pooled", array("i", pooled)))

    def _make_results(self, batch: Sequence[Request], search: SearchConfig) -> None:
        n = len(batch) * search.n_best
        self.search.max_length = max(each.max_length for each in batch)
        self._ids = self._set("ids", array("i", bytes(4 * n * self.search.max_length)))
        self._lengths = self._set("lengths", array("i", [-1]) * n)
        self._log_probs = self._set("log_probs", array("f", bytes(4 * n)))
        self._scores = self._set("scores", array("f", bytes(4 * n)))
        self._flags = self._set("is_finished", array("B", bytes(n)))

    def hypotheses(self) -> list[tuple[Hypothesis, ...]]:
        """Return the results of the library."""
        has_scores = self.search.is_scored or self.search.beam_size > 0 or self.search.is_sampled
        found = []
        for index, n in enumerate(self._lengths):
            start = index * self.search.max_length
            if index % self.search.n_best == 0:
                found.append(list[Hypothesis]())
            if n >= 0:
                log_prob, score = (self._log_probs[index], self._scores[index]) if has_scores else (math.nan, math.nan)
                ids = tuple(self._ids[start : start + n])
                found[-1].append(Hypothesis(ids, log_prob, score, bool(self._flags[index])))
        return list(map(tuple, found))


def unknown_settings(search: SearchConfig) -> str:
    """Return the settings of a search that are not computed, in words; "" if all are."""
    return " and ".join(f"{name} = {getattr(search, name)!r}" for name in sorted(search.changed - KNOWN))


def require_ids(ids: array[int], vocab_size: int) -> None:
    """Raise IndexError for an id outside a vocabulary: the library would read what is beside its tables."""
    if ids and not 0 <= min(ids) <= max(ids) < vocab_size:
        outside = next(id for id in ids if not 0 <= id < vocab_size)
        raise IndexError(f"an id should be from 0 to {vocab_size - 1}, got {outside}")


def marked(ids: Sequence[int], config: PlainConfig) -> NDArray[np.uint8]:
    """Return which ids of the target vocabulary are listed, (V,)."""
    marks_V = np.zeros(config.vocab_sizes[1], np.uint8)
    marks_V[list(ids)] = 1
    return marks_V

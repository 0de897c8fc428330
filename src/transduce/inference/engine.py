"""The seam between what users call and what computes: an engine turns requests into hypotheses, and scores outputs.

Requests, options and results are plain Python and numpy, so that an engine may do without torch. ``engines`` lists
the engines and chooses one. What all of them share is here: batches of similar length, and seeds of draws.

Shapes: S source positions, T tokens of a target, Z columns or frames, X width of a feature.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from hashlib import shake_128
from typing import TYPE_CHECKING, Any, Protocol, Self, TypeVar

from transduce.config import InferencePrecision, SearchConfig, TransformerConfig
from transduce.config.decoding import EngineName
from transduce.data.batching import plan_by_length
from transduce.imports import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from transduce.model.shortlist import Shortlist
    from transduce.search import DraftLength, Draws, Hypothesis, PassCounts

    Ids = Sequence[int] | NDArray[np.integer[Any]]

__all__ = [
    "NO_CONSTRAINTS", "PLAIN_RUN", "Constraints", "Engine", "EngineSettings", "ForcedPair", "ForcedScores", "Request",
    "Run", "forced_in_batches", "in_batches", "never",
]  # fmt: skip

ItemT = TypeVar("ItemT")
ResultT = TypeVar("ResultT")

UNLIMITED = 2**62  # tokens of a batch


@dataclass(frozen=True, slots=True)
class Constraints:
    """What an output must obey. An engine calls ``allowed`` for each hypothesis at each step."""

    prefix: Sequence[int] = ()  # the output begins with these ids; their probabilities stay those of the model
    starts_word: bool = False  # what follows the prefix, or the prompt, begins a word
    # The ids that may follow those written so far; it depends on them alone. None: all.
    allowed: Callable[[tuple[int, ...]], Sequence[int]] | None = None
    # Among these ids, the same for all requests of a call, the allowed ones get the probability of all:
    pooled: Sequence[int] = ()
    phrases: Sequence[Sequence[int]] = ()  # the output has all of these, each followed by another word
    avoided: Sequence[Sequence[int]] = ()  # and none of these
    max_repeats: Sequence[int] = ()  # how often units of 1, 2, ... tokens may follow each other; empty: any number

    def __bool__(self) -> bool:
        """Whether there are any."""
        rules = (self.prefix, self.starts_word, self.allowed, self.phrases, self.avoided, self.max_repeats)
        return any(map(bool, rules))


NO_CONSTRAINTS = Constraints()


@dataclass(frozen=True, slots=True, eq=False)
class Request:
    """A source or a prompt whose output is searched for."""

    max_length: int  # of the output, EOS included
    source: Ids | NDArray[Any] = ()  # what an encoder reads: ids with EOS, or features (Z, X)
    prompt: Sequence[int] = ()  # what a language model continues, BOS first
    constraints: Constraints = NO_CONSTRAINTS
    number: int | None = None  # decides the draws in place of the source

    @property
    def features(self) -> NDArray[Any] | None:
        """The source, if it has features (Z, X) in place of ids."""
        return None if isinstance(self.source, Sequence) or self.source.ndim < 2 else self.source

    def n_source_positions(self, config: object) -> int:
        """Return the positions of the source, with features those that the model's front end makes of them."""
        if self.features is None:
            return len(self.source)
        assert isinstance(config, TransformerConfig)
        return config.n_source_positions(len(self.source))

    def draw_seed(self, seed: int) -> int:
        """Return the seed of its draws, which follow from ``seed`` and the source, not from other requests."""
        if self.number is not None:
            content = str(self.number).encode()
        elif self.features is not None:
            content = self.features.tobytes()
        else:
            content = str([int(id) for id in self.source[:-1]]).encode()
        return int.from_bytes(shake_128(f"{seed} ".encode() + content).digest(7))


@dataclass(frozen=True, slots=True, eq=False)
class ForcedPair:
    """An output to score: ids that are read, and ids whose probabilities are wanted.

    Of an encoder-decoder, ``source`` and ``target`` end with EOS. A causal language model reads the source and goes on
    with the target. A masked one predicts the target at the mask tokens of the source.
    """

    source: Sequence[int]
    target: Sequence[int]


@dataclass(frozen=True, slots=True, eq=False)
class ForcedScores:
    """How probable a model finds a target."""

    log_prob: float  # of all its tokens, in nats
    # Of each, given the source and those before it; of a model for mask-predict, given the source and their number.
    log_probs_T: NDArray[np.float64]
    # How much the position that predicts a token attends to the source, if asked for and if the model has attention.
    attention_TS: NDArray[np.float32] | None = None


@dataclass(frozen=True, slots=True, eq=False)
class EngineSettings:
    """How an engine is made for a model."""

    precision: InferencePrecision = "fp32"
    suppressed_ids: Sequence[int] = ()  # are never generated
    word_start_ids: Callable[[], Sequence[int]] = tuple  # may come where a word begins; found when they are needed
    word_inside_ids: Callable[[], Sequence[int]] = tuple  # go on with a word; found when they are needed
    mask_id: int | None = None  # of a masked language model
    window: int | None = None  # ids that a language model reads at most; None: any number
    shortlist: Shortlist | None = None  # score only its tokens
    engine: EngineName = "auto"


def never() -> bool:
    """Return False: nothing interrupts."""
    return False


@dataclass(frozen=True, slots=True)
class Run:
    """How a search runs, and whom it tells."""

    is_scored: bool = True  # without, scores of greedy search are NaN, which is faster
    should_stop: Callable[[], bool] = never  # is asked before each batch
    report: Callable[[int], object] = lambda n_done: None  # gets the number of requests done, after each batch
    # For samples of prompts. The random numbers in place of the seeds; all prompts are in one batch then:
    draws: Draws | None = None
    # Gets the index of a request, and its ids, EOS included, after each token:
    on_ids: Callable[[int, Sequence[int]], object] = lambda request, ids: None

    @property
    def is_silent(self) -> bool:
        """Whether nobody decides or hears while tokens are written."""
        return self.draws is None and self.should_stop is never and self.on_ids is PLAIN_RUN.on_ids


PLAIN_RUN = Run()


class Engine(Protocol):
    """A model that is ready to decode. Results do not depend on what else is in a batch, except for rounding.

    Raises ConfigError for what it, or its model, cannot do; SearchError if a probability is NaN.
    """

    on_step: Callable[[], object] | None  # is called before each step of a decoder
    counts: PassCounts  # the passes of the model in greedy search with drafts, in sampling, and in mask-predict

    @property
    def max_positions(self) -> int:
        """The maximum length of inputs and outputs, EOS included."""

    @property
    def is_left_to_right(self) -> bool:
        """Whether a token depends on those before it only."""

    def with_draft(self, draft: Self, length: DraftLength, /) -> Self:
        """Return the same engine, for which another one, of the same vocabularies, drafts tokens."""

    def hypotheses(
        self, requests: Sequence[Request], search: SearchConfig, run: Run = PLAIN_RUN, /
    ) -> list[tuple[Hypothesis, ...]] | None:
        """Return the n-best outputs of each request, best first.

        None if ``run.should_stop`` is true; samples of prompts, before each of whose tokens it is asked, are returned
        as far as they are.
        """

    def forced_scores(
        self, pairs: Sequence[ForcedPair], *, max_tokens: int, has_attention: bool = False
    ) -> list[ForcedScores]:
        """Return the probabilities of the targets, in batches of at most ``max_tokens``: rows x longest."""

    def next_tokens(self, requests: Sequence[Request], n: int) -> list[list[list[tuple[int, float]]]]:
        """Return the ``n`` most probable ids with their probabilities, at each place of each request.

        The place is the one after the prefix; of a masked language model, those of the mask tokens.
        """

    def rewards(self, pairs: Sequence[ForcedPair]) -> list[float]:
        """Return what a reward model says of responses (targets) to prompts (sources)."""


def in_batches(
    items: Sequence[ItemT],
    length_of: Callable[[ItemT], int],
    work: Callable[[Sequence[ItemT]], Sequence[ResultT]],
    *,
    max_tokens: int = UNLIMITED,
    max_rows: int | None = None,
    kind_of: Callable[[ItemT], Hashable] = lambda item: None,
    should_stop: Callable[[], bool] = never,
    report: Callable[[int], object] = lambda n_done: None,
) -> list[ResultT] | None:
    """Do ``work`` on items of similar length, and of one kind, at a time; return the results in the order of the items.

    A batch has at most ``max_tokens``, rows x longest, and ``max_rows``. None if ``should_stop``, asked before each
    batch, is true. ``report`` gets the number of items done, after each.

    >>> in_batches(["aaa", "b", "cc"], len, lambda batch: [f"{each}{len(batch)}" for each in batch], max_tokens=4)
    ['aaa1', 'b2', 'cc2']
    """
    results: dict[int, ResultT] = {}
    for planned in plan_by_length(list(map(length_of, items)), max_tokens=max_tokens):
        kinds: dict[Hashable, list[int]] = {}
        for row in planned:
            kinds.setdefault(kind_of(items[row]), []).append(row)
        for alike in kinds.values():
            step = max_rows or len(alike)
            for rows in (alike[start : start + step] for start in range(0, len(alike), step)):
                if should_stop():
                    return None
                results |= zip(rows, work([items[row] for row in rows]), strict=True)
                report(len(results))
    return [results[row] for row in range(len(items))]


def forced_in_batches(
    pairs: Sequence[ForcedPair],
    score: Callable[[Sequence[ForcedPair]], Sequence[ForcedScores]],
    *,
    max_tokens: int,
    is_one_text: bool = False,
) -> list[ForcedScores]:
    """Score pairs in batches of at most ``max_tokens``; ``is_one_text``: the model reads both sides as one text."""

    def length(pair: ForcedPair) -> int:
        n_source, n_target = len(pair.source), len(pair.target)
        return n_source + n_target - 1 if is_one_text else max(n_source, n_target)

    scores = in_batches(pairs, length, score, max_tokens=max_tokens)
    assert scores is not None  # not interrupted
    return scores

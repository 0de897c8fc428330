"""Stores of prompts with responses, and their batches: for fine-tuning, for rankings, for sampling.

A row is a prompt with one response or several, the best first. The column ``prompt`` has the prompt's ids, the column
``responses`` those of all responses, each followed by UNK: stores hold no EOS, and text that is encoded by bytes has no
UNK.

Shapes: R rows of the store, B rows of a batch, T positions, N real positions (tokens) of all responses.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Unpack

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from transduce.data.batch_source import BatchOptions, StoreBatches
from transduce.data.collate import pad_rows
from transduce.data.documents import TextBatch
from transduce.data.store import LeftOut, Store
from transduce.errors import ConfigError
from transduce.text import BOS_ID, EOS_ID, UNK_ID

__all__ = [
    "PROMPT", "RESPONSES", "PromptBatch", "PromptBatches", "RankingBatch", "RankingBatches", "ResponseBatches",
    "longest_prompt", "prompt_of", "ranking_tokens", "response_rows", "responses_of",
]  # fmt: skip

PROMPT, RESPONSES = "prompt", "responses"  # the columns


def response_rows(
    prompt: Sequence[int], responses: Sequence[Sequence[int]], *, max_length: int, left_out: LeftOut
) -> Iterator[dict[str, list[int]]]:
    """Yield the row of a prompt with its responses, all without BOS and EOS.

    If the prompt with a response is longer than ``max_length`` tokens, BOS and EOS included, ``left_out`` counts it.
    """
    if len(prompt) + max(map(len, responses)) + 2 > max_length:
        left_out.n_too_long += 1
    else:
        yield {PROMPT: list(prompt), RESPONSES: [id for each in responses for id in (*each, UNK_ID)]}


def prompt_of(store: Store, row: int) -> list[int]:
    """Return the prompt of a row, BOS first."""
    return [BOS_ID, *store.columns[PROMPT].row(row).tolist()]


def longest_prompt(store: Store) -> int:
    """Return the number of tokens of the longest prompt, BOS included."""
    return 1 + int(store.columns[PROMPT].lengths_R.max())


def responses_of(store: Store, row: int) -> list[list[int]]:
    """Return the responses of a row, each with EOS, the best first."""
    ids = store.columns[RESPONSES].row(row)
    ends = np.flatnonzero(ids == UNK_ID)
    return [[*part[part != UNK_ID].tolist(), EOS_ID] for part in np.split(ids, ends)[:-1]]


def _lengths(store: Store) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Return for each row the length of the prompt with BOS, and of its responses with EOS, (R,)."""
    prompt_R, responses_R = (store.columns[name].lengths_R for name in (PROMPT, RESPONSES))
    return (prompt_R + np.int32(1)).astype(np.int32), responses_R.astype(np.int32)


class ResponseBatches(StoreBatches[TextBatch]):
    """Batches for supervised fine-tuning: the targets are the tokens of the best response, with EOS."""

    def __init__(self, store: Store, **options: Unpack[BatchOptions]) -> None:
        prompt_R, _ = _lengths(store)
        best_R = np.array([len(responses_of(store, row)[0]) for row in range(len(store))], dtype=np.int32)
        super().__init__(store, src_lengths=prompt_R + best_R, tgt_lengths=best_R, **options)

    def _collate_rows(self, epoch: int, rows_B: NDArray[np.int64]) -> TextBatch:
        inputs: list[list[int]] = []
        targets: list[int] = []
        positions: list[int] = []
        n_before = 0
        for row in rows_B.tolist():
            prompt, response = prompt_of(self.store, row), responses_of(self.store, row)[0]
            inputs.append([*prompt, *response[:-1]])
            targets += response
            positions += range(n_before + len(prompt) - 1, n_before + len(inputs[-1]))
            n_before += len(inputs[-1])
        return TextBatch(pad_rows(inputs), torch.tensor(targets), torch.tensor(positions)).to(self._device)


@dataclass(frozen=True, slots=True, eq=False)
class RankingBatch:
    """Rankings: each has a prompt and several responses, the best first. All are listed response by response."""

    prompts: list[list[int]]  # of each response, BOS first
    responses: list[list[int]]  # each with EOS
    sizes: list[int]  # the number of responses of each ranking

    def tensors(self) -> Mapping[str, Tensor]:
        """Return all tensors by their names in files."""
        return {
            "prompts": pad_rows(self.prompts), "responses": pad_rows(self.responses), "sizes": torch.tensor(self.sizes)
        }  # fmt: skip


def ranking_tokens(store: Store) -> NDArray[np.int32]:
    """Return the tokens of each ranking, (R,): its prompt once for each response, and the responses."""
    prompt_R, responses_R = _lengths(store)
    return prompt_R * _numbers_of_responses(store) + responses_R


def _numbers_of_responses(store: Store) -> NDArray[np.int32]:
    return np.array([len(responses_of(store, row)) for row in range(len(store))], dtype=np.int32)


class RankingBatches(StoreBatches[RankingBatch]):
    """Batches of whole rankings."""

    def __init__(self, store: Store, **options: Unpack[BatchOptions]) -> None:
        """Raises ConfigError if a row has a single response."""
        n_R = _numbers_of_responses(store)
        if (n_R < 2).any():
            row = int(np.flatnonzero(n_R < 2)[0])
            raise ConfigError(f"{store.folder}: row {row + 1:,} has one response; a ranking needs two or more")
        super().__init__(store, src_lengths=ranking_tokens(store), tgt_lengths=np.ones_like(n_R), **options)

    def _collate_rows(self, epoch: int, rows_B: NDArray[np.int64]) -> RankingBatch:
        prompts: list[list[int]] = []
        responses: list[list[int]] = []
        sizes: list[int] = []
        for row in rows_B.tolist():
            of_row = responses_of(self.store, row)
            prompts += [prompt_of(self.store, row)] * len(of_row)
            responses += of_row
            sizes.append(len(of_row))
        return RankingBatch(prompts, responses, sizes)


@dataclass(frozen=True, slots=True, eq=False)
class PromptBatch:
    """A part of the responses of a rollout, and the prompts of the whole rollout."""

    rollout: int  # counted from 0
    prompts: list[list[int]]  # of each response of the rollout, BOS first
    rows: list[int]  # the responses to train on

    def tensors(self) -> Mapping[str, Tensor]:
        """Return all tensors by their names in files."""
        return {"prompts": pad_rows(self.prompts), "rows": torch.tensor(self.rows)}


class PromptBatches:
    """Batches for training on a policy's own responses. An epoch is a rollout.

    A rollout reads the next prompts of the shuffled store, each ``n_samples`` times; its responses are then trained on
    ``n_passes`` times, in batches of ``batch_size`` responses in random order. All follows from the seed and the number
    of the rollout.
    """

    def __init__(
        self, store: Store, *, rollout_size: int, batch_size: int, n_passes: int, n_samples: int, seed: int
    ) -> None:
        """``rollout_size`` and ``batch_size``: responses. Raises ConfigError if they do not divide."""
        if rollout_size % batch_size or rollout_size % n_samples:
            raise ConfigError(
                f"alignment.rollout_size = {rollout_size} should be a multiple of batch_size = {batch_size} and of"
                f" n_samples = {n_samples}"
            )
        self.store, self.seed = store, seed
        self.rollout_size, self.batch_size, self.n_passes, self.n_samples = (
            rollout_size, batch_size, n_passes, n_samples
        )  # fmt: skip
        self._rollout: tuple[int, list[list[int]]] | None = None  # the newest one, and its prompts
        self._round: tuple[int, NDArray[np.int64]] | None = None

    def n_batches(self, epoch: int) -> int:
        """Number of batches of a rollout."""
        return self.n_passes * (self.rollout_size // self.batch_size)

    def n_rows(self, epoch: int, index: int) -> int:
        """Number of responses in a batch."""
        return self.batch_size

    def n_tokens(self, epoch: int, index: int) -> tuple[int, int]:
        """Number of tokens of the prompts of a batch, and of its responses: these are drawn later, so each counts 1."""
        batch = self.batch(epoch, index)
        return sum(len(batch.prompts[row]) for row in batch.rows), len(batch.rows)

    def batch(self, epoch: int, index: int, *, part: int = 0, n_parts: int = 1) -> PromptBatch:
        """Return a batch, or every ``n_parts``-th response of it from ``part``."""
        n_per_pass = self.rollout_size // self.batch_size
        pass_number, place = divmod(index, n_per_pass)
        order = np.random.default_rng([self.seed, epoch, 5, pass_number]).permutation(self.rollout_size)
        rows = order[place * self.batch_size : (place + 1) * self.batch_size][part::n_parts].tolist()
        return PromptBatch(epoch, self._prompts(epoch), rows)

    def largest(self, epoch: int) -> Sequence[int]:
        """Return the first batch: all have the same number of responses."""
        return (0,)

    def name(self, epoch: int, index: int) -> str:
        """Describe a batch for messages."""
        return f"batch {index} of rollout {epoch}"

    def _prompts(self, epoch: int) -> list[list[int]]:
        if self._rollout is None or self._rollout[0] != epoch:
            self._rollout = epoch, self._new_prompts(epoch)
        return self._rollout[1]

    def _new_prompts(self, epoch: int) -> list[list[int]]:
        n_prompts, n_rows = self.rollout_size // self.n_samples, len(self.store)
        prompts: list[list[int]] = []
        for number in range(epoch * n_prompts, (epoch + 1) * n_prompts):
            round_number, place = divmod(number, n_rows)
            row = int(self._order(round_number)[place])
            prompts += [prompt_of(self.store, row)] * self.n_samples
        return prompts

    def _order(self, round_number: int) -> NDArray[np.int64]:
        """Return the order in which the prompts are read for the n-th time."""
        if self._round is None or self._round[0] != round_number:
            order = np.random.default_rng([self.seed, 4, round_number]).permutation(len(self.store))
            self._round = round_number, order
        return self._round[1]

"""Using a causal language model: continuing texts, and the probability of each token after the ones before it.

Shapes: N rows of a batch, T positions, V vocabulary.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import shake_128
from typing import Self

import torch
from torch import Tensor

from transduce.data import pad_rows
from transduce.errors import ConfigError, DataError, SearchError
from transduce.inference.batch_search import require_sequence
from transduce.inference.folder import ModelFolder
from transduce.inference.language_models.language_model import AS_IT_IS, Continuation, LanguageModel, lines_of, stack_of
from transduce.inference.trained_model import Capabilities
from transduce.model import AttentionHook, DecodingState
from transduce.search import beam_search
from transduce.search.sampling import Sampling, draw, sampling_log_probs
from transduce.text import BOS_ID, EOS_ID, normalise

__all__ = ["CausalLanguageModel"]

ROWS_PER_BATCH = 32
TOKENS_PER_BATCH = 8192  # of scoring


@dataclass(frozen=True, slots=True)
class _Prompt:
    """A prompt as ids."""

    text: str
    ids: list[int]  # BOS first
    starts_word: bool  # it ends with a space, which belongs to the token that comes next


@dataclass(slots=True)
class _Shown:
    """Passes on a growing text piece by piece."""

    on_text: Callable[[str], None] | None
    n_characters: int = 0  # so far

    def add(self, text: str) -> None:
        """Pass on what is new in ``text``."""
        if self.on_text is not None and len(text) > self.n_characters:
            self.on_text(text[self.n_characters :])
            self.n_characters = len(text)


class CausalLanguageModel(LanguageModel):
    """A decoder-only model: each position sees itself and earlier ones."""

    capabilities = Capabilities(
        ("causal-lm",), "a causal language model", "generate", served_as="generator", exported_as="decoder"
    )

    @classmethod
    def from_folder(cls, loaded: ModelFolder) -> Self:
        """Return the language model of a model folder that has been read."""
        return cls(stack_of(loaded, is_causal=True), loaded.tokenizers.src, max_length=loaded.model.window)

    def generate(
        self,
        prompts: Sequence[str],
        *,
        max_tokens: int = 100,
        sampling: Sampling = AS_IT_IS,
        beam_size: int | None = None,
        seed: int = 1,
        first_number: int = 0,
        should_stop: Callable[[], bool] = lambda: False,
        on_text: Callable[[str], None] | None = None,
    ) -> list[Continuation]:
        """Continue each prompt until the model ends the document, or for ``max_tokens``.

        What a prompt gives depends on the seed and its number, counted from ``first_number``, not on the other prompts.
        After a prompt that ends with a space a new word begins.
        With ``beam_size``, the most probable continuation that a beam search finds; it stays within the model's window.
        ``on_text`` receives the new text of a single prompt piece by piece, as it is drawn; not from a beam search.
        Raises TypeError for a single string, DataError for a prompt longer than the model's window, SearchError for a
        beam with sampling, or for less than one token.
        """
        require_sequence(prompts, "generate takes a list of prompts", "for one prompt, generate([prompt])[0]")
        if max_tokens < 1:
            raise SearchError(f"max_tokens should be at least 1, got {max_tokens}")
        encoded = [self._encoded(prompt) for prompt in prompts]
        if beam_size is not None:
            if sampling != AS_IT_IS:
                raise SearchError("a beam search does not sample; leave out temperature, top_k and top_p, or the beam")
            return [
                Continuation(prompt.text, "", 0.0, 0, False)
                if should_stop()
                else self._by_beam(prompt, max_tokens, beam_size)
                for prompt in encoded
            ]
        order = sorted(range(len(prompts)), key=lambda number: len(encoded[number].ids))
        continued: dict[int, Continuation] = {}
        for start in range(0, len(order), ROWS_PER_BATCH):
            numbers = order[start : start + ROWS_PER_BATCH]
            generators = [torch.Generator().manual_seed(_seed_of(seed, first_number + number)) for number in numbers]
            shown = _Shown(on_text if len(prompts) == 1 else None)
            rows = self._continue(
                [encoded[number] for number in numbers], max_tokens, sampling, generators, should_stop, shown
            )
            for number, (ids, log_prob) in zip(numbers, rows, strict=True):
                text = self._text_after(encoded[number], ids)
                shown.add(text)
                is_ended = bool(ids) and ids[-1] == EOS_ID
                continued[number] = Continuation(prompts[number], text, log_prob, len(ids), is_ended)
        return [continued[number] for number in range(len(prompts))]

    def _encoded(self, prompt: str) -> _Prompt:
        """Encode a prompt; its last line is incomplete unless it ends with a newline."""
        *lines, last = prompt.split("\n")
        ids = [BOS_ID, *self.codec.encode(lines)]
        ids += self.tokenizer.encode(normalise(last)) if last.strip() else []
        ends_with_space = last.strip() != "" and last[-1].isspace()
        if ends_with_space and self.tokenizer.space_id is not None:
            ids.append(self.tokenizer.space_id)
        if len(ids) > self.max_length:
            raise DataError(
                f"the prompt has {len(ids):,} tokens, BOS included, the model's window {self.max_length:,}; shorten it:"
                f" {prompt[:50]!r}"
            )
        return _Prompt(prompt, ids, starts_word=ends_with_space and self.tokenizer.space_id is None)

    @cached_property
    def _is_inside_V(self) -> Tensor:
        """Which tokens do not start a word."""
        is_inside_V = torch.ones(self.tokenizer.size, dtype=torch.bool, device=self.device)
        is_inside_V[self.tokenizer.word_start_ids] = False
        return is_inside_V

    @torch.no_grad()
    def _continue(
        self,
        prompts: Sequence[_Prompt],
        max_tokens: int,
        sampling: Sampling,
        generators: Sequence[torch.Generator],
        should_stop: Callable[[], bool],
        shown: _Shown,
    ) -> list[tuple[list[int], float]]:
        """Return the new ids of each row, EOS included, and their log-probability."""
        outputs: list[list[int]] = [[] for _ in prompts]
        total = [0.0] * len(prompts)
        read = [list(prompt.ids) for prompt in prompts]  # what the decoding state has read of each row
        alive = list(range(len(prompts)))
        logits_NV, state = self._read(read)
        for row, prompt in enumerate(prompts):
            if prompt.starts_word:
                logits_NV[row, self._is_inside_V] = -math.inf
        while alive and not should_stop():
            log_probs_NV = sampling_log_probs(self._without_special(logits_NV), sampling)
            drawn = draw(log_probs_NV, [generators[row] for row in alive]).tolist()
            chosen = [float(log_probs_NV[position, id]) for position, id in enumerate(drawn)]
            for row, id, log_prob in zip(alive, drawn, chosen, strict=True):
                outputs[row].append(id)
                total[row] += log_prob
                read[row].append(id)
            if shown.on_text is not None:
                shown.add(self._text_after(prompts[0], outputs[0]))
            kept = [
                position
                for position, row in enumerate(alive)
                if outputs[row][-1] != EOS_ID and len(outputs[row]) < max_tokens
            ]
            alive = [alive[position] for position in kept]
            if not alive:
                break
            too_long = [row for row in alive if len(read[row]) > self.max_length]
            for row in too_long:  # its window slides by half of its length
                read[row] = read[row][-max(1, self.max_length // 2) :]
            if too_long:
                logits_NV, state = self._read([read[row] for row in alive])
                continue
            if len(kept) < len(drawn):
                state = state.select(torch.tensor(kept, device=self.device).unsqueeze(1))
            last_N = torch.tensor([read[row][-1] for row in alive], device=self.device)
            logits_NV, state = self.model.step(last_N, state)
        return list(zip(outputs, total, strict=True))

    @torch.no_grad()
    def _by_beam(self, prompt: _Prompt, max_tokens: int, beam_size: int) -> Continuation:
        """Return the most probable continuation found by beam search, without length penalty. Section 6.1."""
        *before, last = prompt.ids
        state = self.model.start(1)
        if before:
            _, state = self.model.extend(torch.tensor([before], device=self.device), state)
        is_first = True

        def step(last_ids_N: Tensor, state: DecodingState) -> tuple[Tensor, DecodingState]:
            nonlocal is_first
            logits_NV, state = self.model.step(last_ids_N, state)
            if is_first and prompt.starts_word:
                logits_NV[:, self._is_inside_V] = -math.inf
            is_first = False
            return logits_NV, state

        room = self.max_length - len(before)
        ((best, *_),) = beam_search(
            step,
            state,
            max_lengths_B=torch.tensor([min(max_tokens, room)], device=self.device),
            beam_size=beam_size,
            alpha=0.0,
            n_best=1,
            bos_id=last,  # what the state has not read
            eos_id=EOS_ID,
            suppressed_ids=[id for id in self.no_text if id != EOS_ID],
        )
        ids = [*best.ids, *([EOS_ID] if best.is_finished else [])]
        return Continuation(prompt.text, self._text_after(prompt, ids), best.log_prob, len(ids), best.is_finished)

    @torch.no_grad()
    def _read(self, rows: Sequence[list[int]]) -> tuple[Tensor, DecodingState]:
        """Return the logits after each row, (N, V), and the decoding state."""
        ids_NT = pad_rows(rows).to(self.device)
        n_new_N = torch.tensor([len(row) for row in rows], device=self.device)
        state = self.model.start(len(rows))
        if len({len(row) for row in rows}) == 1:
            logits_NTV, state = self.model.extend(ids_NT, state)
        else:
            logits_NTV, state = self.model.extend(ids_NT, state, n_new_N)
        return logits_NTV[torch.arange(len(rows), device=self.device), n_new_N - 1], state

    def _without_special(self, logits_NV: Tensor) -> Tensor:
        """Block tokens that are no text, except the end of the document."""
        blocked = [id for id in self.no_text if id != EOS_ID]
        logits_NV = logits_NV.clone()
        logits_NV[:, blocked] = -math.inf
        return logits_NV

    def _text_after(self, prompt: _Prompt, ids: list[int]) -> str:
        """Return the text of the new ids: with the space of a new word, unless the prompt ends with one."""
        whole, before = self.codec.decode([*prompt.ids, *ids]), self.codec.decode(prompt.ids)
        text = whole[len(before) :] if whole.startswith(before) else self.codec.decode(ids)
        return text.removeprefix(" ") if prompt.starts_word else text

    def read_and_written(self, text: str) -> tuple[list[int], list[int]]:
        """Return no ids that an encoder reads, and those of the text, from BOS to EOS."""
        return [], [BOS_ID, *self.codec.encode(lines_of(text)), EOS_ID]

    def forward(self, read_ids: list[int], written_ids: list[int], attention_hook: AttentionHook) -> None:
        """Run the model over the ids of a text; the hook receives the attention weights."""
        self.model(torch.tensor([written_ids[:-1]], device=self.device), attention_hook=attention_hook)

    @torch.no_grad()
    def _log_probs(self, ids: Sequence[int], stride: int | None) -> Tensor:
        """Return the log-probability of each of n tokens and of EOS, (n + 1,), in float64.

        The window slides by ``stride`` tokens, so that each token but the first ones is predicted from at least the
        rest of a window. Default: half of it to score a text. Raises ConfigError for a stride beyond the window.
        """
        stride = max(1, self.max_length // 2) if stride is None else stride
        if not 1 <= stride <= self.max_length:
            raise ConfigError(
                f"stride = {stride:,} should be from 1 to {self.max_length:,}, the window of the model: beyond it,"
                " tokens between two windows would be left out"
            )
        whole = torch.tensor([BOS_ID, *ids, EOS_ID])
        n_targets, window = len(whole) - 1, self.max_length
        parts = list(_windows(n_targets, window, stride))
        result = torch.empty(n_targets, dtype=torch.float64)
        per_batch = max(1, TOKENS_PER_BATCH // window)
        for start in range(0, len(parts), per_batch):
            batch = parts[start : start + per_batch]
            ids_BT = pad_rows([whole[begin:end].numpy() for begin, _, end in batch]).to(self.device)
            states_ND = self.model(ids_BT)
            targets_N = torch.cat([whole[begin + 1 : end + 1] for begin, _, end in batch]).to(self.device)
            logits_NV = self.model.output.logits(states_ND)
            chosen_N = logits_NV.double().log_softmax(dim=1).gather(1, targets_N.unsqueeze(1)).squeeze(1).cpu()
            for (begin, first, end), of_window in zip(
                batch, torch.split(chosen_N, [end - begin for begin, _, end in batch]), strict=True
            ):
                result[first:end] = of_window[first - begin :]
        return result


def _seed_of(seed: int, number: int) -> int:
    """Return the seed of the draws for one prompt."""
    return int.from_bytes(shake_128(f"{seed} {number}".encode()).digest(7))


def _windows(n_targets: int, window: int, stride: int) -> Iterator[tuple[int, int, int]]:
    """Yield (begin, first, end): inputs ``begin`` to ``end``, of which the targets from ``first`` on count.

    >>> list(_windows(10, 4, 2))
    [(0, 0, 4), (2, 4, 6), (4, 6, 8), (6, 8, 10)]
    """
    end = min(window, n_targets)
    yield 0, 0, end
    while end < n_targets:
        first, end = end, min(end + stride, n_targets)
        yield max(0, end - window), first, end

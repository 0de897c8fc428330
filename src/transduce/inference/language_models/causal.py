"""Using a causal language model: continuing texts, and the probability of each token after the ones before it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

from transduce.config import BeamSearchConfig, SampledSearchConfig
from transduce.config.decoding import EngineName
from transduce.errors import ConfigError, DataError, SearchError
from transduce.inference.arguments import require_sequence
from transduce.inference.engine import Constraints, ForcedPair, Request, Run, never
from transduce.inference.folder import ModelFolder
from transduce.inference.language_models.language_model import AS_IT_IS, Continuation, LanguageModel, lines_of, stack_of
from transduce.inference.trained_model import Capabilities
from transduce.search import Hypothesis, Sampling
from transduce.text import BOS_ID, EOS_ID, normalise

if TYPE_CHECKING:
    from transduce.model import AttentionHook

__all__ = ["CausalLanguageModel"]

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
    def from_folder(cls, loaded: ModelFolder, *, engine: EngineName = "auto") -> Self:
        """Return the language model of a model folder that has been read."""
        model, window = stack_of(loaded, is_causal=True)
        return cls(model, loaded.tokenizers.src, max_length=window, engine=engine)

    def generate(
        self,
        prompts: Sequence[str],
        *,
        max_tokens: int = 100,
        sampling: Sampling = AS_IT_IS,
        beam_size: int | None = None,
        seed: int = 1,
        first_number: int = 0,
        should_stop: Callable[[], bool] = never,
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
        if beam_size is not None and sampling != AS_IT_IS:
            raise SearchError("a beam search does not sample; leave out temperature, top_k and top_p, or the beam")
        encoded = [self._encoded(prompt) for prompt in prompts]
        requests = [
            Request(
                self._max_tokens(prompt.text, max_tokens),
                prompt=prompt.ids,
                constraints=Constraints(starts_word=prompt.starts_word),
                number=first_number + number,
            )
            for number, prompt in enumerate(encoded)
        ]
        search = (
            SampledSearchConfig(temperature=sampling.temperature, top_k=sampling.top_k, top_p=sampling.top_p, seed=seed)
            if beam_size is None
            else BeamSearchConfig(beam_size=beam_size, alpha=0.0)
        )
        shown = _Shown(on_text if len(prompts) == 1 else None)

        def show(number: int, ids: Sequence[int]) -> None:
            if shown.on_text is not None:
                shown.add(self._text_after(encoded[number], ids))

        found = self.engine.hypotheses(requests, search, Run(should_stop=should_stop, on_ids=show))
        if found is None:
            return [Continuation(prompt, "", 0.0, 0, False) for prompt in prompts]
        return [self._continuation(prompt, best) for prompt, (best, *_) in zip(encoded, found, strict=True)]

    def _max_tokens(self, prompt: str, max_tokens: int) -> int:
        """Return how many tokens may follow a prompt."""
        return max_tokens

    def _continuation(self, prompt: _Prompt, found: Hypothesis) -> Continuation:
        ids = [*found.ids, *([EOS_ID] if found.is_finished else [])]
        return Continuation(prompt.text, self._text_after(prompt, ids), found.log_prob, len(ids), found.is_finished)

    def _suppressed_ids(self) -> list[int]:
        """Return the ids that are no text, except the end of the document."""
        return [id for id in self.no_text if id != EOS_ID]

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

    def _text_after(self, prompt: _Prompt, ids: Sequence[int]) -> str:
        """Return the text of the new ids: with the space of a new word, unless the prompt ends with one."""
        whole, before = self.codec.decode([*prompt.ids, *ids]), self.codec.decode(prompt.ids)
        text = whole[len(before) :] if whole.startswith(before) else self.codec.decode(ids)
        return text.removeprefix(" ") if prompt.starts_word else text

    def read_and_written(self, text: str) -> tuple[list[int], list[int]]:
        """Return no ids that an encoder reads, and those of the text, from BOS to EOS."""
        return [], [BOS_ID, *self.codec.encode(lines_of(text)), EOS_ID]

    def forward(self, read_ids: list[int], written_ids: list[int], attention_hook: AttentionHook) -> None:
        """Run the model over the ids of a text; the hook receives the attention weights."""
        import torch

        self.model(torch.tensor([written_ids[:-1]], device=self.device), attention_hook=attention_hook)

    def _log_probs(self, ids: Sequence[int], stride: int | None) -> list[float]:
        """Return the log-probability of each of n tokens and of EOS.

        The window slides by ``stride`` tokens, so that each token but the first ones is predicted from at least the
        rest of a window. Default: half of it to score a text. Raises ConfigError for a stride beyond the window.
        """
        stride = max(1, self.max_length // 2) if stride is None else stride
        if not 1 <= stride <= self.max_length:
            raise ConfigError(
                f"stride = {stride:,} should be from 1 to {self.max_length:,}, the window of the model: beyond it,"
                " tokens between two windows would be left out"
            )
        whole = [BOS_ID, *ids, EOS_ID]
        pairs = [
            ForcedPair(whole[begin : first + 1], whole[first + 1 : end + 1])
            for begin, first, end in _windows(len(whole) - 1, self.max_length, stride)
        ]
        scores = self.engine.forced_scores(pairs, max_tokens=TOKENS_PER_BATCH)
        return [log_prob for each in scores for log_prob in each.log_probs_T.tolist()]


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

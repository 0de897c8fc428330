"""Best-of-n for translation: draw n translations of a sentence and choose the one that a reward model rates highest.

The reward model reads the source as a prompt and a translation as its response; it has a vocabulary of its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Unpack

import numpy as np

from transduce.config import SampledSearchConfig, SearchConfig
from transduce.config.decoding import sampling_like
from transduce.errors import ConfigError
from transduce.inference.language_models.responses import RewardModel
from transduce.inference.translation.parts import TranslatedSegment, Translation
from transduce.inference.translation.translator import LineOptions, Translator
from transduce.text.markup import Unit

__all__ = ["BestOfSamples", "drawn_segments", "rewards_of_translations", "seeds_of_draws"]


class BestOfSamples:
    """Translate with the best of ``n`` draws of ``translator``, by the reward of each sentence. Not in the paper.

    With ``n`` = 1 it samples. Raises ConfigError for less than one draw.
    """

    def __init__(
        self, translator: Translator, reward_model: RewardModel, *, n: int, seed: int = 1, temperature: float = 1.0
    ) -> None:
        """``temperature`` divides the logits of the draws."""
        if n < 1:
            raise ConfigError(f"best-of-n needs at least one draw, got n = {n}")
        self.translator, self.reward_model, self.n = translator, reward_model, n
        self.src_language, self.tgt_language = translator.src_language, translator.tgt_language
        self.search: SearchConfig = sampling_like(translator.search, seed=seed, temperature=temperature)
        self.max_source_tokens, self.has_masks = translator.max_source_tokens, translator.has_masks
        self.memory = translator.memory

    def translate(self, texts: Sequence[str], *, search: SearchConfig | None = None) -> list[str]:
        """Translate a list of texts."""
        return [translation.text for translation in self.translate_lines(texts, search=search)]

    def translate_lines(
        self, lines: Iterable[str | Unit], *, search: SearchConfig | None = None, **options: Unpack[LineOptions]
    ) -> Iterator[Translation]:
        """Translate a stream of lines, in order; empty lines stay empty. Each segment of a line has its own draws.

        A translation that is too long for the reward model's window is chosen only if all of its sentence are.
        Raises ConfigError for a search that does not sample, or a prefix.
        """
        config = search or self.search
        if not isinstance(config, SampledSearchConfig):
            raise ConfigError(f"best-of-n draws translations; search.kind should be 'sampling', got {config.kind!r}")
        first, *others = seeds_of_draws(config.seed, self.n)

        def choose(
            sources: Sequence[str], drawn: Sequence[TranslatedSegment], search: SearchConfig
        ) -> list[TranslatedSegment]:
            draws = [drawn, *drawn_segments(self.translator, sources, config, others, lowers_caps=True)]
            candidates = list(zip(*draws, strict=True))
            texts = [[each.n_best[0].text for each in of_source] for of_source in candidates]
            rewards = rewards_of_translations(self.reward_model, sources, texts)
            return [
                of_source[max(range(self.n), key=lambda n: (bool(of_texts[n]), of_rewards[n]))]
                for of_source, of_texts, of_rewards in zip(candidates, texts, rewards, strict=True)
            ]

        return self.translator.translate_lines(lines, search=_with_seed(config, first), rerank=choose, **options)


def seeds_of_draws(seed: int, n: int) -> list[int]:
    """Return the seeds of ``n`` draws; those of fewer draws are their beginning.

    >>> seeds_of_draws(1, 2) == seeds_of_draws(1, 16)[:2]
    True
    """
    return [int(state) >> 1 for state in np.random.SeedSequence(seed).generate_state(n, np.uint64)]


def drawn_segments(
    translator: Translator,
    sources: Sequence[str],
    search: SampledSearchConfig,
    seeds: Iterable[int],
    *,
    lowers_caps: bool = False,
) -> Iterator[list[TranslatedSegment]]:
    """Yield, for each seed, a translation of each source, drawn as a whole."""
    for seed in seeds:
        drawn = translator.translate_segments(sources, _with_seed(search, seed), lowers_caps=lowers_caps)
        assert drawn is not None  # not interrupted
        yield [replace(each, n_best=each.n_best[:1]) for each in drawn]


def rewards_of_translations(
    reward_model: RewardModel, sources: Sequence[str], translations: Sequence[Sequence[str]]
) -> list[list[float]]:
    """Return the reward of each translation of each source; -inf if it is too long for the reward model's window."""
    pairs = [(source, text) for source, texts in zip(sources, translations, strict=True) for text in texts]
    rewards = iter(reward_model.rewards_within_window(pairs))
    return [[next(rewards) for _ in texts] for texts in translations]


def _with_seed(search: SampledSearchConfig, seed: int) -> SampledSearchConfig:
    return search.model_copy(update={"seed": seed})

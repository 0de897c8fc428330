"""Using a model of pixels: drawing images of a class, or completing the beginning of one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Unpack

import numpy as np
from numpy.typing import NDArray

from transduce.corpora.digits import DIGIT_CLASSES, DIGIT_LEVELS, DIGIT_PIXELS, image_of
from transduce.errors import ConfigError, DataError, SearchError
from transduce.inference.arguments import require_sequence
from transduce.inference.language_models.causal import CausalLanguageModel
from transduce.inference.language_models.language_model import AS_IT_IS, Continuation, GenerationOptions
from transduce.inference.trained_model import Capabilities
from transduce.patterns import compiled_on_use
from transduce.search.sampling import Sampling

__all__ = ["PixelModel"]

PROMPT = compiled_on_use(f"[{DIGIT_CLASSES}][{DIGIT_LEVELS}]*")


class PixelModel(CausalLanguageModel):
    """A model that draws images of a class: ``PixelModel.load(folder).draw([3, 7])``.

    As text, an image is its class and a letter for each pixel, row by row: from ``a``, paper, to ``q``, ink.
    """

    capabilities = Capabilities(("pixels",), "a model of pixels", "generate", served_as="generator")

    def draw(self, classes: Sequence[int], *, sampling: Sampling = AS_IT_IS, seed: int = 1) -> NDArray[np.uint8]:
        """Return an image of each class, (n, 8, 8), with grey levels from 0 to 16."""
        drawn = self.generate([DIGIT_CLASSES[digit] for digit in classes], sampling=sampling, seed=seed)
        return np.stack([image_of(each.prompt + each.text) for each in drawn])

    def generate(self, prompts: Sequence[str], **options: Unpack[GenerationOptions]) -> list[Continuation]:
        """Draw the pixels after each prompt, at most as many as its image lacks.

        A prompt is a class, as in ``"3"``, with or without the first pixels. Arguments and errors are those of
        ``CausalLanguageModel.generate``. Raises DataError for another prompt, SearchError for a beam.
        """
        require_sequence(prompts, "generate takes a list of prompts", "for one prompt, generate([prompt])[0]")
        for prompt in prompts:
            if not PROMPT.fullmatch(prompt) or len(prompt) > DIGIT_PIXELS:
                raise DataError(
                    f"a prompt is a class, 0 to 9, and up to {DIGIT_PIXELS - 1} grey levels, a to q, got"
                    f" {prompt[:80]!r}"
                )
        if options.get("beam_size") is not None:
            raise SearchError("images are drawn, not searched for; leave out the beam")
        return super().generate(prompts, **options)

    def _max_tokens(self, prompt: str, max_tokens: int) -> int:
        return min(max_tokens, DIGIT_PIXELS + 1 - len(prompt))

    def _log_probs(self, ids: Sequence[int], stride: int | None) -> list[float]:
        """Raise ConfigError: only the pixels of an image have been targets, not its class and its end."""
        raise ConfigError("a model of pixels scores no text; the bits per dimension of its images are in its card")

    def _suppressed_ids(self) -> list[int]:
        """Return all ids but those of the grey levels."""
        return sorted(set(range(self.tokenizer.size)) - {self.tokenizer.vocabulary[level] for level in DIGIT_LEVELS})

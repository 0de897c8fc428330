"""Using a model of pixels: drawing images of a class, or completing the beginning of one.

Shapes: N rows of a batch, V vocabulary.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from transduce.corpora.digits import DIGIT_CLASSES, DIGIT_LEVELS, DIGIT_PIXELS, image_of
from transduce.errors import ConfigError, DataError, SearchError
from transduce.inference.batch_search import require_sequence
from transduce.inference.language_models.causal import CausalLanguageModel
from transduce.inference.language_models.language_model import AS_IT_IS, Continuation
from transduce.inference.trained_model import Capabilities
from transduce.search.sampling import Sampling

__all__ = ["PixelModel"]

PROMPT = re.compile(f"[{DIGIT_CLASSES}][{DIGIT_LEVELS}]*")


class PixelModel(CausalLanguageModel):
    """A model that draws images of a class: ``PixelModel.load(folder).draw([3, 7])``.

    As text, an image is its class and a letter for each pixel, row by row: from ``a``, paper, to ``q``, ink.
    """

    capabilities = Capabilities(("pixels",), "a model of pixels", "generate", served_as="generator")

    def draw(self, classes: Sequence[int], *, sampling: Sampling = AS_IT_IS, seed: int = 1) -> NDArray[np.uint8]:
        """Return an image of each class, (n, 8, 8), with grey levels from 0 to 16."""
        drawn = self.generate([DIGIT_CLASSES[digit] for digit in classes], sampling=sampling, seed=seed)
        return np.stack([image_of(each.prompt + each.text) for each in drawn])

    def generate(
        self,
        prompts: Sequence[str],
        *,
        max_tokens: int = DIGIT_PIXELS,
        sampling: Sampling = AS_IT_IS,
        beam_size: int | None = None,
        seed: int = 1,
        first_number: int = 0,
        should_stop: Callable[[], bool] = lambda: False,
        on_text: Callable[[str], None] | None = None,
    ) -> list[Continuation]:
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
        if beam_size is not None:
            raise SearchError("images are drawn, not searched for; leave out the beam")
        options: dict[str, Any] = {"sampling": sampling, "seed": seed, "should_stop": should_stop, "on_text": on_text}
        n_missing = [DIGIT_PIXELS + 1 - len(prompt) for prompt in prompts]
        if len(set(n_missing)) == 1:  # one batch
            n_drawn = min(max_tokens, n_missing[0])
            return super().generate(prompts, max_tokens=n_drawn, first_number=first_number, **options)
        return [
            super(PixelModel, self).generate(
                [prompt], max_tokens=min(max_tokens, missing), first_number=first_number + number, **options
            )[0]
            for number, (prompt, missing) in enumerate(zip(prompts, n_missing, strict=True))
        ]

    def _log_probs(self, ids: Sequence[int], stride: int | None) -> Tensor:
        """Raise ConfigError: only the pixels of an image have been targets, not its class and its end."""
        raise ConfigError("a model of pixels scores no text; the bits per dimension of its images are in its card")

    @cached_property
    def _is_no_level_V(self) -> Tensor:
        """Which tokens are no grey levels."""
        is_no_level_V = torch.ones(self.tokenizer.size, dtype=torch.bool, device=self.device)
        is_no_level_V[[self.tokenizer.vocabulary[level] for level in DIGIT_LEVELS]] = False
        return is_no_level_V

    def _without_special(self, logits_NV: Tensor) -> Tensor:
        """Block all tokens but the grey levels."""
        return logits_NV.masked_fill(self._is_no_level_V, -math.inf)

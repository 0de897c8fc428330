"""What a task is: the one object that knows how its runs are watched, and how what they come to is scored.

``known_tasks.py`` has them by name; nothing else asks what a task is called.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

import torch

from transduce.config import RunConfig
from transduce.metrics import TokenisedBleu, TranslationScores
from transduce.model import EncoderDecoder
from transduce.tasks.line_statistics import LineStatistics
from transduce.tasks.preparation import Prepared
from transduce.tasks.validation import TaskValidation
from transduce.training import Processes

if TYPE_CHECKING:
    from transduce.tasks.parsing import ParsingScores

__all__ = ["Task"]


class Task(ABC):
    """A purpose that models are trained for: pairs of texts in, a model folder out."""

    name: ClassVar[str]  # in the config.json of its model folders
    doing: ClassVar[str]  # what its model does with sentences, for people: "translating"
    validation: ClassVar[type[TaskValidation]]  # what is looked at on the way

    def validate(
        self,
        model: Callable[[], EncoderDecoder],
        prepared: Prepared,
        config: RunConfig,
        *,
        device: torch.device,
        processes: Processes | None = None,
    ) -> TaskValidation | None:
        """A way to look at the dev set; None where there is none.

        ``model`` gives the model to look at, with all its weights, in evaluation mode.
        """
        text = prepared.text("dev")
        if prepared.dev is None or text is None:
            return None
        return self.validation(
            model, prepared.tokenizers, prepared.dev, text, config, device=device, processes=processes
        )

    @abstractmethod
    def evaluate(
        self,
        model_folder: Path,
        text: tuple[list[str], list[str]],
        *,
        device: str | torch.device = "cpu",
        also: Collection[TokenisedBleu] = (),
    ) -> TranslationScores | ParsingScores:
        """What a model folder comes to on prepared text: sources and targets. ``also`` names further BLEUs."""

    def line_statistics(self, prepared: Prepared, config: RunConfig) -> LineStatistics | None:
        """What a model should know of the lines that it was trained on; None where that is nothing."""
        return None

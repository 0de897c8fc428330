"""Translation as a task: perplexity and BLEU on the way, sacreBLEU and chrF at the end."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from pathlib import Path

import torch

from transduce.config import RunConfig
from transduce.metrics import TokenisedBleu, TranslationScores, sacrebleu_score
from transduce.model import EncoderDecoder
from transduce.tasks.evaluation import evaluate
from transduce.tasks.line_statistics import LineStatistics, line_statistics
from transduce.tasks.preparation import Prepared
from transduce.tasks.task import Task
from transduce.tasks.translator import Translator
from transduce.tasks.validation import TaskValidation
from transduce.training import Score, Validation

__all__ = ["Translation"]


class TranslationValidation(TaskValidation):
    """Perplexity and BLEU."""

    def _write(self, model: EncoderDecoder, places: Sequence[int], should_stop: Callable[[], bool]) -> list[str] | None:
        config = self.run_config
        translator = Translator(
            model,
            self.tokenizers,
            config.search,
            direction=config.data.direction,
            precision=config.training.precision,
        )
        return translator.translate_unless(should_stop, [self._sources[place] for place in places])

    def _judged(self, nll_nats: float, outputs: list[str]) -> Validation:
        score = sacrebleu_score(outputs, self._references)
        return Validation(nll_nats, {"bleu": Score(score.score, score.signature)})


class Translation(Task):
    """Text of one language to text of another. Sections 5 and 6.1."""

    name = "translation"
    doing = "translating"
    validation = TranslationValidation

    def evaluate(
        self,
        model_folder: Path,
        text: tuple[list[str], list[str]],
        *,
        device: str | torch.device = "cpu",
        also: Collection[TokenisedBleu] = (),
    ) -> TranslationScores:
        """BLEU and chrF of the translations of the sources."""
        return evaluate(Translator.load(model_folder, device=device), *text, also=also).scores

    def line_statistics(self, prepared: Prepared, config: RunConfig) -> LineStatistics | None:
        """How long its lines are, and how many sentences they have."""
        return line_statistics(prepared.train, prepared.tokenizers, config.data.src_language)

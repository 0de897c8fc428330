"""Translation as a training task: what validation means."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from transduce.metrics import sacrebleu_score
from transduce.model import EncoderDecoder
from transduce.tasks.translator import Translator
from transduce.tasks.validation import TaskValidation
from transduce.training import Validation

__all__ = ["TranslationValidation"]


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
        return Validation(nll_nats, bleu=score.score, signature=score.signature)

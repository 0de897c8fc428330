"""The translation task: perplexity and BLEU in validation, sacreBLEU and chrF in evaluation."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from pathlib import Path

import torch

from transduce.config import DataConfig, RunConfig, Split
from transduce.corpora import PairedText, ParallelText
from transduce.corpora.checks import Remark, remarks_on_own_files
from transduce.data import PairStore
from transduce.errors import ConfigError
from transduce.inference.translation.evaluation import evaluate
from transduce.inference.translation.line_statistics import LineStatistics, line_statistics
from transduce.inference.translation.mask_statistics import MaskCounts
from transduce.inference.translation.translator import Translator
from transduce.metrics import TokenisedBleu, TranslationScores, sacrebleu_score
from transduce.model import EncoderDecoder
from transduce.tasks.pairs.pair_task import Lines, Pair, PairTask
from transduce.tasks.preparation import Prepared
from transduce.tasks.registry import register
from transduce.tasks.task import Use
from transduce.tasks.tokenizers import tokenizer_trainer, tokenizers_of_model
from transduce.tasks.validation import PairValidation
from transduce.text import Tokenizers
from transduce.text.masks import MaskRules, mask_pair, mask_words, strip_masks
from transduce.training import Score, Validation

__all__ = ["TranslationTask"]


class TranslationValidation(PairValidation):
    """Perplexity and BLEU."""

    score = "bleu"

    def _decode(self, model: EncoderDecoder, rows: Sequence[int], should_stop: Callable[[], bool]) -> list[str] | None:
        config = self.run_config
        translator = Translator(
            model, self.tokenizers, self._search, direction=config.data.direction, precision=config.training.precision,
            masks=self._masks,
        )  # fmt: skip
        return translator.translate_interruptible(should_stop, [self._sources[row] for row in rows])

    def _validation(self, nll_nats: float, outputs: list[str]) -> Validation:
        score = sacrebleu_score(outputs, self._references, language=self.run_config.data.tgt_language)
        return Validation(nll_nats, {self.score: Score(score.score, score.signature)})


class TranslationTask(PairTask):
    """Machine translation. Sections 5 and 6.1."""

    name = "translation"
    doing = "translating"
    validation = TranslationValidation

    def text(self, config: DataConfig, data_folder: Path | None) -> PairedText:
        """Return the parallel text that a configuration names."""
        return ParallelText(config, data_folder)

    def train_tokenizers(self, lines: Lines, config: DataConfig) -> Tokenizers:
        """Train one tokenizer for both languages, or one for each. Section 5.1."""
        existing = tokenizers_of_model(config)
        if existing is not None:
            return _require_translating(existing, config)
        train = tokenizer_trainer(config)
        if config.shared_vocabulary:
            shared = train(lines(0, 1))
            return Tokenizers(shared, shared)
        return Tokenizers(train(lines(0)), train(lines(1)))

    def training_pairs(self, pairs: Iterable[Pair], config: DataConfig, masks: MaskCounts) -> Iterator[Pair]:
        """Yield the pairs; with ``config.masks``, masked pairs and additional pairs that train the masks."""
        rules = MaskRules(config.src_language, config.tgt_language)
        for pair in masks.counted(pairs):
            yield mask_pair(*pair, rules) if config.masks else pair
            yield from mask_words(*pair) if config.masks else ()

    def dev_pairs(self, pairs: Iterable[Pair], config: DataConfig) -> Iterable[Pair]:
        """Return the pairs, masked if ``config.masks``."""
        rules = MaskRules(config.src_language, config.tgt_language)
        return (mask_pair(*pair, rules) for pair in pairs) if config.masks else pairs

    def tokenizer_pair(self, src: str, tgt: str, config: DataConfig) -> Pair:
        """Remove verbatim spans, which masks replace; the masks are in the vocabulary already."""
        if not config.masks:
            return src, tgt
        masked_src, masked_tgt = mask_pair(src, tgt, MaskRules(config.src_language, config.tgt_language))
        return strip_masks(masked_src), strip_masks(masked_tgt)

    def remarks(self, config: DataConfig) -> Iterable[Remark]:
        """Check for shifted or swapped files, another language, and dev lines in the training text."""
        return remarks_on_own_files(config)

    def evaluate(
        self,
        model_folder: Path,
        prepared: Prepared,
        split: Split,
        *,
        device: str | torch.device = "cpu",
        also: Collection[TokenisedBleu] = (),
    ) -> TranslationScores:
        """Translate the sources and return BLEU and chrF."""
        text = prepared.text(split)
        assert text is not None
        return evaluate(self.load(model_folder, device=device), *text, also=also).scores

    def score_lines(self, scores: TranslationScores, config: RunConfig) -> list[str]:
        """Return a table of metrics with their signatures."""
        entries = ((name, entry) for name, entry in scores.as_json().items() if isinstance(entry, dict))
        return [
            f"{scores.sentences:,} sentences. Beam {config.search.beam_size}, alpha {config.search.alpha}.",
            "",
            "| metric | score | signature |",
            "| --- | --- | --- |",
            *(f"| {name} | {each['score']:.2f} | `{each['signature'].replace('|', ' ')}` |" for name, each in entries),
        ]

    def has_learnt(self, scores: TranslationScores) -> bool:
        """Whether the translations have more in common with the references than any text of the language has."""
        return not scores.is_by_chance

    def use(self, data: DataConfig) -> Use:
        """Describe the use of a translator."""
        what = f"{data.src_language} to {data.tgt_language}"
        return Use(what, "translate", "Translator.load(folder).translate([...])")

    def line_statistics(self, prepared: Prepared, config: RunConfig) -> LineStatistics | None:
        """Return the length statistics of the training lines."""
        store = prepared.train
        assert isinstance(store, PairStore)
        return line_statistics(store, prepared.tokenizers, config.data.src_language, prepared.masks)


def _require_translating(tokenizers: Tokenizers, config: DataConfig) -> Tokenizers:
    """Return the tokenizers of a model folder. Raises ConfigError if a translator cannot have them."""
    if tokenizers.tgt.is_closed:
        raise ConfigError(f"{config.tokenizer_from} writes trees; a translator needs a vocabulary of text")
    is_one = tokenizers.has_one_vocabulary
    if is_one != config.shared_vocabulary:
        raise ConfigError(
            f"{config.tokenizer_from} has {'one vocabulary' if is_one else 'two vocabularies'}; set"
            f" data.shared_vocabulary = {str(is_one).lower()}"
        )
    return tokenizers


register(TranslationTask())

"""The translation task: perplexity and BLEU in validation, sacreBLEU and chrF in evaluation."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Unpack

import torch

from transduce.config import DataConfig, ParallelData, RunConfig, Split
from transduce.corpora import Pair, ParallelText, Source
from transduce.corpora.checks import Remark, remarks_on_own_files
from transduce.data import PairSampling, PairStore
from transduce.data.word_tables import learn_word_table
from transduce.errors import ConfigError
from transduce.inference.translation.evaluation import evaluate
from transduce.inference.translation.line_statistics import (
    MAX_MEASURED_LINES,
    MIN_MEASURED_LINES,
    LineStatistics,
    line_statistics,
)  # fmt: skip
from transduce.inference.translation.translator import Translator
from transduce.metrics import TranslationScores, sacrebleu_score
from transduce.model import EncoderDecoder
from transduce.tasks.pairs.pair_task import PairPreparation, PairTask
from transduce.tasks.prepared import Prepared
from transduce.tasks.registry import register
from transduce.tasks.task import CardUsage, EvaluationOptions, score_table
from transduce.tasks.validation import PairValidation
from transduce.text import Tokenizers
from transduce.text.masks import MaskRules, mask_pair, mask_words, strip_masks
from transduce.text.term_marks import strip_term_marks
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


class TranslationPreparation(PairPreparation[ParallelData]):
    """Preparation of translations: with ``masks``, mask tokens stand for what is not translated."""

    def make_source(self, config: ParallelData) -> ParallelText:
        """Return the parallel text that a configuration names."""
        return ParallelText(config, self.data_folder)

    @property
    def _rules(self) -> MaskRules:
        return MaskRules(self.config.src_language, self.config.tgt_language)

    def training_items(self, corpus: str) -> Iterator[Pair]:
        """Yield the pairs; with ``masks``, masked pairs and additional pairs that train the masks."""
        for pair in self.masks.counted(map(self._own, self.source.train(corpus))):
            yield mask_pair(*pair, self._rules) if self.config.masks else pair
            yield from mask_words(*pair) if self.config.masks else ()

    def evaluation_items(self, split: Split, source: Source[Pair]) -> Iterable[Pair]:
        """Return the pairs, masked if ``masks``."""
        pairs = map(self._own, source.of(split))
        return (mask_pair(*pair, self._rules) for pair in pairs) if self.config.masks else pairs

    def texts(self, item: Pair) -> Pair:
        """Remove verbatim spans, which masks replace; the masks are in the vocabulary already."""
        item = self._own(item)
        if not self.config.masks:
            return item
        src, tgt = mask_pair(*item, self._rules)
        return strip_masks(src), strip_masks(tgt)

    def _own(self, pair: Pair) -> Pair:
        """Return a pair as it is; with ``terms``, without the characters that are term marks."""
        return (strip_term_marks(pair[0]), strip_term_marks(pair[1])) if self.config.terms else pair

    def sampling(self) -> PairSampling | None:
        """Return how several encodings are drawn: by BPE-dropout, with hints of terms, or both."""
        config = self.config
        if not config.terms:
            return super().sampling()
        pairs = chain.from_iterable(map(self.source.train, self.source.corpora))
        masked = (mask_pair(*self._own(pair), self._rules) if config.masks else self._own(pair) for pair in pairs)
        self.log("learning which words translate each other")
        return PairSampling(
            p_drop=config.bpe_dropout, n_encodings=config.n_encodings, seed=config.corpus_seed,
            words=learn_word_table(masked),
        )  # fmt: skip

    def require_fit(self, existing: Tokenizers) -> None:
        """Raise ConfigError if a translator cannot have the tokenizers of another model."""
        config = self.config
        if existing.tgt.is_closed:
            raise ConfigError(f"{config.tokenizer_from} writes trees; a translator needs a vocabulary of text")
        is_one = existing.has_one_vocabulary
        if is_one != config.shared_vocabulary:
            raise ConfigError(
                f"{config.tokenizer_from} has {'one vocabulary' if is_one else 'two vocabularies'}; set"
                f" data.shared_vocabulary = {str(is_one).lower()}"
            )

    def remarks(self) -> Iterable[Remark]:
        """Check for shifted or swapped files, another language, and dev lines in the training text."""
        return remarks_on_own_files(self.config)


class TranslationTask(PairTask):
    """Machine translation. Sections 5 and 6.1."""

    name = used_as = "translation"
    progress_verb = "translating"
    reads = frozenset({"training.bidirectional_epochs", "training.r_drop", "training.r_drop_after"})
    preparation = TranslationPreparation
    validation = TranslationValidation

    def require_fit(self, config: RunConfig) -> None:
        """Raise ValueError if settings do not fit; bidirectional training needs one vocabulary, and each pair once."""
        super().require_fit(config)
        if not config.training.bidirectional_epochs:
            return
        if not config.data.shared_vocabulary:
            raise ValueError("bidirectional_epochs needs shared_vocabulary = true: each language is source and target")
        data = ParallelData.of(config.data)
        if data.bpe_dropout or data.terms or set(config.data.weights.values()) != {1.0}:
            # The direction of a row depends on the epoch number alone, so every epoch must read each row once.
            raise ValueError("bidirectional_epochs excludes bpe_dropout and terms, and needs corpora of weight 1.0")

    def evaluate(
        self, model_folder: Path, prepared: Prepared, split: Split, **options: Unpack[EvaluationOptions]
    ) -> TranslationScores:
        """Translate the sources and return BLEU and chrF."""
        text = prepared.text(split)
        assert text is not None
        return evaluate(
            self.load(model_folder, device=options["device"]), *text, also=options.get("extra_bleus", ())
        ).scores

    def score_lines(self, scores: TranslationScores, config: RunConfig) -> list[str]:
        """Return a table of metrics with their signatures."""
        search = f"Beam {config.search.beam_size}, alpha {config.search.alpha}."
        return [f"{scores.sentences:,} sentences. {search}", "", *score_table(scores)]

    def has_learnt(self, scores: TranslationScores) -> bool:
        """Whether the translations have more in common with the references than any text of the language has."""
        return not scores.is_by_chance

    def use(self, data: DataConfig) -> CardUsage:
        """Describe the use of a translator."""
        what = f"{data.src_language} to {data.tgt_language}"
        return CardUsage(what, "translate", "Translator.load(folder).translate([...])")

    def line_statistics(self, prepared: Prepared, config: RunConfig) -> LineStatistics | None:
        """Return the length statistics of the training lines."""
        store = prepared.train
        assert isinstance(store, PairStore)
        return line_statistics(store, prepared.tokenizers, config.data.src_language, prepared.masks)

    def with_confidence(
        self, statistics: LineStatistics, model_folder: Path, prepared: Prepared, *, device: str | torch.device
    ) -> LineStatistics:
        """Return the statistics with how sure the model is of its translations of dev lines."""
        text, translator = prepared.text("dev"), self.load(model_folder, device=device)
        if text is None or len(text[0]) < MIN_MEASURED_LINES or not translator.engine.is_left_to_right:
            return statistics
        lines = text[0][:MAX_MEASURED_LINES]
        segments = translator.translate_segments(lines, translator.search, is_checked=False)
        assert segments is not None  # not interrupted
        return statistics.with_confidence([each.mean_log_prob for each in segments])


register(TranslationTask())

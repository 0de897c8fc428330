"""The base of tasks on text pairs: preparation, batches, objective, validation."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar, TypeVar, Unpack

import torch
from torch import nn

from transduce.config import (
    DataConfig,
    EncoderDecoderConfig,
    ModelConfig,
    PairsData,
    ParallelData,
    RunConfig,
    SearchConfig,
    Split,
)
from transduce.corpora import CleaningReport, Pair, Source
from transduce.corpora.checks import Remark, remark_on_dropped
from transduce.data import (
    Batch,
    PairBatches,
    PairSampling,
    PairStore,
    Store,
    StoreSummary,
    excess_of_targets,
    open_pairs,
    read_summary,
    write_pairs,
)
from transduce.errors import ConfigError, DataError
from transduce.files import write_lines
from transduce.findings import Finding
from transduce.findings.pairs import examine_pairs_of
from transduce.inference.translation.mask_statistics import MaskCounts
from transduce.model import EncoderDecoder
from transduce.tasks.objective import PairObjective
from transduce.tasks.preparation import Preparation, PreparationOptions
from transduce.tasks.prepared import Prepared, also_dev_name
from transduce.tasks.task import Processes, Task
from transduce.tasks.tokenizers import tokenizer_trainer, tokenizers_of_model
from transduce.tasks.validation import MultiValidation, PairValidation
from transduce.text import Tokenizers, normalise
from transduce.training import Objective

__all__ = ["Lines", "PairPreparation", "PairTask"]

MANY_LONGER = 0.001  # of the training targets; fewer may be faults of the text

Lines = Callable[..., Iterator[str]]  # called with sides (0 source, 1 target), yields their lines
PairsT = TypeVar("PairsT", bound=PairsData)


class PairPreparation(Preparation[Pair, PairsT]):
    """Preparation of pairs: dev and test text is kept as it is, for the scores; dev has a store for the perplexity."""

    stored = ("dev",)
    masks: MaskCounts

    def __init__(self, task: Task[Any], config: PairsT, **options: Unpack[PreparationOptions]) -> None:
        super().__init__(task, config, **options)
        self.masks = MaskCounts(config.src_language, config.tgt_language)

    def texts(self, item: Pair) -> Pair:
        """Return a clean pair as tokenizers learn it."""
        return item

    def remarks(self) -> Iterable[Remark]:
        """Return the problems and notes that checks of the user's own text find."""
        return ()

    def train_tokenizers(self, lines: Lines) -> Tokenizers:
        """Train the tokenizers of both sides on the clean training text, or take those of ``tokenizer_from``."""
        existing = tokenizers_of_model(self.config)
        if existing is not None:
            self.require_fit(existing)
            return existing
        train = tokenizer_trainer(self.config)
        if self.config.shared_vocabulary:
            shared = train(lines(0, 1))
            return Tokenizers(shared, shared)
        return Tokenizers(train(lines(0)), train(lines(1)))

    def further_parts(self) -> dict[str, tuple[Split, Source[Pair]]]:
        """Return the dev sets of ``also_dev``. Raises ConfigError or DataError if there are none."""
        parts = dict[str, tuple[Split, Source[Pair]]]()
        for corpus in self.config.also_dev:
            if not self.source.has("dev"):
                raise ConfigError("data.also_dev needs a first dev text, which decides which checkpoint is the best")
            other = self.make_source(self.config.for_dev_of(corpus))
            if not other.has("dev"):
                raise DataError(f"data.also_dev names {corpus}, which has no dev text; name corpora that have")
            parts[also_dev_name(corpus)] = "dev", other
        return parts

    def write_text(self, path: Path, split: Split, source: Source[Pair]) -> None:
        """Write dev or test unchanged: scores use the original text, not the tokenizer's version of it."""
        pairs = list(source.of(split))
        if not any(src.strip() for src, _ in pairs):
            name = source.name_of(split)
            raise DataError(f"{split} text {name} has no line to translate; omit it, or use another")
        for side, ending in enumerate(("src", "tgt")):
            write_lines(path.with_name(f"{path.name}.{ending}"), (pair[side] for pair in pairs))

    def make_tokenizers(self) -> Tokenizers:
        """Train the tokenizers. Raises DataError, with the cleaning report, if too little training text is left."""
        for each in self.remarks():
            self.log(f"warning: {each}")
        source = self.source

        def lines(*sides: int) -> Iterator[str]:
            for corpus in source.corpora:
                for pair in source.train(corpus):
                    texts = self.texts(pair)
                    yield from (normalise(texts[side]) for side in sides)

        try:
            tokenizers = self.train_tokenizers(lines)
            if not source.reports:  # the vocabulary of another model
                deque(lines(0), maxlen=0)  # counts what cleaning drops
        except DataError as error:
            if any(report.n_kept for report in self._reports.values()):
                raise
            cleaning = "; ".join(f"{corpus}: {', '.join(report.lines())}" for corpus, report in self._reports.items())
            raise DataError(f"no training pair can be used: {cleaning}") from error
        found = (remark_on_dropped(corpus, report, self.config) for corpus, report in self._reports.items())
        for remark in filter(None, found):
            if remark.status == "problem":
                raise DataError(str(remark))
            self.log(f"warning: {remark}")
        return tokenizers

    @property
    def _reports(self) -> dict[str, CleaningReport]:
        return {corpus: each for corpus, each in self.source.reports.items() if isinstance(each, CleaningReport)}

    def sampling(self) -> PairSampling | None:
        """Return how several encodings of the training pairs are drawn, or None if there is one of each."""
        config = self.config
        if not config.bpe_dropout:
            return None
        return PairSampling(p_drop=config.bpe_dropout, n_encodings=config.n_encodings, seed=config.corpus_seed)

    def write_store(self, folder: Path, items_of: Mapping[str, Iterable[Pair]]) -> StoreSummary:
        """Encode the pairs; those of training in several processes, with samples if that is configured."""
        is_training = self.split == "train"
        return write_pairs(
            folder,
            items_of,
            self.tokenizers,
            max_length=self.config.max_length,
            sampling=self.sampling() if is_training else None,
            n_workers=self.n_workers if is_training else 1,
        )


class PairTask(Task[Batch]):
    """A sequence-to-sequence task with an encoder-decoder. Sections 3.1 and 5."""

    settings: ClassVar[type[DataConfig]] = ParallelData
    system: ClassVar[type[ModelConfig]] = EncoderDecoderConfig
    validation: ClassVar[type[PairValidation]]

    def examine(self, data: DataConfig, recipe: Path, data_folder: Path | None) -> Iterator[Finding]:
        """Examine the parallel text."""
        return examine_pairs_of(data, recipe, data_folder)

    def open_store(self, folder: Path, tokenizers: Tokenizers) -> PairStore:
        """Open a store of a prepared folder. Raises DataError if it cannot be used."""
        return open_pairs(folder, tokenizers)

    def remarks_on_search(self, folder: Path, search: SearchConfig) -> Iterator[str]:
        """Return how many training targets are longer than the search lets outputs be, which are then cut off."""
        n_rows, limit = read_summary(folder / "train").n_rows, search.max_extra_tokens
        n_longer, largest = excess_of_targets(folder / "train", limit)
        if n_longer:
            start = "warning: " if n_longer > MANY_LONGER * n_rows else ""
            yield (
                f"{start}{n_longer:,} of {n_rows:,} training targets have over {limit:,} tokens more than their source,"
                f" up to {largest:,}; outputs end there: to write such ones, set search.max_extra_tokens = {largest}"
            )

    def text_files(self, split: Split) -> tuple[str, str]:
        """Return the names of the source and target files, aligned by line."""
        return f"{split}.src", f"{split}.tgt"

    def batches(self, store: Store, config: RunConfig, device: torch.device) -> PairBatches:
        """Return batches of pairs of approximately equal length under a token budget. Section 5.1."""
        assert isinstance(store, PairStore)
        bidirectional_epochs = config.training.bidirectional_epochs
        return PairBatches(store, bidirectional_epochs=bidirectional_epochs, **self.batch_options(config, device))

    def objective(self, model: nn.Module, config: RunConfig) -> Objective[Batch]:
        """Return the label-smoothed cross-entropy of the target given the source. Section 5.4."""
        assert isinstance(model, EncoderDecoder)
        return PairObjective(model, config.training)

    def validator(
        self, model: Callable[[], nn.Module], prepared: Prepared, config: RunConfig, **on: Unpack[Processes]
    ) -> PairValidation | MultiValidation | None:
        """Return the validation: perplexity of the dev set and a score of the outputs; of further dev sets, too."""
        text = prepared.text("dev")
        if prepared.dev is None or text is None:
            return None

        def validation(store: Store, text: tuple[list[str], list[str]]) -> PairValidation:
            return self.validation(model, prepared.tokenizers, store, text, config, masks=prepared.masks, **on)

        first = validation(prepared.dev, text)
        others = {name: validation(store, prepared.also_dev_text(name)) for name, store in prepared.also_dev.items()}
        return MultiValidation(first, others) if others else first

    def validated_scores(self, config: RunConfig) -> tuple[str, ...]:
        """Return the names of the scores of a validation, those of further dev sets included."""
        scores = (self.validation.score,) if config.training.validation_bleu else ()
        further = config.data.also_dev if isinstance(config.data, PairsData) else ()
        also = (f"{name}_{score}" for name in further for score in ("perplexity", *scores))
        return *scores, *also, *((MultiValidation.OF_ALL,) if further else ())

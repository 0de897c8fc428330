"""The base of tasks on text pairs: preparation, batches, objective, validation."""

from __future__ import annotations

from abc import abstractmethod
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import chain
from pathlib import Path
from typing import ClassVar, cast

import torch
from torch import nn

from transduce.config import DataConfig, RunConfig, SearchConfig, Split
from transduce.corpora import CleaningReport, PairedText
from transduce.corpora.checks import Remark, remark_on_dropped
from transduce.data import (
    Batch,
    PairBatches,
    PairDropout,
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
from transduce.tasks.preparation import EVALUATION_SPLITS, Prepared, also_dev_name, new_prepared
from transduce.tasks.task import Task
from transduce.tasks.validation import MultiValidation, PairValidation
from transduce.text import Tokenizers, normalise
from transduce.training import DistributedContext

__all__ = ["PairTask"]

MANY_LONGER = 0.001  # of the training targets; fewer may be faults of the text

Pair = tuple[str, str]
Lines = Callable[..., Iterator[str]]  # called with sides (0 source, 1 target), yields their lines


class PairTask(Task[Batch]):
    """A sequence-to-sequence task with an encoder-decoder. Sections 3.1 and 5."""

    validation: ClassVar[type[PairValidation]]

    @abstractmethod
    def text(self, config: DataConfig, data_folder: Path | None) -> PairedText:
        """Return the text that a configuration names. Raises ConfigError or DataError if it is missing."""

    @abstractmethod
    def train_tokenizers(self, lines: Lines, config: DataConfig) -> Tokenizers:
        """Train the tokenizers of both sides on the clean training text, or take those of ``tokenizer_from``."""

    def training_pairs(self, pairs: Iterable[Pair], config: DataConfig, masks: MaskCounts) -> Iterable[Pair]:
        """Transform the clean pairs of a corpus into training pairs; ``masks`` counts what they have."""
        return pairs

    def dev_pairs(self, pairs: Iterable[Pair], config: DataConfig) -> Iterable[Pair]:
        """Transform the dev pairs for validation."""
        return pairs

    def tokenizer_pair(self, src: str, tgt: str, config: DataConfig) -> Pair:
        """Transform a clean pair for tokenizer training."""
        return src, tgt

    def remarks(self, config: DataConfig) -> Iterable[Remark]:
        """Return the problems and notes that checks of the user's own text find."""
        return ()

    def prepare(
        self,
        config: DataConfig,
        folder: Path,
        *,
        data_folder: Path | None,
        log: Callable[[str], None],
        n_workers: int = 1,
    ) -> None:
        """Train the tokenizers on the training text, and encode train and dev. Section 5.1."""
        text = self.text(config, data_folder)
        names = {split: text.name_of(split) for split in EVALUATION_SPLITS if text.has(split)}
        reports, masks = _new_reports(text), MaskCounts(config.src_language, config.tgt_language)
        with new_prepared(config, folder, names, reports, masks) as temporary:
            if config.also_dev and not text.has("dev"):
                raise ConfigError("data.also_dev needs a first dev text, which decides which checkpoint is the best")
            more = {name: self.text(config.for_dev_of(name), data_folder) for name in config.also_dev}
            for split in filter(text.has, EVALUATION_SPLITS):  # first: an error is reported before hours of work
                self._write_text(text, split, temporary / str(split))
            for name, other in more.items():
                if not other.has("dev"):
                    raise DataError(f"data.also_dev names {name}, which has no dev text; name corpora that have")
                self._write_text(other, "dev", temporary / also_dev_name(name))
            for remark in self.remarks(config):
                log(f"warning: {remark}")
            tokenizers = self._tokenizers(text, log)
            log(_describe_tokenizers(tokenizers, config))
            tokenizers.save(temporary)
            pairs_of = {
                corpus: chain(
                    self.training_pairs(text.clean_train_pairs(corpus, report), config, masks),
                    text.augmented_train_pairs(corpus),
                )
                for corpus, report in reports.items()
            }
            encode = partial(write_pairs, tokenizers=tokenizers, max_length=config.max_length)
            train = encode(temporary / "train", pairs_of, dropout=_dropout(config), n_workers=n_workers)
            for corpus, report in reports.items():
                for line in report.lines():
                    log(f"{corpus}: {line}")
            for line in masks.lines():
                log(line)
            log(_describe_store("train", train))
            if text.has("dev"):
                dev_pairs = {"dev": self.dev_pairs(text.pairs("dev"), config)}
                dev = encode(temporary / "dev", dev_pairs)
                log(_describe_store("dev", dev))
            for name, other in more.items():
                dev_pairs = {"dev": self.dev_pairs(other.pairs("dev"), config)}
                log(f"{name} {_describe_store('dev', encode(temporary / also_dev_name(name), dev_pairs))}")

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
        training = config.training
        return PairBatches(
            cast(PairStore, store),
            max_tokens=training.max_tokens_per_batch,
            seed=training.seed,
            device=device,
            weights=config.data.weights,
            bidirectional_epochs=training.both_ways_epochs,
        )

    def objective(self, model: nn.Module, config: RunConfig) -> PairObjective:
        """Return the label-smoothed cross-entropy of the target given the source. Section 5.4."""
        return PairObjective(cast(EncoderDecoder, model), config.training)

    def validator(
        self,
        model: Callable[[], nn.Module],
        prepared: Prepared,
        config: RunConfig,
        *,
        device: torch.device,
        distributed: DistributedContext | None = None,
    ) -> PairValidation | MultiValidation | None:
        """Return the validation: perplexity of the dev set and a score of the outputs; of further dev sets, too."""
        text, get_model = prepared.text("dev"), cast(Callable[[], EncoderDecoder], model)
        if prepared.dev is None or text is None:
            return None

        def validation(store: Store, text: tuple[list[str], list[str]]) -> PairValidation:
            store, tokenizers = cast(PairStore, store), prepared.tokenizers
            return self.validation(
                get_model, tokenizers, store, text, config, device=device, distributed=distributed, masks=prepared.masks
            )

        first = validation(prepared.dev, text)
        others = {name: validation(store, prepared.also_dev_text(name)) for name, store in prepared.also_dev.items()}
        return MultiValidation(first, others) if others else first

    def validated_scores(self, config: RunConfig) -> tuple[str, ...]:
        """Return the names of the scores of a validation, those of further dev sets included."""
        scores = (self.validation.score,) if config.training.validation_bleu else ()
        also = (f"{name}_{score}" for name in config.data.also_dev for score in ("perplexity", *scores))
        return *scores, *also

    def _tokenizers(self, text: PairedText, log: Callable[[str], None]) -> Tokenizers:
        """Train the tokenizers. Raises DataError, with the cleaning report, if too little training text is left."""
        reports = _new_reports(text)

        def lines(*sides: int) -> Iterator[str]:
            """Yield the clean, normalised training lines of some sides; only passes with the source are counted."""
            for corpus, report in reports.items():
                for pair in text.clean_train_pairs(corpus, report if 0 in sides else CleaningReport()):
                    transformed = self.tokenizer_pair(*pair, text.config)
                    for side in sides:
                        yield normalise(transformed[side])

        try:
            tokenizers = self.train_tokenizers(lines, text.config)
            if not any(report.n_read for report in reports.values()):  # the vocabulary of another model
                deque(lines(0), maxlen=0)  # counts what cleaning drops
        except DataError as error:
            if any(report.n_kept for report in reports.values()):
                raise
            cleaning = "; ".join(f"{corpus}: {', '.join(report.lines())}" for corpus, report in reports.items())
            raise DataError(f"no training pair can be used: {cleaning}") from error
        for remark in filter(None, (remark_on_dropped(name, each, text.config) for name, each in reports.items())):
            if remark.status == "problem":
                raise DataError(str(remark))
            log(f"warning: {remark}")
        return tokenizers

    def _write_text(self, text: PairedText, split: Split, path: Path) -> None:
        """Write dev or test unchanged, as ``path`` and the sides' endings.

        Scores use the original text, not the tokenizer's version of it.
        """
        pairs = list(text.pairs(split))
        if not any(src.strip() for src, _ in pairs):
            name = text.name_of(split)
            raise DataError(f"{split} text {name} has no line to translate; omit it, or use another")
        for side, ending in enumerate(("src", "tgt")):
            write_lines(path.with_name(f"{path.name}.{ending}"), (pair[side] for pair in pairs))


def _new_reports(text: PairedText) -> dict[str, CleaningReport]:
    return {corpus: CleaningReport() for corpus in text.corpora}


def _dropout(config: DataConfig) -> PairDropout | None:
    if not config.bpe_dropout:
        return None
    return PairDropout(p_drop=config.bpe_dropout, n_encodings=config.n_encodings, seed=config.corpus_seed)


def _describe_tokenizers(tokenizers: Tokenizers, config: DataConfig) -> str:
    src, tgt = tokenizers.src, tokenizers.tgt
    sizes = f"{src.size:,}" if tokenizers.is_shared else f"{src.size:,} and {tgt.size:,}"
    is_small = min(each.size for each in (src, tgt) if not each.is_closed) < config.vocab_size
    enough = "twice" if config.min_pair_count in (None, 2) else f"{config.min_pair_count:,} times"
    if config.tokenizer_from is not None:
        return f"tokenizer: {sizes} tokens, of {config.tokenizer_from}"
    why = f" (not {config.vocab_size:,}: no other pair occurs {enough})" if is_small else ""
    return f"tokenizer: {sizes} tokens{why}"


def _describe_store(split: Split, summary: StoreSummary) -> str:
    parts = [f"{split}: {summary.n_pairs:,} pairs"]
    if len(summary.n_pairs_of) > 1:
        parts.append(f" ({', '.join(f'{corpus} {n_pairs:,}' for corpus, n_pairs in summary.n_pairs_of.items())})")
    if summary.n_encodings > 1:
        parts.append(f" in {summary.n_encodings:,} encodings each")
    if left_out := summary.n_empty + summary.n_too_long:
        parts.append(f", {left_out:,} left out ({summary.n_empty:,} empty, {summary.n_too_long:,} too long)")
    return "".join(parts)

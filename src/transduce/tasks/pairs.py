"""What tasks have in common whose data are pairs of texts: preparation, batches, objective, validation."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import chain
from pathlib import Path
from typing import ClassVar, assert_never, cast

import torch
from torch import nn

from transduce.config import DataConfig, RunConfig, Split, TrainingConfig
from transduce.corpora import CleaningReport, PairedText
from transduce.corpora.checks import Remark, remark_on_dropped
from transduce.data import Batch, PairBatches, PairDropout, PairStore, Store, StoreSummary, open_pairs, write_pairs
from transduce.errors import DataError
from transduce.files import write_lines
from transduce.model import EncoderDecoder
from transduce.tasks.objective import PairObjective
from transduce.tasks.preparation import EVALUATED, Prepared, new_prepared
from transduce.tasks.task import Task
from transduce.tasks.validation import PairValidation
from transduce.text import Tokenizer, Tokenizers, normalise, train_bpe, train_wordpiece
from transduce.training import DistributedContext

__all__ = ["PairTask", "tokenizer_trainer"]

Pair = tuple[str, str]
Lines = Callable[..., Iterator[str]]  # of the sides that are named: 0 is the source, 1 the target


class PairTask(Task[Batch]):
    """Texts to texts: an encoder-decoder learns to say the one, given the other. Sections 3.1 and 5."""

    validation: ClassVar[type[PairValidation]]  # what is looked at on the way

    @abstractmethod
    def text(self, config: DataConfig, data_folder: Path | None) -> PairedText:
        """The text that a configuration names. Raises ConfigError or DataError if it is not there."""

    @abstractmethod
    def learn_tokenizers(self, lines: Lines, config: DataConfig) -> Tokenizers:
        """Those of the two sides, from the clean training text."""

    def training_pairs(self, pairs: Iterable[Pair], config: DataConfig) -> Iterable[Pair]:
        """What the model learns from, made of the clean pairs of a corpus."""
        return pairs

    def dev_pairs(self, pairs: Iterable[Pair], config: DataConfig) -> Iterable[Pair]:
        """What the model is looked at with."""
        return pairs

    def tokenizer_pair(self, src: str, tgt: str, config: DataConfig) -> Pair:
        """What tokenizers learn from, of a training pair."""
        return src, tgt

    def remarks(self, config: DataConfig) -> Iterable[Remark]:
        """What is odd about the text that somebody brings."""
        return ()

    def prepare(
        self, config: DataConfig, folder: Path, *, data_folder: Path | None, log: Callable[[str], None]
    ) -> None:
        """Train the tokenizers on the training text, and encode train and dev. Section 5.1."""
        text = self.text(config, data_folder)
        names = {split: text.name_of(split) for split in EVALUATED if text.has(split)}
        reports = _new_reports(text)
        with new_prepared(config, folder, names, reports) as place:
            for split in filter(text.has, EVALUATED):  # first: what is wrong there should not be found after hours
                self._write_text(text, split, place)
            for remark in self.remarks(config):
                log(f"warning: {remark}")
            tokenizers = self._tokenizers(text, log)
            log(_sentence_about_tokenizers(tokenizers, config))
            tokenizers.save(place)
            of_corpora = {
                corpus: chain(
                    self.training_pairs(text.clean_train_pairs(corpus, report), config),
                    text.augmented_train_pairs(corpus),
                )
                for corpus, report in reports.items()
            }
            dropout, longest = _dropout(config, tokenizers), config.max_length
            train = write_pairs(place / "train", of_corpora, tokenizers, max_length=longest, dropout=dropout)
            for corpus, report in reports.items():
                for line in report.lines():
                    log(f"{corpus}: {line}")
            log(_sentence("train", train))
            if text.has("dev"):
                dev_pairs = {"dev": self.dev_pairs(text.pairs("dev"), config)}
                dev = write_pairs(place / "dev", dev_pairs, tokenizers, max_length=longest)
                log(_sentence("dev", dev))

    def open_store(self, folder: Path, tokenizers: Tokenizers) -> PairStore:
        """One of the stores of a prepared folder. Raises DataError if it cannot be used."""
        return open_pairs(folder, tokenizers)

    def text_files(self, split: Split) -> tuple[str, str]:
        """Source and target, line by line."""
        return f"{split}.src", f"{split}.tgt"

    def batches(self, store: Store, config: RunConfig, device: torch.device) -> PairBatches:
        """Pairs of about equal lengths, under a token budget. Section 5.1."""
        training = config.training
        return PairBatches(
            cast(PairStore, store),
            max_tokens=training.max_tokens_per_batch,
            seed=training.seed,
            device=device,
            weights=config.data.weights,
            both_ways_epochs=training.both_ways_epochs,
        )

    def objective(self, model: nn.Module, config: TrainingConfig) -> PairObjective:
        """Label-smoothed cross-entropy of the target given the source. Section 5.4."""
        return PairObjective(cast(EncoderDecoder, model), config)

    def validator(
        self,
        model: Callable[[], nn.Module],
        prepared: Prepared,
        config: RunConfig,
        *,
        device: torch.device,
        distributed: DistributedContext | None = None,
    ) -> PairValidation | None:
        """Perplexity of the dev set, and a score of what is written for it."""
        text, own = prepared.text("dev"), cast(Callable[[], EncoderDecoder], model)
        if prepared.dev is None or text is None:
            return None
        dev = cast(PairStore, prepared.dev)
        return self.validation(own, prepared.tokenizers, dev, text, config, device=device, distributed=distributed)

    def _tokenizers(self, text: PairedText, log: Callable[[str], None]) -> Tokenizers:
        """Raises DataError, with what the cleaning has found, if it leaves no text to learn from, or too little."""
        reports = _new_reports(text)

        def lines(*sides: int) -> Iterator[str]:
            """The training text of one side or both, clean and normalised; counted where the source is read."""
            for corpus, report in reports.items():
                for pair in text.clean_train_pairs(corpus, report if 0 in sides else CleaningReport()):
                    told = self.tokenizer_pair(*pair, text.config)
                    for side in sides:
                        yield normalise(told[side])

        try:
            tokenizers = self.learn_tokenizers(lines, text.config)
        except DataError as error:
            if any(report.n_kept for report in reports.values()):
                raise
            found = "; ".join(f"{corpus}: {', '.join(report.lines())}" for corpus, report in reports.items())
            raise DataError(f"no training pair can be used: {found}") from error
        for remark in filter(None, (remark_on_dropped(name, each, text.config) for name, each in reports.items())):
            if remark.status == "problem":
                raise DataError(str(remark))
            log(f"warning: {remark}")
        return tokenizers

    def _write_text(self, text: PairedText, split: Split, folder: Path) -> None:
        """Write dev or test as it came: scores are of the text itself, not of what the tokenizer makes of it."""
        pairs = list(text.pairs(split))
        if not any(src.strip() for src, _ in pairs):
            name = text.name_of(split)
            raise DataError(f"{split} text {name} has no line to translate; leave it out, or name another")
        for side, name in enumerate(self.text_files(split)):
            write_lines(folder / name, (pair[side] for pair in pairs))


def tokenizer_trainer(config: DataConfig) -> Callable[[Iterable[str]], Tokenizer]:
    """How a tokenizer of text is learned, of the kind and size that a configuration names. Section 5.1."""
    match config.tokenizer:
        case "bpe":
            return partial(train_bpe, vocab_size=config.vocab_size, masks=config.masks)
        case "wordpiece":
            return partial(train_wordpiece, vocab_size=config.vocab_size, masks=config.masks)
        case _:
            assert_never(config.tokenizer)


def _new_reports(text: PairedText) -> dict[str, CleaningReport]:
    return {corpus: CleaningReport() for corpus in text.corpora}


def _dropout(config: DataConfig, tokenizers: Tokenizers) -> PairDropout | None:
    if not config.bpe_dropout:
        return None
    return PairDropout(tokenizers, p_drop=config.bpe_dropout, n_encodings=config.n_encodings, seed=config.corpus_seed)


def _sentence_about_tokenizers(tokenizers: Tokenizers, config: DataConfig) -> str:
    src, tgt = tokenizers.src, tokenizers.tgt
    sizes = f"{src.size:,}" if tokenizers.is_shared else f"{src.size:,} and {tgt.size:,}"
    is_small = min(each.size for each in (src, tgt) if not each.is_closed) < config.vocab_size
    why = f" ({config.vocab_size:,} were asked for, but no other pair occurs twice)" if is_small else ""
    return f"tokenizer: {sizes} symbols{why}"


def _sentence(split: Split, summary: StoreSummary) -> str:
    """What a store has come to, for people."""
    parts = [f"{split}: {summary.n_pairs:,} pairs"]
    if len(summary.n_pairs_of) > 1:
        parts.append(f" ({', '.join(f'{corpus} {n_pairs:,}' for corpus, n_pairs in summary.n_pairs_of.items())})")
    if summary.n_encodings > 1:
        parts.append(f" in {summary.n_encodings:,} encodings each")
    if left_out := summary.n_empty + summary.n_too_long:
        parts.append(f", {left_out:,} left out ({summary.n_empty:,} empty, {summary.n_too_long:,} too long)")
    return "".join(parts)

"""Writing a prepared folder: texts of dev and test, tokenizers, and a store for each split.

``Preparation.write`` is the same for all tasks. A task with items of its own names their source, the columns of its
store, and the rows of an item.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypedDict, TypeVar, Unpack

from transduce.config import DataConfig, Split
from transduce.corpora import Source
from transduce.data import ColumnKind, LeftOut, StoreSummary, write_store
from transduce.errors import ConfigError
from transduce.inference.translation.mask_statistics import MaskCounts
from transduce.tasks.prepared import EVALUATION_SPLITS, Prepared, new_prepared, open_prepared
from transduce.tasks.registry import task_named
from transduce.tasks.tokenizers import tokenizer_trainer, tokenizers_of_model
from transduce.text import LANGUAGE_MODEL_TOKENS, Tokenizer, Tokenizers, normalise
from transduce.text.alphabet import max_token_characters
from transduce.text.documents import DocumentCodec

if TYPE_CHECKING:
    from transduce.tasks.task import Task

__all__ = ["DataT", "Preparation", "Row", "prepare", "write_prepared"]

Item = TypeVar("Item")
DataT = TypeVar("DataT", bound=DataConfig)
Row = Mapping[str, Any]  # the ids or vectors of each column


class PreparationOptions(TypedDict, total=False):
    """How text is prepared."""

    data_folder: Path | None  # searched first for corpora
    log: Callable[[str], None]  # receives a line about each step
    n_workers: int  # processes that encode the text; the files are the same for every number


def prepare(config: DataConfig, folder: Path, **options: Unpack[PreparationOptions]) -> Prepared:
    """Prepare a task's text in ``folder``: tokenizers, and the stores of train and dev. Section 5.1.

    Raises DataError if the text cannot be used, ConfigError for an unknown text or task.
    """
    write_prepared(config, folder, **options)
    return open_prepared(folder)


def write_prepared(config: DataConfig, folder: Path, **options: Unpack[PreparationOptions]) -> None:
    """Do what ``prepare`` does without opening the stores, which takes memory for each row."""
    task = task_named(config.task)
    task.preparation(task, config, **options).write(folder)


class Preparation(ABC, Generic[Item, DataT]):
    """One preparation of a task's text.

    ``rows`` may read ``tokenizers`` and ``split``, and counts in ``left_out`` what has no row.
    """

    stored: ClassVar[tuple[Split, ...]] = EVALUATION_SPLITS  # those of dev and test that have a store
    extra_tokens: ClassVar[Sequence[str]] = ()  # the last ids of the vocabulary
    masks: MaskCounts | None = None  # what training items have, if it is counted
    source: Source[Item]
    tokenizers: Tokenizers
    split: Split
    left_out: LeftOut

    def __init__(
        self,
        task: Task[Any],
        config: DataT,
        *,
        data_folder: Path | None = None,
        log: Callable[[str], None] = lambda line: None,
        n_workers: int = 1,
    ) -> None:
        """See ``prepare``."""
        self.task, self.config, self.data_folder, self.log, self.n_workers = task, config, data_folder, log, n_workers

    @cached_property
    def codec(self) -> DocumentCodec:
        """Documents as ids of the one tokenizer."""
        return DocumentCodec(self.tokenizers.src)

    @abstractmethod
    def make_source(self, config: DataT) -> Source[Item]:
        """Return the items that a configuration names. Raises ConfigError or DataError if they are missing."""

    def columns(self) -> Mapping[str, ColumnKind]:
        """Return the columns of a store."""
        raise NotImplementedError

    def rows(self, item: Item) -> Iterator[Row]:
        """Yield the rows of an item."""
        raise NotImplementedError

    @property
    def max_length(self) -> int | None:
        """The bound on the ids of a row of ``split``, EOS included, that rows keep to, if the store should have one."""
        return None

    def texts(self, item: Item) -> Iterable[str]:
        """Return the texts of an item that tokenizers are trained on."""
        raise NotImplementedError

    def write(self, folder: Path) -> None:
        """Write the prepared folder."""
        self.source = source = self.make_source(self.config)
        names = {split: name for split in EVALUATION_SPLITS if (name := source.name_of(split))}
        with new_prepared(self.config, folder, names, source.reports, self.masks) as place:
            parts = {str(split): (split, source) for split in names} | self.further_parts()
            for name, (split, of) in parts.items():  # first: an error is reported before hours of work
                self.write_text(place / name, split, of)
            self.tokenizers = self.make_tokenizers()
            self.tokenizers.save(place)
            self.log(_of_tokenizers(self.tokenizers, self.config))
            for name, (self.split, of) in parts.items():
                if self.split in self.stored:
                    self._write_store(place / name, {str(self.split): self.evaluation_items(self.split, of)})
            self.split = "train"
            self._write_store(place / "train", {corpus: self.training_items(corpus) for corpus in source.corpora})
            for corpus, report in source.reports.items():
                for line in report.lines():
                    self.log(f"{corpus}: {line}")
            for line in self.masks.lines() if self.masks is not None else ():
                self.log(line)

    def further_parts(self) -> dict[str, tuple[Split, Source[Item]]]:
        """Return further evaluation texts by their names in the folder."""
        return {}

    def write_text(self, path: Path, split: Split, source: Source[Item]) -> None:
        """Write the text of dev or test, as ``path`` with some endings, if the task keeps it (``Task.text_files``)."""

    def training_items(self, corpus: str) -> Iterable[Item]:
        """Return the items of a corpus to train on."""
        return self.source.train(corpus)

    def evaluation_items(self, split: Split, source: Source[Item]) -> Iterable[Item]:
        """Return the items of dev or test that are stored."""
        return source.of(split)

    def make_tokenizers(self) -> Tokenizers:
        """Train one tokenizer on the training text, or take that of the model to start from. Section 5.1.

        Raises ConfigError if that does not fit.
        """
        existing = tokenizers_of_model(self.config)
        if existing is not None:
            self.require_fit(existing)
        train = tokenizer_trainer(self.config, extra_tokens=self.extra_tokens)
        tokenizer = train(map(normalise, self.training_texts())) if existing is None else existing.tgt
        return Tokenizers(tokenizer, tokenizer)

    def require_fit(self, existing: Tokenizers) -> None:
        """Raise ConfigError if the tokenizers of another model do not fit, as those without ``extra_tokens``."""
        if self.extra_tokens == LANGUAGE_MODEL_TOKENS and not existing.src.mask_and_sentinel_ids:
            raise ConfigError(
                f"the vocabulary of {self.config.tokenizer_from} has no mask token and no sentinels; only language"
                " models have them, so start from one"
            )

    def training_texts(self) -> Iterator[str]:
        """Yield the texts that the tokenizer is trained on."""
        items = chain.from_iterable(map(self.source.train, self.source.corpora))
        return chain.from_iterable(map(self.texts, items))

    def write_store(self, folder: Path, items_of: Mapping[str, Iterable[Item]]) -> StoreSummary:
        """Write a store of the rows of each corpus' items. Raises DataError if there are none."""
        rows_of = {corpus: chain.from_iterable(map(self.rows, items)) for corpus, items in items_of.items()}
        return write_store(
            folder, rows_of, self.columns(), tokenizer_fingerprint=self.tokenizers.fingerprint,
            max_length=self.max_length, left_out=self.left_out,
        )  # fmt: skip

    def _write_store(self, folder: Path, items_of: Mapping[str, Iterable[Item]]) -> None:
        self.left_out = LeftOut()
        self.log(f"{folder.name}: {self.describe(self.write_store(folder, items_of))}")

    def describe(self, summary: StoreSummary) -> str:
        """Return what a store has, in words."""
        parts = [f"{summary.n_examples:,} {self.task.example_noun}"]
        if len(summary.n_examples_of) > 1:
            parts.append(f" ({', '.join(f'{corpus} {n:,}' for corpus, n in summary.n_examples_of.items())})")
        if summary.n_encodings > 1:
            parts.append(f" in {summary.n_encodings:,} encodings each")
        if left_out := summary.n_empty + summary.n_too_long:
            parts.append(f", {left_out:,} left out ({summary.n_empty:,} empty, {summary.n_too_long:,} too long)")
        return "".join(parts)


def _of_tokenizers(tokenizers: Tokenizers, config: DataConfig) -> str:
    src, tgt = tokenizers.src, tokenizers.tgt
    sizes = f"{src.size:,}" if tokenizers.is_shared else f"{src.size:,} and {tgt.size:,}"
    if config.tokenizer_from is not None:
        return f"tokenizer: {sizes} tokens, of {config.tokenizer_from}"
    learned = [each.size for each in (src, tgt) if not each.is_closed]
    is_small = config.tokenizer in ("bpe", "wordpiece") and min(learned, default=config.vocab_size) < config.vocab_size
    enough = "twice" if config.min_pair_count in (None, 2) else f"{config.min_pair_count:,} times"
    why = f" (not {config.vocab_size:,}: no other pair occurs {enough})" if is_small else ""
    if config.alphabet == "characters" and any(_is_full_of_characters(each, config) for each in (src, tgt)):
        why = f" (none is longer than a character: vocab_size = {config.vocab_size:,} has no room; raise it)"
    return f"tokenizer: {sizes} tokens{why}"


def _is_full_of_characters(tokenizer: Tokenizer, config: DataConfig) -> bool:
    """Whether the characters of the text take so much of a subword vocabulary that nothing could be merged."""
    if config.tokenizer not in ("bpe", "wordpiece") or tokenizer.is_closed or tokenizer.size <= config.vocab_size - 3:
        return False  # there was room: a character takes three merges at most
    return max_token_characters(tokenizer.vocabulary) <= 1

"""Data settings of text pairs: translations, and sentences with their trees."""

from __future__ import annotations

from typing import Annotated, Self

from pydantic import Field, model_validator

from transduce.config.data import SPLITS, CorpusName, DataConfig, Pairs, Split
from transduce.config.record import FROM_LIST, ClosedFraction, Count, FileName, Fraction
from transduce.linearisation import Leaves

__all__ = ["PairsData", "ParallelCorpora", "ParallelData", "TreesData"]

Copies = Annotated[int, Field(ge=1, le=1000)]  # per pair or tree
RatioLimit = Annotated[float, Field(ge=1.0, le=10**9)]
CorpusNames = Annotated[tuple[CorpusName, ...], FROM_LIST]


class CleanedData(DataConfig):
    """Cleaning of text that is read line by line."""

    max_pairs: Pairs | None = None  # read only the first pairs or trees of each training corpus
    max_characters: Count = 5000  # cleaning: drop training pairs with a longer side
    drop_duplicates: bool = False  # cleaning: drop repeated pairs


class ParallelCorpora(CleanedData):
    """Parallel text by corpus; own files of dev and test."""

    # A folder that is searched for corpora, too: after --data, before TRANSDUCE_DATA. A corpus is a folder in it.
    folder: FileName | None = None
    dev_src: FileName | None = None  # as train_src, for validation; default: the first corpus that has dev
    dev_tgt: FileName | None = None  # as train_tgt, for validation
    dev_tsv: FileName | None = None  # as train_tsv, for validation
    test_src: FileName | None = None  # as train_src, for the final evaluation; default: the first corpus that has test
    test_tgt: FileName | None = None  # as train_tgt, for the final evaluation
    test_tsv: FileName | None = None  # as train_tsv, for the final evaluation
    max_length_ratio: RatioLimit = 9.0  # cleaning: drop pairs with a larger length ratio
    drop_identical: bool = True  # cleaning: drop pairs whose sides are identical

    def files_of(self, split: Split) -> tuple[str | None, str | None, str | None]:
        """Return the configured files of a split: source, target, and one file with both."""
        src, tgt, tsv = (getattr(self, f"{split}_{what}", None) for what in ("src", "tgt", "tsv"))
        return src, tgt, tsv

    @model_validator(mode="after")
    def _files_are_named(self) -> Self:
        for split in SPLITS:
            src, tgt, tsv = self.files_of(split)
            if (src is None) != (tgt is None):
                raise ValueError(f"{split}_src and {split}_tgt must be given together; only one is given")
            if src is not None and tsv is not None:
                raise ValueError(f"{split}_tsv excludes {split}_src and {split}_tgt")
        return self._with_corpus_of_files()


class PairsData(CleanedData):
    """What all tasks on pairs read."""

    # Further corpora whose dev sets are scored in each validation; they do not decide which checkpoint is the best.
    also_dev: CorpusNames = ()
    bpe_dropout: Fraction = 0.0  # probability of skipping a merge in training text (Provilkov et al., 2020)
    n_encodings: Copies = 8  # with bpe_dropout or terms: sampled encodings per pair; each epoch reads the next one
    max_dropped_share: ClosedFraction = 0.3  # cleaning: an error if a larger fraction of a corpus is dropped
    max_length: Count = 256  # longer pairs are dropped from training and dev; tokens of either side, EOS included

    def for_dev_of(self, corpus: str) -> Self:
        """Return the configuration that reads the dev set of another corpus, of ``also_dev``."""
        own = [name for name, value in self for split in SPLITS if name.startswith(f"{split}_") and value is not None]
        return self.model_copy(update={"corpus": corpus, "also_dev": (), **dict.fromkeys(own)})

    @model_validator(mode="after")
    def _pairs_are_named(self) -> Self:
        if "files" in self.also_dev or len(set(self.also_dev)) != len(self.also_dev):
            raise ValueError(f"also_dev should name corpora other than 'files', each once, got {list(self.also_dev)}")
        if self.bpe_dropout and self.tokenizer != "bpe" and self.tokenizer_from is None:
            raise ValueError(f"bpe_dropout needs tokenizer = 'bpe', got tokenizer = {self.tokenizer!r}")
        return self


class ParallelData(ParallelCorpora, PairsData):
    """Sentences with their translations."""

    train_src: FileName | None = None  # file of source lines (plain, .gz or .xz)
    train_tgt: FileName | None = None  # file of target lines, aligned with train_src
    train_tsv: FileName | None = None  # instead of train_src and train_tgt: one file, source TAB target
    # Replace untranslatable text (URLs, tags, placeholders, numbers with units, emoji) by trained mask tokens.
    masks: bool = False
    # Train the model to use terms: sources have the reference's words beside some of their own, others in each of
    # n_encodings. It then reads the terms of ``--terms`` in the text.
    terms: bool = False

    @model_validator(mode="after")
    def _marks_are_tokens(self) -> Self:
        if self.terms and self.tokenizer not in ("bpe", "wordpiece") and self.tokenizer_from is None:
            raise ValueError(f"terms needs tokenizer = 'bpe' or 'wordpiece', got tokenizer = {self.tokenizer!r}")
        return self


class TreesData(PairsData):
    """Sentences with their trees (section 6.3)."""

    files = "trees"

    # The token of a word is XX ("any"), its tag ("tags"), or XX and its last letters ("endings").
    leaves: Leaves = "any"
    train_trees: FileName | None = None  # with corpus = "files": Penn brackets in any layout
    dev_trees: FileName | None = None  # likewise, for validation
    test_trees: FileName | None = None  # likewise, for the final evaluation
    treebank: FileName | None = None  # with corpus = "wsj": the folder of sections 00 to 24 (--treebank)
    # Subtree substitution: probability of replacing a subtree by one of the same label, in additional trees.
    subtree_substitution: Fraction = 0.0
    n_recombined: Copies = 15  # with subtree_substitution: additional trees per training tree

    @model_validator(mode="after")
    def _vocabularies_are_separate(self) -> Self:
        if self.shared_vocabulary:
            raise ValueError(
                f"task = {self.task!r} needs shared_vocabulary = false: words and brackets share no tokens"
            )
        return self

"""What is found in the documents of language models, and in images of digits."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from pathlib import Path

from transduce.config import SPLITS, DataConfig
from transduce.corpora.digits import DIGITS, DigitText
from transduce.corpora.plain_text import PlainText
from transduce.errors import ConfigError, DataError
from transduce.findings.finding import Finding, counted, good, note, problem

__all__ = ["examine_digits_of", "examine_documents_of"]


def examine_digits_of(data: DataConfig, recipe: Path, data_folder: Path | None) -> Iterator[Finding]:
    """Examine whether the digits are there."""
    try:
        text = DigitText(data)
        for split in SPLITS:
            documents = text.train(DIGITS) if split == "train" else text.of(split)
            yield good(recipe, f"{split}: {counted(sum(1 for _ in documents), 'image')}")
    except ConfigError as error:
        yield problem(recipe, str(error))


def examine_documents_of(data: DataConfig, recipe: Path, data_folder: Path | None) -> Iterator[Finding]:
    """Examine the documents of a language model's recipe: every line is read."""
    try:
        text = PlainText(data, data_folder)
        for split in SPLITS:
            if not text.has(split):
                yield note(recipe, f"no {split} text: set data.{split}_text to score the model on it")
                continue
            sources = [text.train(name) for name in text.corpora]
            documents = chain.from_iterable(sources) if split == "train" else text.of(split)
            sizes = [len(lines) for lines in documents]
            if not sizes:
                yield problem(recipe, f"the {split} text has no lines; give text with words")
            else:
                yield good(recipe, f"{split} text: {len(sizes):,} documents, {sum(sizes):,} lines")
    except (ConfigError, DataError) as error:
        yield problem(recipe, str(error))

"""Plain text of a configuration, by corpus and split: documents for language models."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from transduce.config import SPLITS, DataConfig, DocumentsData, Split, split_direction
from transduce.corpora.catalogue import OWN_FILES
from transduce.corpora.parallel_text import ParallelText, require_text
from transduce.corpora.source import Source
from transduce.errors import ConfigError, DataError
from transduce.files import read_lines

__all__ = ["MAX_DOCUMENT_CHARACTERS", "Document", "PlainText", "documents_of"]

Document = list[str]  # its lines, none of them blank

MAX_DOCUMENT_CHARACTERS = 1 << 20  # a longer document is read as several


class PlainText(Source[Document]):
    """Documents of files and folders, or of one side of parallel corpora.

    In files, blank lines separate documents; in a folder, all files are read, in the order of their paths. A side of a
    corpus is one document.
    """

    def __init__(self, config: DataConfig, data_folder: Path | None = None) -> None:
        """Find all text. Raises ConfigError if the configuration names none, DataError if text is missing."""
        super().__init__(config)
        self.config = config = DocumentsData.of(config)
        languages = split_direction(config.direction)
        self._sides = [side for side, name in enumerate(languages) if config.language in (name, "both")]
        self._files = {split: _files_in(Path(name)) for split in SPLITS if (name := config.file_of(split)) is not None}
        has_corpora = set(config.weights) != {OWN_FILES}
        if has_corpora and not self._sides:
            raise ConfigError(
                f"data.language should be a side of direction = {config.direction!r}, as in"
                f" {config.src_language!r}: a language model reads one side of a corpus"
            )
        if OWN_FILES in config.weights and "train" not in self._files:
            raise ConfigError("corpus = 'files' needs data.train_text, a file or folder of text")
        self._pairs = ParallelText(_of_corpora(config), data_folder) if has_corpora else None

    def train(self, corpus: str) -> Iterator[Document]:
        """Yield the training documents of a corpus in a fixed order."""
        if corpus == OWN_FILES:
            return _documents_of_files(self._files["train"])
        assert self._pairs is not None
        pairs = self._pairs
        return self._documents_of_sides(lambda: pairs.train(corpus))

    def of(self, split: Split) -> Iterator[Document]:
        """Yield the documents of dev or test."""
        if split in self._files:
            return _documents_of_files(self._files[split])
        assert self._pairs is not None
        pairs = self._pairs
        return self._documents_of_sides(lambda: pairs.of(split))

    def name_of(self, split: Split) -> str:
        """Display name of the dev or test text, reported beside scores; "" if there is none."""
        name = self.config.file_of(split)
        if name is not None:
            return name
        return "" if self._pairs is None else self._pairs.name_of(split)

    def _documents_of_sides(self, pairs: Callable[[], Iterable[tuple[str, str]]]) -> Iterator[Document]:
        """Yield the documents of each side that is read; ``pairs`` reads the corpus, once a side."""
        for side in self._sides:
            yield from documents_of(pair[side] for pair in pairs() if pair[side].strip())


def _of_corpora(config: DocumentsData) -> DocumentsData:
    """Return the configuration of the parallel corpora alone."""
    weights = {name: weight for name, weight in config.weights.items() if name != OWN_FILES}
    return config.model_copy(update={"corpus": weights, "train_text": None, "dev_text": None, "test_text": None})


def _files_in(path: Path) -> list[Path]:
    """Return a file, or the files of a folder.

    Raises DataError if there is none, or one cannot be read, such as a link to nothing.
    """
    files = [path]
    if path.is_dir():
        files = sorted(
            each
            for each in path.rglob("*")
            if not each.is_dir() and not any(part.startswith(".") for part in each.relative_to(path).parts)
        )
        if not files:
            raise DataError(f"{path} has no files; give a folder of text files")
    for each in files:
        require_text(each)
    return files


def _documents_of_files(files: Iterable[Path]) -> Iterator[Document]:
    for path in files:
        yield from documents_of(read_lines(path))


def documents_of(lines: Iterable[str]) -> Iterator[Document]:
    """Divide lines into documents at blank lines; a long document is cut.

    >>> list(documents_of(["a", "b", "", " ", "c"]))
    [['a', 'b'], ['c']]
    """
    document, n_characters = Document(), 0
    for line in lines:
        is_blank = not line.strip()
        if document and (is_blank or n_characters > MAX_DOCUMENT_CHARACTERS):
            yield document
            document, n_characters = Document(), 0
        if not is_blank:
            document.append(line)
            n_characters += len(line) + 1
    if document:
        yield document

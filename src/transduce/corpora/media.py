"""Images or audio with their text, by corpus and split: generated ones, or your own files.

Your own are listed in a text file: each line is a file name, relative to the folder of the list, TAB its text.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from numpy.typing import NDArray

from transduce.config import SPLITS, DataConfig, ImagesData, MediaData, SpeechData, Split, nearest_name
from transduce.corpora.catalogue import OWN_FILES
from transduce.corpora.parallel_text import require_text
from transduce.corpora.source import Source
from transduce.errors import ConfigError, DataError, shown
from transduce.files import read_lines
from transduce.media import Features, FeaturesReader

__all__ = ["GeneratedMedia", "MediaItem", "MediaReport", "MediaText", "examined_items", "listed_media"]

N_NAMED = 3  # files that a report names for each reason

WhyNot = Literal["unreadable", "empty", "too long"]


@dataclass(frozen=True, slots=True, eq=False)
class MediaItem:
    """An image or a recording with its text."""

    name: str  # of the file; of a generated one, its part and number: "noisy/17"
    text: str
    features: Features


class GeneratedMedia(ABC):
    """A generated corpus of images or audio; its items are functions of the configuration."""

    @abstractmethod
    def texts(self, split: Split) -> Iterator[str]:
        """Yield the texts of a split, without making images or audio."""

    @abstractmethod
    def made(self, split: Split) -> Iterator[tuple[str, str, NDArray[Any]]]:
        """Yield name, text and grey image, or samples, of each item of a split."""

    def items(self, split: Split, reader: FeaturesReader) -> Iterator[MediaItem]:
        """Yield the items of a split."""
        return (MediaItem(name, text, reader.features(raw)) for name, text, raw in self.made(split))


@dataclass(slots=True)
class MediaReport:
    """How many files of a list were read, kept, and left out for each reason, with the first ones by name."""

    n_read: int = 0
    n_kept: int = 0
    partly_read: list[str] = field(default_factory=list)  # messages about files of several pages
    left_out: dict[WhyNot, list[str]] = field(default_factory=lambda: {"unreadable": [], "empty": [], "too long": []})
    n_left_out: dict[WhyNot, int] = field(default_factory=lambda: {"unreadable": 0, "empty": 0, "too long": 0})

    def leave_out(self, reason: WhyNot, message: str) -> None:
        """Count a file; ``message`` begins with its name."""
        self.n_left_out[reason] += 1
        if len(self.left_out[reason]) < N_NAMED:
            self.left_out[reason].append(message)

    def as_json(self) -> dict[str, object]:
        """Return the counts, as ``prepared.json`` has them."""
        return {"read": self.n_read, "kept": self.n_kept, "left_out": dict(self.n_left_out)}

    def lines(self) -> list[str]:
        """Describe what was left out, and what was read in part only."""
        return [*self.problems(), *self.notes()]

    def problems(self) -> list[str]:
        """Describe what was left out, one line for each reason."""
        return [
            f"left out {n:,} {reason}: {'; '.join(self.left_out[reason])}{', ...' if n > N_NAMED else ''}"
            for reason, n in self.n_left_out.items()
            if n
        ]

    def notes(self) -> list[str]:
        """Describe what was read in part only: one line, or none."""
        more = len(self.partly_read) - N_NAMED
        named = "; ".join(self.partly_read[:N_NAMED])
        return [f"{named}; and {more:,} more files" if more > 0 else named] if named else []


class MediaText(Source[MediaItem]):
    """The items of a configuration."""

    def __init__(
        self,
        config: DataConfig,
        reader: FeaturesReader,
        *,
        n_workers: int = 1,
        log: Callable[[str], object] = lambda line: None,
    ) -> None:
        """``log`` is told what of dev and test was read in part.

        Raises ConfigError if a corpus has no images or audio, DataError if a list is missing.
        """
        super().__init__(config)
        config = MediaData.of(config)
        self.config, self.reader, self._n_workers, self._log = config, reader, n_workers, log
        for corpus in self.corpora:
            if corpus not in (OWN_FILES, *config.generated):
                hint = nearest_name(corpus, [OWN_FILES, *config.generated])
                raise ConfigError(f"data.corpus: {shown(corpus)} has no text with {config.task} to learn; {hint}")
        if OWN_FILES in self.corpora and config.train_media is None:
            raise ConfigError("corpus = 'files' needs data.train_media, a list of file names with their texts")
        for split in SPLITS:
            path = config.file_of(split)
            if path is not None:
                require_text(Path(path))
        self._generated = {name: self._generator(name) for name in self.corpora if name != OWN_FILES}

    def name_of(self, split: Split) -> str:
        """Display name of the dev or test items; "" if there are none."""
        path = self.config.file_of(split)
        generated = next(iter(self._generated), None)
        return path or (f"{generated} {split}" if generated else "")

    def train_texts(self, corpus: str) -> Iterator[str]:
        """Yield the texts of the training items of a corpus."""
        if corpus == OWN_FILES:
            return (text for _, text in listed_media(self._list_of("train")))
        return self._generated[corpus].texts("train")

    def train(self, corpus: str) -> Iterator[MediaItem]:
        """Yield the training items of a corpus; a report counts those that are left out."""
        report = self.reports[corpus] = MediaReport()
        if corpus == OWN_FILES:
            return examined_items(self._list_of("train"), self.reader, report)
        return self._short_ones(self._generated[corpus].items("train", self.reader), report)

    def of(self, split: Split) -> Iterator[MediaItem]:
        """Yield the items of dev or test.

        Raises DataError for a file that cannot be used: scores count every line.
        """
        if self.config.file_of(split) is None:
            yield from next(iter(self._generated.values())).items(split, self.reader)
            return
        path, report = self._list_of(split), MediaReport()
        yield from examined_items(path, self.reader, report)
        if problems := report.problems():
            raise DataError(f"{path}, {split}: {problems[0].removeprefix('left out ')}; repair or remove them")
        for line in report.notes():
            self._log(f"{split}: {line}")

    def _list_of(self, split: Split) -> Path:
        path = self.config.file_of(split)
        assert path is not None
        return Path(path)

    def _short_ones(self, items: Iterator[MediaItem], report: MediaReport) -> Iterator[MediaItem]:
        for item in items:
            report.n_read += 1
            why = self.reader.too_long(item.features)
            if why is None:
                report.n_kept += 1
                yield item
            else:
                report.leave_out("too long", f"{item.name} is {why}")

    def _generator(self, name: str) -> GeneratedMedia:
        match name:
            case "ocr-lines":
                from transduce.corpora.ocr_lines import OcrLines

                return OcrLines(ImagesData.of(self.config))
            case "ocr-digits":
                from transduce.corpora.ocr_digits import OcrDigits

                return OcrDigits(ImagesData.of(self.config))
            case "speech-synthetic":
                from transduce.corpora.speech_synthetic import SyntheticSpeech

                return SyntheticSpeech(SpeechData.of(self.config), n_workers=self._n_workers)
            case _:
                raise AssertionError(name)


def listed_media(path: Path) -> Iterator[tuple[Path, str]]:
    """Yield the files of a list with their texts. Raises DataError, with the line number, for a line that is none."""
    for number, line in enumerate(read_lines(path), start=1):
        if not line.strip():
            continue
        name, tab, text = line.partition("\t")
        if not tab or not name.strip() or "\t" in text:
            raise DataError(f"{path}:{number} should be a file name TAB its text, got {shown(line)}")
        yield path.parent / name.strip(), text


def examined_items(path: Path, reader: FeaturesReader, report: MediaReport) -> Iterator[MediaItem]:
    """Yield the items of a list that can be used; ``report`` counts and names the others."""
    for file, text in listed_media(path):
        report.n_read += 1
        if not text.strip():
            report.leave_out("empty", f"{file} has no text")
            continue
        try:
            features = reader.read(file, report.partly_read.append)
        except DataError as error:
            report.leave_out("empty" if str(error).endswith(("blank", "no sound")) else "unreadable", str(error))
            continue
        if (why := reader.too_long(features)) is not None:
            report.leave_out("too long", f"{file} is {why}")
            continue
        report.n_kept += 1
        yield MediaItem(str(file), text, features)

"""Diagnostics of images and audio with their text: files that cannot be used, and files in both train and test."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path

from transduce.config import SPLITS, DataConfig, Split
from transduce.corpora.catalogue import OWN_FILES
from transduce.corpora.media import MediaReport, MediaText, WhyNot, examined_items, listed_media
from transduce.errors import ConfigError, DataError
from transduce.files import read_lines
from transduce.findings.finding import Finding, counted, good, guard, note, problem
from transduce.media import FeaturesReader, is_audio_name, is_media_name, reader_of
from transduce.media.audio import FRAMES_PER_SECOND

__all__ = ["examine_media_list", "examine_media_of", "is_media_list"]

SAMPLED_LINES = 100
ADVICE: dict[WhyNot, str] = {
    "unreadable": "training leaves them out, dev and test must not have them; repair them, or check their names",
    "empty": "training leaves them out, dev and test must not have them",
    "too long": "training leaves them out; cut them, or raise data.max_image_width or data.max_seconds",
}


def is_media_list(path: Path) -> bool:
    """Return whether most lines of a file are the name of an image or a recording TAB something. Never raises."""
    if not path.is_file():
        return False
    try:
        lines = [line for line in islice(read_lines(path), SAMPLED_LINES) if line.strip()]
    except (DataError, OSError):
        return False
    names = [name for name, tab, _ in (line.partition("\t") for line in lines) if tab]
    return bool(lines) and 2 * sum(map(is_media_name, names)) > len(lines)


def examine_media_list(path: Path, reader: FeaturesReader | None = None) -> Iterator[Finding]:
    """Examine a list of images or recordings with their texts: every file is read."""
    if reader is None:
        first = next((name.name for name, _ in listed_media(path)), "")
        reader = reader_of("audio", width=80) if is_audio_name(first) else reader_of("image", width=32)
    report, n_features, n_characters = MediaReport(), 0, 0
    for item in examined_items(path, reader, report):
        n_features += len(item.features)
        n_characters += len(item.text)
    for reason, n in report.n_left_out.items():
        if n:
            more = ", ..." if n > len(report.left_out[reason]) else ""
            named = f"{'; '.join(report.left_out[reason])}{more}"
            finding = note if reason == "too long" else problem
            yield finding(path, f"{counted(n, 'file')} {reason}: {named}; {ADVICE[reason]}")
    for line in report.notes():
        yield note(path, line)
    if not report.n_kept:
        yield problem(path, "has no file that can be used; each line should be a file name TAB its text")
        return
    what = "images" if reader.kind == "image" else "recordings"
    size = (
        f"{n_features / report.n_kept:,.0f} pixels wide on average at a height of {reader.width}"
        if reader.kind == "image"
        else f"{n_features / FRAMES_PER_SECOND / 60:,.1f} minutes"
    )
    yield good(path, f"{report.n_kept:,} of {report.n_read:,} {what} can be used: {size}, {n_characters:,} characters")


def examine_media_of(
    data: DataConfig, recipe: Path, reader_for: Callable[[DataConfig], FeaturesReader]
) -> Iterator[Finding]:
    """Examine the images or recordings of each split that a recipe reads; of generated ones, the first."""
    try:
        reader = reader_for(data)
        text = MediaText(data, reader)
    except (ConfigError, DataError) as error:
        yield problem(recipe, str(error))
        return
    for corpus in filter(data.generated.__contains__, text.corpora):
        yield from guard(corpus, _examine_generated(text, corpus))
    for split in SPLITS:
        path = data.file_of(split)
        if path is not None:
            yield from guard(path, examine_media_list(Path(path), reader))
        elif split != "train" and not text.name_of(split):
            yield note(recipe, f"no {split} files: set data.{split}_media to score the model on them")
    if OWN_FILES in text.corpora:
        yield from _examine_shared(data)


def _examine_generated(text: MediaText, corpus: str) -> Iterator[Finding]:
    item = next(text.train(corpus))
    yield good(corpus, f"generated from a seed; the first is {item.text!r}, {len(item.features):,} columns or frames")


def _examine_shared(data: DataConfig) -> Iterator[Finding]:
    """Report files of dev and test that the training list has, too."""
    files: dict[Split, set[Path]] = {}
    for split in SPLITS:
        path = data.file_of(split)
        files[split] = {file.resolve() for file, _ in listed_media(Path(path))} if path is not None else set()
    for split in ("dev", "test"):
        shared = files["train"] & files[split]
        if shared:
            path, trained = data.file_of(split), data.file_of("train")
            yield problem(path, f"{counted(len(shared), 'file')} of {len(files[split]):,} in {trained}, too")

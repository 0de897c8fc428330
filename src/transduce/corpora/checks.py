"""What people do wrong with text, seen before it is trained on: remarks that preparation and the doctor share.

Files are shifted against each other, sides are swapped, text is in another language than its name says, dev and test
lines are in the training text, and cleaning leaves out half of it. Everything is read as a stream, once, and round a
shift once more.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Literal

from transduce.config import DataConfig, Split
from transduce.corpora.alignment import Alignment, ReadPairs, align
from transduce.corpora.catalogue import OWN_FILES
from transduce.corpora.cleaning import CleaningReport, Reason
from transduce.corpora.languages import (
    MIN_LINES,
    LanguageSample,
    SpreadSample,
    fault_of_code,
    is_identifiable,
    language_name,
    languages_of,
)
from transduce.corpora.leakage import TrainingLines
from transduce.corpora.parallel_files import read_uncleaned_columns
from transduce.files import read_lines

__all__ = [
    "DROPPED_NOTE_SHARE", "Remark", "TextPart", "column_part", "configured_part", "dropped_share", "remark_on_dropped",
    "remarks_between", "remarks_on_codes", "remarks_on_own_files", "remarks_on_part", "two_file_part",
]  # fmt: skip

DROPPED_NOTE_SHARE = 0.02  # of the pairs: that many should not be dropped without a word
N_REASONS = 3
SWAPPED = 0.15  # how much more alike two texts are when the sides of one are exchanged; cosines
Languages = tuple[str | None, str | None]


@dataclass(frozen=True, slots=True)
class Remark:
    """Something that is wrong, or may be: of what, and what it is."""

    status: Literal["note", "problem"]
    subject: str
    message: str

    def __str__(self) -> str:
        return f"{self.subject}: {self.message}"


@dataclass(frozen=True, slots=True)
class TextPart:
    """Pairs that can be read as often as one likes, and what they and their sides are called."""

    name: str
    src: str
    tgt: str
    read: ReadPairs


def two_file_part(src: Path, tgt: Path) -> TextPart:
    """Two aligned files, as far as both go."""

    def read() -> Iterator[tuple[str, str]]:
        return zip(read_lines(src, escape_invalid=True), read_lines(tgt, escape_invalid=True), strict=False)

    names = (src.name, tgt.name) if src.name != tgt.name else (str(src), str(tgt))
    return TextPart(f"{src} with {tgt.name}", *names, read)


def column_part(path: Path) -> TextPart:
    """One file, source TAB target."""
    return TextPart(str(path), "the source column", "the target column", partial(read_uncleaned_columns, path))


def configured_part(config: DataConfig, split: Split) -> TextPart | None:
    """The files that a configuration names for a part of the text; None where it names none."""
    src, tgt, tsv = config.files_of(split)
    if tsv is not None:
        return column_part(Path(tsv))
    return two_file_part(Path(src), Path(tgt)) if src is not None and tgt is not None else None


@dataclass(slots=True)
class _Looked:
    """A part that has been read, and what was kept of it."""

    part: TextPart
    alignment: Alignment
    src: SpreadSample = field(default_factory=SpreadSample)
    tgt: SpreadSample = field(default_factory=SpreadSample)


def _look(part: TextPart, listeners: Sequence[Callable[[tuple[str, str] | None], None]] = ()) -> _Looked:
    """Read a part; ``listeners`` hear each pair of it once."""
    looked = _Looked(part, Alignment(0))
    is_first = True

    def read() -> Iterator[tuple[str, str] | None]:
        nonlocal is_first
        listens, is_first = is_first, False
        for pair in part.read():
            if listens:
                for listener in listeners:
                    listener(pair)
                if pair is not None:
                    looked.src.add(pair[0])
                    looked.tgt.add(pair[1])
            yield pair

    looked.alignment = align(read)
    return looked


def remarks_on_part(part: TextPart, languages: Languages = (None, None)) -> Iterator[Remark]:
    """Whether the sides lie line by line, and are in the languages that they are said to be in."""
    yield from _remarks_on(_look(part), languages)


def _remarks_on(looked: _Looked, languages: Languages) -> Iterator[Remark]:
    part = looked.part
    fault = looked.alignment.fault(part.src, part.tgt)
    if fault is not None:
        yield Remark("problem", part.name, fault)
    sides = [(part.src, looked.src, languages[0]), (part.tgt, looked.tgt, languages[1])]
    known = [(name, code, _identified(sample)) for name, sample, code in sides if code and is_identifiable(code)]
    wrong = [(name, code, other) for name, code, found in known if (other := found.mismatch(code)) is not None]
    src, tgt = languages
    if len(wrong) == 2 and src is not None and tgt is not None and src != tgt:
        (_, _, on_src), (_, _, on_tgt) = known
        if on_src.mismatch(tgt) is None and on_tgt.mismatch(src) is None:
            found = f"{part.src} looks like {language_name(tgt)} and {part.tgt} like {language_name(src)}"
            swapped = f"the sides are swapped: {found}; exchange them, or turn direction round"
            yield Remark("problem", part.name, swapped)
            return
    for name, code, other in wrong:
        yield Remark("problem", part.name, f"{name} looks like {language_name(other)}, not {language_name(code)}")
    for name, code, sample in known:
        second = sample.second_language(code)
        if second is not None:
            language, share = second
            what = f"about {share:.0%} of the longer lines of {name} look like {language_name(language)}"
            yield Remark("note", part.name, f"{what}, not {language_name(code)}")


def _identified(sample: SpreadSample) -> LanguageSample:
    """The classifier is not loaded for less than would say anything."""
    return languages_of(sample.lines) if len(sample.lines) >= MIN_LINES else LanguageSample(0, ())


def remarks_between(train: Sequence[TextPart], others: Sequence[TextPart]) -> Iterator[Remark]:
    """Whether lines of dev or test are in the training text, and whether sides are swapped between them."""
    sought = [TrainingLines(other.read()) for other in others]
    if not sought:
        return
    for part in train:
        looked = _look(part, [lines.observe for lines in sought])
        for other in others:
            yield from _remarks_on_swap(looked, _look(other))
    yield from _remarks_on_leakage(" and ".join(part.name for part in train), others, sought)


def _remarks_on_leakage(train: str, others: Sequence[TextPart], sought: Sequence[TrainingLines]) -> Iterator[Remark]:
    for other, lines in zip(others, sought, strict=True):
        leakage = lines.result()
        sentence = leakage.sentence(train)
        if sentence is not None:
            yield Remark("problem" if leakage.is_severe else "note", other.name, sentence)


def _remarks_on_swap(train: _Looked, other: _Looked) -> Iterator[Remark]:
    """By what letters follow each other, so it needs to know no language."""
    samples = train.src.lines, train.tgt.lines, other.src.lines, other.tgt.lines
    if min(map(len, samples)) < MIN_LINES:
        return
    src, tgt, other_src, other_tgt = map(_trigrams, samples)
    straight = _cosine(src, other_src) + _cosine(tgt, other_tgt)
    crossed = _cosine(src, other_tgt) + _cosine(tgt, other_src)
    if crossed > straight + 2 * SWAPPED:
        message = f"its sides are swapped against those of {train.part.name}: exchange the source and the target of one"
        yield Remark("problem", other.part.name, message)


def _trigrams(lines: Sequence[str]) -> Counter[str]:
    return Counter(
        text[place : place + 3] for text in (f" {line.casefold()} " for line in lines) for place in range(len(text) - 2)
    )


def _cosine(one: Counter[str], other: Counter[str]) -> float:
    product: int = sum(n * other[key] for key, n in one.items())
    norms = [sum(n * n for n in counts.values()) for counts in (one, other)]
    return float(product / max(1.0, (norms[0] * norms[1]) ** 0.5))


def remarks_on_codes(config: DataConfig) -> Iterator[Remark]:
    """Codes in ``direction`` that are those of no language, as far as is known here."""
    for code in dict.fromkeys((config.src_language, config.tgt_language)):
        fault = fault_of_code(code)
        if fault is not None:
            yield Remark("note", f"direction = {config.direction!r}", fault)


def remarks_on_own_files(config: DataConfig) -> Iterator[Remark]:
    """All of the above for the files that a configuration names; training text is read once, and round a shift again.

    Nothing where the training text is of other corpora alone.
    """
    train = configured_part(config, "train")
    if train is None:
        return
    yield from remarks_on_codes(config)
    languages = config.src_language, config.tgt_language
    others = [part for part in (configured_part(config, "dev"), configured_part(config, "test")) if part is not None]
    sought = [TrainingLines(other.read()) for other in others]
    looked = _look(train, [lines.observe for lines in sought])
    about_train = list(_remarks_on(looked, languages))
    yield from about_train
    for other in map(_look, others):
        about_other = list(_remarks_on(other, languages))
        yield from about_other
        if not any("sides are swapped" in remark.message for remark in [*about_train, *about_other]):
            yield from _remarks_on_swap(looked, other)
    yield from _remarks_on_leakage(train.name, others, sought)


_ADVICE: dict[Reason, str] = {
    "too long to be read": "is that text? split it into lines of a sentence each",
    "not two columns": "each line should be source TAB target",
    "not UTF-8": "convert the file, as in iconv -f LATIN1 -t UTF-8",
    "control characters": "text has none, so look at what made them",
    "empty": "take blank lines out of both files, or find what was lost",
    "too long": "split long lines into sentences, or raise data.max_characters",
    "length ratio": "do the files align there? else raise data.max_length_ratio",
    "identical sides": "is the target translated? if names are meant, set data.drop_identical=false",
    "duplicate": "data.drop_duplicates=false keeps them",
}


def dropped_share(report: CleaningReport) -> float:
    """Of the pairs that were read; duplicates, which are dropped on request alone, do not count."""
    n_dropped = report.n_dropped - report.dropped["duplicate"].count
    return n_dropped / report.n_read if report.n_read else 0.0


def remark_on_dropped(
    corpus: str,
    report: CleaningReport,
    config: DataConfig,
    *,
    to_allow: str = "--set data.max_dropped_share=1.0",
) -> Remark | None:
    """A problem where cleaning leaves out more of a corpus than is allowed, a note where it is more than a little.

    ``to_allow`` is what a person would say to train on the rest all the same.
    """
    share = dropped_share(report)
    if share <= DROPPED_NOTE_SHARE:
        return None
    reasons = [(reason, tally) for reason, tally in report.dropped.items() if tally.count and reason != "duplicate"]
    reasons.sort(key=lambda entry: -entry[1].count)
    told = "; ".join(f"{reason} {tally.count:,} ({tally}): {_ADVICE[reason]}" for reason, tally in reasons[:N_REASONS])
    files = [*config.files_of("train"), config.train_trees] if corpus == OWN_FILES else []
    names = [name for name in files if name is not None] or [corpus]
    look = f"look at them with: transduce doctor {' '.join(names)}"
    message = f"cleaning drops {share:.1%} of the training pairs: {told}; {look}"
    if share <= config.max_dropped_share:
        return Remark("note", corpus, message)
    limit = f"more than data.max_dropped_share = {config.max_dropped_share:g} allows"
    return Remark("problem", corpus, f"{message}; that is {limit}; to train all the same: {to_allow}")

"""Checks for common faults of parallel text, shared by preparation and the doctor.

They find files shifted against each other, swapped sides, text in an unexpected language or that another program has
tokenised, cut or quoted, dev and test lines in the training text, and excessive loss in cleaning. All text is streamed
once, and again around a shift.
"""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Literal

from transduce.config import DataConfig, PairsData, ParallelCorpora, ParallelData, Split
from transduce.corpora.catalogue import OWN_FILES
from transduce.corpora.cleaning import CleaningReport, Reason
from transduce.corpora.holding_out import MIN_PAIRS
from transduce.corpora.languages import (
    MIN_LINES,
    LanguageSample,
    SpreadSample,
    fault_of_code,
    is_identifiable,
    language_name,
    languages_of,
)
from transduce.corpora.leakage import LeakageSearch
from transduce.corpora.line_shifts import Alignment, ReadPairs, align
from transduce.corpora.parallel_files import hint_at_columns, read_uncleaned_columns
from transduce.files import read_lines
from transduce.preprocessed import looks_quoted, looks_tokenised, subword_marks

__all__ = [
    "DROPPED_NOTE_SHARE", "Remark", "TextPart", "column_part", "configured_part", "dropped_share", "remark_on_dropped",
    "remarks_between", "remarks_on_codes", "remarks_on_own_files", "remarks_on_part", "two_file_part",
]  # fmt: skip

DROPPED_NOTE_SHARE = 0.02  # of the pairs; a loss above it is reported
N_REASONS = 3
MIN_SWAP_GAIN = 0.15  # gain in trigram cosine similarity, for each side, when the sides of one text are exchanged
Languages = tuple[str | None, str | None]


@dataclass(frozen=True, slots=True)
class Remark:
    """Result of a check: ``subject`` has a definite problem, or a note about something that may be wrong."""

    status: Literal["note", "problem"]
    subject: str
    message: str

    def __str__(self) -> str:
        return f"{self.subject}: {self.message}"


@dataclass(frozen=True, slots=True)
class TextPart:
    """Pairs that can be read repeatedly, with display names of the text and its sides."""

    name: str
    src: str
    tgt: str
    read: ReadPairs


def two_file_part(src: Path, tgt: Path) -> TextPart:
    """Make a part of two aligned files, up to the end of the shorter one."""

    def read() -> Iterator[tuple[str, str]]:
        return zip(read_lines(src, escape_invalid=True), read_lines(tgt, escape_invalid=True), strict=False)

    names = (src.name, tgt.name) if src.name != tgt.name else (str(src), str(tgt))
    return TextPart(f"{src} with {tgt.name}", *names, read)


def column_part(path: Path) -> TextPart:
    """Make a part of one file of source TAB target."""
    return TextPart(str(path), "the source column", "the target column", partial(read_uncleaned_columns, path))


def configured_part(config: ParallelCorpora, split: Split) -> TextPart | None:
    """Make the part of the files configured for a split; None if there are none."""
    src, tgt, tsv = config.files_of(split)
    if tsv is not None:
        return column_part(Path(tsv))
    return two_file_part(Path(src), Path(tgt)) if src is not None and tgt is not None else None


@dataclass(slots=True)
class _Scan:
    """Result of reading a part: its alignment, and samples of the lines of each side."""

    part: TextPart
    alignment: Alignment
    src: SpreadSample = field(default_factory=SpreadSample)
    tgt: SpreadSample = field(default_factory=SpreadSample)
    any_src: SpreadSample = field(default_factory=partial(SpreadSample, is_classified=False))
    any_tgt: SpreadSample = field(default_factory=partial(SpreadSample, is_classified=False))


def _scan(part: TextPart, observers: Sequence[Callable[[tuple[str, str] | None], None]] = ()) -> _Scan:
    """Align and sample a part; pass each pair to ``observers`` once, though ``align`` may read the part again."""
    scan = _Scan(part, Alignment(0))
    is_first = True

    def read() -> Iterator[tuple[str, str] | None]:
        nonlocal is_first
        observes, is_first = is_first, False
        for pair in part.read():
            if observes:
                for observe in observers:
                    observe(pair)
                if pair is not None:
                    for side, *samples in zip(pair, (scan.src, scan.tgt), (scan.any_src, scan.any_tgt), strict=True):
                        for sample in samples:
                            sample.add(side)
            yield pair

    scan.alignment = align(read)
    return scan


def remarks_on_part(
    part: TextPart, languages: Languages = (None, None), *, is_tokenised: bool = False
) -> Iterator[Remark]:
    """Check whether the sides are aligned line by line, in the expected languages, and as people write them.

    ``is_tokenised``: they are known to be tokenised.
    """
    scan = _scan(part)
    yield from _remarks_on(scan, languages)
    yield from _remarks_on_form(scan, is_tokenised=is_tokenised)


def _remarks_on(scan: _Scan, languages: Languages) -> Iterator[Remark]:
    part = scan.part
    fault = scan.alignment.fault(part.src, part.tgt)
    if fault is not None:
        yield Remark("problem", part.name, fault)
    sides = [(part.src, scan.src, languages[0]), (part.tgt, scan.tgt, languages[1])]
    known = [(name, code, _identified(sample)) for name, sample, code in sides if code and is_identifiable(code)]
    wrong = [(name, code, other) for name, code, found in known if (other := found.mismatch(code)) is not None]
    src, tgt = languages
    if len(wrong) == 2 and src is not None and tgt is not None and src != tgt:
        (_, _, src_sample), (_, _, tgt_sample) = known
        if src_sample.mismatch(tgt) is None and tgt_sample.mismatch(src) is None:
            found = f"{part.src} looks like {language_name(tgt)} and {part.tgt} like {language_name(src)}"
            swapped = f"the sides are swapped: {found}; exchange them, or reverse direction"
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


def _remarks_on_form(scan: _Scan, *, is_tokenised: bool = False) -> Iterator[Remark]:
    """Check for traces of other programs; a model would write what its training text has."""
    part = scan.part
    for name, sample in ((part.src, scan.any_src), (part.tgt, scan.any_tgt)):
        mark = subword_marks(sample.lines)
        if mark is not None:
            what = f"{name} is cut into subwords already ({mark})"
            yield Remark("problem", part.name, f"{what}; transduce does that itself: {_JOINED.get(mark, _WHOLE)}")
        elif looks_tokenised(sample.lines) and not is_tokenised:
            what = f"{name} looks tokenised (spaces before full stops and commas), and a model would write such text"
            yield Remark("note", part.name, f"{what}; use the text as it was, or detokenise it, as sacremoses does")
        if looks_quoted(sample.lines):
            what = f"{name} has lines in quotes, doubled inside, as CSV has them"
            yield Remark("note", part.name, f"{what}; write the text without them, one sentence a line")


_WHOLE = "use the text before that"
_JOINED = {  # how to join the words again, by the mark of their parts
    "@@": "join the words again, as in: sed -E 's/@@( |$)//g'",
    "▁": "join the words again, as in: sed 's/ //g; s/▁/ /g; s/^ //'",
    "##": "join the words again, as in: sed 's/ ##//g'",
}


def _identified(sample: SpreadSample) -> LanguageSample:
    """Identify the languages of a sample; one that is too small does not load the classifier."""
    return languages_of(sample.lines) if len(sample.lines) >= MIN_LINES else LanguageSample(0, ())


def remarks_between(train: Sequence[TextPart], others: Sequence[TextPart]) -> Iterator[Remark]:
    """Check dev or test text against training text: for leakage, and for source and target swapped in one of them."""
    searches = [LeakageSearch(other.read()) for other in others]
    if not searches:
        return
    for part in train:
        for search in searches:
            search.begin(part.name)
        scan = _scan(part, [search.observe for search in searches])
        for other in others:
            yield from _remarks_on_swap(scan, _scan(other))
    yield from _remarks_on_leakage(" and ".join(part.name for part in train), others, searches)


def _remarks_on_leakage(train: str, others: Sequence[TextPart], searches: Sequence[LeakageSearch]) -> Iterator[Remark]:
    for other, search in zip(others, searches, strict=True):
        leakage = search.result()
        sentence = leakage.sentence(train)
        if sentence is not None:
            yield Remark("problem" if leakage.is_severe else "note", other.name, sentence)


def _remarks_on_swap(train: _Scan, other: _Scan) -> Iterator[Remark]:
    """Check for swapped sides by comparing character trigrams, which works for any language."""
    samples = train.src.lines, train.tgt.lines, other.src.lines, other.tgt.lines
    if min(map(len, samples)) < MIN_LINES:
        return
    src, tgt, other_src, other_tgt = map(_trigrams, samples)
    straight = _cosine(src, other_src) + _cosine(tgt, other_tgt)
    crossed = _cosine(src, other_tgt) + _cosine(tgt, other_src)
    if crossed > straight + 2 * MIN_SWAP_GAIN:
        message = f"its sides are swapped against {train.part.name}: exchange the source and the target of one of them"
        yield Remark("problem", other.part.name, message)


def _trigrams(lines: Sequence[str]) -> Counter[str]:
    return Counter(
        text[start : start + 3] for text in (f" {line.casefold()} " for line in lines) for start in range(len(text) - 2)
    )


def _cosine(one: Counter[str], other: Counter[str]) -> float:
    product: int = sum(n * other[key] for key, n in one.items())
    norms = [sum(n * n for n in counts.values()) for counts in (one, other)]
    return float(product / max(1.0, (norms[0] * norms[1]) ** 0.5))


def remarks_on_codes(config: DataConfig) -> Iterator[Remark]:
    """Check the language codes in ``direction``."""
    for code in dict.fromkeys((config.src_language, config.tgt_language)):
        fault = fault_of_code(code)
        if fault is not None:
            yield Remark("note", f"direction = {config.direction!r}", fault)


def remarks_on_own_files(config: ParallelCorpora) -> Iterator[Remark]:
    """Run all checks above on the configured files; training text is read once, and again around a shift.

    No remarks if no training file is configured.
    """
    train = configured_part(config, "train")
    if train is None:
        return
    yield from remarks_on_codes(config)
    languages = config.src_language, config.tgt_language
    others = [part for part in (configured_part(config, "dev"), configured_part(config, "test")) if part is not None]
    searches = [LeakageSearch(other.read()) for other in others]
    scan = _scan(train, [search.observe for search in searches])
    train_remarks = list(_remarks_on(scan, languages))
    yield from train_remarks
    yield from _remarks_on_form(scan)
    for other in map(_scan, others):
        other_remarks = list(_remarks_on(other, languages))
        yield from other_remarks
        yield from _remarks_on_form(other)
        if not any("sides are swapped" in remark.message for remark in [*train_remarks, *other_remarks]):
            yield from _remarks_on_swap(scan, other)
    yield from _remarks_on_leakage(train.name, others, searches)


# What to do about the text, and about the settings of a recipe.
_ADVICE: dict[Reason, tuple[str, str]] = {
    "too long to be read": ("is the file text? split it into one sentence a line", ""),
    "not two columns": ("each line should be source TAB target", ""),
    "not UTF-8": ("convert the file, as in iconv -f LATIN1 -t UTF-8", ""),
    "control characters": ("is the file text in UTF-8?", ""),
    "empty": ("remove blank lines from both files, or find the missing text", ""),
    "too long": ("split long lines into sentences", ", or raise data.max_characters"),
    "length ratio": ("do the files align there?", " if so, raise data.max_length_ratio"),
    "identical sides": ("is the target translated?", " to keep such lines (names), set data.drop_identical=false"),
}


def dropped_share(report: CleaningReport) -> float:
    """Share of the pairs dropped in cleaning, without duplicates, which are only dropped on request."""
    n_dropped = report.n_dropped - report.dropped["duplicate"].count
    return n_dropped / report.n_read if report.n_read else 0.0


def remark_on_dropped(
    corpus: str,
    report: CleaningReport,
    config: PairsData,
    *,
    to_allow: str = "--set data.max_dropped_share=1.0",
    has_recipe: bool = True,
    is_kept: bool = True,
) -> Remark | None:
    """Return a problem if cleaning drops more than ``data.max_dropped_share``, a note above 2%, else None.

    ``to_allow`` is the option that the message suggests for training on the rest anyway, if enough remains. Settings
    are named where there is a recipe, and the doctor where the files are kept.
    """
    share = dropped_share(report)
    if share <= DROPPED_NOTE_SHARE:
        return None
    reasons = [(reason, tally) for reason, tally in report.dropped.items() if tally.count and reason != "duplicate"]
    reasons.sort(key=lambda entry: -entry[1].count)
    advice = {reason: text + setting * has_recipe for reason, (text, setting) in _ADVICE.items()}
    if corpus == OWN_FILES and isinstance(config, ParallelData) and config.train_tsv is not None:
        advice["not two columns"] += hint_at_columns(Path(config.train_tsv))
    top = "; ".join(f"{reason} {tally.count:,} ({tally}): {advice[reason]}" for reason, tally in reasons[:N_REASONS])
    names = (config.names_of("train") if corpus == OWN_FILES else []) or [corpus]
    inspect = f"; inspect them with: {shlex.join(['transduce', 'doctor', *names])}" if is_kept else ""
    message = f"cleaning drops {share:.1%} of the training pairs: {top}{inspect}"
    if share <= config.max_dropped_share:
        return Remark("note", corpus, message)
    limit = (
        f"data.max_dropped_share = {config.max_dropped_share:g}" if has_recipe else f"{config.max_dropped_share:.0%}"
    )
    is_enough = report.n_read - report.n_dropped >= MIN_PAIRS
    anyway = f"; to train anyway: {to_allow}" if to_allow and is_enough else ""
    return Remark("problem", corpus, f"{message}; the limit of {limit} is exceeded{anyway}")

"""Documents to documents: their texts are translated, and everything else stays as it is.

``DocumentTranslation`` finds what a model has to translate and puts the translations in their places. It knows no
model: its caller passes the translations. Where a text is not translated, it stays as it was, and the report says why.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, TypedDict, get_args

from transduce.config import Wanted
from transduce.documents import Reading, Segment, format_named, format_of, read_document
from transduce.documents.placeholders import fault_in
from transduce.errors import DataError
from transduce.imports import numpy as np
from transduce.inference.translation.parts import FLAGS, Flag
from transduce.terms import Terms
from transduce.text import needs_translation, word_spans
from transduce.text.markup import Unit
from transduce.text.tag_placing import Node

if TYPE_CHECKING:
    from transduce.review import ReviewedText

__all__ = [
    "NO_TERMS", "Check", "DocumentOptions", "DocumentReport", "DocumentTranslation", "Kept", "Outcome", "Recall",
    "Remark", "TranslatedDocument",
]  # fmt: skip

# Why a text stays as it was:
Kept = Literal[
    "not-wanted",  # the file says so, or has a translation of it
    "no-words",  # there is nothing to translate
    "equal",  # the translation is the same text
    "untranslated",  # the model found no words
    "placeholders",  # the translation has other placeholders than the text
    "tags",  # the translation lacks tags
    "refused",  # the document cannot hold the translation
]
NO_TERMS = Terms()
REMARKED: tuple[Kept, ...] = ("untranslated", "placeholders", "tags", "refused")  # those that a person should look at
MAX_COMPARED = 1000  # words of a text with tags that is compared with its translation
MAX_REFUSED = 100  # translations that a document cannot hold; with more, it is not written
MAX_REMARKS = 10_000  # of a report; all are counted
MAX_SHOWN = 200  # characters of a text in a report

# From a memory: what stands in the place of each segment, as ``Document.written`` takes it; None where it has nothing.
Recall = Callable[[Sequence[Segment]], Sequence[str | None]]
# What is wrong with the placeholders of a translation, as ``Unit.put_back`` gives it; "" if nothing is.
Check = Callable[[Segment, str], str]


class DocumentOptions(TypedDict, total=False):
    """How documents are read and checked."""

    format: str
    wanted: Wanted
    is_trusted: bool
    first_line: int
    recall: Recall
    check: Check


@dataclass(frozen=True, slots=True)
class Remark:
    """A text of a document that a person should look at."""

    place: str
    kind: Kept | Flag
    text: str
    detail: str = ""


@dataclass(frozen=True, slots=True)
class DocumentReport:
    """What was translated of a document, and what was not."""

    name: str
    format: str
    segments: int
    translated: int
    remembered: int  # of these, from a memory
    kept: Mapping[Kept, int]
    warnings: Mapping[Flag, int]  # by the number of segments
    remarks: Sequence[Remark]

    def joined(self, other: DocumentReport) -> DocumentReport:
        """Return the report of this document and a further piece of it."""
        return replace(
            self,
            segments=self.segments + other.segments,
            translated=self.translated + other.translated,
            remembered=self.remembered + other.remembered,
            kept=Counter(self.kept) + Counter(other.kept),
            warnings=Counter(self.warnings) + Counter(other.warnings),
            remarks=[*self.remarks, *other.remarks][:MAX_REMARKS],
        )

    def as_json(self) -> dict[str, Any]:
        """Return the report for a file."""
        return {
            "document": self.name, "format": self.format, "segments": self.segments, "translated": self.translated,
            "remembered": self.remembered, "kept": dict(self.kept), "warnings": dict(self.warnings),
            "remarks": [
                {"place": each.place, "kind": each.kind, "text": each.text, "detail": each.detail}
                for each in self.remarks
            ],
        }  # fmt: skip

    def summary(self) -> str:
        """Return the counts in one line."""
        kept = ", ".join(f"{n:,} {kind}" for kind, n in self.kept.items())
        remembered = f" ({self.remembered:,} from memory)" if self.remembered else ""
        return f"{self.translated:,} of {self.segments:,} texts translated{remembered}{f'; kept: {kept}' * bool(kept)}"


@dataclass(frozen=True, slots=True)
class TranslatedDocument:
    """The bytes of a translated document, and its report."""

    data: bytes
    report: DocumentReport
    reviewed: Sequence[ReviewedText] = ()  # its texts for the page of a person, if asked for


@dataclass(slots=True)
class Outcome:
    """What becomes of a segment: its translation, or why it has none."""

    target: str | None = None
    kept: Kept | None = None
    is_remembered: bool = False
    flags: Sequence[Flag] = ()
    detail: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class DocumentTranslation:
    """What a model has to do for a document, and the result."""

    name: str
    format: str
    tgt_language: str
    segments: Sequence[Segment]
    units: Sequence[Unit]  # what is to be translated, equal ones once
    _written: Callable[[Sequence[str | None]], bytes]
    _check: Check
    _indices: Mapping[int, int]  # from a segment that a model translates to its unit
    _results: list[Outcome] = field(default_factory=list)

    @classmethod
    def of(
        cls,
        data: bytes,
        name: str,
        *,
        tgt_language: str,
        is_protected: bool = False,
        format: str = "",
        wanted: Wanted = "empty",
        is_trusted: bool = False,
        first_line: int = 1,
        recall: Recall = lambda segments: [None] * len(segments),
        check: Check = fault_in,
    ) -> DocumentTranslation:
        """Read a document, in the ``format`` of that name, by default as its name or its content tells.

        ``is_protected`` and the options after ``format`` are those of ``Reading``. Raises DataError for what cannot be
        read, ConfigError for an unknown format.
        """
        found = format_named(format) if format else format_of(name, data)
        document = read_document(data, name, Reading(is_protected, wanted, is_trusted, first_line), format=found.name)
        segments = document.segments
        results = [
            Outcome(
                kept="not-wanted" if not each.is_wanted
                else None if needs_translation(each.unit.text)
                else "no-words"
            )
            for each in segments
        ]  # fmt: skip
        open_indices = [index for index, each in enumerate(results) if each.kept is None]
        for index, target in zip(open_indices, recall([segments[each] for each in open_indices]), strict=True):
            results[index].target, results[index].is_remembered = target, target is not None
        number_of, indices, units = dict[object, int](), dict[int, int](), list[Unit]()
        for index in open_indices:
            if results[index].target is None:
                unit = segments[index].unit
                indices[index] = number_of.setdefault(_key(unit), len(units))
                if indices[index] == len(units):
                    units.append(unit)
        written = partial(document.written, tgt_language=tgt_language)
        return cls(name, found.name, tgt_language, segments, units, written, check, indices, results)

    def finished(
        self, translations: Sequence[tuple[str, Sequence[Flag]]], terms: Terms = NO_TERMS
    ) -> TranslatedDocument:
        """Return the document, given the translation of each of ``units`` with its tags and what may be wrong with it.

        ``terms`` are those that translations were to have; the report names them where they have not.
        Raises DataError for a translation that the document cannot hold.
        """
        assert len(translations) == len(self.units)
        for index, number in self._indices.items():
            self._results[index] = self._judged(self.segments[index], *translations[number], terms)
        data, refused = held(self._written, [each.target for each in self._results])
        for index, reason in refused.items():
            self._results[index] = Outcome(kept="refused", detail=reason)
        return TranslatedDocument(data, self._report())

    def outcomes(self) -> Iterator[tuple[Segment, Outcome, int | None]]:
        """Yield each segment, what became of it, and the number of its unit if a model translated it."""
        for index, (segment, outcome) in enumerate(zip(self.segments, self._results, strict=True)):
            yield segment, outcome, self._indices.get(index)

    def _judged(self, segment: Segment, target: str, flags: Sequence[Flag], terms: Terms) -> Outcome:
        unit = segment.unit
        if lost := unit.lost_tags(target):
            return Outcome(kept="tags", detail=f"the translation lacks {' '.join(lost)}")
        if fault := self._check(segment, target):
            return Outcome(kept="placeholders", detail=fault)
        if _is_equal(unit, target):
            return Outcome(kept="untranslated" if "untranslated" in flags else "equal")
        return Outcome(target, flags=flags, detail=terms.faults(unit.text, target) if "terms" in flags else "")

    def _report(self) -> DocumentReport:
        kept = Counter(each.kept for each in self._results if each.kept is not None)
        warnings = Counter(flag for each in self._results for flag in each.flags)
        remarks = [
            Remark(segment.place, kind, segment.unit.text[:MAX_SHOWN], result.detail * (kind in (result.kept, "terms")))
            for segment, result in zip(self.segments, self._results, strict=True)
            for kind in ([result.kept] if result.kept in REMARKED else result.flags)
            if kind is not None
        ]
        return DocumentReport(
            self.name, self.format, len(self.segments), sum(each.target is not None for each in self._results),
            sum(each.is_remembered for each in self._results),
            {kind: kept[kind] for kind in get_args(Kept) if kept[kind]},
            {flag: warnings[flag] for flag in FLAGS if warnings[flag]}, remarks[:MAX_REMARKS],
        )  # fmt: skip


def held(
    written: Callable[[Sequence[str | None]], bytes], targets: Sequence[str | None]
) -> tuple[bytes, dict[int, str]]:
    """Return a document with all translations that it can hold, and why it refuses which of the others.

    ``written`` raises DataError if one of its translations is refused. Raises it, too, if all or many are.
    """
    fitting, refused = set[int](), dict[int, str]()

    def with_only(indices: Collection[int]) -> bytes:
        return written([target if index in indices else None for index, target in enumerate(targets)])

    groups = [[index for index, target in enumerate(targets) if target is not None]]
    while groups:
        group = groups.pop()
        try:
            data = with_only(fitting | {*group})
        except DataError as error:
            middle = len(group) // 2
            if middle == 0:
                refused |= dict.fromkeys(group, str(error))
            if len(group) == 0 or len(refused) > MAX_REFUSED:
                raise
            groups += [each for each in (group[middle:], group[:middle]) if middle]
        else:
            fitting |= {*group}
    if refused and not fitting:
        with_only(refused)  # raises
    return data if not refused else with_only(fitting), refused


def _is_equal(unit: Unit, target: str) -> bool:
    """Whether a translation with its tags is the text of the unit."""
    if target == unit.raw:
        return True
    if not unit.nodes:
        return target == unit.put_back(unit.text)
    words = word_spans(unit.text)
    if len(words) > MAX_COMPARED:
        return False
    return target == unit.put_back(unit.text, words, np.eye(len(words), dtype=np.float32))


def _key(unit: Unit) -> object:
    """Return what equal units share: their text and their tags."""
    return unit.text, unit.before, unit.after, unit.is_escaped, unit.escape, tuple(map(_shape, unit.nodes))


def _shape(node: Node) -> tuple[object, ...]:
    beside = (node.has_space_before, node.has_space_after, node.is_note)
    return node.opening, node.closing, node.start, node.end, beside, tuple(map(_shape, node.children))

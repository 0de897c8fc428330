"""Diagnostics of text files, read as a stream: all issues are counted, none stops the examination.

What cleaning counts is taken from cleaning itself; ``lines.py`` has the rest.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from itertools import islice, zip_longest
from pathlib import Path
from typing import Literal

from transduce.corpora import CleaningReport, CleaningRules, clean, read_aligned_files
from transduce.corpora.checks import Languages, Remark, column_part, remarks_on_part, two_file_part
from transduce.corpora.cleaning import Tally
from transduce.corpora.formats import foreign_format
from transduce.corpora.languages import language_in_name
from transduce.corpora.leakage import NearDuplicates
from transduce.corpora.parallel_files import hint_at_columns, two_columns
from transduce.errors import DataError
from transduce.files import MAX_LINE_BYTES, READ_ERRORS, TruncatedLine, open_binary, raw_lines
from transduce.findings.finding import Finding, counted, good, make_finding, note, on_lines, problem
from transduce.findings.lines import Side, status_of

__all__ = [
    "as_finding", "examine_column_file", "examine_file", "examine_line_pairs", "examine_two_files", "is_tab_separated",
]  # fmt: skip

SAMPLED_LINES = 1000
TRUNCATED_LINE_BYTES = 1000  # examined of a line that is too long


class _Reader:
    """Yields the lines of a file and counts issues of its bytes; an error ends it and is kept in ``failure``."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.n_lines = 0
        self.failure: str | None = None
        self.has_bom = False
        self.returns, self.too_long = Tally(), Tally()

    def __iter__(self) -> Iterator[str]:
        try:
            with open_binary(self.path) as stream:
                for raw, is_complete in raw_lines(stream):
                    self.n_lines += 1
                    if not is_complete:
                        self.too_long.add(self.n_lines)
                        yield TruncatedLine(raw[:TRUNCATED_LINE_BYTES].decode("utf-8", "surrogateescape"))
                        continue
                    line = raw.removesuffix(b"\n")
                    if self.n_lines == 1 and line.startswith(b"\xef\xbb\xbf"):
                        self.has_bom, line = True, line[3:]
                    if line.endswith(b"\r"):
                        self.returns.add(self.n_lines)
                        line = line[:-1]
                    yield line.decode("utf-8", "surrogateescape")
        except DataError as error:
            self.failure = str(error).removeprefix(f"{self.path} ")
        except READ_ERRORS as error:
            self.failure = f"cannot be read after line {self.n_lines:,}: {error}; is it complete?"

    def findings(self) -> Iterator[Finding]:
        """Yield the findings after all lines were read."""
        if self.failure is not None:
            yield problem(self.path, self.failure)
        elif not self.n_lines:
            yield problem(self.path, "is empty; it should have one sentence per line")
        advice = "training drops them, dev and test must not have them; is it text? split it"
        too_long = f"of more than {MAX_LINE_BYTES:,} bytes"
        yield from on_lines("problem", self.path, self.too_long, "line", too_long, advice)
        if self.has_bom:
            yield note(self.path, "starts with a byte-order mark, which is dropped on reading")
        if self.returns.count == self.n_lines > 0:
            yield note(self.path, "every line ends with a carriage return (CRLF), which is dropped on reading")
        elif self.returns.count:
            lines = counted(self.returns.count, "line")
            yield note(
                self.path,
                f"{lines} of {self.n_lines:,} with a carriage return at the end ({self.returns}), which is dropped;"
                " was the file concatenated from several?",
            )


class _Pairing:
    """Counts issues of line pairs: those that cleaning counts, and finer distinctions."""

    def __init__(
        self, subject: object, src: object, tgt: object, rules: CleaningRules | None, *, column_hint: str = ""
    ) -> None:
        self.subject, self.rules, self.column_hint = subject, rules or CleaningRules(), column_hint
        self.src, self.tgt = Side(src, self.rules), Side(tgt, self.rules)
        self.report = CleaningReport()
        self._near = NearDuplicates()
        self._blank: defaultdict[tuple[bool, bool], Tally] = defaultdict(Tally)  # key: is the source, the target blank

    def run(self, pairs: Iterable[tuple[str, str] | None]) -> None:
        """Observe all pairs; None stands for a line without exactly two columns."""
        for _ in clean(map(self._observe, pairs), self.rules, self.report):
            pass

    def _observe(self, pair: tuple[str, str] | None) -> tuple[str, str] | None:
        self._near.observe(pair)
        if pair is None:
            self.src.n_lines += 1
            self.tgt.n_lines += 1
            return None
        is_blank = self.src.observe(pair[0]), self.tgt.observe(pair[1])
        if any(is_blank):
            self._blank[is_blank].add(self.src.n_lines)
        return pair

    def findings(self) -> Iterator[Finding]:
        """Yield the findings about pairs; those about single lines are the sides'."""
        n_pairs = self.report.n_read
        columns = self.report.dropped["not two columns"]
        advice = f"each line should be source TAB target{self.column_hint}"
        yield from on_lines("problem", self.subject, columns, "line", "without exactly one tab", advice)
        dropped = "training drops them"
        src_blank, tgt_blank = self._blank[True, False], self._blank[False, True]
        for side, other, tally in ((self.src, self.tgt, src_blank), (self.tgt, self.src, tgt_blank)):
            what = f"blank where {other.subject} has text"
            yield from on_lines(status_of(tally, n_pairs), side.subject, tally, "line", what, dropped)
        identical, ratio = self._either("identical sides"), self.report.dropped["length ratio"]
        is_intended = not self.rules.drop_identical  # as in correction, where lines may stay as they are
        too_long = f"with one side more than {self.rules.max_length_ratio:g} times as long as the other"
        for tally, what, advice in (
            (self._blank[True, True], "blank on both sides", dropped),
            (ratio, too_long, f"{dropped}; do the files align there?"),
            (identical, "with the same text on both sides", "not translated, or names and numbers"),
        ):
            status = "note" if tally is identical and is_intended else status_of(tally, n_pairs)
            yield from on_lines(status, self.subject, tally, "pair", what, advice)
        for tally, what, advice in (  # notes only: repetition is normal in text
            (self._either("duplicate"), "repeated exactly", "drop_duplicates = true drops them"),
            (self._near.tally, "repeated except for case or punctuation", "they add little information"),
        ):
            yield from on_lines("note", self.subject, tally, "pair", what, advice)
        if n_pairs:
            summary = f"{counted(n_pairs, 'pair')}, of which cleaning keeps {self.report.n_kept:,}"
            if self.report.n_kept:
                yield good(self.subject, summary)
            else:
                yield problem(self.subject, f"{summary}; there is nothing to train on")

    def _either(self, reason: Literal["identical sides", "duplicate"]) -> Tally:
        """Return the pairs counted under a reason, whether the rules drop or keep them."""
        dropped = self.report.dropped[reason]
        return dropped if dropped.count else self.report.noticed[reason]


def examine_two_files(
    src: Path,
    tgt: Path,
    *,
    rules: CleaningRules | None = None,
    reported: set[Path] | None = None,
    languages: Languages | None = None,
    is_tokenised: bool = False,
) -> Iterator[Finding]:
    """Examine two line-aligned files, in ``languages`` or those of their file names.

    Findings about a single file are skipped if it is in ``reported``, and both files are added to it.
    ``is_tokenised``: the text is known to be tokenised.
    """
    no_text = {path: reason for path in (src, tgt) if (reason := _why_no_text(path)) is not None}
    if no_text:
        for path in (src, tgt):
            yield from [problem(path, no_text[path])] if path in no_text else examine_file(path)
        return
    reported = set() if reported is None else reported
    readers = _Reader(src), _Reader(tgt)
    pairing = _Pairing(f"{src} with {tgt.name}", src, tgt, rules)
    sides = pairing.src, pairing.tgt
    pairing.run(_aligned(readers, sides))
    for reader, side in zip(readers, sides, strict=True):
        if reader.path not in reported:
            reported.add(reader.path)
            yield from reader.findings()
            yield from side.findings()
    if readers[0].n_lines != readers[1].n_lines and not any(reader.failure for reader in readers):
        yield problem(pairing.subject, _misalignment(src, tgt))
    if not any(reader.failure for reader in readers):
        languages = languages or (language_in_name(src), language_in_name(tgt))
        part = two_file_part(src, tgt)
        yield from map(as_finding, remarks_on_part(part, languages, is_tokenised=is_tokenised))
    yield from pairing.findings()


def as_finding(remark: Remark) -> Finding:
    """Convert a remark of the corpus checks to a finding."""
    return make_finding(remark.status, remark.subject, remark.message)


def _aligned(readers: tuple[_Reader, _Reader], sides: tuple[Side, Side]) -> Iterator[tuple[str, str]]:
    """Yield pairs while both files have lines; the rest of the longer file is observed by its own side."""
    for src, tgt in zip_longest(*readers):
        if src is not None and tgt is not None:
            yield src, tgt
        elif src is not None:
            sides[0].observe(src)
        elif tgt is not None:
            sides[1].observe(tgt)


def _misalignment(src: Path, tgt: Path) -> str:
    """Return the error that reading the two files for training would raise."""
    try:
        for _ in read_aligned_files(src, tgt, escape_invalid=True):
            pass
    except DataError as error:
        return str(error)
    return "the numbers of lines differed and are now the same: another process is writing to the files"


def examine_column_file(
    path: Path, *, rules: CleaningRules | None = None, languages: Languages = (None, None)
) -> Iterator[Finding]:
    """Examine a file with source TAB target on each line."""
    if (reason := _why_no_text(path)) is not None:
        yield problem(path, reason)
        return
    reader = _Reader(path)
    hint = hint_at_columns(path)
    pairing = _Pairing(path, f"{path} (source)", f"{path} (target)", rules, column_hint=hint)
    pairing.run(map(two_columns, reader))
    yield from reader.findings()
    yield from pairing.src.findings()
    yield from pairing.tgt.findings()
    if reader.failure is None:
        yield from map(as_finding, remarks_on_part(column_part(path), languages))
    yield from pairing.findings()


def examine_line_pairs(
    subject: str, pairs: Iterable[tuple[str, str]], *, rules: CleaningRules | None = None
) -> Iterator[Finding]:
    """Examine pairs that are not read from a file."""
    pairing = _Pairing(subject, f"{subject} (source)", f"{subject} (target)", rules)
    pairing.run(pairs)
    yield from pairing.src.findings()
    yield from pairing.tgt.findings()
    yield from pairing.findings()


def examine_file(path: Path) -> Iterator[Finding]:
    """Examine a text in one language."""
    if (reason := _why_no_text(path)) is not None:
        yield problem(path, reason)
        return
    reader, side = _Reader(path), Side(path, CleaningRules())
    for line in reader:
        side.observe(line)
    yield from reader.findings()
    yield from side.findings()
    if side.blank.count:
        yield note(path, f"{counted(side.blank.count, 'blank line')} ({side.blank})")
    if side.n_lines:
        yield good(path, f"{counted(side.n_lines, 'line')} of text")


def is_tab_separated(path: Path) -> bool:
    """Return whether a file has two columns, by its name or most of its first lines. Never raises."""
    if ".tsv" in path.suffixes[-2:]:
        return True
    lines = list(islice(_Reader(path), SAMPLED_LINES))
    return 2 * sum(two_columns(line) is not None for line in lines) > len(lines)


def _why_no_text(path: Path) -> str | None:
    """Return why a file cannot be text, judged by its first bytes, or None."""
    try:
        if path.exists() and not path.is_file():
            return "is not a regular file; text is read more than once"
        open_binary(path).close()
    except DataError as error:
        return str(error).removeprefix(f"{path} ")
    return foreign_format(path)

"""Cleaning: each reason with its lines, consistent counts, streaming; and files that do not align."""

from __future__ import annotations

import gzip
import json
import math
import os
import random
import re
import threading
from collections.abc import Iterator, Sequence
from itertools import count, islice
from pathlib import Path

import pytest

from said import naming, says
from transduce.corpora.cleaning import CleaningReport, CleaningRules, Reason, clean
from transduce.corpora.parallel_files import read_aligned_files, read_tab_separated, read_uncleaned_columns
from transduce.errors import ConfigError, DataError

GOOD = ("A dog is running.", "Ein Hund rennt.")


def _cleaned(
    pairs: Sequence[tuple[str, str] | None], rules: CleaningRules | None = None
) -> tuple[list[tuple[str, str]], CleaningReport]:
    report = CleaningReport()
    return list(clean(pairs, rules or CleaningRules(), report)), report


@pytest.mark.parametrize(
    ("pair", "reason"),
    [
        (("", "leer"), "empty"),
        (("blank", " \t\u00a0\u2028"), "empty"),
        (("", ""), "empty"),
        (("x " * 2500 + "x", "y " * 2000), "too long"),
        (("a" * 91, "b"), "length ratio"),
        (("b" * 11, "a" * 100), "length ratio"),
        (("caf\udce9", "Kaffee"), "not UTF-8"),
        (("", "\udcff\0"), "not UTF-8"),
        (("P\0a\0", "Papier"), "control characters"),
        (("paper", "\x1b[31mPapier"), "control characters"),
        (("it\x92s", "es ist"), "control characters"),
        (("Berlin", " Berlin "), "identical sides"),
        (None, "not two columns"),
    ],
)
def test_each_reason(pair: tuple[str, str] | None, reason: Reason) -> None:
    kept, report = _cleaned([GOOD, pair, GOOD])
    assert kept == [GOOD, GOOD]
    assert {name: tally.first_lines for name, tally in report.dropped.items() if tally.count} == {reason: [2]}


@pytest.mark.parametrize(
    "pair",
    [
        ("Yes.", "Ja, das stimmt, das haben wir alle genau so gesehen und gehört."),
        ("a" * 90, "b"),
        ("x" * 5000, "y" * 5000),
        ("  padded" + " " * 6000, "gepolstert\r"),
        ("tab\tform feed\x0cnext line\x85separator\u2028", "nur\x1cLeerraum\x1f"),
        ("soft\u00adhyphen \u200d \ufeff", "weich 🇩🇪 \ue000"),
        ("\ufffd stands for what was lost", "das Zeichen steht für Verlorenes"),
    ],
)
def test_what_is_unusual_but_text_passes_as_it_came(pair: tuple[str, str]) -> None:
    kept, report = _cleaned([pair])
    assert kept == [pair]
    assert report.n_dropped == 0


def test_identical_sides_can_be_kept_and_are_noticed() -> None:
    pairs = [GOOD, ("Berlin", "Berlin")]
    kept, report = _cleaned(pairs, CleaningRules(drop_identical=False))
    assert kept == pairs
    assert report.noticed["identical sides"].first_lines == [2]


def test_duplicates_are_counted_and_dropped_only_on_request() -> None:
    pairs = [GOOD, ("Yes.", "Ja."), (GOOD[0] + "  ", GOOD[1]), (GOOD[0], "Ein Hund."), GOOD, ("", "")]
    kept, report = _cleaned(pairs)
    assert kept == pairs[:5]
    assert (report.noticed["duplicate"].count, report.noticed["duplicate"].first_lines) == (2, [3, 5])
    assert report.dropped["duplicate"].count == 0
    kept, report = _cleaned(pairs, CleaningRules(drop_duplicates=True))
    assert kept == [pairs[0], pairs[1], pairs[3]]
    assert (report.noticed["duplicate"].count, report.dropped["duplicate"].first_lines) == (0, [3, 5])


def test_many_duplicates_are_all_found() -> None:
    """Enough pairs that the table of hashes grows several times."""
    pairs = [(f"sentence {number}", f"Satz {number}") for number in range(20_000)]
    kept, report = _cleaned(pairs + pairs[::-2], CleaningRules(drop_duplicates=True))
    assert kept == pairs
    assert report.dropped["duplicate"].count == 10_000
    assert report.dropped["duplicate"].first_lines == [20_001, 20_002, 20_003]


def test_the_report_for_people_and_for_programs() -> None:
    pairs = [GOOD, ("", "a"), GOOD, *[("b", "")] * 1500, ("a" * 5001, "b" * 5001)]
    _, report = _cleaned(pairs)
    assert report.lines() == [
        "read 1,504 pairs, kept 2, dropped 1,502",
        "dropped 1,501: empty (first at lines 2, 4, 5)",
        "dropped 1: too long (line 1,504)",
        "noticed 1: duplicate (line 3), kept",
    ]
    values = json.loads(json.dumps(report.as_json()))
    assert (values["n_read"], values["n_kept"]) == (1504, 2)
    assert values["dropped"]["empty"] == {"count": 1501, "first_lines": [2, 4, 5]}
    assert values["dropped"]["length ratio"] == {"count": 0, "first_lines": []}
    assert _cleaned([])[1].lines() == ["read 0 pairs, kept 0, dropped 0"]


def test_a_stream_without_end_is_consumed_as_asked() -> None:
    taken = 0

    def endless() -> Iterator[tuple[str, str]]:
        nonlocal taken
        for number in count():
            taken += 1
            yield ("", "") if number % 2 else (f"line {number}", f"Zeile {number}")

    report = CleaningReport()
    kept = clean(endless(), CleaningRules(), report)
    assert (taken, report.n_read) == (0, 0)
    assert list(islice(kept, 3)) == [(f"line {number}", f"Zeile {number}") for number in (0, 2, 4)]
    assert (taken, report.n_read, report.n_kept, report.n_dropped) == (5, 5, 3, 2)


@pytest.mark.parametrize("name", ["max_characters", "max_length_ratio", "ratio_floor"])
@pytest.mark.parametrize("limit", [0, -3, math.nan])
def test_limits_that_make_no_sense(name: str, limit: float) -> None:
    with pytest.raises(ConfigError, match=naming(name, 1, limit)):
        CleaningRules(**{name: limit})


def test_from_bytes_to_clean_pairs(tmp_path: Path) -> None:
    """CRLF, a byte-order mark, Latin-1, UTF-16 and separators that end no line; plain, compressed and with tabs."""
    src_lines = [
        b"\xef\xbb\xbfone dog",
        b"caf\xe9",
        "two\u2028dogs".encode(),
        "three dogs".encode("utf-16-le"),
        b"four",
    ]
    tgt_lines = [b"ein Hund", b"Kaffee", b"zwei\x0cHunde", b"drei Hunde", b"\xed\xa0\x80 vier"]
    expected = [("one dog", "ein Hund"), ("two\u2028dogs", "zwei\x0cHunde")]
    src, tgt, tsv = tmp_path / "src", tmp_path / "tgt.gz", tmp_path / "tsv"
    src.write_bytes(b"\r\n".join(src_lines) + b"\r\n")
    tgt.write_bytes(gzip.compress(b"\n".join(tgt_lines)))
    tsv.write_bytes(b"".join(left + b"\t" + right + b"\r\n" for left, right in zip(src_lines, tgt_lines, strict=True)))
    for pairs in (read_aligned_files(src, tgt, escape_invalid=True), read_uncleaned_columns(tsv)):
        report = CleaningReport()
        assert list(clean(pairs, CleaningRules(), report)) == expected
        assert report.dropped["not UTF-8"].first_lines == [2, 5]
        assert report.dropped["control characters"].first_lines == [4]
        assert report.n_read == 5
    with pytest.raises(DataError, match=naming("src:2", "UTF-8", "0xe9", 4)):
        list(read_aligned_files(src, tgt))
    with pytest.raises(DataError, match=naming("tsv:2", "UTF-8")):
        list(read_tab_separated(tsv))
    tgt.write_bytes(tgt.read_bytes()[:-9])
    with pytest.raises(DataError, match=naming("tgt.gz", "line")):
        list(read_aligned_files(src, tgt, escape_invalid=True))


def test_lines_without_two_columns_are_dropped_and_counted(tmp_path: Path) -> None:
    tsv = tmp_path / "tsv"
    tsv.write_bytes(b"a dog\tein Hund\nno tab\nthree\tcolumns\there\n\tempty\ncaf\xe9\na cat\teine Katze\n\n")
    report = CleaningReport()
    kept = list(clean(read_uncleaned_columns(tsv), CleaningRules(), report))
    assert kept == [("a dog", "ein Hund"), ("a cat", "eine Katze")]
    assert (report.n_read, report.n_kept, report.n_dropped) == (7, 2, 5)
    tally = report.dropped["not two columns"]
    assert (tally.count, tally.first_lines, report.dropped["empty"].first_lines) == (4, [2, 3, 5], [4])
    assert "dropped 4: not two columns (first at lines 2, 3, 5)" in report.lines()
    with pytest.raises(DataError, match=naming("tsv:2", 0)):
        list(read_tab_separated(tsv))


def _parallel_lines(n_lines: int) -> tuple[list[str], list[str]]:
    """Lines of very different lengths, and translations about three times as long."""
    chance = random.Random(1)
    lengths = [chance.randint(5, 60) for _ in range(n_lines)]
    return ["s" * n for n in lengths], ["t" * round(n * chance.uniform(2.6, 3.4)) for n in lengths]


def _refusal(src: Path, tgt: Path, src_lines: list[str], tgt_lines: list[str]) -> str:
    for path, lines in ((src, src_lines), (tgt, tgt_lines)):
        path.write_text("".join(line + "\n" for line in lines), encoding="utf-8")
    with pytest.raises(DataError) as caught:
        list(read_aligned_files(src, tgt))
    return str(caught.value)


@pytest.mark.parametrize("at", [30, 400, 1500, 1960])
def test_a_line_that_is_missing_or_too_many_is_found(tmp_path: Path, at: int) -> None:
    src, tgt = tmp_path / "a", tmp_path / "b"
    src_lines, tgt_lines = _parallel_lines(2000)
    missing = _refusal(src, tgt, src_lines, tgt_lines[: at - 1] + tgt_lines[at:])
    extra = _refusal(src, tgt, [*src_lines[: at - 1], "a line that is too many", *src_lines[at - 1 :]], tgt_lines)
    for message, n_tgt, n_src in ((missing, "1,999", "2,000"), (extra, "2,000", "2,001")):
        assert says(message, tgt, n_tgt, src, n_src)
        place = re.findall(r"\bline ([\d,]+)", message)[-1]
        assert abs(int(place.replace(",", "")) - at) <= 5


def test_a_blank_line_in_one_file_is_pointed_at(tmp_path: Path) -> None:
    src, tgt = tmp_path / "a", tmp_path / "b"
    message = _refusal(src, tgt, ["one", "", "three", "four"], ["eins", " ", "\t", "drei", "vier"])
    assert says(message, f"{tgt}:3", "blank")
    message = _refusal(src, tgt, ["one", "", "two"], ["eins", "zwei"])
    assert says(message, f"{src}:2", "blank")


def test_pipes_are_counted_but_not_opened_again(tmp_path: Path) -> None:
    src, tgt = tmp_path / "a", tmp_path / "b"
    for path, text in ((src, "1\n2\n"), (tgt, "1\n")):
        os.mkfifo(path)
        threading.Thread(target=path.write_text, args=(text,), daemon=True).start()
    with pytest.raises(DataError, match=naming(tgt, 1, src, 2, "pipe")):
        list(read_aligned_files(src, tgt))


def test_a_file_that_was_cut_short_has_no_suspicious_line(tmp_path: Path) -> None:
    src_lines, tgt_lines = _parallel_lines(2000)
    message = _refusal(tmp_path / "a", tmp_path / "b", src_lines, tgt_lines[:-100])
    assert message.endswith("(no suspicious line found; compare the first and the last lines)")
    message = _refusal(tmp_path / "a", tmp_path / "b", ["same"] * 3000, ["gleich"] * 2000)
    assert message.endswith("(no suspicious line found; compare the first and the last lines)")

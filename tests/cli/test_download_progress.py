"""Download progress without a terminal: a limited number of plain lines."""

from __future__ import annotations

import pytest

from said import says
from transduce.cli.progress import DownloadProgress, PlainLines


def test_a_line_at_the_beginning_and_at_each_tenth() -> None:
    lines: list[str] = []
    show = PlainLines("a.tgz", log=lines.append, clock=lambda: 0.0)
    for n_bytes in range(0, 40_000_001, 100_000):
        show(n_bytes, 40_000_000)
    for line, tenth in zip(lines, range(11), strict=True):
        assert says(line, "a.tgz", f"{4 * tenth:.1f}", "40.0 MB", f"{10 * tenth}%"), line


def test_a_line_each_half_minute_where_it_is_slow_or_of_unknown_size() -> None:
    for n_in_all, facts in ((10**9, ["a", 0.1, "1,000.0 MB", "0%"]), (None, ["a", "0.1 MB"])):
        lines: list[str] = []
        seconds = iter(range(100, 161))
        show = PlainLines("a", log=lines.append, clock=lambda seconds=seconds: next(seconds))  # type: ignore[misc]
        for _ in range(61):
            show(100_000, n_in_all)
        assert [says(line, *facts) for line in lines] == [True] * 3


def test_without_a_terminal_each_file_has_its_lines(capsys: pytest.CaptureFixture[str]) -> None:
    with DownloadProgress() as progress:
        for name in ("a", "b"):
            progress.of_file(name)(1_000_000, 2_000_000)
    captured = capsys.readouterr()
    assert captured.out == ""
    for line, name in zip(captured.err.splitlines(), ("a", "b"), strict=True):
        assert says(line, name, "1.0", "2.0 MB", "50%"), line

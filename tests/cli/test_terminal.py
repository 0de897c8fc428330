"""Terminal features: prompt with history, progress bar, completion. Each test opens its own terminal."""

from __future__ import annotations

import os
import re
import stat
import time
from pathlib import Path

import pytest

from forks import Forks
from transduce.cli.history import history_file, line_history
from transduce.cli.progress import TrainingProgress
from transduce.config import TrainingConfig
from transduce.training import UpdateRecord

pty = pytest.importorskip("pty")  # not on Windows

pytestmark = pytest.mark.merge

PROMPT = """
from transduce.cli.stdin import typed_lines
for line in typed_lines("en", history="test"):
    print(f"<{line}>", flush=True)
"""
UP, ENTER, END = b"\x1b[A", b"\r", b"\x04"
PATIENCE_S = 60.0


def read_until(terminal: int, words: bytes) -> bytes:
    seen, give_up = b"", time.monotonic() + PATIENCE_S
    while words not in seen and time.monotonic() < give_up:
        try:
            seen += os.read(terminal, 4096)
        except OSError:  # it has been closed
            break
    assert words in seen, seen
    return seen


def at_a_prompt(forks: Forks, cache: Path, *typed: tuple[bytes, bytes]) -> None:
    """Type each line and wait for the output."""
    ours, theirs = pty.openpty()
    environment = {"XDG_CACHE_HOME": str(cache), "TERM": "xterm"}
    process = forks.start(program=PROMPT, stdin=theirs, stdout=theirs, stderr=theirs, env=environment)
    os.close(theirs)
    read_until(ours, b"en> ")
    for keys, answer in typed:
        os.write(ours, keys)
        read_until(ours, answer)
    time.sleep(0.1)
    os.write(ours, END)
    assert process.wait(PATIENCE_S) == 0
    os.close(ours)


def test_lines_come_back_with_the_arrow_key_also_in_a_later_sitting(forks: Forks, tmp_path: Path) -> None:
    at_a_prompt(forks, tmp_path, (b"one" + ENTER, b"<one>"), (b"two" + ENTER, b"<two>"), (UP + UP + ENTER, b"<one>"))
    kept = tmp_path / "transduce" / "test.history"
    assert kept.read_text().splitlines()[-3:] == ["one", "two", "one"]
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    at_a_prompt(forks, tmp_path, (UP + UP + b"!" + ENTER, b"<two!>"))


def test_a_history_that_cannot_be_kept_is_none(forks: Forks, tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("a file where a folder should be")
    at_a_prompt(forks, tmp_path / "cache", (b"one" + ENTER, b"<one>"), (UP + ENTER, b"<one>"))


def test_old_and_long_lines_are_not_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    readline = pytest.importorskip("readline")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    with line_history("test"):
        for number in range(1500):
            readline.add_history(f"line {number}")
        readline.add_history("word " * 1000)
    lines = history_file("test").read_text().splitlines()
    assert (len(lines), lines[-1]) == (1000, "line 1499")


BAR = """
import sys, time
from transduce.cli.progress import LineProgress
from transduce.cli.output import echo
with LineProgress("translating", 2) as progress:
    for line in ("one", "two"):
        print(line, flush=True)
        progress.advance()
    echo("warning: odd")
"""


TRAINING = """
from transduce.cli.progress import TrainingProgress
from transduce.config import TrainingConfig
from transduce.training import SkipRecord, UpdateRecord, Score, ValidationRecord
with TrainingProgress(TrainingConfig(max_updates=1000)) as progress:
    progress.log("[bold]text")
    for update in (100, 200):
        progress(UpdateRecord(update, 1, 2.5, 2.0, 1e-3, 1.0, 7, 7, 1234.0, update / 10, True))
    progress(ValidationRecord(200, 2.0, {"f1": Score(50.0)}, True, 20.0))
    progress(SkipRecord(200, "skipped", 20.0))
"""
TOLD = "[bold]text", "update 200: dev perplexity 7.389   F1 50.00   best so far", "warning: skipped"
PLAIN = "update {}  loss 2.500  1,234 tokens/s  lr 1.00e-03  perplexity 7.39  {} left"

DOWNLOADS = """
from transduce.cli.progress import DownloadProgress
with DownloadProgress() as progress:
    for name in ("a.tgz", "b.tgz"):
        progress.of_file(name)(1_000_000, 2_000_000)
    progress.log("told")
"""


def on_a_terminal(forks: Forks, program: str, **environment: str) -> tuple[str, str, list[str]]:
    """Run a program; return its output to a terminal on stderr, to stdout, and to a stderr that is not a terminal."""
    ours, theirs = pty.openpty()
    variables = {"TERM": "xterm", "COLUMNS": "100", **environment}
    program = f"{program}import sys; print('the end', file=sys.stderr)"
    process = forks.start(program=program, stderr=theirs, env=variables)
    os.close(theirs)
    seen = read_until(ours, b"the end").removesuffix(b"\r\n").removesuffix(b"the end")
    out, _ = process.communicate(timeout=PATIENCE_S)
    os.close(ours)
    plain = forks.run(program=program, timeout=PATIENCE_S, env=variables)
    assert (process.returncode, plain.returncode, plain.stdout) == (0, 0, out)
    *lines, end = plain.stderr.splitlines()
    assert end == "the end"
    return re.sub(r"\x1b\[[\d;?]*[A-Za-z]", "", seen.decode()), out, lines


def test_a_bar_is_on_stderr_alone(forks: Forks) -> None:
    seen, out, plain = on_a_terminal(forks, BAR)
    assert out == "one\ntwo\n"
    assert "one" not in seen
    assert re.search(r"translating ━+ 2/2 lines 0:00:0\d 0:00:00", seen)
    assert "warning: odd" in seen
    assert plain == ["warning: odd"]


def test_a_run_has_a_bar_with_its_news_above(forks: Forks) -> None:
    seen, out, plain = on_a_terminal(forks, TRAINING)
    assert out == ""
    # The bar is redrawn below each line: log lines appear in order, and once.
    assert [line.strip() for line in re.split(r"[\r\n]+", seen) if line.strip() in TOLD] == list(TOLD)
    assert re.search(r"update 200 [━╸╺]+\s+20% loss 2\.500  1,234 tokens/s  lr 1\.00e-03 0:00:0\d 0:01:20 left", seen)
    updates = [PLAIN.format(100, "-:--:--"), PLAIN.format(200, "0:01:20")]
    assert plain == [TOLD[0], *updates, *TOLD[1:]]


def test_the_time_left_counts_two_passes_where_r_drop_begins(capsys: pytest.CaptureFixture[str]) -> None:
    with TrainingProgress(TrainingConfig(max_updates=4000, r_drop=2.0, r_drop_after=2000)) as progress:
        for update in (100, 2000):
            progress(UpdateRecord(update, 1, 2.5, 2.0, 1e-3, 1.0, 7, 7, 1234.0, update / 10, is_logged=True))
    assert "0:06:40 left" in capsys.readouterr().err.splitlines()[-1]


def test_of_several_processes_one_has_a_bar(forks: Forks) -> None:
    assert on_a_terminal(forks, TRAINING, RANK="1", WORLD_SIZE="2") == ("", "", [])


def test_each_download_has_a_bar(forks: Forks) -> None:
    seen, out, plain = on_a_terminal(forks, DOWNLOADS)
    assert out == ""
    assert re.search(r"a\.tgz [━╸╺]+ 1\.0/2\.0 MB", seen)
    assert plain == ["a.tgz: 1.0 of 2.0 MB (50%)", "b.tgz: 1.0 of 2.0 MB (50%)", "told"]


def test_a_shell_completes_verbs_and_options(forks: Forks) -> None:
    def completed(words: str, place: int) -> list[str]:
        values = {"_TRANSDUCE_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": str(place)}
        done = forks.run(env=values, timeout=PATIENCE_S)
        assert done.returncode == 0, done.stderr
        return done.stdout.split()

    assert completed("transduce tr", 1) == ["train", "translate", "transcribe"]
    assert {"--beam", "--in", "--out"} <= set(completed("transduce translate --", 2))

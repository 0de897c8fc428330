"""What a person at a terminal has: a prompt with history, a bar, completion. Each with a terminal of its own."""

from __future__ import annotations

import os
import pty
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest

from transduce.cli.history import history_file, line_history

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


def at_a_prompt(cache: Path, *typed: tuple[bytes, bytes]) -> None:
    """Type each of them, and wait for the answer."""
    ours, theirs = pty.openpty()
    environment = {**os.environ, "XDG_CACHE_HOME": str(cache), "TERM": "xterm"}
    process = subprocess.Popen(
        [sys.executable, "-c", PROMPT], stdin=theirs, stdout=theirs, stderr=theirs, env=environment, close_fds=True
    )
    os.close(theirs)
    read_until(ours, b"en> ")
    for keys, answer in typed:
        os.write(ours, keys)
        read_until(ours, answer)
    time.sleep(0.1)
    os.write(ours, END)
    assert process.wait(PATIENCE_S) == 0
    os.close(ours)


def test_lines_come_back_with_the_arrow_key_also_in_a_later_sitting(tmp_path: Path) -> None:
    at_a_prompt(tmp_path, (b"one" + ENTER, b"<one>"), (b"two" + ENTER, b"<two>"), (UP + UP + ENTER, b"<one>"))
    kept = tmp_path / "transduce" / "test.history"
    assert kept.read_text().splitlines()[-3:] == ["one", "two", "one"]
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    at_a_prompt(tmp_path, (UP + UP + b"!" + ENTER, b"<two!>"))


def test_a_history_that_cannot_be_kept_is_none(tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("a file where a folder should be")
    at_a_prompt(tmp_path / "cache", (b"one" + ENTER, b"<one>"), (UP + ENTER, b"<one>"))


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
from transduce.cli.line_progress import LineProgress
from transduce.cli.output import say
with LineProgress("translating", 2) as progress:
    for line in ("one", "two"):
        print(line, flush=True)
        progress.advance()
    say("warning: odd")
"""


def test_a_bar_is_on_stderr_alone() -> None:
    ours, theirs = pty.openpty()
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "100"}
    process = subprocess.Popen([sys.executable, "-c", BAR], stdout=subprocess.PIPE, stderr=theirs, env=environment)
    os.close(theirs)
    seen = read_until(ours, b"2/2")
    out, _ = process.communicate(timeout=PATIENCE_S)
    assert out == b"one\ntwo\n"
    assert b"one" not in seen
    assert b"odd" in seen
    os.close(ours)
    plain = subprocess.run([sys.executable, "-c", BAR], capture_output=True, check=True, timeout=PATIENCE_S)
    assert (plain.stdout, plain.stderr) == (b"one\ntwo\n", b"warning: odd\n")


def test_a_shell_completes_verbs_and_options() -> None:
    environment = {**os.environ, "_TRANSDUCE_COMPLETE": "complete_bash", "COMP_CWORD": "1"}

    def completed(words: str, place: int) -> list[str]:
        values = {**environment, "COMP_WORDS": words, "COMP_CWORD": str(place)}
        done = subprocess.run(
            [sys.executable, "-m", "transduce"], env=values, capture_output=True, text=True, timeout=PATIENCE_S
        )
        assert done.returncode == 0, done.stderr
        return done.stdout.split()

    assert completed("transduce tr", 1) == ["train", "translate"]
    assert {"--beam", "--in", "--out"} <= set(completed("transduce translate --", 2))

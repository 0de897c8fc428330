"""The command as its own process: signals, pipes and terminals."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

TRANSDUCE = [sys.executable, "-m", "transduce"]


def start(*arguments: object, **options: object) -> subprocess.Popen[str]:
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    return subprocess.Popen([*TRANSDUCE, *map(str, arguments)], **{**pipes, **options})  # type: ignore[call-overload]


@pytest.mark.parametrize("kind", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_saves_and_the_run_goes_on(micro_recipe: Path, tmp_path: Path, kind: signal.Signals) -> None:
    run = tmp_path / "run"
    process = start("train", micro_recipe, "--out", run, "--set", "training.max_updates=100000", "--device", "cpu")
    deadline = time.monotonic() + 60
    while not list(run.glob("checkpoints/update-*")) and time.monotonic() < deadline:
        time.sleep(0.05)
    process.send_signal(kind)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 128 + kind
    assert "Traceback" not in err
    saved = int(err.split("saved after update ")[1].split(";")[0].replace(",", ""))
    resumed = start("train", "--resume", "--out", run, "--set", f"training.max_updates={saved + 2}", "--device", "cpu")
    out, err = resumed.communicate(timeout=60)
    assert resumed.returncode == 0, err
    assert f"resumed from update-{saved:08}" in err
    assert f"model: {run / 'model'}" in out


def test_a_buffer_of_one_answers_each_line(micro_model: Path) -> None:
    process = start("translate", micro_model, "--buffer", 1, "--json", "--device", "cpu")
    assert process.stdin is not None
    assert process.stdout is not None
    for number in (1, 2):
        process.stdin.write("The dog sleeps.\n")
        process.stdin.flush()
        assert process.stdout.readline().startswith(f'{{"line": {number}, ')
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=30)
    assert process.returncode == 130
    assert "Traceback" not in err


def test_text_is_utf8_whatever_the_locale(micro_model: Path) -> None:
    environment = {**os.environ, "PYTHONIOENCODING": "ascii", "LC_ALL": "C"}
    process = start("translate", micro_model, "--json", "--device", "cpu", env=environment, encoding="utf-8")
    out, err = process.communicate("\ufeffEin süßer Hund.\n", timeout=30)
    assert process.returncode == 0, err
    assert '"source": "Ein süßer Hund."' in out


def test_a_reader_that_goes_away_ends_it_quietly(micro_model: Path) -> None:
    with start("translate", micro_model, "--buffer", 1, "--device", "cpu") as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        with contextlib.suppress(BrokenPipeError):
            process.stdin.write("The dog sleeps.\n" * 5)
            process.stdin.close()
        assert process.wait(timeout=30) == -signal.SIGPIPE
        assert process.stderr.read() == ""

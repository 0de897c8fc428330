"""The command as its own process: signals, pipes and terminals."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from subprocess import PIPE

import pytest

from forks import Forks
from run_records import records
from transduce.cli.signals import HANGUP_S
from transduce.training import read_state

pytestmark = [pytest.mark.reliability, pytest.mark.merge]


@pytest.mark.parametrize("kind", [signal.SIGINT, signal.SIGTERM, pytest.param(signal.SIGHUP, marks=pytest.mark.slow)])
def test_a_signal_saves_and_the_run_goes_on(
    forks: Forks, micro_recipe: Path, tmp_path: Path, kind: signal.Signals
) -> None:
    run = tmp_path / "run"
    process = forks.start(
        "train", micro_recipe, "--out", run, "--set", "training.max_updates=100000", "--device", "cpu"
    )
    wait_for_checkpoint(run)
    process.send_signal(kind)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 128 + kind
    assert "Traceback" not in err
    saved = int(err.split("saved after update ")[1].split(";")[0].replace(",", ""))
    resumed = forks.run("train", "--resume", "--out", run, "--set", f"training.max_updates={saved + 2}")
    assert resumed.returncode == 0, resumed.stderr
    assert f"resumed from update-{saved:08}" in resumed.stderr
    assert f"model: {run / 'model'}" in resumed.stdout


def wait_for_checkpoint(run: Path) -> None:
    deadline = time.monotonic() + 60
    while not list(run.glob("checkpoints/update-*")) and time.monotonic() < deadline:
        time.sleep(0.02)


@pytest.mark.merge
def test_a_signal_within_validation_saves(forks: Forks, micro_recipe: Path, tmp_path: Path) -> None:
    """With a look at 500 dev sentences after each update, no signal comes at another moment."""
    run = tmp_path / "run"
    settings = ("training.max_updates=100000", "training.validate_every_updates=1", "training.validation_sentences=500")
    process = forks.start(
        "train", micro_recipe, "--out", run, "--device", "cpu", *(p for s in settings for p in ("--set", s))
    )
    wait_for_checkpoint(run)
    time.sleep(0.3)
    asked = time.monotonic()
    process.send_signal(signal.SIGTERM)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 143, err
    assert "Traceback" not in err
    assert time.monotonic() - asked < 30
    saved = int(err.split("saved after update ")[1].split(";")[0].replace(",", ""))
    state = read_state(run / "checkpoints" / f"update-{saved:08}")
    assert state.validated_update == saved - 1  # it was within a validation
    # Stopped before the validation was done, it is done after the resume, and recorded once.
    resumed = forks.run("train", "--resume", "--out", run, "--set", f"training.max_updates={saved + 1}")
    assert resumed.returncode == 0, resumed.stderr
    validated = [record["update"] for record in records(run, "validation")]
    assert validated == list(range(1, saved + 2))


BUSY = """
import hashlib
from transduce.cli.signals import StopRequest
with StopRequest():
    print("busy", flush=True)
    hashlib.pbkdf2_hmac("sha256", b"", b"", 10**9)
"""


@pytest.mark.parametrize("kind", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_second_signal_ends_it_at_once(forks: Forks, kind: signal.Signals) -> None:
    """Even where Python does not come to the first one, since a library computes for minutes."""
    process = forks.start(program=BUSY)
    assert process.stdout is not None
    assert process.stdout.readline() == "busy\n"
    asked = time.monotonic()
    process.send_signal(kind)
    time.sleep(0.2 if kind != signal.SIGHUP else HANGUP_S + 0.2)  # one hang-up sends several within a moment
    assert process.poll() is None
    process.send_signal(kind)
    process.communicate(timeout=30)
    assert process.returncode == 128 + kind
    assert time.monotonic() - asked < 10


def start_interpreter(*arguments: object, env: dict[str, str] | None = None) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [Path(sys.executable).with_name("transduce"), *map(str, arguments)],
        stdin=PIPE, stdout=PIPE, stderr=PIPE, encoding="utf-8", env=env,
    )  # fmt: skip


def test_a_buffer_of_one_answers_each_line(micro_model: Path) -> None:
    """An interpreter of its own, as users start it."""
    process = start_interpreter("translate", micro_model, "--buffer", 1, "--json", "--device", "cpu")
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


def test_ctrl_c_ends_all_workers(forks: Forks, micro_model: Path) -> None:
    options = ("--workers", 2, "--buffer", 1, "--device", "cpu")
    process = forks.start("translate", micro_model, *options, stdin=PIPE, before="os.setpgid(0, 0)")
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write("The dog sleeps.\n" * 4)
    process.stdin.flush()
    assert process.stdout.readline()
    os.killpg(process.pid, signal.SIGINT)  # as a terminal sends it
    _, err = process.communicate(timeout=30)
    assert process.returncode == 130
    assert err.splitlines()[-1] == "interrupted"
    assert "Traceback" not in err
    assert no_process_is_left(process.pid)


def no_process_is_left(group: int) -> bool:
    """Whether all processes of a group end within some seconds."""
    for _ in range(100):
        try:
            os.killpg(group, 0)
        except ProcessLookupError:
            return True
        time.sleep(0.1)
    return False


@pytest.mark.skipif(not __file__.isascii(), reason="Python reads the paths of editable installations in the locale")
def test_text_is_utf8_whatever_the_locale(micro_model: Path) -> None:
    environment = {**os.environ, "PYTHONIOENCODING": "ascii", "LC_ALL": "C"}
    process = start_interpreter("translate", micro_model, "--json", "--device", "cpu", env=environment)
    out, err = process.communicate("\ufeffEin süßer Hund.\n", timeout=30)
    assert process.returncode == 0, err
    assert '"source": "Ein süßer Hund."' in out


def test_a_reader_that_goes_away_ends_it_quietly(forks: Forks, micro_model: Path, tmp_path: Path) -> None:
    memory, temporary = tmp_path / "memory.tsv", tmp_path / "temporary"
    memory.write_text("A cat.\tEine Katze.\n")
    temporary.mkdir()
    command = ("translate", micro_model, "--buffer", 1, "--device", "cpu", "--memory", memory)
    with forks.start(*command, stdin=PIPE, env={"TMPDIR": str(temporary)}) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        with contextlib.suppress(BrokenPipeError):
            process.stdin.write("The dog sleeps.\n" * 5)
            process.stdin.close()
        assert process.wait(timeout=30) == 128 + signal.SIGPIPE
        # Of the translation itself there may be something to say.
        assert all(line.startswith("warning: line 1 has a translation") for line in process.stderr.read().splitlines())
    assert not list(temporary.iterdir())

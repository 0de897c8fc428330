"""What a command says when a signal ends it."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from forks import Forks
from transduce.cli.signals import EndedBySignal, told_how_to_resume


@pytest.mark.parametrize("end", [KeyboardInterrupt(), EndedBySignal(signal.SIGTERM)])
def test_a_run_that_is_ended_outside_of_training_says_how_to_go_on(
    end: BaseException, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupt() -> None:
        with told_how_to_resume(tmp_path):
            raise end

    with pytest.raises(type(end)):
        interrupt()
    assert capsys.readouterr().err == ""  # there is no run yet: the same command starts it
    (tmp_path / "run.json").write_text("{}")
    with pytest.raises(type(end)):
        interrupt()
    assert f"transduce train --resume --out {tmp_path}\n" in capsys.readouterr().err


@pytest.mark.merge
def test_a_signal_after_the_work_is_no_error(forks: Forks) -> None:
    late = "import atexit; atexit.register(lambda: os.kill(os.getpid(), signal.SIGTERM))"
    done = forks.run("--version", before=late)
    assert (done.returncode, done.stderr) == (-signal.SIGTERM, "")
    assert done.stdout

"""Whatever is done to a file that we read: it is refused in one line, or nothing has changed. Never anything else.

The cases run in a process of their own, so that one that ends the process or hangs is the failure of a named case.
"""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

import pytest

pytestmark = pytest.mark.reliability

WORKER = Path(__file__).with_name("fuzz_worker.py")
FORMATS = ("model", "store", "prepared", "checkpoint", "tokenizer", "run")
MOST_CRASHES = 10
ALL_TOGETHER_S = 600


@dataclass
class Result:
    """What a set of cases has come to."""

    n_cases: int = 0
    counts: dict[str, int] = field(default_factory=dict)  # "model refused": 77
    faults: list[str] = field(default_factory=list)


def fuzz(run: Path, scratch: Path, *, worker: Path = WORKER, seeds: int, every: int = 1) -> Result:
    """Run the cases; where the worker dies, name the case and go on after it."""
    result = Result()
    scratch.mkdir(parents=True, exist_ok=True)
    for _ in range(MOST_CRASHES):
        output = scratch / "output"
        with output.open("w") as out, (scratch / "errors").open("w") as err:
            arguments = [run, scratch, "--seeds", seeds, "--every", every, "--skip", result.n_cases]
            code = subprocess.run(
                [sys.executable, worker, *map(str, arguments)], stdout=out, stderr=err, timeout=ALL_TOGETHER_S
            ).returncode
        case = "the start"
        for line in output.read_text().splitlines():
            kind, _, rest = line.partition(" ")
            match kind:
                case "begin":
                    result.n_cases, case = result.n_cases + 1, rest
                case "bad":
                    name, _, why = rest.partition(": ")
                    result.faults.append(f"{name}\n{json.loads(why)}")
                case "done":
                    for key, count in json.loads(rest).items():
                        result.counts[key] = result.counts.get(key, 0) + count
                    return result
        last_words = (scratch / "errors").read_text()[-3000:]
        result.faults.append(f"{case} ended the process with code {code}:\n{last_words}")
        if case == "the start":
            break
    return result


def require_no_fault(result: Result) -> None:
    assert not result.faults, f"{len(result.faults)} of {result.n_cases} cases:\n" + "\n".join(result.faults[:20])


def test_some_hundred_damaged_files(micro_run: Path, tmp_path: Path) -> None:
    result = fuzz(micro_run, tmp_path, seeds=1, every=2)
    require_no_fault(result)
    assert result.n_cases >= 300
    assert all(result.counts[f"{name} refused"] >= 5 for name in FORMATS)


@pytest.mark.slow
def test_thousands_of_damaged_files(micro_run: Path, tmp_path: Path) -> None:
    result = fuzz(micro_run, tmp_path, seeds=6)
    require_no_fault(result)
    assert result.n_cases == sum(result.counts.values()) >= 2000
    print(result.counts)
    for name in FORMATS:  # neither is all refused at the door, nor does all pass
        assert result.counts[f"{name} refused"] >= 50
        assert result.counts[f"{name} sound"] >= 5
    for name in ("model", "store", "prepared", "checkpoint"):
        assert result.counts[f"{name} the same"] >= 5


def test_a_case_that_ends_the_process_is_named(tmp_path: Path) -> None:
    """The harness itself, over a worker that aborts, hangs and fails in turn."""
    worker = tmp_path / "worker.py"
    worker.write_text(
        "import faulthandler, os, sys, threading\n"
        "skip = int(sys.argv[sys.argv.index('--skip') + 1])\n"
        "for case in ['good', 'aborts', 'hangs', 'fails', 'fine'][skip:]:\n"
        "    print('begin', case, flush=True)\n"
        "    faulthandler.dump_traceback_later(0.2, exit=True)\n"
        "    if case == 'aborts':\n"
        "        os.abort()\n"
        "    if case == 'hangs':\n"
        "        threading.Event().wait()\n"
        "    if case == 'fails':\n"
        "        print('bad fails: \"why\"', flush=True)\n"
        "    faulthandler.cancel_dump_traceback_later()\n"
        "print('done {\"model refused\": 2}')\n"
    )
    result = fuzz(tmp_path, tmp_path / "scratch", worker=worker, seeds=1)
    aborted, hung, failed = result.faults
    assert aborted.startswith("aborts ended the process with code -6")
    assert hung.startswith("hangs ended the process with code 1:\nTimeout")
    assert failed == "fails\nwhy"
    assert (result.n_cases, result.counts) == (5, {"model refused": 2})

"""Whatever is done to a file, to text, to a stream or to a command line: it is refused in one line, or all is well.

Never a traceback, a hang, more than 4 GB, a file outside, another program, another result without a word. The cases run
in processes of their own, under limits; see ``fuzzing``. One case again:
``python tests/reliability/fuzz.py --only 'recipe/set/model.d_ff#3'``.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

import pytest

pytestmark = [
    pytest.mark.reliability,
    pytest.mark.skipif(not sys.platform.startswith("linux"), reason="children are limited as Linux can"),
]

FUZZ = Path(__file__).with_name("fuzz.py")
FORMATS = (
    "model", "store", "prepared", "checkpoint", "tokenizer", "run", "recipe", "resume", "entry", "archive", "text",
    "compressed", "trees", "command", "descriptors", "documents", "opus", "marian",
)  # fmt: skip
PROTECTED = ("model", "store", "prepared", "checkpoint")
MOST_TOLD = 20
ALL_TOGETHER_S = 3600


@dataclass(frozen=True)
class Fuzzed:
    """What a set of cases has come to."""

    cases: list[dict[str, Any]]
    said: str

    @property
    def counts(self) -> Counter[tuple[str, str]]:
        """By format and outcome."""
        return Counter((each["name"].partition("/")[0], each["outcome"] or "failures") for each in self.cases)

    @property
    def faults(self) -> dict[str, str]:
        """The kind of each failure, by the name of its case, without the seed."""
        return {each["name"].partition("#")[0]: each["fault"] for each in self.cases if each["outcome"] is None}

    def require_no_fault(self) -> None:
        bad = [each for each in self.cases if each["outcome"] is None]
        told = "\n\n".join(
            f"{each['name']}: {each['fault']}\n{each['command']}\n{each['detail']}" for each in bad[:MOST_TOLD]
        )
        assert not bad, f"{len(bad)} of {len(self.cases)} cases:\n{told}"


Fuzz = Callable[..., Fuzzed]


@pytest.fixture(scope="module")
def fuzz(tmp_path_factory: pytest.TempPathFactory) -> Fuzz:
    """``fuzz(scratch, *arguments)`` plays cases; it fails if the fuzzer itself does. All share their good files."""
    sources = tmp_path_factory.mktemp("fuzz") / "sources"

    def play(scratch: Path, *arguments: str) -> Fuzzed:
        scratch.mkdir(exist_ok=True)
        log = scratch / "cases.jsonl"
        folders = ["--scratch", str(scratch / "fuzz"), "--sources", str(sources), "--json", str(log)]
        command = [sys.executable, str(FUZZ), *folders, *arguments]
        done = subprocess.run(command, capture_output=True, text=True, timeout=ALL_TOGETHER_S)
        assert "Traceback" not in done.stderr, done.stderr[-5000:]
        return Fuzzed([json.loads(line) for line in log.read_text().splitlines()], done.stdout)

    return play


N_CASES_OF_A_DAY, N_CASES = 8, 16  # of each format


@pytest.mark.slow  # what a day draws must not decide whether a commit is accepted
def test_a_few_cases_of_every_format_others_each_day(fuzz: Fuzz, tmp_path: Path) -> None:
    seed = date.today().toordinal()
    print(f"the cases of --seed {seed}")
    fuzzed = fuzz(tmp_path, "--cases", str(N_CASES_OF_A_DAY), "--seed", str(seed))
    fuzzed.require_no_fault()
    assert Counter(each["name"].partition("/")[0] for each in fuzzed.cases) == dict.fromkeys(FORMATS, N_CASES_OF_A_DAY)


@pytest.mark.merge
def test_some_cases_of_every_format(fuzz: Fuzz, tmp_path: Path) -> None:
    fuzzed = fuzz(tmp_path, "--cases", str(N_CASES))
    fuzzed.require_no_fault()
    assert len(fuzzed.cases) == N_CASES * len(FORMATS)
    refused = [fuzzed.counts[name, "refused"] for name in FORMATS]
    assert min(refused) >= 2  # neither does all pass
    assert sum(refused) < 0.9 * len(fuzzed.cases)  # nor is all refused at the door


@pytest.mark.slow
def test_thousands_of_cases(fuzz: Fuzz, tmp_path: Path) -> None:
    fuzzed = fuzz(tmp_path, "--cases", "2000")
    print(fuzzed.said)
    fuzzed.require_no_fault()
    for name in FORMATS:
        assert sum(n for (format, _), n in fuzzed.counts.items() if format == name) == 2000
        assert 50 <= fuzzed.counts[name, "refused"] <= 1980, name
    for name in PROTECTED:
        assert fuzzed.counts[name, "the same"] >= 5
        assert fuzzed.counts[name, "sound"] >= 5


WRONGDOINGS = {
    "aborts": "ended by SIGABRT",
    "segfaults": "ended by SIGSEGV",
    "leaves": "ended the process with code 3",
    "hangs": "hangs",
    "eats_memory": "took more than 4 GB",
    "raises": "an uncaught exception",
    "writes_outside": "wrote outside",
    "renames_outside": "wrote outside",
    "makes_outside": "wrote outside",
    "removes_by_folder": "wrote outside",
    "links_outside": "wrote outside",
    "follows_a_link": "wrote outside",
    "swallows": "wrote outside",
    "writes_natively": "changed files outside",
    "executes": "started a program",
    "calls_a_shell": "started a program",
    "becomes_another": "started a program",
    "connects": "used the network",
    "unpickles": "read a pickle",
    "changes_silently": "was loaded, and is another",
    "is_silent": "refused without one line 'error: ...'",
    "speaks_twice": "refused without one line 'error: ...'",
    "prints_esc": "control characters on stderr",
    "prints_esc_on_stdout": "control characters on stdout",
    "talks_long": "a line too long on stderr",
    "talks_much": "too many lines on stderr",
    "prints_a_traceback": "a traceback was printed",
    "warns": "a warning of Python was printed",
    "exits_oddly": "exit code 77",
    "command_raises": "an uncaught exception",
    "command_hangs": "hangs",
    "command_eats_memory": "took more than 4 GB",
    "command_writes_outside": "wrote outside",
    "does_not_stop": "hangs",
}
GOOD_DEEDS = {"good": "sound", "refuses": "refused", "stops": "exit 143", "ends": "exit 0"}


@pytest.mark.merge
def test_every_wrongdoing_is_told_for_what_it_is(fuzz: Fuzz, tmp_path: Path) -> None:
    """The fuzzer itself, over cases that do what it is there to find; each leaves the next as it should be."""
    names = [f"misbehaving/{stem}#0" for stem in (*WRONGDOINGS, *GOOD_DEEDS)]
    fuzzed = fuzz(tmp_path, "--hang", "2", "--only", *names)
    assert len(fuzzed.cases) == len(names)
    assert fuzzed.faults == {f"misbehaving/{stem}": fault for stem, fault in WRONGDOINGS.items()}
    assert fuzzed.counts["misbehaving", "failures"] == len(WRONGDOINGS)
    went_well = {
        each["name"].split("/")[1].partition("#")[0]: each["outcome"] for each in fuzzed.cases if each["outcome"]
    }
    assert went_well == GOOD_DEEDS


@pytest.mark.merge
def test_a_case_follows_from_its_name(fuzz: Fuzz, tmp_path: Path) -> None:
    name = "run/signed/run.json/json_replace#7"
    one, other = (fuzz(tmp_path / folder, "--only", name) for folder in ("a", "b"))
    assert [each["outcome"] for each in one.cases] == [each["outcome"] for each in other.cases]
    assert f"{name}: " in one.said

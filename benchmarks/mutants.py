"""Does a test suite find faults? Mutants of the core of transduce, and which of them the tests kill.

    python benchmarks/mutants.py choose --suite DIR --seed 1 --n 80   # writes tests/mutants.json; extra "mutation"
    python benchmarks/mutants.py map --suite DIR --work WORK [-n 2] [--pytest-args "-m fast"]
    python benchmarks/mutants.py run --suite DIR --work WORK [--seconds 120]
    python benchmarks/mutants.py report --work WORK

The mutants (operators of cosmic-ray) are a committed list, so that the same faults can be put to two suites. ``DIR``
is a checkout with its ``src``, ``tests`` and ``.venv`` (default: this one); ``WORK`` keeps its map and results; use
another folder for another suite or other ``--pytest-args``. ``map`` runs the tests once under coverage.py; ``run`` does
so first if need be. For each mutant, ``run`` takes the tests that execute the changed statement, directly or through a
shared fixture, the quickest first, until one fails: killed. A test that hangs kills, too. Tests that start processes
are seen only by what they execute in their own, doctests not at all. Mutants live in a copy of ``src`` in WORK; results
are JSON lines, and an interrupted command goes on where it stopped. At the end the tests that killed run without a
mutant, and must pass.
"""

from __future__ import annotations

import argparse
import compileall
import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from mutant_list import FOLDERS, MUTANTS, Mutant, package, read_mutants, statement
from needed import need

HERE = Path(__file__).resolve().parent
# Not the tests of benchmarks and GPUs, nor those that work in processes of their own.
NOT_RUN = ("paper", "benchmarks", "gpu", "distributed", "integration", "reliability")
N_FIRST = 40  # quickest tests, started before the others are collected
HANGS_AFTER = 40.0  # seconds, and five times what the test takes

# The map of tests and lines


class Map:
    """Which tests of a suite execute which lines, and their seconds."""

    def __init__(self, suite: Path, work: Path) -> None:
        import coverage

        self.root = package(suite / "src")
        self.data = []
        for path in sorted((work / "map").glob("lines.*")):
            data = coverage.CoverageData(str(path))
            data.read()
            self.data.append(data)
        self.seconds: dict[str, float] = {}  # of a test that runs alone, thus makes its shared fixtures, at most
        self.users: dict[str, list[str]] = defaultdict(list)
        makers: dict[str, float] = {}  # a fixture takes no longer than the first test that uses it
        records = []
        for path in sorted((work / "map").glob("tests.*.jsonl")):
            made = set()
            for line in path.read_text().splitlines():
                record = json.loads(line)
                for fixture in set(record["uses"]) - made:
                    makers[fixture] = min(record["seconds"], makers.get(fixture, record["seconds"]))
                made.update(record["uses"])
                if record["outcome"] == "passed":
                    records.append(record)
        for record in records:
            self.seconds[record["id"]] = max([record["seconds"], *(makers[fixture] for fixture in record["uses"])])
            for fixture in record["uses"]:
                self.users[fixture].append(record["id"])
        self._lines: dict[str, dict[int, set[str]]] = {}

    def tests(self, file: str, source: str, line: int) -> list[str]:
        """The tests that execute the statement of a line, the quickest first."""
        contexts = set().union(*(self.lines(file).get(number, set()) for number in statement(source, line)))
        tests = {test for context in contexts for test in self.users.get(context, [context])}
        return sorted(tests & self.seconds.keys(), key=lambda test: (self.seconds[test], test))

    def lines(self, file: str) -> dict[int, set[str]]:
        """The contexts of each line of a file."""
        if file not in self._lines:
            found: dict[int, set[str]] = defaultdict(set)
            for data in self.data:
                for line, contexts in data.contexts_by_lineno(str(self.root / file)).items():
                    found[line] |= {context for context in contexts if context}
            self._lines[file] = found
        return self._lines[file]


def make_map(suite: Path, work: Path, n_processes: str, pytest_args: Sequence[str]) -> None:
    """Run the tests of a suite once under coverage.py with contexts."""
    folder = work / "map"
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "plugin").mkdir(parents=True)
    shutil.copy(HERE / "mutant_map.py", folder / "plugin")
    core = package(suite / "src")
    patterns = [str(core / (name if name.endswith(".py") else f"{name}/*")) for name in FOLDERS]
    environment = {
        **os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(folder / "plugin"),
        "MUTANT_MAP": str(folder), "MUTANT_LINES": os.pathsep.join(patterns),
    }  # fmt: skip
    ignored = [f"--ignore=tests/{name}" for name in NOT_RUN]
    command = ["-m", "pytest", "-p", "mutant_map", "-p", "no:cacheprovider", "-n", n_processes, "tests", *ignored]
    started = time.monotonic()
    outcome = subprocess.run([python(suite), *command, *pytest_args], cwd=suite, env=environment, check=False)
    (folder / "done").write_text(f"exit status {outcome.returncode}, {time.monotonic() - started:.0f} s\n")


def python(suite: Path) -> str:
    """The interpreter of a checkout."""
    own = suite / ".venv" / "bin" / "python"
    return str(own) if own.exists() else sys.executable


# Running


@dataclass(frozen=True)
class Result:
    """What the tests said about one mutant."""

    id: int
    outcome: str  # killed, timeout (also killed), survived, limit (survived what ran within it), gone (not applicable)
    by: str
    n_tests: int
    n_covering: int
    seconds: float


def read_results(work: Path) -> list[Result]:
    """The results so far, of each mutant the last."""
    path = work / "results.jsonl"
    results = [Result(**json.loads(line)) for line in path.read_text().splitlines()] if path.exists() else []
    return list({result.id: result for result in results}.values())


def run(suite: Path, work: Path, limit: float, only: Sequence[int]) -> None:
    """Put the mutants that have no result yet to the tests. Runs in the interpreter of the suite."""
    tests_of = Map(suite, work)
    results = work / "results.jsonl"
    done = {result.id for result in read_results(work)}
    tree = work / "src"
    shutil.rmtree(tree, ignore_errors=True)
    shutil.copytree(suite / "src", tree, ignore=shutil.ignore_patterns("__pycache__"))
    compileall.compile_dir(tree, quiet=2)
    os.environ["OMP_NUM_THREADS"] = "1"  # before the imports: threads do not survive a fork
    for name in "numpy pydantic pytest rich sacrebleu safetensors.torch tokenizers torch typer".split():
        __import__(name)  # every mutant's process starts with these
    prepare_children(suite, tree)
    for mutant in read_mutants():
        if mutant.id not in only if only else mutant.id in done:
            continue
        result = judge(mutant, suite, work, tests_of, limit)
        with results.open("a") as file:
            print(json.dumps(asdict(result)), file=file)
        print(f"{mutant.id:3} {result.outcome:9} {result.seconds:6.1f} s {mutant.file} {result.by}", flush=True)
    print(control(suite, work))


def control(suite: Path, work: Path) -> str:
    """Whether the tests that killed pass without a mutant; otherwise their kills mean nothing."""
    tests_of = Map(suite, work)
    killers = sorted({result.by for result in read_results(work) if result.by in tests_of.seconds})
    outcome, by, n_run = run_tests(killers, work, tests_of.seconds, limit=3600)
    return f"without a mutant, {n_run} of {len(killers)} tests that killed: {outcome} {by}"


def prepare_children(suite: Path, tree: Path) -> None:
    """Import transduce from the copied tree, here only later in forked processes, and in processes of the tests."""
    os.chdir(suite)
    os.environ.update(PYTHONPATH=str(tree), PYTHONDONTWRITEBYTECODE="1")
    sys.dont_write_bytecode = True
    sys.path[:] = [str(tree), *(path for path in sys.path if path not in {str(HERE), str(suite / "src")})]
    assert "transduce" not in sys.modules


def judge(mutant: Mutant, suite: Path, work: Path, tests_of: Map, limit: float) -> Result:
    """Run the covering tests on one mutant, in two stages: the quickest first."""
    started = time.monotonic()
    original = package(suite / "src") / mutant.file
    copy = package(work / "src") / mutant.file
    source = original.read_text()
    line = mutant.line(source)
    if line is None:
        return Result(mutant.id, "gone", "", 0, 0, 0.0)
    tests = tests_of.tests(mutant.file, source, line)
    cached = list(copy.parent.glob(f"__pycache__/{copy.stem}.*.pyc"))
    for path in cached:
        path.unlink()
    copy.write_text(mutant.applied_to(source))
    outcome, by, n_run = "survived", "", 0
    try:
        for stage in (tests[:N_FIRST], tests[N_FIRST:]):
            if stage and outcome == "survived":
                left = limit - (time.monotonic() - started)
                outcome, by, n = run_tests(stage, work, tests_of.seconds, left) if left > 0 else ("limit", "", 0)
                n_run += n
    finally:
        copy.write_text(source)
    return Result(mutant.id, outcome, by, n_run, len(tests), round(time.monotonic() - started, 1))


def run_tests(tests: Sequence[str], work: Path, seconds: dict[str, float], limit: float) -> tuple[str, str, int]:
    """Outcome, the test that killed, and how many were run, in a forked process that ends at the first failure."""
    events = work / "events.txt"
    events.write_text("")
    child = os.fork()
    if child == 0:
        os.setsid()
        output = os.open(work / "last.log", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(output, 1)
        os.dup2(output, 2)
        try:
            code = pytest_in_child(tests, work, seconds, events, limit)
        except BaseException as error:
            print(repr(error), file=sys.stderr)
            code = 99
        sys.stdout.flush()
        os._exit(code)
    try:
        status, running = wait(child, events, seconds)
    finally:
        kill_leftovers(child)
    lines = events.read_text().splitlines()
    n_run = sum(line.startswith("run ") for line in lines)
    failed = next((line.removeprefix("failed ") for line in lines if line.startswith("failed ")), "")
    if status is None:
        return "timeout", running or "collection", n_run
    if failed:
        return "killed", failed, n_run
    if any(line.startswith("limit") for line in lines):
        return "limit", "", n_run
    if status in {0, 5}:
        return "survived", "", n_run
    return "killed", f"exit status {status} after {running or 'the start'}", n_run


def wait(child: int, events: Path, seconds: dict[str, float]) -> tuple[int | None, str]:
    """The exit status of a process of tests, None of one that hangs, and the test that it was at."""
    last_change, n_seen, running = time.monotonic(), 0, ""
    while time.monotonic() - last_change < HANGS_AFTER + 5 * seconds.get(running, 10.0):
        pid, status = os.waitpid(child, os.WNOHANG)
        if pid:
            return os.waitstatus_to_exitcode(status), running
        lines = events.read_text().splitlines()
        if len(lines) != n_seen:
            n_seen, last_change, running = len(lines), time.monotonic(), lines[-1].partition(" ")[2]
        time.sleep(0.05)
    return None, running


def kill_leftovers(group: int) -> None:
    """End a process of tests, and what it started and left."""
    try:
        os.killpg(group, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        return


def pytest_in_child(tests: Sequence[str], work: Path, seconds: dict[str, float], events: Path, limit: float) -> int:
    """Run pytest for some tests of the files that have them."""
    import pytest

    chosen = set(tests)
    files = list(dict.fromkeys(test.partition("::")[0] for test in tests))
    total: dict[str, float] = defaultdict(float)
    for test in tests:
        total[test.partition("::")[0]] += seconds[test]
    started = time.monotonic()

    class Events:
        """Hooks that choose and sort the tests and tell the parent what happens."""

        @pytest.hookimpl(trylast=True)
        def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
            # Quick tests first; slower ones file by file, because those of a file share fixtures.
            items[:] = sorted(
                (item for item in items if item.nodeid in chosen),
                key=lambda item: (
                    (0, seconds[item.nodeid], "")
                    if seconds[item.nodeid] < 0.2
                    else (1, total[item.nodeid.partition("::")[0]], item.nodeid.partition("::")[0])
                ),
            )

        def pytest_collectreport(self, report: pytest.CollectReport) -> None:
            if report.failed:
                say(f"failed collection of {report.nodeid}")

        def pytest_runtest_logstart(self, nodeid: str) -> None:
            if time.monotonic() - started > limit:
                say("limit")
                pytest.exit("limit", returncode=0)
            say(f"run {nodeid}")

        def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
            if report.failed:
                say(f"failed {report.nodeid}")

    def say(event: str) -> None:
        with events.open("a") as file:
            print(event, file=file)

    options = ["-x", "-p", "no:cacheprovider", "-p", "no:xdist", f"--basetemp={work / 'tmp'}", "--tb=short"]
    return int(pytest.main([*options, "-m", "", *files], plugins=[Events()]))


# Reporting


def report(work: Path) -> str:
    """A table by folder, and the survivors."""
    mutants = {mutant.id: mutant for mutant in read_mutants()}
    results = read_results(work)
    rows: dict[str, Counter[str]] = {folder: Counter() for folder in (*FOLDERS, "all")}
    for result in results:
        for row in (mutants[result.id].folder, "all"):
            rows[row].update({result.outcome: 1, "n": 1, "seconds": round(result.seconds)})
    outcomes = ("n", "killed", "timeout", "survived", "limit", "gone", "seconds")
    lines = ["folder     " + "".join(f"{name:>10}" for name in outcomes)]
    lines += [f"{folder:11}" + "".join(f"{row[name]:10}" for name in outcomes) for folder, row in rows.items()]
    for result in results:
        if result.outcome in {"survived", "limit", "gone"}:
            mutant = mutants[result.id]
            where = f"{mutant.file} {mutant.function} ({mutant.operator})"
            lines.append(f"\n{mutant.id} {result.outcome}: {where}, {result.n_tests} of {result.n_covering} tests")
            lines += [f"-   {mutant.before}", f"+   {mutant.after}"]
    return "\n".join(lines)


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("step", choices=["choose", "map", "run", "report"])
    parser.add_argument("--suite", type=Path, default=HERE.parent)
    parser.add_argument("--work", type=Path, default=Path("mutants-work"))
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--n", type=int, default=80, help="mutants to choose")
    parser.add_argument("--seconds", type=float, default=120, help="limit of the tests of one mutant")
    parser.add_argument("--only", type=int, nargs="*", default=[], help="ids of mutants to run, again if need be")
    parser.add_argument("--processes", "-n", default="2", help="processes of the map")
    parser.add_argument("--pytest-args", default="", help="which tests of the suite are mapped")
    arguments = parser.parse_args()
    if arguments.step == "choose":
        need(parser, "cosmic_ray", how='pip install -e ".[mutation]"')
    suite, work = arguments.suite.resolve(), arguments.work.resolve()
    work.mkdir(parents=True, exist_ok=True)
    if arguments.step == "report":
        print(report(work))
        return
    if arguments.step == "map" or not (work / "map" / "done").exists():
        make_map(suite, work, arguments.processes, shlex.split(arguments.pytest_args))
    if arguments.step == "choose":
        from mutant_choice import choose

        mutants = [asdict(mutant) for mutant in choose(Map(suite, work), arguments.seed, arguments.n)]
        MUTANTS.write_text(json.dumps(mutants, indent=1, ensure_ascii=False) + "\n")
    elif arguments.step == "run" and sys.prefix == str(suite / ".venv"):
        run(suite, work, arguments.seconds, arguments.only)
    elif arguments.step == "run":
        os.execv(python(suite), [python(suite), *sys.argv])


if __name__ == "__main__":
    main()

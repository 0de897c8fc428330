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
import ast
import compileall
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from random import Random

HERE = Path(__file__).resolve().parent
MUTANTS = HERE.parent / "tests" / "mutants.json"
FOLDERS = ("model", "search", "training", "data", "text", "loss.py")
MIN_PER_FOLDER = 4
# Not the tests of benchmarks and GPUs, nor those that work in processes of their own.
NOT_RUN = ("paper", "benchmarks", "gpu", "distributed", "integration", "reliability")
N_FIRST = 40  # quickest tests, started before the others are collected
HANGS_AFTER = 40.0  # seconds, and five times what the test takes

OPERATORS = [
    f"core/{name}"
    for name in (
        *(f"ReplaceBinaryOperator_{name}" for name in (
            "Add_Sub", "Sub_Add", "Mul_Div", "Mul_Add", "Div_Mul", "FloorDiv_Mul", "FloorDiv_Div", "Mod_Mul", "Pow_Mul",
            "BitOr_BitAnd", "BitAnd_BitOr",
        )),
        *(f"ReplaceComparisonOperator_{name}" for name in (
            "Eq_NotEq", "NotEq_Eq", "Lt_LtE", "LtE_Lt", "Gt_GtE", "GtE_Gt", "Lt_GtE", "Gt_LtE", "Is_IsNot", "IsNot_Is",
        )),
        *(f"ReplaceUnaryOperator_{name}" for name in ("USub_UAdd", "Delete_Invert", "Delete_Not")),
        "AddNot", "ReplaceTrueWithFalse", "ReplaceFalseWithTrue", "ReplaceAndWithOr", "ReplaceOrWithAnd",
        "ReplaceBreakWithContinue", "ReplaceContinueWithBreak", "ExceptionReplacer", "NumberReplacer",
        "ZeroIterationForLoop",
    )
]  # fmt: skip
# What the CPU of one process cannot show, and what only words are made of.
SKIPPED_FILES = {"training/distributed.py", "training/parallel.py", "training/memory_preflight.py"}
SKIPPED = re.compile(
    r"cuda|mps|fsdp|distributed|rank\b|world|torchrun|shard|n_processes|compil|__repr__|__str__|describe|format|message"
    r"|assert_never|TYPE_CHECKING|__all__|slots=|frozen=|strict=|default_rng|hash_seed"
    r"|(root|path|folder|temporary|controllers?) / ",  # of paths, no quotients
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Mutant:
    """One changed line: the ``occurrence``-th line (from 0) of ``function`` that reads ``before`` reads ``after``."""

    id: int
    file: str  # in src/transduce
    function: str  # qualified name
    operator: str
    occurrence: int
    before: str
    after: str

    @property
    def folder(self) -> str:
        """The part of the package that the mutant is in."""
        return self.file.split("/")[0]

    def line(self, source: str) -> int | None:
        """The number of the line that it changes; None if the code is no longer there."""
        for name, first, last in functions(source):
            if name == self.function:
                lines = enumerate(source.splitlines()[first - 1 : last], first)
                same = [number for number, line in lines if line.strip() == self.before.strip()]
                return same[self.occurrence] if self.occurrence < len(same) else None
        return None

    def applied_to(self, source: str) -> str:
        """The mutated source. Raises ValueError if the code is no longer there."""
        number = self.line(source)
        if number is None:
            raise ValueError(f"mutant {self.id} no longer applies to {self.file}")
        lines = source.splitlines(keepends=True)
        indent = re.match(r"\s*", lines[number - 1])
        lines[number - 1] = f"{indent[0] if indent else ''}{self.after.strip()}\n"
        return "".join(lines)


def read_mutants(path: Path = MUTANTS) -> list[Mutant]:
    """The committed list."""
    return [Mutant(**fields) for fields in json.loads(path.read_text())]


@cache
def functions(source: str) -> list[tuple[str, int, int]]:
    """Qualified name, first and last line of each function, the outermost only."""

    def inside(node: ast.AST, prefix: str) -> Iterator[tuple[str, int, int]]:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
                yield f"{prefix}{child.name}", child.lineno, child.end_lineno or child.lineno
            elif isinstance(child, ast.ClassDef):
                yield from inside(child, f"{prefix}{child.name}.")

    return list(inside(ast.parse(source), ""))


@cache
def statements(source: str) -> list[range]:
    """The lines of each statement, outer ones first; of compound statements, their heads."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.stmt):
            body = getattr(node, "body", None)
            last = body[0].lineno - 1 if body else node.end_lineno or node.lineno
            found.append(range(node.lineno, max(last, node.lineno) + 1))
    return found


def statement(source: str, line: int) -> range:
    """The lines of the innermost statement around a line."""
    return next((lines for lines in reversed(statements(source)) if line in lines), range(line, line + 1))


# Choosing


@dataclass(frozen=True)
class Place:
    """Where an operator of cosmic-ray applies."""

    file: str
    source: str
    line: int
    function: tuple[str, int, int]
    operator: str
    index: int  # of the operator's places in the file

    def mutant(self, number: int) -> Mutant | None:
        """The mutant, if it is one changed line of a program that means something else."""
        import cosmic_ray.plugins
        from cosmic_ray.mutating import mutate_code

        lines = self.source.splitlines()
        mutated = mutate_code(self.source, cosmic_ray.plugins.get_operator(self.operator)(), self.index)
        changed = changed_line(lines, mutated.splitlines()) if mutated else None
        if changed is None or not is_another_program(self.source, mutated):
            return None
        before, after = lines[changed].strip(), mutated.splitlines()[changed].strip()
        name, first, _ = self.function
        occurrence = sum(line.strip() == before for line in lines[first - 1 : changed])
        return Mutant(number, self.file, name, self.operator, occurrence, before, after)


def choose(suite: Path, work: Path, seed: int, n: int) -> list[Mutant]:
    """``n`` mutants of lines that some test executes: of each folder by its share of such lines, one a line."""
    tests_of = Map(suite, work)
    random = Random(seed)
    places: dict[str, list[list[Place]]] = {}
    for folder in FOLDERS:
        root = package(suite / "src") / folder
        files = sorted(root.rglob("*.py")) if root.is_dir() else [root]
        names = [path.relative_to(package(suite / "src")).as_posix() for path in files]
        lines = [line for name in names if name not in SKIPPED_FILES for line in places_by_line(name, tests_of)]
        random.shuffle(lines)
        places[folder] = lines
    n_lines = sum(map(len, places.values()))
    counts = {folder: max(MIN_PER_FOLDER, round(n * len(lines) / n_lines)) for folder, lines in places.items()}
    counts[max(counts, key=lambda folder: counts[folder])] += n - sum(counts.values())
    mutants: list[Mutant] = []
    for folder, lines in places.items():
        wanted = len(mutants) + counts[folder]
        for line in lines:
            operators = sorted({place.operator for place in line})
            operator = random.choice(operators)
            mutant = random.choice([place for place in line if place.operator == operator]).mutant(len(mutants) + 1)
            if mutant:
                mutants.append(mutant)
            if len(mutants) == wanted:
                break
    print(f"seed {seed}: {len(mutants)} mutants of {n_lines} lines; {counts}")
    return mutants


def places_by_line(file: str, tests_of: Map) -> list[list[Place]]:
    """The places of a file that some test executes, those of the same line together."""
    import cosmic_ray.plugins
    from cosmic_ray.ast import ast_nodes, get_ast

    source = (tests_of.root / file).read_text()
    nodes = list(ast_nodes(get_ast(source)))
    skipped, lines = skipped_positions(source), source.splitlines()
    found: dict[int, list[Place]] = defaultdict(list)
    for name in OPERATORS:
        operator = cosmic_ray.plugins.get_operator(name)()
        positions = [tuple(start) for node in nodes for start, _ in operator.mutation_positions(node)]
        for index, start in enumerate(positions):
            function = next((f for f in functions(source) if f[1] <= start[0] <= f[2]), None)
            if (
                function is not None
                and not any(first <= start < last for first, last in skipped)
                and not SKIPPED.search(f"{function[0]} {lines[start[0] - 1]}")
                and tests_of.tests(file, source, start[0])
            ):
                found[start[0]].append(Place(file, source, start[0], function, name, index))
    return [found[line] for line in sorted(found)]


def changed_line(before: Sequence[str], after: Sequence[str]) -> int | None:
    """The only line that differs; None if there are more."""
    changed = [i for i, (old, new) in enumerate(zip(before, after, strict=False)) if old != new]
    return changed[0] if len(before) == len(after) and len(changed) == 1 else None


def is_another_program(before: str, after: str) -> bool:
    """Whether the mutated source is Python and means something else."""
    try:
        return ast.dump(ast.parse(before)) != ast.dump(ast.parse(after))
    except SyntaxError:
        return False


Position = tuple[int, int]


def skipped_positions(source: str) -> list[tuple[Position, Position]]:
    """Annotations, decorators, errors raised, texts with numbers in them, and types of casts."""
    nodes: list[ast.AST] = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Raise | ast.JoinedStr | ast.Assert):
            nodes.append(node)
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            nodes += [*node.decorator_list, *([node.returns] if node.returns else [])]
        elif isinstance(node, ast.ClassDef):
            nodes += node.decorator_list
        elif isinstance(node, ast.AnnAssign) or (isinstance(node, ast.arg) and node.annotation):
            nodes.append(node.annotation)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in {"cast", "isinstance"}:
            nodes += [node.args[0 if node.func.id == "cast" else 1]]
    return [((n.lineno, n.col_offset), (n.end_lineno, n.end_col_offset)) for n in nodes]


# The map of tests and lines


def package(src: Path) -> Path:
    """The package of a source tree."""
    return src / "transduce"


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
    suite, work = arguments.suite.resolve(), arguments.work.resolve()
    work.mkdir(parents=True, exist_ok=True)
    if arguments.step == "report":
        print(report(work))
        return
    if arguments.step == "map" or not (work / "map" / "done").exists():
        make_map(suite, work, arguments.processes, shlex.split(arguments.pytest_args))
    if arguments.step == "choose":
        mutants = [asdict(mutant) for mutant in choose(suite, work, arguments.seed, arguments.n)]
        MUTANTS.write_text(json.dumps(mutants, indent=1, ensure_ascii=False) + "\n")
    elif arguments.step == "run" and sys.prefix == str(suite / ".venv"):
        run(suite, work, arguments.seconds, arguments.only)
    elif arguments.step == "run":
        os.execv(python(suite), [python(suite), *sys.argv])


if __name__ == "__main__":
    main()

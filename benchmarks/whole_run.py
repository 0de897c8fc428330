"""Whole training runs beside other libraries, or of ``transduce train`` alone: how speed and memory last.

    python benchmarks/whole_run.py [--minutes 30] [--size small|base] [--data DIR] [--eole-python PYTHON] [--json]
    python benchmarks/whole_run.py --ours-only --recipe RECIPE [--minutes 40] [--data DIR] [--set KEY=VALUE] [--json]

**Beside other libraries.** Every system trains the same model on Multi30k, English to German, from one prepared folder:
the same tokenizer, token budget, label smoothing, dropout, schedule and warm-up, with ``keep_freed_memory`` and fused
Adam. Ours is the trainer of ``transduce train`` with validation and checkpoints, whose time counts; the peers have
neither. The peers of ``peers.py`` train on our batches in our order, with the fastest of their attention
implementations; eole has its own data loading (``eole_system.py``). Each keeps its library's initial weights, and has a
process of its own and all cores.

By default they alternate in turns of ``--turn-minutes``, so that noise of the machine hits all alike, and all must fit
into memory together; ``--turn-minutes 0`` runs one after the other. All times are a system's own: it has a clock that
stands still while others have their turn and during the evaluations for the curve of dev perplexity. ``--out`` keeps
what was measured so far, written after each turn.

**Alone** (``command_runs.py``). One run of ``transduce train`` with all cores; with several ``--ways``, runs with
different memory allocators at the same time, one core each.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast, get_args

from command_runs import WAYS, watch
from machine import machine
from systems import CHOICES, MICRO, OURS, TUNED, Setup
from train import NEVER, with_faster_attention
from turns import SystemFailed, SystemProcess
from whole_report import EOLE, Course, as_text, differences, ratios, summary
from whole_systems import WholeRun
from workers import WorkerError

from transduce.config import DataConfig, Precision, RunConfig, TransformerConfig
from transduce.data import PairStore
from transduce.recipes import preset
from transduce.tasks import Prepared, prepare

HERE = Path(__file__).parent
MULTI30K = DataConfig(corpus="multi30k", direction="en-de", vocab_size=10_000)
# What cli/machine.py's keep_freed_memory sets, for a process that does not have it.
KEEP_FREED_MEMORY = {"MALLOC_MMAP_MAX_": "0", "MALLOC_TRIM_THRESHOLD_": str(2**62), "MALLOC_TOP_PAD_": str(64 << 20)}
SYSTEMS = [OURS, *TUNED, EOLE]
DEFAULT_SYSTEMS = [OURS, "marian-tuned", "x-transformers-tuned", EOLE]


@dataclass(frozen=True, slots=True)
class Size:
    """A model with its text and training settings."""

    model: TransformerConfig
    data: DataConfig
    max_tokens_per_batch: int
    warmup_steps: int  # a tenth to a half of the updates of half an hour
    lr_factor: float  # for a peak learning rate of 0.001; of 0.00055 for base, which diverges with 0.001


SIZES = {
    "small": Size(preset("small").model, MULTI30K, 4200, 500, 0.35),
    "base": Size(preset("base").model, MULTI30K, 2100, 400, 0.25),
    "micro": Size(MICRO, DataConfig(corpus="grammar", n_pairs=300, vocab_size=300), 400, 20, 0.1),  # for tests
}


def main() -> None:
    """Run, measure and print."""
    arguments = _arguments()
    if arguments.ours_only:
        watched = watch(
            arguments.recipe,
            data=arguments.data,
            settings=arguments.set,
            minutes=arguments.minutes,
            ways=arguments.ways,
            every_s=arguments.sample_seconds or 60.0,
        )
        print(json.dumps(watched.as_json()) if arguments.json else watched.as_text())
        return
    with tempfile.TemporaryDirectory() as folder:
        compared = _compare(arguments, Path(folder))
    print(json.dumps(compared) if arguments.json else as_text(compared))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, help="own training time of each run (30; alone 40)")
    parser.add_argument("--data", type=Path, help="folder with corpora; default: where transduce keeps them")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--sample-seconds", type=float, help="interval of samples (10; alone 60)")
    peers = parser.add_argument_group("beside other libraries")
    peers.add_argument("--size", choices=SIZES, default="small")
    peers.add_argument("--systems", nargs="+", choices=SYSTEMS, default=DEFAULT_SYSTEMS, metavar="SYSTEM")
    peers.add_argument("--eole-python", type=Path, help="Python of an environment with eole and sentencepiece <= 0.2.2")
    peers.add_argument("--turn-minutes", type=float, default=2.0, help="0: one run after the other")
    peers.add_argument("--evaluate-minutes", type=float, default=5.0, help="interval of the perplexity curve")
    peers.add_argument("--precision", choices=get_args(Precision), default="bf16")
    peers.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    peers.add_argument("--out", type=Path, help="JSON file for what was measured so far, rewritten after each turn")
    alone = parser.add_argument_group("alone")
    alone.add_argument("--ours-only", action="store_true", help="run transduce train")
    alone.add_argument("--recipe", help="recipe or preset")
    alone.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="as for transduce train")
    alone.add_argument("--ways", nargs="+", choices=WAYS, default=["c-library"], help="memory allocators")
    arguments = parser.parse_args()
    if arguments.ours_only != (arguments.recipe is not None):
        parser.error("--ours-only and --recipe belong together")
    arguments.minutes = arguments.minutes or (40.0 if arguments.ours_only else 30.0)
    return arguments


def _compare(arguments: argparse.Namespace, folder: Path) -> dict[str, Any]:
    """Run the systems beside each other and return the result."""
    size = SIZES[arguments.size]
    prepared = prepare(size.data, folder / "prepared", data_folder=arguments.data, log=echo)
    config = run_config(size, prepared, arguments.precision)
    write_text(prepared, folder / "text")
    courses = {name: Course() for name in arguments.systems}
    about = {
        "size": arguments.size,
        "minutes": arguments.minutes,
        "turn_minutes": arguments.turn_minutes,
        "precision": arguments.precision,
        "max_tokens_per_batch": size.max_tokens_per_batch,
        "warmup_steps": size.warmup_steps,
        "lr_factor": size.lr_factor,
        "corpus": f"{size.data.corpus} {size.data.direction}",
        "machine": machine(),
        "differences": differences(arguments.systems),
    }

    def result() -> dict[str, Any]:
        systems = {name: summary(course, arguments.minutes) for name, course in courses.items()}
        n_tokens = {tokens for course in courses.values() for _, _, tokens in course.dev}
        if len(n_tokens) > 1:
            raise SystemExit(f"the systems count different numbers of dev tokens: {sorted(n_tokens)}")
        return about | {
            "dev_tokens": max(n_tokens, default=0),
            "systems": systems,
            "ratio_to_best_tuned_peer": ratios(systems),
        }

    def save() -> None:
        if arguments.out is not None:
            temporary = arguments.out.with_name(f"{arguments.out.name}.part")
            temporary.write_text(json.dumps(result()))
            temporary.replace(arguments.out)

    commands = {
        name: command
        for name in arguments.systems
        if (command := _command(name, courses[name], arguments, config, prepared, folder)) is not None
    }
    stops = list(stops_s(arguments.minutes, arguments.turn_minutes, arguments.evaluate_minutes))
    groups = [list(commands)] if arguments.turn_minutes else [[name] for name in commands]
    for names in groups:
        with ExitStack() as stack:
            processes = [stack.enter_context(SystemProcess(name, *commands[name])) for name in names]
            _take_turns(processes, courses, stops, save)
    return result()


def run_config(size: Size, prepared: Prepared, precision: Precision) -> RunConfig:
    """Return the run of all systems: the paper's training settings, without end; checkpoints every ten minutes."""
    base = preset("small")
    n = prepared.tokenizers.src.size
    training = base.training.model_copy(
        update={
            "precision": precision,
            "max_tokens_per_batch": size.max_tokens_per_batch,
            "max_updates": NEVER,
            "warmup_steps": size.warmup_steps,
            "lr_factor": size.lr_factor,
            "checkpoint_every_minutes": 10.0,
        }
    )
    return base.model_copy(update={"model": size.model.with_vocabulary(n, n), "data": size.data, "training": training})


def write_text(prepared: Prepared, folder: Path) -> None:
    """Write the pairs of the stores as lines of ids, for systems that read text, and the ids as a vocabulary.

    A source line ends with EOS, as in our batches; other systems add BOS and EOS to the target themselves.
    """
    folder.mkdir()
    for split in ("train", "dev"):
        store = cast(PairStore, getattr(prepared, split))
        with (folder / f"{split}.src").open("w") as src_file, (folder / f"{split}.tgt").open("w") as tgt_file:
            for row in range(len(store.src_lengths)):
                src, tgt = (" ".join(map(str, ids.tolist())) for ids in store.pair(row))
                print(src, "</s>", file=src_file)
                print(tgt, file=tgt_file)
    n_special = 4
    words = range(n_special, prepared.tokenizers.src.size)
    (folder / "vocabulary").write_text("".join(f"{word}\n" for word in words))


def stops_s(minutes: float, turn_minutes: float, evaluate_minutes: float) -> Iterator[tuple[float, bool]]:
    """Yield the ends of turns in seconds of a system's clock, and whether it is evaluated there; at the end it is.

    >>> list(stops_s(5, 2, 3))
    [(120.0, False), (180.0, True), (240.0, False), (300.0, True)]
    """
    ends = {60.0 * minutes: True}
    for every, is_evaluated in ((turn_minutes, False), (evaluate_minutes, True)):
        for n in range(1, 1 + int(minutes / every) if every else 0):
            end = min(60.0 * every * n, 60.0 * minutes)
            ends[end] = ends.get(end, False) or is_evaluated
    yield from sorted(ends.items())


def _command(
    name: str,
    course: Course,
    arguments: argparse.Namespace,
    config: RunConfig,
    prepared: Prepared,
    folder: Path,
) -> tuple[list[str], dict[str, str]] | None:
    """Return the command and environment of a system's process; None if it cannot take part."""
    own = folder / name
    own.mkdir()
    whole = WholeRun(
        system=name,
        attention="",
        run=config.model_dump(mode="json"),
        prepared=str(prepared.folder),
        text=str(folder / "text"),
        folder=str(own),
        n_threads=arguments.threads,
        sample_every_s=arguments.sample_seconds or 10.0,
    )
    if name == EOLE:
        if arguments.eole_python is None:
            _leave_out(name, course, "--eole-python is not given")
            return None
        script = HERE / "eole_system.py"
        return [str(arguments.eole_python), str(script), whole.as_json()], KEEP_FREED_MEMORY
    try:
        whole = replace(whole, attention=_attention(name, config, prepared, arguments.threads))
    except WorkerError as error:
        _leave_out(name, course, str(error).strip().splitlines()[-1])
        return None
    course.attention = whole.attention
    return [sys.executable, str(HERE / "whole_systems.py"), whole.as_json()], {}


def _attention(name: str, config: RunConfig, prepared: Prepared, n_threads: int) -> str:
    """Return the fastest attention of a tuned peer."""
    system = name.removesuffix("-tuned")
    setup = Setup(
        system=system,
        is_tuned=True,
        attention=CHOICES[system][0],
        model=cast(TransformerConfig, config.model),
        training=config.training,
        store=prepared.folder / "train",
        n_threads=n_threads,
    )
    return with_faster_attention(setup).attention


def _take_turns(
    processes: Sequence[SystemProcess],
    courses: dict[str, Course],
    stops: Sequence[tuple[float, bool]],
    save: Any,
) -> None:
    """Train all processes to the end, turn by turn; each turn begins with another. A failed one is left out."""
    running = list(processes)
    for number, (until_s, is_evaluated) in enumerate(stops):
        first = number % len(processes)
        for process in [*processes[first:], *processes[:first]]:
            if process not in running:
                continue
            course = courses[process.name]
            try:
                course.about = process.about
                course.add(process.train(until_s))
                if is_evaluated:
                    course.dev.append((until_s / 60, *process.evaluate()))
            except SystemFailed as error:
                _leave_out(process.name, course, str(error))
                running.remove(process)
            save()
        echo(f"{until_s / 60:g} minutes: " + ", ".join(_state(process.name, courses) for process in running))


def _state(name: str, courses: dict[str, Course]) -> str:
    last = courses[name].last
    return f"{name} {last['tgt_tokens']:,} tokens"


def _leave_out(name: str, course: Course, why: str) -> None:
    course.error = why
    echo(f"{name} is left out: {why}")


def echo(line: str) -> None:
    """Print progress on stderr."""
    print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()

"""``transduce demo``."""

from __future__ import annotations

import shlex
import sys
import time
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Option

from transduce.cli import options
from transduce.cli.machine import chosen_device
from transduce.cli.output import echo, echo_stopped, print_json, print_line, print_scores
from transduce.cli.paths import require_folder, require_utf8_name
from transduce.config import MAX_SEED
from transduce.errors import TrainingError

if TYPE_CHECKING:
    from transduce.config import DataConfig
    from transduce.demo import DemoResult

__all__ = ["demo"]


def demo(
    corpus: Annotated[str, Option(help="Train on this corpus, downloaded if missing; see 'corpus list'.")] = "grammar",
    data: options.Data = None,
    out: Annotated[Path | None, Option(help="Write the run to this folder. Default: runs/demo-<time>.")] = None,
    minutes: Annotated[
        float | None,
        Option(
            callback=options.check_minutes,
            help="Train for this many minutes. Default: 1,600 updates; 15 minutes for real text.",
        ),
    ] = None,
    seed: Annotated[int, Option(min=0, max=MAX_SEED, help="Use this random seed.")] = 1,
    settings: options.Settings = None,
    device: options.Device = "auto",
    json: options.Json = False,
) -> int:
    """Train a small translator in minutes, and print what it does.

    Trains on a built-in grammar of English and German, or on a corpus; prints BLEU and examples, and draws the
    attention as an HTML page.

    Examples:
        transduce demo
        transduce demo --minutes 15 --corpus multi30k
    """
    from transduce.cli.progress import DownloadProgress, TrainingProgress
    from transduce.cli.signals import StopRequest, told_how_to_resume
    from transduce.demo import demo_config, fetch_missing, run_demo
    from transduce.model import fast_precision
    from transduce.recipes import with_settings
    from transduce.runs.run_file import RUN_FILE

    timed = [] if minutes is None else [f"training.max_minutes={float(minutes)}", "training.max_updates=1000000"]
    device = chosen_device(device)
    config = demo_config(corpus, seed=seed, precision=fast_precision(device))
    config = with_settings(config, [*timed, *options.set_once(settings or ())], log=echo)
    folder = out or Path("runs") / f"demo-{time.strftime('%Y%m%d-%H%M%S')}"
    if (folder / RUN_FILE).exists():
        raise TrainingError(
            f"{folder} already holds a run; resume it with: transduce train --resume --out {folder}; or name another"
            " --out"
        )
    require_folder("--out", folder)
    require_utf8_name("--out", folder)  # required by TensorBoard
    with DownloadProgress() as download:
        fetch_missing(config.data, data, progress=download.of_file, log=download.log)
    echo(f"run folder: {folder}")
    stop_request = StopRequest()
    with TrainingProgress(config.training) as progress, told_how_to_resume(folder):
        result = run_demo(
            folder,
            config=config,
            data_folder=data,
            device=device,
            listeners=[progress],
            should_stop=stop_request,
            while_training=stop_request,
            log=progress.log,
        )
    if result.run.reason == "interrupted":
        echo_stopped(result.run.updates, folder)
        return stop_request.exit_code
    if json:
        print_json(
            {
                "run": str(folder),
                "model": str(result.run.model_folder),
                "page": None if result.page is None else str(result.page),
                "scores": None if result.scores is None else result.scores.as_json(),
                "examples": list(map(asdict, result.examples)),
            }
        )
    else:
        _print_result(result, config.data)
    return 0


def _print_result(result: DemoResult, data: DataConfig) -> None:
    """Print examples, scores and the next command."""
    from transduce.corpora import BUILT_IN

    for example in result.examples:
        print_line()
        print_line(f"  {example.source}")
        print_line(f"  {example.translation}")
        if example.translation != example.reference:
            print_line(f"  (reference: {example.reference})")
    if result.scores is not None:
        heading = f"scores on {result.run.scored_text}"
        if list(data.weights) == [BUILT_IN] and not data.names_of("test"):
            heading += ": sentences with word combinations that are not in the training data"
        print_line()
        print_line(heading)
        print_scores(result.scores)
    echo("for your own text: transduce help own-text")
    print_line()
    if result.page is not None:
        print_line(f"attention page: {result.page}")
    shortest = min((example.source for example in result.examples), key=len, default=None)
    sentence = "" if shortest is None else f"echo {shlex.quote(shortest)} | "
    print_line(f"try it:         {sentence}{_program()} translate {shlex.quote(str(result.run.model_folder))}")


def _program() -> str:
    """Return the command that this program was started with."""
    return "python -m transduce" if Path(sys.argv[0]).name == "__main__.py" else shlex.quote(sys.argv[0])

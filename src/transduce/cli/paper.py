"""``transduce paper``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Argument, Option

from transduce.cli import options
from transduce.cli.machine import chosen_device
from transduce.cli.output import echo, echo_error, print_json
from transduce.cli.paths import require_folder, require_utf8_name
from transduce.errors import ConfigError, TransduceError, quoted

if TYPE_CHECKING:
    from transduce.paper import Scale

__all__ = ["paper"]

SCALES = ("cpu", "gpu", "paper")


def paper(
    name: Annotated[
        str, Argument(metavar="WHAT", help="table1 ... table4, figure1 ... figure5, curves, notes, or all.")
    ],
    scale: Annotated[
        str,
        Option(help="cpu: small models, minutes a run; gpu: the real sizes on less text; paper: the paper's own runs."),
    ] = "cpu",
    out: Annotated[
        Path, Option(help="Where reports go; finished runs are kept as small records in its folder runs.")
    ] = Path("paper"),
    work: Annotated[
        Path | None,
        Option(help="Where runs and models are while they are made. Default: work in --out.", show_default=False),
    ] = None,
    sentence: Annotated[
        str | None, Option(help="For the figures of attention: look at this one.", show_default=False)
    ] = None,
    short: Annotated[
        bool,
        Option(
            "--short",
            help="A form of seconds that shows only that all works; its numbers say nothing, and go to short in --out.",
        ),
    ] = False,
    treebank: options.Treebank = None,
    data: options.Data = None,
    device: options.Device = "auto",
    json: options.Json = False,
) -> int:
    """Make a table or a figure of the paper again: our numbers beside the printed ones, as Markdown, CSV and SVG.

    Runs what is missing, goes on with what is half done.
    """
    from transduce.cli.progress import TrainingProgress
    from transduce.cli.signals import StopRequest
    from transduce.config import nearest_name
    from transduce.paper import ARTEFACTS, Experiments, Request, Stopped, write_report

    names = list(ARTEFACTS) if name == "all" else [name]
    if name != "all" and name not in ARTEFACTS:
        raise ConfigError(f"there is no {quoted(name)} in the paper; {nearest_name(name, [*ARTEFACTS, 'all'])}")
    if scale not in SCALES:
        raise ConfigError(f"--scale should be {', '.join(SCALES[:-1])} or {SCALES[-1]}, got {quoted(scale)}")
    chosen_scale: Scale = scale  # type: ignore[assignment]
    _require_what_the_end_needs(names, chosen_scale, treebank, sentence)
    if short:
        out = out / "short"
    reports = out if chosen_scale == "cpu" else out / chosen_scale
    for option, folder in (("--out", out), ("--work", work or out / "work")):
        require_folder(option, folder)
        require_utf8_name(option, folder.resolve())
    asked = StopRequest()
    experiments = Experiments(
        out / "runs",
        work or out / "work",
        scale=chosen_scale,
        data_folder=data,
        device=chosen_device(device),
        follow=lambda config: TrainingProgress(config.training),
        should_stop=asked,
        while_training=asked,
        log=echo,
    )
    written: dict[str, list[str]] = {}
    n_failed = 0
    for each in names:
        echo(f"{each}:")
        try:
            report = ARTEFACTS[each](experiments, Request(short, sentence, treebank))
        except Stopped:
            echo(f"stopped; the same command goes on with {each}")
            return asked.exit_code
        except TransduceError as error:
            if len(names) == 1:
                raise
            echo_error(f"{each}: {error}")
            n_failed += 1
            continue
        paths = write_report(report, reports)
        written[each] = [str(path) for path in paths]
        if not json:
            print(paths[0].read_text(encoding="utf-8"))
    if json:
        print_json({"scale": scale, "written": written})
    return 1 if n_failed else 0


def _require_what_the_end_needs(names: list[str], scale: Scale, treebank: Path | None, sentence: str | None) -> None:
    """Raises ConfigError for what would be missed only after hours."""
    from importlib.util import find_spec

    if "table4" in names and scale == "paper" and treebank is None:
        raise ConfigError("table4 at --scale paper needs --treebank, the folder of the Penn Treebank")
    if sentence is not None and not sentence.strip():
        raise ConfigError("--sentence has no word")
    if find_spec("matplotlib") is None:
        raise ConfigError("drawings are made by matplotlib, which is not here; install transduce[plot]")

"""``transduce paper``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from transduce.cli.machine import chosen_device
from transduce.cli.options import DataOption, DeviceOption, JsonOption, TreebankOption
from transduce.cli.output import print_json, say
from transduce.errors import ConfigError

if TYPE_CHECKING:
    from transduce.paper import Scale

__all__ = ["paper"]

SCALES = ("cpu", "gpu", "paper")


def paper(
    name: Annotated[str, typer.Argument(metavar="WHAT", help="table1 ... figure5, notes, or all.")],
    scale: Annotated[
        str,
        typer.Option(
            help="cpu: small models, minutes a run; gpu: the real sizes on less text; paper: the paper's own runs."
        ),
    ] = "cpu",
    out: Annotated[
        Path, typer.Option(help="Where reports go; finished runs are kept as small records in its folder runs.")
    ] = Path("paper"),
    work: Annotated[
        Path | None,
        typer.Option(help="Where runs and models are while they are made. Default: work in --out.", show_default=False),
    ] = None,
    sentence: Annotated[
        str | None, typer.Option(help="For the figures of attention: look at this one.", show_default=False)
    ] = None,
    short: Annotated[
        bool, typer.Option("--short", help="A form of seconds that shows only that all works; its numbers say nothing.")
    ] = False,
    treebank: TreebankOption = None,
    data: DataOption = None,
    device: DeviceOption = "auto",
    json: JsonOption = False,
) -> int:
    """Make a table or a figure of the paper again: our numbers beside the printed ones, as Markdown, CSV and SVG.

    Runs what is missing, goes on with what is half done.
    """
    from transduce.cli.progress import TrainingProgress
    from transduce.cli.signals import StopRequest
    from transduce.config import nearest_name
    from transduce.paper import ARTEFACTS, Laboratory, Request, Stopped, write_report

    names = list(ARTEFACTS) if name == "all" else [name]
    if name != "all" and name not in ARTEFACTS:
        raise ConfigError(f"there is no {name!r} in the paper; {nearest_name(name, [*ARTEFACTS, 'all'])}")
    if scale not in SCALES:
        raise ConfigError(f"--scale should be {', '.join(SCALES[:-1])} or {SCALES[-1]}, got {scale!r}")
    chosen_scale: Scale = scale  # type: ignore[assignment]
    asked = StopRequest()
    laboratory = Laboratory(
        out / "runs",
        work or out / "work",
        scale=chosen_scale,
        data_folder=data,
        device=chosen_device(device),
        follow=lambda config: TrainingProgress(config.training),
        should_stop=asked,
        while_training=asked,
        tell=say,
    )
    written: dict[str, list[str]] = {}
    for each in names:
        say(f"{each}:")
        try:
            report = ARTEFACTS[each](laboratory, Request(short, sentence, treebank))
        except Stopped:
            say(f"stopped; the same command goes on with {each}")
            return asked.exit_code
        paths = write_report(report, out)
        written[each] = [str(path) for path in paths]
        if not json:
            print(paths[0].read_text(encoding="utf-8"))
    if json:
        print_json({"scale": scale, "written": written})
    return 0

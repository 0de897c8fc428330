"""``transduce import``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from typer import Argument, BadParameter, Option

from transduce.cli import options
from transduce.cli.imports import command_imports
from transduce.cli.next_commands import command
from transduce.cli.output import echo, print_json, print_line
from transduce.cli.paths import require_folder, require_utf8_name

__all__ = ["import_"]


def import_(
    source: Annotated[
        Path,
        Argument(
            metavar="SOURCE",
            help="A Marian model: a folder of the Hugging Face Hub's layout (OPUS-MT), or model.npz.",
            show_default=False,
        ),
    ],
    out: Annotated[Path, Option(help="Write the model to this new folder.", show_default=False)],
    direction: Annotated[
        str | None, Option(help="Its languages, as in en-de, if the source does not say them.", show_default=False)
    ] = None,
    json: options.Json = False,
) -> None:
    """Import a Marian model, such as one of OPUS-MT, and check it.

    It can then be used as if it had been trained here.

    Examples:
        transduce import opus-mt-en-de --out en-de
    """
    from transduce.config import canonical_direction

    if direction is not None:
        known = canonical_direction(direction)
        if known is None:
            raise BadParameter(f"should be like en-de or en-pt-BR, got {direction!r}", param_hint="'--direction'")
        direction = known
    require_folder("--out", out)
    require_utf8_name("--out", out)
    with command_imports():
        from transduce.exchange import import_model

    report = import_model(source, out, direction=direction, log=echo)
    if json:
        print_json(report.as_json())
    else:
        print_line(f"imported {report.parameters:,} parameters; use: {command('translate', out)}")

"""``transduce read``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from typer import Argument

from transduce.cli import options
from transduce.cli.decoding import decoding_options
from transduce.cli.imports import command_imports
from transduce.cli.media import N_BEST_OF_FILES, print_texts
from transduce.config.decoding import NO_CHANGES, DecodingOptions

__all__ = ["read"]


@decoding_options("n_best", "beam_size", "alpha", "kind", "seed", n_best=N_BEST_OF_FILES)
def read(
    folder: options.Model,
    images: Annotated[
        list[Path], Argument(metavar="IMAGE", help="Images of one line of text each.", show_default=False)
    ],
    decoding: DecodingOptions = NO_CHANGES,
    device: options.Device = "auto",
    precision: options.Precision = "fp32",
    engine: options.Engine = "auto",
    json: options.Json = False,
) -> int:
    """Read the text of images, a line for each image.

    MODEL is a model of image-to-text.

    Examples:
        transduce read runs/reader/model line1.png line2.png
    """
    with command_imports():
        from transduce.inference import Reader

    return print_texts(Reader, folder, images, decoding, device=device, precision=precision, engine=engine, json=json)

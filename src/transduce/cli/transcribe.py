"""``transduce transcribe``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from typer import Argument

from transduce.cli import options
from transduce.cli.decoding import decoding_options
from transduce.cli.imports import command_imports
from transduce.cli.media import N_BEST_OF_FILES, print_texts
from transduce.config.decoding import NO_CHANGES, DecodingOptions

__all__ = ["transcribe"]


@decoding_options("n_best", "beam_size", "alpha", "kind", "seed", n_best=N_BEST_OF_FILES)
def transcribe(
    folder: options.Model,
    audio: Annotated[
        list[Path],
        Argument(metavar="AUDIO", help="Recordings of a sentence each: wav, flac, ogg, mp3.", show_default=False),
    ],
    decoding: DecodingOptions = NO_CHANGES,
    device: options.Device = "auto",
    precision: options.Precision = "fp32",
    engine: options.Engine = "auto",
    json: options.Json = False,
) -> int:
    """Write down what is said in recordings, or its translation.

    MODEL is a model of speech-to-text. Writes a line for each recording.

    Examples:
        transduce transcribe runs/speech/model sentence.wav
    """
    with command_imports():
        from transduce.inference import Transcriber

    return print_texts(
        Transcriber, folder, audio, decoding, device=device, precision=precision, engine=engine, json=json
    )

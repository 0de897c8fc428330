"""``transduce transcribe``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from typer import Argument

from transduce.cli import options
from transduce.cli.imports import command_imports
from transduce.cli.machine import chosen_device, chosen_precision
from transduce.cli.media import print_texts
from transduce.cli.model_folders import require_model_folder

__all__ = ["transcribe"]


def transcribe(
    folder: options.Model,
    audio: Annotated[
        list[Path],
        Argument(metavar="AUDIO", help="Recordings of a sentence each: wav, flac, ogg, mp3.", show_default=False),
    ],
    n_best: options.NBestOfFiles = None,
    beam: options.Beam = None,
    alpha: options.Alpha = None,
    sample: options.Sample = False,
    seed: options.SampleSeed = 1,
    device: options.Device = "auto",
    precision: options.Precision = "fp32",
    json: options.Json = False,
) -> int:
    """Write down what is said in recordings, or its translation, with a model of speech-to-text, a line for each."""
    with command_imports():
        from transduce.inference import Transcriber

    require_model_folder(folder)
    sample_seed = options.sample_seed(is_sampled=sample, seed=seed, beam=beam, n_best=n_best)
    device = chosen_device(device)
    model = Transcriber.load(folder, device=device, precision=chosen_precision(precision, device))
    return print_texts(model, audio, n_best=n_best, beam=beam, alpha=alpha, sample_seed=sample_seed, json=json)

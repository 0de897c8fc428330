"""Word error rates of a model of speech beside pocketsphinx's, on the test recordings of a recipe: synthetic speech.

    python benchmarks/speech.py MODEL --recipe speech-synthetic [--sentences 1000] [--json]

The recordings are made from the recipe by espeak-ng: voices and sentences that no training recording has,
half of them with noise. pocketsphinx (``pip install pocketsphinx``) has its own American English model, a general
vocabulary and language model, whereas our model has read the sentences of one grammar: its figure says how hard the
recordings are for a recogniser of real speech, not which system is better. Words are compared without case and
punctuation. Without MODEL, pocketsphinx alone is measured.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from machine import machine

from transduce import Transcriber
from transduce.corpora.speech_synthetic import SyntheticSpeech
from transduce.metrics import error_rates
from transduce.recipes import read_recipe

N_SENTENCES = 1000


def main() -> None:
    """Transcribe the test recordings with each system and print the error rates."""
    parser = argparse.ArgumentParser(description="Compare a transcriber with pocketsphinx.")
    parser.add_argument("model", type=Path, nargs="?", help="a model folder of speech-to-text")
    parser.add_argument("--recipe", type=Path, required=True, help="the recipe that makes the recordings")
    parser.add_argument("--sentences", type=int, default=N_SENTENCES, help="transcribe only the first of them")
    parser.add_argument("--beam", type=int, default=None)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    arguments = parser.parse_args()
    data = read_recipe(arguments.recipe).data
    if data.src_language != data.tgt_language:
        sys.exit(f"{arguments.recipe} has targets in another language; word error rates need those of the speech")
    recordings = list(islice(SyntheticSpeech(data).made("test"), arguments.sentences))
    names, texts, samples = zip(*recordings, strict=True)
    systems: dict[str, dict[str, Any]] = {}
    if arguments.model is not None:
        start = time.perf_counter()
        found = Transcriber.load(arguments.model).transcribe(samples, beam_size=arguments.beam)
        systems["transduce"] = scored(found, texts, names, samples, time.perf_counter() - start)
    try:
        from pocketsphinx import Decoder
    except ImportError:
        print("pocketsphinx is not installed: pip install pocketsphinx", file=sys.stderr)
    else:
        start = time.perf_counter()
        decoder = Decoder(samprate=16_000, loglevel="FATAL")
        found = [heard(decoder, each) for each in samples]
        systems["pocketsphinx"] = scored(found, texts, names, samples, time.perf_counter() - start)
    result = {"recipe": arguments.recipe.name, "speech": "synthetic (espeak-ng)", "systems": systems}
    print(json.dumps({**result, "machine": machine()}) if arguments.json else as_text(result))


def heard(decoder: Any, samples: np.ndarray) -> str:
    """Return what pocketsphinx hears in samples of a sentence."""
    decoder.start_utt()
    decoder.process_raw((np.clip(samples, -1, 1) * 32767).astype("<i2").tobytes(), full_utt=True)
    decoder.end_utt()
    hypothesis = decoder.hyp()
    return "" if hypothesis is None else str(hypothesis.hypstr)


def scored(
    found: Sequence[str], texts: Sequence[str], names: Sequence[str], samples: Sequence[np.ndarray], elapsed_s: float
) -> dict[str, Any]:
    """Return the error rates of all recordings and of each part, with the seconds of speech heard in a second."""
    rates = error_rates(found, texts, parts=[name.partition("/")[0] for name in names], plain_words=True)
    speech_s = sum(map(len, samples)) / 16_000
    return {**rates.as_json(), "speech_s": speech_s, "times_real_time": speech_s / elapsed_s}


def as_text(result: dict[str, Any]) -> str:
    """Return a table of Markdown: a row for each system and part."""
    rows = ["| system | part | sentences | word error rate |", "|---|---|---:|---:|"]
    notes = [f"Speech: {result['speech']}."]
    for system, scores in result["systems"].items():
        for part in ["", *(key.removesuffix("_lines") for key in scores if key.endswith("_lines"))]:
            prefix = f"{part}_" if part else ""
            rate, n = scores[f"{prefix}word_error_rate"]["score"], scores[f"{prefix}lines"]
            rows.append(f"| {system} | {part or 'all'} | {n:,} | {rate:.2f} % |")
        notes.append(f"{system}: {scores['times_real_time']:.1f} times real time")
    return "\n".join([*rows, "", *notes])


if __name__ == "__main__":
    main()

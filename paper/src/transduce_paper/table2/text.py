"""The text of Table 2 at scale hours: captions, help pages and everyday sentences, mixed; dev and test held out."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping
from itertools import chain
from pathlib import Path
from typing import Any

from transduce.config import SPLITS, ParallelData
from transduce.corpora import OWN_FILES, ParallelText, hold_out
from transduce.files import write_lines
from transduce.text import normalise
from transduce_paper.experiments import Experiments
from transduce_paper.run_records import RunRecord
from transduce_paper.sizes import size_description

__all__ = ["about_text", "n_training_pairs", "size_of", "text_settings", "write_text"]

TEXT: Mapping[str, str] = {
    "multi30k": "captions", "libreoffice-help": "help pages", "tatoeba_anki": "everyday sentences",
}  # fmt: skip
DIRECTION = "en-de"
SEED = 1
FOLDER = "table2-text"  # in the work folder


def text_settings(experiments: Experiments) -> list[str]:
    """Return the settings that name the files of the text, which need not exist yet."""
    paths = {f"data.{split}_tsv": str(experiments.work / FOLDER / f"{split}.tsv") for split in SPLITS}
    return [f"data.corpus={OWN_FILES}", *(f"{name}={json.dumps(path)}" for name, path in paths.items())]


def size_of(record: RunRecord) -> str:
    """Describe the size of a run of Table 2, with the corpora of the text in the place of its files."""
    data: dict[str, Any] = record.config["data"]
    named = data if data["corpus"] != OWN_FILES else {**data, "corpus": dict.fromkeys(TEXT, 1.0)}
    return size_description({**record.config, "data": named})


def write_text(experiments: Experiments) -> None:
    """Write the files unless they exist: pairs in random order, so that the first n are n of the whole.

    Dev and test share neither a source nor a target with the training text, nor a similar one. Raises DataError if a
    corpus is missing.
    """

    def make(folder: Path) -> None:
        experiments.log(f"mixing {', '.join(TEXT.values())}")
        text = ParallelText(ParallelData(corpus=dict.fromkeys(TEXT, 1.0), direction=DIRECTION), experiments.data_folder)
        pairs = list(chain.from_iterable(text.train(corpus) for corpus in TEXT))
        random.Random(SEED).shuffle(pairs)
        held_out = hold_out(lambda: pairs, seed=SEED)
        for split, of_split in (("train", held_out.train(pairs)), ("dev", held_out.dev), ("test", held_out.test)):
            write_lines(folder / f"{split}.tsv", (f"{normalise(src)}\t{normalise(tgt)}" for src, tgt in of_split))

    experiments.made_once(FOLDER, make)


def n_training_pairs(experiments: Experiments) -> int:
    """Return the number of pairs of the training text: counted once, kept beside the records."""
    return int(_sizes(experiments)["train"])


def about_text(experiments: Experiments) -> str:
    """Describe the text: its kinds and corpora, and the pairs of each part."""
    kinds = ", ".join(f"{kind} ({corpus})" for corpus, kind in TEXT.items())
    sizes = _sizes(experiments)
    return (
        f"{kinds}, mixed; {sizes['train']:,} pairs, {sizes['dev']:,} for dev and {sizes['test']:,} for test, which"
        " share no source and no target with it"
    )


def _sizes(experiments: Experiments) -> dict[str, Any]:
    def count() -> list[dict[str, Any]]:
        write_text(experiments)
        lines = dict[str, Any]()
        for split in SPLITS:
            with (experiments.work / FOLDER / f"{split}.tsv").open(encoding="utf-8") as file:
                lines[split] = sum(1 for _ in file)
        return [lines]

    return experiments.measurement("table2", "text", count, settings={"seed": SEED})[0]

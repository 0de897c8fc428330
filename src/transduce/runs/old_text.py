"""The old text of a model: what it has learnt from. Mixed into new text, it keeps the model from forgetting."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain, islice
from pathlib import Path

from transduce.config import CORPUS_PATTERN, SPLITS, ParallelData, config_from_mapping
from transduce.corpora import (
    CATALOGUE,
    OWN_FILES,
    CleaningReport,
    CleaningRules,
    Pair,
    ParallelText,
    Text,
    clean,
    find_text,
    hold_out,
)
from transduce.corpora.holding_out import side_keys
from transduce.corpora.leakage import LeakageSearch
from transduce.documents.pairs import pairs_of
from transduce.errors import ConfigError, DataError, TransduceError
from transduce.files import read_lines, write_lines
from transduce.runs.folder import store_of
from transduce.runs.own_text import Log, OwnText
from transduce.runs.run_file import holds_run, read_run_file
from transduce.tasks.prepared import open_prepared

__all__ = ["OLD", "OldText", "dev_of_run", "old_text_of_run", "text_to_mix", "write_old_text"]

OLD = "old"  # the corpus of old text in a recipe
MAX_DEV = 500  # pairs


@dataclass(frozen=True, slots=True)
class OldText:
    """Training pairs, read anew by each call, and dev pairs."""

    train: Callable[[], Iterator[Pair]]
    dev: Sequence[Pair]


def old_text_of_run(model: Path, data_folder: Path | None) -> OldText | None:
    """Return the text that a model was trained on; None if its folder is not in its run folder.

    Raises DataError or ConfigError if the text is no longer where the run found it, or another one is there.
    """
    run = model.resolve().parent
    if not holds_run(run):
        return None
    settings = read_run_file(run)
    if not isinstance(settings.config.data, ParallelData):
        return None
    if data_folder is None and settings.data_folder is not None and Path(settings.data_folder).is_dir():
        data_folder = Path(settings.data_folder)
    source = ParallelText(_where_it_was(settings.config.data, settings.started_in), data_folder)
    dev = dev_of_run(run)
    there = list(islice(source.of("dev"), MAX_DEV)) if source.has("dev") else []
    if dev and there and set(there).isdisjoint(dev):
        raise DataError("another text is in the place of its files")

    def train() -> Iterator[Pair]:
        return chain.from_iterable(map(source.train, source.corpora))

    return OldText(train, dev)


def _where_it_was(data: ParallelData, folder: str | None) -> ParallelData:
    """Return the data with relative paths made absolute; they start from the folder in which the run was started."""
    names = [*(f"{split}_{side}" for split in SPLITS for side in ("src", "tgt", "tsv")), "folder"]
    paths = {name: value for name in names if (value := getattr(data, name)) is not None}
    return data.model_copy(update={name: str(Path(folder or "", value)) for name, value in paths.items()})


def dev_of_run(run: Path) -> list[Pair]:
    """Return the dev pairs of a run, those of further dev sets included; none if it has none."""
    try:
        prepared = open_prepared(store_of(run))
        own = prepared.text("dev")
        texts = [*([own] if own else []), *map(prepared.also_dev_text, prepared.also_dev)]
    except TransduceError:
        return []
    return [pair for src, tgt in texts for pair in zip(src, tgt, strict=True)]


def text_to_mix(named: Sequence[str], languages: tuple[str, str], data_folder: Path | None) -> OldText:
    """Return the text of corpora, of folders with train and dev, and of files of pairs.

    Dev pairs are held out of what has none. Raises ConfigError or DataError for what is not there.
    """
    texts = [_corpus(name, languages, data_folder) or _files(Path(name), languages) for name in named]

    def train() -> Iterator[Pair]:
        return chain.from_iterable(text.train() for text in texts)

    return OldText(train, [pair for text in texts for pair in text.dev])


def _corpus(name: str, languages: tuple[str, str], data_folder: Path | None) -> OldText | None:
    """Return the text of a corpus, or of a folder that is one; None for other files and folders."""
    path, values = Path(name), {"corpus": name}
    if path.exists():
        path = path.resolve()
        values = {
            f"{split}_{side}": str(file)
            for split in ("train", "dev")
            for side, file in zip(
                ("src", "tgt"), find_text(Text(path.name, split), *languages, [path.parent]) or (), strict=False
            )
        }
        if "train_src" not in values:
            return None
        values["corpus"] = OWN_FILES
        if path.name in CATALOGUE:
            values, data_folder = {"corpus": path.name}, path.parent
    elif name == OWN_FILES or not re.fullmatch(CORPUS_PATTERN, name):
        raise ConfigError(f"--mix {name}: there is no such file or folder, nor a corpus of this name")
    data = config_from_mapping(ParallelData, values | {"direction": "-".join(languages)}, where=f"--mix {name}")
    source = ParallelText(data, data_folder)
    read = partial(source.train, source.corpora[0])
    return OldText(read, list(source.of("dev"))) if source.has("dev") else _held_out(read)


def _files(path: Path, languages: tuple[str, str]) -> OldText:
    pairs = pairs_of(path, *languages)
    return _held_out(lambda: clean(((each.src, each.tgt) for each in pairs), CleaningRules(), CleaningReport()))


def _held_out(read: Callable[[], Iterator[Pair]]) -> OldText:
    held_out = hold_out(read)
    return OldText(lambda: held_out.train(read()), [*held_out.dev, *held_out.test])


def write_old_text(old: OldText, own: OwnText, folder: Path, n: int, log: Log) -> int:
    """Write dev pairs and at most ``n`` training pairs, spread over the text, as the corpus ``OLD`` of a folder.

    ``folder`` has the splits of the user's own text: no training pair has a source or target of its dev or test, and
    no dev pair one of its training text, not even with other capitals, punctuation or digits. ``log`` is told how much
    of its dev and test the old text has anyway: the model may have learnt that before. Returns the number of training
    pairs; if there are none, or no dev pairs, nothing is written.
    """
    texts = {
        split: list(zip(*(read_lines(folder / name) for name in own.names_of(split)), strict=True)) for split in SPLITS
    }
    keys = {split: {key for pair in pairs for key in side_keys(pair)} for split, pairs in texts.items()}
    held_out = keys["dev"] | keys["test"]
    dev = [pair for pair in old.dev if keys["train"].isdisjoint(side_keys(pair))][:MAX_DEV]
    search, n_all = LeakageSearch([*texts["dev"], *texts["test"]]), 0
    for pair in old.train():
        search.observe(pair)
        n_all += 1
    if (known := search.result().sentence("the old text")) is not None:
        log(f"warning: dev and test: {known}")
    step = max(1, -(-n_all // n))
    train = [pair for pair in islice(old.train(), 0, None, step) if held_out.isdisjoint(side_keys(pair))]
    if not dev or not train:
        return 0
    (folder / OLD).mkdir()
    for split, pairs in (("train", train), ("dev", dev)):
        for side, language in enumerate((own.src_language, own.tgt_language)):
            write_lines(folder / OLD / f"{split}.{language}", (pair[side] for pair in pairs))
    return len(train)

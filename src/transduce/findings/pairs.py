"""What is found in the parallel text of a recipe."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from transduce.config import SPLITS, DataConfig, ParallelData, Split
from transduce.corpora import (
    GENERATED,
    OWN_FILES,
    CleaningRules,
    ParallelText,
    corpus_named,
    data_folders,
    find_text,
)
from transduce.corpora.checks import TextPart, column_part, remarks_between, remarks_on_codes, two_file_part
from transduce.corpora.formats import foreign_format
from transduce.errors import ConfigError, DataError
from transduce.findings.finding import Finding, counted, guard, note, problem
from transduce.findings.text import as_finding, examine_column_file, examine_line_pairs, examine_two_files

__all__ = ["examine_pairs_of"]

N_GENERATED_PAIRS = 300  # examined of a generated corpus, which is the same everywhere


def examine_pairs_of(data: DataConfig, recipe: Path, data_folder: Path | None) -> Iterator[Finding]:
    """Examine the text of each split. Missing text is reported with the messages of ``prepare``."""
    if not isinstance(data, ParallelData):  # a task with a source of its own
        return
    rules = CleaningRules.of(data)
    missing: str | None = None
    try:
        ParallelText(data, data_folder)
    except (ConfigError, DataError) as error:
        missing = str(error)
        yield problem(recipe, missing)
    if OWN_FILES in data.weights and not any(data.files_of("train")):
        missing = "no training text: set data.train_src and data.train_tgt, or data.train_tsv"
        yield problem(recipe, missing)
    folders = data_folders(data_folder, data.folder)
    languages = data.src_language, data.tgt_language
    has_part = dict.fromkeys(SPLITS, False)
    parts: dict[Split, list[TextPart]] = {split: [] for split in SPLITS}
    yield from map(as_finding, remarks_on_codes(data))
    for split in SPLITS:
        src, tgt, tsv = (None if name is None else Path(name) for name in data.files_of(split))
        if tsv is not None and (tsv.exists() or missing is None):
            has_part[split] = True
            if _is_text(tsv):
                parts[split].append(column_part(tsv))
            yield from examine_column_file(tsv, rules=rules, languages=languages)
        elif src is not None and tgt is not None:
            has_part[split] = True
            if src.exists() and tgt.exists():
                if _is_text(src) and _is_text(tgt):
                    parts[split].append(two_file_part(src, tgt))
                yield from examine_two_files(src, tgt, rules=rules, languages=languages)
        for name in data.weights:
            if name in GENERATED:
                has_part[split] = True
            if name in (*GENERATED, OWN_FILES) or (split != "train" and has_part[split]):
                continue
            for text in corpus_named(name).texts(split):
                files = find_text(text, *languages, folders)
                if files is not None:
                    has_part[split] = True
                    parts[split].append(two_file_part(*files))
                    is_tokenised = split == "train" and corpus_named(name).is_tokenised
                    yield from examine_two_files(*files, rules=rules, languages=languages, is_tokenised=is_tokenised)
    between = remarks_between(parts["train"], [*parts["dev"], *parts["test"]])
    yield from guard(recipe, map(as_finding, between))
    for name in data.weights:
        if name in GENERATED:
            pairs = GENERATED[name].pairs("train", n_pairs=data.n_pairs, seed=data.corpus_seed)
            n_pairs = min(data.n_pairs, N_GENERATED_PAIRS)
            yield from examine_line_pairs(f"{name}, {counted(n_pairs, 'pair')}", islice(pairs, n_pairs), rules=rules)
    if missing is None and not has_part["dev"]:
        yield note(recipe, "no dev text: there will be no validation and no best checkpoint")
    if missing is None and not has_part["test"]:
        yield note(recipe, "no test text: the model will be scored on dev, if there is dev text")


def _is_text(path: Path) -> bool:
    return path.is_file() and foreign_format(path) is None

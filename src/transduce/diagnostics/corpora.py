"""Diagnostics of corpora: by name, in a folder, or in a recipe."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, combinations, islice
from pathlib import Path

from transduce.config import (
    LANGUAGE_PATTERN,
    SPLITS,
    DataConfig,
    DocumentsData,
    FirstItems,
    MediaData,
    ParallelData,
    PromptsData,
    RunConfig,
    Split,
    TreesData,
    nearest_name,
)
from transduce.corpora import (
    BUILT_IN,
    CATALOGUE,
    OWN_FILES,
    CleaningRules,
    ParallelText,
    Text,
    available_directions,
    corpus_named,
    data_folders,
    find_text,
    generate_pairs,
)
from transduce.corpora.checks import TextPart, column_part, remarks_between, remarks_on_codes, two_file_part
from transduce.corpora.digits import DIGITS, DigitText
from transduce.corpora.formats import foreign_format
from transduce.corpora.plain_text import PlainText
from transduce.diagnostics.finding import Finding, counted, good, guard, note, problem
from transduce.diagnostics.media import examine_media_of
from transduce.diagnostics.rankings import examine_prompts_of
from transduce.diagnostics.text import as_finding, examine_column_file, examine_line_pairs, examine_two_files
from transduce.diagnostics.treebanks import examine_trees_of
from transduce.errors import ConfigError, DataError
from transduce.recipes import read_recipe

__all__ = [
    "corpora_in", "describe_run", "examine_corpus", "examine_corpus_folder", "examine_data_folder", "examine_recipe",
    "parallel_texts_in",
]  # fmt: skip

N_GRAMMAR_PAIRS = 300  # examined of the built-in corpus, which is the same everywhere
_TEXT_FILE = re.compile(rf"(?P<stem>[^.].*?)\.(?P<language>{LANGUAGE_PATTERN})(?:\.gz|\.xz)?")
_NO_LANGUAGE = frozenset({"csv", "tsv", "txt", "xml", "sgm", "log", "npy", "md", "py", "sh", "zip", "tar", "tgz"})


def examine_corpus(name: str, data_folder: Path | None = None) -> Iterator[Finding]:
    """Examine all texts of a corpus on this machine, in all of its language pairs."""
    if name == BUILT_IN:
        yield good(name, "the built-in corpus, generated from a seed; it needs no files")
        pairs = ((pair.en, pair.de) for pair in generate_pairs("train", n_pairs=N_GRAMMAR_PAIRS, seed=1))
        yield from examine_line_pairs(f"{name}, {N_GRAMMAR_PAIRS} pairs", pairs)
        return
    folders = data_folders(data_folder)
    corpus = corpus_named(name)
    texts = [*corpus.train, *corpus.dev, *corpus.test, *corpus.further]
    here = {text: _files_of(text, folders) for text in dict.fromkeys(texts)}
    if not any(here.values()):
        searched = ", ".join(map(str, folders))
        known = nearest_name(name, [BUILT_IN, *CATALOGUE])
        help = CATALOGUE[name].how_to_get if name in CATALOGUE else known
        yield problem(name, f"no text of this corpus in {searched}, and no file or folder of this name; {help}")
        return
    kind = "a corpus of the catalogue" if name in CATALOGUE else "your own corpus"
    directions = ", ".join(available_directions(corpus, folders))
    yield good(name, kind + (f", with all of its training text in {directions}" if directions else ""))
    yield from _examine_texts(here.values(), is_tokenised=corpus.is_tokenised)


def examine_corpus_folder(folder: Path) -> Iterator[Finding]:
    """Examine a folder of aligned files ``STEM.LANGUAGE``."""
    texts = parallel_texts_in(folder)
    yield good(folder, f"a folder of parallel text: {', '.join(texts)}")
    yield from _examine_texts([(paths[0], other) for other in paths[1:]] for paths in texts.values())


def _examine_texts(texts: Iterable[Sequence[tuple[Path, Path]]], *, is_tokenised: bool = False) -> Iterator[Finding]:
    reported: set[Path] = set()
    for files in texts:
        for src, tgt in files:
            yield from examine_two_files(src, tgt, reported=reported, is_tokenised=is_tokenised)


def examine_data_folder(folder: Path) -> Iterator[Finding]:
    """Examine a folder that holds one folder per corpus."""
    names = corpora_in(folder)
    yield note(
        folder,
        f"a data folder, with text in {', '.join(names)}; to examine the text, name one of these:"
        f" transduce doctor {folder / names[0]}",
    )


def corpora_in(folder: Path) -> list[str]:
    """Return the names of the folders in a data folder that hold parallel text."""
    return sorted(path.name for path in folder.iterdir() if path.is_dir() and parallel_texts_in(path))


def parallel_texts_in(folder: Path) -> dict[str, list[Path]]:
    """Return the texts of a folder that exist in two or more languages, with their files."""
    texts: dict[str, dict[str, Path]] = {}
    for path in sorted(folder.iterdir()):  # plain files come before compressed ones
        match = _TEXT_FILE.fullmatch(path.name)
        if match and match["language"] not in _NO_LANGUAGE and path.is_file():
            texts.setdefault(match["stem"], {}).setdefault(match["language"], path)
    return {stem: list(files.values()) for stem, files in texts.items() if len(files) > 1}


def _files_of(text: Text, folders: Sequence[Path]) -> list[tuple[Path, Path]]:
    """Return pairs of aligned files of a text, each file at least once but without redundant pairs."""
    languages = text.languages or _languages_of(text, folders)
    pairs = [pair for pair in combinations(languages, 2) if text.is_in(*pair)]
    existing = [files for src, tgt in pairs if (files := find_text(text, src, tgt, folders)) is not None]
    covered: set[Path] = set()
    selected = []
    for files in existing:
        if not covered.issuperset(files):
            covered.update(files)
            selected.append(files)
    return selected


def _languages_of(text: Text, folders: Sequence[Path]) -> list[str]:
    """Return the languages that a text has files in, with or without a language pair in their names."""
    text_folders = [folder / text.folder for folder in folders]
    names = [path.name for folder in text_folders if folder.is_dir() for path in folder.iterdir()]
    matches = filter(None, map(_TEXT_FILE.fullmatch, names))
    stem = re.compile(rf"{re.escape(text.stem)}(\.[a-z]{{2,3}}-[a-z]{{2,3}})?")
    return sorted({match["language"] for match in matches if stem.fullmatch(match["stem"])} - _NO_LANGUAGE)


def examine_recipe(path: Path, data_folder: Path | None = None) -> Iterator[Finding]:
    """Examine a recipe and all the text that it names."""
    from transduce.tasks import task_of  # late: it imports torch, which text does not need

    warnings = list[str]()
    config = read_recipe(path, log=warnings.append)
    for warning in warnings:
        yield note(path, warning.removeprefix(f"warning: {path}: "))
    task_of(config).require_best_by(config)
    yield good(path, f"a recipe: {describe_run(config)}")
    training = config.training
    if training.warmup_steps > training.max_updates and training.max_minutes is None:
        yield note(
            path,
            f"training ends after {training.max_updates:,} updates, before the end of the warm-up after"
            f" {training.warmup_steps:,}; raise max_updates or lower warmup_steps",
        )
    of_record = {
        TreesData: examine_trees_of, FirstItems: _examine_digits_of, DocumentsData: _examine_plain_text_of,
        PromptsData: examine_prompts_of, MediaData: examine_media_of, ParallelData: _examine_text_of,
    }  # fmt: skip
    for record, examine in of_record.items():
        if isinstance(config.data, record):
            yield from examine(config.data, path, data_folder)


def describe_run(config: RunConfig) -> str:
    """Describe the model, the text and the length of a run."""
    model, data = config.model, config.data
    media = {"pixels": "images", "image-to-text": "images", "speech-to-text": f"speech ({data.direction})"}
    what = {"parsing": "trees", **media}.get(data.task, data.direction)
    return (
        f"{model.layers_in_words()} of width {model.d_model}, "
        f"{what} of {' and '.join(data.weights)}, {config.training.max_updates:,} updates"
    )


def _examine_digits_of(data: DataConfig, recipe: Path, data_folder: Path | None) -> Iterator[Finding]:
    """Examine whether the digits are there."""
    try:
        text = DigitText(data)
        for split in SPLITS:
            documents = text.train(DIGITS) if split == "train" else text.of(split)
            yield good(recipe, f"{split}: {counted(sum(1 for _ in documents), 'image')}")
    except ConfigError as error:
        yield problem(recipe, str(error))


def _examine_plain_text_of(data: DataConfig, recipe: Path, data_folder: Path | None) -> Iterator[Finding]:
    """Examine the documents of a language model's recipe: every line is read."""
    try:
        text = PlainText(data, data_folder)
        for split in SPLITS:
            if not text.has(split):
                yield note(recipe, f"no {split} text: set data.{split}_text to score the model on it")
                continue
            sources = [text.train(name) for name in text.corpora]
            documents = chain.from_iterable(sources) if split == "train" else text.of(split)
            sizes = [len(lines) for lines in documents]
            if not sizes:
                yield problem(recipe, f"the {split} text has no lines; give text with words")
            else:
                yield good(recipe, f"{split} text: {len(sizes):,} documents, {sum(sizes):,} lines")
    except (ConfigError, DataError) as error:
        yield problem(recipe, str(error))


def _examine_text_of(data: DataConfig, recipe: Path, data_folder: Path | None) -> Iterator[Finding]:
    """Examine the text of each split. Missing text is reported with the messages of ``prepare``."""
    assert isinstance(data, ParallelData)
    rules = CleaningRules(
        max_characters=data.max_characters,
        max_length_ratio=data.max_length_ratio,
        drop_identical=data.drop_identical,
        drop_duplicates=data.drop_duplicates,
    )
    missing: str | None = None
    try:
        ParallelText(data, data_folder)
    except (ConfigError, DataError) as error:
        missing = str(error)
        yield problem(recipe, missing)
    if OWN_FILES in data.weights and not any(data.files_of("train")):
        missing = "no training text: set data.train_src and data.train_tgt, or data.train_tsv"
        yield problem(recipe, missing)
    folders = data_folders(data_folder)
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
            if name == BUILT_IN:
                has_part[split] = True
            if name in (BUILT_IN, OWN_FILES) or (split != "train" and has_part[split]):
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
    if BUILT_IN in data.weights:
        pairs = ((pair.en, pair.de) for pair in generate_pairs("train", n_pairs=data.n_pairs, seed=data.corpus_seed))
        n_pairs = min(data.n_pairs, N_GRAMMAR_PAIRS)
        yield from examine_line_pairs(f"{BUILT_IN}, {counted(n_pairs, 'pair')}", islice(pairs, n_pairs), rules=rules)
    if missing is None and not has_part["dev"]:
        yield note(recipe, "no dev text: there will be no validation and no best checkpoint")
    if missing is None and not has_part["test"]:
        yield note(recipe, "no test text: the model will be scored on dev, if there is dev text")


def _is_text(path: Path) -> bool:
    return path.is_file() and foreign_format(path) is None

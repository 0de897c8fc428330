"""A recipe for the user's own text: dev and test are held out, and model size and run length fit the text and time.

Quality in a short run depends on the number of epochs. So the recipe has the largest model that makes enough epochs in
the given time on this machine, as measured by a few throwaway updates.
"""

from __future__ import annotations

import json
import shlex
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import torch

from transduce.config import (
    SPLITS,
    BeamSearchConfig,
    ParallelData,
    RunConfig,
    TrainingConfig,
    TransformerConfig,
    config_from_mapping,
)
from transduce.corpora import CleaningReport, CleaningRules, checks, clean, hold_out, read_aligned_files
from transduce.corpora.parallel_files import read_uncleaned_columns
from transduce.corpora.parallel_text import require_text
from transduce.errors import ConfigError, DataError
from transduce.files import atomic_folder, write_lines, write_text
from transduce.model import cost_of, fast_precision
from transduce.runs.update_timing import seconds_per_update
from transduce.tasks.preparation import prepare
from transduce.tasks.prepared import Prepared
from transduce.tasks.registry import task_of

__all__ = ["NewRecipe", "OwnText", "new_recipe"]

Log = Callable[[str], None]

N_SAMPLED = 20_000  # pairs of the sample on which tokens are counted and updates timed
MIN_EPOCHS, MIN_UPDATES = 12.0, 3000  # a model that is too slow for these is not chosen, except the smallest
UPDATE_TIME_FRACTION = 0.93  # of the training time; the rest is for validation and checkpoints
FEW_PAIRS = 5000  # fewer training pairs cause a warning


@dataclass(frozen=True, slots=True)
class OwnText:
    """The user's parallel text: two files aligned by line, or one file with two columns."""

    src_language: str
    tgt_language: str
    src: Path | None = None
    tgt: Path | None = None
    tsv: Path | None = None
    max_dropped_share: float = 0.3  # fraction of the pairs that cleaning may drop

    @property
    def is_one_language(self) -> bool:
        """Whether both sides are in one language, as in correction, where lines that stay as they are belong to it."""
        return self.src_language == self.tgt_language

    @property
    def rules(self) -> CleaningRules:
        """What cleaning drops."""
        return CleaningRules(drop_identical=not self.is_one_language)

    def names_of(self, split: str) -> tuple[str, str]:
        """The names of the source and target file of a split.

        >>> OwnText("en", "de").names_of("dev"), OwnText("en", "en").names_of("dev")
        (('dev.en', 'dev.de'), ('dev.src.en', 'dev.tgt.en'))
        """
        sides = (".src", ".tgt") if self.is_one_language else ("", "")
        return f"{split}{sides[0]}.{self.src_language}", f"{split}{sides[1]}.{self.tgt_language}"

    @property
    def files(self) -> dict[str, Path]:
        """The files by their keys in a recipe."""
        named = {"train_tsv": self.tsv} if self.tsv else {"train_src": self.src, "train_tgt": self.tgt}
        return {name: path for name, path in named.items() if path is not None}

    @property
    def part(self) -> checks.TextPart:
        """The text as ``corpora.checks`` reads it."""
        return checks.column_part(self.tsv) if self.tsv else checks.two_file_part(*self.files.values())

    def pairs(self) -> Iterator[tuple[str, str] | None]:
        """Iterate over the uncleaned pairs. Raises DataError if the files do not align."""
        if self.tsv is not None:
            return read_uncleaned_columns(self.tsv)
        return read_aligned_files(*self.files.values(), escape_invalid=True)


@dataclass(frozen=True, slots=True)
class NewRecipe:
    """A written recipe, with its expected time."""

    recipe: Path
    text: Path  # folder with train, dev and test
    config: RunConfig
    n_train: int
    n_dev: int
    n_test: int
    n_left_out: int  # training pairs left out because they are too similar to dev or test
    seconds_per_update: float
    n_epochs: float

    @property
    def minutes(self) -> float:
        """Expected training time on this machine."""
        return self.config.training.max_updates * self.seconds_per_update / 60 / UPDATE_TIME_FRACTION

    @property
    def command(self) -> str:
        """The shell command that trains it."""
        return shlex.join(["transduce", "train", str(self.recipe), "--out", f"runs/{self.recipe.stem}"])


# Candidate models, smallest first, with the minimum number of pairs; the first is for CPUs only. The smaller ones were
# tried on captions and help pages (docs/results.md).
_MODELS = [
    (min_pairs, TransformerConfig(
        n_encoder_layers=n_layers, n_decoder_layers=n_layers, d_model=d_model, d_ff=d_ff, n_heads=n_heads, norm="pre"
    ))
    for min_pairs, n_layers, d_model, d_ff, n_heads in (
        (0, 2, 256, 512, 4), (0, 4, 256, 512, 4), (50_000, 3, 256, 1024, 4), (200_000, 6, 512, 2048, 8),
    )
]  # fmt: skip


def new_recipe(text: OwnText, out: Path, *, minutes: float, device: torch.device, log: Log) -> NewRecipe:
    """Write a recipe at ``out`` and the text, split into train, dev and test, in ``<out>-text`` beside it.

    Raises ConfigError if one of them exists, DataError if the text cannot be used.
    """
    folder = out.with_name(f"{out.stem}-text")
    for path in (out, folder):
        if path.exists():
            raise ConfigError(f"{path} exists already; name another recipe with --out, or remove it")
    with atomic_folder(folder) as temporary:
        n_train, n_dev, n_test, n_left_out = _write_splits(text, temporary, log)
        with tempfile.TemporaryDirectory() as work_folder:
            config, seconds, n_epochs = _plan_run(text, temporary, Path(work_folder), n_train, minutes, device, log)
    config = config.model_copy(update={"data": _data_of_splits(text, folder, config.data.vocab_size)})
    recipe = NewRecipe(out, folder, config, n_train, n_dev, n_test, n_left_out, seconds, n_epochs)
    write_text(out, _toml(recipe))
    return recipe


def _write_splits(text: OwnText, folder: Path, log: Log) -> tuple[int, int, int, int]:
    """Write train, dev and test. Returns their numbers of pairs, and that of training pairs left out as similar."""
    for path in text.files.values():
        require_text(path)
    report = CleaningReport()

    def clean_pairs() -> Iterator[tuple[str, str]]:
        return clean(text.pairs(), text.rules, CleaningReport())

    for _ in clean(text.pairs(), text.rules, report):
        pass  # only to fill the report
    for line in report.lines():
        log(line)
    config = _data_config(text, text.files, max_dropped_share=text.max_dropped_share)
    drop_remark = checks.remark_on_dropped("files", report, config, to_allow="--max-dropped-share 1")
    if drop_remark is not None and drop_remark.status == "problem":
        raise DataError(str(drop_remark))
    languages = text.src_language, text.tgt_language
    remarks = [*checks.remarks_on_codes(config), *checks.remarks_on_part(text.part, languages)]
    for remark in [drop_remark, *remarks] if drop_remark is not None else remarks:
        log(f"warning: {remark}")
    held_out = hold_out(clean_pairs)
    _write_pairs(folder, "dev", text, held_out.dev)
    _write_pairs(folder, "test", text, held_out.test)
    n_train = _write_pairs(folder, "train", text, held_out.train(clean_pairs()))
    if not (held_out.dev and held_out.test and n_train):
        raise DataError(
            "the text is too repetitive to hold out dev and test: training pairs that share a source or target with "
            "them are left out, and none would remain; use text with more distinct sentences"
        )
    log(
        f"held out: {len(held_out.dev):,} pairs for dev and {len(held_out.test):,} for test; {n_train:,} to train on, "
        f"{held_out.n_left_out:,} left out as too similar to dev or test"
    )
    if n_train < FEW_PAIRS:
        log(f"warning: {n_train:,} pairs are few for a translator; it will know only words and phrases of this text")
    return n_train, len(held_out.dev), len(held_out.test), held_out.n_left_out


def _write_pairs(folder: Path, split: str, text: OwnText, pairs: Iterable[tuple[str, str]]) -> int:
    """Write the two files of a split; targets are buffered on disk while sources are written."""
    with tempfile.TemporaryFile("w+", encoding="utf-8", newline="\n") as targets:

        def sources() -> Iterator[str]:
            for src, tgt in pairs:
                targets.write(tgt + "\n")
                yield src

        src, tgt = (folder / name for name in text.names_of(split))
        n_lines = write_lines(src, sources())
        targets.seek(0)
        write_lines(tgt, (line.removesuffix("\n") for line in targets))
    return n_lines


def _data_of_splits(text: OwnText, folder: Path, vocab_size: int) -> ParallelData:
    """Return the data configuration that names the train, dev and test files in ``folder``."""
    files = {
        f"{split}_{side}": folder / name
        for split in SPLITS
        for side, name in zip(("src", "tgt"), text.names_of(split), strict=True)
    }
    return _data_config(text, files, vocab_size=vocab_size, masks=True)


def _data_config(text: OwnText, files: Mapping[str, Path], **more: object) -> ParallelData:
    values = {name: str(path) for name, path in files.items()} | more
    if text.is_one_language:
        values["drop_identical"] = False
    direction = f"{text.src_language}-{text.tgt_language}"
    return config_from_mapping(ParallelData, {"corpus": "files", "direction": direction, **values}, where="data")


def _plan_run(
    text: OwnText, folder: Path, work_folder: Path, n_train: int, minutes: float, device: torch.device, log: Log
) -> tuple[RunConfig, float, float]:
    """Choose model and run length. Returns the configuration, seconds per update, and the number of epochs."""
    vocab_size = 4000 if n_train < 10_000 else 8000 if n_train < 100_000 else 16_000 if n_train < 1_000_000 else 32_000
    sample, n_sampled = _sample(text, folder, work_folder, n_train, vocab_size)
    is_gpu = device.type == "cuda"
    models = [model.with_vocabulary(vocab_size, vocab_size) for min_pairs, model in _MODELS if n_train >= min_pairs]
    training = TrainingConfig(
        max_tokens_per_batch=16_384 if is_gpu and n_train > 200_000 else 4096 if is_gpu else 2048,
        optimiser="muon",
        decay="linear",
        weight_decay=0.1,
        precision=fast_precision(device),
    )
    data, search = _data_of_splits(text, work_folder, vocab_size), BeamSearchConfig(alpha=1.0)
    runs = [
        RunConfig(model=model, data=data, training=training, search=search) for model in models[1 if is_gpu else 0 :]
    ]
    batches = task_of(runs[0]).batches(sample.train, runs[0], device)
    n_batches = batches.n_batches(0) * n_train / n_sampled  # per epoch of the whole text
    log(f"timing some updates on {device.type}")
    seconds = seconds_per_update(runs[0], sample, device)
    flops = [cost_of(run.model).flops_per_token for run in runs]
    # The time of larger models is estimated from the smallest; the chosen one is measured.
    estimates = [seconds * each / flops[0] for each in flops]
    n_updates_of = [int(UPDATE_TIME_FRACTION * 60 * minutes / estimate) for estimate in estimates]
    min_updates = max(MIN_UPDATES, MIN_EPOCHS * n_batches)
    best = max(index for index, n_updates in enumerate(n_updates_of) if index == 0 or n_updates >= min_updates)
    seconds = seconds if best == 0 else seconds_per_update(runs[best], sample, device)
    n_updates = max(20, int(UPDATE_TIME_FRACTION * 60 * minutes / seconds))
    n_epochs = n_updates / n_batches
    return _with_length(runs[best], n_updates, n_epochs), seconds, n_epochs


def _sample(text: OwnText, folder: Path, work_folder: Path, n_train: int, vocab_size: int) -> tuple[Prepared, int]:
    """Prepare a sample of the training text; return it and its number of pairs."""
    n_lines = 0
    files = {"train_src": work_folder / "src", "train_tgt": work_folder / "tgt"}
    step = max(1, n_train // N_SAMPLED)
    for name, sampled in zip(text.names_of("train"), files.values(), strict=True):
        with (folder / name).open(encoding="utf-8", newline="\n") as lines:
            n_lines = write_lines(sampled, (line.removesuffix("\n") for line in islice(lines, 0, None, step)))
    config = _data_config(text, files, vocab_size=vocab_size, masks=True)
    return prepare(config, work_folder / "prepared"), n_lines


def _with_length(run: RunConfig, n_updates: int, n_epochs: float) -> RunConfig:
    """Set the number of updates and what depends on it: the more epochs, the more dropout."""
    p_drop = 0.1 if n_epochs < 12 else 0.2 if n_epochs < 30 else 0.3
    training = run.training.model_copy(
        update={
            "max_updates": n_updates,
            "warmup_steps": max(10, min(300, n_updates // 5)),
            "validate_every_updates": max(10, n_updates // 6),
            "validation_sentences": 200,
            "checkpoint_every_updates": max(5, n_updates // 100),
            "log_every_updates": max(1, min(50, n_updates // 20)),
        }
    )
    return run.model_copy(update={"model": run.model.model_copy(update={"p_drop": p_drop}), "training": training})


def _toml(recipe: NewRecipe) -> str:
    """Return the recipe as TOML with comments."""
    config = recipe.config
    model, data, training, search = config.model, ParallelData.of(config.data), config.training, config.search
    assert isinstance(model, TransformerConfig)
    files = "".join(
        f"{split}_{side} = {json.dumps(getattr(data, f'{split}_{side}'), ensure_ascii=False)}\n"
        for split in SPLITS
        for side in ("src", "tgt")
    )
    src, tgt = data.src_language, data.tgt_language
    what = f"Correction of {src}" if src == tgt else f"Translation from {src} to {tgt}"
    head = [
        f"{what}, {recipe.n_train:,} sentence pairs.",
        f"  {recipe.command}",
        f"Expected training time on the machine where this was written: {recipe.minutes:.0f} minutes, "
        f"{training.max_updates:,} updates of",
        f"{recipe.seconds_per_update:.2f} s, {recipe.n_epochs:.1f} epochs.",
        "With more time, raise max_updates, and p_drop to 0.2 from 12 epochs on, to 0.3 from 30 epochs on.",
        "src/transduce/config/ documents all settings.",
    ]
    unchanged = "" if data.drop_identical else "drop_identical = false   # lines that need no correction\n"
    comment = "\n".join(f"# {line}" for line in "\n".join(head).splitlines())
    return f"""\
{comment}
preset = "base"

[model]
# Larger models are better with more text, but slower: 4 or 6 layers, d_model = 512, d_ff = 2048, n_heads = 8.
n_encoder_layers = {model.n_encoder_layers}
n_decoder_layers = {model.n_decoder_layers}
d_model = {model.d_model}
d_ff = {model.d_ff}
n_heads = {model.n_heads}
p_drop = {model.p_drop}
norm = "pre"         # short runs converge faster than with the paper's "post"

[data]
corpus = "files"
direction = "{data.direction}"
# train contains no sentence of dev or test, nor a similar one.
{files}vocab_size = {data.vocab_size}
{unchanged}masks = true         # copies URLs, tags, placeholders, codes, dates, numbers with units and emoji

[training]
max_updates = {training.max_updates}
max_tokens_per_batch = {training.max_tokens_per_batch}
optimiser = "muon"
warmup_steps = {training.warmup_steps}
decay = "linear"     # the learning rate ends at 0: a longer run has to start again
weight_decay = {training.weight_decay}
precision = "{training.precision}"
log_every_updates = {training.log_every_updates}
validate_every_updates = {training.validate_every_updates}
validation_sentences = {training.validation_sentences}
checkpoint_every_updates = {training.checkpoint_every_updates}    # the last five checkpoints are averaged

[search]
beam_size = {search.beam_size}
alpha = {search.alpha}
"""

"""A recipe for a text of one's own: dev and test held out, a model for the amount of text and for the time there is.

How good a translator becomes in little time depends on how often it sees the text. So the largest model is taken that
sees it often enough in the time given, on this machine, as some updates tell that are made and thrown away.
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
    DataConfig,
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
from transduce.tasks.preparation import Prepared, prepare
from transduce.tasks.registry import task_of
from transduce.tasks.update_timing import seconds_per_update

__all__ = ["NewRecipe", "OwnText", "new_recipe"]

Log = Callable[[str], None]

N_SAMPLED = 20_000  # pairs that a tokenizer is learned from, to count tokens and time updates
LEAST_EPOCHS, LEAST_UPDATES = 12.0, 3000  # of a model that is larger than the smallest
SHARE_OF_UPDATES = 0.93  # of the time; the rest is for validation and checkpoints
FEW_PAIRS = 5000


@dataclass(frozen=True, slots=True)
class OwnText:
    """Two files that are translations of each other line by line, or one with both columns."""

    src_language: str
    tgt_language: str
    src: Path | None = None
    tgt: Path | None = None
    tsv: Path | None = None
    max_dropped_share: float = 0.3  # of the pairs that cleaning may leave out

    @property
    def files(self) -> dict[str, Path]:
        """By their names in a recipe: those of the source and the target, or the one."""
        named = {"train_tsv": self.tsv} if self.tsv else {"train_src": self.src, "train_tgt": self.tgt}
        return {name: path for name, path in named.items() if path is not None}

    @property
    def part(self) -> checks.TextPart:
        """For the checks of text."""
        return checks.column_part(self.tsv) if self.tsv else checks.two_file_part(*self.files.values())

    def pairs(self) -> Iterator[tuple[str, str] | None]:
        """For ``clean``. Raises DataError if the files do not align."""
        if self.tsv is not None:
            return read_uncleaned_columns(self.tsv)
        return read_aligned_files(*self.files.values(), escape_invalid=True)


@dataclass(frozen=True, slots=True)
class NewRecipe:
    """What was written, and what it will take."""

    recipe: Path
    text: Path  # the folder with the three parts
    config: RunConfig
    n_train: int
    n_dev: int
    n_test: int
    n_left_out: int  # too much like dev or test
    seconds_per_update: float
    n_epochs: float

    @property
    def minutes(self) -> float:
        """Of training, as expected on this machine."""
        return self.config.training.max_updates * self.seconds_per_update / 60 / SHARE_OF_UPDATES

    @property
    def command(self) -> str:
        """What trains it, for a shell."""
        return shlex.join(["transduce", "train", str(self.recipe), "--out", f"runs/{self.recipe.stem}"])


# Models to choose, the smallest first; a text of fewer pairs has no use for one. Those for little text are what was
# tried on captions and help pages (docs/results.md).
_MODELS = [
    (least_pairs, TransformerConfig(
        n_encoder_layers=n_layers, n_decoder_layers=n_layers, d_model=d_model, d_ff=d_ff, n_heads=n_heads, norm="pre"
    ))
    for least_pairs, n_layers, d_model, d_ff, n_heads in (
        (0, 2, 256, 512, 4), (0, 4, 256, 512, 4), (50_000, 3, 256, 1024, 4), (200_000, 6, 512, 2048, 8),
    )
]  # fmt: skip


def new_recipe(text: OwnText, out: Path, *, minutes: float, device: torch.device, log: Log) -> NewRecipe:
    """Look at a text, and write a recipe at ``out`` and the text in three parts beside it, in ``<out>-text``.

    Raises ConfigError if one of them is there already, DataError if the text cannot be used.
    """
    folder = out.with_name(f"{out.stem}-text")
    for path in (out, folder):
        if path.exists():
            raise ConfigError(f"{path} exists already; name another recipe with --out, or remove it")
    with atomic_folder(folder) as temporary:
        n_train, n_dev, n_test, n_left_out = _write_parts(text, temporary, log)
        with tempfile.TemporaryDirectory() as place:
            config, seconds, n_epochs = _chosen(text, temporary, Path(place), n_train, minutes, device, log)
    config = config.model_copy(update={"data": _data(text, folder, config.data.vocab_size)})
    found = NewRecipe(out, folder, config, n_train, n_dev, n_test, n_left_out, seconds, n_epochs)
    write_text(out, _toml(found))
    return found


def _write_parts(text: OwnText, folder: Path, log: Log) -> tuple[int, int, int, int]:
    """Write train, dev and test; returns how many pairs each has, and how many were left out for being like those."""
    for path in text.files.values():
        require_text(path)
    report = CleaningReport()

    def read() -> Iterator[tuple[str, str]]:
        return clean(text.pairs(), CleaningRules(), CleaningReport())

    for _ in clean(text.pairs(), CleaningRules(), report):
        pass
    for line in report.lines():
        log(line)
    config = _data_config(text, text.files, max_dropped_share=text.max_dropped_share)
    dropped = checks.remark_on_dropped("files", report, config, to_allow="--max-dropped-share 1")
    if dropped is not None and dropped.status == "problem":
        raise DataError(str(dropped))
    languages = text.src_language, text.tgt_language
    remarks = [*checks.remarks_on_codes(config), *checks.remarks_on_part(text.part, languages)]
    for remark in [dropped, *remarks] if dropped is not None else remarks:
        log(f"warning: {remark}")
    held = hold_out(read)
    _write_pairs(folder, "dev", text, held.dev)
    _write_pairs(folder, "test", text, held.test)
    n_train = _write_pairs(folder, "train", text, held.train(read()))
    if not (held.dev and held.test and n_train):
        raise DataError(
            "the text says too much the same to hold out dev and test: a pair whose source or target is in one of them "
            "is not trained on, and nothing would be left; give text with more different sentences"
        )
    log(
        f"held out: {len(held.dev):,} pairs for dev and {len(held.test):,} for test; {n_train:,} to train on, "
        f"{held.n_left_out:,} left out because they are too much like those"
    )
    if n_train < FEW_PAIRS:
        log(
            f"warning: {n_train:,} pairs are little to learn a language from; expect words and phrases of the text only"
        )
    return n_train, len(held.dev), len(held.test), held.n_left_out


def _write_pairs(folder: Path, part: str, text: OwnText, pairs: Iterable[tuple[str, str]]) -> int:
    """Two files; the target's lines are kept on the disk, not in memory, while the source's are written."""
    with tempfile.TemporaryFile("w+", encoding="utf-8", newline="\n") as targets:

        def sources() -> Iterator[str]:
            for src, tgt in pairs:
                targets.write(tgt + "\n")
                yield src

        n_lines = write_lines(folder / f"{part}.{text.src_language}", sources())
        targets.seek(0)
        write_lines(folder / f"{part}.{text.tgt_language}", (line.removesuffix("\n") for line in targets))
    return n_lines


def _data(text: OwnText, folder: Path, vocab_size: int) -> DataConfig:
    """What the recipe says of the three parts in a folder."""
    files = {
        f"{part}_{side}": folder / f"{part}.{language}"
        for part in SPLITS
        for side, language in (("src", text.src_language), ("tgt", text.tgt_language))
    }
    return _data_config(text, files, vocab_size=vocab_size, masks=True)


def _data_config(text: OwnText, files: Mapping[str, Path], **more: object) -> DataConfig:
    values = {name: str(path) for name, path in files.items()} | more
    direction = f"{text.src_language}-{text.tgt_language}"
    return config_from_mapping(DataConfig, {"corpus": "files", "direction": direction, **values}, where="data")


def _chosen(
    text: OwnText, folder: Path, place: Path, n_train: int, minutes: float, device: torch.device, log: Log
) -> tuple[RunConfig, float, float]:
    """The run, the seconds that an update of it takes, and its epochs."""
    vocab_size = 4000 if n_train < 10_000 else 8000 if n_train < 100_000 else 16_000 if n_train < 1_000_000 else 32_000
    sample, n_sampled = _sample(text, folder, place, n_train, vocab_size)
    is_gpu = device.type == "cuda"
    models = [model.with_vocabulary(vocab_size, vocab_size) for least, model in _MODELS if n_train >= least]
    training = TrainingConfig(
        max_tokens_per_batch=16_384 if is_gpu and n_train > 200_000 else 4096 if is_gpu else 2048,
        optimiser="muon",
        decay="linear",
        weight_decay=0.1,
        precision=fast_precision(device),
    )
    data, search = _data(text, place, vocab_size), BeamSearchConfig(alpha=1.0)
    runs = [
        RunConfig(model=model, data=data, training=training, search=search) for model in models[1 if is_gpu else 0 :]
    ]
    batches = task_of(runs[0]).batches(sample.train, runs[0], device)
    n_batches = batches.n_batches(0) * n_train / n_sampled  # of an epoch
    log(f"trying some updates on {device.type}, to know how long they take")
    seconds = seconds_per_update(runs[0], sample, device)
    flops = [cost_of(run.model).flops_per_token for run in runs]
    # What the larger ones take is first guessed, then measured where it matters.
    guesses = [seconds * each / flops[0] for each in flops]
    n_updates_of = [int(SHARE_OF_UPDATES * 60 * minutes / guess) for guess in guesses]
    least = max(LEAST_UPDATES, LEAST_EPOCHS * n_batches)
    number = max(place for place, n_updates in enumerate(n_updates_of) if place == 0 or n_updates >= least)
    taken = seconds if number == 0 else seconds_per_update(runs[number], sample, device)
    n_updates = max(20, int(SHARE_OF_UPDATES * 60 * minutes / taken))
    n_epochs = n_updates / n_batches
    return _with_length(runs[number], n_updates, n_epochs), taken, n_epochs


def _sample(text: OwnText, folder: Path, place: Path, n_train: int, vocab_size: int) -> tuple[Prepared, int]:
    """Part of the training text, made ready as it will be, and how many pairs of it that is."""
    n_lines = 0
    files = {"train_src": place / "src", "train_tgt": place / "tgt"}
    step = max(1, n_train // N_SAMPLED)
    for language, sampled in zip((text.src_language, text.tgt_language), files.values(), strict=True):
        with (folder / f"train.{language}").open(encoding="utf-8", newline="\n") as lines:
            n_lines = write_lines(sampled, (line.removesuffix("\n") for line in islice(lines, 0, None, step)))
    config = _data_config(text, files, vocab_size=vocab_size, masks=True)
    return prepare(config, place / "prepared"), n_lines


def _with_length(run: RunConfig, n_updates: int, n_epochs: float) -> RunConfig:
    """A run of so many updates: the more often it reads the text, the more of it is dropped out."""
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


def _toml(found: NewRecipe) -> str:
    """The recipe, with what each line is for."""
    model, data, training, search = found.config.model, found.config.data, found.config.training, found.config.search
    assert isinstance(model, TransformerConfig)
    files = "".join(
        f"{part}_{side} = {json.dumps(getattr(data, f'{part}_{side}'), ensure_ascii=False)}\n"
        for part in SPLITS
        for side in ("src", "tgt")
    )
    head = [
        f"A translator from {data.src_language} to {data.tgt_language}, for {found.n_train:,} pairs of sentences.",
        f"  {found.command}",
        f"Expected: {found.minutes:.0f} minutes of training on the machine where this was written, "
        f"{training.max_updates:,} updates of",
        f"{found.seconds_per_update:.2f} s that go {found.n_epochs:.1f} times through the text.",
        "With more time, raise max_updates, and from 12 times through the text on p_drop to 0.2, from 30 on to 0.3.",
        "All that can be set stands in src/transduce/config/.",
    ]
    comment = "\n".join(f"# {line}" for line in "\n".join(head).splitlines())
    return f"""\
{comment}
preset = "base"

[model]
# Larger models learn more from more text, and take longer: 4 or 6 layers, d_model = 512, d_ff = 2048, n_heads = 8.
n_encoder_layers = {model.n_encoder_layers}
n_decoder_layers = {model.n_decoder_layers}
d_model = {model.d_model}
d_ff = {model.d_ff}
n_heads = {model.n_heads}
p_drop = {model.p_drop}
norm = "pre"         # small runs learn faster with it than with the paper's "post"

[data]
corpus = "files"
direction = "{data.direction}"
# No sentence of dev or test, nor one like it, is in train.
{files}vocab_size = {data.vocab_size}
masks = true         # URLs, tags, placeholders, numbers with units and emoji are put through as they are

[training]
max_updates = {training.max_updates}
max_tokens_per_batch = {training.max_tokens_per_batch}
optimiser = "muon"
warmup_steps = {training.warmup_steps}
decay = "linear"     # the learning rate ends at 0: for a longer run, begin a new one
weight_decay = {training.weight_decay}
precision = "{training.precision}"
log_every_updates = {training.log_every_updates}
validate_every_updates = {training.validate_every_updates}
validation_sentences = {training.validation_sentences}
checkpoint_every_updates = {training.checkpoint_every_updates}    # the last five are averaged

[search]
beam_size = {search.beam_size}
alpha = {search.alpha}
"""

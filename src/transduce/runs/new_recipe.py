"""A recipe for the user's own text: dev and test are held out, and model size and run length fit the text and time.

Quality in a short run depends on the number of epochs. So the recipe has the largest model that makes enough epochs in
the given time on this machine, as measured by a few throwaway updates.
"""

from __future__ import annotations

import json
import math
import shlex
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import torch

from transduce.config import SPLITS, BeamSearchConfig, ParallelData, RunConfig, TrainingConfig, TransformerConfig
from transduce.errors import ConfigError, TrainingError
from transduce.files import atomic_folder, write_lines, write_text
from transduce.model import cost_of, fast_precision
from transduce.runs.own_text import Log, OwnText, data_config, data_of_splits, write_splits
from transduce.runs.update_timing import HEADROOM, UPDATE_TIME_FRACTION, seconds_per_update
from transduce.tasks.preparation import prepare
from transduce.tasks.prepared import Prepared
from transduce.tasks.registry import task_of

__all__ = ["NewRecipe", "new_recipe"]

N_SAMPLED = 20_000  # pairs of the sample on which tokens are counted and updates timed
FEW_EPOCHS = 5  # fewer cause a warning
MANY_PAIRS = 100_000  # fewer have smaller batches on CPUs: more updates in the same time (notebook/own-text.md)
MIN_EPOCHS, MIN_UPDATES = 12.0, 6000  # a model that is too slow for these is not chosen, except the smallest
# R-Drop takes twice the time, and its gain comes late: it is used where so many updates and epochs are left with it.
# Measured in notebook/own-text.md.
R_DROP, R_DROP_UPDATES, R_DROP_EPOCHS = 2.0, 2000, 20.0
N_VALIDATIONS = 6
WEIGHT_DECAY = 0.5  # text that is read many times needs more than the usual 0.1 (Kim et al., 2025); measured there, too


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
    n_updates: int  # expected; the configuration has more, since the clock ends the run
    seconds_per_update: float
    n_epochs: float

    @property
    def minutes(self) -> float:
        """Expected training time on this machine."""
        return self.n_updates * self.seconds_per_update / 60 / UPDATE_TIME_FRACTION

    @property
    def command(self) -> str:
        """The shell command that trains it."""
        return shlex.join(["transduce", "train", str(self.recipe), "--out", str(self.run)])

    @property
    def run(self) -> Path:
        """The run folder of that command."""
        return Path("runs") / self.recipe.stem


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
        n_train, n_dev, n_test, n_left_out = write_splits(text, temporary, log)
        with tempfile.TemporaryDirectory() as work_folder:
            config, n_updates, seconds, n_epochs = _plan_run(
                text, temporary, Path(work_folder), n_train, minutes, device, log
            )
    config = config.model_copy(
        update={"data": data_of_splits(text, folder, vocab_size=config.data.vocab_size, masks=True)}
    )
    recipe = NewRecipe(out, folder, config, n_train, n_dev, n_test, n_left_out, n_updates, seconds, n_epochs)
    write_text(out, _toml(recipe))
    return recipe


def _plan_run(
    text: OwnText, folder: Path, work_folder: Path, n_train: int, minutes: float, device: torch.device, log: Log
) -> tuple[RunConfig, int, float, float]:
    """Choose model and run length. Returns the configuration, and expected updates, seconds of each, and epochs."""
    vocab_size = 4000 if n_train < 10_000 else 8000 if n_train < 100_000 else 16_000 if n_train < 1_000_000 else 32_000
    sample, n_sampled = _sample(text, folder, work_folder, n_train, vocab_size)
    is_gpu = device.type == "cuda"
    models = [model.with_vocabulary(vocab_size, vocab_size) for min_pairs, model in _MODELS if n_train >= min_pairs]
    on_gpu, on_cpu = 16_384 if n_train > 200_000 else 4096, 2048 if n_train > MANY_PAIRS else 1024
    training = TrainingConfig(
        max_tokens_per_batch=on_gpu if is_gpu else on_cpu,
        optimiser="muon",
        decay="linear",
        weight_decay=WEIGHT_DECAY,
        precision=fast_precision(device),
        max_minutes=minutes,
    )
    data, search = data_of_splits(text, work_folder, vocab_size=vocab_size, masks=True), BeamSearchConfig(alpha=1.0)
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
    run, seconds = _last_that_fits((runs[0], seconds), runs[1 : best + 1], sample, device, log)
    if UPDATE_TIME_FRACTION * 60 * minutes / seconds >= 2 * max(R_DROP_UPDATES, R_DROP_EPOCHS * n_batches):
        with_r_drop = run.model_copy(update={"training": training.model_copy(update={"r_drop": R_DROP})})
        run, seconds = _last_that_fits((run, seconds), [with_r_drop], sample, device, log)
    n_updates = max(1, int(UPDATE_TIME_FRACTION * 60 * minutes / seconds))
    n_epochs = n_updates / n_batches
    if n_epochs < FEW_EPOCHS:
        few = FEW_EPOCHS * n_batches * seconds / 60 / UPDATE_TIME_FRACTION
        log(
            f"warning: --minutes {minutes:g} is {n_epochs:.1f} epochs on this machine, as busy as it is: a model "
            f"learns next to nothing in fewer than {FEW_EPOCHS}; about --minutes {math.ceil(few)} is enough for these"
        )
    return _with_length(run, minutes, n_updates, n_epochs), n_updates, seconds, n_epochs


def _last_that_fits(
    timed: tuple[RunConfig, float], larger: Sequence[RunConfig], sample: Prepared, device: torch.device, log: Log
) -> tuple[RunConfig, float]:
    """Return the last of the larger runs for which there is memory, else ``timed``; with the seconds of an update."""
    for run in reversed(larger):
        try:
            return run, seconds_per_update(run, sample, device)
        except TrainingError as error:
            log(f"a smaller model, or one without R-Drop: {error}")
    return timed


def _sample(text: OwnText, folder: Path, work_folder: Path, n_train: int, vocab_size: int) -> tuple[Prepared, int]:
    """Prepare a sample of the training text; return it and its number of pairs."""
    n_lines = 0
    files = {"train_src": work_folder / "src", "train_tgt": work_folder / "tgt"}
    step = max(1, n_train // N_SAMPLED)
    for name, sampled in zip(text.names_of("train"), files.values(), strict=True):
        with (folder / name).open(encoding="utf-8", newline="\n") as lines:
            n_lines = write_lines(sampled, (line.removesuffix("\n") for line in islice(lines, 0, None, step)))
    config = data_config(text, files, vocab_size=vocab_size, masks=True)
    return prepare(config, work_folder / "prepared"), n_lines


def _with_length(run: RunConfig, minutes: float, n_updates: int, n_epochs: float) -> RunConfig:
    """Set the number of updates and what depends on it: the more epochs, the more dropout.

    Validations and checkpoints take some of its time: at most one a minute, and one in five updates.
    """
    p_drop = 0.1 if n_epochs < 12 else 0.2 if n_epochs < 20 else 0.3  # notebook/own-text.md
    training = run.training.model_copy(
        update={
            "max_updates": int(HEADROOM * n_updates),
            "warmup_steps": max(1, min(300, n_updates // 5)),
            "validate_every_updates": max(1, n_updates // max(1, min(N_VALIDATIONS, int(minutes)))),
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
        f"Expected on the machine where this was written: {recipe.n_updates:,} updates of "
        f"{recipe.seconds_per_update:.2f} s, {recipe.n_epochs:.1f} epochs.",
        "The clock ends the run, and the learning rate falls by it: a busier machine makes fewer updates, a quicker",
        "one more, at most max_updates. With more time, raise both, and p_drop to 0.2 from 12 epochs on, to 0.3",
        "from 20 epochs on.",
        "src/transduce/config/ documents all settings.",
    ]
    unchanged = "" if data.drop_identical else "drop_identical = false   # lines that need no correction\n"
    if data.terms:
        unchanged += "terms = true         # uses the terms of translate --terms\n"
    r_drop = f"r_drop = {training.r_drop}         # two passes of each batch: slower, better in long runs\n"
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
max_minutes = {training.max_minutes:g}
max_tokens_per_batch = {training.max_tokens_per_batch}
optimiser = "muon"
warmup_steps = {training.warmup_steps}
decay = "linear"     # the learning rate ends at 0; train --more MINUTES raises it again
weight_decay = {training.weight_decay}
{r_drop if training.r_drop else ""}precision = "{training.precision}"
log_every_updates = {training.log_every_updates}
validate_every_updates = {training.validate_every_updates}
validation_sentences = {training.validation_sentences}
checkpoint_every_updates = {training.checkpoint_every_updates}    # the last five checkpoints are averaged

[search]
beam_size = {search.beam_size}
alpha = {search.alpha}
"""

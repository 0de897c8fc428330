"""Fine-tuning: a translator learns from some thousand pairs more, and what it forgets is measured.

Three rules keep it from forgetting (benchmarks/forgetting.py): the learning rate stays far below that of a new model,
old text is mixed in if it is there, and the best checkpoint is that of the best mean loss on both dev sets.
"""

from __future__ import annotations

import math
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, cast

import torch

from transduce.config import RunConfig, TrainingConfig, split_direction
from transduce.config.data import MAX_WEIGHT
from transduce.errors import CheckpointError, ConfigError, DataError
from transduce.files import atomic_folder
from transduce.findings.finding import counted
from transduce.inference import Translator, evaluate
from transduce.inference.folder import ModelFolder, read_model_folder
from transduce.model import fast_precision
from transduce.runs.folder import store_of
from transduce.runs.old_text import OLD, dev_of_run, old_text_of_run, text_to_mix, write_old_text
from transduce.runs.own_text import Log, OwnText, data_of_splits, write_splits
from transduce.runs.starting_weights import gentle_rate
from transduce.runs.update_timing import HEADROOM, UPDATE_TIME_FRACTION, seconds_per_update
from transduce.tasks.preparation import prepare
from transduce.tasks.prepared import open_prepared
from transduce.tasks.registry import task_of
from transduce.tasks.validation import MultiValidation

if TYPE_CHECKING:
    from transduce.config.model import AnyModelConfig
    from transduce.config.search import AnySearchConfig

__all__ = ["Change", "FineTuningPlan", "changes_by", "direction_of", "fine_tuning", "planned"]

N_EPOCHS, MAX_EPOCHS = 10, 30  # of the new text: without minutes, and with them at most
N_VALIDATIONS = 5
MIN_UPDATES = 40
MAX_TOKENS_PER_BATCH = 2048
RATE_WITH_OLD_TEXT = 4.0  # times that without
OLD_SHARE = 0.5  # of the pairs of an epoch
N_COMPARED = 500  # lines of a dev set


@dataclass(frozen=True, slots=True)
class Change:
    """How a model translates a dev set before and after fine-tuning."""

    text: str  # "the new text", "the old text"
    n_lines: int
    bleu: tuple[float, float]
    chrf: tuple[float, float]

    def __str__(self) -> str:
        bleu, chrf = (" -> ".join(f"{score:.1f}" for score in scores) for scores in (self.bleu, self.chrf))
        return f"dev of {self.text} ({self.n_lines:,} lines): BLEU {bleu}, chrF {chrf}"


@dataclass(frozen=True, slots=True)
class FineTuningPlan:
    """The run that learns from new pairs, their numbers, and its expected length."""

    config: RunConfig
    n_train: int
    n_dev: int
    n_test: int
    n_left_out: int  # training pairs left out because they are too similar to dev or test
    n_updates: int  # expected; with minutes the configuration has more, since the clock ends the run
    n_epochs: float  # of the new text
    seconds_per_update: float | None  # None if no update was timed


def direction_of(model: Path) -> tuple[str, str]:
    """Return the languages of a translator. Raises CheckpointError if the folder is none."""
    folder = read_model_folder(model, device="cpu")
    if folder.used_as != "translation":
        raise CheckpointError(f"{model} is a model for {folder.task}; pairs are learnt by translators")
    return split_direction(folder.direction)


def fine_tuning(
    model: Path,
    text: OwnText,
    folder: Path,
    *,
    device: torch.device,
    log: Log,
    mix: Sequence[str] = (),
    data_folder: Path | None = None,
    minutes: float | None = None,
) -> FineTuningPlan:
    """Write the text, divided into train, dev and test, to a folder, and return the run that learns from it.

    Old text is mixed in: that of ``mix`` (see ``text_to_mix``), or that of the model's own run. With ``minutes`` some
    updates are timed, and the run is planned for them. Raises ConfigError if the folder exists, DataError if the text
    cannot be used.
    """
    if folder.exists():
        raise ConfigError(f"{folder} exists already; remove it, or choose another --out")
    saved = read_model_folder(model, device="cpu")
    with atomic_folder(folder) as temporary, tempfile.TemporaryDirectory() as work_folder:
        numbers = write_splits(text, temporary, log)
        n_old = _write_old(model, text, temporary, mix, data_folder, N_EPOCHS * numbers[0], log)
        config = _run(model, saved, text, temporary, numbers[0], n_old, device)
        prepared = prepare(config.data, Path(work_folder) / "prepared")
        seconds = None if minutes is None else seconds_per_update(planned(config, MIN_UPDATES), prepared, device)
        n_batches = task_of(config).batches(prepared.train, config, device).n_batches(0)
    n_updates, n_in_time = N_EPOCHS * n_batches, None
    if minutes is not None and seconds is not None:
        n_in_time = max(1, int(UPDATE_TIME_FRACTION * 60 * minutes / seconds))
        n_updates = min(n_in_time, MAX_EPOCHS * n_batches)
        if n_in_time < MIN_UPDATES:
            enough = math.ceil(MIN_UPDATES * seconds / 60 / UPDATE_TIME_FRACTION)
            log(
                f"warning: --minutes {minutes:g} is {counted(n_in_time, 'update')} on this machine, as busy as it is: "
                f"a model learns little in fewer than {MIN_UPDATES}; they take about --minutes {enough}"
            )
    n_updates = max(MIN_UPDATES, n_updates)
    config = planned(_run(model, saved, text, folder, numbers[0], n_old, device), n_updates)
    if minutes is not None:
        most = max(n_updates, min(int(HEADROOM * n_updates), MAX_EPOCHS * n_batches))
        by_clock = config.training.model_copy(update={"max_minutes": minutes, "max_updates": most})
        config = config.model_copy(update={"training": by_clock})
    n_expected = min(n_updates, n_in_time or n_updates)
    return FineTuningPlan(config, *numbers, n_expected, n_expected / n_batches, seconds)


def _write_old(
    model: Path, text: OwnText, folder: Path, mix: Sequence[str], data_folder: Path | None, n: int, log: Log
) -> int:
    """Write old text beside the new; return its number of training pairs, 0 if there is none."""
    if text.is_one_language or list(mix) == ["none"]:
        return 0
    hint = (
        "mix text like that of the model in with --mix (a corpus, a folder, TMX, PO, XLIFF or TSV), or it forgets more"
    )
    try:
        languages = text.src_language, text.tgt_language
        old = text_to_mix(mix, languages, data_folder) if mix else old_text_of_run(model, data_folder)
        n_old = write_old_text(old, text, folder, n, log) if old else 0
    except (CheckpointError, ConfigError, DataError) as error:
        if mix:
            raise
        log(f"warning: the text that {model} was trained on cannot be read ({error}); {hint}")
        return 0
    if n_old:
        log(f"old text: {n_old:,} pairs, {OLD_SHARE:.0%} of what the model reads; their dev set is validated, too")
    else:
        log(f"warning: no old text is mixed in; {hint}")
    return n_old


def _run(
    model: Path, saved: ModelFolder, text: OwnText, folder: Path, n_train: int, n_old: int, device: torch.device
) -> RunConfig:
    """Return the run; its length is not known yet."""
    path = str(model.resolve())
    mixed = dict[str, object]()
    if n_old:
        weight = min(MAX_WEIGHT, OLD_SHARE / (1 - OLD_SHARE) * n_train / n_old)
        mixed = {"corpus": {"files": 1.0, OLD: round(weight, 4)}, "folder": str(folder), "also_dev": (OLD,)}
    tokenizers = saved.tokenizers
    data = data_of_splits(
        text,
        folder,
        tokenizer_from=path,
        masks=tokenizers.src.has_masks,
        terms=tokenizers.src.has_term_marks,
        shared_vocabulary=tokenizers.has_one_vocabulary,
        **mixed,
    )
    training = TrainingConfig(
        init_from=path,
        max_tokens_per_batch=MAX_TOKENS_PER_BATCH,
        decay="linear",
        precision=fast_precision(device),
        validation_sentences=200,
        best_by=MultiValidation.OF_ALL if n_old else "loss",
        average_last=1,
        averaging="best",
    )
    return RunConfig(
        model=cast("AnyModelConfig", saved.config),
        data=data,
        training=training,
        search=cast("AnySearchConfig", saved.search),
    )


def planned(config: RunConfig, n_updates: int, times_gentle: float | None = None) -> RunConfig:
    """Set the number of updates, what depends on it, and the highest learning rate, as a multiple of the gentle one."""
    warmup, interval = max(10, n_updates // 10), max(10, n_updates // N_VALIDATIONS)
    d_model = config.model.d_model
    is_mixed = config.training.best_by == MultiValidation.OF_ALL
    rate = gentle_rate(d_model) * (times_gentle or (RATE_WITH_OLD_TEXT if is_mixed else 1))
    training = config.training.model_copy(
        update={
            "max_updates": n_updates,
            "warmup_steps": warmup,
            "lr_factor": round(rate * math.sqrt(d_model * warmup), 5),
            "log_every_updates": max(1, min(50, n_updates // 20)),
            "validate_every_updates": interval,
            "checkpoint_every_updates": interval,
        }
    )
    return config.model_copy(update={"training": training})


def changes_by(model: Path, run: Path, tuned: Path, *, device: torch.device) -> Iterator[Change]:
    """Yield how a run changed the translation of its dev set, and of the old text's: its own, or that of the model."""
    before, after = (Translator.load(folder, device=str(device)) for folder in (model, tuned))
    prepared = open_prepared(store_of(run))
    old = [prepared.also_dev_text(name) for name in prepared.also_dev]
    if not old and (of_model := dev_of_run(model.resolve().parent)):
        old = [([src for src, _ in of_model], [tgt for _, tgt in of_model])]
    new = prepared.text("dev")
    named = [*([("the new text", new)] if new else []), *((f"the text of {model}", lines) for lines in old)]
    for name, lines in named:
        src, tgt = (side[:N_COMPARED] for side in lines)
        scores = [evaluate(each, src, tgt).scores for each in (before, after)]
        bleu, chrf = (tuple(getattr(each, kind).score for each in scores) for kind in ("sacrebleu", "chrf"))
        yield Change(name, len(src), (bleu[0], bleu[1]), (chrf[0], chrf[1]))

"""Fine-tuning: a translator learns from some thousand pairs more; what it forgets of its own text is measured."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import sqrt
from pathlib import Path
from typing import TYPE_CHECKING, cast

import torch

from transduce.config import RunConfig, TrainingConfig, split_direction
from transduce.errors import CheckpointError, ConfigError, TransduceError
from transduce.files import atomic_folder, read_lines
from transduce.inference import Translator, evaluate
from transduce.inference.folder import read_model_folder
from transduce.model import fast_precision
from transduce.runs.folder import store_of
from transduce.runs.own_text import Log, OwnText, data_of_splits, write_splits
from transduce.runs.run_file import holds_run
from transduce.tasks.prepared import open_prepared

if TYPE_CHECKING:
    from transduce.config.model import AnyModelConfig
    from transduce.config.search import AnySearchConfig

__all__ = ["Change", "changes_by", "direction_of", "fine_tuning"]

Lines = Sequence[str]

N_EPOCHS = 10
N_VALIDATIONS = 5
MIN_UPDATES = 40
MAX_TOKENS_PER_BATCH = 2048
# A tenth of the highest learning rate of the paper, with its 4,000 updates of warm-up.
RATE, PAPER_WARMUP = 0.1, 4000
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


def direction_of(model: Path) -> tuple[str, str]:
    """Return the languages of a translator. Raises CheckpointError if the folder is none."""
    folder = read_model_folder(model, device="cpu")
    if folder.used_as != "translation":
        raise CheckpointError(f"{model} is a model for {folder.task}; pairs are learnt by translators")
    return split_direction(folder.direction)


def fine_tuning(model: Path, text: OwnText, folder: Path, *, device: torch.device, log: Log) -> RunConfig:
    """Write the text, divided into train, dev and test, to a folder, and return the run that learns from it.

    The checkpoint that is best on the new dev set is taken. Raises ConfigError if the folder exists, DataError if the
    text cannot be used.
    """
    if folder.exists():
        raise ConfigError(f"{folder} exists already; remove it, or choose another --out")
    saved = read_model_folder(model, device="cpu")
    with atomic_folder(folder) as temporary:
        write_splits(text, temporary, log)
        names = text.names_of("train")
        tokenizers = saved.tokenizers.src, saved.tokenizers.tgt
        n_tokens = [
            max(len(tokenizer.encode(line)) + 1 for tokenizer, line in zip(tokenizers, pair, strict=True))
            for pair in zip(*(read_lines(temporary / name) for name in names), strict=True)
        ]
    per_epoch = max(1, -(-sum(n_tokens) // MAX_TOKENS_PER_BATCH))
    n_updates = max(MIN_UPDATES, N_EPOCHS * per_epoch)
    warmup, interval = max(10, n_updates // 10), max(10, n_updates // N_VALIDATIONS)
    path = str(model.resolve())
    training = TrainingConfig(
        init_from=path,
        max_updates=n_updates,
        max_tokens_per_batch=MAX_TOKENS_PER_BATCH,
        warmup_steps=warmup,
        lr_factor=RATE * sqrt(warmup / PAPER_WARMUP),
        decay="linear",
        precision=fast_precision(device),
        log_every_updates=max(1, min(50, n_updates // 20)),
        validate_every_updates=interval,
        validation_sentences=200,
        checkpoint_every_updates=interval,
        average_last=1,
        averaging="best",
    )
    data = data_of_splits(
        text,
        folder,
        tokenizer_from=path,
        masks=saved.tokenizers.src.has_masks,
        terms=saved.tokenizers.src.has_term_marks,
    )
    return RunConfig(
        model=cast("AnyModelConfig", saved.config),
        data=data,
        training=training,
        search=cast("AnySearchConfig", saved.search),
    )


def changes_by(model: Path, tuned: Path, text: Path, own: OwnText, *, device: torch.device) -> Iterator[Change]:
    """Yield how fine-tuning changed the translation of the new dev set, and of that of the model's own run."""
    before, after = (Translator.load(folder, device=str(device)) for folder in (model, tuned))
    new_src, new_tgt = (list(read_lines(text / name)) for name in own.names_of("dev"))
    old_lines = _own_dev(model)
    for name, lines in (("the new text", (new_src, new_tgt)), (f"the text of {model}", old_lines)):
        if lines is not None and lines[0]:
            src, tgt = (side[:N_COMPARED] for side in lines)
            old, new = (evaluate(each, src, tgt).scores for each in (before, after))
            yield Change(
                name,
                len(src),
                (old.sacrebleu.score, new.sacrebleu.score),
                (old.chrf.score, new.chrf.score),
            )


def _own_dev(model: Path) -> tuple[list[str], list[str]] | None:
    """Return the dev set that a model was validated on, if its run folder is there."""
    run = model.resolve().parent
    if not holds_run(run):
        return None
    try:
        return open_prepared(store_of(run)).text("dev")
    except TransduceError:
        return None

"""Average checkpoints of a run into a model folder, evaluate it and write its card. Section 6.1."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Literal

import torch
from torch import nn

from transduce.config import RunConfig, Split, TrainingConfig
from transduce.errors import CheckpointError, ConfigError, DataError
from transduce.inference.folder import write_model_card, write_model_folder
from transduce.inference.trained_model import TrainedModel
from transduce.metrics import TokenisedBleu, customary_bleus, perplexity
from transduce.runs.card import model_card
from transduce.runs.folder import MODEL, require_same_data, store_of
from transduce.runs.run_file import CHECKPOINTS, RunSettings, read_run_file, require_made_by
from transduce.tasks.prepared import EVALUATION_SPLITS, Prepared, open_prepared
from transduce.tasks.registry import task_of
from transduce.tasks.task import Scores
from transduce.training import average_weights, averaged_checkpoints, best_update, checkpoints_around, read_state

__all__ = ["average_run", "dev_perplexity"]


def average_run(
    folder: Path,
    *,
    last: int | None = None,
    around: int | Literal["best"] | None = None,
    out: Path | None = None,
    device: str | torch.device = "cpu",
    extra_bleus: Collection[TokenisedBleu] | None = None,
    settings: RunSettings | None = None,
    prepared: Prepared | None = None,
    log: Callable[[str], None] = lambda line: None,
) -> tuple[Path, Scores | None, Split | None]:
    """Average checkpoints into a model folder, evaluate it and write its card.

    By default those that the recipe says (``training.average_last``, ``training.averaging``). ``last``: the newest so
    many scheduled ones, or so many ``around`` that of an update, or around the best. ``extra_bleus``: see ``train``.
    ``settings`` and ``prepared`` are read from the run folder by default.
    Returns the model folder, its scores and the split scored. Raises CheckpointError if there is no such checkpoint.
    """
    settings, prepared = settings or read_run_file(folder), prepared or open_prepared(store_of(folder))
    config, task = settings.config, task_of(settings.config)
    averaged = _averaged(folder, config.training, last, around, log)
    checkpoints = averaged.checkpoints
    for checkpoint in reversed(checkpoints):
        require_made_by(checkpoint, settings, folder)
    require_same_data(folder, settings, prepared)
    model_folder, state = out or folder / MODEL, read_state(checkpoints[-1])
    write = partial(
        write_model_folder,
        model_folder,
        config=config.model,
        weights=task.postprocess_weights(average_weights(checkpoints), prepared, config, torch.device(device)),
        tokenizers=prepared.tokenizers,
        search=config.search,
        direction=config.data.direction,
        task=task.name,
        used_as=task.used_as if TrainedModel.class_of(task.name) is None else None,
        card=model_card(config, prepared, state, averaged=averaged.in_words, ancestry=settings.ancestry),
        longest_source=task.longest_source(prepared),
        ancestry=settings.ancestry,
    )
    statistics = task.line_statistics(prepared, config)
    write(statistics=statistics)
    if statistics is not None:
        measured = task.with_confidence(statistics, model_folder, prepared, device=device)
        if measured != statistics:
            write(statistics=measured)
    log(f"averaged {averaged} into {model_folder}")
    split = next((split for split in reversed(EVALUATION_SPLITS) if split in prepared.text_names), None)
    if split is None:
        return model_folder, None, None
    name = prepared.text_names[split]
    text = prepared.text(split)
    log(f"{task.progress_verb} {f'{len(text[0]):,} {task.sentence_noun} of ' if text else ''}{name}")
    extra_bleus = customary_bleus(name) if extra_bleus is None else extra_bleus
    scores = task.evaluate(model_folder, prepared, split, device=device, extra_bleus=extra_bleus)
    if not task.has_learnt(scores):
        log(
            "these are scores of a model that has learnt next to nothing: train it longer, as in: "
            f"{shlex.join(['transduce', 'train', '--more', '30', '--out', str(folder)])}, or check its text with: "
            f"{shlex.join(['transduce', 'doctor', str(folder)])}"
        )
    card = model_card(
        config, prepared, state, averaged=averaged.in_words, scores=scores, split=split, ancestry=settings.ancestry
    )
    write_model_card(model_folder, card)
    return model_folder, scores, split


@dataclass(frozen=True, slots=True)
class _Averaged:
    """The checkpoints that are averaged, the oldest first, and of which update they are around, if of any."""

    checkpoints: Sequence[Path]
    around: int | None = None

    def __str__(self) -> str:
        n, updates = len(self.checkpoints), [read_state(path).update for path in self.checkpoints]
        if self.around is None:
            return f"the last {n} checkpoints" if n > 1 else "the last checkpoint"
        if n == 1:
            return f"the checkpoint of update {self.around:,}"
        return f"{n} checkpoints around update {self.around:,}, from {updates[0]:,} to {updates[-1]:,}"

    @property
    def in_words(self) -> str:
        """How the weights of a model folder were made of them."""
        return f"the mean of {self}" if len(self.checkpoints) > 1 else f"those of {self}"


def _averaged(
    folder: Path,
    training: TrainingConfig,
    last: int | None,
    around: int | Literal["best"] | None,
    log: Callable[[str], None],
) -> _Averaged:
    """Return the checkpoints to average, see ``average_run``. Raises CheckpointError if there are none."""
    checkpoints, n = folder / CHECKPOINTS, training.average_last if last is None else last
    best = best_update(checkpoints)
    if around == "best" and best is None:
        raise CheckpointError(f"{folder} has had no validation, so no checkpoint is the best; average the last ones")
    if last is None and around is None and training.averages_around_best and best is not None:
        around = "best"
    if around is not None:
        update = best if around == "best" else around
        assert update is not None
        interval = training.checkpoint_every_updates
        return _Averaged(checkpoints_around(checkpoints, update, n, interval=interval), update)
    averaged = averaged_checkpoints(checkpoints, n)
    if not averaged:
        raise CheckpointError(f"{checkpoints} has none of the schedule yet; train on, or take one with --update N")
    has_later = best is not None and best != read_state(averaged[-1]).validated_update  # a validation, which was worse
    if best is not None and has_later and best < read_state(averaged[0]).update:
        command = shlex.join(["transduce", "average", str(folder), "--around", "best"])
        log(
            f"note: the best validation was at update {best:,}, before all checkpoints that are averaged; for a model"
            f" around it: {command}"
        )
    return _Averaged(averaged)


def dev_perplexity(model: nn.Module, prepared: Prepared, config: RunConfig) -> float:
    """Return the perplexity per dev target, without label smoothing, in the precision of training. Table 3, PPL.

    Raises DataError if there is no dev text, ConfigError if the loss is not that of tokens.
    """
    task = task_of(config)
    if not task.is_of_tokens:
        raise ConfigError(f"task = {task.name!r} has no perplexity: its loss is not that of tokens")
    training = config.training.model_copy(update={"validation_bleu": False})
    model_config = task.model_config(config.model, *prepared.tokenizers.sizes)  # with the vocabulary sizes of the text
    config = config.model_copy(update={"training": training, "model": model_config})
    validate = task.validator(lambda: model, prepared, config, device=next(model.parameters()).device)
    if validate is None:
        raise DataError(f"{prepared.folder} has no dev text")
    with torch.no_grad():
        result = validate(lambda: False)
    assert result is not None
    return perplexity(result.nll_nats, 1)

"""The update loop. Knows a way to make gradients and a way to validate; knows no task.

With several processes, what they decide, when to stop for instance, they decide together.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Generic, Literal, Protocol

import torch
from torch import Tensor, nn

from transduce.config import TrainingConfig
from transduce.errors import TrainingError, TransduceError
from transduce.training.checkpoint import (
    CheckpointTrigger,
    TrainState,
    checkpoint_path,
    load_checkpoint,
    load_objective_state,
    remove_old_checkpoints,
    save_checkpoint,
)
from transduce.training.distributed import DistributedContext
from transduce.training.gradients import (
    BatchIndex,
    BatchSource,
    BatchT,
    Gradient,
    GradientAccumulator,
    Objective,
    Stateful,
)
from transduce.training.memory import is_out_of_memory, return_freed_pages
from transduce.training.memory_preflight import memory_preflight, out_of_memory
from transduce.training.nonfinite_dump import describe, dump_nonfinite
from transduce.training.optimiser import make_optimiser
from transduce.training.parallel import local_tensor
from transduce.training.records import (
    CheckpointRecord,
    Listener,
    Record,
    Score,
    SkipRecord,
    UpdateRecord,
    ValidationRecord,
)

__all__ = ["StopReason", "Trainer", "Validate", "Validation"]

StopReason = Literal["max_updates", "max_minutes", "patience", "interrupted"]


@dataclass(frozen=True, slots=True)
class Validation:
    """What a look at the dev set gives."""

    nll_nats: float  # per target token, not smoothed
    scores: Mapping[str, Score] = field(default_factory=dict)  # by name, as a task has them


class Validate(Protocol):
    """A way to look at the dev set."""

    def __call__(self, should_stop: Callable[[], bool], /) -> Validation | None:
        """Look once; None, in all processes, if one of them was asked to stop meanwhile."""


class Trainer(Generic[BatchT]):
    """One run: a model, what it minimises and on what, and how the run is watched and kept."""

    def __init__(
        self,
        *,
        model: nn.Module,
        objective: Objective[BatchT],
        batches: BatchSource[BatchT],
        learning_rate: Callable[[int], float],
        config: TrainingConfig,
        checkpoints: Path,
        validate: Validate | None = None,
        listeners: Sequence[Listener] = (),
        should_stop: Callable[[], bool] = lambda: False,
        clock: Callable[[], float] = time.monotonic,
        distributed: DistributedContext | None = None,
        begun_with: Mapping[str, Any] | None = None,
    ) -> None:
        """``begun_with`` is what the run was begun with, as JSON values, and is kept in its checkpoints."""
        self.model, self.objective, self.batches, self.learning_rate = model, objective, batches, learning_rate
        self.config, self.checkpoints, self.validate = config, checkpoints, validate
        self.listeners, self.should_stop, self.clock = list(listeners), should_stop, clock
        self.distributed, self.begun_with = distributed or DistributedContext(), begun_with
        self.optimiser = make_optimiser(model, config)
        self.gradients = GradientAccumulator(model, objective, batches, config, self.distributed)
        self.state = TrainState()
        self._saved: TrainState | None = None
        self._rate_tokens = 0  # target tokens since the last logged record, of this sitting
        self._session_started = self._window_started = clock()
        self._earlier_s = 0.0  # training time of earlier sittings
        # What all processes have agreed on: whether one was asked to stop, and the time of the first one.
        self._is_interrupted, self._agreed_s, self._checkpointed_s = False, 0.0, 0.0

    def resume(self, checkpoint: Path) -> None:
        """Go on from a checkpoint. Raises CheckpointError if it cannot be used."""
        self.state = load_checkpoint(checkpoint, self.model, self.optimiser)
        if isinstance(self.objective, Stateful):
            self.objective.load_state(load_objective_state(checkpoint))
        self._saved = self.state
        self._earlier_s = self.state.elapsed_s

    def run(self) -> StopReason:
        """Train until length, time, patience or a request ends the run; its last state is on the disk then.

        Raises TrainingError if memory does not suffice, which the largest batch shows before the first update, and if
        a loss or a gradient is not finite: the batch and the state before it are on the disk then, too.
        """
        self._session_started = self._window_started = self.clock()
        self._agreed_s = self._checkpointed_s = self._earlier_s
        if self._saved is not None and self._saved.is_scheduled:
            self._log_checkpoint()  # a run that was killed may not have come to it
        if self.state.update < self.config.max_updates:
            self.model.train()
            with self._forgetting(lambda: True):
                memory_preflight(self.gradients, self.optimiser, epoch=self.state.epoch)
            self._window_started = self.clock()
        while True:
            is_best = self._validation_is_due() and self._validate()
            self._agree()
            cause = self._checkpoint_trigger(is_best=is_best)
            if cause is not None:
                self._checkpoint(cause)
            reason = self._reason_to_stop()
            if reason is not None:
                break
            self._update()
        self._save_final_state("stop" if reason == "interrupted" else "end")
        return reason

    def _agree(self) -> None:
        """All processes learn whether one of them was asked to stop, and what time it is for the first one."""
        own = torch.tensor([float(self.should_stop()), self._elapsed_s()], dtype=torch.float64)
        by_process = self.distributed.all_gather(own)
        self._is_interrupted, self._agreed_s = (
            self._is_interrupted or bool(by_process[:, 0].any()),
            float(by_process[0, 1]),
        )

    def _reason_to_stop(self) -> StopReason | None:
        config = self.config
        if self._is_interrupted:
            return "interrupted"
        if self.state.update >= config.max_updates:
            return "max_updates"
        if config.max_minutes is not None and self._agreed_s >= 60 * config.max_minutes:
            return "max_minutes"
        if config.patience is not None and self.state.validations_without_gain >= config.patience:
            return "patience"
        return None

    def _update(self) -> None:
        """One step of the optimiser over ``n_accumulate`` batches; or none, where something is not finite.

        Nor where it is asked to stop between two batches: the update is begun anew when the run goes on.
        """
        batch_indices, epoch, next_batch = self._next_batch_indices()
        self.model.train()
        gradient: Gradient | None = None
        with self._saving_what_was_done(f"update {self.state.update + 1}"), self._forgetting(lambda: gradient is None):
            gradient = self.gradients.make(batch_indices, update=self.state.update, should_stop=self.should_stop)
        if gradient is None:
            self._is_interrupted = True
            return
        after = replace(self.state, epoch=epoch, next_batch=next_batch)
        if not gradient.is_finite:
            self._leave_out(batch_indices, gradient, after)
            return
        learning_rate = self.learning_rate(after.update + 1)
        for group in self.optimiser.param_groups:
            group["lr"] = learning_rate
        self.optimiser.step()
        self.state = replace(
            after,
            update=after.update + 1,
            src_tokens=after.src_tokens + gradient.n_src_tokens,
            tgt_tokens=after.tgt_tokens + gradient.n_tgt_tokens,
            window_loss_nats=after.window_loss_nats + sum(gradient.losses_nats),
            window_nll_nats=after.window_nll_nats + sum(gradient.nlls_nats),
            window_tgt_tokens=after.window_tgt_tokens + gradient.n_tgt_tokens,
        )
        self._rate_tokens += gradient.n_tgt_tokens
        self._report_update(learning_rate, gradient.norm)

    def _remembered(self) -> dict[str, Tensor]:
        """What the objective remembers from update to update; usually nothing."""
        return self.objective.state() if isinstance(self.objective, Stateful) else {}

    @contextmanager
    def _forgetting(self, is_undone: Callable[[], bool]) -> Iterator[None]:
        """Let the objective remember nothing of the block if that was undone."""
        before = {name: tensor.clone() for name, tensor in self._remembered().items()}
        try:
            yield
        finally:
            if before and is_undone() and isinstance(self.objective, Stateful):
                self.objective.load_state(before)

    @contextmanager
    def _saving_what_was_done(self, when: str) -> Iterator[None]:
        """Save the state of before if the block fails, where no other process is needed for it.

        Raises TrainingError where memory did not suffice.
        """
        try:
            yield
        except (TransduceError, RuntimeError) as error:
            self.gradients.clear()
            if self.distributed.n == 1:
                self._save_final_state("stop")
            if isinstance(error, RuntimeError) and is_out_of_memory(error):
                raise out_of_memory(self.gradients, when, has_begun=True) from error
            raise

    def _next_batch_indices(self) -> tuple[list[BatchIndex], int, int]:
        """(epoch, index) of the batches of this update, and the place after them."""
        batch_indices: list[BatchIndex] = []
        epoch, index = self.state.epoch, self.state.next_batch
        while len(batch_indices) < self.config.n_accumulate:
            if index >= self.batches.n_batches(epoch):
                epoch, index = epoch + 1, 0
            batch_indices.append((epoch, index))
            index += 1
        return batch_indices, epoch, index

    def _leave_out(self, batch_indices: list[BatchIndex], gradient: Gradient, after: TrainState) -> None:
        """Keep what is not finite and go on behind it, without an update.

        Raises TrainingError if as many as are allowed were left out before.
        """
        update, n_skipped, allowed = self.state.update + 1, self.state.n_skipped, self.config.n_skippable
        what = describe(self.gradients, batch_indices, gradient)
        if n_skipped >= allowed:
            self._save_final_state("stop")
        folder = self.checkpoints.parent / "not-finite" / f"update-{update:08d}-{n_skipped + 1}"
        try:
            dump_nonfinite(folder, self.gradients, batch_indices, gradient, update=update)
            kept = f"the batch is kept in {folder}"
        except OSError as error:
            kept = f"the batch could not be kept in {folder} ({error.strerror})"
        self.gradients.clear()
        message = f"update {update}: {what}; nothing was updated; {kept}"
        if n_skipped < allowed:
            self.state = replace(after, n_skipped=n_skipped + 1)
            words = f"{message}; left out ({n_skipped + 1} of at most {allowed})"
            self._log(SkipRecord(self.state.update, words, self._elapsed_s()))
            return
        hint = f"; {allowed} left out before" if allowed else ", or --on-nan skip:N to leave out so many such updates"
        raise TrainingError(
            f"{message}; a smaller training.lr_factor, longer warmup_steps or a clip_norm may help{hint}"
        )

    def _report_update(self, learning_rate: float, gradient_norm: float) -> None:
        state = self.state
        now = self.clock()
        is_logged = state.update % self.config.log_every_updates == 0
        record = UpdateRecord(
            update=state.update,
            epoch=state.epoch,
            loss_nats=state.window_loss_nats / state.window_tgt_tokens,
            nll_nats=state.window_nll_nats / state.window_tgt_tokens,
            learning_rate=learning_rate,
            gradient_norm=gradient_norm,
            src_tokens=state.src_tokens,
            tgt_tokens=state.tgt_tokens,
            tgt_tokens_per_s=self._rate_tokens / max(now - self._window_started, 1e-9),
            elapsed_s=self._elapsed_s(),
            is_logged=is_logged,
        )
        if is_logged:
            self.state = replace(state, window_loss_nats=0.0, window_nll_nats=0.0, window_tgt_tokens=0)
            self._window_started, self._rate_tokens = now, 0
        self._log(record)

    def _validation_is_due(self) -> bool:
        """At its updates, and after a resume if the run was stopped before it was done."""
        update = self.state.update
        is_its_time = update > 0 and update % self.config.validate_every_updates == 0
        return self.validate is not None and is_its_time and self.state.validated_update != update

    def _validate(self) -> bool:
        """Look at the dev set; whether the model is the best so far. Not so if the look was interrupted."""
        assert self.validate is not None
        started = self.clock()
        self.model.eval()
        with torch.no_grad(), self._saving_what_was_done(f"validation after update {self.state.update}"):
            validation = self.validate(self.should_stop)
        self._window_started += self.clock() - started  # the rate of training is not that of validation
        if validation is None:
            self._is_interrupted = True
            return False
        best = self.state.best_nll_nats
        is_best = math.isfinite(validation.nll_nats) and (best is None or validation.nll_nats < best)
        update, n_without_gain = self.state.update, 0 if is_best else self.state.validations_without_gain + 1
        self.state = replace(self.state, validated_update=update, validations_without_gain=n_without_gain)
        if is_best:
            self.state = replace(self.state, best_nll_nats=validation.nll_nats, best_update=update)
        self._log(ValidationRecord(update, validation.nll_nats, validation.scores, is_best, self._elapsed_s()))
        return is_best

    def _checkpoint_trigger(self, *, is_best: bool) -> CheckpointTrigger | None:
        """Why there should be a checkpoint now. A validation that was interrupted comes first, after the resume."""
        config, update, saved = self.config, self.state.update, self._saved
        if update == 0 or self._validation_is_due():
            return None
        every_minutes = config.checkpoint_every_minutes
        is_late = every_minutes is not None and self._agreed_s - self._checkpointed_s >= 60 * every_minutes
        is_there = saved is not None and saved.update == update and saved.cause == "schedule"
        if (update % config.checkpoint_every_updates == 0 or is_late) and not is_there:
            return "schedule"
        return "best" if is_best and update < config.max_updates else None

    def _save_final_state(self, cause: CheckpointTrigger) -> None:
        """A checkpoint of the last state, unless there is one: the end of a run is averaged, a stop on the way not."""
        saved, update = self._saved, self.state.update
        is_there = saved is not None and saved.update == update  # a resume comes by what was skipped since once more
        is_good_for_it = saved is not None and (cause == "stop" or saved.cause in ("schedule", "end"))
        if update > 0 and not (is_there and is_good_for_it):
            self._checkpoint(cause)

    def _checkpoint(self, cause: CheckpointTrigger) -> None:
        started = self.clock()
        self._require_finite_weights()
        self.state = replace(self.state, cause=cause, elapsed_s=self._elapsed_s())
        save_checkpoint(
            self.checkpoints, self.model, self.optimiser, self.state, self.distributed, begun_with=self.begun_with,
            objective_state=self._remembered(),
        )  # fmt: skip
        if self.distributed.is_first:
            keep = self.config.keep_checkpoints
            remove_old_checkpoints(self.checkpoints, keep=keep, best_update=self.state.best_update)
        self._saved = self.state
        return_freed_pages()
        if cause == "schedule":
            self._checkpointed_s = self._agreed_s
        self._window_started += self.clock() - started
        if cause != "stop":  # a run that is stopped and resumed tells what one tells that was not
            self._log_checkpoint()

    def _require_finite_weights(self) -> None:
        """Raises TrainingError if an update has made weights that nobody could go on from."""
        is_finite = all(bool(local_tensor(weight).isfinite().all()) for weight in self.model.parameters())
        if not self.distributed.all_gather(torch.tensor([float(is_finite)])).all():
            last = f"update {self._saved.update} is the last checkpoint" if self._saved else "there is no checkpoint"
            raise TrainingError(
                f"update {self.state.update}: there are weights that are not finite; nothing was saved, {last}; a "
                "smaller training.lr_factor, longer warmup_steps or a clip_norm may help"
            )

    def _log_checkpoint(self) -> None:
        path = checkpoint_path(self.checkpoints, self.state.update)
        self._log(CheckpointRecord(self.state.update, path.name, self._elapsed_s()))

    def _elapsed_s(self) -> float:
        return self._earlier_s + self.clock() - self._session_started

    def _log(self, record: Record) -> None:
        for listener in self.listeners:
            listener(record)

"""The update loop, independent of tasks.

With several processes, decisions such as when to stop are taken collectively.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, Generic, Literal

import torch
from torch import nn

from transduce.config import TrainingConfig
from transduce.errors import TrainingError, TransduceError
from transduce.memory import is_out_of_memory
from transduce.training.averaging import remove_old_checkpoints
from transduce.training.checkpoint import (
    CheckpointTrigger,
    TrainState,
    checkpoint_path,
    load_checkpoint,
    load_objective_state,
    save_checkpoint,
)
from transduce.training.distributed import DistributedContext
from transduce.training.gradients import (
    BatchIndex,
    BatchSource,
    BatchT,
    Gradient,
    GradientAccumulator,
    Measuring,
    Objective,
    Stateful,
    restoring_state,
)
from transduce.training.memory import return_freed_pages
from transduce.training.memory_preflight import memory_preflight, out_of_memory
from transduce.training.nonfinite_dump import NOT_FINITE, describe, dump_nonfinite
from transduce.training.optimiser import make_optimiser, tensorflow_eps
from transduce.training.parallel import local_tensor
from transduce.training.records import (
    CheckpointRecord,
    Listener,
    Record,
    SkipRecord,
    UpdateRecord,
    Validate,
    ValidationRecord,
)

__all__ = ["StopReason", "Trainer"]

StopReason = Literal["max_updates", "max_minutes", "patience", "interrupted"]


class Trainer(Generic[BatchT]):
    """Train a model on an objective and a batch source, with validation, checkpoints and listeners."""

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
        run_settings: Mapping[str, Any] | None = None,
    ) -> None:
        """Make a trainer at update 0. ``run_settings`` (JSON values) are copied into every checkpoint."""
        self.model, self.objective, self.batches, self.learning_rate = model, objective, batches, learning_rate
        self.config, self.checkpoints, self.validate = config, checkpoints, validate
        self.listeners, self.should_stop, self.clock = list(listeners), should_stop, clock
        self.distributed, self.run_settings = distributed or DistributedContext(), run_settings
        self.optimiser = make_optimiser(model, config)
        self.accumulator = GradientAccumulator(model, objective, batches, config, self.distributed)
        self.state = TrainState(best_by=config.best_by)
        self._saved: TrainState | None = None
        self._rate_tokens = 0  # target tokens since the last logged record of this session
        self._session_started = self._window_started = clock()
        self._previous_sessions_s = 0.0  # training time of earlier sessions
        # The same on all ranks: whether any was interrupted, and the elapsed time of rank 0.
        self._is_interrupted, self._synchronised_s, self._checkpointed_s = False, 0.0, 0.0

    def resume(self, checkpoint: Path) -> None:
        """Load a checkpoint to resume from. Raises CheckpointError if it cannot be used."""
        self.state = self._saved = load_checkpoint(checkpoint, self.model, self.optimiser)
        if self.state.best_by != self.config.best_by:  # which checkpoint is the best by this is not known
            self.state = replace(
                self.state, best_by=self.config.best_by, best_value=None, best_update=None, validations_without_gain=0
            )
        if isinstance(self.objective, Stateful):
            self.objective.load_state(load_objective_state(checkpoint))
        self._previous_sessions_s = self.state.elapsed_s

    def run(self) -> StopReason:
        """Train until the update limit, the time limit, patience or an interrupt; the final state is then saved.

        Raises TrainingError when out of memory, which a preflight on the largest batch detects before the first
        update, and on a non-finite loss or gradient, after dumping the batches and saving the state before the update.
        """
        self._session_started = self._window_started = self.clock()
        self._synchronised_s = self._checkpointed_s = self._previous_sessions_s
        if (saved := self._saved) is not None and (saved.is_scheduled or (saved.cause == "end" and self._end())):
            self._log_checkpoint()  # the process may have been killed before logging it
        if self.state.update < self.config.max_updates:
            self.model.train()
            with restoring_state(self.objective, lambda: True):
                memory_preflight(self.accumulator, self.optimiser, epoch=self.state.epoch)
            self._session_started = self._window_started = self.clock()  # the preflight takes none of the run's time
        while True:
            is_best = self._validation_is_due() and self._validate()
            self._synchronise()
            if self._ends_unvalidated():
                is_best = self._validate()
                self._synchronise()
            trigger = self._checkpoint_trigger(is_best=is_best)
            if trigger is not None:
                self._checkpoint(trigger)
            reason = self._stop_reason()
            if reason is not None:
                break
            self._update()
        self._save_final_state("stop" if reason == "interrupted" else "end")
        return reason

    def _synchronise(self) -> None:
        """Share with all ranks whether any was interrupted, and the elapsed time of rank 0."""
        own = torch.tensor([float(self.should_stop()), self._elapsed_s()], dtype=torch.float64)
        by_rank = self.distributed.all_gather(own)
        self._is_interrupted = self._is_interrupted or bool(by_rank[:, 0].any())
        self._synchronised_s = float(by_rank[0, 1])

    @property
    def shared_elapsed_s(self) -> float:
        """The training time at the beginning of an update, the same on all ranks."""
        return self._synchronised_s

    def _stop_reason(self) -> StopReason | None:
        return "interrupted" if self._is_interrupted else self._end()

    def _end(self) -> Literal["max_updates", "max_minutes", "patience"] | None:
        """Return why the run is over, None if it is not; an interrupt does not end it."""
        config = self.config
        if self.state.update >= config.max_updates:
            return "max_updates"
        is_over = config.max_minutes is not None and self._synchronised_s >= 60 * config.max_minutes
        if is_over and self.state.update:  # at least one, so that there is a model
            return "max_minutes"
        if config.patience is not None and self.state.validations_without_gain >= config.patience:
            return "patience"
        return None

    def _update(self) -> None:
        """Make one optimiser step over ``n_accumulate`` micro-batches; skip it on a non-finite loss or gradient.

        An interrupt between two micro-batches discards the update; the resumed run repeats it.
        """
        batch_indices, epoch, next_batch = next_batches(self.batches, self.config.n_accumulate, self.state)
        self.model.train()
        gradient: Gradient | None = None
        name = f"update {self.state.update + 1}"

        def is_undone() -> bool:
            return gradient is None or not gradient.is_finite

        with self._saving_on_error(name), restoring_state(self.objective, is_undone):
            gradient = self.accumulator.accumulate(
                batch_indices, update=self.state.update, should_stop=self.should_stop
            )
        if gradient is None:
            self._is_interrupted = True
            return
        after = replace(self.state, epoch=epoch, next_batch=next_batch)
        if not gradient.is_finite:
            self._skip_update(batch_indices, gradient, after)
            return
        learning_rate = self.learning_rate(after.update + 1)
        for group in self.optimiser.param_groups:
            group["lr"] = learning_rate
            if self.config.adam_eps_form == "tensorflow" and "betas" in group:
                group["eps"] = tensorflow_eps(self.config.adam_eps, self.config.adam_beta2, after.update + 1)
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

    @contextmanager
    def _saving_on_error(self, when: str) -> Iterator[None]:
        """Save the last state if the block fails; only in a single process, since saving is collective.

        Raises TrainingError when out of memory.
        """
        try:
            yield
        except (TransduceError, RuntimeError) as error:
            self.accumulator.clear()
            if self.distributed.n == 1:
                self._save_final_state("stop")
            if isinstance(error, RuntimeError) and is_out_of_memory(error):
                raise out_of_memory(self.accumulator, when, has_started=True) from error
            raise

    def _skip_update(self, batch_indices: list[BatchIndex], gradient: Gradient, after: TrainState) -> None:
        """Dump the offending batches, skip the update, continue.

        Raises TrainingError if the maximum number of updates has already been skipped.
        """
        update, n_skipped, max_skips = self.state.update + 1, self.state.n_skipped, self.config.max_skipped_updates
        what = describe(self.accumulator, batch_indices, gradient)
        if n_skipped >= max_skips:
            self._save_final_state("stop")
        folder = self.checkpoints.parent / NOT_FINITE / f"update-{update:08d}-{n_skipped + 1}"
        try:
            dump_nonfinite(folder, self.accumulator, batch_indices, gradient, update=update)
            dumped = f"the batch was dumped to {folder}"
        except OSError as error:
            dumped = f"the batch could not be dumped to {folder} ({error.strerror})"
        self.accumulator.clear()
        message = f"update {update}: {what}; the weights are unchanged; {dumped}"
        if n_skipped < max_skips:
            self.state = replace(after, n_skipped=n_skipped + 1)
            message = f"{message}; skipped ({n_skipped + 1} of at most {max_skips})"
            self._log(SkipRecord(self.state.update, message, self._elapsed_s()))
            return
        hint = f"; {max_skips} skipped before" if max_skips else ", or --on-nan skip:N to skip up to N such updates"
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
            measures=mean_measures(self.objective, self.distributed) if is_logged else {},
        )
        if is_logged:
            self.state = replace(state, window_loss_nats=0.0, window_nll_nats=0.0, window_tgt_tokens=0)
            self._window_started, self._rate_tokens = now, 0
        self._log(record)

    def _validation_is_due(self) -> bool:
        """Whether a validation is scheduled at this update and has not finished; an interrupted one is repeated."""
        update = self.state.update
        is_scheduled = update > 0 and update % self.config.validate_every_updates == 0
        return self.validate is not None and is_scheduled and self.state.validated_update != update

    def _ends_unvalidated(self) -> bool:
        """Whether the run is over, and its last weights, which may be the best, have not been compared."""
        is_compared = self.validate is None or self.state.validated_update == self.state.update
        return self.config.averages_around_best and not is_compared and self._stop_reason() not in (None, "interrupted")

    def _validate(self) -> bool:
        """Validate; whether the model is the best so far. False if the validation was interrupted."""
        assert self.validate is not None
        started = self.clock()
        self.model.eval()
        with torch.no_grad(), self._saving_on_error(f"validation after update {self.state.update}"):
            validation = self.validate(self.should_stop)
            score = None if validation is None else validation.by(self.config.best_by)
        self._window_started += self.clock() - started  # tokens per second exclude validation
        if validation is None or score is None:
            self._is_interrupted = True
            return False
        update, is_best = self.state.update, score.is_better_than(self.state.best_value)
        is_step = update % self.config.validate_every_updates == 0  # of patience; not at the end of a run
        n_without_gain = 0 if is_best else self.state.validations_without_gain + is_step
        self.state = replace(self.state, validated_update=update, validations_without_gain=n_without_gain)
        if is_best:
            self.state = replace(self.state, best_value=score.value, best_update=update)
        self._log(ValidationRecord(
            update, validation.nll_nats, validation.scores, is_best, self._elapsed_s(), validation.is_of_tokens
        ))  # fmt: skip
        return is_best

    def _checkpoint_trigger(self, *, is_best: bool) -> CheckpointTrigger | None:
        """Return the trigger of a checkpoint due now, or None. An interrupted validation is repeated first."""
        config, update, saved = self.config, self.state.update, self._saved
        if update == 0 or self._validation_is_due():
            return None
        every_minutes = config.checkpoint_every_minutes
        is_overdue = every_minutes is not None and self._synchronised_s - self._checkpointed_s >= 60 * every_minutes
        if saved is not None and saved.update == update and saved.cause == "schedule":
            return "schedule" if is_best else None  # by a validation that a resume has added; it stays in the average
        if update % config.checkpoint_every_updates == 0 or is_overdue:
            return "schedule"
        return "best" if is_best and self._end() is None else None

    def _save_final_state(self, trigger: CheckpointTrigger) -> None:
        """Save the final state unless saved; ``end`` checkpoints are averaged, ``stop`` ones are not."""
        saved, state = self._saved, self.state
        # Updates skipped since the last checkpoint need no new one: a resumed run skips them again.
        if saved is not None and saved.update == state.update:
            suffices = trigger == "stop" or saved.cause in ("schedule", "end")
            if suffices and saved.best_update == state.best_update:
                return
            trigger = "schedule" if saved.cause == "schedule" else trigger  # it stays in the average
        if state.update > 0:
            self._checkpoint(trigger)

    def _checkpoint(self, trigger: CheckpointTrigger) -> None:
        started = self.clock()
        self._require_finite_weights()
        self.state = replace(self.state, cause=trigger, elapsed_s=self._elapsed_s())
        save_checkpoint(
            self.checkpoints, self.model, self.optimiser, self.state, self.distributed, run_settings=self.run_settings,
            objective_state=self.objective.state() if isinstance(self.objective, Stateful) else {},
        )  # fmt: skip
        if self.distributed.is_first:
            remove_old_checkpoints(
                self.checkpoints,
                keep=self.config.keep_checkpoints,
                best_update=self.state.best_update,
                n_around=self.config.average_last,
                interval=self.config.checkpoint_every_updates,
            )
        self._saved = self.state
        return_freed_pages()
        if trigger == "schedule":
            self._checkpointed_s = self._synchronised_s
        self._window_started += self.clock() - started
        if trigger != "stop":  # so that an interrupted and resumed run logs the same as an uninterrupted one
            self._log_checkpoint()

    def _require_finite_weights(self) -> None:
        """Raise TrainingError if a weight is NaN or Inf on any rank."""
        is_finite = all(bool(local_tensor(weight).isfinite().all()) for weight in self.model.parameters())
        if not self.distributed.all_gather(torch.tensor([float(is_finite)])).all():
            last = f"the last checkpoint is of update {self._saved.update}" if self._saved else "there is no checkpoint"
            raise TrainingError(
                f"update {self.state.update}: some weights are not finite (NaN or Inf); nothing was saved, {last}; a "
                "smaller training.lr_factor, longer warmup_steps or a clip_norm may help"
            )

    def _log_checkpoint(self) -> None:
        path = checkpoint_path(self.checkpoints, self.state.update)
        self._log(CheckpointRecord(self.state.update, path.name, self._elapsed_s()))

    def _elapsed_s(self) -> float:
        return self._previous_sessions_s + self.clock() - self._session_started

    def _log(self, record: Record) -> None:
        for listener in self.listeners:
            listener(record)


def next_batches(batches: BatchSource[Any], n: int, state: TrainState) -> tuple[list[BatchIndex], int, int]:
    """Return the indices of the next ``n`` batches, and the epoch and index of the batch after them."""
    indices: list[BatchIndex] = []
    epoch, index = state.epoch, state.next_batch
    while len(indices) < n:
        if index >= batches.n_batches(epoch):
            epoch, index = epoch + 1, 0
        indices.append((epoch, index))
        index += 1
    return indices, epoch, index


def mean_measures(objective: object, distributed: DistributedContext) -> dict[str, float]:
    """Return the means, over all ranks, of what an objective has measured since the last call."""
    if not isinstance(objective, Measuring):
        return {}
    totals, counts = defaultdict[str, float](float), defaultdict[str, float](float)
    for of_rank in distributed.all_gather_json(objective.measured()):
        for name, (total, n) in of_rank.items():
            totals[name] += total
            counts[name] += n
    return {name: totals[name] / n for name, n in counts.items()}

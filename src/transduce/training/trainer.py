"""The update loop. Knows an objective, batches and a way to validate; knows no task.

Randomness is a function of (seed, update, batch within the update): the generator is set anew for each batch, so a run
that was stopped and resumed draws the same dropout masks as one that was not.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, Literal, Protocol, TypeVar

import torch
from torch import nn
from torch.nn.utils import clip_grads_with_norm_, get_total_norm

from transduce.config import TrainingConfig
from transduce.errors import TrainingError
from transduce.training.checkpoint import TrainState, load_checkpoint, remove_old_checkpoints, save_checkpoint
from transduce.training.loss import LossSum
from transduce.training.optimiser import make_optimiser
from transduce.training.records import CheckpointRecord, Listener, Record, UpdateRecord, ValidationRecord

__all__ = ["BatchSource", "Objective", "StopReason", "TrainableBatch", "Trainer", "Validation"]

StopReason = Literal["max_updates", "max_minutes", "patience", "asked"]


class TrainableBatch(Protocol):
    """What the loop itself must know of a batch."""

    @property
    def n_src_tokens(self) -> int:
        """Source tokens, end symbols included."""

    @property
    def n_tgt_tokens(self) -> int:
        """Target tokens that are predicted."""


BatchT = TypeVar("BatchT", bound=TrainableBatch)
BatchT_co = TypeVar("BatchT_co", bound=TrainableBatch, covariant=True)
BatchT_contra = TypeVar("BatchT_contra", bound=TrainableBatch, contravariant=True)


class Objective(Protocol[BatchT_contra]):
    """What is minimised: a sum over the target tokens of a batch."""

    def __call__(self, batch: BatchT_contra, /) -> LossSum:
        """The loss of one batch."""


class BatchSource(Protocol[BatchT_co]):
    """Batches by place, so that a run can go on in the middle of an epoch."""

    def n_batches(self, epoch: int, /) -> int:
        """How many batches this epoch has."""

    def batch(self, epoch: int, index: int, /) -> BatchT_co:
        """One of them."""

    def name(self, epoch: int, index: int, /) -> str:
        """Words that let a person find it, for error messages."""


@dataclass(frozen=True, slots=True)
class Validation:
    """What a look at the dev set gives."""

    nll_nats: float  # per target token, not smoothed
    bleu: float | None = None
    signature: str | None = None


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
        validate: Callable[[], Validation] | None = None,
        listeners: Sequence[Listener] = (),
        should_stop: Callable[[], bool] = lambda: False,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.model, self.objective, self.batches, self.learning_rate = model, objective, batches, learning_rate
        self.config, self.checkpoints, self.validate = config, checkpoints, validate
        self.listeners, self.should_stop, self.clock = list(listeners), should_stop, clock
        self.optimiser = make_optimiser(model, config)
        self.state = TrainState()
        self.device_type = next(model.parameters()).device.type
        self._weights = list(model.parameters())
        self._saved: TrainState | None = None
        self._rate_tokens = 0  # target tokens since the last logged record, of this sitting
        self._sitting_started = self._checkpointed = self._window_started = clock()
        self._earlier_s = 0.0  # training time of earlier sittings

    def resume(self, checkpoint: Path) -> None:
        """Go on from a checkpoint. Raises CheckpointError if it cannot be used."""
        self.state = load_checkpoint(checkpoint, self.model, self.optimiser)
        self._saved = self.state
        self._earlier_s = self.state.elapsed_s

    def run(self) -> StopReason:
        """Train until length, time, patience or a request ends the run; its last state is on the disk then.

        Raises TrainingError before the update if a loss or a gradient is not finite, or if memory does not suffice.
        """
        self._sitting_started = self._checkpointed = self._window_started = self.clock()
        while (reason := self._reason_to_stop()) is None:
            try:
                self._update()
            except torch.OutOfMemoryError as error:
                raise TrainingError(
                    f"update {self.state.update + 1}: the device has not enough memory for batches of "
                    f"{self.config.max_tokens_per_batch:,} tokens; lower training.max_tokens_per_batch and raise "
                    "training.n_accumulate"
                ) from error
            if self.state.update % self.config.validate_every_updates == 0:
                self._validate()
            if self._checkpoint_is_due():
                self._checkpoint(is_scheduled=True)
        self._save_the_end(is_scheduled=reason != "asked")
        return reason

    def _save_the_end(self, *, is_scheduled: bool) -> None:
        """A checkpoint of the last state, unless there is one: the end of a run is averaged, a stop on the way not."""
        saved = self._saved
        is_there = saved is not None and saved.update == self.state.update
        if saved is not None and is_there and (saved.is_scheduled or not is_scheduled):
            return
        if self.state.update > 0:
            self._checkpoint(is_scheduled=is_scheduled)

    def _reason_to_stop(self) -> StopReason | None:
        config = self.config
        if self.state.update >= config.max_updates:
            return "max_updates"
        if self.should_stop():
            return "asked"
        if config.max_minutes is not None and self._elapsed_s() >= 60 * config.max_minutes:
            return "max_minutes"
        if config.patience is not None and self.state.validations_without_gain >= config.patience:
            return "patience"
        return None

    def _update(self) -> None:
        """One step of the optimiser over ``n_accumulate`` batches."""
        config, state = self.config, self.state
        places, epoch, next_batch = self._next_places()
        batches = [self.batches.batch(*place) for place in places]
        n_tgt_tokens = sum(batch.n_tgt_tokens for batch in batches)
        self.model.train()
        self.optimiser.zero_grad(set_to_none=True)
        loss_nats = nll_nats = 0.0
        for number, (batch, place) in enumerate(zip(batches, places, strict=True)):
            torch.manual_seed(_mix(config.seed, state.update, number))
            with torch.autocast(self.device_type, torch.bfloat16, enabled=config.precision == "bf16"):
                loss = self.objective(batch)
            value = float(loss.loss_nats.detach())
            if not math.isfinite(value):
                raise TrainingError(
                    f"update {state.update + 1}: the loss is {value} on {self.batches.name(*place)}; nothing was "
                    "updated; a smaller lr_factor, longer warmup_steps or clip_norm may help"
                )
            (loss.loss_nats / n_tgt_tokens).backward()  # type: ignore[no-untyped-call]
            loss_nats, nll_nats = loss_nats + value, nll_nats + float(loss.nll_nats)
        gradient_norm = self._clip_gradient()
        if not math.isfinite(gradient_norm):
            names = ", ".join(self.batches.name(*place) for place in places)
            raise TrainingError(
                f"update {state.update + 1}: the gradient is not finite on {names}; nothing was updated"
            )
        learning_rate = self.learning_rate(state.update + 1)
        for group in self.optimiser.param_groups:
            group["lr"] = learning_rate
        self.optimiser.step()
        self.state = state.with_changes(
            update=state.update + 1,
            epoch=epoch,
            next_batch=next_batch,
            src_tokens=state.src_tokens + sum(batch.n_src_tokens for batch in batches),
            tgt_tokens=state.tgt_tokens + n_tgt_tokens,
            window_loss_nats=state.window_loss_nats + loss_nats,
            window_nll_nats=state.window_nll_nats + nll_nats,
            window_tgt_tokens=state.window_tgt_tokens + n_tgt_tokens,
        )
        self._rate_tokens += n_tgt_tokens
        self._report_update(learning_rate, gradient_norm)

    def _next_places(self) -> tuple[list[tuple[int, int]], int, int]:
        """(epoch, index) of the batches of this update, and the place after them."""
        places: list[tuple[int, int]] = []
        epoch, index = self.state.epoch, self.state.next_batch
        while len(places) < self.config.n_accumulate:
            if index >= self.batches.n_batches(epoch):
                epoch, index = epoch + 1, 0
            places.append((epoch, index))
            index += 1
        return places, epoch, index

    def _clip_gradient(self) -> float:
        """The norm of the whole gradient, which is scaled down to ``clip_norm`` where one is set."""
        gradients = [weight.grad for weight in self._weights if weight.grad is not None]
        norm = get_total_norm(gradients)
        if self.config.clip_norm is not None:
            clip_grads_with_norm_(self._weights, self.config.clip_norm, norm)
        return float(norm)

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
            self.state = state.with_changes(window_loss_nats=0.0, window_nll_nats=0.0, window_tgt_tokens=0)
            self._window_started, self._rate_tokens = now, 0
        self._tell(record)

    def _validate(self) -> None:
        if self.validate is None:
            return
        started = self.clock()
        self.model.eval()
        with torch.no_grad():
            validation = self.validate()
        is_best = self.state.best_nll_nats is None or validation.nll_nats < self.state.best_nll_nats
        if is_best:
            self.state = self.state.with_changes(
                best_nll_nats=validation.nll_nats, best_update=self.state.update, validations_without_gain=0
            )
        else:
            self.state = self.state.with_changes(validations_without_gain=self.state.validations_without_gain + 1)
        self._window_started += self.clock() - started  # the rate of training is not that of validation
        self._tell(
            ValidationRecord(
                self.state.update,
                validation.nll_nats,
                validation.bleu,
                validation.signature,
                is_best,
                self._elapsed_s(),
            )
        )
        if is_best and not self._checkpoint_is_due():
            self._checkpoint(is_scheduled=False)

    def _checkpoint_is_due(self) -> bool:
        every_minutes = self.config.checkpoint_every_minutes
        if every_minutes is not None and self.clock() - self._checkpointed >= 60 * every_minutes:
            return True
        return self.state.update % self.config.checkpoint_every_updates == 0

    def _checkpoint(self, *, is_scheduled: bool) -> None:
        started = self.clock()
        self.state = self.state.with_changes(is_scheduled=is_scheduled, elapsed_s=self._elapsed_s())
        path = save_checkpoint(self.checkpoints, self.model, self.optimiser, self.state)
        keep = self.config.keep_checkpoints
        remove_old_checkpoints(self.checkpoints, keep=keep, best_update=self.state.best_update)
        self._saved = self.state
        if is_scheduled:
            self._checkpointed = started
        self._window_started += self.clock() - started
        self._tell(CheckpointRecord(self.state.update, path.name, self._elapsed_s()))

    def _elapsed_s(self) -> float:
        return self._earlier_s + self.clock() - self._sitting_started

    def _tell(self, record: Record) -> None:
        for listener in self.listeners:
            listener(record)


def _mix(*numbers: int) -> int:
    """One seed out of several numbers, far apart for neighbours (FNV-1a over 64 bits)."""
    mixed = 0xCBF29CE484222325
    for number in numbers:
        mixed = ((mixed ^ number) * 0x100000001B3) % 2**63
    return mixed

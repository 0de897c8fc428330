"""The update loop: exact gradient accumulation, exact resume, stop reasons."""

from __future__ import annotations

import dataclasses
import json
import math
import os
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from said import naming, says
from transduce.errors import DataError, SearchError, TrainingError
from transduce.files import write_manifest
from transduce.model.weights_file import read_tensors
from transduce.training import (
    MetricsFile,
    Record,
    Score,
    SkipRecord,
    TrainState,
    UpdateRecord,
    Validation,
    ValidationRecord,
    averaged_checkpoints,
    best_update,
    checkpoint_folders,
    checkpoints_around,
    newest_complete,
    read_state,
    set_aside_newer,
)
from transduce.training.memory_preflight import memory_preflight

pytestmark = pytest.mark.reliability

MakeTrainer = Callable[..., Any]
TIMED = ("elapsed_s", "tgt_tokens_per_s")


class OneBatch:
    """All rows of a source as one batch per epoch."""

    def __init__(self, source: Any) -> None:
        self.source = source

    def n_batches(self, epoch: int) -> int:
        return 1

    def n_rows(self, epoch: int, index: int) -> int:
        return len(self.source.targets)

    def n_tokens(self, epoch: int, index: int) -> tuple[int, int]:
        return len(self.source.targets), len(self.source.targets)

    def batch(self, epoch: int, index: int, *, part: int = 0, n_parts: int = 1) -> Any:
        return type(self.source.batch(0, 0))(self.source.x[part::n_parts], self.source.targets[part::n_parts])

    def largest(self, epoch: int) -> list[int]:
        return [0]

    def name(self, epoch: int, index: int) -> str:
        return "all"


class Spoiled:
    """A source with a NaN in some batches."""

    def __init__(self, source: Any, *places: tuple[int, int]) -> None:
        self.source, self.places = source, places

    def __getattr__(self, name: str) -> Any:
        return getattr(self.source, name)

    def batch(self, epoch: int, index: int, *, part: int = 0, n_parts: int = 1) -> Any:
        batch = self.source.batch(epoch, index, part=part, n_parts=n_parts)
        if (epoch, index) in self.places:
            return type(batch)(batch.x_ND * math.nan, batch.targets_N)
        return batch


def weights(trainer: Any) -> list[torch.Tensor]:
    return [weight.detach().clone() for weight in trainer.model.parameters()]


def records_in(path: Path) -> list[dict[str, Any]]:
    """Read the records of a metrics file, without times and rates."""
    records = [json.loads(line) for line in path.read_text().splitlines()]
    return [{key: value for key, value in record.items() if key not in TIMED} for record in records]


def test_accumulated_batches_equal_one_large_batch(make_trainer: MakeTrainer, tmp_path: Path) -> None:
    """Batches of 8, 3, 6 and 3 tokens: a mean of means would differ."""
    many = make_trainer(n_accumulate=4, max_updates=5, checkpoints=tmp_path / "many")
    one = make_trainer(batches=OneBatch(many.batches), max_updates=5, checkpoints=tmp_path / "one")
    many.run()
    one.run()
    for ours, expected in zip(weights(many), weights(one), strict=True):
        torch.testing.assert_close(ours, expected, rtol=0, atol=1e-10)


@pytest.mark.parametrize("cut", [0, 1, 2, 5, 6, 7])
def test_a_resumed_run_equals_one_that_was_never_stopped(make_trainer: MakeTrainer, tmp_path: Path, cut: int) -> None:
    """Interrupted in mid-epoch and mid-window, with dropout and accumulation across epochs: bitwise equal."""
    options: dict[str, Any] = {"p_drop": 0.4, "n_accumulate": 3, "max_updates": 8, "patience": 50}
    whole = make_trainer(checkpoints=tmp_path / "whole", listeners=[MetricsFile(tmp_path / "whole.jsonl")], **options)
    assert whole.run() == "max_updates"

    updates: list[Record] = []
    file = MetricsFile(tmp_path / "cut.jsonl")
    stopped = make_trainer(
        checkpoints=tmp_path / "cut",
        listeners=[file, lambda record: updates.append(record) if isinstance(record, UpdateRecord) else None],
        should_stop=lambda: len(updates) >= cut,
        **options,
    )
    assert stopped.run() == "interrupted"
    assert stopped.state.update == cut
    resumed = make_trainer(checkpoints=tmp_path / "cut", listeners=[file], **options)
    saved_paths = checkpoint_folders(tmp_path / "cut")
    assert bool(saved_paths) == (cut > 0)  # there is nothing to save before the first update
    if saved_paths:
        resumed.resume(saved_paths[-1])
    file.rewind(resumed.state)
    assert resumed.run() == "max_updates"

    for ours, expected in zip(resumed.model.parameters(), whole.model.parameters(), strict=True):
        assert torch.equal(ours, expected)
        for key, moment in whole.optimiser.state[expected].items():
            assert torch.equal(resumed.optimiser.state[ours][key], moment)
    assert records_in(tmp_path / "cut.jsonl") == records_in(tmp_path / "whole.jsonl")


@pytest.mark.parametrize("n_batches", [1, 4, 9])
def test_a_run_that_is_stopped_within_an_update_begins_it_anew(
    make_trainer: MakeTrainer, tmp_path: Path, n_batches: int
) -> None:
    """Updates of 5 batches: an interrupt must not wait for the whole update."""
    options: dict[str, Any] = {"p_drop": 0.4, "n_accumulate": 5, "max_updates": 4}
    whole = make_trainer(checkpoints=tmp_path / "whole", **options)
    whole.run()
    stopped = make_trainer(checkpoints=tmp_path / "cut", validate=None, **options)
    backward, n_made = stopped.accumulator._backward, 0

    def count(*arguments: Any, **further: Any) -> torch.Tensor:
        nonlocal n_made
        n_made += 1
        return backward(*arguments, **further)

    stopped.accumulator._backward = count  # type: ignore[method-assign]
    stopped.should_stop = lambda: n_made >= n_batches
    assert stopped.run() == "interrupted"
    assert (n_made, stopped.state.update) == (n_batches, n_batches // 5)
    assert all(weight.grad is None for weight in stopped.model.parameters())
    resumed = make_trainer(checkpoints=tmp_path / "cut", **options)
    saved_paths = checkpoint_folders(tmp_path / "cut")
    assert len(saved_paths) == n_batches // 5
    if saved_paths:
        resumed.resume(saved_paths[-1])
    assert resumed.run() == "max_updates"
    assert all(map(torch.equal, weights(resumed), weights(whole)))


def test_what_was_written_after_the_checkpoint_is_forgotten(make_trainer: MakeTrainer, tmp_path: Path) -> None:
    """A killed run has records past its last checkpoint; the resumed one writes them again, once."""
    file = MetricsFile(tmp_path / "metrics.jsonl")
    make_trainer(listeners=[file], max_updates=7).run()
    expected = records_in(file.path)
    trainer = make_trainer(listeners=[file], max_updates=7)
    trainer.resume(next(p for p in checkpoint_folders(trainer.checkpoints) if p.name.endswith("4")))
    file.rewind(trainer.state)
    assert max(record["update"] for record in records_in(file.path)) == 4
    trainer.run()
    assert records_in(file.path) == expected


@pytest.mark.parametrize("n_accumulate", [1, 3])
def test_a_loss_that_is_no_number_stops_before_the_update(make_trainer: MakeTrainer, n_accumulate: int) -> None:
    spoiled = Spoiled(make_trainer().batches, (1, 1))  # the sixth batch of the run
    trainer = make_trainer(n_accumulate=n_accumulate, batches=spoiled, checkpoint_every_updates=100)
    with pytest.raises(TrainingError, match=naming("loss", "nan", "toy batch 1", "epoch 1", re.compile(r"update \d"))):
        trainer.run()
    healthy = (6 - 1) // n_accumulate
    assert trainer.state.update == healthy
    assert all(weight.isfinite().all() for weight in trainer.model.parameters())
    assert read_state(checkpoint_folders(trainer.checkpoints)[-1]).update == healthy


def test_records_are_sums_over_tokens(make_trainer: MakeTrainer) -> None:
    seen: list[Record] = []
    trainer = make_trainer(listeners=[seen.append], max_updates=4, eps_ls=0.0)
    trainer.run()
    updates = [record for record in seen if isinstance(record, UpdateRecord)]
    assert [record.is_logged for record in updates] == [False, True, False, True]
    assert [record.tgt_tokens for record in updates] == [8, 11, 17, 20]
    assert updates[1].loss_nats == pytest.approx(updates[1].nll_nats)  # equal without label smoothing
    validations = [record for record in seen if isinstance(record, ValidationRecord)]
    assert [record.update for record in validations] == [3]
    assert validations[0].is_best
    assert validations[0].perplexity == pytest.approx(math.exp(validations[0].nll_nats))


def test_the_newest_and_the_best_checkpoints_are_kept(make_trainer: MakeTrainer) -> None:
    losses = iter([3.0, 1.0, 2.0, 2.0, 2.0])  # best at the second validation, update 4
    trainer = make_trainer(
        max_updates=10,
        validate_every_updates=2,
        checkpoint_every_updates=3,
        keep_checkpoints=2,
        average_last=2,
        validate=lambda should_stop: Validation(next(losses)),
    )
    trainer.run()
    assert trainer.state.best_update == 4
    kept = [int(path.name.removeprefix("update-")) for path in checkpoint_folders(trainer.checkpoints)]
    assert kept == [3, 4, 9, 10]  # two around the best, and the newest two
    causes = [read_state(path).cause for path in checkpoint_folders(trainer.checkpoints)]
    assert causes == ["schedule", "best", "schedule", "end"]


def test_checkpoints_do_not_pile_up_while_validation_improves(make_trainer: MakeTrainer) -> None:
    losses = iter(range(100, 0, -1))
    trainer = make_trainer(
        max_updates=30,
        validate_every_updates=1,
        checkpoint_every_updates=10,
        keep_checkpoints=2,
        average_last=2,
        validate=lambda should_stop: Validation(float(next(losses))),
    )
    trainer.run()
    kept = [read_state(path) for path in checkpoint_folders(trainer.checkpoints)]
    assert [(state.update, state.cause) for state in kept] == [(20, "schedule"), (30, "schedule")]


def test_the_end_of_a_run_is_averaged_even_where_it_is_the_best(make_trainer: MakeTrainer) -> None:
    losses = iter(range(100, 0, -1))
    trainer = make_trainer(
        max_updates=4,
        validate_every_updates=2,
        checkpoint_every_updates=100,
        validate=lambda should_stop: Validation(float(next(losses))),
    )
    trainer.run()
    (state,) = [read_state(path) for path in checkpoint_folders(trainer.checkpoints)]
    assert (state.update, state.cause) == (4, "end")
    assert averaged_checkpoints(trainer.checkpoints, 5) == checkpoint_folders(trainer.checkpoints)


@pytest.mark.parametrize("checkpoint_every", [2, 5, 100])
@pytest.mark.parametrize("by_clock", [False, True])
def test_the_end_is_compared_where_the_best_checkpoint_is_the_model(
    make_trainer: MakeTrainer, checkpoint_every: int, by_clock: bool
) -> None:
    """Between two validations too: the last updates have the lowest rates, and are often the best."""
    losses, seen = iter(range(100, 0, -1)), list[Record]()
    limits: dict[str, Any] = {"max_updates": 5}
    if by_clock:  # ten seconds an update
        clock = lambda: 10.0 * sum(isinstance(record, UpdateRecord) for record in seen)  # noqa: E731
        limits = {"max_updates": 100, "max_minutes": 1.0, "clock": clock}
    trainer = make_trainer(
        averaging="best", average_last=1, validate_every_updates=4, checkpoint_every_updates=checkpoint_every,
        validate=lambda should_stop: Validation(float(next(losses))), listeners=[seen.append], **limits,
    )  # fmt: skip
    trainer.run()
    end = trainer.state.update
    assert end % 4
    last = checkpoint_folders(trainer.checkpoints)[-1]
    assert (read_state(last).update, read_state(last).best_update, best_update(trainer.checkpoints)) == (end, end, end)
    assert checkpoints_around(trainer.checkpoints, end, 1, interval=checkpoint_every) == [last]


def test_what_is_compared_at_the_end_is_no_step_of_patience(make_trainer: MakeTrainer) -> None:
    options: dict[str, Any] = {"patience": 3, "validate_every_updates": 4}
    losses = iter([1.0, *range(2, 99)])
    for max_updates in (10, 40):
        trainer = make_trainer(
            max_updates=max_updates, validate=lambda should_stop: Validation(float(next(losses))), **options
        )
        if max_updates > 10:
            trainer.resume(checkpoint_folders(trainer.checkpoints)[-1])
        reason = trainer.run()
    assert (reason, trainer.state.update) == ("patience", 16)


def test_a_finished_run_whose_best_is_by_another_score_knows_none(make_trainer: MakeTrainer) -> None:
    options: dict[str, Any] = {"max_updates": 6, "validate_every_updates": 2, "averaging": "best"}
    make_trainer(**options).run()
    trainer = make_trainer(best_by="score", validate=scored([5.0], lower_is_better=False), **options)
    trainer.resume(checkpoint_folders(trainer.checkpoints)[-1])
    trainer.run()
    assert best_update(trainer.checkpoints) is None


def test_the_record_of_an_end_that_was_not_written_is_made_up_for(make_trainer: MakeTrainer, tmp_path: Path) -> None:
    """The process was killed between the last checkpoint and its record, or while the model was averaged."""
    file = MetricsFile(tmp_path / "metrics.jsonl")
    options: dict[str, Any] = {"max_updates": 5, "checkpoint_every_updates": 4, "listeners": [file]}
    make_trainer(**options).run()
    whole = records_in(file.path)
    trainer = make_trainer(**options)
    trainer.resume(checkpoint_folders(trainer.checkpoints)[-1])
    file.rewind(trainer.state)
    trainer.run()
    assert records_in(file.path) == whole


def test_an_interrupt_while_the_end_is_compared_loses_nothing(make_trainer: MakeTrainer) -> None:
    options: dict[str, Any] = {"averaging": "best", "average_last": 1, "max_updates": 5, "validate_every_updates": 4}
    trainer = make_trainer(**options)
    look = trainer.validate
    is_asked = False

    def validate(should_stop: Callable[[], bool]) -> Validation | None:
        nonlocal is_asked
        is_asked = trainer.state.update == 5
        return None if is_asked else look(should_stop)

    trainer.validate, trainer.should_stop = validate, lambda: is_asked
    assert trainer.run() == "interrupted"
    resumed = make_trainer(**options)
    resumed.resume(checkpoint_folders(trainer.checkpoints)[-1])
    assert resumed.run() == "max_updates"
    assert resumed.state.validated_update == 5


@pytest.mark.parametrize("max_updates", [4, 8])
def test_a_scheduled_checkpoint_that_becomes_the_best_stays_in_the_average(
    make_trainer: MakeTrainer, max_updates: int
) -> None:
    """The resumed run validates at updates at which the run before did not."""
    make_trainer(max_updates=4, validate_every_updates=100).run()
    trainer = make_trainer(max_updates=max_updates, validate_every_updates=2)
    trainer.resume(trainer.checkpoints / "update-00000004")
    trainer.run()
    state = read_state(trainer.checkpoints / "update-00000004")
    assert (state.cause, state.best_update) == ("schedule", 4)


def test_what_a_killed_process_left_is_swept_away(make_trainer: MakeTrainer) -> None:
    trainer = make_trainer(max_updates=4)
    for name in (".update-00000002.77.tmp", ".update-00000001.old"):
        (trainer.checkpoints / name).mkdir(parents=True)
    trainer.run()
    assert [path.name for path in sorted(trainer.checkpoints.iterdir())] == ["update-00000003", "update-00000004"]


def test_a_torn_last_record_is_forgotten_and_a_strange_one_named(tmp_path: Path) -> None:
    file = MetricsFile(tmp_path / "metrics.jsonl")
    file.path.write_text('{"kind": "update", "update": 1}\n{"kind": "upd')
    file.rewind(TrainState(update=5))
    assert file.path.read_text() == '{"kind": "update", "update": 1}\n'
    file.path.write_text('oops\n{"kind": "update", "update": 1}\n')
    with pytest.raises(DataError, match=naming("metrics.jsonl:1")):
        file.rewind(TrainState(update=5))


def test_too_little_memory_names_what_to_change(make_trainer: MakeTrainer) -> None:
    def objective(batch: Any, update: int) -> Any:
        raise torch.OutOfMemoryError("CUDA out of memory")

    with pytest.raises(TrainingError, match=naming("training.max_tokens_per_batch=12500")):
        make_trainer(objective=objective).run()


def test_the_rate_is_that_of_this_sitting(make_trainer: MakeTrainer, tmp_path: Path) -> None:
    """The clock ticks at each reading: after an interrupt, the window counts only tokens of this session."""
    seen: list[Record] = []
    options: dict[str, Any] = {"log_every_updates": 4, "validate": None, "checkpoints": tmp_path / "c"}
    first = make_trainer(max_updates=3, **options)
    first.run()
    second = make_trainer(max_updates=4, listeners=[seen.append], clock=iter(range(10**6)).__next__, **options)
    second.resume(checkpoint_folders(tmp_path / "c")[-1])
    second.run()
    (record,) = [record for record in seen if isinstance(record, UpdateRecord)]
    assert record.is_logged
    assert record.tgt_tokens == 20
    assert record.tgt_tokens_per_s <= 3.0  # the last batch has 3 tokens and took at least one tick


def test_patience_ends_a_run(make_trainer: MakeTrainer) -> None:
    losses = iter([1.0, 2.0, 1.5, 0.5, 2.0])
    trainer = make_trainer(
        max_updates=99, validate_every_updates=2, patience=2, validate=lambda should_stop: Validation(next(losses))
    )
    assert trainer.run() == "patience"
    assert trainer.state.update == 6


def scored(values: list[float], *, lower_is_better: bool) -> Callable[..., Validation]:
    """A validation whose loss always improves, with a score of these values."""
    losses, of_score = iter(range(99, 0, -1)), iter(values)
    return lambda should_stop: Validation(
        float(next(losses)), {"score": Score(next(of_score), lower_is_better=lower_is_better)}
    )


@pytest.mark.parametrize(
    ("values", "lower_is_better", "best", "end"),
    [
        ([1.0, 3.0, 2.0, 3.0, 9.0], False, 4, 8),  # an equal value is not better
        ([3.0, 1.0, 2.0, 1.0, 0.0], True, 4, 8),
        ([math.nan, -1.0, math.inf, math.nan, 9.0], False, 4, 8),  # what is no number is never the best
        ([0.0, 0.0, 0.0], False, 2, 6),
        ([1.0, 2.0, 3.0, 4.0, 5.0, 6.0], False, 12, 12),
    ],
)
def test_patience_on_a_score(
    make_trainer: MakeTrainer, values: list[float], lower_is_better: bool, best: int, end: int
) -> None:
    trainer = make_trainer(
        max_updates=12, validate_every_updates=2, patience=2, best_by="score",
        validate=scored(values, lower_is_better=lower_is_better),
    )  # fmt: skip
    assert trainer.run() == ("patience" if end < 12 else "max_updates")
    assert (trainer.state.best_update, trainer.state.update) == (best, end)
    assert trainer.state.best_value == values[best // 2 - 1]


def test_a_score_that_no_validation_gives_is_named(make_trainer: MakeTrainer) -> None:
    trainer = make_trainer(best_by="blue", validate=scored([1.0], lower_is_better=False))
    with pytest.raises(TrainingError, match=naming("'blue'", "loss", "perplexity", "score")):
        trainer.run()
    assert read_state(checkpoint_folders(trainer.checkpoints)[-1]).update == 3


def as_first_written(state: Path, **changes: object) -> None:
    """Rewrite a state as the versions that knew only the loss wrote it."""
    values = json.loads(state.read_text())
    assert values.pop("best_by") == "loss"
    values |= {"format": 1, "best_nll_nats": values.pop("best_value"), **changes}
    state.write_text(json.dumps(values))
    write_manifest(state.parent)


def test_a_run_of_an_earlier_version_goes_on_to_the_bit(make_trainer: MakeTrainer, tmp_path: Path) -> None:
    """Its best value, and how long there was none better, count on."""
    options: dict[str, Any] = {"validate_every_updates": 1, "checkpoint_every_updates": 1, "patience": 3, "p_drop": 0.4}
    losses = [3.0, 2.0, 2.5, 2.0, 2.1, 9.0]

    def made(max_updates: int, folder: str, losses: list[float]) -> Any:
        values = iter(losses)
        return make_trainer(
            max_updates=max_updates, checkpoints=tmp_path / folder, validate=lambda stop: Validation(next(values)),
            **options,
        )  # fmt: skip

    whole, first = made(9, "whole", losses), made(3, "cut", losses)
    assert whole.run() == "patience"
    first.run()
    for path in checkpoint_folders(first.checkpoints):
        as_first_written(path / "state.json")
    second = made(9, "cut", losses[3:])
    second.resume(checkpoint_folders(first.checkpoints)[-1])
    assert second.run() == "patience"
    assert (second.state.update, second.state.best_update, second.state.best_value) == (5, 2, 2.0)
    assert [state_of(path) for path in checkpoint_folders(second.checkpoints)] == [
        state_of(path) for path in checkpoint_folders(whole.checkpoints)
    ]
    assert all(map(torch.equal, weights(second), weights(whole)))


def state_of(path: Path) -> TrainState:
    return dataclasses.replace(read_state(path), elapsed_s=0.0)


def test_what_is_the_best_by_another_score_is_not_known(make_trainer: MakeTrainer) -> None:
    first = make_trainer(max_updates=4, validate_every_updates=2)
    first.run()
    assert first.state.best_update == 4
    second = make_trainer(
        max_updates=6, validate_every_updates=2, best_by="score", validate=scored([5.0], lower_is_better=False)
    )
    second.resume(checkpoint_folders(first.checkpoints)[-1])
    assert (second.state.best_value, second.state.best_update, second.state.validations_without_gain) == (None, None, 0)
    second.run()
    assert (second.state.best_value, second.state.best_update) == (5.0, 6)


def test_minutes_end_a_run_and_time_goes_on_after_a_resume(make_trainer: MakeTrainer) -> None:
    now = iter(range(10**6))
    trainer = make_trainer(max_updates=10**6, max_minutes=2.0, clock=lambda: float(next(now)), validate=None)
    assert trainer.run() == "max_minutes"
    assert trainer.state.elapsed_s >= 120
    again = make_trainer(max_updates=10**6, max_minutes=2.0, clock=lambda: float(next(now)), validate=None)
    again.resume(checkpoint_folders(trainer.checkpoints)[-1])
    assert again.run() == "max_minutes"
    assert again.state.update == trainer.state.update


def test_clipping_bounds_the_step_and_reports_the_norm_before_it(make_trainer: MakeTrainer, tmp_path: Path) -> None:
    seen: list[Record] = []
    trainer = make_trainer(clip_norm=1e-3, max_updates=1, listeners=[seen.append])
    trainer.run()
    clipped = torch.stack([weight.grad.norm() for weight in trainer.model.parameters()]).norm()
    assert clipped.item() == pytest.approx(1e-3, rel=1e-3)
    norms = [record.gradient_norm for record in seen if isinstance(record, UpdateRecord)]
    assert norms[0] > 1e-2


def test_adam_is_the_paper_s(make_trainer: MakeTrainer) -> None:
    """Two steps of Adam by hand, in NumPy float64, from the same gradients."""
    trainer = make_trainer(max_updates=2, checkpoint_every_updates=1)
    weight = next(trainer.model.parameters())
    expected, m, v = weight.detach().clone(), torch.zeros_like(weight), torch.zeros_like(weight)

    def follow(record: Record) -> None:
        nonlocal expected, m, v
        if not isinstance(record, UpdateRecord):
            return
        gradient, t = weight.grad.clone(), record.update
        m, v = 0.9 * m + 0.1 * gradient, 0.98 * v + 0.02 * gradient**2
        step = 0.05 / t**0.5 * (m / (1 - 0.9**t)) / ((v / (1 - 0.98**t)).sqrt() + 1e-9)
        expected = expected - step

    trainer.listeners = [follow]
    trainer.run()
    torch.testing.assert_close(weight.detach(), expected.detach(), rtol=1e-9, atol=1e-12)


def test_updates_that_are_not_finite_are_left_out_as_often_as_allowed(make_trainer: MakeTrainer) -> None:
    """A skipped batch changes no weight; one skip more than the maximum stops the run, which can be resumed."""
    seen: list[Record] = []
    toy = make_trainer().batches
    options: dict[str, Any] = {"batches": Spoiled(toy, (0, 2), (1, 1)), "p_drop": 0.3, "checkpoint_every_updates": 5}
    trainer = make_trainer(max_skipped_updates=2, listeners=[seen.append], **options)
    assert trainer.run() == "max_updates"
    assert (trainer.state.n_skipped, trainer.state.update, trainer.state.next_batch) == (2, 8, 2)
    skips = [record for record in seen if isinstance(record, SkipRecord)]
    assert [record.update for record in skips] == [2, 4]
    assert says(skips[0].message, "update 3", "loss", "nan", "toy batch 2", "epoch 0", 1, 2)
    last = [record for record in seen if isinstance(record, UpdateRecord)][-1]
    assert last.tgt_tokens == (8 + 3 + 3) + (3 + 3 + 8) + (6 + 3)

    stopped = make_trainer(
        max_skipped_updates=1, checkpoints=trainer.checkpoints.parent / "other" / "checkpoints", **options
    )
    with pytest.raises(TrainingError, match=naming("update 5", "loss", "nan", 1)):
        stopped.run()
    resumed = make_trainer(max_skipped_updates=2, checkpoints=stopped.checkpoints, **options)
    resumed.resume(checkpoint_folders(stopped.checkpoints)[-1])
    assert (resumed.state.update, resumed.state.n_skipped, resumed.state.cause) == (4, 1, "stop")
    resumed.run()
    for ours, expected in zip(weights(resumed), weights(trainer), strict=True):
        assert torch.equal(ours, expected)


def test_a_batch_that_is_not_finite_is_kept_with_what_is_known(make_trainer: MakeTrainer) -> None:
    trainer = make_trainer(batches=Spoiled(make_trainer().batches, (0, 3)), n_accumulate=4)
    with pytest.raises(TrainingError, match=naming("toy batch 3", "epoch 0", re.compile("not-finite"))):
        trainer.run()
    (folder,) = (trainer.checkpoints.parent / "not-finite").iterdir()
    assert sorted(path.name for path in folder.iterdir()) == ["report.json", "share-3.safetensors"]
    tensors = read_tensors(folder / "share-3.safetensors")
    assert tensors["x_ND"].isnan().all()
    assert torch.equal(tensors["targets_N"], trainer.batches.batch(0, 3).targets_N)
    report = json.loads((folder / "report.json").read_text(encoding="utf-8"))
    assert report["losses_nats"][3] == "nan"
    assert math.isfinite(float(report["losses_nats"][0]))
    assert report["batches"] == [{"epoch": 0, "index": index} for index in range(4)]


def test_a_gradient_that_is_not_finite_keeps_all_batches(make_trainer: MakeTrainer) -> None:
    trainer = make_trainer(n_accumulate=2)
    trainer.model.outer.register_hook(lambda gradient: gradient * math.inf)
    with pytest.raises(TrainingError, match=naming("gradient", re.compile("nan|inf"), "toy batch 0", "toy batch 1")):
        trainer.run()
    (folder,) = (trainer.checkpoints.parent / "not-finite").iterdir()
    assert len(list(folder.glob("*.safetensors"))) == 2


@pytest.mark.parametrize("stopped_at", [3, 6, 9])
def test_a_validation_that_is_interrupted_is_done_after_the_resume(
    make_trainer: MakeTrainer, tmp_path: Path, stopped_at: int
) -> None:
    whole = make_trainer(
        max_updates=9, checkpoints=tmp_path / "whole", listeners=[MetricsFile(tmp_path / "whole.jsonl")]
    )
    whole.run()
    file = MetricsFile(tmp_path / "cut.jsonl")
    stopped = make_trainer(max_updates=9, checkpoints=tmp_path / "cut", listeners=[file])
    look, is_asked = stopped.validate, False

    def validate(should_stop: Callable[[], bool]) -> Validation | None:
        nonlocal is_asked
        is_asked = stopped.state.update == stopped_at
        return None if should_stop() else look(should_stop)

    stopped.validate, stopped.should_stop = validate, lambda: is_asked
    assert stopped.run() == "interrupted"
    assert (stopped.state.update, stopped.state.validated_update) == (stopped_at, stopped_at - 3 or None)
    resumed = make_trainer(max_updates=9, checkpoints=tmp_path / "cut", listeners=[file])
    resumed.resume(checkpoint_folders(tmp_path / "cut")[-1])
    file.rewind(resumed.state)
    resumed.run()
    assert records_in(tmp_path / "cut.jsonl") == records_in(tmp_path / "whole.jsonl")
    for ours, expected in zip(weights(resumed), weights(whole), strict=True):
        assert torch.equal(ours, expected)


def test_a_longer_run_is_as_if_it_had_never_ended(make_trainer: MakeTrainer, tmp_path: Path) -> None:
    """The ``end`` checkpoint of the shorter run is neither recorded nor averaged in the longer one."""
    options: dict[str, Any] = {"p_drop": 0.3, "checkpoint_every_updates": 2, "keep_checkpoints": 9}
    whole = make_trainer(
        checkpoints=tmp_path / "w", max_updates=9, listeners=[MetricsFile(tmp_path / "w.jsonl")], **options
    )
    whole.run()
    file = MetricsFile(tmp_path / "p.jsonl")
    for max_updates in (5, 9):
        part = make_trainer(checkpoints=tmp_path / "p", max_updates=max_updates, listeners=[file], **options)
        if max_updates > 5:
            part.resume(checkpoint_folders(tmp_path / "p")[-1])
            file.rewind(part.state)
        part.run()
    assert records_in(tmp_path / "p.jsonl") == records_in(tmp_path / "w.jsonl")
    averaged = [[path.name for path in averaged_checkpoints(tmp_path / name, 4)] for name in ("p", "w")]
    assert averaged[0] == averaged[1] == [f"update-0000000{update}" for update in (4, 6, 8, 9)]


def test_trying_the_largest_batch_leaves_no_trace(make_trainer: MakeTrainer) -> None:
    trainer = make_trainer(max_updates=1)
    before, random_state = weights(trainer), torch.get_rng_state()
    memory_preflight(trainer.accumulator, trainer.optimiser, epoch=0)
    assert torch.equal(torch.get_rng_state(), random_state)
    assert all(weight.grad is None for weight in trainer.model.parameters())
    assert not trainer.optimiser.state
    for ours, expected in zip(weights(trainer), before, strict=True):
        assert torch.equal(ours, expected)


@pytest.mark.parametrize(("checkpoint_every", "cause"), [(2, "schedule"), (100, "best")])
def test_a_skip_and_a_stop_leave_the_records_of_a_run_that_was_not_stopped(
    make_trainer: MakeTrainer, tmp_path: Path, checkpoint_every: int, cause: str
) -> None:
    """The skip follows a ``schedule`` or ``best`` checkpoint directly; then the run is interrupted."""
    options: dict[str, Any] = {
        "batches": Spoiled(make_trainer().batches, (0, 2)),
        "max_skipped_updates": 5,
        "checkpoint_every_updates": checkpoint_every,
        "validate_every_updates": 2,
    }
    file = MetricsFile(tmp_path / "whole.jsonl")
    make_trainer(checkpoints=tmp_path / "whole", listeners=[file], **options).run()
    file = MetricsFile(tmp_path / "cut.jsonl")
    skips: list[Record] = []
    stopped = make_trainer(
        checkpoints=tmp_path / "cut",
        listeners=[file, lambda record: skips.append(record) if isinstance(record, SkipRecord) else None],
        should_stop=lambda: bool(skips),
        **options,
    )
    assert stopped.run() == "interrupted"
    (checkpoint,) = checkpoint_folders(stopped.checkpoints)
    assert read_state(checkpoint).cause == cause
    resumed = make_trainer(checkpoints=stopped.checkpoints, listeners=[file], **options)
    resumed.resume(checkpoint)
    file.rewind(resumed.state)
    resumed.run()
    ours, expected = (records_in(tmp_path / f"{name}.jsonl") for name in ("cut", "whole"))
    for record in [*ours, *expected]:
        if record["kind"] == "skipped":
            del record["message"]  # contains the folder of the run
    assert ours == expected


def test_a_stop_at_the_last_update_is_a_stop(make_trainer: MakeTrainer) -> None:
    trainer = make_trainer(max_updates=3, should_stop=lambda: trainer.state.update == 3)
    assert trainer.run() == "interrupted"
    resumed = make_trainer(max_updates=3, checkpoints=trainer.checkpoints)
    resumed.resume(checkpoint_folders(trainer.checkpoints)[-1])
    assert resumed.run() == "max_updates"
    assert read_state(checkpoint_folders(trainer.checkpoints)[-1]).cause == "end"


def test_a_damaged_newest_checkpoint_does_not_cost_those_that_follow(make_trainer: MakeTrainer) -> None:
    first = make_trainer(max_updates=8, checkpoint_every_updates=2, keep_checkpoints=2, average_last=2, validate=None)
    first.run()
    (first.checkpoints / "update-00000008" / "model.safetensors").write_bytes(b"")
    messages: list[str] = []
    chosen = newest_complete(first.checkpoints, messages.append)
    assert chosen is not None
    assert chosen.name == "update-00000006"
    assert says(messages[0], re.compile("^warning: "), "update-00000008")
    set_aside_newer(chosen)
    again = make_trainer(
        max_updates=8, checkpoint_every_updates=2, keep_checkpoints=2, average_last=2, validate=None,
        should_stop=lambda: again.state.update == 7,
    )  # fmt: skip
    again.resume(chosen)
    assert again.run() == "interrupted"
    assert [path.name for path in checkpoint_folders(first.checkpoints)] == ["update-00000006", "update-00000007"]
    assert (first.checkpoints / "passed-over-update-00000008").exists()


def test_a_checkpoint_that_was_being_replaced_comes_back(make_trainer: MakeTrainer, tmp_path: Path) -> None:
    """Killed between the two renames: the old checkpoint is moved away, the new one is not in place."""
    trainer = make_trainer(max_updates=4)
    trainer.run()
    newest = checkpoint_folders(trainer.checkpoints)[-1]
    newest.rename(newest.with_name(f".{newest.name}.{os.getppid()}.old"))  # the id of a live process
    shutil.copytree(
        trainer.checkpoints / f".{newest.name}.{os.getppid()}.old", newest.with_name(f".{newest.name}.7.tmp")
    )
    assert newest_complete(trainer.checkpoints, print) == newest


def test_weights_that_are_not_finite_are_not_saved(make_trainer: MakeTrainer) -> None:
    rates = {4: 1e308}
    trainer = make_trainer(max_updates=8, checkpoint_every_updates=2, learning_rate=lambda step: rates.get(step, 0.1))
    with pytest.raises(TrainingError, match=naming("update 4", "finite", "update 3")):
        trainer.run()
    assert [path.name for path in checkpoint_folders(trainer.checkpoints)] == ["update-00000002", "update-00000003"]


def test_a_validation_that_is_no_number_is_never_the_best(make_trainer: MakeTrainer) -> None:
    losses = iter([math.nan, 2.0, math.inf, 1.0])
    trainer = make_trainer(
        max_updates=8, validate_every_updates=2, validate=lambda should_stop: Validation(next(losses))
    )
    trainer.run()
    assert (trainer.state.best_update, trainer.state.best_value) == (8, 1.0)


@pytest.mark.parametrize(
    ("error", "facts"),
    [(torch.OutOfMemoryError("CUDA out of memory"), ["update 3"]), (SearchError("no number"), ["no number"])],
)
def test_a_validation_that_fails_costs_no_update(make_trainer: MakeTrainer, error: Exception, facts: list[str]) -> None:
    def validate(should_stop: Callable[[], bool]) -> Validation:
        raise error

    trainer = make_trainer(max_updates=8, checkpoint_every_updates=100, validate=validate)
    with pytest.raises((TrainingError, SearchError), match=naming(*facts)):
        trainer.run()
    assert read_state(checkpoint_folders(trainer.checkpoints)[-1]).update == 3

"""Which checkpoints are averaged: the last ones, or those around one; and that the rotation keeps them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from said import naming
from transduce.errors import CheckpointError
from transduce.training import TrainState, averaged_checkpoints, checkpoints_around, read_state
from transduce.training.averaging import remove_old_checkpoints
from transduce.training.checkpoint import STATE_FILE, CheckpointTrigger, checkpoint_path

pytestmark = pytest.mark.reliability


def save(folder: Path, update: int, cause: CheckpointTrigger = "schedule", best: int | None = None) -> None:
    """Write the part of a checkpoint that tells when and why it was written."""
    path = checkpoint_path(folder, update)
    path.mkdir(parents=True, exist_ok=True)
    state = TrainState(update=update, cause=cause, best_update=best)
    (path / STATE_FILE).write_text(json.dumps({"format": 2, **asdict(state)}))


def updates(paths: Sequence[Path]) -> list[int]:
    return [read_state(path).update for path in paths]


@pytest.mark.parametrize(
    ("around", "n", "expected"),
    [
        (50, 1, [50]),
        (50, 2, [40, 50]),
        (50, 3, [40, 50, 60]),
        (50, 4, [30, 40, 50, 60]),
        (50, 5, [30, 40, 50, 60, 70]),
        (90, 5, [50, 60, 70, 80, 90]),  # the last: as the last five
        (80, 5, [50, 60, 70, 80, 90]),
        (10, 5, [10, 20, 30]),  # the first: no more after it than otherwise
        (20, 5, [10, 20, 30, 40]),
        (50, 99, [10, 20, 30, 40, 50, 60, 70, 80, 90]),
    ],
)
def test_around_a_checkpoint(tmp_path: Path, around: int, n: int, expected: list[int]) -> None:
    for update in range(10, 100, 10):
        save(tmp_path, update)
    assert updates(checkpoints_around(tmp_path, around, n, interval=10)) == expected


def test_only_what_counts_in_an_average_is_around(tmp_path: Path) -> None:
    """Beside it, validations that were better once and interrupted runs do not count; the end does."""
    for update, cause in ((10, "schedule"), (15, "best"), (20, "schedule"), (25, "best"), (27, "stop"), (29, "end")):
        save(tmp_path, update, cause)  # type: ignore[arg-type]
    assert updates(checkpoints_around(tmp_path, 25, 5, interval=10)) == [10, 20, 25, 29]
    assert updates(checkpoints_around(tmp_path, 27, 1, interval=10)) == [27]
    assert updates(averaged_checkpoints(tmp_path, 5)) == [10, 20, 29]


def test_a_gap_ends_what_is_around(tmp_path: Path) -> None:
    """Earlier versions kept only the best one itself of those that were not the newest."""
    for update in (120, 280, 320, 360, 400, 440):
        save(tmp_path, update)
    assert updates(checkpoints_around(tmp_path, 120, 5, interval=40)) == [120]
    assert updates(checkpoints_around(tmp_path, 320, 5, interval=40)) == [280, 320, 360, 400]


def test_a_checkpoint_that_is_not_there_is_named(tmp_path: Path) -> None:
    save(tmp_path, 10), save(tmp_path, 20)
    with pytest.raises(CheckpointError, match=naming(tmp_path, 15, 10, 20)):
        checkpoints_around(tmp_path, 15, 3, interval=10)


@settings(max_examples=20)
@given(
    st.lists(st.integers(0, 5), min_size=1, max_size=20), st.integers(1, 4), st.integers(1, 4), st.integers(1, 6),
    st.integers(0, 3), st.booleans(),
)  # fmt: skip
@example([3, 1, *[2] * 9], 1, 1, 3, 0, False)  # the best is earlier than the newest that are kept
@example([5, 4, 3, 1, 2, 2, 2, 2, 2, 2, 2, 2, 2], 2, 1, 4, 1, True)  # and not of the schedule
def test_the_rotation_keeps_what_is_averaged(
    losses: list[int], checkpoint_every: int, validate_every: int, n: int, n_more: int, has_end: bool
) -> None:
    """At every moment of any run, the last n and those around the best are those of a run that removes nothing."""
    with TemporaryDirectory() as place:
        folders = rotated, _ = Path(place, "rotated"), Path(place, "whole")
        best, best_loss = None, 9
        for update, loss in enumerate(losses, start=1):
            is_scheduled, is_end = update % checkpoint_every == 0, has_end and update == len(losses)
            is_best = update % validate_every == 0 and loss < best_loss
            if is_best:
                best, best_loss = update, loss
            if not (is_scheduled or is_best or is_end):
                continue
            for folder in folders:
                save(folder, update, "schedule" if is_scheduled else "end" if is_end else "best", best)
            remove_old_checkpoints(rotated, keep=n + n_more, best_update=best, n_around=n, interval=checkpoint_every)
            last, all_last = (updates(averaged_checkpoints(folder, n)) for folder in folders)
            assert last == all_last
            if best is not None:
                around, all_around = (
                    updates(checkpoints_around(folder, best, n, interval=checkpoint_every)) for folder in folders
                )
                assert around == all_around
                assert best in around
            assert len(list(rotated.glob("*"))) <= 2 * n + n_more + 1

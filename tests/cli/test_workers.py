"""Worker processes of ``translate --workers``: what happens when one fails."""

from __future__ import annotations

from pathlib import Path

import pytest

from said import naming
from transduce.cli.translation_workers import TranslationJob, TranslationWorkers
from transduce.errors import CheckpointError, TransduceError


def job(folder: Path, n_workers: int) -> TranslationJob:
    return TranslationJob(
        [folder], "cpu", "fp32", None, 0.0, {}, None, "", split=True, is_scored=False, is_linked=False, chunk_lines=1,
        n_workers=n_workers,
    )  # fmt: skip


@pytest.mark.merge
def test_a_worker_that_dies_is_reported(micro_model: Path) -> None:
    with TranslationWorkers(job(micro_model, 2)) as workers:
        assert workers.wait_until_loaded() == 1024
        stream = workers.translate_lines(["The dog sleeps."] * 6)
        next(stream)
        workers._pool._workers[1].end()
        with pytest.raises(TransduceError, match=naming("worker", "SIGKILL", "memory")):
            list(stream)


@pytest.mark.merge
def test_a_worker_raises_the_error_of_the_command(tmp_path: Path) -> None:
    with TranslationWorkers(job(tmp_path, 1)) as workers, pytest.raises(CheckpointError, match=naming(tmp_path)):
        workers.wait_until_loaded()

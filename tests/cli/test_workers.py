"""Worker processes of ``translate --workers``: what happens when one fails."""

from __future__ import annotations

from pathlib import Path

import pytest

from said import naming
from transduce.bulk import TranslationJob, TranslationWorkers
from transduce.config.decoding import LoadingOptions
from transduce.errors import CheckpointError, TransduceError


def team(folder: Path, n_workers: int) -> TranslationWorkers:
    return TranslationWorkers(TranslationJob(LoadingOptions([folder]), chunk_lines=1), n_workers)


@pytest.mark.merge
def test_a_worker_that_dies_is_reported(micro_model: Path) -> None:
    with team(micro_model, 2) as workers:
        assert workers.wait_until_loaded() == 1024
        stream = workers.translate_lines(["The dog sleeps."] * 6)
        next(stream)
        workers._pool._workers[1].end()
        with pytest.raises(TransduceError, match=naming("worker", "SIGKILL", "memory")):
            list(stream)


@pytest.mark.merge
def test_a_worker_raises_the_error_of_the_command(tmp_path: Path) -> None:
    with team(tmp_path, 1) as workers, pytest.raises(CheckpointError, match=naming(tmp_path)):
        workers.wait_until_loaded()

"""Worker processes of ``translate --workers``: what they reply, and what happens when one fails."""

from __future__ import annotations

from dataclasses import MISSING, fields
from pathlib import Path
from typing import Any

import pytest

from said import naming
from transduce.bulk import TranslationJob, TranslationWorkers
from transduce.bulk.replies import pack_translations, unpack_translations
from transduce.config.decoding import LoadingOptions
from transduce.errors import CheckpointError, TransduceError
from transduce.inference import ScoredText, Translation
from transduce.inference.threads import n_usable_threads
from transduce.memories import Match
from transduce.text.pieces import Tag


def team(folder: Path, n_workers: int) -> TranslationWorkers:
    return TranslationWorkers(TranslationJob(LoadingOptions([folder]), chunk_lines=1), n_workers)


def test_all_of_a_translation_is_replied() -> None:
    whole = Translation(
        "A dog.", (ScoredText("Ein Hund.", -1.5), ScoredText("Hund.", -2.0)), ("terms", "unlike"), 2, ((0, 0), (1, 1)),
        (Match("A dog.", "Ein Hund.", 1.0, is_in_context=True),), (("Ein", -0.5), ("Hund.", -1.0)),
        (Tag("open", 1, "<b>"), "Ein", Tag("close", 1, "</b>"), " Hund."),
    )  # fmt: skip
    assert [each.name for each in fields(Translation) if getattr(whole, each.name) in (each.default, MISSING)] == []
    assert unpack_translations(pack_translations([whole, Translation("", whole.n_best)])) == [
        whole, Translation("", whole.n_best)
    ]  # fmt: skip


@pytest.mark.parametrize(("n_threads", "n_workers", "each"), [(5, 2, "2"), (2, 3, "1")])
def test_workers_share_the_cores(monkeypatch: pytest.MonkeyPatch, n_threads: int, n_workers: int, each: str) -> None:
    monkeypatch.setattr("os.sched_getaffinity", lambda process: range(n_threads), raising=False)
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    environment = team(Path("model"), n_workers)._environment
    assert environment == {"OMP_NUM_THREADS": each, "MKL_NUM_THREADS": each}
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert n_usable_threads() == int(each)


@pytest.mark.merge
def test_workers_tell_what_a_memory_has(micro_model: Path, tmp_path: Path, transduce: Any) -> None:
    memory, text = tmp_path / "memory.tsv", tmp_path / "text.en"
    memory.write_text("The dog sleeps.\tDer Hund ruht.\n", encoding="utf-8")
    text.write_text("The dog sleeps.\nThe dog sleeps not.\nA cat.\n", encoding="utf-8")
    asked = ("translate", micro_model, "--memory", memory, "--in", text, "--json")
    alone, shared = transduce(*asked), transduce(*asked, "--workers", 2)
    assert (shared.code, shared.out) == (0, alone.out)
    assert [line for line in shared.err.splitlines() if line.startswith("memory:")] == [
        line for line in alone.err.splitlines() if line.startswith("memory:")
    ]


@pytest.mark.merge
def test_a_worker_that_dies_is_reported(micro_model: Path) -> None:
    with team(micro_model, 2) as workers:
        assert workers.wait_until_loaded() == 1024
        stream = workers.translate_lines(["The dog sleeps."] * 6)
        next(stream)
        workers._workers[1].end()
        with pytest.raises(TransduceError, match=naming("worker", "SIGKILL", "memory")):
            list(stream)


@pytest.mark.merge
def test_a_worker_raises_the_error_of_the_command(tmp_path: Path) -> None:
    with team(tmp_path, 1) as workers, pytest.raises(CheckpointError, match=naming(tmp_path)):
        workers.wait_until_loaded()

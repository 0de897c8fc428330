"""Every registered task passes the checks of ``task_suite``; its recipe is a row of ``small_recipes``."""

from __future__ import annotations

from pathlib import Path

import pytest

import task_suite as suite
from small_recipes import SMALL_TASKS, SmallRuns
from transduce.tasks import TASKS

every_task = pytest.mark.parametrize("task", [task.name for task in SMALL_TASKS])


def test_every_registered_task_has_a_small_recipe() -> None:
    assert sorted(task.name for task in SMALL_TASKS) == sorted(TASKS)


@every_task
def test_its_data_are_a_function_of_the_settings(small_runs: SmallRuns, task: str, tmp_path: Path) -> None:
    suite.check_data(small_runs[task], tmp_path)


@every_task
def test_it_trains(small_runs: SmallRuns, task: str) -> None:
    suite.check_training(small_runs[task])


@every_task
def test_it_resumes_to_the_bit(small_runs: SmallRuns, task: str, tmp_path: Path) -> None:
    suite.check_resume(small_runs[task], tmp_path)


@every_task
def test_it_refuses_what_does_not_fit(small_runs: SmallRuns, task: str, tmp_path: Path) -> None:
    suite.check_refusals(small_runs[task], tmp_path)


@every_task
def test_the_doctor_has_nothing_against_it(small_runs: SmallRuns, task: str) -> None:
    suite.check_doctor(small_runs[task])


@every_task
def test_its_card_tells_task_data_and_scores(small_runs: SmallRuns, task: str) -> None:
    suite.check_card(small_runs[task])


@every_task
def test_it_loads(small_runs: SmallRuns, task: str) -> None:
    other = "causal-lm" if task in ("translation", "mask-predict") else "translation"
    suite.check_loading(small_runs[task], small_runs[other])


@every_task
def test_it_evaluates(small_runs: SmallRuns, task: str) -> None:
    suite.check_evaluation(small_runs[task])

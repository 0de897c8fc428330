"""The record of a run that has ended: its sizes, its cost and its scores."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from transduce.config import RunConfig, Split
from transduce.errors import DataError
from transduce.files import sha256_of_file
from transduce.inference import WEIGHTS_FILE, read_model_folder
from transduce.metrics import TOKENISED_BLEUS
from transduce.model import cost_of
from transduce.runs import CHECKPOINTS, RunResult, dev_perplexity
from transduce.tasks import Prepared, task_of
from transduce.training import newest_complete, read_state
from transduce_paper.machine import machine_description
from transduce_paper.run_records import Experiment, RunRecord, name_of, without_paths
from transduce_paper.training_curves import last_fall

__all__ = ["record_of"]


def record_of(
    experiment: Experiment,
    config: RunConfig,
    prepared: Prepared,
    folder: Path,
    result: RunResult,
    *,
    device: torch.device,
    flops: float,
    runs_at_once: int,
    text_name: Callable[[str], str],
    log: Callable[[str], None],
) -> RunRecord:
    """Score the model of a run folder on dev and test, and make the record of the run.

    ``config`` is that of the run on this machine, ``flops`` the FLOP/s of large matrix products, measured before it,
    ``runs_at_once`` the number of runs that shared the machine, and ``text_name`` gives the recorded name of a text.
    Raises DataError without a dev text or checkpoints.
    """
    newest = newest_complete(folder / CHECKPOINTS, log)
    if newest is None:
        raise DataError(f"{folder / CHECKPOINTS} is empty although the run has ended; delete {folder} to run again")
    state = read_state(newest)
    model_folder = folder / "model"
    sizes = prepared.tokenizers.sizes
    cost = cost_of(task_of(config).model_config(config.model, *sizes))
    n_tokens = task_of(config).n_flop_tokens(state.src_tokens, state.tgt_tokens)
    splits: tuple[Split, ...] = ("dev", "test")
    scores = {each: _scores(config, prepared, each, model_folder, result, device) for each in splits}
    if scores["dev"] is None:
        raise DataError(f"{experiment.name}: {prepared.folder} has no dev text; experiments are evaluated on it")
    return RunRecord(
        name=experiment.name,
        config=without_paths(config, sizes).model_dump(),
        data_fingerprint=prepared.fingerprint,
        weights_sha256=sha256_of_file(model_folder / WEIGHTS_FILE),
        updates=state.update,
        src_tokens=state.src_tokens,
        tgt_tokens=state.tgt_tokens,
        minutes=round(state.elapsed_s / 60, 4),
        machine=machine_description(device),
        torch=str(torch.__version__),
        parameters=cost.parameters,
        parameters_without_embeddings=cost.parameters_without_embeddings,
        training_flops=config.training.mean_passes(state.update) * cost.flops_per_token * (n_tokens or 0),
        sustained_flops=flops,
        dev_text=text_name(prepared.text_names["dev"]),
        dev_perplexity=dev_perplexity(read_model_folder(model_folder, device=device).model, prepared, config),
        dev_scores=scores["dev"],
        test_text=text_name(prepared.text_names["test"]) if "test" in prepared.text_names else None,
        test_scores=scores["test"],
        starts_from=name_of(experiment.starts_from),
        tokenizer_of=name_of(experiment.tokenizer_of),
        rated_by=name_of(experiment.rated_by),
        runs_at_once=runs_at_once,
        last_fall=last_fall(model_folder),
    )


def _scores(
    config: RunConfig, prepared: Prepared, split: Split, model_folder: Path, result: RunResult, device: torch.device
) -> dict[str, Any] | None:
    """Return the scores of a model on a text, those of the run where it has them; None without the text."""
    if split not in prepared.text_names:
        return None
    if split == result.scored_split and result.scores is not None:
        return result.scores.as_json()
    bleus = TOKENISED_BLEUS.keys()
    return task_of(config).evaluate(model_folder, prepared, split, device=device, extra_bleus=bleus).as_json()

"""One system of ``whole_run.py`` in its own process: our trainer, or a tuned peer. Started with a ``Task`` as JSON.

Shapes: B sentences, T target positions, V vocabulary.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, cast

import torch
import torch._dynamo  # the first update imports it, which takes seconds; loading libraries is no training
import torch.nn.functional as F
from batches import IGNORED, padded
from systems import OURS, PeerTraining, Setup, count_parameters
from turns import Ended, Turns

from transduce.cli.machine import keep_freed_memory
from transduce.config import RunConfig
from transduce.data import Batch, PairBatches, PairStore
from transduce.model import Transformer, make_model
from transduce.tasks import Prepared, open_prepared
from transduce.tasks.objective import PairObjective
from transduce.tasks.registry import task_of
from transduce.training import CheckpointRecord, MetricsFile, Record, Trainer, UpdateRecord, ValidationRecord
from transduce.training import learning_rate as scheduled_rate

__all__ = ["WholeRun"]

CPU = torch.device("cpu")
EVALUATION_TOKENS = 1024  # per batch of the evaluation, at most; small, so that it does not set the peak memory


@dataclass(frozen=True, slots=True)
class WholeRun:
    """What every system is told: the run, where its text lies, and its own folder."""

    system: str
    attention: str
    run: dict[str, Any]  # a RunConfig
    prepared: str  # folder; eole reads ``text`` instead
    text: str  # folder of the same pairs as lines of ids
    folder: str  # of this system
    n_threads: int
    sample_every_s: float

    def as_json(self) -> str:
        """Return it as the argument of a system's process."""
        return json.dumps(asdict(self))


class DevTokens:
    """The dev set, scored the same way for every system: without dropout and label smoothing, in fp32."""

    def __init__(self, prepared: Prepared, *, max_tokens: int) -> None:
        tokens = min(max_tokens, EVALUATION_TOKENS)
        self._batches = PairBatches(cast(PairStore, prepared.dev), max_tokens=tokens, seed=0, device=CPU)

    @torch.no_grad()
    def nll(self, system: OurRun | PeerRun) -> tuple[float, int]:
        """Return the summed negative log-likelihood in nats, and the number of target tokens, EOS included."""
        batches = [self._batches.batch(0, index) for index in range(self._batches.n_batches(0))]
        is_training = system.model.training
        system.model.eval()
        nll_nats = sum(system.nll_nats(batch) for batch in batches)
        system.model.train(is_training)
        return nll_nats, sum(batch.n_tgt_tokens for batch in batches)


class OurRun:
    """The run of ``transduce train``: its trainer with validation, checkpoints and ``metrics.jsonl``."""

    def __init__(self, whole: WholeRun, config: RunConfig, prepared: Prepared) -> None:
        self.whole, self.config, self.prepared = whole, config, prepared
        torch.manual_seed(config.training.seed)
        self.model = cast(Transformer, make_model(config.model, prepared.tokenizers))
        self._since_s = 0.0  # when the last update ended
        self._not_training_s = {"validation_s": 0.0, "checkpoint_s": 0.0}
        self._n = {"validations": 0, "checkpoints": 0}

    def nll_nats(self, batch: Batch) -> float:
        """Return the summed negative log-likelihood of a batch."""
        return PairObjective(self.model, self.config.training)(batch).nll_nats.item()

    def progress(self) -> dict[str, float]:
        """Return the updates, and how much time validation and checkpoints took of the run."""
        return {"updates": self._trainer.state.update, **self._n, **self._not_training_s}

    def train(self, turns: Turns) -> None:
        """Train until ``turns`` raises ``Ended``."""
        self._turns = turns
        turns(0)  # the memory preflight is part of the run
        self._trainer.run()

    @cached_property
    def _trainer(self) -> Trainer[Any]:
        config, task, folder = self.config, task_of(self.config), Path(self.whole.folder)
        return Trainer(
            model=self.model,
            objective=task.objective(self.model, config),
            batches=task.batches(self.prepared.train, config, CPU),
            learning_rate=lambda step: scheduled_rate(step, d_model=config.model.d_model, config=config.training),
            config=config.training,
            checkpoints=folder / "checkpoints",
            validate=task.validator(lambda: self.model, self.prepared, config, device=CPU),
            listeners=[MetricsFile(folder / "metrics.jsonl"), self._on_record],
            should_stop=self._should_stop,
            clock=self._turns.clock,
        )

    def _should_stop(self) -> bool:
        self._turns(self._trainer.state.tgt_tokens)
        return False

    def _on_record(self, record: Record) -> None:
        """Measure the time between updates: first a validation, then a checkpoint."""
        now = self._turns.clock()
        match record:
            case ValidationRecord():
                self._n["validations"] += 1
                self._not_training_s["validation_s"] += now - self._since_s
            case CheckpointRecord():
                self._n["checkpoints"] += 1
                self._not_training_s["checkpoint_s"] += now - self._since_s
            case UpdateRecord():
                pass
        self._since_s = now


class PeerRun(PeerTraining):
    """A tuned peer: the usual loop of its users with our schedule, on our batches in our order; it saves nothing."""

    def nll_nats(self, batch: Batch) -> float:
        """Return the summed negative log-likelihood of a batch."""
        rows = padded(batch)
        logits_BTV = self.model(rows.src_BS, rows.tgt_in_BT).float()
        labels_BT = rows.labels_BT
        return F.cross_entropy(
            logits_BTV.flatten(0, 1), labels_BT.flatten(), ignore_index=IGNORED, reduction="sum"
        ).item()

    def progress(self) -> Mapping[str, float]:
        """Return the updates."""
        return {"updates": self.n_updates}


def main() -> None:
    """Build the system, and train it in turns."""
    whole = WholeRun(**json.loads(sys.argv[1]))
    keep_freed_memory()
    torch.set_num_threads(whole.n_threads)
    config = RunConfig.model_validate(whole.run)
    prepared = open_prepared(Path(whole.prepared))
    system = OurRun(whole, config, prepared) if whole.system == OURS else PeerRun(_setup(whole, config, prepared))
    dev = DevTokens(prepared, max_tokens=config.training.max_tokens_per_batch)
    turns = Turns(lambda: dev.nll(system), system.progress, sample_every_s=whole.sample_every_s)
    turns.ready(parameters=count_parameters(system.model))
    try:
        system.train(turns)
    except Ended:
        return


def _setup(whole: WholeRun, config: RunConfig, prepared: Prepared) -> Setup:
    """Return the setup of a tuned peer."""
    return Setup(
        system=whole.system.removesuffix("-tuned"),
        is_tuned=True,
        attention=whole.attention,
        model=cast(Any, config.model),
        training=config.training,
        store=prepared.folder / "train",
        n_threads=whole.n_threads,
    )


if __name__ == "__main__":
    main()

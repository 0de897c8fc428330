"""The script that the tests run in each process: torchrun ... worker.py JOB.json

A job is a list of tasks; each is the name of a function below and its arguments. The model is in float64, so that only
rounding at 1e-16 differs between one large batch and its parts.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from transduce.config import DataConfig, ModelConfig, RunConfig, SearchConfig, TrainingConfig
from transduce.data import Batch, PairBatches, open_pairs
from transduce.errors import DataError, TransduceError
from transduce.model import Transformer
from transduce.tasks.objective import PairObjective
from transduce.tasks.pairs.translation import TranslationValidation
from transduce.text import Tokenizers
from transduce.training import (
    DistributedContext,
    MetricsFile,
    Trainer,
    Validation,
    full_weights,
    inverse_sqrt_lr,
    load_weights,
    newest_complete,
    shard,
    torchrun_context,
)

CPU = torch.device("cpu")


def train(
    store: str,
    out: str,
    distributed: DistributedContext,
    *,
    sharded: bool = False,
    double: bool = True,
    p_drop: float = 0.0,
    stop_at: int | None = None,
    stop_in_validation: bool = False,
    stopped_rank: int = 0,
    fail_at: tuple[int, int] | None = None,
    n_experts: int = 1,
    **settings: Any,
) -> None:
    """Train on a prepared folder, resuming from the newest checkpoint in ``out``; only one rank is interrupted."""
    prepared, folder = Path(store), Path(out)
    folder.mkdir(parents=True, exist_ok=True)
    tokenizers = Tokenizers.load(prepared)
    vocab_size = tokenizers.src.size
    model_config = ModelConfig(
        n_encoder_layers=1, n_decoder_layers=1, d_model=16, d_ff=24, n_heads=2, d_k=8, d_v=8, p_drop=p_drop,
        n_experts=n_experts,
        src_vocab_size=vocab_size, tgt_vocab_size=vocab_size,
    )  # fmt: skip
    defaults = {
        "max_updates": 8, "max_tokens_per_batch": 600, "log_every_updates": 2, "validate_every_updates": 3,
        "checkpoint_every_updates": 4, "validation_sentences": 6,
    }  # fmt: skip
    training = TrainingConfig(**{**defaults, **settings})
    config = RunConfig(
        model=model_config, data=DataConfig(), training=training, search=SearchConfig(beam_size=2, max_extra_tokens=5)
    )
    torch.manual_seed(3)
    model = Transformer(model_config)
    if double:
        model.double()
    if sharded:
        shard(model)
    is_validating = is_asked = False

    def should_stop() -> bool:
        nonlocal is_asked
        if stop_at is not None and distributed.rank == stopped_rank and trainer.state.update >= stop_at:
            is_asked = is_asked or is_validating or not stop_in_validation
        return is_asked

    def validate(should_stop: Callable[[], bool]) -> Validation | None:
        nonlocal is_validating
        is_validating = True
        try:
            return validation(should_stop)
        finally:
            is_validating = False

    def undivided() -> Transformer:
        if not sharded:
            return model
        copy = Transformer(model_config).double().eval() if double else Transformer(model_config).eval()
        load_weights(copy, full_weights(model), where=folder)
        return copy

    class Failing(PairBatches):
        def batch(self, epoch: int, index: int, *, part: int = 0, n_parts: int = 1) -> Any:
            if fail_at is not None and [epoch, index, distributed.rank] == [*fail_at, 1]:
                raise DataError("the disk of process 1 is gone")
            return super().batch(epoch, index, part=part, n_parts=n_parts)

    text = [(prepared / f"dev.{side}").read_text(encoding="utf-8").splitlines() for side in ("src", "tgt")]
    validation = TranslationValidation(
        undivided, tokenizers, open_pairs(prepared / "dev"), (text[0], text[1]), config, device=CPU,
        distributed=distributed,
    )  # fmt: skip
    metrics = MetricsFile(folder / "metrics.jsonl")
    trainer: Trainer[Batch] = Trainer(
        model=model,
        objective=PairObjective(model, training),
        batches=Failing(open_pairs(prepared / "train"), max_tokens=training.max_tokens_per_batch, seed=1, device=CPU),
        learning_rate=lambda step: 0.3 * inverse_sqrt_lr(step, d_model=16, warmup_steps=20),
        config=training,
        checkpoints=folder / "checkpoints",
        validate=validate,
        listeners=[metrics] if distributed.is_first else [],
        should_stop=should_stop,
        distributed=distributed,
    )
    checkpoint_name = distributed.broadcast_from_first(lambda: _name(newest_complete(folder / "checkpoints", print)))
    if checkpoint_name is not None:
        trainer.resume(folder / "checkpoints" / checkpoint_name)
    if distributed.is_first:
        metrics.rewind(trainer.state)
    reason = trainer.run()
    assert reason == ("max_updates" if stop_at is None else "interrupted"), reason


def _name(path: Path | None) -> str | None:
    return path.name if path else None


def agree(out: str, distributed: DistributedContext) -> None:
    """Objects and tensors are gathered in order, repeatedly."""
    for turn in range(3):
        assert distributed.all_gather_json({"rank": distributed.rank, "turn": turn, "text": "ä\n"}) == [
            {"rank": rank, "turn": turn, "text": "ä\n"} for rank in range(distributed.n)
        ]
        rows = distributed.all_gather(torch.tensor([distributed.rank + 0.5, turn], dtype=torch.float64))
        assert rows.tolist() == [[rank + 0.5, turn] for rank in range(distributed.n)]
        assert distributed.broadcast_from_first(lambda: distributed.rank + 7) == 7
    Path(out, f"agreed-{distributed.rank}").write_text("", encoding="utf-8")


TASKS: dict[str, Callable[..., None]] = {"train": train, "agree": agree}


def main() -> int:
    """Run all tasks of a job; an error ends it as in a command."""
    torch.set_num_threads(1)
    try:
        with torchrun_context(CPU) as distributed:
            for task in json.loads(Path(sys.argv[1]).read_text(encoding="utf-8")):
                TASKS[task.pop("task")](distributed=distributed, **task)
    except TransduceError as error:
        print(f"{type(error).__name__}: {error}", file=sys.stderr, flush=True)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())

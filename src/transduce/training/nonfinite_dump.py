"""Dump the batches of an update skipped for a non-finite loss or gradient, with a report."""

from __future__ import annotations

import math
from pathlib import Path

from transduce.files import write_json
from transduce.model.weights_file import write_tensors
from transduce.training.gradients import BatchIndex, BatchT, Gradient, GradientAccumulator

__all__ = ["NOT_FINITE", "describe", "dump_nonfinite"]

NOT_FINITE = "not-finite"  # the folder of dumps, beside that of checkpoints


def describe(accumulator: GradientAccumulator[BatchT], batch_indices: list[BatchIndex], gradient: Gradient) -> str:
    """Describe which value is not finite, and on which batches."""
    bad = _nonfinite_shards(gradient)
    names = dict.fromkeys(
        accumulator.batches.name(*shard.batch_index)
        for shard in accumulator.all_shards(batch_indices)
        if not bad or shard.number in bad
    )
    what = f"the loss is {gradient.losses_nats[bad[0]]}" if bad else f"the norm of the gradient is {gradient.norm}"
    return f"{what} on {', '.join(names)}"


def dump_nonfinite(
    folder: Path,
    accumulator: GradientAccumulator[BatchT],
    batch_indices: list[BatchIndex],
    gradient: Gradient,
    *,
    update: int,
) -> None:
    """Write the tensors of the offending shards (all, if only the norm is not finite) and a report into ``folder``.

    Each process writes its own shards. Raises OSError if they cannot be written.
    """
    folder.mkdir(parents=True, exist_ok=True)
    bad = _nonfinite_shards(gradient)
    for shard in accumulator.local_shards(batch_indices):
        batch = accumulator.batch_of(shard)
        if batch is not None and (not bad or shard.number in bad):
            write_tensors(folder / f"share-{shard.number}.safetensors", batch.tensors())
    if accumulator.distributed.is_first:
        report = {
            "update": update,
            "what": describe(accumulator, batch_indices, gradient),
            "losses_nats": [str(loss) for loss in gradient.losses_nats],  # JSON has no nan
            "gradient_norm": str(gradient.norm),
            "batches": [{"epoch": epoch, "index": index} for epoch, index in batch_indices],
            "n_processes": accumulator.distributed.n,
            "seed": accumulator.config.seed,
            "precision": accumulator.config.precision,
        }
        write_json(folder / "report.json", report)


def _nonfinite_shards(gradient: Gradient) -> list[int]:
    return [number for number, loss in enumerate(gradient.losses_nats) if not math.isfinite(loss)]

"""What is kept of an update that was not made because something was not finite: its batches, and what is known."""

from __future__ import annotations

import math
from pathlib import Path

from transduce.files import write_json
from transduce.training.checkpoint import write_tensors
from transduce.training.gradients import BatchT, Gradient, GradientMaker, Place

__all__ = ["describe", "save_evidence"]


def describe(maker: GradientMaker[BatchT], places: list[Place], gradient: Gradient) -> str:
    """What is not finite, and on which batches."""
    bad = _bad_shares(gradient)
    numbered = {share.number: share.place for share in maker.all_shares(places)}
    names = dict.fromkeys(maker.batches.name(*place) for number, place in numbered.items() if not bad or number in bad)
    what = f"the loss is {gradient.losses_nats[bad[0]]}" if bad else f"the norm of the gradient is {gradient.norm}"
    return f"{what} on {', '.join(names)}"


def save_evidence(
    folder: Path, maker: GradientMaker[BatchT], places: list[Place], gradient: Gradient, *, update: int
) -> None:
    """Write the ids of the shares in question and a report into ``folder``; each process writes its own shares.

    Raises OSError if they cannot be written.
    """
    folder.mkdir(parents=True, exist_ok=True)
    bad = _bad_shares(gradient)
    for share in maker.own_shares(places):
        batch = maker.batch_of(share)
        if batch is not None and (not bad or share.number in bad):
            write_tensors(folder / f"share-{share.number}.safetensors", batch.tensors())
    if maker.processes.is_first:
        report = {
            "update": update,
            "what": describe(maker, places, gradient),
            "losses_nats": [str(loss) for loss in gradient.losses_nats],  # JSON has no nan
            "gradient_norm": str(gradient.norm),
            "batches": [{"epoch": epoch, "index": index} for epoch, index in places],
            "n_processes": maker.processes.n,
            "seed": maker.config.seed,
            "precision": maker.config.precision,
        }
        write_json(folder / "report.json", report)


def _bad_shares(gradient: Gradient) -> list[int]:
    return [number for number, loss in enumerate(gradient.losses_nats) if not math.isfinite(loss)]

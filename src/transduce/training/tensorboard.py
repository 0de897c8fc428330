"""Curves for TensorBoard, where it is installed (the extra ``tensorboard``)."""

from __future__ import annotations

import importlib.util
from pathlib import Path

from transduce.training.records import CheckpointRecord, Record, SkipRecord, UpdateRecord, ValidationRecord

__all__ = ["TensorBoardEvents"]


class TensorBoardEvents:
    """A listener that writes each logged record as scalars over updates."""

    def __init__(self, folder: Path, *, updates_done: int) -> None:
        from torch.utils.tensorboard import SummaryWriter

        # What an interrupted run wrote past its checkpoint is hidden: the resumed one writes it again.
        self._writer = SummaryWriter(str(folder), purge_step=updates_done + 1)

    @staticmethod
    def is_available() -> bool:
        """Whether the extra is installed."""
        return importlib.util.find_spec("tensorboard") is not None

    def __call__(self, record: Record) -> None:
        """Write one record."""
        match record:
            case UpdateRecord(is_logged=True):
                names = ("loss_nats", "nll_nats", "learning_rate", "gradient_norm", "tgt_tokens_per_s")
                self._write(record.update, {f"train/{name}": getattr(record, name) for name in names})
            case ValidationRecord():
                scores = {"dev/nll_nats": record.nll_nats, "dev/perplexity": record.perplexity}
                scored = {"dev/bleu": record.bleu, "dev/f1": record.f1}
                scores |= {name: score for name, score in scored.items() if score is not None}
                self._write(record.update, scores)
            case UpdateRecord() | CheckpointRecord() | SkipRecord():
                pass

    def close(self) -> None:
        """Flush and close the file."""
        self._writer.close()

    def _write(self, update: int, values: dict[str, float]) -> None:
        for name, value in values.items():
            self._writer.add_scalar(name, value, update)

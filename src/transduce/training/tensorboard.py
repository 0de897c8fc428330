"""TensorBoard event files, if TensorBoard is installed (the extra ``tensorboard``)."""

from __future__ import annotations

import importlib.util
import itertools
import os
import socket
import time
from collections.abc import Callable
from io import BytesIO, FileIO
from pathlib import Path
from typing import Any

from transduce.training.records import Record, UpdateRecord, ValidationRecord

__all__ = ["TensorBoardEvents"]


class TensorBoardEvents:
    """Listener that writes logged records as scalars over updates.

    A write error, such as a full disk, is logged once and the run continues. Hence writes are synchronous: torch's
    ``SummaryWriter`` writes from a thread, which would end with a traceback.
    """

    _numbers = itertools.count()  # distinguishes files that a process creates in the same second

    def __init__(self, folder: Path, *, updates_done: int, log: Callable[[str], object]) -> None:
        self._log = log
        self._stream: FileIO | None = None
        name = f"events.out.tfevents.{time.time():010.0f}.{socket.gethostname()}.{os.getpid()}.{next(self._numbers)}"
        self.path = folder / name
        # Session start: TensorBoard hides events past the checkpoint, which the resumed run writes again.
        self._write({"file_version": "brain.Event:2"}, {"step": updates_done + 1, "session_log": {"status": 1}})

    @staticmethod
    def is_available() -> bool:
        """Whether the extra is installed."""
        return importlib.util.find_spec("tensorboard") is not None

    def __call__(self, record: Record) -> None:
        """Write the scalars of one record, if it has any."""
        match record:
            case UpdateRecord(is_logged=True):
                names = ("loss_nats", "nll_nats", "learning_rate", "gradient_norm", "tgt_tokens_per_s")
                values = {name: getattr(record, name) for name in names} | dict(record.measures)
                self._write_scalars(record.update, {f"train/{name}": value for name, value in values.items()})
            case ValidationRecord():
                scores = {"dev/nll_nats": record.nll_nats}
                if record.perplexity is not None:
                    scores["dev/perplexity"] = record.perplexity
                scores |= {f"dev/{name}": score.value for name, score in record.scores.items()}
                self._write_scalars(record.update, scores)

    def close(self) -> None:
        """Close the file."""
        stream, self._stream = self._stream, None
        if stream is not None:
            stream.close()  # unbuffered: cannot fail for lack of space

    def _write_scalars(self, update: int, values: dict[str, float]) -> None:
        if self._stream is not None:
            named = [{"tag": name, "simple_value": value} for name, value in values.items()]
            self._write({"step": update, "summary": {"value": named}})

    def _write(self, *events: dict[str, Any]) -> None:
        """Append events, given as fields of TensorBoard's ``Event`` message; the first call creates the file."""
        from tensorboard.compat.proto.event_pb2 import Event
        from tensorboard.summary.writer.record_writer import RecordWriter

        framed = BytesIO()
        for event in events:
            RecordWriter(framed).write(Event(wall_time=time.time(), **event).SerializeToString())
        unwritten = framed.getvalue()
        try:
            if self._stream is None:
                self.path.parent.mkdir(parents=True, exist_ok=True)
                self._stream = self.path.open("wb", buffering=0)
            while unwritten:
                unwritten = unwritten[self._stream.write(unwritten) :]
        except OSError as error:
            self.close()
            self._log(
                f"warning: {self.path} cannot be written: {error.strerror or error}; continuing without TensorBoard"
            )

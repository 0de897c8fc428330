"""One worker: it holds the models and translates one shard after another, with one thread."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable
from dataclasses import asdict
from itertools import repeat
from pathlib import Path
from typing import Any

from transduce.bulk.job import CHUNK_LINES, THREADS, BulkJob
from transduce.bulk.shards import ShardResult, part_path, read_result, record_result
from transduce.errors import DataError, TransduceError
from transduce.files import LineFault, compressing, open_binary, remove, repaired_lines, sha256_of_file
from transduce.worker_pool import Answer, serve

__all__ = ["ShardTranslator", "main"]


class ShardTranslator:
    """The models of a job, loaded."""

    def __init__(self, job: BulkJob, *, should_stop: Callable[[], bool] = lambda: False) -> None:
        """``should_stop`` is asked between chunks; if it is true, ``translate`` raises TransduceError."""
        import torch

        from transduce.inference import Translator
        from transduce.inference.search_options import search_with

        torch.set_num_threads(THREADS)
        self._job, self._should_stop = job, should_stop
        self._translator = Translator.load(
            *job.folders, device=job.device, precision=job.precision, shortlist=job.shortlist,  # type: ignore[arg-type]
        )  # fmt: skip
        self._search = search_with(self._translator.search, beam_size=job.beam, alpha=job.alpha, limits=job.limits)

    def translate(self, source: Path, out: Path, name: str) -> ShardResult:
        """Translate a shard to ``out / name``, whole or not at all.

        Raises DataError if it cannot be read or written.
        """
        n_lines, truncated, invalid = 0, set[int](), set[int]()  # the latter are numbers of lines

        def observe(number: int, fault: LineFault) -> None:
            (truncated if fault == "cut" else invalid).add(number)

        part = part_path(out, name)
        try:
            input_bytes, input_sha256 = source.stat().st_size, sha256_of_file(source, may_be_link=True)
            with open_binary(source) as text, part.open("wb") as raw, compressing(raw, source.suffix) as stream:
                lines = self._translator.translate_lines(
                    repaired_lines(text, str(source), observe), search=self._search, chunk_lines=CHUNK_LINES,
                    split=self._job.split, is_scored=False, prefixes=repeat(self._job.prefix),
                )  # fmt: skip
                for translation in lines:
                    if n_lines % CHUNK_LINES == 0 and self._should_stop():
                        raise TransduceError("the process that started this worker has ended")
                    stream.write(translation.text.encode("utf-8") + b"\n")
                    n_lines += 1
                    if translation.is_truncated:
                        truncated.add(n_lines)
            with part.open("rb") as written:
                os.fsync(written.fileno())
                digest = hashlib.file_digest(written, "sha256").hexdigest()
            result = ShardResult(
                name, n_lines, len(truncated), input_bytes, input_sha256, part.stat().st_size, digest, len(invalid),
                min(truncated, default=None), min(invalid, default=None),
            )  # fmt: skip
            record_result(out, result)
            part.replace(out / name)
        except OSError as error:
            if (out / name).exists():  # another process was faster, and has tidied up
                return read_result(out, name)
            raise DataError(f"{error.filename or out / name}: {error.strerror or error}") from error
        finally:
            remove(part)
        return result


def main() -> None:
    """Be a worker process of this machine."""
    serve(_start)


def _start(description: list[bytes]) -> Answer:
    """Load the models; an empty request is answered when they are loaded, a shard by its result."""
    parent = os.getppid()
    translator = ShardTranslator(
        BulkJob.from_message(description[0].decode()), should_stop=lambda: os.getppid() != parent
    )

    def answer(request: list[bytes]) -> list[bytes]:
        if not request:
            return []
        source, out, name = (part.decode("utf-8", "surrogateescape") for part in request)
        result: dict[str, Any] = asdict(translator.translate(Path(source), Path(out), name))
        return [json.dumps(result).encode()]

    return answer

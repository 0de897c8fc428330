"""One worker: it holds the models of a job, and translates lines or shards."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict
from itertools import repeat
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from transduce.bulk.job import CHUNK_LINES, TranslationJob
from transduce.bulk.replies import pack_translations
from transduce.bulk.shards import ShardResult, part_path, read_result, record_result
from transduce.errors import DataError, TransduceError
from transduce.files import LineFault, compressing, open_binary, remove, repaired_lines, sha256_of_file
from transduce.inference.translation.document_files import format_of_file, read_bytes, translate_document
from transduce.machine_limits import keep_freed_memory
from transduce.worker_pool import Answer, serve

if TYPE_CHECKING:
    from transduce.inference import Translation

__all__ = ["ShardTranslator", "main"]


class ShardTranslator:
    """The models of a job, loaded."""

    def __init__(self, job: TranslationJob, *, should_stop: Callable[[], bool] = lambda: False) -> None:
        """``should_stop`` is asked between chunks; if it is true, ``translate`` raises TransduceError."""
        from transduce.inference.translation.loading import load_translator

        self._job, self._should_stop = job, should_stop
        self._translator = load_translator(job.loading)
        self._search = job.decoding.applied_to(self._translator.search)
        self.max_source_tokens = self._translator.max_source_tokens

    def translate_lines(self, lines: Iterable[str]) -> Iterator[Translation]:
        """Translate lines, in order."""
        job = self._job
        return self._translator.translate_lines(
            lines, search=self._search, chunk_lines=job.chunk_lines, split=job.split,
            is_scored=job.is_scored, prefixes=repeat(job.prefix), is_linked=job.is_linked,
        )  # fmt: skip

    def translate(self, source: Path, out: Path, name: str) -> ShardResult:
        """Translate a shard to ``out / name``, whole or not at all.

        Raises DataError if it cannot be read or written.
        """
        part = part_path(out, name)
        try:
            format = format_of_file(source) if self._job.format == "auto" else self._job.format.removeprefix("text")
            input_bytes, input_sha256 = source.stat().st_size, sha256_of_file(source, may_be_link=True)
            with open_binary(source) as text, part.open("wb") as raw, compressing(raw, source.suffix) as stream:
                write = self._write_document if format else self._write_lines
                counts = write(text, source, stream, format)
            with part.open("rb") as written:
                os.fsync(written.fileno())
                digest = hashlib.file_digest(written, "sha256").hexdigest()
            result = ShardResult(
                name=name, input_bytes=input_bytes, input_sha256=input_sha256, output_bytes=part.stat().st_size,
                output_sha256=digest, **counts,
            )  # fmt: skip
            record_result(out, result)
            (out / name).parent.mkdir(parents=True, exist_ok=True)
            part.replace(out / name)
        except OSError as error:
            if (out / name).exists():  # another process was faster, and has tidied up
                return read_result(out, name)
            raise DataError(f"{error.filename or out / name}: {error.strerror or error}") from error
        finally:
            remove(part)
        return result

    def _write_lines(self, text: IO[bytes], source: Path, stream: IO[bytes], format: str) -> dict[str, Any]:
        """Translate lines; return their counts."""
        n_lines, truncated, invalid = 0, set[int](), set[int]()  # the latter are numbers of lines

        def observe(number: int, fault: LineFault) -> None:
            (truncated if fault == "cut" else invalid).add(number)

        for translation in self.translate_lines(repaired_lines(text, str(source), observe)):
            if n_lines % CHUNK_LINES == 0:
                self._require_parent()
            stream.write(translation.text.encode("utf-8") + b"\n")
            n_lines += 1
            if translation.is_truncated:
                truncated.add(n_lines)
        return {
            "lines": n_lines, "truncated_lines": len(truncated), "invalid_lines": len(invalid),
            "first_truncated": min(truncated, default=None), "first_invalid": min(invalid, default=None),
        }  # fmt: skip

    def _write_document(self, text: IO[bytes], source: Path, stream: IO[bytes], format: str) -> dict[str, Any]:
        """Translate a document; return its counts and its report."""
        job = self._job
        translated = translate_document(
            self._translator, read_bytes(text, str(source)), source.name, search=self._search, split=job.split,
            progress=lambda n_done, n_texts: self._require_parent(), format=format, wanted=job.wanted,
            is_trusted=job.is_trusted,
        )  # fmt: skip
        stream.write(translated.data)
        report = translated.report
        n_cut = report.warnings.get("source-cut", 0)
        return {"lines": report.segments, "truncated_lines": n_cut, "report": report.as_json()}

    def _require_parent(self) -> None:
        if self._should_stop():
            raise TransduceError("the process that started this worker has ended")


def main() -> None:
    """Be a worker process of this machine."""
    serve(_start)


def _start(description: list[bytes]) -> Answer:
    """Load the models. An empty request is answered by their maximum source length, lines by their translations.

    A request of three parts (source, output folder, name) is a shard, and is answered by its result.
    """
    parent, job = os.getppid(), TranslationJob.from_message(description[0])
    if job.loading.device in ("auto", "cpu"):
        keep_freed_memory()
    translator = ShardTranslator(job, should_stop=lambda: os.getppid() != parent)

    def answer(request: list[bytes]) -> list[bytes]:
        if not request:
            return [b"%d" % translator.max_source_tokens]
        if len(request) == 1:
            return [pack_translations(translator.translate_lines(json.loads(request[0])))]
        source, out, name = (part.decode("utf-8", "surrogateescape") for part in request)
        result: dict[str, Any] = asdict(translator.translate(Path(source), Path(out), name))
        return [json.dumps(result).encode()]

    return answer

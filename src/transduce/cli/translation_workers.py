"""Translation by several worker processes (``translate --workers``), each with its own copy of the model.

Each worker has one chunk of lines at a time: memory does not grow with the input.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import repeat
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from transduce.config import MIN_DRAFT_PROBABILITY, N_DRAFTED
from transduce.text.chunks import chunks
from transduce.worker_pool import Answer, Message, Worker, WorkerPool, serve

if TYPE_CHECKING:
    from transduce.cli.models import SearchOptions
    from transduce.inference import Translation

__all__ = ["TranslationJob", "TranslationWorkers", "main"]


@dataclass(frozen=True, slots=True)
class TranslationJob:
    """What every worker does: the model to load and how to search; see ``translate``."""

    folders: Sequence[Path]
    device: str
    precision: str
    rerank: Path | None
    rerank_weight: float
    search_options: SearchOptions
    shortlist: Path | None
    prefix: str
    split: bool
    is_scored: bool
    is_linked: bool
    chunk_lines: int
    n_workers: int  # they share the cores
    draft: Path | None = None
    n_drafted: int = N_DRAFTED
    draft_probability: float = MIN_DRAFT_PROBABILITY

    def as_message(self) -> Message:
        """Return the description for a worker."""
        return [json.dumps(asdict(self), default=str).encode()]

    @classmethod
    def from_message(cls, message: Message) -> Self:
        """Return the job that ``as_message`` described."""
        values = json.loads(message[0])
        paths = {name: values[name] and Path(values[name]) for name in ("rerank", "shortlist", "draft")}
        return cls(**values | paths | {"folders": [Path(folder) for folder in values["folders"]]})


class TranslationWorkers:
    """Worker processes that translate a stream of lines together, in order; they run within a ``with`` block."""

    def __init__(self, job: TranslationJob) -> None:
        self.job = job
        self._pool = WorkerPool(job.n_workers, __name__, job.as_message())

    def __enter__(self) -> Self:
        self._pool.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        self._pool.__exit__(*error)

    def wait_until_loaded(self) -> int:
        """Wait for all workers; return the model's maximum source length. Raises what a worker raised."""
        return max(int(maximum) for [maximum] in self._pool.ask_each([]))

    def translate_lines(self, lines: Iterable[str]) -> Iterator[Translation]:
        """Translate a stream of lines, in order. Raises what a worker raised, TransduceError if one was killed."""
        for translations in self._pool.map(_translate, chunks(lines, self.job.chunk_lines, len)):
            yield from translations


def _translate(worker: Worker, lines: Sequence[str]) -> list[Translation]:
    from transduce.inference import ScoredText, Translation

    def translation(result: dict[str, Any]) -> Translation:
        n_best = tuple(ScoredText(**best) for best in result["n_best"])
        links = tuple((source, target) for source, target in result["links"])
        return Translation(**result | {"n_best": n_best, "warnings": tuple(result["warnings"]), "links": links})

    [reply] = worker.ask([json.dumps(lines).encode()])
    return [translation(result) for result in json.loads(reply)]


def main() -> None:
    """Be a worker."""
    serve(_start)


def _start(description: list[bytes]) -> Answer:
    """Load the model. An empty request is answered by its maximum source length, lines by their translations."""
    import torch

    from transduce.cli.models import load_translator, requested_search

    job = TranslationJob.from_message(description)
    torch.set_num_threads(max(1, torch.get_num_threads() // job.n_workers))
    translator = load_translator(
        job.folders,
        device=job.device,
        precision=job.precision,
        rerank=job.rerank,
        weight=job.rerank_weight,
        shortlist=job.shortlist,
        draft=job.draft,
        n_drafted=job.n_drafted,
        draft_probability=job.draft_probability,
    )
    search = requested_search(translator.search, **job.search_options)

    def answer(request: list[bytes]) -> Message:
        if not request:
            return [b"%d" % translator.max_source_tokens]
        translations = translator.translate_lines(
            json.loads(request[0]), search=search, chunk_lines=job.chunk_lines, split=job.split,
            is_scored=job.is_scored, is_linked=job.is_linked, prefixes=repeat(job.prefix),
        )  # fmt: skip
        return [json.dumps([asdict(each) for each in translations]).encode()]

    return answer

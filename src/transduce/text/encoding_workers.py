"""Encoding of chunks of pairs, in this process or in several workers, with the same results.

Each chunk takes two requests to a worker (``worker_pool.py``): the pairs, answered by the number kept, and the number
of pairs kept before the chunk, which samples count from, answered by the rows.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import asdict

import numpy as np

from transduce.text.encoded_texts import Ragged
from transduce.text.pair_encoding import EncodedPairs, KeptPairs, PairEncoder, PairSampling, TextPair
from transduce.text.term_hints import WordTable
from transduce.text.tokenizer import tokenizer_from
from transduce.text.tokenizer_pair import Tokenizers
from transduce.worker_pool import Answer, Message, Worker, WorkerPool, serve

__all__ = ["ChunkEncoder", "EncodingWorkers", "OneProcess", "chunk_encoder", "main"]

CHUNKS_PER_WORKER = 2  # under way: one is encoded, the next one waits


class OneProcess:
    """Encodes chunks of pairs in this process."""

    def __init__(self, encoder: PairEncoder) -> None:
        self._encoder, self._n_kept = encoder, 0

    def encode(self, chunks: Iterable[Sequence[TextPair]]) -> Iterator[EncodedPairs]:
        """Yield the rows of each chunk, in order; sampling continues from one call to the next."""
        for chunk in chunks:
            kept = self._encoder.keep(chunk)
            yield self._encoder.encode(kept, n_before=self._n_kept)
            self._n_kept += len(kept.texts)


class EncodingWorkers:
    """Encodes chunks of pairs in worker processes, as ``OneProcess`` does."""

    def __init__(self, pool: WorkerPool) -> None:
        self._pool = pool
        self._n_kept = Future[int]()  # pairs kept in all chunks so far
        self._n_kept.set_result(0)

    def encode(self, chunks: Iterable[Sequence[TextPair]]) -> Iterator[EncodedPairs]:
        """Yield the rows of each chunk, in order. Raises what a worker raised, TransduceError if one was killed."""
        return self._pool.map(self._encode, map(self._with_counts, chunks))

    def _with_counts(self, chunk: Sequence[TextPair]) -> tuple[Sequence[TextPair], Future[int], Future[int]]:
        """The chunk with the number of pairs kept before it and up to its end, as they become known."""
        n_before, self._n_kept = self._n_kept, Future[int]()
        return chunk, n_before, self._n_kept

    @staticmethod
    def _encode(worker: Worker, numbered: tuple[Sequence[TextPair], Future[int], Future[int]]) -> EncodedPairs:
        """Encode a chunk in a worker. Chunks are begun in order, so ``n_before`` comes from one begun earlier."""
        chunk, n_before, n_after = numbered
        try:
            [n_kept] = _unpack_counts(worker.submit(_pack_pairs(chunk))[0])
            n_after.set_result(n_before.result() + n_kept)
            return _unpack_encoded(worker.submit([_pack_counts(n_before.result())]))
        except BaseException as error:
            if not n_after.done():
                n_after.set_exception(error)
            raise


ChunkEncoder = OneProcess | EncodingWorkers


@contextmanager
def chunk_encoder(
    tokenizers: Tokenizers, *, max_length: int, sampling: PairSampling | None = None, n_workers: int = 1
) -> Iterator[ChunkEncoder]:
    """Give an encoder in this process, or in ``n_workers`` processes if there are several."""
    if n_workers == 1:
        yield OneProcess(PairEncoder(tokenizers, max_length=max_length, sampling=sampling))
        return
    description, one_core = _pack_encoder(tokenizers, max_length, sampling), {"TOKENIZERS_PARALLELISM": "false"}
    with WorkerPool(n_workers, __name__, description, items_per_worker=CHUNKS_PER_WORKER, environment=one_core) as pool:
        yield EncodingWorkers(pool)


def main() -> None:
    """Be a worker."""
    serve(_start)


def _start(description: list[bytes]) -> Answer:
    encoder = _unpack_encoder(description)
    kept: KeptPairs | None = None  # those of the first request of a chunk, until the second one

    def answer(request: list[bytes]) -> Message:
        nonlocal kept
        if kept is None:
            kept = encoder.keep(_unpack_pairs(request))
            return [_pack_counts(len(kept.texts))]
        [n_before] = _unpack_counts(request[0])
        encoded, kept = encoder.encode(kept, n_before=n_before), None
        return _pack_encoded(encoded)

    return answer


def _pack_encoder(tokenizers: Tokenizers, max_length: int, sampling: PairSampling | None) -> list[bytes]:
    settings = {"max_length": max_length, "sampling": None if sampling is None else asdict(sampling)}
    sides = [tokenizers.src] if tokenizers.is_shared else [tokenizers.src, tokenizers.tgt]
    return [json.dumps(settings).encode(), *(each.description.encode() for each in sides)]


def _unpack_encoder(parts: Sequence[bytes]) -> PairEncoder:
    settings = json.loads(parts[0])
    sides = [tokenizer_from(part.decode()) for part in parts[1:]]
    sampling = None
    if (values := settings["sampling"]) is not None:
        words = None if values["words"] is None else WordTable(**values["words"])
        sampling = PairSampling(**{**values, "words": words})
    return PairEncoder(Tokenizers(sides[0], sides[-1]), max_length=settings["max_length"], sampling=sampling)


def _pack_pairs(pairs: Sequence[TextPair]) -> list[bytes]:
    return [json.dumps(pairs, ensure_ascii=False).encode("utf-8", "surrogatepass")]


def _unpack_pairs(parts: Sequence[bytes]) -> list[TextPair]:
    pairs: list[TextPair] = json.loads(parts[0].decode("utf-8", "surrogatepass"))
    return pairs


def _pack_counts(*counts: int) -> bytes:
    return json.dumps(counts).encode()


def _unpack_counts(part: bytes) -> list[int]:
    counts: list[int] = json.loads(part)
    return counts


def _pack_encoded(encoded: EncodedPairs) -> list[bytes]:
    arrays = (encoded.src.values_N, encoded.src.lengths_B, encoded.tgt.values_N, encoded.tgt.lengths_B)
    return [_pack_counts(encoded.n_empty, encoded.n_too_long), *(array.tobytes() for array in arrays)]


def _unpack_encoded(parts: Sequence[bytes]) -> EncodedPairs:
    n_empty, n_too_long = _unpack_counts(parts[0])
    src, tgt = (
        Ragged(np.frombuffer(ids, np.uint32), np.frombuffer(lengths, np.int64))
        for ids, lengths in (parts[1:3], parts[3:5])
    )
    return EncodedPairs(src, tgt, n_empty, n_too_long)

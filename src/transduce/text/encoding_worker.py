"""A worker process that encodes pairs: requests on stdin, replies on stdout (``worker_messages.py``).

The first request describes the encoder. Then each chunk of pairs takes two requests: the pairs, answered by the number
kept, and the number of pairs kept before the chunk, answered by the rows. A worker ends when its stdin is closed, also
when the process that started it was killed. An error is sent as a reply of one part.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from dataclasses import asdict
from typing import IO

import numpy as np

from transduce.text.encoded_texts import EncodedTexts
from transduce.text.pair_encoding import EncodedPairs, PairDropout, PairEncoder, TextPair
from transduce.text.tokenizer import Tokenizer, Tokenizers
from transduce.text.worker_messages import pack_message, read_message

__all__ = ["main", "pack_counts", "pack_encoder", "pack_pairs", "unpack_counts", "unpack_encoded"]


def main() -> None:
    """Encode until stdin is closed."""
    requests, replies = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # nothing that a library prints comes between the replies
    try:
        _serve(requests, replies)
    except (EOFError, BrokenPipeError):
        pass  # the process that started this one has ended, or needs it no more
    except Exception as error:
        _reply(replies, [json.dumps([type(error).__name__, str(error)]).encode()])


def _serve(requests: IO[bytes], replies: IO[bytes]) -> None:
    encoder = _unpack_encoder(read_message(requests))
    while True:
        kept = encoder.keep(_unpack_pairs(read_message(requests)))
        _reply(replies, pack_counts(len(kept.texts)))
        [n_before] = unpack_counts(read_message(requests))
        _reply(replies, _pack_encoded(encoder.encode(kept, n_before=n_before)))


def _reply(replies: IO[bytes], parts: Sequence[bytes]) -> None:
    replies.write(pack_message(*parts))
    replies.flush()


def pack_encoder(tokenizers: Tokenizers, max_length: int, dropout: PairDropout | None) -> list[bytes]:
    """Return the first request."""
    settings = {"max_length": max_length, "dropout": None if dropout is None else asdict(dropout)}
    sides = [tokenizers.src] if tokenizers.is_shared else [tokenizers.src, tokenizers.tgt]
    return [json.dumps(settings).encode(), *(each.description.encode() for each in sides)]


def _unpack_encoder(parts: Sequence[bytes]) -> PairEncoder:
    settings = json.loads(parts[0])
    sides = [Tokenizer(part.decode()) for part in parts[1:]]
    dropout = None if settings["dropout"] is None else PairDropout(**settings["dropout"])
    return PairEncoder(Tokenizers(sides[0], sides[-1]), max_length=settings["max_length"], dropout=dropout)


def pack_pairs(pairs: Sequence[TextPair]) -> list[bytes]:
    """Return the request to keep the pairs of a chunk."""
    return [json.dumps(pairs, ensure_ascii=False).encode("utf-8", "surrogatepass")]


def _unpack_pairs(parts: Sequence[bytes]) -> list[TextPair]:
    pairs: list[TextPair] = json.loads(parts[0].decode("utf-8", "surrogatepass"))
    return pairs


def pack_counts(*counts: int) -> list[bytes]:
    """Return a message of numbers, in two parts."""
    return [b"", json.dumps(counts).encode()]


def unpack_counts(parts: Sequence[bytes]) -> list[int]:
    """Return the numbers of a message."""
    counts: list[int] = json.loads(parts[1])
    return counts


def _pack_encoded(encoded: EncodedPairs) -> list[bytes]:
    arrays = (encoded.src.ids_N, encoded.src.lengths_B, encoded.tgt.ids_N, encoded.tgt.lengths_B)
    return [*pack_counts(encoded.n_empty, encoded.n_too_long), *(array.tobytes() for array in arrays)]


def unpack_encoded(parts: Sequence[bytes]) -> EncodedPairs:
    """Return the rows in a reply."""
    n_empty, n_too_long = unpack_counts(parts)
    src, tgt = (
        EncodedTexts(np.frombuffer(ids, np.uint32), np.frombuffer(lengths, np.int64))
        for ids, lengths in (parts[2:4], parts[4:6])
    )
    return EncodedPairs(src, tgt, n_empty, n_too_long)

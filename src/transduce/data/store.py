"""The token store: a parallel corpus as ids on disk, held in memory where it is small, else read row by row.

A folder with, for each of the two sides, all ids one after the other (without end symbols) and the offsets where rows
begin; ``store.json``, a ``StoreSummary``; and a manifest. It is bound to the tokenizers that made it.

A row is an encoding of a pair. Where pairs have several (BPE-dropout), those of one pair stand together; and the pairs
of one corpus stand together, in the order of the summary.

Nothing is mapped into memory: a map of a file that is cut meanwhile ends the process, a read that comes short is told.
"""

# N rows in the store, B rows of a batch, M ids of all those rows

from __future__ import annotations

import dataclasses
import os
import re
import weakref
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import chain, compress
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.lib import format as npy_format
from numpy.typing import NDArray

from transduce.errors import DataError, quoted
from transduce.files import atomic_folder, open_regular, read_json, verify_manifest, write_json, write_manifest
from transduce.text import UNK_ID, BpeDropout, Tokenizer, Tokenizers, normalise
from transduce.text.chunks import chunks

__all__ = ["PairDropout", "RaggedIds", "StoreSummary", "TokenStore", "write_store"]

FORMAT_VERSION = 2
HELD_BYTES = 1 << 28  # files up to this size are held in memory; of larger ones, only what is asked for is read
IDS_AT_A_TIME = 1 << 22  # where all are looked at
N_PAIRS_AT_A_TIME = 8192  # at most: the texts and ids of so many are in memory at a time

Side = Literal["src", "tgt"]
PairOfIds = tuple[list[int], list[int]]
Ids = NDArray[np.unsignedinteger[Any]]


@dataclass(frozen=True, slots=True)
class StoreSummary:
    """What is in a store and what was left out: ``n_read = n_pairs + n_empty + n_too_long``."""

    format_version: int
    tokenizer_fingerprint: str
    max_length: int  # the longest side allowed, in tokens with the end symbol
    n_read: int  # pairs that came in
    n_pairs: int  # pairs that were kept
    n_pairs_of: dict[str, int]  # those of each corpus, in the order of the store
    n_encodings: int  # rows of each pair
    n_empty: int  # pairs left out because a side had no text
    n_too_long: int  # pairs left out because a side was longer than max_length
    n_src_tokens: int  # of all rows, end symbols included
    n_tgt_tokens: int  # likewise


def write_store(
    folder: Path,
    corpora: Mapping[str, Iterable[tuple[str, str]]],
    tokenizers: Tokenizers,
    *,
    max_length: int,
    dropout: PairDropout | None = None,
) -> StoreSummary:
    """Normalise and encode the pairs of each corpus into a new store at ``folder``.

    The pairs are read as a stream; memory does not grow with their number. With ``dropout``, a pair has several rows,
    all drawn; whether it is too long, its plain encoding decides, which also stands in for a draw that is too long.
    The folder appears whole or not at all.

    Raises DataError if no pair can be kept, or if ``folder`` is there already and not empty.

    >>> import tempfile
    >>> from transduce.text import train_bpe
    >>> tokenizer = train_bpe(["a dog"], vocab_size=260)
    >>> pairs = [("a dog", "ein Hund"), ("", "leer"), ("a cat", "eine Katze")]
    >>> folder = Path(tempfile.mkdtemp()) / "store"
    >>> summary = write_store(folder, {"pets": pairs}, Tokenizers(tokenizer, tokenizer), max_length=10)
    >>> summary.n_read, summary.n_pairs, summary.n_empty, summary.n_too_long
    (3, 1, 1, 1)
    """
    n_read = n_empty = 0
    n_pairs_of = dict.fromkeys(corpora, 0)
    with atomic_folder(folder) as temporary:
        with ExitStack() as stack:
            src_writer = _SideWriter(temporary, "src", tokenizers.src, stack)
            tgt_writer = _SideWriter(temporary, "tgt", tokenizers.tgt, stack)
            for corpus, pairs in corpora.items():
                for chunk in chunks(pairs, N_PAIRS_AT_A_TIME, _n_characters):
                    normalised = [(normalise(src), normalise(tgt)) for src, tgt in chunk]
                    texts = [pair for pair in normalised if all(pair)]
                    plain = list(_encode(texts, tokenizers, max_length=max_length))
                    is_kept = [max(map(len, pair)) < max_length for pair in plain]  # <: the end symbol is not stored
                    rows = kept = list(compress(plain, is_kept))
                    if dropout is not None:
                        rows = dropout.draw(list(compress(texts, is_kept)), kept, max_length=max_length)
                    src_writer.append([src_ids for src_ids, _ in rows])
                    tgt_writer.append([tgt_ids for _, tgt_ids in rows])
                    n_read += len(chunk)
                    n_empty += len(chunk) - len(texts)
                    n_pairs_of[corpus] += len(kept)
        n_pairs = sum(n_pairs_of.values())
        n_too_long = n_read - n_pairs - n_empty
        if not n_pairs:
            raise DataError(
                f"no pair can be used: of {n_read:,}, {n_empty:,} have no text on a side and {n_too_long:,} are longer "
                f"than max_length = {max_length:,} tokens; give other text or raise max_length"
            )
        n_encodings = 1 if dropout is None else dropout.n_encodings
        summary = StoreSummary(
            format_version=FORMAT_VERSION,
            tokenizer_fingerprint=tokenizers.fingerprint,
            max_length=max_length,
            n_read=n_read,
            n_pairs=n_pairs,
            n_pairs_of=n_pairs_of,
            n_encodings=n_encodings,
            n_empty=n_empty,
            n_too_long=n_too_long,
            n_src_tokens=src_writer.n_ids + n_pairs * n_encodings,
            n_tgt_tokens=tgt_writer.n_ids + n_pairs * n_encodings,
        )
        write_json(temporary / "store.json", dataclasses.asdict(summary))
        write_manifest(temporary)
    return summary


def _n_characters(pair: tuple[str, str]) -> int:
    return len(pair[0]) + len(pair[1])


def _encode(texts: list[tuple[str, str]], tokenizers: Tokenizers, *, max_length: int) -> Iterator[PairOfIds]:
    """All of the texts that may be kept; of one that is too long, enough to know it."""
    src_rows = tokenizers.src.encode_batch([src for src, _ in texts], most_tokens=max_length)
    tgt_rows = tokenizers.tgt.encode_batch([tgt for _, tgt in texts], most_tokens=max_length)
    return zip(src_rows, tgt_rows, strict=True)


class PairDropout:
    """Several random encodings of each pair by BPE-dropout, on both sides. Provilkov et al. (2020), section 3.2.

    A side that is not spelled in merged pairs, the symbols of trees, stays as it is.
    """

    def __init__(self, tokenizers: Tokenizers, *, p_drop: float, n_encodings: int, seed: int) -> None:
        self.n_encodings = n_encodings
        self._src = BpeDropout(tokenizers.src, p_drop=p_drop, seed=2 * seed)
        has_merges = tokenizers.tgt.merges is not None
        self._tgt = BpeDropout(tokenizers.tgt, p_drop=p_drop, seed=2 * seed + 1) if has_merges else None

    def draw(self, texts: list[tuple[str, str]], plain: list[PairOfIds], *, max_length: int) -> list[PairOfIds]:
        """``n_encodings`` rows for each pair, one pair after the other; ``plain`` where a draw is too long."""
        src_draws = self._src.sample([src for src, _ in texts], self.n_encodings)
        if self._tgt is not None:
            tgt_draws = self._tgt.sample([tgt for _, tgt in texts], self.n_encodings)
        else:
            tgt_draws = [[tgt_ids] * self.n_encodings for _, tgt_ids in plain]
        return [
            drawn if max(map(len, drawn)) < max_length else fallback
            for src_ids, tgt_ids, fallback in zip(src_draws, tgt_draws, plain, strict=True)
            for drawn in zip(src_ids, tgt_ids, strict=True)
        ]


class _NpyWriter:
    """A one-dimensional ``.npy`` file that grows; when ``stack`` closes, the length goes into its header."""

    def __init__(self, path: Path, dtype: np.dtype[Any], stack: ExitStack) -> None:
        self._stream = stack.enter_context(path.open("wb"))
        self._dtype = dtype
        self.length = 0
        self._write_header()
        stack.callback(self._write_header)

    def _write_header(self) -> None:
        self._stream.seek(0)  # numpy pads the header so far that any length fits into the same place
        header = {"descr": npy_format.dtype_to_descr(self._dtype), "fortran_order": False, "shape": (self.length,)}
        npy_format.write_array_header_1_0(self._stream, header)

    def append(self, values: NDArray[np.int64]) -> None:
        self._stream.write(values.astype(self._dtype).tobytes())
        self.length += len(values)


class _SideWriter:
    """Appends rows of ids to the two files of one side."""

    def __init__(self, folder: Path, side: Side, tokenizer: Tokenizer, stack: ExitStack) -> None:
        id_dtype = np.dtype(np.uint16 if tokenizer.size <= 1 << 16 else np.uint32)
        self._ids = _NpyWriter(folder / f"{side}.ids.npy", id_dtype, stack)
        self._offsets = _NpyWriter(folder / f"{side}.offsets.npy", np.dtype(np.int64), stack)
        self._offsets.append(np.zeros(1, dtype=np.int64))

    @property
    def n_ids(self) -> int:
        return self._ids.length

    def append(self, rows: Sequence[list[int]]) -> None:
        lengths_N = np.fromiter(map(len, rows), dtype=np.int64, count=len(rows))
        self._offsets.append(self.n_ids + np.cumsum(lengths_N))
        self._ids.append(np.fromiter(chain.from_iterable(rows), dtype=np.int64, count=int(lengths_N.sum())))


@dataclass(frozen=True, slots=True, eq=False)
class RaggedIds:
    """Some rows of one side, one after the other."""

    ids_M: Ids  # all ids of all rows
    lengths_B: NDArray[np.int64]  # how many belong to each row


_MEND = "bring back the prepared text as it was, then go on with --resume"
_NPY_BEGIN = b"\x93NUMPY\x01\x00"
_NPY_HEADER = re.compile(rb"\{'descr': '([<|][fiu]\d)', 'fortran_order': False, 'shape': \((\d{1,15}),\), \} *\n")


class _ArrayFile:
    """A one-dimensional ``.npy`` file, open for reading: it may get another name or go meanwhile.

    Its header is matched with the one form it can have, never evaluated.
    """

    def __init__(self, path: Path) -> None:
        """Raises DataError if it is no such file."""
        self.path = path
        try:
            with open_regular(path) as stream:
                begin = stream.read(len(_NPY_BEGIN) + 2)
                header = stream.read(int.from_bytes(begin[len(_NPY_BEGIN) :], "little"))
                found = _NPY_HEADER.fullmatch(header) if begin.startswith(_NPY_BEGIN) else None
                if found is None:
                    raise ValueError("it does not begin as one")
                self.dtype, self.length, self._start = np.dtype(found[1].decode()), int(found[2]), stream.tell()
                n_bytes = self._start + self.length * self.dtype.itemsize
                if os.fstat(stream.fileno()).st_size != n_bytes:
                    raise ValueError(f"{self.dtype}({self.length},) would need {n_bytes:,} bytes")
                self._descriptor = os.dup(stream.fileno())
        except (OSError, ValueError, TypeError) as error:
            raise DataError(f"{path} is not an array file: {error}; prepare the data again") from error
        weakref.finalize(self, os.close, self._descriptor)

    def read(self, starts_B: NDArray[np.int64], lengths_B: NDArray[np.int64]) -> NDArray[Any]:
        """Some stretches of it, one after the other. Raises DataError if the file has become shorter, or is gone."""
        size, first, descriptor = self.dtype.itemsize, self._start, self._descriptor
        places = zip(starts_B.tolist(), lengths_B.tolist(), strict=True)
        try:
            content = b"".join([os.pread(descriptor, size * n, first + size * start) for start, n in places])
        except OSError as error:
            raise DataError(f"{self.path} cannot be read any more: {error.strerror}; {_MEND}") from error
        if len(content) != size * int(lengths_B.sum()):
            raise DataError(f"{self.path} has become shorter while it was being read; {_MEND}")
        return np.frombuffer(content, self.dtype)

    def parts(self, size: int) -> Iterator[NDArray[Any]]:
        """All of it, so many values at a time."""
        for start in range(0, self.length, size):
            yield self.read(np.array([start]), np.array([min(size, self.length - start)]))

    def held_if_small(self) -> NDArray[Any] | _ArrayFile:
        """All of it, or itself where that is too much to hold."""
        if self.length * self.dtype.itemsize > HELD_BYTES:
            return self
        held, done = np.empty(self.length, self.dtype), 0
        for some in self.parts(IDS_AT_A_TIME):
            held[done : done + len(some)] = some
            done += len(some)
        return held


@dataclass(frozen=True, slots=True, eq=False)
class _Rows:
    """The ids of one language: row ``n`` is ``ids[starts[n]:starts[n] + lengths[n]]``."""

    ids: Ids | _ArrayFile  # held, or on the disk
    starts: NDArray[np.int64] | _ArrayFile  # likewise
    lengths: NDArray[np.int32]  # (N,)
    vocab_size: int

    def row(self, n: int) -> Ids:
        return self.gather(np.array([n])).ids_M

    def gather(self, rows_B: NDArray[np.int64]) -> RaggedIds:
        lengths_B = self.lengths[rows_B].astype(np.int64)
        if isinstance(self.starts, _ArrayFile):
            starts_B = self.starts.read(rows_B, np.ones_like(rows_B))
        else:
            starts_B = self.starts[rows_B]
        if isinstance(self.ids, _ArrayFile):
            ids_M = self.ids.read(starts_B, lengths_B)
            _require_ids_of_text(ids_M, self.vocab_size, self.ids.path)
            return RaggedIds(ids_M, lengths_B)
        shifts_B = starts_B - (np.cumsum(lengths_B) - lengths_B)  # from a place in the result to the place among all
        return RaggedIds(self.ids[np.arange(lengths_B.sum()) + np.repeat(shifts_B, lengths_B)], lengths_B)

    def lengths_with_end(self) -> NDArray[np.int32]:
        return self.lengths + np.int32(1)


@dataclass(frozen=True, slots=True, eq=False)
class TokenStore:
    """A store open for reading. Ids are without end symbols, lengths with them."""

    folder: Path
    summary: StoreSummary
    src_lengths: NDArray[np.int32]  # (N,)
    tgt_lengths: NDArray[np.int32]  # (N,)
    _src: _Rows
    _tgt: _Rows

    def __len__(self) -> int:
        """How many rows there are."""
        return len(self.src_lengths)

    def pair(self, row: int) -> tuple[Ids, Ids]:
        """The source and target ids of one row, copied."""
        return self._src.row(row), self._tgt.row(row)

    def gather(self, rows_B: NDArray[np.int64]) -> tuple[RaggedIds, RaggedIds]:
        """The source and the target ids of many rows, copied."""
        return self._src.gather(rows_B), self._tgt.gather(rows_B)

    @classmethod
    def open(cls, folder: Path, tokenizers: Tokenizers | None = None) -> TokenStore:
        """Check every file of the store at ``folder`` and open it for reading.

        Raises DataError if a file is missing or corrupt, or if the store was not made with ``tokenizers``.
        """
        arrays = [f"{side}.{part}.npy" for side in ("src", "tgt") for part in ("ids", "offsets")]
        verify_manifest(folder, error=DataError, required=["store.json", *arrays])
        summary = _read_summary(folder / "store.json")
        if tokenizers is not None and summary.tokenizer_fingerprint != tokenizers.fingerprint:
            raise DataError(
                f"{folder} was made with tokenizer {summary.tokenizer_fingerprint[:12]}, this one is "
                f"{tokenizers.fingerprint[:12]}; prepare the data again"
            )
        src = _read_side(folder, "src", summary, tokenizers.src if tokenizers else None)
        tgt = _read_side(folder, "tgt", summary, tokenizers.tgt if tokenizers else None)
        return cls(folder, summary, src.lengths_with_end(), tgt.lengths_with_end(), src, tgt)


_SUMMARY_TYPES: dict[str, type] = {"tokenizer_fingerprint": str, "n_pairs_of": dict}  # all others are counts,
_LEAST = dict.fromkeys(("max_length", "n_read", "n_pairs", "n_encodings", "n_src_tokens", "n_tgt_tokens"), 1)
MOST_LENGTH = (1 << 31) - 2  # of a row, as far as it is counted
MOST = 1 << 48  # of any count: more ids than that are on no disk


def _read_summary(path: Path) -> StoreSummary:
    values = read_json(path)
    if values.get("format_version") != FORMAT_VERSION:
        raise DataError(
            f"{path} has format version {quoted(values.get('format_version'))}, this transduce reads "
            f"{FORMAT_VERSION}; "
            "prepare the data again"
        )
    types = {field.name: _SUMMARY_TYPES.get(field.name, int) for field in dataclasses.fields(StoreSummary)}
    wrong = [name for name, kind in types.items() if type(values.get(name)) is not kind]
    if wrong or len(values) != len(types):
        raise DataError(f"{path} is not the summary of a store: {wrong[0] if wrong else 'too many keys'}")
    counts = list(values["n_pairs_of"].values())
    if not all(type(count) is int and count >= 0 for count in counts) or sum(counts) != values["n_pairs"]:
        raise DataError(f"{path} is not the summary of a store: n_pairs_of should add up to n_pairs")
    out_of_range = [
        name for name, kind in types.items() if kind is int and not _LEAST.get(name, 0) <= values[name] <= MOST
    ]
    if out_of_range:
        name = out_of_range[0]
        raise DataError(f"{path} is not the summary of a store: {name} is {quoted(values[name])}")
    summary = StoreSummary(**values)
    if summary.n_read != summary.n_pairs + summary.n_empty + summary.n_too_long:
        raise DataError(f"{path} is not the summary of a store: n_read should be n_pairs + n_empty + n_too_long")
    return summary


def _read_side(folder: Path, side: Side, summary: StoreSummary, tokenizer: Tokenizer | None) -> _Rows:
    """Open the two files of a side and check them against the summary's counts and, if given, the vocabulary."""
    n_rows, max_length = summary.n_pairs * summary.n_encodings, summary.max_length
    n_tokens = summary.n_src_tokens if side == "src" else summary.n_tgt_tokens
    ids_path, offsets_path = folder / f"{side}.ids.npy", folder / f"{side}.offsets.npy"
    ids, offsets_file = _ArrayFile(ids_path), _ArrayFile(offsets_path)
    n_ids = n_tokens - n_rows  # end symbols are counted, not stored
    if ids.dtype not in (np.uint16, np.uint32) or ids.length != n_ids:
        raise DataError(f"{ids_path} should hold {n_ids:,} ids, got {ids.dtype}({ids.length},); prepare the data again")
    if offsets_file.dtype != np.int64 or offsets_file.length != n_rows + 1:
        raise DataError(
            f"{offsets_path} should hold {n_rows + 1:,} offsets, got {offsets_file.dtype}({offsets_file.length},); "
            "prepare the data again"
        )
    lengths = _read_lengths(offsets_file, n_ids=n_ids)
    longest = int(lengths.max()) + 1
    if longest > max_length:
        raise DataError(
            f"{offsets_path} has a row of {longest:,} tokens, the longest should be {max_length:,}; "
            "prepare the data again"
        )
    vocab_size = tokenizer.size if tokenizer else np.iinfo(ids.dtype).max + 1
    for some in ids.parts(IDS_AT_A_TIME):
        _require_ids_of_text(some, vocab_size, ids_path)
    return _Rows(ids.held_if_small(), offsets_file.held_if_small(), lengths, vocab_size)


def _read_lengths(offsets: _ArrayFile, *, n_ids: int) -> NDArray[np.int32]:
    """The lengths of all rows. Raises DataError if the offsets do not rise from 0 to the number of ids."""
    lengths_N, begin, done = np.empty(offsets.length - 1, dtype=np.int32), 0, 0
    for some in offsets.parts(IDS_AT_A_TIME):
        bounds = np.concatenate([[begin], some])[0 if done else 1 :]  # with the last one of the part before
        rises = bool((bounds[1:] > bounds[:-1]).all())  # a difference may overflow
        if not rises or (not done and bounds[0] != 0) or bounds[-1] > n_ids:
            break
        lengths_N[max(done - 1, 0) : done + len(some) - 1] = np.minimum(np.diff(bounds), MOST_LENGTH)
        begin, done = int(bounds[-1]), done + len(some)
    if done != offsets.length or begin != n_ids:
        raise DataError(f"{offsets.path} should rise from 0 to {n_ids:,} without empty rows; prepare the data again")
    return lengths_N


def _require_ids_of_text(ids_M: Ids, vocab_size: int, path: Path) -> None:
    """Raises DataError if there are ids that no text can have."""
    if ids_M.min() < UNK_ID or ids_M.max() >= vocab_size:
        raise DataError(
            f"{path} has ids from {ids_M.min()} to {ids_M.max()}, text can have {UNK_ID} to {vocab_size - 1}; "
            "prepare the data again"
        )

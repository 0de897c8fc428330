"""Detect misaligned parallel text: lines shifted against each other, or sides that do not match at all.

The method works for any language. Line N is compared with lines N - 20 to N + 20 of the other side by features of
translation pairs: line length, and shared numbers, names, cognates and punctuation. Scores of single pairs are noisy,
so chunks of fifty lines are scored together. Large text is sampled in evenly spread chunks and reread near each change.

Only significant shifts are reported: practically never for aligned text, even if it is repetitive, and seldom over
fewer than fifty lines.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, groupby, islice
from operator import itemgetter
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

__all__ = ["Alignment", "Segment", "align"]

ReadPairs: TypeAlias = Callable[[], Iterable[tuple[str, str] | None]]
Floats: TypeAlias = npt.NDArray[np.float64]

MAX_SHIFT = 20  # lines in either direction
CHUNK = 50  # lines scored together
MAX_CHUNKS = 500  # sampled; longer text uses every second chunk, every fourth, ...
CORRELATION = 0.7  # of standardised log lengths of translations
MAX_FEATURE_SCORE, MAX_PAIR_SCORE = 4.0, 8.0  # nats; so that no single pair dominates its chunk
MAX_FEATURE_SHARE = 0.1  # of the lines; more frequent features are ignored
SHIFT_CHANGE_COST = 40.0  # nats; penalty of each change of shift on the path
UNMATCHED = 2 * MAX_SHIFT + 1  # state after those of the shifts: no line matches
UNMATCHED_SHARE = 0.2  # of the mean score of aligned lines: the score of the unmatched state
MAX_CHARACTERS = 10_000  # of each line; some dozen lines are in memory at a time
MIN_MATCH = 1.0  # nats; lower bound of the mean score of aligned lines
MIN_SHIFTED_LINES, MIN_UNMATCHED_LINES = 30, 200  # lines
MIN_SHIFT_Z, MAX_UNMATCHED_Z = 6.0, 4.0  # standard errors: shifted - aligned; aligned - other shifts

_TOKEN = re.compile(r"\d+|[^\W\d_]{3,}|[?!:;()\[\]\"«»„“%/&=<>@…]|[.,](?=\s*$)")
_PREFIX = 5  # letters; prefixes of longer words are features, too, since cognates differ at their ends


@dataclass(frozen=True, slots=True)
class Segment:
    """From source line ``first_line`` on, line N matches target line N + ``shift``; with None, lines do not match."""

    first_line: int
    shift: int | None


@dataclass(frozen=True, slots=True)
class Alignment:
    """Alignment of two texts as segments of constant shift, from line 1 on; one segment of shift 0 is correct."""

    n_lines: int
    segments: tuple[Segment, ...] = (Segment(1, 0),)

    def fault(self, src: str, tgt: str) -> str | None:
        """One sentence on the first misalignment; None if aligned. ``src`` and ``tgt`` are display names.

        >>> print(Alignment(900, (Segment(1, 0), Segment(501, -1))).fault("a.en", "a.de"))
        from about line 501 on, line N of a.en matches line N - 1 of a.de: a.de lacks 1 line near there, or a.en has 1
        too many
        """
        wrong = next((index for index, segment in enumerate(self.segments) if segment.shift != 0), None)
        if wrong is None:
            return None
        segment = self.segments[wrong]
        where = "" if segment.first_line == 1 else f"from about line {segment.first_line:,} on, "
        further = len({each.first_line for each in self.segments[wrong + 1 :]})
        more = f"; the shift changes {further:,} more time{'' if further == 1 else 's'} after that"
        if segment.shift is None:
            what = f"the lines of {src} and {tgt} do not look like translations of each other"
        else:
            n, sign = abs(segment.shift), "+" if segment.shift > 0 else "-"
            shorter, longer = (src, tgt) if segment.shift > 0 else (tgt, src)
            position = "near there" if where else "at its beginning"
            what = (
                f"line N of {src} matches line N {sign} {n} of {tgt}: {shorter} lacks {n} line{'' if n == 1 else 's'}"
                f" {position}, or {longer} has {n} too many"
            )
        return where + what + (more if further else "")


@dataclass(slots=True)
class _Chunk:
    """Features of consecutive lines; the target side has MAX_SHIFT more lines on each end. Lines count from 0."""

    first: int
    src_lengths: Floats
    tgt_lengths: Floats  # from line first - MAX_SHIFT on; NaN outside the text
    src_features: list[frozenset[int]]
    tgt_features: list[frozenset[int]]


def align(read_pairs: ReadPairs) -> Alignment:
    """Align the two sides of a parallel text. ``read_pairs`` is called again for each change of shift.

    >>> lines = [("a dog " * (n % 7 + n // 10 % 5) + str(n), "ein Hund " * (n % 7 + n // 10 % 5) + str(n))
    ...          for n in range(300)]
    >>> src, tgt = zip(*lines)
    >>> align(lambda: zip(src, tgt[:100] + tgt[101:] + ("",))).segments
    (Segment(first_line=1, shift=0), Segment(first_line=102, shift=-1))
    """
    n_lines, chunks = _sample(read_pairs())
    if not chunks:
        return Alignment(n_lines)
    scorer = _Scorer(chunks)
    path = _significant_path(
        _best_path(np.stack([scorer.scores(chunk).sum(axis=0) for chunk in chunks])), scorer, chunks
    )
    segments = [Segment(1, _shift_of(path[0]))]
    for index in (index for index in range(1, len(path)) if path[index] != path[index - 1]):
        first, last = chunks[index - 1].first, chunks[index].first + len(chunks[index].src_lengths)
        lines = scorer.scores(_region(read_pairs(), first, last))
        gain = np.cumsum(lines[:, path[index - 1]] - lines[:, path[index]])
        begin = first + int(np.argmax(np.concatenate([[0.0], gain])))
        segments.append(Segment(begin + 1, _shift_of(path[index])))
    return Alignment(n_lines, tuple(segments))


def _shift_of(state: int) -> int | None:
    return None if state == UNMATCHED else state - MAX_SHIFT


def _sample(pairs: Iterable[tuple[str, str] | None]) -> tuple[int, list[_Chunk]]:
    """Return the number of lines, and chunks spread evenly over them."""
    chunks: list[_Chunk] = []
    stride, n_lines = 1, 0
    stream = iter(pairs)
    before: list[str] = []
    window = _read_lines(stream, CHUNK + MAX_SHIFT)
    while window:
        if n_lines % (CHUNK * stride) == 0:
            chunks.append(_chunk(n_lines, window[:CHUNK], before, window))
            if len(chunks) > MAX_CHUNKS:
                del chunks[1::2]
                stride *= 2
        n_lines += len(window[:CHUNK])
        before = [*before, *(tgt for _, tgt in window[:CHUNK])][-MAX_SHIFT:]
        window = window[CHUNK:]
        window += _read_lines(stream, CHUNK + MAX_SHIFT - len(window))
    return n_lines, chunks


def _region(pairs: Iterable[tuple[str, str] | None], first: int, last: int) -> _Chunk:
    """Return lines ``first`` to ``last`` - 1, counted from 0, as one chunk."""
    begin = max(0, first - MAX_SHIFT)
    window = _read_lines(islice(pairs, begin, None), last + MAX_SHIFT - begin)
    before, window = window[: first - begin], window[first - begin :]
    return _chunk(first, window[: last - first], [tgt for _, tgt in before], window)


def _read_lines(stream: Iterator[tuple[str, str] | None], n: int) -> list[tuple[str, str]]:
    cut = slice(MAX_CHARACTERS)
    return [("", "") if pair is None else (pair[0][cut], pair[1][cut]) for pair in islice(stream, n)]


def _chunk(
    first: int, pairs: Sequence[tuple[str, str]], before: Sequence[str], window: Sequence[tuple[str, str]]
) -> _Chunk:
    """Make the chunk of ``pairs``; ``window`` has them and the pairs after, ``before`` the target lines before."""
    padding = [""] * (MAX_SHIFT - len(before))
    tgt = [*padding, *before, *(line for _, line in window)][: len(pairs) + 2 * MAX_SHIFT]
    tgt += [""] * (len(pairs) + 2 * MAX_SHIFT - len(tgt))
    return _Chunk(
        first,
        np.array([_length(src) for src, _ in pairs]),
        np.array(list(map(_length, tgt))),
        [_features(src) for src, _ in pairs],
        list(map(_features, tgt)),
    )


def _length(line: str) -> float:
    """Return the logarithm of a line's length, NaN for a blank line."""
    length = len(line.strip())
    return float(np.log(length)) if length else float("nan")


def _features(line: str) -> frozenset[int]:
    tokens = _TOKEN.findall(line[:2000].casefold())
    return frozenset(map(hash, [*tokens, *(token[:_PREFIX] for token in tokens if len(token) > _PREFIX)]))


class _Scorer:
    """Approximate log-likelihood ratio, in nats, of two lines being translations against being unrelated."""

    def __init__(self, chunks: Sequence[_Chunk]) -> None:
        src = np.concatenate([chunk.src_lengths for chunk in chunks])
        tgt = np.concatenate([chunk.tgt_lengths[MAX_SHIFT : -MAX_SHIFT or None] for chunk in chunks])
        self._scales = [_scale(src), _scale(tgt)]
        src_counts, tgt_counts = Counter[int](), Counter[int]()  # number of lines with each feature
        for chunk in chunks:
            src_counts.update(chain.from_iterable(chunk.src_features))
            tgt_counts.update(chain.from_iterable(chunk.tgt_features[MAX_SHIFT : MAX_SHIFT + len(chunk.src_features)]))
        limit = max(1.0, MAX_FEATURE_SHARE * len(src))
        counts = {feature: max(n, tgt_counts[feature]) for feature, n in src_counts.items() if feature in tgt_counts}
        self._weights = {
            feature: min(float(np.log(2 * limit / n)), MAX_FEATURE_SCORE) for feature, n in counts.items() if n <= limit
        }
        aligned = np.concatenate([self._pair_scores(chunk)[:, MAX_SHIFT] for chunk in chunks])
        sample = np.concatenate([self._pair_scores(chunk) for chunk in chunks[:: max(1, len(chunks) // 40)]])
        best = float(sample.mean(axis=0).max())
        self._unmatched = UNMATCHED_SHARE * max(best, float(aligned.mean()), MIN_MATCH)

    def scores(self, chunk: _Chunk) -> Floats:
        """Scores of the lines of a chunk (rows) in each state (columns): the shifts, then UNMATCHED."""
        is_known = ~np.isnan(chunk.src_lengths + chunk.tgt_lengths[MAX_SHIFT : MAX_SHIFT + len(chunk.src_lengths)])
        unmatched = np.where(is_known, self._unmatched, 0.0)
        return np.column_stack([self._pair_scores(chunk), unmatched])

    def _pair_scores(self, chunk: _Chunk) -> Floats:
        """Scores of the lines of a chunk (rows) at each shift from -MAX_SHIFT to MAX_SHIFT (columns)."""
        n_lines, n_shifts = len(chunk.src_lengths), 2 * MAX_SHIFT + 1
        x = _scaled(chunk.src_lengths, self._scales[0])[:, None]
        y = np.lib.stride_tricks.sliding_window_view(_scaled(chunk.tgt_lengths, self._scales[1]), n_shifts)
        rho = CORRELATION  # scores: log-likelihood ratio of correlated against independent normal x and y
        scores = -0.5 * np.log(1 - rho**2) - (rho**2 * (x**2 + y**2) - 2 * rho * x * y) / (2 * (1 - rho**2))
        scores = np.nan_to_num(scores, nan=0.0)
        columns: dict[int, list[int]] = {}
        for column, features in enumerate(chunk.tgt_features):
            for feature in features:
                if feature in self._weights:
                    columns.setdefault(feature, []).append(column)
        shared = np.zeros((n_lines, n_shifts))
        for row, features in enumerate(chunk.src_features):
            for feature in features:
                for column in columns.get(feature, ()):
                    if 0 <= column - row < n_shifts:
                        shared[row, column - row] += self._weights[feature]
        result: Floats = scores + np.minimum(shared, MAX_PAIR_SCORE)
        return result


def _scale(lengths: Floats) -> tuple[float, float]:
    known = lengths[~np.isnan(lengths)]
    return (float(known.mean()), max(float(known.std()), 1e-6)) if known.size else (0.0, 1.0)


def _scaled(lengths: Floats, scale: tuple[float, float]) -> Floats:
    mean, deviation = scale
    scaled: Floats = np.clip((lengths - mean) / deviation, -3.0, 3.0)
    return scaled


def _best_path(scores: Floats) -> list[int]:
    """Viterbi path: the state of each chunk; each change of state costs SHIFT_CHANGE_COST."""
    n_chunks, n_states = scores.shape
    total = np.full(n_states, -SHIFT_CHANGE_COST)
    total[MAX_SHIFT] = 0.0
    previous = np.zeros((n_chunks, n_states), dtype=np.int64)
    for index in range(n_chunks):
        best = int(total.argmax())
        stays = total >= total[best] - SHIFT_CHANGE_COST
        previous[index] = np.where(stays, np.arange(n_states), best)
        total = np.maximum(total, total[best] - SHIFT_CHANGE_COST) + scores[index]
    state = int(total.argmax())
    path = []
    for index in range(n_chunks - 1, -1, -1):
        path.append(state)
        state = int(previous[index, state])
    return path[::-1]


def _significant_path(path: Sequence[int], scorer: _Scorer, chunks: Sequence[_Chunk]) -> list[int]:
    """Return the path with insignificant segments reset to aligned."""
    significant_path: list[int] = []
    for state, run in groupby(zip(path, chunks, strict=True), key=itemgetter(0)):
        run_chunks = [chunk for _, chunk in run]
        keep = state != MAX_SHIFT and _is_significant(state, np.concatenate(list(map(scorer.scores, run_chunks))))
        significant_path += [state if keep else MAX_SHIFT] * len(run_chunks)
    return significant_path


def _is_significant(state: int, lines: Floats) -> bool:
    """Whether the scores of lines are significantly better in this state than aligned."""
    aligned = lines[:, MAX_SHIFT]
    if state == UNMATCHED:
        others = np.delete(lines[:, :UNMATCHED], MAX_SHIFT, axis=1).mean(axis=1)
        return len(lines) >= MIN_UNMATCHED_LINES and _z(aligned - others) < MAX_UNMATCHED_Z
    return len(lines) >= MIN_SHIFTED_LINES and _z(lines[:, state] - aligned) > MIN_SHIFT_Z


def _z(differences: Floats) -> float:
    """Return the mean, measured in standard errors."""
    return float(differences.mean() / max(float(differences.std()), 1e-6) * np.sqrt(len(differences)))

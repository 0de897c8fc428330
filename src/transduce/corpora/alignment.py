"""Whether line N of one text translates line N of the other: where they are shifted, and whether they match at all.

Nothing is known of the languages. Line N is compared with the lines N - 20 to N + 20 of the other side by what
translations have in common: long sentences have long translations, and numbers, names, words of a common origin and
punctuation stay. One pair says little; chunks of fifty say much. Large text is looked at in chunks spread evenly over
it, and read once more only round a place where something changes.

A shift is told only where it is clear: practically never over text that is aligned, be it repetitive, and seldom over
less than fifty lines.
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

MAX_SHIFT = 20  # lines, either way
CHUNK = 50  # lines that are judged together
MAX_CHUNKS = 500  # that are looked at; beyond, every second one, every fourth, ...
CORRELATION = 0.7  # of the log lengths of translations, after scaling to mean 0 and deviation 1
MAX_FEATURE_SCORE, MAX_PAIR_SCORE = 4.0, 8.0  # nats: a pair that shares all of its words is one pair yet
MAX_FEATURE_SHARE = 0.1  # a feature that is on more than this share of the lines says nothing
SHIFT_CHANGE_COST = 40.0  # nats: so much better must another shift be, over all lines for which it holds
UNMATCHED = 2 * MAX_SHIFT + 1  # the state after those of all shifts: no line matches
UNMATCHED_SHARE = 0.2  # of what aligned lines have in common; less is as good as nothing
MAX_CHARACTERS = 10_000  # characters of a line; no sentence has more, and some dozen lines are held at a time
MIN_MATCH = 1.0  # nats that aligned lines have in common at least
MIN_SHIFTED_LINES, MIN_UNMATCHED_LINES = 30, 200  # lines
MIN_SHIFT_Z, MAX_CHANCE_Z = 6.0, 4.0  # standard errors

_TOKEN = re.compile(r"\d+|[^\W\d_]{3,}|[?!:;()\[\]\"«»„“%/&=<>@…]|[.,](?=\s*$)")
_PREFIX = 5  # letters of a longer word that count, too: words of a common origin differ at their ends


@dataclass(frozen=True, slots=True)
class Segment:
    """From ``first_line`` of the source on, its line N matches line N + ``shift`` of the target; with None, no line."""

    first_line: int
    shift: int | None


@dataclass(frozen=True, slots=True)
class Alignment:
    """How two texts lie. ``segments`` begin with line 1; a single one with a shift of 0 is as it should be."""

    n_lines: int
    segments: tuple[Segment, ...] = (Segment(1, 0),)

    def fault(self, src: str, tgt: str) -> str | None:
        """What is wrong, in a sentence for people; None where nothing is. ``src`` and ``tgt`` are names of the two.

        >>> print(Alignment(900, (Segment(1, 0), Segment(501, -1))).fault("a.en", "a.de"))
        from about line 501 on, line N of a.en matches line N - 1 of a.de: a.de lacks 1 line near there, or a.en has 1
        too many
        """
        wrong = next((place for place, segment in enumerate(self.segments) if segment.shift != 0), None)
        if wrong is None:
            return None
        segment = self.segments[wrong]
        where = "" if segment.first_line == 1 else f"from about line {segment.first_line:,} on, "
        further = len({each.first_line for each in self.segments[wrong + 1 :]})
        more = f"; what lies where changes {further:,} more time{'' if further == 1 else 's'} after that"
        if segment.shift is None:
            what = f"the lines of {src} and {tgt} do not look like translations of each other"
        else:
            n, sign = abs(segment.shift), "+" if segment.shift > 0 else "-"
            lacking, having = (src, tgt) if segment.shift > 0 else (tgt, src)
            place = "near there" if where else "at its beginning"
            what = (
                f"line N of {src} matches line N {sign} {n} of {tgt}: {lacking} lacks {n} line{'' if n == 1 else 's'}"
                f" {place}, or {having} has {n} too many"
            )
        return where + what + (more if further else "")


@dataclass(slots=True)
class _Chunk:
    """Some lines in a row, with what stands before and after them on the target side. Lines are counted from 0."""

    first: int
    src_lengths: Floats
    tgt_lengths: Floats  # of the lines from first - MAX_SHIFT on; NaN where there is none
    src_features: list[frozenset[int]]
    tgt_features: list[frozenset[int]]


def align(read_pairs: ReadPairs) -> Alignment:
    """How the two sides of some pairs lie to each other. ``read_pairs`` is called again for each place of a change.

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
    path = _clear_path(_best_path(np.stack([scorer.scores(chunk).sum(axis=0) for chunk in chunks])), scorer, chunks)
    segments = [Segment(1, _shift_of(path[0]))]
    for place in (place for place in range(1, len(path)) if path[place] != path[place - 1]):
        first, last = chunks[place - 1].first, chunks[place].first + len(chunks[place].src_lengths)
        lines = scorer.scores(_region(read_pairs(), first, last))
        gain = np.cumsum(lines[:, path[place - 1]] - lines[:, path[place]])
        begin = first + int(np.argmax(np.concatenate([[0.0], gain])))
        segments.append(Segment(begin + 1, _shift_of(path[place])))
    return Alignment(n_lines, tuple(segments))


def _shift_of(state: int) -> int | None:
    return None if state == UNMATCHED else state - MAX_SHIFT


def _sample(pairs: Iterable[tuple[str, str] | None]) -> tuple[int, list[_Chunk]]:
    """How many lines there are, and chunks that are spread evenly over them."""
    chunks: list[_Chunk] = []
    stride, n_lines = 1, 0
    stream = iter(pairs)
    before: list[str] = []
    window = _take(stream, CHUNK + MAX_SHIFT)
    while window:
        if n_lines % (CHUNK * stride) == 0:
            chunks.append(_chunk(n_lines, window[:CHUNK], before, window))
            if len(chunks) > MAX_CHUNKS:
                del chunks[1::2]
                stride *= 2
        n_lines += len(window[:CHUNK])
        before = [*before, *(tgt for _, tgt in window[:CHUNK])][-MAX_SHIFT:]
        window = window[CHUNK:]
        window += _take(stream, CHUNK + MAX_SHIFT - len(window))
    return n_lines, chunks


def _region(pairs: Iterable[tuple[str, str] | None], first: int, last: int) -> _Chunk:
    """The lines from ``first`` to before ``last``, counted from 0, as one chunk."""
    begin = max(0, first - MAX_SHIFT)
    window = _take(islice(pairs, begin, None), last + MAX_SHIFT - begin)
    before, window = window[: first - begin], window[first - begin :]
    return _chunk(first, window[: last - first], [tgt for _, tgt in before], window)


def _take(stream: Iterator[tuple[str, str] | None], n: int) -> list[tuple[str, str]]:
    return [
        ("", "") if pair is None else (pair[0][:MAX_CHARACTERS], pair[1][:MAX_CHARACTERS]) for pair in islice(stream, n)
    ]


def _chunk(
    first: int, pairs: Sequence[tuple[str, str]], before: Sequence[str], window: Sequence[tuple[str, str]]
) -> _Chunk:
    """The chunk of ``pairs``; ``window`` has them and those that come after, ``before`` the targets before."""
    nowhere = [""] * (MAX_SHIFT - len(before))
    tgt = [*nowhere, *before, *(line for _, line in window)][: len(pairs) + 2 * MAX_SHIFT]
    tgt += [""] * (len(pairs) + 2 * MAX_SHIFT - len(tgt))
    return _Chunk(
        first,
        np.array([_length(src) for src, _ in pairs]),
        np.array(list(map(_length, tgt))),
        [_features(src) for src, _ in pairs],
        list(map(_features, tgt)),
    )


def _length(line: str) -> float:
    """The logarithm of a line's length; NaN where it is blank, since that says nothing."""
    length = len(line.strip())
    return float(np.log(length)) if length else float("nan")


def _features(line: str) -> frozenset[int]:
    tokens = _TOKEN.findall(line[:2000].casefold())
    return frozenset(map(hash, [*tokens, *(token[:_PREFIX] for token in tokens if len(token) > _PREFIX)]))


class _Scorer:
    """How much more likely two lines are as translations of each other than by chance, in nats; roughly."""

    def __init__(self, chunks: Sequence[_Chunk]) -> None:
        src = np.concatenate([chunk.src_lengths for chunk in chunks])
        tgt = np.concatenate([chunk.tgt_lengths[MAX_SHIFT : -MAX_SHIFT or None] for chunk in chunks])
        self._scales = [_scale(src), _scale(tgt)]
        on_src, on_tgt = Counter[int](), Counter[int]()  # lines that have a feature
        for chunk in chunks:
            on_src.update(chain.from_iterable(chunk.src_features))
            on_tgt.update(chain.from_iterable(chunk.tgt_features[MAX_SHIFT : MAX_SHIFT + len(chunk.src_features)]))
        limit = max(1.0, MAX_FEATURE_SHARE * len(src))
        most = {feature: max(n, on_tgt[feature]) for feature, n in on_src.items() if feature in on_tgt}
        self._weights = {
            feature: min(float(np.log(2 * limit / n)), MAX_FEATURE_SCORE) for feature, n in most.items() if n <= limit
        }
        aligned = np.concatenate([self._pair_scores(chunk)[:, MAX_SHIFT] for chunk in chunks])
        some = np.concatenate([self._pair_scores(chunk) for chunk in chunks[:: max(1, len(chunks) // 40)]])
        best = float(some.mean(axis=0).max())
        self._unmatched = UNMATCHED_SHARE * max(best, float(aligned.mean()), MIN_MATCH)

    def scores(self, chunk: _Chunk) -> Floats:
        """For each line of a chunk (rows) and each shift from -MAX_SHIFT to MAX_SHIFT, and of no match (columns)."""
        is_known = ~np.isnan(chunk.src_lengths + chunk.tgt_lengths[MAX_SHIFT : MAX_SHIFT + len(chunk.src_lengths)])
        unmatched = np.where(is_known, self._unmatched, 0.0)
        return np.column_stack([self._pair_scores(chunk), unmatched])

    def _pair_scores(self, chunk: _Chunk) -> Floats:
        """For each line of a chunk (rows) and each shift from -MAX_SHIFT to MAX_SHIFT (columns)."""
        n_lines, n_shifts = len(chunk.src_lengths), 2 * MAX_SHIFT + 1
        x = _scaled(chunk.src_lengths, self._scales[0])[:, None]
        y = np.lib.stride_tricks.sliding_window_view(_scaled(chunk.tgt_lengths, self._scales[1]), n_shifts)
        rho = CORRELATION
        scores = -0.5 * np.log(1 - rho**2) - (rho**2 * (x**2 + y**2) - 2 * rho * x * y) / (2 * (1 - rho**2))
        scores = np.nan_to_num(scores, nan=0.0)
        where: dict[int, list[int]] = {}
        for place, features in enumerate(chunk.tgt_features):
            for feature in features:
                if feature in self._weights:
                    where.setdefault(feature, []).append(place)
        shared = np.zeros((n_lines, n_shifts))
        for row, features in enumerate(chunk.src_features):
            for feature in features:
                for place in where.get(feature, ()):
                    if 0 <= place - row < n_shifts:
                        shared[row, place - row] += self._weights[feature]
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
    """The state of each chunk, over which the scores are greatest when a change costs something."""
    n_chunks, n_states = scores.shape
    total = np.full(n_states, -SHIFT_CHANGE_COST)
    total[MAX_SHIFT] = 0.0
    came_from = np.zeros((n_chunks, n_states), dtype=np.int64)
    for place in range(n_chunks):
        best = int(total.argmax())
        stays = total >= total[best] - SHIFT_CHANGE_COST
        came_from[place] = np.where(stays, np.arange(n_states), best)
        total = np.maximum(total, total[best] - SHIFT_CHANGE_COST) + scores[place]
    state = int(total.argmax())
    path = []
    for place in range(n_chunks - 1, -1, -1):
        path.append(state)
        state = int(came_from[place, state])
    return path[::-1]


def _clear_path(path: Sequence[int], scorer: _Scorer, chunks: Sequence[_Chunk]) -> list[int]:
    """The path, but that what is not clearly otherwise is taken to be aligned."""
    cleared: list[int] = []
    for state, run in groupby(zip(path, chunks, strict=True), key=itemgetter(0)):
        in_a_row = [chunk for _, chunk in run]
        is_clear = state == MAX_SHIFT or _is_clear(state, np.concatenate(list(map(scorer.scores, in_a_row))))
        cleared += [state if is_clear else MAX_SHIFT] * len(in_a_row)
    return cleared


def _is_clear(state: int, lines: Floats) -> bool:
    """Whether the scores of some lines say clearly that they are not aligned, but in this state."""
    aligned = lines[:, MAX_SHIFT]
    if state == UNMATCHED:
        others = np.delete(lines[:, :UNMATCHED], MAX_SHIFT, axis=1).mean(axis=1)
        return len(lines) >= MIN_UNMATCHED_LINES and _z(aligned - others) < MAX_CHANCE_Z
    return len(lines) >= MIN_SHIFTED_LINES and _z(lines[:, state] - aligned) > MIN_SHIFT_Z


def _z(differences: Floats) -> float:
    """The mean in standard errors."""
    return float(differences.mean() / max(float(differences.std()), 1e-6) * np.sqrt(len(differences)))

"""Subtitles from a translation: its division over several of them, and over the lines of each.

Both divide at the ends of words, near the place where the source is divided, and rather behind punctuation.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise

from transduce.documents.wrapping import width_of
from transduce.patterns import compiled_on_use
from transduce.text.characters import SPACELESS
from transduce.text.markup_reading import Token
from transduce.text.punctuation import COMMAS, SENTENCE_ENDS, STRONG_PAUSES

__all__ = ["MAX_COLUMNS", "Atom", "atoms_of", "divided", "laid_out", "tokens_of"]

MAX_COLUMNS = 42  # of a line, as broadcasters have it; wide characters count twice
_TAG = compiled_on_use(r"</?([A-Za-z]\w*+)[^<>]*+>|<\d[\d:.]*+>|\{\\[^{}]*+\}")
_ATOM = compiled_on_use(rf"\s+|[{SPACELESS}][^\w\s]*|[^\s{SPACELESS}]+")
_SPACELESS = compiled_on_use(rf"[{SPACELESS}]")
_CLOSING = "\"'”’»)]」』"
MAX_DEPTH = 100  # of open tags; deeper ones are not opened anew
# Columns that a division may be away from its place to stand behind a sentence, a clause, or any other word.
_AFTER_SENTENCE, _AFTER_CLAUSE, _AFTER_WORD = 0, 4, 8


def tokens_of(text: str) -> Iterator[Token]:
    """Yield the text and tags of a subtitle: ``<i>``, ``<v Name>``, ``{\\an8}``, times of single words."""
    position = 0
    for match in _TAG.finditer(text):
        if position < match.start():
            yield Token("text", text[position : match.start()])
        name = (match[1] or "").lower()
        yield Token("end" if match[0][1] == "/" else "start" if name else "single", match[0], name)
        position = match.end()
    if position < len(text):
        yield Token("text", text[position:])


@dataclass(frozen=True, slots=True)
class Atom:
    """What no division parts: a word with its tags, or a letter of a script without spaces."""

    raw: str
    n_columns: int
    has_space: bool  # before it
    open_before: tuple[Token, ...]  # the tags that are open
    open_after: tuple[Token, ...]


def atoms_of(text: str) -> list[Atom]:
    """Return the atoms of a text with tags.

    >>> [atom.raw for atom in atoms_of("Ein <i>sehr altes</i> Haus")]
    ['Ein', '<i>sehr', 'altes</i>', 'Haus']
    """
    reader = _AtomReader()
    for token in tokens_of(text):
        if token.kind == "text":
            for match in _ATOM.finditer(token.raw):
                reader.take(match[0])
        else:
            reader.take_tag(token)
    return reader.finished()


class _AtomReader:
    """The atoms so far, and one that is not complete."""

    def __init__(self) -> None:
        self._atoms, self._stack = list[Atom](), list[Token]()
        self._raw, self._n_columns, self._has_space, self._before = "", 0, False, tuple[Token, ...]()
        self._is_after_space = False

    def take(self, piece: str) -> None:
        """Add space, a word, or a letter of a script without spaces."""
        if piece.isspace():
            self._end()
            self._is_after_space = True
            return
        if self._n_columns and _SPACELESS.match(piece) and _SPACELESS.match(self._raw.rstrip(_CLOSING)[-1:]):
            self._end()
        self._add(piece)
        self._n_columns += width_of(piece)

    def take_tag(self, tag: Token) -> None:
        """Add a tag to the word beside it."""
        self._add(tag.raw)
        if tag.kind == "start" and len(self._stack) < MAX_DEPTH:
            self._stack.append(tag)
        elif any(each.name == tag.name for each in self._stack):
            while self._stack.pop().name != tag.name:
                pass

    def finished(self) -> list[Atom]:
        """Return all atoms; tags behind the last word belong to it."""
        if self._raw and not self._n_columns and self._atoms:
            last = self._atoms.pop()
            self._raw, self._n_columns = last.raw + " " * self._has_space + self._raw, last.n_columns
            self._has_space, self._before = last.has_space, last.open_before
        self._end(is_last=True)
        return self._atoms

    def _add(self, raw: str) -> None:
        if not self._raw:
            self._has_space, self._before = self._is_after_space and bool(self._atoms), tuple(self._stack)
            self._is_after_space = False
        self._raw += raw

    def _end(self, *, is_last: bool = False) -> None:
        if self._n_columns or (is_last and self._raw):
            self._atoms.append(Atom(self._raw, self._n_columns, self._has_space, self._before, tuple(self._stack)))
            self._raw, self._n_columns = "", 0


def divided(atoms: Sequence[Atom], shares: Sequence[float], max_columns: Sequence[int]) -> list[Sequence[Atom]]:
    """Divide atoms into as many parts as there are shares of their length; each has one as long as there are enough.

    ``max_columns`` are those of the parts: a longer one is worse than one that is far from its share.
    """
    ends = [0, *accumulate(atom.n_columns + atom.has_space for atom in atoms)]
    total, wholes, rooms = ends[-1], [*accumulate(shares, initial=0.0)], [*accumulate(max_columns, initial=0)]
    cuts = [0]
    for part in range(1, len(shares)):
        ideal = wholes[part] / wholes[-1] * total
        latest = ends[cuts[-1]] + max_columns[part - 1]  # without an excess, as the next
        soonest = total - (rooms[-1] - rooms[part])

        def distance(cut: int, ideal: float = ideal, latest: int = latest, soonest: int = soonest) -> float:
            excess = max(0, ends[cut] - latest) + max(0, soonest - ends[cut])
            return abs(ends[cut] - ideal) + 10 * excess

        low = min(cuts[-1] + 1, len(atoms))
        high = max(low, len(atoms) - len(shares) + part)
        cuts.append(min(_near(distance, low, high), key=lambda cut: distance(cut) + _penalty(atoms, cut)))
    return [atoms[start:end] for start, end in pairwise([*cuts, len(atoms)])]


def _near(distance: Callable[[int], float], low: int, high: int) -> range:
    """Return the numbers from ``low`` to ``high`` that a penalty may make the best; ``distance`` has one minimum."""
    best = bisect_left(range(low, high), True, key=lambda cut: distance(cut) <= distance(cut + 1)) + low
    worst = distance(best) + _AFTER_WORD
    first = last = best
    while first > low and distance(first - 1) <= worst:
        first -= 1
    while last < high and distance(last + 1) <= worst:
        last += 1
    return range(first, last + 1)


def _penalty(atoms: Sequence[Atom], cut: int) -> int:
    """Return how much worse a division is than one behind a sentence."""
    if not cut:
        return _AFTER_WORD
    last = "".join(token.raw for token in tokens_of(atoms[cut - 1].raw) if token.kind == "text").rstrip(_CLOSING)[-1:]
    if last and last in SENTENCE_ENDS:
        return _AFTER_SENTENCE
    return _AFTER_CLAUSE if last and last in COMMAS + STRONG_PAUSES else _AFTER_WORD


def laid_out(atoms: Sequence[Atom], max_lines: int, max_columns: int, line_end: str) -> str:
    """Return the text of a subtitle: on one line if it fits, else on lines of about equal length.

    Tags that are open at its ends are opened and closed.

    >>> laid_out(atoms_of("Das ist ein <i>sehr altes Haus</i> am See."), 2, 25, "\\n")
    'Das ist ein <i>sehr\\naltes Haus</i> am See.'
    """
    if not atoms:
        return ""
    n_columns = sum(atom.n_columns + atom.has_space for atom in atoms)
    n_lines = max(1, min(max_lines, -(-n_columns // max_columns)))
    lines = divided(atoms, [1.0] * n_lines, [max_columns] * n_lines)
    texts = ["".join(" " * (atom.has_space and at > 0) + atom.raw for at, atom in enumerate(line)) for line in lines]
    opening = "".join(token.raw for token in atoms[0].open_before)
    closing = "".join(f"</{token.name}>" for token in reversed(atoms[-1].open_after))
    return opening + line_end.join(filter(None, texts)) + closing

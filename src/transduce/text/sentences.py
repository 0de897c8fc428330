"""Sentence and clause splitting. Segments join to the original text.

Sentence boundaries come from ``sentencex``, which knows abbreviations, quotes and lists in many languages; some that it
gets wrong are corrected (``abbreviations.py``, sentences in brackets, scripts that it does not know).
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise

from sentencex import segment

from transduce.patterns import compiled_on_use
from transduce.text.abbreviations import LOOKS_AT, continues
from transduce.text.punctuation import COMMAS, SENTENCE_ENDS, STRONG_PAUSES, SURE_ENDS
from transduce.text.quotes import plain_quotes
from transduce.text.verbatim import verbatim_spans

__all__ = ["Segment", "spaces_between", "split_clauses", "split_sentences"]

MAX_BLOCK_CHARACTERS = 10_000  # passed to sentencex at once
MIN_LETTERS = 2  # of a sentence: "1." and "M." belong to the next one
_LETTER_OR_DIGIT, _LETTER = compiled_on_use(r"[^\W_]"), compiled_on_use(r"[^\W\d_]")
_WIDE_SPACE = compiled_on_use(r"[^\S\t\n ]")  # replaced by a space: sentencex 1.0 panics at "B\u00a0."
_SURROGATE = compiled_on_use("[\ud800-\udfff]")
_UNSPACED_LANGUAGES = frozenset(("zh", "ja", "yue", "wuu", "lzh"))  # no space between sentences; Thai, Lao, Khmer do
_STRONG_END = compiled_on_use(rf"[{SURE_ENDS}]\s*$")
# Ends that sentencex does not know, and those of scripts other than Latin and Chinese without a space behind them.
_OTHER_ENDS = "".join(set(SURE_ENDS) - set("!?。！？｡‼⁇⁈⁉"))
_UNKNOWN_END = compiled_on_use(rf"[។៕෴༎༏༐༑⳹⳾︒]+\s*|[{_OTHER_ENDS}]{{1,99}}+(?=[^\W_])")  # 99: else in quadratic time
# A sentence in brackets, or several, before another.
_BRACKETED = compiled_on_use(rf"[(\[][^()\[\]]+[{SENTENCE_ENDS}][)\]]\s+(?=\S)|（[^（）]+[{SENTENCE_ENDS}]）\s*(?=\S)")
_OPENING = "([\"'«¿¡（「『"

_SPACED = "!?,;:·"  # marks that a space follows; those of other scripts may stand between words alone
_PAUSES, _COMMAS = ("".join(set(marks) - set(_SPACED)) for marks in (STRONG_PAUSES + SURE_ENDS, COMMAS))

# Possible clause boundaries, best kind first. The boundary is the end of the match.
_BOUNDARIES = (
    compiled_on_use(rf"[!?;:·]\s+|[{_PAUSES}](?!\d)\s*|\s[–—-]\s+"),
    compiled_on_use(rf"[,)\]]\s+|[{_COMMAS}](?!\d)\s*"),
    compiled_on_use(r"\s+"),
)
MIN_FRACTION = 0.2  # of the length of a sentence, on either side of a boundary at punctuation


@dataclass(frozen=True, slots=True)
class Segment:
    """A sentence or clause of a text, and the whitespace between it and the next ("" if there is none)."""

    text: str
    space: str


def split_sentences(text: str, language: str) -> list[Segment]:
    """Split ``text`` into sentences by the rules of ``language`` (``en``, ``de``, ...), or general ones if unknown.

    Whitespace around the whole text is removed. A text without words is one segment.

    >>> [each.text for each in split_sentences("Dr. Smith paid 3.50 dollars.  He left.", "en")]
    ['Dr. Smith paid 3.50 dollars.', 'He left.']
    >>> split_sentences("Yes!  No?", "en")[0]
    Segment(text='Yes!', space='  ')
    """
    text = text.strip()
    if not text:
        return [Segment("", "")]
    ends = [0, *accumulate(map(len, _sentences(plain_quotes(text), language)))]
    return _segments([text[start:end] for start, end in pairwise(ends)])


def _sentences(text: str, language: str) -> list[str]:
    """Return the sentences of a text that is not empty; they concatenate to it."""
    parts: list[str] = []
    pending: list[str] = []  # parts to join with the next one, not sentences by themselves: "1.", "M."
    end, verbatim, has_words = 0, _VerbatimSpans(text), False
    for part in _sentencex_parts(text, language):
        end += len(part)
        is_inside = end in verbatim or (part[-1:].isascii() and not part[-1:].isspace())
        if end < len(text) and (is_inside or continues(part, text[end : end + LOOKS_AT], language)):
            pending.append(part)  # "README.Debian", <img alt="One. Two.">, "vol. 3"
            has_words = True
        elif not has_words and _is_enumerator(part):
            pending.append(part)
        elif pending or not parts or _LETTER_OR_DIGIT.search(part):
            parts.append("".join([*pending, part]))
            pending, has_words = [], False
        else:  # punctuation only: belongs to the last sentence
            parts[-1] += part
    if pending:
        parts[-1:] = ["".join([*parts[-1:], *pending])]
    return [piece for part in parts for piece in _pieces(part)]


def split_clauses(text: str, max_tokens: int, n_tokens: Callable[[str], int]) -> list[Segment]:
    """Split ``text`` recursively, near the middle, into clauses of at most ``max_tokens`` tokens.

    Boundaries in order of preference: semicolon, colon or dash; comma or closing bracket; whitespace. Words, and spans
    that are copied verbatim (tags, URLs; ``masks.py``), are never split, so a clause may be longer.

    >>> [each.text for each in split_clauses("when it rains, we stay at home", 5, lambda text: len(text.split()))]
    ['when it rains,', 'we stay at home']
    """
    return _segments(list(_clauses(text.strip(), max_tokens, n_tokens)))


def spaces_between(texts: Sequence[str], segments: Sequence[Segment], language: str) -> list[str]:
    """Return the whitespace after each of ``texts``, translations of the segments into ``language``.

    It is that of the source. Where the source has none, as after the full stops of other scripts, there is a space;
    where the target writes none, spaces are left out. None follows an empty text.

    >>> spaces_between(["He left.", "I came."], split_sentences("他走了。我来了。", "zh"), "en")
    [' ', '']
    >>> spaces_between(["他走了。", "我来了。"], split_sentences("He left. I came.", "en"), "zh")
    ['', '']
    """
    is_unspaced = language.partition("-")[0] in _UNSPACED_LANGUAGES

    def space_after(text: str, segment: Segment) -> str:
        if not text:
            return ""
        if is_unspaced:
            return segment.space if segment.space.strip(" ") or text[-1].isascii() else ""
        return segment.space or ("" if segment.text[-1:].isascii() else " ")

    return [*map(space_after, texts[:-1], segments), *(segment.space for segment in segments[-1:])]


class _VerbatimSpans:
    """Positions of a text strictly inside verbatim spans (URLs, tags, ...), where it may not be split."""

    def __init__(self, text: str) -> None:
        self._spans = verbatim_spans(text)

    def __contains__(self, position: int) -> bool:
        index = bisect_left(self._spans, (position,)) - 1  # the last span that starts before it
        return index >= 0 and position < self._spans[index][1]


def _sentencex_parts(text: str, language: str) -> Iterator[str]:
    """Split ``text`` with sentencex, in blocks: its time is quadratic in the number of quotation marks.

    The last part of a block may be incomplete and is split again with the next block. Words are never split.
    """
    plain = _SURROGATE.sub("\ufffd", _WIDE_SPACE.sub(" ", text))
    part_start = start = 0  # start of the next part, start of the next block
    while start < len(text):
        block = plain[start : start + MAX_BLOCK_CHARACTERS]
        is_last = start + len(block) == len(text)
        parts = segment(language.partition("-")[0], block) or [block]
        if not is_last and len(parts) > 1:
            parts.pop()
        elif not is_last:
            parts = [block[: block.rfind(" ") + 1]]
        for part in filter(None, parts):
            start += len(part)
            yield text[part_start:start]
            part_start = start
        if parts == [""]:
            start += len(block)
    if part_start < start:
        yield text[part_start:start]


def _pieces(part: str) -> Iterator[str]:
    """Divide a part where sentencex did not; the pieces concatenate to it."""
    start = 0
    while (bracketed := _BRACKETED.match(part, start)) and _is_sentence(bracketed[0], part[bracketed.end()]):
        yield bracketed[0]
        start = bracketed.end()
    for match in _UNKNOWN_END.finditer(part, start):
        yield part[start : match.end()]
        start = match.end()
    if start < len(part):
        yield part[start:]


def _is_sentence(bracketed: str, following: str) -> bool:
    """Whether words in brackets are a sentence: more than an abbreviation, and another sentence may begin behind it."""
    begins = (following.isalnum() and not following.islower()) or following in _OPENING
    inside = bracketed.strip()[1:-1]
    return begins and _LETTER.search(inside) is not None and (inside[-1] in SURE_ENDS or len(inside.split()) > 1)


def _is_enumerator(part: str) -> bool:
    """Whether a part is a number or an initial ("1.", "M."), which belongs to the next sentence."""
    letters = _LETTER.findall(part, 0, MIN_LETTERS * 10)
    return (
        len(letters) < MIN_LETTERS
        and len(part) < MIN_LETTERS * 10
        and _LETTER_OR_DIGIT.search(part) is not None
        and _STRONG_END.search(part) is None
    )


def _segments(parts: Sequence[str]) -> list[Segment]:
    """Return the stripped parts, with the whitespace between two parts as the ``space`` of the first."""
    stripped = [part.strip() for part in parts]
    spaces = [
        part[len(part.rstrip()) :] + following[: len(following) - len(following.lstrip())]
        for part, following in zip(parts, [*parts[1:], ""], strict=True)
    ]
    return [Segment(text, space) for text, space in zip(stripped, spaces, strict=True)]


def _clauses(text: str, max_tokens: int, n_tokens: Callable[[str], int]) -> Iterator[str]:
    """Yield the clauses of ``text``, left to right; they concatenate to ``text``."""
    verbatim = _VerbatimSpans(text)
    kinds = [[match.end() for match in pattern.finditer(text)] for pattern in _BOUNDARIES]
    boundaries = [[end for end in ends if end not in verbatim] for ends in kinds]
    stack = [(0, len(text))]
    while stack:
        start, end = stack.pop()
        part = text[start:end]
        is_long = n_tokens(part) > max_tokens
        split = _best_boundary(boundaries, start, end, start + len(part.rstrip())) if is_long else None
        if split is None:
            yield part
        else:
            stack += [(split, end), (start, split)]


def _best_boundary(boundaries: Sequence[Sequence[int]], start: int, end: int, stripped_end: int) -> int | None:
    """Return the boundary nearest to the middle, of the best kind that has one between ``start`` and ``end``."""
    middle = (start + end) / 2
    for kind, positions in enumerate(boundaries):
        margin = 1 if kind == len(boundaries) - 1 else max(1, int(MIN_FRACTION * (end - start)))
        low = bisect_left(positions, start + margin)
        high = bisect_left(positions, min(end - margin + 1, stripped_end))
        if low < high:
            near = bisect_left(positions, middle, low, high)
            return min(positions[max(low, near - 1) : min(high, near + 1)], key=lambda position: abs(position - middle))
    return None

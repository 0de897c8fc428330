"""The sentences of a text, and the clauses of a sentence; joined again, they are the text that they were.

Where a sentence ends is decided by ``sentencex``, which knows abbreviations, quotes and lists in many languages.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from sentencex import segment

from transduce.text.masks import verbatim_spans

__all__ = ["Segment", "join_segments", "split_clauses", "split_sentences"]

MOST_CHARACTERS = 10_000  # given to the splitter at a time
LEAST_LETTERS = 2  # "1." and "M." are no sentences: they belong to what follows
_LETTER_OR_DIGIT, _LETTER = re.compile(r"[^\W_]"), re.compile(r"[^\W\d_]")
_WIDE_SPACE = re.compile(r"[^\S\t\n ]")  # sentencex 1.0 panics at "B\u00a0.": it is given a space for each
_SURROGATE = re.compile("[\ud800-\udfff]")
_ENDS_FIRMLY = re.compile(r"[!?。！？]\s*$")
_ENDS_LINE = re.compile("[\r\x0b\x0c\x1c-\x1e\x85\u2028\u2029]+")

# Where a sentence may be cut, the best places first: after these characters, and any whitespace that follows.
_CUTS = (
    re.compile(r"[;:](?=\s)\s+|[；：]\s*|\s[–—-]\s+"),
    re.compile(r"[,)\]](?=\s)\s+|[，、]\s*"),
    re.compile(r"\s+"),
)
LEAST_SHARE = 0.2  # of a sentence, on either side of a cut at a punctuation mark


@dataclass(frozen=True, slots=True)
class Segment:
    """A piece of a text, and the whitespace between it and the next one; "" where there is none."""

    text: str
    space: str


def split_sentences(text: str, language: str) -> list[Segment]:
    """The sentences of ``text`` by the rules of a language (``en``, ``de``, ...); general rules for an unknown one.

    Whitespace round the whole text belongs to no sentence. A text without words is one segment.

    >>> [each.text for each in split_sentences("Dr. Smith paid 3.50 dollars.  He left.", "en")]
    ['Dr. Smith paid 3.50 dollars.', 'He left.']
    >>> split_sentences("Yes!  No?", "en")[0]
    Segment(text='Yes!', space='  ')
    """
    text = text.strip()
    if not text:
        return [Segment("", "")]
    parts: list[str] = []
    held: list[str] = []  # what is no sentence by itself: "1.", "M."
    end, inside, has_words = 0, _Inside(text), False
    for part in _parts(text, language):
        end += len(part)
        if end < len(text) and (end in inside or (part[-1:].isascii() and not part[-1:].isspace())):
            held.append(part)  # "README.Debian", <img alt="One. Two.">
            has_words = True
        elif not has_words and _is_opening(part):
            held.append(part)
        elif held or not parts or _LETTER_OR_DIGIT.search(part):
            parts.append("".join([*held, part]))
            held, has_words = [], False
        else:  # no word at all
            parts[-1] += part
    if held:
        parts[-1:] = ["".join([*parts[-1:], *held])]
    return _segments(parts)


def split_clauses(text: str, max_tokens: int, n_tokens: Callable[[str], int]) -> list[Segment]:
    """``text`` cut into pieces of at most ``max_tokens``: near the middle, at a semicolon, a colon or a dash, else at
    a comma, else between two words; and each half again while it is too long. No word is cut, and no tag and the like.

    >>> [each.text for each in split_clauses("when it rains, we stay at home", 5, lambda text: len(text.split()))]
    ['when it rains,', 'we stay at home']
    """
    return _segments(list(_clauses(text.strip(), max_tokens, n_tokens)))


def join_segments(texts: Sequence[str], segments: Sequence[Segment]) -> str:
    """``texts``, one for each segment, with the spacing of the segments. Only a line feed may end a line in it.

    >>> join_segments(["Ja!", "Nein?"], split_sentences("Yes!  No?", "en"))
    'Ja!  Nein?'
    """
    spaces = [_ENDS_LINE.sub(" ", each.space) for each in segments]
    between = [space if text else "" for space, text in zip(spaces, texts, strict=True)]
    return "".join(text + space for text, space in zip(texts, between, strict=True)).rstrip()


class _Inside:
    """The places of a text where no sentence can end: inside a URL, a tag and the like."""

    def __init__(self, text: str) -> None:
        self._spans = verbatim_spans(text)

    def __contains__(self, place: int) -> bool:
        number = bisect_left(self._spans, (place,)) - 1  # the last that begins before it
        return number >= 0 and place < self._spans[number][1]


def _parts(text: str, language: str) -> Iterator[str]:
    """What the splitter makes of ``text``, which it is given in blocks: among many quotation marks, its time grows with
    the square of their number. The last part of a block, which may go on, is read again with the next one; no word is
    cut, however long it is.
    """
    plain = _SURROGATE.sub("\ufffd", _WIDE_SPACE.sub(" ", text))
    begin = start = 0  # of the next part, and of the next block
    while start < len(text):
        block = plain[start : start + MOST_CHARACTERS]
        is_last = start + len(block) == len(text)
        parts = segment(language, block) or [block]
        if not is_last and len(parts) > 1:
            parts.pop()
        elif not is_last:
            parts = [block[: block.rfind(" ") + 1]]
        for part in filter(None, parts):
            start += len(part)
            yield text[begin:start]
            begin = start
        if parts == [""]:
            start += len(block)
    if begin < start:
        yield text[begin:start]


def _is_opening(part: str) -> bool:
    """Whether a part has a word, but none that could be a sentence."""
    letters = _LETTER.findall(part, 0, LEAST_LETTERS * 10)
    return (
        len(letters) < LEAST_LETTERS
        and len(part) < LEAST_LETTERS * 10
        and _LETTER_OR_DIGIT.search(part) is not None
        and _ENDS_FIRMLY.search(part) is None
    )


def _segments(parts: Sequence[str]) -> list[Segment]:
    """Each part without the whitespace round it, which goes between the two that it stands between."""
    stripped = [part.strip() for part in parts]
    spaces = [
        part[len(part.rstrip()) :] + after[: len(after) - len(after.lstrip())]
        for part, after in zip(parts, [*parts[1:], ""], strict=True)
    ]
    return [Segment(text, space) for text, space in zip(stripped, spaces, strict=True)]


def _clauses(text: str, max_tokens: int, n_tokens: Callable[[str], int]) -> Iterator[str]:
    """Parts that are ``text`` when put together."""
    inside = _Inside(text)
    cuts = [[place for each in pattern.finditer(text) if (place := each.end()) not in inside] for pattern in _CUTS]
    waiting = [(0, len(text))]
    while waiting:
        start, end = waiting.pop()
        part = text[start:end]
        cut = None if n_tokens(part) <= max_tokens else _best_cut(cuts, start, end, start + len(part.rstrip()))
        if cut is None:
            yield part
        else:
            waiting += [(cut, end), (start, cut)]


def _best_cut(cuts: Sequence[Sequence[int]], start: int, end: int, end_of_words: int) -> int | None:
    """The best of the places ``cuts``, the better kinds first, to cut a part of a text in two; None without any."""
    middle = (start + end) / 2
    for number, places in enumerate(cuts):
        least = 1 if number == len(cuts) - 1 else max(1, int(LEAST_SHARE * (end - start)))
        low = bisect_left(places, start + least)
        high = bisect_left(places, min(end - least + 1, end_of_words))
        if low < high:
            near = bisect_left(places, middle, low, high)
            return min(places[max(low, near - 1) : min(high, near + 1)], key=lambda place: abs(place - middle))
    return None

"""Subtitles (SubRip, WebVTT): a sentence over several of them is one text, and its translation is divided again.

Times, settings, notes and styles stay. A line that begins with a dash, and one in brackets, is a text of its own.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from transduce.documents.cue_layout import MAX_COLUMNS, atoms_of, divided, laid_out, tokens_of
from transduce.documents.document import Document, Format, Reading, Segment
from transduce.documents.encodings import decoded, encoded
from transduce.documents.wrapping import width_of
from transduce.errors import DataError
from transduce.patterns import compiled_on_use
from transduce.text import needs_translation
from transduce.text.changes import Change, with_changes
from transduce.text.characters import SPACELESS
from transduce.text.markup import Unit, html_rules, text_tokens, unit_of
from transduce.text.markup_reading import Token, decoder, escaped, matching_ends
from transduce.text.punctuation import SENTENCE_ENDS

__all__ = ["FORMATS"]

MAX_CUES, MAX_CHARACTERS, MAX_GAP_S = 5, 400, 2.0  # of subtitles that are read as one text
MAX_LINES = 2  # of a subtitle that had no more
_TIME = r"(?:(\d{1,3}):)?(\d{1,2}):(\d{2})[.,](\d{1,3})"
_TIMES = compiled_on_use(rf"[ \t]*{_TIME}[ \t]*-->[ \t]*{_TIME}[^\r\n]*")
_LINE = compiled_on_use(r"([^\r\n]*)(\r\n|[\r\n]|\Z)")
_NUMBER = compiled_on_use(r"\s*\d+\s*")
_OWN_START = r"(?:[-–—‐](?![\d\s]*\d)|>{2,3}|[♪♫]+|#(?=\s))"  # a speaker, or singing
_BEGINS = compiled_on_use(rf"(?:<[^<>]*>|\{{\\[^{{}}]*\}}|\s)*+{_OWN_START}")
_LEAD = compiled_on_use(rf"\s*{_OWN_START}?\s*")
_REOPENED = compiled_on_use(r"</([ibu])>(\s+)<\1>")
_BRACKETED = compiled_on_use(r"\s*(?:\[[^\[\]]*\]|\([^()]*\))\s*")
_WRAP = compiled_on_use(rf"(?<=([{SPACELESS}]))?\s+(?=([{SPACELESS}]))?")
_SPACELESS, _SPACELESS_END = compiled_on_use(f"[{SPACELESS}]"), compiled_on_use(rf"[{SPACELESS}][^\w\s]?\Z")
_CLOSING = "\"'”’»)]」』 "
_ABBREVIATION = compiled_on_use(r"(?:^|\s)(?:[A-Z]|[A-Z][a-z]|Mrs|Sgt|Prof|vs|Nr|Hr|bzw)\.$")  # "Dr." or an initial
_LANGUAGE = compiled_on_use(
    r"\A(\ufeff?WEBVTT[^\r\n]*(?:\r\n|[\r\n])(?:[^\r\n]+(?:\r\n|[\r\n]))*?Language:[ \t]*)[\w-]+"
)


@dataclass(frozen=True, slots=True)
class _Cue:
    """When a subtitle is shown."""

    number: int
    start_s: float
    end_s: float
    n_pieces: int


@dataclass(slots=True, eq=False)
class _Piece:
    """A text of one subtitle: all its lines, or those from one dash to the next."""

    cue: _Cue
    start: int  # in the document, with what stands around its words
    end: int
    n_lines: int
    tokens: list[Token]
    before: str = ""  # tags and dashes around all its words
    after: str = ""
    style: list[str] = field(default_factory=list)  # of all its words
    is_first: bool = False  # of its subtitle
    is_last: bool = False
    begins_text: bool = False

    @property
    def text(self) -> str:
        """Its words."""
        return "".join(token.raw for token in self.tokens if token.kind == "text")


class Subtitles:
    """A document of subtitles."""

    def __init__(self, text: str, encoding: str, *, is_vtt: bool, is_protected: bool) -> None:
        self._text, self._encoding = text, encoding
        self._line_end = match[0] if (match := compiled_on_use(r"\r\n|[\r\n]").search(text)) else "\n"
        pieces = [piece for piece in _pieces(text, is_vtt=is_vtt) if needs_translation(piece.text)]
        self._groups = list(_groups(pieces))
        decode = decoder(html_rules()) if is_vtt else str
        escape = escaped if is_vtt else str

        def unit(group: Sequence[_Piece]) -> Unit:
            tokens = list[Token]()
            for piece in group:
                if tokens and not (_SPACELESS_END.search(tokens[-1].raw) and _SPACELESS.match(piece.text)):
                    tokens.append(Token("text", " "))
                for token in piece.tokens:
                    is_text = token.kind == "text"
                    tokens += text_tokens(token.raw, is_protected=is_protected, decode=decode) if is_text else [token]
            return unit_of(tokens, lambda raw: _WRAP.sub(_space, decode(raw)), is_escaped=False, escape=escape)

        self._units = [unit(group) for group in self._groups]

    @cached_property
    def segments(self) -> list[Segment]:
        """Its texts, in order."""
        segments, line, position = list[Segment](), 1, 0
        for unit, group in zip(self._units, self._groups, strict=True):
            line += self._text.count("\n", position, group[0].start)
            position = group[0].start
            segments.append(Segment(unit, f"line {line:,}"))
        return segments

    def written(self, targets: Sequence[str | None], *, tgt_language: str = "") -> bytes:
        """Return the subtitles with translations, divided by the time and the length of those that they come from."""
        changes = list[Change]()
        for group, target in zip(self._groups, targets, strict=True):
            if target is not None:
                changes += self._divided(group, target)
        text = with_changes(self._text, changes)
        if tgt_language and changes:
            text = _LANGUAGE.sub(lambda match: match[1] + tgt_language, text)
        return encoded(text, self._encoding)

    def _divided(self, group: Sequence[_Piece], target: str) -> Iterator[Change]:
        lengths = [max(1, width_of(piece.text)) for piece in group]
        times_s = [max(0.1, piece.cue.end_s - piece.cue.start_s) for piece in group]
        shares = [
            length / sum(lengths) + time_s / sum(times_s) for length, time_s in zip(lengths, times_s, strict=True)
        ]
        max_lines = [piece.n_lines if piece.cue.n_pieces > 1 else max(MAX_LINES, piece.n_lines) for piece in group]
        rooms = [n * MAX_COLUMNS for n in max_lines]
        parts = divided(atoms_of(target), shares, rooms)
        for piece, atoms, n_lines in zip(group, parts, max_lines, strict=True):
            text = laid_out(atoms, n_lines, MAX_COLUMNS, self._line_end)
            yield piece.start, piece.end, piece.before + text + piece.after


def _space(match: re.Match[str]) -> str:
    """Return what stands for the end of a line: nothing between letters of scripts without spaces."""
    return "" if match[1] and match[2] and "\n" in match[0] else " "


def _pieces(text: str, *, is_vtt: bool) -> Iterator[_Piece]:
    """Yield the texts of all subtitles."""
    lines = [(match.start(1), match.end(1)) for match in _LINE.finditer(text) if match[0]]
    timed = [(number, match) for number, span in enumerate(lines) if (match := _TIMES.fullmatch(text, *span))]
    if not timed:
        raise DataError("it has no times of subtitles, such as 00:00:01,000 --> 00:00:02,500")
    after = [number for number, _ in timed[1:]] + [len(lines)]
    for cue_number, ((number, times), following) in enumerate(zip(timed, after, strict=True)):
        if following < len(lines) and _NUMBER.fullmatch(text, *lines[following - 1]):
            following -= 1
        block = lines[number + 1 : following]
        is_blank = [not text[start:end].strip() for start, end in block]
        if is_vtt and True in is_blank:
            block = block[: is_blank.index(True)]
        groups = list[list[tuple[int, int]]]()
        for start, end in block:
            line = text[start:end]
            if not line.strip():
                groups.append([])
                continue
            is_own = _BRACKETED.fullmatch(line) is not None
            if not groups or is_own or _BEGINS.match(line):
                groups.append([])
            groups[-1].append((start, end))
            if is_own:
                groups.append([])
        groups = [group for group in groups if group]
        cue = _Cue(cue_number, _seconds(times.groups()[:4]), _seconds(times.groups()[4:]), len(groups))
        for place, group in enumerate(groups):
            piece = _piece(text, cue, group)
            piece.is_first, piece.is_last = place == 0, place == len(groups) - 1
            yield piece


def _seconds(parts: Sequence[str | None]) -> float:
    hours, minutes, seconds, fraction = (each or "0" for each in parts)
    return int(hours) * 3600 + int(minutes) * 60 + int(seconds) + float(f"0.{fraction}")


def _piece(text: str, cue: _Cue, lines: Sequence[tuple[int, int]]) -> _Piece:
    """Return a text, with the tags and dashes around all its words apart."""
    start, end = lines[0][0], lines[-1][1]
    raw = text[start:end]
    tokens = list(tokens_of(_REOPENED.sub(r"\2", raw)))
    piece = _Piece(cue, start, end, len(lines), tokens, begins_text=_BEGINS.match(raw) is not None)
    _narrow(piece)
    return piece


def _narrow(piece: _Piece) -> None:
    """Move what stands at the ends of a piece out of its words."""
    tokens, ends = piece.tokens, matching_ends(piece.tokens)
    closing, low, high = set(ends.values()), 0, len(tokens)
    before, after = list[str](), list[str]()  # the latter from the end
    while low < high:
        first, last = tokens[low], tokens[high - 1]
        n_lead = _n_lead(first)
        n_words = len(last.raw) if n_lead else _n_words(last)
        if n_lead:
            before.append(first.raw[:n_lead])
            tokens[low] = Token("text", first.raw[n_lead:])
            low += n_lead == len(first.raw)
        elif n_words < len(last.raw):
            after.append(last.raw[n_words:])
            tokens[high - 1] = Token("text", last.raw[:n_words])
            high -= n_words == 0
        elif first.kind != "text" and ends.get(low, high - 1) == high - 1:
            before.append(first.raw)
            piece.style += [first.raw] * (first.kind == "single" or low in ends or first.name == "v")
            if low in ends:
                after.append(last.raw)
                high -= 1
            low += 1
        elif last.kind != "text" and high - 1 not in closing:
            after.append(last.raw)
            high -= 1
        else:
            break
    piece.tokens, piece.before, piece.after = tokens[low:high], "".join(before), "".join(reversed(after))


def _n_lead(token: Token) -> int:
    """Return how many characters of a text stand before its words."""
    lead = _LEAD.match(token.raw) if token.kind == "text" else None
    return lead.end() if lead else 0


def _n_words(token: Token) -> int:
    """Return where space at the end of a text begins, with notes before it, or a ``#`` that stands alone."""
    if token.kind != "text":
        return len(token.raw)
    text = token.raw.rstrip()
    words = text.removesuffix("#")
    if text.endswith(("♪", "♫")):
        text = text.rstrip("♪♫").rstrip()
    elif words[-1:].isspace() and words != text:
        text = words.rstrip()
    return len(text)


def _groups(pieces: Sequence[_Piece]) -> Iterator[list[_Piece]]:
    """Yield the texts that are read as one."""
    group = list[_Piece]()
    for piece in pieces:
        if group and not _goes_on(group, piece):
            yield group
            group = []
        group.append(piece)
    if group:
        yield group


def _goes_on(group: Sequence[_Piece], piece: _Piece) -> bool:
    """Whether a sentence goes on in another subtitle."""
    last = group[-1]
    text, following = last.text.rstrip(_CLOSING), piece.text.lstrip()
    is_next = last.is_last and piece.is_first and last.cue.number + 1 == piece.cue.number
    is_short = len(group) < MAX_CUES and sum(len(each.text) for each in group) + len(following) <= MAX_CHARACTERS
    if not (is_next and is_short) or piece.begins_text or piece.style != last.style or "♪" in last.after:
        return False
    if (
        piece.cue.start_s - last.cue.end_s > MAX_GAP_S
        or _BRACKETED.fullmatch(last.text)
        or _BRACKETED.fullmatch(following)
    ):
        return False
    if text.isupper() != following.isupper() and len(following) > 1:
        return False  # an inscription
    if text.endswith(("...", "…")):
        return following.startswith(("...", "…")) or following[:1].islower()
    return text[-1:] not in SENTENCE_ENDS or _ABBREVIATION.search(text) is not None


def read_srt(data: bytes, reading: Reading) -> Document:
    """Read SubRip's subtitles in UTF-8, or UTF-16 with a byte order mark."""
    return Subtitles(*decoded(data), is_vtt=False, is_protected=reading.is_protected)


def read_vtt(data: bytes, reading: Reading) -> Document:
    """Read WebVTT, which is UTF-8."""
    return Subtitles(*decoded(data), is_vtt=True, is_protected=reading.is_protected)


FORMATS = (
    Format("srt", (".srt",), read_srt, "application/x-subrip"),
    Format(
        "vtt", (".vtt",), read_vtt, "text/vtt", lambda data: data.removeprefix(b"\xef\xbb\xbf").startswith(b"WEBVTT")
    ),
)

"""Diagnostics of single lines of text, counted per side of a corpus.

A problem is damage: bytes or characters that are never intended. A note is something that cleaning drops from training,
or that only a person can judge; it becomes a problem on more than one line in twenty.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterator
from functools import lru_cache
from typing import Literal

from transduce.corpora import CleaningRules
from transduce.corpora.cleaning import CONTROL, SURROGATE, Tally
from transduce.findings.finding import Finding, Status, on_lines

__all__ = ["Side", "status_of"]

MAX_NOTE_FRACTION = 0.05  # above this fraction of the lines, a note becomes a problem

LineIssue = Literal[
    "not UTF-8", "surrogates", "control", "replacement", "mojibake", "BOM inside", "separators", "markup", "long"
]


# For each issue: status, description and advice.
_MESSAGES: dict[LineIssue, tuple[Status, str, str]] = {
    "not UTF-8": (
        "problem",
        "with bytes that are not UTF-8",
        "training drops them, dev and test must not have them; convert the file, as in iconv -f LATIN1 -t UTF-8",
    ),
    "surrogates": (
        "problem",
        "with lone surrogates (half characters encoded as if in UTF-8)",
        "export the text again from its source",
    ),
    "control": (
        "problem",
        "with NUL or other control characters",
        "training drops them; valid text has none, so check the program that wrote them",
    ),
    "replacement": (
        "problem",
        "with U+FFFD, which replaces characters that were lost in decoding",
        "decode the original text again with its own encoding",
    ),
    "mojibake": (
        "problem",
        "with mojibake: UTF-8 decoded with another encoding (as 'Ã¤' for 'ä')",
        "decode the text again, or repair it with ftfy",
    ),
    "BOM inside": (
        "problem",
        "with a byte-order mark (U+FEFF) that is not at the start of the file",
        "remove it: it is invisible, but changes words",
    ),
    "separators": (
        "note",
        "with a separator inside that other programs treat as a line end (U+2028, U+0085, a form feed, ...)",
        "transduce does not; a file that was split by such a program does not align",
    ),
    "markup": ("note", "with HTML entities or tags", "are they meant to be translated?"),
    "long": ("note", "longer than {max_characters:,} characters", "training drops them; split the sentences?"),
}

# A line without any of these characters needs no further character checks.
_SUSPECT = re.compile("[\x00-\x08\x0a-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff\ufeff\ufffdÃÂâÐÑï]")
_SURROGATE_IN_BYTES = re.compile("\udced[\udca0-\udcbf][\udc80-\udcbf]")
_SEPARATOR = re.compile("[\r\x0b\x0c\x1c-\x1f\x85\u2028\u2029]")
_ENTITY = r"&(?:amp|lt|gt|quot|apos|nbsp|#\d{1,7}|#x[0-9a-fA-F]{1,6});"
_TAG = r"</?[a-zA-Z][a-zA-Z0-9]*(?:\s[^<>]*)?/?>"
_MARKUP = re.compile(f"{_ENTITY}|{_TAG}")
# The UTF-8 continuation bytes 0x80 to 0xbf, decoded as Latin-1 or Windows-1252.
_CONTINUATION = "\x80-\xbf€‚ƒ„…†‡ˆ‰Š‹ŒŽ‘’“”•–—˜™š›œžŸ"
_MOJIBAKE = re.compile(f"Ã[{_CONTINUATION}]|Â[\xa0-\xbf]|â€[{_CONTINUATION}]|(?:[ÐÑ][{_CONTINUATION}]){{2}}|ï»¿|ï¿½")
_NOT_LATIN = re.compile("[^\x00-\u02ff\u0300-\u036f\u1e00-\u1eff\u2000-\u2bff\ufe00-\ufe0f]")
_LATIN = re.compile("[A-Za-z\xc0-\u024f\u1e00-\u1eff]")

# Japanese mixes three scripts, one of them that of Chinese, so the three count as one.
_MERGED_SCRIPTS = {"Cjk": "Chinese or Japanese", "Hiragana": "Chinese or Japanese", "Katakana": "Chinese or Japanese"}


@lru_cache(maxsize=1 << 16)
def _script_of(character: str) -> str | None:
    """Return the script of a letter, from its Unicode name; None for other characters."""
    if not character.isalpha():
        return None
    first, _, rest = unicodedata.name(character, "unknown").partition(" ")
    if first in ("FULLWIDTH", "HALFWIDTH"):
        first = rest.partition(" ")[0]
    return _MERGED_SCRIPTS.get(first.title(), first.title())


def _main_script(line: str) -> str | None:
    """Return the script of most letters of a line; None if it has no letters.

    >>> _main_script("Der Hund, 犬"), _main_script("собака (dog)"), _main_script("1, 2")
    ('Latin', 'Cyrillic', None)
    """
    if not _NOT_LATIN.search(line):
        return "Latin" if _LATIN.search(line) else None
    scripts = Counter(map(_script_of, line))
    del scripts[None]
    return scripts.most_common(1)[0][0] if scripts else None


class Side:
    """Counts the issues in the lines of one side of a corpus."""

    def __init__(self, subject: object, rules: CleaningRules) -> None:
        self.subject, self.rules = subject, rules
        self.n_lines = 0
        self.blank = Tally()
        self._issues: defaultdict[LineIssue, Tally] = defaultdict(Tally)
        self._scripts: defaultdict[str, Tally] = defaultdict(Tally)

    def observe(self, line: str) -> bool:
        """Check the next line; return whether it is blank."""
        self.n_lines += 1
        if not line or line.isspace():
            self.blank.add(self.n_lines)
            return True
        for issue in _issues_of(line):
            self._issues[issue].add(self.n_lines)
        if len(line) > self.rules.max_characters and len(line.strip()) > self.rules.max_characters:
            self._issues["long"].add(self.n_lines)
        script = _main_script(line)
        if script is not None:
            self._scripts[script].add(self.n_lines)
        return False

    def findings(self) -> Iterator[Finding]:
        """Yield the findings after all lines were observed."""
        for issue, (status, what, advice) in _MESSAGES.items():
            what = what.format(max_characters=self.rules.max_characters)
            yield from on_lines(status, self.subject, self._issues[issue], "line", what, advice)
        main, *others = sorted(self._scripts.items(), key=lambda entry: -entry[1].count) or [("", Tally())]
        for script, tally in others:
            what = f"in {script} script, while {main[1].count:,} are in {main[0]}"
            yield from on_lines(status_of(tally, self.n_lines), self.subject, tally, "line", what, "another language?")


def _issues_of(line: str) -> Iterator[LineIssue]:
    """Yield the character-level issues of a non-blank line."""
    if _SUSPECT.search(line):
        if SURROGATE.search(line):
            yield "surrogates" if _SURROGATE_IN_BYTES.search(line) else "not UTF-8"
        if CONTROL.search(line):
            yield "control"
        if "\ufffd" in line:
            yield "replacement"
        if _MOJIBAKE.search(line):
            yield "mojibake"
        if "\ufeff" in line:
            yield "BOM inside"
        if _SEPARATOR.search(line.strip("\r\n")):
            yield "separators"
    if ("&" in line or "<" in line) and _MARKUP.search(line):
        yield "markup"


def status_of(tally: Tally, n_lines: int) -> Status:
    """Return the status of a tally: "problem" if it has more than ``MAX_NOTE_FRACTION`` of the lines, else "note"."""
    return "problem" if tally.count > MAX_NOTE_FRACTION * n_lines else "note"

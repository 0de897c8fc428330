"""What can be odd about single lines of text: each kind with its words, and a side of a corpus that counts them.

A problem is damage: bytes or characters that nobody wrote. A note is what cleaning leaves out of training, or what only
a person can judge; it becomes a problem where it is on more than one line in twenty.
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
from transduce.diagnostics.finding import Finding, Status, on_lines

__all__ = ["Side", "weight"]

TOO_MANY = 0.05  # of the lines: what is odd once in a while is then wrong with the whole text

Oddity = Literal[
    "not UTF-8", "surrogates", "control", "replacement", "mojibake", "mark inside", "separators", "markup", "long"
]


# How each is told: its weight, and what comes before and after the line numbers.
_WORDS: dict[Oddity, tuple[Status, str, str]] = {
    "not UTF-8": (
        "problem",
        "with bytes that are not UTF-8",
        "training leaves them out, dev and test are refused; convert the file, as in iconv -f LATIN1 -t UTF-8",
    ),
    "surrogates": (
        "problem",
        "with lone surrogates (halves of a character, written as if they were UTF-8)",
        "write the text anew from where it came",
    ),
    "control": (
        "problem",
        "with NUL or other control characters",
        "training leaves them out; text has none, so look at what made them",
    ),
    "replacement": (
        "problem",
        "with U+FFFD, which stands for characters that were lost",
        "take the text from before it was decoded wrongly",
    ),
    "mojibake": (
        "problem",
        "with what looks like UTF-8 that was read by another table (as 'Ã¤' for 'ä')",
        "decode the text anew, or mend it as ftfy does",
    ),
    "mark inside": (
        "problem",
        "with a byte-order mark (U+FEFF) that is not at the start of the file",
        "remove it: it is invisible, and makes other words of the same letters",
    ),
    "separators": (
        "note",
        "with a separator inside that other programs take for a line end (U+2028, U+0085, a form feed, ...)",
        "transduce does not; a file that was cut by such a program does not align",
    ),
    "markup": ("note", "with HTML entities or tags", "is that meant to be translated?"),
    "long": ("note", "longer than {max_characters:,} characters", "training leaves them out; split sentences?"),
}

# Nothing of this: the line has none of the oddities that are characters. One quick look for most lines.
_SUSPECT = re.compile("[\x00-\x08\x0a-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff\ufeff\ufffdÃÂâÐÑï]")
_SURROGATE_IN_BYTES = re.compile("\udced[\udca0-\udcbf][\udc80-\udcbf]")
_SEPARATOR = re.compile("[\r\x0b\x0c\x1c-\x1f\x85\u2028\u2029]")
_ENTITY = r"&(?:amp|lt|gt|quot|apos|nbsp|#\d{1,7}|#x[0-9a-fA-F]{1,6});"
_TAG = r"</?[a-zA-Z][a-zA-Z0-9]*(?:\s[^<>]*)?/?>"
_MARKUP = re.compile(f"{_ENTITY}|{_TAG}")
# What the bytes 0x80 to 0xbf, which continue a character of UTF-8, are in Latin-1 or Windows-1252.
_CONTINUES = "\x80-\xbf€‚ƒ„…†‡ˆ‰Š‹ŒŽ‘’“”•–—˜™š›œžŸ"
_MOJIBAKE = re.compile(f"Ã[{_CONTINUES}]|Â[\xa0-\xbf]|â€[{_CONTINUES}]|(?:[ÐÑ][{_CONTINUES}]){{2}}|ï»¿|ï¿½")
_NOT_LATIN = re.compile("[^\x00-\u02ff\u0300-\u036f\u1e00-\u1eff\u2000-\u2bff\ufe00-\ufe0f]")
_LATIN = re.compile("[A-Za-z\xc0-\u024f\u1e00-\u1eff]")

_ONE_SCRIPT = {"Cjk": "Chinese or Japanese", "Hiragana": "Chinese or Japanese", "Katakana": "Chinese or Japanese"}


@lru_cache(maxsize=1 << 16)
def _script_of(character: str) -> str | None:
    """The writing that a letter belongs to, by its name in Unicode; None for what is no letter."""
    if not character.isalpha():
        return None
    first, _, rest = unicodedata.name(character, "unknown").partition(" ")
    if first in ("FULLWIDTH", "HALFWIDTH"):
        first = rest.partition(" ")[0]
    return _ONE_SCRIPT.get(first.title(), first.title())


def _main_script(line: str) -> str | None:
    """The writing that most letters of a line are in; None where it has none.

    >>> _main_script("Der Hund, 犬"), _main_script("собака (dog)"), _main_script("1, 2")
    ('Latin', 'Cyrillic', None)
    """
    if not _NOT_LATIN.search(line):
        return "Latin" if _LATIN.search(line) else None
    scripts = Counter(map(_script_of, line))
    del scripts[None]
    return scripts.most_common(1)[0][0] if scripts else None


class Side:
    """The lines of one language, looked at one by one."""

    def __init__(self, subject: object, rules: CleaningRules) -> None:
        self.subject, self.rules = subject, rules
        self.n_lines = 0
        self.blank = Tally()
        self._odd: defaultdict[Oddity, Tally] = defaultdict(Tally)
        self._scripts: defaultdict[str, Tally] = defaultdict(Tally)

    def observe(self, line: str) -> bool:
        """Count what is odd about the next line; whether it is blank."""
        self.n_lines += 1
        if not line or line.isspace():
            self.blank.add(self.n_lines)
            return True
        for oddity in _oddities(line):
            self._odd[oddity].add(self.n_lines)
        if len(line) > self.rules.max_characters and len(line.strip()) > self.rules.max_characters:
            self._odd["long"].add(self.n_lines)
        script = _main_script(line)
        if script is not None:
            self._scripts[script].add(self.n_lines)
        return False

    def findings(self) -> Iterator[Finding]:
        """What there is to say once all lines were seen."""
        for oddity, (status, what, advice) in _WORDS.items():
            what = what.format(max_characters=self.rules.max_characters)
            yield from on_lines(status, self.subject, self._odd[oddity], "line", what, advice)
        main, *others = sorted(self._scripts.items(), key=lambda entry: -entry[1].count) or [("", Tally())]
        for script, tally in others:
            what = f"in {script} script, while {main[1].count:,} are in {main[0]}"
            yield from on_lines(weight(tally, self.n_lines), self.subject, tally, "line", what, "another language?")


def _oddities(line: str) -> Iterator[Oddity]:
    """What is odd about the characters of a line that is not blank."""
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
            yield "mark inside"
        if _SEPARATOR.search(line.strip("\r\n")):
            yield "separators"
    if ("&" in line or "<" in line) and _MARKUP.search(line):
        yield "markup"


def weight(tally: Tally, n_lines: int) -> Status:
    """A note, or a problem where it is on too many lines."""
    return "problem" if tally.count > TOO_MANY * n_lines else "note"

"""What a translation keeps: numbers, URLs, addresses, placeholders and tags; the check for them, and its repair.

These functions see texts only, so they serve models with and without masks (``masks.py``).
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Collection, Iterator, Sequence
from itertools import chain

from transduce.patterns import compiled_on_use
from transduce.text.changes import with_changes
from transduce.text.characters import SPACELESS
from transduce.text.insertion import insert_missing
from transduce.text.numbers import (
    articles,
    has_word_of_number,
    number_value,
    number_words,
    plain_digits,
    style_of,
    translated_number,
)
from transduce.text.verbatim import NUMBER_KINDS, Verbatim, verbatim_strings

__all__ = ["lost_strings", "mend", "needs_translation"]

DIGITS = "digit string"
MAX_COMPARED = 10_000  # pairs of lost and surplus digit strings that are compared
# Other kinds, such as dates and numbers with units, are compared by their digits.
_COPIED_KINDS = frozenset(("comment", "tag", "url", "email", "placeholder", "path", "code", "emoji"))
_DIGITS = compiled_on_use(r"\d+(?:(?:[-–.,:/'’٫٬]|[\u00a0\u2009\u202f](?=\d{3}(?!\d)))\d+)*")
_SPACED_DIGITS = compiled_on_use(r"\d+(?:(?:[-–.,:/'’٫٬]|[ \u00a0\u2009\u202f](?=\d{3}(?!\d)))\d+)*")
_NUMBER = compiled_on_use(r"\d\d")
_NUMERAL = compiled_on_use(r"\d")
_NAME_OR_NUMBER = compiled_on_use(rf"[^\W{SPACELESS}\uac00-\ud7af]{{2}}")  # Korean particles follow a name directly
MAX_NAME = 64
_NAME = compiled_on_use(r"([^\W\d_]\w+)\($")
_IN_WORD = compiled_on_use(r"([1-9]|1[0-2])(?:(?:D|st|nd|rd|th)\b|-[a-z]{2})")
_ONE_OF_SOMETHING = compiled_on_use(r"1\s+[^\W\d_]")


def needs_translation(text: str) -> bool:
    """Whether ``text`` has letters of any script outside verbatim strings; a text without them stays as it is.

    So a number with a unit stays, and a file name, a tag or a URL alone.

    >>> [needs_translation(each) for each in ("Yes.", "2024 - https://x.org", "5 km", "00:00:01,000 --> 00:00:02,500")]
    [True, False, False, False]
    """
    if not any(map(str.isalpha, text)):
        return False
    position = 0
    for each in verbatim_strings(text):
        if any(map(str.isalpha, text[position : each.start])):
            return True
        position = each.end
    return any(map(str.isalpha, text[position:]))


def lost_strings(
    source: str, target: str, *, src_language: str, tgt_language: str, may_lack: Collection[str] = ()
) -> tuple[str, ...]:
    """Return the strings of ``source`` that its translation should keep but lacks, in order; once for each occurrence.

    These are digit strings, URLs, addresses, placeholders, tags, file names, codes and emoji, except ``may_lack``. A
    number is also kept if it is written as the target language writes it ("1.000,5" for the English "1,000.5"), in
    digits of another script, or, up to twelve, as a word; a date or a time also with other separators. The digits of
    "3D" or "2nd" may be any word that begins as the number or its ordinal does.

    >>> lost_strings("Pay 1,000.5 dollars by 2025.", "Zahl 1.000,5 Dollar.", src_language="en", tgt_language="de")
    ('2025',)
    """
    comparison = _Comparison(source, target, src_language, tgt_language, may_lack)
    return tuple(each.text for each in comparison.lost)


def mend(
    source: str,
    target: str,
    *,
    src_language: str,
    tgt_language: str,
    may_lack: Collection[str] = (),
    in_order: bool = True,
) -> str:
    """Return ``target`` with the lost strings of ``source`` put in, so that none is lost; unchanged if none was.

    A string takes the place of its counterpart: one of the same kind in the target that the source does not have. If
    there is none, it is inserted at its relative place, and ``in_order`` between its neighbours in the source. Nothing
    that was kept is broken.

    >>> mend("Made in 2024.", "Gemacht in 2402.", src_language="en", tgt_language="de")
    'Gemacht in 2024.'
    """
    comparison = _Comparison(source, target, src_language, tgt_language, may_lack)
    if not comparison.lost:
        return target
    mended = comparison.mended(in_order=in_order)
    still_lost = _Comparison(source, mended, src_language, tgt_language, may_lack).lost  # seldom: it joined digits
    return ", ".join((mended, *(each.text for each in still_lost)))


class _Comparison:
    """Which strings of a source its translation has, and where."""

    def __init__(
        self, source: str, target: str, src_language: str, tgt_language: str, may_lack: Collection[str]
    ) -> None:
        self._source, self._target = source, target
        self._languages = src_language, tgt_language
        self._kept: list[tuple[Verbatim, Verbatim]] = []  # of the source, of the target
        self._counterparts: list[tuple[Verbatim, Verbatim]] = []  # a lost string, and what has its place
        self._surplus: list[Verbatim] = []  # of the target
        self._is_free = bytearray(b"\1" * len(target))  # which characters belong to no string yet
        self._strings = list(verbatim_strings(source))
        is_free = bytearray(b"\1" * len(source))
        copied = [each for each in self._strings if each.kind in _COPIED_KINDS or each.text in may_lack]
        for item in copied:
            is_free[item.start : item.end] = bytes(item.end - item.start)
        lost = self._match_copied([item for item in copied if item.text not in may_lack])
        digits = _digit_strings(source, src_language, is_free)
        lost += self._match_digits(
            sorted(digits, key=lambda each: self._value_in_word(each) is not None)
        )  # those that must be kept come first
        self.lost = sorted(lost, key=lambda each: each.start)

    def mended(self, *, in_order: bool) -> str:
        """Return the target with the lost strings put in."""
        first = _unused_characters(
            {*self._source, *self._target}, len(self._kept) + len(self.lost) + len(self._surplus)
        )
        written: dict[str, str] = {}  # by the character that stands for a string meanwhile

        def token_for(text: str) -> str:
            token = chr(first + len(written))
            written[token] = text
            return token

        in_source = [(item, token_for(other.text)) for item, other in self._kept]
        in_target = [(other, token) for (_, other), (_, token) in zip(self._kept, in_source, strict=True)]
        replaced = dict(self._counterparts)
        for item in self.lost:
            token = token_for(self._in_target(item, has_place=item in replaced))
            in_source.append((item, token))
            if item in replaced:
                in_target.append((replaced[item], token))
        tokens = re.compile(f"[{chr(first)}-{chr(first + len(written) - 1)}]")
        is_free = bytearray(self._is_free)
        for item in self._surplus:  # nothing is inserted into these
            if all(is_free[item.start : item.end]):
                is_free[item.start : item.end] = bytes(item.end - item.start)
                in_target.append((item, token_for(item.text)))
        target, source = _with_tokens(self._target, in_target), _with_tokens(self._source, in_source)
        masked = insert_missing(target, source, tokens, in_order=in_order)
        return "".join(written.get(character, character) for character in masked)

    def _match_copied(self, items: Sequence[Verbatim]) -> list[Verbatim]:
        """Match copied strings with those of the target; return the lost ones."""
        in_target = [each for each in verbatim_strings(self._target) if each.kind in _COPIED_KINDS]
        lost, left = list(items), in_target
        for key in (_text, _code):
            lost, left = self._match_equal(lost, left, key, key)
        searched = dict[str, int]()  # so that a string that occurs often is searched once
        lost = [item for item in lost if not self._keep_inside(item, searched)]
        free = [each for each in left if all(self._is_free[each.start : each.end])]
        surplus: dict[str, deque[Verbatim]] = defaultdict(deque)
        for each in free:
            surplus[each.kind].append(each)
        for item in lost:
            if surplus[item.kind]:
                self._replace(item, surplus[item.kind].popleft())
        self._surplus += free
        return lost

    def _match_digits(self, items: Sequence[Verbatim]) -> list[Verbatim]:
        """Match digit strings with those of the target: equal ones, equal numbers, equal digits, words."""
        src_language, tgt_language = self._languages
        in_target = list(_digit_strings(self._target, tgt_language, self._is_free))

        def value(language: str) -> Callable[[Verbatim], str | None]:
            return lambda item: number_value(item.text, language)

        left, items = list(in_target), list(items)
        for of_source, of_target in ((_plain, _plain), (value(src_language), value(tgt_language))):
            items, left = self._match_equal(items, left, of_source, of_target)
        unmatched = Counter(chain.from_iterable(map(_atoms, items)))
        pool, is_explained = Counter[str](), list[bool]()  # "1.0" in the target is no 0 of the source
        for item in left:
            atoms = Counter(_atoms(item))
            is_explained.append(_has(unmatched, atoms))
            if is_explained[-1]:
                unmatched.subtract(atoms)
                pool.update(atoms)
        free = "".join(each if is_free else " " for each, is_free in zip(self._target, self._is_free, strict=True))
        words = number_words(free, tgt_language) - number_words(self._source, tgt_language)
        lost = []
        for item in items:
            atoms, word = Counter(_atoms(item)), number_value(item.text, src_language)
            if "." not in (word or "") and _has(pool, atoms):
                pool.subtract(atoms)
            elif word is not None and words[word] > 0:
                words[word] -= 1
            else:
                lost.append(item)
        explained = number_words(self._source, src_language)
        surplus = []
        for item, is_of_source in zip(left, is_explained, strict=True):
            atoms, word = Counter(_atoms(item)), number_value(item.text, tgt_language)
            if is_of_source and not _has(pool, atoms):
                continue
            pool.subtract(atoms if is_of_source else ())
            if word is not None and explained[word] > 0:
                explained[word] -= 1
            else:
                surplus.append(item)
        altered = _pairs_of_altered(lost, surplus)
        for item, other in altered:
            self._replace(item, other)
        self._surplus += surplus
        replaced = dict(altered)
        lost = [item for item in lost if item in replaced or not self._is_in_word(item)]
        self._replace_articles([item for item in lost if item not in replaced])
        return lost

    def _replace_articles(self, lost: Sequence[Verbatim]) -> None:
        """Let "1 file", if lost, replace the article of "eine Datei" that is nearest to its relative place."""
        spans = [span for span in articles(self._target, self._languages[1]) if all(self._is_free[slice(*span)])]
        for item in lost:
            if spans and _ONE_OF_SOMETHING.match(self._source, item.start) and item.text == "1":
                place = item.start / len(self._source) * len(self._target)
                span = min(spans, key=lambda each: abs(each[0] - place))
                spans.remove(span)
                self._replace(item, Verbatim(DIGITS, *span, self._target[slice(*span)]))

    def _match_equal(
        self,
        items: Sequence[Verbatim],
        others: Sequence[Verbatim],
        of_source: Callable[[Verbatim], str | None],
        of_target: Callable[[Verbatim], str | None],
    ) -> tuple[list[Verbatim], list[Verbatim]]:
        """Keep items whose keys are equal; return the others of the source and of the target."""
        found: dict[str | None, deque[Verbatim]] = defaultdict(deque)
        for other in others:
            found[of_target(other)].append(other)
        found.pop(None, None)
        rest, kept = [], set[Verbatim]()
        for item in items:
            same = found.get(of_source(item))
            if same:
                kept.add(same[0])
                self._keep(item, same.popleft())
            else:
                rest.append(item)
        return rest, [other for other in others if other not in kept]

    def _keep_inside(self, item: Verbatim, searched: dict[str, int]) -> bool:
        """Keep a string if it is anywhere in the target, such as inside a longer one that the source has not."""
        start = self._target.find(item.text, searched.get(item.text, 0))
        while start >= 0 and not self._may_be_at(start, item):
            start = self._target.find(item.text, start + 1)
        searched[item.text] = len(self._target) if start < 0 else start + 1
        if start >= 0:
            self._keep(item, Verbatim(item.kind, start, start + len(item.text), item.text))
        return start >= 0

    def _may_be_at(self, start: int, item: Verbatim) -> bool:
        """Whether a string is at a free place of the target that does not divide a number, or a name: "$size" is not
        in "$sizes".
        """
        end = start + len(item.text)
        whole = _NAME_OR_NUMBER if item.kind == "placeholder" else _NUMBER
        divides = any(whole.fullmatch(self._target[max(0, place - 1) : place + 1]) for place in (start, end))
        return not divides and all(self._is_free[start:end])

    def _keep(self, item: Verbatim, other: Verbatim) -> None:
        self._kept.append((item, other))
        self._is_free[other.start : other.end] = bytes(other.end - other.start)

    def _replace(self, item: Verbatim, other: Verbatim) -> None:
        self._counterparts.append((item, other))
        self._is_free[other.start : other.end] = bytes(other.end - other.start)

    def _verbatim_with(self, item: Verbatim) -> Verbatim | None:
        """Return the verbatim string of the source that an item is part of."""
        index = bisect_right(self._strings, item.start, key=lambda each: each.start) - 1
        return self._strings[index] if index >= 0 and item.end <= self._strings[index].end else None

    def _value_in_word(self, item: Verbatim) -> str | None:
        """Return the digits of "3D", "2nd" or "4-year-old", where other languages may write a word."""
        match = _IN_WORD.match(self._source, item.start)
        return match[1] if match is not None and self._verbatim_with(item) is None else None

    def _is_in_word(self, item: Verbatim) -> bool:
        """Whether the target has a word for such digits."""
        value = self._value_in_word(item)
        return value is not None and has_word_of_number(self._target, value, self._languages[1])

    def _in_target(self, item: Verbatim, *, has_place: bool) -> str:
        """Return a lost string as it is put into the target: numbers with units and grouped ones by rule.

        Where nothing stands for a number, its unit comes with it, or the name in "connect(2)", unless the target has
        that.
        """
        whole = self._verbatim_with(item)
        name = _NAME.search(self._source[max(0, item.start - MAX_NAME) : item.start]) if whole is None else None
        if name is not None and self._source.startswith(")", item.end) and not has_place:
            return item.text if name[1] in self._target else f"{name[0]}{item.text})"
        if item.kind in _COPIED_KINDS or whole is None or whole.kind not in NUMBER_KINDS:
            return item.text
        unit = whole.text.replace(item.text, "").strip()
        if whole.kind == "quantity" and not has_place and unit not in self._target and not _NUMERAL.search(unit):
            return translated_number(whole.text, *self._languages)
        return translated_number(item.text, *self._languages, has_unit=whole.kind == "quantity")


def _digit_strings(text: str, language: str, is_free: bytearray) -> Iterator[Verbatim]:
    """Yield the digit strings of the free characters of a text."""
    style = style_of(language)
    pattern = _SPACED_DIGITS if style is not None and style.group == " " else _DIGITS
    hidden = "".join(each if free else "\n" for each, free in zip(text, is_free, strict=True)) if 0 in is_free else text
    for match in pattern.finditer(hidden):
        yield Verbatim(DIGITS, *match.span(), match.group())


def _text(item: Verbatim) -> str:
    return item.text


def _code(item: Verbatim) -> str | None:
    """Return a code without case: "md5" may become "MD5"."""
    return item.text.casefold() if item.kind == "code" else None


def _plain(item: Verbatim) -> str:
    return plain_digits(item.text)


def _atoms(item: Verbatim) -> list[str]:
    """Return the runs of digits of a digit string, without leading zeros."""
    return [atom.lstrip("0") or "0" for atom in re.findall(r"\d+", plain_digits(item.text))]


def _has(pool: Counter[str], atoms: Counter[str]) -> bool:
    return all(pool[atom] >= count for atom, count in atoms.items())


def _pairs_of_altered(lost: Sequence[Verbatim], surplus: Sequence[Verbatim]) -> list[tuple[Verbatim, Verbatim]]:
    """Pair lost digit strings with those that stand for them: in order if there are equally many, or very many, else
    similar ones.
    """
    if len(lost) == len(surplus) or len(lost) * len(surplus) > MAX_COMPARED:
        return list(zip(lost, surplus, strict=False))
    pairs, left = [], list(surplus)
    for item in lost:
        digits = Counter(_plain(item))
        similar = [each for each in left if 2 * (digits & Counter(_plain(each))).total() >= len(item.text)]
        if similar:
            pairs.append((item, similar[0]))
            left.remove(similar[0])
    return pairs


def _with_tokens(text: str, items: Sequence[tuple[Verbatim, str]]) -> str:
    """Return ``text`` with each item replaced by its token."""
    return with_changes(text, [(item.start, item.end, token) for item, token in items])


def _unused_characters(used: Collection[str], n: int) -> int:
    """Return the first code point of ``n`` unused ones in a row, in the last two planes, which are for private use."""
    first = 0xF0000
    for code in sorted(map(ord, used)):
        if code - first >= n:
            break
        first = max(first, code + 1)
    return first

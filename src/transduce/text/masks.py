"""Masks: tokens that stand for verbatim strings (``verbatim.py``), such as URLs, tags, placeholders and dates.

The text is masked before translation and unmasked after it: the model sees a mask instead of a URL, and outputs the
mask where the URL goes. Masks are characters of Unicode's private use area, each one token. Not in the paper.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, pairwise
from zlib import crc32

from transduce.patterns import compiled_on_use
from transduce.text.changes import Change, with_changes
from transduce.text.characters import SPACELESS
from transduce.text.insertion import END_MARKS, insert_missing
from transduce.text.numbers import translated_number
from transduce.text.verbatim import NUMBER_KINDS, Verbatim, has_verbatim, verbatim_strings

__all__ = ["MASKS", "MaskRules", "MaskedText", "mask", "mask_pair", "mask_words", "n_masks", "strip_masks", "unmask"]

MASKS = tuple(map(chr, range(0xE000, 0xE00A)))  # U+E000 to U+E009
_ANY_MASK, _ANY_LETTER = f"[{MASKS[0]}-{MASKS[-1]}]", rf"[^\W_{SPACELESS}]"  # of words that have spaces between them
_MASK, _LETTER = compiled_on_use(_ANY_MASK), compiled_on_use(_ANY_LETTER)
_BESIDE_LETTER = compiled_on_use(rf"(?<={_ANY_LETTER})({_ANY_MASK})|({_ANY_MASK})(?={_ANY_LETTER})")

_WORD = compiled_on_use(r"[^\W_]+(?:-[^\W_]+)*")
MIN_LETTERS = 4  # of a lower-case word that source and target share; shorter ones may be equal by chance
ONE_IN = 8  # ``mask_words`` augments one training pair in eight


@dataclass(frozen=True, slots=True)
class MaskRules:
    """What the masks of a translator stand for. By default for every verbatim string, which is copied as it is."""

    src_language: str = ""
    tgt_language: str = ""
    unmasked: Collection[str] = ()  # strings that the training text has on the source side only: control tags
    translates_numbers: bool = True  # write numbers with units as the target language does, if both are known

    def strings(self, text: str) -> list[Verbatim]:
        """Return the strings of a source that are masked, in order."""
        return [each for each in verbatim_strings(text) if each.text not in self.unmasked]

    def in_target(self, string: Verbatim) -> str:
        """Return a string as the translation has it.

        >>> rules = MaskRules("en", "de")
        >>> [rules.in_target(each) for each in rules.strings("12.5 kg of x.txt")]
        ['12,5 kg', 'x.txt']
        """
        if not self.translates_numbers or string.kind not in NUMBER_KINDS:
            return string.text
        return translated_number(string.text, self.src_language, self.tgt_language)


@dataclass(frozen=True, slots=True)
class MaskedText:
    """A masked text, and the original string of each mask."""

    text: str
    originals: Mapping[str, str]
    translated: Mapping[str, str] = field(default_factory=dict)  # those that the translation writes in another way

    def in_target(self, mask: str) -> str:
        """Return what a mask stands for in the translation; "" if it is not in the source."""
        return self.translated.get(mask) or self.originals.get(mask, "")


def mask(text: str, rules: MaskRules | None = None) -> MaskedText:
    """Mask the verbatim strings of a text. Equal strings share a mask.

    If there are more strings than masks, neighbours share one: first those with the least between them, and no letter.
    So no verbatim string is left.

    >>> masked = mask("see <b>x.txt</b>")
    >>> masked.text == f"see {MASKS[0]}{MASKS[1]}{MASKS[2]}", list(masked.originals.values())
    (True, ['<b>', 'x.txt', '</b>'])
    """
    rules = rules or MaskRules()
    groups = _groups(text, rules.strings(text), letters_may_be_between=True)
    masks: dict[str, str] = {}
    translated: dict[str, str] = {}
    changes: list[Change] = []
    for group in groups:
        start, end = group[0].start, group[-1].end
        original = text[start:end]
        token = masks.get(original) or MASKS[len(masks)]
        masks[original] = token
        changes.append((start, end, token))
        gaps = [text[left.end : right.start] for left, right in pairwise(group)]
        written = "".join(chain.from_iterable(zip(map(rules.in_target, group), [*gaps, ""], strict=True)))
        if written != original:
            translated[token] = written
    return MaskedText(with_changes(text, changes), {token: original for original, token in masks.items()}, translated)


def n_masks(text: str, rules: MaskRules | None = None) -> int:
    """Return how many masks a text needs, if strings between which there is a letter have masks of their own.

    >>> n_masks("{a}, {b} or {a}"), n_masks(" and ".join(f"{{x{number}}}" for number in range(12)))
    (2, 12)
    """
    groups = _groups(text, (rules or MaskRules()).strings(text), letters_may_be_between=False)
    return len({text[group[0].start : group[-1].end] for group in groups})


def unmask(text: str, masked: MaskedText) -> tuple[str, bool]:
    """Replace the masks in ``text``, a translation of ``masked.text``, by their originals.

    Also returns whether each mask occurs as often as in the source. Surplus and unknown masks are removed; missing ones
    are inserted at their relative position in the source. A string that has no letter beside it there has none here.

    >>> unmask("siehe bei", mask("see x.txt there"))
    ('siehe x.txt bei', False)
    >>> unmask(f"siehe{MASKS[0]}dort", mask("see x.txt there"))
    ('siehe x.txt dort', True)
    """
    expected, got = Counter(_MASK.findall(masked.text)), Counter(_MASK.findall(text))
    is_complete = expected == got
    if not is_complete:
        remaining = Counter(expected)

        def drop_surplus(match: re.Match[str]) -> str:
            remaining[match.group()] -= 1
            return match.group() if remaining[match.group()] >= 0 else ""

        kept = _MASK.sub(drop_surplus, text)
        text = " ".join(insert_missing(kept, masked.text, _MASK).split())
    joined = {match.group(each) for match in _BESIDE_LETTER.finditer(masked.text) for each in (1, 2)}

    def written(match: re.Match[str]) -> str:
        string, (start, end) = masked.in_target(match.group()), match.span()
        is_free = match.group() not in joined
        before = " " if is_free and start and _LETTER.match(text, start - 1) and _LETTER.match(string) else ""
        after = " " if is_free and _LETTER.match(text, end) and _LETTER.match(string[-1:]) else ""
        return f"{before}{string}{after}"

    return _MASK.sub(written, text), is_complete


def mask_pair(src: str, tgt: str, rules: MaskRules | None = None) -> tuple[str, str]:
    """Mask the verbatim strings that occur equally often in the source and target of a training pair.

    A number may be written in the target as its language writes it. A hash of the source selects the masks, so that all
    are trained equally often.
    """
    shared = dict(zip(shared_strings(src, tgt, rules or MaskRules()), _rotated_masks(src), strict=False))
    if not shared:
        return strip_masks(src), strip_masks(tgt)
    src_masks = {of_src: token for (of_src, _), token in shared.items()}
    tgt_masks = {of_tgt: token for (_, of_tgt), token in shared.items()}
    return _replace(src, src_masks), _replace(tgt, tgt_masks)


def shared_strings(src: str, tgt: str, rules: MaskRules) -> list[tuple[str, str]]:
    """Return the verbatim strings of both sides of a pair that occur equally often, each as (source, target) has it.

    Spaces in a number and before its unit do not count.
    """
    strings = list(verbatim_strings(src))
    src_counts = Counter(each.text for each in strings)
    tgt_counts = Counter(each.text for each in verbatim_strings(tgt)) if strings else {}
    without_spaces = {"".join(string.split()): string for string in tgt_counts}
    pairs: dict[str, str] = {}
    for string in strings:
        text, forms = string.text, [string.text]
        if string.kind in NUMBER_KINDS:
            written = (text, rules.in_target(string))
            forms += filter(None, (without_spaces.get("".join(form.split())) for form in written))
        shared = (form for form in forms if tgt_counts.get(form) == src_counts[text] and form not in pairs.values())
        if text not in pairs and (form := next(shared, None)) is not None:
            pairs[text] = form
    return list(pairs.items())


def mask_words(src: str, tgt: str) -> Iterator[tuple[str, str]]:
    """Augment one training pair in eight: yield a copy with masks instead of words common to source and target.

    The model then learns masks even from text without verbatim spans. If no word is common, both sides get a mask at
    the end or both at the start.
    """
    hash = crc32(f"{src}\t{tgt}".encode("utf-8", "surrogatepass"))
    if hash % ONE_IN or has_verbatim(src) or has_verbatim(tgt):
        return
    rotated = _rotated_masks(src)
    masks = dict(zip(_shared_words(src, tgt), rotated, strict=False))
    if masks:
        masked_src, masked_tgt = (
            _WORD.sub(lambda match: masks.get(match.group(), match.group()), side) for side in (src, tgt)
        )
        yield masked_src, masked_tgt
    else:
        at_end = bool(hash // ONE_IN % 2)
        yield _add_mask(src, rotated[0], at_end=at_end), _add_mask(tgt, rotated[0], at_end=at_end)


def strip_masks(text: str) -> str:
    """Return ``text`` without masks, to train a tokenizer: its vocabulary has the masks anyway."""
    return _MASK.sub("", text)


def _groups(text: str, strings: Sequence[Verbatim], *, letters_may_be_between: bool) -> list[Sequence[Verbatim]]:
    """Group neighbours, as few as possible, until ten masks suffice; without letters between them, if it may not be."""
    if len({each.text for each in strings}) <= len(MASKS):
        return [[each] for each in strings]
    gaps = [text[left.end : right.start] for left, right in pairwise(strings)]
    mergeable = [index for index, gap in enumerate(gaps) if letters_may_be_between or not any(map(str.isalpha, gap))]
    mergeable.sort(key=lambda index: (any(map(str.isalpha, gaps[index])), len(gaps[index])))

    def merged(n_merged: int) -> list[Sequence[Verbatim]]:
        """Return the groups if the first ``n_merged`` mergeable gaps do not separate any."""
        joined = set(mergeable[:n_merged])
        cuts = [0, *(index + 1 for index in range(len(gaps)) if index not in joined), len(strings)]
        return [strings[start:end] for start, end in pairwise(cuts)]

    def is_enough(n_merged: int) -> bool:
        return len({text[group[0].start : group[-1].end] for group in merged(n_merged)}) <= len(MASKS)

    return merged(bisect_left(range(len(mergeable)), True, key=is_enough))


def _replace(text: str, masks: Mapping[str, str]) -> str:
    """Replace strings by their masks; unmasked verbatim strings stay, without any mask characters in them."""
    strings = verbatim_strings(text)
    return with_changes(
        text, [(each.start, each.end, masks.get(each.text) or strip_masks(each.text)) for each in strings]
    )


def _rotated_masks(text: str) -> tuple[str, ...]:
    """Return all masks, rotated by a hash of ``text``."""
    first = crc32(text.encode("utf-8", "surrogatepass")) % len(MASKS)
    return MASKS[first:] + MASKS[:first]


def _shared_words(src: str, tgt: str) -> list[str]:
    """Return the names, numbers and long words that occur exactly once in source and in target."""
    src_counts, tgt_counts = Counter(_WORD.findall(src)), Counter(_WORD.findall(tgt))
    return [
        word
        for word, count in src_counts.items()
        if count == tgt_counts[word] == 1 and (len(word) >= MIN_LETTERS or word != word.lower() or word[0].isdigit())
    ]


def _add_mask(text: str, mask: str, *, at_end: bool) -> str:
    """Add a mask at the start of ``text``, or at its end, before final punctuation."""
    if not at_end:
        return f"{mask} {text.lstrip()}"
    body = END_MARKS.sub("", text)
    return f"{body} {mask}{text[len(body) :].rstrip()}"

"""Masks: symbols that stand for what a translation leaves as it is, URLs, tags, placeholders, numbers with units.

A model whose tokenizer has masks reads ``⟨1⟩`` where the text has a URL, and writes it where the URL goes. They are
characters of Unicode's private use area, each one token of the vocabulary. Not in the paper.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from zlib import crc32

__all__ = [
    "MASKS", "MaskedText", "find_verbatim", "is_all_caps", "mask", "mask_pair", "mask_words", "strip_masks",
    "to_sentence_case", "unmask", "verbatim_spans",
]  # fmt: skip

MASKS = tuple(map(chr, range(0xE000, 0xE00A)))  # U+E000 to U+E009
_MASK = re.compile(f"[{MASKS[0]}-{MASKS[-1]}]")

_FILE_ENDINGS = (
    "7z|avi|bak|bat|bin|bmp|bz2|c|cc|cfg|class|conf|cpp|cs|css|csv|dat|db|deb|dll|doc|docx|dot|eps|exe|fodt|gif|gz|h|"
    "hpp|html?|ico|img|ini|ipynb|iso|jar|java|jpe?g|js|json|jsonl|key|lock|log|lua|m4a|md|mkv|mov|mp[34]|mpe?g|odb|odf|"
    "odg|odp|ods|odt|ogg|ogv|otf|ott|pas|pdf|pem|php|pl|png|po|pptx?|ps|psd|py|rar|rb|rdf|rpm|rs|rst|rtf|sh|so|sql|"
    "svg|tar|tex|tgz|tiff?|toml|tsv|ttf|txt|vbs|wav|webm|webp|whl|woff2?|xls|xlsx|xml|xz|ya?ml|zip|zst"
)
_UNITS = (
    "km/h|m/s|mph|[kcmµμn]?m[²³]?|[kmµμ]?g|[cmd]?l|[mµμn]?s|min|h|[kMGT]?Hz|[mk]?V|mA|[kMG]?Wh?|kJ|[kMh]?Pa|mbar|bar|°|°[CF]|"
    "[kKMGTP]i?B|[kKMGT]?[Bb]it(?:/s)?|[kMG]bps|dpi|ppi|px|pt|em|rpm|dB|ha|[%‰€£¥]|USD|EUR|GBP"
)
_NUMBER = r"\d(?:[\d.,'\u00a0\u202f]{0,30}\d)?"  # bounded: a long run would be read again from each of its digits

# The kinds, in the order in which they are tried at a place. "d.h." and "D.C." are no files, "the 1990s" no seconds,
# "£5m" no metres.
_KINDS = {
    "comment": r"<!--(?:(?!<!--).){0,500}?-->",  # none in another: else each would be read from all before it
    "tag": r"</?[A-Za-z][\w:.-]*(?:\s[^<>]{0,2000})?/?>",
    "entity": r"&(?:[A-Za-z]{2,8}|#\d{1,7}|#x[0-9a-fA-F]{1,6});",
    "url": r"(?i:https?|ftps?|file|git|ssh)://[^\s<>\"'«»“”„]*[^\s<>\"'«»“”„.,;:!?)\]}]|(?:mailto|tel):[^\s<>\"']*\w"
    r"|\bwww\.[^\s<>\"'«»“”„]*[^\s<>\"'«»“”„.,;:!?)\]}]",
    "e-mail": r"(?<![\w.+-])[\w.+-]+@\w[\w-]*(?:\.\w[\w-]*)+",
    "placeholder": r"\$\{[^{}\s]*\}|\{\{[^{}]*\}\}|%\{\w+\}|\{\w*(?:[.:!][^{}\s]*)?\}|%\(\w+\)[sdif]"
    r"|%(?:\d+\$)?[-+#0]?\d*(?:\.\d+)?(?:hh?|ll?|z)?[sdifuxXcgeop](?![A-Za-z])|(?<![\w%])%\d\b|\$\d\b(?![.,]?\d)"
    r"|\$[A-Z_]{2,}\b|%[A-Z_]{2,}%?",
    "path": r"(?<![\w./\\])(?:~/|\.{1,2}/|[A-Za-z]:\\)[\w.+~/\\-]*\w|(?<![\w./<])/[\w.+-]+/[\w.+/-]*\w"
    rf"|(?<![\w.@/\\+-])(?!(?:\w\.)+\w\b)[\w+-]+(?:[./\\][\w+-]+)*\.(?i:{_FILE_ENDINGS})\b(?![/.]\w)",
    "number": rf"(?<![\w.,$€£¥])(?!\d*0s\b)[-+±]?{_NUMBER}[ \u00a0\u202f]?(?:{_UNITS})(?![\w²³])"
    rf"|[$€£¥]\s?{_NUMBER}(?!\w)"
    r"|(?<![\w.,])v?\d+(?:\.\d+){2,}(?!\w)|(?<![\w.,])(?<!\d-)\d{5,}(?![\w]|[.,]\d)|\b0x[0-9a-fA-F]+\b",
    "emoji": "(?:[\U0001f1e6-\U0001f1ff]{2}|[0-9#*]\ufe0f?\u20e3|"
    "(?:[\U0001f300-\U0001faff\u2600-\u27bf\u2b00-\u2bff\u231a\u231b\u23e9-\u23fa]"
    "[\ufe0f\u200d\U0001f3fb-\U0001f3ff\U000e0020-\U000e007f]*)+)+",
    "private use": "[\ue000-\uf8ff]+",  # what cannot be in the training text of a model, and our own symbols
}
_UNCHANGING = re.compile("|".join(f"(?:{pattern})" for pattern in _KINDS.values()))
_HINT = re.compile(r"[<&/@%${\\\d]|\.\w|[^\x00-\u2319]")  # nothing of the above is without one of these

_WORD = re.compile(r"[^\W_]+(?:-[^\W_]+)*")
_END_MARKS = re.compile(r"[\s.!?…。！？]*$")
LEAST_LETTERS = 4  # of a word in small letters that is the same on both sides and no accident
ONE_IN = 8  # pairs of a text are given once more with a mask in the place of a word
LEAST_CAPITALS = 6
MOST_PUT = 100  # masks that are put where the source has them: for each, the whole translation is looked at


@dataclass(frozen=True, slots=True)
class MaskedText:
    """A text with masks, and what each of them stands for."""

    text: str
    originals: dict[str, str]


def find_verbatim(text: str) -> list[str]:
    """What of a text a translation leaves as it is, in order.

    >>> find_verbatim("Mail a.b@c.org or see https://x.org/y?z=1, <b>%s</b> has 12.5 kg 👍 in {name}.txt.")
    ['a.b@c.org', 'https://x.org/y?z=1', '<b>', '%s', '</b>', '12.5 kg', '👍', '{name}']
    """
    return [text[start:end] for start, end in verbatim_spans(text)]


def verbatim_spans(text: str) -> list[tuple[int, int]]:
    """Where they stand: the first place of each, and the one behind it."""
    return [found.span() for found in _UNCHANGING.finditer(text)] if _HINT.search(text) else []


def mask(text: str) -> MaskedText:
    """A text to translate with its masks. The same string has the same mask; what there is no mask for stays.

    >>> masked = mask("see <b>x.txt</b>")
    >>> masked.text == f"see {MASKS[0]}{MASKS[1]}{MASKS[2]}", list(masked.originals.values())
    (True, ['<b>', 'x.txt', '</b>'])
    """
    masks = dict(zip(dict.fromkeys(find_verbatim(text)), MASKS, strict=False))
    return MaskedText(_replaced(text, masks), {token: string for string, token in masks.items()})


def unmask(text: str, masked: MaskedText) -> tuple[str, bool]:
    """A translation of ``masked.text`` with the strings in the place of their masks, and whether all were there.

    A mask that the translation has too often, or that the source has not, is left out; one that it lacks is put where
    it stands in the source, as a share of the length.

    >>> unmask("siehe bei", mask("see x.txt there"))
    ('siehe x.txt bei', False)
    """
    wanted, got = Counter(_MASK.findall(masked.text)), Counter(_MASK.findall(text))
    is_whole = wanted == got
    if not is_whole:
        text = _with_masks(text, masked.text, wanted)
    return _MASK.sub(lambda found: masked.originals.get(found.group(), ""), text), is_whole


def mask_pair(src: str, tgt: str) -> tuple[str, str]:
    """A pair to learn from, with masks for what stands on both sides, equally often.

    Which masks is decided by the text, so that all are learned alike.
    """
    on_src, on_tgt = Counter(find_verbatim(src)), Counter(find_verbatim(tgt))
    shared = [string for string, count in on_src.items() if on_tgt[string] == count]
    masks = dict(zip(shared, _masks_from(src), strict=False))
    return _replaced(src, masks), _replaced(tgt, masks)


def mask_words(src: str, tgt: str) -> Iterator[tuple[str, str]]:
    """A further pair to learn from, made of one pair in eight: masks stand for words that both sides have.

    So masks are learned from text without URLs and the like, too. Where no word is shared, a mask is put at the end of
    both sides, or at their beginning.
    """
    number = crc32(f"{src}\t{tgt}".encode("utf-8", "surrogatepass"))
    if number % ONE_IN or _UNCHANGING.search(src) or _UNCHANGING.search(tgt):
        return
    tokens = _masks_from(src)
    masks = dict(zip(_shared_words(src, tgt), tokens, strict=False))
    if masks:
        masked_src, masked_tgt = (
            _WORD.sub(lambda found: masks.get(found.group(), found.group()), side) for side in (src, tgt)
        )
        yield masked_src, masked_tgt
    else:
        at_end = bool(number // ONE_IN % 2)
        yield _with_one(src, tokens[0], at_end=at_end), _with_one(tgt, tokens[0], at_end=at_end)


def strip_masks(text: str) -> str:
    """``text`` as tokenizers learn from it: masks are in their vocabulary already."""
    return _MASK.sub("", text)


def is_all_caps(text: str) -> bool:
    """Whether a text is a sentence in capitals: several words, no small letter.

    >>> is_all_caps("READ THIS FIRST!"), is_all_caps("NATO"), is_all_caps("The USA")
    (True, False, False)
    """
    if text.upper() != text or text.lower() == text:
        return False
    words = [word for word in _WORD.findall(text) if sum(map(str.isalpha, word)) > 1]
    return len(words) > 1 and sum(map(len, words)) >= LEAST_CAPITALS


def to_sentence_case(text: str, language: str) -> str:
    """A text in capitals as it is written elsewhere, as far as that can be known: the first letter is one.

    >>> to_sentence_case("DO I KNOW YOU?", "en")
    'Do I know you?'
    """
    lowered = text.lower()
    if language == "en":
        lowered = re.sub(r"\bi\b", "I", lowered)
    first = next((place for place, letter in enumerate(lowered) if letter.isalpha()), 0)
    return lowered[:first] + lowered[first : first + 1].upper() + lowered[first + 1 :]


def _replaced(text: str, masks: dict[str, str]) -> str:
    """``text`` with masks; characters in it that look like masks, and got none themselves, are lost."""
    if not _HINT.search(text):
        return text
    return _UNCHANGING.sub(lambda found: masks.get(found.group(), strip_masks(found.group())), text)


def _masks_from(text: str) -> tuple[str, ...]:
    """All masks, beginning with any of them."""
    first = crc32(text.encode("utf-8", "surrogatepass")) % len(MASKS)
    return MASKS[first:] + MASKS[:first]


def _shared_words(src: str, tgt: str) -> list[str]:
    """Names, numbers and long words that stand on both sides, once on each."""
    on_src, on_tgt = Counter(_WORD.findall(src)), Counter(_WORD.findall(tgt))
    return [
        word
        for word, count in on_src.items()
        if count == on_tgt[word] == 1 and (len(word) >= LEAST_LETTERS or word != word.lower() or word[0].isdigit())
    ]


def _with_one(text: str, token: str, *, at_end: bool) -> str:
    """``text`` with one mask more, before the mark at its end or in front of all."""
    if not at_end:
        return f"{token} {text.lstrip()}"
    body = _END_MARKS.sub("", text)
    return f"{body} {token}{text[len(body) :].rstrip()}"


def _with_masks(text: str, source: str, wanted: Counter[str]) -> str:
    """``text`` with just the masks that are wanted."""
    left = Counter(wanted)

    def keep(found: re.Match[str]) -> str:
        token = found.group()
        left[token] -= 1
        return token if left[token] >= 0 else ""

    text = _MASK.sub(keep, text)
    in_source = list(_MASK.finditer(source))
    earlier: set[str] = set()
    later = Counter(found.group() for found in in_source)
    put, at_end = 0, ""
    for found in in_source:
        token = found.group()
        later[token] -= 1
        if left[token] > 0:
            left[token] -= 1
            if put < MOST_PUT:
                put += 1
                before = max((text.rfind(each) + 1 for each in earlier), default=0)
                after = [place for each in +later if (place := text.find(each, before)) >= 0]
                text = _put(text, token, found.start() / len(source), before, min(after, default=len(text)))
            else:
                at_end += f" {token}"
        earlier.add(token)
    return " ".join((text + at_end).split())


def _put(text: str, token: str, share: float, first: int, last: int) -> str:
    """``text`` with a mask at the edge of a word, the nearest one to a place in it, from ``first`` to ``last``."""
    edges = [0, *(found.start() for found in re.finditer(r"\s", text)), len(_END_MARKS.sub("", text))]
    places = [place for place in edges if first <= place <= last] or [first]
    place = min(places, key=lambda each: abs(each - share * len(text)))
    space = " " if place < edges[-1] else ""
    return f"{text[:place]} {token}{space}{text[place:]}"

"""Masks: placeholder tokens for spans that are copied verbatim: URLs, tags, format strings, numbers with units.

The text is masked before translation and unmasked after it: the model sees a mask instead of a URL, and outputs the
mask where the URL goes. Masks are characters of Unicode's private use area, each one token. Not in the paper.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from zlib import crc32

__all__ = [
    "MASKS", "MaskedText", "address_spans", "find_verbatim", "is_all_caps", "mask", "mask_pair", "mask_words",
    "strip_masks", "to_sentence_case", "unmask", "verbatim_spans",
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
_NUMBER = r"\d(?:[\d.,'\u00a0\u202f]{0,30}\d)?"  # bounded, else quadratic time on long runs of digits

# Kinds of verbatim spans, in the order in which they are tried at a position. Not matched: "d.h." and "D.C." as files,
# "the 1990s" as seconds, "£5m" as metres.
_KINDS = {
    "comment": r"<!--(?:(?!<!--).){0,500}?-->",  # no "<!--" inside: else quadratic time on many of them
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
    "private use": "[\ue000-\uf8ff]+",  # no model is trained on these; includes the masks
}
_VERBATIM = re.compile("|".join(f"(?:{pattern})" for pattern in _KINDS.values()))
_ADDRESS = re.compile("|".join(f"(?:{_KINDS[kind]})" for kind in ("url", "e-mail", "placeholder")))
_HINT = re.compile(r"[<&/@%${\\\d]|\.\w|[^\x00-\u2319]")  # a fast filter: every match of _VERBATIM contains a hint

_WORD = re.compile(r"[^\W_]+(?:-[^\W_]+)*")
_END_MARKS = re.compile(r"[\s.!?…。！？]*$")
MIN_LETTERS = 4  # of a lower-case word that source and target share; shorter ones may be equal by chance
ONE_IN = 8  # ``mask_words`` augments one training pair in eight
MIN_CAPITALS = 6  # letters that a text in capitals has at least
MAX_INSERTED = 100  # missing masks inserted by source position, each in linear time; the rest are appended


@dataclass(frozen=True, slots=True)
class MaskedText:
    """A masked text, and the original string of each mask."""

    text: str
    originals: dict[str, str]


def find_verbatim(text: str) -> list[str]:
    """Return the substrings of ``text`` that a translation copies verbatim, in order.

    >>> find_verbatim("Mail a.b@c.org or see https://x.org/y?z=1, <b>%s</b> has 12.5 kg 👍 in {name}.txt.")
    ['a.b@c.org', 'https://x.org/y?z=1', '<b>', '%s', '</b>', '12.5 kg', '👍', '{name}']
    """
    return [text[start:end] for start, end in verbatim_spans(text)]


def verbatim_spans(text: str) -> list[tuple[int, int]]:
    """Return the (start, end) of each substring of ``find_verbatim``."""
    return [match.span() for match in _VERBATIM.finditer(text)] if _HINT.search(text) else []


def address_spans(text: str) -> list[tuple[int, int]]:
    """Return the (start, end) of each URL, e-mail address and placeholder, which no model may change.

    >>> address_spans("see https://x.org, {name}")
    [(4, 17), (19, 25)]
    """
    return [match.span() for match in _ADDRESS.finditer(text)] if _HINT.search(text) else []


def mask(text: str) -> MaskedText:
    """Mask the verbatim strings of a text. Equal strings share a mask; strings beyond the ten masks stay unmasked.

    >>> masked = mask("see <b>x.txt</b>")
    >>> masked.text == f"see {MASKS[0]}{MASKS[1]}{MASKS[2]}", list(masked.originals.values())
    (True, ['<b>', 'x.txt', '</b>'])
    """
    masks = dict(zip(dict.fromkeys(find_verbatim(text)), MASKS, strict=False))
    return MaskedText(_replace(text, masks), {mask: string for string, mask in masks.items()})


def unmask(text: str, masked: MaskedText) -> tuple[str, bool]:
    """Replace the masks in ``text``, a translation of ``masked.text``, by their originals.

    Also returns whether each mask occurs as often as in the source. Surplus and unknown masks are removed; missing ones
    are inserted at their relative position in the source.

    >>> unmask("siehe bei", mask("see x.txt there"))
    ('siehe x.txt bei', False)
    """
    expected, got = Counter(_MASK.findall(masked.text)), Counter(_MASK.findall(text))
    is_complete = expected == got
    if not is_complete:
        text = _repair_masks(text, masked.text, expected)
    return _MASK.sub(lambda match: masked.originals.get(match.group(), ""), text), is_complete


def mask_pair(src: str, tgt: str) -> tuple[str, str]:
    """Mask the verbatim strings that occur equally often in the source and target of a training pair.

    A hash of the source selects the masks, so that all are trained equally often.
    """
    src_counts, tgt_counts = Counter(find_verbatim(src)), Counter(find_verbatim(tgt))
    shared = [string for string, count in src_counts.items() if tgt_counts[string] == count]
    masks = dict(zip(shared, _rotated_masks(src), strict=False))
    return _replace(src, masks), _replace(tgt, masks)


def mask_words(src: str, tgt: str) -> Iterator[tuple[str, str]]:
    """Augment one training pair in eight: yield a copy with masks instead of words common to source and target.

    The model then learns masks even from text without verbatim spans. If no word is common, both sides get a mask at
    the end or both at the start.
    """
    hash = crc32(f"{src}\t{tgt}".encode("utf-8", "surrogatepass"))
    if hash % ONE_IN or _VERBATIM.search(src) or _VERBATIM.search(tgt):
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


def is_all_caps(text: str) -> bool:
    """Whether ``text`` is a sentence in capitals: several words and no lower-case letter.

    >>> is_all_caps("READ THIS FIRST!"), is_all_caps("NATO"), is_all_caps("The USA")
    (True, False, False)
    """
    if text.upper() != text or text.lower() == text:
        return False
    words = [word for word in _WORD.findall(text) if sum(map(str.isalpha, word)) > 1]
    return len(words) > 1 and sum(map(len, words)) >= MIN_CAPITALS


def to_sentence_case(text: str, language: str) -> str:
    """Return a text in capitals in lower case, with the first letter (and the English "I") capitalised.

    >>> to_sentence_case("DO I KNOW YOU?", "en")
    'Do I know you?'
    """
    lowered = text.lower()
    if language == "en":
        lowered = re.sub(r"\bi\b", "I", lowered)
    first = next((index for index, letter in enumerate(lowered) if letter.isalpha()), 0)
    return lowered[:first] + lowered[first : first + 1].upper() + lowered[first + 1 :]


def _replace(text: str, masks: dict[str, str]) -> str:
    """Replace strings by their masks; unmasked verbatim strings stay, without any mask characters in them."""
    if not _HINT.search(text):
        return text
    return _VERBATIM.sub(lambda match: masks.get(match.group(), strip_masks(match.group())), text)


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
    body = _END_MARKS.sub("", text)
    return f"{body} {mask}{text[len(body) :].rstrip()}"


def _repair_masks(text: str, source: str, expected: Counter[str]) -> str:
    """Remove surplus masks from ``text`` and insert missing ones, in the order of ``source`` where possible."""
    missing = Counter(expected)

    def drop_surplus(match: re.Match[str]) -> str:
        missing[match.group()] -= 1
        return match.group() if missing[match.group()] >= 0 else ""

    text = _MASK.sub(drop_surplus, text)
    source_masks = list(_MASK.finditer(source))
    earlier: set[str] = set()  # masks before the current one in the source
    later = Counter(match.group() for match in source_masks)
    n_inserted, appended = 0, ""
    for match in source_masks:
        mask = match.group()
        later[mask] -= 1
        if missing[mask] > 0:
            missing[mask] -= 1
            if n_inserted < MAX_INSERTED:
                n_inserted += 1
                first = max((text.rfind(each) + 1 for each in earlier), default=0)
                next_masks = [index for each in +later if (index := text.find(each, first)) >= 0]
                text = _insert(text, mask, match.start() / len(source), first, min(next_masks, default=len(text)))
            else:
                appended += f" {mask}"
        earlier.add(mask)
    return " ".join((text + appended).split())


def _insert(text: str, mask: str, fraction: float, first: int, last: int) -> str:
    """Insert a mask at the word boundary nearest to ``fraction`` of the length, between ``first`` and ``last``."""
    boundaries = [0, *(match.start() for match in re.finditer(r"\s", text)), len(_END_MARKS.sub("", text))]
    candidates = [boundary for boundary in boundaries if first <= boundary <= last] or [first]
    index = min(candidates, key=lambda each: abs(each - fraction * len(text)))
    space = " " if index < boundaries[-1] else ""
    return f"{text[:index]} {mask}{space}{text[index:]}"

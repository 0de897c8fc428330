"""Classes of characters, as they stand within the brackets of a regular expression."""

from __future__ import annotations

import unicodedata
from functools import cache

__all__ = ["EMOJI", "JOINING_SCRIPTS", "SPACELESS", "marks"]

EMOJI = (
    "©®‼⁉™ℹ\u2190-\u2328\u232b-\u2adb\u2add-\u2bff〰〽㊗㊙\U0001f000-\U0001faff"  # signs that may be shown as pictures
)

# Scripts in whose words the joiners U+200C and U+200D tell words apart: Arabic and others from right to left, those of
# India, Tibetan, Burmese, Khmer, Mongolian and their relatives.
JOINING_SCRIPTS = (
    "\u0600-\u0dff\u0f00-\u109f\u1780-\u18af\u1900-\u1c7f\ua800-\uabff\ufb50-\ufdff\ufe70-\ufefc"
    "\U00010a00-\U00010eff\U00011000-\U00011fff\U0001e900-\U0001e95f"
)

# Scripts without spaces between words: Thai, Lao, Burmese, Khmer, Japanese, Chinese.
SPACELESS = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"


@cache
def marks() -> str:
    """Return the combining marks, such as accents and the vowel signs of Hindi and Thai."""
    ranges = list[list[int]]()
    for code in range(0x300, 0x1F000):
        if unicodedata.category(chr(code)).startswith("M"):
            if ranges and ranges[-1][1] == code - 1:
                ranges[-1][1] = code
            else:
                ranges.append([code, code])
    return "".join(f"{chr(first)}-{chr(last)}" for first, last in ranges)

"""Which tokenizer of sacreBLEU counts the words of a text.

13a, sacreBLEU's default, takes what stands between spaces as words. Where a script has no spaces between words, a
sentence would be one word, and nearly right text would score 0. There, and for Korean, whose words carry their
particles, the characters are counted:

    zh      Chinese: each Chinese character, and the words of other scripts in between, as in sacreBLEU
    char    Japanese, Korean, Thai, Lao, Khmer, Burmese, Tibetan and the like: each character

sacreBLEU's tokenizers for Japanese and Korean need dictionaries that it does not install, so they are not the default:
a score should not depend on what else is installed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from transduce.config import base_language
from transduce.errors import ConfigError, quoted

if TYPE_CHECKING:  # sacrebleu is imported when something is scored
    from sacrebleu import BLEU

__all__ = ["bleu_tokenizer", "bleu_with", "has_spaces", "require_bleu_tokenizer"]

DEFAULT = "13a"
_OF_LANGUAGE = {
    code: name
    for name, codes in {
        "zh": "zh zho chi cmn yue wuu hak hsn gan lzh",
        "char": "ja jpn ko kor th tha lo lao km khm my mya bur bo bod tib dz dzo shn mnw nod tts khb",
    }.items()
    for code in codes.split()
}

_NEEDED = {"ja-mecab": "pip install 'sacrebleu[ja]'", "ko-mecab": "pip install 'sacrebleu[ko]'"}

_HAN = "\u2e80-\u2fdf\u3005\u3007\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
_OTHERS = (
    "\u0e00-\u0fff"  # Thai, Lao, Tibetan
    "\u1000-\u109f\ua9e0-\ua9ff\uaa60-\uaa7f"  # Burmese and its relatives
    "\u1780-\u17ff\u1950-\u19ff\u1a20-\u1aaf\ua980-\ua9df\uaa80-\uaadf\u1b00-\u1b7f"  # Khmer, Tai, Javanese, Balinese
    "\u3040-\u312f\u31f0-\u31ff\uff66-\uff9f"  # kana, bopomofo
    "\u1100-\u11ff\u3130-\u318f\uac00-\ud7ff"  # Hangul
    "\ua000-\ua4cf"  # Yi
)
_UNSPACED = re.compile(f"[{_HAN}{_OTHERS}]+")
_OTHER_UNSPACED = re.compile(f"[{_OTHERS}]+")
_LETTERS = re.compile(r"[^\W\d_]+")
MIN_OTHER_SHARE = 0.05  # of the characters of such scripts: Japanese has Chinese characters and at least as many kana


def bleu_tokenizer(language: str | None, references: Iterable[str]) -> str:
    """Return the name of the tokenizer for a language, or else for the script of most letters of ``references``.

    A region or a script after the language (``zh-TW``) does not matter.

    >>> bleu_tokenizer("de", ["Ein Hund."]), bleu_tokenizer("zh-Hant", []), bleu_tokenizer(None, ["犬が寝ている。"])
    ('13a', 'zh', 'char')
    """
    return _OF_LANGUAGE.get(base_language(language or "")) or _tokenizer_of_script(references)


def has_spaces(language: str) -> bool:
    """Whether the words of a language are counted between its spaces.

    >>> has_spaces("de"), has_spaces("ja")
    (True, False)
    """
    return bleu_tokenizer(language, ()) == DEFAULT


def _tokenizer_of_script(lines: Iterable[str]) -> str:
    text = "\n".join(lines)
    n_unspaced = 0 if text.isascii() else _n_characters(_UNSPACED, text)
    if n_unspaced <= (_n_characters(_LETTERS, _UNSPACED.sub(" ", text)) if n_unspaced else 0):
        return DEFAULT
    return "char" if _n_characters(_OTHER_UNSPACED, text) > MIN_OTHER_SHARE * n_unspaced else "zh"


def _n_characters(pattern: re.Pattern[str], text: str) -> int:
    return sum(map(len, pattern.findall(text)))


def require_bleu_tokenizer(name: str) -> None:
    """Raise ConfigError if sacreBLEU has no tokenizer of this name, or cannot load it here."""
    bleu_with(name)


def bleu_with(tokenizer: str, **options: Any) -> BLEU:
    """Return sacreBLEU's BLEU with one of its tokenizers. Raises ConfigError if that is unknown or cannot be loaded."""
    from sacrebleu import BLEU

    if tokenizer not in BLEU.TOKENIZERS:
        raise ConfigError(
            f"sacreBLEU's tokenizer should be one of {', '.join(BLEU.TOKENIZERS)}, got {quoted(tokenizer)}"
        )
    try:
        return BLEU(tokenize=tokenizer, force=True, **options)  # force: no warning about tokenised text
    except (ImportError, RuntimeError, OSError, AssertionError, SystemExit) as error:
        reason = f"sentencepiece, and a network at its first use ({' '.join(str(error).split())})"
        needed = _NEEDED.get(tokenizer, reason)
        raise ConfigError(
            f"sacreBLEU's tokenizer {tokenizer} needs {needed}; or take another, as in --tokenize char"
        ) from error

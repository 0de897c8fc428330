"""Whether a file is a tokenizer that transduce has written, of this version or an earlier one."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from typing import Any

from tokenizers import models

from transduce.errors import quoted, shown
from transduce.text.byte_level import BYTE_CHARACTERS
from transduce.text.tokenizer_pipelines import (
    CONTINUATION,
    MAX_WORD_BYTES,
    WORD_VERSIONS,
    WordVersion,
    byte_level_pipeline,
    whitespace_pipeline,
)
from transduce.text.vocabulary import SPECIAL_TOKENS, UNK_ID

__all__ = ["USE_OURS", "fault_of"]

# The settings of each kind of model, besides vocabulary and merges.
_SETTINGS: dict[str, dict[str, Any]] = {
    "BPE": {},
    "WordLevel": {"unk_token": SPECIAL_TOKENS[UNK_ID]},
    "WordPiece": {
        "unk_token": SPECIAL_TOKENS[UNK_ID],
        "continuing_subword_prefix": CONTINUATION,
        "max_input_chars_per_word": MAX_WORD_BYTES,
    },
}


USE_OURS = "use a tokenizer that transduce has trained"


def fault_of(description: dict[str, Any]) -> str | None:
    """Return why ``description`` is not a tokenizer written by transduce; None if it is.

    Checked before the library reads it: some invalid settings abort the process inside the library.
    """
    model, added_tokens = description.get("model"), description.get("added_tokens")
    vocabulary = model.get("vocab") if isinstance(model, dict) else None
    if not isinstance(model, dict) or not isinstance(vocabulary, dict):
        return "is not a tokenizer: it has no model with a vocabulary"
    kind = model.get("type")
    if not isinstance(kind, str) or kind not in _SETTINGS:
        return f"has a {shown(kind)} model; only {' and '.join(_SETTINGS)} can be used"
    expected = _SETTINGS[kind]
    settings = {name: value for name, value in model.items() if name not in ("type", "vocab", "merges") and value}
    for name in [*settings, *expected]:
        if settings.get(name) != expected.get(name):
            return f"sets {shown(name)} to {quoted(model.get(name))}; {USE_OURS}"
    if added_tokens:
        return f"adds tokens beside its vocabulary; {USE_OURS}"
    if list(map(vocabulary.get, SPECIAL_TOKENS)) != list(range(len(SPECIAL_TOKENS))):
        return f"does not have {', '.join(SPECIAL_TOKENS)} at ids 0 to 3; {USE_OURS}"
    ids = vocabulary.values()
    if not all(type(id) is int for id in ids) or set(ids) != set(range(len(ids))):
        return f"does not number its vocabulary from 0 to {len(ids) - 1}, each id once; {USE_OURS}"
    byte_tokens = [*BYTE_CHARACTERS, *(CONTINUATION + character for character in BYTE_CHARACTERS)]
    if kind == "WordPiece" and not vocabulary.keys() >= set(byte_tokens):
        return f"lacks bytes, at the start of a word or inside, so it would lose text; {USE_OURS}"
    others = [_other_part(description, _pipeline(kind, version)) for version in WORD_VERSIONS]
    return f"has another {shown(others[-1])} than transduce writes; {USE_OURS}" if all(others) else None


def _other_part(description: Mapping[str, Any], pipeline: Mapping[str, Any]) -> str:
    """Return the name of the first part of a tokenizer that is not as in a pipeline; "" if all are."""
    names = sorted((description.keys() | pipeline.keys()) - {"model", "added_tokens"})
    return next((name for name in names if not _is_within(description.get(name), pipeline.get(name))), "")


@cache
def _pipeline(kind: str, version: WordVersion) -> dict[str, Any]:
    """Return the JSON description of the pipeline for a kind of model, as the installed library writes it."""
    match kind:
        case "WordLevel":
            library = whitespace_pipeline(models.WordLevel())
        case "WordPiece":
            library = byte_level_pipeline(models.WordPiece(), version)
        case _:
            library = byte_level_pipeline(models.BPE(), version)
    pipeline: dict[str, Any] = json.loads(library.to_str())
    return pipeline


def _is_within(got: object, expected: object) -> bool:
    """Whether two JSON values are equal, except for keys of ``expected`` that an older library did not write."""
    if isinstance(got, dict) and isinstance(expected, dict):
        return got.keys() <= expected.keys() and all(_is_within(value, expected[key]) for key, value in got.items())
    if isinstance(got, list) and isinstance(expected, list):
        return len(got) == len(expected) and all(map(_is_within, got, expected))
    return type(got) is type(expected) and got == expected

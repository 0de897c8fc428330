"""Our tokenizers as ``tokenizer.json`` for other programs: Hugging Face transformers and transformers.js.

Here a tokenizer only segments: normalisation, EOS and special tokens are the callers'. There all of it is in the file.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from transduce.text import BOS_ID, EOS_ID, LANGUAGE_MODEL_TOKENS, PAD_ID, SPECIAL_TOKENS, UNK_ID, Tokenizer
from transduce.text.normalise import INVISIBLE, LONE_JOINERS

__all__ = ["causal_tokenizer_files", "tokenizer_files"]

Step = dict[str, Any]  # of a normalizer
Files = dict[str, dict[str, Any]]  # JSON values by file name

_SPACES_TO_ONE: Step = {"type": "Replace", "pattern": {"Regex": "\\s+"}, "content": " "}
_STRIP: Step = {"type": "Strip", "strip_left": True, "strip_right": True}
_NOTHING_INVISIBLE: tuple[Step, ...] = tuple(
    {"type": "Replace", "pattern": {"Regex": pattern}, "content": ""} for pattern in (INVISIBLE, LONE_JOINERS)
)


def tokenizer_files(tokenizer: Tokenizer, *, max_length: int) -> Files:
    """Return ``tokenizer.json`` and ``tokenizer_config.json`` of a tokenizer for whole lines: EOS is appended."""
    steps: list[Step] = [*_NOTHING_INVISIBLE, {"type": "NFC"}, _SPACES_TO_ONE, _STRIP]
    return _files(tokenizer, steps, before=(), after=(EOS_ID,), max_length=max_length)


def causal_tokenizer_files(tokenizer: Tokenizer, *, max_length: int) -> Files:
    """Return the files of a causal language model's tokenizer: BOS comes first, and each line begins with a space."""
    steps: list[Step] = [
        *_NOTHING_INVISIBLE,
        {"type": "NFC"},
        {"type": "Replace", "pattern": {"Regex": "[^\\S\\n]*\\n[^\\S\\n]*"}, "content": "\n"},
        {"type": "Replace", "pattern": {"Regex": "[^\\S\\n]+"}, "content": " "},
        {"type": "Replace", "pattern": {"Regex": "^ | $"}, "content": ""},
        {"type": "Replace", "pattern": {"Regex": "\\n(?=[^\\n])"}, "content": "\n "},
    ]
    files = _files(tokenizer, steps, before=(BOS_ID,), after=(), max_length=max_length)
    description = files["tokenizer.json"]
    # Before the first word there is a space, too; not before a first line that is empty.
    description["normalizer"]["normalizers"].append(
        {"type": "Replace", "pattern": {"Regex": "\\A \\n"}, "content": "\n"}
    )
    line_ends = {"type": "Split", "pattern": {"String": "\n"}, "behavior": "Isolated", "invert": False}
    description["pre_tokenizer"] = {"type": "Sequence", "pretokenizers": [line_ends, description["pre_tokenizer"]]}
    *decoders, strip = description["decoder"]["decoders"]
    join_lines = {"type": "Replace", "pattern": {"String": "\n "}, "content": "\n"}
    description["decoder"]["decoders"] = [*decoders, join_lines, strip]
    return files


def _files(
    tokenizer: Tokenizer,
    steps: Sequence[Step],
    *,
    before: Sequence[int],
    after: Sequence[int],
    max_length: int,
) -> Files:
    description = json.loads(tokenizer.description)
    specials = list(enumerate(SPECIAL_TOKENS))
    specials += list(zip(tokenizer.mask_and_sentinel_ids, LANGUAGE_MODEL_TOKENS, strict=False))
    description["added_tokens"] = [
        {
            "id": id, "content": content, "special": True, "normalized": False,
            "single_word": False, "lstrip": False, "rstrip": False,
        }
        for id, content in specials
    ]  # fmt: skip
    description["normalizer"] = {"type": "Sequence", "normalizers": [*steps, description["normalizer"]]}
    description["post_processor"] = _template(before, after)
    config = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "model_max_length": max_length,
        "clean_up_tokenization_spaces": False,
        "split_special_tokens": True,  # "</s>" in a text is a word, not the end
        "pad_token": SPECIAL_TOKENS[PAD_ID],
        "bos_token": SPECIAL_TOKENS[BOS_ID],
        "eos_token": SPECIAL_TOKENS[EOS_ID],
        "unk_token": SPECIAL_TOKENS[UNK_ID],
        "model_input_names": ["input_ids", "attention_mask"],
    }
    return {"tokenizer.json": description, "tokenizer_config.json": config}


def _template(before: Sequence[int], after: Sequence[int]) -> dict[str, Any]:
    """Return the post-processor that puts special tokens around a text."""

    def special(id: int) -> dict[str, Any]:
        return {"SpecialToken": {"id": SPECIAL_TOKENS[id], "type_id": 0}}

    def sequence(name: str) -> dict[str, Any]:
        return {"Sequence": {"id": name, "type_id": 0}}

    around = [*map(special, before)], [*map(special, after)]
    tokens = {
        SPECIAL_TOKENS[id]: {"id": SPECIAL_TOKENS[id], "ids": [id], "tokens": [SPECIAL_TOKENS[id]]}
        for id in (*before, *after)
    }
    return {
        "type": "TemplateProcessing",
        "single": [*around[0], sequence("A"), *around[1]],
        "pair": [*around[0], sequence("A"), sequence("B"), *around[1]],
        "special_tokens": tokens,
    }

"""Export of imported models back to the layout they came from: Marian with SentencePiece, as OPUS-MT's folders.

The rows of embeddings and output get their old numbers, so a model that was not trained in between has the same weights
bit for bit.

Shapes: V vocabulary, D d_model, S source positions, T target positions, O outputs of a projection, I its inputs.
"""

from __future__ import annotations

from copy import copy
from pathlib import Path

import numpy as np
from torch import Tensor

from transduce.config import SearchConfig, TransformerConfig, split_direction
from transduce.errors import ConfigError
from transduce.exchange.foreign_model import SUPPRESSED, UNNAMED
from transduce.exchange.hugging_face import (
    WEIGHTS_FILE,
    encoder_decoder_config,
    generation_config,
    max_source_length,
    named_tensors,
    sine_first,
)
from transduce.exchange.libraries import quiet_transformers
from transduce.exchange.plain_weights import PlainModel, plain_model, reordered, with_rows
from transduce.exchange.probes import ODD_TEXTS
from transduce.files import write_json
from transduce.files.writing import replacement
from transduce.model import Transformer
from transduce.model.weights_file import write_tensors
from transduce.text import BOS_ID, EOS_ID, PAD_ID, SPECIAL_TOKENS, UNK_ID, SentencePieceTokenizer, Tokenizers, normalise

__all__ = [
    "compare_marian_tokenizer", "differing_texts", "sides_with_one_pad", "write_opus_folder",
    "write_sentencepiece_models",
]  # fmt: skip

PIECES_AT_ONCE = 16  # of a vocabulary, decoded together: how words are joined shows, too


def write_opus_folder(
    folder: Path, model: Transformer, tokenizers: Tokenizers, search: SearchConfig, *, direction: str
) -> None:
    """Write a folder for ``MarianMTModel`` and ``MarianTokenizer``.

    Raises ConfigError for pre-norm or learned positions.
    """
    config = model.config
    if config.norm != "post" or config.positions != "sinusoidal":
        raise ConfigError(
            "a model with a SentencePiece tokenizer is exported as Marian, which is post-norm with sinusoids"
        )
    src, tgt = sides_with_one_pad(tokenizers)
    plain = _with_old_numbers(reordered(plain_model(model), sine_first(config.d_model)), src, tgt)
    assert plain.encoder is not None
    pad_id, start_id, eos_id, _ = tgt.original_ids[:4]
    numbers = {
        "pad_token_id": pad_id, "bos_token_id": None, "eos_token_id": eos_id, "decoder_start_token_id": start_id,
    }  # fmt: skip
    values = encoder_decoder_config(config) | numbers | {
        "vocab_size": len(plain.encoder.embedding_VD), "decoder_vocab_size": len(plain.decoder.embedding_VD),
        "model_type": "marian", "architectures": ["MarianMTModel"],
    }  # fmt: skip
    suppressed = [pad_id, *(tgt.original_ids[id] for id in tgt.suppressed_ids)]
    generation = generation_config(config, search, tgt) | numbers | {"bad_words_ids": [[id] for id in suppressed]}
    write_json(folder / "config.json", values)
    write_json(folder / "generation_config.json", generation)
    write_tensors(folder / WEIGHTS_FILE, dict(named_tensors(plain, config, class_name="MarianMTModel")))
    _write_tokenizers(folder, src, tgt, direction, config)


def sides_with_one_pad(tokenizers: Tokenizers) -> list[SentencePieceTokenizer]:
    """Return both sides, padding with one number: the larger, if vocabularies of two sizes each end with padding."""
    sides = [copy(side) for side in (tokenizers.src, tokenizers.tgt) if isinstance(side, SentencePieceTokenizer)]
    pads = [side.original_ids[PAD_ID] for side in sides]
    for side, pad in zip(sides, pads, strict=True):
        side.original_ids = [max(pads) if id == pad else id for id in side.original_ids]
    return sides


def _with_old_numbers(plain: PlainModel, src: SentencePieceTokenizer, tgt: SentencePieceTokenizer) -> PlainModel:
    """Put the rows of embeddings and output at the numbers that the other library uses."""

    def rows(ours_V: Tensor, tokenizer: SentencePieceTokenizer, fill: float = 0.0) -> Tensor:
        old = tokenizer.original_ids
        theirs_V = ours_V.new_full((max(old) + 1, *ours_V.shape[1:]), fill)
        for id in [*range(len(SPECIAL_TOKENS), len(old)), PAD_ID, UNK_ID, EOS_ID, BOS_ID]:
            theirs_V[old[id]] = ours_V[id]  # BOS last: where PAD and BOS are one token there, it is BOS that is read
        return theirs_V

    bias_O = rows(plain.output.bias_O, tgt, SUPPRESSED)
    return with_rows(plain, lambda rows_VD: rows(rows_VD, src), lambda rows_VD: rows(rows_VD, tgt), bias_O)


def _write_tokenizers(
    folder: Path, src: SentencePieceTokenizer, tgt: SentencePieceTokenizer, direction: str, config: TransformerConfig
) -> None:
    is_shared = config.embeddings == "three-way"
    write_sentencepiece_models(folder, src, tgt)
    write_json(folder / "vocab.json", _numbers(src))
    if not is_shared:
        write_json(folder / "target_vocab.json", _numbers(tgt))
    src_language, tgt_language = split_direction(direction)
    values = {
        "tokenizer_class": "MarianTokenizer", "source_lang": src_language, "target_lang": tgt_language,
        "separate_vocabs": not is_shared, "model_max_length": max_source_length(config),
        "pad_token": SPECIAL_TOKENS[PAD_ID], "eos_token": SPECIAL_TOKENS[EOS_ID], "unk_token": SPECIAL_TOKENS[UNK_ID],
        "clean_up_tokenization_spaces": False,
        "split_special_tokens": True,
    }  # fmt: skip
    write_json(folder / "tokenizer_config.json", values)


def write_sentencepiece_models(folder: Path, src: SentencePieceTokenizer, tgt: SentencePieceTokenizer) -> None:
    """Write the models of both sides as the files they came from."""
    for name, tokenizer in (("source.spm", src), ("target.spm", tgt)):
        with replacement(folder / name) as stream:
            stream.write(tokenizer.proto)


def _numbers(tokenizer: SentencePieceTokenizer) -> dict[str, int]:
    """Return the vocabulary with the other library's numbers."""
    pad, _, eos, unk = tokenizer.original_ids[: len(SPECIAL_TOKENS)]
    ordinary = tokenizer.pieces(range(len(SPECIAL_TOKENS), tokenizer.size))
    numbers = dict(zip(ordinary, tokenizer.original_ids[len(SPECIAL_TOKENS) :], strict=True))
    special = {SPECIAL_TOKENS[EOS_ID]: eos, SPECIAL_TOKENS[UNK_ID]: unk, SPECIAL_TOKENS[PAD_ID]: pad}
    return dict(sorted((numbers | special).items(), key=lambda item: item[1]))


def differing_texts(folder: Path, ours: SentencePieceTokenizer) -> list[tuple[str, str]]:
    """Decode all pieces of a target vocabulary by ``MarianTokenizer``, some at a time.

    Returns the texts that differ: ours and theirs. Rows without a piece are left out. Raises what transformers raises.
    """
    with quiet_transformers() as transformers:
        theirs = transformers.MarianTokenizer.from_pretrained(folder)
    ids = [id for id in range(len(SPECIAL_TOKENS), ours.size) if not ours.piece([id]).startswith(UNNAMED)]
    shuffled = np.random.default_rng(1).permutation(ids).tolist()
    rows = (shuffled[start : start + PIECES_AT_ONCE] for start in range(0, len(shuffled), PIECES_AT_ONCE))
    texts = (
        (ours.decode(row), theirs.decode([ours.original_ids[id] for id in row], skip_special_tokens=True))
        for row in rows
    )
    return [(mine, other) for mine, other in texts if normalise(mine) != normalise(other)]


def compare_marian_tokenizer(folder: Path, ours: SentencePieceTokenizer) -> tuple[int, tuple[str, ...]]:
    """Encode odd texts by ``MarianTokenizer``; return how many give our ids, and the other texts."""
    with quiet_transformers() as transformers:
        theirs = transformers.MarianTokenizer.from_pretrained(folder)
    differing = tuple(
        text
        for text in map(normalise, ODD_TEXTS)
        if theirs(text)["input_ids"] != [ours.original_ids[id] for id in (*ours.encode(text), EOS_ID)]
    )
    return len(ODD_TEXTS) - len(differing), differing

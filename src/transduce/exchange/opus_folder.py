"""Import of Marian models in the layout of Hugging Face's OPUS-MT models.

``config.json``, ``model.safetensors`` or ``pytorch_model.bin``, ``source.spm``, ``target.spm``, ``vocab.json`` (and
``target_vocab.json`` for two vocabularies).

Shapes: D d_model, F d_ff, V vocabulary.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from transduce.config import SearchConfig, TransformerConfig, canonical_direction, config_from_mapping
from transduce.errors import CheckpointError, quoted, shown
from transduce.exchange.foreign_model import (
    UNNAMED,
    ForeignModel,
    NumberedVocabulary,
    TensorSource,
    read_bounded,
    renumbered,
    whole_number,
)
from transduce.exchange.hugging_face import WEIGHTS_FILE, sine_first
from transduce.exchange.plain_weights import (
    PlainAttention,
    PlainLayer,
    PlainModel,
    PlainStack,
    Projection,
    Scale,
    reordered,
)
from transduce.files import read_json
from transduce.files.regular import require_regular
from transduce.model.weights_file import read_tensors
from transduce.text import SentencePieceTokenizer, Tokenizers
from transduce.text.normalise import without_surrogates
from transduce.text.sentencepiece_tokenizer import sentencepiece_description

__all__ = ["is_opus_folder", "read_opus_folder", "sentencepiece_tokenizers"]

BIN_FILE = "pytorch_model.bin"
HF_NORM_EPS = 1e-5  # of torch's LayerNorm, which the class does not change
ACTIVATIONS: Mapping[str, str] = {
    "relu": "relu", "gelu": "gelu", "gelu_new": "gelu-tanh", "swish": "swish", "silu": "swish",
}  # fmt: skip
# Switches of configurations that compute something else, and the only value that we can use.
REQUIRED: Mapping[str, Any] = {
    "model_type": "marian",
    "normalize_before": False,
    "normalize_embedding": False,
    "add_final_layer_norm": False,
    "static_position_embeddings": True,
}
TIED_NAMES = ("lm_head.weight", "model.encoder.embed_tokens.weight", "model.decoder.embed_tokens.weight")
POSITION_TABLES = ("model.encoder.embed_positions.weight", "model.decoder.embed_positions.weight")


_NAMES = {"pad_id": "pad_token_id", "start_id": "decoder_start_token_id", "eos_id": "eos_token_id"}


def is_opus_folder(source: Path) -> bool:
    """Whether a folder looks like a model of this layout."""
    return (source / "config.json").exists()


def read_opus_folder(source: Path) -> ForeignModel:
    """Read a folder. Raises CheckpointError if it is damaged, incomplete, or computes something that ours does not."""
    path = source / "config.json"
    values = read_json(path, error=CheckpointError, may_be_link=True)
    for name, wanted in REQUIRED.items():
        if name in values and values[name] != wanted:
            raise CheckpointError(f"{path}: {name} = {quoted(values[name])} cannot be imported, only {wanted!r}")
    if values.get("model_type") != "marian":
        raise CheckpointError(f"{path}: model_type is missing; only 'marian' can be imported")
    if (source / "tokenizer.json").exists() and not (source / "source.spm").exists():
        raise CheckpointError(
            f"{source} has tokenizer.json and no source.spm; only models with SentencePiece tokenizers can be imported"
        )
    n_src = whole_number(values, "vocab_size", where=path)
    n_tgt = whole_number(values, "decoder_vocab_size", where=path, default=n_src)
    is_shared = values.get("share_encoder_decoder_embeddings", True) is True
    tokenizers = _tokenizers(source, values, (n_src, n_src if is_shared else n_tgt), is_shared=is_shared)
    tensors = TensorSource(_read_weights(source), where=source)
    config = _config(values, tokenizers, where=path, embeddings=_embeddings(values, tensors, is_shared=is_shared))
    weights = _plain(tensors, config, n_src=n_src, n_tgt=n_src if is_shared else n_tgt)
    order_D = torch.argsort(sine_first(config.d_model))  # back to sines and cosines in turn
    return ForeignModel(
        "Hugging Face Marian",
        config,
        renumbered(reordered(weights, order_D), tokenizers),
        tokenizers,
        _search(source, values),
        _direction(source),
    )


def _config(values: Mapping[str, Any], tokenizers: Tokenizers, *, where: Path, embeddings: str) -> TransformerConfig:
    def number(name: str) -> int:
        return whole_number(values, name, where=where)

    for name in ("attention_heads", "ffn_dim"):
        if number(f"encoder_{name}") != number(f"decoder_{name}"):
            raise CheckpointError(f"{where}: encoder_{name} and decoder_{name} differ; here both sides are alike")
    d_model, h = number("d_model"), number("encoder_attention_heads")
    if h < 1 or d_model % h:
        raise CheckpointError(f"{where}: d_model {d_model} is not a multiple of {h} heads")
    activation = values.get("activation_function")
    if not isinstance(activation, str) or activation not in ACTIVATIONS:
        raise CheckpointError(
            f"{where}: activation_function {quoted(activation)} is not one of {', '.join(ACTIVATIONS)}"
        )
    fields = {
        "n_encoder_layers": number("encoder_layers"),
        "n_decoder_layers": number("decoder_layers"),
        "d_model": d_model,
        "d_ff": number("encoder_ffn_dim"),
        "n_heads": h,
        "d_k": d_model // h,
        "d_v": d_model // h,
        "activation": ACTIVATIONS[activation],
        "scale_embeddings": values.get("scale_embedding", False),
        "attention_bias": True,
        "output_bias": True,
        "norm_eps": HF_NORM_EPS,
        "p_drop": values.get("dropout", 0.1),
        "embeddings": embeddings,
        "src_vocab_size": tokenizers.src.size,
        "tgt_vocab_size": tokenizers.tgt.size,
    }
    return config_from_mapping(TransformerConfig, fields, where=where, error=CheckpointError)


def _embeddings(values: Mapping[str, Any], tensors: TensorSource, *, is_shared: bool) -> str:
    """Return which of the three matrices are one."""
    if values.get("tie_word_embeddings", True) is False and tensors.has("lm_head.weight"):
        return "separate"
    return "three-way" if is_shared else "target"


def _tokenizers(source: Path, values: Mapping[str, Any], sizes: tuple[int, int], *, is_shared: bool) -> Tokenizers:
    where = source / "config.json"
    pad_id = whole_number(values, "pad_token_id", where=where)
    special = {
        "pad_id": pad_id,
        "start_id": whole_number(values, "decoder_start_token_id", where=where, default=pad_id),
        "eos_id": whole_number(values, "eos_token_id", where=where),
    }
    for name, id in special.items():
        if not 0 <= id < min(sizes):
            raise CheckpointError(f"{where}: {_NAMES[name]} {id} is not a row of the embeddings, 0 to {min(sizes) - 1}")
    suppressed = _suppressed(source, values, n_rows=sizes[1])
    names = ["vocab.json", "vocab.json" if is_shared else "target_vocab.json"]
    vocabularies = []
    for name, size in zip(names, sizes, strict=True):
        pieces = _vocabulary(source / name, size)
        if special["eos_id"] in (pad_id, pieces["<unk>"]):
            raise CheckpointError(f"{where}: eos_token_id {special['eos_id']} is also that of padding or of <unk>")
        vocabularies.append(NumberedVocabulary(pieces, **special, unk_id=pieces["<unk>"], suppressed=suppressed))
    return sentencepiece_tokenizers((source / "source.spm", source / "target.spm"), vocabularies)


def _vocabulary(path: Path, size: int) -> dict[str, int]:
    """Return the pieces of a vocabulary file; rows of the embedding that it does not name get names."""
    pieces = read_json(path, error=CheckpointError, may_be_link=True)
    if "<unk>" not in pieces:
        raise CheckpointError(f"{path} has no <unk>; it is no vocabulary of a Marian model")
    require_text(pieces, where=path)
    for piece, id in pieces.items():
        if type(id) is not int or not 0 <= id < size:
            raise CheckpointError(
                f"{path}: {shown(piece)} has the number {quoted(id)}, the model has rows 0 to {size - 1}"
            )
    if len(set(pieces.values())) < len(pieces):
        raise CheckpointError(f"{path} gives two pieces the same number")
    if size > 10 * len(pieces) + 1000:
        raise CheckpointError(f"{path} names {len(pieces):,} pieces, but the model has {size:,} rows")
    unnamed = sorted(set(range(size)) - set(pieces.values()))
    return pieces | {f"{UNNAMED}{id}>": id for id in unnamed}


def require_text(pieces: Iterable[str], *, where: Path) -> None:
    """Raise CheckpointError if a piece has half a surrogate pair, which JSON and YAML can have."""
    for piece in pieces:
        if without_surrogates(piece) != piece:
            raise CheckpointError(f"{where}: the piece {shown(piece)} has half a surrogate pair, which is no text")


def sentencepiece_tokenizers(models: Sequence[Path], vocabularies: Sequence[NumberedVocabulary]) -> Tokenizers:
    """Return the tokenizers of the two sides. Raises CheckpointError if a SentencePiece model is damaged."""
    sides = []
    for path, vocabulary in zip(models, vocabularies, strict=True):
        specials = {name: getattr(vocabulary, name) for name in ("pad_id", "start_id", "eos_id", "unk_id")}
        description = sentencepiece_description(
            read_bounded(path), vocabulary.pieces, **specials, suppressed=vocabulary.suppressed
        )
        try:
            sides.append(SentencePieceTokenizer(description))
        except CheckpointError as error:
            raise CheckpointError(f"{path}: {error}") from error
    src, tgt = sides
    return Tokenizers(src, tgt)


def _read_weights(source: Path) -> dict[str, Tensor]:
    if (source / WEIGHTS_FILE).exists():
        return read_tensors(source / WEIGHTS_FILE, may_be_link=True)
    if (source / f"{WEIGHTS_FILE}.index.json").exists() or (source / f"{BIN_FILE}.index.json").exists():
        raise CheckpointError(
            f"{source} has its weights in several files; save it as one: save_pretrained(..., max_shard_size='100GB')"
        )
    path = source / BIN_FILE
    if not path.exists():
        raise CheckpointError(f"{source} has neither {WEIGHTS_FILE} nor {BIN_FILE}")
    require_regular(path, error=CheckpointError, may_be_link=True)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tensors = torch.load(path, map_location="cpu", weights_only=True)  # refuses whatever runs code
    except Exception as error:  # UnpicklingError, RuntimeError, KeyError, ...
        reason = " ".join(str(error).split())[:200]
        raise CheckpointError(
            f"{path} cannot be read as plain tensors, and nothing in it was run; use {WEIGHTS_FILE}: {shown(reason)}"
        ) from error
    if not isinstance(tensors, dict) or not all(
        isinstance(name, str) and isinstance(tensor, Tensor) for name, tensor in tensors.items()
    ):
        raise CheckpointError(f"{path} holds no table of tensors")
    return tensors


def _plain(tensors: TensorSource, config: TransformerConfig, *, n_src: int, n_tgt: int) -> PlainModel:
    d = config.d_model
    tensors.drop(*POSITION_TABLES)  # sinusoids, which are computed
    if config.embeddings == "three-way":
        src_VD = tgt_VD = output_VD = tensors.take("model.shared.weight", n_src, d)
        tensors.drop(*TIED_NAMES)
    else:
        shared = tensors.take("model.shared.weight", n_src, d) if tensors.has("model.shared.weight") else None
        src_VD, tgt_VD = (
            tensors.take(name, n, d) if shared is None or tensors.has(name) else shared
            for name, n in ((TIED_NAMES[1], n_src), (TIED_NAMES[2], n_tgt))
        )
        output_VD = tensors.take("lm_head.weight", n_tgt, d) if config.embeddings == "separate" else tgt_VD
        tensors.drop(*TIED_NAMES)
    has_bias = tensors.has("final_logits_bias")
    bias_V = tensors.take("final_logits_bias", 1, n_tgt)[0] if has_bias else torch.zeros(n_tgt)
    encoder = _stack(tensors, "model.encoder", config, config.n_encoder_layers, src_VD, has_cross=False)
    decoder = _stack(tensors, "model.decoder", config, config.n_decoder_layers, tgt_VD, has_cross=True)
    tensors.require_empty()
    return PlainModel(encoder, decoder, Projection(output_VD, bias_V))


def _stack(
    tensors: TensorSource, at: str, config: TransformerConfig, n_layers: int, embedding_VD: Tensor, *, has_cross: bool
) -> PlainStack:
    d, f = config.d_model, config.d_ff

    def projection(name: str, n_out: int, n_in: int) -> Projection:
        return Projection(tensors.take(f"{name}.weight", n_out, n_in), tensors.take(f"{name}.bias", n_out))

    def scale(name: str) -> Scale:
        return Scale(tensors.take(f"{name}.weight", d), tensors.take(f"{name}.bias", d))

    def attention(name: str) -> PlainAttention:
        q, k, v, out = (projection(f"{name}.{part}_proj", d, d) for part in ("q", "k", "v", "out"))
        return PlainAttention(q, k, v, out, scale(f"{name}_layer_norm"))

    layers = (
        PlainLayer(
            attention(f"{layer}.self_attn"),
            attention(f"{layer}.encoder_attn") if has_cross else None,
            projection(f"{layer}.fc1", f, d),
            projection(f"{layer}.fc2", d, f),
            scale(f"{layer}.final_layer_norm"),
        )
        for layer in (f"{at}.layers.{index}" for index in range(n_layers))
    )
    return PlainStack(embedding_VD, None, tuple(layers), None)


def _generation(source: Path, values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings of the search that the model comes with."""
    path = source / "generation_config.json"
    return dict(values) | (read_json(path, error=CheckpointError, may_be_link=True) if path.exists() else {})


def _search(source: Path, values: Mapping[str, Any]) -> SearchConfig:
    """Return our search with the beam of theirs; the length penalty is another one."""
    beam_size = _generation(source, values).get("num_beams") or SearchConfig().beam_size
    return config_from_mapping(SearchConfig, {"beam_size": beam_size}, where=source, error=CheckpointError)


def _suppressed(source: Path, values: Mapping[str, Any], *, n_rows: int) -> tuple[int, ...]:
    """Return the tokens that are never written.

    Raises CheckpointError for a sequence of several tokens, and for a number that is no row of the output.
    """
    words = _generation(source, values).get("bad_words_ids") or []
    if not isinstance(words, list) or not all(isinstance(word, list) for word in words):
        raise CheckpointError(f"{source}: bad_words_ids should be lists of numbers, got {quoted(words)}")
    if not all(len(word) == 1 and type(word[0]) is int for word in words):
        raise CheckpointError(
            f"{source}: bad_words_ids has sequences of several tokens, which search here does not suppress"
        )
    beyond = next((id for [id] in words if not 0 <= id < n_rows), None)
    if beyond is not None:
        raise CheckpointError(f"{source}: bad_words_ids has {quoted(beyond)}, the model has rows 0 to {n_rows - 1}")
    return tuple(id for [id] in words)


def _direction(source: Path) -> str | None:
    path = source / "tokenizer_config.json"
    if not path.exists():
        return None
    values = read_json(path, error=CheckpointError, may_be_link=True)
    direction = f"{values.get('source_lang')}-{values.get('target_lang')}"
    return canonical_direction(direction)

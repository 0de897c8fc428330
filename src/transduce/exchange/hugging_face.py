"""Translators as Hugging Face folders: Marian for post-norm, Pegasus and Blenderbot for pre-norm.

Pegasus has sinusoids, Blenderbot learned positions; Marian has sinusoids, and reads learned ones from the file.

Shapes: D d_model, V vocabulary, P positions of a table, S source positions, T target positions, O outputs of a
projection, I its inputs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from transduce.config import MAX_VOCABULARY_SIZE, SearchConfig, TransformerConfig
from transduce.exchange.hugging_face_tokenizer import tokenizer_files
from transduce.exchange.libraries import quiet_transformers
from transduce.exchange.plain_weights import (
    PlainAttention,
    PlainModel,
    PlainStack,
    Projection,
    Scale,
    plain_model,
    reordered,
    with_rows,
)
from transduce.exchange.probes import MAX_NEW_TOKENS, Comparison, Probes, compared
from transduce.files import write_json
from transduce.model import Transformer
from transduce.model.embedding import sinusoid
from transduce.model.weights_file import write_tensors
from transduce.text import BOS_ID, EOS_ID, PAD_ID, Tokenizer, Tokenizers

__all__ = [
    "ACTIVATION_NAMES", "MAX_LENGTH", "WEIGHTS_FILE", "before_end", "check_hugging_face", "encoder_decoder_config",
    "generation_config", "greedily_written", "max_source_length", "named_scale", "named_stack", "named_tensors",
    "sine_first", "write_hugging_face", "write_hugging_face_tokenizers",
]  # fmt: skip

WEIGHTS_FILE = "model.safetensors"
TARGET_FOLDER = "target"  # of the second tokenizer
MAX_LENGTH = 1024  # of a sentence, if positions are sinusoidal
NO_TOKEN = -1e4  # logit bias of rows that fill up a vocabulary

ACTIVATION_NAMES: Mapping[str, str] = {"relu": "relu", "gelu": "gelu", "gelu-tanh": "gelu_new", "swish": "swish"}
# The classes have the same layout; they differ in norms and positions.
MODEL_TYPES: Mapping[tuple[str, str], tuple[str, str]] = {
    ("post", "sinusoidal"): ("marian", "MarianMTModel"),
    ("post", "learned"): ("marian", "MarianMTModel"),
    ("pre", "sinusoidal"): ("pegasus", "PegasusForConditionalGeneration"),
    ("pre", "learned"): ("blenderbot", "BlenderbotForConditionalGeneration"),
}


def write_hugging_face(folder: Path, model: Transformer, tokenizers: Tokenizers, search: SearchConfig) -> None:
    """Write weights, configuration and tokenizer for ``AutoModelForSeq2SeqLM`` and ``AutoTokenizer``."""
    config = model.config
    plain = plain_model(model)
    if config.positions == "sinusoidal":
        plain = reordered(plain, sine_first(config.d_model))
    model_type, class_name = MODEL_TYPES[config.norm, config.positions]
    values = encoder_decoder_config(config) | {"model_type": model_type, "architectures": [class_name]}
    if model_type == "pegasus":  # its class computes sinusoids, but tells at every load that the file has none
        plain = _with_sinusoids(plain, values["max_position_embeddings"], config.d_model)
    if model_type != "marian":  # one size for both vocabularies
        size = max(config.src_vocab_size, config.tgt_vocab_size)
        plain = _with_vocabulary(plain, size)
        values |= {"vocab_size": size, "tie_word_embeddings": config.embeddings == "three-way"}
        del values["decoder_vocab_size"], values["share_encoder_decoder_embeddings"]
    write_json(folder / "config.json", values)
    write_json(folder / "generation_config.json", generation_config(config, search, tokenizers.tgt))
    write_tensors(folder / WEIGHTS_FILE, dict(named_tensors(plain, config, class_name=class_name)))
    write_hugging_face_tokenizers(folder, tokenizers, max_length=max_source_length(config))


def sine_first(d_model: int) -> Tensor:
    """Return the order of features in which all sines come before all cosines; ours alternate (section 3.5)."""
    return torch.cat((torch.arange(0, d_model, 2), torch.arange(1, d_model, 2)))


def max_source_length(config: TransformerConfig) -> int:
    """Return the number of tokens of the longest source, EOS included."""
    return min(config.n_positions, MAX_LENGTH) if config.positions == "learned" else MAX_LENGTH


def encoder_decoder_config(config: TransformerConfig) -> dict[str, Any]:
    """Return the fields of ``config.json`` that all classes share."""
    has_learned_positions = config.positions == "learned"
    sides: dict[str, Any] = {}
    for side, n_layers in (("encoder", config.n_encoder_layers), ("decoder", config.n_decoder_layers)):
        sides |= {f"{side}_layers": n_layers, f"{side}_attention_heads": config.n_heads, f"{side}_ffn_dim": config.d_ff}
    return {
        "d_model": config.d_model,
        **sides,
        "num_hidden_layers": config.n_encoder_layers,
        "activation_function": ACTIVATION_NAMES[config.activation],
        "scale_embedding": config.scale_embeddings,
        "static_position_embeddings": not has_learned_positions,
        "max_position_embeddings": config.n_positions if has_learned_positions else 2 * MAX_LENGTH,
        "dropout": config.p_drop,
        "attention_dropout": config.p_drop_attention,
        "activation_dropout": config.p_drop_relu,
        "vocab_size": config.src_vocab_size,
        "decoder_vocab_size": config.tgt_vocab_size,
        "share_encoder_decoder_embeddings": config.embeddings == "three-way",
        "tie_word_embeddings": config.embeddings != "separate",
        "is_encoder_decoder": True,
        "pad_token_id": PAD_ID,
        "bos_token_id": BOS_ID,
        "eos_token_id": EOS_ID,
        "decoder_start_token_id": BOS_ID,
        "forced_eos_token_id": None,
        "dtype": "float32",
    }


def generation_config(config: TransformerConfig, search: SearchConfig, tgt: Tokenizer) -> dict[str, Any]:
    """Return the search that comes nearest to ours: its length penalty and its longest output are others."""
    return {
        "num_beams": search.beam_size,
        "length_penalty": search.alpha,
        "early_stopping": False,
        "max_length": min(config.n_positions, 512) if config.positions == "learned" else 512,
        "pad_token_id": PAD_ID,
        "bos_token_id": BOS_ID,
        "eos_token_id": EOS_ID,
        "decoder_start_token_id": BOS_ID,
        "bad_words_ids": [[id] for id in (PAD_ID, BOS_ID, *tgt.suppressed_ids)],
    }


def write_hugging_face_tokenizers(folder: Path, tokenizers: Tokenizers, *, max_length: int) -> None:
    """Write the tokenizer; one of the target beside it, in a folder of its own, if there are two."""
    sides = [(folder, tokenizers.src)]
    if not tokenizers.is_shared:
        (folder / TARGET_FOLDER).mkdir()
        sides.append((folder / TARGET_FOLDER, tokenizers.tgt))
    for where, tokenizer in sides:
        for name, values in tokenizer_files(tokenizer, max_length=max_length).items():
            write_json(where / name, values)


def _with_sinusoids(plain: PlainModel, n_positions: int, d_model: int) -> PlainModel:
    """Put the sinusoids of both sides into the weights."""
    table_PD = sinusoid(n_positions, d_model).float()[:, sine_first(d_model)]
    assert plain.encoder is not None
    encoder, decoder = (replace(side, positions_PD=table_PD.clone()) for side in (plain.encoder, plain.decoder))
    return replace(plain, encoder=encoder, decoder=decoder)


def _with_vocabulary(plain: PlainModel, size: int) -> PlainModel:
    """Fill embeddings and output up to ``size`` rows; the new tokens are never written."""

    def filled(rows_VD: Tensor) -> Tensor:
        return F.pad(rows_VD, (0, 0, 0, size - len(rows_VD)))

    bias_O = plain.output.bias_O
    return with_rows(plain, filled, filled, F.pad(bias_O, (0, size - len(bias_O)), value=NO_TOKEN))


def named_tensors(plain: PlainModel, config: TransformerConfig, *, class_name: str) -> Iterator[tuple[str, Tensor]]:
    """Yield the tensors of ``model.safetensors``; a tied matrix comes once."""
    assert plain.encoder is not None
    yield "final_logits_bias", plain.output.bias_O.unsqueeze(0)
    if config.embeddings == "three-way":
        yield "model.shared.weight", plain.decoder.embedding_VD
    else:
        yield "model.encoder.embed_tokens.weight", plain.encoder.embedding_VD
        yield "model.decoder.embed_tokens.weight", plain.decoder.embedding_VD
        if class_name != "MarianMTModel":  # the class has it in any case, and tells at every load that it is missing
            yield "model.shared.weight", plain.decoder.embedding_VD.clone()
        if config.embeddings == "separate" or class_name != "MarianMTModel":
            yield "lm_head.weight", plain.output.weight_OI
    yield from named_stack("model.encoder", plain.encoder)
    yield from named_stack("model.decoder", plain.decoder)


def named_stack(prefix: str, stack: PlainStack) -> Iterator[tuple[str, Tensor]]:
    """Yield the tensors of an encoder or decoder but its embedding."""
    if stack.positions_PD is not None:
        yield f"{prefix}.embed_positions.weight", stack.positions_PD
    if stack.norm is not None:
        yield from named_scale(f"{prefix}.layer_norm", stack.norm)
    for index, layer in enumerate(stack.layers):
        at = f"{prefix}.layers.{index}"
        yield from _named_attention(f"{at}.self_attn", layer.self_attention)
        if layer.cross_attention is not None:
            yield from _named_attention(f"{at}.encoder_attn", layer.cross_attention)
        yield from _named_projection(f"{at}.fc1", layer.w_1)
        yield from _named_projection(f"{at}.fc2", layer.w_2)
        yield from named_scale(f"{at}.final_layer_norm", layer.feed_forward_norm)


def _named_attention(at: str, attention: PlainAttention) -> Iterator[tuple[str, Tensor]]:
    for name, projection in (("q", attention.q), ("k", attention.k), ("v", attention.v), ("out", attention.out)):
        yield from _named_projection(f"{at}.{name}_proj", projection)
    yield from named_scale(f"{at}_layer_norm", attention.norm)


def _named_projection(at: str, projection: Projection) -> Iterator[tuple[str, Tensor]]:
    yield f"{at}.weight", projection.weight_OI
    yield f"{at}.bias", projection.bias_O


def named_scale(at: str, scale: Scale) -> Iterator[tuple[str, Tensor]]:
    """Yield the tensors of a norm."""
    yield f"{at}.weight", scale.weight_D
    yield f"{at}.bias", scale.bias_D


@torch.no_grad()
def check_hugging_face(
    folder: Path, probes: Probes, src: Sequence[int] | None = None, tgt: Sequence[int] | None = None
) -> Comparison:
    """Load the folder by transformers and compare logits and greedy outputs with ours.

    ``src``, ``tgt``: its numbers of our ids, by default the same.
    """
    with quiet_transformers() as transformers:
        model = transformers.AutoModelForSeq2SeqLM.from_pretrained(folder).eval().float()
    src, tgt = (range(MAX_VOCABULARY_SIZE) if src is None else src), tgt or range(probes.logits[0].shape[1])
    our_id = {number: id for id, number in enumerate(tgt)}
    rows = torch.tensor(tgt[1:])  # without our PAD, which may have no row of its own there
    difference, outputs = 0.0, []
    for source, target, logits in zip(probes.sources, probes.targets, probes.logits, strict=True):
        ids_1S, tgt_1T = torch.tensor([[src[id] for id in source]]), torch.tensor([[tgt[id] for id in target]])
        theirs = model(input_ids=ids_1S, decoder_input_ids=tgt_1T).logits[0][:, rows]
        difference = max(difference, float((theirs - torch.from_numpy(logits[:, 1:])).abs().max()))
        written = greedily_written(model, ids_1S, n=MAX_NEW_TOKENS, forced_eos_token_id=None)
        outputs.append(before_end([our_id[number] for number in written[1:]]))  # without BOS
    return compared(probes, difference, outputs)


def greedily_written(model: Any, ids_1T: Tensor, *, n: int, **options: Any) -> list[int]:
    """Return what a model of transformers writes greedily, at most ``n`` tokens, with what it begins with."""
    [written] = model.generate(
        ids_1T, attention_mask=torch.ones_like(ids_1T), num_beams=1, do_sample=False, max_length=None, max_new_tokens=n,
        **options,
    ).tolist()  # fmt: skip
    return list(written)


def before_end(ids: list[int]) -> list[int]:
    """Return the ids before EOS."""
    return ids[: ids.index(EOS_ID)] if EOS_ID in ids else ids

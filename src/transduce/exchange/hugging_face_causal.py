"""Causal language models as Hugging Face folders: GPT-2 for pre-norm, OPT for post-norm.

Both have learned positions; sinusoids become a table of the length of the model's window. Neither scales embeddings: a
factor goes into the embedding, which is then no longer tied to the output.

Shapes: D d_model, T positions, P positions of a table, O outputs of a projection, I its inputs.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from transduce.config import LanguageModelConfig
from transduce.exchange.hugging_face import (
    ACTIVATION_NAMES,
    WEIGHTS_FILE,
    before_end,
    greedily_written,
    named_scale,
    named_stack,
)
from transduce.exchange.hugging_face_tokenizer import causal_tokenizer_files
from transduce.exchange.libraries import quiet_transformers
from transduce.exchange.plain_weights import PlainModel, Projection, plain_model
from transduce.exchange.probes import MAX_NEW_TOKENS, Comparison, Probes, compared
from transduce.files import write_json
from transduce.model import TransformerLM
from transduce.model.weights_file import write_tensors
from transduce.text import BOS_ID, EOS_ID, PAD_ID, Tokenizer

__all__ = ["check_hugging_face_causal", "write_hugging_face_causal"]

OPT_OFFSET = 2  # its table of positions has two rows that are never used


def write_hugging_face_causal(
    folder: Path, model: TransformerLM, config: LanguageModelConfig, tokenizer: Tokenizer
) -> None:
    """Write weights, configuration and tokenizer for ``AutoModelForCausalLM`` and ``AutoTokenizer``."""
    plain = plain_model(model)
    is_tied = config.tied_embeddings and not config.scale_embeddings
    if config.norm == "pre":
        values, tensors = _gpt2_config(config), dict(_gpt2_tensors(plain, config))
    else:
        values, tensors = _opt_config(config), dict(_opt_tensors(plain, config))
    if not is_tied:
        tensors["lm_head.weight"] = plain.output.weight_OI
    shared = {
        "vocab_size": config.vocab_size, "tie_word_embeddings": is_tied, "pad_token_id": PAD_ID,
        "bos_token_id": BOS_ID, "eos_token_id": EOS_ID, "dtype": "float32",
    }  # fmt: skip
    write_json(folder / "config.json", values | shared)
    generation = {
        "do_sample": True, "temperature": 1.0, "top_k": 0, "pad_token_id": PAD_ID, "bos_token_id": BOS_ID,
        "eos_token_id": EOS_ID, "max_length": config.n_positions,
        "bad_words_ids": [[id] for id in (PAD_ID, BOS_ID, *tokenizer.mask_and_sentinel_ids)],
    }  # fmt: skip
    write_json(folder / "generation_config.json", generation)
    write_tensors(folder / WEIGHTS_FILE, tensors)
    for name, description in causal_tokenizer_files(tokenizer, max_length=config.n_positions).items():
        write_json(folder / name, description)


def _gpt2_config(config: LanguageModelConfig) -> dict[str, Any]:
    return {
        "model_type": "gpt2",
        "architectures": ["GPT2LMHeadModel"],
        "n_embd": config.d_model,
        "n_layer": config.n_layers,
        "n_head": config.n_heads,
        "n_inner": config.d_ff,
        "n_positions": config.n_positions,
        "activation_function": ACTIVATION_NAMES[config.activation],
        "layer_norm_epsilon": config.norm_eps,
        "resid_pdrop": config.p_drop,
        "embd_pdrop": config.p_drop,
        "attn_pdrop": config.p_drop_attention,
    }


def _opt_config(config: LanguageModelConfig) -> dict[str, Any]:
    return {
        "model_type": "opt",
        "architectures": ["OPTForCausalLM"],
        "hidden_size": config.d_model,
        "word_embed_proj_dim": config.d_model,
        "num_hidden_layers": config.n_layers,
        "num_attention_heads": config.n_heads,
        "ffn_dim": config.d_ff,
        "max_position_embeddings": config.n_positions,
        "activation_function": ACTIVATION_NAMES[config.activation],
        "do_layer_norm_before": False,
        "dropout": config.p_drop,
        "attention_dropout": config.p_drop_attention,
    }


def _embedding(plain: PlainModel, config: LanguageModelConfig) -> Tensor:
    factor = math.sqrt(config.d_model) if config.scale_embeddings else 1.0
    return plain.decoder.embedding_VD * factor


def _gpt2_tensors(plain: PlainModel, config: LanguageModelConfig) -> Iterator[tuple[str, Tensor]]:
    yield "transformer.wte.weight", _embedding(plain, config)
    yield "transformer.wpe.weight", plain.decoder.position_table(config.n_positions)
    assert plain.decoder.norm is not None
    yield from named_scale("transformer.ln_f", plain.decoder.norm)
    for index, layer in enumerate(plain.decoder.layers):
        at, attention = f"transformer.h.{index}", layer.self_attention
        stacked = (attention.q, attention.k, attention.v)
        weight_OI = torch.cat([each.weight_OI for each in stacked])
        yield from _gpt2_projection(
            f"{at}.attn.c_attn", Projection(weight_OI, torch.cat([each.bias_O for each in stacked]))
        )
        yield from _gpt2_projection(f"{at}.attn.c_proj", attention.out)
        yield from named_scale(f"{at}.ln_1", attention.norm)
        yield from _gpt2_projection(f"{at}.mlp.c_fc", layer.w_1)
        yield from _gpt2_projection(f"{at}.mlp.c_proj", layer.w_2)
        yield from named_scale(f"{at}.ln_2", layer.feed_forward_norm)


def _gpt2_projection(at: str, projection: Projection) -> Iterator[tuple[str, Tensor]]:
    yield f"{at}.weight", projection.weight_OI.T  # GPT-2 stores (inputs, outputs)
    yield f"{at}.bias", projection.bias_O


def _opt_tensors(plain: PlainModel, config: LanguageModelConfig) -> Iterator[tuple[str, Tensor]]:
    yield "model.decoder.embed_tokens.weight", _embedding(plain, config)
    yield (
        "model.decoder.embed_positions.weight",
        F.pad(plain.decoder.position_table(config.n_positions), (0, 0, OPT_OFFSET, 0)),
    )
    named = named_stack("model.decoder", plain.decoder)
    yield from ((name, weight) for name, weight in named if not name.endswith("embed_positions.weight"))


@torch.no_grad()
def check_hugging_face_causal(folder: Path, probes: Probes) -> Comparison:
    """Load the folder by transformers and compare logits and greedy outputs with ours."""
    with quiet_transformers() as transformers:
        model = transformers.AutoModelForCausalLM.from_pretrained(folder).eval()
    difference, outputs = 0.0, []
    for prompt, target, logits in zip(probes.sources, probes.targets, probes.logits, strict=True):
        theirs = model(input_ids=torch.tensor([target])).logits[0]
        difference = max(difference, float((theirs - torch.from_numpy(logits)).abs().max()))
        n_new = min(MAX_NEW_TOKENS, model.config.max_position_embeddings - len(prompt))
        written = greedily_written(model, torch.tensor([prompt]), n=n_new, temperature=None, top_k=None)
        outputs.append(before_end(written[len(prompt) :]))
    return compared(probes, difference, outputs)

"""The names of weights in files, with their shapes, without torch."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from transduce.config import LanguageModelConfig, TransformerConfig
from transduce.errors import CheckpointError, shown

__all__ = ["Shapes", "require_shapes", "weight_shapes"]

Shapes = Mapping[str, tuple[int, ...]]


def require_shapes(shapes: Shapes, expected: Shapes, *, where: Path) -> None:
    """Raise CheckpointError unless the tensors of a file have the expected names and shapes."""
    if unmatched := sorted(expected.keys() ^ shapes.keys()):
        side = "lacks" if unmatched[0] in expected else "has an unknown"
        raise CheckpointError(f"{where} {side} tensor {shown(unmatched[0])}; it belongs to another architecture")
    for name, shape in shapes.items():
        if shape != expected[name]:
            raise CheckpointError(f"{where}: tensor {name} has shape {shape}, the model needs {expected[name]}")


def weight_shapes(config: TransformerConfig | LanguageModelConfig) -> dict[str, tuple[int, ...]]:
    """Return the weights of a model with scaled dot products, one expert and one output head.

    >>> weight_shapes(LanguageModelConfig(vocab_size=9, d_model=8, d_ff=4))["decoder.0.feed_forward.w_1.weight"]
    (4, 8)
    """
    d, (n_src, n_tgt), shapes = config.d_model, config.vocab_sizes, dict[str, tuple[int, ...]]()
    if isinstance(config, LanguageModelConfig):
        shapes["src_embedding.weight"] = (n_src, d)
        sides, stacks = ["src"], ["decoder"]
        has_output = not config.tied_embeddings and config.output != "scalar"
    else:
        shapes["tgt_embedding.weight"] = (n_tgt, d)
        sides, stacks, has_output = ["src", "tgt"], ["encoder", "decoder"], config.embeddings == "separate"
        if config.source != "tokens":
            sides = ["tgt"]
            shapes |= _front_end(config)
        elif config.embeddings != "three-way":
            shapes["src_embedding.weight"] = (n_src, d)
    for stack, n_layers in zip(stacks, config.layer_counts, strict=True):
        for layer in range(n_layers):
            shapes |= _layer(config, f"{stack}.{layer}", has_source=stack == "decoder" and len(stacks) == 2)
        if config.norm == "pre":
            shapes |= _norm(f"{stack}_norm", d)
    if config.positions == "learned":
        shapes |= {f"{side}_positions.weight": (config.n_positions, d) for side in sides}
    if has_output:
        shapes["output.weight"] = (n_tgt, d)
    if isinstance(config, LanguageModelConfig) and config.output == "scalar":
        return shapes | {"output.linear.weight": (1, d), "output.linear.bias": (1,)}
    if config.output_bias:
        shapes["output.bias"] = (n_tgt,)
    if isinstance(config, LanguageModelConfig) and config.output == "tokens-and-value":
        value = weight_shapes(config.model_copy(update={"output": "scalar"}))
        shapes |= {f"value.{name}": shape for name, shape in value.items()}
    return shapes


def _front_end(config: TransformerConfig) -> Shapes:
    """Return the weights that read images or audio."""
    d = config.d_model
    widths = {"projection": config.patch_height * config.patch_width}
    if config.source == "frames":
        widths = {"first.linear": 3 * config.source_width, "second.linear": 3 * d}
    shapes = dict[str, tuple[int, ...]]()
    for name, n_inputs in widths.items():
        shapes |= {f"source.{name}.weight": (d, n_inputs), f"source.{name}.bias": (d,)}
    return shapes


def _layer(config: TransformerConfig | LanguageModelConfig, layer: str, *, has_source: bool) -> Shapes:
    """Return the weights of a layer."""
    d, width_k, width_v = config.d_model, config.n_heads * config.d_k, config.n_heads * config.d_v
    attention = {"self_attention": {"w_qkv": 2 * width_k + width_v, "w_o": d}}
    if has_source:
        attention["cross_attention"] = {"w_q": width_k, "w_kv": width_k + width_v, "w_o": d}
    shapes = dict[str, tuple[int, ...]]()
    for kind, outputs in attention.items():
        for name, n in outputs.items():
            shapes[f"{layer}.{kind}.{name}.weight"] = (n, width_v if name == "w_o" else d)
            if config.attention_bias:
                shapes[f"{layer}.{kind}.{name}.bias"] = (n,)
    for name, n, n_inputs in (("w_1", config.d_ff, d), ("w_2", d, config.d_ff)):
        shapes |= {f"{layer}.feed_forward.{name}.weight": (n, n_inputs), f"{layer}.feed_forward.{name}.bias": (n,)}
    for kind in (*attention, "feed_forward"):
        shapes |= _norm(f"{layer}.{kind}_residual.norm", d)
    return shapes


def _norm(name: str, width: int) -> Shapes:
    return {f"{name}.weight": (width,), f"{name}.bias": (width,)}

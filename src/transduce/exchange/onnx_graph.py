"""An encoder and a decoder with its cache as ONNX graphs, node by node.

They are written, not traced: padding, masks and caches of our model depend on data, which a tracer would fix.

The decoder is one graph for the first step and all later ones: keys and values of the source are made from the source
positions that the cache does not have yet, which are all of them at the first step and none later.

Shapes: B sentences, S source positions, T new target positions, H heads, D d_model, V vocabulary, P positions of a
table, O outputs of a projection, I its inputs. Names of axes are those that transformers.js expects.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor

from transduce.config import TransformerConfig
from transduce.exchange.libraries import library
from transduce.exchange.plain_weights import PlainAttention, PlainLayer, PlainModel, PlainStack, Projection, Scale

__all__ = ["OPSET", "decoder_graph", "encoder_graph"]

OPSET = 20  # the first with Gelu
IR_VERSION = 9  # of that time: readable by runtimes since 2024
N_POSITIONS = 2048  # of a table of sinusoids
MASKED = -1e9  # added to the scores of padding


@dataclass(slots=True)
class Graph:
    """The nodes and constants of a graph that is being written; a value is the name of a node's output."""

    config: TransformerConfig
    nodes: list[Any] = field(default_factory=list)
    constants: dict[str, Any] = field(default_factory=dict)  # tensors by name

    def node(self, operator: str, *inputs: str, output: str | None = None, **attributes: Any) -> str:
        """Add a node; return the name of its output."""
        helper = library("onnx.helper", needed_for="the export to ONNX")
        output = output or f"{operator}_{len(self.nodes)}"
        self.nodes.append(
            helper.make_node(operator, inputs, [output], name=f"{operator}_{len(self.nodes)}", **attributes)
        )
        return output

    def constant(self, name: str, values: Tensor | Sequence[int]) -> str:
        """Add a tensor of weights, or whole numbers; return its name."""
        if name not in self.constants:
            numpy_helper = library("onnx.numpy_helper", needed_for="the export to ONNX")
            array = values.contiguous().numpy() if isinstance(values, Tensor) else np.array(values, np.int64)
            self.constants[name] = numpy_helper.from_array(array, name)
        return name

    def integers(self, *values: int) -> str:
        """Return a constant of whole numbers."""
        return self.constant(f"integers_{'_'.join(map(str, values))}", values)

    def number(self, value: float) -> str:
        """Return a constant scalar."""
        return self.constant(f"number_{value:.9g}", torch.tensor(value))

    def size(self, value: str, axis: int) -> str:
        """Return the length of an axis, (1,)."""
        return self.node("Shape", value, start=axis, end=axis + 1)

    def linear(self, x: str, projection: Projection, name: str) -> str:
        """x W^T + b."""
        product = self.node("MatMul", x, self.constant(f"{name}.weight", projection.weight_OI.T))
        return self.node("Add", product, self.constant(f"{name}.bias", projection.bias_O))

    def layer_norm(self, x: str, scale: Scale, name: str) -> str:
        """The layer norm over the last axis."""
        weight, bias = self.constant(f"{name}.weight", scale.weight_D), self.constant(f"{name}.bias", scale.bias_D)
        return self.node("LayerNormalization", x, weight, bias, axis=-1, epsilon=self.config.norm_eps)

    def heads(self, x: str) -> str:
        """(B, T, H K) to (B, H, T, K)."""
        h = self.config.n_heads
        split = self.node("Reshape", x, self.integers(0, 0, h, self.config.d_model // h))
        return self.node("Transpose", split, perm=[0, 2, 1, 3])

    def attend(self, q: str, k: str, v: str, bias: str) -> str:
        """Attention in all heads, merged: (B, T, D). Equation 1; ``bias`` is added to the scores."""
        scores = self.node("MatMul", q, self.node("Transpose", k, perm=[0, 1, 3, 2]))
        width = self.config.d_model // self.config.n_heads
        scores = self.node("Add", self.node("Mul", scores, self.number(1 / math.sqrt(width))), bias)
        heads = self.node("MatMul", self.node("Softmax", scores, axis=-1), v)
        return self.node(
            "Reshape", self.node("Transpose", heads, perm=[0, 2, 1, 3]), self.integers(0, 0, self.config.d_model)
        )

    def feed_forward(self, x: str, layer: PlainLayer, name: str) -> str:
        """Equation 2."""
        hidden = self.activation(self.linear(x, layer.w_1, f"{name}.w_1"))
        return self.linear(hidden, layer.w_2, f"{name}.w_2")

    def activation(self, x: str) -> str:
        """The activation of the feed-forward network."""
        match self.config.activation:
            case "relu":
                return self.node("Relu", x)
            case "gelu":
                return self.node("Gelu", x)
            case "gelu-tanh":
                return self.node("Gelu", x, approximate="tanh")
            case "swish":
                return self.node("Mul", x, self.node("Sigmoid", x))

    def residual(self, x: str, norm: Scale, name: str, sublayer: Callable[[str], str]) -> str:
        """LayerNorm(x + Sublayer(x)), or x + Sublayer(LayerNorm(x)). Section 3.1."""
        if self.config.norm == "post":
            return self.layer_norm(self.node("Add", x, sublayer(x)), norm, name)
        return self.node("Add", x, sublayer(self.layer_norm(x, norm, name)))

    def embedded(self, ids: str, stack: PlainStack, name: str, *, start: str | None = None) -> str:
        """Embeddings plus positions from ``start``, (1,), on. Sections 3.4 and 3.5."""
        vectors = self.node("Gather", self.constant(f"{name}.embedding", stack.embedding_VD), ids)
        if self.config.scale_embeddings:
            vectors = self.node("Mul", vectors, self.number(math.sqrt(self.config.d_model)))
        first = start or self.integers(0)
        last = self.node("Add", first, self.size(ids, 1))
        table = self.constant(f"{name}.positions", stack.position_table(N_POSITIONS))
        return self.node("Add", vectors, self.node("Slice", table, first, last, self.integers(0)))

    def mask_bias(self, mask: str) -> str:
        """An attention mask (B, S), 1 for a token, as a bias of scores, (B, 1, 1, S)."""
        is_padding = self.node("Sub", self.number(1.0), self.node("Cast", mask, to=1))
        bias = self.node("Mul", is_padding, self.number(MASKED))
        return self.node("Unsqueeze", bias, self.integers(1, 2))


def encoder_graph(plain: PlainModel, config: TransformerConfig) -> Any:
    """Return the encoder: ``input_ids`` and ``attention_mask`` (B, S) to ``last_hidden_state`` (B, S, D)."""
    assert plain.encoder is not None
    graph = Graph(config)
    x = graph.embedded("input_ids", plain.encoder, "encoder")
    bias = graph.mask_bias("attention_mask")
    for index, layer in enumerate(plain.encoder.layers):
        name = f"encoder.{index}"

        def attend(x: str, attention: PlainAttention = layer.self_attention, name: str = name) -> str:
            q, k, v = (
                graph.heads(graph.linear(x, projection, f"{name}.{part}"))
                for part, projection in (("q", attention.q), ("k", attention.k), ("v", attention.v))
            )
            return graph.linear(graph.attend(q, k, v, bias), attention.out, f"{name}.out")

        feed_forward = partial(graph.feed_forward, layer=layer, name=name)
        x = graph.residual(x, layer.self_attention.norm, f"{name}.attention_norm", attend)
        x = graph.residual(x, layer.feed_forward_norm, f"{name}.feed_forward_norm", feed_forward)
    if plain.encoder.norm is not None:
        x = graph.layer_norm(x, plain.encoder.norm, "encoder.norm")
    graph.node("Identity", x, output="last_hidden_state")
    ids = ("batch_size", "encoder_sequence_length")
    return _model(
        graph,
        inputs=[("input_ids", "INT64", ids), ("attention_mask", "INT64", ids)],
        outputs=[("last_hidden_state", "FLOAT", (*ids, config.d_model))],
    )


def decoder_graph(plain: PlainModel, config: TransformerConfig) -> Any:
    """Return the decoder with cache: new ids (B, T) to ``logits`` (B, T, V) and the longer cache.

    Inputs: ``input_ids``, ``encoder_attention_mask``, ``encoder_hidden_states``, and of each layer
    ``past_key_values.N.{decoder,encoder}.{key,value}``, empty at the first step. Outputs: ``present...`` likewise.
    """
    graph = Graph(config)
    past, present = (
        [[f"{kind}.{n}.{side}.{part}" for side in ("decoder", "encoder") for part in ("key", "value")]
         for n in range(len(plain.decoder.layers))] for kind in ("past_key_values", "present")
    )  # fmt: skip
    start = graph.size(past[0][0], 2)
    x = graph.embedded("input_ids", plain.decoder, "decoder", start=start)
    new_source = graph.node(
        "Slice",
        "encoder_hidden_states",
        graph.size(past[0][2], 2),
        graph.size("encoder_hidden_states", 1),
        graph.integers(1),
    )
    causal, source = _causal_bias(graph, start), graph.mask_bias("encoder_attention_mask")
    for index, layer in enumerate(plain.decoder.layers):
        name, of_self, of_source = f"decoder.{index}", layer.self_attention, layer.cross_attention
        assert of_source is not None
        attend_self = _attention(graph, of_self, past[index][:2], causal, f"{name}.self")
        attend_source = _attention(graph, of_source, past[index][2:], source, f"{name}.cross", new_source)
        feed_forward = partial(graph.feed_forward, layer=layer, name=name)
        x = graph.residual(x, of_self.norm, f"{name}.self_norm", attend_self)
        x = graph.residual(x, of_source.norm, f"{name}.cross_norm", attend_source)
        x = graph.residual(x, layer.feed_forward_norm, f"{name}.feed_forward_norm", feed_forward)
    if plain.decoder.norm is not None:
        x = graph.layer_norm(x, plain.decoder.norm, "decoder.norm")
    graph.node("Identity", graph.linear(x, plain.output, "output"), output="logits")
    source_axes = ("batch_size", "encoder_sequence_length")
    inputs: list[ValueInfo] = [
        ("encoder_attention_mask", "INT64", source_axes),
        ("input_ids", "INT64", ("batch_size", "decoder_sequence_length")),
        ("encoder_hidden_states", "FLOAT", (*source_axes, config.d_model)),
        *_cache(config, past, "past_decoder_sequence_length", "past_encoder_sequence_length"),
    ]
    outputs: list[ValueInfo] = [
        ("logits", "FLOAT", ("batch_size", "decoder_sequence_length", config.tgt_vocab_size)),
        *_cache(config, present, "past_and_new_sequence_length", "encoder_sequence_length"),
    ]
    return _model(graph, inputs=inputs, outputs=outputs)


def _attention(
    graph: Graph, attention: PlainAttention, past: Sequence[str], bias: str, name: str, source: str | None = None
) -> Callable[[str], str]:
    """Return an attention, with its cache, to new positions of a source: by default of what attends."""

    def attend(x: str) -> str:
        q = graph.heads(graph.linear(x, attention.q, f"{name}_q"))
        k, v = _cached(graph, source or x, attention, past, name)
        return graph.linear(graph.attend(q, k, v, bias), attention.out, f"{name}_out")

    return attend


def _cached(graph: Graph, x: str, attention: PlainAttention, past: Sequence[str], name: str) -> list[str]:
    """Append the keys and values of ``x`` to those of the cache."""
    projections = (("k", attention.k, past[0]), ("v", attention.v, past[1]))
    return [
        graph.node(
            "Concat", before, graph.heads(graph.linear(x, projection, f"{name}_{part}")),
            output=before.replace("past_key_values", "present"), axis=2,
        )
        for part, projection, before in projections
    ]  # fmt: skip


def _causal_bias(graph: Graph, start: str) -> str:
    """Return the bias of scores that hides later positions from T new ones after ``start``, (T, start + T)."""
    one, zero = graph.integers(1), graph.constant("zero", torch.tensor(0))
    n_new = graph.size("input_ids", 1)
    n_all = graph.node("Add", start, n_new)
    step, scalar = graph.constant("one", torch.tensor(1)), graph.constant("no_axes", [])
    keys = graph.node("Range", zero, graph.node("Reshape", n_all, scalar), step)  # of all positions
    queries = graph.node("Slice", keys, start, n_all, graph.integers(0))
    is_later = graph.node("Greater", keys, graph.node("Unsqueeze", queries, one))
    return graph.node("Mul", graph.node("Cast", is_later, to=1), graph.number(MASKED))


ValueInfo = tuple[str, str, tuple[str | int, ...]]  # name, type, axes


def _cache(config: TransformerConfig, names: Sequence[Sequence[str]], decoder: str, encoder: str) -> list[ValueInfo]:
    """Describe the keys and values of each layer; ``decoder`` and ``encoder``: the axes of their positions."""
    h = config.n_heads
    return [
        (name, "FLOAT", ("batch_size", h, decoder if ".decoder." in name else encoder, config.d_model // h))
        for of_layer in names
        for name in of_layer
    ]


def _model(graph: Graph, *, inputs: Sequence[ValueInfo], outputs: Sequence[ValueInfo]) -> Any:
    onnx = library("onnx", needed_for="the export to ONNX")

    def described(values: Sequence[ValueInfo]) -> list[Any]:
        return [
            onnx.helper.make_tensor_value_info(name, getattr(onnx.TensorProto, kind), axes)
            for name, kind, axes in values
        ]

    described_graph = onnx.helper.make_graph(
        graph.nodes, "transduce", described(inputs), described(outputs), list(graph.constants.values())
    )
    return onnx.helper.make_model(
        described_graph,
        opset_imports=[onnx.helper.make_opsetid("", OPSET)],
        ir_version=IR_VERSION,
        producer_name="transduce",
    )

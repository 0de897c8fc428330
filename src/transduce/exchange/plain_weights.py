"""The weights of a Transformer one by one, as other libraries store them.

Ours stack the projections that read the same input (queries, keys and values), leave out biases that a model does not
have, and give heads any width. Here each projection is a matrix with a bias of its own, and heads have the width
d_model / h.

Shapes: H heads, D d_model, V vocabulary, P positions of a table, O outputs of a projection, I its inputs.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from transduce.model import LearnedPositions, Stack, Transformer, TransformerLM
from transduce.model.attention import CrossAttention, SelfAttention
from transduce.model.embedding import sinusoid
from transduce.model.front_end import FrontEnd, TokenFrontEnd
from transduce.model.layers import FeedForward, Layer

__all__ = [
    "PlainAttention", "PlainLayer", "PlainModel", "PlainStack", "Projection", "Scale", "assign_plain", "plain_model",
    "reordered", "with_rows",
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class Projection:
    """x W^T + b."""

    weight_OI: Tensor
    bias_O: Tensor


@dataclass(frozen=True, slots=True)
class Scale:
    """The learned part of a layer norm: a factor and a bias for each feature."""

    weight_D: Tensor
    bias_D: Tensor


@dataclass(frozen=True, slots=True)
class PlainAttention:
    """A multi-head attention and its norm. Sections 3.1 and 3.2.2."""

    q: Projection
    k: Projection
    v: Projection
    out: Projection
    norm: Scale


@dataclass(frozen=True, slots=True)
class PlainLayer:
    """A layer of an encoder or decoder. Section 3.1."""

    self_attention: PlainAttention
    cross_attention: PlainAttention | None
    w_1: Projection
    w_2: Projection
    feed_forward_norm: Scale


@dataclass(frozen=True, slots=True)
class PlainStack:
    """An encoder or decoder with its embedding."""

    embedding_VD: Tensor
    positions_PD: Tensor | None  # learned; None: sinusoidal
    layers: tuple[PlainLayer, ...]
    norm: Scale | None  # of the output; None: post-norm

    def position_table(self, n_sinusoids: int) -> Tensor:
        """Return the learned positions, or a table of sinusoids, (P, D)."""
        if self.positions_PD is not None:
            return self.positions_PD
        return sinusoid(n_sinusoids, self.embedding_VD.shape[1]).float()


@dataclass(frozen=True, slots=True)
class PlainModel:
    """All weights of an encoder-decoder, or of a language model, which has no encoder."""

    encoder: PlainStack | None
    decoder: PlainStack
    output: Projection


def with_rows(
    plain: PlainModel, src: Callable[[Tensor], Tensor], tgt: Callable[[Tensor], Tensor], bias_O: Tensor
) -> PlainModel:
    """Change the rows of embeddings and output: ``src`` and ``tgt`` do so for one matrix each."""
    assert plain.encoder is not None
    return PlainModel(
        replace(plain.encoder, embedding_VD=src(plain.encoder.embedding_VD)),
        replace(plain.decoder, embedding_VD=tgt(plain.decoder.embedding_VD)),
        Projection(tgt(plain.output.weight_OI), bias_O),
    )


@torch.no_grad()
def plain_model(model: Transformer | TransformerLM) -> PlainModel:
    """Return copies of a model's weights, in fp32. Heads narrower than d_model / h are filled with zeros.

    The queries of such heads are scaled, since other libraries divide scores by the root of the new width.
    The configuration must have d_k and d_v at most d_model / h, and one feed-forward network in each layer.
    """
    encoder = _stack(model.encoder, model.source) if isinstance(model, Transformer) else None
    front_end = model.target if isinstance(model, Transformer) else model.source
    output = model.output
    return PlainModel(encoder, _stack(model.decoder, front_end), _projection(output.weight, output.bias))


def _stack(stack: Stack, front_end: FrontEnd) -> PlainStack:
    assert isinstance(front_end, TokenFrontEnd)
    positions = front_end.positions
    return PlainStack(
        _copy(front_end.embedding.weight),
        _copy(positions.weight) if isinstance(positions, LearnedPositions) else None,
        tuple(map(_layer, stack)),
        _scale(stack.norm) if isinstance(stack.norm, nn.LayerNorm) else None,
    )


def _layer(layer: Layer) -> PlainLayer:
    cross, cross_residual, feed_forward = layer.cross_attention, layer.cross_attention_residual, layer.feed_forward
    assert isinstance(feed_forward, FeedForward)
    return PlainLayer(
        _attention(layer.self_attention, layer.self_attention_residual.norm),
        _attention(cross, cross_residual.norm) if cross is not None and cross_residual is not None else None,
        _projection(feed_forward.w_1.weight, feed_forward.w_1.bias),
        _projection(feed_forward.w_2.weight, feed_forward.w_2.bias),
        _scale(layer.feed_forward_residual.norm),
    )


def _attention(attention: SelfAttention | CrossAttention, norm: nn.LayerNorm) -> PlainAttention:
    if isinstance(attention, SelfAttention):
        q, k, v = _split(attention.w_qkv, attention.widths)
    else:
        q = _projection(attention.w_q.weight, attention.w_q.bias)
        k, v = _split(attention.w_kv, attention.widths)
    out = _projection(attention.w_o.weight, attention.w_o.bias)
    h, width = attention.n_heads, len(out.weight_OI) // attention.n_heads
    factor = math.sqrt(width * h / len(q.weight_OI))  # sqrt(width / d_k); 1 if the heads are as wide already
    q = Projection(q.weight_OI * factor, q.bias_O * factor)
    q, k, v = (_wider_heads(projection, h, width) for projection in (q, k, v))
    out_weight_IO = _wider_rows(out.weight_OI.T, h, width)
    return PlainAttention(q, k, v, Projection(out_weight_IO.T.contiguous(), out.bias_O), _scale(norm))


def _split(linear: nn.Linear, widths: Sequence[int]) -> list[Projection]:
    """Return the projections that are stacked in one matrix."""
    whole = _projection(linear.weight, linear.bias)
    parts = zip(torch.split(whole.weight_OI, list(widths)), torch.split(whole.bias_O, list(widths)), strict=True)
    return [Projection(weight.clone(), bias.clone()) for weight, bias in parts]


def _wider_heads(projection: Projection, n_heads: int, width: int) -> Projection:
    """Give each head ``width`` outputs; the new ones are zero."""
    bias_O1 = _wider_rows(projection.bias_O.unsqueeze(1), n_heads, width)
    return Projection(_wider_rows(projection.weight_OI, n_heads, width), bias_O1.squeeze(1))


def _wider_rows(rows_OI: Tensor, n_heads: int, width: int) -> Tensor:
    of_head_HOI = rows_OI.reshape(n_heads, -1, rows_OI.shape[1])
    return F.pad(of_head_HOI, (0, 0, 0, width - of_head_HOI.shape[1])).flatten(0, 1)


def _projection(weight_OI: Tensor, bias_O: Tensor | None) -> Projection:
    zeros = torch.zeros(len(weight_OI))
    return Projection(_copy(weight_OI), zeros if bias_O is None else _copy(bias_O))


def _scale(norm: nn.LayerNorm) -> Scale:
    return Scale(_copy(norm.weight), _copy(norm.bias))


def _copy(weight: Tensor) -> Tensor:
    return weight.detach().to("cpu", torch.float32, copy=True)


def reordered(model: PlainModel, order_D: Tensor) -> PlainModel:
    """Return the same function with the features of the residual stream in another order: new i is old ``order_D[i]``.

    Libraries whose sinusoids are laid out as [sin | cos] need another order than the paper's, which alternates.
    """

    def reads(projection: Projection) -> Projection:
        return replace(projection, weight_OI=projection.weight_OI[:, order_D])

    def writes(projection: Projection) -> Projection:
        return Projection(projection.weight_OI[order_D], projection.bias_O[order_D])

    def scale(norm: Scale) -> Scale:
        return Scale(norm.weight_D[order_D], norm.bias_D[order_D])

    def attention(each: PlainAttention) -> PlainAttention:
        return PlainAttention(reads(each.q), reads(each.k), reads(each.v), writes(each.out), scale(each.norm))

    def layer(each: PlainLayer) -> PlainLayer:
        cross = each.cross_attention
        return PlainLayer(
            attention(each.self_attention),
            None if cross is None else attention(cross),
            reads(each.w_1),
            writes(each.w_2),
            scale(each.feed_forward_norm),
        )

    def stack(each: PlainStack) -> PlainStack:
        positions, norm = each.positions_PD, each.norm
        return PlainStack(
            each.embedding_VD[:, order_D],
            None if positions is None else positions[:, order_D],
            tuple(map(layer, each.layers)),
            None if norm is None else scale(norm),
        )

    encoder = model.encoder
    return PlainModel(None if encoder is None else stack(encoder), stack(model.decoder), reads(model.output))


@torch.no_grad()
def assign_plain(model: Transformer, plain: PlainModel) -> None:
    """Copy plain weights into a model with d_k = d_v = d_model / h and all biases."""
    assert plain.encoder is not None
    for stack, front_end, values in (
        (model.encoder, model.source, plain.encoder),
        (model.decoder, model.target, plain.decoder),
    ):
        assert isinstance(front_end, TokenFrontEnd)
        front_end.embedding.weight.copy_(values.embedding_VD)
        if values.positions_PD is not None:
            assert isinstance(front_end.positions, LearnedPositions)
            front_end.positions.weight.copy_(values.positions_PD)
        for layer, of_layer in zip(stack, values.layers, strict=True):
            _assign_layer(layer, of_layer)
        if values.norm is not None:
            assert isinstance(stack.norm, nn.LayerNorm)
            _assign_scale(stack.norm, values.norm)
    output = model.output
    output.weight.copy_(plain.output.weight_OI)  # the embedding once more if they are tied
    assert output.bias is not None
    output.bias.copy_(plain.output.bias_O)


def _assign_layer(layer: Layer, values: PlainLayer) -> None:
    feed_forward, cross = layer.feed_forward, layer.cross_attention
    assert isinstance(feed_forward, FeedForward)
    of_self = values.self_attention
    _assign(layer.self_attention.w_qkv, of_self.q, of_self.k, of_self.v)
    _assign(layer.self_attention.w_o, of_self.out)
    _assign_scale(layer.self_attention_residual.norm, of_self.norm)
    if cross is not None and values.cross_attention is not None and layer.cross_attention_residual is not None:
        of_cross = values.cross_attention
        _assign(cross.w_q, of_cross.q)
        _assign(cross.w_kv, of_cross.k, of_cross.v)
        _assign(cross.w_o, of_cross.out)
        _assign_scale(layer.cross_attention_residual.norm, of_cross.norm)
    _assign(feed_forward.w_1, values.w_1)
    _assign(feed_forward.w_2, values.w_2)
    _assign_scale(layer.feed_forward_residual.norm, values.feed_forward_norm)


def _assign(linear: nn.Linear, *projections: Projection) -> None:
    linear.weight.copy_(torch.cat([each.weight_OI for each in projections]))
    linear.bias.copy_(torch.cat([each.bias_O for each in projections]))


def _assign_scale(norm: nn.LayerNorm, scale: Scale) -> None:
    norm.weight.copy_(scale.weight_D)
    norm.bias.copy_(scale.bias_D)

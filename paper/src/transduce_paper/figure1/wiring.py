"""Checks of section 3's statements about the architecture, on a model while it runs.

Shapes: S source positions, T target positions, N real positions of either side, D d_model, H heads, L layers.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor, nn

from transduce.model import (
    AttentionKind,
    CrossAttention,
    Dropout,
    FeedForward,
    Layer,
    MultiHeadAttention,
    Residual,
    TokenEmbedding,
    TokenFrontEnd,
    Transformer,
)
from transduce_paper.figure1.architecture import Call, ForwardPass, shape_of, sublayer_call, within

__all__ = ["Check", "check_wiring"]

ROUNDING = 1e-5  # of float32, in numbers of size 1


@dataclass(frozen=True, slots=True)
class Check:
    """A statement of the paper, the measured values, and whether it holds."""

    section: str
    claim: str
    measured: str
    holds: bool


def check_wiring(model: Transformer, recorded: ForwardPass, src_1S: Tensor, tgt_1T: Tensor) -> tuple[Check, ...]:
    """Run all checks. ``recorded`` is a pass of ``model`` over the same pair, in evaluation mode."""
    return (
        _order_of_sublayers(recorded),
        _residuals_and_norms(recorded),
        _own_weights(model),
        _no_biases(model),
        _three_uses(recorded),
        _encoder_sees_all(recorded),
        _decoder_is_masked(recorded),
        _predictions_are_causal(model, src_1S, tgt_1T),
        _cross_attention_reads_the_encoder(recorded),
        _feed_forward(recorded),
        _feed_forward_as_convolutions(recorded),
        _one_matrix(model),
        _embeddings_are_scaled(recorded),
        _positions_are_added(recorded),
    )


def _order_of_sublayers(recorded: ForwardPass) -> Check:
    orders = [{_sublayers(layer) for layer in layers} for layers in _layers(recorded)]
    return Check(
        "3.1",
        "A layer has self-attention, then a feed-forward network; in the decoder attention over the encoder's output "
        "stands between them",
        "; ".join(" or ".join(sorted(each)) for each in orders),
        orders == [{"SelfAttention, FeedForward"}, {"SelfAttention, CrossAttention, FeedForward"}],
    )


def _layers(recorded: ForwardPass) -> list[list[Call]]:
    """Return the layers of the encoder and those of the decoder."""
    sides = (recorded.encoder, recorded.decoder)
    return [[call for call in within(calls) if isinstance(call.module, Layer)] for calls in sides]


def _sublayers(layer: Call) -> str:
    residuals = (call for call in layer.inside if isinstance(call.module, Residual))
    return ", ".join(type(sublayer_call(residual).module).__name__ for residual in residuals)


def _residuals_and_norms(recorded: ForwardPass) -> Check:
    residuals = list(_calls(recorded, Residual))
    claim, where = "The output of each sub-layer is LayerNorm(x + Sublayer(x))", f"in {len(residuals)} sub-layers"
    return _differs_by_rounding("3.1", claim, where, map(_from_residual_formula, residuals))


def _from_residual_formula(residual: Call) -> float:
    summed_ND = (residual.inputs[0] + sublayer_call(residual).output).double()
    norm = residual.module.norm
    assert isinstance(norm, nn.LayerNorm)
    expected_ND = F.layer_norm(summed_ND, norm.normalized_shape, norm.weight.double(), norm.bias.double(), norm.eps)
    return float(np.abs(_as_float64(residual.output) - _as_float64(expected_ND)).max())


def _own_weights(model: Transformer) -> Check:
    shapes = {
        name: {tuple(weight.shape for weight in layer.parameters()) for layer in layers}
        for name, layers in (("encoder", model.encoder), ("decoder", model.decoder))
    }
    weights = [weight.data_ptr() for layer in (*model.encoder, *model.decoder) for weight in layer.parameters()]
    n_own, n_listed = len(set(weights)), len(weights)
    return Check(
        "3.1",
        "Each stack is of identical layers; section 3.3: with parameters of their own",
        f"{len(shapes['encoder'])} kind of encoder layer, {len(shapes['decoder'])} of decoder layer; "
        f"{n_own} of {n_listed} parameters are their own",
        all(len(kinds) == 1 for kinds in shapes.values()) and n_own == n_listed,
    )


def _no_biases(model: Transformer) -> Check:
    attentions = [module for module in model.modules() if isinstance(module, MultiHeadAttention)]
    n_biases = sum(name.endswith("bias") for attention in attentions for name, _ in attention.named_parameters())
    return Check(
        "3.2.2",
        "The projections of attention are matrices W^Q, W^K, W^V, W^O and nothing else",
        f"{n_biases} biases in {len(attentions)} attentions",
        n_biases == 0,
    )


def _three_uses(recorded: ForwardPass) -> Check:
    n_source, n_target = len(recorded.memory_SD), len(recorded.states_TD)
    n_encoder, n_decoder = map(len, _layers(recorded))
    expected: dict[AttentionKind, tuple[int, int, int]] = {
        "encoder": (n_encoder, n_source, n_source),
        "decoder": (n_decoder, n_target, n_target),
        "cross": (n_decoder, n_target, n_source),
    }
    weights = {kind: _weights(recorded, kind) for kind in expected}
    return Check(
        "3.2.3",
        "Attention is used in three ways: over the source, over the target, and from the target over the source",
        "; ".join(
            f"{kind}: {len(weights_LHTS)} of {shape_of(weights_LHTS[0])}" for kind, weights_LHTS in weights.items()
        ),
        all((len(each), *each.shape[2:]) == expected[kind] for kind, each in weights.items()),
    )


def _encoder_sees_all(recorded: ForwardPass) -> Check:
    smallest = float(_weights(recorded, "encoder").min())
    claim = "Each position in the encoder can attend to all positions"
    return Check("3.2.3", claim, f"smallest weight: {smallest:.1e}", smallest > 0)


def _decoder_is_masked(recorded: ForwardPass) -> Check:
    weights_LHTT = _weights(recorded, "decoder")
    allowed_TT = torch.ones(weights_LHTT.shape[-2:], dtype=torch.bool).tril()
    later, earlier = float(weights_LHTT[..., ~allowed_TT].max()), float(weights_LHTT[..., allowed_TT].min())
    return Check(
        "3.2.3",
        "Each position in the decoder can attend to all positions up to and including itself: the mask is a triangle",
        f"largest weight above the diagonal: {later:g}; smallest on it and below: {earlier:.1e}",
        later == 0 < earlier,
    )


def _predictions_are_causal(model: Transformer, src_1S: Tensor, tgt_1T: Tensor) -> Check:
    gradient_TT = _gradient_sizes(model, src_1S, tgt_1T)
    allowed_TT = torch.ones_like(gradient_TT, dtype=torch.bool).tril()
    later, earlier = float(gradient_TT[~allowed_TT].max()), float(gradient_TT[allowed_TT].min())
    return Check(
        "3.1",
        "The predictions for position i depend only on the known outputs at positions less than i",
        f"derivative of a state by later inputs: at most {later:g}; by its own and earlier: at least {earlier:.1e}",
        later == 0 < earlier,
    )


def _gradient_sizes(model: Transformer, src_1S: Tensor, tgt_1T: Tensor) -> Tensor:
    """Return the gradient size of each decoder state (row) with respect to each embedded input (column), (T, T)."""
    inputs: list[Tensor] = []

    def replace_input(module: nn.Module, arguments: object, output_TD: Tensor) -> Tensor:
        inputs.append(output_TD.detach().requires_grad_())
        return inputs[-1]

    with torch.no_grad():
        memory = model.encode(src_1S)
    hook = model.target.dropout.register_forward_hook(replace_input)
    try:
        states_TD = model.decode(memory, tgt_1T)
    finally:
        hook.remove()
    # A plain sum over the width would not depend on the input after layer norm.
    direction_D = torch.linspace(-1, 1, states_TD.shape[1]) ** 3
    rows = [torch.autograd.grad(state_D @ direction_D, inputs[0], retain_graph=True)[0] for state_D in states_TD]
    return torch.stack(rows).abs().sum(dim=-1)


def _cross_attention_reads_the_encoder(recorded: ForwardPass) -> Check:
    attentions = list(_calls(recorded, CrossAttention))
    projections = [{call.path.rsplit(".")[-1]: call.inputs[0] for call in attention.inside} for attention in attentions]
    n_reading = sum(inputs["w_kv"].data_ptr() == recorded.memory_SD.data_ptr() for inputs in projections)
    n_querying = sum(
        inputs["w_q"].data_ptr() == attention.inputs[0].data_ptr() != recorded.memory_SD.data_ptr()
        for attention, inputs in zip(attentions, projections, strict=True)
    )
    return Check(
        "3.2.3",
        "In encoder-decoder attention queries come from the decoder, keys and values from the output of the encoder",
        f"queries in {n_querying}, keys and values in {n_reading} of {len(attentions)} layers",
        n_reading == n_querying == len(attentions),
    )


def _feed_forward(recorded: ForwardPass) -> Check:
    networks = list(_calls(recorded, FeedForward))
    claim = "FFN(x) = max(0, x W_1 + b_1) W_2 + b_2, at each position separately and identically"
    where = f"in {len(networks)} networks, position by position"
    return _differs_by_rounding("3.3", claim, where, map(_from_feed_forward_formula, networks))


def _from_feed_forward_formula(call: Call) -> float:
    w_1, b_1, w_2, b_2 = (
        _as_float64(dict(call.module.named_parameters())[name])
        for name in ("w_1.weight", "w_1.bias", "w_2.weight", "w_2.bias")
    )
    pairs = zip(_as_float64(call.inputs[0]), _as_float64(call.output), strict=True)
    return max(float(np.abs(np.maximum(0, w_1 @ x + b_1) @ w_2.T + b_2 - y).max()) for x, y in pairs)


def _feed_forward_as_convolutions(recorded: ForwardPass) -> Check:
    networks = list(_calls(recorded, FeedForward))
    claim = "Another way of describing this is as two convolutions with kernel size 1"
    return _differs_by_rounding("3.3", claim, f"in {len(networks)} networks", map(_from_convolutions, networks))


def _from_convolutions(call: Call) -> float:
    weights = dict(call.module.named_parameters())
    x_DN = call.inputs[0].double().T
    for layer in ("w_1", "w_2"):
        kernel_OI1 = weights[f"{layer}.weight"].double().unsqueeze(2)
        x_DN = F.conv1d(x_DN if layer == "w_1" else x_DN.relu(), kernel_OI1, weights[f"{layer}.bias"].double())
    return float(np.abs(_as_float64(x_DN.T) - _as_float64(call.output)).max())


def _one_matrix(model: Transformer) -> Check:
    assert isinstance(model.source, TokenFrontEnd)
    weights = (model.source.embedding.weight, model.target.embedding.weight, model.output_weight)
    n_matrices = len({weight.data_ptr() for weight in weights})
    return Check(
        "3.4",
        "The two embeddings and the linear transformation before the softmax share one matrix",
        f"{n_matrices} in memory, of {' and '.join(sorted({shape_of(weight) for weight in weights}))}",
        n_matrices == 1,
    )


def _embeddings_are_scaled(recorded: ForwardPass) -> Check:
    embeddings = list(_calls(recorded, TokenEmbedding))
    largest = 0.0
    for call in embeddings:
        rows_ND = _as_float64(call.module.weight[call.inputs[0]])  # type: ignore[index]
        largest = max(largest, float(np.abs(_as_float64(call.output) - np.sqrt(rows_ND.shape[1]) * rows_ND).max()))
    claim = "In the embedding layers the weights are multiplied by sqrt(d_model)"
    measured = f"largest difference in {len(embeddings)} embeddings: {largest:.1e}"
    return Check("3.4", claim, measured, largest < ROUNDING and len(embeddings) == 2)


def _positions_are_added(recorded: ForwardPass) -> Check:
    claim = "Sinusoids are added to the embeddings at the bottoms of both stacks"
    differences = map(_from_sum_with_sinusoids, (recorded.encoder, recorded.decoder))
    return _differs_by_rounding("3.5", claim, "from embedding + sinusoid", differences)


def _from_sum_with_sinusoids(calls: tuple[Call, ...]) -> float:
    embedded_ND = next(_as_float64(call.output) for call in within(calls) if isinstance(call.module, TokenEmbedding))
    entering_ND = next(_as_float64(call.inputs[0]) for call in within(calls) if isinstance(call.module, Dropout))
    n_positions, d_model = embedded_ND.shape
    angle = np.arange(n_positions)[:, None] / 10000 ** (np.arange(0, d_model, 2) / d_model)
    sinusoids_ND = np.stack((np.sin(angle), np.cos(angle)), axis=-1).reshape(n_positions, d_model)
    return float(np.abs(entering_ND - (embedded_ND + sinusoids_ND)).max())


def _differs_by_rounding(section: str, claim: str, where: str, differences: Iterable[float]) -> Check:
    """Return the check that something equals its formula; it fails where there is nothing to compare."""
    largest = max(differences, default=np.inf)
    return Check(section, claim, f"largest difference {where}: {largest:.1e}", largest < ROUNDING)


def _calls(recorded: ForwardPass, kind: type[nn.Module]) -> Iterator[Call]:
    return (call for call in within((*recorded.encoder, *recorded.decoder)) if isinstance(call.module, kind))


def _weights(recorded: ForwardPass, kind: AttentionKind) -> Tensor:
    """Return the attention weights of all layers, (L, H, T, S)."""
    return torch.stack([weights for (which, _), weights in recorded.weights.items() if which == kind])


def _as_float64(tensor: Tensor) -> NDArray[np.float64]:
    return tensor.detach().double().numpy()

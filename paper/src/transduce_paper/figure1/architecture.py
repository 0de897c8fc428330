"""The architecture of a Transformer, recorded with hooks while it runs: which module calls which, with which shapes.

Shapes: S source positions, T target positions, D d_model, H heads, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor, nn

from transduce.errors import ShapeError
from transduce.model import (
    AttentionKind,
    CrossAttention,
    FeedForward,
    Layer,
    MultiHeadAttention,
    Residual,
    SelfAttention,
    TokenFrontEnd,
    Transformer,
    name_on_disk,
)

__all__ = [
    "Architecture", "Call", "ForwardPass", "Stack", "Sublayer", "attention_kind", "leaves", "read_architecture",
    "record_forward_pass", "shape_of", "sublayer_call", "within",
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class Call:
    """A call of a module, with the calls inside it."""

    path: str  # its name in weight files
    module: nn.Module
    inputs: tuple[Tensor, ...]
    output: Tensor
    inside: tuple[Call, ...]


@dataclass(frozen=True, slots=True)
class ForwardPass:
    """A recorded forward pass of one pair."""

    encoder: tuple[Call, ...]
    decoder: tuple[Call, ...]
    memory_SD: Tensor  # output of the encoder
    states_TD: Tensor  # output of the decoder
    logits_TV: Tensor
    weights: dict[tuple[AttentionKind, int], Tensor]  # of each layer, (H, T, S)


@torch.no_grad()
def record_forward_pass(model: Transformer, src_1S: Tensor, tgt_1T: Tensor) -> ForwardPass:
    """Run a model on one pair and record every call."""
    weights: dict[tuple[AttentionKind, int], Tensor] = {}

    def collect(kind: AttentionKind, layer: int, weights_1HTS: Tensor) -> None:
        weights[kind, layer] = weights_1HTS[0]

    with _calls_of(model, "source") as encoder:
        memory = model.encode(src_1S, attention_hook=collect)
    with _calls_of(model, "target") as decoder:
        states_TD = model.decode(memory, tgt_1T, attention_hook=collect)
    return ForwardPass(tuple(encoder), tuple(decoder), memory.states_MD, states_TD, model.logits(states_TD), weights)


@contextmanager
def _calls_of(model: nn.Module, side: Literal["source", "target"]) -> Iterator[list[Call]]:
    """Record the calls within the block: the outermost ones, each with those inside it.

    A module that both sides share gets its name on this side.
    """
    names = sorted(model.named_modules(remove_duplicate=False), key=lambda named: named[0].startswith(side))
    path_of = {module: name_on_disk(f"{name}.").removesuffix(".") for name, module in names}
    opened: list[list[Call]] = [[]]

    def begin(module: nn.Module, inputs: Any) -> None:
        opened.append([])

    def end(module: nn.Module, inputs: tuple[Any, ...], output: Any) -> None:
        inside = tuple(opened.pop())
        tensors = tuple(each for each in inputs if isinstance(each, Tensor))
        opened[-1].append(Call(path_of[module], module, tensors, output, inside))

    hooks = [module.register_forward_pre_hook(begin) for module in path_of if module is not model]
    hooks += [module.register_forward_hook(end) for module in path_of if module is not model]
    try:
        yield opened[0]
    finally:
        for hook in hooks:
            hook.remove()


def within(calls: Sequence[Call]) -> Iterator[Call]:
    """Yield the calls and those inside them, in the order in which they began."""
    for call in calls:
        yield call
        yield from within(call.inside)


def leaves(calls: Sequence[Call]) -> Iterator[Call]:
    """Yield the calls that contain no other."""
    return (call for call in within(calls) if not call.inside)


def shape_of(tensor: Tensor) -> str:
    """Format the shape of a tensor.

    >>> shape_of(torch.zeros(2, 3))
    '(2, 3)'
    """
    return f"({', '.join(map(str, tensor.shape))})"


@dataclass(frozen=True, slots=True)
class Sublayer:
    """One box of figure 1, with the residual connection and the norm around it."""

    title: str
    kind: Literal["attention", "feed-forward"]
    is_cross: bool
    norm: Literal["before", "after"]
    weights: tuple[str, ...]  # name and shape
    heads: str  # "" if there are none
    n_parameters: int


@dataclass(frozen=True, slots=True)
class Stack:
    """Encoder or decoder: one layer and the number of layers."""

    n_layers: int
    sublayers: tuple[Sublayer, ...]  # of each layer, in order of execution
    n_parameters: int  # of one layer
    embedding: str  # shape of its table
    positions: str  # kind of position encoding
    has_last_norm: bool


@dataclass(frozen=True, slots=True)
class Architecture:
    """The content of figure 1."""

    encoder: Stack
    decoder: Stack
    output: str  # shape of the matrix before the softmax
    tied: tuple[str, ...]  # which of "input", "output" and "linear" share one matrix
    d_model: int
    n_parameters: int


def read_architecture(model: Transformer, recorded: ForwardPass) -> Architecture:
    """Return the architecture of a model, given a pass through it.

    Raises ShapeError if the layers of a stack differ, or if positions count words.
    """
    source, target = model.source, model.target
    if type(source) is not TokenFrontEnd or type(target) is not TokenFrontEnd:
        fronts = sorted({type(front).__name__ for front in (source, target)})
        raise ShapeError(f"figure 1 needs positions that count tokens, got a model with {', '.join(fronts)}")
    matrices = {
        "input": source.embedding.weight,
        "output": target.embedding.weight,
        "linear": model.output_weight,
    }
    storages = {name: weight.data_ptr() for name, weight in matrices.items()}
    tied = tuple(name for name, storage in storages.items() if list(storages.values()).count(storage) > 1)
    return Architecture(
        encoder=_stack(recorded.encoder, source, recorded),
        decoder=_stack(recorded.decoder, target, recorded),
        output=shape_of(model.output_weight),
        tied=tied,
        d_model=recorded.states_TD.shape[-1],
        n_parameters=sum(weight.numel() for weight in model.parameters()),
    )


def _stack(calls: Sequence[Call], front: TokenFrontEnd, recorded: ForwardPass) -> Stack:
    *_, stack = calls
    called = [call for call in stack.inside if isinstance(call.module, Layer)]
    read = [
        tuple(
            _sublayer(residual, number, recorded) for residual in call.inside if isinstance(residual.module, Residual)
        )
        for number, call in enumerate(called)
    ]
    if len(set(read)) != 1:
        raise ShapeError(f"figure 1 needs identical layers in a stack, got {len(set(read))} kinds")
    table = next(front.positions.parameters(), None)
    return Stack(
        n_layers=len(called),
        sublayers=read[0],
        n_parameters=_n_parameters(called[0].module),
        embedding=shape_of(front.embedding.weight),
        positions="sinusoids" if table is None else f"learned {shape_of(table)}",
        has_last_norm=isinstance(stack.inside[-1].module, nn.LayerNorm),
    )


def sublayer_call(residual: Call) -> Call:
    """Return the sublayer within a residual connection: the module with weights that is not a norm."""
    return next(
        call
        for call in residual.inside
        if not isinstance(call.module, nn.LayerNorm) and any(True for _ in call.module.parameters())
    )


def _sublayer(residual: Call, number: int, recorded: ForwardPass) -> Sublayer:
    call = sublayer_call(residual)
    module, before = call.module, residual.inside[: residual.inside.index(call)]
    return Sublayer(
        title=_title(call, number, recorded),
        kind="attention" if isinstance(module, MultiHeadAttention) else "feed-forward",
        is_cross=isinstance(module, CrossAttention),
        norm="before" if any(isinstance(each.module, nn.LayerNorm) for each in before) else "after",
        weights=tuple(dict.fromkeys(_weights(call))),
        heads=_heads(call, module, number, recorded) if isinstance(module, SelfAttention | CrossAttention) else "",
        n_parameters=_n_parameters(residual.module) + _n_parameters(module),
    )


def _title(call: Call, number: int, recorded: ForwardPass) -> str:
    """Return the title as in figure 1; attention without weight on later positions is masked."""
    match call.module:
        case MultiHeadAttention():
            weights_HTS = recorded.weights[attention_kind(call), number]
            is_masked = weights_HTS.shape[1] == weights_HTS.shape[2] and not bool(weights_HTS.triu(1).any())
            return "Masked Multi-Head Attention" if is_masked else "Multi-Head Attention"
        case FeedForward():
            return "Feed Forward"
        case _:
            return "Mixture of Experts"


def _heads(call: Call, module: SelfAttention | CrossAttention, number: int, recorded: ForwardPass) -> str:
    """Describe the heads of an attention: their number, d_k and d_v."""
    n_heads = len(recorded.weights[attention_kind(call), number])
    d_k, d_v = (width // n_heads for width in (module.widths[0], module.widths[-1]))
    return f"{n_heads} heads, " + (f"d_k = d_v = {d_k}" if d_k == d_v else f"d_k = {d_k}, d_v = {d_v}")


def attention_kind(call: Call) -> AttentionKind:
    """Return which of the three uses of attention a call is."""
    if isinstance(call.module, CrossAttention):
        return "cross"
    return "encoder" if call.path.startswith("encoder") else "decoder"


def _weights(call: Call) -> Iterator[str]:
    for inner in leaves((call,)):
        own = dict(inner.module.named_parameters(recurse=False))
        if "weight" in own:
            name = inner.path.rsplit(".", maxsplit=1)[-1]
            yield f"{name} {shape_of(own['weight'])}{' + bias' if 'bias' in own else ''}"


def _n_parameters(module: nn.Module) -> int:
    return sum(weight.numel() for weight in module.parameters())

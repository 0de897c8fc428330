"""Models prepared for inference: the same functions, with weights packed for fast matrix products.

Decoding multiplies few rows with every matrix of the model, one token at a time. On a CPU, oneDNN needs each weight in
its own layout and in the product's dtype; it converts a plain matrix at every call, which takes longer than the
product. Here each weight is converted once. ``torch.ops.mkldnn`` and ``torch.ops.onednn`` are undocumented: where they
are missing, plain products are used and int8 is refused.

``Int8Linear`` also quantises: weights to 8 bits with a scale per output, inputs to 8 bits with a scale per row, so that
no sentence depends on the others in its batch. The integer sums are exact.

Shapes: N rows, I input features, O output features, V vocabulary, X tokens of a part of it, D d_model.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any, Protocol, TypeVar, cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from transduce.config import InferencePrecision, Precision
from transduce.errors import ConfigError
from transduce.imports import without_collection
from transduce.model.attention import AttentionKind, FusedLinear
from transduce.model.encoder_decoder import EncoderDecoder
from transduce.model.experts import AuxiliaryLosses, Gate
from transduce.model.layers import FeedForward
from transduce.model.output import VocabularyOutput
from transduce.model.stack import Stack

__all__ = [
    "Int8Linear", "PackedLinear", "fast_precision", "for_inference", "has_int8_products", "int8_linear_reference",
    "with_output_rows",
]  # fmt: skip

ModelT = TypeVar("ModelT", bound=EncoderDecoder)

MAX_INT8 = 127
TINY = 1e-32  # added to a row's step, for rows of zeros
# A single row is multiplied with the plain matrix if it is not larger: oneDNN's products take 10 microseconds more to
# begin, so that a matrix of 256 x 256 takes 19 instead of 7. With 256 x 10,000, oneDNN is faster.
MAX_PLAIN_WEIGHTS = 2**20
BLOCK_ROWS = 256  # of the feed-forward network: 2 MB of hidden states with d_ff = 2,048


def for_inference(model: ModelT, precision: InferencePrecision) -> ModelT:
    """A copy of ``model`` for fast inference; it cannot be trained, saved or moved to another device.

    It shares embeddings, norms and some matrices with ``model``, and has copies of other weights: after later training
    of ``model`` it is neither the old nor the new model, so make another. "fp32" keeps the dtype of the weights.
    Raises ConfigError if the model's device does not support the precision.

    >>> from transduce.config import ModelConfig
    >>> from transduce.model import Transformer
    >>> model = Transformer(ModelConfig(n_encoder_layers=1, n_decoder_layers=1, src_vocab_size=9, tgt_vocab_size=9))
    >>> fast = for_inference(model.eval(), "fp32")
    >>> states_ND = torch.randn(3, 512)
    >>> torch.allclose(fast.logits(states_ND), model.logits(states_ND), atol=1e-5)
    True
    """
    device = model.output_weight.device
    if precision == "int8" and not has_int8_products(device):
        raise ConfigError(f"int8 needs a processor with int8 products (VNNI), {device} has none; use bf16 or fp32")
    make = _linear_maker(precision, device)
    with without_collection():
        fast = cast(ModelT, _replace_linears(model, make))
        fast.output = _FastOutput(model.output_weight, model.output.bias, make)
    return fast.eval()


def with_output_rows(model: ModelT, ids_X: Tensor) -> ModelT:
    """A copy of a model made by ``for_inference`` that scores only some tokens: its logits are (..., X).

    It shares all other weights, and is made in the time to pack these rows of the output projection.
    """
    assert isinstance(model.output, _FastOutput)
    replica = copy.copy(model)
    replica._modules = dict(model._modules)
    bias_V = model.output.bias
    replica.output = _FastOutput(
        model.output.weight[ids_X], None if bias_V is None else bias_V[ids_X], model.output.make
    )
    return replica


class _FastOutput(VocabularyOutput):
    """The output layer with a packed weight."""

    def __init__(self, weight_VD: Tensor, bias_V: Tensor | None, make: LinearMaker) -> None:
        super().__init__()
        self.weight, self.bias = weight_VD.detach(), None if bias_V is None else bias_V.detach()
        self.make, self.linear = make, make(weight_VD, bias_V)

    def logits(self, states_ND: Tensor) -> Tensor:
        logits_NV: Tensor = self.linear(states_ND)
        return logits_NV


def fast_precision(device: str | torch.device) -> Precision:
    """bf16 if the device has bf16 matrix products, else fp32: a CPU without them is slower in bf16."""
    if torch.device(device).type == "cuda":
        return "bf16" if torch.cuda.is_bf16_supported(including_emulation=False) else "fp32"
    supports = _cpu_capabilities(device)
    return "bf16" if supports.get("amx_bf16") or supports.get("avx512_bf16") else "fp32"


def has_int8_products(device: str | torch.device) -> bool:
    """Whether ``for_inference`` supports int8 on the device: x86 with VNNI or AMX."""
    supports = _cpu_capabilities(device)
    has_ops = all(hasattr(torch.ops.onednn, name) for name in ("qlinear_prepack", "qlinear_pointwise"))
    return has_ops and any(supports.get(name) for name in ("avx512_vnni", "avx_vnni", "amx_int8"))


def _has_packed_products(dtype: torch.dtype, device: torch.device) -> bool:
    """Whether oneDNN multiplies with packed matrices: fp32 on every CPU, bf16 from AVX-512 on."""
    if device.type != "cpu" or not torch.backends.mkldnn.is_available():  # type: ignore[no-untyped-call]
        return False
    has_bf16: bool = torch.ops.mkldnn._is_mkldnn_bf16_supported()
    return dtype == torch.float32 or (dtype == torch.bfloat16 and has_bf16)


def _cpu_capabilities(device: str | torch.device) -> Mapping[str, Any]:
    """torch's processor capabilities; empty for other devices, and for versions of torch without them."""
    is_available = torch.device(device).type == "cpu" and hasattr(torch.cpu, "get_capabilities")
    return torch.cpu.get_capabilities() if is_available else {}


class LinearMaker(Protocol):
    """The constructor of linear layers in some precision."""

    def __call__(
        self, weight_OI: Tensor, bias_O: Tensor | None, /, *, heads_of: AttentionKind | None = None
    ) -> nn.Module:
        """``heads_of``: the layer makes the queries, keys and values of this stack's attention."""


def _linear_maker(precision: InferencePrecision, device: torch.device) -> LinearMaker:
    """The constructor of linear layers in the given precision."""
    # Attention has no int8 products. The encoder's is faster in bf16 than in fp32. On a CPU, that of a decoding step is
    # in fp32: its products are small, and in bf16 oneDNN would compile two kernels for each step.
    fast_dtype = torch.bfloat16 if fast_precision(device) == "bf16" else torch.float32

    def make(weight_OI: Tensor, bias_O: Tensor | None, /, *, heads_of: AttentionKind | None = None) -> nn.Module:
        if precision == "int8":
            return Int8Linear(weight_OI, bias_O, out_dtype=fast_dtype if heads_of == "encoder" else torch.float32)
        dtype = torch.bfloat16 if precision == "bf16" else weight_OI.dtype
        if not _has_packed_products(dtype, device):
            return _CastLinear(weight_OI, bias_O, dtype)
        return PackedLinear(weight_OI, bias_O, dtype, out_dtype=torch.float32 if heads_of == "decoder" else dtype)

    return make


def _replace_linears(module: nn.Module, make: LinearMaker, *, stack: AttentionKind | None = None) -> nn.Module:
    """A copy of the module tree with its linear layers replaced; everything else is shared."""
    if isinstance(module, nn.Linear) and not isinstance(module, Gate):
        return make(module.weight, module.bias, heads_of=stack if isinstance(module, FusedLinear) else None)
    stack = module.kind if isinstance(module, Stack) else stack
    replica = copy.copy(module)
    replica._modules = {
        name: None if child is None else _replace_linears(child, make, stack=stack)
        for name, child in module._modules.items()
    }
    if isinstance(replica, FeedForward) and isinstance(replica.w_1, Int8Linear):
        return _BlockwiseFeedForward(replica)
    return replica


class _BlockwiseFeedForward(nn.Module):
    """A feed-forward network applied to a few rows at a time, so that its hidden states stay in the CPU cache."""

    def __init__(self, feed_forward: FeedForward) -> None:
        super().__init__()
        self.feed_forward = feed_forward

    def forward(self, x: Tensor, auxiliary: AuxiliaryLosses | None = None, n_real: int | None = None) -> Tensor:
        """(..., D) to (..., D). The rest is unused, as in ``FeedForward``."""
        if x.shape[:-1].numel() <= BLOCK_ROWS:
            out: Tensor = self.feed_forward(x)
            return out
        blocks = torch.split(x.reshape(-1, x.shape[-1]), BLOCK_ROWS)
        return torch.cat([self.feed_forward(block_ND) for block_ND in blocks]).view(x.shape)


class _CastLinear(nn.Module):
    """x W^T + b in another dtype."""

    def __init__(self, weight_OI: Tensor, bias_O: Tensor | None, dtype: torch.dtype) -> None:
        super().__init__()
        self.dtype, self.weight_OI = dtype, weight_OI.detach().to(dtype)
        self.bias_O = None if bias_O is None else bias_O.detach().to(dtype)

    def forward(self, x: Tensor) -> Tensor:
        """(..., I) to (..., O)."""
        return F.linear(x.to(self.dtype), self.weight_OI, self.bias_O)


class PackedLinear(nn.Module):
    """x W^T + b in fp32 or bf16, with W in oneDNN's layout. The reference is ``torch.nn.functional.linear``."""

    def __init__(
        self, weight_OI: Tensor, bias_O: Tensor | None, dtype: torch.dtype, *, out_dtype: torch.dtype | None = None
    ) -> None:
        super().__init__()
        self.dtype, self.out_dtype = dtype, out_dtype or dtype
        self.packed = torch.ops.mkldnn._reorder_linear_weight(weight_OI.detach().to(dtype))
        is_small = dtype == torch.float32 and weight_OI.numel() <= MAX_PLAIN_WEIGHTS
        self.plain_OI = weight_OI.detach() if is_small else None  # the model's own
        self.bias_O = None if bias_O is None else bias_O.detach().to(dtype)

    def forward(self, x: Tensor) -> Tensor:
        """(..., I) to (..., O)."""
        if self.plain_OI is not None and x.numel() == self.plain_OI.shape[1]:  # a single row
            return F.linear(x, self.plain_OI, self.bias_O)
        out: Tensor = torch.ops.mkldnn._linear_pointwise(x.to(self.dtype), self.packed, self.bias_O, "none", [], "")
        return out.to(self.out_dtype)


class Int8Linear(nn.Module):
    """x W^T + b in int8, with output in fp32 or bf16. The reference is ``int8_linear_reference``."""

    def __init__(self, weight_OI: Tensor, bias_O: Tensor | None, *, out_dtype: torch.dtype = torch.float32) -> None:
        super().__init__()
        weight_OI = weight_OI.detach().float()
        step_O1 = weight_OI.abs().amax(dim=1, keepdim=True) / MAX_INT8 + TINY
        self.step_O = step_O1.flatten()
        self.packed = torch.ops.onednn.qlinear_prepack((weight_OI / step_O1).round_().to(torch.int8), None)
        self.zero_O = torch.zeros(len(weight_OI), dtype=torch.int32)
        self.bias_O = None if bias_O is None else bias_O.detach().float()
        self.tiny = torch.tensor(TINY)
        self.out_dtype = out_dtype

    def forward(self, x: Tensor) -> Tensor:
        """(..., I) to (..., O)."""
        x_NI = x.reshape(-1, x.shape[-1]).float()
        step_N1 = torch.add(self.tiny, x_NI.abs().amax(dim=1, keepdim=True), alpha=1 / MAX_INT8)
        quantised_NI = (x_NI / step_N1).round_().to(torch.int8)
        # oneDNN's fast kernels take uint8; flipping the highest bit adds 128, which the zero point subtracts.
        shifted_NI = quantised_NI.bitwise_xor_(-128).view(torch.uint8)
        product_NO = torch.ops.onednn.qlinear_pointwise(
            shifted_NI, 1.0, 128, self.packed, self.step_O, self.zero_O, None, 1.0, 0, torch.float32, "none", [], "",
        )  # fmt: skip
        out_NO: Tensor = product_NO.mul_(step_N1)
        if self.bias_O is not None:
            out_NO.add_(self.bias_O)
        return out_NO.to(self.out_dtype).view(*x.shape[:-1], len(self.step_O))


def int8_linear_reference(x_NI: Tensor, weight_OI: Tensor, bias_O: Tensor | None = None) -> Tensor:
    """The function of ``Int8Linear``: it rounds each row of inputs and weights to 255 levels in [-max |x|, max |x|]."""

    def quantised(matrix: Tensor) -> Tensor:
        step = matrix.abs().amax(dim=1, keepdim=True) / MAX_INT8 + TINY
        return (matrix / step).round() * step

    return F.linear(quantised(x_NI), quantised(weight_OI), bias_O)

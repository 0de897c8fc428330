"""A model as it translates: the same functions, with weights in the form that fast products take.

Decoding multiplies few rows with every matrix of the model, a token at a time. oneDNN, which does this on a CPU, wants
a weight in an order of its own and in the type of the product; given an ordinary matrix, it reorders it at each call,
which takes longer than the product. Here this is done once.

``Int8Linear`` also rounds: 8 bits for each weight, with a scale for each output, and 8 bits for each input, with a
scale for each row, so that no sentence depends on those beside it. Sums are exact.

Shapes: N rows, I inputs, O outputs.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from typing import Any, TypeVar, cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from transduce.config import InferencePrecision, Precision
from transduce.errors import ConfigError
from transduce.model.encoder_decoder import EncoderDecoder
from transduce.model.experts import Gate
from transduce.model.output import VocabularyOutput

__all__ = [
    "Int8Linear", "PackedLinear", "fast_precision", "for_inference", "has_int8_products", "int8_linear_reference",
]  # fmt: skip

ModelT = TypeVar("ModelT", bound=EncoderDecoder)

LARGEST_INT8 = 127
TINY = 1e-30  # instead of the largest entry of a row of zeros


def for_inference(model: ModelT, precision: InferencePrecision) -> ModelT:
    """A copy of ``model`` that computes its scores fast, but cannot be trained, saved or moved to another device.

    It shares the embeddings and norms with ``model``, and does not follow when ``model`` is trained further. "fp32" is
    the type that the weights have.
    Raises ConfigError if the model's device has no products of that precision.

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
        raise ConfigError(f"int8 needs a processor with products of int8 (VNNI), {device} has none; use bf16 or fp32")
    make = _maker(precision, device)
    fast = cast(ModelT, _with_products(model, make))
    fast.output = _FastOutput(make(model.output_weight, None))
    return fast.eval()


class _FastOutput(VocabularyOutput):
    """The output layer, by a fast product."""

    def __init__(self, product: nn.Module) -> None:
        super().__init__()
        self.product = product

    def logits(self, states_ND: Tensor) -> Tensor:
        logits_NV: Tensor = self.product(states_ND)
        return logits_NV


def fast_precision(device: str | torch.device) -> Precision:
    """bf16 where the device has matrix products in it, else fp32: without them, bf16 is slower on a CPU."""
    if torch.device(device).type == "cuda":
        return "bf16" if torch.cuda.is_bf16_supported(including_emulation=False) else "fp32"
    has = _capabilities(device)
    return "bf16" if has.get("amx_bf16") or has.get("avx512_bf16") else "fp32"


def has_int8_products(device: str | torch.device) -> bool:
    """Whether ``for_inference`` can make a model of int8 there: on x86 with VNNI or AMX."""
    has = _capabilities(device)
    is_known = all(hasattr(torch.ops.onednn, name) for name in ("qlinear_prepack", "qlinear_pointwise"))
    return is_known and any(has.get(name) for name in ("avx512_vnni", "avx_vnni", "amx_int8"))


def _capabilities(device: str | torch.device) -> Mapping[str, Any]:
    """What a processor can; nothing for other devices, and where torch does not tell."""
    is_logged_once = torch.device(device).type == "cpu" and hasattr(torch.cpu, "get_capabilities")
    return torch.cpu.get_capabilities() if is_logged_once else {}


Maker = Callable[[Tensor, Tensor | None], nn.Module]  # of a weight (O, I) and a bias (O,)


def _maker(precision: InferencePrecision, device: torch.device) -> Maker:
    """How products of that precision are made."""
    if precision == "int8":
        return Int8Linear
    has_onednn = device.type == "cpu" and torch.backends.mkldnn.is_available()  # type: ignore[no-untyped-call]

    def make(weight_OI: Tensor, bias_O: Tensor | None) -> nn.Module:
        dtype = torch.bfloat16 if precision == "bf16" else weight_OI.dtype
        is_packed = has_onednn and dtype in (torch.float32, torch.bfloat16)
        return PackedLinear(weight_OI, bias_O, dtype) if is_packed else _CastLinear(weight_OI, bias_O, dtype)

    return make


def _with_products(module: nn.Module, make: Maker) -> nn.Module:
    """A copy of the tree of modules with other linear layers; all else is shared."""
    if isinstance(module, nn.Linear) and not isinstance(module, Gate):
        return make(module.weight, module.bias)
    twin = copy.copy(module)
    twin._modules = {
        name: None if child is None else _with_products(child, make) for name, child in module._modules.items()
    }
    return twin


class _CastLinear(nn.Module):
    """x W^T + b in another type."""

    def __init__(self, weight_OI: Tensor, bias_O: Tensor | None, dtype: torch.dtype) -> None:
        super().__init__()
        self.dtype, self.weight_OI = dtype, weight_OI.detach().to(dtype)
        self.bias_O = None if bias_O is None else bias_O.detach().to(dtype)

    def forward(self, x: Tensor) -> Tensor:
        """(..., I) to (..., O)."""
        return F.linear(x.to(self.dtype), self.weight_OI, self.bias_O)


class PackedLinear(nn.Module):
    """x W^T + b in fp32 or bf16, with W in oneDNN's order. The reference is ``torch.nn.functional.linear``."""

    def __init__(self, weight_OI: Tensor, bias_O: Tensor | None, dtype: torch.dtype) -> None:
        super().__init__()
        self.dtype = dtype
        self.packed = torch.ops.mkldnn._reorder_linear_weight(weight_OI.detach().to(dtype))
        self.bias_O = None if bias_O is None else bias_O.detach().to(dtype)

    def forward(self, x: Tensor) -> Tensor:
        """(..., I) to (..., O)."""
        out: Tensor = torch.ops.mkldnn._linear_pointwise(x.to(self.dtype), self.packed, self.bias_O, "none", [], "")
        return out


class Int8Linear(nn.Module):
    """x W^T + b by products of int8; fp32 comes out. The reference is ``int8_linear_reference``."""

    def __init__(self, weight_OI: Tensor, bias_O: Tensor | None) -> None:
        super().__init__()
        weight_OI = weight_OI.detach().float()
        scale_O1 = weight_OI.abs().amax(dim=1, keepdim=True).clamp_(min=TINY) / LARGEST_INT8
        self.scale_O = scale_O1.flatten()
        self.packed = torch.ops.onednn.qlinear_prepack((weight_OI / scale_O1).round_().to(torch.int8), None)
        self.zero_O = torch.zeros(len(weight_OI), dtype=torch.int32)
        self.bias_O = None if bias_O is None else bias_O.detach().float()

    def forward(self, x: Tensor) -> Tensor:
        """(..., I) to (..., O)."""
        x_NI = x.flatten(0, -2).float()
        largest_N1 = x_NI.abs().amax(dim=1, keepdim=True).clamp_(min=TINY)
        quantised_NI = (x_NI * (LARGEST_INT8 / largest_N1)).round_().to(torch.int8)
        # oneDNN's fast kernels take 0 to 255; to flip the highest bit is to add 128, which it takes off again.
        shifted_NI = quantised_NI.bitwise_xor_(-128).view(torch.uint8)
        product_NO = torch.ops.onednn.qlinear_pointwise(
            shifted_NI, 1 / LARGEST_INT8, 128, self.packed, self.scale_O, self.zero_O,
            None, 1.0, 0, torch.float32, "none", [], "",
        )  # fmt: skip
        out_NO: Tensor = product_NO.mul_(largest_N1)
        if self.bias_O is not None:
            out_NO.add_(self.bias_O)
        return out_NO.view(*x.shape[:-1], out_NO.shape[-1])


def int8_linear_reference(x_NI: Tensor, weight_OI: Tensor, bias_O: Tensor | None = None) -> Tensor:
    """What ``Int8Linear`` computes: every row of both is rounded to 255 steps up to its largest entry."""

    def rounded(matrix: Tensor) -> Tensor:
        step = matrix.abs().amax(dim=1, keepdim=True).clamp(min=TINY) / LARGEST_INT8
        return (matrix / step).round() * step

    return F.linear(rounded(x_NI), rounded(weight_OI), bias_O)

"""The initialisation of all weights, and building a model without it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from transduce.model.attention import FusedLinear
from transduce.model.embedding import LearnedPositions, TokenEmbedding
from transduce.model.output import LinearOutput, VocabularyOutput
from transduce.model.score_functions import AdditiveCompatibility, BilinearCompatibility

__all__ = ["ShapesOnly", "initialise"]

DRAWS = (nn.init.kaiming_uniform_, nn.init.uniform_, nn.init.normal_, Tensor.uniform_, Tensor.normal_)


def initialise(model: nn.Module) -> None:
    """Initialise in place: Glorot uniform for matrices, N(0, 1 / d_model) for embeddings (the authors' code).

    The paper gives no initialisation. Biases start at 0, layer norms with weight 1. With embeddings of variance
    1 / d_model, the factor sqrt(d_model) of section 3.4 gives inputs of variance 1, comparable to the sinusoids'
    variance of 1 / 2, and a tied output matrix gives logits of variance about 1. Learned positions have no such factor
    and start with the sinusoids' variance.
    """
    for module in _initialisation_order(model):
        if isinstance(module, VocabularyOutput) and module.bias is not None:
            nn.init.zeros_(module.bias)
        match module:
            case TokenEmbedding():
                nn.init.normal_(module.weight, std=module.embedding_dim**-0.5)
            case LinearOutput():
                nn.init.xavier_uniform_(module.weight)
            case LearnedPositions():
                nn.init.normal_(module.weight, std=0.5**0.5)
            case FusedLinear():
                for part in torch.split(module.weight, module.widths):
                    nn.init.xavier_uniform_(part)
                if module.bias is not None:
                    nn.init.zeros_(module.bias)
            case AdditiveCompatibility(weight=of_heads) | BilinearCompatibility(weight=of_heads):
                for of_head in of_heads:
                    nn.init.xavier_uniform_(of_head)
            case nn.Linear():
                nn.init.xavier_uniform_(module.weight)
                if module.bias is not None:
                    nn.init.zeros_(module.bias)
            case nn.LayerNorm():
                nn.init.ones_(module.weight)
                nn.init.zeros_(module.bias)


def _initialisation_order(model: nn.Module) -> list[nn.Module]:
    """Return the modules in the order of sampling: embeddings, output, learned positions (source first), the rest.

    The initial weights of a given seed depend on this order.
    """
    modules = list(model.modules())
    embeddings, outputs, positions = (
        [module for module in modules if isinstance(module, kind)]
        for kind in (TokenEmbedding, LinearOutput, LearnedPositions)
    )
    tables = [*embeddings, *outputs, *reversed(positions)]
    return [*tables, *(module for module in modules if module not in tables)]


class ShapesOnly(TorchFunctionMode):
    """A context in which models are built with weights that have shapes, but neither memory nor values.

    It is for models whose weights are counted, or are read from a file. Weights, which torch's modules allocate with
    ``torch.empty``, are on the meta device, and nothing is drawn. All other tensors, such as the sinusoids, have their
    values, which is why this is not ``torch.device("meta")``. Draws on the meta device would also import torch's
    compiler, which takes longer than building the model. Other threads are not affected.

    >>> with ShapesOnly():
    ...     linear = nn.Linear(2, 3)
    >>> linear.weight.shape, linear.weight.device
    (torch.Size([3, 2]), device(type='meta'))
    """

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        """Call ``func``, a function of torch, unless it draws; torch calls this."""
        kwargs = dict(kwargs or {})
        if func in DRAWS:
            return args[0] if args else kwargs["tensor"]
        if func is torch.empty:
            kwargs["device"] = "meta"
        return func(*args, **kwargs)

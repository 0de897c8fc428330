"""The initialisation of all weights."""

from __future__ import annotations

import torch
from torch import nn

from transduce.model.attention import FusedLinear
from transduce.model.embedding import LearnedPositions, TokenEmbedding
from transduce.model.output import LinearOutput

__all__ = ["initialise"]


def initialise(model: nn.Module) -> None:
    """Initialise in place: Glorot uniform for matrices, N(0, 1 / d_model) for embeddings (the authors' code).

    The paper gives no initialisation. Biases are 0, layer norms the identity. With embeddings of variance 1 / d_model,
    the factor sqrt(d_model) of section 3.4 gives variance 1, the size of the sinusoids, and a tied output matrix gives
    logits of variance about 1. Learned positions are added without that factor and have the sinusoids' variance, 1 / 2.
    """
    for module in _initialisation_order(model):
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
            case nn.Linear():
                nn.init.xavier_uniform_(module.weight)
                if module.bias is not None:
                    nn.init.zeros_(module.bias)
            case nn.LayerNorm():
                nn.init.ones_(module.weight)
                nn.init.zeros_(module.bias)


def _initialisation_order(model: nn.Module) -> list[nn.Module]:
    """The modules in the order of sampling: embeddings, output, learned positions (the source's first), the rest.

    The weights of a seed depend on this order.
    """
    modules = list(model.modules())
    embeddings, outputs, positions = (
        [module for module in modules if isinstance(module, kind)]
        for kind in (TokenEmbedding, LinearOutput, LearnedPositions)
    )
    tables = [*embeddings, *outputs, *reversed(positions)]
    return [*tables, *(module for module in modules if module not in tables)]

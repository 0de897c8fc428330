"""How every weight begins: all of it in one function."""

from __future__ import annotations

import torch
from torch import nn

from transduce.model.attention import FusedLinear
from transduce.model.embedding import LearnedPositions, TokenEmbedding
from transduce.model.output import LinearOutput

__all__ = ["initialise"]


def initialise(model: nn.Module) -> None:
    """The authors' code (the paper is silent): Glorot uniform for matrices, N(0, 1 / d_model) for embeddings.

    Biases begin at 0, layer norms as the identity. With embeddings of variance 1 / d_model, the factor sqrt(d_model)
    of section 3.4 brings them to variance 1, the size of the sinusoids, and a tied output matrix gives scores of
    variance about 1. Learned positions are added without that factor, so theirs is the sinusoids' variance, 1 / 2.
    """
    for module in _in_order(model):
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


def _in_order(model: nn.Module) -> list[nn.Module]:
    """The modules in the order of drawing: embeddings, output, learned positions (the source's first), all else.

    The weights that a seed stands for depend on it.
    """
    modules = list(model.modules())
    embeddings, outputs, positions = (
        [module for module in modules if isinstance(module, kind)]
        for kind in (TokenEmbedding, LinearOutput, LearnedPositions)
    )
    tables = [*embeddings, *outputs, *reversed(positions)]
    return [*tables, *(module for module in modules if module not in tables)]

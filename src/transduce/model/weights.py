"""The weights of a model by their names in files, which do not change when a model's attributes do."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from torch import Tensor, nn

from transduce.errors import CheckpointError
from transduce.model.weight_shapes import require_shapes

__all__ = [
    "VALUE", "NamedOnDisk", "assign_weights", "name_on_disk", "named_weights", "require_like", "weights_of",
]  # fmt: skip

RENAMED = (  # pattern of a model's attribute, name on disk
    (r"source\.(embedding|positions)\.", r"src_\1."),
    (r"target\.(embedding|positions)\.", r"tgt_\1."),
    (r"(encoder|decoder)\.layers\.", r"\1."),
    (r"(encoder|decoder)\.norm\.", r"\1_norm."),
    (r"output_projections\.", "answers."),
    (r"lookahead_heads\.", "further_heads."),
    (r"((?:encoder|decoder)\.\d+)\.convolution\.", r"\1.look."),
)

VALUE = "value."  # before the names of a value function, a network within a model


def name_on_disk(attribute: str) -> str:
    """The name on disk of a model's weight, given as a dotted attribute path.

    >>> name_on_disk("decoder.layers.0.feed_forward.w_1.weight")
    'decoder.0.feed_forward.w_1.weight'
    """
    if attribute.startswith(VALUE):
        return VALUE + name_on_disk(attribute.removeprefix(VALUE))
    for pattern, name in RENAMED:
        attribute = re.sub(f"^{pattern}", name, attribute)
    return attribute


class NamedOnDisk(nn.Module):
    """A model whose weights have names on disk."""

    def canonical(self) -> dict[str, nn.Parameter]:
        """Every weight by its name on disk; a tied matrix appears once, under its first name."""
        return {name_on_disk(name): weight for name, weight in self.named_parameters()}


def named_weights(model: nn.Module) -> dict[str, nn.Parameter]:
    """Return every weight once (tied weights too), by its name on disk, else by its first attribute name."""
    return model.canonical() if isinstance(model, NamedOnDisk) else dict(model.named_parameters())


def weights_of(model: nn.Module) -> dict[str, Tensor]:
    """Return the detached tensors of ``named_weights``."""
    return {name: weight.detach() for name, weight in named_weights(model).items()}


def assign_weights(model: nn.Module, weights: Mapping[str, Tensor], *, where: Path) -> None:
    """Make ``weights``, in the dtypes of the model, the weights of a model built with shapes only.

    Raises CheckpointError if names, shapes or dtypes do not fit, or if a buffer of the model has no values.
    """
    own = named_weights(model)
    require_like(weights, own, where=where)
    name_of = {weight: name for name, weight in own.items()}
    loaded = {name: nn.Parameter(weights[name].to(weight.dtype)) for name, weight in own.items()}
    for module in model.modules():
        for attribute, weight in list(module.named_parameters(recurse=False)):
            setattr(module, attribute, loaded[name_of[weight]])  # tied weights stay tied
    for name, buffer in model.named_buffers():
        if buffer.is_meta:
            raise CheckpointError(f"{where}: buffer {name} of the model has no values; make it without torch.empty")


def require_like(tensors: Mapping[str, Tensor], expected: Mapping[str, Tensor], *, where: Path) -> None:
    """Raise CheckpointError unless ``tensors`` have the expected names and shapes and are floating point."""
    shapes, wanted = ({name: tuple(each.shape) for name, each in of.items()} for of in (tensors, expected))
    require_shapes(shapes, wanted, where=where)
    for name, tensor in tensors.items():
        if not tensor.is_floating_point():
            raise CheckpointError(f"{where}: tensor {name} has dtype {tensor.dtype}, weights are floating point")

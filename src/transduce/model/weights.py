"""The names of weights in files, which do not change when a model's attributes do."""

from __future__ import annotations

import re

from torch import nn

__all__ = ["VALUE", "NamedOnDisk", "name_on_disk"]

RENAMED = (  # pattern of a model's attribute, name on disk
    (r"source\.(embedding|positions)\.", r"src_\1."),
    (r"target\.(embedding|positions)\.", r"tgt_\1."),
    (r"(encoder|decoder)\.layers\.", r"\1."),
    (r"(encoder|decoder)\.norm\.", r"\1_norm."),
    (r"output_projections\.", "answers."),
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

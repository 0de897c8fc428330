"""The names of weights on disk: what files call a tensor, whatever attribute of a model holds it.

Names on disk stay when modules are rearranged; this is where the two meet.
"""

from __future__ import annotations

import re

from torch import nn

__all__ = ["NamedOnDisk", "name_on_disk"]

RENAMED = (  # attribute of a model, name on disk
    (r"source\.(embedding|positions)\.", r"src_\1."),
    (r"target\.(embedding|positions)\.", r"tgt_\1."),
    (r"(encoder|decoder)\.layers\.", r"\1."),
    (r"(encoder|decoder)\.norm\.", r"\1_norm."),
)


def name_on_disk(attribute: str) -> str:
    """What files call the weight that is ``attribute`` of a model.

    >>> name_on_disk("decoder.layers.0.feed_forward.w_1.weight")
    'decoder.0.feed_forward.w_1.weight'
    """
    for pattern, name in RENAMED:
        attribute = re.sub(f"^{pattern}", name, attribute)
    return attribute


class NamedOnDisk(nn.Module):
    """A model whose files have names of their own for its weights."""

    def canonical(self) -> dict[str, nn.Parameter]:
        """Every weight once, by its name on disk: a tied matrix is one tensor, of its first name."""
        return {name_on_disk(name): weight for name, weight in self.named_parameters()}

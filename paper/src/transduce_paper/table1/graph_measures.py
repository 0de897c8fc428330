"""Two measures of Table 1 taken from a computation: chains of dependent operations and links between positions.

Shapes: T positions, D width of a state.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

__all__ = ["links_of", "longest_chain", "longest_path"]


class _Chains(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Records for each tensor the longest chain of operations that it depends on.

    Chains belong to memory: a view has the chain of its tensor, and writing into a tensor makes its chain longer.
    """

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._length_of: dict[int, int] = {}
        self._alive: list[Tensor] = []  # keeps tensors alive, so that no address is reused

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        out = func(*args, **(kwargs or {}))
        read, made = _tensors((args, kwargs)), _tensors(out)
        before = max(map(self.length, read), default=0)
        shared = {_memory(tensor) for tensor in read}
        for tensor in made:
            is_view = _memory(tensor) in shared and not func._schema.is_mutable
            self._length_of[_memory(tensor)] = before + (0 if is_view or not read else 1)
        self._alive += made
        return out

    def length(self, tensor: Tensor) -> int:
        return self._length_of.get(_memory(tensor), 0)


def _tensors(values: object) -> list[Tensor]:
    return [leaf for leaf in tree_leaves(values) if isinstance(leaf, Tensor)]


def _memory(tensor: Tensor) -> int:
    address: int = tensor.untyped_storage()._cdata
    return address


def longest_chain(compute: Callable[[], Tensor]) -> int:
    """Return the number of sequential operations: the longest chain of dependent operations up to the result.

    An operation is one torch call that writes numbers, however many; a sum or a matrix product is one, as in the
    paper's O(1). A view is none.

    >>> x = torch.ones(3)
    >>> longest_chain(lambda: (x + 1) * (x + 2)), longest_chain(lambda: ((x + 1) * 2).view(1, 3))
    (2, 2)
    """
    chains = _Chains()
    with torch.no_grad(), chains:
        return chains.length(compute())


def links_of(step: Callable[[Tensor], Tensor], state_TD: Tensor) -> Tensor:
    """Return which positions a step links, (T, T): true if its output at the row depends on its input at the column.

    ``step`` maps states (B, T, D), each sentence independently. Dependence is a non-zero derivative of a random
    projection of the output, at this state.
    """
    n_positions = len(state_TD)
    state_TTD = state_TD.expand(n_positions, -1, -1).clone().requires_grad_()
    out_TTD = step(state_TTD)
    generator = torch.Generator(device=state_TD.device).manual_seed(1)
    weight_D = torch.randn(out_TTD.shape[-1], generator=generator, dtype=out_TTD.dtype, device=out_TTD.device)
    own_TD = out_TTD.diagonal().T  # of each copy of the sentence, the output at another position
    (gradient_TTD,) = torch.autograd.grad((own_TD @ weight_D).sum(), state_TTD)
    return gradient_TTD.abs().sum(dim=-1) > 0


def longest_path(layers: Iterable[Tensor], *, is_causal: bool) -> int | None:
    """Return the maximum path length: the layers needed to link the two most distant positions, breadth first.

    ``layers`` are the links (T, T) of the first layer, of the second, ...; a signal may also stay where it is. Causal
    layers need to link a position only to earlier ones. None if all layers, or T of them, leave two positions unlinked.

    >>> from itertools import repeat
    >>> to_the_next = torch.diag(torch.ones(3), -1) > 0
    >>> longest_path(repeat(to_the_next), is_causal=True)
    3
    """
    reached_TT: Tensor | None = None
    for n_layers, links_TT in enumerate(layers, start=1):
        identity_TT = torch.eye(len(links_TT), dtype=torch.bool)
        step_TT = links_TT.cpu() | identity_TT
        reached_TT = step_TT if reached_TT is None else (step_TT.float() @ reached_TT.float()) > 0
        required_TT = torch.ones_like(identity_TT).tril() if is_causal else torch.ones_like(identity_TT)
        if bool(reached_TT[required_TT].all()):
            return n_layers
        if n_layers >= len(links_TT):
            return None
    return None

"""Two measures of Table 1 that are read off a computation itself: chains of operations, and links between positions.

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
    """Remembers, for each tensor, the longest chain of operations that had to come before it.

    Memory is what counts: a view of a tensor is as late as the tensor, and a tensor written into is later than before.
    """

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._length_of: dict[int, int] = {}
        self._alive: list[Tensor] = []  # an address stands for one tensor only as long as that lives

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
    """Sequential operations: the longest chain, each of which needs what the one before it gave, up to the result.

    An operation is one call of torch's that writes numbers, however many at once; a sum or a matrix product is one, as
    in the paper's O(1). Looking at numbers in another shape is none.

    >>> x = torch.ones(3)
    >>> longest_chain(lambda: (x + 1) * (x + 2)), longest_chain(lambda: ((x + 1) * 2).view(1, 3))
    (2, 2)
    """
    chains = _Chains()
    with torch.no_grad(), chains:
        return chains.length(compute())


def links_of(step: Callable[[Tensor], Tensor], state_TD: Tensor) -> Tensor:
    """Which positions one step links: (T, T), true where the step's output at the row reads its input at the column.

    ``step`` takes states of several sentences, (B, T, D), each apart. Found by derivatives, at this state and of a
    random sum over the width.
    """
    n_positions = len(state_TD)
    state_TTD = state_TD.expand(n_positions, -1, -1).clone().requires_grad_()
    out_TTD = step(state_TTD)
    generator = torch.Generator(device=state_TD.device).manual_seed(1)
    weight_D = torch.randn(out_TTD.shape[-1], generator=generator, dtype=out_TTD.dtype, device=out_TTD.device)
    own_TD = out_TTD.diagonal().T  # of each copy of the sentence, the output at another position
    (slope_TTD,) = torch.autograd.grad((own_TD @ weight_D).sum(), state_TTD)
    return slope_TTD.abs().sum(dim=-1) > 0


def longest_path(layers: Iterable[Tensor], *, is_causal: bool) -> int | None:
    """The most layers that a signal needs from one position to another, on its shortest way; breadth first.

    ``layers``: the links (T, T) of the first layer, of the second, ...; where a signal is, it may also stay. Causal
    layers need to link a position only with what is before it. None if all of them, or as many as there are positions,
    leave two positions apart.

    >>> from itertools import repeat
    >>> to_the_next = torch.diag(torch.ones(3), -1) > 0
    >>> longest_path(repeat(to_the_next), is_causal=True)
    3
    """
    reached_TT: Tensor | None = None
    for n_layers, links_TT in enumerate(layers, start=1):
        stays_TT = torch.eye(len(links_TT), dtype=torch.bool)
        step_TT = links_TT.cpu() | stays_TT
        reached_TT = step_TT if reached_TT is None else (step_TT.float() @ reached_TT.float()) > 0
        wanted_TT = torch.ones_like(stays_TT).tril() if is_causal else torch.ones_like(stays_TT)
        if bool(reached_TT[wanted_TT].all()):
            return n_layers
        if n_layers >= len(links_TT):
            return None
    return None

"""The module tree of a model as text: names, shapes, parameters."""

from __future__ import annotations

from collections.abc import Iterator

from torch import nn

__all__ = ["describe"]


def describe(model: nn.Module) -> str:
    """Describe each module in one line with its parameters; identical layers appear once, shared modules as references.

    >>> print(describe(nn.Sequential(nn.Linear(2, 3), nn.ReLU())))
    Sequential                                                                  9
      0: Linear  weight (3, 2), bias (3)                                        9
      1: ReLU
    """
    return "\n".join(_lines(model, "", "", 0, {}))


def _lines(module: nn.Module, name: str, path: str, depth: int, seen: dict[int, str]) -> Iterator[str]:
    kind = type(module).__name__
    if id(module) in seen:
        yield f"{'  ' * depth}{name}: {kind}  shared with {seen[id(module)]}"
        return
    seen[id(module)] = path
    own = [f"{key} {_shape(weight)}" for key, weight in module.named_parameters(recurse=False)]
    text = f"{'  ' * depth}{name + ': ' if name else ''}{kind}{'  ' if own else ''}{', '.join(own)}"
    n_parameters = sum(weight.numel() for weight in module.parameters())
    yield f"{text:<64} {n_parameters:>12,}" if n_parameters else text
    if isinstance(module, nn.ModuleList) and len({_shapes(layer) for layer in module}) == 1:
        yield from _lines(module[0], f"{len(module)} x", f"{path}.0", depth + 1, seen)
        return
    # Not named_children(): it skips modules that appear a second time.
    for key, child in module._modules.items():
        if child is not None:
            yield from _lines(child, key, f"{path}.{key}" if path else key, depth + 1, seen)


def _shape(weight: nn.Parameter) -> str:
    return f"({', '.join(map(str, weight.shape))})"


def _shapes(module: nn.Module) -> tuple[tuple[str, str], ...]:
    """The parameters' names and shapes. Layers are identical if these are equal."""
    return tuple((name, _shape(weight)) for name, weight in module.named_parameters())

"""PyTorch's engine: it supports every model of the package, on CPUs and GPUs."""

from transduce.inference.torch_engine import torch_engine as make

__all__ = ["make"]

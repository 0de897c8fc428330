"""A translator of another library, read and put into our terms: what all importers return.

Shapes: V vocabulary, D d_model, O outputs of a projection, I its inputs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from transduce.config import SearchConfig, TransformerConfig
from transduce.errors import CheckpointError, quoted, shown
from transduce.exchange.plain_weights import PlainModel, with_rows
from transduce.files.regular import open_regular
from transduce.text import BOS_ID, PAD_ID, Tokenizers

__all__ = [
    "SUPPRESSED", "UNNAMED", "ForeignModel", "NumberedVocabulary", "TensorSource", "read_bounded", "renumbered",
    "whole_number",
]  # fmt: skip

MAX_TOKENIZER_BYTES = 64 * 2**20  # of a SentencePiece model or a vocabulary file
MAX_NUMBER = 2**63 - 1
UNNAMED = "<unnamed_"  # begins the names of rows that a vocabulary does not name
SUPPRESSED = -1e4  # logit bias of a row that the other model does not have


@dataclass(frozen=True, slots=True)
class ForeignModel:
    """A model read from another library's files, its features and tokens in our order."""

    format: str  # "Hugging Face Marian"
    config: TransformerConfig
    weights: PlainModel
    tokenizers: Tokenizers
    search: SearchConfig
    direction: str | None  # "en-de" if the source says so
    notes: tuple[str, ...] = ()  # what is different here, for the card


@dataclass(frozen=True, slots=True)
class NumberedVocabulary:
    """The pieces of a vocabulary with the other library's numbers, and its special tokens."""

    pieces: Mapping[str, int]
    pad_id: int
    start_id: int
    eos_id: int
    unk_id: int
    suppressed: tuple[int, ...] = ()  # never written


class TensorSource:
    """Named tensors of a file, each taken once, with its shape checked."""

    def __init__(self, tensors: Mapping[str, Tensor], *, where: Path) -> None:
        self._tensors, self._where = dict(tensors), where

    def take(self, name: str, *shape: int) -> Tensor:
        """Remove and return a tensor in fp32.

        Raises CheckpointError if it is missing, of another shape or kind, or not finite.
        """
        tensor = self._tensors.pop(name, None)
        if tensor is None:
            raise CheckpointError(f"{self._where} has no tensor {name}; it is no complete model of this kind")
        if not _is_plain(tensor):
            raise CheckpointError(
                f"{self._where}: tensor {name} is not a plain array of floating-point numbers, but {_kind(tensor)}"
            )
        if tuple(tensor.shape) != shape:
            raise CheckpointError(
                f"{self._where}: tensor {name} has the shape {tuple(tensor.shape)}, its configuration asks for {shape}"
            )
        tensor = tensor.to(torch.float32)
        if not bool(tensor.isfinite().all()):
            raise CheckpointError(f"{self._where}: tensor {name} has values that are not finite (NaN or Inf)")
        return tensor

    def has(self, name: str) -> bool:
        """Whether a tensor is still there."""
        return name in self._tensors

    def drop(self, *names: str) -> None:
        """Remove tensors that are not needed."""
        for name in names:
            self._tensors.pop(name, None)

    def require_empty(self) -> None:
        """Raise CheckpointError if a tensor was not taken: the model computes something that ours does not."""
        if self._tensors:
            some = ", ".join(shown(name) for name in sorted(self._tensors)[:3])
            raise CheckpointError(f"{self._where} has {len(self._tensors)} tensors without a place here: {some}")


def _is_plain(tensor: Tensor) -> bool:
    is_dense = tensor.layout is torch.strided and not tensor.is_nested and not tensor.is_quantized
    return is_dense and not tensor.is_meta and tensor.is_floating_point()


def _kind(tensor: Tensor) -> str:
    if tensor.is_meta:
        return "without values (on the device 'meta')"
    layout = "nested" if tensor.is_nested else str(tensor.layout).removeprefix("torch.").replace("strided", "")
    return f"{layout} {str(tensor.dtype).removeprefix('torch.')}".strip()


def renumbered(model: PlainModel, tokenizers: Tokenizers) -> PlainModel:
    """Put the rows of embeddings and output in the order of our ids; BOS and PAD may come from one row there."""
    src, tgt = (torch.tensor(side.original_ids) for side in (tokenizers.src, tokenizers.tgt))  # type: ignore[attr-defined]
    bias_O = model.output.bias_O[tgt]
    if int(tgt[PAD_ID]) == int(tgt[BOS_ID]):  # one token there: only BOS may have a share of the softmax
        bias_O[PAD_ID] = SUPPRESSED
    return with_rows(model, lambda rows_VD: rows_VD[src], lambda rows_VD: rows_VD[tgt], bias_O)


def read_bounded(path: Path) -> bytes:
    """Read a small file. Raises CheckpointError if it is missing, not a file, or absurdly large."""
    try:
        with open_regular(path, error=CheckpointError, may_be_link=True) as stream:
            content = stream.read(MAX_TOKENIZER_BYTES + 1)
    except OSError as error:
        raise CheckpointError(f"{path} cannot be read: {error.strerror or error}") from error
    if len(content) > MAX_TOKENIZER_BYTES:
        raise CheckpointError(f"{path} is larger than {MAX_TOKENIZER_BYTES // 2**20} MiB; it is no tokenizer file")
    return content


def whole_number(values: Mapping[str, Any], name: str, *, where: Path, default: int | None = None) -> int:
    """Return a whole number of a configuration. Raises CheckpointError if it is missing, huge or something else."""
    value = values.get(name, default)
    if type(value) is not int or abs(value) > MAX_NUMBER:
        raise CheckpointError(f"{where}: {name} should be a whole number, got {quoted(value)}")
    return value

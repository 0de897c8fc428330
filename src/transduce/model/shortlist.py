"""Vocabulary shortlists: the output layer scores only the likely translations of a sentence's source tokens.

The product with the output matrix and the softmax over the vocabulary take a large part of a decoding step. A shortlist
has some target tokens for each source token, and the frequent ones; only those of a sentence's tokens are scored. The
product is over the union of the batch, but a sentence's other tokens have probability zero, so that no translation
depends on the rest of its batch. After Jean et al. (2015), section 3.3.

Shapes: V vocabulary, R target tokens of each source token, P frequent target tokens.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from transduce.imports import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["Shortlist"]


@dataclass(frozen=True, slots=True, eq=False)
class Shortlist:
    """The target tokens to score: those of each source token, and those scored in every sentence."""

    candidates_VR: NDArray[np.int32]
    frequent_P: NDArray[np.int32]

    @property
    def sizes(self) -> tuple[int, int]:
        """The number of tokens of each source token, and of those scored in every sentence."""
        return self.candidates_VR.shape[1], len(self.frequent_P)

"""How an output is looked for: beam search, or the likeliest symbol at each step."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Self

from pydantic import BeforeValidator, Discriminator, Field, model_validator

from transduce.config.record import Count, Tagged

MAX_BEAM_SIZE, MAX_ALPHA = 1000, 100.0
BeamSize = Annotated[int, Field(ge=1, le=MAX_BEAM_SIZE)]
ExtraTokens = Annotated[int, Field(ge=0, le=10_000)]
PenaltyExponent = Annotated[float, Field(ge=0.0, le=MAX_ALPHA)]
InferencePrecision = Literal["fp32", "bf16", "int8"]


class SearchConfig(Tagged):
    """A way to search: what all of them have. Calling it makes the record of ``kind``."""

    tag: ClassVar[str] = "kind"
    default_tag: ClassVar[str] = "beam"
    members: ClassVar[dict[str, type[Tagged]]] = {}

    kind: str
    alpha: PenaltyExponent = 0.6  # of the length penalty ((5 + length) / 6) ^ alpha, in scores
    max_extra_tokens: ExtraTokens = 50  # an output has at most input length + this many tokens
    max_tokens_per_batch: Count = 4000  # rows x longest of the source, of sentences searched together

    if TYPE_CHECKING:  # it takes what its members take, and each of them tells these

        def __init__(self, **values: Any) -> None: ...

        @property
        def beam_size(self) -> int:
            """How many outputs are looked at together."""

        @property
        def n_best(self) -> int:
            """How many outputs are found."""


class BeamSearchConfig(SearchConfig):
    """Section 6.1: beam search."""

    kind: Literal["beam"] = "beam"
    beam_size: BeamSize = 4  # 1 is greedy search
    n_best: BeamSize = 1  # hypotheses returned for a sentence

    @model_validator(mode="after")
    def _beam_holds_n_best(self) -> Self:
        if self.n_best > self.beam_size:
            raise ValueError(f"n_best must be at most beam_size, got {self.n_best} > {self.beam_size}")
        return self


class GreedySearchConfig(SearchConfig):
    """Greedy search: always the most probable symbol."""

    kind: Literal["greedy"] = "greedy"
    beam_size: ClassVar[int] = 1
    n_best: ClassVar[int] = 1


# One record of every way to search.
AnySearchConfig = Annotated[
    BeamSearchConfig | GreedySearchConfig, Discriminator("kind"), BeforeValidator(SearchConfig.named)
]

"""Search settings: beam search, greedy search, sampling, mask-predict.

A field is a setting of recipes and model folders. A ``Flag`` makes it an option of the command line, and its line in
``SearchKeywords`` one of Python; all else follows (``decoding.py``).
"""

# Annotations are no strings here, which pydantic would compile one by one: a third of the time of the import.

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Self, TypedDict

from pydantic import BeforeValidator, Discriminator, Field, model_validator

from transduce.config.record import Count, Seed, Tagged

MAX_BEAM_SIZE, MAX_ALPHA, MAX_ITERATIONS = 1000, 100.0, 1000
N_DRAFTED = 7  # tokens that a smaller model drafts for a pass, at most
MIN_DRAFT_PROBABILITY = 0.6  # it stops after a token that it gives less
BeamSize = Annotated[int, Field(ge=1, le=MAX_BEAM_SIZE)]
ExtraTokens = Annotated[int, Field(ge=0, le=10_000)]
PenaltyExponent = Annotated[float, Field(ge=0.0, le=MAX_ALPHA)]
Temperature = Annotated[float, Field(ge=0.0, le=1000.0)]
TopP = Annotated[float, Field(gt=0.0, le=1.0)]
InferencePrecision = Literal["fp32", "bf16", "int8"]
TextFormat = Literal["text", "html", "xml"]  # of what is translated
# Which texts of a file with translations of its own (PO, XLIFF) are translated: those without one, also those that the
# file calls unsure, or all.
Wanted = Literal["empty", "fuzzy", "all"]


MAX_OUTPUT_TOKENS = 10_000  # of limits on the command line


@dataclass(frozen=True, slots=True)
class Flag:
    """The option of the command line that sets a field."""

    name: str
    help: str
    max: int | None = None  # if it is below that of the field
    default: int | None = None  # None: the model's
    value: str | None = None  # what the option, which takes no value, sets


class SearchConfig(Tagged):
    """The fields that all searches share. Calling it creates the record of the given ``kind``."""

    tag: ClassVar[str] = "kind"
    default_tag: ClassVar[str] = "beam"
    members: ClassVar[dict[str, type[Tagged]]] = {}

    kind: Annotated[
        str,
        Flag(
            "--sample",
            "Draw each token from the model's distribution instead of searching for the best.",
            value="sampling",
        ),
    ]  # how outputs are found
    alpha: Annotated[PenaltyExponent, Flag("--alpha", "Use this length penalty exponent. Default: the model's.")] = (
        0.6  # exponent of the length penalty ((5 + length) / 6) ^ alpha
    )
    max_extra_tokens: ExtraTokens = 50  # an output has at most input length + this many tokens
    max_length: Annotated[
        Count | None,
        Flag("--max-length", "Write at most this many tokens for each sentence, its end included.", MAX_OUTPUT_TOKENS),
    ] = None  # nor more than this many, EOS included
    max_tokens_per_batch: Count = 4000  # rows x longest source sentence of a search batch

    if TYPE_CHECKING:  # calling the base accepts the fields of its members; all members have these properties

        def __init__(self, **values: Any) -> None: ...

        @property
        def beam_size(self) -> int:
            """The number of hypotheses kept per step."""

        @property
        def n_best(self) -> int:
            """The number of hypotheses returned per sentence."""

    @property
    def changed(self) -> frozenset[str]:
        """The fields that have another value than their default."""
        fields = type(self).model_fields
        return frozenset(name for name, field in fields.items() if getattr(self, name) != field.default)

    def max_output_tokens(self, n_source_tokens: int) -> int:
        """Return the maximum length of an output, EOS included, for a source of so many tokens."""
        limit = n_source_tokens + self.max_extra_tokens
        return limit if self.max_length is None else min(limit, self.max_length)


class ProcessedSearchConfig(SearchConfig):
    """The fields that change the log-probabilities of each step, by the processors of ``search/requested.py``."""

    min_length: Annotated[
        int,
        Field(ge=0, le=MAX_OUTPUT_TOKENS),
        Flag("--min-length", "Write at least this many tokens for each sentence."),
    ] = 0  # an output has at least this many tokens, EOS left out
    no_repeat_ngram: Annotated[
        Count | None,
        Flag("--no-repeat-ngram", "Write no sequence of this many tokens twice in a sentence.", MAX_OUTPUT_TOKENS),
    ] = None  # no n-gram of this many tokens occurs twice in an output

    def max_output_tokens(self, n_source_tokens: int) -> int:
        """Return the maximum length of an output, EOS included, with room for ``min_length``."""
        return super().max_output_tokens(max(n_source_tokens, self.min_length + 1 - self.max_extra_tokens))

    @model_validator(mode="after")
    def _lengths_are_in_order(self) -> Self:
        if self.max_length is not None and self.min_length >= self.max_length:
            got = f"{self.min_length} and {self.max_length}"
            raise ValueError(f"min_length must be below max_length, which counts the end of an output, got {got}")
        return self


class BeamSearchConfig(ProcessedSearchConfig):
    """Beam search. Section 6.1."""

    kind: Literal["beam"] = "beam"
    beam_size: Annotated[BeamSize, Flag("--beam", "Search with this beam size; 1 is greedy. Default: the model's.")] = (
        4  # 1 is greedy search
    )
    n_best: Annotated[BeamSize, Flag("--n-best", "Print n-best lists: line number TAB score TAB translation.")] = (
        1  # hypotheses returned per sentence
    )

    @model_validator(mode="after")
    def _beam_holds_n_best(self) -> Self:
        if self.n_best > self.beam_size:
            raise ValueError(f"n_best must be at most beam_size, got {self.n_best} > {self.beam_size}")
        return self


class GreedySearchConfig(ProcessedSearchConfig):
    """Greedy search: the most probable token at each step. A model with several heads proposes blocks of tokens."""

    kind: Literal["greedy"] = "greedy"
    block_size: Count | None = None  # tokens that are proposed at once, at most those of the model; None: all of these
    beam_size: ClassVar[int] = 1
    n_best: ClassVar[int] = 1


class SampledSearchConfig(SearchConfig):
    """Sampling: each token is drawn from the model's distribution; the seed and the source decide the draws."""

    kind: Literal["sampling"] = "sampling"
    temperature: Annotated[Temperature, Flag("--temperature", "Divide the logits of draws by this. Default: 1.")] = (
        1.0  # divides the logits
    )
    top_k: Annotated[Count | None, Flag("--top-k", "Sample from this many most probable tokens only.")] = (
        None  # draw from the k most probable tokens
    )
    top_p: Annotated[TopP | None, Flag("--top-p", "Sample from the fewest tokens with at least this probability.")] = (
        None  # draw from the fewest tokens with at least this probability
    )
    seed: Annotated[Seed, Flag("--seed", "Draw with this seed; the same gives the same text.", default=1)] = (
        1  # of the draws
    )
    beam_size: ClassVar[int] = 1
    n_best: ClassVar[int] = 1


class MaskPredictSearchConfig(SearchConfig):
    """Mask-predict (Ghazvininejad et al., 2019), for models of the task of that name."""

    kind: Literal["mask-predict"] = "mask-predict"
    n_iterations: Annotated[
        int,
        Field(ge=1, le=MAX_ITERATIONS),
        Flag("--iterations", "With a model of mask-predict: predict the tokens this many times. Default: the model's."),
    ] = 10  # 1: plain non-autoregressive decoding
    n_lengths: BeamSize = 5  # lengths that are tried for each sentence
    beam_size: ClassVar[int] = 1
    n_best: ClassVar[int] = 1


# The union of all searches.
AnySearchConfig = Annotated[
    BeamSearchConfig | GreedySearchConfig | SampledSearchConfig | MaskPredictSearchConfig,
    Discriminator("kind"),
    BeforeValidator(SearchConfig.with_tag),
]


class SearchKeywords(TypedDict, total=False):
    """The fields of all searches but ``n_best``, as keyword arguments; None, or a missing one, keeps the model's."""

    kind: Literal["beam", "greedy", "sampling", "mask-predict"] | None
    beam_size: int | None
    alpha: float | None
    max_extra_tokens: int | None
    min_length: int | None
    max_length: int | None
    max_tokens_per_batch: int | None
    no_repeat_ngram: int | None
    block_size: int | None
    temperature: float | None
    top_k: int | None
    top_p: float | None
    seed: int | None
    n_iterations: int | None
    n_lengths: int | None

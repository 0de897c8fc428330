"""The architecture: one record for each system.

A record has only the fields that its system reads, so a key of another system is refused. A new system is a record, an
entry in ``AnyModelConfig``, and a case in ``make_model`` and in ``cost_of``, which mypy demands.
"""

# Annotations are no strings here, which pydantic would compile one by one: a third of the time of the import.

from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Self

from pydantic import AfterValidator, BeforeValidator, Discriminator, Field, model_validator

from transduce.config.record import MAX_VOCABULARY_SIZE, Fraction, Record, Tagged, config_from_mapping


def _even(width: int) -> int:
    if width % 2:
        raise ValueError(f"should be even, since half of it is also a width, got {width}")
    return width


def _odd(width: int) -> int:
    if width % 2 == 0:
        raise ValueError(f"should be odd for centred convolutions, got {width}")
    return width


Layers = Annotated[int, Field(ge=1, le=1000)]
Width = Annotated[int, Field(ge=1, le=10**6)]
EvenWidth = Annotated[Width, AfterValidator(_even)]
Heads = Annotated[int, Field(ge=1, le=10_000)]
HeadWidth = Annotated[int, Field(ge=1, le=100_000)]
Experts = Annotated[int, Field(ge=1, le=10_000)]
KernelWidth = Annotated[int, Field(ge=1, le=10_000), AfterValidator(_odd)]
Positions = Annotated[int, Field(ge=1, le=10**7)]
NormEps = Annotated[float, Field(gt=0.0, le=1.0)]
Activation = Literal["relu", "gelu", "gelu-tanh", "swish"]
VocabularySize = Annotated[int, Field(ge=4, le=MAX_VOCABULARY_SIZE)]


class ModelConfig(Tagged):
    """The fields that all systems share. Calling it creates the record of the given ``system``."""

    tag: ClassVar[str] = "system"
    default_tag: ClassVar[str] = "transformer"
    members: ClassVar[dict[str, type[Tagged]]] = {}

    system: str  # the Transformer, a baseline of Table 2, or a language model
    d_model: Width = 512  # width of the residual stream
    p_drop: Fraction = 0.1  # P_drop: sublayer outputs and embeddings (section 5.4)

    if TYPE_CHECKING:  # calling the base accepts the fields of its members

        def __init__(self, **values: Any) -> None: ...

    @property
    def layer_counts(self) -> tuple[int, ...]:
        """The number of layers of each stack: encoder and decoder, or one."""
        raise NotImplementedError

    @property
    def vocab_sizes(self) -> tuple[int, int]:
        """The sizes of the source and the target vocabulary."""
        raise NotImplementedError

    def with_vocabulary(self, src_vocab_size: int, tgt_vocab_size: int) -> Self:
        """Return the same architecture with other vocabulary sizes. Raises ConfigError if they do not fit it."""
        raise NotImplementedError

    def layers_in_words(self) -> str:
        """Return the numbers of layers as messages show them.

        >>> ModelConfig(n_encoder_layers=6, n_decoder_layers=3).layers_in_words()
        '6 + 3 layers'
        """
        return f"{' + '.join(map(str, self.layer_counts))} layers"


class EncoderDecoderConfig(ModelConfig):
    """The fields of all encoder-decoders."""

    n_encoder_layers: Layers = 6  # N, layers of the encoder
    n_decoder_layers: Layers = 6  # N, layers of the decoder
    # Which of source embedding, target embedding and output projection are tied (section 3.4): all, the last two, none.
    embeddings: Literal["three-way", "target", "separate"] = "three-way"
    src_vocab_size: VocabularySize = 37_000  # set from the tokenizer when a run starts
    tgt_vocab_size: VocabularySize = 37_000  # set from the tokenizer when a run starts

    @model_validator(mode="after")
    def _vocabularies_fit(self) -> Self:
        if self.embeddings == "three-way" and self.src_vocab_size != self.tgt_vocab_size:
            raise ValueError(
                f"three-way embeddings need one vocabulary, got src_vocab_size {self.src_vocab_size} and "
                f"tgt_vocab_size {self.tgt_vocab_size}; use embeddings = 'target' or 'separate'"
            )
        return self

    @property
    def layer_counts(self) -> tuple[int, ...]:
        """The number of layers of encoder and decoder."""
        return self.n_encoder_layers, self.n_decoder_layers

    @property
    def vocab_sizes(self) -> tuple[int, int]:
        """The sizes of the source and the target vocabulary."""
        return self.src_vocab_size, self.tgt_vocab_size

    def with_vocabulary(self, src_vocab_size: int, tgt_vocab_size: int) -> Self:
        """Return the same architecture with other vocabulary sizes. Raises ConfigError if they cannot be tied."""
        fields = self.model_dump() | {"src_vocab_size": src_vocab_size, "tgt_vocab_size": tgt_vocab_size}
        return config_from_mapping(type(self), fields, where="model")


class StackFields(Record):
    """The layers of one or several stacks, and positions: the columns of Table 3, and options beyond the paper."""

    d_ff: Width = 2048  # inner width of the feed-forward network (section 3.3)
    n_heads: Heads = 8  # h, the number of heads (section 3.2.2)
    d_k: HeadWidth = 64  # width of queries and keys per head
    d_v: HeadWidth = 64  # width of values per head
    # The score of a query and a key (section 3.2.1): q . k / sqrt(d_k), q . k, sqrt(d_k) cos(q, k), v . tanh(q + k),
    # q . A k / sqrt(d_k).
    compatibility: Literal["scaled", "dot", "cosine", "additive", "bilinear"] = "scaled"
    # Self-attention over all positions, or over a neighbourhood of r positions (section 4). It is centred in an encoder
    # and a bidirectional model, where r is odd; in a causal stack, it is a position and the r - 1 before it.
    attention: Literal["full", "restricted"] = "full"
    neighbourhood: Annotated[int, Field(ge=1, le=10**6)] = 65  # r, of restricted attention
    attention_bias: bool = False  # biases in the projections of attention; the paper has none
    activation: Activation = "relu"  # of the feed-forward network (section 3.3); gelu-tanh is GPT-2's approximation
    norm_eps: NormEps = 1e-6  # added to the variance in layer norms; the authors' code (the paper gives none)
    output_bias: bool = False  # a bias of the output projection
    scale_embeddings: bool = True  # multiply token embeddings by sqrt(d_model) (section 3.4)
    p_drop_attention: Fraction = 0.0  # dropout of the attention weights (section 5.4 of the early version, 6.3)
    p_drop_relu: Fraction = 0.0  # dropout inside the feed-forward network
    # Section 3.5; Table 3 (E). "words": half of the sinusoids encode the position, half the number of words so far.
    positions: Literal["sinusoidal", "learned", "words"] = "sinusoidal"
    n_positions: Positions = 1024  # size of a learned position embedding
    norm: Literal["post", "pre"] = "post"  # LayerNorm(x + Sublayer(x)), or x + Sublayer(LayerNorm(x))
    n_experts: Experts = 1  # feed-forward experts per layer (Shazeer et al., 2017); 1 is the paper's network
    n_active_experts: Experts = 2  # experts per position

    def _require_centre(self) -> None:
        if self.attention == "restricted" and self.neighbourhood % 2 == 0:
            raise ValueError(
                f"neighbourhood should be odd where a position is its centre, in encoders, got {self.neighbourhood}"
            )

    @model_validator(mode="after")
    def _experts_fit(self) -> Self:
        if 1 < self.n_experts < self.n_active_experts:
            raise ValueError(f"n_active_experts {self.n_active_experts} is above n_experts {self.n_experts}")
        return self


class TransformerConfig(StackFields, EncoderDecoderConfig):
    """The Transformer: the columns of Table 3, and options beyond the paper."""

    system: Literal["transformer"] = "transformer"
    # What the encoder reads (section 7): tokens, patches of an image, or frames of audio. All else stays the same.
    source: Literal["tokens", "patches", "frames"] = "tokens"
    source_width: Width = 32  # of other sources than tokens: the height of images in pixels, or the bands of a frame
    patch_height: Width = 16  # of image patches, in pixels; a divisor of source_width
    patch_width: Width = 8  # of image patches, in pixels
    # The decoder sees earlier positions, or all of them, some masked (Ghazvininejad et al., 2019); set by the task.
    decoder: Literal["causal", "masked"] = "causal"
    # Blockwise parallel decoding (Stern et al., 2018): tokens proposed at once, by as many heads; 1 is the paper.
    block_size: Annotated[int, Field(ge=1, le=64)] = 1

    @model_validator(mode="after")
    def _positions_fit(self) -> Self:
        self._require_centre()
        _require_even_for_sinusoids(self.d_model, self.positions)
        if self.positions == "words" and self.d_model % 4:
            raise ValueError(f"positions = 'words' needs a d_model divisible by 4, got {self.d_model}")
        return self

    @model_validator(mode="after")
    def _decoder_fits(self) -> Self:
        if self.decoder == "masked" and (self.block_size > 1 or self.positions == "words"):
            got = f"block_size = {self.block_size}" if self.block_size > 1 else "positions = 'words'"
            raise ValueError(f"decoder = 'masked' needs block_size = 1 and positions of tokens, got {got}")
        return self

    @model_validator(mode="after")
    def _source_fits(self) -> Self:
        if self.source == "tokens":
            return self
        if self.positions == "words":
            raise ValueError(f"positions = 'words' needs source = 'tokens', got source = {self.source!r}")
        if self.source == "patches" and self.source_width % self.patch_height:
            raise ValueError(
                f"patch_height should divide source_width, the height of images, got {self.patch_height} and"
                f" {self.source_width}"
            )
        if self.d_model % (4 if self.source == "patches" else 2):
            two = "two sinusoids of half the width" if self.source == "patches" else "sinusoids"
            raise ValueError(f"source = {self.source!r} has {two}, which d_model = {self.d_model} does not allow")
        return self

    @property
    def source_stride(self) -> int:
        """The columns of pixels of a patch, or the frames of audio for each position: two convolutions of stride 2."""
        return {"tokens": 1, "patches": self.patch_width, "frames": 4}[self.source]

    @property
    def n_source_rows(self) -> int:
        """The patches above each other in an image; 1 for other sources."""
        return self.source_width // self.patch_height if self.source == "patches" else 1

    def n_source_positions(self, n_columns: int) -> int:
        """Return the source positions of ``n_columns`` columns of pixels or frames of audio; the last may be padded.

        >>> TransformerConfig(source="patches", source_width=32, patch_height=16, patch_width=8).n_source_positions(20)
        6
        """
        return -(-n_columns // self.source_stride) * self.n_source_rows


class LanguageModelConfig(StackFields, ModelConfig):
    """A language model: one stack without a source, decoder-only (causal) or bidirectional."""

    system: Literal["language-model"] = "language-model"
    n_layers: Layers = 6  # N, layers
    vocab_size: VocabularySize = 37_000  # set from the tokenizer when a run starts
    tied_embeddings: bool = True  # embedding and output projection are one matrix (section 3.4)
    is_causal: bool = True  # each position sees itself and earlier ones; else all
    # A distribution of tokens, a number (the reward), or both, each from a stack of its own; set by the task.
    output: Literal["tokens", "scalar", "tokens-and-value"] = "tokens"
    n_positions: Positions = 1024  # length of the segments that it reads, its window; size of learned positions

    @model_validator(mode="after")
    def _positions_fit(self) -> Self:
        if self.positions == "words":
            raise ValueError("positions = 'words' needs system = 'transformer', got system = 'language-model'")
        if not self.is_causal:
            self._require_centre()
            if self.output != "tokens":
                raise ValueError(f"output = {self.output!r} needs is_causal = true")
        _require_even_for_sinusoids(self.d_model, self.positions)
        return self

    @property
    def layer_counts(self) -> tuple[int, ...]:
        """The number of layers."""
        return (self.n_layers,)

    @property
    def vocab_sizes(self) -> tuple[int, int]:
        """The size of the vocabulary, twice: there is no source."""
        return self.vocab_size, self.vocab_size

    def with_vocabulary(self, src_vocab_size: int, tgt_vocab_size: int) -> Self:
        """Return the same architecture with the vocabulary size of the target; there is no source."""
        return config_from_mapping(type(self), self.model_dump() | {"vocab_size": tgt_vocab_size}, where="model")


RecurrentCell = Literal["rnn", "lstm", "gru"]


class RecurrentConfig(EncoderDecoderConfig):
    """Recurrent layers with additive attention, like GNMT."""

    system: Literal["recurrent"] = "recurrent"
    d_model: EvenWidth = 512  # half of it per direction of the bidirectional first layer
    cell: RecurrentCell = "lstm"  # of each layer
    # "none": the context is the encoder's last state at every target position, all else equal.
    attention: Literal["additive", "none"] = "additive"


class LastStateConfig(EncoderDecoderConfig):
    """Recurrent seq2seq without attention: the decoder reads the encoder's last state."""

    system: Literal["last-state"] = "last-state"
    cell: RecurrentCell = "lstm"  # of each layer


class ConvS2SConfig(EncoderDecoderConfig):
    """Gated convolutions with attention in every decoder layer."""

    system: Literal["convs2s"] = "convs2s"
    kernel_width: KernelWidth = 3  # positions that a convolution sees
    positions: Literal["sinusoidal", "learned"] = "sinusoidal"  # section 3.5; Table 3 (E)
    n_positions: Positions = 1024  # size of a learned position embedding

    @model_validator(mode="after")
    def _fits(self) -> Self:
        _require_even_for_sinusoids(self.d_model, self.positions)
        return self


class ByteNetConfig(EncoderDecoderConfig):
    """Dilated convolutions with the decoder stacked on the encoder."""

    system: Literal["bytenet"] = "bytenet"
    d_model: EvenWidth = 512  # its convolutions have half this width
    kernel_width: KernelWidth = 3  # positions that a convolution sees


# The union of all systems. mypy reports each match statement that a new member must be added to.
AnyModelConfig = Annotated[
    TransformerConfig | RecurrentConfig | LastStateConfig | ConvS2SConfig | ByteNetConfig | LanguageModelConfig,
    Discriminator("system"),
    BeforeValidator(ModelConfig.with_tag),
]


def _require_even_for_sinusoids(d_model: int, positions: str) -> None:
    if d_model % 2 and positions == "sinusoidal":
        raise ValueError(f"d_model must be even for sinusoidal positions, got {d_model}")

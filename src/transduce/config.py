"""What can be chosen: frozen, strict records. Names are the paper's.

``RunConfig`` holds one record for each part of a run: model, data, training, search. Defaults are the paper's base
model and its recipe (sections 3, 5 and 6.1); what departs from the paper is a switch that is off.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self, TypeVar, assert_never, get_args

from pydantic import AfterValidator, BaseModel, ConfigDict, Discriminator, Field, Tag, ValidationError, model_validator
from pydantic_core import ErrorDetails

from transduce.errors import ConfigError, quoted, shown
from transduce.linearisation import Leaves

__all__ = [
    "LARGEST_ALPHA",
    "LARGEST_BEAM",
    "LARGEST_SEED",
    "LARGEST_VOCABULARY",
    "MOST_BATCHES",
    "MOST_MINUTES",
    "MOST_PAIRS",
    "SPLITS",
    "DataConfig",
    "InferencePrecision",
    "ModelConfig",
    "Precision",
    "RunConfig",
    "SearchConfig",
    "Split",
    "TrainingConfig",
    "config_from_mapping",
    "nearest_name",
]


# Past these limits a run does not end in the time, or fit into the memory, that anybody has, or a number overflows.
# They are far above what is of use: who meets one has made a slip.
LARGEST_SEED = 2**63 - 1
LARGEST_VOCABULARY = 10**7
LARGEST_BEAM = 1000
LARGEST_ALPHA = 100.0
MOST_BATCHES = MOST_MINUTES = 10**6  # of minutes, that is two years
MOST_PAIRS = 10**8
Count = Annotated[int, Field(ge=1, le=10**12)]
Natural = Annotated[int, Field(ge=0, le=10**12)]
Layers = Annotated[int, Field(ge=1, le=1000)]
Width = Annotated[int, Field(ge=1, le=10**6)]
Heads = Annotated[int, Field(ge=1, le=10_000)]
HeadWidth = Annotated[int, Field(ge=1, le=100_000)]
Experts = Annotated[int, Field(ge=1, le=10_000)]
KernelWidth = Annotated[int, Field(ge=1, le=10_000)]
Places = Annotated[int, Field(ge=1, le=10**7)]
Batches = Annotated[int, Field(ge=1, le=MOST_BATCHES)]
Pairs = Annotated[int, Field(ge=1, le=MOST_PAIRS)]
Copies = Annotated[int, Field(ge=1, le=1000)]  # of a pair or a tree
VocabularySize = Annotated[int, Field(ge=4, le=LARGEST_VOCABULARY)]
ByteLevelSize = Annotated[int, Field(ge=260, le=LARGEST_VOCABULARY)]  # 256 bytes and 4 special symbols
Seed = Annotated[int, Field(ge=0, le=LARGEST_SEED)]
BeamSize = Annotated[int, Field(ge=1, le=LARGEST_BEAM)]
ExtraTokens = Annotated[int, Field(ge=0, le=10_000)]
PenaltyExponent = Annotated[float, Field(ge=0.0, le=LARGEST_ALPHA)]
Minutes = Annotated[float, Field(gt=0, le=MOST_MINUTES)]
Factor = Annotated[float, Field(gt=0, le=10**6)]
Norm = Annotated[float, Field(gt=0, le=10**12)]
Share = Annotated[float, Field(ge=0.0, lt=1.0)]
WholeShare = Annotated[float, Field(ge=0.0, le=1.0)]
RatioLimit = Annotated[float, Field(ge=1.0, le=10**9)]
Precision = Literal["fp32", "bf16"]  # of training
InferencePrecision = Literal["fp32", "bf16", "int8"]
Split = Literal["train", "dev", "test"]
SPLITS: tuple[Split, ...] = get_args(Split)


def _without_nul(name: str) -> str:
    if "\0" in name:
        raise ValueError(f"no file has a NUL in its name, got {quoted(name)}")
    return name


FileName = Annotated[str, Field(min_length=1), AfterValidator(_without_nul)]

CORPUS_PATTERN, DIRECTION_PATTERN = r"^[A-Za-z0-9][A-Za-z0-9._-]*$", r"^[a-z]{2,3}-[a-z]{2,3}$"
PATTERNS_IN_WORDS: Mapping[str, str] = {
    CORPUS_PATTERN: "should be a name of letters, digits, '.', '_' and '-', as in multi30k",
    DIRECTION_PATTERN: "should be two languages, as in en-de",
}
CorpusName = Annotated[str, Field(pattern=CORPUS_PATTERN, max_length=100)]
Direction = Annotated[str, Field(pattern=DIRECTION_PATTERN)]
Weight = Annotated[float, Field(gt=0, le=1000)]

# Numbers that some would set to infinity: what says the same.
HOW_TO_SWITCH_OFF: Mapping[str, str] = {
    "max_length_ratio": "1e9 leaves all pairs in",
    "max_minutes": "leave it out for a run without limit",
    "checkpoint_every_minutes": "leave it out for none",
    "clip_norm": "leave it out for none",
}

LONGEST_COMPARED = 100  # of a name that is not known; comparing takes the square of its length

# What pydantic puts among the keys where a problem is: which of two kinds was found, and that a key is the problem.
A_NAME, A_TABLE = "<name>", "<table>"
NOT_IN_RECIPES = frozenset({A_NAME, A_TABLE, "[key]"})


def _kind_of_corpora(value: object) -> str | None:
    return A_NAME if isinstance(value, str) else A_TABLE if isinstance(value, dict) else None


Corpora = Annotated[
    Annotated[CorpusName, Tag(A_NAME)] | Annotated[dict[CorpusName, Weight], Tag(A_TABLE)],
    Discriminator(
        _kind_of_corpora,
        custom_error_type="corpora",
        custom_error_message="should be a name or a table of names and weights, as in {multi30k = 1.0}",
    ),
]


class _Record(BaseModel):
    model_config = ConfigDict(frozen=True, strict=True, extra="forbid", protected_namespaces=(), allow_inf_nan=False)


class ModelConfig(_Record):
    """The architecture: every column of Table 3, and the switches that go with it."""

    n_encoder_layers: Layers = 6  # N, encoder
    n_decoder_layers: Layers = 6  # N, decoder
    d_model: Width = 512  # width of the residual stream
    d_ff: Width = 2048  # inner width of the feed-forward network (section 3.3)
    n_heads: Heads = 8  # h (section 3.2.2)
    d_k: HeadWidth = 64  # width of a query and a key in each head
    d_v: HeadWidth = 64  # width of a value in each head
    p_drop: Share = 0.1  # P_drop: sublayer outputs and embeddings (section 5.4)
    p_drop_attention: Share = 0.0  # dropout of the attention weights
    p_drop_relu: Share = 0.0  # dropout inside the feed-forward network
    # Section 3.5; Table 3 (E). "words": half of the sinusoids are of the place, the others of the words up to there.
    positions: Literal["sinusoidal", "learned", "words"] = "sinusoidal"
    n_positions: Places = 1024  # how many positions a learned table has
    norm: Literal["post", "pre"] = "post"  # LayerNorm(x + Sublayer(x)), or x + Sublayer(LayerNorm(x))
    # What is built: the paper's model, or one that it is compared with (Table 2), of the same fields.
    system: Literal["transformer", "recurrent", "last-state", "convs2s", "bytenet"] = "transformer"
    kernel_width: KernelWidth = 3  # of the convolutions of convs2s and bytenet
    n_experts: Experts = 1  # feed-forward networks to choose from in each layer (Shazeer et al., 2017); 1 is the paper
    n_active_experts: Experts = 2  # how many of them a position is sent to
    # Which of source embedding, target embedding and output share one matrix (section 3.4): all, the last two, none.
    embeddings: Literal["three-way", "target", "separate"] = "three-way"
    src_vocab_size: VocabularySize = 37_000  # set from the tokenizer when a run starts
    tgt_vocab_size: VocabularySize = 37_000  # set from the tokenizer when a run starts

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if self.d_model % 2 and self.positions == "sinusoidal":
            raise ValueError(f"d_model must be even for sinusoidal positions, got {self.d_model}")
        if self.positions == "words" and (self.d_model % 4 or self.system != "transformer"):
            raise ValueError(
                "positions = 'words' needs system = 'transformer' and a d_model that can be divided by 4, got system = "
                f"{self.system!r} and d_model {self.d_model}"
            )
        if self.system != "transformer" and self.n_experts > 1:
            raise ValueError(f"n_experts is for system = 'transformer', got system = {self.system!r}")
        if 1 < self.n_experts < self.n_active_experts:
            raise ValueError(f"n_active_experts {self.n_active_experts} is above n_experts {self.n_experts}")
        if self.system in ("convs2s", "bytenet") and self.kernel_width % 2 == 0:
            raise ValueError(f"kernel_width must be odd for convolutions that look both ways, got {self.kernel_width}")
        if self.embeddings == "three-way" and self.src_vocab_size != self.tgt_vocab_size:
            raise ValueError(
                f"three-way embeddings need one vocabulary, got src_vocab_size {self.src_vocab_size} and "
                f"tgt_vocab_size {self.tgt_vocab_size}; use embeddings = 'target' or 'separate'"
            )
        return self

    def with_vocabulary(self, src_vocab_size: int, tgt_vocab_size: int) -> ModelConfig:
        """The same architecture over other vocabularies. Raises ConfigError where they cannot share a matrix."""
        fields = self.model_dump() | {"src_vocab_size": src_vocab_size, "tgt_vocab_size": tgt_vocab_size}
        return config_from_mapping(ModelConfig, fields, where="model")


class DataConfig(_Record):
    """Which text, and how it becomes ids."""

    # Where training text is from: "grammar" is built in, "files" are those below, other names are of the catalogue or
    # folders of one's own. Several have weights: how often an epoch reads each pair of that corpus.
    corpus: Corpora = "grammar"
    direction: Direction = "en-de"  # source and target language
    n_pairs: Pairs = 30_000  # training pairs of the grammar corpus
    corpus_seed: Seed = 1  # of the grammar corpus, and of what bpe_dropout and recombination draw
    train_src: FileName | None = None  # file of source lines (plain, .gz or .xz)
    train_tgt: FileName | None = None  # file of target lines, aligned with train_src
    train_tsv: FileName | None = None  # instead of the two: one file, source TAB target
    dev_src: FileName | None = None  # as train_src, for validation; without, the first corpus that has dev
    dev_tgt: FileName | None = None  # as train_tgt, for validation
    dev_tsv: FileName | None = None  # as train_tsv, for validation
    test_src: FileName | None = None  # as train_src, for a last evaluation; without, the first corpus that has test
    test_tgt: FileName | None = None  # as train_tgt, for a last evaluation
    test_tsv: FileName | None = None  # as train_tsv, for a last evaluation
    # What stands on the target side: text of another language, or trees of the source's own sentences (section 6.3).
    target: Literal["text", "trees"] = "text"
    leaves: Leaves = (
        "any"  # trees: XX for each word ("any"), its part of speech ("tags"), or XX and its last letters ("endings")
    )
    train_trees: FileName | None = None  # trees, with corpus = "files": Penn brackets in any layout
    dev_trees: FileName | None = None  # likewise, for validation
    test_trees: FileName | None = None  # likewise, for a last evaluation
    treebank: FileName | None = None  # trees, with corpus = "wsj": the folder with the sections 00 to 24 (--treebank)
    tokenizer: Literal["bpe", "wordpiece"] = "bpe"  # the two vocabularies of section 5.1, over bytes
    vocab_size: ByteLevelSize = 37_000  # of the shared vocabulary, or of each separate one
    shared_vocabulary: bool = True  # one vocabulary for both languages (section 5.1)
    bpe_dropout: Share = 0.0  # probability that a merge is left out in training text (Provilkov et al., 2020)
    n_encodings: Copies = 8  # with bpe_dropout: how many encodings of each pair are drawn; epochs take turns
    # trees: probability that a phrase or a word gives its place to another of its kind, in further training trees
    recombination: Share = 0.0
    n_recombined: Copies = 15  # with recombination: how many such trees are made of each training tree
    # Whether what a translation leaves as it is (URLs, tags, placeholders, numbers with units, emoji) is masked by
    # symbols that are trained for it.
    masks: bool = False
    max_characters: Count = 5000  # cleaning: training pairs with a longer side are dropped, and
    max_length_ratio: RatioLimit = 9.0  # those with one side so many times as long as the other,
    drop_identical: bool = True  # those whose sides are the same,
    drop_duplicates: bool = False  # and those that came before
    max_dropped_share: WholeShare = 0.3  # cleaning: of a corpus; where more is dropped, it is refused
    max_length: Count = 256  # longer pairs are left out of training and dev; tokens with the end symbol, on either side

    @model_validator(mode="after")
    def _files_are_named(self) -> Self:
        for split in SPLITS:
            src, tgt, tsv = self.files_of(split)
            if (src is None) != (tgt is None):
                raise ValueError(f"{split}_src and {split}_tgt go together; only one is given")
            if src is not None and tsv is not None:
                raise ValueError(f"{split}_tsv goes without {split}_src and {split}_tgt")
            if split == "train" and "files" not in self.weights and (src, tsv) != (None, None):
                raise ValueError(f"{split}_* files need corpus = 'files', got corpus = {quoted(self.corpus)}")
        return self

    @model_validator(mode="after")
    def _corpora_are_named(self) -> Self:
        if not self.weights:
            raise ValueError("corpus should name at least one corpus, got an empty table")
        named_trees = [name for name in ("train_trees", "dev_trees", "test_trees", "treebank") if getattr(self, name)]
        if self.target == "text" and named_trees:
            raise ValueError(f"{named_trees[0]} goes with target = 'trees', got target = 'text'")
        if self.target == "trees" and any(any(self.files_of(split)) for split in SPLITS):
            raise ValueError("with target = 'trees', files of trees are named: train_trees, dev_trees, test_trees")
        if self.target == "trees" and self.shared_vocabulary:
            raise ValueError("target = 'trees' needs shared_vocabulary = false: words and brackets share no symbols")
        if self.target == "text" and self.recombination:
            raise ValueError("recombination is of trees: it goes with target = 'trees', got target = 'text'")
        if self.target == "trees" and self.masks:
            raise ValueError("masks are for translations: they go with target = 'text', got target = 'trees'")
        if self.bpe_dropout and self.tokenizer != "bpe":
            raise ValueError(f"bpe_dropout needs tokenizer = 'bpe', got tokenizer = {self.tokenizer!r}")
        return self

    @property
    def weights(self) -> dict[str, float]:
        """The corpora that training reads, and how often an epoch reads each pair of theirs."""
        return {self.corpus: 1.0} if isinstance(self.corpus, str) else dict(self.corpus)

    def files_of(self, split: Split) -> tuple[str | None, str | None, str | None]:
        """The files that are named for a part of the text: source, target, or both in one."""
        match split:
            case "train":
                return self.train_src, self.train_tgt, self.train_tsv
            case "dev":
                return self.dev_src, self.dev_tgt, self.dev_tsv
            case "test":
                return self.test_src, self.test_tgt, self.test_tsv
            case _:
                assert_never(split)

    def trees_of(self, split: Split) -> str | None:
        """The file of trees that is named for a part."""
        return {"train": self.train_trees, "dev": self.dev_trees, "test": self.test_trees}[split]

    @property
    def src_language(self) -> str:
        """The language that is read."""
        return self.direction.split("-")[0]

    @property
    def tgt_language(self) -> str:
        """The language that is written."""
        return self.direction.split("-")[1]


class TrainingConfig(_Record):
    """Section 5: batches, optimiser, schedule, regularisation; and how a run is watched and kept."""

    max_updates: Count = 100_000  # length of the run
    max_minutes: Minutes | None = None  # stop earlier, after this time (not exactly resumable)
    max_tokens_per_batch: Count = 25_000  # rows x longest, end symbols included, on each side (section 5.1)
    n_accumulate: Batches = 1  # batches whose gradients make one update
    warmup_steps: Count = 4000  # equation 3
    lr_factor: Factor = 1.0  # multiplies equation 3
    decay: Literal["inverse_sqrt", "linear", "cosine"] = "inverse_sqrt"  # after warm-up: equation 3, or down to 0
    optimiser: Literal["adam", "muon"] = "adam"  # muon: for the matrices of the layers (Jordan et al., 2024)
    adam_beta1: Share = 0.9  # section 5.3
    adam_beta2: Share = 0.98  # section 5.3
    adam_eps: Factor = 1e-9  # section 5.3
    # Of matrices, times the learning rate, apart from the gradient (Loshchilov and Hutter, 2019).
    weight_decay: Annotated[float, Field(ge=0.0, lt=100.0)] = 0.0
    clip_norm: Norm | None = None  # greatest norm of the gradient; the paper has none
    eps_ls: Share = 0.1  # label smoothing (section 5.4)
    r_drop: Annotated[float, Field(ge=0.0, le=100.0)] = (
        0.0  # alpha of R-Drop: two passes should agree (Wu et al., 2021)
    )
    r_drop_after: Natural = 0  # it begins after so many updates: before, an update takes half the time
    # The first so many epochs also learn the way back: a pair is read from either side, in turn (Ding et al., 2021).
    both_ways_epochs: Natural = 0
    smoothing: Literal["uniform", "authors"] = (
        "uniform"  # eps_ls / V on every class, or eps_ls / (V - 1) on each wrong one
    )
    precision: Precision = "fp32"  # bf16: autocast; weights and optimiser stay fp32
    seed: Seed = 1  # of initial weights, dropout and the order of batches
    n_skippable: Natural = 0  # updates of a run that may be left out because something is not finite (--on-nan skip:N)
    log_every_updates: Count = 50  # a record in metrics.jsonl
    validate_every_updates: Count = 1000  # perplexity on dev
    validation_bleu: bool = True  # also translate dev at each validation
    validation_sentences: Count = 500  # how many dev sentences are translated for that
    patience: Count | None = None  # stop after so many validations without a better perplexity
    checkpoint_every_updates: Count = 1000  # a checkpoint
    checkpoint_every_minutes: Minutes | None = None  # and one after this time (paper: 10)
    keep_checkpoints: Batches = 5  # the newest that stay; the best stays too
    average_last: Batches = 5  # checkpoints averaged into the model folder (section 6.1)

    def mean_passes(self, n_updates: int) -> float:
        """Passes through the model for an update, in the mean over the first so many: R-Drop makes two."""
        n_twice = max(0, n_updates - self.r_drop_after) if self.r_drop else 0
        return 1 + n_twice / max(1, n_updates)

    @model_validator(mode="after")
    def _averaged_checkpoints_are_kept(self) -> Self:
        if self.average_last > self.keep_checkpoints:
            raise ValueError(
                f"average_last must be at most keep_checkpoints, got {self.average_last} > {self.keep_checkpoints}"
            )
        return self


class SearchConfig(_Record):
    """Section 6.1: beam search."""

    beam_size: BeamSize = 4  # 1 is greedy search
    alpha: PenaltyExponent = 0.6  # of the length penalty ((5 + length) / 6) ^ alpha
    max_extra_tokens: ExtraTokens = 50  # an output has at most input length + this many tokens
    n_best: BeamSize = 1  # hypotheses returned for a sentence
    max_tokens_per_batch: Count = 4000  # rows x longest of the source, of sentences searched together

    @model_validator(mode="after")
    def _beam_holds_n_best(self) -> Self:
        if self.n_best > self.beam_size:
            raise ValueError(f"n_best must be at most beam_size, got {self.n_best} > {self.beam_size}")
        return self


class RunConfig(_Record):
    """A whole run: what ``transduce train`` is given and ``run.json`` holds."""

    model: ModelConfig = ModelConfig()
    data: DataConfig = DataConfig()
    training: TrainingConfig = TrainingConfig()
    search: SearchConfig = SearchConfig()

    @model_validator(mode="after")
    def _vocabularies_fit(self) -> Self:
        if self.model.embeddings == "three-way" and not self.data.shared_vocabulary:
            raise ValueError("three-way embeddings need shared_vocabulary = true; or choose embeddings = 'target'")
        if self.training.both_ways_epochs and not self.data.shared_vocabulary:
            raise ValueError("both_ways_epochs needs shared_vocabulary = true: each language stands on either side")
        if self.training.both_ways_epochs and (self.data.bpe_dropout or set(self.data.weights.values()) != {1.0}):
            # Which way a row is read follows from the number of the epoch, so that each must read every row once.
            raise ValueError("both_ways_epochs goes without bpe_dropout, and with corpora of weight 1.0 only")
        return self


ConfigT = TypeVar("ConfigT", bound=_Record)


def config_from_mapping(kind: type[ConfigT], values: Mapping[str, Any], *, where: str) -> ConfigT:
    """Build a ``kind`` from plain values, as read from TOML or JSON.

    Raises ConfigError, one line that begins with ``where``, for an unknown key (with the nearest known) or a bad value.

    >>> config_from_mapping(ModelConfig, {"d_modle": 512}, where="recipe.toml")
    Traceback (most recent call last):
    transduce.errors.ConfigError: recipe.toml: unknown key d_modle; did you mean d_model?
    """
    try:
        return kind.model_validate(dict(values))
    except ValidationError as error:
        raise ConfigError(f"{where}: {_explain(kind, error.errors()[0])}") from None


def _explain(kind: type[_Record], problem: ErrorDetails) -> str:
    names = [str(part) for part in problem["loc"]]
    if "corpus" in names:
        names = [name for name in names if name not in NOT_IN_RECIPES]
    key = shown(".".join(names)) if names else ""
    match problem["type"]:
        case "extra_forbidden":
            *tables, name = names
            for table in tables:
                inner = kind.model_fields[table].annotation
                assert isinstance(inner, type)
                assert issubclass(inner, _Record)
                kind = inner
            return f"unknown key {key}; {nearest_name(name, kind.model_fields)}"
        case "value_error":
            reason = problem["msg"].removeprefix("Value error, ")
            return f"{key}: {reason}" if key else reason
        case "string_pattern_mismatch":
            reason = PATTERNS_IN_WORDS[problem["ctx"]["pattern"]]
        case _:
            reason = problem["msg"][0].lower() + problem["msg"][1:]
    hint = HOW_TO_SWITCH_OFF.get(names[-1]) if problem["type"] == "finite_number" else None
    return f"{key}: {reason}, got {quoted(problem['input'])}{f'; {hint}' if hint else ''}"


def nearest_name(name: str, known: Mapping[str, Any] | list[str]) -> str:
    """A clause for error messages: the known name most like ``name``, or all of them where none is like it.

    >>> nearest_name("bsae", ["base", "big"])
    'did you mean base?'
    """
    names = list(known)
    near = difflib.get_close_matches(name[:LONGEST_COMPARED], names, n=1, cutoff=0.5)
    return f"did you mean {near[0]}?" if near else f"known are {', '.join(names)}"

"""The data of a run: the settings that every task reads. Each family of tasks adds its own in a record of its own.

``data.task`` chooses the record, which the task names (``task_settings.py``).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Self, get_args

from pydantic import BeforeValidator, Discriminator, Field, SerializeAsAny, Tag, model_validator

from transduce.config.directions import DIRECTION_PATTERN, split_direction
from transduce.config.record import A_NAME, A_TABLE, MAX_VOCABULARY_SIZE, Chosen, Count, FileName, Seed, matching
from transduce.config.task_settings import DEFAULT_TASK, require_own, task_settings, tasks_that_generate
from transduce.errors import ConfigError, quoted

MAX_PAIRS, MAX_WEIGHT = 10**8, 1000
CORPUS_PATTERN = r"[A-Za-z0-9][A-Za-z0-9._-]*"
MEDIA_CORPORA = ("ocr-lines", "ocr-digits", "speech-synthetic")  # generated images and audio

Pairs = Annotated[int, Field(ge=1, le=MAX_PAIRS)]
ByteLevelSize = Annotated[int, Field(ge=260, le=MAX_VOCABULARY_SIZE)]  # 256 bytes and 4 special tokens
Weight = Annotated[float, Field(gt=0, le=MAX_WEIGHT)]
Split = Literal["train", "dev", "test"]
SPLITS: tuple[Split, ...] = get_args(Split)

CorpusName = Annotated[
    str, Field(max_length=100), matching(CORPUS_PATTERN, "a name of letters, digits, '.', '_' and '-', as in multi30k")
]
Direction = Annotated[str, matching(DIRECTION_PATTERN, "two languages, as in en-de or en-pt-BR")]
TaskName = Annotated[
    str, Field(max_length=100), matching("[a-z][a-z0-9-]*", "lower-case letters, digits and '-', as in translation")
]


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


class DataConfig(Chosen):
    """The corpora of a run and their tokenization. Calling it creates the record of the given ``task``.

    ``files`` is the ending of the settings that name own files (train_trees: "trees"), ``generated`` are the corpora of
    images or audio that the tasks of a record can learn from.
    """

    tag: ClassVar[str] = "task"
    files: ClassVar[str] = ""
    generated: ClassVar[tuple[str, ...]] = ()

    # Training corpora: "grammar" is built in, "files" means the files below, other names are corpora of the catalogue
    # or your own folders. A table gives each corpus a weight: how often an epoch reads each of its pairs.
    corpus: Corpora = "grammar"
    direction: Direction = "en-de"  # source and target language
    n_pairs: Pairs = 30_000  # training pairs of the grammar corpus
    corpus_seed: Seed = 1  # of the grammar corpus, BPE-dropout and subtree substitution
    task: TaskName = DEFAULT_TASK  # the name of a registered task
    # The two vocabularies of section 5.1, over bytes; or single characters or bytes, as small language models use them.
    tokenizer: Literal["bpe", "wordpiece", "characters", "bytes"] = "bpe"
    # What the vocabulary starts with: "bytes", or these and the "characters" of the training text, each one token.
    alphabet: Literal["bytes", "characters"] = "bytes"
    # A model folder whose vocabulary is used; no new one is learned, and the settings of vocabularies have no effect.
    tokenizer_from: FileName | None = None
    # Merge a pair of tokens only if it occurs this often. Default: twice; for wordpiece a minimum that starts at half
    # the average count of a token and is halved down to 2. With 1, wordpiece merges by P(ab) / (P(a) P(b)) alone.
    min_pair_count: Count | None = None
    vocab_size: ByteLevelSize = 37_000  # of the shared vocabulary, or of each separate one
    shared_vocabulary: bool = True  # one vocabulary for both languages (section 5.1)

    if TYPE_CHECKING:  # calling the base accepts the fields of its records

        def __init__(self, **values: Any) -> None: ...

    @classmethod
    def is_base(cls) -> bool:
        """Return whether this is ``DataConfig`` itself, which no task names as its record."""
        return cls is DataConfig

    @classmethod
    def member(cls, values: Mapping[str, Any]) -> type[Self]:
        """Return the record of the task that ``values`` name. Raises ConfigError for an unknown one."""
        task = values.get(cls.tag, DEFAULT_TASK)
        if task == DEFAULT_TASK:  # which is not asked: tasks import torch
            from transduce.config.pairs import ParallelData

            return ParallelData  # type: ignore[return-value]
        return task_settings(task).settings  # type: ignore[return-value]

    @classmethod
    def of(cls, config: DataConfig) -> Self:
        """Return a configuration that is of this record. Raises ConfigError if its task has another one."""
        if not isinstance(config, cls):
            raise ConfigError(f"task = {config.task!r} has other data settings than those of {cls.__name__}")
        return config

    @model_validator(mode="before")
    @classmethod
    def _settings_are_of_the_task(cls, values: Any) -> Any:
        return require_own(cls, values) if isinstance(values, Mapping) else values

    @model_validator(mode="after")
    def _corpora_are_named(self) -> Self:
        if not self.weights:
            raise ValueError("corpus should name at least one corpus, got an empty table")
        for name in self.weights:
            if name in MEDIA_CORPORA and name not in self.generated:
                tasks = tasks_that_generate(name)
                raise ValueError(f"corpus = {name!r} needs task = {tasks}, got task = {self.task!r}")
        return self

    @model_validator(mode="after")
    def _files_are_named(self) -> Self:
        return self._with_corpus_of_files()

    def _with_corpus_of_files(self) -> Self:
        if "files" not in self.weights and (named := self._named("train")):
            raise ValueError(f"{next(iter(named))} needs corpus = 'files', got corpus = {quoted(self.corpus)}")
        return self

    @property
    def weights(self) -> dict[str, float]:
        """The training corpora, with how often an epoch reads each of their pairs."""
        return {self.corpus: 1.0} if isinstance(self.corpus, str) else dict(self.corpus)

    def file_of(self, split: Split) -> str | None:
        """Return the configured file of a split, of a record whose files are one for each split."""
        name: str | None = getattr(self, f"{split}_{self.files}")
        return name

    def names_of(self, split: Split) -> list[str]:
        """Return all configured files of a split."""
        return list(self._named(split).values())

    def _named(self, split: Split) -> dict[str, str]:
        return {name: value for name, value in self if name.startswith(f"{split}_") and isinstance(value, str)}

    @property
    def src_language(self) -> str:
        """The source language."""
        return split_direction(self.direction)[0]

    @property
    def tgt_language(self) -> str:
        """The target language."""
        return split_direction(self.direction)[1]


def _chosen(values: Any) -> Any:
    """Make the record of the task that a table names."""
    return DataConfig.member(values).model_validate(values) if isinstance(values, dict) else values


# The record of any task.
AnyDataConfig = Annotated[SerializeAsAny[DataConfig], BeforeValidator(_chosen)]

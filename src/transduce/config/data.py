"""The data of a run: corpora, cleaning and tokenization."""

from __future__ import annotations

from typing import Annotated, Literal, Self, get_args

from pydantic import BeforeValidator, Discriminator, Field, Tag, model_validator

from transduce.config.record import (
    A_NAME,
    A_TABLE,
    MAX_VOCABULARY_SIZE,
    Count,
    FileName,
    Fraction,
    Record,
    Seed,
    matching,
)
from transduce.config.task_settings import require_read
from transduce.errors import quoted
from transduce.linearisation import Leaves

MAX_PAIRS = 10**8
CORPUS_PATTERN, DIRECTION_PATTERN = r"[A-Za-z0-9][A-Za-z0-9._-]*", r"[a-z]{2,3}-[a-z]{2,3}"

Pairs = Annotated[int, Field(ge=1, le=MAX_PAIRS)]
Copies = Annotated[int, Field(ge=1, le=1000)]  # per pair or tree
ByteLevelSize = Annotated[int, Field(ge=260, le=MAX_VOCABULARY_SIZE)]  # 256 bytes and 4 special tokens
ClosedFraction = Annotated[float, Field(ge=0.0, le=1.0)]
RatioLimit = Annotated[float, Field(ge=1.0, le=10**9)]
Weight = Annotated[float, Field(gt=0, le=1000)]
Split = Literal["train", "dev", "test"]
SPLITS: tuple[Split, ...] = get_args(Split)
# Generated images and audio, and the task that reads each.
MEDIA_CORPORA = {"ocr-lines": "image-to-text", "ocr-digits": "image-to-text", "speech-synthetic": "speech-to-text"}

CorpusName = Annotated[
    str, Field(max_length=100), matching(CORPUS_PATTERN, "a name of letters, digits, '.', '_' and '-', as in multi30k")
]
LanguageName = Annotated[str, matching("[a-z]{2,3}|both", "a language, as in en, or both")]
Direction = Annotated[str, matching(DIRECTION_PATTERN, "two languages, as in en-de")]
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


_FROM_LIST = BeforeValidator(lambda names: tuple(names) if isinstance(names, list) else names)
CorpusNames = Annotated[tuple[CorpusName, ...], _FROM_LIST]
FileNames = Annotated[tuple[FileName, ...], _FROM_LIST]
Noise = Literal["blur", "grain", "tilt", "faint", "speckle", "shadow", "pixelated", "ruled"]
NoiseKinds = Annotated[tuple[Noise, ...], _FROM_LIST]
VoiceName = Annotated[
    str, Field(max_length=100), matching(r"[a-z][A-Za-z0-9+_-]*", "a voice of espeak-ng, as in en-us+f3")
]
VoiceNames = Annotated[tuple[VoiceName, ...], _FROM_LIST]
Pixels = Annotated[int, Field(ge=1, le=10_000)]
Bands = Annotated[int, Field(ge=1, le=200)]
Seconds = Annotated[float, Field(gt=0, le=3600)]


class DataConfig(Record):
    """The corpora of a run, their cleaning and their tokenization."""

    # Training corpora: "grammar" is built in, "files" means the files below, other names are corpora of the catalogue
    # or your own folders. A table gives each corpus a weight: how often an epoch reads each of its pairs.
    corpus: Corpora = "grammar"
    direction: Direction = "en-de"  # source and target language
    n_pairs: Pairs = 30_000  # training pairs of the grammar corpus
    max_pairs: Pairs | None = None  # read only the first pairs or trees of each training corpus
    corpus_seed: Seed = 1  # of the grammar corpus, BPE-dropout and subtree substitution
    train_src: FileName | None = None  # file of source lines (plain, .gz or .xz)
    train_tgt: FileName | None = None  # file of target lines, aligned with train_src
    train_tsv: FileName | None = None  # instead of train_src and train_tgt: one file, source TAB target
    dev_src: FileName | None = None  # as train_src, for validation; default: the first corpus that has dev
    dev_tgt: FileName | None = None  # as train_tgt, for validation
    dev_tsv: FileName | None = None  # as train_tsv, for validation
    # Further corpora whose dev sets are scored in each validation; they do not decide which checkpoint is the best.
    also_dev: CorpusNames = ()
    test_src: FileName | None = None  # as train_src, for the final evaluation; default: the first corpus that has test
    test_tgt: FileName | None = None  # as train_tgt, for the final evaluation
    test_tsv: FileName | None = None  # as train_tsv, for the final evaluation
    # "translation", "mask-predict" (translation by masked language models), "parsing" of source sentences into trees
    # (section 6.3), or the name of another registered task.
    task: TaskName = "translation"
    # parsing: the token of a word is XX ("any"), its tag ("tags"), or XX and its last letters ("endings")
    leaves: Leaves = "any"
    train_trees: FileName | None = None  # parsing, with corpus = "files": Penn brackets in any layout
    dev_trees: FileName | None = None  # likewise, for validation
    test_trees: FileName | None = None  # likewise, for the final evaluation
    treebank: FileName | None = None  # parsing, with corpus = "wsj": the folder of sections 00 to 24 (--treebank)
    # Language models read files or folders of plain text, with corpus = "files", or one side of the corpora.
    train_text: FileName | None = None
    dev_text: FileName | None = None  # likewise, for validation; default: the first corpus that has dev
    test_text: FileName | None = None  # likewise, for the final evaluation; default: the first corpus that has test
    # Prompts with responses, the best first (tab-separated or .jsonl), for alignment, with corpus = "files".
    train_prompts: FileName | None = None
    dev_prompts: FileName | None = None  # likewise, for validation
    test_prompts: FileName | None = None  # likewise, for the final evaluation
    # Images or audio, with corpus = "files": each line is a file name, relative to this list, TAB its text.
    train_media: FileName | None = None
    dev_media: FileName | None = None  # likewise, for validation
    test_media: FileName | None = None  # likewise, for the final evaluation
    image_height: Pixels = 32  # images are scaled to this height
    max_image_width: Pixels = 1200  # scaled images that are wider are dropped from training
    n_bands: Bands = 80  # mel bands of a frame of audio
    max_seconds: Seconds = 20.0  # longer audio is dropped from training
    # corpus = "ocr-lines": the fonts, by file name, and the kinds of noise of the training lines and of the test lines.
    training_fonts: FileNames = ()
    test_fonts: FileNames = ()
    training_noise: NoiseKinds = ()
    test_noise: NoiseKinds = ()
    # corpus = "speech-synthetic": the voices of espeak-ng that speak the training sentences, and the test sentences.
    training_voices: VoiceNames = ()
    test_voices: VoiceNames = ()
    language: LanguageName | None = None  # the side of the corpora that is read, as in "en"; or "both", each by itself
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
    bpe_dropout: Fraction = 0.0  # probability of skipping a merge in training text (Provilkov et al., 2020)
    n_encodings: Copies = 8  # with bpe_dropout: sampled encodings per pair; each epoch reads the next one
    # parsing, subtree substitution: probability of replacing a subtree by one of the same label, in additional trees
    recombination: Fraction = 0.0
    n_recombined: Copies = 15  # with recombination: additional trees per training tree
    # Replace untranslatable text (URLs, tags, placeholders, numbers with units, emoji) by trained mask tokens.
    masks: bool = False
    max_characters: Count = 5000  # cleaning: drop training pairs with a longer side
    max_length_ratio: RatioLimit = 9.0  # cleaning: drop pairs with a larger length ratio
    drop_identical: bool = True  # cleaning: drop pairs whose sides are identical
    drop_duplicates: bool = False  # cleaning: drop repeated pairs
    max_dropped_share: ClosedFraction = 0.3  # cleaning: an error if a larger fraction of a corpus is dropped
    max_length: Count = 256  # longer pairs are dropped from training and dev; tokens of either side, EOS included

    @model_validator(mode="after")
    def _settings_are_of_the_task(self) -> Self:
        require_read("data", self, self.task)
        return self

    @model_validator(mode="after")
    def _files_are_named(self) -> Self:
        for split in SPLITS:
            src, tgt, tsv = self.files_of(split)
            if (src is None) != (tgt is None):
                raise ValueError(f"{split}_src and {split}_tgt must be given together; only one is given")
            if src is not None and tsv is not None:
                raise ValueError(f"{split}_tsv excludes {split}_src and {split}_tgt")
            if split == "train" and "files" not in self.weights and (src, tsv) != (None, None):
                raise ValueError(f"{split}_* files need corpus = 'files', got corpus = {quoted(self.corpus)}")
        return self

    @model_validator(mode="after")
    def _plain_text_is_named(self) -> Self:
        if self.train_text is not None and "files" not in self.weights:
            raise ValueError(f"train_text needs corpus = 'files', got corpus = {quoted(self.corpus)}")
        if self.train_text is not None and self.max_pairs is not None:
            raise ValueError("max_pairs counts pairs or trees, but train_text has documents; give a shorter file")
        if self.language is not None and self.language not in (*self.direction.split("-"), "both"):
            raise ValueError(
                f"language should be a side of direction = {self.direction!r}, or 'both', got {self.language!r}"
            )
        return self

    @model_validator(mode="after")
    def _prompts_are_named(self) -> Self:
        if self.train_prompts is not None and "files" not in self.weights:
            raise ValueError(f"train_prompts needs corpus = 'files', got corpus = {quoted(self.corpus)}")
        return self

    def prompts_of(self, split: Split) -> str | None:
        """Return the configured file of prompts with responses of a split."""
        return {"train": self.train_prompts, "dev": self.dev_prompts, "test": self.test_prompts}[split]

    def text_of(self, split: Split) -> str | None:
        """Return the configured file or folder of plain text of a split."""
        return {"train": self.train_text, "dev": self.dev_text, "test": self.test_text}[split]

    @model_validator(mode="after")
    def _corpora_are_named(self) -> Self:
        if not self.weights:
            raise ValueError("corpus should name at least one corpus, got an empty table")
        if self.task == "parsing" and self.shared_vocabulary:
            raise ValueError("task = 'parsing' needs shared_vocabulary = false: words and brackets share no tokens")
        if "files" in self.also_dev or len(set(self.also_dev)) != len(self.also_dev):
            raise ValueError(f"also_dev should name corpora other than 'files', each once, got {list(self.also_dev)}")
        if self.bpe_dropout and self.tokenizer != "bpe" and self.tokenizer_from is None:
            raise ValueError(f"bpe_dropout needs tokenizer = 'bpe', got tokenizer = {self.tokenizer!r}")
        return self

    @model_validator(mode="after")
    def _media_are_named(self) -> Self:
        generated = [name for name in self.weights if name in MEDIA_CORPORA]
        if self.train_media is not None and "files" not in self.weights:
            raise ValueError(f"train_media needs corpus = 'files', got corpus = {quoted(self.corpus)}")
        for name in generated:
            if self.task != MEDIA_CORPORA[name]:
                raise ValueError(f"corpus = {name!r} needs task = {MEDIA_CORPORA[name]!r}, got task = {self.task!r}")
        for what in ("fonts", "noise", "voices"):
            trained, tested = getattr(self, f"training_{what}"), getattr(self, f"test_{what}")
            if both := [name for name in trained if name in tested]:
                raise ValueError(f"test_{what} should be none of training_{what}, got {both[0]!r} in both")
        for name, what in (("ocr-lines", "fonts"), ("speech-synthetic", "voices")):
            for key in (f"training_{what}", f"test_{what}"):
                if name in generated and not getattr(self, key):
                    raise ValueError(f"corpus = {name!r} needs {key}, a list of names")
        return self

    def media_of(self, split: Split) -> str | None:
        """Return the configured list of images or audio files of a split."""
        return {"train": self.train_media, "dev": self.dev_media, "test": self.test_media}[split]

    @property
    def weights(self) -> dict[str, float]:
        """The training corpora, with how often an epoch reads each of their pairs."""
        return {self.corpus: 1.0} if isinstance(self.corpus, str) else dict(self.corpus)

    def for_dev_of(self, corpus: str) -> Self:
        """Return the configuration that reads the dev set of another corpus, of ``also_dev``."""
        own_text = {f"{split}_{what}": None for split in SPLITS for what in ("src", "tgt", "tsv", "trees", "text")}
        return self.model_copy(update={"corpus": corpus, "also_dev": (), **own_text})

    def files_of(self, split: Split) -> tuple[str | None, str | None, str | None]:
        """Return the configured files of a split: source, target, and one file with both."""
        return getattr(self, f"{split}_src"), getattr(self, f"{split}_tgt"), getattr(self, f"{split}_tsv")

    def trees_of(self, split: Split) -> str | None:
        """Return the configured tree file of a split."""
        return {"train": self.train_trees, "dev": self.dev_trees, "test": self.test_trees}[split]

    @property
    def src_language(self) -> str:
        """The source language."""
        return self.direction.split("-")[0]

    @property
    def tgt_language(self) -> str:
        """The target language."""
        return self.direction.split("-")[1]

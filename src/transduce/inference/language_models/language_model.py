"""Using trained language models: what the kinds have in common. ``LanguageModel.load(folder)`` gives the right one."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, TypedDict, Unpack

from transduce.config import LanguageModelConfig
from transduce.config.decoding import EngineName
from transduce.errors import CheckpointError, ConfigError, DataError
from transduce.inference.arguments import require_sequence
from transduce.inference.engine import EngineSettings
from transduce.inference.engines import make_engine
from transduce.inference.folder import ModelFolder
from transduce.inference.stored_model import StoredModel
from transduce.inference.trained_model import Capabilities, TrainedModel
from transduce.search.sampling import Sampling
from transduce.text import SPECIAL_TOKENS, Tokenizer
from transduce.text.documents import DocumentCodec

if TYPE_CHECKING:
    from transduce.model import AttentionHook

__all__ = ["Continuation", "FilledText", "LanguageModel", "SpanFill", "TextScore"]

AS_IT_IS = Sampling()  # the model's own distribution


@dataclass(frozen=True, slots=True)
class Continuation:
    """A text that continues a prompt."""

    prompt: str
    text: str  # without the prompt
    log_prob: float  # of its tokens, and of the end if it was reached, under the distribution sampled from, in nats
    tokens: int
    is_ended: bool  # the model ended the document


@dataclass(frozen=True, slots=True)
class SpanFill:
    """What may stand in a gap of a text."""

    token: str  # in readable form, as ``Tokenizer.pieces`` gives it: "▁dog"; of several tokens their text
    probability: float


@dataclass(frozen=True, slots=True)
class FilledText:
    """A text whose gaps are filled."""

    text: str  # with the best fill of each gap; of missing spans, the best output
    fills: tuple[tuple[SpanFill, ...], ...]  # of each gap, the most probable first


@dataclass(frozen=True, slots=True)
class TextScore:
    """Cross-entropy of a text under a model."""

    nats: float
    tokens: int  # predicted: those of the text, of a causal model also EOS of each document
    bytes: int  # of the text in UTF-8

    @property
    def perplexity(self) -> float:
        """Perplexity per token."""
        return math.exp(self.nats / self.tokens)

    @property
    def bits_per_byte(self) -> float:
        """Bits per byte of text; unlike perplexity, comparable across tokenizers."""
        return self.nats / math.log(2) / self.bytes

    def as_json(self) -> dict[str, Any]:
        """Return the JSON values that the command line prints."""
        return {
            "perplexity": self.perplexity, "bits_per_byte": self.bits_per_byte, "tokens": self.tokens,
            "bytes": self.bytes,
        }  # fmt: skip


class GenerationOptions(TypedDict, total=False):
    """How texts are continued, see ``CausalLanguageModel.generate``."""

    max_tokens: int
    sampling: Sampling
    beam_size: int | None
    seed: int
    first_number: int
    should_stop: Callable[[], bool]
    on_text: Callable[[str], None] | None


class LanguageModel(TrainedModel):
    """A language model. ``LanguageModel.load(folder).generate(["..."])`` is all that most users need.

    A text is a document, or the beginning of one: lines that end with a newline. A causal model continues texts
    (``generate``), a masked one, and one trained on missing spans, fills their gaps (``fill``).
    """

    capabilities = Capabilities((), "a language model", "generate")
    is_pseudo: ClassVar[bool] = False  # whether probabilities are given both sides, which makes pseudo-perplexity

    def __init__(self, model: Any, tokenizer: Tokenizer, *, max_length: int, engine: EngineName = "auto") -> None:
        """``max_length``: the number of positions that the model has been trained on, its window."""
        super().__init__(model if isinstance(model, StoredModel) else model.eval())
        self.tokenizer, self.max_length = tokenizer, max_length
        self.codec = DocumentCodec(tokenizer)
        settings = EngineSettings(
            suppressed_ids=self._suppressed_ids(),
            word_start_ids=lambda: tokenizer.word_start_ids,
            mask_id=next(iter(tokenizer.mask_and_sentinel_ids), None),
            window=max_length,
            engine=engine,
        )
        self.engine = make_engine(model, settings=settings)

    @property
    def _models(self) -> str:
        return f"a model for {self.capabilities.tasks[0]}"

    def generate(self, prompts: Sequence[str], **options: Unpack[GenerationOptions]) -> list[Continuation]:
        """Continue each prompt. Raises ConfigError unless the model is causal."""
        raise ConfigError(f"{self._models} does not continue text; use one for causal-lm, or fill its gaps")

    def fill(self, texts: Sequence[str], *, n_best: int = 5) -> list[FilledText]:
        """Fill the gaps of each text, written ``<mask>``. Raises ConfigError if the model is causal."""
        raise ConfigError(f"{self._models} fills no gaps; use one for masked-lm, or continue text")

    def log_probs(self, texts: Sequence[str]) -> list[list[float]]:
        """Return the log-probability of each token of each document, in nats: of a causal model the end included.

        Raises TypeError for a single string.
        """
        require_sequence(texts, "log_probs takes a list of texts", "for one text, log_probs([text])[0]")
        return [self._log_probs(self.codec.encode(lines_of(text)), None) for text in texts]

    def score(self, documents: Iterable[Sequence[str]], *, stride: int | None = None) -> TextScore:
        """Return the cross-entropy of documents, each given by its lines. Raises DataError if there is no text.

        ``stride``: by how many tokens the window of a causal model slides, at most its length; a masked one has none.
        Raises ConfigError for another stride.
        """
        log_probs, n_bytes = list[float](), 0
        for lines in documents:
            ids = self.codec.encode(lines)
            log_probs += self._log_probs(ids, stride)
            n_bytes += self.codec.n_bytes(ids)
        if not n_bytes:
            raise DataError("the text has no words; perplexity needs some")
        return TextScore(-math.fsum(log_probs), len(log_probs), n_bytes)

    @abstractmethod
    def _log_probs(self, ids: Sequence[int], stride: int | None) -> list[float]:
        """Return the log-probabilities of a document without BOS and EOS."""

    @abstractmethod
    def read_and_written(self, text: str) -> tuple[list[int], list[int]]:
        """Return the ids that an encoder reads of a text, and those that a decoder writes, from BOS to EOS."""

    @abstractmethod
    def forward(self, read_ids: list[int], written_ids: list[int], attention_hook: AttentionHook) -> None:
        """Run the model over the ids of a text; the hook receives the attention weights."""

    def _suppressed_ids(self) -> list[int]:
        """Return the ids that are never written."""
        return self.no_text

    @property
    def no_text(self) -> list[int]:
        """The ids of tokens that are no text."""
        return [*range(len(SPECIAL_TOKENS)), *self.tokenizer.mask_and_sentinel_ids]


def stack_of(loaded: ModelFolder, *, is_causal: bool) -> tuple[StoredModel, int]:
    """Return the model of a folder, and its window.

    Raises CheckpointError if it is not one stack that reads in this way.
    """
    model, config = loaded.stored_as(LanguageModelConfig), loaded.config
    assert isinstance(config, LanguageModelConfig)
    if config.is_causal != is_causal:
        raise CheckpointError(f"{loaded.folder}: a model for {loaded.task} has is_causal = {str(is_causal).lower()}")
    return model, config.n_positions


def lines_of(text: str) -> list[str]:
    """Return the lines of a document."""
    return text.removesuffix("\n").split("\n")

"""A trained model as a translator: lines in, one translation out for each, in order."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import torch

from transduce.config import InferencePrecision, SearchConfig
from transduce.errors import CheckpointError, DataError
from transduce.model import EncoderDecoder
from transduce.search import Hypothesis
from transduce.tasks.batch_search import BatchSearch
from transduce.tasks.model_folder import read_model_folder
from transduce.text import Tokenizers, normalise

__all__ = ["ScoredText", "Translation", "Translator"]

# Lines read before the first is translated: enough to find sentences of equal length, few enough for a stream.
CHUNK_LINES = 2000


@dataclass(frozen=True, slots=True)
class ScoredText:
    """One of the n best: its score is log-probability over length penalty."""

    text: str
    score: float


@dataclass(frozen=True, slots=True)
class Translation:
    """What became of one line."""

    source: str  # as it came
    n_best: tuple[ScoredText, ...]  # best first; never empty
    is_cut: bool  # the source was too long and lost its end

    @property
    def text(self) -> str:
        """The best translation."""
        return self.n_best[0].text

    @property
    def score(self) -> float:
        """Of the best translation."""
        return self.n_best[0].score


class Translator:
    """Translates raw text with a model, its tokenizers and a way to search.

    ``Translator.load(folder).translate(["..."])`` is all that most users need. With ``precision="bf16"`` or ``"int8"``
    (on CPUs) products with weights are in that type: faster where a processor has them, and now and then another word.
    The translator takes the weights as they are when it is made. With ``others``, models over the same vocabularies,
    all write each translation together.
    """

    def __init__(
        self,
        model: EncoderDecoder,
        tokenizers: Tokenizers,
        search: SearchConfig,
        *,
        direction: str,
        precision: InferencePrecision = "fp32",
        others: Sequence[EncoderDecoder] = (),
    ) -> None:
        self.model, self.tokenizers, self.search = model, tokenizers, search
        self._search_all = BatchSearch((model, *others), tokenizers.src, precision=precision)
        self.src_language, self.tgt_language = direction.split("-")

    @classmethod
    def load(
        cls,
        folder: str | Path,
        *others: str | Path,
        device: str | torch.device = "cpu",
        precision: InferencePrecision = "fp32",
    ) -> Translator:
        """From a model folder; or several, which write together and search as the first one does.

        Raises CheckpointError if one cannot be used or has other vocabularies than the first, ConfigError if the device
        has no products of that precision.
        """
        first, *more = (read_model_folder(Path(each), device=torch.device(device)) for each in (folder, *others))
        for place, read in zip((folder, *others), (first, *more), strict=True):
            if read.task != "translation":
                raise CheckpointError(f"{place} holds a model for {read.task}; use transduce parse")
        for place, read in zip(others, more, strict=True):
            if (read.tokenizers.fingerprint, read.direction) != (first.tokenizers.fingerprint, first.direction):
                raise CheckpointError(
                    f"{place} has other tokenizers or another direction than {folder}; models that write together are "
                    "trained from one prepared folder (train --store)"
                )
        return cls(
            first.model,
            first.tokenizers,
            first.search,
            direction=first.direction,
            precision=precision,
            others=[read.model for read in more],
        )

    def translate(self, texts: Sequence[str], *, search: SearchConfig | None = None) -> list[str]:
        """The best translation of each text. Several lines in one text are taken as one sentence.

        Raises TypeError for a single string, which would be translated letter by letter.
        """
        if isinstance(texts, str):
            raise TypeError("translate takes a list of texts; for one text, translate([text])[0]")
        return [translation.text for translation in self.translate_lines(texts, search=search)]

    def translate_unless(self, should_stop: Callable[[], bool], texts: Sequence[str]) -> list[str] | None:
        """``translate``; None if ``should_stop``, which is asked before each search, says so."""
        translations = self._translate_chunk(texts, self.search, should_stop)
        return None if translations is None else [translation.text for translation in translations]

    def translate_lines(
        self, lines: Iterable[str], *, search: SearchConfig | None = None, chunk_lines: int = CHUNK_LINES
    ) -> Iterator[Translation]:
        """A stream of lines to a stream of translations, one for each line, in order; blank lines stay blank."""
        stream = iter(lines)
        while chunk := list(islice(stream, chunk_lines)):
            translations = self._translate_chunk(chunk, search or self.search)
            assert translations is not None  # nobody asks to stop
            yield from translations

    @property
    def max_source_tokens(self) -> int:
        """The longest source that is not cut, its end symbol included."""
        return self._search_all.max_source_tokens

    def source_ids(self, text: str) -> list[int]:
        """What the model reads for a text, without the end symbol. Raises DataError if that is nothing."""
        ids = self._search_all.source_ids([text])[0][: self.max_source_tokens - 1]
        if not ids:
            raise DataError("there is no word to translate; give a sentence")
        return ids

    def _translate_chunk(
        self, lines: Sequence[str], search: SearchConfig, should_stop: Callable[[], bool] = lambda: False
    ) -> list[Translation] | None:
        """One translation for each line; None if it was asked to stop before the last search."""
        found = self._search_all(lines, search, should_stop=should_stop)
        if found is None:
            return None
        nothing = (ScoredText("", 0.0),)
        return [
            Translation(line, self._texts(each.hypotheses) or nothing, is_cut=each.is_cut)
            for line, each in zip(lines, found, strict=True)
        ]

    def _texts(self, hypotheses: Sequence[Hypothesis]) -> tuple[ScoredText, ...]:
        texts = self.tokenizers.tgt.decode_batch(hypothesis.ids for hypothesis in hypotheses)
        # Normalised again: nothing that a model writes may break a line.
        scored = zip(texts, hypotheses, strict=True)
        return tuple(ScoredText(normalise(text), hypothesis.score) for text, hypothesis in scored)

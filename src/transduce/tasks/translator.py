"""A trained model as a translator: lines in, one translation out for each, in order.

Shapes: B sentences, S source positions, W beams of a sentence.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, Protocol

import torch
from torch import Tensor

from transduce.config import InferencePrecision, SearchConfig
from transduce.data import pad_rows, plan_by_length
from transduce.errors import CheckpointError, DataError
from transduce.model import EncoderDecoder, Ensemble, LearnedPositions, for_inference
from transduce.search import Hypothesis, StateT, beam_search, greedy_search
from transduce.tasks.model_folder import read_model_folder
from transduce.text import BOS_ID, EOS_ID, PAD_ID, Tokenizers, normalise

__all__ = ["ScoredText", "Translation", "Translator"]

# Lines read before the first is translated: enough to find sentences of equal length, few enough for a stream.
CHUNK_LINES = 2000
# Longer sources are cut. No model is trained on sentences like that, and attention costs their square.
MAX_SOURCE_TOKENS = 1024


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
        fast = [for_inference(each, precision) for each in (model, *others)]
        self._writer: Writer[Any] = Ensemble(fast) if others else fast[0]
        self._max_positions = min(map(_max_positions, (model, *others)))
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
        return min(MAX_SOURCE_TOKENS, self._max_positions)

    def source_ids(self, text: str) -> list[int]:
        """What the model reads for a text, without the end symbol. Raises DataError if that is nothing."""
        ids = self.tokenizers.src.encode(normalise(text))[: self.max_source_tokens - 1]
        if not ids:
            raise DataError("there is no word to translate; give a sentence")
        return ids

    def _translate_chunk(
        self, lines: Sequence[str], search: SearchConfig, should_stop: Callable[[], bool] = lambda: False
    ) -> list[Translation] | None:
        """One translation for each line; None if it was asked to stop before the last search."""
        nothing = (ScoredText("", 0.0),)
        encoded = self.tokenizers.src.encode_batch([normalise(line) for line in lines])
        cut = [ids[: self.max_source_tokens - 1] for ids in encoded]
        places = [place for place, ids in enumerate(cut) if ids]
        n_best: dict[int, tuple[ScoredText, ...]] = {}
        for rows in plan_by_length([len(cut[place]) + 1 for place in places], max_tokens=search.max_tokens_per_batch):
            if should_stop():
                return None
            chosen = [places[row] for row in rows]
            for place, hypotheses in zip(chosen, self._search([cut[place] for place in chosen], search), strict=True):
                n_best[place] = self._texts(hypotheses)
        return [
            Translation(line, n_best.get(place, nothing), is_cut=len(cut[place]) < len(encoded[place]))
            for place, line in enumerate(lines)
        ]

    def _texts(self, hypotheses: Sequence[Hypothesis]) -> tuple[ScoredText, ...]:
        texts = self.tokenizers.tgt.decode_batch(hypothesis.ids for hypothesis in hypotheses)
        # Normalised again: nothing that a model writes may break a line.
        scored = zip(texts, hypotheses, strict=True)
        return tuple(ScoredText(normalise(text), hypothesis.score) for text, hypothesis in scored)

    @torch.no_grad()
    def _search(self, sources: Sequence[Sequence[int]], search: SearchConfig) -> list[list[Hypothesis]]:
        """The n best outputs for source ids without end symbols."""
        device = self.model.output_weight.device
        src_BS = pad_rows([[*ids, EOS_ID] for ids in sources]).to(device)
        limits = [min(len(ids) + 1 + search.max_extra_tokens, self._max_positions) for ids in sources]
        limits_B = torch.tensor(limits, device=device)
        return run_search(self._writer, src_BS, limits_B, search)


def _max_positions(model: EncoderDecoder) -> int:
    has_table = any(isinstance(module, LearnedPositions) for module in model.modules())
    return model.config.n_positions if has_table else sys.maxsize


class Writer(Protocol[StateT]):
    """What writes translations, a step at a time: a model or several."""

    def start(self, src_BS: Tensor, /) -> StateT:
        """Encode, and prepare to write one row for each sentence."""

    def step(self, last_ids_N: Tensor, state: StateT, /) -> tuple[Tensor, StateT]:
        """Scores of the token after ``last_ids``, (N, V), and the state that has seen it."""


def run_search(model: Writer[StateT], src_BS: Tensor, limits_B: Tensor, search: SearchConfig) -> list[list[Hypothesis]]:
    """Greedy or beam search with a model's step function, as the configuration asks. Section 6.1."""
    state = model.start(src_BS)
    forbidden_ids = (PAD_ID, BOS_ID)
    if search.beam_size == 1:
        best = greedy_search(
            model.step,
            state,
            limits_B=limits_B,
            bos_id=BOS_ID,
            eos_id=EOS_ID,
            forbidden_ids=forbidden_ids,
            alpha=search.alpha,
        )
        return [[hypothesis] for hypothesis in best]
    return beam_search(
        model.step,
        state,
        limits_B=limits_B,
        beam_size=search.beam_size,
        alpha=search.alpha,
        n_best=search.n_best,
        bos_id=BOS_ID,
        eos_id=EOS_ID,
        forbidden_ids=forbidden_ids,
    )

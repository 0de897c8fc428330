"""The sentences that figures 3 to 5 draw, with the attention of the model in them.

The weights lie beside the record of the run, in half precision, so that drawing needs no model.

Shapes: L layers, H heads, P subwords with EOS, S source positions (words with EOS).
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import PositiveInt, TypeAdapter

from transduce.errors import DataError, ShapeError
from transduce.inference import Translator
from transduce.text import EOS_ID, SPECIAL_TOKENS
from transduce.view import AttentionMaps, attention_of_translation
from transduce_paper.attention.word_attention import WordAttention, merge_subwords, split_into_words
from transduce_paper.experiments import Experiments
from transduce_paper.measurement_cache import MeasuredArrays, validated
from transduce_paper.run_records import Experiment

__all__ = [
    "DEFAULT_SENTENCE", "GOVERNMENTS", "LAW", "MAX_WORDS", "OWN", "DrawnSentence", "Sentence", "drawn_sentence",
    "sentence_of_user",
]  # fmt: skip

MAX_WORDS = 60  # of a sentence that is drawn
MAX_TRANSLATION_TOKENS = 56  # EOS included; a longer translation is cut, so that two sentences take at most 1 MB

# An image caption, as in the training text of --scale cpu, with a subject far from its verb and a pronoun.
DEFAULT_SENTENCE = "A woman in a red jacket who is standing near the lake is throwing a ball to her dog."


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence to draw, and the name of its cached files."""

    name: str
    text: str


OWN = Sentence("woman", DEFAULT_SENTENCE)
# The sentences of the paper's drawings.
GOVERNMENTS = Sentence(
    "governments",
    "It is in this spirit that a majority of American governments have passed new laws since 2009 making the"
    " registration or voting process more difficult.",
)  # figure 3
LAW = Sentence(
    "law",
    "The Law will never be perfect, but its application should be just - this is what we are missing, in my opinion.",
)  # figures 4 and 5


@dataclass(frozen=True, slots=True, eq=False)
class DrawnSentence:
    """A sentence with the model's translation and all attention weights."""

    maps: AttentionMaps  # between subwords
    words: WordAttention  # the encoder self-attention between words

    @property
    def text(self) -> str:
        """The sentence."""
        return self.maps.source

    def position(self, word: str) -> int:
        """Return the position of the first occurrence of a word. Raises ValueError if there is none."""
        return self.words.words.index(word)


@dataclass(frozen=True, slots=True)
class _Tokens:
    """What is kept beside the weights of a sentence."""

    source: str
    translation: str
    src_tokens: tuple[str, ...]
    tgt_tokens: tuple[str, ...]
    tgt_predicted: tuple[str, ...]
    words: tuple[str, ...]  # S, EOS last
    n_subwords: tuple[PositiveInt, ...]  # of each word


def drawn_sentence(experiments: Experiments, experiment: Experiment, sentence: Sentence) -> DrawnSentence:
    """Return the attention of an experiment's model in a sentence, cached beside its record.

    Raises DataError if the cached files are damaged or the attention is too large to be kept.
    """

    def measure(model_folder: Path) -> MeasuredArrays:
        return _measured(Translator.load(model_folder, device=experiments.device), sentence.text)

    what = f"sentence-{sentence.name}"
    cached = experiments.cached_arrays(experiment, what, measure, settings={"sentence": sentence.text})
    return _drawn(cached, where=f"{experiment.name}.{what}.json")


def sentence_of_user(translator: Translator, text: str) -> DrawnSentence:
    """Return the attention of a model in any sentence.

    Raises DataError if it has no words, or more than a drawing holds.
    """
    words, _ = split_into_words(translator, text)
    if len(words) > MAX_WORDS:
        raise DataError(f"figures 3 to 5 draw at most {MAX_WORDS} words; the sentence has {len(words)}")
    return _drawn(_measured(translator, text), where="the sentence")


def _measured(translator: Translator, text: str) -> MeasuredArrays:
    """Return the weights in a sentence and its translation as float16, and their tokens."""
    maps = attention_of_translation(translator, text, _short_translation(translator, text))
    words, n_subwords = split_into_words(translator, maps.source)
    tokens = _Tokens(
        maps.source,
        maps.translation,
        maps.src_tokens,
        maps.tgt_tokens,
        maps.tgt_predicted,
        (*words, SPECIAL_TOKENS[EOS_ID]),
        (*n_subwords, 1),
    )
    arrays: dict[str, Any] = {kind: weights.astype(np.float16) for kind, weights in maps.by_kind.items()}
    return MeasuredArrays(TypeAdapter(_Tokens).dump_python(tokens, mode="json"), arrays)


def _short_translation(translator: Translator, text: str) -> str:
    """Return the model's translation, cut after ``MAX_TRANSLATION_TOKENS``."""
    (translation,) = translator.translate([text], split=False)
    tokenizer = translator.tokenizers.tgt
    ids = tokenizer.encode(translation)
    return translation if len(ids) < MAX_TRANSLATION_TOKENS else tokenizer.decode(ids[: MAX_TRANSLATION_TOKENS - 1])


def _drawn(measured: MeasuredArrays, *, where: str) -> DrawnSentence:
    """Return a sentence from its arrays and tokens. Raises DataError, naming ``where``, if they do not fit."""
    tokens = validated(TypeAdapter(_Tokens), measured.values, where=where)
    weights = {kind: array.astype(np.float32) for kind, array in measured.arrays.items()}
    if not {"encoder", "cross"} <= weights.keys() or len(tokens.words) != len(tokens.n_subwords):
        raise DataError(f"{where} lacks attention weights or words; delete it to measure again")
    try:
        maps = AttentionMaps(
            tokens.source,
            tokens.translation,
            tokens.src_tokens,
            tokens.tgt_tokens,
            tokens.tgt_predicted,
            cross=weights["cross"],
            encoder=weights["encoder"],
            decoder=weights.get("decoder"),
        )
    except ShapeError as error:
        raise DataError(f"{where} does not fit its arrays ({error}); delete it to measure again") from error
    n_subwords = np.array(tokens.n_subwords)
    if n_subwords.sum() != len(maps.src_tokens):
        raise DataError(
            f"{where} has words of {n_subwords.sum()} subwords, but {len(maps.src_tokens)} tokens; delete it to measure"
            " again"
        )
    return DrawnSentence(maps, WordAttention(tokens.words, merge_subwords(weights["encoder"], n_subwords)))

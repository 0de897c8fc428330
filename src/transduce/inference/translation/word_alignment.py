"""Which source words each word of a translation looked at, and how probable the model found it. Section 3.2.3.

The model reads the translation as if it wrote it (forced decoding). A target word's weights come from the
encoder-decoder attention of the positions that predict its tokens, averaged over the heads of one layer. Much of it
rests on few source tokens, such as the full stop, whatever is written: so the attention to a source word is divided by
all that it gets, which nearly halves the alignment error (``benchmarks/alignment.py``).

Shapes: T target positions, S source positions, X target words, Y source words.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING

from transduce.imports import numpy as np
from transduce.inference.engine import ForcedPair
from transduce.text import EOS_ID, MaskedText, Tokenizer, mask, normalise, word_spans

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from transduce.inference.translation.segment_translator import SegmentTranslator

__all__ = ["AlignedSentence", "align_words"]

Span = tuple[int, int]  # the (start, end) of characters

OF_NOBODY = 0.1  # attention that a source word gets besides that of the target words, so that little stays little


@dataclass(frozen=True, slots=True, eq=False)
class AlignedSentence:
    """A sentence, its translation, and the attention between their words. Both texts are normalised."""

    source: str
    target: str
    source_words: tuple[Span, ...]
    target_words: tuple[Span, ...]
    weights_XY: NDArray[np.float32]  # rows sum to 1; uniform where the model has no attention
    log_probs_X: tuple[float, ...]  # of each target word given everything before it, in nats

    @property
    def word_log_probs(self) -> list[tuple[str, float]]:
        """The words of the target, and their log-probabilities."""
        words = [self.target[start:end] for start, end in self.target_words]
        return list(zip(words, self.log_probs_X, strict=True))


def align_words(translator: SegmentTranslator, pairs: Sequence[tuple[str, str]]) -> list[AlignedSentence]:
    """Align sentences with their translations, each (source, target), in batches.

    Sides longer than the model reads are truncated: later words have uniform weights and log-probability 0.
    """
    limit = translator.max_source_tokens - 1
    texts = [(normalise(source), normalise(target)) for source, target in pairs]
    sources, targets = zip(*(_masked(*each, translator) for each in texts), strict=True) if texts else ((), ())
    tokenizers = translator.tokenizers
    src_ids = [ids[:limit] for ids in tokenizers.src.encode_batch([each.text for each in sources], max_tokens=limit)]
    tgt_ids = [ids[:limit] for ids in tokenizers.tgt.encode_batch([each.text for each in targets], max_tokens=limit)]
    forced = [ForcedPair([*src, EOS_ID], [*tgt, EOS_ID]) for src, tgt in zip(src_ids, tgt_ids, strict=True)]
    scores = translator.engine.forced_scores(
        forced, max_tokens=translator.search.max_tokens_per_batch, has_attention=True
    )
    aligned = []
    for (source, target), masked_source, masked_target, src, tgt, found in zip(
        texts, sources, targets, src_ids, tgt_ids, scores, strict=True
    ):
        source_words, target_words = tuple(word_spans(source)), tuple(word_spans(target))
        src_word_of = _word_of_tokens(masked_source, src, tokenizers.src, source_words)
        tgt_word_of = _word_of_tokens(masked_target, tgt, tokenizers.tgt, target_words)
        attention_TS = None if found.attention_TS is None else found.attention_TS[:-1, :-1]  # without EOS
        log_probs_T = found.log_probs_T[:-1].astype(np.float32)
        aligned.append(
            AlignedSentence(
                source,
                target,
                source_words,
                target_words,
                _word_weights(attention_TS, tgt_word_of, src_word_of, len(target_words), len(source_words)),
                _word_log_probs(log_probs_T, tgt_word_of, len(target_words)),
            )
        )
    return aligned


def _masked(source: str, target: str, translator: SegmentTranslator) -> tuple[MaskedText, MaskedText]:
    """Return both sides as the model reads and writes them, with the masks of the source."""
    masked, hidden = MaskedText(source, {}), target
    if translator.tokenizers.src.has_masks and translator.tokenizers.tgt.has_masks:
        masked = mask(source, translator.mask_rules)
    written = {mask_token: masked.in_target(mask_token) for mask_token in masked.originals}
    for mask_token, string in sorted(written.items(), key=lambda each: -len(each[1])):
        hidden = hidden.replace(string, mask_token)
    read, hidden = translator.as_read(masked.text, hidden)
    return replace(masked, text=read), MaskedText(hidden, written)


def _word_of_tokens(
    masked: MaskedText, ids: Sequence[int], tokenizer: Tokenizer, words: Sequence[Span]
) -> list[int | None]:
    """Return the index of the word that each token of the masked text begins in; None outside all words."""
    starts, word_of_character = list[int](), dict[int, int]()  # of the masked text, in the text
    position = 0
    for character in masked.text:
        starts.append(position)
        position += len(masked.originals.get(character, character))
    for index, word in enumerate(words):
        word_of_character |= dict.fromkeys(range(*word), index)
    spans = tokenizer.spans(ids)
    return [word_of_character.get(starts[begin]) if begin < len(starts) else None for begin, _ in spans]


def _word_weights(
    weights_TS: NDArray[np.float32] | None,
    tgt_word_of: Sequence[int | None],
    src_word_of: Sequence[int | None],
    n_target_words: int,
    n_source_words: int,
) -> NDArray[np.float32]:
    """Return the weights between words, (X, Y): summed over the tokens of a source word, averaged over the target's.

    Then divided by those of all target words.
    """
    words_XY = np.zeros((n_target_words, n_source_words), np.float32)
    if weights_TS is not None:
        rows = [(position, word) for position, word in enumerate(tgt_word_of) if word is not None]
        columns = [(position, word) for position, word in enumerate(src_word_of) if word is not None]
        if rows and columns:
            (row_positions, row_words), (column_positions, column_words) = zip(*rows), zip(*columns)  # noqa: B905
            by_column_TY = np.zeros((len(rows), n_source_words), np.float32)
            np.add.at(by_column_TY.T, list(column_words), weights_TS[np.ix_(row_positions, column_positions)].T)
            np.add.at(words_XY, list(row_words), by_column_TY)
    words_XY = _rows_normalised(words_XY)
    shares_XY = _rows_normalised(words_XY / (words_XY.sum(0) + np.float32(OF_NOBODY)))
    is_known_X1 = words_XY.any(1, keepdims=True)
    return np.where(is_known_X1, shares_XY, 1 / max(1, n_source_words)).astype(np.float32)


def _rows_normalised(weights_XY: NDArray[np.float32]) -> NDArray[np.float32]:
    totals_X1: NDArray[np.float32] = weights_XY.sum(1, keepdims=True)
    return np.divide(weights_XY, totals_X1, where=totals_X1 > 0, out=np.zeros_like(weights_XY))


def _word_log_probs(
    log_probs_T: NDArray[np.float32], tgt_word_of: Sequence[int | None], n_words: int
) -> tuple[float, ...]:
    """Return the log-probability of each word: the sum over its tokens, and over those of spaces before it."""
    sums = [0.0] * n_words
    starts = [position for position, word in enumerate(tgt_word_of) if word is not None]
    for (first, end), position in zip(pairwise([0, *(each + 1 for each in starts)]), starts, strict=True):
        word = tgt_word_of[position]
        assert word is not None
        sums[word] += float(log_probs_T[first:end].sum())
    return tuple(sums)

"""Length statistics of the training lines, saved in model folders.

A translator uses them to decide how much text its model can translate at a time.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field

from transduce.config.record import Count, Record, config_from_mapping
from transduce.errors import CheckpointError, quoted
from transduce.imports import numpy as np
from transduce.inference.translation.mask_statistics import MaskStatistics
from transduce.text import Tokenizers, is_all_caps, split_sentences
from transduce.text.quotes import QuoteStyle

if TYPE_CHECKING:
    from transduce.data import PairStore

__all__ = ["LineStatistics", "line_statistics"]

N_SAMPLED_LINES = 20_000  # evenly spaced lines whose sentences are counted
MIN_LINE_FRACTION = 0.05  # of the training lines: a model hardly learns lengths that fewer lines reach
MIN_RATIO_TOKENS = 10  # shorter sources have no meaningful length ratio
RARE_FRACTION = 0.001  # quantile of the length ratios
# A line is unlike the training text if fewer of its lines are cut into as many pieces a word, or if the model is less
# sure of its translation than of those of so many other lines.
UNLIKE_FRACTION = 0.01
MIN_WORDS = 3  # of a line whose pieces are counted
MIN_MEASURED_LINES, MAX_MEASURED_LINES = 100, 500


class LineStatistics(Record):
    """Statistics of the source lines and pairs of a training text. Tokens include EOS."""

    sentences: Count  # 95 % quantile per line
    tokens: Count  # 95 % quantile per line
    longest: Count  # tokens of the longest source
    least_ratio: Annotated[float, Field(ge=0)]  # 0.1 % quantile of target tokens per source token
    caps: Annotated[float, Field(ge=0)]  # fraction of the lines in capitals only
    # The usual apostrophe, opening and closing quotation mark of the sources; None in folders of earlier versions.
    quotes: Annotated[str, Field(pattern=r"^['’][\"“”„][\"“”]$")] | None = None
    masks: MaskStatistics | None = None  # None in folders of earlier versions
    most_pieces: Annotated[float, Field(gt=0)] | None = None  # 99 % quantile of source tokens per word
    # 1 % quantile of how sure the model is of its translations of other lines: nats per token.
    least_log_prob: Annotated[float, Field(le=0)] | None = None

    def as_json(self) -> dict[str, Any]:
        """Return the values for ``config.json``."""
        return self.model_dump(mode="json", exclude_none=True)

    def with_confidence(self, mean_log_probs: Sequence[float]) -> LineStatistics:
        """Return the same with how sure the model is of its translations of lines that it was not trained on."""
        if len(mean_log_probs) < MIN_MEASURED_LINES:
            return self
        least = round(min(float(np.quantile(mean_log_probs, UNLIKE_FRACTION)), 0.0), 4)
        return self.model_copy(update={"least_log_prob": least})

    def is_unlike(self, line: str, n_pieces: int, mean_log_prob: float) -> bool:
        """Whether a line that is cut into so many pieces is unlike the training text.

        More pieces than characters, with a blank before the first, are bytes of characters that the text did not have.
        """
        words = line.split()
        if n_pieces > len(line) + 1:
            return True
        if self.most_pieces is not None and len(words) >= MIN_WORDS and n_pieces > self.most_pieces * len(words):
            return True
        return self.least_log_prob is not None and mean_log_prob < self.least_log_prob

    @classmethod
    def from_json(cls, values: object, *, where: object) -> LineStatistics | None:
        """Read the values of ``as_json``; None for None, a model without statistics. Raises CheckpointError."""
        if values is None:
            return None
        if not isinstance(values, dict):
            raise CheckpointError(f"{where}: lines should be a table of numbers, got {quoted(values)}")
        return config_from_mapping(cls, values, where=f"{where}: lines", error=CheckpointError)


def line_statistics(
    store: PairStore, tokenizers: Tokenizers, language: str, masks: MaskStatistics | None = None
) -> LineStatistics:
    """Compute the statistics of a store; sentences are counted in a sample of its sources. ``masks`` are kept."""
    n_each = store.summary.n_encodings
    n_src, n_tgt = store.src_lengths[::n_each], store.tgt_lengths[::n_each]  # of the first: others may have hints
    rows = np.unique(np.linspace(0, len(n_src) - 1, min(len(n_src), N_SAMPLED_LINES)).astype(np.int64))
    lines = tokenizers.src.decode_batch(store.pair(int(row) * n_each)[0] for row in rows)
    has_ratio = n_src >= min(MIN_RATIO_TOKENS, int(np.median(n_src)))
    return LineStatistics(
        sentences=_upper_quantile([len(split_sentences(line, language)) for line in lines]),
        tokens=_upper_quantile(n_src.tolist()),
        longest=int(n_src.max()),
        least_ratio=round(float(np.quantile(n_tgt[has_ratio] / n_src[has_ratio], RARE_FRACTION)), 4),
        caps=round(sum(map(is_all_caps, lines)) / len(lines), 4),
        quotes=QuoteStyle.of_text(lines).as_text(),
        masks=masks,
        most_pieces=_most_pieces(lines, n_src[rows]),
    )


def _most_pieces(lines: Sequence[str], n_src: Any) -> float | None:
    """Return the quantile of tokens per word, without EOS; None without lines of several words."""
    counted = ((n - 1, len(line.split())) for line, n in zip(lines, n_src, strict=True))
    counts = [n_pieces / n_words for n_pieces, n_words in counted if n_words >= MIN_WORDS]
    return round(float(np.quantile(counts, 1 - UNLIKE_FRACTION)), 4) if counts else None


def _upper_quantile(counts: Sequence[int]) -> int:
    """Return the largest count that at least ``MIN_LINE_FRACTION`` of the lines reach."""
    return int(np.quantile(np.asarray(counts), 1 - MIN_LINE_FRACTION, method="lower"))

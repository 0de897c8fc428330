"""Rankings of a translator's own translations by chrF: what a reward model for translation learns from."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from transduce.config import SampledSearchConfig, SearchConfig
from transduce.config.decoding import DecodingOptions
from transduce.corpora.responses import Ranking
from transduce.inference.translation.best_of_samples import drawn_segments, seeds_of_draws
from transduce.inference.translation.parts import TranslatedSegment
from transduce.inference.translation.translator import Translator
from transduce.metrics import sentence_chrf_scores
from transduce.text import normalise
from transduce.text.chunks import chunks

__all__ = ["RankedCounts", "ranked_by_chrf", "ranked_translations"]

PAIRS_PER_CHUNK = 1000


@dataclass(slots=True)
class RankedCounts:
    """What became of the pairs of a text."""

    rankings: int = 0
    responses: int = 0  # translations in them
    empty: int = 0  # left out: no source or no reference
    too_long: int = 0  # left out: the translator read only the beginning
    alike: int = 0  # left out: all translations are equal, or as good as each other

    def as_json(self) -> dict[str, Any]:
        """Return the JSON values that the command line prints."""
        return asdict(self)


def ranked_translations(
    translator: Translator,
    pairs: Iterable[tuple[str, str]],
    counts: RankedCounts,
    *,
    n: int,
    search: SearchConfig | None = None,
) -> Iterator[Ranking]:
    """Yield for each pair the translations of its source, ordered by chrF against its reference, best first.

    A search that samples draws ``n`` translations; any other finds the ``n`` best. ``search``: by default the
    translator's. ``counts`` are added to. The reference is not among the translations unless the translator writes it.
    """
    config = search or translator.search
    for chunk in chunks(pairs, PAIRS_PER_CHUNK, lambda pair: len(pair[0]) + len(pair[1])):
        sources, references = [normalise(source) for source, _ in chunk], [reference for _, reference in chunk]
        translated = _translated(translator, sources, config, n)
        for source, reference, segments in zip(sources, references, translated, strict=True):
            texts = [each.text for segment in segments for each in segment.n_best if each.text.strip()]
            if not source or not reference.strip():
                counts.empty += 1
            elif "source-cut" in segments[0].warnings:
                counts.too_long += 1
            elif len(ranked := ranked_by_chrf(texts, normalise(reference))) < 2:
                counts.alike += 1
            else:
                counts.rankings += 1
                counts.responses += len(ranked)
                yield Ranking(source, ranked)


def ranked_by_chrf(texts: Iterable[str], reference: str) -> tuple[str, ...]:
    """Return different texts by falling chrF; of those with the same chrF only the first stays.

    >>> ranked_by_chrf(["Die Katze.", "Ein Hund.", "Ein Hund", "Ein Hund."], "Ein Hund.")
    ('Ein Hund.', 'Ein Hund', 'Die Katze.')
    """
    different = list(dict.fromkeys(texts))
    scores = sentence_chrf_scores(different, reference)
    first_with = dict(zip(reversed(scores), reversed(different), strict=True))
    return tuple(first_with[score] for score in sorted(first_with, reverse=True))


def _translated(
    translator: Translator, sources: Sequence[str], search: SearchConfig, n: int
) -> list[tuple[TranslatedSegment, ...]]:
    """Return all translations of each source."""
    if isinstance(search, SampledSearchConfig):
        draws = drawn_segments(translator, sources, search, seeds_of_draws(search.seed, n))
        return list(zip(*draws, strict=True))
    segments = translator.translate_segments(sources, DecodingOptions(n_best=n).applied_to(search))
    assert segments is not None  # not interrupted
    return [(each,) for each in segments]

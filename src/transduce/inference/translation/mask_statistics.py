"""Which verbatim strings a training text has on its source side only, and how it writes numbers: what not to copy."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Annotated, Any

from pydantic import BeforeValidator

from transduce.config.record import Record, config_from_mapping
from transduce.errors import TransduceError, quoted
from transduce.text.masks import MaskRules, shared_strings
from transduce.text.verbatim import NUMBER_KINDS, verbatim_strings

__all__ = ["MaskCounts", "MaskStatistics", "mask_rules"]

MAX_PAIRS = 500_000  # counted; enough for any string that matters
MIN_COUNT = 20  # sources that have a string, before it is said to be on one side only
MIN_ONE_SIDED = 0.9  # of them have it without their targets
MIN_PREFIXED = 0.05  # of the sources begin with control tags, before they are named
MAX_STRINGS = 1000
MAX_COUNTED = 100_000  # different strings; then those that occurred once are forgotten
MAX_NAMED = 5
# Kinds whose digits a translation keeps in any case, so that no string of them is a control tag.
_WITH_DIGITS = frozenset((*NUMBER_KINDS, "time", "digits"))


class MaskStatistics(Record):
    """What the training text of a translator has on its source side only, and how it writes numbers."""

    one_sided: Annotated[tuple[str, ...], BeforeValidator(lambda each: tuple(each) if isinstance(each, list) else each)]
    translates_numbers: bool  # "12.5 kg" becomes "12,5 kg", where the languages differ so

    @classmethod
    def from_json(cls, values: object, *, where: object, error: type[TransduceError]) -> MaskStatistics | None:
        """Read the values of ``model_dump``; None for None, a text without statistics. Raises ``error``."""
        if values is None:
            return None
        if not isinstance(values, dict):
            raise error(f"{where}: masks should be a table, got {quoted(values)}")
        return config_from_mapping(cls, values, where=f"{where}: masks", error=error)


def mask_rules(src_language: str, tgt_language: str, statistics: MaskStatistics | None) -> MaskRules:
    """Return the rules by which a translator masks. Without statistics it masks everything."""
    if statistics is None:
        return MaskRules(src_language, tgt_language)
    unmasked = frozenset(statistics.one_sided)
    return MaskRules(src_language, tgt_language, unmasked, translates_numbers=statistics.translates_numbers)


class MaskCounts:
    """Counts the verbatim strings of training pairs."""

    def __init__(self, src_language: str, tgt_language: str) -> None:
        self._rules = MaskRules(src_language, tgt_language)
        self._n_pairs = self._n_copied = self._n_translated = 0
        self._in_source, self._one_sided, self._prefixes = Counter[str](), Counter[str](), Counter[str]()

    def counted(self, pairs: Iterable[tuple[str, str]]) -> Iterator[tuple[str, str]]:
        """Yield the pairs, counting the first of them."""
        pairs = iter(pairs)
        for pair in islice(pairs, max(0, MAX_PAIRS - self._n_pairs)):
            self._count(*pair)
            yield pair
        yield from pairs

    def statistics(self) -> MaskStatistics:
        """Return the statistics of the pairs so far."""
        one_sided = [
            string
            for string, count in self._one_sided.most_common(MAX_STRINGS)
            if count >= MIN_COUNT and count >= MIN_ONE_SIDED * self._in_source[string]
        ]
        return MaskStatistics(one_sided=tuple(one_sided), translates_numbers=self._n_translated >= self._n_copied)

    def control_tags(self) -> dict[str, int]:
        """Return the one-sided strings that sources begin with, with their counts; none if few sources do."""
        one_sided = frozenset(self.statistics().one_sided)
        tags = {string: count for string, count in self._prefixes.most_common() if string in one_sided}
        return tags if sum(tags.values()) >= MIN_PREFIXED * self._n_pairs else {}

    def lines(self) -> Iterator[str]:
        """Yield a line about control tags, if there are any, for the log of a preparation."""
        tags = self.control_tags()
        if tags:
            named = [f"{string} ({count:,})" for string, count in islice(tags.items(), MAX_NAMED)]
            more = [f"{len(tags) - MAX_NAMED:,} more"] if len(tags) > MAX_NAMED else []
            yield (
                f"control tags: {', '.join(named + more)} begin sources and are in no target, so they are never masked"
                " or copied"
            )

    def as_json(self) -> dict[str, Any]:
        """Return the statistics for ``prepared.json``."""
        return self.statistics().model_dump(mode="json")

    def _count(self, src: str, tgt: str) -> None:
        self._n_pairs += 1
        strings = {each.text: each for each in verbatim_strings(src)}
        shared = dict(shared_strings(src, tgt, self._rules)) if strings else {}
        for text, string in strings.items():
            if string.kind in _WITH_DIGITS:
                if text in shared and self._rules.in_target(string) != text:
                    self._n_copied += shared[text] == text
                    self._n_translated += shared[text] != text
            elif string.kind != "private_use":
                self._in_source[text] += 1
                if text not in shared and text not in tgt:
                    self._one_sided[text] += 1
                    self._prefixes[text] += src.startswith(text)
        if len(self._in_source) > MAX_COUNTED:
            for counter in (self._in_source, self._one_sided, self._prefixes):
                for seldom in [each for each, count in counter.items() if count < 2]:
                    del counter[seldom]

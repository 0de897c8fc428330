"""How many terms translations keep."""

from __future__ import annotations

from dataclasses import dataclass

from transduce.terms.terms import Terms, words_of

__all__ = ["TermAccuracy"]


@dataclass(slots=True)
class TermAccuracy:
    """Counts of the terms of sources, of those that the translations have, and of those in another form of the word.

    >>> from transduce.terms import Term
    >>> accuracy = TermAccuracy(Terms((Term("dog", "Hund"), Term("house", "Haus"))))
    >>> accuracy.observe("A dog, two dogs, a house.", "Ein Hund, zwei Hunde, ein Gebäude.")
    >>> accuracy.observe("A dog.", "Des Hundes.")
    >>> accuracy.n, accuracy.n_exact, accuracy.n_inflected, accuracy.n_avoided
    (3, 1, 1, 0)
    >>> print(TermAccuracy(Terms(avoided=("very",))))
    0 phrases that were to be avoided
    """

    terms: Terms
    n: int = 0
    n_exact: int = 0
    n_inflected: int = 0  # not exact, but with the same beginnings of words
    n_avoided: int = 0  # phrases that were to be avoided, and are there

    def observe(self, source: str, target: str) -> None:
        """Count the terms of a pair."""
        found, lost = self.terms.found(source), self.terms.lost(source, target)
        words = [each.casefold() for each in words_of(target)]
        self.n += len(found)
        self.n_exact += len(found) - len(lost)
        self.n_inflected += sum(_is_inflected(words_of(each.target.casefold()), words) for each in lost)
        self.n_avoided += len(self.terms.said(target))

    def __str__(self) -> str:
        kept = f"{self.n_exact:,} of {self.n:,} terms as in the list ({self.n_exact / max(1, self.n):.1%})"
        kept += f", {self.n_inflected:,} in another form" if self.n_inflected else ""
        if not self.n:
            kept = "no source has a term of the list" if self.terms.terms else ""
        avoided = f"{self.n_avoided:,} phrases that were to be avoided" if self.n_avoided or not kept else ""
        return "; ".join(filter(None, (kept, avoided)))


def _is_inflected(phrase: list[str], words: list[str]) -> bool:
    stems = [each[: max(3, len(each) * 3 // 4)] for each in phrase]
    return any(
        all(word.startswith(stem) for word, stem in zip(words[place:], stems, strict=False))
        for place in range(len(words) - len(stems) + 1)
    )

"""The page on which a person looks at the translations of lines."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from transduce.config.decoding import LoadingOptions

if TYPE_CHECKING:
    from transduce.inference import Translation

__all__ = ["LineReview"]


class LineReview:
    """Collects translations for the page."""

    def __init__(self, path: Path, name: str, loading: LoadingOptions, direction: tuple[str, str]) -> None:
        from transduce.inference.translation.loading import read_term_lists

        self._path, self._name, self._direction = path, name, direction
        self._translations: list[Translation] = []
        self._terms = read_term_lists(loading, *direction)

    def observe(self, translation: Translation) -> None:
        """Keep the translation of the next line."""
        self._translations.append(translation)

    def write(self) -> None:
        """Write the page."""
        from transduce.inference.translation.review import reviewed_line
        from transduce.review import write_review

        texts = [
            reviewed_line(number, each, self._terms)
            for number, each in enumerate(self._translations, start=1)
            if each.source.strip()
        ]
        write_review(self._path, texts, name=self._name, direction=self._direction)

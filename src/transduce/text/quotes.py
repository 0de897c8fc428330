"""Apostrophes and quotation marks, which people write in a plain and in a typographic form.

A model reads the form that its training text had; what a user typed makes no difference. Translations are not touched.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from itertools import chain

from transduce.patterns import compiled_on_use
from transduce.text.byte_level import to_byte_level

__all__ = ["PLAIN", "QuoteStyle", "plain_quotes"]

_APOSTROPHES, _QUOTES = "'’‘‛ʼ＇‚", '"“”„‟＂〝〞'
# A quotation mark that opens stands before a word, and behind nothing, space, a bracket, a dash or another mark.
_ANY = compiled_on_use(
    rf"(?P<opening>(?<![^\s([{{<–—/{_APOSTROPHES}{_QUOTES}-])[{_QUOTES}](?![\s.,;:!?)\]}}]|$))|[{_APOSTROPHES}{_QUOTES}]"
)
_TO_PLAIN = str.maketrans(_APOSTROPHES + _QUOTES, "'" * len(_APOSTROPHES) + '"' * len(_QUOTES))


def plain_quotes(text: str) -> str:
    """Return ``text`` with plain quotation marks and apostrophes, of the same length.

    >>> plain_quotes("“It’s”")
    '"It\\'s"'
    """
    return text if text.isascii() else text.translate(_TO_PLAIN)


@dataclass(frozen=True, slots=True)
class QuoteStyle:
    """The apostrophe and the quotation marks of a text."""

    apostrophe: str  # ' or ’
    opening: str  # of " ", “ ”, „ “, „ ” or ” ”
    closing: str

    def apply(self, text: str) -> str:
        """Return ``text`` in this style; its length stays.

        >>> PLAIN.apply("„It’s“"), QuoteStyle("’", "“", "”").apply('"It\\'s," he said')
        ('"It\\'s"', '“It’s,” he said')
        """
        if self == PLAIN:
            return plain_quotes(text)
        return _ANY.sub(self._form, text)

    def _form(self, match: re.Match[str]) -> str:
        if match[0] in _APOSTROPHES:
            return self.apostrophe
        return self.opening if match["opening"] else self.closing

    def as_text(self) -> str:
        """Return the three marks; ``QuoteStyle(*marks)`` reads them."""
        return self.apostrophe + self.opening + self.closing

    @classmethod
    def of_text(cls, texts: Iterable[str]) -> QuoteStyle:
        """Return the style that most marks of some texts have."""
        apostrophes, openings, closings = Counter("'"), Counter('"'), Counter('"')
        for match in chain.from_iterable(map(_ANY.finditer, texts)):
            mark = match[0]
            (apostrophes if mark in _APOSTROPHES else openings if match["opening"] else closings)[mark] += 1
        opening, closing = (max(counts, key=counts.__getitem__) for counts in (openings, closings))
        if not {opening, closing} <= set("“”„"):
            opening = closing = '"'
        return cls("’" if apostrophes["’"] > apostrophes["'"] else "'", opening, closing)

    @classmethod
    def of_vocabulary(cls, tokens: Collection[str]) -> QuoteStyle:
        """Return the style of a vocabulary, of text or in the byte-level alphabet: typographic if it has no other."""

        def has(mark: str) -> bool:
            forms = {mark, to_byte_level(mark)}
            return any(form in token and (token != form or not mark.isascii()) for token in tokens for form in forms)

        style = (has("’"), has("'")), (has("“"), has('"'))
        apostrophe, quote = ((typographic and not plain) for typographic, plain in style)
        opening, closing = (("„", "“") if has("„") else ("“", "”")) if quote else ('"', '"')
        return cls("’" if apostrophe else "'", opening, closing)


PLAIN = QuoteStyle("'", '"', '"')

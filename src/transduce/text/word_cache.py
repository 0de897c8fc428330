"""The word cache: remembers the ids of words, so that the tokenizers library segments each distinct word only once.

Text is divided at its spaces. The pre-tokenizers never put two words that a space separates into one token, so the ids
of a text are those of its words, one after the other. This holds for text whose only whitespace is single spaces
between words, as ``normalise`` returns it; other text is passed to the library whole.

In running text most words have occurred before, and the library is then called for a few words in a hundred.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from transduce.text.encoded_texts import IdBytes

__all__ = ["MAX_CACHED_CHARACTERS", "WordCache", "words_of"]

MAX_CACHED_CHARACTERS = 1 << 21  # of all words; with their values some 50 MB


def words_of(text: str) -> list[str]:
    """Return the words of ``text``; if it has whitespace other than single spaces between words, only the whole text.

    >>> words_of("a black dog"), words_of("a  dog"), words_of("")
    (['a', 'black', 'dog'], ['a  dog'], [])
    """
    words = text.split()
    return words if " ".join(words) == text else [text]


class WordCache:
    """Ids of words, a pure function of the word; emptied when it holds too many characters.

    Threads may share it: the dictionary returned by ``values_of`` stays complete, whatever other threads do.
    """

    def __init__(self, compute: Callable[[Collection[str]], Sequence[IdBytes]]) -> None:
        """``compute`` returns the ids of each of several words."""
        self._compute = compute
        self._values: dict[str, IdBytes] = {}
        self._n_characters = 0

    def values_of(self, words: Sequence[Sequence[str]]) -> dict[str, IdBytes]:
        """Return a dictionary that has all words of some texts, and others."""
        if self._n_characters > MAX_CACHED_CHARACTERS:
            self._values, self._n_characters = {}, 0
        values = self._values
        new = set[str]().union(*words).difference(values)
        if new:
            values.update(zip(new, self._compute(new), strict=True))
            self._n_characters += sum(map(len, new))
        return values

"""What a parser may write next: brackets that match, every word once, an end that is reached. No model, only ids."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce

from transduce.errors import DataError
from transduce.linearisation import PUNCTUATION_TAGS
from transduce.text.vocabulary import EOS_ID, SPECIAL_TOKENS

__all__ = ["BracketGrammar", "TokenKinds"]


@dataclass(frozen=True, slots=True)
class TokenKinds:
    """The symbols of linearised trees by what they do."""

    opening: tuple[int, ...]
    closing_of: Mapping[int, int]  # opening bracket -> the one that closes it
    punctuation: tuple[int, ...]  # tags
    other_tags: tuple[int, ...]

    @staticmethod
    def from_vocabulary(vocabulary: Mapping[str, int]) -> TokenKinds:
        """From symbols and their ids. Raises DataError if a bracket has not its other half, or there is no tag.

        >>> TokenKinds.from_vocabulary({"(S": 4, ")S": 5, ",": 6, "XX": 7}).closing_of
        {4: 5}
        """
        tokens = {token: id for token, id in vocabulary.items() if token not in SPECIAL_TOKENS}
        opening = {token[1:]: id for token, id in tokens.items() if token.startswith("(")}
        closing = {token[1:]: id for token, id in tokens.items() if token.startswith(")")}
        if opening.keys() != closing.keys():
            odd = min(opening.keys() ^ closing.keys())
            raise DataError(f"the bracket {odd!r} has only one half in the vocabulary")
        tags = {token: id for token, id in tokens.items() if not token.startswith(("(", ")"))}
        if not tags:
            raise DataError("there is no tag in the vocabulary, so no word can be written")
        return TokenKinds(
            opening=tuple(opening.values()),
            closing_of={opening[label]: closing[label] for label in opening},
            punctuation=tuple(id for token, id in tags.items() if token in PUNCTUATION_TAGS),
            other_tags=tuple(id for token, id in tags.items() if token not in PUNCTUATION_TAGS),
        )

    @property
    def tags(self) -> tuple[int, ...]:
        """Of both kinds."""
        return (*self.punctuation, *self.other_tags)


@dataclass(frozen=True, slots=True)
class _Written:
    """What matters of a prefix."""

    brackets: tuple[int, ...] = ()  # that are open, the innermost last
    n_opened: int = 0  # in a row, since the last word or closing bracket
    n_words: int = 0


class BracketGrammar:
    """A constraint for search, for some sentences: a tree over all words of each, within its limit.

    Brackets close in the order in which they opened, and none without a word in it; each word has one tag, out of those
    that are allowed for it; the end comes when all words are written and all brackets are closed. No bracket opens that
    could not be closed within the limit, so an output always ends; and not more than ``MAX_OPENED_IN_A_ROW`` open before a
    word: a model that takes a sentence for ended, while words are left, would open brackets for ever.
    """

    # The most that GUM, CRAFT and the sample of the Wall Street Journal have, in 40,000 trees.
    MAX_OPENED_IN_A_ROW = 8

    def __init__(self, kinds: TokenKinds, tags: Sequence[Sequence[Sequence[int]]], max_lengths: Sequence[int]) -> None:
        """``tags``: for each sentence and word, the ids that it may have; ``max_lengths`` count the end.

        Raises DataError if a sentence has no words, or a limit leaves no room for its words and the end.
        """
        for number, (words, limit) in enumerate(zip(tags, max_lengths, strict=True)):
            if not words or not all(words):
                raise DataError(f"sentence {number} (counted from 0) has no word, or a word without a tag")
            if limit <= len(words):
                raise DataError(f"sentence {number} (counted from 0) has {len(words)} words and a limit of {limit}")
        self.kinds, self.tags, self.max_lengths = kinds, tags, max_lengths
        self._opening = frozenset(kinds.opening)
        self._closing = frozenset(kinds.closing_of.values())
        self._length = 0
        self._shorter: dict[tuple[int, tuple[int, ...]], _Written] = {}
        self._known: dict[tuple[int, tuple[int, ...]], _Written] = {}

    def __call__(self, sentence: int, prefix: tuple[int, ...], /) -> list[int]:
        """Ids that may follow ``prefix``, which is made of ids that were allowed."""
        written = self._written(sentence, prefix)
        tags = self.tags[sentence]
        n_left = len(tags) - written.n_words
        allowed: list[int] = []
        if n_left:
            allowed += tags[written.n_words]
            # One bracket more, then all words, all closing brackets and the end.
            n_tokens_of_tree = len(prefix) + 1 + n_left + len(written.brackets) + 1 + 1
            if n_tokens_of_tree <= self.max_lengths[sentence] and written.n_opened < self.MAX_OPENED_IN_A_ROW:
                allowed += self.kinds.opening
        if written.brackets and not written.n_opened:
            allowed.append(self.kinds.closing_of[written.brackets[-1]])
        if not written.brackets and not n_left:
            allowed.append(EOS_ID)
        return allowed

    def _written(self, sentence: int, prefix: tuple[int, ...]) -> _Written:
        """What a prefix comes to: by that of the prefix before it, which is remembered for one step."""
        if len(prefix) != self._length:
            self._shorter = self._known if len(prefix) == self._length + 1 else {}
            self._known, self._length = {}, len(prefix)
        key = sentence, prefix
        if key not in self._known:
            before = self._shorter.get((sentence, prefix[:-1]))
            if before is None:
                self._known[key] = reduce(self._after, prefix, _Written())
            else:
                self._known[key] = self._after(before, prefix[-1])
        return self._known[key]

    def _after(self, written: _Written, id: int) -> _Written:
        if id in self._opening:
            return replace(written, brackets=(*written.brackets, id), n_opened=written.n_opened + 1)
        if id in self._closing:
            return replace(written, brackets=written.brackets[:-1], n_opened=0)
        return replace(written, n_opened=0, n_words=written.n_words + 1)

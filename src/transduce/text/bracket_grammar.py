"""The grammar of linearised trees: which tokens may follow a prefix in constrained parsing. Ids only, no model."""

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
    """The token ids of linearised trees by kind."""

    opening: tuple[int, ...]
    closing_of: Mapping[int, int]  # opening bracket -> its closing bracket
    punctuation: tuple[int, ...]  # tags of punctuation
    other_tags: tuple[int, ...]

    @staticmethod
    def from_vocabulary(vocabulary: Mapping[str, int]) -> TokenKinds:
        """Build from token to id. Raises DataError for an unmatched bracket or a vocabulary without tags.

        >>> TokenKinds.from_vocabulary({"(S": 4, ")S": 5, ",": 6, "XX": 7}).closing_of
        {4: 5}
        """
        tokens = {token: id for token, id in vocabulary.items() if token not in SPECIAL_TOKENS}
        opening = {token[1:]: id for token, id in tokens.items() if token.startswith("(")}
        closing = {token[1:]: id for token, id in tokens.items() if token.startswith(")")}
        if opening.keys() != closing.keys():
            unmatched = min(opening.keys() ^ closing.keys())
            raise DataError(f"the vocabulary has only one of the two brackets of {unmatched!r}")
        tags = {token: id for token, id in tokens.items() if not token.startswith(("(", ")"))}
        if not tags:
            raise DataError("the vocabulary has no tag, so no word can be generated")
        return TokenKinds(
            opening=tuple(opening.values()),
            closing_of={opening[label]: closing[label] for label in opening},
            punctuation=tuple(id for token, id in tags.items() if token in PUNCTUATION_TAGS),
            other_tags=tuple(id for token, id in tags.items() if token not in PUNCTUATION_TAGS),
        )

    @property
    def tags(self) -> tuple[int, ...]:
        """All tags, punctuation first."""
        return (*self.punctuation, *self.other_tags)


@dataclass(frozen=True, slots=True)
class _PrefixState:
    """The state of the grammar after a prefix."""

    open_brackets: tuple[int, ...] = ()  # the innermost last
    n_opened: int = 0  # brackets opened since the last word or closing bracket
    n_words: int = 0


class BracketGrammar:
    """What a search may write for a sentence: a tree over all of its words, within the maximum length.

    Brackets are balanced and contain at least one word; each word has one of its allowed tags; EOS follows once all
    words are generated and all brackets closed. A bracket opens only if it can be closed within the maximum length, so
    every output ends. At most ``MAX_OPENED_IN_A_ROW`` brackets open before a word: a model that wants to end too early
    would otherwise keep opening brackets.
    """

    # The maximum in GUM, CRAFT and the sample of the Wall Street Journal, 40,000 trees.
    MAX_OPENED_IN_A_ROW = 8

    def __init__(self, kinds: TokenKinds, tags: Sequence[Sequence[int]], max_length: int) -> None:
        """``tags``: the allowed tag ids of each word; ``max_length`` includes EOS.

        Raises DataError if there are no words, or the maximum length is too short for them and EOS.
        """
        if not tags or not all(tags):
            raise DataError("a sentence has no word, or a word without a tag")
        if max_length <= len(tags):
            need = f"{len(tags)} words and a maximum length of {max_length}; it needs {len(tags) + 1} or more"
            raise DataError(f"a sentence has {need}")
        self.kinds, self.tags, self.max_length = kinds, tags, max_length
        self._opening = frozenset(kinds.opening)
        self._closing = frozenset(kinds.closing_of.values())
        self._length = 0
        self._previous_states: dict[tuple[int, ...], _PrefixState] = {}
        self._states: dict[tuple[int, ...], _PrefixState] = {}

    def __call__(self, prefix: tuple[int, ...], /) -> list[int]:
        """Return the ids that may follow ``prefix``, which must satisfy the constraint itself."""
        state = self._state(prefix)
        n_left = len(self.tags) - state.n_words
        allowed: list[int] = []
        if n_left:
            allowed += self.tags[state.n_words]
            # The prefix, one more bracket, the remaining words, all closing brackets and EOS.
            shortest = len(prefix) + 1 + n_left + len(state.open_brackets) + 1 + 1
            if shortest <= self.max_length and state.n_opened < self.MAX_OPENED_IN_A_ROW:
                allowed += self.kinds.opening
        if state.open_brackets and not state.n_opened:
            allowed.append(self.kinds.closing_of[state.open_brackets[-1]])
        if not state.open_brackets and not n_left:
            allowed.append(EOS_ID)
        return allowed

    def _state(self, prefix: tuple[int, ...]) -> _PrefixState:
        """Return the state after ``prefix``; the states of the last step, one token shorter, are cached."""
        if len(prefix) != self._length:
            self._previous_states = self._states if len(prefix) == self._length + 1 else {}
            self._states, self._length = {}, len(prefix)
        if prefix not in self._states:
            previous = self._previous_states.get(prefix[:-1])
            if previous is None:
                self._states[prefix] = reduce(self._after, prefix, _PrefixState())
            else:
                self._states[prefix] = self._after(previous, prefix[-1])
        return self._states[prefix]

    def _after(self, state: _PrefixState, id: int) -> _PrefixState:
        if id in self._opening:
            return replace(state, open_brackets=(*state.open_brackets, id), n_opened=state.n_opened + 1)
        if id in self._closing:
            return replace(state, open_brackets=state.open_brackets[:-1], n_opened=0)
        return replace(state, n_opened=0, n_words=state.n_words + 1)

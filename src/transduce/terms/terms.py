"""A list of terms: which of them a text has, and whether its translation keeps them."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

from transduce.patterns import compiled_on_use
from transduce.text import normalise
from transduce.text.characters import SPACELESS
from transduce.text.quotes import plain_quotes
from transduce.text.term_marks import with_hints
from transduce.text.verbatim import placeholder_spans

__all__ = ["Term", "Terms", "occurrences", "words_of"]

_PLAIN_HYPHENS = str.maketrans("\u2010\u2011", "--")
_WORD = compiled_on_use(rf"[{SPACELESS}]|[^\W_{SPACELESS}]+|[^\w\s]|_")


@dataclass(frozen=True, slots=True)
class Term:
    """A word or phrase, and its translation."""

    source: str
    target: str


@dataclass(frozen=True, eq=False)
class Terms:
    """Terms, and phrases that are to be avoided. Whole words count; the longest term comes first.

    A term in lower case stands for all cases, and its translation follows the case of the source.

    >>> terms = Terms((Term("power plant", "Kraftwerk"), Term("plant", "pflanze"), Term("IT", "EDV")))
    >>> [each.target for each in terms.found("Plants: a power plant, a Plant, no it, PLANT IT.")]
    ['Kraftwerk', 'Pflanze', 'PFLANZE', 'EDV']
    """

    terms: tuple[Term, ...] = ()
    avoided: tuple[str, ...] = ()

    @cached_property
    def _by_first_word(self) -> dict[str, list[tuple[list[str], Term]]]:
        found = defaultdict[str, list[tuple[list[str], Term]]](list)
        for term in dict.fromkeys(self.terms):
            if words := words_of(term.source):
                found[words[0].casefold()].append((words, term))
        for of_word in found.values():
            of_word.sort(key=lambda each: -len(each[0]))  # stable: of equal ones, the first of the list
        return found

    def found(self, text: str) -> list[Term]:
        """Return the terms that a text has, in order, as it writes them; none overlaps another."""
        return [term for _, term in self.places(words_of(text))]

    def hinted(self, text: str) -> str:
        """Return a normalised text with the translations of its terms beside them, for models with ``data.terms``.

        >>> hinted = Terms((Term("dog", "Hund"),)).hinted("A dog.")
        >>> hinted.translate({0xE00A: "<", 0xE00B: "|", 0xE00C: ">"})
        'A< dog| Hund>.'
        """
        hidden = _hidden(text)
        spans = _spans(hidden)
        places = self.places([hidden[start:end] for start, end in spans])
        return with_hints(text, ((spans[at[0]][0], spans[at[-1]][1], term.target) for at, term in places))

    def places(self, words: Sequence[str]) -> list[tuple[range, Term]]:
        """Return the terms among the words of a text, each with its place."""
        place, found = 0, list[tuple[range, Term]]()
        folded = [each.casefold() for each in words]
        while place < len(words):
            candidates = self._by_first_word.get(folded[place], ())
            for of_term, term in candidates:
                written = words[place : place + len(of_term)]
                if written == of_term or (_is_any_case(term.source) and _folded(written) == _folded(of_term)):
                    as_written = Term(" ".join(written), _in_case_of(written, of_term, term.target))
                    found.append((range(place, place + len(of_term)), as_written))
                    place += len(of_term)
                    break
            else:
                place += 1
        return found

    def lost(self, source: str, target: str) -> list[Term]:
        """Return the terms of a source that its translation lacks, in any case of their letters.

        >>> Terms((Term("dog", "Hund"),)).lost("A dog sees a dog.", "Ein Hund sieht Hunde.")
        [Term(source='dog', target='Hund')]
        """
        words, lost = _folded(words_of(target)), list[Term]()
        needed = Counter[tuple[str, ...]]()
        for term in self.found(source) if self.terms else ():
            of_target = tuple(_folded(words_of(term.target)))
            needed[of_target] += 1
            if occurrences(of_target, words) < needed[of_target]:
                lost.append(term)
        return lost

    def said(self, target: str) -> list[str]:
        """Return the phrases that are to be avoided and that a translation has.

        >>> Terms(avoided=("hund", "IT")).said("Hunde: ein Hund, it")
        ['hund']
        """
        words = words_of(target) if self.avoided else []
        folded = _folded(words)
        return [
            each
            for each in self.avoided
            if (
                occurrences(_folded(words_of(each)), folded)
                if _is_any_case(each)
                else occurrences(words_of(each), words)
            )
        ]

    def are_kept(self, source: str, target: str) -> bool:
        """Whether a translation has the terms of its source, and nothing that is to be avoided."""
        return not (self.said(target) or self.lost(source, target))

    def faults(self, source: str, target: str) -> str:
        """Return what a translation lacks, and what it should not have, in words; empty if nothing.

        >>> Terms((Term("dog", "Hund"),), avoided=("Katze",)).faults("A dog.", "Eine Katze.")
        'dog should be Hund; Katze is to be avoided'
        """
        lost = [f"{each.source} should be {each.target}" for each in dict.fromkeys(self.lost(source, target))]
        return "; ".join([*lost, *(f"{each} is to be avoided" for each in self.said(target))])


def words_of(text: str) -> list[str]:
    """Return the words and punctuation marks of a text; of scripts without spaces, the characters.

    A placeholder, a tag, a URL or an address is one sign: no term is in it.

    >>> words_of("My dog: https://x.org/dog")
    ['My', 'dog', ':', '\ufffc']
    """
    hidden = _hidden(normalise(text))
    return [hidden[start:end] for start, end in _spans(hidden)]


def _hidden(text: str) -> str:
    """Return a text, as long as before, with one sign in place of each placeholder, tag, URL or address.

    Its quotation marks, apostrophes and hyphens are plain, so that "user’s" is the same word as "user's".
    """
    pieces, position = list[str](), 0
    for start, end in placeholder_spans(text):
        pieces += [text[position:start], "\ufffc".ljust(end - start)]
        position = end
    return plain_quotes("".join([*pieces, text[position:]])).translate(_PLAIN_HYPHENS)


def _spans(hidden: str) -> list[tuple[int, int]]:
    return [match.span() for match in _WORD.finditer(hidden)]


def occurrences(phrase: Sequence[str], words: Sequence[str]) -> int:
    """Count how often a phrase is among words."""
    n, phrase, words = len(phrase), list(phrase), list(words)
    return sum(words[place : place + n] == phrase for place in range(len(words) - n + 1)) if n else 0


def _folded(words: Iterable[str]) -> list[str]:
    return [each.casefold() for each in words]


def _is_any_case(text: str) -> bool:
    return text == text.lower()


def _in_case_of(written: Sequence[str], listed: Sequence[str], target: str) -> str:
    """Return the translation of a term in the case in which a text writes the term."""
    if written == listed:
        return target
    text = "".join(written)
    if text.isupper() and sum(map(str.isalpha, text)) > 1:
        return target.upper()
    return target[:1].upper() + target[1:] if text[:1].isupper() else target

"""Noun phrases and prepositional phrases: small records that realise themselves in both languages.

``english(case)`` returns a Penn bracket, ``german(case)`` text. German relative clauses have a comma at both ends;
``sentences`` removes one of two adjacent commas, and a comma at the end of the sentence.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import NamedTuple, Protocol

from transduce.corpora.grammar.english import starts_with_vowel_sound
from transduce.corpora.grammar.german import (
    CONTRACTIONS,
    DEFINITE,
    MIXED,
    STRONG,
    WEAK,
    Case,
    Column,
    Endings,
    Person,
    pronominal_forms,
)
from transduce.corpora.grammar.lexicon import Adjective, Noun, Preposition

__all__ = [
    "DETERMINERS", "PREPOSITIONS", "PRONOUNS", "Combination", "Constituent", "Coordination", "Determiner",
    "FunctionWord", "Gap", "Name", "Nominal", "NounPhrase", "PrepositionalPhrase", "Pronoun", "name_as_owner",
]  # fmt: skip

Combination = tuple[str, str, str]  # kind, and two lexemes: ("object", "read", "book")


class Nominal(Protocol):
    """A possible subject or object."""

    @property
    def person(self) -> Person:
        """Person that the verb agrees with."""

    @property
    def is_definite(self) -> bool:
        """Whether it is definite; a definite object precedes nicht and the adverbs of a German clause."""

    def english(self, case: Case) -> str:
        """Return the Penn bracket; the case only matters for pronouns."""

    def german(self, case: Case) -> str:
        """Return the German words."""

    def heads(self) -> tuple[Noun, ...]:
        """Return the head nouns."""

    def combinations(self) -> Iterator[Combination]:
        """Yield the combinations of lexemes inside."""


class Constituent(Protocol):
    """A prepositional phrase, an embedded clause or a sentence."""

    def english(self) -> str:
        """Return the Penn bracket; that of a sentence is without the final punctuation."""

    def german(self) -> str:
        """Return the German words without final punctuation; an embedded clause has a comma at both ends."""

    def combinations(self) -> Iterator[Combination]:
        """Yield the combinations of lexemes inside, which decide whether a sentence is held out."""


class FunctionWord(NamedTuple):
    """A conjunction or a question word: the Penn bracket of the English and the German word."""

    tree: str
    german: str


class Pronoun(NamedTuple):
    """A personal pronoun: English subject and object form, German forms up to the dative."""

    person: Person
    trees: tuple[str, str]
    forms: tuple[str, str, str]
    is_definite: bool = True

    def english(self, case: Case) -> str:
        """Return the subject form in the nominative, else the object form."""
        return self.trees[0 if case is Case.NOMINATIVE else 1]

    def german(self, case: Case) -> str:
        """Return the form of a case other than the genitive."""
        return self.forms[case]

    def heads(self) -> tuple[Noun, ...]:
        """Return (): pronouns combine with every verb."""
        return ()

    def combinations(self) -> Iterator[Combination]:
        """Yield nothing."""
        return iter(())


def _pronoun(person: Person, subject: str, object_: str, forms: str) -> Pronoun:
    nominative, accusative, dative = forms.split()
    return Pronoun(person, (f"(NP (PRP {subject}))", f"(NP (PRP {object_}))"), (nominative, accusative, dative))


PRONOUNS = {
    "I": _pronoun(Person.I, "I", "me", "ich mich mir"),
    "you": _pronoun(Person.YOU, "you", "you", "du dich dir"),
    "he": _pronoun(Person.HE, "he", "him", "er ihn ihm"),
    "she": _pronoun(Person.HE, "she", "her", "sie sie ihr"),
    "it": _pronoun(Person.HE, "it", "it", "es es ihm"),
    "we": _pronoun(Person.WE, "we", "us", "wir uns uns"),
    "they": _pronoun(Person.THEY, "they", "them", "sie sie ihnen"),
}


class Name(NamedTuple):
    """Name of a person or a city: the same in every case."""

    tree: str
    german_name: str
    person: Person = Person.HE
    is_definite: bool = True

    def english(self, case: Case) -> str:
        """Return the name."""
        return self.tree

    def german(self, case: Case) -> str:
        """Return the name."""
        return self.german_name

    def heads(self) -> tuple[Noun, ...]:
        """Return (): names combine with every verb."""
        return ()

    def combinations(self) -> Iterator[Combination]:
        """Yield nothing."""
        return iter(())


class Gap(NamedTuple):
    """Trace of a question word or a relative pronoun: empty, but the verb agrees with it."""

    noun: Noun | None = None
    person: Person = Person.HE
    is_definite: bool = True

    def english(self, case: Case) -> str:
        """Return the empty string."""
        return ""

    def german(self, case: Case) -> str:
        """Return the empty string."""
        return ""

    def heads(self) -> tuple[Noun, ...]:
        """Return the moved noun, if any."""
        return (self.noun,) if self.noun else ()

    def combinations(self) -> Iterator[Combination]:
        """Yield nothing."""
        return iter(())


class Determiner(NamedTuple):
    """A determiner: its German forms and the endings of an adjective after it.

    Args:
        tree: the English leaf; empty if there is no English determiner.
        forms: the German forms, ``[case][column]``.
        endings: the endings of adjectives after it, ``[case][column]``.
    """

    tree: str
    forms: Endings
    endings: Endings
    is_definite: bool


_NO_FORMS: Endings = (("",) * 4,) * 4


def _fixed(word: str) -> Endings:
    return ((word,) * 4,) * 4


def _words(pairs: str) -> dict[str, str]:
    """Return German words by the English ones."""
    return dict(pair.split("/") for pair in pairs.split())


_EIN = pronominal_forms("ein", like_ein=True)
_WELCHER = pronominal_forms("welch", like_ein=False)
_POSSESSIVES = _words("my/mein your/dein his/sein her/ihr our/unser their/ihr")
_NUMBERS = _words(
    "two/zwei three/drei four/vier five/fünf six/sechs seven/sieben eight/acht nine/neun ten/zehn eleven/elf"
    " twelve/zwölf"
)
_QUANTIFIERS = _words("some/einig many/viel several/mehrer")

DETERMINERS = {
    "": Determiner("", _NO_FORMS, STRONG, is_definite=False),
    "the": Determiner("(DT the)", DEFINITE, WEAK, is_definite=True),
    "a": Determiner("(DT a)", _EIN, MIXED, is_definite=False),
    "no": Determiner("(DT no)", pronominal_forms("kein", like_ein=True), MIXED, is_definite=False),
    "this": Determiner("(DT this)", pronominal_forms("dies", like_ein=False), WEAK, is_definite=True),
    "these": Determiner("(DT these)", pronominal_forms("dies", like_ein=False), WEAK, is_definite=True),
    "every": Determiner("(DT every)", pronominal_forms("jed", like_ein=False), WEAK, is_definite=True),
    "all": Determiner("(DT all)", pronominal_forms("all", like_ein=False), WEAK, is_definite=True),
    "by": Determiner("", DEFINITE, WEAK, is_definite=True),  # by train: mit dem Zug
    "which": Determiner("(WDT which)", _WELCHER, WEAK, is_definite=True),
    "how many": Determiner("(WHADJP (WRB how) (JJ many))", _fixed("wie viele"), STRONG, is_definite=False),
    **{
        word: Determiner(f"(PRP$ {word})", pronominal_forms(stem, like_ein=True), MIXED, is_definite=True)
        for word, stem in _POSSESSIVES.items()
    },
    **{
        word: Determiner(f"(CD {word})", _fixed(number), STRONG, is_definite=False) for word, number in _NUMBERS.items()
    },
    **{
        word: Determiner(
            f"({'DT' if word == 'some' else 'JJ'} {word})",
            pronominal_forms(stem, like_ein=False),
            STRONG,
            is_definite=False,
        )
        for word, stem in _QUANTIFIERS.items()
    },
}


@cache
def name_as_owner(name: str) -> Determiner:
    """Make the determiner ``Anna's``: in German a word before the noun, followed by strong adjectives.

    >>> name_as_owner("Anna").forms[Case.DATIVE][Column.FEMININE]
    'Annas'
    """
    return Determiner(f"(NP (NNP {name}) (POS 's))", _fixed(name + "s"), STRONG, is_definite=True)


class NounPhrase(NamedTuple):
    """A noun with its determiner and modifiers; in German the ``owner`` is a genitive after ``der`` and the noun."""

    determiner: Determiner
    noun: Noun
    is_plural: bool = False
    adjective: Adjective | None = None
    owner: NounPhrase | None = None
    modifier: Constituent | None = None  # a relative clause or a prepositional phrase

    @property
    def person(self) -> Person:
        """Third person, singular or plural."""
        return Person.THEY if self.is_plural else Person.HE

    @property
    def is_definite(self) -> bool:
        """Whether the determiner is definite."""
        return self.determiner.is_definite

    def english(self, case: Case) -> str:
        """Return the Penn bracket; a noun with a modifier is an inner noun phrase."""
        determiner = self.determiner.tree
        if self.owner:
            determiner = f"{self.owner.english(Case.GENITIVE)[:-1]} (POS 's))"
        elif determiner == "(DT a)" and starts_with_vowel_sound((self.adjective or self.noun).lemma):
            determiner = "(DT an)"
        space = " " if determiner else ""
        adjective = f"{self.adjective.tree} " if self.adjective else ""
        bare = f"(NP {determiner}{space}{adjective}{self.noun.trees[self.is_plural]})"
        return f"(NP {bare} {self.modifier.english()})" if self.modifier else bare

    def german(self, case: Case) -> str:
        """Return determiner, adjective with its ending, noun, owner in the genitive, modifier."""
        core = self.german_core(case)
        return f"{core} {self.modifier.german()}".replace(" ,", ",") if self.modifier else core

    def german_core(self, case: Case) -> str:
        """Return all but the modifier, which may be extraposed to the end of the clause."""
        column = Column.PLURAL if self.is_plural else self.noun.column
        determiner = self.determiner.forms[case][column]
        text = self.noun.forms[self.is_plural][case]
        if self.adjective:
            text = f"{self.adjective.stem}{self.determiner.endings[case][column]} {text}"
        if determiner:
            text = f"{determiner} {text}"
        return f"{text} {self.owner.german(Case.GENITIVE)}" if self.owner else text

    def heads(self) -> tuple[Noun, ...]:
        """Return the noun."""
        return (self.noun,)

    def combinations(self) -> Iterator[Combination]:
        """Yield (adjective, noun), and the combinations inside owner and modifier."""
        if self.adjective:
            yield "adjective", self.adjective.lemma, self.noun.lemma
        for part in (self.owner, self.modifier):
            if part:
                yield from part.combinations()


class Coordination(NamedTuple):
    """Two noun phrases joined by ``and``."""

    first: Nominal
    second: Nominal
    person: Person = Person.THEY

    @property
    def is_definite(self) -> bool:
        """Whether both are definite."""
        return self.first.is_definite and self.second.is_definite

    def english(self, case: Case) -> str:
        """Return one noun phrase over both."""
        return f"(NP {self.first.english(case)} (CC and) {self.second.english(case)})"

    def german(self, case: Case) -> str:
        """Return both in the same case."""
        return f"{self.first.german(case)} und {self.second.german(case)}"

    def heads(self) -> tuple[Noun, ...]:
        """Return the nouns of both."""
        return self.first.heads() + self.second.heads()

    def combinations(self) -> Iterator[Combination]:
        """Yield the combinations of both."""
        yield from self.first.combinations()
        yield from self.second.combinations()


class PrepositionalPhrase(NamedTuple):
    """A preposition with its noun phrase: ``in the old garden``, ``im alten Garten``."""

    preposition: Preposition
    object: Nominal

    def english(self) -> str:
        """Return the Penn bracket."""
        return f"(PP {self.preposition.tree} {self.object.english(Case.ACCUSATIVE)})"

    def german(self) -> str:
        """Return the words, contracting preposition and article where possible: im, zur, beim."""
        _, preposition, case = self.preposition
        text = self.object.german(case)
        if isinstance(self.object, NounPhrase) and self.object.determiner.forms is DEFINITE:
            article, rest = text.split(" ", 1)
            contracted = CONTRACTIONS.get((preposition, article))
            if contracted:
                return f"{contracted} {rest}"
        return f"{preposition} {text}"

    def combinations(self) -> Iterator[Combination]:
        """Yield the combinations of the noun phrase."""
        return self.object.combinations()


def _prepositions(case: Case, words: str) -> dict[str, Preposition]:
    return {english: Preposition(f"(IN {english})", german, case) for english, german in _words(words).items()}


# Prepositions that do not depend on the noun. Two-way prepositions take the dative for locations.
PREPOSITIONS = {
    **_prepositions(Case.DATIVE, "with/mit by/von behind/hinter under/unter near/bei beside/neben on/auf in/in"),
    **_prepositions(Case.ACCUSATIVE, "for/für through/durch onto/auf into/in"),
    "to a city": Preposition("(TO to)", "nach", Case.DATIVE),
    "to a person": Preposition("(TO to)", "zu", Case.DATIVE),
    "by a vehicle": Preposition("(IN by)", "mit", Case.DATIVE),
    "put on": Preposition("(IN on)", "auf", Case.ACCUSATIVE),
}

"""Random noun phrases and prepositional phrases."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from typing import NamedTuple, TypeVar

from transduce.corpora.grammar.choices import Choices
from transduce.corpora.grammar.german import Person
from transduce.corpora.grammar.lexicon import Noun, Ownership, TimeAdverbial
from transduce.corpora.grammar.phrases import (
    DETERMINERS,
    PREPOSITIONS,
    PRONOUNS,
    Determiner,
    Name,
    Nominal,
    NounPhrase,
    PrepositionalPhrase,
    Pronoun,
    name_as_owner,
)

__all__ = [
    "ANY", "DEFINITE_ONLY", "SINGULAR_PLACE", "SOMETHING", "SUBJECT", "UNDER_NEGATION", "DeterminerChoices",
    "PhraseSampler",
]  # fmt: skip

T = TypeVar("T")
_POSSESSIVES = ("my", "your", "his", "her", "our", "their")
_NUMBERS = ("two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")
_Weights = dict[str | tuple[str, ...], int]
_Options = tuple[tuple[Determiner, bool], ...]  # (determiner, whether the noun is plural), repeated by weight


class DeterminerChoices(NamedTuple):
    """Determiners for the nouns of each ``Ownership``, and for mass nouns (``uncounted``)."""

    by_ownership: dict[Ownership, _Options]
    uncounted: _Options

    def for_noun(self, noun: Noun) -> _Options:
        """Return the determiners that fit a noun."""
        return self.by_ownership[noun.owned] if noun.is_countable else self.uncounted


def _weighted(singular: _Weights, plural: _Weights) -> DeterminerChoices:
    """Make choices by weight; a tuple of determiners gives each the weight, ``""`` is no determiner."""
    options = [
        (word, is_plural)
        for weights, is_plural in ((singular, False), (plural, True))
        for words, weight in weights.items()
        for word in (words if isinstance(words, tuple) else (words,))
        for _ in range(weight)
    ]
    possessive = [option for option in options if option[0] in _POSSESSIVES]
    plain = [option for option in options if option[0] not in _POSSESSIVES]
    mostly_possessive = [option for option in plain if option[0] in ("the", "a")] + possessive * 5
    for_mass_nouns = [option for option in options if option[0] in ("the", "this", *_POSSESSIVES) and not option[1]]
    if ("a", False) in options:  # where "a book" is possible, so is "bread"
        for_mass_nouns += [("", False)] * len(for_mass_nouns)
    mostly_owned = mostly_possessive if possessive else options
    owned_once = [option for option in mostly_owned if not option[1]]

    def determiners(chosen: list[tuple[str, bool]]) -> _Options:
        return tuple((DETERMINERS[word], is_plural) for word, is_plural in chosen)

    by_ownership: dict[Ownership, _Options] = {
        "maybe": determiners(options),
        "never": determiners(plain),
        "mostly": determiners(mostly_owned),
        "once": determiners(owned_once),
    }
    return DeterminerChoices(by_ownership, determiners(for_mass_nouns))


ANY = _weighted(
    {"the": 44, "a": 24, _POSSESSIVES: 3, "this": 6, "every": 2},
    {"the": 13, "": 7, _POSSESSIVES: 1, "these": 4, _NUMBERS: 1, "some": 2, "many": 2, "several": 1, "all": 1},
)
SUBJECT = _weighted(
    {"the": 50, "a": 14, _POSSESSIVES: 3, "this": 5, "every": 2, "no": 1},
    {"the": 16, "": 3, _POSSESSIVES: 1, "these": 4, ("two", "three", "four"): 1, "some": 1, "many": 1, "all": 1},
)
DEFINITE_ONLY = _weighted({"the": 36, _POSSESSIVES: 3, "this": 5}, {"the": 12, _POSSESSIVES: 1, "these": 3})
UNDER_NEGATION = _weighted({"the": 26, "a": 18, _POSSESSIVES: 3, "this": 5}, {"the": 7, "": 9, "these": 3})
SOMETHING = _weighted({"a": 30}, {"": 6, _NUMBERS: 1, "many": 5, "some": 5, "several": 5})
SINGULAR_PLACE = _weighted({"the": 48, "a": 7, "this": 4, _POSSESSIVES: 1}, {})
_OWNERS = _weighted({"the": 20, _POSSESSIVES: 1}, {})
_OWNABLE = frozenset("object garment vehicle reading instrument furniture device vessel animal".split())
_P_ADJECTIVE = 0.44
_P_OWNER = 0.07


class PhraseSampler:
    """Random phrases from the tables of one split; all draws use one random generator."""

    def __init__(self, random: Random, choices: Choices) -> None:
        self.draw: Callable[[], float] = random.random
        self.choices = choices
        lexicon = choices.lexicon
        self._first_names = tuple(name for names in lexicon.names.values() for name in names)
        self._names = tuple(Name(f"(NP (NNP {name}))", name) for name in self._first_names)
        self._cities = tuple(Name(f"(NP (NNP {english}))", german) for english, german in lexicon.cities.items())
        self.people = lexicon.nouns_of(("person",))
        self._belongings = lexicon.nouns_of(("hat", "coat", "jacket", "scarf", "dog", "umbrella", "basket"))
        self._buildings = lexicon.nouns_of(("building",))
        self._furniture = lexicon.nouns_of(("furniture",))
        self._plants = lexicon.nouns_of(("tree", "bush"))
        self._outdoors = lexicon.nouns_of(("outdoor",))
        self._places = lexicon.nouns_of(("chamber", "building", "outdoor"))
        self._goals = tuple(noun for noun in self._places if noun.goal and noun.goal.tree != "(IN onto)")
        self._vehicles = lexicon.nouns_of(("train", "bus", "car", "ship", "taxi", "tram", "bicycle"))

    def chance(self, probability: float) -> bool:
        """Draw True with a probability."""
        return self.draw() < probability

    def pick(self, options: Sequence[T]) -> T:
        """Draw one of the options uniformly."""
        return options[int(self.draw() * len(options))]

    def noun_phrase(self, noun: Noun, determiners: DeterminerChoices = ANY, *, may_own: bool = True) -> NounPhrase:
        """Draw a phrase of the noun: with a determiner or an owner, perhaps with an adjective."""
        determiner, is_plural = self.pick(determiners.for_noun(noun))
        adjectives = self.choices.adjectives[noun.lemma]
        adjective = self.pick(adjectives) if self.draw() < _P_ADJECTIVE else None
        if may_own and noun.owned != "never" and noun.category in _OWNABLE and self.draw() < _P_OWNER:
            if self.chance(0.4):
                return NounPhrase(name_as_owner(self.pick(self._first_names)), noun, is_plural, adjective)
            owner_noun = self.pick(self.people)
            owner_determiner, _ = self.pick(_OWNERS.for_noun(owner_noun))
            owner = NounPhrase(owner_determiner, owner_noun)
            return NounPhrase(DETERMINERS["the"], noun, is_plural, adjective, owner)
        return NounPhrase(determiner, noun, is_plural, adjective)

    def subject(self, nouns: Sequence[Noun], determiners: DeterminerChoices = SUBJECT) -> Nominal:
        """Draw a noun phrase, or for a person perhaps a pronoun or a name."""
        noun = self.pick(nouns)
        if noun.category == "person":
            r = self.draw()
            if r < 0.27:
                return PRONOUNS[self.pick(("I", "you", "he", "she", "we", "they"))]
            if r < 0.38:
                return self.pick(self._names)
        return self.noun_phrase(noun, determiners)

    def object(self, nouns: Sequence[Noun], determiners: DeterminerChoices, *, subject: Nominal) -> Nominal:
        """Draw a noun phrase, a name or a pronoun that differs from the subject."""
        noun = self.pick(nouns)
        r = self.draw()
        if noun.category == "person":
            if r < 0.15:
                return self.pronoun_object(subject)
            if r < 0.23:
                name = self.pick(self._names)
                return name if name != subject else PRONOUNS["they"]
        elif r < 0.08:
            return PRONOUNS[self.pick(("it", "they"))] if noun.is_countable else PRONOUNS["it"]
        return self.noun_phrase(noun, determiners, may_own=not isinstance(subject, Name))  # no "Anna sees Anna's hat"

    def pronoun_object(self, subject: Nominal) -> Pronoun:
        """Draw a personal pronoun; first and second person must differ from the subject's."""
        words = ["he", "she", "they"]
        if subject.person not in (Person.I, Person.WE):
            words += ["I", "we"]
        if subject.person is not Person.YOU:
            words.append("you")
        return PRONOUNS[self.pick(words)]

    def place(self) -> PrepositionalPhrase:
        """Draw a location: a place with its own preposition, a city, or a position beside something."""
        r = self.draw()
        if r < 0.12:
            return PrepositionalPhrase(PREPOSITIONS["in"], self.pick(self._cities))
        if r < 0.26:
            return self.neighborhood()
        noun = self.pick(self._places)
        assert noun.location is not None
        return PrepositionalPhrase(noun.location, self.noun_phrase(noun, SINGULAR_PLACE, may_own=False))

    def neighborhood(self) -> PrepositionalPhrase:
        """Draw a position behind, beside or near a building, or under a plant."""
        if self.chance(0.25):
            preposition, nouns = PREPOSITIONS["under"], self._plants
        else:
            preposition, nouns = PREPOSITIONS[self.pick(("behind", "beside", "near"))], self._buildings
        return PrepositionalPhrase(preposition, self.noun_phrase(self.pick(nouns), SINGULAR_PLACE))

    def furniture_place(self) -> PrepositionalPhrase:
        """Draw a position on, under or beside a piece of furniture."""
        noun = self.pick(self._furniture)
        preposition = PREPOSITIONS[self.pick(("on", "under", "beside"))]
        return PrepositionalPhrase(preposition, self.noun_phrase(noun, SINGULAR_PLACE, may_own=False))

    def outdoor_place(self) -> PrepositionalPhrase:
        """Draw a location for animals."""
        noun = self.pick(self._outdoors)
        assert noun.location is not None
        return PrepositionalPhrase(noun.location, self.noun_phrase(noun, SINGULAR_PLACE, may_own=False))

    def goal(self) -> PrepositionalPhrase:
        """Draw a goal: a place with its own preposition, or a person."""
        if self.chance(0.15):
            people = self.noun_phrase(self.pick(self.people), DEFINITE_ONLY)
            return PrepositionalPhrase(PREPOSITIONS["to a person"], people)
        noun = self.pick(self._goals)
        assert noun.goal is not None
        return PrepositionalPhrase(noun.goal, self.noun_phrase(noun, SINGULAR_PLACE, may_own=False))

    def towards(self, preposition: str, lemmas: str) -> PrepositionalPhrase:
        """Draw one of the nouns ``lemmas`` as a goal, after a preposition of ``PREPOSITIONS`` with the accusative."""
        noun = self.choices.lexicon.nouns[self.pick(lemmas.split())]
        return PrepositionalPhrase(PREPOSITIONS[preposition], self.noun_phrase(noun, SINGULAR_PLACE, may_own=False))

    def city_goal(self) -> PrepositionalPhrase:
        """Draw ``to`` a city."""
        return PrepositionalPhrase(PREPOSITIONS["to a city"], self.pick(self._cities))

    def vehicle(self) -> PrepositionalPhrase:
        """Draw ``by train``: no article in English, a definite one in German."""
        return PrepositionalPhrase(
            PREPOSITIONS["by a vehicle"], NounPhrase(DETERMINERS["by"], self.pick(self._vehicles))
        )

    def company(self, kind: str, subject: Nominal) -> PrepositionalPhrase:
        """Draw ``with`` or ``for`` somebody."""
        return PrepositionalPhrase(PREPOSITIONS[kind], self.object(self.people, DEFINITE_ONLY, subject=subject))

    def agent(self, nouns: Sequence[Noun]) -> PrepositionalPhrase:
        """Draw the agent of a passive."""
        noun = self.pick(nouns)
        person: Nominal = self.pick(self._names)
        if noun.category != "person" or self.chance(0.85):
            person = self.noun_phrase(noun)
        return PrepositionalPhrase(PREPOSITIONS["by"], person)

    def attribute(self, noun: Noun) -> PrepositionalPhrase | None:
        """Draw a prepositional attribute: ``with`` a belonging for persons, a position for places; else None."""
        if noun.category == "person":
            belonging = self.noun_phrase(self.pick(self._belongings), SINGULAR_PLACE, may_own=False)
            return PrepositionalPhrase(PREPOSITIONS["with"], belonging)
        if noun.category in ("building", "vehicle", "plant", "outdoor"):
            return self.neighborhood()
        return None

    def time(self, kind: str, *, is_negated: bool = False) -> TimeAdverbial | None:
        """Draw a time adverbial of a kind; None for one that would follow nicht in a negated German clause."""
        time = self.pick(self.choices.lexicon.times[kind])
        return None if is_negated and (kind == "habit" or time.german == "bald") else time

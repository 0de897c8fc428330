"""Random clauses: a verb with tense, arguments and adverbials."""

from __future__ import annotations

from random import Random
from typing import NamedTuple, TypedDict, Unpack

from transduce.corpora.grammar import moods
from transduce.corpora.grammar.choices import Choices, VerbChoice
from transduce.corpora.grammar.clauses import COPULA, Clause, Comparison
from transduce.corpora.grammar.german import Case, Person
from transduce.corpora.grammar.lexicon import Adjective, Adverb, Noun, TimeAdverbial
from transduce.corpora.grammar.moods import Mood, Moods
from transduce.corpora.grammar.phrase_sampler import (
    ANY,
    DEFINITE_ONLY,
    SINGULAR_PLACE,
    SUBJECT,
    UNDER_NEGATION,
    DeterminerChoices,
    PhraseSampler,
)
from transduce.corpora.grammar.phrases import Nominal, NounPhrase, PrepositionalPhrase
from transduce.corpora.grammar.tenses import Tense

__all__ = ["ClauseSampler"]

_SURFACES = "table bed chair sofa bench carpet"
_CONTAINERS = "box suitcase cupboard drawer bag basket"
_DESCRIPTION_TENSES = (Tense.PRESENT,) * 5 + (Tense.PAST,) * 4 + (Tense.FUTURE,)
_P_NEGATED = 0.15
_P_TIME = 0.38
_P_FREQUENCY = 0.35
_P_COMPANY = 0.25
_P_PLACE = 0.25
_P_MANNER = 0.25


class _Circumstances(NamedTuple):
    """The adverbials of a clause."""

    time: TimeAdverbial | None = None
    frequency: Adverb | None = None
    companion: PrepositionalPhrase | None = None
    place: PrepositionalPhrase | None = None
    manner: Adverb | None = None


class _Begun(NamedTuple):
    """What is drawn first of a clause."""

    choice: VerbChoice
    mood: Mood
    is_negated: bool
    subject: Nominal
    is_short: bool

    def clause(self, circumstances: _Circumstances, **more: Unpack[_Arguments]) -> Clause:
        """Return the whole clause."""
        verb, mood = self.choice.verb, self.mood
        return Clause(self.subject, verb, mood.tense, mood.modal, self.is_negated, **circumstances._asdict(), **more)


class _Arguments(TypedDict, total=False):
    """The arguments of a verb besides its subject."""

    indirect: Nominal
    direct: Nominal
    goal: PrepositionalPhrase | None


class ClauseOptions(TypedDict, total=False):
    """What is given of a clause instead of drawn."""

    choice: VerbChoice  # the verb
    subject: Nominal
    is_short: bool
    may_negate: bool


class ClauseSampler(PhraseSampler):
    """Random clauses. A subject or object passed as an argument, such as a gap, is used unchanged.

    ``is_short`` makes a clause without adverbials, for use in a longer sentence.
    """

    def __init__(self, random: Random, choices: Choices) -> None:
        super().__init__(random, choices)
        lexicon = choices.lexicon
        self._frequencies = tuple(adverb for adverb in lexicon.frequencies if adverb.lemma not in ("already", "just"))
        self._perfect_adverbs = tuple(
            adverb for adverb in lexicon.frequencies if adverb.lemma in ("already", "just", "never")
        )
        self._nouns = tuple(lexicon.nouns.values())
        self._located_nouns = lexicon.nouns_of(("person", "animal", "object", "vessel"))
        self._by_category = {noun.category: lexicon.nouns_of((noun.category,)) for noun in self._nouns}
        self._passive_choices = tuple(
            choice
            for choice in choices.verbs["transitive"]
            if choice.verb.aspect != "state" and choice.verb.object_case is Case.ACCUSATIVE
        )
        self._frames = (  # repeated by weight, in percent
            *(self.transitive,) * 54,
            *(self.intransitive,) * 17,
            *(self.ditransitive,) * 11,
            *(self.motion,) * 8,
            *(self.travel,) * 4,
            *(self.placing,) * 6,
        )

    def clause(self, when: Moods = moods.ALL, *, is_short: bool = False, may_negate: bool = True) -> Clause:
        """Draw a clause with a full verb."""
        return self.pick(self._frames)(when, is_short=is_short, may_negate=may_negate)

    def _choice(self, group: str) -> VerbChoice:
        return self.pick(self.choices.verbs[group])

    def _start(self, group: str, when: Moods, options: ClauseOptions) -> _Begun:
        """Draw the verb, the mood, whether it is negated, and the subject."""
        choice = options.get("choice") or self._choice(group)
        mood = self.pick(when[choice.verb.aspect])
        has_perfect = mood.tense is Tense.PERFECT or mood.tense is Tense.PLUPERFECT
        is_negated = options.get("may_negate", True) and not has_perfect and self.draw() < _P_NEGATED
        subject = options.get("subject") or self.subject(choice.subjects, DEFINITE_ONLY if is_negated else SUBJECT)
        if mood is moods.SIMPLE_PRESENT and choice.verb.english.has_one_form and subject.person is not Person.HE:
            mood = moods.PROGRESSIVE  # "they read" may be past tense
        return _Begun(choice, mood, is_negated, subject, options.get("is_short", False))

    def _circumstances(
        self, begun: _Begun, *, direct: Nominal | None = None, may_have_place: bool = True
    ) -> _Circumstances:
        """Draw time or frequency, and one of companion, place and manner; or, without an object, place and manner."""
        choice, mood, is_negated, subject, is_short = begun
        if mood.tense is Tense.PERFECT:
            return _Circumstances(frequency=self.pick(self._perfect_adverbs))
        aspect = choice.verb.aspect
        if is_short or aspect == "state":
            return _Circumstances()
        time = frequency = companion = place = manner = None
        is_habit = mood.time_kind == "habit"
        if mood.time_kind and self.draw() < _P_TIME:
            time = self.time(mood.time_kind, is_negated=is_negated)
        elif is_habit and not is_negated and self.draw() < _P_FREQUENCY:
            frequency = self.pick(self._frequencies)
        if choice.company and self.draw() < _P_COMPANY:
            companion = self.company(self.pick(choice.company), subject)
        elif may_have_place and self.draw() < _P_PLACE and not (direct and _is_place(direct)):
            place = self.place()
        if choice.manners and not (frequency or companion or (direct and (place or is_negated))):
            manner = self.pick(choice.manners) if self.draw() < _P_MANNER else None
        return _Circumstances(time, frequency, companion, place, manner)

    def transitive(
        self,
        when: Moods = moods.ALL,
        *,
        direct: Nominal | None = None,
        determiners: DeterminerChoices = ANY,
        **options: Unpack[ClauseOptions],
    ) -> Clause:
        """Draw a transitive clause; the object may be a German dative."""
        begun = self._start("transitive", when, options)
        if begun.is_negated and determiners is ANY:
            determiners = UNDER_NEGATION
        direct = direct or self.object(begun.choice.objects, determiners, subject=begun.subject)
        return begun.clause(self._circumstances(begun, direct=direct), direct=direct)

    def intransitive(self, when: Moods = moods.ALL, **options: Unpack[ClauseOptions]) -> Clause:
        """Draw an intransitive clause."""
        begun = self._start("intransitive", when, options)
        return begun.clause(self._circumstances(begun))

    def ditransitive(self, when: Moods = moods.ALL, **options: Unpack[ClauseOptions]) -> Clause:
        """Draw a ditransitive clause."""
        begun = self._start("ditransitive", when, options)
        indirect = self.object(self.people, DEFINITE_ONLY if begun.is_negated else ANY, subject=begun.subject)
        direct = self._object(begun)
        circumstances = self._circumstances(begun, direct=direct, may_have_place=False)
        return begun.clause(circumstances, indirect=indirect, direct=direct)

    def _object(self, begun: _Begun) -> Nominal:
        determiners = UNDER_NEGATION if begun.is_negated else ANY
        return self.object(begun.choice.objects, determiners, subject=begun.subject)

    def motion(self, when: Moods = moods.ALL, *, omits_goal: bool = False, **options: Unpack[ClauseOptions]) -> Clause:
        """Draw a clause with a verb of motion and, unless ``omits_goal``, a goal."""
        begun = self._start("motion", when, options)
        circumstances = self._circumstances(begun, may_have_place=False)
        return begun.clause(circumstances, goal=None if omits_goal else self._motion_goal(begun.choice.verb.lemma))

    def _motion_goal(self, verb: str) -> PrepositionalPhrase:
        match verb:
            case "jump":
                return self.towards("into", "river lake") if self.chance(0.25) else self.towards("onto", _SURFACES)
            case "swim":
                return self.towards("through", "river lake")
            case "climb":
                return self.towards("onto", "tree hill tower mountain castle table")
            case "run" | "go" if self.chance(0.3):
                return self.towards("through", "forest park city village garden meadow valley field")
            case _:
                return self.goal()

    def travel(self, when: Moods = moods.ALL, **options: Unpack[ClauseOptions]) -> Clause:
        """Draw a clause about travelling to a city, perhaps by train."""
        begun = self._start("travel", when, options)
        circumstances = self._circumstances(begun, may_have_place=False)
        if begun.choice.verb.lemma == "travel" and not circumstances.companion and self.chance(0.5):
            circumstances = circumstances._replace(companion=self.vehicle())
        return begun.clause(circumstances, goal=self.city_goal())

    def placing(self, when: Moods = moods.ALL, **options: Unpack[ClauseOptions]) -> Clause:
        """Draw a clause about putting something somewhere: the accusative after a two-way preposition."""
        begun = self._start("placing", when, options)
        direct = self._object(begun)
        circumstances = self._circumstances(begun, direct=direct, may_have_place=False)
        match begun.choice.verb.lemma:
            case "put":
                goal = self.towards("put on", _SURFACES) if self.chance(0.5) else self.towards("into", _CONTAINERS)
            case "throw":
                surfaces, containers = f"{_SURFACES} street", f"{_CONTAINERS} river lake"
                goal = self.towards("onto", surfaces) if self.chance(0.5) else self.towards("into", containers)
            case _:
                goal = self.towards("into", "kitchen bedroom bathroom cellar office room house garden hut stable")
        return begun.clause(circumstances, direct=direct, goal=goal)

    def passive(self) -> Clause:
        """Draw a passive clause, perhaps with an agent."""
        choice = self.pick(self._passive_choices)
        mood = self.pick(moods.PASSIVE)
        is_negated = mood.tense is not Tense.PERFECT and self.draw() < _P_NEGATED
        subject = self.noun_phrase(self.pick(choice.objects), DEFINITE_ONLY if is_negated else ANY)
        agent = self.agent(choice.subjects) if self.chance(0.5) else None
        is_habit = mood is moods.SIMPLE_PRESENT  # "is opened" alone may be a state
        has_time = mood.time_kind and (is_habit or self.chance(_P_TIME))
        time = self.time(mood.time_kind, is_negated=is_negated) if has_time else None
        frequency = self.pick(self._perfect_adverbs) if mood.tense is Tense.PERFECT else None
        circumstances = _Circumstances(time=time, frequency=frequency, companion=agent)
        clause = _Begun(choice, mood, is_negated, subject, is_short=False).clause(circumstances)
        return clause._replace(is_passive=True)

    def description(self, tense: Tense | None = None, *, is_short: bool = False) -> Clause:
        """Draw a copular clause with an adjective or a location."""
        tense = tense or self.pick(_DESCRIPTION_TENSES)
        if self.chance(0.2):
            return self._location(tense)
        noun = self.pick(self._nouns)
        is_negated = self.chance(_P_NEGATED)
        adjective = self.pick(self.choices.adjectives[noun.lemma])
        subject = self.subject((noun,), DEFINITE_ONLY)
        if isinstance(subject, NounPhrase):
            subject = subject._replace(adjective=None)
        predicate = self._predicate(adjective, noun, may_compare=not is_negated and not is_short)
        is_comparison = predicate.standard is not None
        is_changing = noun.category == "person" and not (is_short or is_comparison)  # "tired yesterday", "never sad"
        has_time = tense is Tense.PAST and is_changing and self.chance(0.3)
        time = self.time("past") if has_time else None
        has_frequency = tense is not Tense.FUTURE and is_changing and not (time or is_negated) and self.chance(0.25)
        frequency = self.pick(self._frequencies) if has_frequency else None
        return Clause(
            subject, COPULA, tense, is_negated=is_negated, time=time, frequency=frequency, predicate=predicate
        )

    def _predicate(self, adjective: Adjective, noun: Noun, *, may_compare: bool) -> Comparison:
        r = self.draw()
        if not adjective.comparative_tree or r < 0.35:
            return Comparison(adjective)
        if may_compare and r > 0.65 and noun.is_countable:
            others = self._by_category[noun.category]
            other = self.pick(others)
            if other is not noun and adjective in self.choices.adjectives[other.lemma]:
                standard = self.noun_phrase(other, SINGULAR_PLACE)._replace(adjective=None)
                return Comparison(adjective, "than" if r > 0.77 else "as", standard)
        return Comparison(adjective, "too" if may_compare and r > 0.85 else "very")

    def _location(self, tense: Tense) -> Clause:
        is_negated = self.chance(_P_NEGATED)
        noun = self.pick(self._located_nouns)
        subject = self.subject((noun,), DEFINITE_ONLY)
        if noun.category in ("object", "vessel"):
            place = self.furniture_place()
        else:
            place = self.place() if noun.category == "person" else self.outdoor_place()
        time = self.time("past") if tense is Tense.PAST and self.chance(0.3) else None
        return Clause(subject, COPULA, tense, is_negated=is_negated, time=time, place=place)


def _is_place(nominal: Nominal) -> bool:
    return any(noun.location for noun in nominal.heads())

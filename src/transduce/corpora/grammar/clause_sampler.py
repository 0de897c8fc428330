"""Random clauses: a verb with tense, arguments and adverbials."""

from __future__ import annotations

from random import Random
from typing import NamedTuple

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

    def _start(
        self, choice: VerbChoice, when: Moods, subject: Nominal | None, *, may_negate: bool
    ) -> tuple[Mood, bool, Nominal]:
        """Draw the mood, whether it is negated, and the subject."""
        mood = self.pick(when[choice.verb.aspect])
        has_perfect = mood.tense is Tense.PERFECT or mood.tense is Tense.PLUPERFECT
        is_negated = may_negate and not has_perfect and self.draw() < _P_NEGATED
        subject = subject or self.subject(choice.subjects, DEFINITE_ONLY if is_negated else SUBJECT)
        if mood is moods.SIMPLE_PRESENT and choice.verb.english.has_one_form and subject.person is not Person.HE:
            mood = moods.PROGRESSIVE  # "they read" may be past tense
        return mood, is_negated, subject

    def _circumstances(
        self,
        choice: VerbChoice,
        mood: Mood,
        *,
        is_negated: bool,
        is_short: bool,
        subject: Nominal,
        direct: Nominal | None = None,
        may_have_place: bool = True,
    ) -> _Circumstances:
        """Draw time or frequency, and one of companion, place and manner; or, without an object, place and manner."""
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
        choice: VerbChoice | None = None,
        subject: Nominal | None = None,
        direct: Nominal | None = None,
        is_short: bool = False,
        may_negate: bool = True,
        determiners: DeterminerChoices = ANY,
    ) -> Clause:
        """Draw a transitive clause; the object may be a German dative."""
        choice = choice or self._choice("transitive")
        mood, is_negated, subject = self._start(choice, when, subject, may_negate=may_negate)
        direct = direct or self.object(
            choice.objects, UNDER_NEGATION if is_negated and determiners is ANY else determiners, subject=subject
        )
        circumstances = self._circumstances(
            choice, mood, is_negated=is_negated, is_short=is_short, subject=subject, direct=direct
        )
        return _assembled(choice, mood, circumstances, subject=subject, is_negated=is_negated, direct=direct)

    def intransitive(
        self,
        when: Moods = moods.ALL,
        *,
        choice: VerbChoice | None = None,
        subject: Nominal | None = None,
        is_short: bool = False,
        may_negate: bool = True,
    ) -> Clause:
        """Draw an intransitive clause."""
        choice = choice or self._choice("intransitive")
        mood, is_negated, subject = self._start(choice, when, subject, may_negate=may_negate)
        circumstances = self._circumstances(choice, mood, is_negated=is_negated, is_short=is_short, subject=subject)
        return _assembled(choice, mood, circumstances, subject=subject, is_negated=is_negated)

    def ditransitive(
        self,
        when: Moods = moods.ALL,
        *,
        subject: Nominal | None = None,
        is_short: bool = False,
        may_negate: bool = True,
    ) -> Clause:
        """Draw a ditransitive clause."""
        choice = self._choice("ditransitive")
        mood, is_negated, subject = self._start(choice, when, subject, may_negate=may_negate)
        indirect = self.person_object(DEFINITE_ONLY if is_negated else ANY, subject=subject)
        direct = self.object(choice.objects, UNDER_NEGATION if is_negated else ANY, subject=subject)
        circumstances = self._circumstances(
            choice, mood, is_negated=is_negated, is_short=is_short, subject=subject, direct=direct, may_have_place=False
        )
        return _assembled(
            choice, mood, circumstances, subject=subject, is_negated=is_negated, indirect=indirect, direct=direct
        )

    def motion(
        self,
        when: Moods = moods.ALL,
        *,
        choice: VerbChoice | None = None,
        subject: Nominal | None = None,
        is_short: bool = False,
        may_negate: bool = True,
        omits_goal: bool = False,
    ) -> Clause:
        """Draw a clause with a verb of motion and, unless ``omits_goal``, a goal."""
        choice = choice or self._choice("motion")
        mood, is_negated, subject = self._start(choice, when, subject, may_negate=may_negate)
        circumstances = self._circumstances(
            choice, mood, is_negated=is_negated, is_short=is_short, subject=subject, may_have_place=False
        )
        goal = None if omits_goal else self._motion_goal(choice.verb.lemma)
        return _assembled(choice, mood, circumstances, subject=subject, is_negated=is_negated, goal=goal)

    def _motion_goal(self, verb: str) -> PrepositionalPhrase:
        match verb:
            case "jump":
                return self.into("river lake") if self.chance(0.25) else self.onto(_SURFACES)
            case "swim":
                return self.through("river lake")
            case "climb":
                return self.onto("tree hill tower mountain castle table")
            case "run" | "go" if self.chance(0.3):
                return self.through("forest park city village garden meadow valley field")
            case _:
                return self.goal()

    def travel(
        self,
        when: Moods = moods.ALL,
        *,
        subject: Nominal | None = None,
        is_short: bool = False,
        may_negate: bool = True,
    ) -> Clause:
        """Draw a clause about travelling to a city, perhaps by train."""
        choice = self._choice("travel")
        mood, is_negated, subject = self._start(choice, when, subject, may_negate=may_negate)
        circumstances = self._circumstances(
            choice, mood, is_negated=is_negated, is_short=is_short, subject=subject, may_have_place=False
        )
        if choice.verb.lemma == "travel" and not circumstances.companion and self.chance(0.5):
            circumstances = circumstances._replace(companion=self.vehicle())
        return _assembled(choice, mood, circumstances, subject=subject, is_negated=is_negated, goal=self.city_goal())

    def placing(
        self,
        when: Moods = moods.ALL,
        *,
        subject: Nominal | None = None,
        is_short: bool = False,
        may_negate: bool = True,
    ) -> Clause:
        """Draw a clause about putting something somewhere: the accusative after a two-way preposition."""
        choice = self._choice("placing")
        mood, is_negated, subject = self._start(choice, when, subject, may_negate=may_negate)
        direct = self.object(choice.objects, UNDER_NEGATION if is_negated else ANY, subject=subject)
        circumstances = self._circumstances(
            choice, mood, is_negated=is_negated, is_short=is_short, subject=subject, direct=direct, may_have_place=False
        )
        match choice.verb.lemma:
            case "put":
                goal = self.put_on(_SURFACES) if self.chance(0.5) else self.into(_CONTAINERS)
            case "throw":
                goal = self.onto(f"{_SURFACES} street") if self.chance(0.5) else self.into(f"{_CONTAINERS} river lake")
            case _:
                goal = self.into("kitchen bedroom bathroom cellar office room house garden hut stable")
        return _assembled(choice, mood, circumstances, subject=subject, is_negated=is_negated, direct=direct, goal=goal)

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
        clause = _assembled(choice, mood, circumstances, subject=subject, is_negated=is_negated)
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


def _assembled(
    choice: VerbChoice,
    mood: Mood,
    circumstances: _Circumstances,
    *,
    subject: Nominal,
    is_negated: bool,
    indirect: Nominal | None = None,
    direct: Nominal | None = None,
    goal: PrepositionalPhrase | None = None,
) -> Clause:
    time, frequency, companion, place, manner = circumstances
    return Clause(
        subject,
        choice.verb,
        mood.tense,
        mood.modal,
        is_negated,
        False,
        indirect,
        direct,
        time,
        frequency,
        companion,
        place,
        manner,
        goal,
    )

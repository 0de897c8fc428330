"""Random sentences: one method for each construction, and the weights of the constructions."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Literal

from transduce.corpora.grammar import moods
from transduce.corpora.grammar.choices import Choices, VerbChoice
from transduce.corpora.grammar.clause_sampler import ClauseSampler
from transduce.corpora.grammar.clauses import Clause
from transduce.corpora.grammar.german import Case, Person
from transduce.corpora.grammar.moods import Moods
from transduce.corpora.grammar.phrase_sampler import ANY, DEFINITE_ONLY, SOMETHING, UNDER_NEGATION
from transduce.corpora.grammar.phrases import DETERMINERS, Coordination, Gap, Nominal, NounPhrase
from transduce.corpora.grammar.sentences import (
    QUESTION_WORDS,
    Command,
    Existence,
    Joined,
    Linked,
    OpenQuestion,
    Sentence,
    Statement,
    YesNoQuestion,
)
from transduce.corpora.grammar.subordinate import (
    CONJUNCTIONS,
    InfinitiveClause,
    PurposeClause,
    RelativeClause,
    SubordinateClause,
)
from transduce.corpora.grammar.tenses import Tense

__all__ = ["CONSTRUCTION_WEIGHTS", "SentenceSampler"]

CONSTRUCTION_WEIGHTS = {
    "statement": 24,
    "fronted": 9,
    "description": 7,
    "existence": 3,
    "yes_no_question": 7,
    "open_question": 9,
    "command": 5,
    "passive": 7,
    "reported": 8,
    "linked": 9,
    "relative": 8,
    "infinitive": 4,
    "purpose": 2,
    "joined": 3,
    "coordinated": 2,
}
# (key of CONJUNCTIONS, moods of the subordinate clause, moods of the main clause)
_LINKS: tuple[tuple[str, Moods, Moods], ...] = (
    ("because", moods.PAST, moods.PAST),
    ("because", moods.PRESENT, moods.PRESENT),
    ("although", moods.PAST, moods.PAST),
    ("although", moods.PRESENT, moods.PRESENT),
    ("if", moods.PRESENT, moods.FUTURE),
    ("when", moods.PRESENT, moods.PRESENT),
    ("when, once", moods.PAST, moods.PAST),
    ("while", moods.PAST, moods.PAST),
    ("before", moods.PAST, moods.PAST),
    ("after", moods.PLUPERFECT, moods.PAST),
)
# (noun class, kind of location)
_EXISTENCES = (
    ("person", "place"),
    ("animal", "outdoor"),
    ("object", "furniture"),
    ("vessel", "furniture"),
    ("garment", "furniture"),
)


class SentenceSampler(ClauseSampler):
    """Random sentences of one split; constructions are drawn by weight."""

    def __init__(self, random: Random, choices: Choices) -> None:
        super().__init__(random, choices)
        self._walking = tuple(
            choice for choice in choices.verbs["motion"] if choice.verb.lemma in ("go", "come", "hurry", "return")
        )
        methods: dict[str, Callable[[], Sentence]] = {
            "statement": self.statement,
            "fronted": self.fronted,
            "description": lambda: Statement(self.description()),
            "existence": self.existence,
            "yes_no_question": self.yes_no_question,
            "open_question": self.open_question,
            "command": self.command,
            "passive": lambda: Statement(self.passive()),
            "reported": self.reported,
            "linked": self.linked,
            "relative": self.relative,
            "infinitive": self.infinitive,
            "purpose": self.purpose,
            "joined": self.joined,
            "coordinated": self.coordinated,
        }
        self._constructions = tuple(
            (name, methods[name]) for name, weight in CONSTRUCTION_WEIGHTS.items() for _ in range(weight)
        )

    def sentence(self) -> tuple[str, Sentence]:
        """Draw a construction; return its name and a sentence."""
        name, method = self.pick(self._constructions)
        return name, method()

    def statement(self) -> Sentence:
        """Draw a clause with the subject first; the subject may have a modifier."""
        clause = self.clause()
        subject = clause.subject
        if isinstance(subject, NounPhrase) and not (subject.is_plural or subject.owner) and self.chance(0.1):
            attribute = self.attribute(subject.noun)
            return Statement(clause._replace(subject=subject._replace(modifier=attribute)))
        return Statement(clause)

    def fronted(self) -> Sentence:
        """Draw a statement with its time or place fronted."""
        while True:
            clause = self.clause()
            if clause.time:
                return Statement(clause, "time")
            if clause.place:
                return Statement(clause, "place")

    def existence(self) -> Sentence:
        """Draw an existential sentence with ``there is``."""
        category, where = self.pick(_EXISTENCES)
        what = self.noun_phrase(self.pick(self._by_category[category]), SOMETHING, may_own=False)
        place = {"place": self.place, "outdoor": self.outdoor_place, "furniture": self.furniture_place}[where]()
        return Existence(what, place, is_past=self.chance(0.4))

    def yes_no_question(self) -> Sentence:
        """Draw a yes-no question without negation."""
        if self.chance(0.8):
            return YesNoQuestion(self.clause(may_negate=False))
        return YesNoQuestion(self.description()._replace(is_negated=False))

    def open_question(self) -> Sentence:
        """Draw a question for the subject, object, place, time, reason or manner."""
        r = self.draw()
        if r < 0.2:
            return self._who_question()
        if r < 0.4:
            return self._what_question()
        if r < 0.55:
            return self._which_question()
        if r < 0.65:
            choice = self.pick(self._walking)
            clause = self.motion(moods.QUESTION, choice=choice, is_short=True, omits_goal=True, may_negate=False)
            return OpenQuestion(QUESTION_WORDS["where to"], clause)
        return self._circumstance_question()

    def _circumstance_question(self) -> Sentence:
        word = self.pick(("where", "when", "why", "how"))
        choice = self._action()
        while (word == "where" and choice.verb.object_case is Case.DATIVE) or (word == "how" and not choice.manners):
            choice = self._action()
        when = moods.QUESTION if word in ("where", "why") else moods.DATED_QUESTION
        subject = self.subject(choice.subjects, DEFINITE_ONLY)
        clause = self.transitive(when, choice=choice, subject=subject, is_short=True, may_negate=False)
        if word == "where" and clause.direct and any(noun.location for noun in clause.direct.heads()):
            word = "why"
        return OpenQuestion(QUESTION_WORDS[word], clause)

    def _who_question(self) -> Sentence:
        who = Gap()
        frame = self.transitive if self.chance(0.7) else self.ditransitive
        return OpenQuestion(QUESTION_WORDS["who"], frame(moods.QUESTION, subject=who, may_negate=False))

    def _what_question(self) -> Sentence:
        """Draw a question with what, or whom for persons; verbs with places as objects are excluded."""
        choice = self._choice("transitive")
        example = self.pick(choice.objects)
        is_person = example.category == "person"
        if example.location or (not is_person and choice.verb.object_case is Case.DATIVE):
            return self._what_question()
        word = "what"
        if is_person:
            word = "whom, dative" if choice.verb.object_case is Case.DATIVE else "whom"
        clause = self.transitive(moods.QUESTION, choice=choice, direct=Gap(), may_negate=False)
        return OpenQuestion(QUESTION_WORDS[word], clause)

    def _which_question(self) -> Sentence:
        """Draw a question with which or how many, for the subject or the object."""
        choice = self._choice("transitive")
        asks_for_subject = self.chance(0.35)
        noun = self.pick(choice.subjects if asks_for_subject else choice.objects)
        asks_how_many = noun.is_countable and self.chance(0.3)
        is_plural = asks_how_many or (noun.is_countable and self.chance(0.25))
        questioned = self.noun_phrase(noun, ANY, may_own=False)
        questioned = questioned._replace(
            determiner=DETERMINERS["how many" if asks_how_many else "which"], is_plural=is_plural
        )
        gap = Gap(noun, questioned.person)
        if asks_for_subject:
            clause = self.transitive(moods.QUESTION, choice=choice, subject=gap, may_negate=False)
        else:
            clause = self.transitive(moods.QUESTION, choice=choice, direct=gap, may_negate=False)
        return OpenQuestion(questioned, clause)

    def command(self) -> Sentence:
        """Draw an imperative to one familiar person."""
        you = Gap(person=Person.YOU)
        r = self.draw()
        if r < 0.6:
            clause = self.transitive(
                moods.PRESENT, choice=self._action(), subject=you, is_short=True, determiners=UNDER_NEGATION
            )
        elif r < 0.75:
            clause = self.ditransitive(moods.PRESENT, subject=you, is_short=True)
        elif r < 0.9:
            clause = self.placing(moods.PRESENT, subject=you, is_short=True)
        else:
            clause = self.motion(moods.PRESENT, subject=you, is_short=True)
        return Command(
            clause._replace(tense=Tense.PRESENT, modal=None), is_polite=not clause.is_negated and self.chance(0.5)
        )

    def _action(self) -> VerbChoice:
        choice = self._choice("transitive")
        while choice.verb.aspect != "action":
            choice = self._choice("transitive")
        return choice

    def reported(self) -> Sentence:
        """Draw a sentence with reported speech: a that-clause or a whether-clause."""
        tense = self.pick((Tense.PRESENT, Tense.PAST))
        choice = self._choice("clausal")
        subject = self.subject(choice.subjects, DEFINITE_ONLY)
        verb, is_negated = choice.verb, False
        if verb.lemma == "hope":
            tense = Tense.PRESENT
        word = "that"
        if verb.lemma == "know" and self.chance(0.5):
            word, is_negated = "whether", True
        complement = SubordinateClause(CONJUNCTIONS[word], self._reported_clause(verb.lemma, tense))
        return Statement(Clause(subject, verb, tense, is_negated=is_negated, complement=complement))

    def _reported_clause(self, verb: str, tense: Tense) -> Clause:
        """Draw the reported clause; by the sequence of tenses it is past or pluperfect after a past."""
        is_short = self.chance(0.4)
        if verb == "hope":
            return self.clause(moods.FUTURE, is_short=is_short)
        if self.chance(0.25):
            return self.description(tense, is_short=True)
        if tense is Tense.PRESENT:
            return self.clause(is_short=is_short)
        return self.clause(moods.PLUPERFECT if self.chance(0.3) else moods.PAST, is_short=is_short)

    def linked(self) -> Sentence:
        """Draw a main clause with a subordinate clause."""
        word, when_subordinate, when_main = self.pick(_LINKS)
        tense = when_subordinate["state"][0].tense
        may_negate = word in ("because", "although", "if")
        if word in ("because", "although", "when, once") and self.chance(0.35):
            subordinate = self.description(tense, is_short=True)
        else:
            subordinate = self._event(when_subordinate, may_negate=may_negate)
        link = SubordinateClause(CONJUNCTIONS[word], subordinate)
        return Linked(self._event(when_main, may_negate=may_negate), link, is_fronted=self.chance(0.4))

    def _event(self, when: Moods, *, may_negate: bool) -> Clause:
        """Draw a clause that is not a state."""
        while True:
            clause = self.clause(when, is_short=self.chance(0.5), may_negate=may_negate)
            if clause.verb.aspect != "state":
                return clause

    def relative(self) -> Sentence:
        """Draw a clause whose subject or object has a relative clause."""
        on_subject = self.chance(0.5)
        while True:
            clause = self.transitive(is_short=True) if self.chance(0.75) else self.description(is_short=True)
            host = clause.subject if on_subject else clause.direct
            if isinstance(host, NounPhrase) and not host.owner and host.determiner is not DETERMINERS["every"]:
                break
        described = self._with_relative(host, clause.verb.lemma)
        return Statement(clause._replace(subject=described) if on_subject else clause._replace(direct=described))

    def _with_relative(self, host: NounPhrase, other_verb: str) -> NounPhrase:
        """Add a relative clause to a noun phrase, if possible with another verb than the main clause."""
        noun, when = host.noun, self.pick((moods.PRESENT, moods.PAST, moods.PAST))
        subject_verbs = [each for each in self.choices.verbs_with_subject[noun.lemma] if each.verb.lemma != other_verb]
        all_object_verbs = self.choices.verbs_with_object[noun.lemma]
        object_verbs = [each for each in all_object_verbs if each.verb.lemma != other_verb] or all_object_verbs
        gap = Gap(noun, host.person)
        if subject_verbs and self.chance(0.5):
            choice = self.pick(subject_verbs)
            if choice.objects:
                clause = self.transitive(when, choice=choice, subject=gap, is_short=True)
            else:
                clause = self.intransitive(when, choice=choice, subject=gap, is_short=True)
        else:
            clause = self.transitive(when, choice=self.pick(object_verbs), direct=gap, is_short=True)
        return host._replace(modifier=RelativeClause(noun, host.is_plural, clause))

    def infinitive(self) -> Sentence:
        """Draw a sentence with an infinitive clause."""
        choice = self._choice("infinitival")
        tense = self.pick((Tense.PRESENT, Tense.PAST, Tense.PAST))
        subject = self.subject(choice.subjects, DEFINITE_ONLY)
        complement = InfinitiveClause(self._infinitive_clause(subject))
        return Statement(Clause(subject, choice.verb, tense, complement=complement))

    def purpose(self) -> Sentence:
        """Draw a sentence of motion with a purpose clause."""
        when = self.pick((moods.PRESENT, moods.PAST, moods.FUTURE))
        clause = self.motion(when, choice=self.pick(self._walking), is_short=True, may_negate=False)
        clause = clause._replace(complement=PurposeClause(self._infinitive_clause(clause.subject)))
        return Statement(clause)

    def _infinitive_clause(self, subject: Nominal) -> Clause:
        """Draw the clause of an infinitive: an action of the subject, without tense."""
        gap = Gap(person=subject.person)
        if self.chance(0.8):
            clause = self.transitive(moods.PRESENT, choice=self._action(), subject=gap, is_short=True, may_negate=False)
        else:
            clause = self.ditransitive(moods.PRESENT, subject=gap, is_short=True, may_negate=False)
        return clause._replace(tense=Tense.PRESENT, modal=None)

    def joined(self) -> Sentence:
        """Draw two coordinated main clauses in the same moods."""
        when = self.pick((moods.PAST, moods.PRESENT, moods.FUTURE))
        conjunction: Literal["and", "but"] = "and" if self.chance(0.6) else "but"
        return Joined(self.clause(when, is_short=True), self.clause(when, is_short=True), conjunction)

    def coordinated(self) -> Sentence:
        """Draw a clause with a coordinated subject."""
        choice = self._choice("transitive" if self.chance(0.6) else "intransitive")
        first = self.noun_phrase(self.pick(choice.subjects), DEFINITE_ONLY)
        second = self.noun_phrase(self.pick(choice.subjects), DEFINITE_ONLY)
        if first.noun is second.noun:
            return self.coordinated()
        subject = Coordination(first, second)
        if choice.objects:
            return Statement(self.transitive(choice=choice, subject=subject))
        return Statement(self.intransitive(choice=choice, subject=subject))

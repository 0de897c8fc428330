"""The clause: one record of its content, and its realisation in the word orders of both languages.

German has three orders: verb second (statements), verb first (questions, and the rest of a clause after a fronted
constituent) and verb final (subordinate clauses). All have the same middle field, in the order

    subject, pronouns and names, time, frequency, dative, [definite object], nicht, with whom, manner, place,
    [indefinite object], goal, predicate

and the same postfield, after the last verb: relative clauses, that-clauses and infinitives.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, NamedTuple

from transduce.corpora.grammar.german import Case
from transduce.corpora.grammar.lexicon import Adjective, Adverb, TimeAdverbial, Verb
from transduce.corpora.grammar.phrases import (
    DETERMINERS,
    Combination,
    Constituent,
    Name,
    Nominal,
    NounPhrase,
    PrepositionalPhrase,
    Pronoun,
)
from transduce.corpora.grammar.tenses import BE, SEIN, GermanGroup, Modal, Tense, english_group, german_group

__all__ = [
    "COPULA", "Clause", "Comparison", "english_bare_verb_phrase", "english_infinitive",
    "english_inverted", "english_subject_first", "english_verb_phrase", "german_after_front", "german_command",
    "german_infinitive", "german_subject_first", "german_verb_final",
]  # fmt: skip

COPULA = Verb("be", BE, SEIN, Case.NOMINATIVE, (), (), (), "state")


class Comparison(NamedTuple):
    """A predicative adjective: plain, with ``very`` or ``too``, or in a comparison (``than``, ``as``)."""

    adjective: Adjective
    degree: Literal["", "very", "too", "than", "as"] = ""
    standard: Nominal | None = None  # of the comparison

    def english(self) -> str:
        """Return the adjective phrase."""
        adjective = self.adjective
        if not self.standard:
            return f"(ADJP (RB {self.degree}) {adjective.tree})" if self.degree else f"(ADJP {adjective.tree})"
        standard = self.standard.english(Case.NOMINATIVE)
        if self.degree == "than":
            return f"(ADJP {adjective.comparative_tree} (PP (IN than) {standard}))"
        return f"(ADJP (RB as) {adjective.tree} (PP (IN as) {standard}))"

    def german(self) -> str:
        """Return sehr alt, zu alt, älter als, so alt wie: predicative adjectives have no ending."""
        adjective = self.adjective
        if not self.standard:
            degree = {"": "", "very": "sehr ", "too": "zu "}[self.degree]
            return degree + adjective.german
        standard = self.standard.german(Case.NOMINATIVE)
        if self.degree == "than":
            return f"{adjective.german_comparative} als {standard}"
        return f"so {adjective.german} wie {standard}"

    def combinations(self, subject: Nominal) -> Iterator[Combination]:
        """Yield the adjective with each noun that it describes."""
        for noun in subject.heads() + (self.standard.heads() if self.standard else ()):
            yield "adjective", self.adjective.lemma, noun.lemma


class Clause(NamedTuple):
    """Content of a clause, without word order and final punctuation.

    >>> from transduce.corpora.grammar.lexicon import load_lexicon
    >>> from transduce.corpora.grammar.phrases import DETERMINERS, PRONOUNS
    >>> words = load_lexicon()
    >>> read = next(verb for verb in words.verbs["transitive"] if verb.lemma == "read")
    >>> book = NounPhrase(DETERMINERS["a"], words.nouns["book"], adjective=words.adjectives["old"])
    >>> german_subject_first(Clause(PRONOUNS["she"], read, Tense.PAST, direct=book))
    'sie hat ein altes Buch gelesen'
    """

    subject: Nominal
    verb: Verb
    tense: Tense = Tense.PRESENT
    modal: Modal | None = None
    is_negated: bool = False
    is_passive: bool = False
    indirect: Nominal | None = None
    direct: Nominal | None = None
    time: TimeAdverbial | None = None
    frequency: Adverb | None = None
    companion: PrepositionalPhrase | None = None  # with his friend, for the child, by the teacher, by train
    place: PrepositionalPhrase | None = None
    manner: Adverb | None = None
    goal: PrepositionalPhrase | None = None
    predicate: Comparison | None = None
    complement: Constituent | None = None  # a subordinate clause, in the German postfield

    def without_time(self) -> Clause:
        """Return the clause with an empty time adverbial: its time stands before it."""
        return self._replace(time=TimeAdverbial("", "", ""))

    def combinations(self) -> Iterator[Combination]:
        """Yield the combinations of lexemes, which decide whether the clause is held out."""
        agent: Nominal | None = self.subject
        patient = self.direct
        if self.is_passive:
            agent, patient = (self.companion.object if self.companion else None), self.subject
        if agent and self.verb is not COPULA:
            for noun in agent.heads():
                yield "subject", noun.lemma, self.verb.lemma
        if patient:
            for noun in patient.heads():
                yield "object", self.verb.lemma, noun.lemma
        if self.predicate:
            yield from self.predicate.combinations(self.subject)
        for part in (self.subject, self.indirect, self.direct, self.companion, self.place, self.goal, self.complement):
            if part:
                yield from part.combinations()


def _english_objects(clause: Clause) -> Iterator[str]:
    """Objects: ``gives the child the book``, ``gives it to the child``; ``turns on the lamp``, ``turns it on``."""
    direct, indirect, particle = clause.direct, clause.indirect, clause.verb.english.particle
    direct_is_pronoun = isinstance(direct, Pronoun)
    if particle and not direct_is_pronoun:
        yield particle
    if indirect and not direct_is_pronoun:
        yield indirect.english(Case.DATIVE)
    if direct:
        yield direct.english(Case.ACCUSATIVE)
    if particle and direct_is_pronoun:
        yield particle
    if indirect and direct_is_pronoun:
        yield f"(PP (TO to) {indirect.english(Case.DATIVE)})"


def _english_tail(clause: Clause) -> str:
    """Return everything after the verb; empty parts (gaps) are omitted."""
    parts = [] if clause.is_passive else list(_english_objects(clause))
    if clause.predicate:
        parts.append(clause.predicate.english())
    if clause.goal:
        parts.append(clause.goal.english())
    if clause.manner:
        parts.append(clause.manner.tree)
    if clause.companion:
        parts.append(clause.companion.english())
    if clause.place:
        parts.append(clause.place.english())
    if clause.time:
        parts.append(clause.time.tree)
    if clause.complement:
        parts.append(clause.complement.english())
    return " ".join(filter(None, parts))


def _english_parts(clause: Clause, *, needs_auxiliary: bool) -> tuple[str, str]:
    """Return the auxiliary, and the rest: ``not``, the frequency adverb, the main verb and what follows."""
    tail = _english_tail(clause)
    verb = clause.verb.english
    if clause.is_passive:
        tail = f"(VP {' '.join(filter(None, (verb.participle, verb.particle, tail)))})"
        verb = BE
    auxiliary, rest = english_group(
        verb,
        tail,
        person=clause.subject.person,
        tense=clause.tense,
        modal=clause.modal,
        needs_auxiliary=needs_auxiliary or clause.is_negated,
    )
    if clause.frequency:
        rest = f"{clause.frequency.tree} {rest}"
    return auxiliary, f"(RB not) {rest}" if clause.is_negated else rest


def english_verb_phrase(clause: Clause) -> str:
    """Return the VP of a clause whose subject precedes it."""
    auxiliary, rest = _english_parts(clause, needs_auxiliary=False)
    return f"(VP {auxiliary} {rest})" if auxiliary else f"(VP {rest})"


def english_subject_first(clause: Clause) -> str:
    """Return subject and VP."""
    return f"{clause.subject.english(Case.NOMINATIVE)} {english_verb_phrase(clause)}".lstrip()


def english_inverted(clause: Clause) -> str:
    """Return auxiliary, subject, rest: ``did the man read``."""
    auxiliary, rest = _english_parts(clause, needs_auxiliary=True)
    return f"{auxiliary} {clause.subject.english(Case.NOMINATIVE)} {rest}"


def _middle_field(clause: Clause, *, with_subject: bool) -> list[str]:
    """Return the German middle field in the order given in the module's docstring."""
    direct, indirect, object_case = clause.direct, clause.indirect, clause.verb.object_case
    frequency = clause.frequency
    is_direct_first, is_indirect_first = isinstance(direct, Pronoun | Name), isinstance(indirect, Pronoun | Name)
    is_direct_early = direct is not None and direct.is_definite and not is_direct_first
    is_direct_late = direct is not None and not direct.is_definite
    time = _german_time(clause)
    is_time_late = clause.is_negated and is_direct_early  # liest das Buch heute nicht
    parts = [clause.subject.german(Case.NOMINATIVE)] if with_subject else []
    if direct and is_direct_first:
        parts.append(direct.german(object_case))
    if indirect and is_indirect_first:
        parts.append(indirect.german(Case.DATIVE))
    if not is_time_late:
        parts.append(time)
    if frequency and not frequency.follows_object:
        parts.append(frequency.german)
    if indirect and not is_indirect_first:
        parts.append(indirect.german(Case.DATIVE))
    if direct and is_direct_early:
        parts.append(_core(direct, object_case))
    if is_time_late:
        parts.append(time)
    if frequency and frequency.follows_object:
        parts.append(frequency.german)
    if clause.is_negated and not is_direct_late:
        parts.append("nicht")
    if clause.companion:
        parts.append(clause.companion.german())
    if clause.manner:
        parts.append(clause.manner.german)
    if clause.place:
        parts.append(clause.place.german())
    if direct and is_direct_late:
        parts.append(_negated_core(direct, object_case) if clause.is_negated else _core(direct, object_case))
    if clause.goal:
        parts.append(clause.goal.german())
    if clause.predicate:
        parts.append(clause.predicate.german())
    return list(filter(None, parts))


def _german_time(clause: Clause) -> str:
    """Return the time adverbial; without one, ``gerade`` for the progressive, else an empty string."""
    if clause.time:
        return clause.time.german
    return "gerade" if clause.tense is Tense.PROGRESSIVE else ""


def _core(direct: Nominal, case: Case) -> str:
    return direct.german_core(case) if isinstance(direct, NounPhrase) else direct.german(case)


def _negated_core(direct: Nominal, case: Case) -> str:
    """Negate an indefinite object by kein: kein Buch, keine alten Bücher, kein Wasser."""
    assert isinstance(direct, NounPhrase), "only noun phrases are indefinite under negation"
    return direct._replace(determiner=DETERMINERS["no"]).german_core(case)


def _postfield(clause: Clause) -> str:
    """Return the postfield: the relative clause of the object, that-clause, infinitive."""
    direct = clause.direct
    relative = direct.modifier.german() if isinstance(direct, NounPhrase) and direct.modifier else ""
    return relative + clause.complement.german() if clause.complement else relative


def _german_group(clause: Clause) -> GermanGroup:
    return german_group(
        clause.verb.german,
        person=clause.subject.person,
        tense=clause.tense,
        modal=clause.modal,
        is_passive=clause.is_passive,
        is_negated=clause.is_negated,
    )


def _joined(parts: list[str], postfield: str) -> str:
    return " ".join(filter(None, parts)) + postfield


def german_subject_first(clause: Clause) -> str:
    """Return the verb-second order after the subject: ``der Mann hat das Buch gelesen``."""
    finite, right_bracket, _ = _german_group(clause)
    subject = clause.subject.german(Case.NOMINATIVE)
    middle = _middle_field(clause, with_subject=False)
    return _joined([subject, finite, *middle, right_bracket], _postfield(clause))


def german_after_front(clause: Clause) -> str:
    """Return the verb-first order: a question, or a clause without its fronted constituent."""
    finite, right_bracket, _ = _german_group(clause)
    return _joined([finite, *_middle_field(clause, with_subject=True), right_bracket], _postfield(clause))


def german_verb_final(clause: Clause) -> str:
    """Return the verb-final order: ``der Mann das Buch gelesen hat``."""
    _, _, final = _german_group(clause)
    return _joined([*_middle_field(clause, with_subject=True), final], _postfield(clause))


def german_command(clause: Clause) -> str:
    """Return the imperative: ``schalte die Lampe ein``."""
    verb = clause.verb.german
    return _joined([verb.imperative, *_middle_field(clause, with_subject=False), verb.prefix], _postfield(clause))


def english_bare_verb_phrase(clause: Clause) -> str:
    """Return the VP without tense and subject: ``(VP (VB open) (NP (DT the) (NN door)))``."""
    tail = _english_tail(clause)
    return f"(VP {clause.verb.english.base} {tail})" if tail else f"(VP {clause.verb.english.base})"


def english_infinitive(clause: Clause) -> str:
    """Return ``(S (VP (TO to) (VP (VB open) ...)))``."""
    return f"(S (VP (TO to) {english_bare_verb_phrase(clause)}))"


def german_infinitive(clause: Clause) -> str:
    """Return ``die Tür zu öffnen``, ``die Lampe einzuschalten``."""
    return _joined([*_middle_field(clause, with_subject=False), clause.verb.german.zu_infinitive], _postfield(clause))

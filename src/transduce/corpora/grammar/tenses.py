"""Tenses and modal verbs: the verb forms of a clause, in English and in German.

The English past is translated by the German perfect, as in speech; only sein, haben, werden and the modal verbs use
their preterite. In a German main clause the finite verb is the second constituent, and the rest of the verb group (the
right bracket of the clause) is at the end. In a subordinate clause the whole verb group is at the end.
"""

from __future__ import annotations

from enum import Enum, auto
from typing import NamedTuple, assert_never

from transduce.corpora.grammar import english, german
from transduce.corpora.grammar.english import EnglishVerb
from transduce.corpora.grammar.german import GermanVerb, Person

__all__ = ["BE", "MODALS", "SEIN", "EnglishGroup", "GermanGroup", "Modal", "Tense", "english_group", "german_group"]


class Tense(Enum):
    """The English tenses; each has one German rendering."""

    PRESENT = auto()
    PROGRESSIVE = auto()  # the present with gerade
    PAST = auto()
    PERFECT = auto()
    PLUPERFECT = auto()
    FUTURE = auto()


class Modal(NamedTuple):
    """A modal: an auxiliary (``can``), a full verb with ``to`` (``wants to``) or both (``would like to``)."""

    name: str
    leaf: str  # the auxiliary in the tree: "(MD can)"; empty if there is none
    full_verb: EnglishVerb | None  # want, have, like
    is_past: bool
    forms: tuple[str, ...]  # of the German verb, by person


BE = english.verb_from_dictionary("be")
SEIN = german.verb_from_dictionary("sein", "ist", "gewesen", takes_sein=True)
_HABEN = german.verb_from_dictionary("haben", "hat", "gehabt", takes_sein=False)
_WERDEN = german.verb_from_dictionary("werden", "wird", "geworden", takes_sein=True)
_DO = english.verb_from_dictionary("do", "did", "done")
_HAVE = english.verb_from_dictionary("have", "had", "had")
_WANT = english.verb_from_dictionary("want")
_LIKE = english.verb_from_dictionary("like")


def _modal(name: str, leaf: str, forms: str, *, full_verb: EnglishVerb | None = None, is_past: bool = False) -> Modal:
    first, second, plural = forms.split()
    return Modal(name, leaf, full_verb, is_past, (first, second, first, plural, plural))


MODALS = {
    modal.name: modal
    for modal in (
        _modal("can", "(MD can)", "kann kannst können"),
        _modal("could", "(MD could)", "konnte konntest konnten", is_past=True),
        _modal("must", "(MD must)", "muss musst müssen"),
        _modal("may", "(MD may)", "darf darfst dürfen"),
        _modal("should", "(MD should)", "sollte solltest sollten"),
        _modal("want to", "", "will willst wollen", full_verb=_WANT),
        _modal("wanted to", "", "wollte wolltest wollten", full_verb=_WANT, is_past=True),
        _modal("had to", "", "musste musstest mussten", full_verb=_HAVE, is_past=True),
        _modal("would like to", "(MD would)", "möchte möchtest möchten", full_verb=_LIKE),
    )
}
_MUST_NOT = MODALS["may"].forms  # must not: darf nicht


class EnglishGroup(NamedTuple):
    """An English verb group, as leaves and phrases of a tree."""

    auxiliary: str  # precedes the subject in a question; empty if there is none
    rest: str


class GermanGroup(NamedTuple):
    """A German verb group: split into ``finite`` and ``right_bracket`` in a main clause, else ``verb_final``."""

    finite: str  # the second constituent of a main clause
    right_bracket: str  # at the end of a main clause: participle, infinitive or separable prefix
    verb_final: str  # both, at the end of a subordinate clause


def _phrase(leaf: str, tail: str) -> str:
    return f"(VP {leaf} {tail})" if tail else f"(VP {leaf})"


def english_group(
    verb: EnglishVerb, tail: str, *, person: Person, tense: Tense, modal: Modal | None, needs_auxiliary: bool
) -> EnglishGroup:
    """Return the English verb group of a clause; ``tail`` holds the constituents after the verb.

    ``needs_auxiliary``: the clause is a question or negated and needs do-support.
    """
    if modal and modal.full_verb:
        tail = f"(S (VP (TO to) {_phrase(verb.base, tail)}))"
        verb = modal.full_verb
        tense = Tense.PAST if modal.is_past else Tense.PRESENT
    if modal and modal.leaf:
        return EnglishGroup(modal.leaf, _phrase(verb.base, tail))
    match tense:
        case Tense.PRESENT | Tense.PAST:
            forms = verb.present if tense is Tense.PRESENT else verb.past
            if verb is BE:  # be is its own auxiliary, so there is no inner verb phrase
                return EnglishGroup(forms[person], tail)
            if needs_auxiliary:
                do_forms = _DO.present if tense is Tense.PRESENT else _DO.past
                return EnglishGroup(do_forms[person], _phrase(verb.base, tail))
            return EnglishGroup("", f"{forms[person]} {tail}".rstrip())
        case Tense.PROGRESSIVE:
            return EnglishGroup(BE.present[person], _phrase(verb.gerund, tail))
        case Tense.PERFECT:
            return EnglishGroup(_HAVE.present[person], _phrase(verb.participle, tail))
        case Tense.PLUPERFECT:
            return EnglishGroup(_HAVE.past[person], _phrase(verb.participle, tail))
        case Tense.FUTURE:
            return EnglishGroup("(MD will)", _phrase(verb.base, tail))
        case _:
            assert_never(tense)


def german_group(
    verb: GermanVerb, *, person: Person, tense: Tense, modal: Modal | None, is_passive: bool, is_negated: bool
) -> GermanGroup:
    """Return the German verb group of a clause."""
    infinitive = f"{verb.participle} werden" if is_passive else verb.infinitive
    if modal:
        is_prohibition = is_negated and modal.name == "must"
        return _compound((_MUST_NOT if is_prohibition else modal.forms)[person], infinitive)
    if tense is Tense.FUTURE:
        return _compound(_WERDEN.present[person], infinitive)
    perfect = f"{verb.participle} worden" if is_passive else verb.participle
    takes_sein = is_passive or verb.takes_sein
    match tense:
        case Tense.PRESENT | Tense.PROGRESSIVE:
            return (
                _compound(_WERDEN.present[person], verb.participle)
                if is_passive
                else _simple(verb, verb.present[person])
            )
        case Tense.PAST if is_passive:
            return _compound(_WERDEN.preterite[person], verb.participle)
        case Tense.PAST if verb.preterite:
            return _simple(verb, verb.preterite[person])
        case Tense.PAST | Tense.PERFECT:
            return _compound((SEIN if takes_sein else _HABEN).present[person], perfect)
        case Tense.PLUPERFECT:
            return _compound((SEIN if takes_sein else _HABEN).preterite[person], perfect)
        case _:
            assert_never(tense)


def _simple(verb: GermanVerb, form: str) -> GermanGroup:
    return GermanGroup(form, verb.prefix, verb.prefix + form)


def _compound(finite: str, right_bracket: str) -> GermanGroup:
    return GermanGroup(finite, right_bracket, f"{right_bracket} {finite}")

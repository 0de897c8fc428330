"""Combinations allowed in a split: the subjects and objects of each verb, the adjectives and verbs of each noun."""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

from transduce.config import Split
from transduce.corpora.grammar.holdout import is_allowed
from transduce.corpora.grammar.lexicon import Adjective, Adverb, Lexicon, Noun, Verb, load_lexicon
from transduce.corpora.grammar.modifiers import COMPANY_VERBS

__all__ = ["Choices", "VerbChoice", "choices_for"]


class VerbChoice(NamedTuple):
    """A verb with its allowed arguments and adverbs in a split."""

    verb: Verb
    subjects: tuple[Noun, ...]
    objects: tuple[Noun, ...]
    manners: tuple[Adverb, ...]
    company: tuple[str, ...]  # "with", "for": prepositions before a person who accompanies or benefits


class Choices(NamedTuple):
    """All tables of allowed combinations of one split."""

    lexicon: Lexicon
    verbs: dict[str, tuple[VerbChoice, ...]]  # by construction
    adjectives: dict[str, tuple[Adjective, ...]]  # by noun
    verbs_with_subject: dict[str, tuple[VerbChoice, ...]]  # by noun: intransitive and transitive ones
    verbs_with_object: dict[str, tuple[VerbChoice, ...]]  # by noun


def _verb_choice(verb: Verb, lexicon: Lexicon, split: Split, *, has_company: bool) -> VerbChoice:
    return VerbChoice(
        verb=verb,
        subjects=tuple(
            noun for noun in lexicon.nouns_of(verb.subjects) if is_allowed(("subject", noun.lemma, verb.lemma), split)
        ),
        objects=tuple(
            noun for noun in lexicon.nouns_of(verb.objects) if is_allowed(("object", verb.lemma, noun.lemma), split)
        ),
        manners=tuple(adverb for group in verb.manners for adverb in lexicon.manners[group]),
        company=tuple(kind for kind, verbs in COMPANY_VERBS.items() if has_company and verb.lemma in verbs.split()),
    )


@cache
def choices_for(split: Split) -> Choices:
    """Return the tables of a split (cached)."""
    lexicon = load_lexicon()
    with_company = ("intransitive", "transitive", "motion", "travel")
    verbs = {
        group: tuple(_verb_choice(verb, lexicon, split, has_company=group in with_company) for verb in members)
        for group, members in lexicon.verbs.items()
    }
    simple = verbs["intransitive"] + verbs["transitive"]
    nouns = lexicon.nouns.values()
    return Choices(
        lexicon=lexicon,
        verbs=verbs,
        adjectives={
            noun.lemma: tuple(
                adjective
                for adjective in lexicon.adjectives.values()
                if not {noun.category, noun.lemma}.isdisjoint(adjective.categories)
                and is_allowed(("adjective", adjective.lemma, noun.lemma), split)
            )
            for noun in nouns
        },
        verbs_with_subject={
            noun.lemma: tuple(choice for choice in simple if noun in choice.subjects) for noun in nouns
        },
        verbs_with_object={
            noun.lemma: tuple(choice for choice in verbs["transitive"] if noun in choice.objects) for noun in nouns
        },
    )

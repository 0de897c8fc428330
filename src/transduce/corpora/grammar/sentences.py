"""Sentences: one record for each construction, realised as English text, German text and tree."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, NamedTuple, Protocol

from transduce.corpora.grammar.clauses import (
    Clause,
    english_bare_verb_phrase,
    english_inverted,
    english_subject_first,
    english_verb_phrase,
    german_after_front,
    german_command,
    german_subject_first,
)
from transduce.corpora.grammar.german import Case
from transduce.corpora.grammar.phrases import Combination, Constituent, FunctionWord, Gap, Nominal, PrepositionalPhrase
from transduce.corpora.grammar.subordinate import SubordinateClause
from transduce.corpora.grammar.tenses import BE, SEIN

__all__ = [
    "QUESTION_WORDS", "Command", "Existence", "GrammarPair", "Joined", "Linked", "OpenQuestion",
    "Sentence", "Statement", "YesNoQuestion", "english_text", "realize",
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class GrammarPair:
    """An English sentence, its German translation and its constituency tree."""

    en: str
    de: str
    tree: str


class Sentence(Constituent, Protocol):
    """A sentence of any construction."""

    @property
    def mark(self) -> str:
        """Final punctuation."""


class Statement(NamedTuple):
    """A statement, perhaps with time or place fronted: ``Yesterday the man ...``/``Gestern hat der Mann ...``."""

    clause: Clause
    front: Literal["subject", "time", "place"] = "subject"
    mark: str = "."

    def english(self) -> str:
        """Return the Penn bracket with the fronted constituent before the subject."""
        clause = self.clause
        match self.front:
            case "time" if clause.time:
                return f"(S {clause.time.tree} {english_subject_first(clause.without_time())})"
            case "place" if clause.place:
                return f"(S {clause.place.english()} {english_subject_first(clause._replace(place=None))})"
            case _:
                return f"(S {english_subject_first(clause)})"

    def german(self) -> str:
        """Return the verb-second order after the first constituent."""
        clause = self.clause
        match self.front:
            case "time" if clause.time:
                return f"{clause.time.german} {german_after_front(clause.without_time())}"
            case "place" if clause.place:
                return f"{clause.place.german()} {german_after_front(clause._replace(place=None))}"
            case _:
                return german_subject_first(clause)

    def combinations(self) -> Iterator[Combination]:
        """Yield the combinations of the clause."""
        return self.clause.combinations()


class YesNoQuestion(NamedTuple):
    """``Does the man sleep?``/``Schläft der Mann?``"""

    clause: Clause
    mark: str = "?"

    def english(self) -> str:
        """Return the Penn bracket with the auxiliary first."""
        return f"(SQ {english_inverted(self.clause)})"

    def german(self) -> str:
        """Return the verb-first order."""
        return german_after_front(self.clause)

    def combinations(self) -> Iterator[Combination]:
        """Yield the combinations of the clause."""
        return self.clause.combinations()


QUESTION_WORDS = {
    "who": FunctionWord("(WHNP (WP who))", "wer"),
    "whom": FunctionWord("(WHNP (WP whom))", "wen"),
    "whom, dative": FunctionWord("(WHNP (WP whom))", "wem"),
    "what": FunctionWord("(WHNP (WP what))", "was"),
    "where": FunctionWord("(WHADVP (WRB where))", "wo"),
    "where to": FunctionWord("(WHADVP (WRB where))", "wohin"),
    "when": FunctionWord("(WHADVP (WRB when))", "wann"),
    "why": FunctionWord("(WHADVP (WRB why))", "warum"),
    "how": FunctionWord("(WHADVP (WRB how))", "wie"),
}


class OpenQuestion(NamedTuple):
    """A question with a question word, or with a noun phrase after ``which`` or ``how many``."""

    questioned: FunctionWord | Nominal
    clause: Clause
    mark: str = "?"

    def english(self) -> str:
        """Return the Penn bracket, inverted unless the subject is questioned."""
        if isinstance(self.questioned, FunctionWord):
            front = self.questioned.tree
        else:
            front = "(WHNP" + self.questioned.english(Case.ACCUSATIVE).removeprefix("(NP")
        is_subject = isinstance(self.clause.subject, Gap)
        rest = english_subject_first(self.clause) if is_subject else english_inverted(self.clause)
        return f"(SBARQ {front} (SQ {rest}))"

    def german(self) -> str:
        """Return the verb-second order after the questioned phrase, which has the case of its gap."""
        is_subject = isinstance(self.clause.subject, Gap)
        case = Case.NOMINATIVE if is_subject else self.clause.verb.object_case
        front = self.questioned.german if isinstance(self.questioned, FunctionWord) else self.questioned.german(case)
        return f"{front} {german_after_front(self.clause)}"

    def combinations(self) -> Iterator[Combination]:
        """Yield the combinations of the clause and of the questioned phrase."""
        yield from self.clause.combinations()
        if not isinstance(self.questioned, FunctionWord):
            yield from self.questioned.combinations()


class Command(NamedTuple):
    """``Please close the door.``/``Bitte schließ die Tür.``; the subject "you" is implicit."""

    clause: Clause
    is_polite: bool

    @property
    def mark(self) -> str:
        """Final punctuation: a full stop after ``please``, else an exclamation mark."""
        return "." if self.is_polite else "!"

    def english(self) -> str:
        """Return the bare verb phrase, negated by ``do not``."""
        verb_phrase = english_bare_verb_phrase(self.clause)
        if self.clause.is_negated:
            verb_phrase = f"(VP (VB do) (RB not) {verb_phrase})"
        return f"(S (INTJ (UH please)) {verb_phrase})" if self.is_polite else f"(S {verb_phrase})"

    def german(self) -> str:
        """Return the imperative of du."""
        command = german_command(self.clause)
        return f"bitte {command}" if self.is_polite else command

    def combinations(self) -> Iterator[Combination]:
        """Yield the combinations of the clause."""
        return self.clause.combinations()


class Linked(NamedTuple):
    """A main clause with a subordinate clause after or before it."""

    main: Clause
    subordinate: SubordinateClause
    is_fronted: bool
    mark: str = "."

    def english(self) -> str:
        """Return the Penn bracket; only a fronted clause is followed by a comma."""
        subordinate = self.subordinate.english()
        if self.is_fronted:
            return f"(S {subordinate} (, ,) {english_subject_first(self.main)})"
        return f"(S {self.main.subject.english(Case.NOMINATIVE)} {english_verb_phrase(self.main)[:-1]} {subordinate}))"

    def german(self) -> str:
        """Return the words; after a fronted clause the main clause is verb-first."""
        subordinate = self.subordinate.german()
        if self.is_fronted:
            return f"{subordinate.removeprefix(', ')} {german_after_front(self.main)}"
        return german_subject_first(self.main) + subordinate

    def combinations(self) -> Iterator[Combination]:
        """Yield the combinations of both clauses."""
        yield from self.main.combinations()
        yield from self.subordinate.combinations()


class Joined(NamedTuple):
    """Two main clauses joined by ``and`` or ``but``; in German with a comma before aber, but not before und."""

    first: Clause
    second: Clause
    conjunction: Literal["and", "but"]
    mark: str = "."

    def english(self) -> str:
        """Return both sentences with a comma between them."""
        first, second = english_subject_first(self.first), english_subject_first(self.second)
        return f"(S (S {first}) (, ,) (CC {self.conjunction}) (S {second}))"

    def german(self) -> str:
        """Return both in verb-second order."""
        link = " und" if self.conjunction == "and" else ", aber"
        return f"{german_subject_first(self.first)}{link} {german_subject_first(self.second)}"

    def combinations(self) -> Iterator[Combination]:
        """Yield the combinations of both clauses."""
        yield from self.first.combinations()
        yield from self.second.combinations()


class Existence(NamedTuple):
    """``There is a dog in the garden.``/``Im Garten ist ein Hund.``"""

    what: Nominal
    place: PrepositionalPhrase
    is_past: bool
    mark: str = "."

    def english(self) -> str:
        """Return the Penn bracket; the verb agrees with the logical subject."""
        verb = (BE.past if self.is_past else BE.present)[self.what.person]
        return f"(S (NP (EX there)) (VP {verb} {self.what.english(Case.NOMINATIVE)} {self.place.english()}))"

    def german(self) -> str:
        """Return the words with the place first."""
        verb = (SEIN.preterite if self.is_past else SEIN.present)[self.what.person]
        return f"{self.place.german()} {verb} {self.what.german(Case.NOMINATIVE)}"

    def combinations(self) -> Iterator[Combination]:
        """Yield the combinations of both phrases."""
        yield from self.what.combinations()
        yield from self.place.combinations()


_LEAF = re.compile(r" ([^ ()]+)\)")


def realize(sentence: Sentence) -> GrammarPair:
    """Return the texts and the tree of a sentence; the leaves of the tree are the English text.

    >>> from transduce.corpora.grammar.lexicon import load_lexicon
    >>> from transduce.corpora.grammar.phrases import PRONOUNS
    >>> sleep = load_lexicon().verbs["intransitive"][0]
    >>> realize(YesNoQuestion(Clause(PRONOUNS["he"], sleep)))
    GrammarPair(en='Does he sleep?', de='Schläft er?', tree='(TOP (SQ (VBZ Does) (NP (PRP he)) (VP (VB sleep)) (. ?)))')
    """
    mark = sentence.mark
    bracket = sentence.english()
    tree = f"(TOP {bracket[:-1]} (. {mark})))"
    first = _LEAF.findall(tree)[0]
    tree = tree.replace(f" {first})", f" {_capitalised(first)})", 1)
    german = _capitalised(sentence.german()).replace(",,", ",").removesuffix(",")
    return GrammarPair(english_text(bracket, mark), german + mark, tree)


def english_text(bracket: str, mark: str) -> str:
    """Return the text of a Penn bracket, with a final mark.

    >>> english_text("(NP (DT a) (NN dog))", ".")
    'A dog.'
    """
    text = " ".join(_LEAF.findall(bracket)).replace(" ,", ",").replace(" 's", "'s").replace("can not", "cannot")
    return _capitalised(text) + mark


def _capitalised(text: str) -> str:
    return text[0].upper() + text[1:]

"""Clauses inside clauses: after a conjunction, as an infinitive, about a noun.

In German each stands between commas; ``sentences`` drops the one that meets another comma or the end.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from transduce.corpora.grammar.clauses import (
    Clause,
    english_infinitive,
    english_subject_first,
    german_infinitive,
    german_verb_final,
)
from transduce.corpora.grammar.german import RELATIVE_PRONOUNS, Case, Column
from transduce.corpora.grammar.lexicon import Noun
from transduce.corpora.grammar.phrases import Combination, Gap

__all__ = ["CONJUNCTIONS", "Conjunction", "InfinitiveClause", "PurposeClause", "RelativeClause", "SubordinateClause"]


class Conjunction(NamedTuple):
    """A subordinating conjunction: the English bracket and the German word."""

    tree: str
    german: str


# "when" is two in German: als for what happened once, wenn for what happens.
CONJUNCTIONS = {
    "that": Conjunction("(IN that)", "dass"),
    "whether": Conjunction("(IN whether)", "ob"),
    "because": Conjunction("(IN because)", "weil"),
    "although": Conjunction("(IN although)", "obwohl"),
    "if": Conjunction("(IN if)", "wenn"),
    "while": Conjunction("(IN while)", "während"),
    "before": Conjunction("(IN before)", "bevor"),
    "after": Conjunction("(IN after)", "nachdem"),
    "when": Conjunction("(WHADVP (WRB when))", "wenn"),
    "when, once": Conjunction("(WHADVP (WRB when))", "als"),
}


class SubordinateClause(NamedTuple):
    """A clause after a conjunction: ``because the man sleeps``/``weil der Mann schläft``."""

    conjunction: Conjunction
    clause: Clause

    def english(self) -> str:
        """The SBAR."""
        return f"(SBAR {self.conjunction.tree} (S {english_subject_first(self.clause)}))"

    def german(self) -> str:
        """Verb final, between commas."""
        return f", {self.conjunction.german} {german_verb_final(self.clause)},"

    def combinations(self) -> Iterator[Combination]:
        """Those of the clause."""
        return self.clause.combinations()


class InfinitiveClause(NamedTuple):
    """``to open the door``/``die Tür zu öffnen``; the subject is that of the clause above, as a gap."""

    clause: Clause

    def english(self) -> str:
        """``(S (VP (TO to) ...))``."""
        return english_infinitive(self.clause)

    def german(self) -> str:
        """zu stands before the verb, or between its prefix and itself."""
        return f", {german_infinitive(self.clause)},"

    def combinations(self) -> Iterator[Combination]:
        """Those of the clause."""
        return self.clause.combinations()


class PurposeClause(NamedTuple):
    """``in order to buy bread``/``um Brot zu kaufen``."""

    clause: Clause

    def english(self) -> str:
        """As the Penn treebank brackets ``in order to``."""
        return f"(SBAR (IN in) (NN order) {english_infinitive(self.clause)})"

    def german(self) -> str:
        """um before the infinitive clause."""
        return f", um {german_infinitive(self.clause)},"

    def combinations(self) -> Iterator[Combination]:
        """Those of the clause."""
        return self.clause.combinations()


class RelativeClause(NamedTuple):
    """A clause about a noun; the noun's place in it, subject or object, is a gap."""

    noun: Noun
    is_plural: bool
    clause: Clause

    @property
    def is_about_subject(self) -> bool:
        """Whether the noun is the subject of the clause."""
        return isinstance(self.clause.subject, Gap)

    def english(self) -> str:
        """who for persons who act, else that."""
        is_who = self.noun.category == "person" and self.is_about_subject
        pronoun = "(WP who)" if is_who else "(WDT that)"
        return f"(SBAR (WHNP {pronoun}) (S {english_subject_first(self.clause)}))"

    def german(self) -> str:
        """The pronoun has the gender of the noun and the case of the gap."""
        column = Column.PLURAL if self.is_plural else self.noun.column
        case = Case.NOMINATIVE if self.is_about_subject else self.clause.verb.object_case
        return f", {RELATIVE_PRONOUNS[case][column]} {german_verb_final(self.clause)},"

    def combinations(self) -> Iterator[Combination]:
        """Those of the clause."""
        return self.clause.combinations()

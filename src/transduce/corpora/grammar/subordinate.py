"""Embedded clauses: subordinate, infinitive, purpose and relative clauses.

In German each is between commas; ``sentences`` removes a comma that follows another one or ends the sentence.
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
from transduce.corpora.grammar.phrases import Combination, FunctionWord, Gap

__all__ = ["CONJUNCTIONS", "InfinitiveClause", "PurposeClause", "RelativeClause", "SubordinateClause"]


# "when" has two translations: als for single past events, wenn for repeated or present ones.
CONJUNCTIONS = {
    "that": FunctionWord("(IN that)", "dass"),
    "whether": FunctionWord("(IN whether)", "ob"),
    "because": FunctionWord("(IN because)", "weil"),
    "although": FunctionWord("(IN although)", "obwohl"),
    "if": FunctionWord("(IN if)", "wenn"),
    "while": FunctionWord("(IN while)", "während"),
    "before": FunctionWord("(IN before)", "bevor"),
    "after": FunctionWord("(IN after)", "nachdem"),
    "when": FunctionWord("(WHADVP (WRB when))", "wenn"),
    "when, once": FunctionWord("(WHADVP (WRB when))", "als"),
}


class SubordinateClause(NamedTuple):
    """A clause after a conjunction: ``because the man sleeps``/``weil der Mann schläft``."""

    conjunction: FunctionWord
    clause: Clause

    def english(self) -> str:
        """Return the SBAR."""
        return f"(SBAR {self.conjunction.tree} (S {english_subject_first(self.clause)}))"

    def german(self) -> str:
        """Return the verb-final clause between commas."""
        return f", {self.conjunction.german} {german_verb_final(self.clause)},"

    def combinations(self) -> Iterator[Combination]:
        """Yield the combinations of the clause."""
        return self.clause.combinations()


class InfinitiveClause(NamedTuple):
    """``to open the door``/``die Tür zu öffnen``; its subject, that of the main clause, is a gap."""

    clause: Clause

    def english(self) -> str:
        """Return ``(S (VP (TO to) ...))``."""
        return english_infinitive(self.clause)

    def german(self) -> str:
        """Return the clause with zu before the verb, or between prefix and verb."""
        return f", {german_infinitive(self.clause)},"

    def combinations(self) -> Iterator[Combination]:
        """Yield the combinations of the clause."""
        return self.clause.combinations()


class PurposeClause(NamedTuple):
    """``in order to buy bread``/``um Brot zu kaufen``."""

    clause: Clause

    def english(self) -> str:
        """Return ``in order to`` as bracketed in the Penn Treebank."""
        return f"(SBAR (IN in) (NN order) {english_infinitive(self.clause)})"

    def german(self) -> str:
        """Return um and the infinitive clause."""
        return f", um {german_infinitive(self.clause)},"

    def combinations(self) -> Iterator[Combination]:
        """Yield the combinations of the clause."""
        return self.clause.combinations()


class RelativeClause(NamedTuple):
    """A relative clause; its subject or object is a gap for the modified noun."""

    noun: Noun
    is_plural: bool
    clause: Clause

    @property
    def is_subject_relative(self) -> bool:
        """Whether the gap is the subject."""
        return isinstance(self.clause.subject, Gap)

    def english(self) -> str:
        """Return the SBAR with who for persons as subject, else that."""
        is_who = self.noun.category == "person" and self.is_subject_relative
        pronoun = "(WP who)" if is_who else "(WDT that)"
        return f"(SBAR (WHNP {pronoun}) (S {english_subject_first(self.clause)}))"

    def german(self) -> str:
        """Return the clause; the pronoun has the gender of the noun and the case of the gap."""
        column = Column.PLURAL if self.is_plural else self.noun.column
        case = Case.NOMINATIVE if self.is_subject_relative else self.clause.verb.object_case
        return f", {RELATIVE_PRONOUNS[case][column]} {german_verb_final(self.clause)},"

    def combinations(self) -> Iterator[Combination]:
        """Yield the combinations of the clause."""
        return self.clause.combinations()

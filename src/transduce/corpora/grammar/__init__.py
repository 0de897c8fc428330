"""The built-in corpus: English sentences, their German translations and their trees, from a grammar of both languages.

    tables of words   nouns, verbs, modifiers
    inflection        german, english, tenses
    records           lexicon, phrases, clauses, subordinate, sentences: what is said, told in both languages
    drawing           moods, holdout, choices, phrase_sampler, clause_sampler, sentence_sampler, stream

A derivation is a small record; both sentences and the tree are read off it, so the English determines the German.
"""

from __future__ import annotations

from transduce.corpora.grammar.holdout import is_held_out
from transduce.corpora.grammar.sentences import GrammarPair
from transduce.corpora.grammar.stream import generate_pairs

__all__ = ["GrammarPair", "generate_pairs", "is_held_out"]

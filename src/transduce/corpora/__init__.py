"""Where text comes from: the built-in grammar corpus and the user's own files; and cleaning."""

from __future__ import annotations

from transduce.corpora.cleaning import CleaningReport, CleaningRules, clean
from transduce.corpora.grammar import GrammarPair, generate_pairs
from transduce.corpora.parallel_files import read_aligned_files, read_tab_separated
from transduce.corpora.splits import Split, has_split, read_clean_pairs, read_pairs
from transduce.corpora.writing import write_grammar_corpus

__all__ = [
    "CleaningReport",
    "CleaningRules",
    "GrammarPair",
    "Split",
    "clean",
    "generate_pairs",
    "has_split",
    "read_aligned_files",
    "read_clean_pairs",
    "read_pairs",
    "read_tab_separated",
    "write_grammar_corpus",
]

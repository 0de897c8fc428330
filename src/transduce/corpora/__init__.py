"""Where text comes from: the built-in grammar corpus and the user's own files."""

from __future__ import annotations

from transduce.corpora.grammar import GrammarPair, generate_pairs
from transduce.corpora.parallel_files import read_aligned_files, read_tab_separated
from transduce.corpora.splits import Split, has_split, read_pairs
from transduce.corpora.writing import write_grammar_corpus

__all__ = [
    "GrammarPair",
    "Split",
    "generate_pairs",
    "has_split",
    "read_aligned_files",
    "read_pairs",
    "read_tab_separated",
    "write_grammar_corpus",
]

"""Text sources: the built-in grammar corpus, a catalogue of public corpora, the user's own files; and cleaning."""

from __future__ import annotations

from typing import TYPE_CHECKING

from transduce.imports import imported_on_use

if TYPE_CHECKING:
    from transduce.corpora.catalogue import BUILT_IN, CATALOGUE, OWN_FILES, corpus_named, how_to_get_text, text_named
    from transduce.corpora.cleaning import CleaningReport, CleaningRules, clean
    from transduce.corpora.corpus import Corpus, Text
    from transduce.corpora.digits import DIGIT_CLASSES, DIGIT_LEVELS, DIGIT_PIXELS, DIGIT_SIDE, digit_images
    from transduce.corpora.download import Progress
    from transduce.corpora.generated import GENERATED
    from transduce.corpora.getting import get_corpus
    from transduce.corpora.grammar import generate_pairs
    from transduce.corpora.holding_out import HeldOut, hold_out
    from transduce.corpora.layout import available_directions, cache_folder, data_folders, find_text, has_training_text
    from transduce.corpora.parallel_files import read_aligned_files, read_tab_separated
    from transduce.corpora.parallel_text import ParallelText
    from transduce.corpora.plain_text import PlainText
    from transduce.corpora.responses import Ranking, read_rankings
    from transduce.corpora.source import Pair, Report, Source
    from transduce.corpora.treebank_text import TREEBANKS, WSJ, TreebankText, find_trees, read_trees
    from transduce.corpora.writing import write_grammar_corpus

__all__ = [
    "BUILT_IN", "CATALOGUE", "DIGIT_CLASSES", "DIGIT_LEVELS", "DIGIT_PIXELS", "DIGIT_SIDE", "GENERATED", "OWN_FILES",
    "TREEBANKS", "WSJ", "CleaningReport", "CleaningRules", "Corpus", "HeldOut", "Pair", "ParallelText", "PlainText",
    "Progress", "Ranking", "Report", "Source", "Text", "TreebankText", "available_directions", "cache_folder", "clean",
    "corpus_named", "data_folders", "digit_images", "find_text", "find_trees", "generate_pairs", "get_corpus",
    "has_training_text", "hold_out", "how_to_get_text", "read_aligned_files", "read_rankings", "read_tab_separated",
    "read_trees", "text_named", "write_grammar_corpus",
]  # fmt: skip

imported_on_use(__name__)

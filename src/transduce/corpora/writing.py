"""Write the grammar corpus to files: text in both languages, and the English trees."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

from transduce.config import Split
from transduce.corpora.grammar import generate_pairs
from transduce.corpora.parallel_text import GRAMMAR_DEV_PAIRS, GRAMMAR_TEST_PAIRS
from transduce.files import atomic_folder

__all__ = ["write_grammar_corpus"]


def write_grammar_corpus(folder: Path, *, n_pairs: int, seed: int) -> dict[str, int]:
    """Write ``{train,dev,test}.{en,de,trees}`` into a new ``folder``; return the number of pairs of each split.

    Raises DataError if ``folder`` exists and is not empty.
    """
    sizes: dict[Split, int] = {"train": n_pairs, "dev": GRAMMAR_DEV_PAIRS, "test": GRAMMAR_TEST_PAIRS}
    with atomic_folder(folder) as temporary:
        for split, size in sizes.items():
            with ExitStack() as stack:
                paths = [temporary / f"{split}.{kind}" for kind in ("en", "de", "trees")]
                files = [stack.enter_context(path.open("w", encoding="utf-8", newline="\n")) for path in paths]
                for pair in generate_pairs(split, n_pairs=size, seed=seed):
                    for file, line in zip(files, (pair.en, pair.de, pair.tree), strict=True):
                        file.write(line + "\n")
    return {str(split): size for split, size in sizes.items()}

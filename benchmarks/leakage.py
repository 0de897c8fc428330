"""Lines of test texts that are also in the training text of a recipe: all of its corpora against each test text.

    python benchmarks/leakage.py RECIPE --data DIR --tests NAME=test.en,test.de ...

One JSON object for each test text: how many of its lines are in the training text as the same pair, as nearly the same
pair (without case, punctuation and digits), by their source or by their target alone, and how many of those have one or
two words, as any text has.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from transduce.config import ParallelData
from transduce.corpora import ParallelText
from transduce.corpora.leakage import LeakageSearch
from transduce.files import read_lines
from transduce.recipes import read_recipe


def main() -> None:
    """Print the overlaps."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("recipe", type=Path)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--tests", nargs="+", required=True)
    arguments = parser.parse_args()
    data = ParallelData.of(read_recipe(arguments.recipe).data)
    searches = {}
    for name, _, files in (each.partition("=") for each in arguments.tests):
        src, tgt = (read_lines(Path(file)) for file in files.split(","))
        searches[name] = LeakageSearch(zip(src, tgt, strict=True))
    text, n_train = ParallelText(data, arguments.data), 0
    for corpus in data.weights:
        for pair in text.train(corpus):
            n_train += 1
            for search in searches.values():
                search.observe(pair)
    for name, search in searches.items():
        found = search.result()
        kinds = ("pairs", "near_pairs", "sources", "targets", "short")
        counts = {kind: getattr(found, kind).count for kind in kinds}
        told = {"test": name, "lines": found.n_lines, **counts, "is_severe": found.is_severe, "train_pairs": n_train}
        print(json.dumps(told), flush=True)


if __name__ == "__main__":
    main()

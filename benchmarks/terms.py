"""Terms of help pages: how many a translation keeps, its BLEU and its time, without terms, soft and hard.

    python benchmarks/terms.py --text DATA --plain MODEL --told MODEL [--n 300] [--list F.tsv] [--sentences N]

``DATA`` is a copy of the corpus libreoffice-help. The list is made as that of someone who localises these pages would
be: nouns that recur, with the translation that the references mostly have. By the word table of the
training text and of the test text (``data/word_tables.py``), a source word that is linked in at least five training
pairs and one of test is taken with its usual translation, if that has 60 % of the links, and both have four letters;
the most frequent in test come first. So a term of the list is often not in the reference of a line as it stands: the
accuracy of the references themselves is the upper bound, and is printed first.

``--told`` is a model trained with ``data.terms``, ``--plain`` one of the same recipe without. Seconds are of processor
time.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from time import process_time

from machine import machine

from transduce.data.word_tables import learn_word_table
from transduce.files import read_lines, write_lines
from transduce.inference import Translator
from transduce.metrics import sacrebleu_score
from transduce.metrics.significance import paired_bootstrap
from transduce.terms import Term, TermAccuracy, Terms
from transduce.text import normalise
from transduce.text.term_hints import is_word, linked_words
from transduce.text.word_spans import word_spans

MIN_LETTERS, MIN_LINKS, MIN_SHARE = 4, 5, 0.6

Pair = tuple[str, str]


def pairs_of(folder: Path, split: str) -> list[Pair]:
    """Return the normalised pairs of a split."""
    sides = [read_lines(folder / f"{split}.en-de.{language}.xz") for language in ("en", "de")]
    return [(normalise(src), normalise(tgt)) for src, tgt in zip(*sides, strict=True)]


def words(text: str) -> list[str]:
    """Return the words and punctuation marks of a text."""
    return [text[start:end] for start, end in word_spans(text)]


def list_of_terms(train: Sequence[Pair], test: Sequence[Pair], n: int) -> Terms:
    """Return the terms that the docstring of this file describes."""
    scores = learn_word_table(train).scores

    def links(pairs: Iterable[Pair]) -> dict[str, Counter[str]]:
        found = defaultdict[str, Counter[str]](Counter)
        for src, tgt in pairs:
            of_src, of_tgt = words(src), words(tgt)
            folded = [[each.casefold() for each in side] for side in (of_src, of_tgt)]
            for at_src, at_tgt in linked_words(scores, *folded):
                if any(not of_tgt[j][0].isupper() or j == 0 for j in at_tgt):
                    continue  # no noun, or perhaps none: the first word of a line
                found[" ".join(folded[0][i] for i in at_src)][" ".join(of_tgt[j] for j in at_tgt)] += 1
        return found

    of_train, of_test = links(train), links(test)
    chosen = list[tuple[int, Term]]()
    for source, targets in of_train.items():
        target, n_links = targets.most_common(1)[0]
        is_clear = n_links >= MIN_LINKS and n_links >= MIN_SHARE * targets.total()
        are_words = all(len(each) >= MIN_LETTERS and is_word(each) for each in f"{source} {target}".split())
        if is_clear and are_words and source in of_test:
            chosen.append((of_test[source].total(), Term(source, target)))
    chosen.sort(key=lambda each: (-each[0], each[1].source))
    return Terms(tuple(term for _, term in chosen[:n]))


def main() -> None:
    """Measure, and print a line for each way as JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--text", type=Path, required=True)
    parser.add_argument("--plain", type=Path)
    parser.add_argument("--told", type=Path)
    parser.add_argument("--n", type=int, default=300)
    parser.add_argument("--list", type=Path, help="write the list to this file")
    parser.add_argument("--sentences", type=int, help="translate only the first lines of test")
    parser.add_argument("--engine", default="torch", help="the time of hard terms is over that of this engine")
    given = parser.parse_args()
    train, test = pairs_of(given.text, "train"), pairs_of(given.text, "test")[: given.sentences]
    terms = list_of_terms(train, test, given.n)
    if given.list is not None:
        write_lines(given.list, (f"{each.source}\t{each.target}" for each in terms.terms))
    sources, references = [src for src, _ in test], [tgt for _, tgt in test]

    def accuracy(outputs: Sequence[str]) -> dict[str, float]:
        counts = TermAccuracy(terms)
        for source, output in zip(sources, outputs, strict=True):
            counts.observe(source, output)
        return {"terms": counts.n, "exact": counts.n_exact, "inflected": counts.n_inflected}

    print(json.dumps({"way": "references", "listed": len(terms.terms), **accuracy(references)}))
    print(json.dumps(machine()))
    baseline, plain_s = list[str](), 0.0
    for name, folder in (("plain", given.plain), ("told", given.told)):
        if folder is None:
            continue
        model = Translator.load(folder, engine=given.engine)
        ways = {"none": model, "soft": model.with_terms(terms), "hard": model.with_terms(terms, are_required=True)}
        for way, translator in ways.items():
            translator.translate(sources[:2])
            start = process_time()
            outputs = translator.translate(sources)
            seconds = process_time() - start
            if way == "none":
                plain_s = seconds
            baseline = baseline or outputs
            values = {
                "way": f"{name}, {way}", **accuracy(outputs),
                "bleu": round(sacrebleu_score(outputs, references, language="de").score, 2),
                "seconds": round(seconds, 1), "times_none": round(seconds / plain_s, 2),
            }  # fmt: skip
            if outputs is not baseline:
                compared = paired_bootstrap(baseline, outputs, references, seed=1, language="de")
                values |= {"bleu_over_first": round(compared.difference, 2), "p": round(compared.p_value, 3)}
            print(json.dumps(values), flush=True)


if __name__ == "__main__":
    main()

"""Effect of sentence splitting: paragraphs translated with and without it, compared with single sentences.

    python benchmarks/paragraphs.py MODEL --src test.en --ref test.de [--paragraphs 1000] [--beam 4] [--caps] [--json]

Paragraphs are 2 to 8 consecutive lines that end a sentence, sampled with a seed and joined by spaces. They are
translated in three ways: each line separately, then joined ("sentences"); the paragraph, split by the translator
("split"); the paragraph as one sentence ("no split"). Reported are paragraph BLEU and output words per input word.
With --caps, instead: upper-case lines, lower-cased before translation or not, against upper-case references.
"""

from __future__ import annotations

import argparse
import json
import random
from collections.abc import Sequence
from pathlib import Path

from transduce import SearchConfig, Translator
from transduce.corpora import read_aligned_files
from transduce.metrics import sacrebleu_score

ENDS_SENTENCE = (".", "!", "?", '."', ".”", ".“", ".)")


def paragraphs_of(pairs: Sequence[tuple[str, str]], n: int, seed: int) -> list[list[tuple[str, str]]]:
    """Return ``n`` paragraphs of 2 to 8 lines that end a sentence; a short text is repeated."""
    complete = [pair for pair in pairs if all(side.strip().endswith(ENDS_SENTENCE) for side in pair)]
    rng, paragraphs, start = random.Random(seed), [], 0
    while len(paragraphs) < n:
        size = rng.randint(2, 8)
        paragraphs.append([complete[(start + i) % len(complete)] for i in range(size)])
        start += size
    return paragraphs


def words(texts: Sequence[str]) -> int:
    """Count whitespace-separated words."""
    return sum(len(text.split()) for text in texts)


def in_capitals(translator: Translator, pairs: Sequence[tuple[str, str]], search: SearchConfig) -> dict[str, float]:
    """Return BLEU of upper-case sentences, unchanged and lower-cased first, and of the original sentences."""
    sources, references = [src.upper() for src, _ in pairs], [tgt.upper() for _, tgt in pairs]
    outputs = {
        "unchanged": translator.translate(sources, search=search, split=False),
        "lower-cased": translator.translate(sources, search=search),
        "original case": [text.upper() for text in translator.translate([src for src, _ in pairs], search=search)],
    }
    return {name: sacrebleu_score(texts, references).score for name, texts in outputs.items()}


def main() -> None:
    """Print BLEU and word ratios."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path)
    parser.add_argument("--src", type=Path, required=True)
    parser.add_argument("--ref", type=Path, required=True)
    parser.add_argument("--paragraphs", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--beam", type=int, default=4)
    parser.add_argument("--caps", action="store_true")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    translator = Translator.load(arguments.model)
    search = translator.search.model_copy(update={"beam_size": arguments.beam})
    pairs = list(read_aligned_files(arguments.src, arguments.ref))
    if arguments.caps:
        scores = in_capitals(translator, pairs, search)
        print(
            json.dumps(scores) if arguments.json else "\n".join(f"{n:<20}{score:6.2f}" for n, score in scores.items())
        )
        return
    chosen = paragraphs_of(pairs, arguments.paragraphs, arguments.seed)
    sources = [" ".join(src for src, _ in each) for each in chosen]
    references = [" ".join(tgt for _, tgt in each) for each in chosen]
    by_line = iter(translator.translate([src for each in chosen for src, _ in each], search=search, split=False))
    outputs = {
        "sentences": [" ".join(next(by_line) for _ in each) for each in chosen],
        "split": translator.translate(sources, search=search),
        "no split": translator.translate(sources, search=search, split=False),
    }
    rows = {
        name: {
            "bleu": sacrebleu_score(texts, references).score,
            "words_out_per_word_in": words(texts) / words(sources),
        }
        for name, texts in outputs.items()
    }
    if arguments.json:
        print(json.dumps({"paragraphs": len(chosen), "lines": sum(map(len, chosen)), **rows}))
        return
    print(f"{len(chosen):,} paragraphs of {sum(map(len, chosen)):,} lines, {words(sources):,} words")
    for name, row in rows.items():
        print(f"{name:<12} BLEU {row['bleu']:6.2f}   {row['words_out_per_word_in']:.3f} output words per input word")


if __name__ == "__main__":
    main()

"""What splitting costs: paragraphs translated whole against their sentences one by one.

    python benchmarks/paragraphs.py MODEL --src test.en --ref test.de [--paragraphs 1000] [--beam 4] [--caps] [--json]

Paragraphs are of 2 to 8 lines of the text that end a sentence, drawn in order from a seed and joined by a space. Three
ways to translate them, by one model: each line by itself ("sentences", then joined); the paragraph, split by the
translator ("split"); the paragraph as one sentence ("no split"). BLEU is of paragraphs; words out for each word in.
With --caps, instead: the lines in capitals, read in small letters or as they are, against the references in capitals.
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
    """``n`` runs of 2 to 8 lines that end a sentence; the text is gone through again where it is too short."""
    whole = [pair for pair in pairs if all(side.strip().endswith(ENDS_SENTENCE) for side in pair)]
    draw, found, place = random.Random(seed), [], 0
    while len(found) < n:
        size = draw.randint(2, 8)
        found.append([whole[(place + each) % len(whole)] for each in range(size)])
        place += size
    return found


def words(texts: Sequence[str]) -> int:
    """How many, between spaces."""
    return sum(len(text.split()) for text in texts)


def in_capitals(translator: Translator, pairs: Sequence[tuple[str, str]], search: SearchConfig) -> dict[str, float]:
    """BLEU of sentences in capitals, as they are and by way of small letters, and of the sentences in small letters."""
    sources, references = [src.upper() for src, _ in pairs], [tgt.upper() for _, tgt in pairs]
    ways = {
        "as they are": translator.translate(sources, search=search, split=False),
        "by small letters": translator.translate(sources, search=search),
        "not in capitals": [text.upper() for text in translator.translate([src for src, _ in pairs], search=search)],
    }
    return {name: sacrebleu_score(texts, references).score for name, texts in ways.items()}


def main() -> None:
    """Print BLEU and words for each way."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path)
    parser.add_argument("--src", type=Path, required=True)
    parser.add_argument("--ref", type=Path, required=True)
    parser.add_argument("--paragraphs", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--beam", type=int, default=4)
    parser.add_argument("--caps", action="store_true")
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args()
    translator = Translator.load(asked.model)
    search = translator.search.model_copy(update={"beam_size": asked.beam})
    pairs = list(read_aligned_files(asked.src, asked.ref))
    if asked.caps:
        scores = in_capitals(translator, pairs, search)
        print(json.dumps(scores) if asked.json else "\n".join(f"{n:<20}{score:6.2f}" for n, score in scores.items()))
        return
    chosen = paragraphs_of(pairs, asked.paragraphs, asked.seed)
    sources = [" ".join(src for src, _ in each) for each in chosen]
    references = [" ".join(tgt for _, tgt in each) for each in chosen]
    by_line = iter(translator.translate([src for each in chosen for src, _ in each], search=search, split=False))
    ways = {
        "sentences": [" ".join(next(by_line) for _ in each) for each in chosen],
        "split": translator.translate(sources, search=search),
        "no split": translator.translate(sources, search=search, split=False),
    }
    rows = {
        name: {
            "bleu": sacrebleu_score(texts, references).score,
            "words_out_per_word_in": words(texts) / words(sources),
        }
        for name, texts in ways.items()
    }
    if asked.json:
        print(json.dumps({"paragraphs": len(chosen), "lines": sum(map(len, chosen)), **rows}))
        return
    print(f"{len(chosen):,} paragraphs of {sum(map(len, chosen)):,} lines, {words(sources):,} words")
    for name, row in rows.items():
        print(f"{name:<12} BLEU {row['bleu']:6.2f}   {row['words_out_per_word_in']:.3f} words for each word")


if __name__ == "__main__":
    main()

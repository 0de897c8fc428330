"""How many numbers, placeholders and tags of real lines a translator keeps, and its BLEU.

    python tests/cases/kept.py MODEL SOURCE TARGET [--lines 1000]

SOURCE and TARGET are aligned files (plain or .xz). Taken are the first lines that have a digit, a URL, a placeholder or
a tag. What counts as one is defined here, not by the product. Prints one JSON object.
"""

from __future__ import annotations

import argparse
import json
import lzma
import re
from collections import Counter
from pathlib import Path

from transduce import Translator
from transduce.metrics import score_translations

DIGITS = re.compile(r"\d+(?:[.,\u00a0\u202f' ]\d{3}(?!\d))*(?:[.,]\d+)?|\d+")
PLACEHOLDERS = re.compile(
    r"https?://[^\s<>\"]*[\w/]|[\w.+-]+@[\w-]+\.[\w.]*\w|%\(\w+\)[sd]|%\d*\$?[sdfu]\b|\{\w*\}|\$\{?\w+\}?|\[\[\w+\]\]|&\w+;"
)
TAGS = re.compile(r"</?[A-Za-z][^<>]*>")
LOOP = re.compile(r"(\b\w+\b)(?:\W+\1\b){3,}")


def lines_of(path: Path) -> list[str]:
    """The lines of a text file."""
    data = lzma.decompress(path.read_bytes()) if path.suffix == ".xz" else path.read_bytes()
    return data.decode("utf-8").split("\n")[:-1]


def numbers(text: str) -> Counter[str]:
    """The numbers of a text, by their digits alone: 1,000.5 and 1.000,5 are the same."""
    return Counter(re.sub(r"\D", "", match) for match in DIGITS.findall(text))


def main() -> None:
    """Translate and count."""
    parser = argparse.ArgumentParser(description="Count what a translator keeps.")
    parser.add_argument("model", type=Path)
    parser.add_argument("source", type=Path)
    parser.add_argument("target", type=Path)
    parser.add_argument("--lines", type=int, default=1000)
    parser.add_argument("--lost", type=Path, help="write the lines with a loss to this file")
    arguments = parser.parse_args()
    pairs = [
        pair
        for pair in zip(lines_of(arguments.source), lines_of(arguments.target), strict=True)
        if any(pattern.search(pair[0]) for pattern in (DIGITS, PLACEHOLDERS, TAGS))
    ][: arguments.lines]
    sources, references = [source for source, _ in pairs], [target for _, target in pairs]
    translator = Translator.load(arguments.model)
    found = translator.translate(sources)
    kept, all_of, lost = Counter[str](), Counter[str](), []
    for source, target in zip(sources, found, strict=True):
        has_lost = False
        for kind, count in (
            ("numbers", numbers),
            ("placeholders", lambda text: Counter(PLACEHOLDERS.findall(text))),
            ("tags", lambda text: Counter(TAGS.findall(text))),
        ):
            wanted = count(source)
            n_kept = (wanted & count(target)).total()
            has_lost |= n_kept < wanted.total()
            kept[kind] += n_kept
            all_of[kind] += wanted.total()
        if has_lost or (LOOP.search(target) and not LOOP.search(source)):
            lost.append(f"{source}\t{target}\n")
    if arguments.lost is not None:
        arguments.lost.write_text("".join(lost), encoding="utf-8")
    has_word = re.compile(r"[^\W\d_]{2}")
    scores = score_translations(found, references, language=translator.tgt_language)
    print(
        json.dumps(
            {
                "lines": len(pairs),
                "kept": {kind: f"{kept[kind]} of {all_of[kind]}" for kind in all_of},
                "percent": {kind: round(100 * kept[kind] / all_of[kind], 2) for kind in all_of if all_of[kind]},
                "empty": sum(bool(has_word.search(s)) and not t.strip() for s, t in zip(sources, found, strict=True)),
                "loops": sum(bool(LOOP.search(t)) and not LOOP.search(s) for s, t in zip(sources, found, strict=True)),
                "replacement_characters": sum("\ufffd" in target for target in found),
                "bleu": round(scores.as_json()["sacrebleu"]["score"], 2),
            }
        )
    )


if __name__ == "__main__":
    main()

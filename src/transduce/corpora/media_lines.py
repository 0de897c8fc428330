"""Lines of text for generated images: pieces of the built-in corpus's sentences, and invented text.

A line belongs to one split by its hash, so no line of dev or test is a line of train, whatever the seed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from hashlib import blake2b
from itertools import cycle
from random import Random

from transduce.config import Split
from transduce.corpora.grammar import generate_pairs

__all__ = ["MAX_LINE", "invented_line", "media_lines", "split_of"]

MAX_LINE = 40  # characters
SHORT, MAX_SHORT = 0.7, 12  # share of the training lines that are cut to some characters, and to how many at most
INVENTED = 0.5  # share of invented lines
CONSONANTS, VOWELS = "bcdfghjklmnpqrstvwxyzß", "aeiouäöü"
MARKS = (".", ",", ";", ":", "!", "?", "")


def media_lines(split: Split, *, n: int, seed: int, languages: Sequence[str]) -> Iterator[str]:
    """Yield ``n`` lines of a split, a function of the arguments alone; ``languages`` are some of "en" and "de".

    Most of the training lines are cut to a few characters, so that a model can learn early where to look.
    """
    random = Random(f"lines {split} {seed}")
    sentences = _sentences(split, seed, languages)
    n_written = 0
    while n_written < n:
        line = invented_line(random) if random.random() < INVENTED else _piece(next(sentences), random)
        if split == "train" and random.random() < SHORT:
            start = random.randrange(len(line))
            line = line[start : start + random.randint(1, MAX_SHORT)].strip()
            if not line:
                continue
        if split_of(line) == split:
            yield line
            n_written += 1


def split_of(line: str) -> Split:
    """Return the split that a line belongs to: train, or, one in ten each, dev or test."""
    splits: dict[int, Split] = {0: "dev", 1: "test"}
    return splits.get(blake2b(line.encode(), digest_size=8).digest()[0] % 10, "train")


def invented_line(random: Random) -> str:
    """Return words, numbers, dates and abbreviations that mean nothing, so that letters have to be read one by one.

    >>> invented_line(Random(1)) == invented_line(Random(1)) != invented_line(Random(2))
    True
    """
    parts = list[str]()
    while len(parts) < 2 or (random.random() < 0.75 and len(" ".join(parts)) < MAX_LINE - 12):
        parts.append(_invented_part(random))
    return " ".join(parts)[:MAX_LINE].strip()


def _invented_part(random: Random) -> str:
    match random.randrange(6):
        case 0:
            return f"{random.randrange(1, 10 ** random.randint(1, 6)):,}"
        case 1:
            return f"{random.randint(1, 31)}.{random.randint(1, 12)}.{random.randint(1800, 2099)}"
        case 2:
            return "".join(random.choices("ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789", k=random.randint(2, 6)))
        case 3:
            return random.choice(("$", "€", "£", "No. ", "#")) + f"{random.random() * 1000:.2f}"
        case _:
            word = "".join(
                random.choice(VOWELS if place % 2 else CONSONANTS)
                + (random.choice(CONSONANTS) if place % 5 == 3 else "")
                for place in range(random.randint(2, 9))
            )
            word = random.choice((word, word, word.capitalize(), word.upper().replace("ß", "SS")))
            word += random.choice(MARKS)
            return random.choice((word, word, word, f"({word})", f'"{word}"', f"{word}-{word[:3]}"))


def _sentences(split: Split, seed: int, languages: Sequence[str]) -> Iterator[str]:
    """Yield sentences endlessly, a language after the other."""
    while True:
        names = cycle(languages)
        for pair in generate_pairs(split, n_pairs=20_000, seed=seed):
            yield str(getattr(pair, next(names)))
        seed += 1


def _piece(sentence: str, random: Random) -> str:
    """Return a piece of a sentence, of whole words, that is at most a line long."""
    words = sentence.split()
    start = random.randrange(len(words)) if len(sentence) > MAX_LINE else 0
    piece = words[start][:MAX_LINE]
    for word in words[start + 1 :]:
        if len(piece) + 1 + len(word) > MAX_LINE:
            break
        piece += f" {word}"
    return piece

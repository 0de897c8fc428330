"""Bits per byte of a text under compressors and n-gram models that have seen a training text.

    python benchmarks/compressors.py TRAIN TEST [--lmplz LMPLZ] [--query QUERY] [--orders 3 4 5 6] [--json]

A compressor's figure is the growth of the compressed training text when the test text is appended, in bits per byte of
the test text: with a window as large as both, it has learned the training text. gzip and bz2 have small windows by
design. N-gram models are over characters, with modified Kneser-Ney smoothing, by kenlm's ``lmplz`` and ``query`` (built
from the source distribution of the package kenlm; left out if they are not given). TRAIN and TEST are files or folders
of text, plain, .gz or .xz; lines are normalised, as those of a model. Compare with ``transduce perplexity MODEL TEST``.
"""

from __future__ import annotations

import argparse
import bz2
import gzip
import json
import lzma
import math
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path

from transduce.files import read_lines
from transduce.text import normalise

SPACE = "▁"  # for the space between words, as a character of its own


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("train", type=Path)
    parser.add_argument("test", type=Path)
    parser.add_argument("--lmplz", type=Path, help="kenlm's program to train n-gram models")
    parser.add_argument("--query", type=Path, help="kenlm's program to apply them")
    parser.add_argument("--orders", type=int, nargs="+", default=[3, 4, 5, 6])
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    arguments = parser.parse_args()
    train, test = text_of(arguments.train), text_of(arguments.test)
    bits = {name: appended_bits(compress, train, test) for name, compress in compressors().items()}
    if arguments.lmplz is not None and arguments.query is not None:
        for order in arguments.orders:
            bits[f"{order}-gram, modified Kneser-Ney"] = n_gram_bits(
                train, test, order, lmplz=arguments.lmplz, query=arguments.query
            )
    if arguments.json:
        print(json.dumps({"train_bytes": len(train), "test_bytes": len(test), "bits_per_byte": bits}))
        return
    print(f"{len(train):,} bytes of training text, {len(test):,} of test text; bits per byte of the test text")
    for name, value in sorted(bits.items(), key=lambda item: -item[1]):
        print(f"  {name:<32}{value:>7.3f}")


def text_of(path: Path) -> bytes:
    """Return the text of a file, or of all files of a folder in the order of their names."""
    files = sorted(each for each in path.rglob("*") if each.is_file()) if path.is_dir() else [path]
    lines = (normalise(line) for file in files for line in read_lines(file))
    return "".join(f"{line}\n" for line in lines if line).encode()


def compressors() -> dict[str, Callable[[bytes], bytes]]:
    """Return the compressors at their best levels; zstd if the package zstandard is installed."""
    found: dict[str, Callable[[bytes], bytes]] = {
        "gzip -9": lambda text: gzip.compress(text, 9),
        "bz2 -9": lambda text: bz2.compress(text, 9),
        "xz -9e": lambda text: lzma.compress(text, preset=9 | lzma.PRESET_EXTREME),
    }
    try:
        import zstandard
    except ImportError:
        return found
    parameters = zstandard.ZstdCompressionParameters.from_level(19, window_log=27)
    found["zstd -19, long window"] = zstandard.ZstdCompressor(compression_params=parameters).compress
    return found


def appended_bits(compress: Callable[[bytes], bytes], train: bytes, test: bytes) -> float:
    """Return the bits per byte that ``test`` adds after ``train``."""
    return 8 * (len(compress(train + test)) - len(compress(train))) / len(test)


def n_gram_bits(train: bytes, test: bytes, order: int, *, lmplz: Path, query: Path) -> float:
    """Return the bits per byte of the test text under an n-gram model of characters; a line is a sentence."""
    with tempfile.TemporaryDirectory() as folder:
        model = Path(folder) / "model.arpa"
        command = [str(lmplz), "-o", str(order), "-S", "2G", "-T", folder, "--arpa", str(model), "--discount_fallback"]
        subprocess.run(command, input=as_characters(train), stderr=subprocess.DEVNULL, check=True)
        scored = subprocess.run(
            [str(query), "-v", "sentence", str(model)], input=as_characters(test), capture_output=True, check=True
        )
    lines = [line for line in scored.stdout.decode().splitlines() if line.startswith("Total:")]
    log10 = math.fsum(float(line.split()[1]) for line in lines)
    return -log10 * math.log2(10) / len(test)


def as_characters(text: bytes) -> bytes:
    """Return a text with each character as a word, for programs that read words."""
    lines = text.decode().removesuffix("\n").split("\n")
    return "".join(" ".join(SPACE if each == " " else each for each in line) + "\n" for line in lines).encode()


if __name__ == "__main__":
    main()

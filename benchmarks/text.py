"""Speed of text processing: learning vocabularies, encoding, BPE-dropout, and a whole preparation.

    python benchmarks/text.py [--json] [--pairs 100000] [--rounds 5] [--data DIR] [--tasks encoding ...]

The text is the built-in grammar corpus, both languages concatenated; nothing is downloaded. With --data it is real
text: the aligned files NAME.en and NAME.de in DIR (plain, .gz or .xz). All systems run in this process, in turn, round
by round, on the same lines; every second round runs in reverse order. The figures are medians over the rounds, with
their range.

Rates are per core: units per second of processor time, with one thread. Every system encodes with a new tokenizer in
each round, so no round profits from what the one before has cached.

* bpe_training: lines per second of learning a vocabulary. Peers: sentencepiece (BPE over characters, byte fallback) and
  the tokenizers library called directly (byte-level, as ours). All vocabularies have the same size.
* encoding: lines per second, each system with its own learned vocabulary; ours to lists of ids, as the others, and to
  bytes, as ``prepare`` needs them.
* bpe_dropout: encodings per second, 8 of each line, with p = 0.1. Only ours are reproducible from a seed.
* wordpiece_training: lines per second. Ours merges the pair of maximum likelihood, tokenizers the most frequent one.
* prepare: pairs per second from a file of pairs to tokenizer and token store. There is no peer.
"""

from __future__ import annotations

import os

os.environ["RAYON_NUM_THREADS"] = "1"  # of the tokenizers library; read when it is first used

import argparse
import io
import json
import re
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import tokenizers
from machine import machine
from needed import need
from rates import ratio, summary, table
from tokenizers import models, normalizers, pre_tokenizers, trainers

from transduce.config import DataConfig
from transduce.corpora import generate_pairs, read_aligned_files
from transduce.tasks import prepare
from transduce.text import BpeDropout, Tokenizer, normalise, train_bpe, train_wordpiece

if TYPE_CHECKING:
    import sentencepiece

SEED = 1
P_DROP = 0.1  # of BPE-dropout
N_ENCODINGS = 8  # per line with BPE-dropout, which gets every 8th line

OURS = "transduce"
TO_BYTES = f"{OURS} to bytes"


@dataclass(frozen=True, slots=True)
class Task:
    """A measured task, with the systems that perform it."""

    name: str
    unit: str
    n_units: int
    systems: dict[str, Callable[[], object]]


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="Measure text processing and compare it with other libraries.")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--pairs", type=int, default=100_000, help="number of pairs of the grammar corpus")
    parser.add_argument("--vocab-size", type=int, default=4000, help="size of every vocabulary")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--data", type=Path, help="folder of real text, in place of the grammar corpus")
    parser.add_argument("--tasks", nargs="*", help="measure only these tasks")
    arguments = parser.parse_args()
    need(parser, "sentencepiece")
    pairs = grammar(arguments.pairs) if arguments.data is None else real_text(arguments.data)
    with tempfile.TemporaryDirectory() as folder:
        tasks = make_tasks(Path(folder), pairs, vocab_size=arguments.vocab_size)
        tasks = [task for task in tasks if not arguments.tasks or task.name in arguments.tasks]
        rates = measure(tasks, n_rounds=arguments.rounds)
    if arguments.json:
        print(json.dumps(as_json(tasks, rates)))
    else:
        print("\n\n".join(table(task.name, rates[task.name], task.unit) for task in tasks))


def grammar(n_pairs: int) -> list[tuple[str, str]]:
    """Return pairs of the built-in corpus."""
    return [(pair.en, pair.de) for pair in generate_pairs("train", n_pairs=n_pairs, seed=SEED)]


def real_text(folder: Path) -> list[tuple[str, str]]:
    """Return the aligned English and German lines of the files in ``folder``."""
    english = re.compile(r"\.en(?=(\.gz|\.xz)?$)")
    files = [path for path in sorted(folder.iterdir()) if english.search(path.name)]
    others = [path.with_name(english.sub(".de", path.name)) for path in files]
    texts = [(src, tgt) for src, tgt in zip(files, others, strict=True) if tgt.exists()]
    return [pair for src, tgt in texts for pair in read_aligned_files(src, tgt)]


def make_tasks(folder: Path, pairs: Sequence[tuple[str, str]], *, vocab_size: int) -> list[Task]:
    """Return all tasks; files are written to ``folder``."""
    file = folder / "pairs.tsv"
    file.write_text("".join(f"{src}\t{tgt}\n" for src, tgt in pairs), encoding="utf-8")
    lines = [normalise(text) for pair in pairs for text in pair]
    dropout_lines = lines[::N_ENCODINGS]
    ours, piece, library, dropping = (
        train_bpe(lines, vocab_size=vocab_size),
        sentencepiece_bpe(lines, vocab_size),
        library_bpe(lines, vocab_size),
        library_bpe(lines, vocab_size),
    )
    dropping.model.dropout = P_DROP
    sizes = {OURS: ours.size, "sentencepiece": piece.get_piece_size(), "tokenizers": library.get_vocab_size()}
    print(f"{len(lines):,} lines; vocabulary sizes: {sizes}", file=sys.stderr)

    def encode_by_us() -> None:
        Tokenizer(ours.description).encode_batch(lines)

    def encode_to_bytes() -> None:
        Tokenizer(ours.description).encode_packed(lines)

    def new_piece() -> sentencepiece.SentencePieceProcessor:
        return type(piece)(model_proto=piece.serialized_model_proto())

    def new(tokenizer: tokenizers.Tokenizer) -> tokenizers.Tokenizer:
        return tokenizers.Tokenizer.from_str(tokenizer.to_str())

    def encode_by_sentencepiece(
        piece: sentencepiece.SentencePieceProcessor, lines: Sequence[str], **options: Any
    ) -> None:
        piece.encode(lines, out_type=int, num_threads=1, **options)

    def encode_by_library(tokenizer: tokenizers.Tokenizer, lines: Sequence[str]) -> None:
        [encoding.ids for encoding in tokenizer.encode_batch_fast(lines)]

    def drop_by_sentencepiece() -> None:
        fresh = new_piece()
        for _ in range(N_ENCODINGS):
            encode_by_sentencepiece(fresh, dropout_lines, enable_sampling=True, alpha=P_DROP, nbest_size=-1)

    def drop_by_library() -> None:
        fresh = new(dropping)
        for _ in range(N_ENCODINGS):
            encode_by_library(fresh, dropout_lines)

    def prepare_file() -> None:
        config = DataConfig(corpus="files", train_tsv=str(file), vocab_size=vocab_size)
        with tempfile.TemporaryDirectory() as out:
            prepare(config, Path(out) / "prepared")

    return [
        Task(
            "bpe_training",
            "lines_per_s",
            len(lines),
            {
                OURS: partial(train_bpe, lines, vocab_size=vocab_size),
                "sentencepiece": partial(sentencepiece_bpe, lines, vocab_size),
                "tokenizers": partial(library_bpe, lines, vocab_size),
            },
        ),
        Task(
            "encoding",
            "lines_per_s",
            len(lines),
            {
                OURS: encode_by_us,
                TO_BYTES: encode_to_bytes,
                "sentencepiece": lambda: encode_by_sentencepiece(new_piece(), lines),
                "tokenizers": lambda: encode_by_library(new(library), lines),
            },
        ),
        Task(
            "bpe_dropout",
            "encodings_per_s",
            N_ENCODINGS * len(dropout_lines),
            {
                OURS: lambda: BpeDropout(ours, p_drop=P_DROP, seed=SEED).sample(dropout_lines, N_ENCODINGS),
                "sentencepiece": drop_by_sentencepiece,
                "tokenizers": drop_by_library,
            },
        ),
        Task(
            "wordpiece_training",
            "lines_per_s",
            len(lines),
            {
                OURS: partial(train_wordpiece, lines, vocab_size=vocab_size),
                "tokenizers": partial(library_wordpiece, lines, vocab_size),
            },
        ),
        Task("prepare", "pairs_per_s", len(pairs), {OURS: prepare_file}),
    ]


def sentencepiece_bpe(lines: Sequence[str], vocab_size: int) -> sentencepiece.SentencePieceProcessor:
    """Train sentencepiece with the same vocabulary size and byte fallback."""
    import sentencepiece

    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(lines),
        model_writer=model,
        model_type="bpe",
        vocab_size=vocab_size,
        byte_fallback=True,
        hard_vocab_limit=False,
        num_threads=1,
        minloglevel=2,
    )
    return sentencepiece.SentencePieceProcessor(model_proto=model.getvalue())


def library_bpe(lines: Sequence[str], vocab_size: int) -> tokenizers.Tokenizer:
    """Train byte-level BPE with the tokenizers library alone."""
    return _learned(models.BPE(), trainers.BpeTrainer, lines, vocab_size)


def library_wordpiece(lines: Sequence[str], vocab_size: int) -> tokenizers.Tokenizer:
    """Train byte-level WordPiece with the tokenizers library alone."""
    return _learned(models.WordPiece(), trainers.WordPieceTrainer, lines, vocab_size)


def _learned(
    model: models.Model, trainer: type[trainers.Trainer], lines: Sequence[str], vocab_size: int
) -> tokenizers.Tokenizer:
    tokenizer = tokenizers.Tokenizer(model)
    tokenizer.normalizer = normalizers.Prepend(" ")
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    settings = trainer(vocab_size=vocab_size, min_frequency=2, initial_alphabet=alphabet, show_progress=False)
    tokenizer.train_from_iterator(lines, settings)
    return tokenizer


def measure(tasks: Sequence[Task], *, n_rounds: int) -> dict[str, dict[str, list[float]]]:
    """Return units per second, by task and system, one figure per round."""
    rates: dict[str, dict[str, list[float]]] = {task.name: {name: [] for name in task.systems} for task in tasks}
    for number in range(n_rounds):
        for task in tasks:
            for name, run in list(task.systems.items())[:: -1 if number % 2 else 1]:
                start = time.process_time()
                run()
                rates[task.name][name].append(task.n_units / (time.process_time() - start))
        print(f"round {number + 1} of {n_rounds}", file=sys.stderr)
    return rates


def as_json(tasks: Sequence[Task], rates: dict[str, dict[str, list[float]]]) -> dict[str, Any]:
    """Return medians, ranges, and the ratio of our faster way to the best peer, by task."""
    ways = {OURS, TO_BYTES}
    out: dict[str, Any] = {}
    for task in tasks:
        of_task = rates[task.name]
        out[task.name] = {name: summary(values, task.unit) for name, values in of_task.items()}
        out[task.name]["ratio_to_best_peer"] = ratio(of_task, ways, set(of_task) - ways)
    return out | {"machine": machine()}


if __name__ == "__main__":
    main()

"""Huge lines, plain and compressed: bounded memory and time, whatever their content."""

from __future__ import annotations

import lzma
import os
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from commands import CommandLine
from said import naming, says
from transduce.corpora import CleaningReport, read_aligned_files
from transduce.corpora.cleaning import CleaningRules, clean
from transduce.corpora.parallel_files import read_uncleaned_columns
from transduce.errors import DataError
from transduce.files import MAX_LINE_BYTES, TruncatedLine, read_lines
from transduce.inference import Translator
from transduce.inference.translation.parts import ScoredText, best_combinations
from transduce.text import train_bpe
from transduce.view import attention_of_translation

pytestmark = pytest.mark.reliability

TOO_LONG = MAX_LINE_BYTES + 1
MEGABYTE = 1 << 20
MOST_MB = 1000  # above what a process takes that has read a model and one sentence
KINDS = {
    "emoji": "👍" * (MEGABYTE // 4),
    "marks": "e" + "\u0301\u0316" * (MEGABYTE // 4),
    "spaces": " " * MEGABYTE + "dog",
    "digits": "1" * MEGABYTE,
    "brackets": "{" * MEGABYTE,
    "comments": "<!--" * (MEGABYTE // 4),
    "url": "https://x.org/" + "a/" * (MEGABYTE // 2),
}


def file_with_a_long_line(path: Path, *, n_bytes: int = TOO_LONG) -> Path:
    path.write_bytes(b"a dog\n" + b"x" * n_bytes + b"\r\nthe end\n")
    return path


def test_a_line_that_is_too_long_is_refused_or_cut(tmp_path: Path) -> None:
    path = file_with_a_long_line(tmp_path / "text")
    with pytest.raises(DataError, match=naming("text:2", f"{MAX_LINE_BYTES:,}")):
        list(read_lines(path))
    first, cut, last = read_lines(path, escape_invalid=True)
    assert (first, last) == ("a dog", "the end")
    assert isinstance(cut, TruncatedLine)
    assert len(cut) < 10_000
    path = file_with_a_long_line(tmp_path / "just fits", n_bytes=MAX_LINE_BYTES - 1)
    assert [len(line) for line in read_lines(path)] == [5, MAX_LINE_BYTES - 1, 7]


def test_training_leaves_it_out_and_says_where(tmp_path: Path) -> None:
    src = file_with_a_long_line(tmp_path / "src")
    tgt, columns = tmp_path / "tgt", tmp_path / "columns"
    tgt.write_text("ein Hund\nkurz\ndas Ende\n")
    columns.write_bytes(b"a dog\tein Hund\n" + b"x\t" * (TOO_LONG // 2 + 1) + b"\nthe end\tdas Ende\n")
    for pairs in (read_aligned_files(src, tgt, escape_invalid=True), read_uncleaned_columns(columns)):
        report = CleaningReport()
        assert list(clean(pairs, CleaningRules(), report)) == [("a dog", "ein Hund"), ("the end", "das Ende")]
        assert "dropped 1: too long to be read (line 2)" in report.lines()


def test_every_line_has_its_translation(transduce: CommandLine, micro_model: Path) -> None:
    stdin = b"a dog\n" + "é".encode() * TOO_LONG + b"\nthe end\n"
    outcome = transduce("translate", micro_model, "--device", "cpu", "--beam", 1, stdin=stdin)
    assert outcome.code == 0
    assert outcome.out.count("\n") == 3
    assert says(outcome.err, re.compile("^warning: "), 2, f"{MAX_LINE_BYTES:,}")
    assert "UTF-8" not in outcome.err


def test_evaluation_refuses_it_by_name(transduce: CommandLine, micro_model: Path, tmp_path: Path) -> None:
    path = file_with_a_long_line(tmp_path / "text")
    for verb in (["score", "--ref", path, path], ["evaluate", micro_model, "--src", path, "--ref", path]):
        outcome = transduce(*verb)
        assert outcome.code == 1
        assert says(outcome.err, re.compile("^error: "), f"{path}:2", f"{MAX_LINE_BYTES:,}")


def test_the_beginning_is_enough_to_know_that_a_text_is_too_long() -> None:
    tokenizer = train_bpe(["the dog sleeps " * 3] * 2, vocab_size=300)
    for text in ("the dog sleeps " * 50, "👍" * 500, "sleeps" * 300):
        whole, beginning = tokenizer.encode(text), tokenizer.encode(text, max_tokens=20)
        assert len(beginning) > 20
        assert beginning[:20] == whole[:20]
    assert tokenizer.encode("the dog", max_tokens=20) == tokenizer.encode("the dog")


def test_the_n_best_of_many_segments() -> None:
    n_segments = 5000
    started = time.monotonic()
    found = best_combinations([[ScoredText("a", -1.0), ScoredText("b", -1.5)]] * n_segments, 10)
    assert time.monotonic() - started < 20
    assert len(found) == 10
    scores = [sum(best.score for best in each) for each in found[:3]]
    assert scores == [-n_segments, -n_segments - 0.5, -n_segments - 0.5]
    assert {best.text for best in found[0]} == {"a"}


@pytest.mark.merge
@pytest.mark.parametrize("kind", KINDS)
def test_a_megabyte_of_anything_takes_seconds(micro_model: Path, kind: str) -> None:
    translator = Translator.load(micro_model)
    search = translator.search.model_copy(update={"beam_size": 1, "n_best": 1, "max_extra_tokens": 0})
    started = time.monotonic()
    [translation] = translator.translate_lines([KINDS[kind]], search=search)
    assert time.monotonic() - started < 20  # about 2 on an idle machine; a quadratic algorithm takes hours
    assert translation.is_truncated == (kind == "marks")
    assert kind in ("marks", "spaces") or translation.text == KINDS[kind]  # it has no letters


def test_attention_of_many_words_is_refused(micro_model: Path) -> None:
    translator = Translator.load(micro_model)
    for source, translation in (("dog " * 20_000, "Hund"), ("dog", "Hund " * 20_000), ("dog " * 20_000, None)):
        with pytest.raises(DataError, match=naming(512)):
            attention_of_translation(translator, source, translation)


def test_what_is_no_list_of_texts(micro_model: Path) -> None:
    from transduce.errors import ConfigError

    translator = Translator.load(micro_model)
    texts: Any
    for texts in ({"a": 1}, {"a"}, 5, None):
        with pytest.raises(TypeError, match=naming("list", type(texts).__name__)):
            translator.translate(texts)
    wrong: Any
    for wrong in ("x", [1], float("nan")):
        with pytest.raises(ConfigError, match=naming("search", "alpha")):
            translator.translate(["a"], alpha=wrong)
        with pytest.raises(ConfigError, match=naming("search", "n_best")):
            translator.translate(["a"], n_best=wrong)
    assert translator.translate(["a"], alpha=1) == translator.translate(["a"], alpha=1.0)


# Measured, in processes of their own

PEAK = """
import resource, subprocess, sys
done = subprocess.run(sys.argv[1:], stdin=sys.stdin)
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss // 1024)
sys.exit(done.returncode)
"""


def peak_mb(*arguments: object, feeder: str, code: int = 0) -> int:
    """Measure a command that reads the output of the shell commands of ``feeder``."""
    with subprocess.Popen(["/bin/sh", "-c", feeder], stdout=subprocess.PIPE) as feeding:
        done = subprocess.run(
            [sys.executable, "-c", PEAK, sys.executable, "-m", "transduce", *map(str, arguments)],
            stdin=feeding.stdout,
            capture_output=True,
            text=True,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
            timeout=600,
            check=False,
        )
    assert done.returncode == code, done.stderr
    assert "Traceback" not in done.stderr
    return int(done.stdout.splitlines()[-1])


@pytest.mark.slow
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="memory is measured as Linux does")
def test_gigabytes_in_flat_memory(micro_model: Path, tmp_path: Path) -> None:
    bomb = tmp_path / "bomb.xz"
    with lzma.open(bomb, "wb", preset=0) as stream:
        for _ in range(3 << 10):
            stream.write(b"a" * MEGABYTE)
    (tmp_path / "emoji").write_text((KINDS["emoji"] + "\n") * 30)
    translate = ["translate", micro_model, "--device", "cpu", "--beam", 1]
    idle = peak_mb(*translate, feeder="echo The dog sleeps.")
    endless = "head -c 3000000000 /dev/zero | tr '\\0' a"
    assert peak_mb(*translate, feeder=endless) < idle + MOST_MB
    assert peak_mb(*translate, feeder=f"cat '{tmp_path}/emoji'") < idle + MOST_MB
    assert peak_mb(*translate, "--in", bomb, feeder="true") < idle + MOST_MB
    assert peak_mb("score", "--ref", bomb, bomb, feeder="true", code=1) < idle + MOST_MB
    recipe = tmp_path / "recipe.toml"
    recipe.write_text(f'[data]\ncorpus = "files"\ntrain_src = "{bomb}"\ntrain_tgt = "{bomb}"\n')
    assert peak_mb("prepare", recipe, "--out", tmp_path / "out", feeder="true", code=1) < idle + MOST_MB

"""Unusual text: any line stays one line at its position, and errors name the line."""

from __future__ import annotations

import json
import re
import tempfile
import unicodedata
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from commands import CommandLine
from said import says
from small_models import untrained_translator, write_model
from transduce.config import SearchConfig
from transduce.corpora import CleaningReport, read_aligned_files
from transduce.corpora.cleaning import CleaningRules, clean
from transduce.data import open_pairs, write_pairs
from transduce.inference import Translator
from transduce.tasks.prepared import Prepared, open_prepared
from transduce.text import normalise, train_bpe
from transduce.text.normalise import without_surrogates

pytestmark = pytest.mark.reliability

Arguments = list[object]

# Characters that other programs treat as line or file ends, and characters unknown to tokenizers and models.
ODD_LINES = [
    "The dog sleeps.",
    "",
    "   \t ",
    "\u3000\u00a0",
    "byte-order mark \ufeff inside",
    "line \u2028 separator",
    "paragraph \u2029 separator",
    "next \x85 line",
    "form \x0c feed and \x0b tab",
    "file \x1c group \x1d record \x1e separators",
    "carriage \r return",
    "\u2028",
    "\x0c\x85",
    "</s> <pad> <unk> <s>",
    "👩‍👩‍👧‍👦 🏳️‍🌈 🇩🇪 👍🏽",
    "שלום עולם مرحبا بالعالم \u202eright to left\u202c",
    "ქართული አማርኛ ᚠᚢᚦ 𓀀𓂀 𒀀 ཀ 日本語 한국어 ไทย",
    "e" + "\u0301\u0316" * 50,
    "\u0301\u0308 marks first",
    "\U0010ffff \ufdd0 \uffff \ue000",
    "ﬁ Ⅷ ² ℌ ſ İ ß ẞ",
    "%s {0} \\n \\u2028 $(x) `y` \x7f",
]
NUL_LINE = "a NUL \0 inside"
SURROGATE_LINES = ["\ud800", "high \ud83d alone", "\ude00\ud83d the wrong way round", "a pair \ud83d\ude00"]
INVALID_LINES = [
    b"\xed\xa0\x80",
    b"\xff\xfe dog",
    b"a cut \xe2\x82",
    b"\xc0\x80 overlong",
    b"caf\xe9",
    b"\xf4\x90\x80\x80",
]
ODD_BYTES = [*(line.encode() for line in [*ODD_LINES, NUL_LINE]), *INVALID_LINES]
N_INVALID = len(INVALID_LINES)


def file_of(path: Path, lines: Sequence[bytes | str], *, end: bytes = b"\n") -> Path:
    raw = [line if isinstance(line, bytes) else line.encode() for line in lines]
    path.write_bytes(b"".join(line + end for line in raw))
    return path


def line_ends(text: str) -> str:
    """All characters at which Python or another program may end a line, in order."""
    return "".join(re.findall("[\n\r\x0b\x0c\x1c-\x1e\x85\u2028\u2029]", text))


def lines_of(out: str) -> list[str]:
    """Split at line feeds only, as ``wc`` and ``paste`` do."""
    assert out.endswith("\n") or not out
    return out.split("\n")[:-1]


@cache
def small_translator() -> Translator:
    """A model with random weights, whose output is arbitrary."""
    tokenizer = train_bpe(["the dog sleeps", "ein Hund schläft"] * 2, vocab_size=280)
    settings = {"n_decoder_layers": 1, "d_model": 16, "d_ff": 16}
    search = SearchConfig(beam_size=2, n_best=2, max_extra_tokens=4)
    translator = untrained_translator(tokenizer, seed=3, dtype=torch.float32, search=search, **settings)
    with torch.no_grad():  # varied output: no token dominates, whatever the input
        translator.model.target.embedding.weight.normal_(std=3.0)
    return Translator(translator.model, translator.tokenizers, search, direction="en-de")


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of that model."""
    translator = small_translator()
    folder = tmp_path_factory.mktemp("models") / "small"
    return write_model(folder, translator.model, translator.tokenizers, search=translator.search)


@pytest.fixture(scope="module")
def translator(model: Path) -> Translator:
    return Translator.load(model)


# translate


def test_lines_of_stdin_keep_their_places(transduce: CommandLine, model: Path, translator: Translator) -> None:
    stdin = b"\n".join(ODD_BYTES) + b"\n"
    outcome = transduce("translate", model, "--beam", 1, "--device", "cpu", stdin=stdin)
    assert outcome.code == 0
    written = lines_of(outcome.out)
    greedy = translator.search.model_copy(update={"beam_size": 1, "n_best": 1})
    readable = [line.decode("utf-8", "replace") for line in ODD_BYTES]
    assert written == [translator.translate([line], search=greedy)[0] for line in readable]
    assert written[1:4] == readable[1:4]  # blank
    assert len(set(written)) > len(written) // 2  # the output varies
    warned = [line for line in outcome.err.splitlines() if "UTF-8" in line]
    first = len(ODD_BYTES) - N_INVALID + 1
    assert [line.split()[2] for line in warned] == [str(first + n) for n in range(N_INVALID)]


@pytest.mark.parametrize(
    ("stdin", "n_lines"),
    [(b"", 0), (b"\n", 1), (b"dog", 1), (b"dog\n\ncat", 3), (b"\n \n\t\n", 3), (b"\xef\xbb\xbf", 1), (b"\0\n", 1)],
)
def test_few_lines_and_no_end(transduce: CommandLine, model: Path, stdin: bytes, n_lines: int) -> None:
    for form in ([], ["--n-best", 1], ["--json"], ["--buffer", 1]):
        outcome = transduce("translate", model, "--device", "cpu", *form, stdin=stdin)
        assert outcome.code == 0
        assert len(lines_of(outcome.out)) == n_lines
        assert all(line.startswith("warning: ") for line in outcome.err.splitlines())


def test_windows_files_are_translated_like_others(transduce: CommandLine, model: Path) -> None:
    plain = b"\n".join(line.encode() for line in ODD_LINES)
    windows = b"\xef\xbb\xbf" + plain.replace(b"\n", b"\r\n") + b"\r\n"
    first, second = (transduce("translate", model, "--beam", 1, stdin=stdin) for stdin in (plain, windows))
    assert (first.code, first.out) == (second.code, second.out)


def test_n_best_and_json_name_every_line(transduce: CommandLine, model: Path) -> None:
    stdin = b"\n".join(ODD_BYTES)
    n_best = lines_of(transduce("translate", model, "--n-best", 2, "--beam", 2, stdin=stdin).out)
    columns = [line.split("\t") for line in n_best]
    assert all(len(row) == 3 for row in columns)
    assert sorted({int(number) for number, _, _ in columns}) == list(range(1, len(ODD_BYTES) + 1))
    as_json = lines_of(transduce("translate", model, "--json", "--beam", 2, stdin=stdin).out)
    for number, (line, raw) in enumerate(zip(as_json, ODD_BYTES, strict=True), start=1):
        record = json.loads(line)
        assert record["line"] == number
        assert record["source"] == raw.removesuffix(b"\r").decode("utf-8", "replace")
        assert record["translation"] == record["n_best"][0]["translation"]
        assert line_ends(record["translation"]) == line_ends(record["source"])


def test_strings_that_are_no_text(translator: Translator) -> None:
    lines = [*SURROGATE_LINES, *ODD_LINES, "two\nlines\r\n", "\n", NUL_LINE, "\0"]
    search = translator.search.model_copy(update={"beam_size": 2, "n_best": 2})
    found = list(translator.translate_lines(iter(lines), search=search, chunk_lines=5))
    assert [translation.source for translation in found] == lines
    for line, translation in zip(lines, found, strict=True):
        assert translator.translate([line], search=search) == [translation.text]
        assert all(line_ends(best.text) == line_ends(line) for best in translation.n_best)
        has_words = any(map(str.isalpha, line))
        assert has_words or (translation.text == without_surrogates(line) and translation.score == 0)
    assert translator.translate([]) == []


ANY_LINE = st.text(st.characters(codec=None), max_size=12) | st.sampled_from([*ODD_LINES, *SURROGATE_LINES, "a\nb"])


@settings(max_examples=30)
@given(st.lists(ANY_LINE, max_size=8), st.integers(1, 4))
def test_any_lines_in_as_many_out(lines: list[str], chunk_lines: int) -> None:
    found = list(small_translator().translate_lines(lines, chunk_lines=chunk_lines))
    assert [translation.source for translation in found] == lines
    for translation in found:
        assert all(line_ends(best.text) == line_ends(translation.source) for best in translation.n_best)
        assert all(best.text == best.text.encode().decode() for best in translation.n_best)


# score and evaluate


def test_scores_of_odd_lines(transduce: CommandLine, tmp_path: Path) -> None:
    lines = [*ODD_LINES, NUL_LINE]
    ref = file_of(tmp_path / "ref", lines)
    scores = json.loads(transduce("score", "--json", "--ref", ref, ref, "--against", ref).out)
    assert scores["sentences"] == len(lines)
    assert scores["sacrebleu"]["score"] == scores["chrf"]["score"] == 100
    shifted = file_of(tmp_path / "shifted", [*lines[1:], lines[0]])
    assert json.loads(transduce("score", "--json", "--ref", ref, shifted).out)["sacrebleu"]["score"] < 50
    same = [
        file_of(tmp_path / "windows", lines, end=b"\r\n"),
        file_of(tmp_path / "mark", [b"\xef\xbb\xbf" + lines[0].encode(), *lines[1:]]),
    ]
    (tmp_path / "no end").write_bytes(ref.read_bytes().removesuffix(b"\n"))
    for path in (*same, tmp_path / "no end"):
        assert json.loads(transduce("score", "--json", "--ref", ref, path).out) == {
            name: entry for name, entry in scores.items() if name != "paired_bootstrap"
        }


@pytest.mark.parametrize("invalid", INVALID_LINES)
def test_a_line_that_is_no_text_is_named(transduce: CommandLine, model: Path, tmp_path: Path, invalid: bytes) -> None:
    good, bad = file_of(tmp_path / "good", ["a dog"] * 3), file_of(tmp_path / "bad", ["a dog", b"x " + invalid, ""])
    for arguments in (
        ["score", "--ref", good, bad],
        ["score", "--ref", bad, good],
        ["score", "--ref", good, good, "--against", bad],
        ["evaluate", model, "--src", bad, "--ref", good],
        ["evaluate", model, "--src", good, "--ref", bad, "--out", tmp_path / "out"],
    ):
        outcome = transduce(*arguments)
        assert outcome.code == 1
        assert says(outcome.err, f"{bad}:2", "UTF-8", re.compile("0x[0-9a-f]{2}"))
    assert not (tmp_path / "out").exists()


METRICS = ("sacrebleu", "chrf", "paper_bleu", "multi30k_bleu")


def test_blank_and_single_lines_have_a_score(transduce: CommandLine, tmp_path: Path) -> None:
    blank, one = file_of(tmp_path / "blank", ["", " ", "\u2028"]), file_of(tmp_path / "one", ["dog"])
    three = file_of(tmp_path / "three", ["dog"] * 3)
    # One word that is right has all of its characters, and none of BLEU's sequences of four.
    for hypotheses, references, chrf in ((blank, blank, 0), (one, one, 100), (blank, three, 0), (three, blank, 0)):
        tokenised = ["--paper-bleu", "--multi30k-bleu"]
        outcome = transduce("score", "--json", *tokenised, "--ref", references, hypotheses, "--against", hypotheses)
        assert outcome.code == 0, outcome.err
        scores = json.loads(outcome.out)
        assert {name: scores[name]["score"] for name in METRICS} == dict.fromkeys(METRICS, 0) | {"chrf": chrf}


def test_an_evaluation_is_of_the_same_lines(
    transduce: CommandLine, model: Path, translator: Translator, tmp_path: Path
) -> None:
    src, out = file_of(tmp_path / "src", [*ODD_LINES, NUL_LINE], end=b"\r\n"), tmp_path / "out"
    outcome = transduce("evaluate", model, "--src", src, "--ref", src, "--out", out, "--json")
    assert outcome.code == 0
    assert json.loads(outcome.out)["sentences"] == len(ODD_LINES) + 1
    assert lines_of(out.read_bytes().decode()) == translator.translate([*ODD_LINES, NUL_LINE], split=False)


# prepare and train

# Each line read is kept, or dropped for a reason; every pair has its number on both sides.
KEPT = [
    line for line in ODD_LINES if not any(unicodedata.category(char) == "Cc" and not char.isspace() for char in line)
]
DROPPED = [NUL_LINE.encode(), b"bell \x07", b"C1 \xc2\x9f control", *INVALID_LINES]


def numbered(lines: Sequence[str | bytes], language: str) -> list[bytes]:
    raw = [line if isinstance(line, bytes) else line.encode() for line in lines]
    return [f"{language} {number:04} ".encode() + line.replace(b"\t", b" ") for number, line in enumerate(raw)]


SRC = [*numbered([*KEPT, *DROPPED, *KEPT], "en"), b"", b" \xe2\x80\xa8", b"en 9998 no partner"]
TGT = [*numbered([*KEPT, *DROPPED, *KEPT], "de"), b"de 9999 no partner", b"de", b"\x0c"]


def recipe_of(path: Path, **data: object) -> Path:
    fields = "".join(f"{name} = {json.dumps(str(value))}\n" for name, value in data.items())
    path.write_text(f'[data]\ncorpus = "files"\n{fields}vocab_size = 300\nmax_length = 2000\nmax_length_ratio = 50.0\n')
    return path


def numbers_of(prepared: Prepared) -> list[tuple[str, str]]:
    """The first two words of both sides of each pair in the store."""
    tokenizers = prepared.tokenizers
    pairs = (prepared.train.pair(row) for row in range(len(prepared.train)))
    return [
        (" ".join(tokenizers.src.decode(src).split()[:2]), " ".join(tokenizers.tgt.decode(tgt).split()[:2]))
        for src, tgt in pairs
    ]


def test_training_pairs_stay_pairs(transduce: CommandLine, tmp_path: Path) -> None:
    mark = b"\xef\xbb\xbf"
    (tmp_path / "tsv").write_bytes(b"".join(src + b"\t" + tgt + b"\n" for src, tgt in zip(SRC, TGT, strict=True)))
    files = {
        "plain": (file_of(tmp_path / "a.en", SRC), file_of(tmp_path / "a.de", TGT)),
        "windows": (file_of(tmp_path / "b.en", SRC, end=b"\r\n"), file_of(tmp_path / "b.de", TGT)),
        "marked": (file_of(tmp_path / "c.en", [mark + SRC[0], *SRC[1:]]), file_of(tmp_path / "c.de", TGT)),
    }
    (tmp_path / "d.en").write_bytes(files["plain"][0].read_bytes().removesuffix(b"\n"))
    files["no end"] = (tmp_path / "d.en", files["plain"][1])
    names = {name: {"train_src": src, "train_tgt": tgt} for name, (src, tgt) in files.items()}
    fingerprints = set()
    for name, data in {**names, "tsv": {"train_tsv": tmp_path / "tsv"}}.items():
        outcome = transduce("prepare", recipe_of(tmp_path / "r.toml", **data), "--out", tmp_path / f"out {name}")
        assert outcome.code == 0, outcome.err
        first = len(KEPT) + 1
        assert says(outcome.err, f"{len(SRC):,}", f"{2 * len(KEPT):,}", len(DROPPED) + 3)
        assert says(outcome.err, "control characters", f"{first}, {first + 1}, {first + 2}")
        assert says(outcome.err, N_INVALID, "UTF-8", f"{first + 3}, {first + 4}")
        assert says(outcome.err, "empty", f"{len(SRC) - 2}, {len(SRC) - 1}, {len(SRC)}")
        prepared = open_prepared(tmp_path / f"out {name}")
        fingerprints.add(prepared.fingerprint)
        kept = [*range(len(KEPT)), *range(len(KEPT) + len(DROPPED), 2 * len(KEPT) + len(DROPPED))]
        assert numbers_of(prepared) == [(f"en {number:04}", f"de {number:04}") for number in kept]
    assert len(fingerprints) == 1


def test_text_without_any_pair(transduce: CommandLine, tmp_path: Path) -> None:
    for name, lines in {"empty": [], "blank": ["", " ", "\u2028"], "garbage": [b"\xff", b"\0"]}.items():
        path = file_of(tmp_path / name, lines)
        recipe = recipe_of(tmp_path / "r.toml", train_src=path, train_tgt=path)
        outcome = transduce("prepare", recipe, "--out", tmp_path / "out")
        assert outcome.code == 1
        assert says(outcome.err, re.compile("^error: "), "training", "files", len(lines), 0)
        assert not (tmp_path / "out").exists()


def test_dev_text_that_cannot_be_used(transduce: CommandLine, tmp_path: Path) -> None:
    src, tgt = file_of(tmp_path / "src", ["a dog"] * 3), file_of(tmp_path / "tgt", ["ein Hund"] * 3)
    blank, invalid = file_of(tmp_path / "blank", ["", " ", "\x85"]), file_of(tmp_path / "bad", ["a", b"b\xff", "c"])
    for dev, facts in ((blank, [blank]), (invalid, [f"{invalid}:2", "UTF-8", "0xff"])):
        recipe = recipe_of(tmp_path / "r.toml", train_src=src, train_tgt=tgt, dev_src=dev, dev_tgt=tgt)
        outcome = transduce("prepare", recipe, "--out", tmp_path / "out")
        assert outcome.code == 1
        assert says(outcome.err, re.compile("^error: "), *facts)


def test_one_pair_is_a_corpus(transduce: CommandLine, tmp_path: Path) -> None:
    (tmp_path / "one.tsv").write_bytes("ein 🐕\ta dog".encode())
    recipe = recipe_of(tmp_path / "r.toml", train_tsv=tmp_path / "one.tsv")
    outcome = transduce("prepare", recipe, "--out", tmp_path / "out", "--json")
    assert (outcome.code, json.loads(outcome.out)["train_pairs"]) == (0, 1)


def test_a_run_over_odd_text(transduce: CommandLine, tmp_path: Path) -> None:
    train = {"train_src": file_of(tmp_path / "a", SRC), "train_tgt": file_of(tmp_path / "b", TGT)}
    dev = {
        f"{split}_{side}": file_of(tmp_path / f"{split}.{side}", [*ODD_LINES, NUL_LINE], end=b"\r\n")
        for split in ("dev", "test")
        for side in ("src", "tgt")
    }
    recipe = recipe_of(tmp_path / "r.toml", **train, **dev)
    sizes = {"d_model": 16, "d_ff": 16, "n_heads": 2, "d_k": 8, "d_v": 8, "n_encoder_layers": 1, "n_decoder_layers": 1}
    set_values = [f"model.{name}={value}" for name, value in sizes.items()]
    set_values += ["training.max_updates=2", "training.max_tokens_per_batch=2000", "training.validate_every_updates=1"]
    set_values += ["search.beam_size=1", "search.max_extra_tokens=3"]
    arguments: Arguments = [word for value in set_values for word in ("--set", value)]
    outcome = transduce("train", recipe, "--out", tmp_path / "run", "--device", "cpu", "--json", *arguments)
    assert outcome.code == 0, outcome.err
    prepared = open_prepared(tmp_path / "run" / "store")
    for split in ("dev", "test"):
        assert prepared.text(split) == ([*ODD_LINES, NUL_LINE], [*ODD_LINES, NUL_LINE])
    assert prepared.dev is not None
    assert prepared.dev.summary.n_read == len(ODD_LINES) + 1
    translations = transduce("translate", tmp_path / "run" / "model", stdin=b"\n".join(ODD_BYTES))
    assert len(lines_of(translations.out)) == len(ODD_BYTES)


ANY_TEXT = st.text(st.characters(codec="utf-8"), max_size=20) | st.sampled_from(ODD_LINES)


@settings(max_examples=60)
@given(st.lists(st.tuples(ANY_TEXT | st.binary(max_size=8), ANY_TEXT | st.binary(max_size=8)), min_size=1, max_size=12))
def test_any_pairs_stay_pairs(pairs: list[tuple[str | bytes, str | bytes]]) -> None:
    """Through files, cleaning and the store, kept pairs are those of their line, on both sides."""
    tokenizers = small_translator().tokenizers
    sides = [numbered([pair[side] for pair in [("kept", "kept"), *pairs]], "line") for side in (0, 1)]
    raw = [[line.replace(b"\n", b" ") for line in side] for side in sides]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        src, tgt = (file_of(folder / f"{side}", lines) for side, lines in enumerate(raw))
        report = CleaningReport()
        rules = CleaningRules(max_length_ratio=1000.0, drop_identical=False)
        kept = clean(read_aligned_files(src, tgt, escape_invalid=True), rules, report)
        write_pairs(folder / "store", {"text": kept}, tokenizers, max_length=10_000)
        store = open_pairs(folder / "store", tokenizers)
        assert report.n_read == len(raw[0])
        assert len(store) == report.n_kept == report.n_read - report.n_dropped
        for row in range(len(store)):
            src_text, tgt_text = (tokenizers.src.decode(ids) for ids in store.pair(row))
            place = int(src_text.split()[1][:4])
            assert src_text == normalise(raw[0][place].decode())
            assert tgt_text == normalise(raw[1][place].decode())


# Long lines

MEGABYTE = 1 << 20
LONG_LINES = {
    "one word": "a" * MEGABYTE,
    "many words": "the dog " * (MEGABYTE // 8),
    "dots": "." * MEGABYTE,
    "marks": "e" + "\u0301\u0316" * (MEGABYTE // 4),
    "spaces": " " * MEGABYTE + "dog",
    "numbers": "1,2.3-" * (MEGABYTE // 6),
    "emoji": "👩‍👩‍👧" * (MEGABYTE // 18),
    "no text": "\0\ufeff\u200b" * (MEGABYTE // 7),
}


@pytest.mark.merge
def test_long_lines_are_cut_and_their_neighbours_are_not(transduce: CommandLine, model: Path) -> None:
    long = [LONG_LINES["one word"], LONG_LINES["marks"]]
    stdin = "\n".join(["The dog sleeps.", *long, "The cat sees a tree."]).encode()
    arguments = ["translate", model, "--beam", 1, "--device", "cpu"]
    outcome = transduce(*arguments, stdin=stdin)
    alone = transduce(*arguments, stdin=b"The dog sleeps.\nThe cat sees a tree.\n")
    first, *_, last = lines_of(outcome.out)
    assert len(lines_of(outcome.out)) == 4
    assert [first, last] == lines_of(alone.out)
    assert re.findall(r"line (\d+) .*longer", outcome.err) == ["2", "3"]


@pytest.mark.slow
@pytest.mark.parametrize("kind", LONG_LINES)
def test_a_megabyte_in_a_line(transduce: CommandLine, model: Path, tmp_path: Path, kind: str) -> None:
    """Every verb handles it within seconds, with memory proportional to its size."""
    lines = ["The dog sleeps.", LONG_LINES[kind], "The cat sees a tree."]
    text = file_of(tmp_path / "text", lines)
    for form in (["--n-best", 2, "--beam", 2], ["--json", "--beam", 1]):
        outcome = transduce("translate", model, "--device", "cpu", "--no-split", *form, stdin=text.read_bytes())
        assert outcome.code == 0
        assert len({line.split("\t")[0] for line in lines_of(outcome.out)}) == 3
    outcome = transduce("evaluate", model, "--src", text, "--ref", text, "--out", tmp_path / "out")
    assert outcome.code == 0
    assert len(lines_of((tmp_path / "out").read_text())) == 3
    outcome = transduce("score", "--json", "--ref", text, text)
    assert json.loads(outcome.out)["sacrebleu"]["score"] == 100
    for max_characters in (5000, 2 * MEGABYTE):  # dropped by its characters, or by its tokens
        recipe = recipe_of(tmp_path / "r.toml", train_src=text, train_tgt=text, dev_src=text, dev_tgt=text)
        changed = ["--set", f"data.max_characters={max_characters}", "--set", "data.drop_identical=false"]
        changed += ["--set", "data.max_dropped_share=1"]
        outcome = transduce("prepare", recipe, "--out", tmp_path / f"{max_characters}", *changed, "--json")
        assert outcome.code == 0, outcome.err
        is_kept = kind == "spaces" or (max_characters > 5000 and kind != "no text")  # it may take few tokens
        assert json.loads(outcome.out)["train_pairs"] in ((2, 3) if is_kept else (2,))

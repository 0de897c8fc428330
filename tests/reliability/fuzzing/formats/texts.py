"""Text for every verb that reads it: plain, compressed, and files of other formats."""

from __future__ import annotations

import bz2
import gzip
import io
import json
import lzma
import math
import shutil
import zipfile
from collections.abc import Callable
from pathlib import Path
from random import Random

from fuzzing.cases import Case, CaseFolders, Format, require
from fuzzing.commands import Outcome, run_command
from fuzzing.damage import BYTES
from fuzzing.sources import Sources
from fuzzing.strange_values import odd_lines

__all__ = ["compressed_format", "text_format"]

STOP_AFTER_S = 15.0
GOOD = b"The dog sleeps."
CONTROLS = bytes([*range(32), 127])
TRAIN = ["train", "small.toml", "--out", "out", "--device", "cpu", "--set", "training.max_updates=1"]


def text_format(sources: Sources) -> Format:
    """Unusual lines for every verb that reads text."""
    plays: dict[str, Callable[[Case, CaseFolders, Sources], str]] = {
        "translate": _translate, "translate-file": _translate, "translate-json": _translate, "parse": _parse,
        "parse-raw": _parse, "evaluate": _evaluate, "score": _score, "score-against": _score, "prepare": _learn,
        "train": _learn, "doctor": _learn, "attention": _attention, "sentence": _attention,
    }  # fmt: skip
    ends = ("lf", "crlf", "none", "bom", "cr")
    stems = [f"{verb}/{end}" for verb in plays for end in ends if verb not in ("train", "sentence") or end == "lf"]
    return Format("text", stems, lambda case, place: plays[case.parts[0]](case, place, sources))


def _joined(lines: list[bytes], end: str) -> bytes:
    match end:
        case "crlf":
            return b"".join(line + b"\r\n" for line in lines)
        case "none":
            return b"\n".join(lines)
        case "bom":
            return b"\xef\xbb\xbf" + b"".join(line + b"\n" for line in lines)
        case "cr":
            return b"".join(line + b"\r" for line in lines)
        case _:
            return b"".join(line + b"\n" for line in lines)


def _n_lines(content: bytes) -> int:
    return content.count(b"\n") + (bool(content) and not content.endswith(b"\n"))


def _translate(case: Case, place: CaseFolders, sources: Sources) -> str:
    """Require one output line per input line, and the known translation of the first line."""
    verb, end = case.parts
    content = _joined([GOOD, *odd_lines(case.draw())], end)
    words = ["translate", sources.talker, "--device", "cpu", "--beam", "1"]
    if verb == "translate-json":
        words += ["--json"]
    if verb == "translate-file":
        (place.folder / "in").write_bytes(content)
        words += ["--in", "in", "--out", "translated"]
    repeats = content if verb.startswith("translate") else b""  # text without letters stays as it is
    outcome = run_command(place, words, stdin=content, stop_after_s=STOP_AFTER_S, repeats=repeats)
    if outcome.code:
        return outcome.word
    written = (place.folder / "translated").read_bytes() if verb == "translate-file" else outcome.out
    require(written.count(b"\n") == _n_lines(content), "as many lines should come out as went in", repr(written[:500]))
    first = written.split(b"\n")[0]
    if verb == "translate-json":
        records = [json.loads(line) for line in written.splitlines()]
        require([each["line"] for each in records] == list(range(1, len(records) + 1)), "lines are misnumbered")
        require(all(math.isfinite(each["score"]) for each in records), "a score is no number")
        first = records[0]["translation"].encode()
    expected = json.loads(sources.expected.read_text())["translation"].encode()
    if end != "cr":
        require(first == expected, "the good line is translated otherwise", f"{first!r}, not {expected!r}")
    return "sound"


def _parse(case: Case, place: CaseFolders, sources: Sources) -> str:
    verb, end = case.parts
    content = _joined(odd_lines(case.draw(), most=3), end)
    words = ["parse", sources.parser, "--device", "cpu", "--beam", "1", *(["--raw"] if verb == "parse-raw" else [])]
    words += ["--json"] if case.draw().random() < 0.3 else []
    outcome = run_command(place, words, stdin=content, stop_after_s=STOP_AFTER_S, repeats=content)
    if outcome.code:
        return outcome.word
    require(outcome.out.count(b"\n") == _n_lines(content), "as many lines should come out as went in")
    return "sound"


def _evaluate(case: Case, place: CaseFolders, sources: Sources) -> str:
    draw = case.draw()
    lines, others = [GOOD, *odd_lines(draw, most=4)], odd_lines(draw, most=5)
    (place.folder / "src").write_bytes(_joined(lines, case.parts[1]))
    (place.folder / "ref").write_bytes(_joined((others + lines)[: len(lines)] if draw.random() < 0.8 else others, "lf"))
    words = ["evaluate", sources.talker, "--src", "src", "--ref", "ref", "--device", "cpu", "--beam", "1", "--json"]
    words += ["--paper-bleu", "--multi30k-bleu"] if draw.random() < 0.2 else []
    return _require_scores(
        run_command(place, words, stop_after_s=STOP_AFTER_S), _n_lines((place.folder / "src").read_bytes())
    )


def _score(case: Case, place: CaseFolders, sources: Sources) -> str:
    verb, end = case.parts
    draw = case.draw()
    lines, others = odd_lines(draw), odd_lines(draw)
    others = (others + lines)[: len(lines)] if draw.random() < 0.8 else others
    (place.folder / "ref").write_bytes(_joined(lines, end))
    (place.folder / "hyp").write_bytes(_joined(others, draw.choice(["lf", end])))
    words = ["score", "--ref", "ref", "hyp", "--json"]
    words += ["--against", "ref", "--resamples", "9"] if verb == "score-against" else []
    words += ["--paper-bleu", "--multi30k-bleu"] if draw.random() < 0.2 else []
    return _require_scores(
        run_command(place, words, stop_after_s=STOP_AFTER_S), _n_lines((place.folder / "ref").read_bytes())
    )


def _require_scores(outcome: Outcome, n_lines: int) -> str:
    if outcome.code:
        return outcome.word
    scores = outcome.json()
    require(scores["sentences"] == n_lines, "another number of sentences was scored", scores["sentences"])
    figures = [entry["score"] for entry in scores.values() if isinstance(entry, dict) and "score" in entry]
    require(all(0 <= figure <= 100.000001 for figure in figures), "a score is not between 0 and 100", figures)
    return "sound"


def _learn(case: Case, place: CaseFolders, sources: Sources) -> str:
    """Unusual lines in training text."""
    verb, end = case.parts
    draw = case.draw()
    shutil.copytree(sources.text, place.folder / "text")
    shutil.copy(sources.recipe, place.folder / "small.toml")
    name = draw.choice(["train.en", "train.de", "dev.tsv", "test.en", "test.de"])
    path = place.folder / "text" / name
    lines = path.read_bytes().split(b"\n")[:-1]
    for line in odd_lines(draw):
        lines[draw.randrange(len(lines))] = line
    path.write_bytes(draw.choice([_joined(lines, end), _joined(odd_lines(draw), end)]))
    words = {
        "prepare": ["prepare", "small.toml", "--out", "out"],
        "train": TRAIN,
        "doctor": ["doctor", *(["text/train.en", "text/train.de"] if draw.random() < 0.5 else ["small.toml"])],
    }[verb]
    outcome = run_command(place, words, stop_after_s=STOP_AFTER_S, speaks_on_stdout=verb == "doctor")
    return outcome.word if outcome.code else "sound"


def _attention(case: Case, place: CaseFolders, sources: Sources) -> str:
    """An unusual line as an argument."""
    draw = case.draw()
    lines = [line.replace(b"\0", b"").decode("utf-8", "surrogateescape") for line in [*odd_lines(draw), GOOD]]
    words = ["attention", sources.talker, "--device", "cpu", "--src", lines[0][:5000]]
    words += ["--tgt", lines[-1][:5000]] if draw.random() < 0.5 else []
    outcome = run_command(place, words, stop_after_s=STOP_AFTER_S)
    page = place.folder / "attention.html"
    require(outcome.code != 0 or page.stat().st_size > 1000, "there is no page")
    return outcome.word if outcome.code else "sound"


# compressed text, and files of other programs


def _zip(names: list[str], content: bytes) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in names:
            archive.writestr(name, content)
    return stream.getvalue()


CONTAINERS: dict[str, tuple[str, Callable[[bytes], bytes]]] = {
    "gz": (".gz", lambda text: gzip.compress(text, 1, mtime=0)),
    "xz": (".xz", lambda text: lzma.compress(text, preset=0)),
    "lzma": (".xz", lambda text: lzma.compress(text, lzma.FORMAT_ALONE, preset=0)),
    "bz2": (".gz", bz2.compress),
    "zip": (".zip", lambda text: _zip(["a.txt"], text)),
    "docx": (".docx", lambda text: _zip(["[Content_Types].xml", "word/document.xml"], text)),
    "zip-in-gz": (".gz", lambda text: gzip.compress(_zip(["xl/a"], text), 1, mtime=0)),
    "gz-twice": (".gz", lambda text: gzip.compress(gzip.compress(text, 1, mtime=0), 1, mtime=0)),
    "gz-then-gz": (".gz", lambda text: gzip.compress(text, 1, mtime=0) * 2),
    "gz-plain-name": (".txt", lambda text: gzip.compress(text, 1, mtime=0)),
    "plain-gz-name": (".gz", bytes),
    "utf-16": (".txt", lambda text: text.decode().encode("utf-16")),
    "utf-16-le": (".en", lambda text: text.decode().encode("utf-16-le")),
    "latin-1": (".txt", lambda text: ("süß " + text.decode()).encode("latin-1", "replace")),
    "html": (".html", lambda text: b"<!DOCTYPE html><html><body>" + text),
    "json": (".json", lambda text: json.dumps([{"en": text.decode()}]).encode()),
    "pdf": (".pdf", lambda text: b"%PDF-1.4\n" + text),
}
BOMBS = {
    "gz-bomb": (".gz", lambda: gzip.compress(bytes(200 << 20), 1, mtime=0)),
    "xz-bomb": (".xz", lambda: lzma.compress(bytes(200 << 20), preset=0)),
    "gz-lines-bomb": (".gz", lambda: gzip.compress(b"\n" * (4 << 20), 1, mtime=0)),
    "zip-bomb": (".zip", lambda: _zip(["word/a"], bytes(200 << 20))),
    "zip-many": (".zip", lambda: _zip([f"a/{n}" for n in range(3000)], b"")),
}
READERS: dict[str, list[str]] = {
    "translate": ["translate", "MODEL", "--device", "cpu", "--beam", "1", "--in", "FILE"],
    "score": ["score", "--ref", "FILE", "FILE", "--json"],
    "evaluate": ["evaluate", "MODEL", "--device", "cpu", "--beam", "1", "--src", "FILE", "--ref", "GOOD", "--json"],
    "doctor": ["doctor", "FILE", "FILE"],
    "doctor-tsv": ["doctor", "FILE"],
    "init": ["init", "--src", "FILE", "--tgt", "FILE", "--direction", "en-de", "--device", "cpu"],
    "parseval": ["parseval", "FILE", "FILE"],
    "prepare": [
        "prepare",
        "small.toml",
        "--out",
        "out",
        "--set",
        "data.train_src=FILE",
        "--set",
        "data.train_tgt=FILE",
    ],
}


def compressed_format(sources: Sources) -> Format:
    """Files that are compressed, or of another program, damaged or not, where lines of text are read."""
    bombs: dict[str, tuple[str, Path]] = {}
    for name, (suffix, make) in BOMBS.items():
        bombs[name] = (suffix, sources.bombs / f"{name}{suffix}")
        if not bombs[name][1].exists():
            sources.bombs.mkdir(exist_ok=True)
            bombs[name][1].write_bytes(make())

    def play(case: Case, place: CaseFolders) -> str:
        container, verb, how = case.parts
        draw = case.draw()
        text = _sound_text(sources, draw)
        shutil.copytree(sources.text, place.folder / "text")
        shutil.copy(sources.recipe, place.folder / "small.toml")
        if container in bombs:
            suffix, source = bombs[container]
            content = source.read_bytes()
        else:
            suffix, make = CONTAINERS[container]
            content = make(text)
        path = place.folder / f"text{suffix}"
        path.write_bytes(content if how == "whole" else BYTES[how](content, draw))
        good = place.folder / "good"
        good.write_bytes(text)
        known = {"MODEL": str(sources.talker), "FILE": path.name, "GOOD": good.name}
        words = [known.get(word, word.replace("FILE", path.name)) for word in READERS[verb]]
        # It tries how fast the machine is; millions of lines are read, and what is no text is translated, all the same.
        is_long = verb == "init" or container in bombs or verb.startswith("translate")
        outcome = run_command(
            place,
            words,
            stop_after_s=4.0 if verb == "init" else STOP_AFTER_S,
            codes=(0, 1, 2, *((143,) if is_long else ())),
            speaks_on_stdout=verb.startswith("doctor"),
            repeats=CONTROLS if verb.startswith("translate") else b"",  # what is no text is translated, too
        )
        if outcome.code:
            return "stopped" if outcome.code == 143 else outcome.word
        if verb == "evaluate" and container in ("gz", "xz") and how != "grow":
            require(outcome.json()["sentences"] == text.count(b"\n"), "read, and is another")
        return "sound"

    stems = [f"{name}/{verb}/{how}" for name in CONTAINERS for verb in READERS for how in ("whole", "damage")]
    stems = [
        stem.replace("/damage", f"/{kind}")
        for stem in stems
        for kind in (BYTES if stem.endswith("/damage") else ["whole"])
    ]
    stems = [stem for stem in stems if stem.split("/")[1] != "init" or stem.endswith("whole")]
    stems += [f"{name}/{verb}/whole" for name in BOMBS for verb in READERS]
    return Format("compressed", stems, play)


def _sound_text(sources: Sources, draw: Random) -> bytes:
    return b"".join(draw.sample((sources.text / "train.en").read_bytes().splitlines(keepends=True), 3))

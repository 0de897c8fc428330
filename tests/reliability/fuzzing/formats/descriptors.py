"""Standard streams that are closed, full, or without a reader when a command starts."""

from __future__ import annotations

import shutil
from itertools import product
from pathlib import Path

from fuzzing.cases import Case, CaseFolders, Format, require
from fuzzing.commands import Streams, run_command
from fuzzing.sources import Sources
from fuzzing.strange_values import odd_lines

__all__ = ["descriptor_format"]

STATES = ("open", "closed", "full", "pipe")
STOP_AFTER_S = 10.0
# Each prints something on stdout when all is well.
VERBS: dict[str, list[str]] = {
    "translate": ["translate", "talker", "--device", "cpu", "--beam", "1"],
    "translate-json": ["translate", "talker", "--device", "cpu", "--beam", "1", "--json"],
    "translate-file": ["translate", "talker", "--device", "cpu", "--beam", "1", "--in", "text/test.en"],
    "parse": ["parse", "parser", "--device", "cpu", "--beam", "1"],
    "evaluate": ["evaluate", "talker", "--src", "text/test.en", "--ref", "text/test.de", "--device", "cpu"],
    "evaluate-out": [
        "evaluate",
        "talker",
        "--src",
        "text/test.en",
        "--ref",
        "text/test.de",
        "--device",
        "cpu",
        "--out",
        "-",
    ],
    "score": ["score", "--ref", "text/test.de", "text/test.de", "--json"],
    "score-stdin": ["score", "--ref", "text/test.de", "-"],
    "parseval": ["parseval", "text/test.ptb", "text/test.ptb"],
    "parseval-stdin": ["parseval", "text/test.ptb", "-", "--json"],
    "model": ["model", "small.toml"],
    "model-json": ["model", "run/model", "--json"],
    "corpus": ["corpus", "list"],
    "doctor": ["doctor", "run/model"],
    "doctor-json": ["doctor", "run/store", "--json"],
    "attention": ["attention", "talker", "--src", "A dog.", "--device", "cpu", "--out", "-"],
    "average": ["average", "run", "--device", "cpu", "--last", "1"],
    "resume": ["train", "--resume", "--out", "run", "--device", "cpu", "--set", "training.max_updates=6"],
    "prepare": ["prepare", "small.toml", "--out", "out"],
    "help": ["--help"],
    "verb-help": ["train", "--help"],
    "version": ["--version"],
    "wrong": ["translat"],
    "missing": ["translate", "nowhere"],
}
READS_STDIN = {"translate", "translate-json", "parse", "score-stdin", "parseval-stdin"}
KEPT = ("talker", "parser", "text", "run/store", "run/checkpoints", "small.toml")  # what no verb above may change


def descriptor_format(sources: Sources) -> Format:
    """Every state of the three streams under every verb."""
    states = ["-".join(each) for each in product(("open", "closed"), STATES, STATES)]

    def play(case: Case, place: CaseFolders) -> str:
        verb, state = case.parts
        stdin, stdout, stderr = state.split("-")
        for name in ("run", "text", "talker"):
            shutil.copytree(getattr(sources, name), place.folder / name)
        shutil.copytree(sources.parser, place.folder / "parser")
        shutil.copy(sources.recipe, place.folder / "small.toml")
        before = _bytes_of(place.folder)
        paths: dict[str, str | None] = {"open": "", "pipe": "", "closed": None, "full": "/dev/full"}
        streams = Streams(
            paths[stdin],
            paths[stdout],
            paths[stderr],
            frozenset(fd for fd, each in ((1, stdout), (2, stderr)) if each == "pipe"),
        )
        given = (sources.text / ("test.ptb" if "parseval" in verb else "test.de")).read_bytes()
        if case.draw().random() < 0.2:
            given = b"\n".join(odd_lines(case.draw()))
        outcome = run_command(
            place,
            VERBS[verb],
            stdin=given,
            streams=streams,
            stop_after_s=STOP_AFTER_S,
            speaks_on_stdout=verb.startswith("doctor"),
            repeats=given,
        )
        require(_bytes_of(place.folder) == before, "a file that is read was changed")
        prints = verb not in ("wrong", "missing") and not (verb in READS_STDIN and stdin == "closed")
        if stdout in ("closed", "full") and prints and given:
            require(outcome.code != 0, f"exit code 0, and what was printed is lost: stdout was {stdout}", outcome.err)
        return "done" if outcome.code == 0 else "refused"

    return Format("descriptors", [f"{verb}/{state}" for verb in VERBS for state in states], play)


def _bytes_of(folder: Path) -> dict[str, bytes]:
    found = {}
    for name in KEPT:
        top = folder / name
        for path in sorted(top.rglob("*")) if top.is_dir() else [top]:
            if path.is_file():
                found[str(path)] = path.read_bytes()
    return found

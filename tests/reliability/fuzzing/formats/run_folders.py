"""Run folders that are resumed and read by other verbs: files damaged, or replaced by links, pipes and devices."""

from __future__ import annotations

import json
import os
import shutil
import socket
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from random import Random

from fuzzing.cases import Case, CaseFolders, Format, require
from fuzzing.commands import run_command
from fuzzing.damage import inflict, kinds_for
from fuzzing.sources import Sources
from transduce.files import write_manifest

__all__ = ["entry_format", "resume_format"]

RESUME = ("train", "--resume", "--out", "run", "--device", "cpu")
TIMED = ("elapsed_s", "tgt_tokens_per_s", "path")
DAMAGED = ("run.json", "metrics.jsonl", "lock.json", "prepared_at.json", "state.json")


def resume_format(sources: Sources) -> Format:
    """``train --resume`` over damaged small files of a run."""
    weights = {updates: sources.resumed(updates) / "model" / "model.safetensors" for updates in (6, 8)}

    def play(case: Case, place: CaseFolders) -> str:
        file, kind = case.parts
        draw = case.draw()
        run = place.folder / "run"
        shutil.copytree(sources.run, run)
        path = _path_of(file, run)
        inflict(kind, path, draw)
        if file == "state.json":
            write_manifest(path.parent)
        updates = draw.choice([6, 6, 8])
        words = [*RESUME, "--set", f"training.max_updates={updates}"]
        words += ["--break-lock"] if draw.random() < 0.2 else []
        outcome = run_command(place, words)
        if outcome.code:
            return "refused"
        written = (run / "model" / "model.safetensors").read_bytes()
        is_same = written == weights[updates].read_bytes()
        if file in ("metrics.jsonl", "lock.json"):  # nothing of it enters what is computed
            require(is_same, "the model is another than that of the undamaged run")
        lines = (run / "metrics.jsonl").read_text().splitlines()
        require(
            all(isinstance(json.loads(line), dict) for line in lines), "what was written to metrics.jsonl is no JSON"
        )
        json.loads((run / "run.json").read_text())
        require(not (run / "lock.json").exists(), "the lock stays behind")
        return "the same" if is_same else "sound"

    stems = [f"{file}/{kind}" for file in DAMAGED for kind in kinds_for(file) if kind != "exchange"]
    return Format("resume", stems, play)


def _path_of(file: str, run: Path) -> Path:
    """Return the file to damage, created if a finished run has none."""
    if file == "state.json":
        return sorted((run / "checkpoints").iterdir())[-1] / file
    if file == "lock.json":
        holder = {"host": socket.gethostname(), "process": 4_000_000, "since": "2026-01-01 00:00:00"}
        (run / file).write_text(json.dumps(holder))
    if file == "prepared_at.json":
        (run / "store").rename(run.parent / "store")
        (run / file).write_text(json.dumps({"folder": str((run.parent / "store").resolve())}))
    return run / file


# links, pipes, devices, folders

Entry = Callable[[Path, CaseFolders, Random], None]


def _link(target: str) -> Entry:
    def make(path: Path, place: CaseFolders, draw: Random) -> None:
        path.symlink_to({"canary": place.outside / "canary", "folder": place.outside / "folder", "itself": path}.get(
            target, Path(target)
        ))  # fmt: skip

    return make


def _link_to_copy(path: Path, place: CaseFolders, draw: Random) -> None:
    """A link to what was there: it can be read as before."""
    path.symlink_to(path.with_name(f"{path.name}.moved"))


def _pipe(path: Path, place: CaseFolders, draw: Random) -> None:
    os.mkfifo(path)


def _socket(path: Path, place: CaseFolders, draw: Random) -> None:
    here = os.getcwd()
    os.chdir(path.parent)  # names of sockets are short
    with socket.socket(socket.AF_UNIX) as opened:
        opened.bind(path.name)
    os.chdir(here)


def _folder(path: Path, place: CaseFolders, draw: Random) -> None:
    path.mkdir()
    if draw.random() < 0.5:
        (path / "inside").write_bytes(b"x")


def _file(path: Path, place: CaseFolders, draw: Random) -> None:
    path.write_bytes(draw.choice([b"", b"x", b"{}\n", b"\x1b[31m\n"]))


def _unreadable(path: Path, place: CaseFolders, draw: Random) -> None:
    path.with_name(f"{path.name}.moved").rename(path)
    path.chmod(0)


ENTRIES: dict[str, Entry] = {
    "link_outside": _link("canary"),
    "link_to_folder_outside": _link("folder"),
    "link_to_itself": _link("itself"),
    "link_to_nothing": _link("nowhere"),
    "link_to_zeros": _link("/dev/zero"),
    "link_to_full": _link("/dev/full"),
    "link_to_copy": _link_to_copy,
    "pipe": _pipe,
    "socket": _socket,
    "folder": _folder,
    "file": _file,
    "unreadable": _unreadable,
}
# What replaces a file, by the verb that reads or writes it.
VERBS: dict[str, tuple[list[str], list[str]]] = {
    "resume": (
        [*RESUME, "--set", "training.max_updates=7"],
        ["run.json", "metrics.jsonl", "lock.json", "tensorboard", "checkpoints", "checkpoints/update-00000006",
         "checkpoints/update-00000006/state.json", "checkpoints/update-00000006/manifest.json",
         "checkpoints/update-00000006/model.safetensors", "checkpoints/update-00000008", "store", "store/train",
         "store/prepared.json", "store/dev.src", "store/train/src.ids.npy", "model", "model/README.md",
         "prepared_at.json",
         "not-finite", "model/config.json"],
    ),
    "average": (
        ["average", "run", "--device", "cpu", "--last", "1"],
        ["run.json", "model", "model/config.json", "checkpoints/update-00000006/model.safetensors",
        "store/tokenizer.json"],
    ),
    "doctor": (
        ["doctor", "run"],
        ["run.json", "metrics.jsonl", "lock.json", "checkpoints", "checkpoints/update-00000006/state.json",
         "store/train/store.json", "store/dev.src", "model/tokenizer.json", "model/README.md", "prepared_at.json"],
    ),
    "doctor model": (["doctor", "run/model"], ["model/config.json", "model/manifest.json", "model/README.md"]),
    "doctor store": (["doctor", "run/store"], ["store/prepared.json", "store/dev.tgt",
    "store/train/src.offsets.npy"]),
    "translate": (
        ["translate", "run/model", "--device", "cpu", "--beam", "1"],
        ["model", "model/config.json", "model/manifest.json", "model/model.safetensors", "model/tokenizer.json",
         "model/README.md"],
    ),
    "model": (["model", "run/model"], ["model/config.json", "model", "model/manifest.json"]),
    "evaluate": (
        ["evaluate", "run/model", "--device", "cpu", "--beam", "1", "--src", "run/store/test.src", "--ref",
         "run/store/test.tgt", "--out", "run/out"],
        ["store/test.src", "store/test.tgt", "out", "out.part"],
    ),
    "score": (["score", "--ref", "run/store/test.tgt", "run/store/test.tgt"], ["store/test.tgt"]),
    "translate file": (
        ["translate", "run/model", "--device", "cpu", "--in", "run/store/test.src", "--out", "run/out"],
        ["store/test.src", "out", "out.part"],
    ),
    "train on store": (
        ["train", "small.toml", "--store", "run/store", "--out", "run/new", "--device", "cpu", "--set",
         "training.max_updates=1"],
        ["store", "store/manifest.json", "store/train/manifest.json", "new", "new/run.json", "new/lock.json",
         "new/metrics.jsonl", "new/store", "new/checkpoints"],
    ),
    "prepare": (["prepare", "small.toml", "--out", "run/new"], ["new", "../text/train.en", "../small.toml"]),
    "attention": (
        ["attention", "run/model", "--src", "A dog.", "--out", "run/a.html", "--device", "cpu"],
        ["a.html", ".a.html.tmp", "model/tokenizer.json"],
    ),
}  # fmt: skip


# Those of them that the command line names, or the recipe: somebody may want them to be pipes.
NAMED = frozenset({"out", "a.html", "store/test.src", "store/test.tgt", "../text/train.en", "../small.toml"})


# Those that somebody may have on a larger disk.
LINKABLE = frozenset(
    {"new", "store", "checkpoints", "tensorboard", "model", "not-finite", "new/store", "new/checkpoints"}
)


def _with_elsewhere(place: CaseFolders) -> CaseFolders:
    """The same place, where links lead to a folder of the case's own: they may be written through."""
    elsewhere = place.folder / "elsewhere"
    (elsewhere / "folder").mkdir(parents=True)
    for path in (elsewhere / "canary", elsewhere / "folder" / "canary"):
        path.write_bytes(b"canary")
    return replace(place, outside=elsewhere)


def entry_format(sources: Sources) -> Format:
    """Something else than a file in the place of each file."""

    weights = (sources.resumed(7) / "model" / "model.safetensors").read_bytes()

    def play(case: Case, place: CaseFolders) -> str:
        verb, entry, *file = case.parts
        shutil.copytree(sources.run, place.folder / "run")
        shutil.copytree(sources.text, place.folder / "text")
        shutil.copy(sources.recipe, place.folder / "small.toml")
        path = place.folder / "run" / "/".join(file)
        path = path.parent.resolve() / path.name
        path.parent.mkdir(exist_ok=True, parents=True)
        if path.exists():
            path.rename(path.with_name(f"{path.name}.moved"))
        elif entry in ("link_to_copy", "unreadable"):
            path.with_name(f"{path.name}.moved").write_bytes(b"")
        name = "/".join(file)
        ENTRIES[entry](path, _with_elsewhere(place) if name in NAMED | LINKABLE else place, case.draw())
        words, _ = VERBS[verb]
        # For whoever is at the other end, or for ever, as it should.
        waits = entry in ("pipe", "link_to_zeros", "link_to_full") and name in NAMED
        outcome = run_command(
            place,
            words,
            stdin=b"The dog sleeps.\n",
            speaks_on_stdout=verb.startswith("doctor"),
            stop_after_s=2.0 if waits else None,
            codes=(0, 1, 2, *((143,) if waits else ())),
        )
        if outcome.code == 143:
            return "stopped"
        if outcome.code:
            return outcome.word
        if verb == "resume":  # whatever it could not read, it made anew
            written = (place.folder / "run" / "model" / "model.safetensors").read_bytes()
            require(written == weights, "the model is another than that of the undamaged run")
        return "done"

    stems = [f"{verb}/{entry}/{file}" for verb, (_, files) in VERBS.items() for file in files for entry in ENTRIES]
    return Format("entry", stems, play)

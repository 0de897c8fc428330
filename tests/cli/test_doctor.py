"""``transduce doctor``: a finding for each kind of damage, none for sound input, and never a traceback."""

from __future__ import annotations

import json
import os
import random
import re
import shutil
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from commands import CommandLine
from said import naming, says
from transduce.corpora import generate_pairs, parallel_text
from transduce.files import write_manifest

pytestmark = pytest.mark.reliability

Finding = tuple[str, str, str]  # status, subject, message


@pytest.fixture
def examine(transduce: CommandLine) -> Callable[..., list[Finding]]:
    """Run ``doctor --json``, check its exit code and return the findings."""

    def call(*what: object) -> list[Finding]:
        outcome = transduce("doctor", *what, "--json")
        assert outcome.err == ""
        told = json.loads(outcome.out)
        assert told.keys() == {"findings", "problems"}
        found = [(entry["status"], entry["subject"], entry["message"]) for entry in told["findings"]]
        assert told["problems"] == sum(status == "problem" for status, _, _ in found)
        assert outcome.code == (1 if told["problems"] else 0)
        return found

    return call


def problems(found: list[Finding]) -> list[str]:
    return [f"{subject}: {message}" for status, subject, message in found if status == "problem"]


def notes(found: list[Finding]) -> list[str]:
    return [f"{subject}: {message}" for status, subject, message in found if status == "note"]


def one(messages: list[str], *facts: object) -> None:
    """Require exactly one message with all of these facts."""
    fitting = [message for message in messages if re.search(naming(*facts), message)]
    assert len(fitting) == 1, (facts, messages)


def test_the_installation(transduce: CommandLine, examine: Callable[..., list[Finding]], tmp_path: Path) -> None:
    found = examine()
    good = {subject: message for status, subject, message in found if status == "good"}
    assert good.keys() >= {"Python", "transduce", "torch", "numpy", "tokenizers", "safetensors", "sacrebleu"}
    assert good.keys() >= {"extras", "processor", "numbers on cpu", "text files", "processes"}
    assert torch.__version__.startswith(good["torch"])  # the build, "+cu130", is not always part of the version
    assert "fp32 to" in good["numbers on cpu"]
    lines = transduce("doctor", "--data", tmp_path).out.splitlines()
    statuses = [line.split(None, 1)[0] for line in lines[:-1]]
    assert set(statuses) <= {"good", "note", "problem"}
    assert says(lines[-1], statuses.count("problem") or "no", re.compile(r"\bproblems? found$"))
    assert any(says(line, re.compile("^good "), tmp_path, "transduce corpus list") for line in lines)
    one(problems(examine("--data", tmp_path / "no")), "--data", tmp_path / "no")


SOUND = "Der alte Hund schläft heute in seinem Korb und träumt.\n"


@pytest.mark.parametrize(
    ("line", "status", "facts"),
    [
        (b"caf\xe9 au lait", "problem", ["UTF-8"]),
        (b"a half \xed\xa0\xbd of a dog", "problem", ["surrogates"]),
        (b"nul \0 byte", "problem", ["control characters"]),
        (b"\x1b[1mbold", "problem", ["control characters"]),
        (b"lost \xef\xbf\xbd letter", "problem", ["U+FFFD"]),
        ("Mädchen".encode().decode("latin-1").encode(), "problem", ["mojibake"]),
        ("ein „Ärger“".encode().decode("cp1252", "ignore").encode(), "problem", ["mojibake"]),
        ("собака".encode().decode("cp1252", "ignore").encode(), "problem", ["mojibake"]),
        ("two\ufeff files".encode(), "problem", ["byte-order mark", "U+FEFF"]),
        ("one\u2028two".encode(), "note", ["separator"]),
        ("one\u0085two".encode(), "note", ["separator"]),
        (b"one\rtwo", "note", ["separator"]),
        (b"Tom &amp; Jerry", "note", ["HTML"]),
        (b"a <b>bold</b> move", "note", ["HTML"]),
        (b"word " * 1001, "note", ["5,000"]),
        ("Собака спит".encode(), "note", ["Cyrillic", 59, "Latin"]),
        ("犬が寝ている".encode(), "note", ["Chinese", "Japanese"]),
        (b"ends like this\r", "note", ["carriage return", 60]),
        (b"", "note", ["blank"]),
    ],
)
def test_odd_lines(
    examine: Callable[..., list[Finding]], tmp_path: Path, line: bytes, status: str, facts: list[object]
) -> None:
    path = tmp_path / "text.de"
    path.write_bytes(SOUND.encode() + line + b"\n" + SOUND.encode() * 58)
    found = [entry for entry in examine(path) if entry[0] != "good"]
    assert [(entry[0], entry[1]) for entry in found] == [(status, str(path))], found
    assert says(found[0][2], "1", "(line 2)", *facts)


def test_sound_lines_of_many_languages(examine: Callable[..., list[Finding]], tmp_path: Path) -> None:
    lines = [
        "Ângela não lê «À côté».",
        "Ärger, „Ä“ – Übergröße…",
        "5 < 6 & 7 > 3",
        "Það er ïð",
        "日本 (Japan) is far 🐕",
    ]
    path = tmp_path / "text"
    path.write_text("\n".join(lines), encoding="utf-8")
    ((status, subject, message),) = examine(path)
    assert (status, subject) == ("good", str(path))
    assert says(message, 5)


def test_all_oddities_are_counted_with_their_first_lines(examine: Callable[..., list[Finding]], tmp_path: Path) -> None:
    path = tmp_path / "text"
    path.write_bytes(b"\xef\xbb\xbf" + b"a dog and a \xff\r\n" * 5 + b"a cat, but no more than \x01\r\n" * 4)
    found = examine(path)
    one(problems(found), 5, "UTF-8", "1, 2, 3")
    one(problems(found), 4, "NUL", "6, 7, 8")
    one(notes(found), "byte-order mark")
    one(notes(found), "carriage return")
    assert len(found) == 5


def write_pair(folder: Path, pairs: list[tuple[str, str]]) -> tuple[Path, Path]:
    src, tgt = folder / "a.en", folder / "a.de"
    src.write_text("".join(f"{line}\n" for line, _ in pairs), encoding="utf-8")
    tgt.write_text("".join(f"{line}\n" for _, line in pairs), encoding="utf-8")
    return src, tgt


def sound_pairs(n: int = 100) -> list[tuple[str, str]]:
    return [(f"The dog has {i} bones.", f"Der Hund hat {i} Knochen.") for i in range(n)]


def test_pairs(examine: Callable[..., list[Finding]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # whose name has numbers
    pairs = sound_pairs()
    src, tgt = write_pair(Path(), pairs)
    assert [status for status, _, _ in examine(src, tgt)] == ["good", "good"]
    pairs[3], pairs[4], pairs[5] = ("", "leer"), ("empty", " "), ("", "")
    pairs[6], pairs[7], pairs[8] = ("yes", "ja " * 40), ("Berlin 1999", "Berlin 1999"), pairs[9]
    src, tgt = write_pair(Path(), pairs)
    found = examine(src, tgt)
    assert problems(found) == []
    one(notes(found), re.compile(f"^{src}: "), 1, tgt, 4, "blank")
    one(notes(found), re.compile(f"^{tgt}: "), 1, src, 5, "blank")
    one(notes(found), 1, 6, "blank")
    one(notes(found), 1, 9, 7)
    one(notes(found), 1, 8, "same")
    one(notes(found), 1, 10)
    assert found[-1][:2] == ("good", f"{src} with a.de")
    assert says(found[-1][2], 100, 95)


def test_what_is_odd_on_many_lines_is_a_problem(examine: Callable[..., list[Finding]], tmp_path: Path) -> None:
    src, tgt = write_pair(tmp_path, [*sound_pairs(), *(("hello", f"guten Tag {i} " * 12) for i in range(10))])
    one(problems(examine(src, tgt)), 10, 9)
    src, tgt = write_pair(tmp_path, [*sound_pairs(), *((f"ok {i}", f"собака {i}") for i in range(10))])
    one(problems(examine(src, tgt)), 10, "Cyrillic")


def test_files_that_do_not_align_are_read_to_their_ends(examine: Callable[..., list[Finding]], tmp_path: Path) -> None:
    src, tgt = write_pair(tmp_path, sound_pairs())
    tgt.write_bytes(tgt.read_bytes() + b"more\nand \xff\n")
    found = examine(src, tgt)
    one(problems(found), src, 100, tgt, 102)
    one(problems(found), tgt, 1, "UTF-8", "line 102")
    src.write_text("")
    one(problems(examine(src, tgt)), re.compile(f"^{src}: "), "empty")


def test_three_files_are_a_pair_and_one(examine: Callable[..., list[Finding]], tmp_path: Path) -> None:
    src, tgt = write_pair(tmp_path, sound_pairs(3))
    third = tmp_path / "c.fr"
    third.write_text("un chien\n")
    assert [subject for _, subject, _ in examine(src, tgt, third)] == [str(src), f"{src} with a.de", str(third)]


def test_columns(examine: Callable[..., list[Finding]], tmp_path: Path) -> None:
    path = tmp_path / "a.txt"  # known by its lines
    lines = ["\t".join(pair) for pair in sound_pairs()]
    path.write_bytes("\n".join([*lines, "no tab", "two\ttabs\there"]).encode() + b"\nbad \xff\tschlecht\n")
    found = examine(path)
    assert found[0][:2] == ("good", str(path))
    assert says(found[0][2], "columns")
    one(problems(found), 2, "tab", "101, 102")
    one(problems(found), f"{path} (source)", 1, "UTF-8", 103)


def test_what_is_no_text(examine: Callable[..., list[Finding]], tmp_path: Path) -> None:
    cases = {
        "utf16.txt": ("Hund\n".encode("utf-16"), "UTF-16"),
        "numbers": (bytes(range(256)) * 20, "not text"),
        "squeezed": (b"\x1f\x8b\x08" + bytes(20), ".gz"),
        "plain.gz": (b"just text\n", "after line 0"),
        "cut.xz": (b"\xfd7zXZ\0\0\4", "after line 0"),
    }
    for name, (content, words) in cases.items():
        (tmp_path / name).write_bytes(content)
        one(problems(examine(tmp_path / name)), name, words)


def test_what_nobody_knows(examine: Callable[..., list[Finding]], tmp_path: Path) -> None:
    one(problems(examine(tmp_path)), "empty")
    (tmp_path / "letter.doc").write_text("dear")
    one(problems(examine(tmp_path)), "letter.doc")
    one(problems(examine(tmp_path / "no" / "such")), tmp_path / "no" / "such")
    one(problems(examine("multi3k")), "multi3k", "multi30k")
    one(problems(examine("")), "empty")


def test_names_of_files_that_no_terminal_shows(transduce: CommandLine, tmp_path: Path) -> None:
    name = os.fsdecode(b"caf\xe9\n.txt")
    try:
        (tmp_path / name).write_text("a dog\n")
    except (OSError, UnicodeError):
        pytest.skip("no such names here")
    for option in ([], ["--json"]):
        outcome = transduce("doctor", tmp_path / name, *option)
        assert outcome.code == 0
        assert "caf\\udce9\\n.txt" in outcome.out.replace("\\\\", "\\")


def test_a_corpus_folder_and_a_data_folder(examine: Callable[..., list[Finding]], tmp_path: Path) -> None:
    folder = tmp_path / "data" / "mine"
    folder.mkdir(parents=True)
    for language, word in {"en": "dog", "de": "Hund", "fr": "chien"}.items():
        (folder / f"train.{language}").write_text(f"{word} one\n{word} two &lt;\n")
        (folder / f"dev.en-de.{language}").write_text(f"{word}\n")
    found = examine(folder)
    assert found[0][:2] == ("good", str(folder))
    assert says(found[0][2], "dev.en-de", "train")
    one(notes(found), "train.de", 1, "HTML")  # once, although it is paired with two others
    assert sum(message.startswith("2 pairs") for _, _, message in found) == 2
    one(notes(examine(folder.parent)), "data folder", "mine")
    found = examine("mine", "--data", folder.parent)
    assert found[0][:2] == ("good", "mine")
    assert str(folder / "dev.en-de.de") in found[-1][1]
    assert problems(found) == problems(examine("grammar")) == []


def test_treebanks(examine: Callable[..., list[Finding]], tmp_path: Path) -> None:
    trees, recipe = tmp_path / "trees.ptb", tmp_path / "parser.toml"
    trees.write_text("(TOP (S (NP (PRP He)) (VP (VBZ sleeps))))\n( (S (VP (VB Go))))\n")
    recipe.write_text(
        '[model]\nembeddings = "separate"\n'
        f'[data]\ncorpus = "files"\ntask = "parsing"\nshared_vocabulary = false\ntrain_trees = "{trees}"\n'
    )
    ((status, subject, told),) = examine(trees)
    assert (status, subject) == ("good", str(trees))
    assert says(told, 2, 3, 2)
    bank = tmp_path / "data" / "trees" / "gum"
    bank.mkdir(parents=True)
    (bank / "train.ptb").write_text(trees.read_text())
    for of_bank in (examine("gum", "--data", tmp_path / "data"), examine(bank)):
        assert [status for status, _, _ in of_bank] == ["good", "good"]
        assert of_bank[1] == ("good", str(bank / "train.ptb"), told)
    assert problems(examine("digits")) == []
    found = examine(recipe)
    assert ("good", "files train", told) in found
    assert "parsing en from files" in found[0][2]
    one(notes(found), "no dev")
    trees.write_text("(TOP (S (NP (PRP He)) (VP (VBZ sleeps)))\n")
    one(problems(examine(trees)), "line 1", "column 1")
    one(problems(examine(recipe)), "files train", "line 1, column 1")
    trees.write_text("(TOP (NN dog) (. !))\n")
    one(notes(examine(trees)), "constituents")
    trees.write_text("")
    one(problems(examine(trees)), "no tree")
    trees.unlink()
    assert len(problems(examine(recipe))) == 1
    recipe.write_text(recipe.read_text().replace('"files"', '"no-such-bank"').replace("train_trees", "test_trees"))
    one(problems(examine(recipe, "--data", tmp_path)), "no-such-bank", "gum")


def test_recipes(examine: Callable[..., list[Finding]], tmp_path: Path) -> None:
    src, tgt = write_pair(tmp_path, sound_pairs())
    recipe = tmp_path / "r.toml"
    recipe.write_text(f'[data]\ncorpus = "files"\ntrain_src = "{src}"\ntrain_tgt = "{tgt}"\n')
    found = examine(recipe)
    assert problems(found) == []
    assert says(found[0][2], "6 + 6", 512, "en to de", "files", "100,000")
    one(notes(found), "no dev")
    one(notes(found), "no test")
    recipe.write_text(recipe.read_text() + f'dev_tsv = "{tmp_path / "no.tsv"}"\n[training]\nmax_updates = 100\n')
    found = examine(recipe)
    one(problems(found), "no.tsv", "No such file")
    one(notes(found), "warm-up")
    assert says(found[-1][2], 100, 100)
    recipe.write_text('[data]\ncorpus = "files"\n')
    one(problems(examine(recipe)), "data.train_src")
    recipe.write_text("[data]\ncorpsu = 3\n")
    one(problems(examine(recipe)), "corpsu", "corpus")
    recipe.write_text('[data]\ncorpus = "multi30k"\n')
    one(problems(examine(recipe, "--data", tmp_path)), "transduce corpus get multi30k")


def test_a_sound_run(transduce: CommandLine, micro_run: Path) -> None:
    before = {path: path.read_bytes() for path in micro_run.rglob("*") if path.is_file()}
    outcome = transduce("doctor", micro_run)
    assert outcome.code == 0, outcome.out
    assert says(outcome.out, re.compile("^good "), micro_run, "1 + 2", 32, "en to de", "grammar", 30)
    assert says(outcome.out, re.compile("^good "), "update-00000030")
    assert "'A dog sleeps.'" in outcome.out  # after thirty updates the translation may be empty
    assert says(outcome.out.splitlines()[-1], "no problem")
    assert {path: path.read_bytes() for path in micro_run.rglob("*") if path.is_file()} == before


def test_a_damaged_run(examine: Callable[..., list[Finding]], own_run: Path) -> None:
    """Each damaged part is reported, whatever else is damaged."""
    (own_run / "run.json").write_text("{")
    newest = sorted((own_run / "checkpoints").iterdir())[-1]
    (newest / "optimizer.safetensors").unlink()
    (own_run / "store" / "train" / "src.ids.npy").write_bytes(b"short")
    with (own_run / "metrics.jsonl").open("a") as stream:
        stream.write('nonsense\n{"kind": "update", "update": 31, "loss_nats": null}\n{"kind": "upd')
    (own_run / "model" / "config.json").write_text("[]")
    (own_run / "checkpoints" / ".update-00000040.99.tmp").mkdir()
    found = examine(own_run)
    told = problems(found)
    one(told, "run.json", "JSON")
    one(told, newest.name, "optimizer.safetensors")
    one(told, newest.name, "update-00000020")
    one(told, "src.ids.npy", 5)
    one(told, "metrics.jsonl", 1, "line 10")
    one(told, "metrics.jsonl", 1, "loss", "line 11")
    one(told, "config.json", 2)
    one(notes(found), "metrics.jsonl")
    one(notes(found), 1, ".update-00000040.99.tmp")


def test_the_text_of_a_run(examine: Callable[..., list[Finding]], own_run: Path) -> None:
    elsewhere = own_run.parent / "elsewhere"
    (own_run / "store").rename(elsewhere)
    one(problems(examine(own_run)), own_run / "store")
    (own_run / "prepared_at.json").write_text(json.dumps({"folder": str(elsewhere)}))
    assert problems(examine(own_run)) == []
    values = json.loads((own_run / "run.json").read_text())
    (own_run / "run.json").write_text(json.dumps(values | {"data_fingerprint": "0" * 64, "torch": "1.0"}))
    found = examine(own_run)
    one(problems(found), elsewhere)
    one(notes(found), "torch 1.0")
    (own_run / "prepared_at.json").write_text("{}")
    one(problems(examine(own_run)), "prepared_at.json")


def test_the_lock_of_a_run(examine: Callable[..., list[Finding]], own_run: Path) -> None:
    lock, gone = own_run / "lock.json", subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    for host, process, facts in (
        ("elsewhere", 7, [7, "elsewhere", 2026, "--break-lock"]),
        (socket.gethostname(), os.getpid(), [os.getpid(), "change"]),
        (socket.gethostname(), gone.pid, [gone.pid, "ended"]),
        (None, None, []),
    ):
        lock.write_text(json.dumps({"host": host, "process": process, "since": "2026"}))
        one(notes(examine(own_run)), lock, *facts)
    lock.write_text("")
    one(notes(examine(own_run)), lock)


def test_too_little_room(
    examine: Callable[..., list[Finding]], micro_run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    usage = shutil.disk_usage(micro_run)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage._replace(free=1000))
    one(problems(examine(micro_run)), "0.0 GB", "checkpoint", 2)


def test_checkpoints(examine: Callable[..., list[Finding]], own_run: Path) -> None:
    folder = own_run / "checkpoints"
    newest = sorted(folder.iterdir())[-1]
    assert [status for status, _, _ in examine(newest)] == ["good"]
    weights = load_file(newest / "model.safetensors")
    weights[min(weights)].view(-1)[0] = torch.nan
    save_file(weights, newest / "model.safetensors")
    one(problems(examine(newest)), "model.safetensors", newest)
    write_manifest(newest)
    one(problems(examine(newest)), 1, "finite", min(weights))
    assert "update-00000020" in problems(examine(folder))[-1]
    for path in folder.iterdir():
        (path / "manifest.json").unlink()
    one(problems(examine(folder)), folder, "no checkpoint")


def test_models(examine: Callable[..., list[Finding]], own_model: Path) -> None:
    found = examine(own_model)
    assert problems(found) == []
    assert says(found[0][2], "model folder", "en-de", "1 + 2", 32)
    (own_model / "README.md").unlink()
    one(notes(examine(own_model)), "README.md")
    weights = load_file(own_model / "model.safetensors")
    weights[min(weights)].view(-1)[0] = torch.inf
    save_file(weights, own_model / "model.safetensors")
    write_manifest(own_model, exempt=["README.md"])
    one(problems(examine(own_model)), "finite", min(weights))
    (own_model / "model.safetensors").write_bytes(b"")
    write_manifest(own_model, exempt=["README.md"])
    one(problems(examine(own_model)), "model.safetensors")


def test_prepared_text_and_stores(examine: Callable[..., list[Finding]], own_run: Path) -> None:
    prepared, n_dev = own_run / "store", parallel_text.GRAMMAR_DEV_PAIRS
    found = examine(prepared)
    assert problems(found) == []
    assert says(found[0][2], "prepared text", "en-de", "grammar", 400, 600)
    found = examine(prepared / "dev")
    assert [status for status, _, _ in found] == ["good"]
    assert says(found[0][2], "token store", n_dev)
    text = (prepared / "dev.src").read_bytes()
    (prepared / "dev.src").write_bytes(text + b"one more \xff\n")
    found = examine(prepared)
    one(problems(found), "dev.src", n_dev + 1, "dev.tgt", n_dev)
    one(problems(found), "UTF-8", f"line {n_dev + 1}")
    (prepared / "dev.src").write_bytes(text)
    (prepared / "dev" / "store.json").write_text("{}")
    one(problems(examine(prepared / "dev")), "store.json", 2)
    assert len(problems(examine(prepared))) == 1
    assert len(problems(examine(own_run))) == 1


def test_prepared_correction_has_lines_that_stay_as_they_are(
    transduce: CommandLine, examine: Callable[..., list[Finding]], tmp_path: Path
) -> None:
    text, recipe = tmp_path / "text.tsv", tmp_path / "my.toml"
    text.write_text("".join(f"{line}\t{line}\n" for line, _ in spoken_pairs()), encoding="utf-8")
    files = "".join(f"{split}_tsv = '{text}'\n" for split in ("train", "dev"))
    data = 'corpus = "files"\ndirection = "en-en"\ndrop_identical = false\nvocab_size = 300\n'
    recipe.write_text(f'preset = "tiny"\n[data]\n{data}{files}', encoding="utf-8")
    outcome = transduce("prepare", recipe, "--out", tmp_path / "store")
    assert outcome.code == 0, outcome.err
    assert problems(examine(tmp_path / "store")) == []


@pytest.mark.parametrize("damage", ["cut", "nonsense", "folder"])
def test_nothing_that_is_broken_breaks_the_doctor(
    examine: Callable[..., list[Finding]], own_run: Path, damage: str
) -> None:
    """Damage to a single file of a run gives a finding, no traceback."""
    for path in sorted(path for path in own_run.rglob("*.*") if path.suffix in (".json", ".jsonl", ".npy", ".src")):
        content = path.read_bytes()
        match damage:
            case "cut":
                path.write_bytes(content[: len(content) // 2])
            case "nonsense":
                path.write_bytes(b"\xff\0[{" * 9)
            case "folder":
                path.unlink()
                path.mkdir()
        found = examine(path.parent)
        assert [status for status, _, _ in found if status != "good"], path
        if path.is_dir():
            path.rmdir()
        path.write_bytes(content)


def spoken_pairs(split: str = "train", n: int = 300) -> list[tuple[str, str]]:
    """English and German sentences of many lengths."""
    return [(pair.en, pair.de) for pair in generate_pairs("dev" if split == "dev" else "train", n_pairs=n, seed=5)]


def test_shifted_and_swapped_files(examine: Callable[..., list[Finding]], tmp_path: Path) -> None:
    pairs = spoken_pairs()
    src, tgt = write_pair(tmp_path, pairs)
    assert problems(examine(src, tgt)) == []
    targets = [line for _, line in pairs]
    write_pair(tmp_path, list(zip([line for line, _ in pairs], [*targets[:150], *targets[151:], "Ende."], strict=True)))
    one(problems(examine(src, tgt)), f"{src} with a.de", re.compile(r"\b15\d\b"), "a.de", "a.en", 1)
    write_pair(tmp_path, [(line, other) for other, line in pairs])
    one(problems(examine(src, tgt)), re.compile(r"\ba\.en\b.*\bGerman \(de\).*\ba\.de\b.*\bEnglish \(en\)"))
    random.Random(1).shuffle(targets)
    write_pair(tmp_path, list(zip([line for line, _ in pairs], targets, strict=True)))
    one(problems(examine(src, tgt)), f"{src} with a.de", "translations")


def test_another_language_than_the_name_says(examine: Callable[..., list[Finding]], tmp_path: Path) -> None:
    src, _ = write_pair(tmp_path, spoken_pairs())
    french = (tmp_path / "a.de").rename(tmp_path / "a.fr")
    one(problems(examine(src, french)), re.compile(r"\ba\.fr\b.*\bGerman \(de\).*\bFrench \(fr\)"))


def test_later_pairs_are_compared_with_the_first(examine: Callable[..., list[Finding]], tmp_path: Path) -> None:
    for name in ("train", "dev"):
        (tmp_path / name).mkdir()
    dev = [(f"Once more: {src}", f"Noch einmal: {tgt}") for src, tgt in spoken_pairs("dev", 100)]
    train = write_pair(tmp_path / "train", spoken_pairs())
    assert problems(examine(*train, *write_pair(tmp_path / "dev", dev))) == []
    found = examine(*train, *write_pair(tmp_path / "dev", [*dev, *spoken_pairs()[:9]]))
    one(problems(found), "9 of 109", f"{train[0]} with a.de", 9, 101, 1)
    found = examine(*train, *write_pair(tmp_path / "dev", [(tgt, src) for src, tgt in dev]))
    one(problems(found), f"{train[0]} with a.de", "swapped")


def test_recipes_with_leaking_and_foreign_text(examine: Callable[..., list[Finding]], tmp_path: Path) -> None:
    (tmp_path / "dev").mkdir()
    src, tgt = write_pair(tmp_path, [*spoken_pairs(), *[("a dog", "ein Hund"), ("A dog!", "ein Hund")]])
    dev_src, dev_tgt = write_pair(tmp_path / "dev", spoken_pairs()[:50])
    recipe = tmp_path / "r.toml"
    data = f'[data]\ncorpus = "files"\ntrain_src = "{src}"\ntrain_tgt = "{tgt}"\n'
    recipe.write_text(data + f'dev_src = "{dev_src}"\ndev_tgt = "{dev_tgt}"\ndirection = "en-ge"\n')
    found = examine(recipe)
    one(problems(found), "50 of 50", f"{src} with a.de")
    one(notes(found), "direction = 'en-ge'", "'ge'", "ISO 639-1", "'de'", "German")
    one(notes(found), 1, "line 302")
    (tmp_path / "memory.tmx").write_text('<?xml version="1.0"?>\n<tmx version="1.4">\n')
    recipe.write_text(data.replace("a.de", "memory.tmx"))
    told = problems(examine(recipe))
    assert len(told) == 2  # the recipe cannot be used, and the file is why
    assert all(says(each, "memory.tmx", "TMX") for each in told)
    one(problems(examine(tmp_path / "memory.tmx")), "TMX")

"""What the doctor finds: each kind of damage in its words, nothing where all is well, and never a traceback."""

from __future__ import annotations

import json
import os
import random
import shutil
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

from transduce.corpora import generate_pairs
from transduce.files import write_manifest

pytestmark = pytest.mark.reliability

CommandLine = Callable[..., Any]
Finding = tuple[str, str, str]  # status, subject, message


@pytest.fixture
def examine(transduce: CommandLine) -> Callable[..., list[Finding]]:
    """What ``doctor --json`` finds; its exit code goes with it."""

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


def one(messages: list[str], *words: str) -> None:
    """There is one message with all these words in it."""
    fitting = [message for message in messages if all(word in message for word in words)]
    assert len(fitting) == 1, (words, messages)


def test_the_installation(transduce: CommandLine, examine: Callable[..., list[Finding]], tmp_path: Path) -> None:
    found = examine()
    good = {subject: message for status, subject, message in found if status == "good"}
    assert good.keys() >= {"Python", "transduce", "torch", "numpy", "tokenizers", "safetensors", "sacrebleu"}
    assert good.keys() >= {"extras", "processor", "numbers on cpu", "text files", "processes"}
    assert torch.__version__.startswith(good["torch"])  # the build, "+cu130", is not always part of the version
    assert "fp32 to" in good["numbers on cpu"]
    lines = transduce("doctor", "--data", tmp_path).out.splitlines()
    assert lines[-1] in ("no problem found", "1 problem found") or lines[-1].endswith(" problems found")
    assert all(line.split(None, 1)[0] in ("good", "note", "problem") for line in lines[:-1])
    assert f"good    data folder {tmp_path}: corpora: none yet; transduce corpus list names them" in lines
    one(problems(examine("--data", tmp_path / "no")), "--data names", "not a folder")


SOUND = "Der alte Hund schläft heute in seinem Korb und träumt.\n"


@pytest.mark.parametrize(
    ("line", "status", "words"),
    [
        (b"caf\xe9 au lait", "problem", "1 line with bytes that are not UTF-8 (line 2); "),
        (b"a half \xed\xa0\xbd of a dog", "problem", "lone surrogates"),
        (b"nul \0 byte", "problem", "control characters"),
        (b"\x1b[1mbold", "problem", "control characters"),
        (b"lost \xef\xbf\xbd letter", "problem", "U+FFFD"),
        ("Mädchen".encode().decode("latin-1").encode(), "problem", "read by another table"),
        ("ein „Ärger“".encode().decode("cp1252", "ignore").encode(), "problem", "read by another table"),
        ("собака".encode().decode("cp1252", "ignore").encode(), "problem", "read by another table"),
        ("two\ufeff files".encode(), "problem", "byte-order mark (U+FEFF) that is not at the start"),
        ("one\u2028two".encode(), "note", "1 line with a separator inside that other programs take for a line end"),
        ("one\u0085two".encode(), "note", "separator inside"),
        (b"one\rtwo", "note", "separator inside"),
        (b"Tom &amp; Jerry", "note", "HTML entities"),
        (b"a <b>bold</b> move", "note", "HTML entities or tags"),
        (b"word " * 1001, "note", "longer than 5,000 characters"),
        ("Собака спит".encode(), "note", "1 line in Cyrillic script, while 59 are in Latin (line 2)"),
        ("犬が寝ている".encode(), "note", "in Chinese or Japanese script"),
        (b"ends like this\r", "note", "1 line of 60 with a carriage return at the end (line 2)"),
        (b"", "note", "1 blank line (line 2)"),
    ],
)
def test_odd_lines(examine: Callable[..., list[Finding]], tmp_path: Path, line: bytes, status: str, words: str) -> None:
    path = tmp_path / "text.de"
    path.write_bytes(SOUND.encode() + line + b"\n" + SOUND.encode() * 58)
    found = [entry for entry in examine(path) if entry[0] != "good"]
    assert [(entry[0], entry[1]) for entry in found] == [(status, str(path))], found
    assert words in found[0][2]


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
    assert examine(path) == [("good", str(path), "5 lines of text")]


def test_all_oddities_are_counted_with_their_first_lines(examine: Callable[..., list[Finding]], tmp_path: Path) -> None:
    path = tmp_path / "text"
    path.write_bytes(b"\xef\xbb\xbf" + b"a dog and a \xff\r\n" * 5 + b"a cat, but no more than \x01\r\n" * 4)
    found = examine(path)
    one(problems(found), "5 lines with bytes that are not UTF-8 (first at lines 1, 2, 3)")
    one(problems(found), "4 lines with NUL or other control characters (first at lines 6, 7, 8)")
    one(notes(found), "begins with a byte-order mark")
    one(notes(found), "every line ends with a carriage return")
    assert len(found) == 5


def write_pair(folder: Path, pairs: list[tuple[str, str]]) -> tuple[Path, Path]:
    src, tgt = folder / "a.en", folder / "a.de"
    src.write_text("".join(f"{line}\n" for line, _ in pairs), encoding="utf-8")
    tgt.write_text("".join(f"{line}\n" for _, line in pairs), encoding="utf-8")
    return src, tgt


def sound_pairs(n: int = 100) -> list[tuple[str, str]]:
    return [(f"The dog has {i} bones.", f"Der Hund hat {i} Knochen.") for i in range(n)]


def test_pairs(examine: Callable[..., list[Finding]], tmp_path: Path) -> None:
    pairs = sound_pairs()
    src, tgt = write_pair(tmp_path, pairs)
    assert [status for status, _, _ in examine(src, tgt)] == ["good", "good"]
    pairs[3], pairs[4], pairs[5] = ("", "leer"), ("empty", " "), ("", "")
    pairs[6], pairs[7], pairs[8] = ("yes", "ja " * 40), ("Berlin 1999", "Berlin 1999"), pairs[9]
    src, tgt = write_pair(tmp_path, pairs)
    found = examine(src, tgt)
    assert problems(found) == []
    one(notes(found), f"{src}: 1 line blank where {tgt} has text (line 4)")
    one(notes(found), f"{tgt}: 1 line blank where {src} has text (line 5)")
    one(notes(found), "1 pair blank on both sides (line 6)")
    one(notes(found), "1 pair with one side more than 9 times as long as the other (line 7)")
    one(notes(found), "1 pair with the same text on both sides (line 8)")
    one(notes(found), "1 pair that came before (line 10)")
    assert found[-1] == ("good", f"{src} with a.de", "100 pairs, of which cleaning keeps 95")


def test_what_is_odd_on_many_lines_is_a_problem(examine: Callable[..., list[Finding]], tmp_path: Path) -> None:
    src, tgt = write_pair(tmp_path, [*sound_pairs(), *(("hello", f"guten Tag {i} " * 12) for i in range(10))])
    one(problems(examine(src, tgt)), "10 pairs with one side more than 9 times as long")
    src, tgt = write_pair(tmp_path, [*sound_pairs(), *((f"ok {i}", f"собака {i}") for i in range(10))])
    one(problems(examine(src, tgt)), "10 lines in Cyrillic script", "another language?")


def test_files_that_do_not_align_are_read_to_their_ends(examine: Callable[..., list[Finding]], tmp_path: Path) -> None:
    src, tgt = write_pair(tmp_path, sound_pairs())
    tgt.write_bytes(tgt.read_bytes() + b"more\nand \xff\n")
    found = examine(src, tgt)
    one(problems(found), f"{src} has 100 lines, {tgt} 102; parallel files must align line by line")
    one(problems(found), f"{tgt}: 1 line with bytes that are not UTF-8 (line 102)")
    src.write_text("")
    one(problems(examine(src, tgt)), f"{src}: is empty")


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
    assert found[0] == ("good", str(path), "text in two columns, source TAB target")
    one(problems(found), "2 lines without exactly one tab (lines 101, 102)")
    one(problems(found), f"{path} (source): 1 line with bytes that are not UTF-8 (line 103)")


def test_what_is_no_text(examine: Callable[..., list[Finding]], tmp_path: Path) -> None:
    cases = {
        "utf16.txt": ("Hund\n".encode("utf-16"), "is UTF-16"),
        "numbers": (bytes(range(256)) * 20, "is no text"),
        "squeezed": (b"\x1f\x8b\x08" + bytes(20), "a name that ends in .gz"),
        "plain.gz": (b"just text\n", "cannot be read"),
        "cut.xz": (b"\xfd7zXZ\0\0\4", "cannot be read"),
    }
    for name, (content, words) in cases.items():
        (tmp_path / name).write_bytes(content)
        one(problems(examine(tmp_path / name)), name, words)


def test_what_nobody_knows(examine: Callable[..., list[Finding]], tmp_path: Path) -> None:
    one(problems(examine(tmp_path)), "nothing that transduce knows: it is empty")
    (tmp_path / "letter.doc").write_text("dear")
    one(problems(examine(tmp_path)), "it has letter.doc; name a run")
    one(problems(examine(tmp_path / "no" / "such")), "there is no such file or folder")
    one(problems(examine("multi3k")), "no text of this corpus", "did you mean multi30k?")
    one(problems(examine("")), "an empty name")


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
    assert found[0] == ("good", str(folder), "a folder of parallel text: dev.en-de, train")
    one(notes(found), "train.de: 1 line with HTML")  # once, though it is read with two others
    assert sum(message.startswith("2 pairs") for _, _, message in found) == 2
    one(notes(examine(folder.parent)), "a data folder, with text in mine")
    found = examine("mine", "--data", folder.parent)
    assert found[0] == ("good", "mine", "a corpus of your own")
    assert str(folder / "dev.en-de.de") in found[-1][1]
    assert problems(found) == problems(examine("grammar")) == []


def test_treebanks(examine: Callable[..., list[Finding]], tmp_path: Path) -> None:
    trees, recipe = tmp_path / "trees.ptb", tmp_path / "parser.toml"
    trees.write_text("(TOP (S (NP (PRP He)) (VP (VBZ sleeps))))\n( (S (VP (VB Go))))\n")
    recipe.write_text(
        '[model]\nembeddings = "separate"\n'
        f'[data]\ncorpus = "files"\ntask = "parsing"\nshared_vocabulary = false\ntrain_trees = "{trees}"\n'
    )
    told = "2 trees, 3 words, at most 2 words in one; brackets match"
    assert examine(trees) == [("good", str(trees), told)]
    found = examine(recipe)
    assert ("good", "files train", told) in found
    assert "trees of files" in found[0][2]
    one(notes(found), "there are no dev trees")
    trees.write_text("(TOP (S (NP (PRP He)) (VP (VBZ sleeps)))\n")
    one(problems(examine(trees)), "line 1, column 1", "never closed")
    one(problems(examine(recipe)), "files train", "line 1, column 1")
    trees.write_text("(TOP (NN dog) (. !))\n")
    one(notes(examine(trees)), "no tree has a constituent below its root")
    trees.write_text("")
    one(problems(examine(trees)), "holds no tree")
    trees.unlink()
    assert len(problems(examine(recipe))) == 1
    recipe.write_text(recipe.read_text().replace('"files"', '"no-such-bank"').replace("train_trees", "test_trees"))
    one(problems(examine(recipe, "--data", tmp_path)), "treebanks with a name: gum")


def test_recipes(examine: Callable[..., list[Finding]], tmp_path: Path) -> None:
    src, tgt = write_pair(tmp_path, sound_pairs())
    recipe = tmp_path / "r.toml"
    recipe.write_text(f'[data]\ncorpus = "files"\ntrain_src = "{src}"\ntrain_tgt = "{tgt}"\n')
    found = examine(recipe)
    assert problems(found) == []
    assert "a recipe: 6 + 6 layers of width 512, en-de of files, 100,000 updates" in found[0][2]
    one(notes(found), "there is no dev text")
    one(notes(found), "there is no test text")
    recipe.write_text(recipe.read_text() + f'dev_tsv = "{tmp_path / "no.tsv"}"\n[training]\nmax_updates = 100\n')
    found = examine(recipe)
    one(problems(found), "no.tsv cannot be read")
    one(notes(found), "before the learning rate has come to its peak")
    assert "100 pairs, of which cleaning keeps 100" in found[-1][2]
    recipe.write_text('[data]\ncorpus = "files"\n')
    one(problems(examine(recipe)), "there is no training text: set data.train_src")
    recipe.write_text("[data]\ncorpsu = 3\n")
    one(problems(examine(recipe)), "did you mean corpus?")
    recipe.write_text('[data]\ncorpus = "multi30k"\n')
    one(problems(examine(recipe, "--data", tmp_path)), "fetch it with: transduce corpus get multi30k")


def test_a_sound_run(transduce: CommandLine, micro_run: Path) -> None:
    before = {path: path.read_bytes() for path in micro_run.rglob("*") if path.is_file()}
    outcome = transduce("doctor", micro_run)
    assert outcome.code == 0, outcome.out
    assert f"good    {micro_run}: a run: 1 + 2 layers of width 32, en-de of grammar, 30 updates\n" in outcome.out
    assert "a run goes on from update-00000030" in outcome.out
    assert "'A dog sleeps.'" in outcome.out  # thirty updates may make nothing of it
    assert outcome.out.endswith("\nno problem found\n")
    assert {path: path.read_bytes() for path in micro_run.rglob("*") if path.is_file()} == before


def test_a_damaged_run(examine: Callable[..., list[Finding]], own_run: Path) -> None:
    """Each part is told of, whatever else is broken."""
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
    one(told, "run.json: is not valid JSON")
    one(told, f"{newest.name}: ", "has no optimizer.safetensors")
    one(told, f"the newest checkpoint, {newest.name}, cannot be used; a run goes on from update-00000020, the")
    one(told, "src.ids.npy has 5 bytes")
    one(told, "1 line with no record")
    one(told, "1 record whose loss or gradient is not a finite number")
    one(told, "config.json has 2 bytes")
    one(notes(found), "is torn")
    one(notes(found), "1 leftover of a process", ".update-00000040.99.tmp")


def test_the_text_of_a_run(examine: Callable[..., list[Finding]], own_run: Path) -> None:
    elsewhere = own_run.parent / "elsewhere"
    (own_run / "store").rename(elsewhere)
    one(problems(examine(own_run)), "the prepared text of this run is not there")
    (own_run / "prepared_at.json").write_text(json.dumps({"folder": str(elsewhere)}))
    assert problems(examine(own_run)) == []
    values = json.loads((own_run / "run.json").read_text())
    (own_run / "run.json").write_text(json.dumps(values | {"data_fingerprint": "0" * 64, "torch": "1.0"}))
    found = examine(own_run)
    one(problems(found), "is not the text that this run was begun with")
    one(notes(found), "begun with torch 1.0, here is")
    (own_run / "prepared_at.json").write_text("{}")
    one(problems(examine(own_run)), "prepared_at.json: should hold")


def test_the_lock_of_a_run(examine: Callable[..., list[Finding]], own_run: Path) -> None:
    lock, gone = own_run / "lock.json", subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    for host, process, words in (
        ("elsewhere", 7, "process 7 on elsewhere, since 2026, writes to this run; if it is gone, go on with: "),
        (socket.gethostname(), os.getpid(), "may change while it is examined"),
        (socket.gethostname(), gone.pid, "is gone; this holds nobody"),
        (None, None, "does not say who writes"),
    ):
        lock.write_text(json.dumps({"host": host, "process": process, "since": "2026"}))
        one(notes(examine(own_run)), str(lock), words)
    lock.write_text("")
    one(notes(examine(own_run)), "does not say who writes")


def test_too_little_room(
    examine: Callable[..., list[Finding]], micro_run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    usage = shutil.disk_usage(micro_run)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage._replace(free=1000))
    one(problems(examine(micro_run)), "0.0 GB free; a checkpoint has", "2 are kept")


def test_checkpoints(examine: Callable[..., list[Finding]], own_run: Path) -> None:
    folder = own_run / "checkpoints"
    newest = sorted(folder.iterdir())[-1]
    assert [status for status, _, _ in examine(newest)] == ["good"]
    weights = load_file(newest / "model.safetensors")
    weights[min(weights)].view(-1)[0] = torch.nan
    save_file(weights, newest / "model.safetensors")
    one(problems(examine(newest)), "model.safetensors is corrupt")
    write_manifest(newest)
    one(problems(examine(newest)), "1 tensor has numbers that are not finite", min(weights))
    assert "update-00000020" in problems(examine(folder))[-1]
    for path in folder.iterdir():
        (path / "manifest.json").unlink()
    one(problems(examine(folder)), "no checkpoint can be used")


def test_models(examine: Callable[..., list[Finding]], own_model: Path) -> None:
    found = examine(own_model)
    assert problems(found) == []
    assert "a model folder: en-de, 1 + 2 layers of width 32" in found[0][2]
    (own_model / "README.md").unlink()
    one(notes(examine(own_model)), "there is no model card")
    weights = load_file(own_model / "model.safetensors")
    weights[min(weights)].view(-1)[0] = torch.inf
    save_file(weights, own_model / "model.safetensors")
    write_manifest(own_model, exempt=["README.md"])
    one(problems(examine(own_model)), "not finite", min(weights))
    (own_model / "model.safetensors").write_bytes(b"")
    write_manifest(own_model, exempt=["README.md"])
    one(problems(examine(own_model)), "model.safetensors")


def test_prepared_text_and_stores(examine: Callable[..., list[Finding]], own_run: Path) -> None:
    prepared = own_run / "store"
    found = examine(prepared)
    assert problems(found) == []
    assert "prepared text: en-de of grammar, 400 symbols, 600 pairs" in found[0][2]
    found = examine(prepared / "dev")
    assert [status for status, _, _ in found] == ["good"]
    assert "a token store: 500 pairs" in found[0][2]
    text = (prepared / "dev.src").read_bytes()
    (prepared / "dev.src").write_bytes(text + b"one more \xff\n")
    found = examine(prepared)
    one(problems(found), "parallel files must align")
    one(problems(found), "not UTF-8 (line 501)")
    (prepared / "dev.src").write_bytes(text)
    (prepared / "dev" / "store.json").write_text("{}")
    one(problems(examine(prepared / "dev")), "store.json has 2 bytes")
    assert len(problems(examine(prepared))) == 1
    assert len(problems(examine(own_run))) == 1


@pytest.mark.parametrize("damage", ["cut", "nonsense", "folder"])
def test_nothing_that_is_broken_breaks_the_doctor(
    examine: Callable[..., list[Finding]], own_run: Path, damage: str
) -> None:
    """Every file of a run, damaged by itself: a finding, no traceback."""
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
    one(
        problems(examine(src, tgt)),
        f"{src} with a.de: from about line 15",
        "a.de lacks 1 line near there, or a.en has 1",
    )
    write_pair(tmp_path, [(line, other) for other, line in pairs])
    one(problems(examine(src, tgt)), "the sides are swapped: a.en looks like German (de) and a.de like English (en)")
    random.Random(1).shuffle(targets)
    write_pair(tmp_path, list(zip([line for line, _ in pairs], targets, strict=True)))
    one(problems(examine(src, tgt)), "the lines of a.en and a.de do not look like translations of each other")


def test_another_language_than_the_name_says(examine: Callable[..., list[Finding]], tmp_path: Path) -> None:
    src, _ = write_pair(tmp_path, spoken_pairs())
    french = (tmp_path / "a.de").rename(tmp_path / "a.fr")
    one(problems(examine(src, french)), "a.fr looks like German (de), not French (fr)")


def test_later_pairs_are_compared_with_the_first(examine: Callable[..., list[Finding]], tmp_path: Path) -> None:
    for name in ("train", "dev"):
        (tmp_path / name).mkdir()
    dev = [(f"Once more: {src}", f"Noch einmal: {tgt}") for src, tgt in spoken_pairs("dev", 100)]
    train = write_pair(tmp_path / "train", spoken_pairs())
    assert problems(examine(*train, *write_pair(tmp_path / "dev", dev))) == []
    found = examine(*train, *write_pair(tmp_path / "dev", [*dev, *spoken_pairs()[:9]]))
    one(problems(found), f"9 of 109 lines are in {train[0]} with a.de, too: 9 pairs (first: line 101 is line 1 there")
    found = examine(*train, *write_pair(tmp_path / "dev", [(tgt, src) for src, tgt in dev]))
    one(problems(found), f"its sides are swapped against those of {train[0]} with a.de")


def test_recipes_with_leaking_and_foreign_text(examine: Callable[..., list[Finding]], tmp_path: Path) -> None:
    (tmp_path / "dev").mkdir()
    src, tgt = write_pair(tmp_path, [*spoken_pairs(), *[("a dog", "ein Hund"), ("A dog!", "ein Hund")]])
    dev_src, dev_tgt = write_pair(tmp_path / "dev", spoken_pairs()[:50])
    recipe = tmp_path / "r.toml"
    data = f'[data]\ncorpus = "files"\ntrain_src = "{src}"\ntrain_tgt = "{tgt}"\n'
    recipe.write_text(data + f'dev_src = "{dev_src}"\ndev_tgt = "{dev_tgt}"\ndirection = "en-ge"\n')
    found = examine(recipe)
    one(problems(found), f"50 of 50 lines are in {src} with a.de, too: ", "leave these lines out of one of the two")
    one(notes(found), "direction = 'en-ge': 'ge' is no language code of ISO 639-1; did you mean 'de', German, or ")
    one(notes(found), "1 pair that came before but for case or punctuation (line 302)")
    (tmp_path / "memory.tmx").write_text('<?xml version="1.0"?>\n<tmx version="1.4">\n')
    recipe.write_text(data.replace("a.de", "memory.tmx"))
    told = problems(examine(recipe))
    assert len(told) == 2  # the recipe cannot be used, and the file is why
    assert all("memory.tmx" in each and "is TMX, a translation memory" in each for each in told)
    one(problems(examine(tmp_path / "memory.tmx")), "is TMX, a translation memory")

"""Text input from files and stdin, output to files and stdout."""

from __future__ import annotations

import gzip
import json
import lzma
import os
import re
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path

import pytest

from commands import CommandLine
from said import naming, says
from transduce.cli.text_output import line_writer, part_path
from transduce.config import SearchConfig
from transduce.errors import DataError
from transduce.files import open_in_place, write_text
from transduce.inference import ScoredText, Translation

VERB = import_module("transduce.cli.translate")  # the package has a function of that name

PACK: dict[str, Callable[[bytes], bytes]] = {"": bytes, ".gz": gzip.compress, ".xz": lzma.compress}
UNPACK: dict[str, Callable[[bytes], bytes]] = {"": bytes, ".gz": gzip.decompress, ".xz": lzma.decompress}
SOURCE = "The dog sleeps.\n\nA cat.\n"


@pytest.mark.parametrize("suffix", ["", ".gz", ".xz"])
def test_translate_from_file_to_file(transduce: CommandLine, micro_model: Path, tmp_path: Path, suffix: str) -> None:
    source, out = tmp_path / f"in.en{suffix}", tmp_path / "new" / f"out.de{suffix}"
    source.write_bytes(PACK[suffix](SOURCE.encode()))
    piped = transduce("translate", micro_model, "--beam", 1, stdin=SOURCE.encode())
    outcome = transduce("translate", micro_model, "--beam", 1, "--in", source, "--out", out)
    assert (outcome.code, outcome.out, "error" in outcome.err) == (0, "", False)
    assert UNPACK[suffix](out.read_bytes()).decode() == piped.out
    assert os.listdir(out.parent) == [out.name]
    dashes = transduce("translate", micro_model, "--beam", 1, "--in", "-", "--out", "-", stdin=SOURCE.encode())
    assert dashes.out == piped.out


def test_json_goes_to_the_file(transduce: CommandLine, micro_model: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.jsonl"
    outcome = transduce("translate", micro_model, "--json", "--out", out, stdin=b"A cat.\nbad \xff\n")
    assert (outcome.code, outcome.out) == (0, "")
    assert [json.loads(line)["line"] for line in out.read_text().splitlines()] == [1, 2]
    assert says(outcome.err, re.compile("^warning: "), 2, "UTF-8")


def test_what_cannot_be_read_or_written_is_found_before_the_model_is_read(
    transduce: CommandLine, micro_model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(VERB, "load_translator", None)
    text = tmp_path / "in.en"
    text.write_text("A cat.\n")
    for options, facts in {
        ("--in", tmp_path / "no"): [tmp_path / "no"],
        ("--in", tmp_path): [tmp_path, "--out"],
        ("--out", tmp_path): ["--out", tmp_path, "Is a directory"],
        ("--out", text / "x"): ["--out", text / "x"],
        ("--in", text, "--out", text): ["--out", text, "--in"],
    }.items():
        outcome = transduce("translate", micro_model, *options)
        assert outcome.code == 1
        assert says(outcome.err, *facts)
    part = tmp_path / "out.de.part"
    part.write_text("A cat.\n")
    assert says(
        transduce("translate", micro_model, "--in", part, "--out", tmp_path / "out.de").err, "--out", "--in", part
    )
    (tmp_path / "link").symlink_to(text)
    link = tmp_path / "link"
    assert says(transduce("translate", micro_model, "--in", text, "--out", link).err, "--out", "--in", link, text)
    assert text.read_text() == "A cat.\n"


@pytest.mark.parametrize("option", ["--src", "--ref"])
def test_an_evaluation_does_not_overwrite_what_it_reads(
    transduce: CommandLine, micro_model: Path, tmp_path: Path, option: str
) -> None:
    texts = {"--src": tmp_path / "text.en", "--ref": tmp_path / "text.de"}
    for text in texts.values():
        text.write_text("A cat.\n")
    words = [word for pair in texts.items() for word in pair]
    outcome = transduce("evaluate", micro_model, *words, "--out", texts[option])
    assert outcome.code == 1
    assert says(outcome.err, "--out", texts[option], option)
    assert texts[option].read_text() == "A cat.\n"


class Interrupted:
    """A translator that is interrupted by Ctrl-C after three lines."""

    src_language, tgt_language, search, max_source_tokens = "en", "de", SearchConfig(), 9

    def translate_lines(self, lines: Iterator[str], **options: object) -> Iterator[Translation]:
        for number, line in enumerate(lines, start=1):
            if number == 4:
                raise KeyboardInterrupt
            yield Translation(line, (ScoredText(line.upper(), 0.0),))


def test_a_part_of_a_translation_does_not_look_whole(
    transduce: CommandLine, micro_model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(VERB, "load_translator", lambda *arguments, **options: Interrupted())
    out = tmp_path / "out.de"
    out.write_text("of before\n")
    outcome = transduce("translate", micro_model, "--out", out, stdin=b"a\nb\nc\nd\n")
    assert outcome.code == 130
    assert out.read_text() == "of before\n"
    assert part_path(out).read_text() == "A\nB\nC\n"
    told, last = outcome.err.splitlines()
    assert says(told, out, 3, part_path(out))
    assert last == "interrupted"
    compressed = tmp_path / "out.gz"
    assert transduce("translate", micro_model, "--out", compressed, stdin=b"a\nb\nc\nd\n").code == 130
    assert gzip.decompress(part_path(compressed).read_bytes()) == b"A\nB\nC\n"
    assert transduce("translate", micro_model, "--out", out, stdin=b"a\nb\n").code == 0
    assert out.read_text() == "A\nB\n"
    assert not part_path(out).exists()


def test_nothing_is_left_of_what_has_no_line(tmp_path: Path) -> None:
    with pytest.raises(KeyError), line_writer(tmp_path / "new" / "out"):
        raise KeyError
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is always full")
@pytest.mark.parametrize("suffix", ["", ".gz"])
def test_a_full_disk_is_told_with_the_line(tmp_path: Path, suffix: str) -> None:
    full = tmp_path / f"full{suffix}"
    full.symlink_to("/dev/full")
    with (
        pytest.raises(DataError, match=naming(full, re.compile(r"\b[01]\b"), "No space left")),
        line_writer(full) as write,
    ):
        write("a line")
    assert Path("/dev/full").is_char_device()


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is always full")
def test_compressed_lines_that_did_not_fit_are_not_promised(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("transduce.cli.text_output._open_empty", lambda _: open_in_place(Path("/dev/full")))
    with pytest.raises(DataError, match="No space left"), line_writer(tmp_path / "out.gz") as write:
        write("a line")
    assert says(capsys.readouterr().err, "was not written", "cut off", tmp_path / "out.gz.part")


@pytest.mark.skipif(not Path("/dev/fd").exists(), reason="no names of open descriptors")
def test_lines_to_a_descriptor_come_after_what_it_has(tmp_path: Path) -> None:
    with (tmp_path / "target").open("wb", buffering=0) as target:
        target.write(b"of before\n")
        with line_writer(Path(f"/dev/fd/{target.fileno()}")) as write:
            write("a line")
        with pytest.raises(KeyError), line_writer(Path(f"/dev/fd/{target.fileno()}")):
            raise KeyError
        target.write(b"of after\n")
    assert (tmp_path / "target").read_text() == "of before\na line\nof after\n"
    assert [path.name for path in tmp_path.iterdir()] == ["target"]


def test_a_device_stays_a_device(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    with line_writer(pipe) as write:
        write("a line")
    assert os.read(reader, 99) == b"a line\n"
    write_text(pipe, "more")
    assert os.read(reader, 99) == b"more"
    os.close(reader)
    assert pipe.is_fifo()


def test_dash_is_stdin(transduce: CommandLine, micro_model: Path, tmp_path: Path) -> None:
    text, other = tmp_path / "text", tmp_path / "other"
    text.write_text("A cat sleeps here.\n")
    other.write_text("A dog sleeps here.\n")
    expected = transduce("score", "--ref", text, other, "--json").out
    assert transduce("score", "--ref", text, "-", "--json", stdin=other.read_bytes()).out == expected
    assert transduce("score", "--ref", "-", other, "--json", stdin=text.read_bytes()).out == expected
    assert ": +" in transduce("score", "--ref", text, text, "--against", "-", stdin=other.read_bytes()).out
    short = transduce("score", "--ref", text, "-", stdin=b"")
    assert (short.code, says(short.err, "stdin", 0, text, 1)) == (1, True)
    assert says(transduce("score", "--ref", text, "-", stdin=b"\xff\n").err, "stdin:1", "UTF-8")
    by_files = transduce("evaluate", micro_model, "--src", text, "--ref", other, "--json").out
    for src, ref, stdin in (("-", other, text), (text, "-", other)):
        arguments = ["evaluate", micro_model, "--src", src, "--ref", ref, "--json"]
        assert transduce(*arguments, stdin=stdin.read_bytes()).out == by_files


def test_stdin_is_read_once(transduce: CommandLine, micro_model: Path, tmp_path: Path) -> None:
    for arguments, names in (
        (["score", "--ref", "-", "-"], ["HYP", "--ref"]),
        (["score", "--ref", tmp_path, "--against", "-", "-"], ["HYP", "--against"]),
        (["evaluate", micro_model, "--src", "-", "--ref", "-"], ["--src", "--ref"]),
        (["parseval", "-", "-"], ["GOLD", "TEST"]),
    ):
        outcome = transduce(*arguments, stdin=b"a\n")
        assert outcome.code == 1
        assert says(outcome.err, re.compile("^error: "), *names, "stdin")


def test_trees_from_stdin(transduce: CommandLine, tmp_path: Path) -> None:
    gold, tree = tmp_path / "gold", "(TOP (S (NP (DT a) (NN dog)) (VP (VBZ sleeps)) (. .)))\n"
    gold.write_text(tree)
    for options in ([], ["--plain"]):
        outcome = transduce("parseval", gold, "-", "--json", *options, stdin=tree.encode())
        assert json.loads(outcome.out)["f1"] == 100
    assert says(transduce("parseval", "-", gold, stdin=b"(S (NN dog)\n").err, re.compile("^error: stdin: "), 1)


def test_translations_on_stdout_and_scores_on_stderr(transduce: CommandLine, micro_model: Path, tmp_path: Path) -> None:
    text = tmp_path / "text"
    text.write_text("A cat.\nA dog.\n")
    arguments = ["evaluate", micro_model, "--src", text, "--ref", text]
    outcome = transduce(*arguments, "--out", "-", "--json")
    assert outcome.out == transduce("translate", micro_model, stdin=text.read_bytes()).out
    assert json.loads(outcome.err)["sentences"] == 2
    page = transduce("attention", micro_model, "--src", "A cat.", "--out", "-")
    assert page.out.startswith("<!")
    assert page.err.strip() == outcome.out.splitlines()[0]


@pytest.mark.parametrize("kind", ["link", "pipe", "folder"])
def test_what_is_being_written_is_not_written_through_a_link(tmp_path: Path, kind: str) -> None:
    (tmp_path / "precious").write_text("precious")
    part = tmp_path / "out.part"
    match kind:
        case "link":
            part.symlink_to("precious")
        case "pipe":
            os.mkfifo(part)
        case _:
            part.mkdir()
    with (
        pytest.raises(DataError, match=naming(part, "regular file")),
        line_writer(tmp_path / "out") as write,
    ):
        write("line")
    assert (tmp_path / "precious").read_text() == "precious"
    assert not (tmp_path / "out").exists()

"""Text from other programs is named by the doctor, and told by ``init`` and preparation, with what would help."""

from __future__ import annotations

import gzip
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from commands import CommandLine
from said import says
from transduce.config import DataConfig
from transduce.corpora import CATALOGUE, read_tab_separated
from transduce.corpora.checks import remarks_on_own_files
from transduce.corpora.formats import foreign_format
from transduce.corpora.parallel_files import hint_at_columns
from transduce.diagnostics import examine
from transduce.errors import DataError

EN = ["Even the human race will die one day.", "I married my husband in 1990.", "I'm fluent in English, you know."]
DE = [
    "Auch das Menschengeschlecht wird aussterben.",
    "Ich habe 1990 geheiratet.",
    "Ich kann fließend Englisch, weißt du.",
]


def files(folder: Path, src: list[str], tgt: list[str], end: str = "\n") -> list[str]:
    paths = [folder / "my.en", folder / "my.de"]
    for path, lines in zip(paths, (src, tgt), strict=True):
        path.write_bytes("".join(f"{line}{end}" for line in lines).encode())
    return list(map(str, paths))


def found(*paths: str) -> list[str]:
    """What the doctor says beyond that all is good."""
    return [f"{each.status} {each.subject}: {each.message}" for each in examine(paths, None) if each.status != "good"]


def tokenised(lines: list[str]) -> list[str]:
    return [re.sub(r"([.,])", r" \1", line) for line in lines]


@pytest.mark.parametrize(
    ("change", "status", "facts"),
    [
        (tokenised, "note", ["tokenised", "sacremoses"]),
        (lambda lines: [re.sub(r"(\w\w)(\w)", r"\1@@ \2", line) for line in lines], "problem", ["@@", "sed"]),
        (lambda lines: [f"▁{line.replace(' ', ' ▁')}" for line in lines], "problem", ["▁", "sed"]),
        (lambda lines: [re.sub(r"(\w\w)(\w)", r"\1 ##\2", line) for line in lines], "problem", ["##", "sed"]),
        (lambda lines: [f'"He said ""{line}"""' for line in lines], "note", ["quotes", "CSV"]),
    ],
)
def test_text_of_other_programs(
    tmp_path: Path, change: Callable[[list[str]], list[str]], status: str, facts: list[str]
) -> None:
    paths = files(tmp_path, change(EN), DE)
    (said,) = found(*paths)
    assert said.startswith(f"{status} ")
    assert says(said, "my.en", *facts)
    both = found(*files(tmp_path, change(EN), change(DE)))
    assert len(both) == 2
    config = DataConfig(corpus="files", train_src=paths[0], train_tgt=paths[1])
    assert [f"{each.status} {each}" for each in remarks_on_own_files(config)] == both
    assert found(*files(tmp_path, EN, DE)) == []


@pytest.mark.parametrize("command", ["sed -E 's/@@( |$)//g'", "sed 's/ //g; s/▁/ /g; s/^ //'", "sed 's/ ##//g'"])
def test_the_commands_join_the_words_again(command: str, tmp_path: Path) -> None:
    import subprocess

    cut = {"@@": "Ein Hu@@ nd schlä@@ ft", "▁": "▁Ein ▁Hu nd ▁schlä ft", "##": "Ein Hu ##nd schlä ##ft"}
    line = next(text for mark, text in cut.items() if mark in command)
    done = subprocess.run(command, shell=True, input=f"{line}\n", capture_output=True, text=True, check=True)
    assert done.stdout == "Ein Hund schläft\n"


def test_a_corpus_that_is_detokenised_when_it_is_read(tmp_path: Path) -> None:
    corpus = CATALOGUE["wmt-sample10k"]
    folder = tmp_path / corpus.train[0].folder
    folder.mkdir()
    for language, lines in (("en", EN), ("de", DE)):
        (folder / f"{corpus.train[0].stem}.{language}").write_text("\n".join(tokenised(lines)) + "\n", encoding="utf-8")
    assert not any("tokenised" in each.message for each in examine([corpus.name], tmp_path))


@pytest.mark.parametrize("ends", ["\r", "\r\r"])
@pytest.mark.parametrize("packed", [False, True])
def test_line_ends_of_carriage_returns_alone(transduce: CommandLine, tmp_path: Path, ends: str, packed: bool) -> None:
    paths = files(tmp_path, EN, DE, ends)
    if packed:
        for path in map(Path, paths):
            path.write_bytes(gzip.compress(path.read_bytes()))
            path.rename(f"{path}.gz")
        paths = [f"{path}.gz" for path in paths]
    said = found(*paths)
    assert len(said) == 2
    assert all(says(each, re.compile("^problem "), "CR", "tr ") for each in said)
    outcome = transduce(
        "init", "--src", paths[0], "--tgt", paths[1], "--direction", "en-de", "--out", tmp_path / "a.toml"
    )
    assert (outcome.code, says(outcome.err, paths[0], "CR")) == (1, True)
    outcome = transduce("score", "--ref", paths[1], paths[1])
    assert (outcome.code, says(outcome.err, paths[1], "CR")) == (1, True)


@pytest.mark.parametrize(
    "content", [b"a\nb\rc\n", b"a\r\nb\r\nc\r\n", b"a\r", b"\r\n", b"one\rtwo\n", b"a\nb\nc\rd\re"]
)
def test_other_line_ends_are_text(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "a").write_bytes(content)
    assert foreign_format(tmp_path / "a") is None


PAIRS = list(zip(EN, DE, strict=True))
COLUMNS = {
    "1,2": [f"{src}\t{tgt}\tCC-BY 2.0 Attribution: {n}" for n, (src, tgt) in enumerate(PAIRS)],
    "2,3": [f"{n}\t{src}\t{tgt}" for n, (src, tgt) in enumerate(PAIRS)],
    "3,6": [f"{n}\teng\t{src}\t{n + 9}\tdeu\t{tgt}" for n, (src, tgt) in enumerate(PAIRS * 9)],
    "3,4": [f"https://a.org/{n}\thttps://b.org/{n}\t{src}\t{tgt}\t0.{n}" for n, (src, tgt) in enumerate(PAIRS)],
}


@pytest.mark.parametrize("chosen", COLUMNS)
def test_more_columns_than_two(transduce: CommandLine, tmp_path: Path, chosen: str) -> None:
    path = tmp_path / "my.tsv"
    path.write_text("".join(f"{line}\n" for line in COLUMNS[chosen]), encoding="utf-8")
    command = f"cut -f{chosen} {path}"
    assert any(says(each, re.compile("^problem "), path, command) for each in found(str(path)))
    outcome = transduce("init", "--tsv", path, "--direction", "en-de", "--out", tmp_path / "a.toml")
    assert (outcome.code, says(outcome.err, command)) == (1, True)
    with pytest.raises(DataError, match=re.escape(command)):
        list(read_tab_separated(path))
    path.with_suffix(".tsv.gz").write_bytes(gzip.compress(path.read_bytes()))
    assert f"zcat {path}.gz | cut -f{chosen} > " in hint_at_columns(path.with_suffix(".tsv.gz"))


@pytest.mark.parametrize(
    "lines", [[f"{src}\t{tgt}" for src, tgt in zip(EN, DE, strict=True)], EN, [], [*EN, "a\tb\tc"]]
)
def test_files_that_need_no_columns_cut(tmp_path: Path, lines: list[str]) -> None:
    path = tmp_path / "my.tsv"
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    assert hint_at_columns(path) == hint_at_columns(tmp_path / "no") == ""
    (tmp_path / "damaged.tsv.gz").write_bytes(gzip.compress(path.read_bytes() * 9)[:-9])
    assert hint_at_columns(tmp_path / "damaged.tsv.gz") == ""


@pytest.mark.parametrize(("name", "can_be_got"), [("multi30k", True), ("tatoeba", False), ("wmt-sample10k", False)])
def test_only_what_can_be_got_is_recommended(tmp_path: Path, name: str, can_be_got: bool) -> None:
    (missing,) = [each for each in examine([name], tmp_path) if each.status == "problem"]
    assert says(missing.message, f"transduce corpus get {name}")
    assert ("--from FOLDER" in missing.message) == (not can_be_got)


def test_what_is_made_from_packages_needs_apt_get(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    (missing,) = [each for each in examine(["libreoffice-help"], tmp_path) if each.status == "problem"]
    assert says(missing.message, "apt-get", "--from FOLDER")

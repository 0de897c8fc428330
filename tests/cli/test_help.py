"""The help: the overview, the examples of verbs, topics, the manual page, what a shell completes, next commands."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import typer

from commands import CommandLine
from forks import Forks
from said import says
from transduce.cli.manual import manual_page
from transduce.cli.topics import TOPICS
from transduce.cli.verbs import GROUPS, OTHERS, VERBS, added_verbs, make_app

SOURCE = Path(__file__).parents[2] / "src" / "transduce"
N_COLUMNS, MOST_LINES = 80, 15


@pytest.fixture(autouse=True)
def eighty_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", str(N_COLUMNS))


@cache
def commands() -> dict[str, Any]:
    return dict(typer.main.get_command(make_app()).commands)  # type: ignore[attr-defined]


def leaves() -> Iterator[tuple[str, Any]]:
    """Every verb with its words, those of groups included, and what parses it."""
    for name, command in commands().items():
        for verb, leaf in getattr(command, "commands", {"": command}).items():
            yield f"{name} {verb}".strip(), leaf


def parse(line: str) -> str:
    """Parse a command line by the parser of its verb, as a shell would pass it; return the verb."""
    lexer = shlex.shlex(line, posix=True, punctuation_chars="|<>")
    lexer.whitespace_split = True
    words = list(lexer)
    words = words[words.index("transduce") + 1 :]
    end = next((place for place, word in enumerate(words) if word in ("|", "<", ">")), len(words))
    verb, *arguments = words[:end]
    command = commands()[verb]
    if hasattr(command, "commands"):
        command = command.commands[arguments.pop(0)]
    command.make_context(verb, arguments)
    return verb


def test_the_overview_has_a_line_for_each_verb(transduce: CommandLine) -> None:
    lines = transduce("--help").out.splitlines()
    assert max(map(len, lines)) <= N_COLUMNS
    assert len(GROUPS["Most used"]) == 10
    for name in VERBS:
        [line] = (line for line in lines if line.startswith(f"  {name} "))
        assert "..." not in line, line
        assert len(line.split()) > 4, line
    others = lines[lines.index(f"{OTHERS}:") + 1 :] if added_verbs() else []
    assert all(any(line.startswith(f"  {name} ") for line in others) for name in added_verbs())
    headings = [line for line in lines if re.fullmatch(r"\w.*:", line)]
    assert headings == [f"{each}:" for each in (*GROUPS, *([OTHERS] if added_verbs() else []), "Options")]


def test_a_group_without_a_verb_shows_its_help(transduce: CommandLine) -> None:
    for words in ([], ["memory"], ["corpus"]):
        outcome = transduce(*words)
        assert (outcome.code, outcome.err) == (2, "")
        assert outcome.out == transduce(*words, "--help").out


def test_each_verb_has_examples_that_its_parser_takes() -> None:
    for words, command in leaves():
        examples = command.epilog.splitlines()
        assert 1 <= len(examples) <= 3, words
        for line in examples:
            assert len(line) <= N_COLUMNS - 2, line
            parse(line)
        assert any(f"transduce {words}" in line for line in examples), words


def test_the_help_of_each_verb_fits_a_terminal(transduce: CommandLine) -> None:
    for words, command in leaves():
        shown = transduce(*words.split(), "--help").out
        assert max(map(len, shown.splitlines())) <= N_COLUMNS, words
        options = {option for each in command.params for option in each.opts if option.startswith("--")}
        assert all(re.search(rf"^ +{option}\b", shown, re.MULTILINE) for option in options), words


@pytest.mark.parametrize(
    ("verb", "common"),
    [
        ("translate", ["--in", "--format", "--out", "--terms", "--memory", "--review", "--workers", "--json"]),
        ("train", ["--out", "--resume", "--from", "--tmx", "--minutes", "--more", "--set"]),
        ("serve", ["--host", "--port", "--keys", "--terms", "--memory"]),
        ("evaluate", ["--src", "--ref", "--text", "--out"]),
    ],
)
def test_common_options_come_first(transduce: CommandLine, verb: str, common: list[str]) -> None:
    _, _, options = transduce(verb, "--help").out.partition("\nOptions:\n")
    first, *panels = re.split(r"\n\n[A-Z].*:\n", options)
    named = re.findall(r"^  (--[a-z0-9-]+)", first, re.MULTILINE)
    assert set(common) <= set(named)
    assert len(named) <= 12
    assert len(panels) >= 3


@pytest.mark.parametrize("name", TOPICS)
def test_a_topic_is_short_and_names_what_there_is(transduce: CommandLine, name: str) -> None:
    text = TOPICS[name]
    assert transduce("help", name).out.startswith(text)
    assert transduce("help", *name.split("-")).out.startswith(text)
    lines = text.splitlines()
    assert len(lines) <= MOST_LINES
    assert max(map(len, lines)) <= N_COLUMNS
    for line in lines:
        if line.startswith("  transduce "):
            parse(line)
    prose = " ".join(lines)
    for verb in re.findall(r"\btransduce ([a-z]+)", re.sub(r"folder transduce", "", prose)):
        assert verb in VERBS or verb == "returns", verb
    known = {option for _, command in leaves() for each in command.params for option in each.opts}
    assert set(re.findall(r"--[a-z][a-z-]*", prose)) <= known


def test_the_topic_of_the_environment_has_all_variables() -> None:
    sources = [*SOURCE.rglob("*.py"), *(SOURCE.parents[1] / "native").glob("*.c")]
    read = "\n".join(path.read_text(encoding="utf-8") for path in sources if path.name != "topics.py")
    ours = set(re.findall(r"\"(TRANSDUCE_[A-Z]+)\"", read)) - {"TRANSDUCE_TARGET"}
    assert ours == set(re.findall(r"TRANSDUCE_[A-Z]+", TOPICS["environment"]))


def test_help_takes_verbs_and_topics(transduce: CommandLine) -> None:
    assert transduce("help").out == transduce("--help").out
    for verb in (["translate"], ["memory", "build"]):
        assert transduce("help", *verb).out == transduce(*verb, "--help").out
    both = transduce("help", "memory").out
    assert both == TOPICS["memory"] + "\n" + transduce("memory", "--help").out
    for wrong, near in (("tems", "terms"), ("transalte", "translate"), ("ownt-ext", "own-text")):
        refused = transduce("help", wrong)
        assert (refused.code, refused.out) == (1, "")
        assert says(refused.err, re.compile("^error: "), f"'{wrong}'", f"did you mean {near}?")


def test_the_manual_page_has_every_option(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "86400")
    page = manual_page()
    assert page.startswith('.TH TRANSDUCE 1 "1970-01-02" "transduce ')
    assert page == manual_page()
    written = page.replace(r"\-", "-")
    own = [leaf for words, leaf in leaves() if words.split()[0] in VERBS]
    options = {option for leaf in own for each in leaf.params for option in each.opts if option.startswith("-")}
    assert all(f"\n\\fB{option}" in written for option in options)
    path = tmp_path / "transduce.1"
    path.write_text(page, encoding="utf-8")
    for checker in (["mandoc", "-T", "lint", "-W", "warning"], ["man", "--warnings", "-l"]):
        if shutil.which(checker[0]):
            done = subprocess.run([*checker, str(path)], capture_output=True, text=True, check=True)
            assert done.stderr == ""
            assert checker[0] == "man" or done.stdout == ""


def test_a_completion_imports_the_verb_of_the_line_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    from transduce.cli.main import _completed_verb

    monkeypatch.setenv("_TRANSDUCE_COMPLETE", "complete_bash")
    for words, verb in (
        ("transduce", ""), ("transduce\n", ""), ("transduce\ntr", ""), ("transduce\ntranslate\n", "translate"),
        ("transduce\ntranslate\n--in\nx", "translate"),
    ):  # fmt: skip
        monkeypatch.setenv("COMP_WORDS", words)
        assert _completed_verb() == verb, words
    monkeypatch.delenv("COMP_WORDS")
    monkeypatch.setenv("_TYPER_COMPLETE_ARGS", "transduce memory ")
    assert _completed_verb() == "memory"


BASH = """
source /dev/stdin
COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1))
_transduce_completion transduce
printf '%s\\n' "${COMPREPLY[@]}"
"""


@pytest.mark.merge
@pytest.mark.skipif(shutil.which("bash") is None, reason="no bash")
def test_bash_completes_verbs_options_and_topics(forks: Forks, tmp_path: Path) -> None:
    script = forks.run(env={"_TRANSDUCE_COMPLETE": "source_bash"}, timeout=60).stdout
    program = tmp_path / "transduce"
    program.write_text('#!/bin/sh\nexec "$PYTHON" -m transduce\n')
    program.chmod(0o755)
    environment = {**os.environ, "PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}", "PYTHON": sys.executable}

    def completed(*words: str) -> list[str]:
        done = subprocess.run(
            ["bash", "-c", BASH, "bash", *words],
            input=script,
            env=environment,
            capture_output=True,
            text=True,
            check=True,
        )
        return done.stdout.split()

    assert completed("transduce", "tr") == ["train", "translate", "transcribe"]
    assert completed("transduce", "translate", "--te") == ["--terms", "--terms-hard", "--temperature"]
    assert completed("transduce", "memory", "") == ["build", "search", "export"]
    assert completed("transduce", "help", "exi") == ["exit-codes"]


@pytest.mark.merge
def test_a_trained_model_is_told_how_to_be_used(transduce: CommandLine, micro_recipe: Path, tmp_path: Path) -> None:
    run = tmp_path / "it's my run"
    few = ["--set", "training.max_updates=2", "--set", "search.beam_size=1"]
    outcome = transduce("train", micro_recipe, "--out", run, *few)
    [line] = (line for line in outcome.err.splitlines() if line.startswith("next: "))
    assert shlex.split(line.removeprefix("next: ")) == ["transduce", "translate", str(run / "model")]
    assert "next: " not in outcome.out
    assert says(outcome.err, "serve")
    silent = transduce("train", micro_recipe, "--out", tmp_path / "b", *few, "--json")
    assert "next: " not in silent.out + silent.err


def test_a_memory_and_prepared_text_are_told_how_to_be_used(
    transduce: CommandLine, micro_recipe: Path, tmp_path: Path
) -> None:
    pairs = tmp_path / "pairs.tsv"
    pairs.write_text("A dog.\tEin Hund.\n", encoding="utf-8")
    made = transduce("memory", "build", pairs, "--src", "en", "--tgt", "de", "--out", tmp_path / "my tm")
    assert says(made.err, re.compile("^next: "), "translate", f"--memory '{tmp_path / 'my tm'}'")
    prepared = transduce("prepare", micro_recipe, "--out", tmp_path / "store")
    [line] = (line for line in prepared.err.splitlines() if line.startswith("next: "))
    assert parse(line) == "train"

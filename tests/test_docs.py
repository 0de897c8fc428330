"""The documentation: links resolve, commands and files exist, and the plotted numbers are the measured ones."""

from __future__ import annotations

import csv
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import typer

from transduce.cli.verbs import ELSEWHERE, make_app

ROOT = Path(__file__).parents[1]
PAGES = sorted(
    [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("notebook/**/*.md"), *ROOT.glob("paper/**/*.md")]
)
# Pages that may be linked before they exist.
LATER = ("CHANGELOG.md", "CONTRIBUTING.md", "docs/glossary.md", "docs/paper-to-code.md")
PLOT = ROOT / "benchmarks" / "plot_results.py"
FOLDERS = "src|tests|docs|notebook|benchmarks|scripts|deploy|paper"
HOMES = (ROOT, ROOT / "src" / "transduce", ROOT / "paper" / "src")
has_benchmarks = pytest.mark.skipif(not PLOT.exists(), reason="an installed package has no benchmarks")


def of_each_page(problems_of: Callable[[Path], Iterable[str]]) -> list[str]:
    """The problems of all pages, each with the name of its page."""
    return [f"{page.relative_to(ROOT).as_posix()}: {problem}" for page in PAGES for problem in problems_of(page)]


def test_links_and_anchors_resolve() -> None:
    def broken(page: Path) -> Iterator[str]:
        for link in re.findall(r"\]\(([^()\s]+)\)", _without_code(page.read_text(encoding="utf-8"))):
            name, _, anchor = link.partition("#")
            target = (page.parent / name).resolve() if name else page
            if re.match(r"\w+:", link) or (target.relative_to(ROOT).as_posix() in LATER and not target.exists()):
                continue
            if not target.exists() or (anchor and anchor not in _anchors(target)):
                yield link

    assert of_each_page(broken) == []


def test_commands_and_their_options_exist() -> None:
    def unknown(page: Path) -> Iterator[str]:
        for verb, flags, known in _transduce_commands(page):
            yield from (f"{verb}: {flag}" for flag in flags if flag not in known)

    assert of_each_page(unknown) == []


@has_benchmarks
def test_options_of_benchmarks_exist() -> None:
    def unknown(page: Path) -> Iterator[str]:
        for command in _commands(page):
            script = re.search(r"\bpython3? (\S+\.py)(.*)", command.partition(" -- ")[0])
            if script is not None and "torchrun" not in command:
                source = (ROOT / script[1]).read_text(encoding="utf-8")
                yield from (
                    f"{script[1]}: {flag}"
                    for flag in re.findall(r"--[a-z][\w-]*", script[2])
                    if f'"{flag}"' not in source
                )

    assert of_each_page(unknown) == []


def test_extras_exist() -> None:
    known = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    named = [
        f"{page.name}: {extra}"
        for page in PAGES
        for extra in re.findall(r"-e \"\.\[(\w+)\]\"", page.read_text(encoding="utf-8"))
        if extra not in known
    ]
    assert named == []


@has_benchmarks
def test_files_in_backticks_exist() -> None:
    def missing(page: Path) -> list[str]:
        spans = re.findall(r"`([^`\s]+)`", _prose(page.read_text(encoding="utf-8")))
        paths = [span for span in spans if re.match(rf"({FOLDERS})/[\w./-]*\Z", span)]
        modules = [span for span in spans if re.match(r"[a-z_]+/[a-z_0-9/]+\.py\Z", span) and span not in paths]
        return [path for path in [*paths, *modules] if not any((home / path).exists() for home in HOMES)]

    assert of_each_page(missing) == []


@pytest.mark.parametrize("path", sorted(ROOT.glob("docs/results/*.csv")), ids=lambda path: path.stem)
def test_plotted_numbers_are_those_of_the_pages(path: Path) -> None:
    with path.open(encoding="utf-8", newline="") as file:
        numbers = {cell for row in csv.reader(file) for cell in row if re.fullmatch(r"\d+(\.\d+)?", cell)}
    summary = (ROOT / "docs" / "results.md").read_text(encoding="utf-8")
    performance = (ROOT / "docs" / "performance.md").read_text(encoding="utf-8")
    notebook = [page.read_text(encoding="utf-8") for page in ROOT.glob("notebook/*.md")]
    pages = "\n".join([summary, performance, *notebook])
    measured = {number.replace(",", "") for number in re.findall(r"\d[\d,]*(?:\.\d+)?", pages)}
    assert numbers - measured == set()
    labels = [label for label in _labels(path.with_suffix(".svg")) if re.fullmatch(r"\d+(\.\d+)?", label)]
    assert labels != []
    assert [label for label in labels if label not in numbers] == []
    assert f"(results/{path.stem}.svg)" in summary


@has_benchmarks
def test_the_plots_are_drawn_from_the_tables(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    for path in ROOT.glob("docs/results/*.csv"):
        shutil.copy(path, tmp_path)
    subprocess.run([sys.executable, PLOT, tmp_path], check=True, capture_output=True)
    for path in tmp_path.glob("*.svg"):
        assert _labels(ROOT / "docs" / "results" / path.name) == _labels(path)


def _labels(drawing: Path) -> list[str]:
    return re.findall(r">([^<\s][^<]*)</text>", drawing.read_text(encoding="utf-8"))


def _prose(text: str) -> str:
    return re.sub(r"^```.*?^```", "", text, flags=re.DOTALL | re.MULTILINE)


def _without_code(text: str) -> str:
    return re.sub(r"`[^`\n]*`", "", _prose(text))


def _anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.*)$", _prose(page.read_text(encoding="utf-8")), re.MULTILINE)
    plain = [re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading) for heading in headings]
    return {re.sub(r"[^\w -]", "", heading.strip().lower()).replace(" ", "-") for heading in plain}


def _commands(page: Path) -> Iterator[str]:
    """Each line of a code block and each code span, with continued lines joined."""
    text = page.read_text(encoding="utf-8")
    for block in re.findall(r"^```\w*\n(.*?)^```", text, re.DOTALL | re.MULTILINE):
        yield from block.replace("\\\n", " ").splitlines()
    for span in re.findall(r"`([^`]+)`", _prose(text)):
        yield span.replace("\n", " ")


def _transduce_commands(page: Path) -> Iterator[tuple[str, list[str], set[str]]]:
    """The verb, the long options given, and the options that the verb has."""
    for line in _commands(page):
        for command in re.split(r"\||&&|;", line):
            call = re.search(r"(?:^|[\s/])transduce (?=[a-z])(.*)", command.strip().removeprefix("$ "))
            if call is None or re.search(r"\bimport\b", command):
                continue
            lexer = shlex.shlex(call[1], posix=True, punctuation_chars="<>")
            lexer.whitespace_split = True
            try:
                verb, *words = list(lexer)
            except ValueError:  # an apostrophe in a sentence
                verb, *words = call[1].split()
            if verb in ELSEWHERE and verb not in _verbs():
                continue
            known = _options(verb, words)
            yield verb, [word.partition("=")[0] for word in words if re.match(r"--[a-z]", word)], known


def _options(verb: str, words: list[str]) -> set[str]:
    commands = _verbs()
    assert verb in commands, f"no verb is called {verb}"
    command = commands[verb]
    if hasattr(command, "commands"):
        assert words[0] in command.commands, f"{verb} has no {words[0]}"
        command = command.commands[words[0]]
    return {option for parameter in command.params for option in parameter.opts} | {"--help"}


@cache
def _verbs() -> dict[str, Any]:
    return dict(typer.main.get_command(make_app()).commands)  # type: ignore[attr-defined]

"""scripts/site: the generated reference has every key, verb and public name, and links of pages lead somewhere."""

from __future__ import annotations

import importlib
import pkgutil
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
import typer

import transduce
from transduce.cli.verbs import VERBS, make_app
from transduce.config import DataConfig, ModelConfig, RunConfig, SearchConfig
from transduce.config.record import Record
from transduce.config.task_settings import known_tasks

ROOT = Path(__file__).parents[1]
SITE = ROOT / "scripts" / "site"
CONFIG = ROOT / "zensical.toml"

pytestmark = [
    pytest.mark.merge,
    pytest.mark.skipif(not CONFIG.exists(), reason="an installed package has no site"),
]


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The source of the site."""
    folder = tmp_path_factory.mktemp("site") / "docs"
    subprocess.run([sys.executable, SITE, folder], check=True)
    return folder


def _text(pages: Path, name: str) -> str:
    return (pages / name).read_text(encoding="utf-8")


def _records() -> Iterator[type[Record]]:
    for name, field in RunConfig.model_fields.items():
        match name:
            case "data":
                yield from (DataConfig, *(task.settings for task in known_tasks().values()))
            case "model" | "search":
                base = ModelConfig if name == "model" else SearchConfig
                yield from (base, *base.members.values())
            case _:
                assert isinstance(field.annotation, type)
                yield field.annotation


def test_every_key_of_a_recipe_has_a_row(pages: Path) -> None:
    rows = re.findall(r"^\| `(\w+)` \| (\S.*) \| ([^|]+) \| ([^|]+) \|$", _text(pages, "recipe-keys.md"), re.M)
    keys = {key for record in _records() for key in record.model_fields}
    assert len(keys) > 100
    assert keys - {row[0] for row in rows} == set()


def test_defaults_and_limits_are_those_of_the_records(pages: Path) -> None:
    text = _text(pages, "recipe-keys.md")
    assert "| `warmup_steps` | updates over which the rate rises (equation 3) | `4000` | integer from 1 |" in text
    assert '| `"post"` | `"post"`, `"pre"` |' in text


def test_every_verb_and_option_is_there(pages: Path) -> None:
    text = _text(pages, "command-line.md")
    commands = typer.main.get_command(make_app()).commands  # type: ignore[attr-defined]
    for verb in VERBS:
        assert f"\n## {verb}\n" in text
        _, _, section = text.partition(f"\n## {verb}\n")
        section = section.partition("\n## ")[0]
        command = commands[verb]
        for each in getattr(command, "commands", {verb: command}).values():
            options = [option for parameter in each.params for option in parameter.opts if option.startswith("--")]
            assert [option for option in options if f"`{option}" not in section and f", {option}" not in section] == []


def test_every_public_name_is_there(pages: Path) -> None:
    api, packages = (_text(pages, name) for name in ("python-api.md", "python-packages.md"))
    assert [name for name in transduce.__all__ if f"\n## {name}\n" not in api] == []
    for package in pkgutil.walk_packages(transduce.__path__, "transduce."):
        names = getattr(importlib.import_module(package.name), "__all__", []) if package.ispkg else []
        section = packages.partition(f"\n## {package.name}\n")[2].partition("\n## ")[0]
        assert [name for name in names if f"| `{name}` |" not in section] == [], package.name


def test_links_out_of_the_docs_lead_to_a_page_or_become_text(pages: Path) -> None:
    outside = r"\]\((?:\.\./)+(?:src|paper|recipes|notebook|scripts|README|CHANGELOG|CONTRIBUTING)[^)]*\)"
    for page in pages.rglob("*.md"):
        assert re.findall(outside, page.read_text(encoding="utf-8")) == [], page
    assert "](recipe-keys.md)" in _text(pages, "index.md")


def test_links_lead_to_the_repository_if_it_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(SITE))
    links = importlib.import_module("links").Links(
        ROOT, "https://example.org/blob/main", {"src/transduce/config": "keys.md"}
    )
    text = "[a](../paper/README.md#x) [b](data.md#y) [c](../src/transduce/config) `[d](../no)` ![e](../f.svg)"
    assert links.of_the_site(text, Path("train.md")) == (
        "[a](https://example.org/blob/main/paper/README.md#x) [b](data.md#y) [c](keys.md) `[d](../no)` "
        "![e](https://example.org/blob/main/f.svg)"
    )
    unknown = importlib.import_module("links").Links(ROOT, "", {})
    assert unknown.of_the_site("[a](../paper/README.md)", Path("train.md")) == "a (`paper/README.md`)"
    assert unknown.of_the_site("[`paper/README.md`](../paper/README.md)", Path("train.md")) == "`paper/README.md`"


def test_the_navigation_has_every_page(pages: Path) -> None:
    navigation = re.findall(r'"([\w-]+\.md)"', CONFIG.read_text(encoding="utf-8").partition("[project.extra]")[0])
    assert sorted(navigation) == sorted(page.name for page in pages.glob("*.md"))


def test_nothing_is_loaded_from_elsewhere() -> None:
    project = tomllib.loads(CONFIG.read_text(encoding="utf-8"))["project"]
    assert project["theme"]["font"] is False
    assert not any("://" in str(project.get(key)) for key in ("extra_css", "extra_javascript"))


def test_the_site_is_built_without_a_warning(pages: Path, tmp_path: Path) -> None:
    pytest.importorskip("zensical")
    shutil.copytree(pages, tmp_path / "build" / "docs")
    shutil.copy(CONFIG, tmp_path)
    built = subprocess.run(
        [sys.executable, "-m", "zensical", "build", "--strict"], cwd=tmp_path, capture_output=True, text=True
    )
    assert built.returncode == 0, built.stdout + built.stderr
    outside = r"<(?:link|script|img)[^>]+(?:href|src)=[\"']?https?://[^\"'> ]*"
    for page in (tmp_path / "build" / "site").glob("*.html"):
        assert re.findall(outside, page.read_text(encoding="utf-8")) == []

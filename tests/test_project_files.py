"""The files for contributors name what exists: paths, symbols, versions, format numbers."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path

import yaml

import transduce
from transduce.bulk import TranslationJob
from transduce.bulk.job import open_job
from transduce.config.decoding import LoadingOptions
from transduce.tasks.pairs.shortlists import write_shortlist
from transduce.tasks.prepared import open_prepared

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
FOLDERS = "src|tests|docs|scripts|deploy|benchmarks|paper|.ci|.github"
PATHS = sorted(set(re.findall(rf"`((?:{FOLDERS})(?:/[\w./-]*)?|[\w.-]+\.(?:md|toml|txt|cff|yaml))`", PAGE)))
MODULE = rf"(?:{FOLDERS})/[\w./-]+|[a-z_/0-9]+\.py"  # short names are below src/transduce
SYMBOLS = sorted(set(re.findall(rf"`([A-Za-z_]\w*)`(?:,|\s)\s*in `({MODULE})`", " ".join(PAGE.split()))))


def test_the_guide_names_paths_and_symbols() -> None:
    assert len(PATHS) > 40
    assert len(SYMBOLS) > 20


def test_paths_of_the_guide_exist() -> None:
    assert [path for path in PATHS if not (ROOT / path).exists()] == []


def test_symbols_of_the_guide_are_defined_where_it_says() -> None:
    def is_defined(symbol: str, path: str) -> bool:
        home = ROOT if re.match(rf"(?:{FOLDERS})/", path) else ROOT / "src" / "transduce"
        code = (home / path).read_text(encoding="utf-8")
        return re.search(rf"^(?:class|(?:async )?def) {symbol}\b|^{symbol}\b.*=", code, re.MULTILINE) is not None

    assert [f"{path} defines no {symbol}" for symbol, path in SYMBOLS if not is_defined(symbol, path)] == []


def test_the_version_is_the_same_everywhere() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    version = transduce.__version__
    assert project["tool"]["hatch"]["version"]["path"] == "src/transduce/__init__.py"
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert citation["version"] == version
    assert re.search(rf"^## \[{re.escape(version)}\]", changelog, re.MULTILINE)


def test_every_dependency_is_pinned_and_explained() -> None:
    """As CONTRIBUTING.md says; the tools of contributors alone need no reason."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = {"base": project["dependencies"], **project["optional-dependencies"]}
    named = {
        extra: {re.split(r"[<>=\[]", each)[0] for each in requirements} - {"transduce"}
        for extra, requirements in extras.items()
    }
    pins = re.findall(r"^(\S+)==", (ROOT / "constraints.txt").read_text(encoding="utf-8"), re.MULTILINE)
    pinned = {pin.lower().replace("_", "-") for pin in pins}
    assert len(pinned) == len(pins)
    assert set().union(*named.values()) - pinned == set()
    table = (ROOT / "notebook" / "dependencies.md").read_text(encoding="utf-8")
    needed = set().union(*(packages for extra, packages in named.items() if extra != "dev"))
    assert {package for package in needed if not re.search(rf"(?<![\w-]){package}(?![\w-])", table)} == set()


def test_the_changelog_has_the_numbers_of_the_formats(micro_run: Path, tmp_path: Path) -> None:
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    told = {name: int(number) for name, number in re.findall(r"^\| `(\S+\.json)` \|[^|]*\| (\d+) \|", changelog, re.M)}
    record = ROOT / "paper" / "reports" / "runs" / "cpu" / "table2-9000-transformer-seed1.json"
    checkpoint = max((micro_run / "checkpoints").iterdir())
    prepared = open_prepared(micro_run / "store")
    write_shortlist(prepared, tmp_path / "short", max_pairs=10)
    open_job(TranslationJob(LoadingOptions([micro_run / "model"])), [], tmp_path / "bulk")
    files = {
        "run.json": micro_run / "run.json",
        "state.json": checkpoint / "state.json",
        "config.json": micro_run / "model" / "config.json",
        "manifest.json": micro_run / "model" / "manifest.json",
        "prepared.json": micro_run / "store" / "prepared.json",
        "store.json": micro_run / "store" / "train" / "store.json",
        "shortlist.json": tmp_path / "short" / "shortlist.json",
        "bulk.json": tmp_path / "bulk" / "bulk.json",
        "runs/SCALE/NAME.json": record,
    }
    assert told == {name: json.loads(path.read_text(encoding="utf-8"))["format"] for name, path in files.items()}


def test_the_table_has_all_dependencies() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    page = (ROOT / "notebook" / "dependencies.md").read_text(encoding="utf-8").lower()
    extras = {
        name: each
        for name, each in project["optional-dependencies"].items()
        if name not in ("bench", "dev", "mutation")
    }
    names = {re.split(r"[>\[]", each)[0] for group in (project["dependencies"], *extras.values()) for each in group}
    assert [name for name in names - {"transduce"} if name not in page] == []
    assert len(project["dependencies"]) <= 12


def test_forms_and_hooks_are_yaml() -> None:
    paths = [ROOT / ".pre-commit-config.yaml", *(ROOT / ".github").rglob("*.yml")]
    assert len(paths) > 2
    for path in paths:
        assert isinstance(yaml.safe_load(path.read_text(encoding="utf-8")), dict), path

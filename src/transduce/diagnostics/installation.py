"""The installation: versions, extras, what torch brings along, text files, and the corpora that are here."""

from __future__ import annotations

import importlib
import importlib.metadata
import os
import platform
import re
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from transduce.corpora import CATALOGUE, available_directions, data_folders
from transduce.diagnostics.corpora import corpora_in
from transduce.diagnostics.finding import Finding, good, guard, note, problem

__all__ = ["examine_installation"]

PACKAGE = "transduce"
FOR_WORK_ON_IT = frozenset({"dev", "bench"})  # extras that no user misses
_REQUIREMENT = re.compile(
    r"(?P<name>[A-Za-z0-9._-]+)\s*>=\s*(?P<least>[0-9.]+)(?:\s*;\s*extra == ['\"](?P<extra>\w+)['\"])?"
)
TEXT = "Übergröße, 日本, 🐕"  # one to four bytes a character


class _Requirement(NamedTuple):
    """A package that is wanted, by itself or for an extra."""

    name: str
    least: str  # the oldest version that will do
    extra: str | None


def examine_installation(data_folder: Path | None = None) -> Iterator[Finding]:
    """All that does not depend on what somebody wants to do."""
    yield from guard("Python", _examine_python())
    requirements = _requirements()
    for requirement in requirements:
        if requirement.extra is None:
            yield from guard(requirement.name, _examine_package(requirement))
    yield from guard("extras", _examine_extras(requirements))
    yield from guard("machine", _examine_machine())
    yield from guard("processes", _examine_processes())
    yield from guard("text files", _examine_text_files())
    yield from guard("data folders", _examine_data_folders(data_folder))


def _examine_python() -> Iterator[Finding]:
    here = platform.python_version()
    version = _version(PACKAGE)
    if version is None:
        yield problem(PACKAGE, "is not installed, but run from a folder; install it with: pip install -e .")
        return
    least = importlib.metadata.metadata(PACKAGE)["Requires-Python"].removeprefix(">=")
    if _is_older(here, least):
        yield problem("Python", f"{here} is too old, {PACKAGE} needs {least} or newer")
    else:
        yield good("Python", f"{here}, {sys.executable}")
    yield good(PACKAGE, f"{version}, {Path(__file__).parent.parent}")


def _requirements() -> list[_Requirement]:
    """What the package says that it needs."""
    texts = importlib.metadata.requires(PACKAGE) if _version(PACKAGE) else None
    matches = filter(None, map(_REQUIREMENT.fullmatch, texts or []))
    return [_Requirement(**match.groupdict()) for match in matches]


def _examine_package(requirement: _Requirement) -> Iterator[Finding]:
    """Whether it is there, new enough, and can be imported."""
    name, here = requirement.name, _version(requirement.name)
    if here is None:
        yield problem(name, f"is not installed; install it with: pip install '{name}>={requirement.least}'")
    elif _is_older(here, requirement.least):
        yield problem(name, f"{here} is too old; install {requirement.least} or newer: pip install -U {name}")
    else:
        try:
            importlib.import_module(name)
        except Exception as error:  # a build for another machine, a library that is missing: each fails in its own way
            reason = (str(error).splitlines() or [""])[0]
            yield problem(name, f"{here} cannot be imported: {type(error).__name__}: {reason}; install it anew")
        else:
            yield good(name, here)


def _examine_extras(requirements: list[_Requirement]) -> Iterator[Finding]:
    """What is not needed, but of use."""
    packages: dict[str, list[_Requirement]] = {}
    for requirement in requirements:
        if requirement.extra is not None and requirement.extra not in FOR_WORK_ON_IT:
            packages.setdefault(requirement.extra, []).append(requirement)
    here, missing = [], []
    for extra, needed in packages.items():
        versions = {requirement.name: _version(requirement.name) for requirement in needed}
        old = [requirement for requirement in needed if _is_older(versions[requirement.name] or "0", requirement.least)]
        told = ", ".join(f"{name} {version}" for name, version in versions.items() if version)
        if not old:
            here.append(f"{extra} ({told})")
        else:
            missing.append(f"{extra} ({', '.join(f'{package.name}>={package.least}' for package in old)})")
    if packages:
        yield good("extras", f"installed: {', '.join(here) or 'none'}; not installed: {', '.join(missing) or 'none'}")


def _version(name: str) -> str | None:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def _is_older(version: str, least: str) -> bool:
    """Whether a version comes before another, by its leading numbers.

    >>> _is_older("2.9.1+cpu", "2.11"), _is_older("2.11.0", "2.11"), _is_older("3.0rc1", "2.11")
    (True, False, False)
    """
    return _leading_numbers(version) < _leading_numbers(least)


def _leading_numbers(version: str) -> list[int]:
    match = re.match(r"[0-9]+(?:\.[0-9]+)*", version)
    numbers = [int(part) for part in match[0].split(".")] if match else [0]
    return numbers + [0] * (4 - len(numbers))


def _examine_machine() -> Iterator[Finding]:
    from transduce.diagnostics import machine  # here, since torch may be what is broken

    yield from guard("threads", machine.examine_threads())
    yield from guard("devices", machine.examine_devices())
    yield from guard("numbers", machine.examine_products())
    yield from guard("memory", machine.examine_memory())
    yield from guard("disks", machine.examine_disks())


def _examine_processes() -> Iterator[Finding]:
    """Whether several processes can train together."""
    import torch.distributed

    if not torch.distributed.is_available():
        yield note("processes", "this torch is a build without torch.distributed: one process alone can train")
        return
    kinds = {"gloo": torch.distributed.is_gloo_available(), "nccl": torch.distributed.is_nccl_available()}
    told = f"torch.distributed with {' and '.join(kind for kind, is_here in kinds.items() if is_here) or 'nothing'}"
    places = os.pathsep.join([os.environ.get("PATH", os.defpath), str(Path(sys.executable).parent)])
    program = shutil.which("torchrun", path=places)
    if program is None:
        yield note("processes", f"{told}; torchrun is not to be found, python -m torch.distributed.run does the same")
    else:
        yield good("processes", f"{told}; {program}")


def _examine_text_files() -> Iterator[Finding]:
    """Whether what is written is what is read, name and content."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"{TEXT}.txt"
        try:
            path.write_text(TEXT, encoding="utf-8")
            is_same = path.read_text(encoding="utf-8") == TEXT and [path.name] == os.listdir(folder)
        except (OSError, UnicodeError) as error:
            yield note("text files", f"names of files cannot hold all letters here: {error}; set LC_ALL=C.UTF-8")
            return
    if is_same:
        yield good("text files", "content and names in UTF-8 come back as they were written")
    else:
        yield note("text files", "names of files come back with other letters than they were written with")


def _examine_data_folders(data_folder: Path | None) -> Iterator[Finding]:
    """Which corpora are where."""
    for folder in data_folders(data_folder):
        subject = f"data folder {folder}"
        if not folder.is_dir():
            yield good(subject, "not there yet; transduce corpus get makes it")
            continue
        known = {name: available_directions(corpus, [folder]) for name, corpus in CATALOGUE.items()}
        told = [f"{name} ({', '.join(directions)})" for name, directions in known.items() if directions]
        taken = {text.folder for corpus in CATALOGUE.values() for text in (*corpus.train, *corpus.dev, *corpus.test)}
        own = [name for name in corpora_in(folder) if name not in taken]
        yield good(subject, "corpora: " + (", ".join([*told, *own]) or "none yet; transduce corpus list names them"))

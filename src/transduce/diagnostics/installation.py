"""Diagnostics of the installation: Python, packages, extras, torch, text files and data folders."""

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
from transduce.diagnostics.resources import examine_disks, examine_memory
from transduce.findings.finding import Finding, good, guard, note, problem
from transduce.imports import INSTALL_TORCH
from transduce.inference.native.binding import kernels, library

__all__ = ["examine_installation"]

PACKAGE = "transduce"
DEVELOPMENT_EXTRAS = frozenset({"dev", "bench"})  # not reported to users
_MODULES = {"markdown-it-py": "markdown_it"}  # of packages that are imported by another name
_REQUIREMENT = re.compile(
    r"(?P<name>[A-Za-z0-9._-]+)\s*>=\s*(?P<minimum>[0-9.]+)(?:\s*;\s*extra == ['\"](?P<extra>\w+)['\"])?"
)
TEXT = "Übergröße, 日本, 🐕"  # one to four bytes per character


class _Requirement(NamedTuple):
    """A required package, of transduce itself or of an extra."""

    name: str
    minimum: str  # version
    extra: str | None


def examine_installation(data_folder: Path | None = None) -> Iterator[Finding]:
    """Examine Python, packages, hardware, file names and data folders."""
    yield from guard("Python", _examine_python())
    requirements = _requirements()
    needed = (None, "train") if _version("torch") else (None,)
    for requirement in requirements:
        if requirement.extra in needed:
            yield from guard(requirement.name, _examine_package(requirement))
    yield from guard("extras", _examine_extras(requirements))
    yield from guard("machine", _examine_machine())
    yield from guard("processes", _examine_processes())
    yield from guard("text files", _examine_text_files())
    yield from guard("data folders", _examine_data_folders(data_folder))


def _examine_python() -> Iterator[Finding]:
    python = platform.python_version()
    version = _version(PACKAGE)
    if version is None:
        yield problem(PACKAGE, "is not installed, but run from a folder; install it with: pip install -e .")
        return
    minimum = importlib.metadata.metadata(PACKAGE)["Requires-Python"].removeprefix(">=")
    if _is_older(python, minimum):
        yield problem("Python", f"{python} is too old, {PACKAGE} needs {minimum} or newer")
    else:
        yield good("Python", f"{python}, {sys.executable}")
    yield good(PACKAGE, f"{version}, {Path(__file__).parent.parent}")


def _requirements() -> list[_Requirement]:
    """Return the requirements in the package metadata."""
    texts = importlib.metadata.requires(PACKAGE) if _version(PACKAGE) else None
    matches = filter(None, map(_REQUIREMENT.fullmatch, texts or []))
    return [_Requirement(**match.groupdict()) for match in matches]


def _examine_package(requirement: _Requirement) -> Iterator[Finding]:
    """Check that a package is installed, new enough and importable."""
    name, version = requirement.name, _version(requirement.name)
    if version is None:
        yield problem(name, f"is not installed; install it with: pip install '{name}>={requirement.minimum}'")
    elif _is_older(version, requirement.minimum):
        yield problem(name, f"{version} is too old; install {requirement.minimum} or newer: pip install -U {name}")
    else:
        try:
            importlib.import_module(_MODULES.get(name, name))
        except Exception as error:  # a build for another platform, a missing shared library: any exception is possible
            reason = (str(error).splitlines() or [""])[0]
            yield problem(name, f"{version} cannot be imported: {type(error).__name__}: {reason}; reinstall it")
        else:
            yield good(name, version)


def _examine_extras(requirements: list[_Requirement]) -> Iterator[Finding]:
    """Report which optional extras are installed."""
    packages: dict[str, list[_Requirement]] = {}
    for requirement in requirements:
        if requirement.extra is not None and requirement.extra not in DEVELOPMENT_EXTRAS:
            packages.setdefault(requirement.extra, []).append(requirement)
    installed, missing = [], []
    for extra, needed in packages.items():
        versions = {package.name: _version(package.name) for package in needed}
        old = [package for package in needed if _is_older(versions[package.name] or "0", package.minimum)]
        if not old:
            installed.append(f"{extra} ({', '.join(f'{name} {version}' for name, version in versions.items())})")
        else:
            missing.append(f"{extra} ({', '.join(f'{package.name}>={package.minimum}' for package in old)})")
    if packages:
        installed_names, missing_names = ", ".join(installed) or "none", ", ".join(missing) or "none"
        yield good("extras", f"installed: {installed_names}; not installed: {missing_names}")


def _version(name: str) -> str | None:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def _is_older(version: str, minimum: str) -> bool:
    """Return whether a version comes before another, comparing their leading numbers.

    >>> _is_older("2.9.1+cpu", "2.11"), _is_older("2.11.0", "2.11"), _is_older("3.0rc1", "2.11")
    (True, False, False)
    """
    return _leading_numbers(version) < _leading_numbers(minimum)


def _leading_numbers(version: str) -> list[int]:
    match = re.match(r"[0-9]+(?:\.[0-9]+)*", version)
    numbers = [int(part) for part in match[0].split(".")] if match else [0]
    return numbers + [0] * (4 - len(numbers))


def _examine_machine() -> Iterator[Finding]:
    if library() is None:
        yield note("engine in C", "was not compiled, or is of another version; all models are run by PyTorch")
    elif not (found := kernels()):
        yield problem(
            "engine in C", f"TRANSDUCE_ISA={os.environ.get('TRANSDUCE_ISA', '')} names no kernels that run here"
        )
    else:
        yield good("engine in C", f"with kernels for {found}")
    if _version("torch") is None:
        yield note("PyTorch", f"is not installed, so only the engine in C runs: {INSTALL_TORCH}")
    else:
        from transduce.diagnostics import machine  # late: the import of torch may fail

        yield from guard("threads", machine.examine_threads())
        yield from guard("devices", machine.examine_devices())
        yield from guard("numbers", machine.examine_products())
    yield from guard("memory", examine_memory())
    yield from guard("disks", examine_disks())


def _examine_processes() -> Iterator[Finding]:
    """Check the support for distributed training."""
    if _version("torch") is None:
        return
    import torch.distributed

    if not torch.distributed.is_available():
        yield note("processes", "torch was built without torch.distributed: training is limited to one process")
        return
    backends = {"gloo": torch.distributed.is_gloo_available(), "nccl": torch.distributed.is_nccl_available()}
    available = " and ".join(name for name, is_available in backends.items() if is_available) or "no backend"
    support = f"torch.distributed with {available}"
    search_path = os.pathsep.join([os.environ.get("PATH", os.defpath), str(Path(sys.executable).parent)])
    program = shutil.which("torchrun", path=search_path)
    if program is None:
        yield note("processes", f"{support}; torchrun was not found, python -m torch.distributed.run does the same")
    else:
        yield good("processes", f"{support}; {program}")


def _examine_text_files() -> Iterator[Finding]:
    """Check that UTF-8 file names and contents round-trip."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"{TEXT}.txt"
        try:
            path.write_text(TEXT, encoding="utf-8")
            is_same = path.read_text(encoding="utf-8") == TEXT and [path.name] == os.listdir(folder)
        except (OSError, UnicodeError) as error:
            yield note("text files", f"file names cannot hold all characters here: {error}; set LC_ALL=C.UTF-8")
            return
    if is_same:
        yield good("text files", "UTF-8 content and names round-trip")
    else:
        yield note("text files", "file names are changed by this file system: they are read with other characters")


def _examine_data_folders(data_folder: Path | None) -> Iterator[Finding]:
    """Report the corpora in each data folder."""
    for folder in data_folders(data_folder):
        subject = f"data folder {folder}"
        if not folder.is_dir():
            yield good(subject, "does not exist yet; transduce corpus get creates it")
            continue
        known = {name: available_directions(corpus, [folder]) for name, corpus in CATALOGUE.items()}
        corpora = [f"{name} ({', '.join(directions)})" for name, directions in known.items() if directions]
        taken = {text.folder for corpus in CATALOGUE.values() for text in (*corpus.train, *corpus.dev, *corpus.test)}
        corpora += [name for name in corpora_in(folder) if name not in taken]
        yield good(subject, "corpora: " + (", ".join(corpora) or "none yet; transduce corpus list names them"))

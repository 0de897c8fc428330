"""Debian packages, built here by dpkg-deb."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest


def build_deb(deb: Path, name: str, version: str, files: Mapping[str, bytes]) -> Path:
    """Write a package with files, named by their paths when installed; skips the test without dpkg-deb."""
    if shutil.which("dpkg-deb") is None:
        pytest.skip("no dpkg-deb")
    root = deb.with_suffix("")
    control = f"Package: {name}\nVersion: {version}\nArchitecture: all\nMaintainer: A <a@example.org>\n"
    for path, content in {**files, "DEBIAN/control": f"{control}Description: dogs\n".encode()}.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_bytes(content)
    command = ["dpkg-deb", "--root-owner-group", "-Zgzip", "--build", root, deb]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    shutil.rmtree(root)
    return deb

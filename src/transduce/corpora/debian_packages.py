"""Debian packages as a source of text: fetched by apt without root, unpacked without being installed.

A machine that can reach nothing but its package mirror still has real text in this way.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

from transduce.errors import DataError

__all__ = ["fetch_packages", "read_control_field", "unpack_package"]

# What a machine does after an update (emptying its cache, telling other programs) is for updates of its own lists.
_NO_HOOKS = """\
#clear APT::Update::Pre-Invoke;
#clear APT::Update::Post-Invoke;
#clear APT::Update::Post-Invoke-Success;
"""

# A line of "apt-get download --print-uris": 'http://...' dog_1%3a2_all.deb 1200 SHA256:...
_PRINTED_URI = re.compile(r"^'[^']*' (?P<file>(?P<package>[^\s_/]+)_[^\s/]+) (?P<bytes>\d+)", re.MULTILINE)


def fetch_packages(
    names: Sequence[str], folder: Path, *, tell: Callable[[str], None] = lambda line: None
) -> list[Path]:
    """Download the newest version of each package into ``folder``; returns the .deb files in the order of ``names``.

    No root is needed and nothing of the system is changed: the lists of packages are updated into ``folder/lists``,
    and apt's cache is ``folder/cache``. A file that is there already in its full size is not fetched again; apt checks
    the hash of what it does fetch. ``tell`` gets a line before each thing that takes time.

    Raises DataError if there is no apt-get, or if it fails.
    """
    folder = folder.resolve()  # apt resolves relative paths in its own way
    lists, cache, settings = folder / "lists", folder / "cache", folder / "apt.conf"
    for private in (lists, cache):
        private.mkdir(parents=True, exist_ok=True)
    settings.write_text(_NO_HOOKS, encoding="utf-8")
    private_options = [f"--config-file={settings}", "-o", f"Dir::State::Lists={lists}", "-o", f"Dir::Cache={cache}"]
    apt_get = ["apt-get", *private_options, "-o", "Acquire::Languages=none"]  # no descriptions of all packages
    remedy = f"fetch {', '.join(names)} on another machine and use --from DIR with the .deb files"

    tell("apt-get update: the lists of packages, some 10 to 20 MB")
    update = _run([*apt_get, "update"], folder=folder, remedy=remedy)
    if update.returncode != 0:
        raise DataError(f"apt-get update failed: {_last_complaint(update.stderr)}; {remedy}")

    def download(*options: str, where: Path) -> str:
        done = _run([*apt_get, *options, "download", *names], folder=where, remedy=remedy)
        if done.returncode != 0:  # an update that reached no mirror ends well and only warns: it has the reason
            complaints = [_last_complaint(done.stderr), *_first_warning(update.stderr)]
            raise DataError(f"apt-get download failed: {'; '.join(complaints)}; {remedy}")
        return done.stdout

    # Only packages that are not in the working folder are printed: ask where there are none.
    printed = list(_PRINTED_URI.finditer(download("--print-uris", where=cache)))
    paths = {match["package"]: folder / match["file"] for match in printed}
    missing = [name for name in names if name not in paths]
    if missing:
        raise DataError(f"apt-get names no file for the package {missing[0]}; {remedy}")
    for match in printed:
        if not (folder / match["file"]).exists():
            tell(f"apt-get download: {match['file']}, {int(match['bytes']) / 1e6:.1f} MB")
    download(where=folder)
    return [paths[name] for name in names]


def unpack_package(deb: Path, folder: Path) -> None:
    """Unpack the files of a package into ``folder``, below which they have the paths that they have when installed.

    Raises DataError if the package is missing or corrupt, or if there is no dpkg-deb.
    """
    folder.mkdir(parents=True, exist_ok=True)
    _dpkg_deb("--extract", deb, str(folder.resolve()))


def read_control_field(deb: Path, field: str) -> str:
    """What a package says of itself, such as its ``Package`` (the name) or ``Version``; empty if it says nothing.

    Raises DataError as ``unpack_package`` does.
    """
    return _dpkg_deb("--field", deb, field).strip()


def _dpkg_deb(action: str, deb: Path, argument: str) -> str:
    if not deb.is_file():
        raise DataError(f"{deb} is not a file; a Debian package (.deb) is needed")
    command = ["dpkg-deb", action, str(deb.resolve()), argument]
    done = _run(command, folder=deb.parent, remedy="install dpkg, which Debian and its kin always have")
    if done.returncode != 0:
        raise DataError(f"{deb} cannot be unpacked: {_last_complaint(done.stderr)}; remove it and fetch it again")
    return done.stdout


def _run(command: list[str], *, folder: Path, remedy: str) -> subprocess.CompletedProcess[str]:
    """Run to the end with nothing on the terminal; a Ctrl-C in between ends the child as well."""
    try:
        process = subprocess.Popen(
            command,
            cwd=folder,
            env={**os.environ, "LC_ALL": "C"},  # messages that _last_complaint can read
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            encoding="utf-8",
            errors="replace",
        )
    except OSError as error:
        raise DataError(f"this machine has no {command[0]} ({error.strerror}); {remedy}") from error
    with process:
        try:
            stdout, stderr = process.communicate()
        except BaseException:
            process.kill()
            process.wait()  # subprocess.run does not, and the child would stay in the table of processes
            raise
    return subprocess.CompletedProcess(command, process.returncode, stdout, stderr)


def _last_complaint(stderr: str) -> str:
    """The last line that is an error in apt's eyes (``E: ...``), or else the last one."""
    lines = [line.strip() for line in stderr.splitlines() if line.strip()]
    errors = [line.removeprefix("E: ") for line in lines if line.startswith("E: ")]
    return (errors or lines or ["no reason given"])[-1]


def _first_warning(stderr: str) -> list[str]:
    return [line.removeprefix("W: ") for line in stderr.splitlines() if line.startswith("W: ")][:1]

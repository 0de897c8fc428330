"""Debian packages as a source of text: fetched by apt without root, unpacked without being installed.

A machine that can reach nothing but its package mirror still has real text in this way.
"""

from __future__ import annotations

import io
import os
import re
import select
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path, PurePosixPath
from typing import IO, Any

from transduce.corpora.download import checksum_of_file
from transduce.corpora.unpacking import allowance, regular_files
from transduce.errors import DataError, shown

__all__ = ["fetch_packages", "read_control_field", "unpack_package"]

# What a machine does after an update (emptying its cache, telling other programs) is for updates of its own lists.
_NO_HOOKS = """\
#clear APT::Update::Pre-Invoke;
#clear APT::Update::Post-Invoke;
#clear APT::Update::Post-Invoke-Success;
"""

# A line of "apt-get download --print-uris": 'http://...' dog_1%3a2_all.deb 1200 SHA256:...
_PRINTED_URI = re.compile(
    r"^'[^']*' (?P<file>(?P<package>[^\s_/]+)_[^\s/]+) (?P<bytes>\d+)(?: (?P<algorithm>\w+):(?P<digest>[0-9a-f]+))?",
    re.MULTILINE,
)

MAX_CONTROL_BYTES = 1 << 20  # bytes of what a package says of itself
MAX_STDERR_BYTES = 1 << 16
READ_TIMEOUT_S = 60  # of dpkg-deb, which on a slow disk brings some MB in a second


def fetch_packages(names: Sequence[str], folder: Path, *, log: Callable[[str], None] = lambda line: None) -> list[Path]:
    """Download the newest version of each package into ``folder``; returns the .deb files in the order of ``names``.

    No root is needed and nothing of the system is changed: the lists of packages are updated into ``folder/lists``,
    and apt's cache is ``folder/cache``. A file that is there already in its full size is not fetched again, but every
    file has to have the checksum of the lists. ``log`` gets a line before each thing that takes time.

    Raises DataError if there is no apt-get, if it fails, or if a file is not the one of the lists.
    """
    folder = folder.resolve()  # apt resolves relative paths in its own way
    lists, cache, settings = folder / "lists", folder / "cache", folder / "apt.conf"
    for private in (lists, cache):
        private.mkdir(parents=True, exist_ok=True)
    settings.write_text(_NO_HOOKS, encoding="utf-8")
    private_options = [f"--config-file={settings}", "-o", f"Dir::State::Lists={lists}", "-o", f"Dir::Cache={cache}"]
    apt_get = ["apt-get", *private_options, "-o", "Acquire::Languages=none"]  # no descriptions of all packages
    remedy = f"fetch {', '.join(names)} on another machine and use --from DIR with the .deb files"

    log("apt-get update: the lists of packages, some 10 to 20 MB")
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
            log(f"apt-get download: {match['file']}, {int(match['bytes']) / 1e6:.1f} MB")
    download(where=folder)
    for match in printed:
        _require_checksum(folder / match["file"], match["algorithm"], match["digest"])
    return [paths[name] for name in names]


def _require_checksum(path: Path, algorithm: str | None, digest: str | None) -> None:
    """Raises DataError unless a file is there and has the checksum that the lists of packages give it, if they do."""
    if not path.is_file():
        raise DataError(f"apt-get download ended well, but {path} is not there; try again")
    if algorithm is None or digest is None:
        return
    found = checksum_of_file(path, {"md5sum": "md5"}.get(algorithm.lower(), algorithm.lower()))
    if found.partition(":")[2] != digest:
        raise DataError(f"{path} has {found}, the lists of packages say {digest}; remove it and it is fetched again")


def unpack_package(deb: Path, folder: Path) -> None:
    """Write the plain files of a package below ``folder``, each with the path that it has when installed.

    Links, devices, owners and permissions are left out.

    Raises DataError if the package is missing or corrupt, if it holds more than ``unpacking.allowance`` or a path that
    leads out of the folder, or if there is no dpkg-deb.
    """
    folder.mkdir(parents=True, exist_ok=True)

    def write(name: str, content: IO[bytes]) -> None:
        path = folder / _path_within(name, deb)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("xb") as copy:
                shutil.copyfileobj(content, copy)
        except (FileExistsError, NotADirectoryError) as error:
            raise DataError(f"{deb} has {shown(name)} twice, or as a file and a folder; fetch it again") from error

    _each_file(deb, "--fsys-tarfile", write)


def read_control_field(deb: Path, field: str) -> str:
    """What a package says of itself, such as its ``Package`` (the name) or ``Version``; empty if it says nothing.

    Raises DataError as ``unpack_package`` does.
    """
    control = b""

    def read(name: str, content: IO[bytes]) -> None:
        nonlocal control
        if PurePosixPath(name) == PurePosixPath("control"):
            control = content.read(MAX_CONTROL_BYTES)

    _each_file(deb, "--ctrl-tarfile", read)
    pattern = re.compile(rf"^{re.escape(field)}:(.*(?:\n[ \t].*)*)", re.MULTILINE | re.IGNORECASE)
    found = pattern.search(control.decode("utf-8", "replace"))
    return found[1].strip() if found else ""


def _path_within(name: str, deb: Path) -> PurePosixPath:
    """The path of a file as it may be written below a folder. Raises DataError if it would lead elsewhere."""
    path = PurePosixPath(name)
    if path.is_absolute() or ".." in path.parts or not path.name or "\0" in name:
        raise DataError(f"{deb} has a file {shown(name)}, which leads out of the folder; it is no package of Debian's")
    return path


def _each_file(deb: Path, part: str, take: Callable[[str, IO[bytes]], None]) -> None:
    """Give ``take`` the name and the content of each plain file in a part of a package, as dpkg-deb brings them.

    Raises DataError as ``unpack_package`` does; what was taken is good only if it does not.
    """
    if not deb.is_file():
        raise DataError(f"{deb} is not a file; a Debian package (.deb) is needed")
    command = ["dpkg-deb", part, str(deb.resolve())]
    remedy = "install dpkg, which Debian and its kin always have"
    with tempfile.TemporaryFile() as complaints:
        process = _start(command, folder=deb.parent, stderr=complaints, remedy=remedy, is_group=True)
        assert process.stdout is not None
        output = io.BufferedReader(_Output(process.stdout))
        damage: DataError | None = None
        try:
            try:
                for name, content in regular_files(output, deb, limit=allowance(deb)):
                    take(name, content)
            except DataError as error:
                damage = error
            if not _is_at_end(output):  # dpkg-deb is at work or hangs: what is wrong is what we found
                assert damage is not None
                raise damage
            process.wait()
        finally:
            process.stdout.close()
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)  # on some damaged files its decompressor never ends
            process.wait()
        if process.returncode != 0:
            complaints.seek(0)
            reason = _last_complaint(complaints.read(MAX_STDERR_BYTES).decode("utf-8", "replace"))
            raise DataError(f"{deb} cannot be unpacked: {shown(reason)}; remove it and fetch it again") from damage
        if damage is not None:
            raise damage


class _Output(io.RawIOBase):
    """What a program writes; it is an OSError if it writes nothing for long and does not end."""

    def __init__(self, pipe: IO[bytes]) -> None:
        self._descriptor = pipe.fileno()

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        waiting = select.poll()
        waiting.register(self._descriptor, select.POLLIN)
        if not waiting.poll(1000 * READ_TIMEOUT_S):
            raise TimeoutError(f"dpkg-deb has brought nothing for {READ_TIMEOUT_S} s")
        return os.readv(self._descriptor, [buffer])


def _is_at_end(output: IO[bytes]) -> bool:
    try:
        return not output.read(1)
    except TimeoutError:
        return False


def _run(command: list[str], *, folder: Path, remedy: str) -> subprocess.CompletedProcess[str]:
    """Run to the end with nothing on the terminal; a Ctrl-C in between ends the child as well."""
    process = _start(command, folder=folder, stderr=subprocess.PIPE, remedy=remedy)
    with process:
        try:
            stdout, stderr = (output.decode("utf-8", "replace") for output in process.communicate())
        except BaseException:
            process.kill()
            process.wait()  # subprocess.run does not, and the child would stay in the table of processes
            raise
    return subprocess.CompletedProcess(command, process.returncode, stdout, stderr)


def _start(
    command: list[str], *, folder: Path, stderr: int | IO[bytes], remedy: str, is_group: bool = False
) -> subprocess.Popen[bytes]:
    """A program, with ``is_group`` one that is killed with all that it starts.

    Raises DataError if this machine has none.
    """
    try:
        return subprocess.Popen(
            command,
            cwd=folder,
            env={**os.environ, "LC_ALL": "C"},  # messages that _last_complaint can read
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=stderr,
            start_new_session=is_group,
        )
    except OSError as error:
        raise DataError(f"this machine has no {command[0]} ({error.strerror}); {remedy}") from error


def _last_complaint(stderr: str) -> str:
    """The last line that is an error in apt's eyes (``E: ...``), or else the last one."""
    lines = [line.strip() for line in stderr.splitlines() if line.strip()]
    errors = [line.removeprefix("E: ") for line in lines if line.startswith("E: ")]
    return (errors or lines or ["no reason given"])[-1]


def _first_warning(stderr: str) -> list[str]:
    return [line.removeprefix("W: ") for line in stderr.splitlines() if line.startswith("W: ")][:1]

"""Download Debian packages with apt without root, and read their files without installing.

This makes real text available on machines that can only reach a package mirror.
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
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from pathlib import Path, PurePosixPath
from typing import IO, Any

from transduce.corpora.download import checksum_of_file
from transduce.corpora.unpacking import allowance, regular_files
from transduce.errors import DataError, shown
from transduce.files import remove

__all__ = ["fetch_packages", "log_left_out", "read_control_field", "read_files"]

# Hooks configured on the machine (cache cleaning, notifications) must not run for the private package lists.
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

N_NAMES_SHOWN = 3  # of packages in an error message
MAX_CONTROL_BYTES = 1 << 20  # of a control file are read
MAX_STDERR_BYTES = 1 << 16
READ_TIMEOUT_S = 60  # without output of dpkg-deb, which writes some MB a second even on a slow disk


def fetch_packages(
    names: Sequence[str],
    folder: Path,
    *,
    needs_all: bool = True,
    log: Callable[[str], None] = lambda line: None,
) -> dict[str, Path]:
    """Download the newest version of each package into ``folder``; return the .deb files by name.

    Root is not needed and the system is not changed: package lists are in ``folder/lists``, apt's cache in
    ``folder/cache``; of a call that fails they are removed. A complete file is not downloaded again, but every file is
    verified against the lists. ``log`` gets a line before each slow step, and one with the packages that this release
    of Debian lacks.

    Raises DataError if apt-get is missing or fails, if a file has another checksum than in the lists, or if the release
    lacks a package, without ``needs_all`` if it lacks all of them.
    """
    folder = folder.resolve()  # apt resolves relative paths differently
    lists, cache, settings = folder / "lists", folder / "cache", folder / "apt.conf"
    for private in (lists, cache):
        private.mkdir(parents=True, exist_ok=True)
    settings.write_text(_NO_HOOKS, encoding="utf-8")
    try:
        options = [f"--config-file={settings}", "-o", f"Dir::State::Lists={lists}", "-o", f"Dir::Cache={cache}"]
        return _fetch(names, folder, cache=cache, options=options, needs_all=needs_all, log=log)
    except BaseException:
        for private in (lists, cache, settings):
            remove(private)
        raise


def _fetch(
    names: Sequence[str],
    folder: Path,
    *,
    cache: Path,
    options: Sequence[str],
    needs_all: bool,
    log: Callable[[str], None],
) -> dict[str, Path]:
    """Update the package lists, then download the packages."""
    apt_get = ["apt-get", *options, "-o", "Acquire::Languages=none"]  # do not download descriptions
    more = f" and {len(names) - N_NAMES_SHOWN} more" if len(names) > N_NAMES_SHOWN else ""
    wanted = ", ".join(names[:N_NAMES_SHOWN]) + more
    remedy = f"fetch {wanted} on another machine and use --from DIR with the .deb files"

    log("apt-get update: package lists, some 10 to 20 MB")
    update = _run([*apt_get, "update"], folder=folder, remedy=remedy)
    if update.returncode != 0:
        raise DataError(f"apt-get update failed: {_last_error(update.stderr)}; {remedy}")

    def failed(done: subprocess.CompletedProcess[str]) -> DataError:
        # An update that reaches no mirror exits with 0, and its warning has the reason.
        warnings = [line.removeprefix("W: ") for line in update.stderr.splitlines() if line.startswith("W: ")]
        errors = [_last_error(done.stderr), *warnings[:1]]
        return DataError(f"apt-get download failed: {'; '.join(errors)}; {remedy}")

    # apt-get does not print packages that are in the working folder, so run it in one without packages. It prints those
    # that it knows, also if it fails because of others.
    asked = _run([*apt_get, "--print-uris", "download", *names], folder=cache, remedy=remedy)
    printed = {match["package"]: match for match in _PRINTED_URI.finditer(asked.stdout)}
    known = [name for name in names if name in printed]
    if asked.returncode != 0 and (needs_all or not known):
        raise failed(asked)
    missing = [name for name in names if name not in printed]
    if missing and (needs_all or not known):
        raise DataError(f"apt-get has no file for the package {missing[0]}; {remedy}")
    log_left_out(known, names, log)
    for match in printed.values():
        if not (folder / match["file"]).exists():
            log(f"apt-get download: {match['file']}, {int(match['bytes']) / 1e6:.1f} MB")
    done = _run([*apt_get, "download", *known], folder=folder, remedy=remedy)
    if done.returncode != 0:
        raise failed(done)
    for match in printed.values():
        _require_checksum(folder / match["file"], match["algorithm"], match["digest"])
    return {name: folder / printed[name]["file"] for name in known}


def log_left_out(known: Collection[str], names: Sequence[str], log: Callable[[str], None]) -> None:
    """Log the packages that cannot be had, in one line."""
    left_out = [name for name in names if name not in known]
    if left_out:
        log(f"left out, since they are not there: {', '.join(left_out)}")


def _require_checksum(path: Path, algorithm: str | None, digest: str | None) -> None:
    """Verify that a file exists and has the checksum of the package lists, if known. Raises DataError."""
    if not path.is_file():
        raise DataError(f"apt-get download succeeded, but {path} does not exist; try again")
    if algorithm is None or digest is None:
        return
    actual = checksum_of_file(path, {"md5sum": "md5"}.get(algorithm.lower(), algorithm.lower()))
    if actual.partition(":")[2] != digest:
        raise DataError(f"{path} has {actual}, expected {digest} from the package lists; remove it to fetch it again")


def read_files(deb: Path, is_wanted: Callable[[str], bool]) -> dict[str, bytes]:
    """Return the contents of some regular files of a package, by the path that they have when installed.

    Nothing is written. Links, devices, owners and permissions are ignored.

    Raises DataError if the package is missing or corrupt, exceeds ``unpacking.allowance`` or has a wanted file twice,
    or if dpkg-deb is missing.
    """
    contents = dict[str, bytes]()

    def read(name: str, content: IO[bytes]) -> None:
        path = str(PurePosixPath(name))
        if is_wanted(path):
            if path in contents:
                raise DataError(f"{deb} has {shown(path)} twice; fetch it again")
            copy = io.BytesIO()
            shutil.copyfileobj(content, copy)  # in pieces, since the sizes in headers are not trusted
            contents[path] = copy.getvalue()

    _each_file(deb, "--fsys-tarfile", read)
    return contents


def read_control_field(deb: Path, field: str) -> str:
    """Return a field of a package's control file, such as ``Package`` (the name) or ``Version``; "" if absent.

    Raises DataError as ``read_files`` does.
    """
    control = b""

    def read(name: str, content: IO[bytes]) -> None:
        nonlocal control
        if PurePosixPath(name) == PurePosixPath("control"):
            control = content.read(MAX_CONTROL_BYTES)

    _each_file(deb, "--ctrl-tarfile", read)
    pattern = re.compile(rf"^{re.escape(field)}:(.*(?:\n[ \t].*)*)", re.MULTILINE | re.IGNORECASE)
    match = pattern.search(control.decode("utf-8", "replace"))
    return match[1].strip() if match else ""


def _each_file(deb: Path, part: str, handle: Callable[[str, IO[bytes]], None]) -> None:
    """Call ``handle`` with name and content of each regular file in a part of a package, as dpkg-deb writes them.

    Raises DataError as ``read_files`` does; then the contents handled so far must be discarded.
    """
    if not deb.is_file():
        raise DataError(f"{deb} is not a file; a Debian package (.deb) is needed")
    command = ["dpkg-deb", part, str(deb.resolve())]
    remedy = "install dpkg, which Debian and its derivatives always have"
    with tempfile.TemporaryFile() as stderr:
        process = _start(command, folder=deb.parent, stderr=stderr, remedy=remedy, is_group=True)
        assert process.stdout is not None
        output = io.BufferedReader(_Output(process.stdout))
        damage: DataError | None = None
        try:
            try:
                for name, content in regular_files(output, deb, limit=allowance(deb)):
                    handle(name, content)
            except DataError as error:
                damage = error
            if not _is_at_end(output):  # dpkg-deb still runs or hangs, so it has no exit status yet
                assert damage is not None
                raise damage
            process.wait()
        finally:
            process.stdout.close()
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)  # on some damaged files its decompressor never ends
            process.wait()
        if process.returncode != 0:
            stderr.seek(0)
            reason = _last_error(stderr.read(MAX_STDERR_BYTES).decode("utf-8", "replace"))
            raise DataError(f"{deb} cannot be unpacked: {shown(reason)}; remove it and fetch it again") from damage
        if damage is not None:
            raise damage


class _Output(io.RawIOBase):
    """Output of a process as a stream; raises TimeoutError after READ_TIMEOUT_S without output."""

    def __init__(self, pipe: IO[bytes]) -> None:
        self._descriptor = pipe.fileno()

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        poll = select.poll()
        poll.register(self._descriptor, select.POLLIN)
        if not poll.poll(1000 * READ_TIMEOUT_S):
            raise TimeoutError(f"dpkg-deb has written nothing for {READ_TIMEOUT_S} s")
        return os.readv(self._descriptor, [buffer])


def _is_at_end(output: IO[bytes]) -> bool:
    try:
        return not output.read(1)
    except TimeoutError:
        return False


def _run(command: list[str], *, folder: Path, remedy: str) -> subprocess.CompletedProcess[str]:
    """Run a command with captured output; an interrupt kills the child process as well."""
    process = _start(command, folder=folder, stderr=subprocess.PIPE, remedy=remedy)
    with process:
        try:
            stdout, stderr = (output.decode("utf-8", "replace") for output in process.communicate())
        except BaseException:
            process.kill()
            process.wait()  # subprocess.run does not, and the child would remain a zombie
            raise
    return subprocess.CompletedProcess(command, process.returncode, stdout, stderr)


def _start(
    command: list[str], *, folder: Path, stderr: int | IO[bytes], remedy: str, is_group: bool = False
) -> subprocess.Popen[bytes]:
    """Start a command, with ``is_group`` in its own process group. Raises DataError if it is not installed."""
    try:
        return subprocess.Popen(
            command,
            cwd=folder,
            env={**os.environ, "LC_ALL": "C"},  # untranslated messages for _last_error
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=stderr,
            start_new_session=is_group,
        )
    except OSError as error:
        raise DataError(f"this machine has no {command[0]} ({error.strerror}); {remedy}") from error


def _last_error(stderr: str) -> str:
    """Return the last line marked as an error by apt (``E: ...``), or else the last line."""
    lines = [line.strip() for line in stderr.splitlines() if line.strip()]
    errors = [line.removeprefix("E: ") for line in lines if line.startswith("E: ")]
    return (errors or lines or ["no reason given"])[-1]

"""Packages are fetched by apt-get into a private folder and unpacked; errors are one line.

A script stands in for apt-get; packages are real ones, built here by dpkg-deb.
"""

from __future__ import annotations

import hashlib
import os
import re
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from debs import build_deb
from said import naming, says
from transduce.corpora.debian_packages import fetch_packages, read_control_field, read_files
from transduce.errors import DataError

# Notes its language, folder and arguments; has a mirror with two packages of 1,000 bytes.
APT_GET = """\
#!/bin/sh
echo "$LC_ALL|$PWD|$*" >> "{calls}"
echo "noise on stdout"
echo "W: noise on stderr" >&2
case "$*" in
*--print-uris*)
    echo "'http://mirror/dog.deb' dog_1%3a2-3_all.deb 1000 SHA256:{sha256}"
    echo "'http://mirror/cat.deb' cat_4_all.deb 1000 SHA256:{sha256}"
    case "$*" in *cow*) echo "E: Unable to locate package cow" >&2; exit 100 ;; esac ;;
*download*)
    for deb in dog_1%3a2-3_all.deb cat_4_all.deb; do [ -e $deb ] || echo fetched > $deb; done ;;
esac
"""


@pytest.fixture
def path_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that is first in PATH."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")
    return folder


@pytest.fixture
def write_apt_get(path_folder: Path) -> Callable[[str], None]:
    def write(script: str) -> None:
        (path_folder / "apt-get").write_text(script)
        (path_folder / "apt-get").chmod(0o755)

    return write


@pytest.fixture
def calls(tmp_path: Path, write_apt_get: Callable[[str], None]) -> Path:
    """File in which a working apt-get records its arguments."""
    path = tmp_path / "calls"
    write_apt_get(APT_GET.format(calls=path, sha256=hashlib.sha256(b"fetched\n").hexdigest()))
    return path


def test_packages_are_fetched_into_the_folder_and_nothing_else_is_touched(
    calls: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    told: list[str] = []
    paths = fetch_packages(["cat", "dog"], Path("got"), log=told.append)

    folder = tmp_path / "got"
    assert paths == {"cat": folder / "cat_4_all.deb", "dog": folder / "dog_1%3a2-3_all.deb"}
    assert [path.read_text() for path in paths.values()] == ["fetched\n"] * 2
    update, ask, download = [line.split("|") for line in calls.read_text().splitlines()]
    for language, _, arguments in (update, ask, download):
        assert language == "C"
        assert f"--config-file={folder}/apt.conf " in arguments
        assert f"Dir::State::Lists={folder}/lists " in arguments
        assert f"Dir::Cache={folder}/cache " in arguments
    assert update[2].endswith(" update")
    assert ask[1] == f"{folder}/cache"
    assert ask[2].endswith(" --print-uris download cat dog")
    assert download[1] == str(folder)
    assert download[2].endswith(" download cat dog")
    assert "#clear APT::Update::Post-Invoke;" in (folder / "apt.conf").read_text()
    assert [line.split(":")[0] for line in told] == ["apt-get update", "apt-get download", "apt-get download"]
    assert told[1] == "apt-get download: dog_1%3a2-3_all.deb, 0.0 MB"
    assert capfd.readouterr() == ("", "")


def test_what_is_there_is_not_announced_again(calls: Path, tmp_path: Path) -> None:
    (tmp_path / "cat_4_all.deb").write_text("fetched\n")
    told: list[str] = []
    paths = fetch_packages(["cat", "dog"], tmp_path, log=told.append)
    assert [path.read_text() for path in paths.values()] == ["fetched\n"] * 2
    assert len(told) == 2
    assert "dog" in told[1]


def test_what_is_there_has_the_checksum_of_the_lists(calls: Path, tmp_path: Path) -> None:
    (tmp_path / "cat_4_all.deb").write_text("f3tched\n")
    with pytest.raises(DataError, match=naming("cat_4_all.deb", re.compile(r"sha256:\w+"))):
        fetch_packages(["cat", "dog"], tmp_path)


def test_a_package_that_apt_does_not_know(calls: Path, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=naming("cow", "cat", "--from")):
        fetch_packages(["cat", "cow"], tmp_path)


def test_packages_that_apt_does_not_know_are_left_out_unless_each_is_needed(calls: Path, tmp_path: Path) -> None:
    told: list[str] = []
    names = ["cow", "cat", "dog", "sow"]
    assert list(fetch_packages(names, tmp_path, needs_all=False, log=told.append)) == ["cat", "dog"]
    assert sum(says(line, "cow", "sow") and not says(line, "cat") for line in told) == 1
    assert calls.read_text().splitlines()[-1].endswith(" download cat dog")
    with pytest.raises(DataError, match=naming("cow")):
        fetch_packages(["cow", "sow"], tmp_path, needs_all=False)


def test_no_apt_get(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(DataError, match=naming("apt-get", "cat", "--from")):
        fetch_packages(["cat"], tmp_path)


def test_an_update_that_fails(write_apt_get: Callable[[str], None], tmp_path: Path) -> None:
    write_apt_get("#!/bin/sh\necho 'E: first' >&2\necho 'E: the disk is full' >&2\necho 'W: late' >&2\nexit 100\n")
    with pytest.raises(DataError, match=naming("apt-get update", "the disk is full", "cat")) as caught:
        fetch_packages(["cat"], tmp_path / "got")
    assert "\n" not in str(caught.value)
    assert list((tmp_path / "got").iterdir()) == []


def test_a_download_that_fails_tells_what_the_update_warned_of(
    write_apt_get: Callable[[str], None], tmp_path: Path
) -> None:
    write_apt_get(
        "#!/bin/sh\ncase $* in *update) echo 'W: no network' >&2;; *) echo 'E: unknown cat' >&2; exit 100;; esac\n"
    )
    with pytest.raises(DataError, match=naming("apt-get download", "unknown cat", "no network")):
        fetch_packages(["cat"], tmp_path)


def test_an_interrupt_ends_apt_get(write_apt_get: Callable[[str], None], tmp_path: Path) -> None:
    process_id = tmp_path / "process_id"
    write_apt_get(f'#!/bin/sh\necho $$ > "{process_id}"\nexec sleep 60\n')

    def interrupt(signal_number: int, frame: object) -> None:
        if process_id.exists() and process_id.read_text():
            signal.setitimer(signal.ITIMER_REAL, 0)
            raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    signal.setitimer(signal.ITIMER_REAL, 0.05, 0.05)
    try:
        with pytest.raises(KeyboardInterrupt):
            fetch_packages(["cat"], tmp_path / "got")
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    with pytest.raises(ProcessLookupError):
        os.kill(int(process_id.read_text()), 0)


@pytest.fixture
def deb(tmp_path: Path) -> Path:
    return build_deb(tmp_path / "dog_1%3a2-3_all.deb", "dog", "1:2-3", {"usr/share/dog.txt": b"bark"})


def test_the_files_of_a_package_and_what_it_says_of_itself(deb: Path) -> None:
    assert read_files(deb, lambda path: path.endswith(".txt")) == {"usr/share/dog.txt": b"bark"}
    assert read_files(deb, lambda path: path.endswith(".html")) == {}
    assert read_control_field(deb, "Package") == "dog"
    assert read_control_field(deb, "Version") == "1:2-3"
    assert read_control_field(deb, "Homepage") == ""


def test_a_package_that_is_corrupt(deb: Path) -> None:
    deb.write_bytes(deb.read_bytes()[:-60])
    with pytest.raises(DataError, match=naming("dog_1%3a2-3_all.deb")):
        read_files(deb, bool)
    deb.write_text("a page that says that there is no such file here\n" * 9)
    with pytest.raises(DataError, match=naming("dog_1%3a2-3_all.deb", "not a Debian format archive")):
        read_control_field(deb, "Version")


def test_a_package_that_is_missing(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=naming("none.deb")):
        read_files(tmp_path / "none.deb", bool)


def test_no_dpkg_deb(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    (tmp_path / "dog.deb").write_text("a dog")
    with pytest.raises(DataError, match=naming("dpkg-deb", "dpkg")):
        read_files(tmp_path / "dog.deb", bool)

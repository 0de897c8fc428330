"""Corpora fetched into a data folder: from a server, from archives, from copies; and the errors."""

from __future__ import annotations

import functools
import gzip
import hashlib
import http.server
import io
import json
import lzma
import re
import shutil
import tarfile
import threading
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sacrebleu.dataset import DATASETS
from sacrebleu.dataset.fake_sgml import FakeSGMLDataset

from said import naming, says
from transduce.corpora import getting
from transduce.corpora.catalogue import CATALOGUE
from transduce.corpora.corpus import Builder, Corpus, Log, RemoteFile, Text
from transduce.corpora.download import checksum_of_file
from transduce.corpora.free_texts import FREE_TEXTS
from transduce.corpora.getting import get_corpus
from transduce.corpora.layout import available_directions, find_text
from transduce.corpora.package_text import PackageText
from transduce.corpora.unpacking import segments, unpack
from transduce.errors import ConfigError, DataError

SHARED_DATA = Path(__file__).parents[3] / "shared" / "data"

EN, DE, FR = "A dog.\nA cat.\nA cow.\n", "Ein Hund.\nEine Katze.\nEine Kuh.\n", "Un chien.\nUn chat.\nUne vache.\n"
SGM = '<refset>\n<doc id="a">\n<seg id="1">{}</seg>\n<seg id="2">  Two   words </seg>\r\n</doc>\n'


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    """A server of the files in a folder."""
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    site = Site(tmp_path / "site")
    site.folder.mkdir()

    class Handler(http.server.SimpleHTTPRequestHandler):
        def do_GET(self) -> None:
            site.requests.append(self.path)
            super().do_GET()

        def log_message(self, *arguments: Any) -> None:
            pass

    handler = functools.partial(Handler, directory=str(site.folder))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        site.address = f"http://127.0.0.1:{server.server_port}"
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield site
        server.shutdown()
        thread.join()


class Site:
    """Files of the server, and the requests it received."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.address = ""
        self.requests: list[str] = []

    def has(self, name: str, content: bytes) -> tuple[str, str]:
        """Add a file; return its address and its checksum."""
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        return f"{self.address}/{name}", checksum_of_file(path, "md5")


def _archive(members: Mapping[str, str | bytes], mode: str = "w:gz") -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode=mode) as archive:
        for name, text in members.items():
            content = text.encode() if isinstance(text, str) else text
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
    return buffer.getvalue()


def _small_corpus(site: Site) -> Corpus:
    """Single files like those of Multi30k, an archive of plain text, two of the same name with SGML."""
    texts = {"train.en": EN, "train.de": DE, "train.fr": FR}
    single = [(f"raw/{name}.gz", f"small/{name}.gz", gzip.compress(text.encode())) for name, text in texts.items()]
    remote = [
        RemoteFile(address, {name: ""}, md5) for path, name, raw in single for address, md5 in [site.has(path, raw)]
    ]
    address, _ = site.has("dev.tar", _archive({f"./dev/d.{name[-2:]}": text for name, text in texts.items()}, mode="w"))
    remote.append(RemoteFile(address, {f"news/d.{language}": f"dev/d.{language}" for language in ("en", "de", "fr")}))
    for year, src in (("14", "one"), ("15", "two")):
        sgm = {f"test/n{year}-src.en.sgm": SGM.format(src), f"test/n{year}-ref.de.sgm": SGM.format("eins")}
        address, md5 = site.has(f"wmt{year}/test.tgz", _archive({"test/other.txt": "other", **sgm}))
        members = {f"news/n{year}.en-de.{name[-6:-4]}": name for name in sgm}
        remote.append(RemoteFile(address, members, md5))
    three = ("en", "de", "fr")
    return Corpus(
        "small",
        three,
        size="",
        licence="",
        source="a test",
        train=(Text("small", "train", three),),
        dev=(Text("news", "d", three),),
        test=(Text("news", "n14", three),),
        further=(Text("news", "n15.en-de", ("en", "de")),),
        remote=tuple(remote),
    )


def _names(folder: Path) -> set[str]:
    """The files below a folder, without those of ``downloads``."""
    names = (path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())
    return {name for name in names if not name.startswith("downloads/")}


def test_a_corpus_from_a_server(site: Site, tmp_path: Path) -> None:
    corpus, folder = _small_corpus(site), tmp_path / "data"
    lines: list[str] = []
    counts = get_corpus(corpus, folder, log=lines.append)
    assert counts == {"train": 3, "d": 3, "n14.en-de": 2, "n15.en-de": 2}
    plain = {
        f"news/{name}"
        for name in ("d.en", "d.de", "d.fr", *(f"n{y}.en-de.{side}" for y in (14, 15) for side in ("en", "de")))
    }
    assert _names(folder) == {"small/train.en.gz", "small/train.de.gz", "small/train.fr.gz", *plain}
    assert (folder / "news/n15.en-de.en").read_text() == "two\nTwo words\n"
    assert gzip.decompress((folder / "small/train.fr.gz").read_bytes()).decode() == FR
    kept = list((folder / "downloads").rglob("test.tgz"))
    assert len(kept) == 2
    assert all(any(str(path) in line for line in lines) for path in kept)
    assert "missing: n14 en-fr" in lines

    n_requests = len(site.requests)
    assert get_corpus(corpus, folder, direction="en-de") == counts
    assert len(site.requests) == n_requests


def test_only_what_a_direction_needs_is_fetched(site: Site, tmp_path: Path) -> None:
    corpus, folder = _small_corpus(site), tmp_path / "data"
    assert get_corpus(corpus, folder, direction="fr-en") == {"train": 3, "d": 3}
    assert site.requests == ["/raw/train.en.gz", "/raw/train.fr.gz", "/dev.tar"]
    assert _names(folder) == {"small/train.en.gz", "small/train.fr.gz", "news/d.en", "news/d.fr"}
    get_corpus(corpus, folder, direction="en-de")
    assert site.requests[3:] == ["/raw/train.de.gz", "/wmt14/test.tgz", "/wmt15/test.tgz"]  # dev.tar was kept


def test_a_text_that_is_there_in_another_compression_is_kept(site: Site, tmp_path: Path) -> None:
    corpus, folder = _small_corpus(site), tmp_path / "data"
    (folder / "small").mkdir(parents=True)
    (folder / "small/train.en.xz").write_bytes(lzma.compress(EN.encode()))
    assert get_corpus(corpus, folder, direction="en-fr")["train"] == 3
    assert "/raw/train.en.gz" not in site.requests
    assert "small/train.en.gz" not in _names(folder)


@pytest.mark.parametrize("direction", ["en-es", "en", "en-en", "en-de-fr", ""])
def test_directions_that_are_none(tmp_path: Path, direction: str) -> None:
    with pytest.raises(ConfigError, match=naming("en-de", "en-fr", "de-fr", f"'{direction}'", "multi30k")):
        get_corpus(CATALOGUE["multi30k"], tmp_path, direction=direction)


@pytest.mark.parametrize("name", ["tatoeba", "libreoffice-help"])
def test_pairs_of_languages_that_a_corpus_has_not(tmp_path: Path, name: str) -> None:
    with pytest.raises(ConfigError, match=naming("en-de", "en-fr", "'de-fr'", name)):
        get_corpus(CATALOGUE[name], tmp_path, direction="de-fr", from_folder=tmp_path)


def test_checksums_that_nobody_published_are_recorded_and_compared(site: Site, tmp_path: Path) -> None:
    corpus, folder = _small_corpus(site), tmp_path / "data"
    get_corpus(corpus, folder, direction="en-fr")
    ledger = folder / "downloads" / "checksums.json"
    entry = json.loads(ledger.read_text())
    sha256 = hashlib.sha256((site.folder / "dev.tar").read_bytes()).hexdigest()
    assert entry == {f"{site.address}/dev.tar": {"sha256": sha256, "bytes": (site.folder / "dev.tar").stat().st_size}}
    archive = next(folder.rglob("dev.tar"))
    archive.write_bytes(_archive({"dev/d.de": "Ein anderer Hund.\n"}))
    with pytest.raises(DataError, match=naming("dev.tar", re.compile(r"sha256:\w+"), re.compile(r"sha256:\w+"))):
        get_corpus(corpus, folder, direction="en-de")
    assert "news/d.de" not in _names(folder)


@pytest.mark.parametrize(
    ("content", "facts"),
    [
        (_archive({"dev/d.en": EN, "dev/D.fr": FR}), ["dev/d.fr"]),
        (_archive({"dev/d.en": EN, "dev/d.fr": FR}, mode="w")[:600], ["unexpected end"]),
        (_archive({"dev/d.en": EN * 9, "dev/d.fr": FR})[:-80], []),
        (b"<html>Sign in to this network</html>" * 99, []),
        (b"", ["empty file"]),
    ],
    ids=["another version", "end missing", "cut", "a page", "empty"],
)
def test_archives_that_are_not_what_they_should_be(
    site: Site, tmp_path: Path, content: bytes, facts: list[str]
) -> None:
    corpus, folder = _small_corpus(site), tmp_path / "data"
    site.has("dev.tar", content)
    with pytest.raises(DataError, match=naming("dev.tar", *facts)):
        get_corpus(corpus, folder, direction="en-fr")
    assert not (folder / "downloads" / "checksums.json").exists()
    assert "news/d.fr" not in _names(folder)


def test_only_listed_regular_members_are_written(tmp_path: Path) -> None:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        for name in ("../../evil", "/evil", "a.en"):
            archive.addfile(tarfile.TarInfo(name))
        link = tarfile.TarInfo("b.en")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
        archive.addfile(link)
    path = tmp_path / "in" / "a.tgz"
    path.parent.mkdir()
    path.write_bytes(buffer.getvalue())
    with pytest.raises(DataError, match=naming("a.tgz", "b.en")):
        unpack(path, {"x/a.en": "a.en", "x/b.en": "b.en"}, tmp_path / "out")
    assert _names(tmp_path) == {"in/a.tgz"}


def test_texts_that_do_not_align_are_refused(site: Site, tmp_path: Path) -> None:
    corpus = replace(_small_corpus(site), dev=(), test=(), further=())
    de = b"Ein Hund.\nEine K\xfche.\n"
    copies = tmp_path / "copies"
    copies.mkdir()
    (copies / "train.en").write_text(EN)
    (copies / "train.de").write_bytes(de)
    with pytest.raises(DataError, match=naming(copies / "train.de", 2, copies / "train.en", 3)):
        get_corpus(corpus, tmp_path / "data", direction="en-de", from_folder=copies)
    assert _names(tmp_path / "data") == set()

    _, md5 = site.has("raw/train.de.gz", gzip.compress(de))
    remote = [replace(file, checksum=md5) if "train.de" in file.name else file for file in corpus.remote]
    with pytest.raises(DataError, match=naming("train.de", 2, "train.en", 3)):
        get_corpus(replace(corpus, remote=tuple(remote)), tmp_path / "data", direction="en-de")


def test_a_line_that_is_not_utf8_is_left_to_the_cleaning(site: Site, tmp_path: Path) -> None:
    corpus = replace(_small_corpus(site), dev=(), test=(), further=())
    copies = tmp_path / "copies"
    copies.mkdir()
    (copies / "train.en").write_text(EN)
    (copies / "train.de").write_bytes(b"Ein Hund.\nEine K\xfche.\nx\n")
    assert get_corpus(corpus, tmp_path / "data", direction="en-de", from_folder=copies) == {"train": 3}


def test_line_ends_and_separators(tmp_path: Path) -> None:
    """Lines end in "\\n" alone, also across chunks; the last one may lack it."""
    (tmp_path / "own").mkdir()
    (tmp_path / "own/train.en").write_text("é\u2028\x0c\r\n" * 400_000 + "end")
    (tmp_path / "own/train.de").write_bytes(b"\n" * 400_001)
    own = Corpus("own", (), size="", licence="", source="", train=(Text("own", "train"),))
    assert get_corpus(own, tmp_path, direction="en-de") == {"train": 400_001}
    with pytest.raises(ConfigError, match=naming("en-de", None, "own")):
        get_corpus(own, tmp_path)


# Copies


def _as_archives(corpus: Corpus, site: Site, copies: Path) -> None:
    shutil.copytree(site.folder, copies / "downloads" / "127.0.0.1")
    (copies / "small").mkdir()
    for path in (site.folder / "raw").iterdir():
        shutil.copy(path, copies / "small")


def _by_name_alone(corpus: Corpus, site: Site, copies: Path) -> None:
    """Of the two archives called test.tgz, only the older is present."""
    for name in ("dev.tar", "wmt14/test.tgz", "raw/train.en.gz", "raw/train.de.gz"):
        shutil.copy(site.folder / name, copies)


def _as_texts(corpus: Corpus, site: Site, copies: Path) -> None:
    (copies / "small").mkdir()
    (copies / "small/train.en").write_text(EN)
    (copies / "small/train.de.xz").write_bytes(lzma.compress(DE.encode()))


@pytest.mark.parametrize(
    ("lay_out", "counts", "absent"),
    [
        (_as_archives, {"train": 3, "d": 3, "n14.en-de": 2, "n15.en-de": 2}, []),
        (_by_name_alone, {"train": 3, "d": 3, "n14.en-de": 2}, ["missing: n15.en-de en-de"]),
        (_as_texts, {"train": 3}, [f"missing: {stem} en-de" for stem in ("d", "n14", "n15.en-de")]),
    ],
)
def test_copies_instead_of_a_network(
    site: Site,
    tmp_path: Path,
    lay_out: Callable[[Corpus, Site, Path], None],
    counts: dict[str, int],
    absent: list[str],
) -> None:
    corpus, copies = _small_corpus(site), tmp_path / "copies"
    lines: list[str] = []
    copies.mkdir()
    lay_out(corpus, site, copies)
    for _ in range(2):
        lines.clear()
        assert get_corpus(corpus, tmp_path / "data", direction="en-de", from_folder=copies, log=lines.append) == counts
        assert [line for line in lines if not line.startswith("unpacking")] == absent
    assert site.requests == []


def test_a_copy_without_training_text_is_no_success(site: Site, tmp_path: Path) -> None:
    corpus, copies = _small_corpus(site), tmp_path / "copies"
    copies.mkdir()
    shutil.copy(site.folder / "dev.tar", copies)
    lines: list[str] = []
    with pytest.raises(DataError, match=naming(copies, "small", "train", "en-de", tmp_path / "data", "d 3")):
        get_corpus(corpus, tmp_path / "data", direction="en-de", from_folder=copies, log=lines.append)
    assert _names(tmp_path / "data") == {"news/d.en", "news/d.de"}  # files already fetched remain
    assert [line for line in lines if not line.startswith("unpacking")] == []
    dev_alone = replace(corpus, train=())
    assert get_corpus(dev_alone, tmp_path / "data", direction="en-de", from_folder=copies) == {"d": 3}


def test_a_damaged_copy_of_an_archive_is_refused(site: Site, tmp_path: Path) -> None:
    corpus, copies = _small_corpus(site), tmp_path / "copies"
    copies.mkdir()
    (copies / "test.tgz").write_bytes((site.folder / "wmt14/test.tgz").read_bytes()[:-1])
    with pytest.raises(
        DataError,
        match=naming(
            "copies/test.tgz", re.compile(r"md5:\w+"), re.compile(r"http\S+/wmt14/test.tgz"), re.compile(r"md5:\w+")
        ),
    ):
        get_corpus(corpus, tmp_path / "data", direction="en-de", from_folder=copies)


def test_where_nothing_is_to_be_had(site: Site, tmp_path: Path) -> None:
    corpus, folder = _small_corpus(site), tmp_path / "data"
    lines: list[str] = []
    with pytest.raises(
        DataError, match=naming(tmp_path, "small", "dev.tar", "test.tgz", "small/train.en", re.compile(r"\.xz"))
    ):
        get_corpus(corpus, folder, from_folder=tmp_path, log=lines.append)
    assert lines == []
    with pytest.raises(DataError, match=naming(tmp_path / "nowhere")):
        get_corpus(corpus, folder, from_folder=tmp_path / "nowhere")
    with pytest.raises(DataError, match=naming("tatoeba", "Tatoeba Challenge", "--from", "FOLDER")):
        get_corpus(CATALOGUE["tatoeba"], folder)
    assert site.requests == []
    assert not folder.exists()


@pytest.mark.parametrize("existing", [None, "data", "data/downloads"])
def test_a_failed_download_leaves_no_folder(site: Site, tmp_path: Path, existing: str | None) -> None:
    corpus = _small_corpus(site)
    shutil.rmtree(site.folder)
    site.folder.mkdir()
    if existing is not None:
        (tmp_path / existing).mkdir(parents=True)
    with pytest.raises(DataError, match="404"):
        get_corpus(corpus, tmp_path / "data" / "deeper", direction="en-de")
    assert not (tmp_path / "data" / "deeper").exists()
    assert (tmp_path / "data").exists() == (existing is not None)


def test_what_was_fetched_before_a_failure_stays(site: Site, tmp_path: Path) -> None:
    corpus, folder = _small_corpus(site), tmp_path / "data"
    names = [path for path in site.folder.rglob("*") if path.is_file()]
    assert get_corpus(corpus, tmp_path / "whole", direction="en-de")
    last = max(
        names,
        key=lambda path: (
            site.requests.index(f"/{path.relative_to(site.folder)}")
            if f"/{path.relative_to(site.folder)}" in site.requests
            else -1
        ),
    )
    last.unlink()
    with pytest.raises(DataError):
        get_corpus(corpus, folder, direction="en-de")
    assert any(path.is_file() for path in folder.rglob("*"))
    assert all(any(each.is_file() for each in path.rglob("*")) for path in folder.rglob("*") if path.is_dir())


# Debian packages


@pytest.fixture
def packages(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Replace making texts from packages by writing two lines; return the names of files used."""
    used: list[str] = []

    def fetch(names: list[str], folder: Path, *, needs_all: bool, log: Callable[[str], None]) -> dict[str, Path]:
        return {name: folder / f"{name}_7.4_all.deb" for name in names}

    def write(
        self: PackageText, folder: Path, files: Mapping[str, Path], others: Sequence[str], log: Callable[[str], None]
    ) -> None:
        folder.mkdir()
        used.extend(path.name for path in files.values())
        for other in others:
            for language in ("en", other):
                (folder / f"train.en-{other}.{language}").write_text("one\ntwo\n")
        (folder / "README.md").write_text("from packages")

    monkeypatch.setattr(getting, "fetch_packages", fetch)
    monkeypatch.setattr(PackageText, "write", write)
    return used


def test_a_corpus_made_from_packages(packages: list[str], tmp_path: Path) -> None:
    help_pages, folder = CATALOGUE["libreoffice-help"], tmp_path / "data"
    assert get_corpus(help_pages, folder, direction="fr-en") == {"train.en-fr": 2}
    assert packages == ["libreoffice-help-en-us_7.4_all.deb", "libreoffice-help-fr_7.4_all.deb"]
    (folder / "libreoffice_help/train.en-fr.en").write_text("mine\nand mine\n")
    assert get_corpus(help_pages, folder) == {"train.en-de": 2, "train.en-fr": 2}
    assert (folder / "libreoffice_help/train.en-fr.en").read_text() == "mine\nand mine\n"
    assert {path.name for path in folder.iterdir()} == {"libreoffice_help"}


def test_packages_from_a_copy(packages: list[str], tmp_path: Path) -> None:
    help_pages, copies = CATALOGUE["libreoffice-help"], tmp_path / "copies"
    copies.mkdir()
    for name in ("en-us_7.4.7", "en-us_7.4.10", "de_7.4.10"):
        (copies / f"libreoffice-help-{name}_all.deb").touch()
    assert get_corpus(help_pages, tmp_path / "data", direction="en-de", from_folder=copies) == {"train.en-de": 2}
    assert packages == ["libreoffice-help-en-us_7.4.10_all.deb", "libreoffice-help-de_7.4.10_all.deb"]
    expected_names = "libreoffice-help-en-us_*.deb", "libreoffice-help-fr_*.deb", re.compile("libreoffice_help/train")
    with pytest.raises(DataError, match=naming(copies, "libreoffice-help", *expected_names)):
        get_corpus(help_pages, tmp_path / "data", direction="en-fr", from_folder=copies)


def test_packages_that_a_copy_lacks_are_left_out_unless_each_is_needed(tmp_path: Path) -> None:
    used: list[tuple[list[str], list[str]]] = []

    def write(folder: Path, files: Mapping[str, Path], others: Sequence[str], log: Log) -> None:
        used.append((list(files), list(others)))
        for other in others:
            for language in ("en", other):
                folder.mkdir(exist_ok=True)
                (folder / f"train.en-{other}.{language}").write_text("one\n")

    def made(*, needs_all: bool) -> Corpus:
        builder = Builder({"dogs": ["de", "fr"], "hunde": ["de"], "chiens": ["fr"], "cats": ["de"]}, write, needs_all)
        train = (Text("pets", "train", ("en", "de", "fr"), pivot="en"),)
        return Corpus("pets", ("en", "de", "fr"), "", "", "a test", train=train, made_from=lambda: builder)

    copies, lines = tmp_path / "copies", list[str]()
    copies.mkdir()
    with pytest.raises(DataError, match=naming(copies, "pets", "dogs_*.deb", "hunde_*.deb")):
        get_corpus(made(needs_all=False), tmp_path / "data", from_folder=copies)
    for name in ("dogs", "cats"):
        (copies / f"{name}_1_all.deb").touch()
    with pytest.raises(DataError, match=naming(copies, "pets", "hunde_*.deb")):
        get_corpus(made(needs_all=True), tmp_path / "data", direction="en-de", from_folder=copies)
    counts = get_corpus(
        made(needs_all=False), tmp_path / "data", direction="de-en", from_folder=copies, log=lines.append
    )
    assert (counts, used) == ({"train.en-de": 1}, [(["dogs", "cats"], ["de"])])
    assert [line for line in lines if says(line, "hunde") and not says(line, "chiens")] == lines[:1]


# Columns of a zip


def _zip(files: Mapping[str, str]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    return buffer.getvalue()


SENTENCES = {
    "deu.txt": "Run!\tLauf!\tCC-BY 2.0 (France) #1 & #2\nRun!\tRenn!\t#1 & #3\nRun!\tLauf!\t#4 & #2\nHi.\tHallo.\n",
    "_about.txt": "About these files",
}


def _tatoeba(site: Site, files: Mapping[str, str] = SENTENCES) -> Corpus:
    """The corpus of the catalogue, with the German archive on the server."""
    corpus = CATALOGUE["tatoeba-sentences"]
    german = next(remote for remote in corpus.remote if remote.name == "deu-eng.zip")
    address, _ = site.has("a/deu-eng.zip", _zip(files))
    return replace(corpus, remote=(replace(german, address=address),))


def test_sentences_are_the_columns_of_a_zip_each_pair_once(site: Site, tmp_path: Path) -> None:
    folder = tmp_path / "data"
    assert get_corpus(_tatoeba(site), folder, direction="de-en") == {"train.en-de": 3}
    assert (folder / "tatoeba_sentences/train.en-de.en").read_text() == "Run!\nRun!\nHi.\n"
    assert (folder / "tatoeba_sentences/train.en-de.de").read_text() == "Lauf!\nRenn!\nHallo.\n"
    assert available_directions(CATALOGUE["tatoeba-sentences"], [folder]) == ["en-de"]

    copies = tmp_path / "copies"
    copies.mkdir()
    (copies / "deu-eng.zip").write_bytes(_zip(SENTENCES))
    assert get_corpus(_tatoeba(site), tmp_path / "again", from_folder=copies) == {"train.en-de": 3}


@pytest.mark.parametrize(
    ("files", "facts"),
    [
        ({"_about.txt": "none"}, ["deu.txt"]),
        ({"deu.txt": "Run!\tLauf!\nHi.\n"}, ["deu.txt:2", "tab"]),
        ({"deu.txt": "Run!\tLauf!\n" * 20_000_000}, ["deu.txt", "bytes"]),
    ],
    ids=["no file", "one column", "a bomb"],
)
def test_a_zip_that_has_no_columns(site: Site, tmp_path: Path, files: Mapping[str, str], facts: list[str]) -> None:
    with pytest.raises(DataError, match=naming(re.compile("deu-eng.zip"), *facts)):
        get_corpus(_tatoeba(site, files), tmp_path / "data", direction="en-de")
    assert not list((tmp_path / "data").rglob("train*"))


def test_a_damaged_zip(site: Site, tmp_path: Path) -> None:
    whole = bytearray(_zip(SENTENCES))
    whole[45] ^= 0xFF  # in the compressed text
    for content in (whole, b"no zip"):
        corpus = _tatoeba(site)
        (site.folder / "a/deu-eng.zip").write_bytes(content)
        with pytest.raises(DataError, match=naming(re.compile("deu-eng.zip"))):
            get_corpus(corpus, tmp_path / "data", direction="en-de")
        shutil.rmtree(tmp_path / "data", ignore_errors=True)


# Free texts


@pytest.mark.parametrize("corpus", FREE_TEXTS, ids=lambda corpus: corpus.name)
def test_a_free_text_is_read_as_the_folder_of_its_name(corpus: Corpus) -> None:
    name = corpus.name
    assert (corpus.train, corpus.dev, corpus.test) == tuple((Text(name, each),) for each in ("train", "dev", "test"))
    assert (corpus.is_only_copied, corpus.is_tokenised) == (True, False)


def test_a_free_text_from_a_copy_needs_no_dev_and_no_test(tmp_path: Path) -> None:
    copies = tmp_path / "copies"
    (copies / "rust_book").mkdir(parents=True)
    for language, text in (("en", EN), ("de", DE)):
        (copies / f"rust_book/train.en-de.{language}.xz").write_bytes(lzma.compress(text.encode()))
    corpus, lines = CATALOGUE["rust_book"], list[str]()
    assert get_corpus(corpus, tmp_path / "data", direction="en-de", from_folder=copies, log=lines.append) == {
        "train.en-de": 3
    }
    assert lines == ["missing: dev en-de", "missing: test en-de"]
    with pytest.raises(DataError, match=naming("rust_book", "--from", "FOLDER")):
        get_corpus(corpus, tmp_path / "none", direction="en-de")


# Test sets and real text


words = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\n"), max_size=40)


@given(st.lists(words.filter(lambda text: "</seg>" not in text), max_size=8))
def test_segments_are_those_of_sacrebleu(tmp_path_factory: pytest.TempPathFactory, texts: list[str]) -> None:
    folder = tmp_path_factory.getbasetemp() / "sgm"
    folder.mkdir(exist_ok=True)
    lines = [
        '<srcset setid="a>b">',
        "<doc>",
        *(f'<seg id="{n}">{text}</seg>\r' for n, text in enumerate(texts)),
        "</doc>",
    ]
    (folder / "a.sgm").write_bytes("\n".join(lines).encode())
    dataset = FakeSGMLDataset("a", data=[], md5=[], langpairs={})
    dataset._convert_format(str(folder / "a.sgm"), str(folder / "a.txt"))
    with (folder / "a.sgm").open("rb") as stream:
        ours = "".join(f"{text}\n" for text in segments(stream, where="a.sgm"))
    assert ours == (folder / "a.txt").read_bytes().decode()


@pytest.mark.parametrize(
    ("line", "facts"), [(b'<seg id="1">caf\xe9</seg>', ["UTF-8", "0xe9"]), (b'<seg id="1">a', ["segment"])]
)
def test_segments_that_cannot_be_read(line: bytes, facts: list[str]) -> None:
    with pytest.raises(DataError, match=naming("a.sgm:2", *facts)):
        list(segments([b"<doc>", line], where="a.sgm"))


def test_the_catalogue_knows_test_sets_as_sacrebleu_does() -> None:
    known = {
        (dataset.data[0], f"md5:{dataset.md5[0]}", direction, *files[:2])
        for dataset in DATASETS.values()
        if isinstance(dataset, FakeSGMLDataset) and dataset.md5
        for direction, files in dataset.langpairs.items()
    }
    archives = [
        remote for remote in CATALOGUE["newstest"].remote if any("sgm" in name for name in remote.members.values())
    ]
    assert len(archives) == 7
    for remote in archives:
        members = list(remote.members.items())
        for (name, src), (_, ref) in zip(members[::2], members[1::2], strict=True):
            assert (remote.address, remote.checksum, name.split(".")[1], src, ref) in known


@pytest.mark.skipif(not SHARED_DATA.is_dir(), reason="no copy of the corpora beside the project")
@pytest.mark.parametrize("below", ["", "multi30k"])
def test_real_text_from_a_copy(tmp_path: Path, below: str) -> None:
    multi30k = CATALOGUE["multi30k"]
    counts = get_corpus(multi30k, tmp_path, direction="de-en", from_folder=SHARED_DATA / below)
    assert counts == {"train": 29_000, "val": 1014, "test_2016_flickr": 1000, "test_2017_flickr": 1000}
    assert all(
        find_text(text, "en", "de", (tmp_path,)) for split in ("train", "dev", "test") for text in multi30k.texts(split)
    )
    assert not list(tmp_path.rglob("*.fr*"))


@pytest.mark.skipif(not SHARED_DATA.is_dir(), reason="no copy of the corpora beside the project")
def test_real_test_sets_from_a_copy(tmp_path: Path) -> None:
    lines: list[str] = []
    counts = get_corpus(CATALOGUE["newstest"], tmp_path, from_folder=SHARED_DATA, log=lines.append)
    train = {stem: n for stem, n in counts.items() if stem != "newstest2013"}
    three_ways = sum(n for stem, n in train.items() if "." not in stem)
    assert (three_ways, counts["newstest2013"]) == (13_573, 3000)
    assert sum(n for stem, n in train.items() if not stem.endswith(".en-fr")) == 30_943
    assert three_ways + train["newsdiscusstest2015.en-fr"] == 15_073
    assert lines == ["missing: newstest2014 en-de", "missing: newstest2014 en-fr"]

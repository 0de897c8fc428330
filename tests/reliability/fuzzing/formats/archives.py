"""Corpus archives: compressed tar files and Debian packages."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import shutil
import subprocess
import tarfile
from collections.abc import Callable
from pathlib import Path
from random import Random

from fuzzing.cases import Case, CaseFolders, Fault, Format, require
from fuzzing.damage import BYTES, ENTRIES
from fuzzing.sandbox import guarded
from fuzzing.sources import Sources
from fuzzing.strange_values import ODD_TEXTS
from transduce.corpora.libreoffice_help import LIBREOFFICE_HELP
from transduce.corpora.unpacking import unpack
from transduce.errors import DataError

__all__ = ["archive_format"]

LONGEST_MESSAGE = 2500
MEMBERS = {"news/a.en": "dev/a.en", "news/b.en": "dev/b.en.sgm", "news/c.en": "c.en"}
CONTENT = {
    "dev/a.en": b"A dog sleeps.\n" * 50,
    "dev/b.en.sgm": b'<doc id="a">\n<seg id="1"> A dog. </seg>\n<seg id="2">A cat.</seg>\n',
    "c.en": b"line\n",
}
EXPECTED = {"news/a.en": CONTENT["dev/a.en"], "news/b.en": b"A dog.\nA cat.\n", "news/c.en": CONTENT["c.en"]}
COMPRESSIONS: dict[str, Callable[[bytes], bytes]] = {
    "tar": bytes, "tgz": lambda raw: gzip.compress(raw, 1, mtime=0), "xz": lambda raw: lzma.compress(raw, preset=0),
    "bz2": bz2.compress,
}  # fmt: skip


def _header(name: str, **values: object) -> tarfile.TarInfo:
    header = tarfile.TarInfo(name)
    for key, value in values.items():
        setattr(header, key, value)
    return header


def _tar(extra: Callable[[tarfile.TarFile, Random], None] | None, draw: Random) -> bytes:
    stream = io.BytesIO()
    with tarfile.open(
        fileobj=stream, mode="w", format=draw.choice([tarfile.PAX_FORMAT, tarfile.GNU_FORMAT])
    ) as archive:
        names = list(CONTENT)
        place = draw.randrange(len(names) + 1)
        for number in range(len(names) + 1):
            if number == place and extra is not None:
                extra(archive, draw)
            if number < len(names):
                name = names[number]
                archive.addfile(_header(name, size=len(CONTENT[name])), io.BytesIO(CONTENT[name]))
    return stream.getvalue()


def _any_name(draw: Random) -> str:
    return draw.choice([*CONTENT, "../../outside/canary", "/tmp/canary", "./c.en", "dev/../c.en", *ODD_TEXTS]).replace(
        "\0", "x"
    )


def _a_link(archive: tarfile.TarFile, draw: Random) -> None:
    kind = draw.choice([tarfile.SYMTYPE, tarfile.LNKTYPE])
    archive.addfile(
        _header(_any_name(draw), type=kind, linkname=draw.choice(["/etc/passwd", "../../outside", "c.en", ""]))
    )


def _a_device(archive: tarfile.TarFile, draw: Random) -> None:
    kind = draw.choice([tarfile.CHRTYPE, tarfile.BLKTYPE, tarfile.FIFOTYPE, tarfile.DIRTYPE, tarfile.CONTTYPE])
    archive.addfile(_header(_any_name(draw), type=kind, devmajor=1, devminor=5))


def _another_file(archive: tarfile.TarFile, draw: Random) -> None:
    content = draw.randbytes(draw.randrange(2000))
    archive.addfile(_header(_any_name(draw), size=len(content)), io.BytesIO(content))


def _odd_headers(archive: tarfile.TarFile, draw: Random) -> None:
    key = draw.choice(["path", "size", "linkpath", "GNU.sparse.major", "GNU.sparse.realsize", "GNU.sparse.map",
                       "mtime",
                       "hdrcharset", "GNU.sparse.size", "GNU.sparse.numblocks"])  # fmt: skip
    value = draw.choice(["-1", "9" * 30, "1.5", "nan", "", "x", "0,9999999999", "1", "BINARY", "\x1b[31m", "9" * 5000])
    archive.addfile(_header(_any_name(draw)[:90], size=5, pax_headers={key: value}), io.BytesIO(b"five\n"))


def _lying_size(archive: tarfile.TarFile, draw: Random) -> None:
    header = _header(draw.choice(list(CONTENT)), size=draw.choice([2**33, 2**40, 2**62, 10**6]))
    archive.fileobj.write(header.tobuf(tarfile.GNU_FORMAT) + b"x" * 512)  # type: ignore[union-attr]
    archive.offset += 1024


def _a_bomb(archive: tarfile.TarFile, draw: Random) -> None:
    """Zeros, 30 MB of them."""
    archive.addfile(_header(_any_name(draw), size=30 << 20), io.BytesIO(bytes(30 << 20)))


def _bad_segments(archive: tarfile.TarFile, draw: Random) -> None:
    content = draw.choice([b"<seg id", b'<seg id="1">\xff</seg>\n', b'<seg id="1">no end\n', b"<seg " * 10_000,
                           b'<seg id="1">' + b"x" * 1_000_000 + b"</seg>", b'<seg id="1">\x1b[31m</seg>',
                           b""])  # fmt: skip
    archive.addfile(_header("dev/b.en.sgm", size=len(content)), io.BytesIO(content))


EXTRAS = {
    each.__name__.removeprefix("_"): each
    for each in (_a_link, _a_device, _another_file, _odd_headers, _lying_size, _a_bomb, _bad_segments)
}


def archive_format(sources: Sources) -> Format:
    """All cases of archives; those of packages only where there is dpkg-deb."""
    packages = sorted(sources.packages.glob("*.deb"))
    stems = [f"{kind}/{how}" for kind in COMPRESSIONS for how in (*BYTES, *EXTRAS, "whole", *ENTRIES)]
    if packages:
        stems += [f"deb/{how}" for how in (*BYTES, *ENTRIES, "inside_tar", "link_inside", "whole")]

    def play(case: Case, place: CaseFolders) -> str:
        kind, how = case.parts
        work = _unpack_a_package if kind == "deb" else _unpack_a_tar
        target = place.folder / "out"
        (place.folder / "in").mkdir()
        try:
            return work(case, place, target, packages, kind, how)
        except OSError:
            return "refused"  # the command line makes a line of it
        except DataError as error:
            message = str(error)
            is_short = len(message.splitlines()) == 1 and len(message) <= LONGEST_MESSAGE and message.isprintable()
            require(is_short, "its message is not one printable line of reasonable length", repr(message[:600]))
            return "refused"

    return Format("archive", stems, play, cases_per_child=5)


def _unpack_a_tar(case: Case, place: CaseFolders, target: Path, packages: list[Path], kind: str, how: str) -> str:
    draw = case.draw()
    content = _tar(EXTRAS.get(how), draw)
    content = COMPRESSIONS[kind](content)
    archive = place.folder / "in" / f"a.{kind}"
    archive.write_bytes(BYTES[how](content, draw) if how in BYTES else content)
    if how in ENTRIES:
        ENTRIES[how](archive, draw)
    wanted = dict(draw.sample(sorted(MEMBERS.items()), draw.randint(1, 3)))
    target.mkdir()
    with guarded(place):
        unpack(archive, wanted, target)
    found = {str(path.relative_to(target)) for path in target.rglob("*") if not path.is_dir()}
    require(found == set(wanted), "other files than the wanted ones were unpacked", found ^ set(wanted))
    require(not any(path.is_symlink() for path in target.rglob("*")), "a link was unpacked")
    is_same = all((target / name).read_bytes() == EXPECTED[name] for name in wanted)
    is_protected = kind in ("tgz", "xz", "bz2") and how in BYTES and how != "grow"
    if is_protected:  # the compression has a sum of what was compressed
        require(is_same, "unpacked, and is another")
    return "the same" if is_same else "sound"


def _unpack_a_package(case: Case, place: CaseFolders, target: Path, packages: list[Path], kind: str, how: str) -> str:
    draw = case.draw()
    copies = {}
    for language, path in zip(("de", "en"), packages, strict=True):
        copies[language] = place.folder / "in" / path.name
        shutil.copy(path, copies[language])
    damaged = copies[draw.choice(["de", "en"])]
    if how in BYTES:
        damaged.write_bytes(BYTES[how](damaged.read_bytes(), draw))
    elif how in ENTRIES:
        ENTRIES[how](damaged, draw)
    elif how != "whole":
        _change_inside(damaged, place, draw, how)
    with guarded(place):
        import tempfile

        tempfile.tempdir = str(place.folder)
        try:
            sizes = LIBREOFFICE_HELP.write(target, copies, ["de"])
        finally:
            tempfile.tempdir = None
    require(set(sizes) == {"en-de"}, "made something else", sizes)
    for path in target.iterdir():
        require(not path.is_symlink() and path.is_file(), "made something that is no file", path.name)
        text = path.read_text(encoding="utf-8")
        if path.suffix in (".en", ".de") and "\0" in text:
            raise Fault("a NUL in text that was made", path.name)
    return "sound"


def _change_inside(deb: Path, place: CaseFolders, draw: Random, how: str) -> None:
    """A package of the same form with other files in it."""
    parts = place.folder / "in" / "parts"
    parts.mkdir()
    subprocess.run(["ar", "x", deb], cwd=parts, check=True)
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as archive:
        top = "./usr/share/libreoffice/help"
        if how == "link_inside":
            target = draw.choice([str(place.outside), "/etc", "../" * draw.randrange(9) + "outside", "/"])
            name = draw.choice(["./usr", top, f"{top}/de", f"{top}/en-US", f"{top}/en-US/text"])
            archive.addfile(_header(name, type=tarfile.SYMTYPE, linkname=target))
            archive.addfile(_header(f"{name}/canary", size=3), io.BytesIO(b"no\n"))
        page = draw.choice([b"<p id=", b"<p id='par_id1'>" * 3000, b"<div>" * 50_000, b"\xff\xfe" * 100, b"\x00" * 99,
                            b'<p id="par_id1">\x1b[31m</p>', draw.randbytes(300),
                            b"&#0;&#x110000;&#55555555555555;"])  # fmt: skip
        page = (
            b'<html><body><div id="DisplayArea"><p id="par_id1" class="paragraph">' + page + b"</p></div></body></html>"
        )
        for language in ("de", "en-US"):
            name = f"{top}/{language}/text/shared/{draw.choice(['a', 'b' * 200])}.html"
            archive.addfile(_header(name, size=len(page)), io.BytesIO(page))
    (parts / "data.tar.gz").write_bytes(gzip.compress(stream.getvalue(), 1))
    deb.unlink()
    names = ["debian-binary", "control.tar.gz", "data.tar.gz"]
    subprocess.run(["ar", "rc", deb, *names], cwd=parts, check=True, capture_output=True)

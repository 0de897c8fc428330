"""Texts out of archives: the listed members of a .tar or .tgz, read as a stream; SGML becomes plain lines."""

from __future__ import annotations

import shutil
import tarfile
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import IO

from transduce.errors import DataError
from transduce.files import write_lines, written_whole

__all__ = ["copy_whole", "segments", "unpack"]


def unpack(archive: Path, members: Mapping[str, str], folder: Path) -> None:
    """Write the ``members`` of an archive, name below ``folder`` -> name in the archive, each whole or not at all.

    Nothing else of the archive is written, and no path in it is followed. Members that end in ``.sgm`` become plain
    text, see ``segments``. Raises DataError if the archive cannot be read or has no such member.
    """
    targets = {member: folder / name for name, member in members.items()}
    try:
        with archive.open("rb") as stream, tarfile.open(fileobj=stream, mode="r|*") as entries:
            for entry in entries:
                member = entry.name.removeprefix("./")
                content = entries.extractfile(entry) if member in targets and entry.isfile() else None
                if content is None:
                    continue
                with content:
                    _write_text(targets.pop(member), content, where=f"{archive}: {member}")
                if not targets:
                    return
    except (tarfile.TarError, EOFError) as error:
        raise DataError(f"{archive} cannot be unpacked: {error}; remove it and get it again") from error
    raise DataError(f"{archive} has no {', '.join(sorted(targets))}; it is incomplete or of another version")


def _write_text(path: Path, content: IO[bytes], *, where: str) -> None:
    if where.endswith(".sgm"):
        write_lines(path, segments(content, where=where))
    else:
        copy_whole(content, path)


def segments(lines: Iterable[bytes], *, where: str) -> Iterator[str]:
    """The text of each ``<seg ...>...</seg>``, one to a line, as the shared tasks write their test sets.

    All whitespace becomes single blanks; entities stay as they are, as they do in sacreBLEU's copies of these sets.
    Raises DataError, with the place, for a segment that is not UTF-8 or does not end on its line.

    >>> list(segments([b'<doc id="a">', b'<seg id="1"> A  dog &amp; a cat. </seg>'], where="a.sgm"))
    ['A dog &amp; a cat.']
    """
    for number, raw in enumerate(lines, start=1):
        if not raw.startswith(b"<seg "):
            continue
        try:
            text, end, _ = raw.decode("utf-8").rpartition("</seg>")
        except UnicodeDecodeError as error:
            raise DataError(f"{where}:{number} is not UTF-8: byte 0x{error.object[error.start]:02x}") from error
        if not end:
            raise DataError(f"{where}:{number}: the segment does not end on its line")
        yield " ".join(text.partition(">")[2].split())


def copy_whole(content: IO[bytes], path: Path) -> None:
    """Write all of a stream to ``path``, whole or not at all."""
    with written_whole(path) as copy:
        shutil.copyfileobj(content, copy, 1 << 20)

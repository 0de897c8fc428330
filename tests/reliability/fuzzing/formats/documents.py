"""Documents of every format, damaged as files and, in archives, member by member.

What is read is the same bytes without translations; with translations it can be read again, or the format says why not.
"""

from __future__ import annotations

import io
import zipfile

from documents.test_every_format import SAMPLES, rendered
from fuzzing.cases import Case, CaseFolders, Format, require
from fuzzing.damage import inflict, kinds_for
from fuzzing.sandbox import guarded
from transduce.documents import Reading, read_document
from transduce.errors import DataError

__all__ = ["document_format"]

LONGEST_MESSAGE = 1000
CASES_PER_CHILD = 20
IN_MEMBERS = "member-"


def document_format() -> Format:
    """Samples of all document formats."""
    stems = [f"{name}/{damage}" for name in SAMPLES for damage in kinds_for(name)]
    packages = [name for name, data in SAMPLES.items() if data.startswith(b"PK")]
    stems += [f"{name}/{IN_MEMBERS}{damage}" for name in packages for damage in kinds_for("a.xml")]
    return Format("documents", stems, _play, cases_per_child=CASES_PER_CHILD)


def _play(case: Case, place: CaseFolders) -> str:
    name, damage = case.parts
    draw, data = case.draw(), SAMPLES[name]
    path = place.folder / name
    if damage.startswith(IN_MEMBERS):
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            members = {each: archive.read(each) for each in archive.namelist()}
        chosen = draw.choice(list(members))
        path.write_bytes(members[chosen])
        inflict(damage.removeprefix(IN_MEMBERS), path, draw)
        if not path.is_file():
            return "sound"
        members[chosen] = path.read_bytes()
        path.unlink()
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            for each, content in members.items():
                archive.writestr(each, content)
    else:
        path.write_bytes(data)
        inflict(damage, path, draw)
        if not path.is_file():
            return "sound"
    data = path.read_bytes()
    with guarded(place):
        try:
            document = read_document(data, name, Reading(is_protected=draw.random() < 0.5, wanted="all"))
        except DataError as error:
            require_a_line(error)
            return "refused"
        segments = document.segments
        require(document.written([None] * len(segments)) == data, "other bytes without translations")
        try:
            written = document.written([rendered(each.unit, each.unit.text.upper() + " <&'\"ß") for each in segments])
        except DataError as error:
            require_a_line(error)
            return "sound"
        read_document(written, name)
    return "sound"


def require_a_line(error: DataError) -> None:
    """Require a message of one line."""
    message = str(error)
    is_short = len(message.splitlines()) == 1 and len(message) <= LONGEST_MESSAGE
    require(is_short, "its message is not one line of reasonable length", repr(message[:300]))

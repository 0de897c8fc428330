"""Files of pairs that translators have, as the text of a recipe or of a run."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import Annotated

from typer import Option

from transduce.cli.paths import require_utf8_name
from transduce.errors import ConfigError, DataError
from transduce.files import write_lines

__all__ = ["Given", "Po", "Tmx", "Xliff", "given_files", "written_pairs"]

Given = Mapping[str, Sequence[Path]]  # files and folders by format

Tmx = Annotated[
    list[Path] | None,
    Option(
        help="Take the pairs of this translation memory, or of those in this folder; repeatable.", show_default=False
    ),
]
Po = Annotated[
    list[Path] | None,
    Option(
        help="Take the translated messages of this PO file, or of those in this folder; repeatable.", show_default=False
    ),
]
Xliff = Annotated[
    list[Path] | None,
    Option(
        help="Take the translations of this XLIFF file, or of those in this folder; repeatable.", show_default=False
    ),
]


def given_files(tmx: Sequence[Path] | None, po: Sequence[Path] | None, xliff: Sequence[Path] | None) -> Given:
    """Return the files that were named. Raises ConfigError for one that does not exist."""
    given = {kind: paths for kind, paths in (("tmx", tmx), ("po", po), ("xliff", xliff)) if paths}
    for kind, paths in given.items():
        for path in paths:
            require_utf8_name(f"--{kind}", path)
            if not path.exists():
                raise ConfigError(f"--{kind} {path} does not exist")
    return given


@contextmanager
def written_pairs(
    given: Given, languages: tuple[str, str], path: Path, *, log: Callable[[str], None]
) -> Iterator[None]:
    """Write the pairs as source TAB target; the file goes if what uses it fails.

    Raises ConfigError if the file exists, DataError if there are no pairs.
    """
    from transduce.documents.pairs import Pairs, pairs_of

    if path.exists():
        raise ConfigError(f"{path} exists already; remove it, or choose another --out")
    files = chain.from_iterable(pairs_of(paths, *languages, kinds=[kind]).files for kind, paths in given.items())
    pairs = Pairs(list(files), *languages)
    try:
        n_lines = write_lines(path, (f"{pair.src}\t{pair.tgt}" for pair in pairs))
        for line in pairs.lines():
            log(line)
        if not n_lines:
            raise DataError(f"the files have no translations from {languages[0]} to {languages[1]}")
        yield
    except BaseException:
        path.unlink(missing_ok=True)
        raise

"""``transduce memory build``, ``search`` and ``export``."""

from __future__ import annotations

from pathlib import Path
from shlex import quote
from typing import Annotated

import typer
from typer import Argument, Option

from transduce.cli import options
from transduce.cli.help_text import VerbGroup
from transduce.cli.output import echo, print_json, print_line, visible
from transduce.cli.paths import Verb, require_writable
from transduce.cli.text_output import line_writer
from transduce.config import canonical_code
from transduce.errors import ConfigError, quoted

__all__ = ["app"]

MAX_MATCHES = 100

app = typer.Typer(help="Make translation memories, and look into them.", cls=VerbGroup)
MemoryFile = Annotated[Path, Argument(metavar="MEMORY", help="A file of memory build.", show_default=False)]


@app.command("build", cls=Verb)
def build(
    files: Annotated[
        list[Path],
        Argument(
            metavar="FILE",
            help="Translations: lines of source TAB target (.tsv, .txt), TMX, XLIFF, PO, or a memory.",
            show_default=False,
        ),
    ],
    out: Annotated[Path, Option("--out", help="Write the memory to this file.", show_default=False)],
    src: Annotated[str, Option("--src", help="The source language, such as en.", show_default=False)],
    tgt: Annotated[str, Option("--tgt", help="The target language.", show_default=False)],
    json: options.Json = False,
) -> None:
    """Make a memory of files with translations.

    Examples:
        transduce memory build old.tmx more.tsv --src en --tgt de --out my.tm
        transduce memory build my.tm edits.tmx --src en --tgt de --out my.tm
    """
    from transduce.memories import pairs_of_file, write_memory

    src, tgt = _code("--src", src), _code("--tgt", tgt)
    require_writable("--out", out)
    if out.exists() and out not in files:
        echo(f"note: replacing {out}; to add to a memory, name it first among the files")
    n_pairs = write_memory(out, (pairs_of_file(each, src, tgt) for each in files), src_language=src, tgt_language=tgt)
    if json:
        print_json({"pairs": n_pairs, "memory": str(out)})
        return
    print_line(f"{out}: {n_pairs:,} pairs")
    echo(f"next: transduce translate MODEL --in FILE --out NEW --memory {quote(str(out))}")


def _code(option: str, name: str) -> str:
    """Return a language code with the usual capitals. Raises ConfigError if it is none."""
    code = canonical_code(name)
    if code is None:
        raise ConfigError(f"{option} should be the code of a language, such as en or pt-BR, got {quoted(name)}")
    return code


@app.command("search", cls=Verb)
def search(
    memory: MemoryFile,
    text: Annotated[str, Argument(metavar="TEXT", help="A text of the source language.", show_default=False)],
    n: Annotated[int, Option("--n", min=1, max=MAX_MATCHES, help="Print at most this many pairs.")] = 5,
    json: options.Json = False,
) -> None:
    """Print the pairs whose sources are like a text.

    Each line is similarity TAB source TAB target.

    Examples:
        transduce memory search my.tm 'Press the button.'
    """
    from transduce.memories import Memory

    found = Memory(memory).fuzzy(text, n=n)
    if not found:
        echo(f"{memory} has no pair whose source is like this text")
    for each in found:
        if json:
            print_json({"similarity": each.similarity, "source": each.source, "target": each.target})
        else:
            print("\t".join(map(visible, (f"{each.similarity:.0%}", each.source, each.target))))


@app.command("export", cls=Verb)
def export(
    memory: MemoryFile,
    out: Annotated[
        Path,
        Option(
            "--out",
            help="Write TMX to this file (.tmx), or source TAB target (.tsv, .txt); also .gz or .xz.",
            show_default=False,
        ),
    ],
) -> None:
    """Write the pairs of a memory as TMX or a table.

    Examples:
        transduce memory export my.tm --out my.tmx
    """
    from transduce.documents.tmx import tmx_lines
    from transduce.memories import Memory

    ending = (out.with_suffix("") if out.suffix in (".gz", ".xz") else out).suffix
    if ending not in (".tmx", ".tsv", ".txt"):
        raise ConfigError(
            f"--out should end in .tmx, .tsv or .txt, and .gz or .xz if it is to be compressed, got {out}"
        )
    require_writable("--out", out)
    opened = Memory(memory)
    pairs = opened.pairs()
    is_tmx = ending == ".tmx"
    with line_writer(out) as write:
        for line in tmx_lines(((*pair, "") for pair in pairs), *opened.languages) if is_tmx else map("\t".join, pairs):
            write(line)
    print_line(f"{out}: {len(opened):,} pairs")

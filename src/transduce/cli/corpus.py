"""``transduce corpus list`` and ``transduce corpus get``."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer
from typer import Argument, Option

from transduce.cli import options
from transduce.cli.help_text import VerbGroup
from transduce.cli.output import print_json, print_line
from transduce.cli.paths import Verb, require_folder
from transduce.config import MAX_PAIRS, MAX_SEED
from transduce.errors import ConfigError, quoted

__all__ = ["app"]

ABOUT = ("size", "licence", "source")

app = typer.Typer(help="List, download or generate corpora.", cls=VerbGroup)


@app.command("list", cls=Verb)
def list_corpora(data: options.Data = None, json: options.Json = False) -> None:
    """List the known corpora, and what is on this machine.

    Names languages, size, licence and source of each.

    Examples:
        transduce corpus list
    """
    from transduce.corpora import CATALOGUE, GENERATED, TREEBANKS, available_directions, data_folders, find_trees

    folders = data_folders(data)
    rows: list[dict[str, Any]] = []
    for corpus in (*(each.about for each in GENERATED.values()), *CATALOGUE.values()):
        is_generated = corpus.name in GENERATED
        here = ["-".join(corpus.languages)] if is_generated else available_directions(corpus, folders)
        rows.append({**_about(corpus, "name", "languages", *ABOUT), "is_here": bool(here), "here": here})
    treebanks: list[dict[str, Any]] = [
        {"name": name, **_about(treebank, *ABOUT), "is_here": find_trees(name, "train", folders) is not None}
        for name, treebank in TREEBANKS.items()
    ]
    if json:
        print_json({"corpora": rows, "treebanks": treebanks, "folders": list(map(str, folders))})
        return
    copies = {name for name, corpus in CATALOGUE.items() if corpus.is_only_copied}
    for row in rows:
        if row["name"] not in copies:
            print_line(f"{row['name']}  ({_languages_in(row)})")
            _print_about(row)
    print_line()
    print_line("Text from a local copy: transduce corpus get NAME --from FOLDER, or in a data folder")
    for row in rows:
        if row["name"] in copies:
            print_line(f"{row['name']}  ({_languages_in(row)})  {row['size']}")
            print_line(f"    {row['licence']}; {row['source']}")
    print_line()
    print_line('Treebanks, for data.task = "parsing"; a data folder holds them as trees/NAME/train.ptb')
    for row in treebanks:
        print_line(f"{row['name']}{'  (here)' if row['is_here'] else ''}")
        _print_about(row)
    print_line()
    print_line("Data folders, in search order: " + ", ".join(map(str, folders)))
    print_line('Your own text: files named in a recipe (corpus = "files"), or DATA_FOLDER/NAME (corpus = "NAME")')


def _about(entry: object, *names: str) -> dict[str, Any]:
    return {name: getattr(entry, name) for name in names}


def _languages_in(row: Mapping[str, Any]) -> str:
    return ", ".join(row["languages"]) + (f"; here: {', '.join(row['here'])}" if row["here"] else "")


def _print_about(row: Mapping[str, Any]) -> None:
    for key in ABOUT:
        print_line(f"    {key:<8} {row[key]}")


@app.command("get", cls=Verb)
def get_named_corpus(
    name: Annotated[str, Argument(metavar="NAME", help="The corpus; see 'corpus list'.", show_default=False)],
    out: Annotated[
        Path | None,
        Option(
            help="Write to this data folder (for grammar, a new folder). Default: the user's cache.",
            show_default=False,
        ),
    ] = None,
    from_folder: Annotated[
        Path | None,
        Option("--from", help="Read the files from this folder (plain, .gz or .xz) instead of downloading."),
    ] = None,
    direction: Annotated[
        str | None, Option(help="Get only this language pair, as in en-de. Default: all languages.")
    ] = None,
    pairs: Annotated[
        int | None,
        Option(min=1, max=MAX_PAIRS, help="Generate this many training pairs (grammar only). Default: 30,000."),
    ] = None,
    seed: Annotated[
        int | None,
        Option(min=0, max=MAX_SEED, help="Generate from this random seed (grammar only). Default: 1."),
    ] = None,
    json: options.Json = False,
) -> None:
    """Download a corpus, or generate the built-in one.

    Downloads are resumed and verified.

    Examples:
        transduce corpus get multi30k --direction en-de
        transduce corpus get grammar --out my-data
    """
    from transduce.cli.progress import DownloadProgress
    from transduce.config import DataConfig, nearest_name
    from transduce.corpora import (
        BUILT_IN,
        CATALOGUE,
        GENERATED,
        TREEBANKS,
        cache_folder,
        get_corpus,
        write_grammar_corpus,
    )

    if out is not None:
        require_folder("--out", out)
    if name == BUILT_IN:
        _refuse(name, {"--from": from_folder, "--direction": direction})
        if out is None:
            raise ConfigError("the grammar corpus is built in; to write it to files, name a folder with --out")
        defaults = DataConfig()
        pairs = defaults.n_pairs if pairs is None else pairs
        seed = defaults.corpus_seed if seed is None else seed
        folder, sizes = out, write_grammar_corpus(out, n_pairs=pairs, seed=seed)
    elif name in CATALOGUE:
        _refuse(name, {"--pairs": pairs, "--seed": seed})
        folder = out or cache_folder()
        with DownloadProgress() as progress:
            sizes = get_corpus(
                CATALOGUE[name],
                folder,
                direction=direction,
                from_folder=from_folder,
                progress=progress.of_file,
                log=progress.log,
            )
    else:
        if name in GENERATED:
            raise ConfigError(f"{name} is built in and has no files to get; name it in data.corpus")
        if name in TREEBANKS:
            raise ConfigError(
                f"{name} is a treebank and cannot be downloaded here; put the trees of {TREEBANKS[name].source}, into"
                f" DIR/trees/{TREEBANKS[name].folder} as train.ptb, dev.ptb and test.ptb, and train with --data DIR"
            )
        raise ConfigError(f"no corpus is called {quoted(name)}; {nearest_name(name, [*GENERATED, *CATALOGUE])}")
    if json:
        print_json({"folder": str(folder), "pairs": sizes})
    else:
        print_line(f"{folder}: " + ", ".join(f"{text} {size:,}" for text, size in sizes.items()))


def _refuse(name: str, options: Mapping[str, object]) -> None:
    """Raise ConfigError for a given option that does not apply to this corpus."""
    for option, value in options.items():
        if value is not None:
            raise ConfigError(f"{option} does not apply to {name}, got {option} {value}; omit it")

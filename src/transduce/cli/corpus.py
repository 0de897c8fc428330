"""``transduce corpus list`` and ``transduce corpus get``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from transduce.cli.options import DataOption, JsonOption
from transduce.cli.output import print_json
from transduce.errors import ConfigError

__all__ = ["app"]

app = typer.Typer(help="Corpora: what there is, and text on the disk.", no_args_is_help=True)


@app.command("list")
def list_corpora(data: DataOption = None, json: JsonOption = False) -> None:
    """Name the corpora, with languages, size, licence and source, and which of them are on this machine."""
    from transduce.corpora import CATALOGUE, data_folders, find_text

    folders = data_folders(data)
    rows: list[dict[str, Any]] = [
        {
            "name": "grammar",
            "languages": ["en", "de"],
            "size": "30,000 pairs by default, up to a million and more; dev 500; test 1,000",
            "licence": "MIT",
            "source": "built in: made from a seed by a grammar of our own, with English trees",
            "is_here": True,
        }
    ]
    for corpus in CATALOGUE.values():
        english, *others = corpus.languages
        found = (find_text(text, english, other, folders) for text in corpus.train for other in others)
        rows.append(
            {
                "name": corpus.name,
                "languages": list(corpus.languages),
                "size": corpus.size,
                "licence": corpus.licence,
                "source": corpus.source,
                "is_here": any(found),
            }
        )
    if json:
        print_json({"corpora": rows, "folders": list(map(str, folders))})
        return
    for row in rows:
        languages = ", ".join(row["languages"])
        print(f"{row['name']}  ({languages}{'; here' if row['is_here'] else ''})")
        print(f"    size     {row['size']}\n    licence  {row['licence']}\n    source   {row['source']}")
    print("\nData folders, in the order in which they are looked into: " + ", ".join(map(str, folders)))
    print('Own text: files that a recipe names (corpus = "files"), or folder NAME in a data folder (corpus = "NAME")')


@app.command("get")
def get_named_corpus(
    name: Annotated[str, typer.Argument(help="Which corpus; see 'corpus list'.", show_default=False)],
    out: Annotated[
        Path | None,
        typer.Option(
            help="The data folder to put it into. Default: the user's cache. For grammar: a new folder to write.",
            show_default=False,
        ),
    ] = None,
    from_folder: Annotated[
        Path | None,
        typer.Option("--from", help="Take it from a copy on the disk (plain, .gz or .xz) instead of the network."),
    ] = None,
    direction: Annotated[
        str | None, typer.Option(help="Fetch what these two languages need, as in en-de. Default: all.")
    ] = None,
    pairs: Annotated[int, typer.Option(min=1, help="Training pairs of the grammar corpus.")] = 30_000,
    seed: Annotated[int, typer.Option(min=0, help="Of the grammar corpus: others make other sentences.")] = 1,
    json: JsonOption = False,
) -> None:
    """Bring a corpus to the disk: download it, or make it. A download goes on where it was stopped, and is verified."""
    from transduce.cli.progress import DownloadProgress
    from transduce.config import nearest_name
    from transduce.corpora import BUILT_IN, CATALOGUE, cache_folder, get_corpus, write_grammar_corpus

    if name == BUILT_IN:
        if out is None:
            raise ConfigError("the grammar corpus is built in and need not be fetched; to have it as files, name --out")
        folder, sizes = out, write_grammar_corpus(out, n_pairs=pairs, seed=seed)
    elif name in CATALOGUE:
        folder = out or cache_folder()
        with DownloadProgress() as progress:
            sizes = get_corpus(
                CATALOGUE[name],
                folder,
                direction=direction,
                from_folder=from_folder,
                progress=progress.of_file,
                tell=progress.tell,
            )
    else:
        raise ConfigError(f"no corpus is called {name!r}; {nearest_name(name, [BUILT_IN, *CATALOGUE])}")
    if json:
        print_json({"folder": str(folder), "pairs": sizes})
    else:
        print(f"{folder}: " + ", ".join(f"{text} {size:,}" for text, size in sizes.items()))

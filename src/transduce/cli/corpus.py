"""``transduce corpus list`` and ``transduce corpus get``."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from transduce.cli.options import JsonOption
from transduce.cli.output import print_json

__all__ = ["app"]

app = typer.Typer(help="Corpora: what there is, and text on the disk.", no_args_is_help=True)


class CorpusName(StrEnum):
    """Corpora that can be written to a folder."""

    grammar = "grammar"


@app.command("list")
def list_corpora(json: JsonOption = False) -> None:
    """Name the corpora, with languages, size, licence and source."""
    rows = [
        {
            "name": "grammar",
            "languages": "en, de",
            "size": "30,000 pairs by default, up to a million and more",
            "licence": "MIT",
            "source": "built in: made from a seed by a grammar of our own, with English trees",
        },
        {
            "name": "files",
            "languages": "any",
            "size": "any",
            "licence": "yours",
            "source": "your own text: data.train_src and data.train_tgt, or data.train_tsv, in a recipe",
        },
    ]
    if json:
        print_json({"corpora": rows})
        return
    for row in rows:
        print(f"{row['name']:<9} {row['languages']:<7} {row['licence']:<6} {row['size']}\n{'':9} {row['source']}")


@app.command("get")
def get_corpus(
    name: Annotated[CorpusName, typer.Argument(help="Which corpus.", show_default=False)],
    out: Annotated[Path, typer.Option(help="The folder to write; must be new or empty.", show_default=False)],
    pairs: Annotated[int, typer.Option(min=1, help="Training pairs.")] = 30_000,
    seed: Annotated[int, typer.Option(min=0, help="Other seeds make other sentences.")] = 1,
    json: JsonOption = False,
) -> None:
    """Write a corpus as text: train, dev and test, and for the grammar corpus the English trees."""
    from transduce.corpora import write_grammar_corpus

    match name:
        case CorpusName.grammar:
            sizes = write_grammar_corpus(out, n_pairs=pairs, seed=seed)
    if json:
        print_json({"folder": str(out), "pairs": sizes})
    else:
        print(f"{out}: " + ", ".join(f"{split} {size:,}" for split, size in sizes.items()))

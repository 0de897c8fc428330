"""``transduce shortlist``."""

from __future__ import annotations

from pathlib import Path
from shlex import quote
from typing import Annotated

from typer import Argument, Option

from transduce.cli import options
from transduce.cli.output import echo, print_json, print_line
from transduce.cli.paths import require_folder

__all__ = ["shortlist"]

MAX_TOKENS = 1 << 20


def shortlist(
    store: Annotated[
        Path, Argument(metavar="STORE", help="The folder of transduce prepare, or RUN/store.", show_default=False)
    ],
    out: Annotated[
        Path, Option(help="Write the shortlist to this folder, which must be new or empty.", show_default=False)
    ],
    candidates: Annotated[int, Option(min=1, max=MAX_TOKENS, help="Target tokens of each source token.")] = 50,
    frequent: Annotated[int, Option(min=1, max=MAX_TOKENS, help="Frequent tokens, scored in every sentence.")] = 200,
    pairs: Annotated[int, Option(min=1, help="Learn from at most this many training pairs.")] = 100_000,
    json: options.Json = False,
) -> None:
    """Learn the likely target tokens, for faster translation.

    translate --shortlist scores only those that are likely for the source tokens of a sentence.

    Examples:
        transduce shortlist runs/my/store --out short
        transduce translate runs/my/model --shortlist short
    """
    from transduce.tasks.pairs.shortlists import write_shortlist
    from transduce.tasks.prepared import open_prepared

    require_folder("--out", out)
    prepared = open_prepared(store)
    made = write_shortlist(prepared, out, n_candidates=candidates, n_frequent=frequent, max_pairs=pairs, log=echo)
    if json:
        n_candidates, n_frequent = made.sizes
        print_json({"folder": str(out), "candidates": n_candidates, "frequent": n_frequent})
    else:
        print_line(f"shortlist: {out}")
        echo(f"next: transduce translate MODEL --shortlist {quote(str(out))}")

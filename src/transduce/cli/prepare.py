"""``transduce prepare``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from transduce.cli import options
from transduce.cli.next_commands import command
from transduce.cli.output import echo, print_json, print_line
from transduce.cli.paths import require_folder
from transduce.cli.recipe_paths import paths_in_recipe

__all__ = ["prepare"]

MAX_WORKERS = 256


def prepare(
    recipe: Annotated[
        Path,
        Argument(
            metavar="RECIPE",
            help="A TOML file or a recipe of transduce: its data table, and the limit of its search.",
            show_default=False,
        ),
    ],
    out: Annotated[
        Path, Option(help="Write the prepared data to this folder, which must be new or empty.", show_default=False)
    ],
    workers: Annotated[
        int,
        Option(min=1, max=MAX_WORKERS, metavar="N", help="Encode in N processes; the files are the same for every N."),
    ] = 1,
    data: options.Data = None,
    treebank: options.Treebank = None,
    settings: options.Settings = None,
    json: options.Json = False,
) -> None:
    """Learn the tokenizer and encode the text, without training.

    Writes a token store, which train --store reads. train does the same by itself. Section 5.1.

    Examples:
        transduce prepare my.toml --out prepared
    """
    from transduce.data import read_summary
    from transduce.recipes import read_recipe
    from transduce.tasks import task_of
    from transduce.tasks.preparation import write_prepared
    from transduce.text import Tokenizers

    changes = options.set_once([*(settings or ()), *options.treebank_settings(treebank)])
    run = read_recipe(recipe, changes, log=echo)
    task = task_of(run)  # raises ConfigError for an unknown task
    require_folder("--out", out)
    with paths_in_recipe(recipe):
        write_prepared(run.data, out, data_folder=data, log=echo, n_workers=workers)
    for remark in task.remarks_on_search(out, run.search):
        echo(remark)
    if json:
        tokenizers = Tokenizers.load(out)
        n_pairs = {split: read_summary(out / split).n_examples for split in ("train", "dev") if (out / split).exists()}
        print_json(
            {
                "folder": str(out),
                "src_vocab_size": tokenizers.src.size,
                "tgt_vocab_size": tokenizers.tgt.size,
                "train_pairs": n_pairs["train"],
                "dev_pairs": n_pairs.get("dev", 0),
            }
        )
    else:
        print_line(f"prepared: {out}")
        echo(f"next: {command('train', recipe, '--store', out)}")

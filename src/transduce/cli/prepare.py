"""``transduce prepare``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from transduce.cli import options
from transduce.cli.output import echo, print_json, print_line
from transduce.cli.paths import require_folder
from transduce.cli.recipe_paths import paths_in_recipe

__all__ = ["prepare"]


def prepare(
    recipe: Annotated[Path, Argument(help="The TOML recipe; only its data table is used.", show_default=False)],
    out: Annotated[
        Path, Option(help="Write the prepared data to this folder, which must be new or empty.", show_default=False)
    ],
    data: options.Data = None,
    treebank: options.Treebank = None,
    settings: options.Settings = None,
    json: options.Json = False,
) -> None:
    """Prepare training data: learn the tokenizer and encode the text to a token store. Section 5.1."""
    from transduce.recipes import read_recipe
    from transduce.tasks import prepare as prepare_text
    from transduce.tasks import task_of

    changes = [*(settings or ()), *options.treebank_settings(treebank)]
    run = read_recipe(recipe, changes, log=echo)
    task_of(run)  # raises ConfigError for an unknown task
    require_folder("--out", out)
    with paths_in_recipe(recipe):
        prepared = prepare_text(run.data, out, data_folder=data, log=echo)
    if json:
        sizes = {"src_vocab_size": prepared.tokenizers.src.size, "tgt_vocab_size": prepared.tokenizers.tgt.size}
        n_dev = prepared.dev.summary.n_pairs if prepared.dev else 0
        print_json({"folder": str(out), **sizes, "train_pairs": prepared.train.summary.n_pairs, "dev_pairs": n_dev})
    else:
        print_line(f"prepared: {out}")

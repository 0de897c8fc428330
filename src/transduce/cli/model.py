"""``transduce model``."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Argument, Option

from transduce.cli import options
from transduce.cli.model_folders import require_model_folders
from transduce.cli.output import echo, print_json
from transduce.config import MAX_VOCABULARY_SIZE
from transduce.recipes import PRESETS, built_in_recipes, preset, read_recipe

if TYPE_CHECKING:
    from transduce.config import ModelConfig

__all__ = ["model"]

MAX_LENGTH = 10**9


def model(
    name: Annotated[str, Argument(metavar="PRESET", help=f"{', '.join(PRESETS)}; or a recipe, or a model folder.")],
    vocab_size: Annotated[
        int | None,
        Option(
            min=4,
            max=MAX_VOCABULARY_SIZE,
            help="Set the vocabulary size of both sides. Default: 37,000, or that of the recipe or model.",
        ),
    ] = None,
    length: Annotated[int, Option(min=1, max=MAX_LENGTH, help="Count attention FLOPs at this sentence length.")] = 32,
    json: options.Json = False,
) -> None:
    """Show the layers, parameters and training FLOPs of a model.

    Examples:
        transduce model base
        transduce model my.toml
    """
    from transduce.model import ShapesOnly, cost_of, describe, make_model

    config = _config(name)
    if vocab_size is not None:
        config = config.with_vocabulary(vocab_size, vocab_size)
    cost = cost_of(config, n_tokens=length)
    if json:
        print_json({"name": name, **asdict(cost), "config": config.model_dump()})
        return
    with ShapesOnly():
        tree = describe(make_model(config))
    print(tree)
    print()
    print(f"parameters                    {cost.parameters:>16,}")
    print(f"  without embeddings          {cost.parameters_without_embeddings:>16,}")
    print(f"training FLOPs / target token {cost.flops_per_token:>16,}")
    print(f"  attention at length {length:<8}{cost.attention_flops_per_token:>16,}")


def _config(name: str) -> ModelConfig:
    """Return the architecture of a preset, recipe or model folder."""
    from transduce.inference.folder import read_model_config
    from transduce.tasks import task_of

    path = Path(name)
    if path.suffix == ".toml" or name in built_in_recipes():
        run = read_recipe(path, log=echo)
        if task_of(run).has_words_as_targets:
            echo(
                "the number of target tokens is known after preparation; counted as"
                f" {run.data.vocab_size:,}, which is too many"
            )
        return task_of(run).model_config(run.model, run.data.vocab_size, run.data.vocab_size)
    if path.is_dir() and name not in PRESETS:
        require_model_folders(path)
        return read_model_config(path).config
    return preset(name).model

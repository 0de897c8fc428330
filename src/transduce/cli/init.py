"""``transduce init``."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated

import typer

from transduce.cli.machine import chosen_device
from transduce.cli.options import DeviceOption, JsonOption, require_positive_minutes
from transduce.cli.output import print_json, say
from transduce.errors import ConfigError

__all__ = ["init"]

COMPRESSED = {".gz", ".xz"}


def init(
    src: Annotated[
        Path | None, typer.Option(help="Sentences in one language, one a line (plain, .gz or .xz).", show_default=False)
    ] = None,
    tgt: Annotated[
        Path | None, typer.Option(help="Their translations: line N of one file translates line N of the other.")
    ] = None,
    tsv: Annotated[Path | None, typer.Option(help="Instead of the two: one file, source TAB target.")] = None,
    direction: Annotated[
        str | None,
        typer.Option(help="The two languages, as in en-de. Default: the endings of the names, as in my.en and my.de."),
    ] = None,
    minutes: Annotated[
        float, typer.Option(callback=require_positive_minutes, help="How long the training may take on this machine.")
    ] = 60.0,
    out: Annotated[Path, typer.Option(help="The recipe to write; its text goes into a folder beside it.")] = Path(
        "my.toml"
    ),
    device: DeviceOption = "auto",
    json: JsonOption = False,
) -> None:
    """Write a recipe for text of your own: dev and test held out, a model for the amount of text and the time."""
    text_files = _checked_files(src, tgt, tsv)
    languages = _languages(direction, text_files)
    import torch

    from transduce.tasks import OwnText, new_recipe

    text = OwnText(*languages, src=src, tgt=tgt, tsv=tsv)
    found = new_recipe(text, out, minutes=minutes, device=torch.device(chosen_device(device)), tell=say)
    if json:
        print_json(
            {
                "recipe": str(found.recipe),
                "text": str(found.text),
                "train_pairs": found.n_train,
                "dev_pairs": found.n_dev,
                "test_pairs": found.n_test,
                "left_out_pairs": found.n_left_out,
                "updates": found.config.training.max_updates,
                "expected_minutes": round(found.minutes, 2),
            }
        )
        return
    model = found.config.model
    print(f"recipe: {found.recipe}, its text: {found.text}")
    print(
        f"{model.n_encoder_layers} + {model.n_decoder_layers} layers of {model.d_model}, "
        f"{found.config.training.max_updates:,} updates, {found.n_epochs:.1f} times through the text: about "
        f"{found.minutes:.0f} minutes on this machine"
    )
    print(f"next: transduce train {found.recipe} --out runs/{found.recipe.stem}")


def _checked_files(src: Path | None, tgt: Path | None, tsv: Path | None) -> list[Path]:
    if tsv is not None and src is None and tgt is None:
        return [tsv]
    if tsv is None and src is not None and tgt is not None:
        return [src, tgt]
    raise ConfigError("name the text: --src with --tgt, or --tsv")


def _languages(direction: str | None, files: list[Path]) -> tuple[str, str]:
    """The source and the target language. Raises ConfigError if nothing tells them."""
    if direction is not None:
        found = re.fullmatch("([a-z]{2,3})-([a-z]{2,3})", direction)
        if found is None:
            raise ConfigError(f"--direction should be two languages, as in en-de, got {direction!r}")
        return found[1], found[2]
    endings = [[suffix for suffix in path.suffixes if suffix not in COMPRESSED][-1:] for path in files]
    codes = [ending[0][1:] for ending in endings if ending and re.fullmatch(r"\.[a-z]{2,3}", ending[0])]
    if len(codes) == 2 and codes[0] != codes[1] and "txt" not in codes:
        return codes[0], codes[1]
    raise ConfigError("the names of the files do not tell the languages; say them, as in --direction en-de")

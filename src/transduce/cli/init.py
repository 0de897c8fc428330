"""``transduce init``."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated

from typer import Option

from transduce.cli import options
from transduce.cli.machine import chosen_device
from transduce.cli.output import echo, print_json, print_line
from transduce.cli.paths import require_utf8_name, require_writable
from transduce.errors import ConfigError, quoted

__all__ = ["init"]


def init(
    src: Annotated[
        Path | None, Option(help="Sentences in one language, one a line (plain, .gz or .xz).", show_default=False)
    ] = None,
    tgt: Annotated[
        Path | None, Option(help="Their translations: line N of one file translates line N of the other.")
    ] = None,
    tsv: Annotated[Path | None, Option(help="Instead of the two: one file, source TAB target.")] = None,
    direction: Annotated[
        str | None,
        Option(help="The two languages, as in en-de. Default: what the names say, as in my.en, or the text."),
    ] = None,
    minutes: Annotated[
        float, Option(callback=options.check_minutes, help="How long the training may take on this machine.")
    ] = 60.0,
    out: Annotated[Path, Option(help="The recipe to write; its text goes into a folder beside it.")] = Path("my.toml"),
    max_dropped_share: Annotated[
        float, Option(min=0, max=1, help="The share of the pairs that cleaning may leave out.")
    ] = 0.3,
    device: options.Device = "auto",
    json: options.Json = False,
) -> None:
    """Write a recipe for text of your own: dev and test held out, a model for the amount of text and the time."""
    text_files = _checked_files(src, tgt, tsv)
    for option, path in (("--src", src), ("--tgt", tgt), ("--tsv", tsv), ("--out", out)):
        require_utf8_name(option, path)
    languages = _languages(direction, text_files)
    require_writable("--out", out)
    import torch

    from transduce.tasks import OwnText, new_recipe

    text = OwnText(*languages, src=src, tgt=tgt, tsv=tsv, max_dropped_share=max_dropped_share)
    found = new_recipe(text, out, minutes=minutes, device=torch.device(chosen_device(device)), log=echo)
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
    print_line(f"recipe: {found.recipe}, its text: {found.text}")
    print_line(
        f"{model.n_encoder_layers} + {model.n_decoder_layers} layers of {model.d_model}, "
        f"{found.config.training.max_updates:,} updates, {found.n_epochs:.1f} times through the text: about "
        f"{found.minutes:.0f} minutes on this machine"
    )
    for line in f"next: {found.command}".split("\n"):  # it can be copied, whatever the names of files are
        print_line(line)


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
        refused = "--direction should be two languages, as in en-de, got"
        if found is None:
            raise ConfigError(f"{refused} {quoted(direction)}")
        if found[1] == found[2]:
            raise ConfigError(f"{refused} the same twice: {quoted(direction)}")
        return found[1], found[2]
    from transduce.corpora.languages import language_in_name, language_name
    from transduce.corpora.parallel_text import require_text

    for path in files:
        require_text(path)
    if len(files) == 2:
        in_names = [language_in_name(path) for path in files]
        if in_names[0] and in_names[1] and in_names[0] != in_names[1]:
            return in_names[0], in_names[1]
    told = _languages_of_text(files)
    if told is None:
        raise ConfigError("neither names nor lines of the text tell its languages; say them, as in --direction en-de")
    echo(f"the text looks like {language_name(told[0])} and {language_name(told[1])}: direction {told[0]}-{told[1]}")
    return told


def _languages_of_text(files: list[Path]) -> tuple[str, str] | None:
    """The languages that most lines are in; None where that is not clear."""
    from transduce.corpora.checks import column_part, two_file_part
    from transduce.corpora.languages import SpreadSample, languages_of

    samples = SpreadSample(), SpreadSample()
    for pair in (two_file_part(*files) if len(files) == 2 else column_part(*files)).read():
        for sample, line in zip(samples, pair or (), strict=False):
            sample.add(line)
    src, tgt = (languages_of(sample.lines).language for sample in samples)
    return (src, tgt) if src and tgt and src != tgt else None

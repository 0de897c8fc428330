"""``transduce init``."""

from __future__ import annotations

from contextlib import nullcontext
from itertools import chain
from pathlib import Path
from typing import Annotated

from typer import Option

from transduce.cli import options
from transduce.cli.fine_tuning import Mix
from transduce.cli.machine import chosen_device
from transduce.cli.model_folders import require_model_folders
from transduce.cli.next_commands import uses_of
from transduce.cli.output import echo, print_json, print_line
from transduce.cli.pair_files import Given, Po, Tmx, Xliff, given_files, written_pairs
from transduce.cli.paths import require_utf8_name, require_writable
from transduce.config import canonical_direction, split_direction
from transduce.corpora.checks import column_part, two_file_part
from transduce.corpora.languages import SpreadSample, language_in_name, language_name, languages_of
from transduce.corpora.parallel_text import require_text
from transduce.errors import ConfigError, quoted
from transduce.findings.finding import counted
from transduce.terms import read_terms

__all__ = ["init"]


def init(
    src: Annotated[
        Path | None,
        Option(help="Read source sentences from this file, one per line (plain, .gz or .xz).", show_default=False),
    ] = None,
    tgt: Annotated[Path | None, Option(help="Read their translations from this file, aligned line by line.")] = None,
    tsv: Annotated[Path | None, Option(help="Read source TAB target from this file instead.")] = None,
    tmx: Tmx = None,
    po: Po = None,
    xliff: Xliff = None,
    start_from: Annotated[
        Path | None,
        Option(
            "--from",
            metavar="MODEL",
            help="Go on from this model folder: its size, vocabulary and languages, a low rate, old text mixed in.",
            show_default=False,
        ),
    ] = None,
    mix: Mix = None,
    data: options.Data = None,
    direction: Annotated[
        str | None,
        Option(
            help="Set the two languages, as in en-de, en-pt-BR, or en-en for correction. Default: taken from the file "
            "names, as in my.en, from TMX or XLIFF, or from the text."
        ),
    ] = None,
    terms: Annotated[
        Path | None, Option(help="Train the model to use terms as these, a list for translate --terms.")
    ] = None,
    minutes: Annotated[
        float, Option(callback=options.check_minutes, help="Plan for this many minutes of training on this machine.")
    ] = 60.0,
    out: Annotated[Path, Option(help="Write the recipe to this file, and its text beside it.")] = Path("my.toml"),
    max_dropped_share: Annotated[
        float,
        Option(
            min=0, max=1, help="Let cleaning drop at most this fraction of the pairs.", rich_help_panel=options.TEXT
        ),
    ] = 0.3,
    device: options.Device = "auto",
    json: options.Json = False,
) -> None:
    """Write a recipe for your own text, TMX, PO or XLIFF.

    Holds out dev and test text, and chooses a model by the size of the text and the time for training. More: transduce
    help own-text.

    Examples:
        transduce init --src my.en --tgt my.de --minutes 60
        transduce init --tmx my.tmx
    """
    given = given_files(tmx, po, xliff)
    for option, path in (("--src", src), ("--tgt", tgt), ("--tsv", tsv), ("--out", out)):
        require_utf8_name(option, path)
    if mix and start_from is None:
        raise ConfigError("--mix needs --from, the model whose old text is mixed in")
    if terms is not None and start_from is not None:
        raise ConfigError("--terms is for a new model: one that goes on from --from reads terms if that one does")
    if start_from is not None:
        direction = _direction_of(start_from, direction)
    if given:
        languages = _languages_of_pairs(given, direction, src, tgt, tsv)
    else:
        languages = _languages(direction, _checked_files(src, tgt, tsv))
    if terms is not None:
        read_terms(terms, src_language=languages[0], tgt_language=languages[1])  # only to see that they can be read
    require_writable("--out", out)
    if out.suffix != ".toml":  # by which other verbs know a recipe
        raise ConfigError(f"--out should end in .toml, got {quoted(str(out))}")
    import torch

    from transduce.runs import OwnText, new_recipe, tuning_recipe

    tsv = out.with_name(f"{out.stem}-pairs.tsv") if given else tsv
    with written_pairs(given, languages, tsv, log=echo) if given and tsv else nullcontext():
        text = OwnText(
            *languages,
            src=src,
            tgt=tgt,
            tsv=tsv,
            max_dropped_share=max_dropped_share,
            has_terms=terms is not None,
            is_kept=not given,
        )
        on = torch.device(chosen_device(device))
        if start_from is None:
            result = new_recipe(text, out, minutes=minutes, device=on, log=echo)
        else:
            result = tuning_recipe(
                start_from, text, out, minutes=minutes, device=on, log=echo, mix=mix or (), data_folder=data
            )
    if json:
        print_json(
            {
                "recipe": str(result.recipe),
                "text": str(result.text),
                "train_pairs": result.n_train,
                "dev_pairs": result.n_dev,
                "test_pairs": result.n_test,
                "left_out_pairs": result.n_left_out,
                "updates": result.n_updates,
                "expected_minutes": round(result.minutes, 2),
            }
        )
        return
    model, r_drop = result.config.model, " with R-Drop" if result.config.training.r_drop else ""
    print_line(f"recipe: {result.recipe}, its text: {result.text}")
    print_line(
        f"{model.layers_in_words()} of {model.d_model}, "
        f"{result.n_updates:,} updates{r_drop}, {result.n_epochs:.1f} epochs: about "
        f"{counted(round(result.minutes), 'minute')} on this machine"
    )
    uses = uses_of(result.run / "model", given.get("tmx", ()), first="then")
    for line in "\n".join([f"next: {result.command}", *uses]).split("\n"):  # a quoted file name may have a line feed
        print_line(line)


def _direction_of(model: Path, direction: str | None) -> str:
    """Return the direction of a translator. Raises ConfigError if another one is asked for."""
    from transduce.runs.fine_tuning import direction_of

    require_model_folders(model)
    own = "-".join(direction_of(model))
    if direction is not None and canonical_direction(direction) != own:
        raise ConfigError(f"{model} translates {own}, got --direction {quoted(direction)}; leave it out with --from")
    return own


def _checked_files(src: Path | None, tgt: Path | None, tsv: Path | None) -> list[Path]:
    if tsv is not None and src is None and tgt is None:
        return [tsv]
    if tsv is None and src is not None and tgt is not None:
        return [src, tgt]
    given = [option for option, path in (("--src", src), ("--tgt", tgt), ("--tsv", tsv)) if path is not None]
    got = f"; got only {given[0]}" if len(given) == 1 else f"; got {', '.join(given)}" if given else ""
    raise ConfigError(f"name the text: --src with --tgt, --tsv, or --tmx, --po and --xliff{got}")


def _languages_of_pairs(
    given: Given, direction: str | None, src: Path | None, tgt: Path | None, tsv: Path | None
) -> tuple[str, str]:
    """Return the two languages of files that may have more. Raises ConfigError if they are not named."""
    if src is not None or tgt is not None or tsv is not None:
        raise ConfigError("--tmx, --po and --xliff take no other text: leave out --src, --tgt and --tsv")
    if direction is not None:
        if known := canonical_direction(direction):
            return split_direction(known)
        raise ConfigError(f"name the two languages of the pairs, as in --direction en-de, got {quoted(direction)}")
    from transduce.documents.pairs import languages_in, pairs_of

    files = chain.from_iterable(pairs_of(paths, "", "", kinds=[kind]).files for kind, paths in given.items())
    found = languages_in(list(files))
    if len(found) == 2 and (known := canonical_direction("-".join(found))):
        echo(f"the files are in {language_name(found[0])} and {language_name(found[1])}: direction {known}")
        return split_direction(known)
    there = f"; the files have {', '.join(found)}" if found else ""
    raise ConfigError(f"name the two languages of the pairs, as in --direction en-de{there}")


def _languages(direction: str | None, files: list[Path]) -> tuple[str, str]:
    """Return the source and target language. Raises ConfigError if they cannot be determined."""
    for path in files:
        require_text(path)
    if direction is not None:
        known = canonical_direction(direction)
        if known is None:
            raise ConfigError(
                f"--direction should be two languages, as in en-de, en-pt-BR, or en-en for correction, got "
                f"{quoted(direction)}"
            )
        languages = split_direction(known)
        if languages[0] == languages[1]:
            _require_one_language(known, files)
        return languages
    if len(files) == 2:
        in_names = [language_in_name(path) for path in files]
        if in_names[0] and in_names[1] and in_names[0] != in_names[1]:
            return in_names[0], in_names[1]
    src, tgt = _languages_of_text(files)
    if src is None or tgt is None:
        raise ConfigError("cannot tell the languages from file names or text; name them, as in --direction en-de")
    if src == tgt:
        raise ConfigError(
            f"both sides look like {language_name(src)}; for a task within one language, such as correction: "
            f"--direction {src}-{tgt}"
        )
    echo(f"the text looks like {language_name(src)} and {language_name(tgt)}: direction {src}-{tgt}")
    return src, tgt


def _require_one_language(direction: str, files: list[Path]) -> None:
    """Raise ConfigError if the two sides are clearly not in one language."""
    src, tgt = _languages_of_text(files)
    if src is not None and tgt is not None and src != tgt:
        raise ConfigError(
            f"--direction {direction} is one language, but the sides look like {language_name(src)} and "
            f"{language_name(tgt)}; name both, as in --direction {src}-{tgt}"
        )


def _languages_of_text(files: list[Path]) -> tuple[str | None, str | None]:
    """Detect the languages of the two sides; None for one that is unclear."""
    samples = SpreadSample(), SpreadSample()
    for pair in (two_file_part(*files) if len(files) == 2 else column_part(*files)).read():
        for sample, line in zip(samples, pair or (), strict=False):
            sample.add(line)
    src, tgt = (languages_of(sample.lines).language for sample in samples)
    return src, tgt

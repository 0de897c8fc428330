"""``transduce rank``."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import Annotated

from typer import Option

from transduce.cli import options
from transduce.cli.decoding import decoding_options
from transduce.cli.imports import command_imports
from transduce.cli.model_folders import require_model_folders
from transduce.cli.models import load_translator
from transduce.cli.output import STANDARD, json_line, print_json, print_line
from transduce.cli.paths import require_writable
from transduce.cli.progress import LineProgress
from transduce.cli.text_output import line_writer, require_not_read
from transduce.config import MAX_BEAM_SIZE
from transduce.config.decoding import NO_CHANGES, DecodingOptions, LoadingOptions
from transduce.errors import ConfigError

__all__ = ["rank"]


@decoding_options("temperature", "seed")
def rank(
    folders: options.Models,
    src: Annotated[Path, Option(help="Translate this text line by line (plain, .gz or .xz).", show_default=False)],
    ref: Annotated[
        Path, Option(help="Rank by chrF against these references, aligned line by line.", show_default=False)
    ],
    out: Annotated[
        Path,
        Option(
            help="Write the rankings to this file, JSON Lines (.jsonl, also .gz or .xz; OUT.part until complete).",
            show_default=False,
        ),
    ],
    samples: Annotated[
        int, Option(min=2, max=options.MAX_SAMPLES, help="Draw this many translations of each line.")
    ] = 4,
    decoding: DecodingOptions = NO_CHANGES,
    beam: Annotated[
        int | None,
        Option(
            min=2,
            max=MAX_BEAM_SIZE,
            help="Rank all translations of a beam of this size instead of draws.",
            show_default=False,
        ),
    ] = None,
    device: options.Device = "auto",
    precision: options.Precision = "fp32",
    engine: options.Engine = "auto",
    json: options.Json = False,
) -> None:
    """Rank a model's translations, as text for a reward model.

    Each line of OUT has a source as "prompt" and its different translations as "responses", the best by chrF first. A
    recipe with data.task = "reward" reads it as data.train_prompts.

    Examples:
        transduce rank runs/my/model --src train.en --ref train.de --out ranked.jsonl
    """
    with command_imports():
        from transduce.corpora import read_aligned_files
        from transduce.corpora.responses import is_json_lines

    require_model_folders(*folders, text_usage="--src {}")
    if out == STANDARD or not is_json_lines(out):
        raise ConfigError(f"--out should be a file of JSON Lines, as in rankings.jsonl, got {out}")
    if beam is not None and "temperature" in decoding.changes:
        raise ConfigError("--beam does not draw; leave out --temperature")
    require_writable("--out", out)
    require_not_read(out, src, option="--src")
    require_not_read(out, ref, option="--ref")
    n_pairs = sum(1 for _ in read_aligned_files(src, ref))  # checked before the model is loaded
    translator = load_translator(LoadingOptions(folders, device, precision, engine=engine))
    searched = decoding.changed(kind="sampling") if beam is None else decoding.changed(beam_size=beam)
    search = searched.applied_to(translator.search)
    from transduce.inference import RankedCounts, Translator, ranked_translations

    assert isinstance(translator, Translator)
    counts = RankedCounts()
    with ExitStack() as stack:
        write = stack.enter_context(line_writer(out))
        progress = stack.enter_context(LineProgress("ranking", n_pairs, is_enabled=True))
        pairs = read_aligned_files(src, ref)
        for ranking in ranked_translations(translator, pairs, counts, n=beam or samples, search=search):
            write(json_line({"prompt": ranking.prompt, "responses": list(ranking.responses)}))
            progress.advance()
    if json:
        print_json({"out": str(out), **counts.as_json()})
        return
    left_out = ", ".join(
        f"{n:,} {what}"
        for n, what in (
            (counts.empty, "empty"), (counts.too_long, "too long"), (counts.alike, "without different translations"),
        )
        if n
    )  # fmt: skip
    print_line(
        f"{out}: {counts.rankings:,} rankings of {counts.responses:,} translations"
        + f"; left out: {left_out}" * bool(left_out)
    )

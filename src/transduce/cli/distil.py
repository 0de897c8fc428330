"""``transduce distil``."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import Annotated

from typer import Option

from transduce.cli import options
from transduce.cli.decoding import decoding_options
from transduce.cli.model_folders import require_model_folders
from transduce.cli.models import load_translator
from transduce.cli.output import STANDARD, print_json, print_line
from transduce.cli.paths import require_writable
from transduce.cli.progress import LineProgress
from transduce.cli.stdin import input_lines, number_of_lines
from transduce.cli.text_output import line_writer, require_not_read
from transduce.config.decoding import NO_CHANGES, DecodingOptions, LoadingOptions
from transduce.errors import ConfigError
from transduce.files import open_binary

__all__ = ["distil"]

CHUNK_LINES, MAX_WORKERS = 2000, 256


@decoding_options("kind", "seed", "beam_size", "alpha")
def distil(
    folders: options.Models,
    src: Annotated[
        Path, Option(help="Translate this text line by line (plain, .gz or .xz; - is stdin).", show_default=False)
    ],
    out: Annotated[
        Path,
        Option(
            help="Write the pairs to this file, source TAB translation (plain, .gz or .xz; OUT.part until complete).",
            show_default=False,
        ),
    ],
    back: Annotated[
        bool,
        Option("--back", help="Back-translation: write translation TAB source, to train the other direction."),
    ] = False,
    decoding: DecodingOptions = NO_CHANGES,
    workers: Annotated[
        int, Option(min=1, max=MAX_WORKERS, help="Translate in this many processes, which share the cores.")
    ] = 1,
    device: options.Device = "auto",
    precision: options.Precision = "fp32",
    engine: options.Engine = "auto",
    json: options.Json = False,
) -> None:
    """Make training text from translations.

    For a smaller model, a faster one, or more text for a model of the other direction (--back). A recipe reads it with
    data.corpus = "files" and data.train_tsv. Lines are not split.

    Examples:
        transduce distil runs/my/model --beam 1 --src train.en --out distilled.tsv
        transduce distil runs/de-en/model --back --src more.de --out more.tsv
    """
    require_model_folders(*folders, text_usage="--src {}")
    if out == STANDARD:
        raise ConfigError("--out should be a file: stdout has the counts")
    if src != STANDARD:
        open_binary(src).close()  # checked before the model is loaded
    require_writable("--out", out)
    require_not_read(out, src, option="--src")
    loading = LoadingOptions(folders, device, precision, engine=engine)
    with ExitStack() as stack:
        if workers > 1:
            from transduce.bulk import TranslationJob, TranslationWorkers

            job = TranslationJob(loading, decoding, split=False, chunk_lines=max(1, CHUNK_LINES // workers))
            team = stack.enter_context(TranslationWorkers(job, workers))
            team.wait_until_loaded()
            translations = team.translate_lines(input_lines(src))
        else:
            translator = load_translator(loading)
            search = decoding.applied_to(translator.search)
            translations = translator.translate_lines(
                input_lines(src), search=search, chunk_lines=CHUNK_LINES, split=False, is_scored=False,
                report=lambda n_lines: progress.reach(n_lines),
            )  # fmt: skip
        from transduce.inference.translation.distillation import DistilledCounts, distilled_pairs

        counts = DistilledCounts()
        write = stack.enter_context(line_writer(out))
        progress = stack.enter_context(LineProgress("translating", number_of_lines(src), is_enabled=True))
        for src_text, tgt_text in distilled_pairs(translations, counts, is_back=back):
            write(f"{src_text}\t{tgt_text}")
            progress.advance()
    if json:
        print_json({"out": str(out), **counts.as_json()})
        return
    left_out = f"; left out: {counts.empty:,} empty, {counts.too_long:,} too long" * bool(
        counts.empty + counts.too_long
    )
    print_line(f"{out}: {counts.pairs:,} pairs{left_out}")

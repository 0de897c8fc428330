"""``transduce align``."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import Annotated

from typer import Option

from transduce.cli import options
from transduce.cli.model_folders import require_model_folders
from transduce.cli.models import load_translator
from transduce.cli.output import json_line
from transduce.cli.paths import require_writable
from transduce.cli.progress import LineProgress
from transduce.cli.stdin import aligned_lines, require_stdin_once
from transduce.cli.text_output import is_terminal, line_writer, require_not_read
from transduce.config.decoding import LoadingOptions

__all__ = ["align"]


def align(
    folder: options.Model,
    src: Annotated[Path, Option(help="Texts, one in each line; - is stdin.", show_default=False)],
    tgt: Annotated[Path, Option(help="Their translations, aligned line by line; - is stdin.", show_default=False)],
    out: Annotated[
        Path | None,
        Option(
            help="Write links to this file (plain, .gz or .xz; OUT.part until complete). Default: stdout.",
            show_default=False,
        ),
    ] = None,
    characters: Annotated[
        bool,
        Option(
            "--characters",
            help="Characters of scripts without spaces (Chinese, Japanese, Thai ...) are words, in place of the whole "
            "between two spaces.",
        ),
    ] = False,
    device: options.Device = "auto",
    precision: options.Precision = "fp32",
    engine: options.Engine = "auto",
    json: options.Json = False,
) -> None:
    """Link the words of translations to those of their sources.

    By the attention of a model. Each line has pairs such as 0-0 1-2, source-target (Pharaoh format), of words between
    spaces as the files have them: one for each word of the translation whose origin is known. --json adds how sure
    each is, from 0 to 1.

    Examples:
        transduce align runs/my/model --src test.en --tgt test.de
    """
    require_stdin_once({"--src": src, "--tgt": tgt})
    require_model_folders(folder, text_usage="--src {}")
    require_writable("--out", out)
    for option, path in (("--src", src), ("--tgt", tgt)):
        require_not_read(out, path, option=option)
    pairs = list(zip(*aligned_lines(src, tgt), strict=True))
    translator = load_translator(LoadingOptions([folder], device, precision, engine=engine))
    from transduce.inference import Translator
    from transduce.inference.translation import word_links

    assert isinstance(translator, Translator)
    with ExitStack() as stack:
        write = stack.enter_context(line_writer(out))
        progress = stack.enter_context(LineProgress("aligning", len(pairs), is_enabled=not is_terminal(out)))
        aligned = word_links.aligned_lines(translator, pairs, has_characters=characters)
        for number, ((source, target), line) in enumerate(zip(pairs, aligned, strict=True), start=1):
            if json:
                found = [[*link, round(weight, 4)] for link, weight in zip(line.links, line.weights, strict=True)]
                write(json_line({"line": number, "source": source, "target": target, "links": found}))
            else:
                write(word_links.pharaoh(line.links))
            progress.advance()

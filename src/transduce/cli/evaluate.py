"""``transduce evaluate``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from transduce.cli.models import load_translator, search_as_asked
from transduce.cli.options import (
    DEFAULT_RERANK_WEIGHT,
    AlphaOption,
    BeamOption,
    DataOption,
    DeviceOption,
    JsonOption,
    ModelsArgument,
    PrecisionOption,
    RerankOption,
    RerankWeightOption,
)
from transduce.cli.output import print_json, print_scores, require_writable
from transduce.errors import ConfigError, DataError

__all__ = ["evaluate"]


def evaluate(
    folders: ModelsArgument,
    src: Annotated[
        Path | None, typer.Option(help="Source text, a sentence a line (plain, .gz or .xz).", show_default=False)
    ] = None,
    ref: Annotated[Path | None, typer.Option(help="References, aligned line by line.", show_default=False)] = None,
    text: Annotated[
        str | None,
        typer.Option(help="Instead of the two: a text in a data folder, as in multi30k/test_2017_flickr."),
    ] = None,
    data: DataOption = None,
    out: Annotated[Path | None, typer.Option(help="Also write the translations to this file.")] = None,
    beam: BeamOption = None,
    alpha: AlphaOption = None,
    rerank: RerankOption = None,
    rerank_weight: RerankWeightOption = DEFAULT_RERANK_WEIGHT,
    device: DeviceOption = "auto",
    precision: PrecisionOption = "fp32",
    json: JsonOption = False,
) -> None:
    """Translate a test set and score it."""
    from transduce.corpora import data_folders, find_text, read_aligned_files, text_named
    from transduce.files import write_lines
    from transduce.tasks import evaluate as evaluate_translator

    if (src is None or ref is None) == (text is None) or (text is not None and (src or ref)):
        raise ConfigError("name the test set: --src with --ref, or --text")
    if out is not None:
        require_writable("--out", out)
    translator = load_translator(
        folders, device=device, precision=precision, rerank=rerank, rerank_weight=rerank_weight
    )
    if text is not None:
        places, languages = data_folders(data), (translator.src_language, translator.tgt_language)
        found = find_text(text_named(text), *languages, places)
        if found is None:
            raise DataError(f"there is no {text} in {' and '.join(languages)} in {', '.join(map(str, places))}")
        src, ref = found
    assert src is not None
    assert ref is not None
    pairs = list(read_aligned_files(src, ref))
    sources, references = [source for source, _ in pairs], [reference for _, reference in pairs]
    search = search_as_asked(translator.search, n_best=None, beam=beam, alpha=alpha)
    evaluation = evaluate_translator(translator, sources, references, search=search)
    if out is not None:
        write_lines(out, evaluation.translations)
    if json:
        print_json(evaluation.scores.as_json())
    else:
        print_scores(evaluation.scores)

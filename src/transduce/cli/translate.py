"""``transduce translate``."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from transduce.cli.models import load_translator, search_as_asked
from transduce.cli.options import (
    DEFAULT_RERANK_WEIGHT,
    AlphaOption,
    BeamOption,
    DeviceOption,
    JsonOption,
    ModelsArgument,
    PrecisionOption,
    RerankOption,
    RerankWeightOption,
)
from transduce.cli.output import print_json, say
from transduce.cli.stdin import piped_lines, typed_lines

if TYPE_CHECKING:
    from transduce.tasks import Translation

__all__ = ["translate"]


def translate(
    folders: ModelsArgument,
    n_best: Annotated[
        int | None, typer.Option(min=1, help="Print the n best: number TAB score TAB translation.")
    ] = None,
    beam: BeamOption = None,
    alpha: AlphaOption = None,
    buffer: Annotated[
        int, typer.Option(min=1, help="Lines read before the first is translated: 1 answers each, more is faster.")
    ] = 2000,
    no_split: Annotated[
        bool, typer.Option("--no-split", help="Take each line as one sentence, however many it has.")
    ] = False,
    rerank: RerankOption = None,
    rerank_weight: RerankWeightOption = DEFAULT_RERANK_WEIGHT,
    device: DeviceOption = "auto",
    precision: PrecisionOption = "fp32",
    json: JsonOption = False,
) -> None:
    """Translate stdin to stdout, a line for each line; on a terminal, type sentences at a prompt."""
    translator = load_translator(
        folders, device=device, precision=precision, rerank=rerank, rerank_weight=rerank_weight
    )
    search = search_as_asked(translator.search, n_best=n_best, beam=beam, alpha=alpha)
    is_talk = sys.stdin.isatty()
    lines = typed_lines(translator.src_language) if is_talk else piped_lines()
    translations = translator.translate_lines(
        lines, search=search, chunk_lines=1 if is_talk else buffer, split=not no_split
    )
    for number, translation in enumerate(translations, start=1):
        if translation.is_cut:
            say(f"warning: line {number} is longer than {translator.max_source_tokens:,} tokens; its end was cut off")
        if json:
            print_json(_as_json(number, translation))
        elif n_best is not None:
            for hypothesis in translation.n_best:
                print(f"{number}\t{hypothesis.score:.4f}\t{hypothesis.text}")
        else:
            print(translation.text)
        sys.stdout.flush()


def _as_json(number: int, translation: Translation) -> dict[str, Any]:
    return {
        "line": number,
        "source": translation.source,
        "translation": translation.text,
        "score": translation.score,
        "n_best": [{"translation": best.text, "score": best.score} for best in translation.n_best],
    }

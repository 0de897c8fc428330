"""``transduce translate``."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any

import typer

from transduce.cli.machine import chosen_device, chosen_precision
from transduce.cli.options import DeviceOption, JsonOption, ModelsArgument, PrecisionOption
from transduce.cli.output import print_json, say

if TYPE_CHECKING:
    from transduce.config import SearchConfig
    from transduce.tasks import Translation, Translator

__all__ = ["translate"]


def translate(
    folders: ModelsArgument,
    n_best: Annotated[
        int | None, typer.Option(min=1, help="Print the n best: number TAB score TAB translation.")
    ] = None,
    beam: Annotated[int | None, typer.Option(min=1, help="Beam size; 1 is greedy. Default: the model's.")] = None,
    alpha: Annotated[float | None, typer.Option(min=0, help="Of the length penalty. Default: the model's.")] = None,
    buffer: Annotated[
        int, typer.Option(min=1, help="Lines read before the first is translated: 1 answers each, more is faster.")
    ] = 2000,
    device: DeviceOption = "auto",
    precision: PrecisionOption = "fp32",
    json: JsonOption = False,
) -> None:
    """Translate stdin to stdout, a line for each line; on a terminal, type sentences at a prompt."""
    from transduce.tasks import Translator

    device = chosen_device(device)
    translator = Translator.load(*folders, device=device, precision=chosen_precision(precision, device))
    search = _search(translator.search, n_best=n_best, beam=beam, alpha=alpha)
    is_talk = sys.stdin.isatty()
    lines = _typed_lines(translator) if is_talk else _piped_lines()
    translations = translator.translate_lines(lines, search=search, chunk_lines=1 if is_talk else buffer)
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


def _search(search: SearchConfig, *, n_best: int | None, beam: int | None, alpha: float | None) -> SearchConfig:
    """The model's way to search, with what was asked for. A beam too small for the n best grows."""
    from transduce.config import SearchConfig, config_from_mapping

    changes: dict[str, Any] = {"n_best": n_best or 1, "beam_size": beam or max(search.beam_size, n_best or 1)}
    if alpha is not None:
        changes["alpha"] = alpha
    return config_from_mapping(SearchConfig, search.model_dump() | changes, where="translate")


def _piped_lines() -> Iterator[str]:
    """The lines of stdin, split at line feeds only. Bytes that are not UTF-8 become U+FFFD, with a warning."""
    for number, raw in enumerate(sys.stdin.buffer, start=1):
        line = raw.removesuffix(b"\n").removesuffix(b"\r").decode("utf-8", "replace")
        line = line.removeprefix("\ufeff") if number == 1 else line
        if "\ufffd" in line and "\ufffd".encode() not in raw:
            say(f"warning: line {number} is not UTF-8; the bytes in question are replaced")
        yield line


def _typed_lines(translator: Translator) -> Iterator[str]:
    """Lines from a person, until end of file."""
    say("type a sentence and press Enter; Ctrl-D ends")
    while True:
        try:
            print(f"{translator.src_language}> ", end="", file=sys.stderr, flush=True)  # stdout may be a file
            yield input()
        except EOFError:
            say("")
            return


def _as_json(number: int, translation: Translation) -> dict[str, Any]:
    return {
        "line": number,
        "source": translation.source,
        "translation": translation.text,
        "score": translation.score,
        "n_best": [{"translation": best.text, "score": best.score} for best in translation.n_best],
    }

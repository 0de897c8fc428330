"""``transduce sweep``."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from time import perf_counter
from typing import Annotated, Any

from typer import BadParameter, Option

from transduce.cli import options
from transduce.cli.imports import command_imports
from transduce.cli.model_folders import require_model_folders
from transduce.cli.models import load_translator
from transduce.cli.output import print_json, print_line
from transduce.cli.progress import LineProgress
from transduce.cli.stdin import aligned_lines, require_stdin_once
from transduce.config.decoding import DecodingOptions, LoadingOptions

__all__ = ["Combination", "cheapest", "sweep"]

SIGNIFICANT = 0.05  # a combination below this p-value is worse than the best
SEED = 1  # of the paired bootstrap


@dataclass(frozen=True, slots=True)
class Combination:
    """A beam size and a length penalty, and what comes out with them."""

    beam_size: int
    alpha: float
    bleu: float
    chrf: float
    seconds: float
    translations: tuple[str, ...]
    p_value: float = 1.0  # that the best is no better, by paired bootstrap

    def as_json(self) -> dict[str, Any]:
        """Return the values to print."""
        names = ("beam_size", "alpha", "bleu", "chrf", "seconds", "p_value")
        return {name: getattr(self, name) for name in names}


def _numbers(text: str, kind: type[Any]) -> list[Any]:
    """Return numbers between commas. Raises BadParameter."""
    try:
        return sorted({kind(each) for each in text.split(",")})
    except ValueError:
        raise BadParameter(f"should be numbers with commas between, as in 1,4, got {text!r}") from None


def sweep(
    folders: options.Models,
    src: Annotated[Path, Option(help="Translate this dev text (plain, .gz or .xz; - is stdin).")],
    ref: Annotated[Path, Option(help="Score against these references, aligned line by line.")],
    beam: Annotated[str, Option(help="Beam sizes to try.")] = "1,2,4,8",
    alpha: Annotated[str, Option(help="Exponents of the length penalty to try.")] = "0.2,0.6,1.0,1.4",
    device: options.Device = "auto",
    precision: options.Precision = "fp32",
    engine: options.Engine = "auto",
    json: options.Json = False,
) -> None:
    """Choose beam size and length penalty on a dev text.

    Translates the text with each combination, as section 6.1 of the paper does, and names the smallest beam that is no
    worse than the best (paired bootstrap, p < 0.05).

    Examples:
        transduce sweep runs/my/model --src dev.en --ref dev.de
        transduce sweep runs/my/model --src dev.en --ref dev.de --beam 1,4 --alpha 1
    """
    with command_imports():
        from transduce.inference import evaluate
        from transduce.metrics import paired_bootstrap

    require_stdin_once({"--src": src, "--ref": ref})
    require_model_folders(*folders, text_usage="--src {}")
    sources, references = aligned_lines(src, ref)
    sizes, exponents = _numbers(beam, int), _numbers(alpha, float)
    translator = load_translator(LoadingOptions(folders, device, precision, engine=engine))
    search_of = {
        (size, exponent): DecodingOptions(beam_size=size, alpha=exponent).applied_to(translator.search)
        for size in sizes
        for exponent in (exponents if size > 1 else exponents[:1])  # of one hypothesis the penalty decides nothing
    }
    tried = list[Combination]()
    with LineProgress("translating", len(search_of) * len(sources)) as progress:
        for (size, exponent), search in search_of.items():
            started = perf_counter()
            found = evaluate(
                translator, sources, references, search=search,
                report=lambda n_lines: progress.reach(len(tried) * len(sources) + n_lines),
            )  # fmt: skip
            bleu, chrf, seconds = found.scores.sacrebleu.score, found.scores.chrf.score, perf_counter() - started
            tried.append(Combination(size, exponent, bleu, chrf, seconds, found.translations))
    best = max(tried, key=lambda each: each.bleu)
    tried = [
        replace(
            each,
            p_value=paired_bootstrap(
                each.translations, best.translations, references, seed=SEED, language=translator.tgt_language
            ).p_value,
        )
        for each in tried
    ]
    chosen = cheapest(tried)
    if json:
        print_json({"tried": [each.as_json() for each in tried], "chosen": chosen.as_json()})
        return
    print_line(f"{'beam':>5} {'alpha':>6} {'BLEU':>7} {'chrF':>7} {'seconds':>8} {'p':>6}")
    for each in tried:
        mark = "  chosen" if each is chosen else "  best" if each.bleu == best.bleu else ""
        print_line(
            f"{each.beam_size:>5} {each.alpha:>6g} {each.bleu:>7.2f} {each.chrf:>7.2f} {each.seconds:>8.1f}"
            f" {each.p_value:>6.3f}{mark}"
        )
    print_line(f"in a recipe: --set search.beam_size={chosen.beam_size} --set search.alpha={chosen.alpha:g}")


def cheapest(tried: Iterable[Combination]) -> Combination:
    """Return the combination with the smallest beam that is no worse than the best, the best of that beam."""
    return min((each for each in tried if each.p_value >= SIGNIFICANT), key=lambda each: (each.beam_size, -each.bleu))

"""``transduce score``. Imports no torch."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from transduce.cli import options
from transduce.cli.output import echo, print_json, print_line, print_scores
from transduce.cli.stdin import aligned_lines, name_of, require_stdin_once
from transduce.config import MAX_SEED
from transduce.errors import ConfigError, quoted

__all__ = ["score"]

MAX_RESAMPLES = 10**6


def score(
    hypotheses: Annotated[
        Path, Argument(metavar="HYP", help="Translations, one per line; - is stdin.", show_default=False)
    ],
    ref: Annotated[
        Path,
        Option(help="Score against these references, aligned line by line (plain, .gz or .xz).", show_default=False),
    ],
    against: Annotated[
        Path | None,
        Option(help="Compare with the translations of another system by paired bootstrap.", show_default=False),
    ] = None,
    resamples: Annotated[int, Option(min=1, max=MAX_RESAMPLES, help="Draw this many resamples for --against.")] = 1000,
    seed: Annotated[int, Option(min=0, max=MAX_SEED, help="Use this random seed for --against.")] = 1,
    paper_bleu: options.PaperBleu = False,
    multi30k_bleu: options.Multi30kBleu = False,
    language: Annotated[str, Option(help="Tokenise as for this language (--paper-bleu, --multi30k-bleu).")] = "de",
    json: options.Json = False,
) -> None:
    """Score translations against references with sacreBLEU and chrF, and on request with tokenised BLEUs."""
    from transduce.metrics import has_moses_rules, looks_tokenised, paired_bootstrap, score_translations

    if not re.fullmatch("[a-z]{2,3}", language):
        raise ConfigError(f"--language should be a language code, as in de, got {quoted(language)}")
    require_stdin_once({"HYP": hypotheses, "--ref": ref, "--against": against})
    names = [ref, hypotheses, *([against] if against else [])]
    references, *texts = aligned_lines(*names)
    for path, lines in zip(names, (references, *texts), strict=True):
        if looks_tokenised(lines):
            echo(f"warning: {name_of(path)} looks tokenised (spaces before punctuation); scores need detokenised text")
    also = options.requested_bleus(paper=paper_bleu, multi30k=multi30k_bleu)
    if also and not has_moses_rules(language):
        echo(f"warning: sacremoses has no rules for {language}; {' and '.join(also)} will use those for English")
    scores = score_translations(texts[0], references, language=language, also=also)
    test = None
    if against is not None:
        test = paired_bootstrap(texts[1], texts[0], references, n_resamples=resamples, seed=seed)
    if json:
        print_json(scores.as_json() | ({"paired_bootstrap": test.as_json()} if test else {}))
        return
    print_scores(scores)
    if test is not None:
        low, high = test.interval
        old, new = name_of(names[2]), name_of(hypotheses)
        print_line()
        print_line(f"sacrebleu of {old}: {test.a.score:.2f}; difference of {new}: {test.difference:+.2f}")
        print_line(f"95% interval of the difference: {low:+.2f} to {high:+.2f}; p = {test.p_value:.4f} (two-sided)")
        print_line(f"paired bootstrap, {test.n_resamples:,} resamples, seed {test.seed}")

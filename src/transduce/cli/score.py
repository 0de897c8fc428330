"""``transduce score``. Imports no torch, unless a model scores."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from transduce.cli import options
from transduce.cli.imports import command_imports
from transduce.cli.machine import chosen_device
from transduce.cli.model_folders import require_model_folders
from transduce.cli.output import echo, json_line, print_json, print_line, print_scores
from transduce.cli.scoring import Tokenizer, named_references, warn_of_moses_rules, warn_of_tokenised_text
from transduce.cli.stdin import aligned_lines, name_of, require_stdin_once
from transduce.config import MAX_SEED, canonical_code
from transduce.config.decoding import EngineName
from transduce.errors import ConfigError, quoted
from transduce.inference.devices import usable_precision

__all__ = ["score"]

MAX_RESAMPLES = 10**6


def score(
    hypotheses: Annotated[
        Path, Argument(metavar="HYP", help="Translations, one per line; - is stdin.", show_default=False)
    ],
    ref: Annotated[
        list[Path] | None,
        Option(
            help="Score against these references, aligned line by line (plain, .gz or .xz); repeat it for several "
            "references of each line.",
            show_default=False,
        ),
    ] = None,
    model: Annotated[
        Path | None,
        Option(
            help="Instead, print how probable this model finds each translation of --src: its log-probability in nats.",
            show_default=False,
        ),
    ] = None,
    src: Annotated[
        Path | None, Option(help="With --model: the sources, aligned line by line.", show_default=False)
    ] = None,
    against: Annotated[
        Path | None,
        Option(help="Compare with the translations of another system by paired bootstrap.", show_default=False),
    ] = None,
    resamples: Annotated[
        int,
        Option(
            min=1, max=MAX_RESAMPLES, help="Draw this many resamples for --against.", rich_help_panel=options.SCORES
        ),
    ] = 1000,
    seed: Annotated[
        int, Option(min=0, max=MAX_SEED, help="Use this random seed for --against.", rich_help_panel=options.SCORES)
    ] = 1,
    paper_bleu: options.PaperBleu = False,
    multi30k_bleu: options.Multi30kBleu = False,
    language: Annotated[
        str | None,
        Option(
            help="Count words as for this language. Default: that of the references' file name, as in ref.zh, or of "
            "their script; else de.",
            show_default=False,
            rich_help_panel=options.SCORES,
        ),
    ] = None,
    tokenize: Tokenizer = None,
    device: options.Device = "auto",
    precision: options.Precision = "fp32",
    engine: options.Engine = "auto",
    json: options.Json = False,
) -> None:
    """Score translations against references by sacreBLEU and chrF.

    With --model and --src, by the model's log-probabilities instead, a line for each translation.

    Examples:
        transduce score new.de --ref test.de
        transduce score new.de --ref test.de --against old.de
    """
    if model is not None or src is not None:
        if model is None or src is None or any((ref, against, paper_bleu, multi30k_bleu, language, tokenize)):
            raise ConfigError("--model and --src belong together, without references and their options")
        _print_forced_scores(hypotheses, model, src, device=device, precision=precision, engine=engine, is_json=json)
        return
    if not ref:
        raise ConfigError("name the references with --ref, or a model and the sources with --model and --src")
    from transduce.corpora.languages import language_in_name
    from transduce.metrics import paired_bootstrap, require_bleu_tokenizer, score_translations

    known = None if language is None else canonical_code(language)
    if language is not None and known is None:
        raise ConfigError(f"--language should be a language code, as in de or pt-BR, got {quoted(language)}")
    if tokenize is not None:
        require_bleu_tokenizer(tokenize)
    require_stdin_once({"HYP": hypotheses, **named_references(ref), "--against": against})
    names = [*ref, hypotheses, *([against] if against else [])]
    texts = aligned_lines(*names)
    warn_of_tokenised_text({name_of(path): lines for path, lines in zip(names, texts, strict=True)})
    references, (new, *older) = texts[: len(ref)], texts[len(ref) :]
    language = known or language_in_name(ref[0]) or "de"
    also = options.requested_bleus(paper=paper_bleu, multi30k=multi30k_bleu)
    warn_of_moses_rules(language, also)
    scores = score_translations(new, *references, language=language, also=also, tokenizer=tokenize)
    test = None
    if older:
        test = paired_bootstrap(
            older[0], new, *references, n_resamples=resamples, seed=seed, language=language, tokenizer=tokenize
        )
    if json:
        print_json(scores.as_json() | ({"paired_bootstrap": test.as_json()} if test else {}))
        return
    print_scores(scores)
    if test is not None:
        low, high = test.interval
        print_line()
        print_line(
            f"sacrebleu of {name_of(names[-1])}: {test.a.score:.2f}; difference of {name_of(hypotheses)}: "
            f"{test.difference:+.2f}"
        )
        print_line(f"95% interval of the difference: {low:+.2f} to {high:+.2f}; p = {test.p_value:.4f} (two-sided)")
        print_line(f"paired bootstrap, {test.n_resamples:,} resamples, seed {test.seed}")


def _print_forced_scores(
    hypotheses: Path, model: Path, src: Path, *, device: str, precision: str, engine: EngineName, is_json: bool
) -> None:
    """Print the log-probability of each translation."""
    require_stdin_once({"HYP": hypotheses, "--src": src})
    require_model_folders(model, text_usage="--src {}")
    pairs = list(zip(*aligned_lines(src, hypotheses), strict=True))
    with command_imports():
        from transduce.inference import Translator, forced_scores

    device = chosen_device(device)
    translator = Translator.load(model, device=device, precision=usable_precision(precision, device), engine=engine)
    for number, score in enumerate(forced_scores(translator, pairs), start=1):
        if score.is_truncated:
            echo(f"warning: line {number} is longer than the model reads; its end is not scored")
        if is_json:
            print_line(json_line({"line": number, "log_prob": score.log_prob, "tokens": score.n_tokens}))
        else:
            print_line(f"{score.log_prob:.4f}")

"""``transduce evaluate``."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Option

from transduce.cli import options
from transduce.cli.decoding import decoding_options
from transduce.cli.imports import command_imports
from transduce.cli.line_warnings import LineWarnings
from transduce.cli.machine import chosen_device
from transduce.cli.model_folders import require_model_folders
from transduce.cli.models import load_translator
from transduce.cli.output import STANDARD, echo, print_json, print_scores
from transduce.cli.paths import require_writable
from transduce.cli.progress import LineProgress
from transduce.cli.scoring import Tokenizer, named_references, warn_of_moses_rules, warn_of_tokenised_text
from transduce.cli.stdin import aligned_lines, name_of, require_stdin_once
from transduce.cli.text_output import require_not_read
from transduce.config.decoding import NO_CHANGES, DecodingOptions, EngineName, LoadingOptions
from transduce.errors import ConfigError, DataError
from transduce.files import write_lines
from transduce.inference.devices import usable_precision

if TYPE_CHECKING:
    from transduce.metrics import ReliabilityBin
    from transduce.tasks.task import Scores

__all__ = ["evaluate"]

MAX_WARNINGS = 5  # about files of a list; the others are counted


@decoding_options("beam_size", "alpha")
def evaluate(
    folders: options.Models,
    src: Annotated[
        Path | None,
        Option(help="Translate this text line by line (plain, .gz or .xz; - is stdin).", show_default=False),
    ] = None,
    ref: Annotated[
        list[Path] | None,
        Option(
            help="Score against these references, aligned line by line; repeat it for several references of each line.",
            show_default=False,
        ),
    ] = None,
    text: Annotated[
        str | None, Option(help="Use this test set of a data folder instead, as in multi30k/test_2017_flickr.")
    ] = None,
    media: Annotated[
        Path | None,
        Option(
            help="Of a model of images or audio: read the files of this list instead, each line a file name TAB its "
            "text.",
            show_default=False,
            rich_help_panel=options.TEXT,
        ),
    ] = None,
    data: options.Data = None,
    out: Annotated[
        Path | None,
        Option(help="Also write the translations to this file; - writes them to stdout and the scores to stderr."),
    ] = None,
    split: Annotated[
        bool, Option("--split", help="Split long lines into sentences, as 'transduce translate' does.")
    ] = False,
    paper_bleu: options.PaperBleu = False,
    multi30k_bleu: options.Multi30kBleu = False,
    tokenize: Tokenizer = None,
    calibration: Annotated[
        bool,
        Option(
            "--calibration",
            help="Also say how sure the model is of the references' tokens, and how often right.",
            rich_help_panel=options.SCORES,
        ),
    ] = False,
    decoding: DecodingOptions = NO_CHANGES,
    rerank: options.Rerank = None,
    rerank_weight: options.RerankWeight = options.DEFAULT_RERANK_WEIGHT,
    device: options.Device = "auto",
    precision: options.Precision = "fp32",
    engine: options.Engine = "auto",
    json: options.Json = False,
) -> None:
    """Translate a test set and score it by sacreBLEU and chrF.

    Lines are not split into sentences unless --split is given. Models of images and audio are scored by the error
    rates of the texts that they find (--media). Tokenised BLEUs are added on request, and where papers report them:
    multi30k_bleu for Multi30k, paper_bleu for newstest.

    Examples:
        transduce evaluate runs/my/model --src test.en --ref test.de
        transduce evaluate runs/my/model --text multi30k/test_2017_flickr
    """
    with command_imports():
        from transduce.corpora import data_folders, find_text, how_to_get_text, text_named
        from transduce.inference import Translator, reliability_of_tokens
        from transduce.inference import evaluate as evaluate_translator
        from transduce.metrics import customary_bleus, require_bleu_tokenizer

    if media is not None:
        _evaluate_media(
            folders, media, out, decoding=decoding, device=device, precision=precision, engine=engine, json=json,
            others={
                "--src": src, "--ref": ref, "--text": text, "--data": data, "--split": split, "--rerank": rerank,
                "--paper-bleu": paper_bleu, "--multi30k-bleu": multi30k_bleu, "--tokenize": tokenize,
                "--calibration": calibration,
            },
        )  # fmt: skip
        return
    ref = ref or []
    if (src is None or not ref) == (text is None) or (text is not None and (src or ref)):
        raise ConfigError("name the test set: --src with --ref, or --text; of images or audio, --media")
    if tokenize is not None:
        require_bleu_tokenizer(tokenize)
    require_writable("--out", out)
    require_not_read(out, src, option="--src")
    for path in ref:
        require_not_read(out, path, option="--ref")
    require_stdin_once({"--src": src, **named_references(ref)})
    require_model_folders(*folders, rerank, text_usage="--src {}")
    options.require_beside("--rerank", rerank, {"--rerank-weight": rerank_weight != options.DEFAULT_RERANK_WEIGHT})
    if calibration and (rerank or len(folders) > 1):
        raise ConfigError("--calibration is of one model, without --rerank")
    texts = None if src is None else aligned_lines(src, *ref)  # checked before the model is loaded
    loading = LoadingOptions(
        folders, device, precision, rerank=rerank, rerank_weight=rerank_weight, engine=engine
    )  # fmt: skip
    translator = load_translator(loading)
    also = options.requested_bleus(paper=paper_bleu, multi30k=multi30k_bleu)
    if text is not None:
        searched, languages = data_folders(data), (translator.src_language, translator.tgt_language)
        known = text_named(text)
        files = find_text(known, *languages, searched)
        if files is None:
            places = ", ".join(map(str, searched))
            raise DataError(f"no {text} in {' and '.join(languages)} found in {places}{how_to_get_text(text)}")
        texts, ref = aligned_lines(*files), [files[1]]
        also += [name for name in customary_bleus(f"{known.folder}/{known.stem}") if name not in also]
    assert texts is not None
    sources, *references = texts
    search = decoding.applied_to(translator.search)
    warn_of_moses_rules(translator.tgt_language, also)
    with LineProgress("translating", len(sources)) as progress:
        line_warnings = LineWarnings(progress.log, max_source_tokens=translator.max_source_tokens)
        evaluation = evaluate_translator(
            translator, sources, *references, search=search, split=split, also=also, tokenizer=tokenize,
            on_translation=line_warnings.observe, report=progress.reach,
        )  # fmt: skip
        line_warnings.log_counts()
    translated = {name_of(path): lines for path, lines in zip(ref, references, strict=True)}
    warn_of_tokenised_text({**translated, "the translation": evaluation.translations})
    bins: Sequence[ReliabilityBin] = ()
    if calibration:
        assert isinstance(translator, Translator)
        bins = reliability_of_tokens(translator, list(zip(sources, references[0], strict=True)))
    _print(evaluation.translations, evaluation.scores, out, bins, json=json)


def _evaluate_media(
    folders: Sequence[Path],
    media: Path,
    out: Path | None,
    *,
    others: Mapping[str, object],
    decoding: DecodingOptions,
    device: str,
    precision: str,
    engine: EngineName,
    json: bool,
) -> None:
    """Find the texts of the images or recordings of a list, and score them."""
    with command_imports():
        from transduce.corpora.media import listed_media
        from transduce.inference import MediaModel
        from transduce.tasks.media.media_task import media_scores

    given = [name for name, value in others.items() if value]
    if given or len(folders) > 1:
        without = f"; leave out {', '.join(given)}" if given else f", got {len(folders)}"
        raise ConfigError(f"--media takes one model, and scores the error rates of its texts{without}")
    require_writable("--out", out)
    require_not_read(out, media, option="--media")
    require_model_folders(*folders, text_usage="--media {}")
    listed = list(listed_media(media))  # checked before the model is loaded
    if not listed:
        raise DataError(f"{media} has no lines; each should be a file name TAB its text")
    device = chosen_device(device)
    model = MediaModel.load(folders[0], device=device, precision=usable_precision(precision, device), engine=engine)
    search = decoding.applied_to(model.search)
    found, warnings = list[str](), list[str]()
    for each in model.find_texts((path for path, _ in listed), search=search):
        found.append(each.text)
        warnings += each.warnings
    for warning in warnings[:MAX_WARNINGS]:
        echo(f"warning: {warning}")
    if len(warnings) > MAX_WARNINGS:
        echo(f"warning: {len(warnings) - MAX_WARNINGS:,} more of these kinds")
    direction = f"{model.src_language}-{model.tgt_language}"
    names, references = [str(path) for path, _ in listed], [text for _, text in listed]
    scores = media_scores(found, references, names=names, kind=model.kind, direction=direction)
    _print(found, scores, out, json=json)


def _print(
    outputs: Sequence[str], scores: Scores, out: Path | None, bins: Sequence[ReliabilityBin] = (), *, json: bool
) -> None:
    """Write the outputs to ``out``, and print the scores, with the calibration if there are reliability bins."""
    stream = None
    if out == STANDARD:
        print("".join(f"{line}\n" for line in outputs), end="", flush=True)
        stream = sys.stderr
    elif out is not None:
        write_lines(out, outputs)
    if json:
        print_json(scores.as_json() | ({"calibration": _calibration(bins)} if bins else {}), to=stream)
        return
    print_scores(scores, to=stream)
    if bins:
        found = _calibration(bins)
        print(
            f"calibration    {100 * found['error']:6.2f}   % expected error of {found['tokens']:,} tokens: mean"
            f" confidence {100 * found['confidence']:.1f} %, {100 * found['accuracy']:.1f} % right",
            file=stream,
            flush=True,
        )


def _calibration(bins: Sequence[ReliabilityBin]) -> dict[str, Any]:
    """Return the JSON values of a calibration."""
    from transduce.metrics import expected_calibration_error, overconfidence

    n = sum(each.n for each in bins)
    accuracy = sum(each.n * each.accuracy for each in bins if each.accuracy is not None) / n
    return {
        "error": expected_calibration_error(bins),
        "confidence": accuracy + overconfidence(bins),
        "accuracy": accuracy,
        "tokens": n,
        "bins": [asdict(each) for each in bins],
    }

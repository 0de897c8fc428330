"""``transduce translate``."""

from __future__ import annotations

from contextlib import ExitStack
from itertools import repeat
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Option

from transduce.cli import options
from transduce.cli.bulk import is_pattern, translate_pattern
from transduce.cli.decoding import decoding_options, flags_of
from transduce.cli.documents import AUTO, document_format, output_file, require_ending, translate_document
from transduce.cli.line_review import LineReview
from transduce.cli.line_warnings import LineWarnings
from transduce.cli.list_counts import ListCounts
from transduce.cli.model_folders import require_model_folders
from transduce.cli.models import load_translator
from transduce.cli.output import STANDARD
from transduce.cli.paths import require_writable
from transduce.cli.progress import LineProgress
from transduce.cli.stdin import input_lines, is_interactive, number_of_lines, typed_lines
from transduce.cli.text_output import is_terminal, line_writer, require_not_read, require_own_file
from transduce.cli.translation_lines import output_lines
from transduce.config import MIN_DRAFT_PROBABILITY, N_DRAFTED, Wanted
from transduce.config.decoding import NO_CHANGES, DecodingOptions, LoadingOptions
from transduce.errors import ConfigError
from transduce.files import open_binary

if TYPE_CHECKING:
    from transduce.bulk import TranslationJob
    from transduce.inference.translation.document_translation import DocumentOptions

__all__ = ["translate"]

BUFFER_LINES, BUFFER_LINES_OF_WORKER = 2000, 250  # a worker's is smaller, so that short texts are shared too
MAX_WORKERS = 256
MAX_DRAFT_TOKENS = 32


@decoding_options()
def translate(
    folders: options.Models,
    source: Annotated[
        Path | None,
        Option(
            "--in",
            help="Translate this document (report.docx), or this text line by line (plain, .gz or .xz), or all files "
            "of a folder or of a pattern such as 'shards/*.gz' to a folder. Default: stdin.",
        ),
    ] = None,
    format: Annotated[
        str,
        Option(
            metavar="NAME",
            help="Read the input as a document of this format (docx, html, po ...), or as lines of text (text). auto "
            "goes by the name of a file, or its content; stdin has lines.",
        ),
    ] = AUTO,
    out: Annotated[
        Path | None,
        Option(
            "--out",
            help="Write translations to this file (plain, .gz or .xz; OUT.part until complete), or to a file of the "
            "same name in this folder; those of a pattern to this folder. Default: stdout.",
        ),
    ] = None,
    terms: Annotated[
        Path | None,
        Option(
            metavar="FILE",
            help="Prefer translations with these terms: SOURCE TAB TARGET in each line, or TBX.",
            show_default=False,
        ),
    ] = None,
    terms_hard: options.TermsHard = False,
    avoid: options.Avoid = None,
    memory: Annotated[
        Path | None,
        Option(
            metavar="FILE",
            help="Take the translations of texts that this file has: of memory build, which opens at once, or TMX, "
            "XLIFF, PO or TSV. --json names similar ones.",
            show_default=False,
        ),
    ] = None,
    report: Annotated[
        Path | None,
        Option(
            metavar="FILE",
            help="Write to this file, as JSON, how many texts of a document were translated, which were not, and why.",
            show_default=False,
            rich_help_panel=options.DOCUMENTS,
        ),
    ] = None,
    review: Annotated[
        Path | None,
        Option(
            metavar="FILE",
            help="Write a page (HTML) for a person who corrects the translations; its edits are saved as TMX, for "
            "memory build and train --from --tmx.",
            show_default=False,
        ),
    ] = None,
    wanted: Annotated[
        Wanted,
        Option(
            help="Of a document with translations (PO, XLIFF), translate texts without one, also those that it calls "
            "unsure, or all.",
            rich_help_panel=options.DOCUMENTS,
        ),
    ] = "empty",
    trust: Annotated[
        bool,
        Option(
            "--trust", help="In such a document, do not mark translations as unsure.", rich_help_panel=options.DOCUMENTS
        ),
    ] = False,
    decoding: DecodingOptions = NO_CHANGES,
    alignment: Annotated[
        bool,
        Option(
            "--alignment",
            help="Write after each translation a TAB and which of its words belong to which of the source: pairs such "
            "as 0-0 1-2, source-target, of words between spaces (Pharaoh format).",
            rich_help_panel=options.SEARCH,
        ),
    ] = False,
    buffer: Annotated[
        int | None,
        Option(
            min=1,
            max=options.MAX_BUFFER_LINES,
            help="Read this many lines before translating; 1 answers each line at once, more is faster. Default: "
            f"{BUFFER_LINES:,}; with several workers {BUFFER_LINES_OF_WORKER} for each.",
            show_default=False,
            rich_help_panel=options.SPEED,
        ),
    ] = None,
    workers: Annotated[
        int,
        Option(
            min=1,
            max=MAX_WORKERS,
            help="Translate in this many processes, which share the cores; each loads the model. Answers to a stream "
            "wait until each has its lines.",
        ),
    ] = 1,
    ray: Annotated[
        str | None,
        Option(
            metavar="ADDRESS",
            help="Translate the files of a pattern on this Ray cluster; 'local' starts one with --workers processors.",
            show_default=False,
            rich_help_panel=options.SPEED,
        ),
    ] = None,
    prefix: Annotated[
        str,
        Option(
            help="Begin each translation with this text; its last word may be continued, unless a space follows it.",
            show_default=False,
            rich_help_panel=options.SEARCH,
        ),
    ] = "",
    no_split: Annotated[
        bool, Option("--no-split", help="Do not split long lines into sentences.", rich_help_panel=options.SEARCH)
    ] = False,
    shortlist: Annotated[
        Path | None,
        Option(
            help="Score only the likely target tokens, those of this folder of transduce shortlist; with --draft, only "
            "for drafts, so that the result is the same.",
            rich_help_panel=options.SPEED,
        ),
    ] = None,
    draft: Annotated[
        Path | None,
        Option(
            metavar="SMALL",
            help="Let this smaller model draft tokens, which MODEL verifies several at a time: greedy search, or "
            "--sample, with the same result.",
            show_default=False,
            rich_help_panel=options.SPEED,
        ),
    ] = None,
    draft_tokens: Annotated[
        int,
        Option(
            min=1,
            max=MAX_DRAFT_TOKENS,
            help="With --draft: tokens that are drafted for a pass, at most.",
            rich_help_panel=options.SPEED,
        ),
    ] = N_DRAFTED,
    draft_probability: Annotated[
        float,
        Option(
            min=0,
            max=1,
            help="With --draft: a draft ends after a token to which SMALL gives less than this.",
            rich_help_panel=options.SPEED,
        ),
    ] = MIN_DRAFT_PROBABILITY,
    best_of: options.BestOf = None,
    reward_model: options.RewardModelFolder = None,
    rerank: options.Rerank = None,
    rerank_weight: options.RerankWeight = options.DEFAULT_RERANK_WEIGHT,
    warnings: Annotated[
        Path | None,
        Option(
            metavar="FILE",
            help="Write what may be wrong to this file: line number TAB kind TAB message.",
            show_default=False,
        ),
    ] = None,
    device: options.Device = "auto",
    precision: options.Precision = "fp32",
    engine: options.Engine = "auto",
    json: options.Json = False,
) -> None:
    """Translate lines of text, documents or whole folders.

    Reads stdin and writes stdout unless --in and --out name files. On a terminal, type sentences at a prompt. Topics
    of transduce help: documents, terms, memory, engines.

    Examples:
        echo 'The dog sleeps.' | transduce translate runs/my/model
        transduce translate runs/my/model --in new.en --out new.de
        transduce translate runs/my/model --in report.docx --out report.de.docx
    """
    require_model_folders(*folders, rerank, draft, reward_model, text_usage="--in {}")
    options.require_best_of(
        best_of,
        reward_model,
        flags_of(decoding, "kind", "beam_size", "n_best", "n_iterations")
        | {"--draft": draft, "--rerank": rerank, "--prefix": prefix, "--workers": workers > 1, "--ray": ray},
    )
    if best_of is not None:
        decoding = decoding.changed(kind="sampling")
    if "temperature" in decoding.changes and decoding.changes.get("kind") != "sampling":
        raise ConfigError("--temperature is for --sample and --best-of")
    options.require_beside("--rerank", rerank, {"--rerank-weight": rerank_weight != options.DEFAULT_RERANK_WEIGHT})
    has_length, has_bound = draft_tokens != N_DRAFTED, draft_probability != MIN_DRAFT_PROBABILITY
    options.require_beside("--draft", draft, {"--draft-tokens": has_length, "--draft-probability": has_bound})
    is_n_best = "n_best" in decoding.changes
    loading = LoadingOptions(
        folders, device, precision, shortlist, draft, draft_tokens, draft_probability, rerank, rerank_weight, best_of,
        reward_model, engine, terms, avoid, terms_hard, memory,
    )  # fmt: skip
    _require_lists(loading, decoding)

    def job(**settings: Any) -> TranslationJob:
        from transduce.bulk import TranslationJob

        return TranslationJob(loading, decoding, prefix, not no_split, **settings)

    if ray is not None or (source is not None and (is_pattern(source) or source.is_dir())):
        options.require_alone(
            "files of a pattern are translated by themselves",
            flags_of(decoding, "kind", "n_best", "n_iterations")
            | {
                "--rerank": rerank, "--draft": draft, "--best-of": best_of, "--json": json, "--buffer": buffer,
                "--warnings": warnings, "--alignment": alignment, "--review": review,
            },
        )  # fmt: skip
        of_files = job(format=format, wanted=wanted, is_trusted=trust)
        translate_pattern(of_files, source, out, n_workers=workers, ray=ray, report=report)
        return
    out = output_file(source, out)
    document = document_format(format, source)
    if document:
        options.require_alone(
            f"{document if source is None else source} is translated as one document",
            flags_of(decoding, "n_best")
            | {"--alignment": alignment, "--buffer": buffer, "--workers": workers > 1, "--prefix": prefix},
        )
    else:
        of_documents = {"--report": report, "--wanted": wanted != "empty", "--trust": trust}
        options.require_alone("the input is lines of text, no document", of_documents)
    _require_one_hypothesis(loading, decoding)
    if draft is not None and prefix:
        raise ConfigError("--prefix cannot be used with --draft; leave one of them out")
    if source is not None and source != STANDARD:
        open_binary(source).close()  # checked before the model is loaded
    require_ending(out, document, source)
    require_writable("--out", out)
    require_not_read(out, source)
    require_own_file("--review", review, source=source, out=out)
    require_own_file("--warnings", warnings, source=source, out=out)
    if document:
        read: DocumentOptions = {"format": document, "wanted": wanted, "is_trusted": trust}
        translate_document(
            loading, decoding, source, out, split=not no_split, read=read, report=report, review=review,
            warnings=warnings, is_json=json,
        )  # fmt: skip
        return
    shows_bar = not is_interactive(source) and not is_terminal(out)
    if alignment and is_n_best and not json:
        raise ConfigError("--alignment is of the best translation; leave out --n-best, or add --json")
    if review is not None:
        not_reviewed = {"--workers": workers > 1, "an input from the terminal": is_interactive(source)}
        options.require_alone("--review is written by one process, of a file", not_reviewed)
    with ExitStack() as stack:
        if workers > 1 and not is_interactive(source):
            from transduce.bulk import TranslationWorkers

            of_lines = job(is_scored=True, is_linked=alignment, chunk_lines=buffer or BUFFER_LINES_OF_WORKER)
            team, told_terms = stack.enter_context(TranslationWorkers(of_lines, workers)), None
            max_source_tokens = team.wait_until_loaded()
            translations = team.translate_lines(input_lines(source))
            counted = ListCounts(loading, None)
        else:
            translator = load_translator(loading)
            max_source_tokens, told_terms = translator.max_source_tokens, getattr(translator, "terms", None)
            counted = ListCounts(loading, (translator.src_language, translator.tgt_language))
            is_typed = is_interactive(source)
            lines = typed_lines(translator.src_language, history="translate") if is_typed else input_lines(source)
            translations = translator.translate_lines(
                lines,
                search=decoding.applied_to(translator.search),
                chunk_lines=1 if is_typed else buffer or BUFFER_LINES,
                split=not no_split,
                prefixes=repeat(prefix),
                is_linked=alignment or review is not None,
                report=lambda n_lines: progress.reach(n_lines),
            )
        write = stack.enter_context(line_writer(out))
        n_lines = number_of_lines(source) if shows_bar else None
        progress = stack.enter_context(LineProgress("translating", n_lines, is_enabled=shows_bar))
        line_warnings = LineWarnings(
            progress.log,
            max_source_tokens=max_source_tokens,
            write=stack.enter_context(line_writer(warnings)) if warnings is not None else lambda line: None,
            terms=told_terms,
        )
        reviewed = None
        if review is not None:
            name = "stdin" if source is None else source.name
            reviewed = LineReview(review, name, loading, (translator.src_language, translator.tgt_language))
        for number, translation in enumerate(translations, start=1):
            line_warnings.observe(translation)
            if reviewed is not None:
                reviewed.observe(translation)
            counted.observe(translation)
            output = output_lines(
                number,
                translation,
                is_n_best=is_n_best,
                is_json=json,
                is_linked=alignment,
                has_memory=memory is not None,
            )
            for line in output:
                write(line)
            progress.advance()
        if reviewed is not None:
            reviewed.write()
        line_warnings.log_counts()
        counted.log(progress.log)
        if draft is not None and workers == 1:
            from transduce.inference import Translator

            assert isinstance(translator, Translator)
            passes = translator.passes
            if passes.sentences:
                progress.log(
                    f"{passes.passes_per_sentence:.1f} passes of the model for each sentence, "
                    f"{passes.tokens_per_pass:.2f} tokens a pass"
                )


def _require_lists(loading: LoadingOptions, decoding: DecodingOptions) -> None:
    """Raise ConfigError for lists of terms beside what does not heed them."""
    if loading.are_terms_required and loading.terms is None:
        raise ConfigError("--terms-hard needs --terms, a list of terms")
    if loading.terms is not None or loading.avoid is not None:
        others = {"--draft": loading.draft, "--best-of": loading.best_of, "--rerank": loading.rerank}
        options.require_alone("terms are searched for in a beam", others | flags_of(decoding, "kind", "n_iterations"))


def _require_one_hypothesis(loading: LoadingOptions, decoding: DecodingOptions) -> None:
    """Raise ConfigError for a beam beside ``--draft``, or reranking beside ``--draft`` or ``--sample``."""
    beams = [(option, value) for option, value in flags_of(decoding, "beam_size", "n_best").items() if value > 1]
    if loading.draft is not None and beams:
        raise ConfigError("--draft is for greedy search and --sample; leave out {} {}".format(*beams[0]))
    others = {"--draft": loading.draft, **flags_of(decoding, "kind")}
    if loading.rerank is not None:
        options.require_alone("--rerank chooses from a beam", others)

"""Table 4: English constituency parsing. The paper's F1 on WSJ section 23, and ours on freely available treebanks."""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import chain
from operator import itemgetter
from pathlib import Path
from typing import Any

from transduce.corpora import WSJ
from transduce.errors import ConfigError
from transduce.recipes import with_settings
from transduce_paper.experiments import Experiments
from transduce_paper.printed import PRINTED
from transduce_paper.report import Cell, Claim, Report, Table, agreement, how_to_reproduce, picture
from transduce_paper.request import Request
from transduce_paper.run_records import Experiment, RunRecord, about_runs, machines, precisions
from transduce_paper.sizes import corpus_description, model_description, size_description
from transduce_paper.table4.parsers import SMALL_PARSER, parser_at_scale
from transduce_paper.table4.variants import make_parsing_variants, variant_experiment, variant_experiments
from transduce_paper.table_plots import BarGroup, draw_f1

__all__ = ["is_recorded", "make_table4", "printed_and_ours"]

ROWS = PRINTED.table4
N_SECTION_23 = 2_416  # sentences
LONGER = 1.5  # from this ratio of tokens on, output is "significantly longer" than input


def make_table4(experiments: Experiments, request: Request) -> Report:
    """Train parsers and score them by PARSEVAL. Raises ConfigError at the paper's scale without a treebank."""
    if experiments.scale == "paper" and request.treebank is None:
        raise ConfigError("table4 at --scale paper needs --treebank, the folder of the Penn Treebank")
    records = [experiments.run(_experiment(experiments, name, request)) for name in _names(experiments)]
    return Report(
        "Table 4: English constituency parsing",
        (
            f"Paper: {_paper_size()}. Ours: {_our_sizes(records)}. The test sets differ as well, and GUM's trees are"
            " automatic parses from gold tags, so the F1 scores cannot be compared with each other.",
            _measured(records),
            picture("table4", "F1 of the paper's parsers on WSJ section 23, and of ours on their own test sets"),
            how_to_reproduce(
                "table4",
                scale=experiments.scale,
                seeds=f"seed {records[0].config['training']['seed']}",
                hardware=machines(records),
            ),
            _details(records),
            "## The paper's numbers\n\nF1 on section 23 of the Wall Street Journal.",
            printed_and_ours(records),
            *make_parsing_variants(experiments),
        ),
        drawings={"table4": lambda path: _draw(records, path)},
        claims=() if experiments.scale == "test" else (*_claims_of_the_paper(), _claim_on_length(records[0])),
        finding=_verdict(records),
        name="table4",
    )


def is_recorded(experiments: Experiments) -> bool:
    """Whether every run of the report has a record."""
    parsers = [_experiment(experiments, name, Request()) for name in _names(experiments)]
    of_variants = variant_experiments(experiments).values()
    return all(experiments.record_path(run).exists() for run in chain(parsers, *of_variants))


def _names(experiments: Experiments) -> list[str]:
    """Return the names of the parsers at a scale."""
    names = ["wsj"] if experiments.scale == "paper" else ["gum", "free-trees"]
    return experiments.pick(names, test=names[:1])


def _paper_size() -> str:
    return size_description(parser_at_scale("wsj", "paper"))


def _our_sizes(records: Sequence[RunRecord]) -> str:
    return "; ".join(size_description(record.config) for record in records)


def _evaluated(records: Sequence[RunRecord]) -> list[tuple[RunRecord, str, dict[str, Any]]]:
    """List (record, text, scores) of every evaluation on text other than section 23."""
    evaluations = []
    for record in records:
        evaluations.append((record, record.dev_text, record.dev_scores))
        if record.test_text is not None and record.test_scores is not None and not _is_section_23(record):
            evaluations.append((record, record.test_text, record.test_scores))
    return evaluations


def _verdict(records: Sequence[RunRecord]) -> str:
    printed = next(f1 for name, kind, f1 in ROWS if name.startswith("Transformer") and kind.startswith("WSJ only"))
    on_section_23 = [record.test_scores["f1"] for record in records if record.test_scores and _is_section_23(record)]
    if on_section_23:
        return f"Trained on the WSJ alone, our parser has {max(on_section_23):.1f} F1; the paper's has {printed}."
    record, text, scores = max(_evaluated(records), key=lambda each: float(each[2]["f1"]))
    return (
        f"The paper's {printed} F1 on WSJ section 23 is not tested here, since that treebank is not free: a parser"
        f" trained on {corpus_description(record.config['data'])} for {record.minutes:.0f} minutes has"
        f" {scores['f1']:.1f} F1 on {text}."
    )


def _claims_of_the_paper() -> tuple[Claim, ...]:
    """Return the sentences of section 6.3 that Table 4 itself decides."""
    ours = {kind: f1 for name, kind, f1 in ROWS if name.startswith("Transformer")}
    others = [(name, f1) for name, _, f1 in ROWS if not name.startswith(("Transformer", "Dyer"))]
    best, berkeley = max(others, key=itemgetter(1)), next(f1 for name, f1 in others if name.startswith("Petrov"))
    alone = ours["WSJ only, discriminative"]
    return (
        Claim(
            "yielding better results than all previously reported models with the exception of the Recurrent Neural"
            " Network Grammar",
            "section 6.3",
            agreement(max(ours.values()) > best[1]),
            f"The Transformer's better F1 is {max(ours.values())}; {best[0]} has {best[1]}.",
            "arithmetic",
        ),
        Claim(
            "the Transformer outperforms the Berkeley-Parser even when training only on the WSJ training set of 40K"
            " sentences",
            "section 6.3",
            agreement(alone > berkeley),
            f"By the table's own numbers {alone} against {berkeley} F1.",
            "arithmetic",
        ),
    )


def _claim_on_length(record: RunRecord) -> Claim:
    """Return the sentence on the length of parses, by the tokens that a parser was trained on."""
    ratio = record.tgt_tokens / record.src_tokens
    return Claim(
        "the output [...] is significantly longer than the input",
        "section 6.3",
        agreement(ratio > LONGER),
        f"In {corpus_description(record.config['data'])}, a tree has {ratio:.2f} tokens for each token of its"
        f" sentence; longer: {LONGER:g} times.",
    )


def _draw(records: Sequence[RunRecord], path: Path) -> None:
    printed = [(f"{name}, {kind}", f1, "Transformer" in name) for name, kind, f1 in ROWS]
    ours = [
        (f"{corpus_description(record.config['data'])}, on {text}", float(scores["f1"]), True)
        for record, text, scores in _evaluated(records)
    ]
    ours += [(name, f1, True) for name, _, f1 in printed_and_ours(records).rows[len(ROWS) :]]  # type: ignore[misc]
    sizes = dict.fromkeys(model_description(record.config["model"]) for record in records)
    groups = (
        BarGroup(f"Paper: WSJ section 23; its Transformer has {_paper_size()}", printed),
        BarGroup(f"Ours: trained and evaluated on other text; {' and '.join(sizes)}", ours),
    )
    draw_f1(groups, path)


def _experiment(experiments: Experiments, name: str, request: Request) -> Experiment:
    """Return the run of a parser; at scale hours that on GUM is the first of the variants."""
    if name == "gum" and experiments.scale in ("test", "hours"):
        return variant_experiment(experiments, "supervised", 1)
    config = parser_at_scale(name, experiments.scale)
    if name == "wsj" and request.treebank is not None:
        config = with_settings(config, [f"data.treebank={json.dumps(str(request.treebank))}"])
    return experiments.experiment(f"table4-{name}-seed1", config, test=SMALL_PARSER)


def _details(records: Sequence[RunRecord]) -> str:
    """Describe model, search and scores."""
    search = records[0].config["search"]
    return "\n".join(
        (
            "## Details\n",
            "- Model: an encoder-decoder that writes a tree as a sequence of brackets, tags and words. The search is"
            " constrained: brackets match, and each word is used once.",
            f"- Search: beam {search['beam_size']}, alpha {search['alpha']}, at most input +"
            f" {search['max_extra_tokens']} tokens. Training in {precisions(records)}. {about_runs(records)}",
            "- Scores: labelled recall, precision and F1 in percent (PARSEVAL with the rules of COLLINS.prm). Gold tags"
            " mark the punctuation, as is usual; other tags are not scored.",
        )
    )


def _measured(records: Sequence[RunRecord]) -> Table:
    rows: list[tuple[Cell, ...]] = [
        (
            corpus_description(record.config["data"]),
            record.parameters / 1e6,
            record.updates,
            record.minutes,
            text,
            *(scores[key] for key in ("recall", "precision", "f1", "complete_match")),
            scores["length_40"]["f1"],
            scores["valid"],
            scores["skipped"],
            scores["errors"],
        )
        for record, text, scores in _evaluated(records)
    ]
    columns = (
        "trained on", "million parameters", "updates", "minutes", "evaluated on", "recall", "precision", "our F1",
        "complete match", "our F1, at most 40 words", "sentences", "skipped", "errors",
    )  # fmt: skip
    percent = dict.fromkeys(("recall", "precision", "our F1", "complete match", "our F1, at most 40 words"), ".2f")
    formats = {"million parameters": ".2f", "updates": ",", "minutes": ".1f", "sentences": ",", **percent}
    return Table("", columns, tuple(rows), formats=formats)


def printed_and_ours(records: Sequence[RunRecord]) -> Table:
    """Return the paper's rows, with ours below them only if it was evaluated on the same sentences."""
    ours = tuple(
        (f"ours, {record.updates:,} updates", "WSJ only, discriminative", record.test_scores["f1"])
        for record in records
        if _is_section_23(record) and record.test_scores is not None
    )
    columns = ("parser", "training", "WSJ 23 F1")
    return Table("-printed", columns, ROWS + ours, formats={"WSJ 23 F1": ".1f"})


def _is_section_23(record: RunRecord) -> bool:
    """Return whether a run was evaluated on all of section 23."""
    scores = record.test_scores
    is_whole = scores is not None and sum(scores[key] for key in ("valid", "skipped", "errors")) == N_SECTION_23
    return record.test_text == f"{WSJ} test" and is_whole

"""What section 6.3 and the paper's early version say of parsing: attention dropout, more text, and recurrent parsers.

Parsers on GUM: the supervised one of Table 4; the same with dropout of attention weights; one that also reads the trees
that the supervised parser of its seed gives to raw news sentences; and, at scale hours, one of LSTMs.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import mean
from typing import Literal

from transduce.config import DataConfig, Split
from transduce.corpora import BUILT_IN, OWN_FILES, ParallelText
from transduce.files import write_lines
from transduce.inference import Parser, tagged_words
from transduce.linearisation import ANY_TAG, ending_token
from transduce.recipes import with_settings
from transduce.text import treebank_words
from transduce.trees import escape_brackets, sentence_of_words
from transduce_paper.experiments import Experiments, Scale, Stopped
from transduce_paper.intervals import NO_CELLS, Interval, interval_of_difference
from transduce_paper.report import Cell, Claim, Section, Table, Verdict, agreement
from transduce_paper.run_records import CONVERGED, Experiment, RunRecord, are_trained_to_the_end, machines
from transduce_paper.sizes import model_description
from transduce_paper.table2.systems import as_large_as_the_transformer
from transduce_paper.table4.parsers import SMALL_PARSER, parser_at_scale

__all__ = ["make_parsing_variants", "raw_sentences", "variant_experiment", "variant_experiments"]

Variant = Literal["supervised", "attention-dropout", "semi-supervised", "recurrent"]
VARIANTS: Mapping[Variant, str] = {
    "supervised": "supervised",
    "attention-dropout": "attention dropout",
    "semi-supervised": "semi-supervised",
    "recurrent": "recurrent",
}
N_SEEDS: Mapping[Scale, int] = {"test": 2, "cpu": 2, "hours": 4}  # none at other scales
SCORED: tuple[Split, ...] = ("dev", "test")
P_DROP_ATTENTION = 0.2
PARSED_WEIGHT = 0.5  # of the parsed sentences; that of the treebank is 1
MIN_WORDS, MAX_WORDS = 3, 40  # of a raw sentence
CHUNK_SENTENCES = 200  # parsed between two looks at whether the user has interrupted

ABOUT = """\
Each parser is trained from the seeds {seeds} for {updates:,} updates ({machines}). *Supervised*: {first}.
*Attention dropout*: a fraction of {p_drop_attention:g} of the attention weights is dropped in training (section
5.4 of the paper's early version; neither it nor section 6.3 gives the rate). *Semi-supervised*: the supervised parser
of the same seed parses {n_sentences:,} English sentences of {corpus} ({min_words} to {max_words} words), and a new
parser reads {weight:g} of these trees for each reading of the treebank. The paper adds 17 million sentences parsed by
other parsers to 40,000 of the WSJ."""
ABOUT_RECURRENT = """\
*Recurrent*: LSTMs with additive attention, the GNMT-like system of Table 2, with {size} for about the FLOPs per token
of the supervised parser. It has no heads, layer norms and positions, so it does not see how many words it has written.
Text, tokenizer, search, updates and learning rates are those of the Transformer, which may not be the best for it; Muon
leaves the matrices of LSTMs to Adam."""
ABOUT_DIFFERENCES = """\
Differences are from the supervised parser's mean; ± is half of their 95 % interval, by Student's t and the standard
deviation pooled over the parsers ({freedom} degrees of freedom). Trained to the end, so that dev perplexity falls by
less than {converged:g} % over the last tenth of the updates (the mean of the seeds): {trained}."""


@dataclass(frozen=True, slots=True)
class Raw:
    """Raw sentences to parse."""

    corpus: str  # its English side
    n_sentences: int


NEWS, FEW = Raw("newstest", 10_000), Raw(BUILT_IN, 20)


def make_parsing_variants(experiments: Experiments) -> list[Section]:
    """Train the parsers from all seeds, or read their records; no section at scales gpu and paper."""
    if experiments.scale not in N_SEEDS:
        return []
    raw = experiments.pick(NEWS, test=FEW)
    runs = variant_experiments(experiments)
    records = {variant: [_run(experiments, variant, each, raw) for each in runs[variant]] for variant in runs}
    intervals = {split: _intervals(records, split) for split in SCORED}
    title = "Attention dropout, semi-supervised training and a recurrent parser"
    return [
        Section(
            title if "recurrent" in records else "Attention dropout and semi-supervised training",
            (_about(records, raw, is_first=experiments.scale != "cpu"), _table(records, intervals)),
            _finding(records, intervals),
            claims=_claims(records, intervals),
        )
    ]


def variant_experiments(experiments: Experiments) -> dict[Variant, list[Experiment]]:
    """Return the runs of each variant that a scale has, by seed."""
    n_seeds = N_SEEDS.get(experiments.scale, 0)
    variants = [each for each in VARIANTS if each != "recurrent" or experiments.scale != "cpu"]
    return {
        variant: [variant_experiment(experiments, variant, seed) for seed in range(1, n_seeds + 1)]
        for variant in variants
    }


def _about(records: Mapping[Variant, Sequence[RunRecord]], raw: Raw, *, is_first: bool) -> str:
    """Describe the parsers and how they are compared; ``is_first``: one is also the first of the report."""
    all_records = [record for of_variant in records.values() for record in of_variant]
    n_seeds = len(records["supervised"])
    about = ABOUT.format(
        seeds=f"1 {'and' if n_seeds == 2 else 'to'} {n_seeds}",
        first="that of the first parser above"
        if is_first
        else "the recipe of the first parser above, trained again on another machine",
        updates=all_records[0].updates,
        machines=machines(all_records),
        p_drop_attention=P_DROP_ATTENTION,
        n_sentences=raw.n_sentences,
        corpus=raw.corpus,
        min_words=MIN_WORDS,
        max_words=MAX_WORDS,
        weight=PARSED_WEIGHT,
    )
    if "recurrent" in records:
        about += " " + ABOUT_RECURRENT.format(size=model_description(records["recurrent"][0].config["model"]))
    differences = ABOUT_DIFFERENCES.format(
        freedom=len(all_records) - len(records),
        converged=100 * CONVERGED,
        trained=_trained(records),
    )
    return f"{about}\n\n{differences}"


def _trained(records: Mapping[Variant, Sequence[RunRecord]]) -> str:
    """Name the variants that are trained to the end."""
    if all(run.last_fall is None for of_variant in records.values() for run in of_variant):
        return "not known, as they were validated too rarely"
    return ", ".join(VARIANTS[each] for each in records if are_trained_to_the_end(records[each])) or "none"


def raw_sentences(raw: Raw, data_folder: Path | None) -> Iterator[str]:
    """Yield the first different sentences of a corpus' English side that are neither short nor long, as treebank words.

    Raises DataError or ConfigError if the corpus or nltk is missing.
    """
    text = ParallelText(DataConfig(corpus=raw.corpus), data_folder)
    seen: set[str] = set()
    for line, _ in text.train(raw.corpus):
        words = treebank_words(line)
        sentence = sentence_of_words(words)
        if MIN_WORDS <= len(words) <= MAX_WORDS and sentence not in seen:
            seen.add(sentence)
            yield sentence
        if len(seen) == raw.n_sentences:
            return


def _run(experiments: Experiments, variant: Variant, experiment: Experiment, raw: Raw) -> RunRecord:
    if variant == "semi-supervised" and not experiments.record_path(experiment).exists():
        supervised = variant_experiment(experiments, "supervised", experiment.config.training.seed)
        path = _path_of_parsed(experiments, supervised)
        if not path.exists():
            _parse_raw(experiments, supervised, raw, path)
    return experiments.run(experiment)


def variant_experiment(experiments: Experiments, variant: Variant, seed: int) -> Experiment:
    """Return the run of a variant with a seed."""
    config = with_settings(parser_at_scale("gum", experiments.scale), [f"training.seed={seed}"])
    experiment = experiments.experiment(f"parsing-{variant}-seed{seed}", config, test=SMALL_PARSER)
    config = experiment.config
    match variant:
        case "supervised":
            pass
        case "attention-dropout":
            config = with_settings(config, [f"model.p_drop_attention={P_DROP_ATTENTION}"])
        case "semi-supervised":
            supervised = variant_experiment(experiments, "supervised", seed)
            corpora = f"{{{config.data.corpus}=1.0, {OWN_FILES}={PARSED_WEIGHT}}}"
            trees = json.dumps(str(_path_of_parsed(experiments, supervised)))
            config = with_settings(config, [f"data.corpus={corpora}", f"data.train_trees={trees}"])
        case "recurrent":
            config = as_large_as_the_transformer(with_settings(config, ["model.system=recurrent"]), config)
    return replace(experiment, config=config)


def _path_of_parsed(experiments: Experiments, supervised: Experiment) -> Path:
    """Return the path of the trees that a supervised parser gives to the raw sentences."""
    return experiments.run_folder(supervised).with_suffix(".ptb")


def _parse_raw(experiments: Experiments, supervised: Experiment, raw: Raw, path: Path) -> None:
    """Write the parses of the raw sentences. Raises Stopped if the user interrupts."""
    parser = Parser.load(experiments.model_folder(supervised), device=experiments.device)
    sentences = [tagged_words(sentence) for sentence in raw_sentences(raw, experiments.data_folder)]
    experiments.log(f"{supervised.name}: parsing {len(sentences):,} sentences of {raw.corpus}")
    trees: list[str] = []
    for start in range(0, len(sentences), CHUNK_SENTENCES):
        parses = parser.parse_interruptible(experiments.should_stop, sentences[start : start + CHUNK_SENTENCES])
        if parses is None:
            raise Stopped
        trees += [with_endings_as_tags(str(parse.tree)) for parse in parses if parse.tree and not parse.is_truncated]
    write_lines(path, trees)


def with_endings_as_tags(brackets: str) -> str:
    """Return a tree whose words have their endings as tags instead of XX.

    Subtree substitution exchanges words of the same tag, and the parser gives all words but punctuation the same one.

    >>> with_endings_as_tags("(TOP (S (NP (XX Dogs)) (VP (XX bark)) (. .)))")
    '(TOP (S (NP (XX~gs Dogs)) (VP (XX~rk bark)) (. .)))'
    """
    return re.sub(
        rf"\({ANY_TAG} ([^\s()]+)\)",
        lambda leaf: f"({escape_brackets(ending_token(leaf[1]))} {leaf[1]})",
        brackets,
    )


def _f1(records: Sequence[RunRecord], split: Split) -> list[float]:
    """Return F1 in percent by seed."""
    of_split = [record.dev_scores if split == "dev" else record.test_scores for record in records]
    return [float(scores["f1"]) for scores in of_split if scores is not None]


def _intervals(records: Mapping[Variant, Sequence[RunRecord]], split: Split) -> dict[Variant, Interval]:
    """Return the difference of each variant from the supervised parser."""
    groups = {variant: _f1(of_variant, split) for variant, of_variant in records.items()}
    supervised = groups["supervised"]
    return {
        variant: interval_of_difference(group, supervised, list(groups.values()))
        for variant, group in groups.items()
        if variant != "supervised"
    }


Intervals = Mapping[Split, Mapping[Variant, Interval]]


def _finding(records: Mapping[Variant, Sequence[RunRecord]], intervals: Intervals) -> str:
    """Say what each variant changes in F1 on the test trees."""
    on_test = intervals["test"]
    text = records["supervised"][0].test_text
    recurrent = f", LSTMs instead of the Transformer by {on_test['recurrent']}" if "recurrent" in on_test else ""
    return (
        f"On {text}, attention dropout changes F1 by {on_test['attention-dropout']}, semi-supervised training by"
        f" {on_test['semi-supervised']}{recurrent}."
    )


def _table(records: Mapping[Variant, Sequence[RunRecord]], intervals: Intervals) -> Table:
    n_seeds = len(records["supervised"])
    columns = [
        "parser",
        "million parameters",
        "minutes",
        *(f"{split} F1, seed {seed}" for split in SCORED for seed in range(1, 1 + n_seeds)),
        *(name for split in SCORED for name in (f"{split} F1, difference", f"±, {split}")),
    ]
    rows: list[tuple[Cell, ...]] = []
    for variant, of_variant in records.items():
        differences = [intervals[split].get(variant) for split in SCORED]
        rows.append(
            (
                VARIANTS[variant],
                of_variant[0].parameters / 1e6,
                mean(record.minutes for record in of_variant),
                *(f1 for split in SCORED for f1 in _f1(of_variant, split)),
                *(cell for each in differences for cell in (each.cells if each else NO_CELLS)),
            )
        )
    formats = {name: "+.2f" if name.endswith("difference") else ".2f" for name in columns[1:]} | {"minutes": ".1f"}
    return Table("-variants", tuple(columns), tuple(rows), formats=formats)


def _claims(records: Mapping[Variant, Sequence[RunRecord]], intervals: Intervals) -> tuple[Claim, ...]:
    """Return the sentence of the early version on attention dropout, and pairs of rows of Table 4."""
    gains = intervals["test"]
    on_text = f"F1 on {records['supervised'][0].test_text}"
    seeds = f"({len(records['supervised'])} seeds each)"

    def verdict(variant: Variant, gain: Interval) -> Verdict:
        worse = "supervised" if gains[variant].difference > 0 else variant
        return agreement(gain.is_above_zero, is_trained=are_trained_to_the_end(records[worse]))

    claims = [
        Claim(
            "In addition to residual dropout, we found attention dropout to be beneficial for our parsing experiments",
            "section 5.4, early version",
            verdict("attention-dropout", gains["attention-dropout"]),
            f"A rate of {P_DROP_ATTENTION:g} changes {on_text} by {gains['attention-dropout']} {seeds}.",
        ),
        Claim(
            "Transformer (4 layers): WSJ only, discriminative 91.3; semi-supervised 92.7",
            "Table 4",
            verdict("semi-supervised", gains["semi-supervised"]),
            f"Automatic trees of news besides GUM change {on_text} by {gains['semi-supervised']} {seeds}.",
        ),
    ]
    if "recurrent" in gains:
        gain = -gains["recurrent"]
        claims.append(
            Claim(
                "WSJ only, discriminative: Vinyals & Kaiser et al. (2014) 88.3; Transformer (4 layers) 91.3",
                "Table 4; section 6.3 on RNN sequence-to-sequence models in small-data regimes",
                verdict("recurrent", gain),
                f"The Transformer instead of LSTMs with attention and about its FLOPs per token changes {on_text} by"
                f" {gain} {seeds}.",
            )
        )
    return tuple(claims)

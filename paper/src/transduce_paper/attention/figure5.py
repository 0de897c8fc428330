"""Figure 5: heads that follow the structure of the sentence."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import TypeAdapter

from transduce.view import HeadLines, LinePanel
from transduce_paper.attention.heads import MANY, HeadNumbers, PositionBaseline, are_many, head_names
from transduce_paper.attention.inputs import PAGE, FigureInputs, figure_inputs, lines
from transduce_paper.attention.measurements import measured, n_trees, numbers_of_heads, with_one_model
from transduce_paper.attention.models import shown_model
from transduce_paper.attention.sentences import DrawnSentence
from transduce_paper.attention.structure import (
    ABOUT_PROBES,
    HeadTask,
    RelationResult,
    Specialist,
    Structure,
    finding_on_relations,
    probe_structure,
    relation_table,
)
from transduce_paper.experiments import Experiments
from transduce_paper.report import Cell, Claim, Draw, Report, Table, agreement, picture
from transduce_paper.request import Request
from transduce_paper.run_records import Experiment

__all__ = ["heads_to_draw", "make_figure5"]

N_DRAWN = 2  # as in the paper
MIN_WORDS = 3  # words of a sentence that is drawn
N_OFFSETS_SHOWN = 8
NOTE = "For each query its three greatest weights; the stronger a line, the greater the weight."


def make_figure5(experiments: Experiments, request: Request) -> Report:
    """Probe every head for every relation, and draw two heads of different relations in two sentences."""
    experiments, experiment = shown_model(experiments, request)
    inputs, heads, structure = with_one_model(
        experiments,
        experiment,
        lambda: (
            figure_inputs(experiments, experiment, request),
            numbers_of_heads(experiments, experiment),
            _structure(experiments, experiment, n_trees(experiments)),
        ),
    )
    drawn = heads_to_draw(structure.relations)
    sentences = {"figure5-papers-sentence": inputs.law}
    if inputs.own.words.n_words >= MIN_WORDS:
        sentences["figure5"] = inputs.own
    shown = sentences if drawn else {}
    marked = [each.trained.index for each in drawn] if "figure5" in shown else []
    alt = f"Encoder self-attention of two heads in the same sentence, all queries: {_names(drawn, separator=' and ')}"
    return Report(
        "Figure 5: heads that follow the structure of the sentence",
        (
            *(picture(name, alt) for name in shown),
            *_sentence_sections(inputs, drawn),
            inputs.how_measured(),
            f"Relations, sorted by the lead of the best head over its baseline. {ABOUT_PROBES}",
            relation_table(structure.relations, name="")
            if structure.relations
            else "No relation has enough pairs of words.",
            "One interval in twenty misses the true value. The grammar's sentences are simpler than natural ones, and"
            " out of domain for a model trained on other text: its heads may follow more structure in domain. A weight"
            " shows what a head reads, not how the model uses it.",
            *_sections_of_heads(structure),
            f"Many heads follow position instead. Over {heads[0].n_sentences:,} sentences of"
            f" {inputs.record.dev_text}, these heads have their greatest weight, other than on the query itself and"
            " EOS, most often at one offset:",
            _table_of_offsets(heads[:-1]),
            picture("figure5-all-heads", inputs.grid_alt() + ("; frames mark the heads drawn above" if marked else "")),
            inputs.ending("figure5"),
        ),
        drawings={
            **{name: _drawing(sentence, drawn, alt) for name, sentence in shown.items()},
            "figure5-all-heads": inputs.grid(marked),
        },
        pages={PAGE: inputs.page()},
        claims=_claims(structure, is_trained=inputs.record.is_trained_to_the_end),
        finding=_verdict(inputs, structure.relations),
        name="figure5",
    )


def _structure(experiments: Experiments, experiment: Experiment, n_sentences: int) -> Structure:
    (structure,) = measured(
        experiments,
        experiment,
        "structure",
        TypeAdapter(list[Structure]),
        lambda translator: [probe_structure(translator, n_sentences=n_sentences)],
        settings={"n_sentences": n_sentences},
    )
    return structure


def heads_to_draw(results: Sequence[RelationResult]) -> list[RelationResult]:
    """Return the first two results of different heads and different relations, in the given order."""
    drawn: list[RelationResult] = []
    for each in results:
        heads = {one.trained.index for one in drawn}
        relations = {frozenset(one.name.split(" → ")) for one in drawn}
        if each.trained.index not in heads and frozenset(each.name.split(" → ")) not in relations:
            drawn.append(each)
    return drawn[:N_DRAWN]


def _names(drawn: Sequence[RelationResult], *, separator: str) -> str:
    return head_names((each.trained.index for each in drawn), separator=separator)


def _drawing(sentence: DrawnSentence, drawn: Sequence[RelationResult], alt: str) -> Draw:
    """Return the drawing of the heads in a sentence, one panel each."""
    return lines(sentence, *(_panel(sentence, each) for each in drawn), alt=alt, note=NOTE)


def _panel(sentence: DrawnSentence, result: RelationResult) -> LinePanel:
    each, words = result.trained, sentence.words
    head = HeadLines(f"head {each.head + 1}", each.head, words.weights[each.layer, each.head])
    title = (
        f"Layer {each.layer + 1}, head {each.head + 1}",
        f"probe: {result.name}",
        f"{100 * each.accuracy:.0f} % correct, baseline {100 * each.baseline_accuracy:.0f} %",
    )
    return LinePanel(title, words.words, words.words, (head,))


def _sentence_sections(inputs: FigureInputs, drawn: Sequence[RelationResult]) -> list[str | Table]:
    maps, own = inputs.law.maps, inputs.own
    of_paper = f"The sentence of the paper is “{maps.source}”; the model's translation is “{maps.translation}”."
    if not drawn:
        return [f"{of_paper} There are too few words in the probed relations: nothing is drawn."]
    text = f"{of_paper} The other sentence is “{own.text}”"
    if own.words.n_words < MIN_WORDS:
        text += " It is too short for relations: it is not drawn."
    text += " The drawn heads are the first two of the table below that differ in head and relation."
    n_below = sum(not each.trained.beats_baseline for each in drawn)
    if n_below:
        text += f" {n_below} of {len(drawn)} do not beat the baseline: their patterns may be position alone."
    paper, ours, _ = inputs.sizes
    n_layers = own.words.weights.shape[0]
    comparison = Table(
        "-paper",
        ("", paper, ours),
        (
            ("heads", "two of layer 5 of 6", f"{_names(drawn, separator='; ')} (of {n_layers} layers)"),
            ("relations", None, "; ".join(each.name for each in drawn)),
            ("accuracy", None, "; ".join(f"{100 * each.trained.accuracy:.0f} %" for each in drawn)),
        ),
    )
    return [text, comparison]


def _verdict(inputs: FigureInputs, results: Sequence[RelationResult]) -> str:
    if not results:
        return "Undecided: no relation has enough pairs of words to probe a head."
    return finding_on_relations(f"Figure 5: in {inputs.this_model}", results)


def _sections_of_heads(structure: Structure) -> list[str | Table]:
    """Return what each head follows best, if any beats its baseline."""
    followers = _followers(structure)
    found = (
        f"Heads, each at the relation in which it leads the baseline most on the choosing half: {len(followers)} of"
        f" {len(structure.heads)} beat it on the other half; {structure.n_untrained} do in the untrained model."
    )
    return [found, _table_of_tasks(followers)] if followers else [found]


def _followers(structure: Structure) -> list[HeadTask]:
    """Return the heads that beat the baseline at their best relation, the largest lead first."""
    followers = [each for each in structure.heads if each.result.beats_baseline]
    return sorted(followers, key=lambda each: each.result.baseline_accuracy - each.result.accuracy)


def _table_of_tasks(tasks: Sequence[HeadTask]) -> Table:
    rows: list[tuple[Cell, ...]] = [
        (
            each.result.layer + 1,
            each.result.head + 1,
            each.name,
            100 * each.result.accuracy,
            f"{100 * each.result.low:.0f} to {100 * each.result.high:.0f}",
            str(each.result.baseline),
            100 * each.result.baseline_accuracy,
        )
        for each in tasks
    ]
    columns = (
        "layer", "head", "query → key", "accuracy %", "95 % interval", "position baseline", "baseline accuracy %",
    )  # fmt: skip
    return Table("-heads", columns, tuple(rows), formats=dict.fromkeys(("accuracy %", "baseline accuracy %"), ".0f"))


def _table_of_offsets(heads: Sequence[HeadNumbers]) -> Table:
    rows: list[tuple[Cell, ...]] = [
        (
            (each.layer or 0) + 1,
            (each.head or 0) + 1,
            str(PositionBaseline("offset", each.offset)),
            100 * each.offset_share,
        )
        for each in sorted(heads, key=lambda each: -each.offset_share)[:N_OFFSETS_SHOWN]
    ]
    return Table("-positions", ("layer", "head", "offset", "% of words"), tuple(rows), formats={"% of words": ".0f"})


def _claims(structure: Structure, *, is_trained: bool) -> tuple[Claim, ...]:
    """Return the sentences of the caption; section 4 has the same two in other words."""
    n_followers, n_heads = len(_followers(structure)), len(structure.heads)
    is_different, found = _perform_different_tasks(structure.specialists), _found_of_specialists(structure.specialists)
    return (
        Claim(
            "Many of the attention heads exhibit behaviour that seems related to the structure of the sentence.",
            "Figure 5, section 4",
            agreement(are_many(n_followers, n_heads) if n_heads else None, is_trained=is_trained),
            f"{n_followers} of {n_heads} heads find the words of a syntactic relation better than the best position"
            f" baseline ({structure.n_untrained} in the untrained model); {MANY}. Semantic"
            " structure, which section 4 names besides, was not measured.",
        ),
        Claim(
            "The heads clearly learned to perform different tasks.",
            "Figure 5, section 4",
            agreement(is_different),
            found,
        ),
    )


def _perform_different_tasks(pair: Sequence[Specialist]) -> bool | None:
    """Return whether two heads are each better than the other, and than the untrained model, at a relation.

    None: only one of them is, or no two heads were compared.
    """
    n_better = sum(each.is_better for each in pair)
    return None if not pair or 0 < n_better < len(pair) else n_better > 0


def _found_of_specialists(pair: Sequence[Specialist]) -> str:
    if not pair:
        return "No two heads are best at different relations."
    described = (
        f"at {each.name}, {head_names([each.own.index])} is right in"
        f" {100 * each.own.accuracy:.0f} % (95 % interval {100 * each.own.low:.0f} to {100 * each.own.high:.0f}), the"
        f" other head in {100 * each.other.accuracy:.0f} %, the best untrained head in"
        f" {100 * each.untrained_accuracy:.0f} %"
        for each in pair
    )
    return f"The two heads that differ most: {'; '.join(described)}."

"""Recurrent networks before the Transformer: vanishing gradients, gates, and attention against the bottleneck."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from statistics import mean, median
from typing import Any

from pydantic import TypeAdapter

from transduce_paper.drawing import COLOURS, GREY, new_panels, save_svg, set_log_axis
from transduce_paper.experiments import Experiments
from transduce_paper.intervals import interval_of_difference
from transduce_paper.measurement_cache import validated
from transduce_paper.notes.length_scores import KINDS as ATTENTIONS
from transduce_paper.notes.length_scores import Attention, BinScore, length_scores, recurrence_experiment
from transduce_paper.notes.recall import KINDS, N_SYMBOLS, Kind, Recall, RecallSizes, recall
from transduce_paper.notes.tiny import BATCH_SIZE, TINY
from transduce_paper.report import Cell, Claim, Section, Table, agreement, picture
from transduce_paper.run_records import RunRecord, about_runs, are_trained_to_the_end, machines
from transduce_paper.sizes import size_description

__all__ = ["claims_on_attention", "claims_on_recall", "make_recurrence"]

FULL = RecallSizes((1, 2, 4, 8, 16, 32, 64), n_updates=400, n_validations=40, n_tested=256)
TEST = RecallSizes((1, 2, 4), n_updates=2, n_validations=1, n_tested=4)
RECALL_SEEDS, RUN_SEEDS = (1, 2, 3), (1, 2)

VANISHED = 1e-3  # a gradient this small beside that of the last noise token
LEARNED = 0.9  # accuracy from which a symbol counts as recalled

NAMES: Mapping[Kind, str] = {"rnn": "plain RNN", "lstm": "LSTM", "gru": "GRU", "transformer": "Transformer"}
LABELS: Mapping[Attention, str] = {"additive": "with attention", "none": "without attention"}

ABOUT_THE_NOTES = """\
The notes name two weaknesses of recurrent encoder-decoders. Gradients vanish (this page of our copy is hardly legible;
LSTM and GRU stand beside it as the remedy). And the encoder's last state is a bottleneck, with attention as the
remedy."""

ABOUT_RECALL = """\
### Gradients and recall by distance

A sequence is one of {n_symbols} symbols, then up to {longest} noise tokens; after the last one the model names the
symbol. Each model has one causal layer of width {d_model} between embedding and output: a plain RNN, an LSTM or a
GRU, initialised as torch does, or a Transformer layer with sinusoidal positions. All are trained alike: {n_updates}
updates of {batch_size} sequences, seeds 1 to {n_seeds}. The gradient is that of the loss after {longest} noise tokens,
with respect to the embedding at each distance from the end, relative to distance 1 (norms averaged over {n_tested}
sequences). The table has medians over seeds; *updates to learn* are those until the loss at distance {longest} is half
that of guessing. Chance is {chance:.0%}."""

ABOUT_GRADIENTS = """\
Before training, each position multiplies the gradient by {factors} on average: the gates of LSTM and GRU start half
open and do not yet keep it. After training, the gradient at the first symbol, relative to distance 1, is {after}."""

ABOUT_LENGTHS = """\
### BLEU by sentence length, with and without attention

Table 2's LSTM encoder-decoder ({size}; {n_updates:,} updates, seeds {seeds}) with additive attention, and the same with
the encoder's last state in place of the context: {parameters}. BLEU on {test_text} in ranges of source length (words
between spaces), means of the seeds; `{signature}`. *Share* is BLEU without attention relative to BLEU with it: BLEU
itself depends on the range, so only this is compared between ranges. ± is the 95 % interval of the seeds, by Student's
t with a standard deviation pooled over the ranges. {about_runs} {hardware}."""

LIMITATIONS = """\
The recall task has one symbol and noise that never resembles it, which is the easiest long-range dependency. The
number of updates was chosen so that all gated layers learn it: in a trial with 250 instead of 400, one of three LSTMs
recalled only 46 % at distance 64. Without attention, the last state is still an input at every target position, which
is more than the first such models had."""

Recalls = Mapping[Kind, Sequence[Recall]]  # one of each seed
LengthScores = Mapping[Attention, Sequence[Sequence[BinScore]]]  # of each seed the BLEU of each range


def make_recurrence(experiments: Experiments) -> Section:
    """Measure tiny models on recall, and translation models with and without attention, or read their records."""
    runs = {
        attention: [recurrence_experiment(experiments, attention, seed) for seed in RUN_SEEDS]
        for attention in ATTENTIONS
    }
    scores = {attention: [length_scores(experiments, run) for run in of_kind] for attention, of_kind in runs.items()}
    records = {attention: [experiments.run(run) for run in of_kind] for attention, of_kind in runs.items()}
    sizes = experiments.pick(FULL, test=TEST)
    recalls = _measured_recalls(experiments, sizes)
    accuracy = {kind: median([each.accuracies[-1] for each in of_kind]) for kind, of_kind in recalls.items()}
    bleu = {attention: mean(record.bleu for record in of_kind) for attention, of_kind in records.items()}
    listed = ", ".join(f"{NAMES[kind]} {value:.0%}" for kind, value in accuracy.items())
    return Section(
        "Recurrent networks and attention",
        (
            ABOUT_THE_NOTES,
            _about_recall(sizes),
            _table_of_recall(recalls, sizes),
            _about_gradients(recalls, sizes),
            picture("notes-recurrence", "Gradient by distance before and after training, and accuracy by distance"),
            _about_lengths(records, scores),
            _table_of_lengths(scores),
            picture("notes-recurrence-lengths", "BLEU by sentence length with and without attention, and their ratio"),
            LIMITATIONS,
        ),
        finding=(
            f"Recall of a symbol after {sizes.longest} tokens of noise: {listed}. An LSTM encoder-decoder has"
            f" {bleu['additive']:.1f} BLEU with attention and {bleu['none']:.1f} without."
        ),
        question="do gradients of recurrent networks vanish, do gates help, and is the last state a bottleneck?",
        summary=(
            f"a plain RNN recalls a symbol after {sizes.longest} tokens in {accuracy['rnn']:.0%} of cases, an LSTM in"
            f" {accuracy['lstm']:.0%}; without attention, an LSTM translates with {bleu['none']:.1f} BLEU instead of"
            f" {bleu['additive']:.1f}"
        ),
        drawings={
            "notes-recurrence": lambda path: _draw_recall(recalls, sizes, path),
            "notes-recurrence-lengths": lambda path: _draw_lengths(scores, path),
        },
        claims=()
        if experiments.scale == "test"
        else (*claims_on_recall(recalls, sizes), *claims_on_attention(records, scores)),
    )


# ---- recall


def _measured_recalls(experiments: Experiments, sizes: RecallSizes) -> Recalls:
    """Return what models of each kind do with each seed, cached beside the records."""

    def measure() -> list[dict[str, Any]]:
        return [
            {"kind": kind, "recalls": [asdict(recall(kind, seed, sizes)) for seed in RECALL_SEEDS]} for kind in KINDS
        ]

    settings = {"n_updates": sizes.n_updates, "n_tested": sizes.n_tested, "n_seeds": len(RECALL_SEEDS)}
    rows = experiments.measurement("notes-recurrence", "recall", measure, settings=settings)
    recalls, where = TypeAdapter[Sequence[Recall]](tuple[Recall, ...]), "the cached recall of notes-recurrence"
    return {row["kind"]: validated(recalls, row["recalls"], where=where) for row in rows}


def _about_recall(sizes: RecallSizes) -> str:
    return ABOUT_RECALL.format(
        n_symbols=N_SYMBOLS,
        longest=sizes.longest,
        d_model=TINY.d_model,
        n_updates=sizes.n_updates,
        batch_size=BATCH_SIZE,
        n_seeds=len(RECALL_SEEDS),
        n_tested=sizes.n_tested,
        chance=1 / N_SYMBOLS,
    )


def _about_gradients(recalls: Recalls, sizes: RecallSizes) -> str:
    def factor(kind: Kind) -> float:
        """Return the factor for each position between distance 1 and the longest."""
        return math.pow(_gradient_at_first(recalls[kind], is_trained=False), 1 / (sizes.longest - 1))

    factors = ", ".join(f"{factor(kind):.2f} ({NAMES[kind]})" for kind in KINDS if kind != "transformer")
    after = ", ".join(f"{_gradient_at_first(recalls[kind], is_trained=True):.1g} ({NAMES[kind]})" for kind in KINDS)
    return ABOUT_GRADIENTS.format(factors=factors, after=after)


def _gradient_at_first(recalls: Sequence[Recall], *, is_trained: bool) -> float:
    """Return the relative gradient at the longest distance, the median over seeds."""
    return median([(each.gradients_after if is_trained else each.gradients_before)[-1] for each in recalls])


def _table_of_recall(recalls: Recalls, sizes: RecallSizes) -> Table:
    gradients = [f"gradient, {when} training" for when in ("before", "after")]
    accuracies = [f"recall at {distance}" for distance in sizes.tested_distances]
    rows: list[tuple[Cell, ...]] = []
    for kind, of_kind in recalls.items():
        n_updates = median([_updates_to_learn(each) for each in of_kind])
        rows.append(
            (
                NAMES[kind],
                *(_gradient_at_first(of_kind, is_trained=is_trained) for is_trained in (False, True)),
                *(median(of_distance) for of_distance in zip(*(each.accuracies for each in of_kind), strict=True)),
                None if n_updates == math.inf else n_updates,
            )
        )
    columns = ("layer", *gradients, *accuracies, "updates to learn")
    formats = dict.fromkeys(gradients, ".1g") | dict.fromkeys(accuracies, ".0%") | {"updates to learn": ".0f"}
    return Table("-recurrence-recall", columns, tuple(rows), formats=formats)


def _updates_to_learn(recall: Recall) -> float:
    return math.inf if recall.n_updates_to_learn is None else recall.n_updates_to_learn


def _draw_recall(recalls: Recalls, sizes: RecallSizes, path: Path) -> None:
    figure, panels = new_panels(13.5, 4.2, n_columns=3)
    before, after, accuracy = panels
    for (kind, of_kind), colour in zip(recalls.items(), COLOURS, strict=False):
        for panel, of_seeds in (
            (before, [each.gradients_before for each in of_kind]),
            (after, [each.gradients_after for each in of_kind]),
        ):
            medians = [median(of_distance) for of_distance in zip(*of_seeds, strict=True)]
            panel.plot(range(1, sizes.longest + 1), medians, color=colour, label=NAMES[kind])
        for each in of_kind:
            accuracy.plot(sizes.tested_distances, each.accuracies, "o-", color=colour, markersize=4, alpha=0.7)
    for panel, when in ((before, "before"), (after, "after")):
        panel.set(xlabel="distance from the end", ylabel="gradient relative to distance 1", ylim=(1e-12, 1e3))
        set_log_axis(panel, "y", (1e-12, 1e-9, 1e-6, 1e-3, 1, 1e3))
        panel.set_title(f"Gradient {when} training", loc="left")
    accuracy.axhline(1 / N_SYMBOLS, color=GREY, linestyle=":")
    accuracy.set(xlabel="distance of the symbol", ylabel="recalled symbols", ylim=(0, 1.03))
    set_log_axis(accuracy, "x", sizes.tested_distances, base=2)
    accuracy.set_title("Accuracy, each seed; dotted: chance", loc="left")
    before.legend(frameon=False, loc="lower left")
    save_svg(figure, path)


def claims_on_recall(recalls: Recalls, sizes: RecallSizes) -> tuple[Claim, ...]:
    """Return the notes' sentences on vanishing gradients and gates, and section 4 on path lengths."""
    of_rnn = [each.gradients_before[-1] for each in recalls["rnn"]]
    accuracies = {kind: [each.accuracies[-1] for each in of_kind] for kind, of_kind in recalls.items()}
    gated = [*accuracies["lstm"], *accuracies["gru"]]
    needed = {kind: [_updates_to_learn(each) for each in of_kind] for kind, of_kind in recalls.items()}
    recurrent = [value for kind in KINDS if kind != "transformer" for value in needed[kind]]
    return (
        Claim(
            "RNN issue: vanishing gradient",
            "notes, hardly legible",
            agreement(_all_or_none([each < VANISHED for each in of_rnn])),
            f"At initialisation, a plain RNN's gradient at distance {sizes.longest} is at most {max(of_rnn):.0e} of"
            f" that at distance 1, a Transformer layer's at least"
            f" {min(each.gradients_before[-1] for each in recalls['transformer']):.1g}.",
        ),
        Claim(
            "[vanishing gradient:] LSTM/GRU solves",
            "notes, hardly legible",
            agreement(_all_or_none([accuracy > LEARNED for accuracy in gated])),
            f"At distance {sizes.longest}, trained LSTMs recall {_range(accuracies['lstm'])}, GRUs"
            f" {_range(accuracies['gru'])}, plain RNNs {_range(accuracies['rnn'])}; at initialisation, gradients of"
            f" LSTM and GRU vanish, too ({_gradient_at_first(recalls['lstm'], is_trained=False):.0e} and"
            f" {_gradient_at_first(recalls['gru'], is_trained=False):.0e}).",
        ),
        Claim(
            "The shorter these paths between any combination of positions in the input and output sequences, the"
            " easier it is to learn long-range dependencies",
            "section 4",
            agreement(False if min(needed["transformer"]) > max(recurrent) else None),
            f"Updates until a symbol is recalled at distance {sizes.longest}: "
            + ", ".join(f"{NAMES[kind]} {_counts(needed[kind])}" for kind in KINDS)
            + f" ({len(RECALL_SEEDS)} seeds each). The path has one step in the Transformer, {sizes.longest} in the"
            " others; the layers differ in more than the path.",
        ),
    )


def _all_or_none(is_so: Sequence[bool]) -> bool | None:
    """Return True if all are true, False if none is; None otherwise."""
    return True if all(is_so) else False if not any(is_so) else None


def _range(shares: Sequence[float]) -> str:
    low, high = f"{min(shares):.0%}", f"{max(shares):.0%}"
    return low if low == high else f"{low} to {high}"


def _counts(updates: Sequence[float]) -> str:
    return "/".join("never" if each == math.inf else f"{each:.0f}" for each in sorted(updates))


# ---- BLEU by length


def _about_lengths(records: Mapping[Attention, Sequence[RunRecord]], scores: LengthScores) -> str:
    first = records["additive"][0]
    parameters = " and ".join(
        f"{records[attention][0].parameters:,} parameters {LABELS[attention]}" for attention in ATTENTIONS
    )
    return ABOUT_LENGTHS.format(
        size=size_description(first.config),
        n_updates=first.updates,
        seeds=" and ".join(map(str, RUN_SEEDS)),
        parameters=parameters,
        test_text=first.test_text or first.dev_text,
        signature=scores["additive"][0][0].signature,
        about_runs=about_runs(record for of_kind in records.values() for record in of_kind),
        hardware=machines(record for of_kind in records.values() for record in of_kind),
    )


def _bleus(scores: LengthScores, attention: Attention) -> list[list[float]]:
    """Return the BLEU of each range, and there of each seed."""
    return [[each.bleu for each in of_range] for of_range in zip(*scores[attention], strict=True)]


def _shares(scores: LengthScores) -> list[list[float]] | None:
    """Return BLEU without attention in percent of that with it, of each range and seed; None if the latter is 0."""
    with_attention, without = (_bleus(scores, attention) for attention in ATTENTIONS)
    if not all(map(all, with_attention)):
        return None
    return [
        [100 * one / other for one, other in zip(*of_range, strict=True)]
        for of_range in zip(without, with_attention, strict=True)
    ]


def _table_of_lengths(scores: LengthScores) -> Table:
    with_attention, without = (_bleus(scores, attention) for attention in ATTENTIONS)
    shares, ranges = _shares(scores), scores["additive"][0]
    rows: list[tuple[Cell, ...]] = []
    for index, of_range in enumerate(ranges):
        lead = interval_of_difference(with_attention[index], without[index], [*with_attention, *without])
        rows.append(
            (
                of_range.name,
                of_range.n_sentences,
                mean(with_attention[index]),
                mean(without[index]),
                lead.difference,
                lead.half_width,
                None if shares is None else mean(shares[index]),
            )
        )
    columns = ("words", "sentences", *LABELS.values(), "difference", "±", "share, %")
    formats = dict.fromkeys((*columns[2:4], "±"), ".1f") | {"difference": "+.1f", "share, %": ".0f"}
    return Table("-recurrence-lengths", columns, tuple(rows), formats=formats)


def _draw_lengths(scores: LengthScores, path: Path) -> None:
    figure, (left, right) = new_panels(10.5, 4.2, n_columns=2)
    names = [each.name for each in scores["additive"][0]]
    x, shares = range(len(names)), _shares(scores)
    for attention, colour in zip(ATTENTIONS, COLOURS, strict=False):
        bleus = _bleus(scores, attention)
        left.plot(x, [mean(each) for each in bleus], "o-", color=colour, label=LABELS[attention])
        for position, each in zip(x, bleus, strict=True):
            left.plot([position] * len(each), each, ".", color=colour, alpha=0.6)
    if shares is not None:
        right.plot(x, [mean(each) for each in shares], "o-", color=COLOURS[2])
    for panel in (left, right):
        panel.set_xticks(x, names)
        panel.set(xlabel="words of the source")
    left.set(ylabel="sacreBLEU", ylim=(0, None))
    right.set(ylabel="% of the BLEU with attention", ylim=(0, 100))
    left.set_title("BLEU by source length", loc="left")
    right.set_title("Share reached without attention", loc="left")
    left.legend(frameon=False)
    save_svg(figure, path)


def claims_on_attention(records: Mapping[Attention, Sequence[RunRecord]], scores: LengthScores) -> tuple[Claim, ...]:
    """Return the notes' sentences on the bottleneck of the last state and on attention as its solution."""
    bleus = {attention: [record.bleu for record in of_kind] for attention, of_kind in records.items()}
    lead = interval_of_difference(bleus["additive"], bleus["none"], bleus.values())
    with_attention, without = (_bleus(scores, attention) for attention in ATTENTIONS)
    lead_at_longest = interval_of_difference(with_attention[-1], without[-1], [*with_attention, *without])
    shares = _shares(scores)
    change = None if shares is None else interval_of_difference(shares[-1], shares[0], shares)
    is_trained = are_trained_to_the_end(records["none"])  # the worse one
    shortest, longest = scores["additive"][0][0].name, scores["additive"][0][-1].name
    return (
        Claim(
            "Last hidden state is the info bottleneck as it has to represent the meaning of [the] whole input seq",
            "notes",
            agreement(lead.is_above_zero, is_trained=is_trained),
            f"With attention, all else equal, BLEU changes by {lead} ({len(RUN_SEEDS)} seeds).",
        ),
        Claim(
            "Especially challenging for long sequences",
            "notes",
            agreement(None if change is None else (-change).is_above_zero, is_trained=is_trained),
            "No share of BLEU without attention can be computed."
            if shares is None
            else f"Without attention, BLEU is {mean(shares[0]):.0f} % of that with it at {shortest} words,"
            f" {mean(shares[-1]):.0f} % at {longest} (difference {change}).",
        ),
        Claim(
            "Soln: attention. Instead of producing a single hidden state, the encoder outputs a hidden state at each"
            " time step that [the] decoder can access",
            "notes",
            agreement(lead_at_longest.is_above_zero, is_trained=is_trained),
            f"In the longest sentences, {longest} words, BLEU changes by {lead_at_longest}.",
        ),
    )

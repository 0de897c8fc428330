"""The sentences of sections 3.2.2, 5.4 and 6.2 that rows of Table 3 test."""

from __future__ import annotations

from collections.abc import Collection, Sequence, Set

from transduce_paper.intervals import NEARLY_IDENTICAL
from transduce_paper.report import Claim, Verdict, agreement
from transduce_paper.run_records import RunRecord, are_trained_to_the_end
from transduce_paper.table3.effects import (
    bleu_of,
    change_between,
    change_of,
    effect_on_perplexity,
    has_learned,
    is_equal,
    mean_of,
    minutes_of,
    perplexity_of,
)
from transduce_paper.table3.longer_runs import Decides, Rows

__all__ = ["TESTED_BY", "claims_on_rows", "deciding_rows", "rows_at_their_best"]

# Sentences of sections 6.2 and 5.4 and the rows whose perplexity tests them.
TESTED_BY: tuple[tuple[str, str, tuple[str, ...]], ...] = (
    ("quality also drops off with too many heads", "section 6.2 (A)", ("A-h32",)),
    ("with a single attention head, averaging inhibits this", "section 3.2.2", ("A-h1",)),
    ("reducing the attention key size d_k hurts model quality", "section 6.2 (B)", ("B-dk16", "B-dk32")),
    ("as expected, bigger models are better", "section 6.2 (C)",
     ("C-N2", "C-N4", "C-N8", "C-d256", "C-d1024", "C-ff1024", "C-ff4096", "big")),
    ("dropout is very helpful in avoiding over-fitting", "section 6.2 (D)", ("D-drop0",)),
)  # fmt: skip
ROWS_OF_HEADS = ("A-h1", "A-h4", "base", "A-h16", "A-h32")


def claims_on_rows(rows: Rows, deciding: Collection[str], at_best: Set[str]) -> tuple[Claim, ...]:
    """Return the sentences about these rows, by their effect on perplexity, and those that need more than an effect.

    Without the sentences of which a row is missing. ``deciding`` and ``at_best`` are the ``deciding_rows`` and
    ``rows_at_their_best``.
    """
    claims = []
    if rows.keys() >= set(ROWS_OF_HEADS):
        claims += [_claim_on_cost_of_heads(rows), _claim_on_single_head(rows, at_best)]
    for sentence in TESTED_BY:
        if rows.keys() >= set(sentence[-1]):
            claims.append(_claim_on(*sentence, rows, deciding, at_best))
    if "E-learned" in rows:
        claims.append(_claim_on_positions(rows, at_best))
    if "D-smooth0" in rows:
        claims += _claims_on_smoothing(rows, at_best)
    return tuple(claims)


def rows_at_their_best(rows: Rows, of_several_lengths: Set[str] = frozenset()) -> set[str]:
    """Return the rows that more training would not help: those trained to the end.

    One that overfits had its best checkpoint while the learning rate was high; only if runs ``of_several_lengths``
    were made, whichever is the best, is it known how good it gets.
    """
    return {
        name
        for name, runs in rows.items()
        if _is_at_its_best(runs, rows["base"][0].updates, is_of_several_lengths=name in of_several_lengths)
    }


def _is_at_its_best(runs: Sequence[RunRecord], n_updates: int, *, is_of_several_lengths: bool) -> bool:
    """Whether more training would not help; a run of fewer than ``n_updates`` is better than the longest."""
    longest = [run for run in runs if run.updates >= n_updates]
    had_high_rate = not is_of_several_lengths and any(map(_had_high_rate, longest))
    return not longest or (are_trained_to_the_end(longest) and not had_high_rate)


def _had_high_rate(run: RunRecord) -> bool:
    """Whether the best checkpoint is of a time when the learning rate, which falls to zero, was still high."""
    return run.overfits and run.config["training"]["decay"] != "inverse_sqrt"


def deciding_rows(rows: Rows, at_best: Set[str], later: Rows | None = None) -> dict[str, Decides]:
    """Return the rows whose comparison with base further training would not turn, and how they decide.

    The row has learned to translate. An effect decides if the one with the higher perplexity is ``at_best``, or by the
    estimate: if it is the same with the perplexities ``later``, of twice the updates. That there is none needs both
    ``at_best``, and an interval within the bound of what counts as equal.
    """
    how = {name: _how_it_decides(name, rows, at_best, later) for name in rows if name != "base"}
    return {name: decides for name, decides in how.items() if decides is not None}


def _how_it_decides(name: str, rows: Rows, at_best: Set[str], later: Rows | None) -> Decides | None:
    is_above = change_of(name, rows, perplexity_of).is_above_zero
    if not has_learned(name, rows):
        return None
    if is_above is None:
        return "yes" if _are_at_their_best(name, at_best) and is_equal(name, rows, perplexity_of) else None
    if (name if is_above else "base") in at_best:
        return "yes"
    return "yes, by the estimate" if later is not None and _keeps_its_effect(name, rows, at_best, later) else None


def _are_at_their_best(name: str, at_best: Set[str]) -> bool:
    return {name, "base"} <= at_best


def _keeps_its_effect(name: str, rows: Rows, at_best: Set[str], later: Rows) -> bool:
    had_high_rate = any(_had_high_rate(run) for each in {name, "base"} - at_best for run in rows[each])
    return not had_high_rate and effect_on_perplexity(name, rows) == effect_on_perplexity(name, later)


def _claim_on(
    sentence: str, where: str, names: Sequence[str], rows: Rows, deciding: Collection[str], at_best: Set[str]
) -> Claim:
    """Return a sentence that the perplexities of some rows test.

    Any that decides to the contrary, all as in the paper, or neither; a row that does not decide waits for training
    unless it and base are at their best.
    """
    effects = {name: effect_on_perplexity(name, rows) for name in names}
    found = "; ".join(
        f"{name} {change_of(name, rows, perplexity_of)} PPL ({effect})" for name, effect in effects.items()
    )
    decided = [effect for name, effect in effects.items() if name in deciding]
    is_open = any(name not in deciding and not _are_at_their_best(name, at_best) for name in names)
    if any(effect in ("opposite", "ours only") for effect in decided):
        verdict: Verdict = "does not"
    else:
        is_so = len(decided) == len(names) and all(each in ("as in the paper", "none in either") for each in decided)
        verdict = agreement(is_so or None, is_trained=not is_open)
    return Claim(sentence, where, verdict, f"{found}.")


def _claim_on_cost_of_heads(rows: Rows) -> Claim:
    """Return the sentence of section 3.2.2 on the cost of several heads, by FLOPs; minutes are given beside."""
    flops = {rows[name][0].training_flops for name in ROWS_OF_HEADS}
    had_others = [run.runs_at_once > 1 for name in ROWS_OF_HEADS for run in rows[name]]
    beside = ", other runs beside" if all(had_others) else ", other runs beside some" if any(had_others) else ""
    minutes = ", ".join(
        f"{mean_of(minutes_of, rows[name]):.1f} (h = {rows[name][0].config['model']['n_heads']})"
        for name in ROWS_OF_HEADS
    )
    return Claim(
        "Due to the reduced dimension of each head, the total computational cost is similar to that of single-head"
        " attention with full dimensionality",
        "section 3.2.2",
        agreement(max(flops) <= 1.01 * min(flops)),
        f"The FLOPs by count are the same. Minutes of training, means of the seeds{beside}: {minutes}.",
        "algebra",
    )


def _claim_on_single_head(rows: Rows, at_best: Set[str]) -> Claim:
    """Return the sentence on the BLEU of a single head, against the best of the other numbers of heads."""
    bleu = {name: mean_of(bleu_of, rows[name]) for name in ROWS_OF_HEADS}
    best = max((name for name in ROWS_OF_HEADS if name != "A-h1"), key=lambda name: bleu[name])
    change = change_between("A-h1", best, rows, bleu_of)
    worse = min("A-h1", best, key=lambda name: bleu[name])
    return Claim(
        "single-head attention is 0.9 BLEU worse than the best setting",
        "section 6.2 (A)",
        agreement((-change).is_above_zero, is_trained=worse in at_best),
        f"One head has {bleu['A-h1']:.2f} BLEU, the best other number of heads ({best}) {bleu[best]:.2f} (difference"
        f" {change}).",
    )


def _claim_on_positions(rows: Rows, at_best: Set[str]) -> Claim:
    """Return the sentence on learned positions: equal only if no difference above the bound is probable."""
    change = change_of("E-learned", rows, perplexity_of)
    bound = NEARLY_IDENTICAL * mean_of(perplexity_of, rows["base"])
    is_trained = _are_at_their_best("E-learned", at_best)
    return Claim(
        "we replace our sinusoidal positional encoding with learned positional embeddings, and observe nearly identical"
        " results to the base model",
        "section 6.2 (E)",
        agreement(change.is_within(bound), is_trained=is_trained),
        f"{change} PPL. Nearly identical: within {bound:.2f} ({NEARLY_IDENTICAL:.0%} of base) with that interval.",
    )


def _claims_on_smoothing(rows: Rows, at_best: Set[str]) -> tuple[Claim, ...]:
    """Return the sentences on label smoothing that perplexity and BLEU test."""
    without = {"PPL": change_of("D-smooth0", rows, perplexity_of), "BLEU": change_of("D-smooth0", rows, bleu_of)}
    worse = {
        "PPL": max("D-smooth0", "base", key=lambda name: mean_of(perplexity_of, rows[name])),
        "BLEU": min("D-smooth0", "base", key=lambda name: mean_of(bleu_of, rows[name])),
    }
    halves = (
        ("[label smoothing] hurts perplexity, as the model learns to be more unsure", "PPL"),
        ("[label smoothing] improves [...] BLEU score", "BLEU"),
    )
    return tuple(
        Claim(
            sentence,
            "section 5.4",
            agreement((-without[unit]).is_above_zero, is_trained=worse[unit] in at_best),
            f"Without it {without[unit]} {unit}.",
        )
        for sentence, unit in halves
    )

"""The sentences of sections 3.2.2, 5.4 and 6.2 that rows of Table 3 test."""

from __future__ import annotations

from collections.abc import Sequence, Set

from transduce_paper.intervals import NEARLY_IDENTICAL
from transduce_paper.report import Claim, Verdict, agreement
from transduce_paper.run_records import RunRecord, are_trained_to_the_end
from transduce_paper.table3.effects import (
    Rows,
    bleu_of,
    change_between,
    change_of,
    effect_on_perplexity,
    has_learned,
    mean_of,
    perplexity_of,
)

__all__ = ["TESTED_BY", "claims_on_rows", "deciding_rows", "holds", "rows_at_their_best"]

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


def claims_on_rows(rows: Rows, deciding: Set[str], at_best: Set[str]) -> tuple[Claim, ...]:
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


def deciding_rows(rows: Rows, at_best: Set[str], later: Rows | None = None) -> set[str]:
    """Return the rows that have learned to translate and whose comparison with base further training would not turn.

    Of the two, the one with the higher perplexity is ``at_best``; or the row has the same effect with the
    perplexities ``later``, estimated for twice the updates.
    """

    def worse(name: str) -> str:
        return max(name, "base", key=lambda each: mean_of(perplexity_of, rows[each]))

    return {
        name
        for name in rows
        if has_learned(name, rows)
        and (worse(name) in at_best or (later is not None and _keeps_its_effect(name, rows, at_best, later)))
    }


def _keeps_its_effect(name: str, rows: Rows, at_best: Set[str], later: Rows) -> bool:
    effect = effect_on_perplexity(name, rows)
    is_one = effect in ("as in the paper", "opposite", "ours only")
    had_high_rate = any(_had_high_rate(run) for each in {name, "base"} - at_best for run in rows[each])
    return is_one and not had_high_rate and effect == effect_on_perplexity(name, later)


def _claim_on(
    sentence: str, where: str, names: Sequence[str], rows: Rows, deciding: Set[str], at_best: Set[str]
) -> Claim:
    """Return a sentence that the perplexities of some rows test."""
    effects = {name: effect_on_perplexity(name, rows) for name in names}
    found = "; ".join(
        f"{name} {change_of(name, rows, perplexity_of)} PPL ({effect})" for name, effect in effects.items()
    )
    counting = [effect for name, effect in effects.items() if name in deciding and holds(name, rows, at_best)]
    return Claim(sentence, where, _verdict_on(counting, n_rows=len(names)), f"{found}.")


def holds(name: str, rows: Rows, at_best: Set[str]) -> bool:
    """Whether more training of the better model would not turn an effect: where there is none, it could make one."""
    has_none = effect_on_perplexity(name, rows) in ("none in either", "paper only")
    return not has_none or {name, "base"} <= at_best


def _verdict_on(effects: Sequence[str], *, n_rows: int) -> Verdict:
    """Return the verdict on several rows: any to the contrary, all as in the paper, or neither.

    ``effects`` are those of the rows that decide.
    """
    if any(effect in ("opposite", "ours only") for effect in effects):
        return "does not"
    is_as_in_the_paper = all(effect in ("as in the paper", "none in either") for effect in effects)
    return agreement(True if is_as_in_the_paper else None, is_trained=len(effects) == n_rows)


def _claim_on_cost_of_heads(rows: Rows) -> Claim:
    """Return the sentence of section 3.2.2 on the cost of several heads, by FLOPs; minutes are given beside."""
    flops = {rows[name][0].training_flops for name in ROWS_OF_HEADS}
    had_others = [rows[name][0].runs_at_once > 1 for name in ROWS_OF_HEADS]
    beside = ", other runs beside" if all(had_others) else ", other runs beside some" if any(had_others) else ""
    minutes = ", ".join(
        f"{rows[name][0].minutes:.1f} (h = {rows[name][0].config['model']['n_heads']})" for name in ROWS_OF_HEADS
    )
    return Claim(
        "Due to the reduced dimension of each head, the total computational cost is similar to that of single-head"
        " attention with full dimensionality",
        "section 3.2.2",
        agreement(max(flops) <= 1.01 * min(flops)),
        f"The FLOPs by count are the same. Minutes of training{beside}: {minutes}.",
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
    is_trained = {"E-learned", "base"} <= at_best
    return Claim(
        "we replace our sinusoidal positional encoding with learned positional embeddings, and observe nearly identical"
        " results to the base model",
        "section 6.2 (E)",
        agreement(change.is_within(bound), is_trained=is_trained),
        f"{change} PPL. Nearly identical: within {bound:.2f} ({NEARLY_IDENTICAL:.0%} of base) with that interval.",
    )


def _claims_on_smoothing(rows: Rows, at_best: Set[str]) -> tuple[Claim, ...]:
    """Return both halves of the sentence on label smoothing."""
    without = {"PPL": change_of("D-smooth0", rows, perplexity_of), "BLEU": change_of("D-smooth0", rows, bleu_of)}
    worse = {
        "PPL": max("D-smooth0", "base", key=lambda name: mean_of(perplexity_of, rows[name])),
        "BLEU": min("D-smooth0", "base", key=lambda name: mean_of(bleu_of, rows[name])),
    }
    halves = (
        ("[label smoothing] hurts perplexity, as the model learns to be more unsure", "PPL", ""),
        ("[label smoothing] improves accuracy and BLEU score", "BLEU", " Accuracy was not measured."),
    )
    return tuple(
        Claim(
            sentence,
            "section 5.4",
            agreement((-without[unit]).is_above_zero, is_trained=worse[unit] in at_best),
            f"Without it {without[unit]} {unit}.{note}",
        )
        for sentence, unit, note in halves
    )

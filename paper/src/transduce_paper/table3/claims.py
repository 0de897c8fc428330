"""The sentences of sections 3.2.2, 5.4 and 6.2 that rows of Table 3 test."""

from __future__ import annotations

from collections.abc import Sequence, Set
from functools import partial

from transduce_paper.intervals import NEARLY_IDENTICAL
from transduce_paper.report import Claim, Verdict, agreement
from transduce_paper.run_records import is_settled
from transduce_paper.table3.effects import Rows, bleu_of, change_of, effect_on_perplexity, mean_of, perplexity_of

__all__ = ["TESTED_BY", "claims_on_rows", "deciding_rows"]

# Sentences of sections 6.2 and 5.4 and the rows that test them.
TESTED_BY: tuple[tuple[str, str, tuple[str, ...]], ...] = (
    ("single-head attention is 0.9 BLEU worse than the best setting", "section 6.2 (A)", ("A-h1",)),
    ("quality also drops off with too many heads", "section 6.2 (A)", ("A-h32",)),
    ("with a single attention head, averaging inhibits this", "section 3.2.2", ("A-h1",)),
    ("reducing the attention key size d_k hurts model quality", "section 6.2 (B)", ("B-dk16", "B-dk32")),
    ("as expected, bigger models are better", "section 6.2 (C)",
     ("C-N2", "C-N4", "C-N8", "C-d256", "C-d1024", "C-ff1024", "C-ff4096", "big")),
    ("dropout is very helpful in avoiding over-fitting", "section 6.2 (D)", ("D-drop0",)),
)  # fmt: skip


def claims_on_rows(rows: Rows, deciding: Set[str]) -> tuple[Claim, ...]:
    """Return the sentences about the rows, by their effect on perplexity, and those that need more than an effect."""
    claims = []
    for sentence, where, names in TESTED_BY:
        effects = {name: effect_on_perplexity(name, rows) for name in names}
        found = "; ".join(
            f"{name} {change_of(name, rows, perplexity_of)} PPL ({effect})" for name, effect in effects.items()
        )
        counting = [effect for name, effect in effects.items() if name in deciding]
        claims.append(Claim(sentence, where, _verdict_on(counting, n_rows=len(names)), f"{found}."))
    return (*claims, _claim_on_positions(rows, deciding), *_claims_on_smoothing(rows, deciding))


def deciding_rows(rows: Rows) -> set[str]:
    """Return the rows whose comparison with base further training would not turn.

    Of the two, the one with the higher perplexity is trained to the end.
    """
    perplexity = partial(mean_of, perplexity_of)
    return {name for name, runs in rows.items() if is_settled(max(runs, rows["base"], key=perplexity))}


def _verdict_on(effects: Sequence[str], *, n_rows: int) -> Verdict:
    """Return the verdict on several rows: any to the contrary, all as in the paper, or neither.

    ``effects`` are those of the rows that decide.
    """
    if any(effect in ("opposite", "ours only") for effect in effects):
        return "does not"
    is_as_in_the_paper = all(effect in ("as in the paper", "none in either") for effect in effects)
    return agreement(True if is_as_in_the_paper else None, is_trained=len(effects) == n_rows)


def _claim_on_positions(rows: Rows, deciding: Set[str]) -> Claim:
    """Return the sentence on learned positions: equal only if no difference above the bound is probable."""
    change = change_of("E-learned", rows, perplexity_of)
    bound = NEARLY_IDENTICAL * mean_of(perplexity_of, rows["base"])
    return Claim(
        "we replace our sinusoidal positional encoding with learned positional embeddings, and observe nearly identical"
        " results to the base model",
        "section 6.2 (E)",
        agreement(change.is_within(bound), is_trained="E-learned" in deciding),
        f"{change} PPL. Nearly identical: within {bound:.2f} ({NEARLY_IDENTICAL:.0%} of base) with that interval.",
    )


def _claims_on_smoothing(rows: Rows, deciding: Set[str]) -> tuple[Claim, ...]:
    """Return both halves of the sentence on label smoothing."""
    is_trained = "D-smooth0" in deciding
    halves = (
        ("[label smoothing] hurts perplexity, as the model learns to be more unsure", "PPL", perplexity_of),
        ("[label smoothing] improves accuracy and BLEU score", "BLEU", bleu_of),
    )
    claims = []
    for sentence, unit, score in halves:
        without = change_of("D-smooth0", rows, score)
        is_worse = None if without.is_above_zero is None else not without.is_above_zero
        found = f"Without it {without} {unit}."
        claims.append(Claim(sentence, "section 5.4", agreement(is_worse, is_trained=is_trained), found))
    return tuple(claims)

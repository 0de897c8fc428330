"""The sentences of sections 3.2.2, 5.4 and 6.2 that rows of Table 3 test."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from statistics import mean

from transduce_paper.intervals import NEARLY_IDENTICAL, Interval
from transduce_paper.report import Claim, Verdict, agreement
from transduce_paper.run_records import RunRecord
from transduce_paper.table3_effects import bleu_of, effect_on_perplexity, margin_of, perplexities_of, perplexity_of

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


def claims_on_rows(records: Mapping[str, Sequence[RunRecord]], deciding: Set[str]) -> tuple[Claim, ...]:
    """Return the sentences about the rows, by their effect on perplexity, and those that need more than an effect."""
    base = perplexities_of(records["base"])
    claims = []
    for sentence, where, names in TESTED_BY:
        effects = {name: effect_on_perplexity(name, records[name][0], base) for name in names}
        found = "; ".join(
            f"{name} {records[name][0].dev_perplexity - mean(base):+.2f} PPL ({effect})"
            for name, effect in effects.items()
        )
        interval = f"another seed of base changes it by up to {margin_of(base):.2f}"
        counting = [effect for name, effect in effects.items() if name in deciding]
        claims.append(Claim(sentence, where, _verdict_on(counting, n_rows=len(names)), f"{found}; {interval}."))
    return (*claims, _claim_on_positions(records, deciding), *_claims_on_smoothing(records, deciding))


def deciding_rows(records: Mapping[str, Sequence[RunRecord]]) -> set[str]:
    """Return the rows whose comparison with base further training would not turn.

    Both are trained to the end; or the one that is not is better already, and can only gain.
    """
    base = records["base"]
    mean_of_base, is_base_trained = mean(perplexities_of(base)), base[0].is_trained_to_the_end
    return {
        name
        for name, (record, *_) in records.items()
        if (record.is_trained_to_the_end or record.dev_perplexity < mean_of_base)
        and (is_base_trained or mean_of_base < record.dev_perplexity)
    }


def _verdict_on(effects: Sequence[str], *, n_rows: int) -> Verdict:
    """Return the verdict on several rows: any to the contrary, all as in the paper, or neither.

    ``effects`` are those of the rows that decide.
    """
    if any(effect in ("opposite", "ours only") for effect in effects):
        return "does not"
    is_as_in_the_paper = all(effect in ("as in the paper", "none in either") for effect in effects)
    return agreement(True if is_as_in_the_paper else None, is_trained=len(effects) == n_rows)


def _claim_on_positions(records: Mapping[str, Sequence[RunRecord]], deciding: Set[str]) -> Claim:
    """Return the sentence on learned positions: equal only if no difference above the bound is probable."""
    base = perplexities_of(records["base"])
    effect = Interval(records["E-learned"][0].dev_perplexity - mean(base), margin_of(base))
    bound = NEARLY_IDENTICAL * mean(base)
    return Claim(
        "we replace our sinusoidal positional encoding with learned positional embeddings, and observe nearly identical"
        " results to the base model",
        "section 6.2 (E)",
        agreement(effect.is_within(bound), is_trained="E-learned" in deciding),
        f"{effect.difference:+.2f} PPL; another seed of base changes it by up to {effect.half_width:.2f}. Nearly"
        f" identical: within {bound:.2f} ({NEARLY_IDENTICAL:.0%} of base) with that interval.",
    )


def _claims_on_smoothing(records: Mapping[str, Sequence[RunRecord]], deciding: Set[str]) -> tuple[Claim, ...]:
    """Return both halves of the sentence on label smoothing."""
    none, base = records["D-smooth0"][0], records["base"]
    is_trained = "D-smooth0" in deciding
    halves = (
        ("[label smoothing] hurts perplexity, as the model learns to be more unsure", "PPL", perplexity_of),
        ("[label smoothing] improves accuracy and BLEU score", "BLEU", bleu_of),
    )
    claims = []
    for sentence, unit, score in halves:
        of_base = list(map(score, base))
        without, margin = score(none) - mean(of_base), margin_of(of_base)
        is_so = without < 0 if abs(without) > margin else None
        found = f"Without it {without:+.2f} {unit}; another seed changes it by up to {margin:.2f}."
        claims.append(Claim(sentence, "section 5.4", agreement(is_so, is_trained=is_trained), found))
    return tuple(claims)

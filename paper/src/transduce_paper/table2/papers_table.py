"""The paper's Table 2, and its rule for training FLOPs: time x number of GPUs x capacity of each."""

from __future__ import annotations

from transduce.model import cost_of
from transduce_paper.printed import PRINTED, Training
from transduce_paper.report import Cell, Claim, Table, agreement
from transduce_paper.table3.rows import row_at_scale

__all__ = ["capacities_table", "claims_of_the_paper", "flops_by_rule", "printed_table"]


DAY = 86_400.0  # seconds
# Section 5.2: seconds a step, steps, and hours in all.
TIMES = (
    ("each training step took about 0.4 seconds. We trained the base models for a total of 100,000 steps or 12 hours",
     0.4, 100_000, 12),
    ("step time was 1.0 seconds. The big models were trained for 300,000 steps (3.5 days)", 1.0, 300_000, 84),
)  # fmt: skip


def printed_table() -> Table:
    """Return the paper's table, with the FLOPs of its own models by its rule and by counting matrix products."""
    rows: list[tuple[Cell, ...]] = []
    for name, row in PRINTED.table2.items():
        by_rule = None if row.trained is None else flops_by_rule(row.trained)
        rows.append((name, row.bleu_de, row.bleu_fr, row.flops_de, row.flops_fr, by_rule, _counted(name)))
    columns = ("model", "en-de", "en-fr", "FLOPs en-de", "FLOPs en-fr", "by its rule", "by count")
    return Table("-printed", columns, tuple(rows), formats=dict.fromkeys(columns[3:], ".1e"))


def flops_by_rule(trained: Training) -> float:
    """Return training FLOPs by the paper's rule: time x number of GPUs x capacity of each."""
    return 3600 * trained.hours * trained.n_gpus * PRINTED.tflops[trained.gpu] * 1e12


def capacities_table() -> Table:
    """Return the GPU-days that the printed FLOPs stand for, on each GPU whose capacity the paper gives."""
    rows: list[tuple[Cell, ...]] = []
    for name, row in PRINTED.table2.items():
        for direction, flops in (("en-de", row.flops_de), ("en-fr", row.flops_fr)):
            if flops is not None:
                rows.append((name, direction, flops, *(flops / (c * 1e12 * DAY) for c in PRINTED.tflops.values())))
    columns = ("model", "direction", "FLOPs", *(f"{gpu}, {c:g} TFLOPS" for gpu, c in PRINTED.tflops.items()))
    caption = (
        "GPU-days that the printed FLOPs stand for, by the capacities of the paper's footnote. The paper gives training"
        " time and number of GPUs for its own models only: 12 hours and 3.5 days on 8 P100."
    )
    return Table("-capacities", columns, tuple(rows), caption, {"FLOPs": ".1e"} | dict.fromkeys(columns[3:], ",.1f"))


def _counted(name: str) -> float | None:
    """Return 6 FLOPs per matrix weight and target token of the whole run; None for a model that we do not have."""
    row = {"Transformer (base)": "base", "Transformer (big)": "big"}.get(name)
    if row is None:
        return None
    config = row_at_scale(row, "paper")
    tokens = config.training.max_updates * config.training.max_tokens_per_batch
    return float(cost_of(config.model).flops_per_token * tokens)


def claims_of_the_paper() -> tuple[Claim, ...]:
    """Return the sentences of section 6.1 that its own numbers decide."""
    big, base = PRINTED.table2["Transformer (big)"], PRINTED.table2["Transformer (base)"]
    others = [row for name, row in PRINTED.table2.items() if not name.startswith("Transformer")]
    best_de = max(row.bleu_de for row in others if row.bleu_de is not None)
    single_fr = [row for row in others if row.bleu_fr is not None and not row.is_ensemble]
    best_fr = max(single_fr, key=lambda row: _given(row.bleu_fr))
    lead, share = _given(big.bleu_de) - best_de, _given(big.flops_fr) / _given(best_fr.flops_fr)
    cheapest = min(row.flops_de for row in others if row.flops_de is not None)
    base_flops, big_flops = (flops_by_rule(row.trained) for row in (base, big) if row.trained is not None)
    is_as_printed = all(
        f"{by_rule:.1e}" == f"{_given(row.flops_de):.1e}" for by_rule, row in ((base_flops, base), (big_flops, big))
    )
    return (
        Claim(
            "the big transformer model [...] outperforms the best previously reported models (including ensembles) by"
            " more than 2.0 BLEU",
            "section 6.1",
            agreement(lead > 2.0),
            f"By the table's own numbers {big.bleu_de} against {best_de}, {lead:.2f} more.",
            "arithmetic",
        ),
        Claim(
            "our big model achieves a BLEU score of 41.0, [...] at less than 1/4 the training cost of the previous"
            " state-of-the-art model",
            "section 6.1",
            agreement(share < 0.25),
            f"By the table's own numbers {big.flops_fr:.1e} of {best_fr.flops_fr:.1e} FLOPs of the best single model"
            f" ({best_fr.bleu_fr} BLEU), a share of {share:.2f}. The table has {big.bleu_fr} BLEU, not"
            f" {PRINTED.text_bleu_fr}.",
            "arithmetic",
        ),
        Claim(
            "Even our base model surpasses all previously published models and ensembles, at a fraction of the training"
            " cost of any of the competitive models",
            "section 6.1",
            agreement(_given(base.bleu_de) > best_de and base_flops < cheapest),
            f"By the table's own numbers, English to German: {base.bleu_de} against {best_de} BLEU, {base.flops_de:.1e}"
            f" against at least {cheapest:.1e} FLOPs.",
            "arithmetic",
        ),
        Claim(
            "our big model achieves a BLEU score of 41.0, outperforming all of the previously published single models",
            "section 6.1",
            agreement(PRINTED.text_bleu_fr > _given(best_fr.bleu_fr)),
            f"By the table's own numbers the best other single model has {best_fr.bleu_fr} BLEU, English to French.",
            "arithmetic",
        ),
        Claim(
            "In the former task our best model outperforms even all previously reported ensembles",
            "section 7",
            agreement(_given(big.bleu_de) > best_de),
            f"By the table's own numbers, English to German: {big.bleu_de} against {best_de}.",
            "arithmetic",
        ),
        *(
            Claim(
                sentence,
                "section 5.2",
                agreement(f"{seconds:.1f}" == f"{round(3600 * hours / n_updates, 1):.1f}"),
                f"{n_updates:,} steps of {seconds} s are {seconds * n_updates / 3600:.1f} hours; {hours} hours are"
                f" {3600 * hours / n_updates:.2f} s a step.",
                "arithmetic",
            )
            for sentence, seconds, n_updates, hours in TIMES
        ),
        Claim(
            "We estimate the number of floating point operations [...] by multiplying the training time, the number of"
            " GPUs used, and an estimate of the sustained single-precision floating-point capacity of each GPU",
            "section 6.1",
            agreement(is_as_printed),
            f"12 hours and 3.5 days on 8 P100 of 9.5 TFLOPS are {base_flops:.2e} and {big_flops:.2e}, as printed."
            f" Counted by weights and tokens they are {_counted('Transformer (base)'):.1e} and"
            f" {_counted('Transformer (big)'):.1e}.",
            "arithmetic",
        ),
    )


def _given(value: float | None) -> float:
    """Return a number that the paper prints. Raises ValueError if it does not."""
    if value is None:
        raise ValueError("the paper prints no such number")
    return value

"""Claims: what a report says of the paper's sentences, and the page that lists them."""

from __future__ import annotations

from collections.abc import Set
from dataclasses import replace
from pathlib import Path

import pytest

from transduce_paper import ARTEFACTS, Experiments, Report, Request, Scale, Table, write_claims
from transduce_paper.printed import PRINTED
from transduce_paper.report import Claim, agreement
from transduce_paper.run_records import RunRecord, about_runs, are_trained_to_the_end
from transduce_paper.table2.papers_table import capacities_table, claims_of_the_paper, flops_by_rule
from transduce_paper.table3.claims import TESTED_BY, claims_on_rows, deciding_rows, rows_at_their_best
from transduce_paper.table3.effects import bleu_of, effect_on_perplexity, is_as_in_the_paper
from transduce_paper.table3.effects_table import effects_table
from transduce_paper.table3.longer_runs import Rows, twice_as_long
from transduce_paper.table3.parameters import claim_on_the_vocabulary
from transduce_paper.table3.rows import row_records
from transduce_paper.table4 import _claims_of_the_paper as parsing_claims
from transduce_paper.training_curves import ValidationPoint

COMMITTED = Path(__file__).parents[2] / "paper" / "reports"


@pytest.mark.parametrize(("is_so", "verdict"), [(True, "agrees"), (False, "does not"), (None, "cannot tell")])
def test_agreement(is_so: bool | None, verdict: str) -> None:
    assert agreement(is_so) == verdict


def test_the_page_lists_every_claim_and_counts_verdicts(tmp_path: Path) -> None:
    claims = (
        Claim("attention is all you need", "title", "cannot tell", "One cannot know."),
        Claim("h | 8", "section 3", "agrees", "It has 8 heads.", "by construction"),
        Claim("bigger is better", "section 6", "agrees", "2 of 2."),
    )
    reports = {
        "table9": Report("Table 9", (), claims=claims, name="table9"),
        "figure9": Report("Figure 9", (), name="figure9"),
    }
    path = write_claims(reports, tmp_path, scale="cpu")
    text = path.read_text(encoding="utf-8")
    assert path.name == "claims.md"
    counts = "Measured: 1 agrees, 1 cannot tell; arithmetic: none; algebra: none; by construction: 1 agrees."
    assert f"**3 claims. {counts}**" in text
    rows = [line for line in text.splitlines() if line.startswith("| “")]
    assert len(rows) == 3
    assert rows[1].split(" | ")[1:5] == ["section 3", "by construction", "agrees", "It has 8 heads."]
    assert "h \u2223 8" in rows[1]
    assert all("[table9](table9.md)" in row for row in rows)
    ours = write_claims(
        {"figure9": Report("Figure 9", (), claims=(replace(claims[0], is_quoted=False),), name="figure9")},
        tmp_path,
        scale="cpu",
    )
    assert "| attention is all you need |" in ours.read_text(encoding="utf-8")


def test_claims_of_reports_without_training(tmp_path: Path) -> None:
    """Figures 1 and 2 and table 1 decide each of their claims, at any size."""
    experiments = Experiments(tmp_path / "runs", tmp_path / "work", scale="test")
    for name, least in (("figure1", 10), ("figure2", 2), ("table1", 6)):
        claims = ARTEFACTS[name](experiments, Request()).claims
        assert len(claims) >= least
        assert all(claim.found.endswith(".") or name == "figure1" for claim in claims)
    of_figure1 = ARTEFACTS["figure1"](experiments, Request()).claims
    assert {claim.verdict for claim in of_figure1} == {"agrees"}


def records_of_table_3(scale: Scale) -> dict[str, list[RunRecord]]:
    experiments = Experiments(COMMITTED / "runs", COMMITTED / "work", scale=scale)
    return row_records(experiments, list(PRINTED.table3), jobs=1)


def deciding_of(rows: Rows, later: Rows | None = None) -> set[str]:
    return set(deciding_rows(rows, rows_at_their_best(rows), later))


def claims_of(rows: Rows, deciding: Set[str]) -> tuple[Claim, ...]:
    return claims_on_rows(rows, deciding, rows_at_their_best(rows))


def test_rows_that_are_not_trained_to_the_end_decide_nothing() -> None:
    """At cpu scale only the end was validated; at gpu scale, the row without dropout had its best at a high rate."""
    assert deciding_of(records_of_table_3("cpu")) == set()
    records = records_of_table_3("gpu")
    assert records["D-drop0"][0].overfits
    assert deciding_of(records) == set()
    cost, *claims = claims_of(records, set())
    assert (cost.kind, cost.verdict) == ("algebra", "agrees")
    assert {claim.verdict for claim in claims} == {"not trained to the end"}


def test_a_row_that_overfits_decides_by_the_best_of_several_lengths() -> None:
    records = records_of_table_3("gpu")
    records["D-drop0"] = [replace(records["D-drop0"][0], updates=500, dev_perplexity=12.0, last_fall=0.02)]
    assert deciding_of(records) == {"D-drop0"}
    claims = {claim.sentence: claim.verdict for claim in claims_of(records, {"D-drop0"})}
    assert claims["dropout is very helpful in avoiding over-fitting"] == "agrees"


def test_a_row_of_several_seeds_is_trained_to_the_end_by_their_mean() -> None:
    records = records_of_table_3("gpu")
    bases, row = records["base"], replace(records["C-N8"][0], dev_perplexity=2 * records["base"][0].dev_perplexity)
    for falls, is_trained in (((0.003, 0.002, 0.007), True), ((0.003, 0.008), False), ((0.001, None), False)):
        seeds = [replace(row, last_fall=fall) for fall in falls]
        assert are_trained_to_the_end(seeds) is is_trained
        assert ("C-N8" in deciding_of({"base": bases, "C-N8": seeds})) is is_trained


def test_pages_say_how_long_runs_took_and_whether_they_are_trained_to_the_end() -> None:
    run = records_of_table_3("gpu")["C-N8"][0]
    ends = [replace(run, minutes=minutes, last_fall=fall) for minutes, fall in ((1.2, 0.001), (3.6, 0.02), (2.0, None))]
    assert about_runs(ends) == "Training took 1 to 4 minutes a run. 1 of 3 are trained to the end."
    not_known = "Training took 2 minutes a run. Their records do not tell whether they are trained to the end."
    assert about_runs(ends[2:]) == not_known


def test_no_effect_needs_both_models_trained_to_the_end() -> None:
    """The better one could still leave the bound."""
    records = records_of_table_3("gpu")
    base = [replace(each, last_fall=0.001) for each in records["base"]]
    learned = replace(records["E-learned"][0], dev_perplexity=base[0].dev_perplexity)
    for last_fall, decides in ((0.02, False), (0.001, True)):
        rows = {**records, "base": base, "E-learned": [replace(learned, last_fall=last_fall)]}
        (claim,) = (each for each in claims_of(rows, {"E-learned"}) if each.where == "section 6.2 (E)")
        assert (claim.verdict != "not trained to the end") is decides


def test_no_effect_decides_only_if_the_interval_is_within_the_bound() -> None:
    """Seeds of 0.15 apart cannot tell an equal row from one that is 2 % better; with 0.01 they can."""
    base, row = (replace(records_of_table_3("gpu")[name][0], last_fall=0.001) for name in ("base", "C-ff1024"))
    for apart, decides in ((0.15, False), (0.01, True)):
        seeds = [replace(base, dev_perplexity=5.0 + apart * n) for n in range(3)]
        rows = {"base": seeds, "C-ff1024": [replace(row, dev_perplexity=seeds[1].dev_perplexity)]}
        assert effect_on_perplexity("C-ff1024", rows) == "paper only"
        assert ("C-ff1024" in deciding_of(rows)) is decides


def test_a_row_without_an_effect_is_as_in_the_paper_only_if_it_is_equal() -> None:
    records = records_of_table_3("gpu")
    assert effect_on_perplexity("E-learned", records) == "ours only"
    for apart, is_so in ((1.0, False), (0.01, True)):
        seeds = [replace(each, dev_perplexity=5.0 + apart * n) for n, each in enumerate(records["base"])]
        learned = replace(seeds[2], dev_scores=records["base"][2].dev_scores)
        assert effect_on_perplexity("E-learned", {"base": seeds, "E-learned": [learned]}) == "none in either"
        same = [replace(each, dev_scores=seeds[0].dev_scores) for each in (*seeds, learned)]
        assert is_as_in_the_paper("E-learned", {"base": same[:-1], "E-learned": same[-1:]}) is is_so


def test_bleu_is_compared_with_the_best_number_of_heads() -> None:
    records = {
        name: [replace(each, last_fall=0.0) for each in runs] for name, runs in records_of_table_3("gpu").items()
    }
    claim = claims_of(records, set())[1]
    assert "One head has 34.41 BLEU, the best other number of heads (A-h4) 34.64" in claim.found
    assert claim.verdict == "cannot tell"


def test_an_untrained_row_decides_only_what_more_training_would_confirm() -> None:
    records = records_of_table_3("gpu")
    base, row = (records[name][0] for name in ("base", "C-N8"))
    trained, learning = ([replace(each, last_fall=fall) for each in records["base"]] for fall in (0.001, 0.02))
    worse, better = replace(row, dev_perplexity=2 * base.dev_perplexity), replace(row, dev_perplexity=1.0)
    for of_row, of_base, decides in (
        (replace(worse, last_fall=0.02), trained, False),  # it may yet overtake base
        (replace(better, last_fall=0.02), trained, True),
        (replace(worse, last_fall=-0.1), learning, False),  # its best was at a high rate
        (replace(worse, last_fall=-0.1, updates=500), learning, True),
        (replace(better, last_fall=0.0), learning, False),
        (replace(worse, last_fall=None), trained, False),
        (replace(worse, last_fall=0.004), trained, True),
    ):
        assert ("C-N8" in deciding_of({"base": of_base, "C-N8": [of_row]})) is decides


def test_a_model_that_has_not_learned_to_translate_decides_nothing() -> None:
    """With less than half of base's BLEU; trained to the end, its perplexity would be an effect."""
    base, row = (replace(records_of_table_3("gpu")[name][0], last_fall=0.001) for name in ("base", "big"))
    scores = {"sacrebleu": {"score": 0.49 * bleu_of(base)}}
    for of_row, effect in ((row, "opposite"), (replace(row, dev_scores=scores), "not learned")):
        rows = {"base": [base, replace(base, dev_perplexity=base.dev_perplexity + 0.01)], "big": [of_row]}
        assert effect_on_perplexity("big", rows) == effect
        assert ("big" in deciding_of(rows)) is (effect == "opposite")


def test_an_effect_that_twice_the_updates_would_not_turn_decides() -> None:
    """Both still learn, and the row is behind by more than it can expect to gain."""
    base, row = (records_of_table_3("gpu")[name][0] for name in ("base", "C-N8"))
    bases = [replace(base, dev_perplexity=each, last_fall=0.02) for each in (5.0, 5.01)]
    row = replace(row, dev_perplexity=6.0, last_fall=0.02)
    rows = {"base": bases, "C-N2": [row]}
    earlier = {"base": [curve(30.0, 5.5, 5.0), curve(30.0, 5.51, 5.01)], "C-N2": [curve(40.0, 6.6, 6.0)]}
    assert deciding_of(rows) == set()
    at_best = rows_at_their_best(rows)
    assert deciding_rows(rows, at_best, twice_as_long(rows, earlier)) == {"C-N2": "yes, by the estimate"}
    slow = twice_as_long(rows, {**earlier, "C-N2": [curve(40.0, 8.0, 6.0)]})  # 4.5 after as many again
    assert deciding_of(rows, slow) == set()
    overfitted = {**rows, "C-N2": [replace(row, last_fall=-0.1)]}
    assert deciding_of(overfitted, twice_as_long(overfitted, earlier)) == set()
    at_best = rows_at_their_best(overfitted, {"C-N2"})  # whichever length is the best
    assert at_best == {"C-N2"}
    assert deciding_rows(overfitted, at_best) == {"C-N2": "yes"}


def test_sentences_on_a_row_that_overfits_wait_for_other_lengths() -> None:
    """Label smoothing: more perplexity without it decides nothing if its best checkpoint was at a high rate."""
    records = records_of_table_3("gpu")
    base = [replace(each, last_fall=0.001) for each in records["base"]]
    without = replace(records["D-smooth0"][0], dev_perplexity=2 * base[0].dev_perplexity, last_fall=-0.1)
    rows = {**records, "base": base, "D-smooth0": [without]}
    for lengths, verdict in ((set[str](), "not trained to the end"), ({"D-smooth0"}, "does not")):
        claims = claims_on_rows(rows, set(), rows_at_their_best(rows, lengths))
        of_perplexity = next(each for each in claims if each.sentence.startswith("[label smoothing] hurts"))
        assert of_perplexity.verdict == verdict


def curve(*perplexities: float) -> list[ValidationPoint]:
    return [ValidationPoint(100 * n, 0, 0.0, each, None) for n, each in enumerate(perplexities, start=1)]


def test_some_rows_test_their_own_sentences() -> None:
    records = records_of_table_3("gpu")
    rows = {name: records[name] for name in ("base", "A-h32", "D-smooth0")}
    sentences = [claim.sentence for claim in claims_of(rows, set())]
    assert len(sentences) == 3
    assert sentences[0] == "quality also drops off with too many heads"
    assert all("label smoothing" in each for each in sentences[1:])


def test_of_a_sentence_in_several_reports_the_first_counts(tmp_path: Path) -> None:
    claims = [Claim("it is tested twice", "section 1", each, "What came out.") for each in ("agrees", "does not")]
    other = Claim("another one", "section 1", "agrees", "What came out.")
    reports = {
        "hours/table3-rows": Report("rows", (), claims=(claims[0],), name="table3-rows"),
        "gpu/table3": Report("all", (), claims=(claims[1], other), name="table3"),
    }
    page = write_claims(reports, tmp_path, scale="cpu").read_text(encoding="utf-8")
    assert page.count("it is tested twice") == 1
    assert "2 claims. Measured: 2 agrees;" in page


def test_claims_of_table_3_follow_from_the_effects() -> None:
    """With every row trained to the end, verdicts are those of the effects."""
    records = {
        name: [replace(each, last_fall=0.0) for each in of_row] for name, of_row in records_of_table_3("gpu").items()
    }
    table = effects_table(records, list(records), {}, set())
    effects = dict(zip(table.column("row"), table.column("PPL's effect"), strict=True))
    claims = {claim.sentence: claim.verdict for claim in claims_of(records, deciding_of(records))}
    assert len(claims) == len(TESTED_BY) + 5
    for sentence, _, names in TESTED_BY:
        assert set(names) <= set(PRINTED.table3)
        of_rows = {effects[name] for name in names}
        if of_rows <= {"as in the paper", "none in either"}:
            assert claims[sentence] == "agrees"
        elif of_rows & {"opposite", "ours only"}:
            assert claims[sentence] == "does not"
        else:
            assert claims[sentence] == "cannot tell"
    assert claims["as expected, bigger models are better"] == "does not"  # N = 8 and big learn slowly


# ---- the paper's own numbers in table 2


def test_flops_of_the_paper_by_its_rule() -> None:
    assert PRINTED.tflops == {"K80": 2.8, "K40": 3.7, "M40": 6.0, "P100": 9.5}
    of_base, of_big = (PRINTED.table2[f"Transformer ({size})"].trained for size in ("base", "big"))
    assert of_base is not None
    assert of_big is not None
    assert flops_by_rule(of_base) == pytest.approx(3.283e18, rel=1e-3)
    assert flops_by_rule(of_big) == pytest.approx(2.298e19, rel=1e-3)


def test_gpu_days_of_the_printed_flops() -> None:
    table = capacities_table()
    rows = {(row[0], row[1]): dict(zip(table.columns, row, strict=True)) for row in table.rows}
    assert rows[("Transformer (big)", "en-de")]["P100, 9.5 TFLOPS"] == pytest.approx(28, rel=0.01)  # 3.5 days on 8
    assert rows[("MoE", "en-fr")]["K40, 3.7 TFLOPS"] == pytest.approx(1.2e20 / 3.7e12 / 86_400)
    n_printed = sum((row.flops_de is not None) + (row.flops_fr is not None) for row in PRINTED.table2.values())
    assert len(rows) == n_printed


def test_claims_that_the_paper_decides_by_itself() -> None:
    quarter = next(claim for claim in claims_of_the_paper() if "1/4" in claim.sentence)
    assert quarter.verdict == "agrees"
    assert "0.19" in quarter.found  # 2.3e19 of 1.2e20
    assert {claim.verdict for claim in claims_of_the_paper()} == {"agrees"}


def test_claims_that_the_other_tables_decide_by_themselves() -> None:
    exception, berkeley = parsing_claims()
    assert (exception.verdict, berkeley.verdict) == ("does not", "agrees")
    assert "Luong et al. (2015) has 93.0" in exception.found
    vocabulary = claim_on_the_vocabulary()
    assert vocabulary.verdict == "does not"
    assert "63.0 million parameters, in Table 3 65" in vocabulary.found
    assert "all rows but big: 41,004 to 41,208" in vocabulary.found


def test_a_report_has_no_claims_unless_it_lists_them() -> None:
    assert Report("Table 9", (Table("", ("a",), ()),), name="table9").claims == ()

"""Cleaning of any text at all: every count adds up, what is kept is in order, and cleaning again changes nothing."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from transduce.corpora.cleaning import CleaningReport, CleaningRules, clean

# Few kinds of character, so that blanks, duplicates and identical sides come up often; some are no text.
LINES = st.text(alphabet="ab \t\0\x85\x93é\u2028\udce9", max_size=30)
PAIRS = st.lists(st.none() | st.tuples(LINES, LINES), max_size=40)  # None: a line without two columns
Pairs = list[tuple[str, str] | None]
RULES = st.builds(
    CleaningRules,
    max_characters=st.integers(1, 30),
    max_length_ratio=st.floats(1, 10),
    ratio_floor=st.integers(1, 5),
    drop_identical=st.booleans(),
    drop_duplicates=st.booleans(),
)


@given(PAIRS, RULES)
def test_every_count_adds_up_at_every_moment(pairs: Pairs, rules: CleaningRules) -> None:
    report = CleaningReport()
    kept = []
    for pair in clean(pairs, rules, report):
        kept.append(pair)
        assert report.n_kept == len(kept)
        assert report.n_read == report.n_kept + report.n_dropped
        assert pairs[report.n_read - 1] is pair
    assert report.n_read == len(pairs) == report.n_kept + report.n_dropped
    for tally in [*report.dropped.values(), *report.noticed.values()]:
        assert len(tally.first_lines) == min(tally.count, 3)
        assert tally.first_lines == sorted(set(tally.first_lines))
        assert all(1 <= line <= len(pairs) for line in tally.first_lines)


@given(PAIRS, RULES)
def test_what_is_kept_obeys_the_rules(pairs: Pairs, rules: CleaningRules) -> None:
    kept = [(src.strip(), tgt.strip()) for src, tgt in clean(pairs, rules, CleaningReport())]
    for src, tgt in kept:
        shorter, longer = sorted((len(src), len(tgt)))
        assert 1 <= shorter <= longer <= rules.max_characters
        assert longer <= rules.max_length_ratio * max(shorter, rules.ratio_floor)
        assert not set("\udce9\x93\0") & set(src + tgt)
        assert not (rules.drop_identical and src == tgt)
    assert not rules.drop_duplicates or len(set(kept)) == len(kept)


@given(PAIRS, RULES)
def test_duplicates_are_counted_exactly(pairs: Pairs, rules: CleaningRules) -> None:
    report = CleaningReport()
    kept = [(src.strip(), tgt.strip()) for src, tgt in clean(pairs, rules, report)]
    n_copies = report.dropped["duplicate"].count + report.noticed["duplicate"].count
    assert n_copies == len(kept) + report.dropped["duplicate"].count - len(set(kept))
    assert report.dropped["duplicate"].count == 0 or rules.drop_duplicates


@given(PAIRS, RULES)
def test_cleaning_again_drops_nothing(pairs: Pairs, rules: CleaningRules) -> None:
    once = list(clean(pairs, rules, CleaningReport()))
    report = CleaningReport()
    assert list(clean(once, rules, report)) == once
    assert report.n_dropped == 0

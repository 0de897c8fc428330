"""Processors against repetition and short outputs, compared with their definitions token by token."""

from __future__ import annotations

from collections.abc import Callable

import torch
from hypothesis import given
from hypothesis import strategies as st

from transduce.search import Chain, LogProbsProcessor, MinLength, NoLoops, NoRepeatNgrams, Prefixes, n_repeats

BOS, EOS, N_TOKENS = 1, 2, 6
OUTPUTS = st.lists(st.integers(3, N_TOKENS - 1), max_size=14)


def blocked(process: LogProbsProcessor, *outputs: list[int]) -> list[set[int]]:
    """The tokens that a processor forbids after each of some outputs of equal length."""
    ids_NT = torch.tensor([[BOS, *ids] for ids in outputs])
    n_rows = len(outputs)
    prefixes = Prefixes(torch.arange(n_rows), ids_NT, torch.ones(n_rows, dtype=torch.bool))
    log_probs_NV = torch.full((n_rows, N_TOKENS), 0.5).log()
    log_probs_NV[:, 0] = -torch.inf  # what is impossible stays so
    processed_NV = process(log_probs_NV.clone(), prefixes)
    assert ((processed_NV == log_probs_NV) | (processed_NV == -torch.inf)).all()
    return [set(row.nonzero().flatten().tolist()) - {0} for row in processed_NV == -torch.inf]


def forbidden(ids: list[int], is_allowed: Callable[[list[int]], bool]) -> set[int]:
    return {token for token in range(1, N_TOKENS) if not is_allowed([*ids, token])}


@given(ids=OUTPUTS, n=st.integers(1, 5))
def test_no_ngram_occurs_twice(ids: list[int], n: int) -> None:
    def is_new_at_the_end(output: list[int]) -> bool:
        grams = [output[start : start + n] for start in range(len(output) - n + 1)]
        return not grams or grams[-1] not in grams[:-1]

    assert blocked(NoRepeatNgrams(n), ids) == [forbidden(ids, is_new_at_the_end)]


@given(rows=st.lists(OUTPUTS, min_size=1, max_size=3), limits=st.lists(st.integers(1, 3), min_size=1, max_size=4))
def test_no_unit_follows_itself_too_often(rows: list[list[int]], limits: list[int]) -> None:
    length = min(map(len, rows))
    rows = [ids[:length] for ids in rows]
    all_limits = [[limit + number for limit in limits] for number in range(len(rows))]  # each sentence has its own

    def is_no_loop(output: list[int], limits: list[int]) -> bool:
        for unit, limit in enumerate(limits, start=1):
            copies = output[-unit:] * (limit + 1)
            if len(output) >= len(copies) and output[-len(copies) :] == copies:
                return False
        return True

    expected = [
        forbidden(ids, lambda output, limits=limits: is_no_loop(output, limits))  # type: ignore[misc]
        for ids, limits in zip(rows, all_limits, strict=True)
    ]
    assert blocked(NoLoops(all_limits), *rows) == expected


@given(ids=OUTPUTS, unit=st.integers(1, 4))
def test_repeats_are_counted(ids: list[int], unit: int) -> None:
    expected = max(
        (n for n in range(1, len(ids) + 2) for start in range(len(ids)) if _copies(ids, start, unit, n)), default=1
    )
    assert n_repeats(ids, unit) == expected


def _copies(ids: list[int], start: int, unit: int, n: int) -> bool:
    return start + n * unit <= len(ids) and ids[start : start + n * unit] == ids[start : start + unit] * n


def test_a_short_output_does_not_end() -> None:
    process = MinLength(2, eos_id=EOS)
    assert [blocked(process, ids) for ids in ([], [3], [3, 4], [3, 4, 5])] == [[{EOS}], [{EOS}], [set()], [set()]]


def test_processors_one_after_the_other() -> None:
    process = Chain([MinLength(3, eos_id=EOS), NoRepeatNgrams(1)])
    assert blocked(process, [3, 4]) == [{EOS, 3, 4}]

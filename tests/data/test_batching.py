import time

import numpy as np
import pytest
from numpy.typing import NDArray

from said import naming
from transduce.data import batch_statistics, plan_batches, plan_by_length
from transduce.errors import DataError


def lengths_like_a_corpus(n_pairs: int) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    random = np.random.default_rng(5)
    src = np.clip(random.lognormal(3.0, 0.6, n_pairs), 2, 200)
    tgt = np.clip(src * random.lognormal(0.05, 0.2, n_pairs), 2, 250)
    return src.astype(np.int32), tgt.astype(np.int32)


def contents(batches: list[NDArray[np.int64]]) -> list[tuple[int, ...]]:
    return [tuple(sorted(batch.tolist())) for batch in batches]


def test_the_longer_side_bounds_the_batch() -> None:
    src, tgt = np.array([2, 2, 2, 2]), np.array([5, 5, 5, 5])
    batches = plan_batches(src, tgt, max_tokens=10, seed=1, epoch=0)
    assert sorted(map(len, batches)) == [2, 2]
    assert sorted(map(len, plan_batches(tgt, src, max_tokens=10, seed=1, epoch=0))) == [2, 2]


def test_a_budget_is_used_to_its_last_token() -> None:
    lengths = np.full(12, 3)
    assert [len(batch) for batch in plan_batches(lengths, lengths, max_tokens=36, seed=1, epoch=0)] == [12]
    assert sorted(len(batch) for batch in plan_batches(lengths, lengths, max_tokens=35, seed=1, epoch=0)) == [1, 11]


def test_seeds_and_epochs_give_other_batches_in_another_order() -> None:
    src, tgt = lengths_like_a_corpus(5000)
    plans = [plan_batches(src, tgt, max_tokens=500, seed=s, epoch=e) for s, e in [(1, 0), (1, 1), (2, 0), (0, 1)]]
    for n, one in enumerate(plans):
        for other in plans[n + 1 :]:
            assert set(contents(one)) != set(contents(other))
            longest = [[int(src[batch].max()) for batch in plan] for plan in (one, other)]
            assert longest[0] != longest[1]


def test_batches_do_not_come_in_order_of_length() -> None:
    src, tgt = lengths_like_a_corpus(5000)
    longest = [int(src[batch].max()) for batch in plan_batches(src, tgt, max_tokens=500, seed=1, epoch=0)]
    assert abs(np.corrcoef(longest, np.arange(len(longest)))[0, 1]) < 0.2


def test_little_of_a_batch_is_padding_on_either_side() -> None:
    src, tgt = lengths_like_a_corpus(50_000)
    statistics = batch_statistics(src, tgt, plan_batches(src, tgt, max_tokens=4096, seed=1, epoch=0))
    assert 1 - statistics.n_src_tokens / statistics.n_src_positions < 0.10
    assert 1 - statistics.n_tgt_tokens / statistics.n_tgt_positions < 0.10
    assert statistics.padding_fraction < 0.07


def test_a_long_pair_is_named_with_what_would_work() -> None:
    src, tgt = np.array([4, 12, 3]), np.array([4, 7, 1300])
    message = naming("row 1", "12 source", "7 target", 10, "max_tokens_per_batch", "1,300", "max_length", 10)
    with pytest.raises(DataError, match=message):
        plan_batches(src, tgt, max_tokens=10, seed=1, epoch=0)


def test_nothing_makes_no_batches() -> None:
    nothing = np.array([], dtype=np.int32)
    assert plan_batches(nothing, nothing, max_tokens=10, seed=1, epoch=0) == []
    assert plan_by_length([], max_tokens=10) == []


def test_planning_does_not_loop_over_rows() -> None:
    src, tgt = lengths_like_a_corpus(300_000)
    started = time.process_time()
    plan_batches(src, tgt, max_tokens=25_000, seed=1, epoch=0)
    assert time.process_time() - started < 1.5  # about 0.1 s; a loop over rows takes seconds

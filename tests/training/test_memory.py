"""Peak memory, free memory, and the error of a run that does not fit."""

from __future__ import annotations

import gc
import re
import sys
from pathlib import Path

import pytest
import torch

from forks import Forks
from said import naming
from transduce.config import ModelConfig, TrainingConfig
from transduce.data import PairBatches
from transduce.errors import TrainingError
from transduce.memory import free_bytes, is_out_of_memory
from transduce.model import Transformer
from transduce.tasks import open_prepared
from transduce.tasks.objective import PairObjective
from transduce.training import DistributedContext, make_optimiser, memory_preflight
from transduce.training.gradients import GradientAccumulator
from transduce.training.memory import LinearFit, PeakMemory

pytestmark = pytest.mark.reliability


def test_the_peak_counts_what_is_alive_together() -> None:
    with PeakMemory() as peak:
        a = torch.ones(1000)  # 4,000 bytes
        b = a * 2  # 8,000
        view = b.view(10, 100)  # allocates nothing
        view.add_(1)
        del a
        c = b + 1  # 8,000 again
        del b, view
        d = c.to(torch.float64)  # 12,000
    assert peak.bytes == 12_000
    del c, d


def test_a_backward_pass_holds_what_the_forward_pass_has_kept() -> None:
    weight = torch.ones(100, 100, requires_grad=True)
    with PeakMemory() as peak:
        x = weight.exp().exp().exp()
        x.sum().backward()
    assert 3 * 40_000 <= peak.bytes <= 7 * 40_000
    del x
    gc.collect()


def accumulator(micro_run: Path, **settings: float) -> tuple[GradientAccumulator[object], torch.optim.Optimizer]:
    prepared = open_prepared(micro_run / "store")
    size = prepared.tokenizers.src.size
    config = TrainingConfig(max_tokens_per_batch=3000, **settings)  # type: ignore[arg-type]
    model = Transformer(
        ModelConfig(n_encoder_layers=2, n_decoder_layers=2, d_model=64, d_ff=128, n_heads=4, d_k=16, d_v=16,
                    src_vocab_size=size, tgt_vocab_size=size)
    )  # fmt: skip
    batches = PairBatches(prepared.train, max_tokens=3000, seed=1, device=torch.device("cpu"))
    gradients = GradientAccumulator(model, PairObjective(model, config), batches, config, DistributedContext())
    return gradients, make_optimiser(model, config)  # type: ignore[return-value]


def test_the_preflight_needs_the_memory_of_r_drop_that_starts_later(micro_run: Path) -> None:
    peaks = []
    for settings in ({}, {"r_drop": 1.0, "r_drop_after": 50}):
        gradients, optimiser = accumulator(micro_run, **settings)
        with PeakMemory() as peak, pytest.MonkeyPatch.context() as patch:
            patch.setattr(memory_preflight, "_require_memory", lambda *arguments: None)
            memory_preflight.memory_preflight(gradients, optimiser, epoch=0)
        peaks.append(peak.bytes)
    assert peaks[1] > 1.5 * peaks[0]


def test_the_estimate_from_small_parts_is_near_the_truth(micro_run: Path) -> None:
    gradients, _ = accumulator(micro_run)
    for index in gradients.batches.largest(0):
        line = LinearFit.from_points(
            *[memory_preflight._measure(gradients, (0, index), n_parts) for n_parts in memory_preflight.MEASURED_PARTS]
        )
        with PeakMemory() as peak:
            gradients.accumulate([(0, index)], update=0)
        estimate = line.predict(gradients.batches.n_rows(0, index)) + gradients.gradient_bytes
        assert 0.9 * peak.bytes <= estimate <= 1.4 * peak.bytes


def test_too_little_memory_is_told_before_the_first_update_with_a_budget_that_fits(
    micro_run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gradients, optimiser = accumulator(micro_run)
    index = gradients.batches.largest(0)[0]
    with PeakMemory() as peak:
        gradients.accumulate([(0, index)], update=0)
    gradients.clear()
    monkeypatch.setattr(memory_preflight, "free_bytes", lambda device: peak.bytes // 2)
    with pytest.raises(
        TrainingError, match=naming(re.compile("training.max_tokens_per_batch="), re.compile("n_accumulate="))
    ) as caught:
        memory_preflight.memory_preflight(gradients, optimiser, epoch=0)
    budget = int(str(caught.value).split("max_tokens_per_batch=")[1].split()[0])
    assert 300 <= budget <= 1700
    n_accumulate = int(str(caught.value).split("n_accumulate=")[1].split()[0])
    assert budget * n_accumulate >= 3000 > budget * (n_accumulate - 1)
    monkeypatch.setattr(memory_preflight, "free_bytes", lambda device: 10)
    with pytest.raises(TrainingError, match=naming("no batch")):
        memory_preflight.memory_preflight(gradients, optimiser, epoch=0)
    monkeypatch.setattr(memory_preflight, "free_bytes", lambda device: None)  # unknown on this system
    memory_preflight.memory_preflight(gradients, optimiser, epoch=0)


def test_what_is_free_on_this_machine() -> None:
    free = free_bytes(torch.device("cpu"))
    assert free is None or 2**20 < free < 2**50
    assert free_bytes(torch.device("meta")) is None


def test_errors_of_memory_are_known_by_their_words() -> None:
    assert is_out_of_memory(torch.OutOfMemoryError("CUDA out of memory"))
    assert not is_out_of_memory(RuntimeError("shapes differ"))
    with pytest.raises(RuntimeError) as caught:
        torch.empty(2**60, dtype=torch.uint8)
    assert is_out_of_memory(caught.value)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="only glibc is asked")
def test_pages_that_nobody_uses_go_back(forks: Forks) -> None:
    """In a separate process, with a fragmented heap like a trainer's: freed blocks between blocks in use."""
    script = """
import numpy
from transduce.machine_limits import keep_freed_memory
from transduce.training.memory import return_freed_pages

def resident_mb():
    with open("/proc/self/statm") as numbers:
        return int(numbers.read().split()[1]) * 4096 / 1e6

keep_freed_memory()
held = [numpy.ones(1 << 18, dtype=numpy.uint8) for _ in range(400)]
for number in range(0, 400, 2):
    held[number] = None
before = resident_mb()
return_freed_pages()
print(before - resident_mb())
"""
    assert float(forks.run(program=script).stdout) > 30

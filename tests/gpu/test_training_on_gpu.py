"""Training on a GPU: exact resume, and memory that does not suffice. Skipped where there is no GPU."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import pytest
import torch

from said import naming
from transduce.config import DataConfig, ModelConfig, TrainingConfig
from transduce.data import PairBatches
from transduce.errors import TrainingError
from transduce.model import Transformer
from transduce.model.weights_file import read_tensors
from transduce.tasks import Prepared, prepare
from transduce.tasks.objective import PairObjective
from transduce.training import Trainer, checkpoint_folders

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device on this machine"),
]


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Prepared:
    return prepare(DataConfig(n_pairs=2000, vocab_size=1000), tmp_path_factory.mktemp("store") / "store")


def make_trainer(prepared: Prepared, checkpoints: Path, *, d_model: int = 64, **options: Any) -> Trainer[Any]:
    device = torch.device("cuda")
    stop_at = options.pop("stop_at", None)
    config = TrainingConfig(**{"max_updates": 12, "max_tokens_per_batch": 2000, "precision": "bf16", **options})
    torch.manual_seed(1)
    size = prepared.tokenizers.src.size
    model = Transformer(
        ModelConfig(n_encoder_layers=2, n_decoder_layers=2, d_model=d_model, d_ff=128, n_heads=4, d_k=16, d_v=16,
                    src_vocab_size=size, tgt_vocab_size=size)
    ).to(device)  # fmt: skip
    trainer: Trainer[Any] = Trainer(
        model=model,
        objective=PairObjective(model, config),
        batches=PairBatches(prepared.train, max_tokens=config.max_tokens_per_batch, seed=1, device=device),
        learning_rate=lambda step: 1e-3,
        config=config,
        checkpoints=checkpoints,
        should_stop=lambda: stop_at is not None and trainer.state.update >= stop_at,
    )
    return trainer


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_a_stopped_and_resumed_run_has_the_same_bits(prepared: Prepared, tmp_path: Path, precision: str) -> None:
    make_trainer(prepared, tmp_path / "whole", precision=precision).run()
    make_trainer(prepared, tmp_path / "cut", precision=precision, stop_at=5).run()
    resumed = make_trainer(prepared, tmp_path / "cut", precision=precision)
    resumed.resume(checkpoint_folders(tmp_path / "cut")[-1])
    resumed.run()
    for name in ("model.safetensors", "optimizer.safetensors"):
        expected = read_tensors(checkpoint_folders(tmp_path / "whole")[-1] / name)
        for key, tensor in read_tensors(checkpoint_folders(tmp_path / "cut")[-1] / name).items():
            assert torch.equal(tensor, expected[key]), key


def test_what_does_not_fit_says_so_before_the_first_update(prepared: Prepared, tmp_path: Path) -> None:
    trainer = make_trainer(prepared, tmp_path, max_tokens_per_batch=20_000)
    total = torch.cuda.get_device_properties(0).total_memory
    torch.cuda.set_per_process_memory_fraction((torch.cuda.memory_reserved() + (8 << 20)) / total)
    try:
        with pytest.raises(TrainingError, match=naming("first update", "training.max_tokens_per_batch=10000")):
            trainer.run()
    finally:
        torch.cuda.set_per_process_memory_fraction(1.0)


# tests/training/test_host_syncs.py counts the same on a CPU, by place.
MAX_WAITS_OF_AN_UPDATE = 12


def test_an_update_waits_for_the_gpu_only_a_few_times(prepared: Prepared, tmp_path: Path) -> None:
    trainer = make_trainer(prepared, tmp_path)
    for update in range(3):  # the first ones allocate
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            torch.cuda.set_sync_debug_mode("warn")
            try:
                trainer.accumulator.accumulate([(0, update)], update=update)
                trainer.optimiser.step()
            finally:
                torch.cuda.set_sync_debug_mode("default")
    waits = [warning for warning in seen if "synchroniz" in str(warning.message)]
    assert 0 < len(waits) <= MAX_WAITS_OF_AN_UPDATE

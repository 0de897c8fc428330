"""A training step with compiled layers (``torch.compile``): the same loss and gradients, in few graphs.

Dropout is off: its masks depend on the order of random numbers, and on a CPU they come from NumPy. Attention is the
kernel that a GPU would use.
"""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from transduce.config import DataConfig, ModelConfig, TrainingConfig
from transduce.data import Batch, PairBatches
from transduce.model import Transformer
from transduce.tasks import prepare
from transduce.tasks.objective import PairObjective
from transduce.training import Trainer

pytestmark = pytest.mark.merge
N_BATCHES = 12


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> PairBatches:
    prepared = prepare(DataConfig(n_pairs=300, vocab_size=300), tmp_path_factory.mktemp("store") / "store")
    return PairBatches(prepared.train, max_tokens=600, seed=1, device=torch.device("cpu"))  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def batches(source: PairBatches) -> list[Batch]:
    """Batches of many shapes."""
    found = [source.batch(0, index) for index in range(N_BATCHES)]
    assert len({batch.src_BS.shape for batch in found}) > N_BATCHES // 2
    return found


@pytest.fixture
def counters() -> Iterator[dict[str, Counter[str]]]:
    """What the compiler counts, from the beginning of the test on."""
    from torch._dynamo.utils import counters  # seconds, in each process that collects tests

    torch._dynamo.reset()
    counters.clear()
    yield counters
    torch._dynamo.reset()


def make_model(backend: str | None) -> Transformer:
    """A model whose layers are compiled by a backend, if there is one."""
    torch.manual_seed(3)
    model = Transformer(
        ModelConfig(n_encoder_layers=1, n_decoder_layers=1, d_model=32, d_ff=64, n_heads=2, d_k=16, d_v=16, p_drop=0.0,
                    src_vocab_size=300, tgt_vocab_size=300),
        kernel="fused",
    )  # fmt: skip
    if backend is not None:
        for layer in [*model.encoder, *model.decoder]:
            layer.compile(dynamic=True, backend=backend)
    return model


def losses_and_gradients(batches: list[Batch], backend: str | None) -> list[torch.Tensor]:
    """The loss of each batch, and the gradients of all weights summed over them."""
    model = make_model(backend)
    objective = PairObjective(model, TrainingConfig())
    found = []
    for update, batch in enumerate(batches):
        loss = objective(batch, update)
        loss.loss_nats.backward()  # type: ignore[no-untyped-call]
        found.append(loss.loss_nats.detach())
    return found + [weight.grad for weight in model.parameters() if weight.grad is not None]


def require_same(batches: list[Batch], backend: str) -> None:
    expected, compiled = losses_and_gradients(batches, None), losses_and_gradients(batches, backend)
    for ours, value in zip(compiled, expected, strict=True):
        torch.testing.assert_close(ours, value, rtol=1e-4, atol=1e-3)


# Tracing reads attributes that warn, and a warning as an error would end it.
@pytest.mark.filterwarnings("ignore")
def test_traced_layers_compute_the_same_in_few_graphs(batches: list[Batch], counters: dict[str, Counter[str]]) -> None:
    require_same(batches, "aot_eager")
    assert not counters["graph_break"]
    # Torch compiles a function for at most this many kinds of arguments; more of them run uncompiled.
    assert 0 < counters["stats"]["unique_graphs"] < torch._dynamo.config.recompile_limit


@pytest.mark.filterwarnings("ignore")
def test_training_compiles_layers_after_the_memory_preflight(
    source: PairBatches, counters: dict[str, Counter[str]], tmp_path: Path
) -> None:
    config, model = TrainingConfig(max_updates=1, max_tokens_per_batch=600), make_model("aot_eager")
    Trainer(
        model=model,
        objective=PairObjective(model, config),
        batches=source,
        learning_rate=lambda step: 1e-3,
        config=config,
        checkpoints=tmp_path / "checkpoints",
    ).run()
    assert counters["stats"]["unique_graphs"] > 0


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("g++") is None, reason="needs a C++ compiler")
@pytest.mark.filterwarnings("ignore")
def test_compiled_layers_compute_the_same(batches: list[Batch], counters: dict[str, Counter[str]]) -> None:
    require_same(batches[:4], "inductor")
    assert counters["stats"]["unique_graphs"] > 0

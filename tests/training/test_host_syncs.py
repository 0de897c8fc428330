"""How often a training step makes the host wait for the device: each wait lets a GPU run out of work.

Counted on a CPU, where waiting costs nothing, by the operations that would wait on a GPU: reading a value (``item``,
``bool``, ``float``, ``tolist``), results whose shape depends on values (``nonzero``, boolean indices, ...), and copies
between host and device that are not ``non_blocking``.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

import transduce
from transduce.config import DataConfig, ModelConfig, TrainingConfig
from transduce.data import PairBatches
from transduce.model import Transformer
from transduce.tasks import Prepared, prepare
from transduce.tasks.objective import PairObjective
from transduce.training.distributed import DistributedContext
from transduce.training.gradients import GradientAccumulator
from transduce.training.optimiser import make_optimiser

Place = tuple[str, str]  # module and operation

SOURCES = str(Path(transduce.__file__).parent)
# Operations whose result the host needs before it can go on: a value, or the size of the result.
WAITING = {
    "_local_scalar_dense", "_unique", "_unique2", "equal", "is_nonzero", "masked_select", "nonzero",
    "unique_consecutive", "unique_dim",
}  # fmt: skip
INDEXING = {"index", "index_put", "index_put_", "_unsafe_index", "_index_put_impl_"}  # with boolean indices
# Methods of a tensor that copy it between devices; for a CPU tensor they dispatch nothing.
COPYING = {"tolist", "numpy", "cpu", "to"}
# Modules that compute something else on a GPU.
ON_A_CPU_ONLY = {"model/dropout.py"}

# The waits of an update, and no others.
OF_EACH_UPDATE = {
    ("training/distributed.py", "cpu"): 1,  # losses and norm, for the log and to skip an update
    ("training/gradients.py", "tolist"): 1,  # of that copy, so it does not wait
    ("training/gradients.py", "_local_scalar_dense"): 1,  # likewise
}


class _Dispatched(TorchDispatchMode):
    def __init__(self, count: Callable[[str], None]) -> None:
        super().__init__()
        self._count = count

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = func.overloadpacket.__name__
        if name in WAITING:
            self._count(name)
        elif name in INDEXING and any(index is not None and index.dtype == torch.bool for index in args[1]):
            self._count(f"{name} by booleans")
        elif name == "repeat_interleave" and (kwargs or {}).get("output_size") is None:
            self._count(name)
        return func(*args, **(kwargs or {}))


class _Called(TorchFunctionMode):
    def __init__(self, count: Callable[[str], None]) -> None:
        super().__init__()
        self._count = count

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = getattr(func, "__name__", "")
        is_own = sys._getframe(1).f_code.co_filename.startswith((SOURCES, __file__))  # torch's own are no-ops
        if is_own and name in COPYING and (name != "to" or _is_blocking_copy(args, kwargs or {})):
            self._count(name)
        return func(*args, **(kwargs or {}))


def _is_blocking_copy(args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Whether the arguments of ``Tensor.to`` name a device, and the host waits for the copy."""
    devices = [value for value in (*args[1:], *kwargs.values()) if isinstance(value, str | torch.device)]
    return bool(devices) and not kwargs.get("non_blocking", False)


@contextmanager
def counted() -> Iterator[Counter[Place]]:
    """Count what waits in the block, by the module of transduce that asks for it."""
    counts: Counter[Place] = Counter()

    def count(name: str) -> None:
        frame = sys._getframe(1)
        while frame.f_back is not None and not frame.f_code.co_filename.startswith(SOURCES):
            frame = frame.f_back
        module = Path(frame.f_code.co_filename).as_posix().removeprefix(f"{SOURCES}/")
        if module not in ON_A_CPU_ONLY:
            counts[module, name] += 1

    with _Dispatched(count), _Called(count):
        yield counts


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Prepared:
    return prepare(DataConfig(n_pairs=100, vocab_size=300), tmp_path_factory.mktemp("store") / "store")


def waits_of_an_update(prepared: Prepared, model: dict[str, Any] | None = None, **options: Any) -> Counter[Place]:
    """The waits of the third update; attention is the kernel that a GPU would use."""
    config = TrainingConfig(**{"max_tokens_per_batch": 500, "n_accumulate": 1, **options})
    torch.manual_seed(1)
    size = prepared.tokenizers.src.size
    transformer = Transformer(
        ModelConfig(n_encoder_layers=1, n_decoder_layers=1, d_model=16, d_ff=32, n_heads=2, d_k=8, d_v=8,
                    src_vocab_size=size, tgt_vocab_size=size, **(model or {})),
        kernel="fused",
    )  # fmt: skip
    batches = PairBatches(prepared.train, max_tokens=500, seed=1, device=torch.device("cpu"))  # type: ignore[arg-type]
    objective = PairObjective(transformer, config)
    accumulator = GradientAccumulator(transformer, objective, batches, config, DistributedContext())
    optimiser = make_optimiser(transformer, config)
    for update in range(3):
        indices = [(0, config.n_accumulate * update + part) for part in range(config.n_accumulate)]
        with counted() as counts:
            gradient = accumulator.accumulate(indices, update=update)
            optimiser.step()
        assert gradient is not None
        assert gradient.is_finite
    return counts


def test_what_waits_is_seen() -> None:
    x = torch.tensor([1.0, 0.0])
    with counted() as counts:
        assert bool(x.any())
        x.nonzero()
        x[x > 0]
        x[x > 0] = 2.0
        x.tolist()
        x.to("cpu")
        x + 1  # does not wait
        x[torch.tensor([0])]  # nor does this
    by_name = Counter({name: n for (_, name), n in counts.items()})
    assert by_name == {
        "_local_scalar_dense": 1, "nonzero": 1, "index by booleans": 1, "index_put_ by booleans": 1,
        "tolist": 1, "to": 1,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("model", "options"),
    [
        pytest.param({}, {}, id="plain"),
        pytest.param({}, {"clip_norm": 1.0, "precision": "bf16"}, id="clipping-bf16"),
        pytest.param({"norm": "pre"}, {"optimiser": "muon", "weight_decay": 0.1}, id="muon"),
        pytest.param({}, {"r_drop": 5.0}, id="r-drop"),
        pytest.param({}, {"n_accumulate": 3}, id="three-batches"),
    ],
)
def test_an_update_waits_once_at_its_end(prepared: Prepared, model: dict[str, Any], options: dict[str, Any]) -> None:
    assert waits_of_an_update(prepared, model, **options) == OF_EACH_UPDATE

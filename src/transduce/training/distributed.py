"""Distributed training with ``torchrun``: the context of a process, its collectives, and how shards are assigned.

``DistributedContext()`` is a single process; it does not use ``torch.distributed``.

Numbers are exchanged as tensors, other values as JSON through torchrun's store, without a timeout. Nothing is pickled.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import timedelta
from math import gcd
from typing import TYPE_CHECKING, Any

import torch
import torch.distributed as dist
from torch import Tensor

from transduce.errors import ConfigError, PeerError, TrainingError
from transduce.memory import is_out_of_memory

if TYPE_CHECKING:  # not every torch build has it, and one process does not need it
    from torch._C._distributed_c10d import Store

__all__ = ["DistributedContext", "assign_shards", "is_started_by_torchrun", "local_device", "torchrun_context"]

ERROR_KEY = "error"
TIMEOUT = timedelta(minutes=30)  # of tensor collectives
POLL_INTERVAL_S = 0.05
PEER_ERROR_WAIT_S = 5.0  # how long to wait for the error message of a peer that is gone


class DistributedContext:
    """The processes of a run. ``all_gather*`` and ``broadcast_from_first`` are collective: call them on all ranks."""

    def __init__(
        self,
        rank: int = 0,
        n: int = 1,
        n_local: int = 1,
        *,
        store: Store | None = None,
        device: torch.device | None = None,
    ) -> None:
        """``n`` processes, ``n_local`` of them on this machine. The backend sends tensors on ``device``."""
        self.rank, self.n, self.n_local = rank, n, n_local
        self._store, self._device = store, device
        self._n_gathered = 0  # calls of all_gather_json; makes the keys of each call unique

    @property
    def is_first(self) -> bool:
        """Whether this is rank 0, which writes files and logs."""
        return self.rank == 0

    def all_gather(self, values: Tensor) -> Tensor:
        """Gather a vector of the same length from each rank: (n, length), float64 on the CPU."""
        if self.n == 1:
            return values.detach().cpu().double().unsqueeze(0)  # not every device has float64
        own = values.detach().to(self._device).double()
        rows = [torch.empty_like(own) for _ in range(self.n)]
        dist.all_gather(rows, own)
        return torch.stack(rows).cpu()

    def all_gather_json(self, value: Any) -> list[Any]:
        """Gather a JSON value from each rank, in order."""
        if self.n == 1:
            return [value]
        self._put(value, key=f"objects/{self._n_gathered}/{self.rank}")
        gathered = [self._wait_for(f"objects/{self._n_gathered}/{rank}") for rank in range(self.n)]
        if self._n_gathered:  # all ranks have put this value, so all have read the previous one
            self._required_store.delete_key(f"objects/{self._n_gathered - 1}/{self.rank}")
        self._n_gathered += 1
        return gathered

    def broadcast_from_first(self, work: Callable[[], Any]) -> Any:
        """Run ``work`` on rank 0 and return its JSON value on all ranks, which wait without a timeout."""
        if self.n == 1:
            return work()
        return self.all_gather_json(work() if self.is_first else None)[0]

    def report_error(self, error: BaseException) -> None:
        """Report this process's error to the other ranks, unless there is one: the first causes the others."""
        with suppress(RuntimeError):  # the store may be gone, too
            if self._store is not None and not self._store.check([ERROR_KEY]):
                message = str(error) if isinstance(error, Exception) else "it was interrupted"
                self._put({"rank": self.rank, "error": message}, key=ERROR_KEY)

    def peer_error(self) -> str | None:
        """Return the error that another process has reported, if any."""
        with suppress(RuntimeError):
            if self._store is not None and self._store.check([ERROR_KEY]):
                report = json.loads(self._store.get(ERROR_KEY))
                return None if report["rank"] == self.rank else f"process {report['rank']}: {report['error']}"
        return None

    @property
    def _required_store(self) -> Store:
        assert self._store is not None
        return self._store

    def _put(self, value: Any, *, key: str) -> None:
        self._required_store.set(key, json.dumps(value))

    def _wait_for(self, key: str) -> Any:
        """Wait for a key and return its value. Raises PeerError if another process fails meanwhile."""
        store = self._required_store
        while not store.check([key]):
            if (error := self.peer_error()) is not None:
                raise PeerError(f"another process failed: {error}")
            time.sleep(POLL_INTERVAL_S)
        return json.loads(store.get(key))


def is_started_by_torchrun() -> bool:
    """Whether torchrun has started this process and others."""
    n = os.environ.get("WORLD_SIZE", "")
    return n.isdecimal() and int(n) > 1


def local_device(name: str) -> str:
    """Return the device of this process: with torchrun and ``cuda``, each local process gets its own GPU.

    Raises ConfigError if there are fewer GPUs than processes, or if ``name`` is a single GPU.
    """
    if not is_started_by_torchrun() or not name.startswith("cuda"):
        return name
    local_rank = int(os.environ.get("LOCAL_RANK", "0"))
    if name != "cuda":
        raise ConfigError(f"with torchrun each process uses its own GPU; use --device cuda, got {name}")
    if local_rank >= torch.cuda.device_count():
        raise ConfigError(
            f"process {local_rank} of this machine has no GPU: there are {torch.cuda.device_count()}; "
            f"use torchrun --nproc-per-node {torch.cuda.device_count()}, or --device cpu"
        )
    return f"cuda:{local_rank}"


@contextmanager
def torchrun_context(device: str | torch.device) -> Iterator[DistributedContext]:
    """Join the process group of torchrun for the duration of the block; without torchrun, a single process.

    Raises PeerError, with its message, if the block fails because of an error in another process.
    """
    if not is_started_by_torchrun():
        yield DistributedContext()
        return
    device = torch.device(device)
    if device.type == "cuda":
        torch.cuda.set_device(device)
    distributed = _join(device)
    try:
        yield distributed
        _wait_for_all(distributed)
    except BaseException as error:
        if not _is_about_a_peer(error):
            distributed.report_error(error)
            raise
        if (message := _wait_for_peer_error(distributed)) is not None:
            raise PeerError(f"another process failed: {message}") from error
        raise TrainingError(
            "another process is gone without an error message; it may have been killed, for example when out of memory "
            f"(here: {str(error).splitlines()[0]})"
        ) from error
    dist.destroy_process_group()  # not after an error: it would wait for processes that are gone


def _wait_for_all(distributed: DistributedContext) -> None:
    """Wait, without a timeout, until all processes get here.

    The barrier is for gloo's threads: they drop the tensors of a collective some time after it has returned, and abort
    the process (``terminate called``) if the interpreter is ending by then. A barrier has no tensors.
    """
    distributed.all_gather_json(None)
    if dist.get_backend() == "gloo":
        dist.barrier()


def _join(device: torch.device) -> DistributedContext:
    """Join the process group. Raises TrainingError if the rendezvous fails."""
    from torch._C._distributed_c10d import PrefixStore
    from torch.distributed.rendezvous import rendezvous

    try:
        store, rank, n = next(rendezvous("env://"))
        backend = "nccl" if device.type == "cuda" else "gloo"
        dist.init_process_group(backend, store=store, rank=rank, world_size=n, timeout=TIMEOUT)
    except (ValueError, RuntimeError) as error:
        raise TrainingError(
            f"the processes cannot join their group: {str(error).splitlines()[0]}; start them with torchrun"
        ) from error
    n_local = int(os.environ.get("LOCAL_WORLD_SIZE", "1"))
    return DistributedContext(rank, n, n_local=n_local, store=PrefixStore("transduce", store), device=device)


def _is_about_a_peer(error: BaseException) -> bool:
    """Whether a backend raised the error because another process is gone."""
    message = str(error).lower() if isinstance(error, RuntimeError) and not is_out_of_memory(error) else ""
    return any(word in message for word in ("gloo", "nccl", "connection"))


def _wait_for_peer_error(distributed: DistributedContext) -> str | None:
    """Wait for another process to report its error; None if it does not."""
    deadline, message = time.monotonic() + PEER_ERROR_WAIT_S, None
    with suppress(SystemExit):  # torchrun terminates this process meanwhile
        while (message := distributed.peer_error()) is None and time.monotonic() < deadline:
            time.sleep(POLL_INTERVAL_S)
    return message


def assign_shards(n_batches: int, n_processes: int, rank: int) -> Sequence[tuple[int, int, int]]:
    """Assign ``n_batches`` to ranks: (batch, part, number of parts) of each shard of ``rank``.

    Batches are split into as few parts as give every rank the same number of shards, assigned round-robin.

    >>> [assign_shards(4, 2, rank) for rank in range(2)]
    [[(0, 0, 1), (2, 0, 1)], [(1, 0, 1), (3, 0, 1)]]
    >>> [assign_shards(1, 2, rank) for rank in range(2)]
    [[(0, 0, 2)], [(0, 1, 2)]]
    """
    n_parts = n_processes // gcd(n_batches, n_processes)
    return [(shard // n_parts, shard % n_parts, n_parts) for shard in range(rank, n_batches * n_parts, n_processes)]

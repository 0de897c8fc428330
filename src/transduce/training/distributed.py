"""Several processes as one run: which of them this one is, and how they come to agree. Started by ``torchrun`` only.

One process is the plain case: ``DistributedContext()`` agrees with itself, without ``torch.distributed``.

Numbers go between processes as tensors; decisions and words go as JSON through the store that torchrun keeps, where
they wait for readers as long as it takes. Nothing is pickled.
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
from transduce.training.memory import is_out_of_memory

if TYPE_CHECKING:  # not every torch is built with it, and one process needs none of it
    from torch._C._distributed_c10d import Store

__all__ = ["DistributedContext", "assign_shards", "is_started_by_torchrun", "local_device", "torchrun_context"]

ERROR_KEY = "error"
HANG_AFTER = timedelta(minutes=30)  # numbers that one process waits for and no other sends
POLL_S = 0.05
# How long a process whose peers went away looks for the words of the one that failed.
LAST_WORDS_S = 5.0


class DistributedContext:
    """The processes of a run. Every method but the properties is to be called by all of them, in the same order."""

    def __init__(
        self,
        rank: int = 0,
        n: int = 1,
        n_here: int = 1,
        *,
        store: Store | None = None,
        device: torch.device | None = None,
    ) -> None:
        """``n_here``: how many of them share this machine. ``device``: where the backend takes numbers from."""
        self.rank, self.n, self.n_here = rank, n, n_here
        self._store, self._device = store, device
        self._n_said = 0

    @property
    def is_first(self) -> bool:
        """Whether this is the one that writes files and talks."""
        return self.rank == 0

    def all_gather(self, values: Tensor) -> Tensor:
        """One row of numbers from each process, (n, len), float64 on the CPU: (len,) of the same length everywhere."""
        if self.n == 1:
            return values.detach().cpu().double().unsqueeze(0)  # not every device has float64
        mine = values.detach().to(self._device).double()
        rows = [torch.empty_like(mine) for _ in range(self.n)]
        dist.all_gather(rows, mine)
        return torch.stack(rows).cpu()

    def all_gather_json(self, value: Any) -> list[Any]:
        """A JSON value from each process, in their order."""
        if self.n == 1:
            return [value]
        self._say(value, key=f"words/{self._n_said}/{self.rank}")
        gathered = [self._heard(f"words/{self._n_said}/{rank}") for rank in range(self.n)]
        if self._n_said:  # all have said the next word, so all have read the one before
            self._required_store.delete_key(f"words/{self._n_said - 1}/{self.rank}")
        self._n_said += 1
        return gathered

    def broadcast_from_first(self, work: Callable[[], Any]) -> Any:
        """What ``work`` gives in the first process, a JSON value; the others wait for it, however long it takes."""
        if self.n == 1:
            return work()
        return self.all_gather_json(work() if self.is_first else None)[0]

    def report_error(self, error: BaseException) -> None:
        """Leave word for the others of why this process ends."""
        with suppress(RuntimeError):  # the store has gone away, too
            # The first error is the cause of the others.
            if self._store is not None and not self._store.check([ERROR_KEY]):
                words = str(error) if isinstance(error, Exception) else "it was told to stop"
                self._say({"rank": self.rank, "error": words}, key=ERROR_KEY)

    def peer_error(self) -> str | None:
        """Why another process ended, if one has left word."""
        with suppress(RuntimeError):
            if self._store is not None and self._store.check([ERROR_KEY]):
                said = json.loads(self._store.get(ERROR_KEY))
                return None if said["rank"] == self.rank else f"process {said['rank']}: {said['error']}"
        return None

    @property
    def _required_store(self) -> Store:
        assert self._store is not None
        return self._store

    def _say(self, value: Any, *, key: str) -> None:
        self._required_store.set(key, json.dumps(value))

    def _heard(self, key: str) -> Any:
        """Wait for a key. Raises PeerError if another process ends instead."""
        store = self._required_store
        while not store.check([key]):
            if (error := self.peer_error()) is not None:
                raise PeerError(f"another process ended: {error}")
            time.sleep(POLL_S)
        return json.loads(store.get(key))


def is_started_by_torchrun() -> bool:
    """Whether this process is one of several that torchrun has started."""
    n = os.environ.get("WORLD_SIZE", "")
    return n.isdecimal() and int(n) > 1


def local_device(name: str) -> str:
    """The device of this process where ``name`` is that of all: each process of a machine has a GPU of its own.

    Raises ConfigError if there are fewer GPUs than processes, or all are to use the same.
    """
    if not is_started_by_torchrun() or not name.startswith("cuda"):
        return name
    local_rank = int(os.environ.get("LOCAL_RANK", "0"))
    if name != "cuda":
        raise ConfigError(f"with torchrun each process takes a GPU of its own; use --device cuda, got {name}")
    if local_rank >= torch.cuda.device_count():
        raise ConfigError(
            f"process {local_rank} of this machine has no GPU: there are {torch.cuda.device_count()}; "
            f"use torchrun --nproc-per-node {torch.cuda.device_count()}, or --device cpu"
        )
    return f"cuda:{local_rank}"


@contextmanager
def torchrun_context(device: str | torch.device) -> Iterator[DistributedContext]:
    """Join the processes that torchrun has started, for as long as the block lasts; without it, there is one.

    Raises PeerError, with its message, if the block ends with an error in another process.
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
    except BaseException as error:
        if not _is_about_a_peer(error):
            distributed.report_error(error)
            raise
        if (words := _last_words(distributed)) is not None:
            raise PeerError(f"another process ended: {words}") from error
        raise TrainingError(
            "another process has gone away and did not say why; it may have been killed, for instance for want of "
            f"memory (here: {str(error).splitlines()[0]})"
        ) from error
    dist.destroy_process_group()  # not after an error: it would wait for processes that are gone


def _join(device: torch.device) -> DistributedContext:
    """Raises TrainingError if the others cannot be found."""
    from torch._C._distributed_c10d import PrefixStore
    from torch.distributed.rendezvous import rendezvous

    try:
        store, rank, n = next(rendezvous("env://"))
        backend = "nccl" if device.type == "cuda" else "gloo"
        dist.init_process_group(backend, store=store, rank=rank, world_size=n, timeout=HANG_AFTER)
    except (ValueError, RuntimeError) as error:
        raise TrainingError(
            f"the processes of the run cannot meet: {str(error).splitlines()[0]}; start them with torchrun"
        ) from error
    n_here = int(os.environ.get("LOCAL_WORLD_SIZE", "1"))
    return DistributedContext(rank, n, n_here=n_here, store=PrefixStore("transduce", store), device=device)


def _is_about_a_peer(error: BaseException) -> bool:
    """Whether it is what a backend raises where another process has gone away."""
    words = str(error).lower() if isinstance(error, RuntimeError) and not is_out_of_memory(error) else ""
    return any(name in words for name in ("gloo", "nccl", "connection"))


def _last_words(distributed: DistributedContext) -> str | None:
    """Why another process went away, if it has said so."""
    deadline, words = time.monotonic() + LAST_WORDS_S, None
    with suppress(SystemExit):  # torchrun tells this process to end meanwhile
        while (words := distributed.peer_error()) is None and time.monotonic() < deadline:
            time.sleep(POLL_S)
    return words


def assign_shards(n_batches: int, n_processes: int, rank: int) -> Sequence[tuple[int, int, int]]:
    """How ``n_batches`` are dealt to processes: (batch, part, number of parts) of each share of one process.

    Whole batches where they can be dealt evenly, else parts of them; every process has the same number of shares, and
    the share that stands first in the order of batches is the first process's.

    >>> [assign_shards(4, 2, rank) for rank in range(2)]
    [[(0, 0, 1), (2, 0, 1)], [(1, 0, 1), (3, 0, 1)]]
    >>> [assign_shards(1, 2, rank) for rank in range(2)]
    [[(0, 0, 2)], [(0, 1, 2)]]
    """
    n_parts = n_processes // gcd(n_batches, n_processes)
    return [(shard // n_parts, shard % n_parts, n_parts) for shard in range(rank, n_batches * n_parts, n_processes)]

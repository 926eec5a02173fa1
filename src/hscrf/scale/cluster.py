"""Evaluation by the workers of a Dask cluster: the same tree of sums, with branches computed by workers."""

from __future__ import annotations

import hashlib
import pickle
import sys
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np

from hscrf.arrays import Floats
from hscrf.objective.workers import Workers, subtrees
from hscrf.scale.loss import StoredLoss
from hscrf.scale.memory import keep_memory

TASKS = 2  # tasks for each thread of the cluster: a worker that finishes early takes more
LOOK = 1.0  # seconds between two checks of the workers while waiting for a result
LIBRARIES = ("hscrf", "numpy")


class ClusterError(RuntimeError):
    """The cluster cannot continue: it has no workers, they die repeatedly, or their libraries differ."""


class Patience(NamedTuple):
    """How many seconds a driver waits for workers."""

    frozen: float = 60.0  # without a heartbeat: then other workers get the tasks
    gone: float = 120.0  # without any worker: then training ends


PATIENCE = Patience()


class Cluster:
    """The workers of a client. The results have the same bits even if some workers fail.

    A task whose worker dies runs again on another one. A worker that has no heartbeat is removed after a time. Without
    workers for some time, or if the same task kills several workers, a ClusterError is raised.
    """

    def __init__(self, client: Any, n_jobs: int = 1, patience: Patience = PATIENCE) -> None:
        self.client, self.n_jobs = client, n_jobs
        self.frozen, self.gone = patience
        self.alone_since: float | None = None  # time when the last worker disappeared
        self.check_versions()

    # -- before any work

    def check_versions(self) -> None:
        """Refuse workers with other versions of libraries than this process."""
        ours = versions()
        for worker, theirs in self.everywhere(versions).items():
            compare_versions(ours, theirs, worker)

    def check_files(self, paths: Sequence[str]) -> None:
        """Refuse workers that cannot read the shards."""
        for worker, missing in self.everywhere(unseen, list(paths[:1])).items():
            if missing:
                told = "shards must lie on a disk that all workers share, or as copies under the same name"
                raise ClusterError(f"worker {worker} cannot read {missing[0]}: {told}")

    def can_pack(self, paths: Sequence[str], folder: str) -> bool:
        """Whether all workers can read the files and write into the folder."""
        return not any(self.everywhere(unseen, list(paths), folder).values())

    def everywhere(self, function: Callable[..., Any], *arguments: Any) -> dict[str, Any]:
        """The results of a function on each worker, by address; workers that die meanwhile are left out."""
        from distributed import CancelledError, KilledWorker, TimeoutError

        found: dict[str, Any] = {}
        while not found:
            asked = sorted(self.workers())
            futures = {a: self.client.submit(function, *arguments, pure=False, workers=[a]) for a in asked}
            for address, future in futures.items():
                while address not in found and address in self.workers():
                    try:
                        found[address] = result_in_time(future)
                    except TimeoutError:
                        self._look_after_workers()
                    except (KilledWorker, CancelledError):
                        break
                    except ImportError as error:
                        raise ClusterError(f"worker {address} cannot run hscrf: {error}") from None
            if not found:
                self._look_after_workers()
                time.sleep(0.1)
        return found

    def workers(self) -> dict[str, Any]:
        """The scheduler's data about each worker, by address."""
        return known_workers(self.client)

    # -- work

    def send(self, thing: Any) -> Any:
        """Send an argument of tasks: it is sent once, and again if its holder dies."""
        with large_graphs():
            return self.client.submit(same, thing, pure=False)

    def submit(self, function: Callable[..., Any], *arguments: Any, worker: str | None = None) -> Any:
        """A task, on the given worker if it is alive."""
        place: dict[str, Any] = {} if worker is None else {"workers": [worker], "allow_other_workers": True}
        return self.client.submit(function, *arguments, pure=False, **place)

    def sum(self, evaluate: Callable[..., Any], shards: int, *arguments: Any) -> tuple[float, Floats]:
        """The sum over all shards of the results of ``evaluate(begin, stop, *arguments)`` for aligned subtrees."""
        known = self.workers()
        slots = [address for address in sorted(known) for _ in range(known[address].get("nthreads", 1))]
        trees = subtrees(shards, TASKS * max(len(slots), 1))
        waiting: list[tuple[int, Any]] = []  # heights and futures, as TreeSum keeps them
        for k, (begin, stop, height) in enumerate(trees):
            worker = slots[k * len(slots) // len(trees)] if slots else None
            future = self.submit(evaluate, begin, stop, *arguments, worker=worker)
            while waiting and waiting[-1][0] == height:
                future, height = self.submit(added_losses, waiting.pop()[1], future), height + 1
            waiting.append((height, future))
        _, future = waiting.pop()
        while waiting:
            future = self.submit(added_losses, waiting.pop()[1], future)
        number, vector = self.result(future)
        return number, np.array(vector)  # a writable, aligned copy

    def map(self, function: Callable[..., Any], items: Sequence[Any], *arguments: Any) -> Iterator[Any]:
        """The results of tasks, in the order of the items."""
        futures = [self.submit(function, item, *arguments) for item in items]
        for k, future in enumerate(futures):
            yield self.result(future)
            futures[k] = None  # releases its result

    def result(self, future: Any) -> Any:
        """Wait for a result while workers are alive."""
        from distributed import CancelledError, KilledWorker, TimeoutError

        while True:
            try:
                return result_in_time(future)
            except TimeoutError:
                self._look_after_workers()
            except KilledWorker as error:
                told = "perhaps they lack memory, see their logs; training can be resumed from its checkpoint"
                raise ClusterError(f"several workers died during the same task ({error.args[0]}): {told}") from None
            except CancelledError:
                raise ClusterError("the scheduler is gone; training can be resumed from its checkpoint") from None

    def _look_after_workers(self) -> None:
        """Remove frozen workers while others live; raise an error after ``gone`` seconds without a living worker."""
        now = time.time()
        known = self.workers()
        frozen = [address for address, worker in known.items() if now - worker["last_seen"] > self.frozen]
        if len(known) > len(frozen):
            self.alone_since = None
            for address in frozen:
                print_line(f"worker {address} has not responded for {self.frozen:.0f} s: its tasks go to other workers")
                self.client.run_on_scheduler(remove_worker, address=address)
        elif self.alone_since is None:
            self.alone_since = time.monotonic()
            print_line(
                f"the cluster has no {'living ' if known else ''}workers: waiting up to {self.gone:.0f} s for one"
            )
        elif time.monotonic() - self.alone_since > self.gone:
            told = "training can be resumed from its checkpoint"
            raise ClusterError(f"the cluster has had no workers for {self.gone:.0f} s; {told}")


def result_in_time(future: Any) -> Any:
    """The result of a task, or an error if there is none yet after a short time."""
    from distributed import TimeoutError

    try:
        return future.result(timeout=LOOK)
    except UnboundLocalError:
        if future.status == "error":  # the task itself has raised it
            raise
        raise TimeoutError from None  # distributed raised it because a wait was cancelled: see its issue 8514


class ClusterLoss(StoredLoss):
    """The loss of shards on disk, evaluated by a cluster; solvers that take a few sequences at a time work here."""

    def __init__(self, loss: StoredLoss, cluster: Cluster) -> None:
        self.__dict__.update(loss.__dict__)
        self.cluster = cluster
        self.sent: PickledArgument | None = None  # the loss
        cluster.check_files([shard.file.path for shard in self.shards])

    def over(self, shards: Sequence[Any]) -> ClusterLoss:
        """Return the loss over other shards of the same data."""
        found = super().over(shards)
        found.sent = None
        return found

    def __call__(self, weights: Floats) -> tuple[float, Floats]:
        """Return loss and gradient over all data, computed by the workers."""
        return self._sum_of("loss", weights)

    def soft_errors(self, weights: Floats) -> Floats:
        """Return the expected wrong labels of each sequence, computed by the workers."""
        return self._sum_of("errors", weights)[1]

    def _sum_of(self, what: str, weights: Floats) -> tuple[float, Floats]:
        if self.sent is None:
            self.sent = PickledArgument.of(self.plain(), self.cluster)
        cluster = self.cluster
        arguments = (self.sent.key, self.sent.future, cluster.send(weights), what, cluster.n_jobs, versions())
        with self.placed():
            return cluster.sum(evaluate, len(self.shards), *arguments)

    def plain(self) -> StoredLoss:
        """The same loss, evaluated without the cluster."""
        plain = object.__new__(StoredLoss)
        plain.__dict__.update({name: value for name, value in self.__dict__.items() if name not in ("cluster", "sent")})
        return plain


def known_workers(client: Any) -> dict[str, Any]:
    """The data of a client's scheduler about each worker, by address."""
    return dict(client.scheduler_info()["workers"])


class PickledArgument:
    """An argument of all workers, pickled once: arrays that Dask pickles arrive read-only and unaligned."""

    def __init__(self, key: str, future: Any) -> None:
        self.key, self.future = key, future

    @classmethod
    def of(cls, thing: Any, cluster: Cluster) -> PickledArgument:
        """Pickle an object once and send it to the cluster."""
        content = pickle.dumps(thing, protocol=4)
        return cls(hashlib.sha256(content).hexdigest(), cluster.send(content))


@contextmanager
def large_graphs() -> Iterator[None]:
    """Suppress Dask's warning about large arguments: weights are large."""
    import dask

    with dask.config.set({"distributed.admin.large-graph-warning-threshold": "1TB"}):
        yield


def print_line(message: str) -> None:
    """Print a line on standard error."""
    print(message, file=sys.stderr, flush=True)


# -- functions that run on workers

UNPICKLED: OrderedDict[str, Any] = OrderedDict()  # arguments in this process, by key
KEPT = 3


def unpickled(key: str, content: bytes) -> Any:
    """The object in a pickled argument; unpickled once in each process."""
    if key not in UNPICKLED:
        UNPICKLED[key] = pickle.loads(content)
        while len(UNPICKLED) > KEPT:
            UNPICKLED.popitem(last=False)
    return UNPICKLED[key]


def evaluate(
    begin: int, stop: int, key: str, content: bytes, weights: Floats, what: str, n_jobs: int, expected: dict[str, str]
) -> tuple[float, Floats]:
    """The loss, or the errors, of the shards of a subtree."""
    compare_versions(expected, versions(), "that joined later")
    keep_memory()
    loss = unpickled(key, content)
    with Workers(n_jobs) as workers:
        own = loss.over(loss.shards[begin:stop])
        own.workers = workers
        weights = np.array(weights)  # a writable, aligned copy
        return own(weights) if what == "loss" else (0.0, own.soft_errors(weights))


def added_losses(one: tuple[float, Floats], other: tuple[float, Floats]) -> tuple[float, Floats]:
    """The sum of two branches."""
    return one[0] + other[0], one[1] + other[1]


def same(thing: Any) -> Any:
    """The argument itself."""
    return thing


def versions() -> dict[str, str]:
    """Versions of the libraries that results depend on."""
    from importlib import import_module

    return {name: import_module(name).__version__ for name in LIBRARIES}


def compare_versions(ours: dict[str, str], theirs: dict[str, str], worker: str) -> None:
    """Raise unless a worker has the same libraries."""
    other = [f"{name} {theirs.get(name)} ({ours[name]} here)" for name in LIBRARIES if ours[name] != theirs.get(name)]
    if other:
        raise ClusterError(f"worker {worker} has {', '.join(other)}, expected the same versions everywhere")


def unseen(paths: Sequence[str], folder: str | None = None) -> list[str]:
    """The files that this process cannot read, and the folder if it cannot write to it."""
    import os

    found = [path for path in paths if not os.access(path, os.R_OK)]
    return found if folder is None or os.access(folder, os.W_OK) else [*found, folder]


async def remove_worker(dask_scheduler: Any, address: str) -> None:
    """Remove a worker; its tasks go to others."""
    await dask_scheduler.remove_worker(address, stimulus_id=f"hscrf-frozen-{time.time()}")

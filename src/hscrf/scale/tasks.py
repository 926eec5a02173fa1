"""Pack in this process, in several processes of this machine, or by the workers of a cluster."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

STOP = "stop"  # a folder with the numbers of the tasks that have failed


class Task(Protocol):
    """A task and its number."""

    @property
    def number(self) -> int:
        """The number of the task."""


@dataclass(frozen=True)
class TaskOutcome:
    """The result of a task or its error, and its warnings."""

    result: Any = None
    error: Exception | None = None
    warnings: list[tuple[str, type[Warning]]] = field(default_factory=list)


class TaskRunner:
    """Run tasks and return their results in order; if tasks fail, the error of the first is raised.

    Parameters
    ----------
    jobs : int
        Processes of this machine; 1 is this process.
    workers : int
        Workers of a cluster, which are preferred to processes of this machine; 0 if there is none.
    connect : callable or None
        Returns the cluster, or None if its workers cannot do the tasks; called once, before the first tasks.
    """

    def __init__(self, jobs: int = 1, workers: int = 0, connect: Callable[[], Any] | None = None) -> None:
        self.jobs, self.size, self.connect = jobs, max(jobs, workers), connect
        self.cluster: Any = None

    @property
    def is_remote(self) -> bool:
        """Whether tasks may run on other machines."""
        return self.connect is not None or self.cluster is not None

    def map(self, function: Callable[..., Any], tasks: Sequence[Task], folder: str, *arguments: Any) -> Iterator[Any]:
        """The results of ``function(task, *arguments)``; tasks after one that fails may stop early."""
        if self.size == 1 or len(tasks) < 2:
            yield from (function(task, *arguments) for task in tasks)
            return
        error: Exception | None = None
        for outcome in self._outcomes(tasks, function, folder, *arguments):
            error = error or outcome.error
            if error is None:
                for message, category in outcome.warnings:
                    warnings.warn(message, category, stacklevel=3)
                yield outcome.result
        if error is not None:
            raise error

    def _outcomes(self, tasks: Sequence[Task], *arguments: Any) -> Iterator[TaskOutcome]:
        if self.connect is not None:
            self.cluster, self.connect = self.connect(), None
        if self.cluster is not None:
            yield from self.cluster.map(attempt, tasks, *arguments)
            return
        from joblib import Parallel, delayed

        processes = Parallel(n_jobs=self.jobs, backend="loky", return_as="generator", pre_dispatch="2 * n_jobs")
        yield from processes(delayed(attempt_in)(os.getcwd(), task, *arguments) for task in tasks)


def attempt(task: Task, function: Callable[..., Any], folder: str, *arguments: Any) -> TaskOutcome:
    """Run a task; if it fails, later tasks are skipped, because their results are not needed."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            result = function(task, *arguments)
        except Exception as error:
            os.makedirs(os.path.join(folder, STOP, str(task.number)), exist_ok=True)
            return TaskOutcome(error=error)
    return TaskOutcome(result, warnings=[(str(warning.message), warning.category) for warning in caught])


def attempt_in(folder: str, task: Task, *arguments: Any) -> TaskOutcome:
    """Run a task in a working directory: processes are reused, and may have started in another one."""
    os.chdir(folder)
    return attempt(task, *arguments)


def is_stopped(folder: str, number: int) -> bool:
    """Whether an earlier task than this one has failed, so that its own result is not needed."""
    path = os.path.join(folder, STOP)
    return os.path.isdir(path) and any(int(name) < number for name in os.listdir(path))

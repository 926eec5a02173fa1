"""One background thread: exact answers after window answers first, then doubts for the queue."""

from __future__ import annotations

import logging
import threading
from collections import OrderedDict
from collections.abc import Callable

logger = logging.getLogger(__name__)


class Worker:
    """Runs tasks one after the other; urgent ones first, the newest of a key only.

    >>> done = []
    >>> worker = Worker()
    >>> worker.urgent("a", lambda: done.append("a"))
    >>> worker.stop(finish=True)
    >>> done
    ['a']
    """

    def __init__(self) -> None:
        self._ready = threading.Condition()
        self._urgent: OrderedDict[object, Callable[[], object]] = OrderedDict()
        self._patient: OrderedDict[object, Callable[[], object]] = OrderedDict()
        self._stopping = self._finishing = False
        self.busy = False
        self._thread = threading.Thread(target=self._run, name="studio worker", daemon=True)
        self._thread.start()

    def urgent(self, key: object, task: Callable[[], object]) -> None:
        """Run a task soon, instead of a former one of the same key."""
        with self._ready:
            self._urgent.pop(key, None)
            self._urgent[key] = task
            self._ready.notify()

    def patient(self, key: object, task: Callable[[], object]) -> None:
        """Run a task when nothing is urgent; if it returns a true value, run it again later."""
        with self._ready:
            self._patient[key] = task
            self._ready.notify()

    def stop(self, finish: bool = False) -> None:
        """End the thread after its task; with ``finish`` after all of them."""
        with self._ready:
            self._stopping, self._finishing = True, finish
            self._ready.notify()
        self._thread.join()

    def _run(self) -> None:
        while True:
            with self._ready:
                while not (self._stopping or self._urgent or self._patient):
                    self.busy = False
                    self._ready.wait()
                if self._stopping and not (self._finishing and (self._urgent or self._patient)):
                    return
                self.busy = True
                urgent = bool(self._urgent)
                key, task = (self._urgent if urgent else self._patient).popitem(last=False)
            again = self._done(task)
            if again and not urgent and not self._stopping:
                with self._ready:
                    self._patient.setdefault(key, task)

    def _done(self, task: Callable[[], object]) -> object:
        """Run one task; its failure is logged and does not end the others."""
        try:
            return task()
        except Exception:
            logger.exception("a task in the background failed")
            return None

"""Training in a process of its own: the person goes on, and if it dies nothing else does."""

from __future__ import annotations

import contextlib
import json
import os
import pickle
import re
import subprocess
import sys
import threading
from collections.abc import Callable
from typing import Any

from hscrf.studio.learning import Job

CODE = "from hscrf.studio.learning import main; main()"
ITERATION = re.compile(r"iteration (\d+)  loss (\S+)")


class Training:
    """One run of learning.

    ``told(iteration, loss)`` is called as it goes on, then ``done(metrics)`` or ``failed(words)``, from a thread of its
    own; after ``stop`` neither.
    """

    def __init__(
        self,
        job: Job,
        told: Callable[[int, float], None],
        done: Callable[[dict[str, Any]], None],
        failed: Callable[[str], None],
    ) -> None:
        self.job, self.told, self.done, self.failed = job, told, done, failed
        self.iteration, self.loss = 0, None
        self.stopped = False
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "PYTHONIOENCODING": "utf-8"}
        self.process = subprocess.Popen(
            [sys.executable, "-c", CODE],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env=environment,
        )
        self.thread = threading.Thread(target=self._run, name="studio training", daemon=True)
        self.thread.start()

    @property
    def running(self) -> bool:
        return self.thread.is_alive()

    def stop(self) -> None:
        """End the process; nothing of it is kept."""
        self.stopped = True
        with contextlib.suppress(OSError):
            self.process.kill()
        if threading.current_thread() is not self.thread:
            self.thread.join()
        with contextlib.suppress(OSError):
            os.unlink(self.job.path)

    def _run(self) -> None:
        words, metrics = "", None
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        with contextlib.suppress(OSError):  # it may be dead already
            pickle.dump(self.job, self.process.stdin)
            self.process.stdin.flush()  # and stays open: the process ends when this one does
        with self.process.stdout as lines:
            for raw in lines:
                line = raw.decode("utf-8", "replace").strip()
                found = ITERATION.match(line)
                if found:
                    self.iteration, self.loss = int(found[1]), float(found[2])  # type: ignore[assignment]
                    self.told(self.iteration, float(found[2]))
                elif line.startswith("{"):
                    metrics = json.loads(line)
                else:
                    words = line or words
        code = self.process.wait()
        with contextlib.suppress(OSError):
            self.process.stdin.close()
        if self.stopped:
            return
        if code == 0 and metrics is not None:
            self.done(metrics)
        else:
            how = f"was ended by signal {-code}" if code < 0 else words or f"ended with code {code}"
            self.failed(f"training failed, the former model stays: {how}")

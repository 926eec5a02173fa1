"""Training in a separate process: people go on working, and the studio continues if the process dies."""

from __future__ import annotations

import contextlib
import json
import os
import pickle
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable
from typing import Any

from hscrf.studio.model.training_process import Job

CODE = "from hscrf.studio.model.training_process import main; main()"


class TrainingRun:
    """One run of learning.

    A separate thread calls ``told(iteration, loss)`` during training, then ``done(metrics)`` or ``failed(words)``.
    After ``stop`` it calls none of them.
    """

    def __init__(
        self,
        job: Job,
        told: Callable[[int, float | None], None],
        done: Callable[[dict[str, Any]], None],
        failed: Callable[[str], None],
    ) -> None:
        self.job, self.told, self.done, self.failed = job, told, done, failed
        self.iteration = 0
        self.loss: float | None = None
        self.stopped = False
        # What the process prints goes into a file: the pipe carries JSON lines only.
        self.messages = tempfile.TemporaryFile()  # noqa: SIM115
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "PYTHONIOENCODING": "utf-8"}
        self.process = subprocess.Popen(
            [sys.executable, "-c", CODE],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.messages,
            env=environment,
        )
        self.thread = threading.Thread(target=self._run, name="studio training", daemon=True)
        self.thread.start()

    @property
    def running(self) -> bool:
        return self.thread.is_alive()

    def stop(self) -> None:
        """End the process; its model is lost."""
        self.stopped = True
        with contextlib.suppress(OSError):
            self.process.kill()
        if threading.current_thread() is not self.thread:
            self.thread.join()
        with contextlib.suppress(OSError):
            os.unlink(self.job.path)

    def _run(self) -> None:
        metrics = None
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        with contextlib.suppress(OSError):  # it may be dead already
            pickle.dump(self.job, self.process.stdin)
            self.process.stdin.flush()  # and stays open: the process ends when this one does
        with self.process.stdout as lines:
            for line in lines:
                if not line.endswith(b"\n"):  # the process was ended while it wrote
                    break
                found = json.loads(line)
                metrics = found.get("result", metrics)
                if "iteration" in found:
                    self.iteration, self.loss = found["iteration"]["iteration"], found["iteration"]["loss"]
                    self.told(self.iteration, self.loss)
        code = self.process.wait()
        with contextlib.suppress(OSError):
            self.process.stdin.close()
        words = self._last_message()
        if self.stopped:
            return
        if code == 0 and metrics is not None:
            self.done(metrics)
        else:
            how = f"was ended by signal {-code}" if code < 0 else words or f"ended with code {code}"
            self.failed(f"training failed, the former model stays: {how}")

    def _last_message(self) -> str:
        """The last line that the process printed: of a traceback, the error."""
        with self.messages as file:
            file.seek(0)
            lines = file.read().decode("utf-8", "replace").splitlines()
        return next((line.strip() for line in reversed(lines) if line.strip()), "")

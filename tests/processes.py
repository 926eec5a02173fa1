"""Run Python in a separate process."""

import os
import subprocess
import sys
from pathlib import Path

TESTS = Path(__file__).resolve().parent
SOURCE = TESTS.parent / "src"


def run(code, *folders, **environment):
    """The words that a new process prints; it finds modules in these folders, else in ``src``."""
    path = os.pathsep.join(map(str, folders or [SOURCE]))
    environment = {**os.environ, "PYTHONPATH": path, **environment}
    strict = ("-W", "error", "-W", "ignore:hscrf runs without its compiled core")
    done = subprocess.run([sys.executable, *strict, "-c", code], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


def run_script(words, folder, **environment):
    """What a script prints if it is started by hand in a folder, without data sets."""
    environment = {**os.environ, "PYTHONPATH": str(SOURCE), "MPLBACKEND": "Agg", **environment}
    environment.pop("HSCRF_DATA", None)
    command = [sys.executable, "-W", "error", *map(str, words)]
    done = subprocess.run(command, env=environment, cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout

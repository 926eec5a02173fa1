"""Python in a process of its own, and what it took from Numba's cache on disk."""

import os
import subprocess
import sys
from pathlib import Path

TESTS = Path(__file__).resolve().parent
SOURCE = TESTS.parent / "src"

# Prints how many kernels were compiled, how many came from the cache, and the names of those that were not called.
CACHE_USE = """
import sys
modules = [module for name, module in sys.modules.items() if name.startswith("hscrf.") and "kernels" in name]
found = {id(f): f for module in modules for f in vars(module).values() if hasattr(f, "stats")}
kernels = [f for f in found.values() if type(getattr(f, "_cache", None)).__name__ == "FunctionCache"]
print(sum(sum(f.stats.cache_misses.values()) for f in kernels), sum(sum(f.stats.cache_hits.values()) for f in kernels))
print(*(f"{f.__module__}.{f.__name__}" for f in kernels if not f.stats.cache_hits and not f.stats.cache_misses))
"""


def run(code, *folders, **environment):
    """The words that a new process prints; it finds modules in these folders, else in ``src``."""
    path = os.pathsep.join(map(str, folders or [SOURCE]))
    environment = {**os.environ, "PYTHONPATH": path, **environment}
    done = subprocess.run([sys.executable, "-W", "error", "-c", code], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.split()

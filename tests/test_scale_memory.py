"""Workers use the memory of one chunk again for the next."""

import os
import pickle
import subprocess
import sys

import numpy as np
import pytest

import hscrf
from hscrf.objective.workers import Workers
from hscrf.scale import Shards
from processes import SOURCE

WORKER = """
import resource, sys, threading
import numpy as np
from hscrf.scale import cluster

content, found = open(sys.argv[1], "rb").read(), []

def work():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    cluster.evaluate(0, 1, "key", content, np.zeros(int(sys.argv[2])), "loss", 1, cluster.versions())
    found.append(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)

thread = threading.Thread(target=lambda: [work() for _ in range(4)])  # as workers do: the heap of a thread is small
thread.start()
thread.join()
print(min(found))
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="counts pages as Linux does")
def test_a_worker_of_dask_takes_no_new_pages_for_each_chunk(tmp_path):
    """A nanny's environment makes the C library give every array back to the system; a worker of ours keeps some."""
    rng = np.random.default_rng(0)
    X = [[[f"w{k}"] for k in rng.integers(30, size=500)] for _ in range(100)]
    Y = [[f"L{k}" for k in rng.integers(60, size=500)] for _ in X]
    shards = Shards.from_parts([lambda: (X, Y)])
    loss, weights = hscrf.ChainCRF()._objective(shards, None, None, Workers())
    (tmp_path / "loss").write_bytes(pickle.dumps(loss))
    environment = {**os.environ, "PYTHONPATH": str(SOURCE), "MALLOC_TRIM_THRESHOLD_": "65536"}
    command = [sys.executable, "-c", WORKER, str(tmp_path / "loss"), str(weights.size)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) < 1000  # the scores alone of 50,000 steps and sixty labels are 5,800 pages

"""Settings and fixtures that all tests share."""

import io
import os
import threading
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

if "PYTEST_XDIST_WORKER" in os.environ:  # each core has a process already: more threads would wait for each other
    for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        os.environ.setdefault(variable, "1")

# A busy machine is no failure: neither deadlines nor complaints that drawing examples is slow.
slow = [HealthCheck.too_slow]
settings.register_profile("fixed", derandomize=True, deadline=None, suppress_health_check=slow)
settings.load_profile("fixed")


# The slowest files, slowest first. They start first, so that two processes end at about the same time.
SLOWEST = [
    "docs",
    "identities",
    "studio_browser",
    "cli",
    "paths",
    "studio_states",
    "studio_training",
    "studio_kill",
    "scale_shards",
    "studio_media",
    "studio_axe",
    "studio_colours",
    "studio_keys",
    "scale_processes",
    "studio_text",
    "torch_features",
    "studio_labels",
    "experiments",
    "scale_packing",
    "online",
    "solvers",
    "studio_exchange",
    "studio_people",
    "bundles",
    "studio_forecast",
    "studio_agreement",
    "studio_cli",
    "stacking",
    "penalties",
    "show_and_plot",
    "remembering",
    "metrics",
    "hhmm",
    "torch_crf",
    "architecture",
    "scale_dask",
]


def pytest_collection_modifyitems(items):
    """Put the slowest files first."""
    rank = {f"test_{name}": number for number, name in enumerate(SLOWEST)}
    items.sort(key=lambda item: rank.get(item.path.stem, len(rank)))


@pytest.fixture(scope="session")
def data_folder() -> Path:
    """The folder of development data sets; tests that need it are skipped where there is none."""
    if not os.environ.get("HSCRF_DATA"):
        pytest.skip("HSCRF_DATA is not set: this test reads data sets that are not part of the project")
    folder = Path(os.environ["HSCRF_DATA"])
    if not folder.is_dir():
        pytest.skip(f"HSCRF_DATA is {folder}, which is not a folder")
    return folder


@pytest.fixture(scope="session")
def playwright():
    """The driver of a real browser; tests that need one are skipped without it."""
    from browsing import find_browser

    find_browser()
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        yield driver


@pytest.fixture(scope="session")
def browser(playwright):
    """One browser for all tests of a process; each test opens a context of its own in it, and closes it."""
    from browsing import start_browser

    chromium = start_browser(playwright)
    yield chromium
    chromium.close()


@pytest.fixture(scope="session")
def core():
    """The compiled core; tests that need it are skipped where it is not built, and fail if it is required."""
    from hscrf import native

    if native.core is None:
        assert os.environ.get("HSCRF_TEST_CORE") != "required", f"HSCRF_TEST_CORE is required, but {native.why_not}"
        pytest.skip(f"the compiled core is not in use: {native.why_not}")
    return native.core


@pytest.fixture(params=["compiled", "reference"])
def engine(request, monkeypatch):
    """The name of each engine in turn; batches that are made in the test use it."""
    if request.param == "compiled":
        request.getfixturevalue("core")
    monkeypatch.setenv("HSCRF_ENGINE", request.param)
    return request.param


@pytest.fixture
def poisoned(core):
    """The core with its work space full of NaN, which shows numbers that are read before they are written."""
    core.poison(True)
    yield core
    core.poison(False)


@pytest.fixture
def slow_machine(monkeypatch):
    """A machine that takes 400 seconds for each pass over data, as far as estimates of the cost know."""
    monkeypatch.setattr("hscrf.engine.cost.Cost.seconds", lambda cost, learning=False, jobs=1: 400.0)


@pytest.fixture
def fast_clock(monkeypatch):
    """A clock of progress lines that runs ten times as fast: they are shown after 0.1 s, then every 0.02 s."""

    class Hurried(threading.Event):
        def wait(self, timeout=None):
            return super().wait(timeout and timeout / 10)

    monkeypatch.setattr("hscrf.progress.Event", Hurried)


@pytest.fixture
def shell(tmp_path, monkeypatch, capsys):
    """Run a command in an empty folder, with a text as standard input: exit code, standard output and error."""
    from hscrf.cli.main import main

    monkeypatch.chdir(tmp_path)

    def run(*arguments, text=""):
        capsys.readouterr()
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
        try:
            code = main([str(argument) for argument in arguments])
        except SystemExit as end:
            code = end.code
        streams = capsys.readouterr()
        return code, streams.out, streams.err

    return run


@pytest.fixture
def training_here(monkeypatch):
    """Train models of a studio in a thread, for tests of the models, not of the training process."""
    from hscrf.studio.work import trainer
    from studio_fixtures import TrainingHere

    monkeypatch.setattr(trainer, "TrainingRun", TrainingHere)


@pytest.fixture(scope="session")
def toy_model():
    """A model of the toy grammar; tests do not change it."""
    from hscrf import HSCRF
    from toy import X, Y

    return HSCRF().fit(X, Y)


@pytest.fixture(scope="session")
def deep_model():
    """A model of three levels, with the sequences and labels of its training and as many others."""
    from hscrf import HSCRF
    from hscrf.datasets import make_nested

    inputs, labels = make_nested(
        60, (2, 3, 3), length=(40, 60), n_features=6, separation=1.5, durations=(18, 5, 1), random_state=0
    )
    full = HSCRF().fit(inputs[:30], labels[:30])
    return inputs, labels, full


@pytest.fixture(scope="session")
def long_data():
    """Four long sequences: each fills more than half a chunk."""
    import numpy as np

    from hscrf.datasets import make_nested
    from hscrf.objective.workers import CUTS, cut_chunks

    half = CUTS.chunk // 2
    inputs, labels = make_nested(4, (2, 3), length=(half + 1, half + 9), n_features=2, random_state=9)
    assert len(cut_chunks(np.array([y.length for y in labels]))) == 4
    return inputs, labels

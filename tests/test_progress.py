"""The progress line: its text, and when and where it is shown."""

import io
import time

import numpy as np
import pytest

import hscrf
from hscrf.progress import Waiting, is_live, waiting
from hscrf.solvers import course

X = [[["w=a"], ["w=b"]] * 4] * 2
Y = [{"day": ["work"] * 8, "act": ["sit", "walk"] * 4}] * 2
ROWS = [np.arange(16.0).reshape(8, 2)] * 2


def stream_like(live, module=None):
    kind = type("Stream", (io.StringIO,), {"__module__": module or __name__, "isatty": lambda self: live})
    return kind()


def written(stream, **options):
    with Waiting("packing", stream, **options):
        time.sleep(0.3)
    return stream.getvalue()


def test_terminals_and_notebooks_have_one_live_line(fast_clock):
    for stream in (stream_like(True), stream_like(False, "ipykernel.iostream")):
        text = written(stream, plain=True)
        assert text.startswith("\rpacking: 0 s")
        assert text.count("\r") > 1
        assert text.count("\n") == 1
        assert is_live(stream)


def test_files_have_two_lines_or_none(fast_clock):
    assert written(stream_like(False), plain=True) == "packing ...\npacking: 0 s \n"
    assert written(stream_like(False)) == ""


def test_quick_work_is_not_reported():
    assert written(stream_like(True), plain=True) == ""


@pytest.mark.parametrize("verbose", [0, 2])
def test_progress_is_shown_only_with_verbose_1(capfd, fast_clock, verbose):
    with waiting("packing", verbose):
        time.sleep(0.2)
    assert capfd.readouterr() == ("", "")


@pytest.fixture
def slowed(monkeypatch, fast_clock):
    """Every step of a model takes a while."""

    def late(function):
        def called(*arguments, **options):
            time.sleep(0.2)  # on a busy machine the thread that speaks has to wait for its turn
            return function(*arguments, **options)

        return called

    from hscrf.estimator.frame import Frame, NestedFeatures
    from hscrf.estimator.predictor import Predictor
    from hscrf.families.hhmm.model import HHMM
    from hscrf.objective.likelihood import Likelihood
    from hscrf.observations.encoder import ObservationEncoder

    places = [
        (Frame, "update"),
        (NestedFeatures, "update"),
        (Likelihood, "__call__"),
        (ObservationEncoder, "pack"),
        (ObservationEncoder, "fit_pack"),
    ]
    for owner, name in [*places, (Predictor, "_in_chunks"), (HHMM, "_run_em")]:
        monkeypatch.setattr(owner, name, late(getattr(owner, name)))


@pytest.mark.parametrize("verbose", [0, 1])
def test_every_slow_step_is_shown(capfd, slowed, verbose):
    model = hscrf.HSCRF(solver=hscrf.LBFGS(max_iter=1), verbose=verbose).fit(X, Y)
    said = [capfd.readouterr().err]
    for ask in (model.predict, model.predict_marginals, model.sample, lambda X: model.score(X, Y)):
        ask(X)
        said.append(capfd.readouterr().err)
    words = ["packing", "choosing features", "training"]
    expected = [words, *[["packing", "predicting"]] * 3, ["scoring"]]
    for text, steps in zip(said, expected, strict=True):
        assert [f"{step} ..." in text for step in steps] == [verbose == 1] * len(steps)
        assert verbose or text == ""


def test_an_hhmm_shows_its_steps(capfd, slowed):
    hscrf.HHMM(n_components=2, max_iter=1, random_state=0, verbose=1).fit(ROWS)
    said = capfd.readouterr().err
    assert "packing ..." in said
    assert "training ..." in said


def test_training_shows_a_line_now_and_then_where_lines_stay():
    stream = io.StringIO()
    shown = course.Progress(1, stream, pause=-1.0)
    shown.show({"iteration": 3, "loss": 2.0, "gradient_norm": 0.1, "seconds": 12.0, "score": None})
    assert stream.getvalue() == "iteration 3  loss 2.00  |g| 1.0e-01  12.0 s\n"


@pytest.mark.parametrize("verbose", [0, 1])
@pytest.mark.parametrize("ask", ["predict", "predict_marginals", "sample", "entropy", "score", "log_likelihood"])
def test_the_cost_of_a_prediction_is_reported(capsys, slow_machine, ask, verbose):
    shape = hscrf.Topology({"day": ["work"], "act": ["sit", "walk"]}, max_duration={"day": None})
    model = hscrf.HSCRF(shape, solver=hscrf.LBFGS(max_iter=1)).fit(X, Y).set_params(verbose=verbose)
    getattr(model, ask)(*([X, Y] if ask in ("score", "log_likelihood") else [X]))
    assert capsys.readouterr().err.count("about 7 minutes for 2 sequences and") == verbose

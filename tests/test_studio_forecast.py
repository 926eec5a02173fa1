"""The guess of how long training goes on: against runs whose end is known."""

import math

import pytest

from hscrf import LBFGS, Topology
from hscrf.solvers.choice import solver_of
from hscrf.studio.model.forecast import Forecast
from hscrf.studio.work.trainer import ModelTrainer
from studio_fixtures import open_studio

SMALL = Topology({"a": ["x", "y"], "b": ["p", "q"]})


def run(factor, solver, pace=2.0, stop=None):
    """Feed a run whose loss falls to 1 by a constant factor; the forecast, and the iteration at which the run ends."""
    losses = [1 + 100 * factor**k for k in range(2000)]
    end = next(k for k in range(11, 2000) if losses[k - 10] - losses[k] <= solver.delta * losses[k])
    found = Forecast(solver, SMALL, [10])
    for k in range(1, (stop or end // 2) + 1):
        found.note(k, losses[k], pace * k)
    return found, min(end, solver.max_iter)


@pytest.mark.parametrize("factor", [0.7, 0.9, 0.95])
def test_the_end_of_a_steady_run_is_foreseen(factor):
    solver = LBFGS(delta=1e-5)
    found, end = run(factor, solver)
    left = end - found.iteration
    assert found.iterations == pytest.approx(left, abs=2)
    assert found.seconds(2.0 * found.iteration) == pytest.approx(2.0 * left, rel=0.1, abs=4)
    assert found.seconds(2.0 * found.iteration + 3) == pytest.approx(found.seconds(2.0 * found.iteration) - 3)


def test_a_run_ends_with_its_last_iteration_at_the_latest():
    found, _ = run(0.99, LBFGS(max_iter=60, delta=1e-5), stop=50)
    assert found.iterations <= 10
    epochs = Forecast(solver_of("sgd"), SMALL, [10])
    epochs.note(1, 5.0, 0.0)
    epochs.note(2, 4.0, 3.0)
    assert epochs.seconds(3.0) == pytest.approx(3.0 * (solver_of("sgd").epochs - 2))


def test_before_the_first_iteration_the_cost_of_inference_speaks():
    states = [f"s{n}" for n in range(60)]
    dear = Forecast(LBFGS(), Topology({"a": ["x", "y"], "b": states}, max_duration={"b": 400}), [5000] * 20)
    assert dear.words(0.0).startswith("about")
    assert Forecast(LBFGS(), SMALL, [10]).words(0.0) == "", "nothing worth a word"
    assert Forecast(None, SMALL, [10]).words(0.0) == "", "an HHMM has no solver"


def test_losses_that_tell_nothing_give_a_guess_all_the_same():
    found = Forecast(LBFGS(), SMALL, [10])
    for k in range(1, 40):
        found.note(k, math.nan if k % 2 else 3.0, float(k))
    assert 0 < found.iterations < 1000
    assert "left" in found.words(39.0)


@pytest.mark.usefixtures("training_here")
def test_the_state_of_training_says_what_is_left(tmp_path):
    session, person = open_studio(tmp_path, n=6, model=False, labelled=4)
    trainer: ModelTrainer = session.studio.trainer
    trainer.wait()
    seen = []
    send = trainer.notifications.send
    trainer.notifications.send = lambda name, data=None: seen.append((name, data)) or send(name, data)
    assert person.post("/api/training", {}).status_code == 202
    trainer.wait()
    states = [data for name, data in seen if name == "training"]
    assert all("seconds_left" in state for state in states)
    assert states[0]["running"]
    assert states[0]["words"].startswith("training model 2")
    assert states[-1]["seconds_left"] is None
    (model,) = [data for name, data in seen if name == "model"]
    assert model["waiting"] is True
    person.close()
    session.stop()

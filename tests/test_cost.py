"""Estimated costs grow as the times of the engine do, and high costs are reported."""

import pytest

import hscrf
from hscrf import cli
from hscrf.engine.cost import estimate

STATES = {"day": ["work", "rest"], "act": ["sit", "walk", "eat"], "step": ["a", "b"]}


def topology(**limits):
    return hscrf.Topology(STATES, max_duration=limits)


def growth(shape):
    """The ratio of the work for 4000 steps to that for 2000."""
    one, two = (estimate(shape, [n]) for n in (2000, 4000))
    return two.operations / one.operations


def test_work_grows_with_the_length_as_the_engine_does():
    assert growth(topology()) == pytest.approx(2, rel=0.01)
    assert growth(topology(day=20)) == pytest.approx(2, rel=0.02)
    assert growth(topology(day=10**6)) == pytest.approx(4, rel=0.02)
    assert 6 < growth(topology(day=10**6, act=10**6)) < 8.1


def test_memory_is_that_of_the_longest_sequence():
    assert estimate(topology(), [5000]).memory == 0
    whole = estimate(topology(day=10**6), [10, 3000]).memory
    assert whole == estimate(topology(day=10**6), [3000] * 9).memory
    assert estimate(topology(day=30), [3000]).memory < whole / 40
    assert estimate(topology(day=10**9), [90]).memory < 1e7, "a limit beyond the longest sequence counts as its length"


def test_segments_of_functions_count_too():
    assert estimate(topology(), [3000], explicit=[1]).operations > 100 * estimate(topology(), [3000]).operations


def test_cheap_work_is_not_reported():
    assert estimate(topology(day=20), [500] * 10).warning() == ""


def test_expensive_work_is_reported_with_a_cheaper_option():
    line = estimate(topology(day=10**6), [20_000] * 5).warning(learning=True)
    assert "for an iteration and" in line
    assert "GB of memory: level 'day' has segments of up to 20000 steps; max_duration={'day': STEPS}" in line


X = [[["w=a"], ["w=b"]] * 4] * 2
Y = [{"day": ["work"] * 8, "act": ["sit", "walk"] * 4}] * 2


@pytest.mark.parametrize(("verbose", "lines"), [(0, 0), (1, 1)])
def test_a_model_reports_its_cost(capsys, slow_machine, verbose, lines):
    shape = hscrf.Topology({"day": ["work"], "act": ["sit", "walk"]}, max_duration={"day": None})
    hscrf.HSCRF(shape, solver=hscrf.LBFGS(max_iter=1), verbose=verbose).fit(X, Y)
    assert capsys.readouterr().err.count("about 7 minutes for an iteration") == lines


def test_the_shell_reports_the_cost_once(tmp_path, capsys, monkeypatch, slow_machine):
    monkeypatch.chdir(tmp_path)
    with open("train.txt", "w") as file:
        file.write("a sit work\nb walk work\n\n" * 3)
    words = ["--levels", "day=3,act=2", "--max-duration", "day=5", "--max-iter", "1"]
    assert cli.main(["fit", "train.txt", "-m", "m", *words]) == 0
    said = capsys.readouterr().err
    assert said.count("about 7 minutes") == 1
    assert "level 'day' has segments of up to 2 steps; " in said
    assert "--max-duration day=STEPS) makes it cheaper" in said
    assert cli.main(["predict", "train.txt", "-m", "m", "-t", "-o", "out.txt"]) == 0
    said = capsys.readouterr().err
    assert said.count("about 7 minutes for 3 sequences and 0.0 GB") == 1
    assert "; fit with --max-duration day=STEPS makes it cheaper" in said

"""The cost of starting, measured by the imported modules instead of by time."""

from processes import run

HEAVY = {"scipy", "sklearn", "pandas", "matplotlib"}

NOUNS = """
import hscrf
topology = hscrf.Topology({"phrase": ["NP", "O"], "tag": ["N", "V"]}, max_duration={"phrase": 4})
potentials = hscrf.Potentials(topology, 3, token={"tag": [[1, 0], [0, 2], [0, 0]]})
labels = hscrf.Labels.from_segments(topology, {"phrase": [(0, 2, "NP"), (2, 3, "O")]})
labels.closed().column("phrase")
"""

VERBS = """
for evidence in (None, labels):
    hscrf.log_partition(potentials, evidence)
    hscrf.marginals(potentials, evidence).segment("phrase")
    hscrf.decode(potentials, evidence)
    hscrf.k_best(potentials, 2, evidence)
    hscrf.sample(potentials, 2, 0, evidence)
"""

LEARNING = """
X = [[{"word": "a"}, {"word": "b"}, {"word": "a"}]]
features = [hscrf.Token("tag"), hscrf.Token("phrase", average=True)]
for solver in (hscrf.LBFGS(max_iter=2), hscrf.SGD(epochs=1)):
    hscrf.HSCRF(topology, features=features, solver=solver).fit(X, [labels]).predict(X)
"""


def test_importing_loads_nothing_heavy():
    assert run(f"import hscrf, sys; print(*sorted({HEAVY!r} & set(sys.modules)))") == []


def test_describing_a_model_loads_nothing_heavy():
    """Topologies, labels and potentials are plain numpy."""
    assert run(f"{NOUNS}\nimport sys; print(*sorted({HEAVY!r} & set(sys.modules)))") == []


def test_inference_leaves_scikit_learn_and_plots_alone():
    heavy = {"sklearn", "pandas", "matplotlib"}
    code = f"{NOUNS}{VERBS}\nimport sys; print(*sorted({heavy!r} & set(sys.modules)))"
    assert run(code) == []


def test_learning_and_predicting_do_not_load_plots():
    """Models inherit scikit-learn's base class; drawing is imported when something is drawn."""
    code = f"{NOUNS}{LEARNING}\nimport sys; print(*sorted({{'matplotlib'}} & set(sys.modules)))"
    assert run(code) == []


def test_modules_are_found_when_they_are_asked_for():
    found = run("import hscrf; print(hscrf.datasets.__name__, hscrf.metrics.__name__, 'plots' in dir(hscrf))")
    assert found == ["hscrf.datasets", "hscrf.metrics", "True"]

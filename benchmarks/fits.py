"""Problems that two commits must solve with the same numbers: every family, kind of label and solver, and every verb.

Training takes few iterations, so that rounding errors do not grow. A log-likelihood or an entropy is a difference of
log partition functions and inherits their rounding errors; it stands in one array with them, because arrays are
compared on the scale of their largest value.
"""

import functools
import tempfile
from pathlib import Path

import numpy as np
import pandas
from problems import as_columns, as_strings, gappy, hidden, nested, outcome, problem
from scipy.sparse import csr_matrix

import hscrf
from hscrf import LBFGS, SGD, Duration, End, Init, Pair, Perceptron, Segment, Start, Stop, Token, Trans
from hscrf.datasets import make_activities

LOSSES = ("sequence", "step", "segment")
SHORT = LBFGS(max_iter=6)


def learned(model):
    """What training leaves behind."""
    history = [{key: value for key, value in entry.items() if key != "seconds"} for entry in model.history_]
    kept = {"coef": model.coef_, "loss": model.loss_, "history": history, "topology": model.topology_}
    return {**kept, "n_iter": model.n_iter_, "converged": model.converged_}


def verbs(model, X, Y, evidence, functions=None):
    """Every verb of a trained model, with and without evidence, and of its copy from a file."""
    found = {**learned(model), "weights": model.weights_, "learned_topology": outcome(model.learned_topology)}
    for name, known in (("predict", None), ("predict evidence", evidence)):
        found[name] = {loss: model.predict(X, evidence=known, loss=loss) for loss in LOSSES}
        found[name]["step"] = [y.states for y in found[name]["step"]]  # ends are ties there, which rounding decides
    found["potentials"] = model.potentials(X)
    for name, known in (("marginals", None), ("marginals evidence", evidence)):
        posterior = model.predict_marginals(X, evidence=known)
        log_z = [one.log_partition for one in posterior]
        found[name] = {"posterior": posterior, "entropy": [*model.entropy(X, evidence=known), *log_z]}
    found["log_likelihood"] = [*model.log_likelihood(X, Y).tolist(), *log_z]
    found["score"] = model.score(X, Y)
    with tempfile.TemporaryDirectory() as folder:
        model.save(Path(folder, "model"))
        copy = hscrf.load(Path(folder, "model"), functions)
    found["loaded"] = {"model": learned(copy), "predict": copy.predict(X), "class": type(copy).__name__}
    return found


def trained(model, X, Y, truth, functions=None, **fit):
    """Train a model, then call every verb; the evidence is a part of the complete labels ``truth``."""
    model.fit(X, Y, **fit)
    return verbs(model, X, Y, hidden(truth, model.topology_), functions)


def as_dicts(X):
    return [
        [{"level": row[0], "sign": "+" if row[1] > 0 else "-", "high": bool(row[2] > 1)} for row in x.tolist()]
        for x in X
    ]


def as_sparse(X):
    return [csr_matrix(np.where(np.abs(x) > 0.5, x, 0.0)) for x in X]


def as_frames(X):
    return [pandas.DataFrame(x, columns=["speed", "height", "load"]) for x in X]


def as_segments(Y):
    return [{level: y.segments(level) for level in y.topology.levels[1:]} for y in Y]


for form in (list, as_strings, as_dicts, as_sparse, as_frames):

    @problem(f"HSCRF observations: {form.__name__.removeprefix('as_').replace('list', 'dense arrays')}", form)
    def observations(form):
        X, Y = nested()
        return trained(hscrf.HSCRF(solver=SHORT), form(X), Y, Y)


@problem("HSCRF labels: columns", as_columns)
@problem("HSCRF labels: segments", as_segments)
@problem("HSCRF labels: BIO", functools.partial(as_columns, level1="bio"), scheme={"level1": "bio"})
@problem("HSCRF labels: BIOES", functools.partial(as_columns, level1="bioes"), scheme={"level1": "bioes"})
@problem("HSCRF options: min_count, pairs, transitions", as_columns, min_count=2, pairs="all", transitions="seen")
def labels(form, **options):
    X, Y = nested()
    return trained(hscrf.HSCRF(solver=SHORT, **options), as_strings(X), form(Y), Y)


@problem("HSCRF labels: partial columns")
def partial_columns():
    X, Y = nested()
    gaps = [{level: gappy(column) for level, column in columns.items()} for columns in as_columns(Y)]
    return trained(hscrf.HSCRF(solver=SHORT), as_strings(X), gaps, Y)


@problem("HSCRF labels: partial Labels, sample weights")
def partial_labels():
    X, Y = nested()
    known = [y or hscrf.Labels.unknown(Y[1].topology, Y[1].length) for y in hidden(Y)]
    return trained(hscrf.HSCRF(solver=SHORT, standardize=False), X, known, Y, sample_weight=np.arange(1, 9) / 4)


@problem("HSCRF labels: a hidden level", "level1")
@problem("HSCRF labels: a hidden bottom", "level2")
def hidden_level(lost):
    X, Y = nested()
    columns = [{level: column for level, column in y.items() if level != lost} for y in as_columns(Y)]
    return trained(hscrf.HSCRF(Y[0].topology, solver=SHORT, random_state=5), as_strings(X), columns, Y)


def mean_and_length(z, start, stop):
    """A function of a segment: the mean of its rows, and its length."""
    return np.append(np.asarray(z)[start:stop].mean(axis=0), stop - start)


FAMILY = [Init("root"), Trans("root"), End("root"), Init("level1"), Trans("level1"), End("level1")]
OBSERVED = [kind(level, observed=True) for kind in (Init, Trans, End) for level in ("root", "level1")]


@problem("HSCRF features: durations gamma, averages", [Duration("level1"), Token("level1", average=True)])
@problem(
    "HSCRF features: durations in bins, Start, Stop", [Duration("level1", "bins"), Start("level1"), Stop("level1")]
)
@problem("HSCRF features: durations each, penalties", [Duration("level1", "each", penalty=5), Start("level2")])
@problem("HSCRF features: a function of segments", [Segment("level1", mean_and_length)])
@problem("HSCRF features: observed init, trans, end", [*OBSERVED, Token("level1", penalty=3.0)])
def features(specifications):
    X, Y = nested()
    model = hscrf.HSCRF(features=[Token("level2"), *FAMILY, *specifications], solver=SHORT)
    return trained(model, X, as_columns(Y), Y, {"mean_and_length": mean_and_length})


@problem("HSCRF segmental levels, three deep")
def segmental():
    X, Y = nested(sizes=(2, 2, 2), durations=(8, 4, 2), length=(10, 16))
    arguments = Y[0].topology.to_dict()
    topology = hscrf.Topology(arguments["levels"], max_duration={"level1": None, "level2": 14, "level3": 8})
    return trained(hscrf.HSCRF(topology, solver=SHORT), X, as_segments(Y), Y)


@problem("HSCRF root classes")
@problem("HSCRF root classes, some unknown", 3)
def classes(every=None):
    X, Y = nested()
    topology = hscrf.Topology(Y[0].topology.to_dict()["levels"], root=["even", "odd"])
    truth = [hscrf.Labels(topology, np.vstack([y.states[:1] + n % 2, y.states[1:]]), y.ends) for n, y in enumerate(Y)]
    known = [{**columns, "root": ["even", "odd"][n % 2]} for n, columns in enumerate(as_columns(Y))]
    for columns in known[::every] if every else ():
        del columns["root"]
    return trained(hscrf.HSCRF(topology, solver=SHORT), as_strings(X), known, truth)


@problem("solver L-BFGS with c1", solver=SHORT, c1=0.3, c2=0.1)
@problem("solver SGD", solver=SGD(epochs=3, batch=3))
@problem("solver SGD with c1, no average", solver=SGD(epochs=3, rate=0.1, average=False), c1=0.1)
@problem("solver perceptron", solver=Perceptron(epochs=3))
@problem("solver perceptron in batches", solver=Perceptron(epochs=3, batch=4, average=False))
def solver(**options):
    X, Y = nested()
    return trained(hscrf.HSCRF(random_state=7, **options), as_strings(X), Y, Y)


@problem("fit: development set, warm start, checkpoint")
def courses():
    X, Y = nested()
    X = as_strings(X)
    model = hscrf.HSCRF(solver=SHORT, warm_start=True).fit(X[:4], Y[:4], development=(X[4:], Y[4:]), patience=2)
    first = learned(model)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "checkpoint")
        again = learned(model.fit(X, Y, checkpoint=path))
        fresh = hscrf.HSCRF(solver=SHORT).fit(X, Y, checkpoint=path)
    return {"development": first, "warm": again, "resumed": learned(fresh)}


@problem("many sequences: several chunks, two threads", 2)
@problem("many sequences: several chunks, one thread", 1)
def chunks(n_jobs):
    X, Y = make_activities(160, random_state=2)
    model = hscrf.HSCRF(solver=LBFGS(max_iter=3), n_jobs=n_jobs).fit(X, Y)
    posterior = model.predict_marginals(X, evidence=hidden(Y))
    states = [one.state for one in posterior]
    log_z = [one.log_partition for one in posterior]
    said = {"predict": model.predict(X), "score": model.score(X, Y), "marginals": states}
    return {**learned(model), **said, "log_likelihood": [*model.log_likelihood(X, Y).tolist(), *log_z]}


# ---------------------------------------------------------------------------------------------------------- families


def flat(**options):
    """One level: the bottom of the nested data, as a plain list for each sequence."""
    X, Y = nested(sizes=(3,), **options)
    return X, Y, [y.column("level1") for y in Y]


@problem("ChainCRF")
@problem("ChainCRF edges", edges=True)
@problem("ChainCRF partial labels", gaps=True, transitions="seen")
@problem("ChainCRF features", features=[Token("label"), Trans("root"), Trans("root", observed=True)])
def chain(gaps=False, **options):
    X, truth, Y = flat()
    return trained(hscrf.ChainCRF(solver=SHORT, **options), as_strings(X), [gappy(y) for y in Y] if gaps else Y, truth)


@problem("SemiCRF BIO", lambda y: y.column("level1", "bio"))
@problem("SemiCRF segments, limits", lambda y: y.segments("level1"), max_duration=9)
@problem("SemiCRF partial labels", lambda y: gappy(y.column("level1", "bio")))
@problem("SemiCRF average", lambda y: y.segments("level1"), features=[Token("label", average=True), Trans("root")])
def semi(form, **options):
    X, truth, _ = flat(durations=(3.0,))
    return trained(hscrf.SemiCRF(solver=SHORT, **options), X, [form(y) for y in truth], truth)


OWN = [Token("level1"), Trans("level1"), Token("level2"), Trans("level2")]


@problem("DynamicCRF pairs")
@problem("DynamicCRF all combinations, partial labels", gaps=True, combinations="all")
@problem(
    "DynamicCRF observed pairs, edges", features=[*OWN, Pair("level1", "level2", True), Init("level1"), End("level2")]
)
@problem("DynamicCRF observed transitions", features=[Token("level1"), Trans("level2", True), Pair("level1", "level2")])
def dynamic(gaps=False, **options):
    X, truth = nested()
    Y = as_columns(truth)
    known = [{level: gappy(column) for level, column in y.items()} for y in Y]
    model = hscrf.DynamicCRF(solver=SHORT, **options).fit(as_strings(X), known if gaps else Y)
    evidence = [None if n == 1 else {"level2": gappy(y["level2"], 2)} for n, y in enumerate(Y)]
    return verbs(model, as_strings(X), Y, evidence)


@problem("HHMM categorical, complete labels", "full")
@problem("HHMM categorical, partial labels", "partial")
@problem("HHMM categorical, no labels", "none")
@problem("HHMM Gaussian, complete labels", "full", gaussian=True)
@problem("HHMM Gaussian, partial labels", "partial", gaussian=True)
@problem("HHMM root ends, complete labels", "full", root_ends=True)
@problem("HHMM root ends, partial labels", "partial", root_ends=True)
@problem("HHMM root classes", "full", root=["even", "odd"])
def hhmm(known, gaussian=False, root=None, **options):
    X, Y = nested()
    if not gaussian:
        X = [[round(value) for value in x[:, 0].tolist()] for x in X]
    topology = hscrf.Topology(Y[0].topology.to_dict()["levels"], root=root)
    top = [y.states[:1] + n % len(topology.states[0]) for n, y in enumerate(Y)]
    Y = [hscrf.Labels(topology, np.vstack([row, y.states[1:]]), y.ends) for row, y in zip(top, Y, strict=True)]
    partial = [y or hscrf.Labels.unknown(topology, Y[1].length) for y in hidden(Y)]
    model = hscrf.HHMM(topology, random_state=4, max_iter=5, **options)
    model.fit(X, {"full": Y, "partial": partial, "none": None}[known])
    tables = {"root": model.root_, "init": model.init_, "trans": model.trans_, "end": model.end_}
    length = None if options.get("root_ends") else 12
    fresh = model.generate(5, length, random_state=6)
    return {**verbs(model, X, Y, hidden(Y)), **tables, "emission": vars(model.emission_), "generate": fresh}


@problem("sample of HSCRF, frequencies", hscrf.HSCRF)
@problem("sample of HSCRF with evidence, frequencies", hscrf.HSCRF, share=0.7)
@problem("sample of DynamicCRF, frequencies", hscrf.DynamicCRF)
@problem("sample of HHMM, frequencies", hscrf.HHMM)
def sampled(family, share=None):
    """How often each state and each end was drawn; the random streams of a model may differ between commits."""
    X, Y = nested()
    X = [[row[0] for row in x] for x in as_strings(X)] if family is hscrf.HHMM else as_strings(X)
    model = family(random_state=0).fit(X, as_columns(Y) if family is hscrf.DynamicCRF else Y)
    draws = model.sample(X, 4000, random_state=9, evidence=None if share is None else hidden(Y, share=share))
    counts = {}  # (states or ends, D, T) of each sequence: their sum over the first axis is the number of draws
    for n, drawn in enumerate(draws):
        for kind, cells in (("states", [y.states for y in drawn]), ("ends", [y.ends for y in drawn])):
            counts[f"{n}/{kind}"] = np.array([(np.array(cells) == value).sum(axis=0) for value in range(3)])
    return counts

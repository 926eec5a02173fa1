"""Bad input: the right error for each kind, and it names the thing, what it is and what was expected."""

import numpy as np
import pytest

import hscrf
from hscrf import InfeasibleError, Labels, Potentials, Topology
from hscrf.errors import Cell
from hscrf.families.hhmm.emissions import Categorical
from hscrf.features.blocks import ConstantBlock
from hscrf.inference import Posterior
from hscrf.objective.likelihood import Likelihood
from hscrf.objective.scorer import Scorer
from hscrf.observations.encoder import ObservationEncoder
from hscrf.potentials import part_shape

T = 5
TOPOLOGY = Topology(
    {"phrase": ["NP", "VP"], "tag": ["N", "V", "J"]},
    children={"phrase": {"NP": ["N", "J"], "VP": ["V", "N"]}},
    successors={"phrase": {"VP": ["NP"]}, "tag": {"J": ["N"]}},
)
TIMED = Topology(
    {"phrase": ["NP", "VP"], "tag": ["N", "V", "J"]},
    children={"phrase": {"NP": ["N", "J"]}},
    min_duration={"phrase": {"NP": 3}},
    max_duration={"phrase": {"VP": 2}},
)
FLAT = Potentials(TOPOLOGY, T)
VERBS = [
    hscrf.log_partition,
    hscrf.marginals,
    hscrf.decode,
    hscrf.entropy,
    lambda p, evidence=None: hscrf.k_best(p, 2, evidence),
    lambda p, evidence=None: hscrf.sample(p, 2, 0, evidence),
]
NAMES = ["log_partition", "marginals", "decode", "entropy", "k_best", "sample"]
every_verb = pytest.mark.parametrize("verb", VERBS, ids=NAMES)


def table(*shape, **entries):
    """Zeros, with one value somewhere: at=(...), is_=value."""
    values = np.zeros(shape)
    if entries:
        values[entries["at"]] = entries["is_"]
    return values


def known(states=None, ends=None, allowed=None, topology=TOPOLOGY, length=T):
    """Labels with a few known cells: {(level, time): value}."""
    x, e = (np.full((topology.depth, length), -1) for _ in range(2))
    for cells, array in ((states, x), (ends, e)):
        for (level, t), value in (cells or {}).items():
            d = topology.level(level)
            array[d, t] = topology.state(d, value) if isinstance(value, str) else value
    return Labels(topology, x, e, allowed)


# ---------------------------------------------------------------------------------------------- potentials


@pytest.mark.parametrize(
    ("part", "level", "shape", "expected"),
    [
        ("token", "tag", (T, 2), r"token\['tag'\] has shape \(5, 2\), expected \(5, 3\)"),
        ("token", "tag", (1, 3), r"token\['tag'\] has shape \(1, 3\), expected \(5, 3\)"),
        ("token", "tag", (T,), r"token\['tag'\] has shape \(5,\), expected \(5, 3\)"),
        ("token", "tag", (T, 3, 1), r"token\['tag'\] has shape \(5, 3, 1\), expected \(5, 3\)"),
        ("start", "phrase", (4, 2), r"start\['phrase'\] has shape \(4, 2\), expected \(5, 2\)"),
        ("stop", "phrase", (6, 2), r"stop\['phrase'\] has shape \(6, 2\), expected \(5, 2\)"),
        ("duration", "phrase", (0, 2), r"duration\['phrase'\] has shape \(0, 2\), expected \(L, 2\)"),
        ("duration", "phrase", (3, 3), r"duration\['phrase'\] has shape \(3, 3\), expected \(L, 2\)"),
        ("segment", "phrase", (3, 3, 2), r"segment\['phrase'\] has shape .*, expected \(5, L, 2\)"),
        ("segment", "phrase", (T, 0, 2), r"segment\['phrase'\] has shape .*, expected \(5, L, 2\)"),
        ("init", "phrase", (2, 2, 3), r"init\['phrase'\] has shape .*, expected \(5 or 1, 2, 3\)"),
        ("init", "phrase", (2, 3), r"init\['phrase'\] has shape \(2, 3\), expected \(5 or 1, 2, 3\)"),
        ("trans", "phrase", (1, 2, 3, 2), r"trans\['phrase'\] has shape .*, expected \(5 or 1, 2, 3, 3\)"),
        ("end", "root", (1, 1, 3), r"end\['root'\] has shape \(1, 1, 3\), expected \(5 or 1, 1, 2\)"),
    ],
)
def test_shapes_are_checked(part, level, shape, expected):
    with pytest.raises(ValueError, match=expected):
        Potentials(TOPOLOGY, T, **{part: {level: np.zeros(shape)}})


def test_the_shape_of_a_part_is_reported_in_numbers():
    assert part_shape(TOPOLOGY, "trans", 1, T) == ((T, 1), 2, 3, 3)
    assert part_shape(TOPOLOGY, "segment", 1, T) == (T, None, 2)
    for steps in (1, T):
        assert Potentials(TOPOLOGY, T, init={"root": np.zeros((steps, 1, 2))}).init["root"].shape == (steps, 1, 2)


def test_potentials_from_the_arrays_of_the_engine():
    potentials = Potentials(TOPOLOGY, T, token={"tag": table(T, 3)}, init={"root": table(1, 1, 2)})
    arrays = {("token", 2): table(T, 3), ("init", 0): table(1, 1, 2)}
    assert Potentials.from_arrays(TOPOLOGY, T, arrays) == potentials


@pytest.mark.parametrize(
    ("part", "level", "values", "message"),
    [
        ("token", "tag", table(T, 3, at=(2, 1), is_=np.nan), r"token\['tag'\] is nan at \[2, 1\], expected"),
        ("token", "tag", table(T, 3, at=(0, 0), is_=np.inf), r"token\['tag'\] is inf at \[0, 0\], expected"),
        ("stop", "root", table(T, 1, at=(4, 0), is_=np.nan), r"stop\['root'\] is nan at \[4, 0\]"),
        ("duration", "phrase", table(2, 2, at=(1, 1), is_=np.inf), r"duration\['phrase'\] is inf at \[1, 1\]"),
        (
            "segment",
            "phrase",
            table(T, 2, 2, at=(4, 1, 1), is_=np.nan),
            r"segment\['phrase'\] is nan at \[4, 1, 1\]",
        ),
        ("init", "phrase", table(1, 2, 3, at=(0, 1, 2), is_=np.inf), r"init\['phrase'\] is inf at \[0, 1, 2\]"),
        (
            "trans",
            "phrase",
            table(T, 2, 3, 3, at=(0, 1, 2, 2), is_=np.nan),
            r"trans\['phrase'\] is nan at \[0, 1, 2, 2\], expected a finite number or -inf",
        ),
        ("end", "root", table(1, 1, 2, at=(0, 0, 1), is_=np.inf), r"end\['root'\] is inf at \[0, 0, 1\]"),
    ],
)
def test_nan_and_plus_infinity_are_refused_where_they_stand(part, level, values, message):
    with pytest.raises(ValueError, match=message):
        Potentials(TOPOLOGY, T, **{part: {level: values}})


@pytest.mark.parametrize("part", ["token", "start", "stop", "duration", "segment", "init", "trans", "end"])
def test_unknown_levels_are_named(part):
    with pytest.raises(ValueError, match=r"unknown level: 'tags' .did you mean 'tag'.*'root', 'phrase', 'tag'"):
        Potentials(TOPOLOGY, T, **{part: {"tags": np.zeros((T, 3))}})


@pytest.mark.parametrize("part", ["init", "trans", "end"])
def test_the_bottom_has_no_families(part):
    with pytest.raises(ValueError, match=f"{part} is indexed by the parent's level, but 'tag' is the bottom"):
        Potentials(TOPOLOGY, T, **{part: {"tag": np.zeros((1, 3, 3))}})


def test_unknown_parts_are_named():
    with pytest.raises(ValueError, match="unknown part 'tokens'; the parts are token, start, stop"):
        FLAT["tokens"]


@pytest.mark.parametrize("length", [0, -3])
def test_an_empty_sequence_is_refused(length):
    with pytest.raises(ValueError, match=f"a sequence has at least one step, but length is {length}"):
        Potentials(TOPOLOGY, length)
    with pytest.raises(ValueError, match=f"length is {length}, an empty sequence"):
        Labels.unknown(TOPOLOGY, length)
    with pytest.raises(ValueError, match="empty sequence; expected at least one time step"):
        Labels(TOPOLOGY, np.zeros((3, 0), int), np.zeros((3, 0), int))


def test_unknown_levels_of_a_result_are_named():
    with pytest.raises(ValueError, match="unknown level: 'word'"):
        hscrf.marginals(FLAT).segment("word")


# ------------------------------------------------------------------------------------------------ topology


def test_a_child_that_no_parent_may_have():
    with pytest.raises(ValueError, match="state 'J' of level 'tag' has no parent; expected one in 'phrase'"):
        Topology(
            {"phrase": ["NP", "VP"], "tag": ["N", "V", "J"]},
            children={"phrase": {"NP": ["N"], "VP": ["V", "N"]}},
        )


def test_a_parent_that_may_have_no_child():
    with pytest.raises(ValueError, match="state 'NP' of level 'phrase' has no child; expected one in 'tag'"):
        Topology({"phrase": ["NP", "VP"], "tag": ["N", "V"]}, children={"phrase": {"NP": []}})


def test_unknown_states_are_named():
    with pytest.raises(ValueError, match=r"unknown state of level 'phrase': 'PP'.*'NP', 'VP'"):
        Labels.from_segments(TOPOLOGY, {"phrase": [(0, 2, "PP")]}, length=T)
    with pytest.raises(ValueError, match="unknown level: 'chunk'"):
        Labels.from_segments(TOPOLOGY, {"chunk": [(0, 2, "NP")]}, length=T)
    with pytest.raises(ValueError, match="states of level 'tag' is 3 at 0; expected -1 to 2"):
        Labels(TOPOLOGY, np.full((3, T), [[0], [0], [3]]), np.full((3, T), -1))


# ------------------------------------------------------------------------------- evidence that does not fit


@every_verb
@pytest.mark.parametrize(
    ("evidence", "message"),
    [
        (known(length=T + 1), "evidence has 6 steps, but the potentials have 5"),
        (known(topology=TIMED), "evidence has Topology.*, but the potentials have Topology"),
        ({"phrase": ["NP"] * T}, "evidence is a dict, expected Labels"),
        (np.zeros((3, T), int), "evidence is a ndarray, expected Labels"),
        ("NP NP NP NP NP", "evidence is a str, expected Labels"),
    ],
    ids=["length", "topology", "dict", "array", "string"],
)
def test_evidence_must_be_labels_of_the_same_sequence(verb, evidence, message):
    with pytest.raises(ValueError, match=message):
        verb(FLAT, evidence)


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (known(length=T + 1), "6 steps, but the potentials have 5"),
        (known(), "level 'root' is unknown at 0; expected every state and end to be known"),
        ("labels", "is a str, expected Labels"),
    ],
    ids=["length", "partial", "string"],
)
def test_score_needs_complete_labels_of_the_same_sequence(labels, message):
    with pytest.raises(ValueError, match=message):
        hscrf.score(FLAT, labels)


def test_score_of_an_illegal_configuration():
    labels = hscrf.decode(FLAT)
    states = labels.states.copy()
    states[1], states[2] = TOPOLOGY.state("phrase", "NP"), TOPOLOGY.state("tag", "V")
    with pytest.raises(InfeasibleError, match=r"tag 'V' at 0.*phrase 'NP'"):
        hscrf.score(FLAT, Labels(TOPOLOGY, states, labels.ends))


# ---------------------------------------------------------------------------------- contradictory evidence

AGAINST_RULES = [
    ({"ends": {("phrase", 4): 0}}, "level 'phrase' goes on at the last step, 4|'phrase' goes on at 4"),
    ({"ends": {("root", 2): 1}}, "level 'root' ends at 2"),
    ({"ends": {("tag", 1): 0}}, "level 'tag' goes on at 1"),
    ({"states": {("phrase", 1): "NP", ("phrase", 2): "VP"}, "ends": {("phrase", 1): 0}}, "'phrase' goes on at 1"),
    ({"states": {("phrase", 3): "NP", ("tag", 3): "V"}}, "tag 'V' at 3.*phrase 'NP'"),
    (
        {"states": {("tag", 0): "J", ("tag", 1): "J"}, "ends": {("phrase", 0): 0}},
        "level 'tag': 'J' at 1 may not follow 'J'",
    ),
    (
        {"states": {("phrase", 0): "VP", ("phrase", 1): "VP"}, "ends": {("phrase", 0): 1}},
        "level 'phrase': 'VP' at 1 may not follow 'VP'",
    ),
    (
        {"states": {("tag", 1): "J", ("tag", 3): "V"}, "ends": {("phrase", 1): 0, ("phrase", 2): 0}},
        r"'phrase' is possible from 1 to 4, where it goes on; the labels are tag 'J' at 1, tag 'V' at 3",
    ),
    (
        {"states": {("phrase", 2): "NP"}, "allowed": {"tag": np.tile([False, True, False], (T, 1))}},
        "'phrase' is possible at 2; the labels are phrase 'NP' at 2, tag 'V' at 2",
    ),
    (
        {"states": {("phrase", 2): "NP"}, "allowed": {"phrase": np.tile([False, True], (T, 1))}},
        "level 'phrase' is 'NP' at 2, which is not allowed",
    ),
    ({"allowed": {"phrase": np.zeros((T, 2), bool)}}, "level 'phrase' is allowed no state at 0"),
]


@every_verb
@pytest.mark.parametrize(("cells", "message"), AGAINST_RULES)
def test_evidence_against_the_rules_of_the_hierarchy(verb, cells, message):
    with pytest.raises(InfeasibleError, match=message):
        verb(FLAT, known(**cells))


@every_verb
@pytest.mark.parametrize(
    ("cells", "message"),
    [
        (  # an NP needs three steps, of which it cannot have any before 3
            {"states": {("phrase", 2): "VP", ("phrase", 3): "NP"}},
            "level 'phrase' is 'VP' at 2 and level 'phrase' is 'NP' at 3",
        ),
        (  # a VP has at most two steps
            {"states": {("phrase", 1): "VP"}, "ends": {("phrase", 0): 0, ("phrase", 1): 0}},
            "level 'phrase' goes on at 0 and level 'phrase' goes on at 1 and level 'phrase' is 'VP' at 1",
        ),
        (  # no room for a whole NP between two ends
            {"states": {("phrase", 2): "NP"}, "ends": {("phrase", 0): 1, ("phrase", 2): 1}},
            "level 'phrase' ends at 0 and level 'phrase' ends at 2 and level 'phrase' is 'NP' at 2",
        ),
    ],
    ids=["too-short", "too-long", "no-room"],
)
def test_evidence_against_the_durations(verb, cells, message):
    with pytest.raises(InfeasibleError, match=message):
        verb(Potentials(TIMED, T), known(topology=TIMED, **cells))


@every_verb
def test_evidence_against_the_successors_across_unknown_steps(verb):
    """From A one comes to D in three steps, not in two."""
    topology = Topology(
        {"step": ["A", "B", "C", "D"]}, successors={"step": {"A": ["B"], "B": ["C"], "C": ["D"], "D": ["A"]}}
    )
    p = Potentials(topology, 6)
    labels = known({("step", 1): "A", ("step", 3): "D", ("step", 5): "B"}, topology=topology, length=6)
    with pytest.raises(InfeasibleError, match=r"the evidence: level 'step' is 'A' at 1 and level 'step' is 'D' at 3$"):
        verb(p, labels)


@every_verb
def test_evidence_against_potentials_that_forbid(verb):
    token = np.zeros((T, 3))
    token[2, [0, 2]] = -np.inf  # only V is possible at 2, and NP has no V
    p = Potentials(TOPOLOGY, T, token={"tag": token})
    labels = known({("phrase", 0): "VP", ("phrase", 2): "NP", ("tag", 4): "J"})
    with pytest.raises(InfeasibleError, match=r"agrees with the evidence: level 'phrase' is 'NP' at 2$"):
        verb(p, labels)


@every_verb
def test_sets_that_contradict_are_spelled_out(verb):
    trans = np.zeros((1, 2, 3, 3))
    trans[:, :, 0] = -np.inf  # nothing follows N within a phrase
    p = Potentials(TOPOLOGY, T, trans={"phrase": trans})
    allowed = np.ones((T, 3), bool)
    allowed[1, 1:] = False
    labels = known(ends={("phrase", 1): 0}, allowed={"tag": allowed})
    with pytest.raises(InfeasibleError, match=r"level 'phrase' goes on at 1 and level 'tag' is one of \['N'\] at 1"):
        verb(p, labels)


@every_verb
def test_potentials_that_allow_nothing_at_all(verb):
    token = np.zeros((T, 3))
    token[3] = -np.inf
    p = Potentials(TOPOLOGY, T, token={"tag": token})
    with pytest.raises(InfeasibleError, match=r"the potentials and the topology allow no configuration of 5 steps$"):
        verb(p)
    with pytest.raises(InfeasibleError, match="allow no configuration of 5 steps, whatever the evidence"):
        verb(p, known({("phrase", 0): "NP"}))


@every_verb
def test_a_topology_that_allows_nothing_of_this_length(verb):
    topology = Topology({"phrase": ["NP"], "tag": ["N"]}, min_duration={"phrase": 4})
    assert hscrf.log_partition(Potentials(topology, 4)) == 0
    with pytest.raises(InfeasibleError, match="the potentials and the topology allow no configuration of 3 steps"):
        verb(Potentials(topology, 3))


CYCLE = np.array([[0, 1, 0], [0, 0, 1], [1, 0, 0]])  # A, B, C, A, ...


def cyclic_model():
    """A hidden Markov model whose states take turns; the topology itself forbids nothing."""
    topology = Topology({"step": ["A", "B", "C"]})
    emission = Categorical(("w",), np.ones((3, 1)))
    tables = {"init": {"root": np.full((1, 3), 1 / 3)}, "trans": {"root": CYCLE[None]}, "end": {}}
    return hscrf.HHMM.from_parameters(topology, emission=emission, **tables)


def test_a_model_blames_only_the_labels_that_its_zeros_forbid():
    model = cyclic_model()
    cells = {("step", 0): "A", ("step", 1): "B", ("step", 3): "B", ("step", 5): "C"}
    labels = known(cells, topology=model.topology_, length=6)
    X = [["w"] * 6] * 2
    told = []
    for verb in (
        lambda: model.predict(X, evidence=[None, labels]),
        lambda: hscrf.decode(model.potentials(X)[1], labels),
    ):
        with pytest.raises(InfeasibleError, match=r"level 'step' is 'A' at 0 and level 'step' is 'B' at 3$") as caught:
            verb()
        told.append((caught.value.sequence, caught.value.cells))
    assert told == [(1, told[0][1]), (None, told[0][1])]


def test_refusal_takes_the_potentials_of_the_sequence():
    trans = np.where(CYCLE, 0.0, -np.inf)[None, None]
    topology = Topology({"step": ["A", "B", "C"]})
    labels = known({("step", t): "ABCAC"[t] for t in range(5)}, topology=topology)
    error = Posterior(Potentials(topology, 5, trans={"root": trans}), labels).infeasible().of_sequence(7)
    assert error.cells == (Cell("step", 0, "is 'A'"), Cell("step", 4, "is 'C'"))
    assert str(error).startswith("Y[7]: no segmentation agrees with the evidence: level 'step' is 'A' at 0")
    nothing = np.full((5, 3), -np.inf)
    error = Posterior(Potentials(topology, 5, token={"step": nothing})).infeasible().of_sequence(7, "X")
    assert str(error) == "X[7]: the potentials and the topology allow no configuration of 5 steps"
    assert (error.sequence, error.cells) == (7, ())


def test_a_likelihood_blames_only_the_labels_that_its_features_forbid():
    """A table of durations allows two steps; the topology itself has no limit."""
    topology = Topology({"step": ["A", "B"]}, max_duration={"step": None})
    block = ConstantBlock(("duration", 1), (2, 2), np.arange(4))
    seen = ObservationEncoder().fit_pack([np.zeros((T, 1))])
    labels = known({("step", 0): "A", ("step", 4): "B"}, {("step", 1): 0, ("step", 2): 0}, topology=topology)
    loss = Likelihood(Scorer(topology, [block]), seen, [labels])
    with pytest.raises(InfeasibleError, match=r"^Y\[0\]: .*: level 'step' goes on at 1 and level 'step' goes on at 2$"):
        loss(np.zeros(4))


def test_errors_of_our_own_are_value_errors():
    assert issubclass(InfeasibleError, ValueError)

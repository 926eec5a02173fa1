"""Pictures by their structure: artists, places and names, not pixels."""

import copy
import dataclasses

import matplotlib

matplotlib.use("Agg")

import numpy as np
import pytest
from matplotlib import pyplot

import hscrf
from hscrf import plots
from hscrf.datasets.nested import make_nested
from hscrf.plots.style import INK, state_style

TOPOLOGY = hscrf.Topology(
    {"phrase": ["NP", "VP", "O"], "tag": ["D", "N", "V"]},
    children={"phrase": {"NP": ["D", "N"], "VP": ["V"]}},
    max_duration={"phrase": 6},
)
TREE = [("NP", ["D", "N", "N"]), ("NP", ["N"]), ("VP", ["V", "V"]), ("O", ["D", "V"])]


@pytest.fixture(autouse=True)
def close_figures():
    yield
    pyplot.close("all")


@pytest.fixture(scope="module")
def labels():
    return hscrf.Labels.from_tree(TOPOLOGY, TREE)


@pytest.fixture(scope="module")
def model(labels):
    X = [[["w=" + name] for name in labels.column("tag")]] * 4
    solver = hscrf.LBFGS(max_iter=15)
    return hscrf.HSCRF(pairs="all", c2=0.1, solver=solver).fit(X, [labels] * 4, development=(X[:1], [labels]))


def boxes(ax, label):
    """Start, stop, top and bottom of every bar under a label."""
    found = []
    for collection in ax.collections:
        if collection.get_label() == label:
            extents = [path.get_extents() for path in collection.get_paths()]
            found += [(e.x0, e.x1, round(e.y0, 6), round(e.y1, 6)) for e in extents]
    return sorted(found)


def points(ax, label):
    return [tuple(xy) for line in ax.lines if line.get_label() == label for xy in line.get_xydata().tolist()]


def drawn(ax):
    """Draw for real: warnings of layout and fonts are errors here."""
    ax.figure.canvas.draw()
    return ax


def overlaps(artists):
    """Pairs of artists whose boxes share more than a point of area."""
    extents = [artist.get_window_extent() for artist in artists]
    return [
        (artists[i], artists[j])
        for i, one in enumerate(extents)
        for j, other in enumerate(extents[:i])
        if min(one.x1, other.x1) - max(one.x0, other.x0) > 1 and min(one.y1, other.y1) - max(one.y0, other.y0) > 1
    ]


# ------------------------------------------------------------------------------
# Segmentations


def test_segments_become_bars(labels):
    ax = drawn(plots.plot_segments(labels))
    assert [text.get_text() for text in ax.get_yticklabels()] == ["phrase", "tag"]
    assert [box[:2] for box in boxes(ax, "_NP")] == [(0, 3), (3, 4)], "neighbours of one state stay two segments"
    assert [box[:2] for box in boxes(ax, "_VP")] == [(4, 6)]
    assert [box[:2] for box in boxes(ax, "_N")] == [(1, 4)], "equal steps of a unit bottom are one bar"
    (phrase,), (tag,) = {box[2:] for box in boxes(ax, "_NP")}, {box[2:] for box in boxes(ax, "_N")}
    assert phrase[1] < tag[0], "the axis points down: children stand below their parents"
    assert ax.get_xlim() == (0, 8)
    assert ax.yaxis_inverted()


def test_names_are_written_in_the_middle_of_their_segments(labels):
    ax = drawn(plots.plot_segments(labels))
    written = {(text.get_text(), text.get_position()[0]) for text in ax.texts}
    assert {("NP", 1.5), ("NP", 3.5), ("VP", 5.0), ("O", 7.0)} <= written
    assert ax.get_legend() is None


def lightness(color):
    return float(np.dot(matplotlib.colors.to_rgb(color), [0.299, 0.587, 0.114]))


def test_names_stand_out_from_their_segments(labels):
    ax = drawn(plots.plot_segments(labels))
    colors = {c.get_label(): c.get_facecolor()[0] for c in ax.collections if c.get_label() not in ("_edges", "_wrong")}
    shown = [(lightness(text.get_color()), lightness(colors["_" + text.get_text()][:3])) for text in ax.texts]
    assert min(abs(ink - paper) for ink, paper in shown) > 0.4
    assert {round(ink) for ink, _ in shown} == {0, 1}


def test_names_stand_out_from_veiled_segments(labels):
    improbable = {level: np.zeros((8, n)) for level, n in zip(TOPOLOGY.levels, TOPOLOGY.n_states, strict=True)}
    known = hscrf.marginals(hscrf.Potentials(TOPOLOGY, 8))
    ax = drawn(plots.plot_segments(labels, marginals=dataclasses.replace(known, state=improbable)))
    assert {text.get_color() for text in ax.texts} == {"black"}


def test_names_that_fit_nowhere_go_to_a_legend():
    long = hscrf.Topology({"phrase": ["a_very_long_name_for_a_phrase", "b"]}, max_duration={"phrase": None})
    labels = hscrf.Labels.from_segments(long, {"phrase": [(0, 1, long.states[1][0]), (1, 200, "b")]})
    ax = drawn(plots.plot_segments(labels))
    assert [text.get_text() for text in ax.texts] == ["b"]
    legend = [text.get_text() for text in ax.get_legend().get_texts()]
    assert legend[:3] == ["phrase:", long.states[1][0], "b"]


def test_the_prediction_stands_below_the_truth_and_differences_are_marked(labels):
    other = hscrf.Labels.from_tree(TOPOLOGY, [("NP", ["D", "N", "N"]), ("O", ["N", "V", "V", "D", "V"])])
    ax = drawn(plots.plot_segments(labels, other))
    assert [text.get_text() for text in ax.get_yticklabels()] == ["phrase", "predicted", "tag", "predicted"]
    truth, predicted = boxes(ax, "_O")[1], boxes(ax, "_O")[0]
    assert (truth[:2], predicted[:2]) == ((6, 8), (3, 8))
    assert truth[3] < predicted[2]
    assert [box[:2] for box in boxes(ax, "_wrong")] == [(3, 6)]
    assert truth[3] < np.mean(boxes(ax, "_wrong")[0][2:]) < predicted[2] + 0.1


def test_a_right_prediction_has_no_marks(labels):
    assert boxes(plots.plot_segments(labels, labels), "_wrong") == []


def test_marginals_veil_what_is_improbable(labels):
    potentials = hscrf.Potentials(TOPOLOGY, 8, token={"tag": 3 * np.eye(3)[labels.states[2]]})
    marginals = hscrf.marginals(potentials)
    ax = drawn(plots.plot_segments(labels, labels, marginals))
    assert len(ax.images) == 2, "one for each predicted level"
    veil = ax.images[1].get_array()[0, :, 3]
    shown = marginals.state["tag"][np.arange(8), labels.states[2]]
    np.testing.assert_allclose(veil, 0.85 * (1 - shown), rtol=0, atol=1e-12)
    assert "paler: less probable" in [text.get_text() for text in ax.get_legend().get_texts()]


def test_evidence_is_marked_where_it_is_known(labels):
    known = hscrf.Labels.from_segments(TOPOLOGY, {"phrase": [(0, 3, "NP")]}, length=8)
    allowed = np.ones((8, 3), dtype=bool)
    allowed[5, 0] = False
    known = hscrf.Labels(TOPOLOGY, known.states, known.ends, {"tag": allowed})
    ax = drawn(plots.plot_segments(labels, evidence=known))
    assert [x for x, _ in points(ax, "_evidence")] == [0.5, 1.5, 2.5]
    assert [x for x, _ in points(ax, "_ends")] == [3]
    assert [x for x, _ in points(ax, "_sets")] == [5.5]
    assert {y for _, y in points(ax, "_evidence")} == {y for _, y in points(ax, "_ends")}


def test_unknown_labels_are_left_open():
    known = hscrf.Labels.from_segments(TOPOLOGY, {"phrase": [(2, 5, "NP")]}, length=8)
    ax = drawn(plots.plot_segments(known))
    assert [box[:2] for box in boxes(ax, "_unknown")] == [(0, 2), (0, 8), (5, 8)]


def test_several_sequences_go_below_each_other(labels):
    short = hscrf.Labels.from_tree(TOPOLOGY, TREE[:2])
    ax = drawn(plots.plot_segments([labels, short], [labels, short], evidence=[None, short]))
    assert len(ax.get_yticks()) == 8
    assert ax.get_xlim() == (0, 8)
    assert max(x for x, _ in points(ax, "_evidence")) == 3.5


def test_a_root_of_several_classes_has_a_track():
    topology = hscrf.Topology({"tag": ["a", "b"]}, root=["good", "bad"])
    labels = hscrf.Labels.from_segments(topology, {"root": "bad", "tag": [(0, 1, "a"), (1, 2, "b")]})
    ax = drawn(plots.plot_segments(labels))
    assert [text.get_text() for text in ax.get_yticklabels()] == ["root", "tag"]


def test_wrong_arguments_are_named(labels, model):
    short = hscrf.Labels.from_tree(TOPOLOGY, TREE[:2])
    with pytest.raises(ValueError, match=r"labels\[0\] has 8 steps but prediction\[0\] has 4"):
        plots.plot_segments(labels, short)
    with pytest.raises(ValueError, match="labels has 2 sequences but prediction has 1"):
        plots.plot_segments([labels, labels], [labels])
    with pytest.raises(ValueError, match="labels is empty"):
        plots.plot_segments([])
    with pytest.raises(TypeError, match=r"prediction\[0\] is a str; expected Labels"):
        plots.plot_segments(labels, "NP")
    with pytest.raises(ValueError, match="expected the levels root > phrase > tag"):
        plots.plot_segments(labels, hscrf.Labels.unknown(hscrf.Topology({"tag": ["a"]}), 8))
    with pytest.raises(ValueError, match=r"marginals\[0\] of level .* have shape"):
        plots.plot_segments(labels, marginals=hscrf.marginals(hscrf.Potentials(TOPOLOGY, 5)))
    with pytest.raises(ValueError, match="HSCRF has no topology_; expected a fitted model or a Topology"):
        plots.plot_topology(hscrf.HSCRF())
    with pytest.raises(ValueError, match="fit it with Duration\\('tag'\\)"):
        plots.plot_durations(model, "tag")
    with pytest.raises(ValueError, match="level is 'root'"):
        plots.plot_transitions(model, "root")
    with pytest.raises(ValueError, match="exceeds the threshold 1e"):
        plots.plot_transitions(model, "tag", threshold=1e6)


def test_axes_given_are_used_and_their_figure_keeps_its_size(labels, model):
    figure, (left, right) = pyplot.subplots(2, figsize=(7, 7), layout="constrained")
    assert plots.plot_segments(labels, labels, ax=left) is left
    assert plots.plot_topology(model, ax=right) is right
    assert tuple(figure.get_size_inches()) == (7, 7)
    drawn(left)


@pytest.mark.parametrize("size", [5, 40])
def test_segments_of_few_and_many_states_do_not_overlap(size):
    _, Y = make_nested(2, sizes=(4, size), length=150, durations=(20, 4), random_state=1)
    ax = drawn(plots.plot_segments(*Y))
    assert overlaps(ax.texts) == []
    legend = ax.get_legend()
    if legend is not None:
        below = ax.xaxis.get_tightbbox().y0
        assert legend.get_window_extent().y1 <= below + 1, "the legend stays clear of the axis"
        assert legend.get_window_extent().y0 >= -1, "and within the figure"
        assert overlaps(legend.get_texts()) == []
        if size == 40:
            assert legend.get_window_extent().width > 0.6 * ax.get_window_extent().width, "it is wide rather than tall"


def test_states_of_a_level_look_different_in_greyscale():
    topology = hscrf.Topology({"tag": [f"s{k}" for k in range(40)]})
    styles = [state_style(topology, 1, s) for s in range(40)]
    looks = {
        (round(0.299 * r + 0.587 * g + 0.114 * b, 2), st["hatch"]) for st in styles for r, g, b in [st["facecolor"]]
    }
    assert len(looks) == 40
    lightness = sorted({look for look, _ in looks})
    assert np.diff(lightness).min() > 0.05


# ------------------------------------------------------------------------------
# Models


def test_a_topology_shows_its_children():
    ax = drawn(plots.plot_topology(TOPOLOGY))
    nodes = {patch.get_label(): patch for patch in ax.patches if patch.get_label() != "_edge"}
    edges = [patch for patch in ax.patches if patch.get_label() == "_edge"]
    assert set(nodes) == {"NP", "VP", "O", "D", "N", "V"}
    assert len(edges) == 2 + 1 + 3
    assert nodes["NP"].get_y() > nodes["D"].get_y(), "parents stand above their children"
    assert nodes["D"].get_linewidth() > nodes["NP"].get_linewidth(), "shared children have a heavy border"


def test_a_model_shows_children_by_weight(model):
    ax = drawn(plots.plot_topology(model))
    edges = [patch for patch in ax.patches if patch.get_label() == "_edge"]
    kept = model.learned_topology()
    assert len(edges) == sum(table.sum() for table in kept.children[1:])
    assert len({round(edge.get_linewidth(), 3) for edge in edges}) > 1
    more = plots.plot_topology(model, threshold=-100)
    assert sum(patch.get_label() == "_edge" for patch in more.patches) >= len(edges)


def test_children_that_are_allowed_but_not_favoured_are_thin_and_grey(model):
    """No state stands without a parent, and the legend says what grey is."""
    ax = drawn(plots.plot_topology(model, threshold=1e6))
    edges = [patch for patch in ax.patches if patch.get_label() == "_legal"]
    assert len(edges) == sum(table.sum() for table in model.topology_.children[1:])
    assert {patch.get_label() for patch in ax.patches} & {"_edge"} == set()
    assert max(edge.get_linewidth() for edge in edges) < 0.5
    assert {edge.get_edgecolor()[:3] for edge in edges} == {(0.72, 0.72, 0.72)}
    legend = ax.get_legend()
    assert [text.get_text() for text in legend.get_texts()][1] == "allowed, weight of at most 1e+06"
    around = ax.figure.bbox
    assert around.x0 <= legend.get_window_extent().x0, "all of the legend is in the picture"
    assert legend.get_window_extent().x1 <= around.x1
    boxes = [p.get_window_extent() for p in ax.patches if p.get_label() in model.topology_.states[-1]]
    assert legend.get_window_extent().y1 <= min(box.y0 for box in boxes)
    ax = drawn(plots.plot_topology(model))
    both = sum(patch.get_label() in ("_edge", "_legal") for patch in ax.patches)
    assert both == sum(table.sum() for table in model.topology_.children[1:])
    texts = drawn(plots.plot_topology(TOPOLOGY)).get_legend().get_texts()
    assert [text.get_text() for text in texts] == ["colour and dashes: lines of one parent"]


def positive_weights(model, parts):
    """Weights of phrases and their tags, by the states they speak of."""
    table = model.weights_.query("level == 'phrase' and weight > 0")
    return [(row.states.split(" > "), row.weight) for row in table.itertuples() if row.part in parts]


def test_edges_are_as_wide_as_their_strongest_weight(model):
    strongest = {}
    for (parent, *tags), weight in positive_weights(model, ("init", "trans", "end")):
        for tag in tags:
            strongest[parent, tag] = max(weight, strongest.get((parent, tag), 0.0))
    expected = 0.5 + 2.5 * np.sort([*strongest.values()]) / max(strongest.values())
    ax = drawn(plots.plot_topology(model))
    found = sorted(patch.get_linewidth() for patch in ax.patches if patch.get_label() == "_edge")
    np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_arrows_are_as_wide_as_their_weights(model):
    arrows = [(u != v, weight) for (_, u, v), weight in positive_weights(model, ("trans",))]
    expected = 0.5 + 2.0 * np.sort([weight for apart, weight in arrows if apart]) / max(weight for _, weight in arrows)
    ax = drawn(plots.plot_transitions(model, "tag"))
    found = sorted(patch.get_linewidth() for patch in ax.patches if patch.get_label() == "_arrow")
    np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_transitions_have_an_arrow_for_each_positive_weight(model):
    ax = drawn(plots.plot_transitions(model, "tag"))
    weights = model.weights_
    trans = weights[(weights.level == "phrase") & (weights.part == "trans") & (weights.weight > 0)]
    pairs = [states.split(" > ") for states in trans.states]
    arrows = [patch for patch in ax.patches if patch.get_label() == "_arrow"]
    rings = [line for line in ax.lines if line.get_label() == "_ring"]
    assert len(arrows) == sum(u != v for _, u, v in pairs)
    assert len(rings) == sum(u == v for _, u, v in pairs)
    titles = [text.get_text() for text in ax.texts if text.get_weight() == "bold"]
    assert titles == ["NP", "VP", "O"]


def test_transitions_of_a_topology_show_first_and_last_children():
    topology = hscrf.Topology({"tag": ["a", "b"]}, successors={"tag": {"a": ["b"], "b": []}})
    ax = drawn(plots.plot_transitions(topology, "tag"))
    assert sum(patch.get_label() == "_arrow" for patch in ax.patches) == 1
    (node,) = [line for line in ax.lines if line.get_label() == "_a"]
    assert node.get_marker() == "s"
    assert node.get_markerfacecolor() == INK


@pytest.mark.parametrize("size", [1, 13, 40])
def test_diagrams_of_few_and_many_states_do_not_overlap(size):
    names = [f"state_number_{k}" for k in range(size)]
    near = {one: [names[(k + step) % size] for step in range(3)] for k, one in enumerate(names)}
    topology = hscrf.Topology({"activity": ["one", "two"], "action": names}, successors={"action": near})
    for ax in (plots.plot_topology(topology), plots.plot_transitions(topology, "action")):
        drawn(ax)
        upright = [text for text in ax.texts if text.get_rotation() % 90 == 0]
        assert overlaps(upright) == []
        inside = ax.figure.bbox
        assert all(inside.x0 - 1 <= box.x0 and box.x1 <= inside.x1 + 1 for box in map(_extent, ax.texts))


def _extent(text):
    return text.get_window_extent()


def test_durations_have_a_curve_for_each_state(model):
    ax = drawn(plots.plot_durations(model, "phrase"))
    assert [text.get_text() for text in ax.get_yticklabels()] == ["NP", "VP", "O"]
    for s, line in enumerate(ax.lines):
        length, height = line.get_data()
        assert length.tolist() == [1, 2, 3, 4, 5, 6]
        assert np.isclose(height.max() - (2 - s), 0.85), "the best length is at the top of its row"


def test_durations_end_at_the_limits_of_a_state(model):
    limits = {"phrase": {"NP": 6, "VP": 2, "O": 6}}
    shorter = hscrf.Topology({"phrase": ["NP", "VP", "O"], "tag": ["D", "N", "V"]}, max_duration=limits)
    model = copy.copy(model)
    model.topology_ = shorter
    assert (plots.plot_durations(model, "phrase").lines[1].get_ydata() - 1 > 0).tolist() == [True] * 2 + [False] * 4


def test_durations_are_those_of_the_potentials(model):
    X = [[["w=D"]] * 3]
    expected = model.potentials(X)[0].duration["phrase"]
    height = plots.plot_durations(model, "phrase").lines[0].get_ydata() - 2
    np.testing.assert_allclose(np.log(height / 0.85), expected[:, 0] - expected[:, 0].max(), rtol=0, atol=1e-9)


def test_durations_expected_in_data_are_the_counts(model):
    X = [[["w=D"], ["w=N"], ["w=V"]], [["w=V"]]]
    expected = sum(hscrf.marginals(p).counts.duration["phrase"] for p in model.potentials(X))
    height = plots.plot_durations(model, "phrase", X=X).lines[1].get_ydata() - 1
    np.testing.assert_allclose(height / 0.85, (expected[:, 1] / expected[:, 1].max())[:3], rtol=0, atol=1e-12)


def test_training_shows_loss_and_development_score(model):
    ax = drawn(plots.plot_training(model))
    assert ax.lines[0].get_xydata().tolist() == [[h["iteration"], h["loss"]] for h in model.history_]
    (right,) = [other for other in ax.figure.axes if other is not ax]
    assert right.lines[0].get_ydata().tolist() == [h["score"] for h in model.history_]
    assert right.lines[1].get_ydata()[0] == max(h["score"] for h in model.history_)


@pytest.fixture(scope="module")
def hhmm(labels):
    X = [["d", "n", "n", "n", "v", "v", "d", "v"]] * 3
    topology = hscrf.Topology({"phrase": ["NP", "VP", "O"], "tag": ["D", "N", "V"]})
    known = [{"phrase": labels.column("phrase"), "tag": [*labels.column("tag")[:-1], "?"]}] * 3
    return hscrf.HHMM(topology, smoothing=0.1, max_iter=6, tol=0, random_state=0).fit(X, known)


def test_training_of_an_hhmm_shows_its_objective_and_likelihood(hhmm):
    ax = drawn(plots.plot_training(hhmm))
    assert [line.get_label() for line in ax.lines] == ["objective", "log-likelihood"]
    for line, key in zip(ax.lines, ("objective", "log_likelihood"), strict=True):
        assert line.get_xydata().tolist() == [[h["iteration"], h[key]] for h in hhmm.history_]
    assert len({line.get_linestyle() for line in ax.lines}) == 2
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["objective", "log-likelihood"]


def test_training_draws_what_a_history_has(model):
    other = copy.copy(model)
    other.history_ = [{"loss": 3.0}, {"loss": 2.0}]
    assert plots.plot_training(other).lines[0].get_xydata().tolist() == [[1, 3.0], [2, 2.0]]
    other.history_ = [{"speed": 3.0}]
    with pytest.raises(ValueError, match="has none of loss, objective, log_likelihood"):
        plots.plot_training(other)
    other.history_ = []
    with pytest.raises(ValueError, match=f"the history of the model is empty: {model.stop_reason_}"):
        plots.plot_training(other)


def test_an_hhmm_is_drawn_by_its_probabilities(hhmm):
    """Its weights are logarithms, none of them above the threshold of 0."""
    strongest = np.maximum.reduce(
        [hhmm.init_["phrase"], hhmm.trans_["phrase"].max(1), hhmm.trans_["phrase"].max(2), hhmm.end_["phrase"]]
    )
    ax = drawn(plots.plot_topology(hhmm, threshold=0.3))
    edges = [patch.get_linewidth() for patch in ax.patches if patch.get_label() == "_edge"]
    expected = np.sort(strongest[strongest > 0.3])
    assert 0 < expected.size < strongest.size
    np.testing.assert_allclose(sorted(edges), 0.5 + 2.5 * expected / expected.max(), rtol=1e-6)
    ax = drawn(plots.plot_transitions(hhmm, "tag", threshold=0.3))
    trans = hhmm.trans_["phrase"] > 0.3
    assert sum(patch.get_label() == "_arrow" for patch in ax.patches) == sum(
        (t & ~np.eye(3, dtype=bool)).sum() for t in trans
    )


def test_names_may_hold_dollars_and_underscores():
    topology = hscrf.Topology({"tag": ["$a$", "_b"]}, max_duration={"tag": None})
    labels = hscrf.Labels.from_segments(topology, {"tag": [(0, 3, "$a$"), (3, 6, "_b"), (6, 400, "$a$")]})
    shown = {r"\$a\$", " _b"}  # neither mathematics nor hidden
    segments = drawn(plots.plot_segments(labels))
    assert shown <= {text.get_text() for text in (*segments.texts, *segments.get_legend().get_texts())}
    for ax in (plots.plot_topology(topology), plots.plot_transitions(topology, "tag")):
        assert shown <= {text.get_text() for text in drawn(ax).texts}
    confusion = drawn(plots.plot_confusion([labels], [labels], "tag"))
    assert shown == {text.get_text() for text in confusion.get_yticklabels()}


# ------------------------------------------------------------------------------
# Results


def test_confusion_counts_steps(labels):
    other = hscrf.Labels.from_tree(TOPOLOGY, [("NP", ["D", "N", "N"]), ("O", ["N", "V", "V", "D", "V"])])
    ax = drawn(plots.plot_confusion([labels], [other], "phrase"))
    assert [text.get_text() for text in ax.get_yticklabels()] == ["NP", "VP", "O"]
    numbers = {text.get_position(): text.get_text() for text in ax.texts}
    assert numbers == {(0, 0): "3", (2, 0): "1", (2, 1): "2", (2, 2): "2"}
    np.testing.assert_allclose(ax.images[0].get_array()[0], [0.75, 0, 0.25])
    inks = {text.get_position(): text.get_color() for text in ax.texts}
    assert inks == {(0, 0): "white", (2, 0): "black", (2, 1): "white", (2, 2): "white"}, "light on dark, dark on light"


def test_confusion_of_many_states_has_no_numbers():
    _, Y = make_nested(3, sizes=(40,), length=400, random_state=0)
    ax = drawn(plots.plot_confusion(Y, Y, "level1"))
    assert len(ax.texts) == 0
    assert len(ax.get_xticks()) == 40
    assert overlaps(ax.get_yticklabels()) == []
    assert overlaps(ax.get_xticklabels()) == []


def test_evidence_curves_show_means_and_ranges():
    ax = drawn(plots.plot_evidence_curve([0, 0.5], {"a": [0.5, 0.75], "b": [[0.5, 0.7], [0.8, 1.0]]}))
    assert [line.get_label() for line in ax.lines] == ["a", "b"]
    np.testing.assert_allclose(ax.lines[1].get_ydata(), [0.6, 0.9])
    assert len(ax.collections) == 1
    assert len({(line.get_marker(), str(line.get_linestyle())) for line in ax.lines}) == 2
    with pytest.raises(ValueError, match=r"accuracies of 'accuracy' have shape \(3,\)"):
        plots.plot_evidence_curve([0, 0.5], [1, 2, 3])


def test_steps_are_whole():
    topology = hscrf.Topology({"phrase": ["NP", "VP"], "tag": ["N", "V"]})
    labels = hscrf.Labels.from_columns(topology, {"phrase": ["NP", "NP", "VP"], "tag": ["N", "N", "V"]})
    ticks = plots.plot_segments(labels).get_xticks()
    assert (ticks == ticks.astype(int)).all()

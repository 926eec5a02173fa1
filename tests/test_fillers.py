"""Runs that no prefix delimits: their ends are open below an unknown parent, and they are cut only where it ends."""

import io
import itertools
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import enumeration as twin
from hscrf import HSCRF, InfeasibleError, Labels, Potentials, Topology, decode, k_best, log_partition, metrics
from hscrf.io import read_columns, read_jsonl, read_table, to_labels
from hscrf.labels.induction import LabelStatistics, encode_labels
from hscrf.labels.reading import read_labels
from test_twin import to_potentials

NAMES = {"top": ["A", "O"], "mid": ["P", "Q", "O"], "low": ["n", "O"]}
DEEP = Topology(NAMES, max_duration={"low": None})
PAIR = Topology({"mid": ["P", "Q"], "low": ["n", "O"]}, max_duration={"low": None})


# -- what is read ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("mid", "ends"),
    [
        (["B-P", "I-P", "B-Q", "I-Q"], [1, 1, 0, 1]),  # known: cut where it ends
        (["B-P", "I-P", "I-P", "I-P"], [1, 0, 0, 1]),
        (["?", "?", "?", "?"], [1, -2, -2, 1]),  # unknown: open
        (["B-P", "?", "B-Q", "I-Q"], [1, 1, 0, 1]),  # B-Q tells that something ends before it
        (["B-P", "?", "I-Q", "I-Q"], [1, -2, 0, 1]),
    ],
)
@pytest.mark.parametrize("low", [["B-n", "O", "O", "O"], ["S-n", "O", "O", "O"]])
def test_a_run_of_o_follows_its_parent(mid, ends, low):
    scheme = {"mid": "bio", "low": "bioes"}
    assert Labels.from_columns(PAIR, {"mid": mid, "low": low}, scheme).ends[2].tolist() == ends


def test_boundaries_say_what_else_a_run_may_be():
    low = {"low": ["B-n", "I-n", "O", "O"]}

    def read(boundaries, **above):
        return Labels.from_columns(PAIR, {**above, **low}, "bio", boundaries).ends[2].tolist()

    assert read("runs") == [0, 1, -2, 1]
    assert read("fixed") == [0, 1, 0, 1]
    assert read("unknown") == [0, 1, -1, 1]
    cut = ["B-P", "I-P", "I-P", "B-Q"]
    assert read("fixed", mid=cut) == read("unknown", mid=cut) == read("runs", mid=cut) == [0, 1, 1, 1]


def test_plain_columns_below_an_unknown_parent_are_open_too():
    assert Labels.from_columns(DEEP, {"low": ["n", "n", "O", "O"]}).ends[3].tolist() == [-2, 1, -2, 1]
    assert Labels.from_columns(DEEP, {"top": ["A"] * 4}).ends[1].tolist() == [0, 0, 0, 1]  # the root is its parent


def test_a_run_below_gaps_between_segments_is_open():
    columns = {"mid": [(0, 2, "P")], "low": ["O", "O", "O", "O"]}
    assert read_labels(PAIR, columns, "bio", 4).ends[2].tolist() == [0, 1, -2, 1]


def test_a_filler_follows_a_filler_that_is_open_itself():
    labels = Labels.from_columns(DEEP, {"mid": ["O", "O", "O"], "low": ["O", "O", "O"]}, "bio")
    assert labels.ends[2:].tolist() == [[-2, -2, 1], [-2, -2, 1]]
    above = Labels.from_columns(DEEP, {"top": ["B-A", "O", "O"], "mid": ["O"] * 3, "low": ["O"] * 3}, "bio")
    assert above.ends[1:].tolist() == [[1, 0, 1]] * 3


def test_steps_of_a_unit_bottom_always_end():
    unit = Topology({"mid": ["P"], "tag": ["n", "v"]})
    assert Labels.from_columns(unit, {"tag": ["n", "n", "v"]}).ends[2].tolist() == [1, 1, 1]


def test_parts_of_the_data_read_runs_alike():
    """A bottom that only another part shows to persist is read as if all had been read at once."""
    Y = [{"mid": ["P", "?", "P"], "low": ["x", "x", "x"]}, {"mid": ["P", "P"], "low": [(0, 2, "x")]}]
    one, other = LabelStatistics(), LabelStatistics()
    parts = one.update(Y[:1], [3]) + other.update(Y[1:], [2], offset=1)
    topology, labels = encode_labels(Y, [3, 2], None, "plain")
    assert one.merge(other).over(parts, topology) == labels
    assert labels[0].ends[2].tolist() == [-2, -2, 1]


def test_an_open_run_limits_durations_by_its_length():
    Y = [{"mid": ["B-P", "B-P"], "low": ["B-n", "O"]}, {"low": ["O", "O", "O", "B-n"]}]
    topology, _ = encode_labels(Y, [2, 4], None, "bio", limited=["low"])
    assert topology.max_duration[2].tolist() == [3, 3]


def test_open_runs_are_scored_as_they_are_written():
    truth = Labels.from_columns(PAIR, {"low": ["O", "O", "B-n", "I-n"]}, "bio")
    guess = Labels.from_columns(PAIR, {"mid": ["B-P"] * 4, "low": ["O", "O", "B-n", "B-n"]}, "bio")
    assert metrics.segment_scores([truth], [truth], "low").f1 == 1
    assert metrics.segment_scores([truth], [guess], "low", ignore="O").f1 == 0
    assert metrics.report([truth], [guess], output_dict=True)["levels"]["low"]["sequences"] == 1


FILES = {
    "columns": (read_columns, "a ? B-n\nb ? O\nc ? O\n"),
    "jsonl": (read_jsonl, '{"tokens": ["a", "b", "c"], "labels": {"low": ["B-n", "O", "O"]}}\n'),
    "segments above": (
        read_jsonl,
        '{"tokens": ["a", "b", "c"], "labels": {"mid": [[0, 1, "P"]], "low": ["B-n", "O", "O"]}}\n',
    ),
    "table": (read_table, "sequence,word,mid,low\n1,a,,B-n\n1,b,,O\n1,c,?,O\n"),
}


@pytest.mark.parametrize("kind", FILES)
def test_files_are_read_alike(kind):
    read, text = FILES[kind]
    (document,) = read(io.StringIO(text), ["mid", "low"])
    assert to_labels(document, PAIR, "bio").ends[2].tolist() == [1, -2, 1]


def test_closing_resolves_what_the_parent_decides():
    states = np.array([[0] * 4, [-1, -1, 0, 1], [1] * 4])
    ends = np.array([[0, 0, 0, 1], [-1, 0, -1, 1], [-2, -2, -2, 1]])
    assert Labels(PAIR, states, ends).closed().ends[2].tolist() == [-2, 0, 1, 1]
    told = Labels(PAIR, [[0, 0], [-1, -1], [0, 1]], [[0, 1], [-1, 1], [-2, 1]])  # the child changes, so the parent ends
    assert told.closed().ends[1:].tolist() == [[1, 1], [1, 1]]
    with pytest.raises(InfeasibleError):
        Labels(PAIR, [[0, 0], [-1, -1], [0, 1]], [[0, 1], [0, 1], [-2, 1]]).closed()


def test_a_conflict_names_an_end_that_comes_only_with_the_parent():
    topology = Topology({"mid": ["P"], "low": ["n"]}, min_duration={"mid": 3}, max_duration={"low": 2})
    evidence = Labels(topology, np.full((3, 4), -1), [[-1] * 4, [-1] * 4, [-1, -2, -2, -1]])
    with pytest.raises(InfeasibleError, match="level 'low' ends only with 'mid' at 1"):
        decode(Potentials(topology, 4), evidence)


# -- by enumeration ----------------------------------------------------------------------------------------------------


def written(states, ends, d, names):
    """BIO tags of level d of one configuration, by the definition; its last state is the filler O."""
    row, before = states[d], np.append(1, ends[d, :-1])
    return [
        "O" if names[s] == "O" else ("B-" if first else "I-") + names[s]
        for s, first in zip(row.tolist(), before.tolist(), strict=True)
    ]


def begins(ends, d):
    """Whether each step (N, T) of configurations begins a segment of level d."""
    return np.insert(ends[:, d, :-1] == 1, 0, True, axis=1)


def cut_only_by_parents(states, ends, d, filler):
    """In which configurations (..., D, T) no filler of level d follows itself under one parent."""
    follows = (ends[..., d, :-1] == 1) & (ends[..., d - 1, :-1] == 0)
    return ~(follows & (states[..., d, :-1] == filler) & (states[..., d, 1:] == filler)).any(axis=-1)


def written_alike(states, ends, d, filler, k):
    """Which configurations (N,) have the tags of the k-th at level d."""
    filled = states[:, d] == filler
    tags = np.where(filled, -1, 2 * states[:, d] + begins(ends, d))
    return (tags == tags[k]).all(axis=1)


def draw_model(rng, length, sizes, longest):
    """A random model, as the twin knows it, without rules but for its longest durations below the root."""
    model = twin.Model(
        length,
        list(sizes),
        [np.ones((a, b), bool) for a, b in itertools.pairwise(sizes)],
        [np.ones((a, a), bool) for a in sizes],
        [np.ones(a, int) for a in sizes],
        [np.full(a, longest or twin.NO_LIMIT) for a in sizes],
    )
    for d in range(1, len(sizes)):
        model.token[d] = rng.normal(size=(length, sizes[d]))
        model.init[d - 1] = rng.normal(size=(1, sizes[d - 1], sizes[d]))
        model.trans[d - 1] = rng.normal(size=(1, sizes[d - 1], sizes[d], sizes[d]))
    return model


@pytest.mark.parametrize("longest", [None, 3])
@pytest.mark.parametrize(("length", "sizes"), [(5, (1, 2, 2)), (4, (1, 2, 2, 2)), (3, (1, 3, 2, 2))])
@pytest.mark.parametrize("seed", range(6))
def test_columns_stand_for_all_labellings_that_they_can_write(length, sizes, longest, seed):
    """Some levels as evidence leave exactly the labellings with these columns whose fillers are cut by parents."""
    rng = np.random.default_rng(seed)
    names = [["root"], *([f"{d}{k}" for k in range(size - 1)] + ["O"] for d, size in enumerate(sizes) if d)]
    levels = {f"level{d}": names[d] for d in range(1, len(sizes))}
    topology = Topology(levels, max_duration=dict.fromkeys(levels, longest))
    model = draw_model(rng, length, sizes, longest)
    whole = twin.table(model)
    seen = [d for d in range(1, len(sizes)) if rng.random() < 0.6] or [len(sizes) - 1]

    x, e, fillers = whole.states, whole.ends, {d: sizes[d] - 1 for d in seen}
    possible = np.all([cut_only_by_parents(x, e, d, filler) for d, filler in fillers.items()], axis=0)
    k = rng.choice(np.flatnonzero(possible))
    told = {f"level{d}": written(x[k], e[k], d, names[d]) for d in seen}
    alike = np.all([written_alike(x, e, d, filler, k) for d, filler in fillers.items()], axis=0)
    scores = np.sort(whole.log_scores[possible & alike])[::-1]
    p, labels = to_potentials(model, topology), Labels.from_columns(topology, told, "bio")
    np.testing.assert_allclose(log_partition(p, labels), np.logaddexp.reduce(scores), rtol=1e-9)
    best = [y.score for y in k_best(p, len(scores[:50]) + 1, labels)]
    np.testing.assert_allclose(best[:50], scores[:50], rtol=1e-9)
    assert len(best) == len(scores[:51])


# -- hiding ------------------------------------------------------------------------------------------------------------


@st.composite
def nested(draw):
    """Complete labels of two or three nested levels in which no filler follows itself under one parent."""
    depth, length = draw(st.integers(2, 3)), draw(st.integers(1, 8))
    levels = dict(list(NAMES.items())[-depth:])
    topology = Topology(levels, max_duration={"low": None})
    states, ends = np.zeros((depth + 1, length), int), np.zeros((depth + 1, length), int)
    ends[:, -1] = 1
    for d in range(1, depth + 1):
        filler, state = topology.state(d, "O"), None
        for t in range(length):
            fresh = t == 0 or ends[d - 1, t - 1] == 1
            if fresh or draw(st.booleans()):
                after = draw(st.integers(0, filler))
                cut = fresh or after != filler or state != filler
                ends[d, t - 1] |= int(t > 0 and cut)
                state = after
            states[d, t] = state
    labels = Labels(topology, states, ends)
    labels.check()
    return labels


@st.composite
def hidden(draw, labels, scheme):
    """The columns of labels in a scheme, with some levels, segments and cells hidden."""
    columns = {}
    for level in labels.topology.levels[1:]:
        if draw(st.integers(0, 3)) == 0:
            continue
        column = labels.column(level, scheme)
        for start, stop, _ in labels.segments(level):
            if draw(st.integers(0, 3)) == 0:
                column[start:stop] = ["?"] * (stop - start)
        columns[level] = ["?" if draw(st.integers(0, 3)) == 0 else tag for tag in column]
    return columns or {labels.topology.levels[-1]: ["?"] * labels.length}


def admits(partial, labels):
    """Are complete labels among those that partial labels leave."""
    above = np.concatenate([labels.ends[:1], labels.ends[:-1]])
    sets = partial.allowed or {}
    return (
        ((partial.states < 0) | (partial.states == labels.states)).all()
        and ((partial.ends < 0) | (partial.ends == labels.ends)).all()
        and ((partial.ends != -2) | (labels.ends == above)).all()
        and all(
            table[np.arange(labels.length), labels.states[labels.topology.level(level)]].all()
            for level, table in sets.items()
        )
    )


@given(st.data(), nested(), st.sampled_from(["bio", "bioes"]))
def test_hiding_labels_never_makes_legal_data_illegal(data, labels, scheme):
    whole = Labels.from_columns(
        labels.topology, {v: labels.column(v, scheme) for v in labels.topology.levels[1:]}, scheme
    )
    assert whole == labels
    partial = Labels.from_columns(labels.topology, data.draw(hidden(labels, scheme)), scheme)
    assert admits(partial, labels)
    assert admits(partial.closed(), labels)
    assert np.isfinite(log_partition(Potentials(labels.topology, labels.length), partial))


@given(st.data(), st.lists(nested(), min_size=1, max_size=3))
def test_a_topology_is_learned_from_whatever_is_left(data, drawn):
    drawn = [y for y in drawn if y.topology == drawn[0].topology]
    first = {level: [f"B-{name}" for name in names] for level, names in drawn[0].topology.to_dict()["levels"].items()}
    first = {level: (tags * 3)[:3] for level, tags in first.items()}
    Y = [first, *(data.draw(hidden(y, "bio")) for y in drawn)]
    topology, labels = encode_labels(Y, [3, *map(len, drawn)], None, "bio")
    for y in labels:
        assert np.isfinite(log_partition(Potentials(topology, y.length), y))


# -- nested data -------------------------------------------------------------------------------------------------------


def documents(n, seed):
    """Words and BIO columns of two nested levels with fillers, of which words tell little about the upper one."""
    rng = np.random.default_rng(seed)
    X, Y = [], []
    for _ in range(n):
        words, mid, low = [], [], []
        for _ in range(4):
            name = rng.choice(["P", "Q"])
            length = int(rng.integers(2, 6))
            place = int(rng.integers(length)) if name == "P" else 0
            for t in range(length):
                mid.append(f"{'I' if t else 'B'}-{name}")
                low.append("B-n" if t == place else "O")
                clear = rng.random() < 0.7
                words.append(
                    [f"w={name if clear else '-'}{'n' if low[-1] == 'B-n' else 'o'}", f"first={clear and not t}"]
                )
        X.append(words)
        Y.append({"mid": mid, "low": low})
    return X, Y


@pytest.fixture(scope="module")
def learned():
    X, Y = documents(60, 0)
    return HSCRF(scheme="bio").fit(X[:30], Y[:30]), X[30:], Y[30:]


@pytest.mark.parametrize(("told", "asked"), [("low", "mid"), ("mid", "low")])
def test_true_evidence_does_not_lower_the_accuracy_of_other_levels(learned, told, asked):
    model, X, Y = learned
    truth = [Labels.from_columns(model.topology_, y, "bio") for y in Y]
    alone, helped = model.predict(X), model.predict(X, evidence=[{told: y[told]} for y in Y])
    assert metrics.accuracy(truth, helped, asked) >= metrics.accuracy(truth, alone, asked)
    f1 = [metrics.segment_scores(truth, guess, asked, ignore="O").f1 for guess in (alone, helped)]
    assert f1[1] >= f1[0]


def test_evidence_cuts_a_filler_only_where_its_parent_ends(learned):
    model, X, Y = learned
    for y in model.predict(X, evidence=[{"low": y["low"]} for y in Y]):
        assert cut_only_by_parents(y.states, y.ends, 2, model.topology_.state("low", "O"))


def test_training_with_hidden_levels_stays_near_full_labels(learned):
    model, X, Y = learned
    seen, full = documents(60, 0)
    part = [{"mid": y["mid"]} if n % 2 else {"low": y["low"]} for n, y in enumerate(full[:30])]
    part[0] = full[0]
    truth = [Labels.from_columns(model.topology_, y, "bio") for y in Y]
    partly = HSCRF(scheme="bio").fit(seen[:30], part)
    for level in ("mid", "low"):
        lost = metrics.accuracy(truth, model.predict(X), level) - metrics.accuracy(truth, partly.predict(X), level)
        assert lost < 0.04


def test_the_shell_takes_names_as_evidence_for_the_parts_above(tmp_path, monkeypatch, capsys):
    from hscrf import cli

    monkeypatch.chdir(tmp_path)
    words, mid, low = (
        ["a", "b", "x", "y", "a", "b"],
        ["B-P", "I-P", "B-Q", "I-Q", "B-P", "I-P"],
        ["B-n", "O", "O", "O", "O", "B-n"],
    )
    block = "".join(f"{' '.join(row)}\n" for row in zip(words, mid, low, strict=True))
    Path("train.txt").write_text("\n".join([block] * 6))
    Path("asked.txt").write_text("".join(f"{word} ? {name}\n" for word, name in zip(words, low, strict=True)))
    assert cli.main(["fit", "train.txt", "-m", "model", "--levels", "mid,low"]) == 0
    capsys.readouterr()
    assert cli.main(["predict", "asked.txt", "-m", "model"]) == 0
    assert [line.split()[3] for line in capsys.readouterr().out.splitlines() if line] == mid

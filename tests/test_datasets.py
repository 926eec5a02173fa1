"""Data sets: generators are deterministic, legal and honest; loaders count what the files' READMEs count."""

from collections import Counter
from itertools import pairwise

import numpy as np
import pytest

from hscrf import datasets, metrics


def durations(Y, level, state):
    return np.array([j - i for one in Y for i, j, name in one.segments(level) if name == state])


def runs(column):
    """Lengths of the maximal runs of equal labels, by label."""
    lengths, last = [], None
    for label in column:
        if label == last:
            lengths[-1] = (label, lengths[-1][1] + 1)
        else:
            lengths.append((label, 1))
        last = label
    return lengths


def step_baseline(X, Y, level):
    """Accuracy per time step of naive Bayes with one step's features, halves as training and test."""
    half = len(X) // 2
    names, counts, prior = set(), Counter(), Counter()
    for x, y in zip(X[:half], Y[:half], strict=True):
        for features, label in zip(x, y.column(level), strict=True):
            prior[label] += 1
            counts.update((feature, label) for feature in features)
            names.update(features)

    def best(features):
        scores = {
            label: np.log(n) + sum(np.log((counts[f, label] + 0.1) / (n + 0.1)) for f in features)
            for label, n in prior.items()
        }
        return max(scores, key=scores.get)

    right = [
        best(features) == label
        for x, y in zip(X[half:], Y[half:], strict=True)
        for features, label in zip(x, y.column(level), strict=True)
    ]
    return np.mean(right)


# ------------------------------------------------------------------------------
# Activities


@pytest.mark.parametrize("persisting", [False, True])
def test_activities_are_complete_and_legal(persisting):
    X, Y = datasets.make_activities(random_state=1, persisting=persisting)
    assert len(X) == len(Y) == 90
    assert len({id(one.topology) for one in Y}) == 1
    topology = Y[0].topology
    assert topology.n_states == (1, 3, 12)
    assert topology.unit_bottom is not persisting
    for x, one in zip(X, Y, strict=True):
        assert one.is_complete
        one.check()
        assert len(x) == one.length
        assert 2 <= len(one.segments("activity")) <= 3
    assert {name for one in Y for *_, name in one.segments("trajectory")} == set(topology.states[2])


def test_trajectories_are_shared_between_activities():
    topology = datasets.make_activities(1, random_state=0)[1][0].topology
    shares = topology.children[1].sum(axis=0)
    assert (shares == 3).any()
    assert (shares == 2).any()
    assert (shares == 1).any()


def test_a_person_continues_from_the_last_place():
    _, Y = datasets.make_activities(20, random_state=3, persisting=True)
    for one in Y:
        walks = [name.split("_") for *_, name in one.segments("trajectory")]
        assert all(before[1] == after[0] for before, after in pairwise(walks))


def test_the_same_seed_gives_the_same_activities():
    one, same = (datasets.make_activities(5, random_state=7) for _ in range(2))
    other = datasets.make_activities(5, random_state=8)
    generator = datasets.make_activities(5, random_state=np.random.default_rng(7))
    assert one == same == generator
    assert one != other


def test_both_bottoms_label_the_same_steps():
    X, Y = datasets.make_activities(4, random_state=5)
    same, persisting = datasets.make_activities(4, random_state=5, persisting=True)
    assert same == X
    for one, other in zip(Y, persisting, strict=True):
        assert one.column("trajectory") == other.column("trajectory")
        assert runs(other.column("trajectory")) == [(s, j - i) for i, j, s in other.segments("trajectory")]


def test_durations_of_activities_are_informative_and_not_geometric():
    _, Y = datasets.make_activities(300, random_state=2)
    lengths = {name: durations(Y, "activity", name) for name in Y[0].topology.states[1]}
    for some in lengths.values():
        assert some.std() < 0.4 * some.mean()  # geometric: nearly the mean itself
        assert some.min() > 0.3 * some.mean()
    ordered = [lengths[name].mean() for name in ("short_meal", "have_snack", "normal_meal")]
    assert ordered[0] * 1.25 < ordered[1] < ordered[2] / 1.1


def test_a_cold_meal_differs_from_a_short_one_by_duration_alone():
    _, Y = datasets.make_activities(300, random_state=2, persisting=True)
    meals = {"short_meal": [], "normal_meal": []}
    for activity, walks in (node for one in Y for node in one.tree()):
        path = [walk if isinstance(walk, str) else walk[0] for walk in walks]
        if path == ["door_cupboard", "cupboard_fridge", "fridge_dining", "dining_door"]:
            meals[activity].append(sum(1 if isinstance(walk, str) else walk[1] for walk in walks))
    assert min(map(len, meals.values())) > 50
    assert np.mean(meals["normal_meal"]) > np.mean(meals["short_meal"]) + 5


def test_noise_makes_single_steps_harder():
    shares = [
        step_baseline(*datasets.make_activities(noise=noise, random_state=4), "trajectory") for noise in (0.0, 0.6, 2.0)
    ]
    assert shares[0] > shares[1] + 0.1 > shares[2] + 0.2
    assert 0.5 < shares[1] < 0.75  # neither trivial nor hopeless without context


def test_one_activity_in_a_sequence_is_the_papers_setting():
    _, Y = datasets.make_activities(10, n_activities=1, random_state=0)
    assert all(len(one.segments("activity")) == 1 for one in Y)


# ------------------------------------------------------------------------------
# Nested sequences


@pytest.mark.parametrize("sizes", [(4,), (3, 4), (2, 3, 4), (1, 2)])
def test_nested_sequences_are_complete_and_legal(sizes):
    X, Y = datasets.make_nested(6, sizes, length=(20, 40), n_features=3, random_state=0)
    assert Y[0].topology.n_states == (1, *sizes)
    for x, one in zip(X, Y, strict=True):
        assert one.is_complete
        one.check()
        assert 20 <= one.length <= 40
        assert x.shape == (one.length, 3)
        assert np.isfinite(x).all()


def test_the_same_seed_gives_the_same_nested_sequences():
    one, same, other = (datasets.make_nested(3, random_state=seed) for seed in (7, 7, 8))
    assert one[1] == same[1]
    assert all(np.array_equal(a, b) for a, b in zip(one[0], same[0], strict=True))
    assert one[1] != other[1]


def test_durations_set_the_bottom_and_the_lengths():
    _, unit = datasets.make_nested(40, (2, 3), length=200, durations=(20, 1), random_state=1)
    _, persisting = datasets.make_nested(40, (2, 3), length=200, durations=(20, 4), random_state=1)
    assert unit[0].topology.unit_bottom
    assert not persisting[0].topology.unit_bottom
    short, long = (durations(unit, "level1", name) for name in ("a0", "a1"))
    assert 10 < short.mean() < 14  # 0.6 * 20
    assert 24 < long.mean() < 29  # 1.4 * 20, less where the sequence ends
    assert short.std() < 0.4 * short.mean()
    assert durations(persisting, "level2", "b2").mean() > 3


def test_separation_tells_states_apart():
    def spread(separation):
        X, Y = datasets.make_nested(10, (1, 3), separation=separation, random_state=0)
        x, states = np.concatenate(X), np.concatenate([one.states[2] for one in Y])
        centres = [x[states == s].mean(axis=0) for s in range(3)]
        return np.linalg.norm(centres[0] - centres[1])

    assert spread(5.0) > 3 * spread(0.2)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"sizes": ()}, r"sizes is \(\)"),
        ({"sizes": (2, 0)}, r"sizes\[1\] is 0"),
        ({"sizes": (2, 2), "durations": (3,)}, "durations has 1 levels but sizes has 2"),
        ({"sizes": (2, 2), "durations": (3, 0.5)}, r"durations\[1\] is 0.5"),
        ({"length": 0}, "length is 0"),
        ({"length": (5, 3)}, r"length is \(5, 3\)"),
        ({"n_sequences": 0}, "n_sequences is 0"),
        ({"n_features": 0}, "n_features is 0"),
    ],
)
def test_nested_arguments_are_checked(arguments, message):
    with pytest.raises(ValueError, match=message):
        datasets.make_nested(**arguments)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"noise": -1}, "noise is -1"),
        ({"noise": float("nan")}, "noise is nan"),
        ({"n_activities": 0}, "n_activities is 0"),
    ],
)
def test_activity_arguments_are_checked(arguments, message):
    with pytest.raises(ValueError, match=message):
        datasets.make_activities(**arguments)


# ------------------------------------------------------------------------------
# Loaders, on files of our own


def test_conll2000_files(tmp_path):
    (tmp_path / "train.txt").write_text("a DT B-NP\nb NN I-NP\n\nc NN B-NP\nd NN B-NP\n. . O\n\n")
    (tmp_path / "test.txt").write_text("e VB B-VP")
    train, test = (datasets.load_conll2000(tmp_path, split) for split in ("train", "test"))
    assert train.tokens == [["a", "b"], ["c", "d", "."]]
    assert train.columns["chunk"][1] == ["B-NP", "B-NP", "O"]
    assert train.Y[1].segments("chunk") == [(0, 1, "NP"), (1, 2, "NP"), (2, 3, "O")]
    assert train.Y[0].column("pos") == ["DT", "NN"]
    assert train.topology == test.topology
    assert repr(test) == "Dataset(conll2000 test: 1 sequence, 1 step, Topology(root 1 > chunk 3 > pos 4))"


CITATION = """[\tB-ref-marker\tO\tO
1]\tI-ref-marker\tO\tO
A.\tB-authors\tB-person\tB-first
B\tI-authors\tI-person\tB-last
and\tI-authors\tO\tO
C\tI-authors\tB-person\tB-last
In\tB-venue\tO\tO
J.\tI-venue\tB-journal\tO
In\tB-venue\tO\tO
.\tO\tO\tO
"""


def test_citations_repeat_the_parent_where_there_is_no_label(tmp_path):
    (tmp_path / "umass_citation").mkdir()
    (tmp_path / "umass_citation" / "training.tsv").write_text(CITATION)
    data = datasets.load_citations(tmp_path)
    assert data.columns["part"][0][4] == "O"
    assert data.Y[0].segments("part") == [
        (0, 2, "ref-marker"),
        (2, 4, "person"),
        (4, 5, "authors"),
        (5, 6, "person"),
        (6, 7, "venue"),
        (7, 8, "journal"),
        (8, 9, "venue"),
        (9, 10, "O"),
    ]
    names = [name for *_, name in data.Y[0].segments("name")]
    assert names == ["ref-marker", "first", "last", "authors", "last", "venue", "journal", "venue", "O"]


def test_cad120_unlabelled_steps_are_unknown(tmp_path):
    rows = [("null", 1), ("null", 0), ("null", 1), ("UNLABELLED", 1), ("moving", 1)]
    lines = ["#seq_id\tsubject\tt\tframe\tactivity\tsubactivity\tsegment_start\ttokens"]
    lines += [f"7\tperson1\t{t}\t{t}\teating\t{name}\t{start}\tA=1 B=2" for t, (name, start) in enumerate(rows)]
    (tmp_path / "sequences_step10.tsv").write_text("\n".join(lines) + "\n\n")
    data = datasets.load_cad120(tmp_path)
    assert data.names == ["7"]
    assert data.subjects == ["person1"]
    assert data.tokens[0][0] == ["A=1", "B=2"]
    assert data.Y[0].column("subactivity") == ["null", "null", "null", "?", "moving"]
    assert data.Y[0].ends[2].tolist() == [0, 1, -1, 1, 1]
    assert data.Y[0].segments("activity") == [(0, 5, "eating")]


@pytest.mark.parametrize(
    ("load", "name", "file"),
    [
        (datasets.load_conll2000, "conll2000", "train.txt"),
        (datasets.load_citations, "umass_citation", "training.tsv"),
        (datasets.load_cad120, "cad120", "sequences_step10.tsv"),
    ],
)
def test_missing_files_say_what_to_download(load, name, file, tmp_path, monkeypatch):
    monkeypatch.delenv("HSCRF_DATA", raising=False)
    with pytest.raises(FileNotFoundError, match=f"no folder is given for {name} and HSCRF_DATA is not set: download"):
        load()
    with pytest.raises(FileNotFoundError, match=f"has no file {file}: download .* HSCRF_DATA$"):
        load(tmp_path)


def test_bad_files_and_splits_are_named(tmp_path):
    (tmp_path / "train.txt").write_text("a DT B-NP\nb NN\n")
    with pytest.raises(ValueError, match=r"train.txt, line 2 has 2 columns; expected 3"):
        datasets.load_conll2000(tmp_path)
    with pytest.raises(ValueError, match="split is 'dev'; expected 'train' or 'test'"):
        datasets.load_conll2000(tmp_path, "dev")


# ------------------------------------------------------------------------------
# Loaders, on the real files: the counts of their READMEs


def test_conll2000_counts(data_folder):
    data = datasets.load_conll2000(data_folder, "test")
    assert (len(data), sum(map(len, data.tokens))) == (2012, 47377)
    assert data.topology.n_states == (1, 12, 44)  # also of states that only the other split has
    assert all(one.is_complete for one in data.Y)
    scores = metrics.segment_scores(data.Y, data.Y, "chunk")
    assert (scores.support, scores.per_label["NP"].support) == (23852, 12422)
    tags = data.columns["chunk"]
    found = metrics.conlleval(tags, tags)
    assert (found.per_label, found.f1, found.accuracy) == (scores.per_label, 1.0, 1.0)


def test_citation_counts(data_folder):
    data = datasets.load_citations(data_folder, "test")
    assert (len(data), sum(map(len, data.tokens))) == (362, 9109)


def test_citation_segments(data_folder):
    data = datasets.load_citations(data_folder, "train")
    assert (len(data), sum(map(len, data.tokens))) == (1448, 37042)
    assert all(one.is_complete for one in data.Y)
    assert not data.topology.unit_bottom
    fields = Counter(name for one in data.Y for *_, name in one.segments("field"))
    expected = {"venue": 1466, "authors": 1438, "ref-marker": 1043, "title": 876, "date": 225}
    assert {name: fields[name] for name in expected} == expected
    parts = Counter(name for one in data.Y for *_, name in one.segments("part"))
    names = Counter(name for one in data.Y for *_, name in one.segments("name"))
    assert (parts["person"], parts["journal"], parts["pages"]) == (3223, 1043, 1086)
    assert (names["person-last"], names["person-first"], names["person-middle"]) == (3218, 3212, 1098)


def test_cad120_counts(data_folder):
    data = datasets.load_cad120(data_folder)
    assert (len(data), sum(map(len, data.tokens))) == (85, 4170)
    assert data.topology.n_states == (1, 8, 10)
    assert set(data.subjects) == {"person1", "person3", "person4", "person5"}
    activities = Counter(one.segments("activity")[0][2] for one in data.Y)
    assert (activities["making_cereal"], activities["unstacking_objects"]) == (16, 3)
    assert sum(int((one.states[2] < 0).sum()) for one in data.Y) == 12
    assert len({token for x in data.tokens for step in x for token in step}) == 432
    complete = sum(len(one.segments("subactivity")) for one in data.Y if one.is_complete)
    starts = sum(start == "1" for start in segment_starts(data_folder))
    assert complete == starts


def segment_starts(data_folder):
    """The segment_start column of the videos that are labelled throughout."""
    text = (data_folder / "cad120" / "sequences_step10.tsv").read_text(encoding="utf-8")
    for block in text.split("\n\n"):
        rows = [line.split("\t") for line in block.splitlines() if line and not line.startswith("#")]
        if all(row[5] != "UNLABELLED" for row in rows):
            yield from (row[6] for row in rows)

"""Packing by several processes: the same shards, bit by bit, as by one."""

import json
import os
import pickle
from functools import partial

import numpy as np
import pytest
from sklearn.base import clone

import hscrf
from hscrf.errors import DataFileError
from hscrf.scale import Shards, cluster, sources
from hscrf.scale.tasks import TaskRunner, attempt
from scale_fixtures import CASES, LEVELS, InMemory, sentences, small, write_jsonl

QUICK = hscrf.LBFGS(max_iter=3)


class Rehearsal(TaskRunner):
    """Does tasks here, the last one first, each sent by pickle there and back: what other processes would do."""

    def _outcomes(self, tasks, *arguments):
        done = {}
        for task in reversed(list(tasks)):
            sent, own = pickle.loads(pickle.dumps((task, arguments)))
            done[task.number] = pickle.loads(pickle.dumps(attempt(sent, *own)))
        return iter([done[task.number] for task in tasks])


def quickly(shards, **sizes):
    """The same shards, so small that little data has several of them and that several processes pack them."""
    return small(shards, batch=60, writing=0, slots=1 << 16, reading=1, **sizes)


def given(X, Y):
    """What a part gives; a function that pickles."""
    return X, Y


def parts(X, Y, size=17):
    return [partial(given, X[a : a + size], Y[a : a + size]) for a in range(0, len(X), size)]


def packed(model, shards, size, monkeypatch):
    """The manifest and the checksums of the shards that so many processes would write."""
    with monkeypatch.context() as patch:
        patch.setattr(Shards, "_runner", lambda self, model, folder: Rehearsal(size))
        shards.pack(model)
    (name,) = [name for name in os.listdir(shards.cache.folder) if not name.startswith(".")]
    header, arrays = shards.cache.find(name, shards.sources)
    files = sorted(os.listdir(shards.cache.path(name)))
    assert files == sorted(["manifest.hscrf", *(entry["file"] for entry in header["shards"])]), "nothing else is left"
    return header, arrays


def assert_same(one, other):
    assert one[0].keys() == other[0].keys()
    for name in one[0]:
        assert one[0][name] == other[0][name], name
    assert one[1].keys() == other[1].keys()
    for name in one[1]:
        np.testing.assert_array_equal(one[1][name], other[1][name])


@pytest.mark.parametrize(
    ("case", "size"), [("nested", 2), *((case, 5 if k % 2 else 2) for k, case in enumerate(CASES))]
)
def test_any_number_of_processes_writes_the_same_shards(case, size, tmp_path, monkeypatch):
    model, change = CASES[case]
    X, Y = change(*sentences(100))
    made = [quickly(Shards.from_parts(parts(X, Y), cache=tmp_path / str(k), key="a")) for k in range(2)]
    one = packed(model, made[0], 1, monkeypatch)
    assert len(one[0]["shards"]) > 3
    assert_same(one, packed(model, made[1], size, monkeypatch))


def test_values_other_than_one_are_kept_where_they_are(tmp_path, monkeypatch):
    """Only one sequence has them: the shards of all others have none, wherever pieces and shards are cut."""
    X, Y = sentences(100)
    X = [[{"w": s[0], "n": 2.5 if n == 40 else 1.0} for s in x] for n, x in enumerate(X)]
    made = [quickly(Shards.from_parts(parts(X, Y), cache=tmp_path / str(n), key="a")) for n in (1, 3)]
    one, three = (packed(hscrf.HSCRF(), own, n, monkeypatch) for own, n in zip(made, (1, 3), strict=True))
    assert_same(one, three)
    memory = hscrf.HSCRF(solver=QUICK).fit(InMemory(X, Y))
    assert (hscrf.HSCRF(solver=QUICK).fit(made[1]).coef_ == memory.coef_).all()


@pytest.fixture
def files(tmp_path):
    X, Y = sentences(90)
    for k in range(6):
        write_jsonl(tmp_path / f"{k}.jsonl", X[15 * k : 15 * k + 15], Y[15 * k : 15 * k + 15])
    return tmp_path, X, Y


def shards_in(folder, cache, errors="raise", **sizes):
    options = {"template": "none", "cache": folder / cache, "errors": errors}
    return quickly(Shards.from_files(folder / "*.jsonl", LEVELS, **options), **sizes)


def both(folder, model, monkeypatch, **options):
    """The manifests of one process and of three."""
    return [packed(model, shards_in(folder, str(size), **options), size, monkeypatch) for size in (1, 3)]


def watched(monkeypatch):
    """The names of the files that are read from now on."""
    opened = []
    items = sources.FileSource.items
    monkeypatch.setattr(sources.FileSource, "items", lambda self, skip: opened.append(self.name) or items(self, skip))
    return opened


def test_each_file_is_read_once_by_any_number_of_processes(files, monkeypatch):
    folder, _, _ = files
    opened = watched(monkeypatch)
    packed(hscrf.HSCRF(), shards_in(folder, "cache"), 3, monkeypatch)
    assert sorted(opened) == [str(folder / f"{k}.jsonl") for k in range(6)]


def test_bad_sequences_are_skipped_alike(files, monkeypatch):
    folder, X, Y = files
    for k in (1, 4):
        lines = (folder / f"{k}.jsonl").read_text().splitlines()
        lines[3] = json.dumps({"tokens": [], "labels": {"phrase": [], "tag": []}})
        lines[5] = json.dumps({"tokens": X[0], "labels": {**Y[0], "tag": Y[0]["tag"] + ["N"]}})
        lines[7] = "{"
        (folder / f"{k}.jsonl").write_text("\n".join(lines))
    one, three = both(folder, hscrf.HSCRF(), monkeypatch, errors="skip")
    assert one[0]["skipped"] == 6
    assert_same(one, three)


def test_the_first_bad_sequence_is_named_alike(files, monkeypatch):
    folder, X, Y = files
    for k in (2, 5):
        with open(folder / f"{k}.jsonl", "a") as file:
            file.write(json.dumps({"tokens": X[0], "labels": {**Y[0], "tag": Y[0]["tag"] + ["N"]}}) + "\n")
    messages = []
    for size in (1, 3):
        with pytest.raises(DataFileError, match=r"2\.jsonl, line 16") as caught:
            packed(hscrf.HSCRF(), shards_in(folder, str(size)), size, monkeypatch)
        messages.append(str(caught.value))
    assert messages[0] == messages[1]


def test_labels_that_break_a_given_rule_are_named_alike(files, monkeypatch):
    folder, _, _ = files
    model = hscrf.HSCRF(max_duration={"phrase": 2})
    messages = []
    for size in (1, 3):
        with pytest.raises(DataFileError) as caught:
            packed(model, shards_in(folder, str(size)), size, monkeypatch)
        messages.append(str(caught.value))
    assert messages[0] == messages[1]
    one, three = both(folder, model, monkeypatch, errors="skip")
    assert one[0]["skipped"] > 3
    assert_same(one, three)


def test_a_scheme_that_only_the_last_file_shows(files, monkeypatch):
    folder, X, Y = files
    for k in range(6):
        own = [{**y, "phrase": ["B-NP" if k == 5 else "O"] * len(y["tag"])} for y in Y[:15]]
        write_jsonl(folder / f"{k}.jsonl", X[:15], own)
    one = packed(hscrf.HSCRF(), shards_in(folder, "1"), 1, monkeypatch)
    opened = watched(monkeypatch)
    three = packed(hscrf.HSCRF(), shards_in(folder, "3"), 3, monkeypatch)
    assert sorted(os.path.basename(name) for name in opened) == sorted(
        [f"{k}.jsonl" for k in range(6)] + [f"{k}.jsonl" for k in range(5)]
    ), "the file that shows the scheme is read once"
    assert one[0]["scheme"] == {"phrase": "bio", "tag": "plain"}
    assert_same(one, three)


def test_rare_names_are_sought_by_all(files, monkeypatch):
    folder, _, _ = files
    plain = both(folder, hscrf.HSCRF(min_count=4), monkeypatch)
    many = [packed(hscrf.HSCRF(min_count=4), shards_in(folder, f"many{n}", names=40), n, monkeypatch) for n in (1, 3)]
    for other in (plain[1], *many):
        assert_same(plain[0], other)


def test_parts_that_disagree_are_named_as_one_process_names_them(tmp_path, monkeypatch):
    """The last part has other columns: its first sequence is bad, whichever process reads it."""
    made = [partial(given, [np.ones((5, 4 if k == 3 else 3))] * 9, [list("ababa")] * 9) for k in range(4)]
    messages = []
    for size in (1, 4):
        with pytest.raises(ValueError, match=r"part 3, sequence 0: X.* columns") as caught:
            packed(hscrf.ChainCRF(), quickly(Shards.from_parts(made, cache=tmp_path, key="a")), size, monkeypatch)
        messages.append(str(caught.value))
    assert messages[0] == messages[1]
    skipping = [quickly(Shards.from_parts(made, cache=tmp_path / str(n), key="a", errors="skip")) for n in (1, 4)]
    one, four = (packed(hscrf.ChainCRF(), own, n, monkeypatch) for own, n in zip(skipping, (1, 4), strict=True))
    assert one[0]["skipped"] == 9
    assert_same(one, four)


def test_warnings_of_other_processes_are_given_here(files, monkeypatch):
    folder, X, Y = files
    for k in range(6):
        own = [{**y, "phrase": ["I-NP"] * len(y["tag"])} for y in Y[:15]]
        write_jsonl(folder / f"{k}.jsonl", X[:15], own)
    for size in (1, 3):
        with pytest.warns(UserWarning, match="I-NP") as caught:
            packed(hscrf.HSCRF(), shards_in(folder, str(size)), size, monkeypatch)
        assert len(caught) == 1


def test_processes_of_this_machine(files):
    """Real ones: the shards of fit with n_jobs=2 are those of one process."""
    folder, _, _ = files
    models = [hscrf.HSCRF(solver=QUICK, n_jobs=n).fit(shards_in(folder, str(n))) for n in (1, 2)]
    assert (models[0].coef_ == models[1].coef_).all()
    digests = [[file.digest for file in shards_in(folder, str(n)).packed_for(hscrf.HSCRF()).files] for n in (1, 2)]
    assert digests[0] == digests[1]
    lines = (folder / "4.jsonl").read_text().splitlines()
    (folder / "4.jsonl").write_text("\n".join([*lines[:3], "{", *lines[3:]]))
    with pytest.raises(DataFileError, match=r"4\.jsonl, line 4"):
        hscrf.HSCRF(n_jobs=2).fit(shards_in(folder, "bad"))


def test_workers_of_a_cluster(files, monkeypatch, capsys):
    distributed = pytest.importorskip("distributed")
    folder, X, Y = files
    here = hscrf.HSCRF(solver=QUICK).fit(InMemory(X, Y))
    done = []
    original = cluster.Cluster.map
    monkeypatch.setattr(
        cluster.Cluster, "map", lambda self, f, tasks, *a: done.extend(tasks) or original(self, f, tasks, *a)
    )
    with distributed.Client(n_workers=2, threads_per_worker=1, processes=False, dashboard_address=":0") as client:
        there = clone(here).fit(shards_in(folder, "there"), client=client)
        assert (here.coef_ == there.coef_).all()
        assert len(done) > 6
        monkeypatch.setattr(cluster, "unseen", lambda paths, folder: [folder])
        shards_in(folder, "unseen").pack(hscrf.HSCRF(verbose=1), client=client)
        assert "packing here" in capsys.readouterr().err


def test_stretches_are_neighbours_of_about_equal_size(files):
    folder, _, _ = files
    found = sources.stretches_of(shards_in(folder, "a").sources, 2, least=1)
    assert [first for first, _ in found] == np.cumsum([0, *(len(own) for _, own in found[:-1])]).tolist()
    assert 3 <= len(found) <= 4
    assert sum(len(own) for _, own in found) == 6
    lambdas = [sources.PartSource("part 0", lambda: None, 0)] * 4
    assert len(sources.stretches_of(lambdas, 2, least=1)) == 1, "a lambda stays here"
    assert len(sources.stretches_of(shards_in(folder, "a").sources, 2, least=1 << 30)) == 1

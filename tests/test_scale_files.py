"""Packing: formats, the cache, bad sequences, and damaged or changed files."""

import bz2
import gzip
import json
import lzma
import os
import resource
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from sklearn.base import clone

import hscrf
from fitting import loss_of
from hscrf.errors import DataFileError, FileFormatError, LabelError
from hscrf.files import lazy as containers
from hscrf.io.templates import Template
from hscrf.metrics import report
from hscrf.observations.encoder import ObservationEncoder
from hscrf.scale import Shards, packing
from hscrf.scale.cache import Cache
from hscrf.scale.labelling import Labelling
from processes import SOURCE
from scale_fixtures import LEVELS, InMemory, from_parts, partly, parts_of, sentences, small, write_jsonl

QUICK = hscrf.LBFGS(max_iter=3)


@pytest.fixture
def files(tmp_path):
    """Three files of JSON Lines, and what they hold."""
    X, Y = sentences(60)
    for k in range(3):
        write_jsonl(tmp_path / f"{k}.jsonl", X[k::3], Y[k::3])
    order = [n for k in range(3) for n in range(k, 60, 3)]
    return tmp_path, [X[n] for n in order], [Y[n] for n in order]


def shards_of(folder, **options):
    return small(Shards.from_files(folder / "*.jsonl", LEVELS, cache=folder / "cache", template="none", **options))


def sets_in(folder):
    return sorted(name for name in os.listdir(folder / "cache") if not name.endswith(".lock"))


# -- formats


def test_files_of_a_pattern_are_taken_in_order(files):
    folder, X, Y = files
    memory = hscrf.HSCRF(solver=QUICK).fit(InMemory(X, Y))
    disk = hscrf.HSCRF(solver=QUICK).fit(shards_of(folder))
    assert (memory.coef_ == disk.coef_).all()


def columns(X, Y, between):
    lines = [
        between.join([s[0][2:], y1, y2])
        for x, y in zip(X, Y, strict=True)
        for s, y1, y2 in [*zip(x, y["phrase"], y["tag"], strict=True)]
    ]
    sizes = np.cumsum([len(x) for x in X])
    return [line + ("\n\n" if k + 1 in sizes else "\n") for k, line in enumerate(lines)]


def test_columns_with_a_template(tmp_path):
    X, Y = sentences(30)
    (tmp_path / "a.txt").write_text("".join(columns(X, Y, " ")))
    model = hscrf.HSCRF(solver=QUICK).fit(Shards.from_files(tmp_path / "a.txt", LEVELS, columns=["word", *LEVELS]))
    assert any("suf" in name or "shape" in name or "[-1" in name or len(name) > 3 for name in model.encoder_.names)
    assert model.topology_.levels == ("root", "phrase", "tag")


def test_tables_and_crfsuite_items(tmp_path):
    X, Y = sentences(20)
    rows = ["sequence,word,phrase,tag"]
    items = []
    for n, (x, y) in enumerate(zip(X, Y, strict=True)):
        rows += [f"{n},{s[0]},{a},{b}" for s, a, b in zip(x, y["phrase"], y["tag"], strict=True)]
        items += ["\t".join([b, *s]) for s, b in zip(x, y["tag"], strict=True)] + [""]
    (tmp_path / "a.csv").write_text("\n".join(rows) + "\n")
    (tmp_path / "a.crfsuite").write_text("\n".join(items) + "\n")
    table = hscrf.HSCRF(solver=QUICK).fit(Shards.from_files(tmp_path / "a.csv", LEVELS, template="none"))
    assert table.topology_.levels == ("root", "phrase", "tag")
    chain = hscrf.ChainCRF(solver=QUICK).fit(Shards.from_files(tmp_path / "a.crfsuite", ["tag"]))
    memory = hscrf.ChainCRF(solver=QUICK).fit(X, [y["tag"] for y in Y])
    assert chain.loss_ == memory.loss_


def zst(content):
    return pytest.importorskip("zstandard").ZstdCompressor().compress(content)


@pytest.mark.parametrize(
    ("ending", "compress"), [("gz", gzip.compress), ("bz2", bz2.compress), ("xz", lzma.compress), ("zst", zst)]
)
def test_compressed_files_are_read_as_they_are(tmp_path, ending, compress):
    X, Y = sentences(30)
    write_jsonl(tmp_path / "plain.jsonl", X, Y)
    content = (tmp_path / "plain.jsonl").read_bytes()
    packed = tmp_path / f"data.jsonl.{ending}"
    packed.write_bytes(compress(content))
    found = list(hscrf.io.read_jsonl(packed))
    assert [d.tokens for d in found] == X
    model = hscrf.HSCRF(solver=QUICK).fit(Shards.from_files(packed, LEVELS, template="none"))
    assert (model.coef_ == hscrf.HSCRF(solver=QUICK).fit(X, Y).coef_).all()
    packed.write_bytes(compress(content)[:-200])
    with pytest.raises(DataFileError, match="compressed file is damaged or truncated"):
        list(hscrf.io.read_jsonl(packed))


def test_a_scheme_that_shows_late(tmp_path):
    """Only the last labels have prefixes: all are read as BIO, as they are in memory."""
    X, Y = sentences(60)
    Y = [{**y, "phrase": ["O"] * len(y["phrase"])} for y in Y]
    for y in Y[-3:]:
        y["phrase"] = ["B-NP"] * len(y["phrase"])
    memory = hscrf.HSCRF(solver=QUICK).fit(InMemory(X, Y))
    disk = hscrf.HSCRF(solver=QUICK).fit(from_parts(X, Y))
    assert memory.scheme_ == disk.scheme_ == {"phrase": "bio", "tag": "plain"}
    assert (memory.coef_ == disk.coef_).all()


def test_rare_names_are_not_kept_where_there_are_many(monkeypatch):
    """A pass that counts hashes goes before: the names, their order and the weights are those of memory."""
    X, Y = sentences(80)
    X = [[[*s, f"once={n},{t}"] for t, s in enumerate(x)] for n, x in enumerate(X)]
    model = hscrf.HSCRF(solver=QUICK, min_count=4)
    memory = clone(model).fit(InMemory(X, Y))
    kept = []
    settle = ObservationEncoder.settle
    monkeypatch.setattr(
        ObservationEncoder, "settle", lambda self, *parts: kept.append(len(self.names)) or settle(self, *parts)
    )
    disk = clone(model).fit(small(Shards.from_parts(parts_of(X, Y)), names=80, slots=1 << 16))
    assert kept[0] < 90
    assert list(disk.encoder_.names) == list(memory.encoder_.names)
    assert (disk.coef_ == memory.coef_).all()


# -- the cache


class Counted:
    """Counts how often sequences are packed."""

    def __init__(self, monkeypatch):
        self.times = 0
        original = packing.Packer.run

        def run(packer):
            self.times += 1
            return original(packer)

        monkeypatch.setattr(packing.Packer, "run", run)


def test_shards_are_found_again(files, monkeypatch):
    folder, X, Y = files
    packed = Counted(monkeypatch)
    first = hscrf.HSCRF(solver=QUICK).fit(shards_of(folder))
    again = hscrf.HSCRF(solver=QUICK, c2=0.1, n_jobs=2).fit(shards_of(folder))
    assert packed.times == 1
    assert (first.coef_ == again.coef_).all()
    assert first.topology_ == again.topology_
    os.utime(folder / "1.jsonl", ns=(1, 1))  # touched, not changed
    hscrf.HSCRF(solver=QUICK).fit(shards_of(folder))
    assert packed.times == 1
    hscrf.HSCRF(solver=QUICK, min_count=2).fit(shards_of(folder))
    assert packed.times == 2
    write_jsonl(folder / "1.jsonl", X[:5], Y[:5])
    other = hscrf.HSCRF(solver=QUICK).fit(shards_of(folder))
    assert packed.times == 3
    assert other.loss_ != first.loss_
    assert not [name for name in sets_in(folder) if "unfinished" in name]


def test_a_dynamic_model_is_found_again(files):
    folder, _, _ = files
    first = hscrf.DynamicCRF(solver=QUICK).fit(shards_of(folder))
    again = hscrf.DynamicCRF(solver=QUICK).fit(shards_of(folder))
    assert (first.coef_ == again.coef_).all()
    assert (first.combinations_ == again.combinations_).all()


def test_parts_are_called_once_and_need_a_key(tmp_path, monkeypatch):
    X, Y = sentences(30)
    calls = []

    def part():
        calls.append(1)
        return X, Y

    packed = Counted(monkeypatch)
    shards = Shards.from_parts([part], cache=tmp_path)
    hscrf.HSCRF(solver=QUICK).fit(shards)
    hscrf.HSCRF(solver=QUICK).fit(shards)
    assert len(calls) == packed.times == 1
    hscrf.HSCRF(solver=QUICK).fit(Shards.from_parts([part], cache=tmp_path))
    assert packed.times == 2
    for _ in range(2):
        hscrf.HSCRF(solver=QUICK).fit(Shards.from_parts([part], cache=tmp_path, key="monday"))
    assert packed.times == 3


def test_delayed_parts():
    dask = pytest.importorskip("dask")
    X, Y = sentences(40)
    parts = [dask.delayed(lambda a=a: (X[a : a + 20], Y[a : a + 20]))() for a in (0, 20)]
    with dask.config.set(scheduler="synchronous"):
        disk = hscrf.HSCRF(solver=QUICK).fit(Shards.from_parts(parts))
    assert (disk.coef_ == hscrf.HSCRF(solver=QUICK).fit(X, Y).coef_).all()


def test_errors_keep_their_own_numbers_where_dask_changes_how_they_are_copied():
    pytest.importorskip("distributed")
    part = LabelError("no good").of_sequence(2)
    assert (part.sequence, part.of_sequence(102).sequence, part.sequence) == (2, 102, 2)


def test_a_temporary_folder_goes_with_its_shards():
    shards = from_parts(*sentences(10))
    hscrf.HSCRF(solver=QUICK).fit(shards)
    folder = shards.cache.folder
    assert os.path.isdir(folder)
    del shards
    assert not os.path.exists(folder)


# -- bad sequences


def test_the_first_bad_sequence_is_named(files):
    folder, _, _ = files
    lines = (folder / "1.jsonl").read_text().splitlines()
    document = json.loads(lines[7])
    document["labels"]["tag"][0] = 17
    (folder / "1.jsonl").write_text("\n".join([*lines[:7], json.dumps(document), *lines[8:]]) + "\n")
    with pytest.raises(DataFileError) as caught:
        hscrf.HSCRF(solver=QUICK).fit(shards_of(folder))
    assert str(folder / "1.jsonl") in str(caught.value)
    assert (caught.value.line, caught.value.sequence) == (8, 7)
    assert sets_in(folder) == []


def test_labels_that_contradict_each_other_are_named(tmp_path):
    topology = hscrf.Topology(
        {"phrase": ["NP", "VP"], "tag": ["D", "V"]}, children={"phrase": {"NP": ["D"], "VP": ["V"]}}
    )
    X = [[["a"], ["b"]]] * 5
    Y = [{"phrase": ["NP", "?"], "tag": ["D", "V"]}] * 5
    Y[3] = {"phrase": ["NP", "?"], "tag": ["V", "V"]}
    write_jsonl(tmp_path / "a.jsonl", X, Y)
    with pytest.raises(DataFileError, match="line 4") as caught:
        hscrf.HSCRF(topology, solver=QUICK).fit(shards_of(tmp_path))
    assert "'NP'" in str(caught.value)
    assert caught.value.sequence == 3
    shards = shards_of(tmp_path, errors="skip")
    hscrf.HSCRF(topology, solver=QUICK).fit(shards)
    assert shards.skipped == 1
    assert "line 4" in shards.problems[0]


def test_labels_that_only_inference_finds_impossible_are_skipped(tmp_path):
    topology = hscrf.Topology({"tag": ["a", "b"]}, successors={"tag": {"a": ["b"], "b": ["a"]}})
    X = [[["x"], ["y"], ["z"], ["x"]]] * 90
    Y = [{"tag": ["a", "?", "?", "b"]}] * 90
    Y[50] = Y[53] = {"tag": ["a", "?", "?", "a"]}
    write_jsonl(tmp_path / "a.jsonl", X, Y)
    shards = small(Shards.from_files(tmp_path / "a.jsonl", ["tag"], template="none", errors="skip"))
    disk = hscrf.HSCRF(topology, solver=QUICK).fit(shards)
    assert shards.skipped == 2
    assert "line 51: no segmentation agrees with the evidence: level 'tag' is 'a' at 0" in shards.problems[0]
    assert "line 54" in shards.problems[1]
    memory = hscrf.HSCRF(topology, solver=QUICK).fit(X[:88], Y[:1] * 88)
    np.testing.assert_allclose(disk.coef_, memory.coef_, rtol=1e-9, atol=1e-12)  # cut before, so sums are others


def test_bad_sequences_are_skipped_and_counted(files):
    folder, X, Y = files
    lines = (folder / "0.jsonl").read_text().splitlines()
    lines[2] = '{"tokens": []}'
    lines[5] = lines[5][:-3]
    document = json.loads(lines[9])
    document["labels"]["phrase"].append("NP")
    lines[9] = json.dumps(document)
    (folder / "0.jsonl").write_text("\n".join(lines) + "\n")
    shards = shards_of(folder, errors="skip")
    disk = hscrf.HSCRF(solver=QUICK).fit(shards)
    assert shards.skipped == 3
    assert [
        line in problem for line, problem in zip(["line 3", "line 6", "line 10"], shards.problems, strict=True)
    ] == [True] * 3
    kept = [n for n in range(60) if n not in (2, 5, 9)]
    memory = hscrf.HSCRF(solver=QUICK).fit(InMemory([X[n] for n in kept], [Y[n] for n in kept]))
    assert (memory.coef_ == disk.coef_).all()


@pytest.mark.parametrize("kind", ["jsonl", "columns", "crfsuite"])
def test_a_line_that_is_not_utf8_is_a_bad_sequence(tmp_path, kind):
    X, Y = sentences(30)
    if kind == "jsonl":
        write_jsonl(tmp_path / "a.jsonl", X, Y)
        source = {"files": tmp_path / "a.jsonl", "levels": LEVELS, "template": "none"}
    elif kind == "columns":
        (tmp_path / "a.txt").write_text("".join(columns(X, Y, " ")))
        source = {"files": tmp_path / "a.txt", "levels": LEVELS, "template": "none"}
    else:
        items = [
            "\n".join("\t".join([b, *s]) for s, b in zip(x, y["tag"], strict=True)) for x, y in zip(X, Y, strict=True)
        ]
        (tmp_path / "a.crfsuite").write_text("\n\n".join(items) + "\n")
        source = {"files": tmp_path / "a.crfsuite", "levels": ["tag"]}
    lines = source["files"].read_bytes().split(b"\n")
    starts = [0] + [k + 1 for k, line in enumerate(lines[:-1]) if kind == "jsonl" or not line]
    bad = [starts[0], starts[7], starts[7] + (kind != "jsonl")]
    before = [document.tokens for document in Shards.from_files(**source).sources[0].recipe.documents(source["files"])]
    for k in bad:
        lines[k] = lines[k][:3] + b"\xff" + lines[k][3:]
    source["files"].write_bytes(b"\n".join(lines))
    with pytest.raises(DataFileError, match=r"line 1: byte 4 is 0xff, expected UTF-8"):
        hscrf.HSCRF(solver=QUICK).fit(Shards.from_files(**source))
    shards = Shards.from_files(**source, errors="skip")
    hscrf.HSCRF(solver=QUICK).fit(shards)
    assert shards.skipped == 2
    assert f"line {starts[7] + 1}: byte 4 is 0xff" in shards.problems[1]
    told = []
    after = [d.tokens for d in shards.sources[0].recipe.documents(source["files"], skip=told.append)]
    assert [error.sequence for error in told] == [0, 7]
    assert after == [*before[1:7], *before[8:]]


def spoiled(Y, rows):
    """The labels, with one too many for some sequences."""
    return [{**y, "tag": [*y["tag"], "N"]} if n in rows else y for n, y in enumerate(Y)]


def test_a_group_of_bad_sequences_only_is_left_out_when_labelling():
    X, Y = sentences(60)
    model = hscrf.HSCRF(solver=QUICK).fit(X, Y)
    parts = parts_of(X, spoiled(Y, range(4)))
    with pytest.raises(ValueError, match="part 0, sequence 0:"):
        model.score(small(Shards.from_parts(parts)))
    shards = small(Shards.from_parts(parts, errors="skip"), labelled=10)  # the first group has bad sequences only
    assert model.score(shards) == model.score(X[4:], Y[4:])
    assert shards.skipped == 4
    assert "part 0, sequence 0:" in shards.problems[0]


@pytest.mark.parametrize("hidden", [False, True])
def test_a_report_counts_all_files(hidden):
    X, Y = sentences(40, seed=3)
    Y = partly(Y) if hidden else Y
    model = hscrf.HSCRF(solver=QUICK).fit(*sentences(20))
    labelling = Labelling(small(Shards.from_parts(parts_of(X, Y)), labelled=60), model)
    assert len(labelling.files) > 2
    found, count = labelling.report(tolerance=1)
    assert count == 40
    assert found == report(Y, model.predict(X), tolerance=1, output_dict=True)


def test_labelling_bad_sequences_only_is_an_error_with_a_place():
    X, Y = sentences(20)
    model = hscrf.HSCRF(solver=QUICK).fit(X, Y)
    only = from_parts(X, spoiled(Y, range(20)), errors="skip")
    with pytest.raises(ValueError, match=r"all 20 sequences are bad.*part 0, sequence 0:"):
        model.score(only)


def test_skipped_counts_the_last_packing_only(tmp_path):
    X, Y = sentences(60)
    parts = parts_of(X, spoiled(Y, [3]))
    shards = Shards.from_parts(parts, errors="skip", cache=tmp_path, key="a")
    model = hscrf.HSCRF(solver=QUICK).fit(shards)
    for _ in range(2):  # packed, then found packed
        model.score(shards)
        assert (shards.skipped, len(shards.problems)) == (1, 1)
    again = Shards.from_parts(parts, errors="skip", cache=tmp_path, key="a")
    model.score(again)
    assert again.skipped == 1


class Slow:
    """A file that gives a few bytes at a time, as systems do beyond 2 GB."""

    def __init__(self, file):
        self.file = file

    def __getattr__(self, name):
        return getattr(self.file, name)

    def __enter__(self):
        return self

    def __exit__(self, *failure):
        self.file.close()

    def readinto(self, buffer):
        return self.file.readinto(memoryview(buffer)[:100])


def test_an_array_may_need_several_reads(files, monkeypatch):
    folder, X, Y = files
    memory = hscrf.HSCRF(solver=QUICK).fit(InMemory(X, Y))
    opened, preadv = containers._opened, os.preadv
    monkeypatch.setattr(containers, "_opened", lambda path: Slow(opened(path)))
    monkeypatch.setattr(os, "preadv", lambda file, buffers, offset: preadv(file, [buffers[0][:100]], offset))
    assert (hscrf.HSCRF(solver=QUICK).fit(shards_of(folder)).coef_ == memory.coef_).all()


def test_a_folder_in_the_making_is_never_removed_by_another_process(tmp_path, monkeypatch):
    one, other = Cache(str(tmp_path)), Cache(str(tmp_path))
    mkdir = os.mkdir

    def make(path, *arguments):
        mkdir(path, *arguments)
        other._tidy()

    with monkeypatch.context() as patch:
        patch.setattr(os, "mkdir", make)
        with one.making("a") as folder:
            Path(folder, "content").touch()
            with other.making("b"):
                pass
    assert (tmp_path / "a" / "content").exists()
    assert sorted(os.listdir(tmp_path)) == ["a", "b"]


def test_shards_are_packed_without_fcntl(files):
    """Windows has no fcntl, and locks files by msvcrt."""
    folder, _, _ = files
    code = f"""
import sys, types
import sklearn.base  # Python's own modules look for msvcrt, too: they must find what is there
sys.modules["fcntl"] = None
sys.modules["msvcrt"] = types.SimpleNamespace(LK_NBLCK=2, locking=lambda *arguments: None)
import hscrf
from hscrf.scale import Shards
shards = Shards.from_files({str(folder / "*.jsonl")!r}, {LEVELS!r}, template="none")
print(hscrf.HSCRF(solver=hscrf.LBFGS(max_iter=1)).fit(shards).n_iter_)
"""
    environment = {**os.environ, "PYTHONPATH": str(SOURCE)}
    run = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    assert run.stdout.split() == ["1"]


def test_bad_parts_are_named():
    X, Y = sentences(30)
    Y[20] = {**Y[20], "tag": Y[20]["tag"][:-1]}
    with pytest.raises(ValueError, match="part 1, sequence 3:"):
        hscrf.HSCRF(solver=QUICK).fit(from_parts(X, Y))
    shards = from_parts(X, Y, errors="skip")
    hscrf.HSCRF(solver=QUICK).fit(shards)
    assert shards.skipped == 1


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Shards.from_files("nothing/*.jsonl", ["a"]), "no file matches"),
        (lambda: Shards.from_parts([3]), "parts\\[0\\] is an int"),
        (lambda: Shards.from_parts([], errors="maybe"), "errors is 'maybe'"),
        (lambda: hscrf.HSCRF().fit(Shards.from_parts([lambda: 3])), "part 0 returned an int"),
        (lambda: hscrf.HSCRF().fit(Shards.from_parts([])), "there is no sequence"),
        (lambda: hscrf.HSCRF().fit(Shards.from_parts([]), ["a"]), "labels and lengths of their own"),
        (lambda: hscrf.HSCRF().fit([[["a"]]]), "Y is None"),
        (lambda: hscrf.HSCRF().fit([[["a"]]], [["a"]], client=1), "a cluster works on hscrf.scale.Shards"),
        (
            lambda: hscrf.HSCRF(features=[hscrf.Segment("tag", len)]).fit(Shards.from_parts([])),
            "shards do not keep",
        ),
    ],
)
def test_what_is_wrong_is_reported(make, message):
    with pytest.raises((ValueError, OSError), match=message):
        make()


# -- what happens to files


def fitted(folder):
    """A loss over shards on disk, and the path of the second of them."""
    from hscrf.objective.workers import Workers

    loss, weights = loss_of(hscrf.HSCRF(solver=QUICK), shards_of(folder), None, None, Workers())
    loss(weights)
    return loss, weights, loss.shards[1].file.path


def test_a_damaged_shard(files):
    folder, _, _ = files
    loss, weights, path = fitted(folder)
    content = bytearray(Path(path).read_bytes())
    content[len(content) // 2] ^= 1
    Path(path).write_bytes(content)
    with pytest.raises(FileFormatError, match=r"000001.shard is altered.*changed while it was in use"):
        loss(weights)


def test_a_deleted_shard(files):
    folder, _, _ = files
    loss, weights, path = fitted(folder)
    os.unlink(path)
    with pytest.raises(FileFormatError, match=r"000001\.shard is gone"):
        loss(weights)


def test_a_shard_that_was_cut_short(files):
    folder, _, _ = files
    loss, weights, path = fitted(folder)
    os.truncate(path, os.path.getsize(path) // 2)
    with pytest.raises(FileFormatError, match=r"000001\.shard is truncated"):
        loss(weights)


def test_another_shard_in_its_place(files):
    folder, _, _ = files
    loss, weights, path = fitted(folder)
    shutil.copy(loss.shards[0].file.path, path)
    with pytest.raises(FileFormatError, match="not the file that was packed"):
        loss(weights)


def test_a_shard_that_was_touched_goes_on(files):
    folder, _, _ = files
    loss, weights, path = fitted(folder)
    expected = loss(weights)
    shutil.copy(path, f"{path}.copy")
    os.replace(f"{path}.copy", path)
    found = loss(weights)
    assert found[0] == expected[0]
    assert (found[1] == expected[1]).all()


def test_a_damaged_shard_in_the_cache(files):
    """What was damaged since it was packed is found when it is first used."""
    folder, _, _ = files
    _, _, path = fitted(folder)
    content = bytearray(Path(path).read_bytes())
    content[-40] ^= 1
    Path(path).write_bytes(content)
    from hscrf.files.lazy import CHECKED_FILES

    CHECKED_FILES.files.clear()
    with pytest.raises(FileFormatError, match="is altered"):
        hscrf.HSCRF(solver=QUICK).fit(shards_of(folder))


def test_a_source_that_changes_while_it_is_packed(files, monkeypatch):
    folder, X, Y = files
    original = packing.Packer._write

    def write(packer, *arguments):
        write_jsonl(folder / "0.jsonl", X[:3], Y[:3])
        return original(packer, *arguments)

    monkeypatch.setattr(packing.Packer, "_write", write)
    with pytest.raises(ValueError, match=r"0.jsonl was changed while it was packed"):
        hscrf.HSCRF(solver=QUICK).fit(shards_of(folder))
    assert sets_in(folder) == []


@pytest.mark.filterwarnings("ignore:Exception ignored in. <function ZipFile")  # Python 3.10 closes such archives twice
def test_a_full_disk(files):
    """A limit on the size of files stands for a disk that is full."""
    folder, _, _ = files
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4000, limits[1]))
    try:
        with pytest.raises(OSError, match="while packing; unfinished shards were removed"):
            shards_of(folder).pack(hscrf.HSCRF())
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert sets_in(folder) == []


SLOW = """
import sys, pathlib, time
import hscrf
from hscrf.objective.workers import Cuts
from hscrf.scale import Shards, spool
from hscrf.scale.sizes import Sizes
original = spool.Spool.add
def add(self, *arguments):
    original(self, *arguments)
    print("added", flush=True)
    time.sleep(60)
spool.Spool.add = add
folder = pathlib.Path(sys.argv[1])
shards = Shards.from_files(folder / "*.jsonl", ["phrase", "tag"], cache=folder / "cache", template="none")
shards.sizes = Sizes(Cuts(shard=150, chunk=40))
shards.pack(hscrf.HSCRF())
"""


def slow_packing(folder):
    """A process that packs, and says so as soon as there is something half."""
    environment = {**os.environ, "PYTHONPATH": str(SOURCE)}
    command = [sys.executable, "-W", "error", "-c", SLOW, str(folder)]
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def test_a_killed_packing_leaves_nothing_that_is_taken_for_whole(files):
    """As long as a process packs, what it has done is left alone; once it is killed, it is removed."""
    folder, X, Y = files
    with slow_packing(folder) as process:
        assert process.stdout.readline() == "added\n"
        disk = hscrf.HSCRF(solver=QUICK).fit(shards_of(folder))
        assert sum("unfinished" in name for name in sets_in(folder)) == 1
        process.send_signal(signal.SIGKILL)
        process.communicate(timeout=60)
    assert (disk.coef_ == hscrf.HSCRF(solver=QUICK).fit(InMemory(X, Y)).coef_).all()
    hscrf.HSCRF(solver=QUICK, min_count=2).fit(shards_of(folder))
    assert not any("unfinished" in name for name in sets_in(folder))
    assert len(sets_in(folder)) == 2


# -- labels


def test_prediction_and_score(files):
    folder, X, Y = files
    shards = shards_of(folder)
    model = hscrf.HSCRF(solver=QUICK).fit(shards)
    assert model.score(shards) == model.score(X, Y)
    paths = model.predict(shards, folder=folder / "out")
    lines = [json.loads(line) for path in paths for line in Path(path).read_text(encoding="utf-8").splitlines()]
    expected = model.predict(X)
    assert len(lines) == len(X)
    for line, labels in zip(lines, expected, strict=True):
        assert line["prediction"]["tag"] == labels.column("tag")
        assert [tuple(s) for s in line["prediction"]["phrase"]] == labels.segments("phrase")
    assert (lines[0]["file"], lines[0]["line"]) == (str(folder / "0.jsonl"), 1)
    assert (lines[-1]["file"], lines[-1]["line"]) == (str(folder / "2.jsonl"), 20)
    with pytest.raises(ValueError, match="folder is None"):
        model.predict(shards)


def test_labels_that_training_never_showed_are_wrong(files):
    _folder, X, Y = files
    model = hscrf.HSCRF(solver=QUICK).fit(X, Y)
    strange = [{**y, "tag": ["X", *y["tag"][1:]]} for y in Y]
    assert model.score(from_parts(X, strange)) == model.score(X, strange)


def test_an_empty_sequence_is_named():
    X, Y = sentences(20)
    X[18], Y[18] = [], {"phrase": [], "tag": []}
    with pytest.raises(ValueError, match="part 1, sequence 1: the sequence is empty"):
        hscrf.HSCRF(solver=QUICK).fit(from_parts(X, Y))


def test_templates_are_applied_once(tmp_path, monkeypatch):
    X, Y = sentences(20)
    (tmp_path / "a.txt").write_text("".join(columns(X, Y, " ")))
    shards = Shards.from_files(tmp_path / "a.txt", LEVELS, columns=["word", *LEVELS])
    calls = []
    original = Template.apply
    monkeypatch.setattr(Template, "apply", lambda self, rows: calls.append(1) or original(self, rows))
    shards.pack(hscrf.HSCRF())
    assert len(calls) == 20

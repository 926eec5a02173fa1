"""Files of models and checkpoints: they come back the same, and altered or foreign ones are refused."""

import json
import pickle

import numpy as np
import pandas
import pytest
from scipy.sparse import csr_matrix
from sklearn.base import clone

import hscrf
from hscrf import (
    HSCRF,
    LBFGS,
    Duration,
    End,
    Init,
    Segment,
    Start,
    Stop,
    Token,
    Topology,
    Trans,
)
from hscrf.errors import FileFormatError
from hscrf.files.container import read_container, write_container
from toy import NUMBERS, X, Y, other_length, tag_length

ALL_BLOCKS = [
    Token("tag"),
    Token("phrase", average=True),
    Start("phrase"),
    Stop("phrase"),
    Duration("phrase", "gamma"),
    Duration("phrase", "bins"),
    Duration("phrase", "each"),
    Segment("phrase", tag_length),
    Segment("phrase", other_length),
    *(kind("phrase") for kind in (Init, Trans, End)),
    *(kind("root", observed=True) for kind in (Init, Trans, End)),
]
FUNCTIONS = {"tag_length": tag_length, "other_length": other_length}


@pytest.mark.parametrize("spec", [None, *ALL_BLOCKS, ALL_BLOCKS], ids=lambda spec: type(spec).__name__)
def test_models_come_back_from_files(tmp_path, spec):
    features = None if spec is None else [Token("tag"), *(spec if isinstance(spec, list) else [spec])]
    fitted = HSCRF(features=features, solver=LBFGS(max_iter=3), scheme={"tag": "plain"}).fit(X, Y)
    fitted.save(tmp_path / "m.hscrf")
    again = hscrf.load(tmp_path / "m.hscrf", functions=FUNCTIONS)
    assert np.array_equal(again.coef_, fitted.coef_)
    assert again.predict(X) == fitted.predict(X)
    assert np.array_equal(again.log_likelihood(X, Y), fitted.log_likelihood(X, Y))
    assert again.weights_.equals(fitted.weights_)
    assert again.topology_ == fitted.topology_
    assert (again.n_iter_, again.stop_reason_, again.history_) == (3, fitted.stop_reason_, fitted.history_)
    assert again.get_params() == fitted.get_params()
    assert np.array_equal(again.fit(X, Y).coef_, fitted.coef_)
    again.save(tmp_path / "again")
    assert (tmp_path / "again").read_bytes() != b""
    assert hscrf.load(tmp_path / "again", FUNCTIONS).predict(X) == fitted.predict(X)


def test_numeric_models_come_back_from_files(tmp_path):
    for make in (np.asarray, csr_matrix, lambda x: pandas.DataFrame(x, columns=["length", "letter"])):
        inputs = [make(x) for x in NUMBERS]
        fitted = HSCRF(solver=LBFGS(max_iter=3), random_state=np.random.default_rng(0)).fit(inputs, Y)
        fitted.save(tmp_path / "m")
        again = hscrf.load(tmp_path / "m")
        assert np.array_equal(again.log_likelihood(inputs, Y), fitted.log_likelihood(inputs, Y))


def test_segment_functions_must_be_given(tmp_path):
    fitted = HSCRF(features=[Segment("phrase", tag_length)], solver=LBFGS(max_iter=1)).fit(X, Y)
    fitted.save(tmp_path / "m")
    with pytest.raises(ValueError, match=r"uses the segment function 'tag_length': give it as load\(path, functions="):
        hscrf.load(tmp_path / "m")


def test_segment_functions_of_one_name_are_refused(tmp_path):
    features = [Segment("phrase", lambda z, start, stop: 1.0), Segment("phrase", lambda z, start, stop: stop - start)]
    fitted = HSCRF(features=features, solver=LBFGS(max_iter=1)).fit(X, Y)
    with pytest.raises(ValueError, match="two segment functions are both named '<lambda>'"):
        fitted.save(tmp_path / "m")
    assert not (tmp_path / "m").exists()


def test_altered_models_are_refused(toy_model, tmp_path):
    path = tmp_path / "m"
    toy_model.save(path)
    content = path.read_bytes()
    rng = np.random.default_rng(0)
    for _ in range(300):
        altered = bytearray(content)
        for k in rng.integers(len(content), size=rng.choice([1, 8])):
            altered[k] ^= int(rng.integers(1, 256))
        path.write_bytes(altered)
        with pytest.raises(FileFormatError):
            hscrf.load(path)
    for size in [0, 1, 15, *rng.integers(len(content), size=50)]:
        path.write_bytes(content[:size])
        with pytest.raises(FileFormatError):
            hscrf.load(path)


def test_foreign_files_are_refused(toy_model, tmp_path):
    path = tmp_path / "m"
    path.write_bytes(pickle.dumps(toy_model))
    with pytest.raises(FileFormatError, match="is not an hscrf file"):
        hscrf.load(path)
    with pytest.raises(FileNotFoundError):
        hscrf.load(tmp_path / "nothing")
    write_container(path, {"kind": "checkpoint"}, {})
    with pytest.raises(FileFormatError, match="is a checkpoint, expected a model"):
        hscrf.load(path)
    for header in ({"kind": "model"}, {"kind": "model", "class": "os.system"}):
        write_container(path, header, {})
        with pytest.raises(FileFormatError, match="expected one of HSCRF"):
            hscrf.load(path)


def test_models_with_missing_pieces_are_refused(toy_model, tmp_path):
    path = tmp_path / "m"
    toy_model.save(path)
    header, arrays = read_container(path)
    for key in header.keys() - {"kind", "class"}:
        write_container(path, {name: value for name, value in header.items() if name != key}, arrays)
        with pytest.raises(FileFormatError, match="is not a complete model"):
            hscrf.load(path)
    for key in arrays:
        write_container(path, header, {name: value for name, value in arrays.items() if name != key})
        with pytest.raises(FileFormatError, match="is not a complete model"):
            hscrf.load(path)
    write_container(path, header, {**arrays, "coef": arrays["coef"][:-1]})
    with pytest.raises(FileFormatError, match="weights, which do not fit its features"):
        hscrf.load(path)


def test_nothing_in_a_file_is_pickled(toy_model, tmp_path):
    toy_model.save(tmp_path / "m")
    header, arrays = read_container(tmp_path / "m")
    assert json.loads(json.dumps(header)) == header
    assert all(array.dtype != object for array in arrays.values())


def test_training_goes_on_from_a_checkpoint(tmp_path):
    path = tmp_path / "run"
    first = HSCRF(solver=LBFGS(max_iter=4)).fit(X, Y, checkpoint=path)
    header, arrays = read_container(path)
    assert np.array_equal(arrays["weights"], first.coef_)
    assert [entry["loss"] for entry in header["history"]] == [entry["loss"] for entry in first.history_]
    second = HSCRF(solver=LBFGS(max_iter=4)).fit(X, Y, checkpoint=path)
    assert second.loss_ < first.loss_
    assert max(entry["loss"] for entry in second.history_) <= first.loss_
    third = HSCRF().fit(X, Y, checkpoint=path)
    fresh = HSCRF().fit(X, Y)
    assert third.converged_
    assert third.n_iter_ < fresh.n_iter_
    assert third.loss_ == pytest.approx(fresh.loss_, rel=1e-4)


def test_corrupted_checkpoints_are_refused(tmp_path):
    path = tmp_path / "run"
    HSCRF(solver=LBFGS(max_iter=2)).fit(X, Y, checkpoint=path)
    content = path.read_bytes()
    for bad, message in (
        (content[:-5], "is truncated"),
        (content[:-40] + b"x" + content[-39:], "is altered"),
        (b"weights", "is not an hscrf file"),
    ):
        path.write_bytes(bad)
        with pytest.raises(FileFormatError, match=message):
            HSCRF().fit(X, Y, checkpoint=path)
        assert path.read_bytes() == bad  # it is the user's to remove


OTHERS = {
    "less data": (HSCRF(), X[:4], Y[:4]),
    "other words": (HSCRF(min_count=4), X, Y),
    "other penalty": (HSCRF(c2=0.5), X, Y),
    "other blocks": (HSCRF(features=[Stop("phrase")]), X, Y),
    "penalty of blocks": (HSCRF(features=[Start("phrase", penalty=np.int64(2))]), X, Y),
    "other labels": (HSCRF(), X, [{"phrase": y["tag"], "tag": y["phrase"]} for y in Y]),
    "other pairs": (HSCRF(), X, [{**y, "tag": [{"D": "J", "J": "D"}.get(t, t) for t in y["tag"]]} for y in Y]),
    "other topology": (HSCRF(Topology({"phrase": ["NP", "VP"], "tag": ["D", "J", "N", "V"]})), X, Y),
}


@pytest.mark.parametrize("case", OTHERS)
def test_checkpoints_of_another_model_are_refused(tmp_path, case):
    path = tmp_path / "run"
    other, inputs, labels = OTHERS[case]
    clone(other).set_params(solver=LBFGS(max_iter=1)).fit(inputs, labels, checkpoint=path)
    features = [Start("phrase")] if "blocks" in case else None
    with pytest.raises(ValueError, match="is not a checkpoint of this model on this data"):
        HSCRF(features=features).fit(X, Y, checkpoint=path)
    assert path.exists()


def test_a_model_is_no_checkpoint(toy_model, tmp_path):
    toy_model.save(tmp_path / "m")
    with pytest.raises(ValueError, match="is not a checkpoint"):
        HSCRF().fit(X, Y, checkpoint=tmp_path / "m")


def test_mean_lengths_are_in_the_file_and_older_files_have_none(tmp_path):
    model = HSCRF(features=[Token("phrase", penalty="length"), "default"]).fit(X, Y)
    header, arrays = model.content()
    write_container(tmp_path / "new", header, arrays)
    loaded = hscrf.load(tmp_path / "new")
    assert loaded.mean_lengths_ == model.mean_lengths_
    assert loaded.sizes_ == model.sizes_ == {"tag": 1.0}
    assert loaded.features == model.features
    del header["training"]["mean_lengths"], header["training"]["sizes"]
    write_container(tmp_path / "old", header, arrays)
    older = hscrf.load(tmp_path / "old")
    assert not hasattr(older, "mean_lengths_")
    assert older.predict(X) == model.predict(X)

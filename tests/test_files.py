"""The container of models and checkpoints: round trips, and clear errors for any other file."""

import hashlib
import json
import os
import zipfile

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from hscrf.errors import FileFormatError
from hscrf.files import replacing
from hscrf.files.container import DIGEST, DTYPES, FRAME, MAGIC, START, read_container, write_container

HEADER = {"kind": "test", "levels": ["phrase", "étiquette", "標籤"], "c2": 0.1, "none": None}
ARRAYS = {"w": np.arange(3.0), "mask": np.array([[True, False]]), "empty": np.zeros((0, 4), np.int32)}

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
any_array = st.sampled_from(list(DTYPES)).flatmap(
    lambda dtype: hnp.arrays(np.dtype(dtype), hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4))
)


@pytest.fixture
def small(tmp_path):
    path = tmp_path / "model.hscrf"
    write_container(path, HEADER, ARRAYS)
    return path


def forge(path, content, *, size=None, version=1):
    """A file with any content and the right checksum."""
    text = content if isinstance(content, bytes) else json.dumps(content).encode()
    length = START + len(text) + DIGEST
    body = MAGIC + FRAME.pack(version, length if size is None else size, len(text)) + text
    path.write_bytes(body + hashlib.sha256(body).digest())
    return path


# ------------------------------------------------------------------------------
# Round trip


@given(st.dictionaries(st.text(), json_values, max_size=3), st.dictionaries(st.text(), any_array, max_size=3))
def test_what_goes_in_comes_out(tmp_path_factory, header, arrays):
    path = tmp_path_factory.mktemp("container") / "file"
    write_container(path, header, arrays)
    read_header, read_arrays = read_container(path)
    assert read_header == header
    assert list(read_arrays) == list(arrays)
    for name, array in arrays.items():
        np.testing.assert_array_equal(read_arrays[name], array)
        assert read_arrays[name].dtype == array.dtype
        assert read_arrays[name].shape == array.shape
        assert read_arrays[name].flags.writeable


@pytest.mark.parametrize(
    "array",
    [np.arange(6.0).astype(">f8"), np.arange(12).reshape(3, 4).T, np.arange(9)[::-2], np.array(3.5)],
    ids=["big-endian", "transposed", "strided", "scalar"],
)
def test_any_layout_of_memory_is_welcome(tmp_path, array):
    write_container(tmp_path / "f", {}, {"a": array})
    read = read_container(tmp_path / "f")[1]["a"]
    np.testing.assert_array_equal(read, array)
    assert read.shape == array.shape
    assert read.dtype.isnative


def test_the_same_content_gives_the_same_bytes(tmp_path, small):
    write_container(tmp_path / "again", HEADER, ARRAYS)
    assert (tmp_path / "again").read_bytes() == small.read_bytes()


def test_numpy_numbers_and_nan_may_stand_in_the_header(tmp_path):
    write_container(tmp_path / "f", {"n": np.int64(3), "score": np.float64("nan")}, {})
    header, _ = read_container(tmp_path / "f")
    assert header["n"] == 3
    assert np.isnan(header["score"])


@pytest.mark.parametrize("array", [np.array(["a"]), np.array([None]), np.array([1j]), np.zeros(2, "M8[s]")])
def test_other_dtypes_are_refused_before_anything_is_written(tmp_path, array):
    with pytest.raises(TypeError, match="array 'x' has dtype"):
        write_container(tmp_path / "f", {}, {"x": array})
    assert list(tmp_path.iterdir()) == []


def test_a_header_that_json_cannot_say_is_refused(tmp_path):
    with pytest.raises(TypeError, match=r"cannot hold .* of type set"):
        write_container(tmp_path / "f", {"x": {1, 2}}, {})
    assert list(tmp_path.iterdir()) == []


# ------------------------------------------------------------------------------
# Damage


def test_truncation_at_every_byte(small):
    content = small.read_bytes()
    for length in range(len(content)):
        small.write_bytes(content[:length])
        with pytest.raises(FileFormatError, match=r"is truncated|is not an hscrf file"):
            read_container(small)


def test_bytes_at_the_end_are_noticed(small):
    small.write_bytes(small.read_bytes() + b"more")
    with pytest.raises(FileFormatError, match="is altered"):
        read_container(small)


@pytest.mark.parametrize("n_changes", [1, 8])
def test_thousands_of_random_changes(small, n_changes):
    content = np.frombuffer(small.read_bytes(), dtype=np.uint8)
    rng = np.random.default_rng(n_changes)
    for _ in range(1500):
        altered = content.copy()
        where = rng.choice(len(content), n_changes, replace=False)
        altered[where] += rng.integers(1, 256, n_changes, dtype=np.uint8)
        small.write_bytes(altered.tobytes())
        with pytest.raises(FileFormatError):
            read_container(small)


def test_every_single_byte_counts(small):
    content = small.read_bytes()
    for n, byte in enumerate(content):
        small.write_bytes(content[:n] + bytes([byte ^ 1]) + content[n + 1 :])
        with pytest.raises(FileFormatError):
            read_container(small)


def test_foreign_files(tmp_path):
    (tmp_path / "text").write_text("iteration 1 loss 3.5\n" * 20)
    (tmp_path / "empty").touch()
    with zipfile.ZipFile(tmp_path / "zip", "w") as archive:
        archive.writestr("weights.npy", b"123")
    for name in ("text", "empty", "zip"):
        with pytest.raises(FileFormatError, match=f"{name} is not an hscrf file"):
            read_container(tmp_path / name)
    with pytest.raises(FileFormatError, match="is a folder"):
        read_container(tmp_path)
    with pytest.raises(FileNotFoundError):
        read_container(tmp_path / "missing")


def test_a_newer_version_says_so(tmp_path):
    path = forge(tmp_path / "f", {"header": {}, "arrays": []}, version=2)
    with pytest.raises(FileFormatError, match=r"format version 2, but this hscrf reads up to 1"):
        read_container(path)


@pytest.mark.parametrize(
    "content",
    [
        b"\xff\xfe not json",
        b"[" * 100_000,
        [],
        {"header": {}},
        {"header": [], "arrays": []},
        {"header": {}, "arrays": 3},
        {"header": {}, "arrays": [3]},
        {"header": {}, "arrays": [{"name": []}]},
        {"header": {}, "arrays": [{"name": "a"}]},
    ],
    ids=range(9),
)
def test_nonsense_with_a_right_checksum(tmp_path, content):
    with pytest.raises(FileFormatError, match="an invalid header"):
        read_container(forge(tmp_path / "f", content))


@pytest.mark.parametrize(
    "change",
    [
        {"dtype": "object"},
        {"dtype": "O"},
        {"dtype": ["f8"]},
        {"shape": [2**40]},
        {"shape": [-1]},
        {"shape": [2**47] * 4},
        {"shape": [0, 2**47, 2**47, 2**47]},
        {"shape": [0] * 33},
        {"shape": [True]},
        {"shape": [0.0]},
        {"shape": "00"},
        {"shape": None},
        {"offset": -8},
        {"offset": 1},
        {"offset": 2**70},
        {"offset": "0"},
    ],
    ids=str,
)
def test_sizes_are_checked_before_memory_is_asked_for(tmp_path, change):
    entry = {"name": "a", "dtype": "float64", "shape": [0], "offset": 0}
    read_container(forge(tmp_path / "f", {"header": {}, "arrays": [entry]}))
    with pytest.raises(FileFormatError, match="array 'a'"):
        read_container(forge(tmp_path / "f", {"header": {}, "arrays": [{**entry, **change}]}))


def test_two_arrays_of_one_name_and_a_wrong_size(tmp_path):
    entry = {"name": "a", "dtype": "float64", "shape": [0], "offset": 0}
    with pytest.raises(FileFormatError, match="the same name"):
        read_container(forge(tmp_path / "f", {"header": {}, "arrays": [entry, entry]}))
    with pytest.raises(FileFormatError, match="an invalid header"):
        read_container(forge(tmp_path / "f", {"header": {}, "arrays": []}, size=3))


def test_a_bool_is_zero_or_one(small, monkeypatch):
    monkeypatch.setitem(DTYPES, "bool", np.dtype("int8"))
    monkeypatch.setattr(np, "ascontiguousarray", lambda array, dtype: np.full(array.shape, 2, np.int8))
    write_container(small, {}, {"a": np.array([True])})
    monkeypatch.undo()
    with pytest.raises(FileFormatError, match="is boolean, but has bytes"):
        read_container(small)


# ------------------------------------------------------------------------------
# Failures while writing


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), KeyboardInterrupt()], ids=["disk", "ctrl-c"])
@pytest.mark.parametrize("function", ["replace", "fsync"])
def test_a_failed_write_keeps_the_old_file(small, monkeypatch, function, error):
    def fail(*_):
        raise error

    before = small.read_bytes()
    monkeypatch.setattr(os, function, fail)
    with pytest.raises(type(error)):
        write_container(small, {"new": 1}, {"w": np.zeros(1000)})
    assert small.read_bytes() == before
    assert list(small.parent.iterdir()) == [small]


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full here")
def test_a_full_disk_keeps_the_old_file(small, monkeypatch):
    before = small.read_bytes()
    monkeypatch.setattr(replacing, "open", lambda *_: open("/dev/full", "wb"), raising=False)  # noqa: SIM115
    with pytest.raises(OSError, match="No space left"):
        write_container(small, {}, {"w": np.zeros(100_000)})
    assert small.read_bytes() == before


def test_a_missing_folder_is_an_ordinary_error(tmp_path):
    with pytest.raises(FileNotFoundError):
        write_container(tmp_path / "nowhere" / "f", {}, {})


@pytest.mark.skipif(os.name != "posix", reason="permissions and links of POSIX")
def test_links_and_permissions_stay(small):
    small.chmod(0o640)
    link = small.parent / "link"
    link.symlink_to(small.name)
    write_container(link, {"new": 1}, {})
    assert link.is_symlink()
    assert small.stat().st_mode & 0o777 == 0o640
    assert read_container(small)[0] == {"new": 1}

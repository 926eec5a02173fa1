"""Damaged data of every format are refused with a message, or all steps are written."""

import pytest

from spoiled import FORMATS, SPOIL, TEXTS, Bench, count_steps
from spoiled_files import SIDES, Files
from spoiled_imports import SOUND, STREAMS, imported, streamed

EACH = 4 * len(SPOIL)  # inputs of each format
FEWER = 2 * len(SPOIL)  # of those that run commands


@pytest.fixture(scope="module")
def bench():
    return Bench()


@pytest.fixture(scope="module")
def files():
    return Files(SPOIL)


@pytest.mark.parametrize("name", FORMATS)
def test_damaged_inputs_are_refused_or_read_whole(bench, name):
    found = {number: bench.outcome(name, number) for number in range(FEWER if name in SIDES else EACH)}
    assert {number: text for number, text in found.items() if text not in ("refused", "read")} == {}
    # Checksums of a model find nearly all damage; that a sound one is read is shown below.
    expected = {"refused"} if name == "model" else {"refused", "read"}
    assert expected <= set(found.values())


@pytest.mark.filterwarnings("ignore:.*begins with")
@pytest.mark.parametrize("name", TEXTS)
def test_sound_inputs_are_read_whole(bench, name):
    text = TEXTS[name][0]
    assert count_steps(name, text) == 24
    assert bench.of_text(name, text.encode()) == "read"


@pytest.mark.parametrize("name", [name for name in SIDES if name != "shard"])
def test_sound_files_are_read_whole(files, name):
    assert getattr(files, f"of_{name}")(files.content[name]) == "read"


@pytest.mark.parametrize("name", SOUND)
def test_sound_imports_are_read_whole(name):
    assert imported(name, SOUND[name][1]) == "read"


@pytest.mark.filterwarnings("ignore:.*begins with")
@pytest.mark.parametrize("name", STREAMS)
def test_sound_lines_are_streamed(bench, name):
    text = TEXTS[STREAMS[name]][0]
    assert streamed(*bench.of(STREAMS[name]), text.encode()) == "read"

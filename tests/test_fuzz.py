"""Untrusted files: each is refused with a message or gives a model that predicts."""

import pytest

pytest.importorskip("resource")  # limits of memory, as POSIX has them

import strangers
from damage import KINDS
from strangers import FAMILIES, GOOD

FILES = 2 * len(KINDS)  # of each family


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory):
    folder = tmp_path_factory.mktemp("files")
    strangers.write_files(folder)
    return strangers.open_all(folder, FILES)


@pytest.mark.parametrize("family", FAMILIES)
def test_damaged_files_are_refused_or_predict(outcomes, family):
    found = outcomes[family]
    assert len(found) == FILES
    assert {f"{number}, {strangers.kind_of(number)}": text for number, text in found.items() if text not in GOOD} == {}
    assert 0.5 * FILES < sum(text == "refused" for text in found.values()) <= FILES

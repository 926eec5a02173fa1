"""The promise of docs/versions.md: files of earlier releases open, and their models predict the same."""

import importlib.util
import json
import shutil
from pathlib import Path

import numpy as np
import pytest

import hscrf

FOLDER = Path(__file__).parent / "files"
RELEASES = sorted(path for path in FOLDER.iterdir() if (path / "answers.json").is_file())
FILES = [path for release in RELEASES for path in sorted(release.glob("*.hscrf"))]


def writer():
    specification = importlib.util.spec_from_file_location("write", FOLDER / "write.py")
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


write = writer()


def name(path):
    return f"{path.parent.name}-{path.stem}"


def test_every_family_has_a_file():
    families = {type(hscrf.load(path)).__name__ for path in FILES}
    assert families == {"HSCRF", "ChainCRF", "SemiCRF", "DynamicCRF", "HHMM"}
    assert sum(path.stat().st_size for path in FOLDER.rglob("*.*")) < 100_000


@pytest.mark.parametrize("path", FILES, ids=name)
def test_models_of_earlier_releases_predict_as_before(path):
    told = json.loads((path.parent / "answers.json").read_text(encoding="utf-8"))["answers"][path.stem]
    model = hscrf.load(path)
    found = write.answers(model, write.NUMBERS if "numbers" in path.stem or path.stem == "hhmm" else write.WORDS)
    assert found["labels"] == told["labels"]
    for number in ("log_likelihood", "entropy"):
        np.testing.assert_allclose(found[number], told[number], rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("path", FILES, ids=name)
def test_models_of_earlier_releases_are_saved_again(path, tmp_path):
    again = tmp_path / "again.hscrf"
    hscrf.load(path).save(again)
    X = write.NUMBERS if "numbers" in path.stem or path.stem == "hhmm" else write.WORDS
    assert write.answers(hscrf.load(again), X) == write.answers(hscrf.load(path), X)


@pytest.mark.parametrize("release", RELEASES, ids=lambda path: path.name)
def test_training_goes_on_from_a_checkpoint_of_an_earlier_release(release, tmp_path):
    own = shutil.copy(release / "lbfgs.checkpoint", tmp_path / "own")
    went_on, whole = write.resumed(8, own), write.resumed(8, None)
    np.testing.assert_allclose(went_on.coef_, whole.coef_, rtol=1e-4, atol=1e-4)
    assert len(went_on.history_) > 3

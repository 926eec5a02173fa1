"""Labels that leave a studio in any format come back through ``hscrf fit``, and the same model is learned from them."""

import contextlib
import json
import re
import uuid

import numpy as np
import pytest

from hscrf import load
from hscrf.cli.main import build_parser, main
from hscrf.cli.studio import project_of
from hscrf.studio.server.studio import Studio

LABELS = 'lasting = ["pace"]\n[levels]\nactivity = ["rest", "run"]\npace = ["low", "high"]\n'
DATA = ("csv", "tsv")  # formats with the observations; the others have labels only
OTHERS = ("segments.csv", "json", "zip", "TextGrid.zip", "boris")
STEPS = 12


def numbers(folder):
    """A table of numbers with gaps, at uneven times that do not begin at 0."""
    rng = np.random.default_rng(0)
    rows = ["sequence,time,speed,heart"]
    for n in range(4):
        time = 10.5
        for t in range(STEPS):
            heart = "" if rng.random() < 0.1 else f"{rng.normal(150 if (t // 3) % 2 else 70, 5):.2f}"
            rows.append(f"day_{n},{time},{rng.normal(3.0 * ((t // 3) % 2)):.3f},{heart}")
            time += float(rng.choice([0.5, 1.0, 1.5]))
    path = folder / "data.csv"
    path.write_text("\n".join(rows) + "\n")
    return path


def mixed(folder):
    """A table of a number and a word."""
    rng = np.random.default_rng(1)
    rows = ["sequence,speed,place"]
    rows += [f"day_{n},{rng.normal(t % 3):.3f},{rng.choice(['in', 'out'])}" for n in range(4) for t in range(STEPS)]
    path = folder / "data.csv"
    path.write_text("\n".join(rows) + "\n")
    return path


def texts(folder):
    """A file of a word a line, of which one has a space."""
    rng = np.random.default_rng(2)
    words = ["\n".join(rng.choice(["the", "cat", "New York", "sees"], STEPS)) for _ in range(4)]
    path = folder / "data.tsv"
    path.write_text("\n\n".join(words) + "\n")
    return path


MADE = {"numbers": numbers, "mixed": mixed, "words": texts}
SAID = {
    "activity": [[0, 3, "rest"], [3, 6, "run"], [6, 9, "run"], [9, 12, "rest"]],
    "pace": [[0, 2, "low"], [2, 3, "high"], [3, 6, "low"], [6, 7, "high"], [7, 9, "low"], [9, 12, "high"]],
}


@contextlib.contextmanager
def opened(data, db):
    """The studio that ``hscrf studio DATA --labels`` opens, without its server."""
    labels = db.with_suffix(".toml")
    labels.write_text(LABELS)
    args = build_parser().parse_args(["studio", str(data), "--labels", str(labels), "--db", str(db)])
    (args.data,) = args.data
    studio = Studio(project_of(args, str(db)), str(db))
    try:
        yield studio
    finally:
        studio.close()


def post(studio, sequence, kind, **body):
    version = studio.workspace.tracked(sequence).state.version
    studio.workspace.post(sequence, {"uid": uuid.uuid4().hex, "version": version, "kind": kind, "body": body})


@pytest.fixture(scope="module", params=MADE)
def worked(request, tmp_path_factory):
    """A database with two accepted sequences and one that is partly labelled: two equal segments in a row, a step."""
    folder = tmp_path_factory.mktemp(request.param)
    data = MADE[request.param](folder)
    with opened(data, folder / "x.sqlite") as studio:
        for n in (1, 2):
            post(studio, n, "accept", whole=True, segments=SAID)
        for start, stop in ((0, 2), (2, 4)):
            post(studio, 3, "segment", level="activity", start=start, stop=stop, label="run")
        post(studio, 3, "label", level="activity", start=8, stop=9, label="rest")
    for ending in ("jsonl", *DATA, *OTHERS):
        assert main(["studio", "export", str(folder / "x.sqlite"), "-o", str(folder / f"out.{ending}")]) == 0
    return folder, data


def fitted(path, *options):
    """What is learned from a file: the loss and all weights, and the names of what was seen."""
    model = f"{path}.hscrf"
    arguments = ["fit", str(path), "-m", model, "--levels", "activity,pace", "--progress", "none", "--max-iter", "20"]
    assert main([*arguments, *options]) == 0
    found = load(model)
    return found.loss_, found.coef_


def same_model(one, other):
    np.testing.assert_allclose(one[0], other[0], rtol=1e-9)
    np.testing.assert_allclose(np.sort(one[1]), np.sort(other[1]), rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("ending", DATA)
def test_observations_and_labels_of_a_file_teach_what_json_lines_teach(worked, ending):
    folder, _ = worked
    same_model(fitted(folder / f"out.{ending}"), fitted(folder / "out.jsonl"))


@pytest.mark.parametrize("ending", OTHERS)
def test_labels_of_a_file_teach_the_same_after_their_import(worked, ending, tmp_path):
    folder, data = worked
    with opened(data, tmp_path / "y.sqlite"):
        pass
    code = main(["studio", "import", str(tmp_path / "y.sqlite"), str(folder / f"out.{ending}")])
    assert code == 0
    assert main(["studio", "export", str(tmp_path / "y.sqlite"), "-o", str(tmp_path / "out.jsonl")]) == 0
    lines = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    first = [json.loads(line) for line in (folder / "out.jsonl").read_text().splitlines()]
    assert [line["labels"] for line in lines[:2]] == [line["labels"] for line in first[:2]]
    whole = [folder / "whole.jsonl", tmp_path / "whole.jsonl"]
    for path, rows in zip(whole, (first, lines), strict=True):
        path.write_text("".join(json.dumps(row) + "\n" for row in rows[:2]))
    same_model(*map(fitted, whole))


def test_names_and_times_of_a_series_go_out_as_they_came_in(tmp_path, capsys):
    data = numbers(tmp_path)
    with opened(data, tmp_path / "x.sqlite"):
        pass
    for ending in ("jsonl", "csv", "tsv"):
        assert main(["studio", "export", str(tmp_path / "x.sqlite"), "-o", str(tmp_path / f"out.{ending}")]) == 0
    came = [line.split(",") for line in data.read_text().splitlines()]
    for ending, sign in (("csv", ","), ("tsv", "\t")):
        went = [line.split(sign) for line in (tmp_path / f"out.{ending}").read_text().splitlines()]
        assert went[0][:4] == came[0]
        for one, other in zip(went[1:], came[1:], strict=True):
            assert (one[0], [float(cell or "nan") for cell in one[1:4]]) == (
                other[0],
                pytest.approx([float(cell or "nan") for cell in other[1:4]], nan_ok=True),
            )
    line = json.loads((tmp_path / "out.jsonl").read_text().splitlines()[0])
    assert line["columns"] == ["speed", "heart"]
    assert line["time"] == [float(row[1]) for row in came[1 : STEPS + 1]]
    # and another studio opens each of them on the same time axis
    for n, ending in enumerate(("jsonl", "csv", "tsv")):
        with opened(tmp_path / f"out.{ending}", tmp_path / f"{n}.sqlite") as studio:
            assert studio.channels == ["speed", "heart"]
            assert studio.database.times(1) == line["time"]
    capsys.readouterr()
    assert main(["studio", "export", str(tmp_path / "x.sqlite"), "-o", str(tmp_path / "out.txt")]) == 2
    assert re.search("numbers.*write .csv, .tsv or .jsonl", capsys.readouterr().err)

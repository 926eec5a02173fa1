"""The studies run: their smallest variants, on generated data, from the command line to the page."""

import importlib.util
import json
import runpy
import sys
from pathlib import Path

import pytest

from processes import run_script

ROOT = Path(__file__).resolve().parents[1]
EXPERIMENTS = ROOT / "experiments"
STUDIES = [
    "stopping",
    "incomplete",
    "indoor",
    "chunking",
    "joint",
    "citations",
    "hiding",
    "economy",
    "penalties",
    "defaults",
    "fillers",
    "partial",
    "plain",
    "small",
    "borders",
    *(["neural"] if importlib.util.find_spec("torch") else []),
]  # stems of scripts whose --smallest needs no data


@pytest.fixture
def runner(monkeypatch):
    monkeypatch.syspath_prepend(str(EXPERIMENTS))
    import runner

    return runner


def run_here(words, folder, monkeypatch):
    """The same script without the time that a process needs to start."""
    monkeypatch.delenv("HSCRF_DATA", raising=False)
    monkeypatch.chdir(folder)
    monkeypatch.syspath_prepend(str(EXPERIMENTS))
    monkeypatch.setattr(sys, "argv", words)
    try:
        runpy.run_path(words[0], run_name="__main__")
    except SystemExit as end:
        if end.code:
            raise


@pytest.mark.parametrize("name", STUDIES)
def test_the_smallest_variant_runs_without_data(name, tmp_path, monkeypatch):
    words = [str(EXPERIMENTS / f"{name}.py"), "--smallest", "--out", str(tmp_path)]
    if name == "defaults":  # one of them as it is started by hand
        run_script(words, tmp_path)
    else:
        run_here(words, tmp_path, monkeypatch)
    content = json.loads((tmp_path / f"{name}.json").read_text(encoding="utf-8"))
    assert content["records"]
    assert "table" in {block["kind"] for block in content["blocks"]}
    for block in content["blocks"]:
        assert block["kind"] != "figure" or (tmp_path / block["text"]).stat().st_size < 120_000


def test_tables_hold_means_and_deviations(runner, tmp_path):
    study = runner.Study("some", "Title.\n\nText.", "smallest", out=tmp_path)
    for seed, value in enumerate((0.5, 0.7)):
        study.record("accuracy", value, system="a", level="top", seed=seed)
    study.record("accuracy", 0.4, system="b", level="bottom", seed=0)
    study.table("accuracy", rows="system", columns="level", percent=True)
    assert study.blocks[0]["text"].splitlines() == [
        "| system | top | bottom |",
        "|---|--:|--:|",
        "| a | 60.0 ± 14.1 | – |",
        "| b | – | 40.0 |",
    ]


def test_the_page_holds_text_tables_and_what_made_them(runner, tmp_path, monkeypatch):
    import report

    study = runner.Study("some", "Title.\n\nText.", "smallest", out=tmp_path)
    study.record("accuracy", 0.5, system="a", level="top")
    study.heading("Part")
    study.table("accuracy", rows="system", columns="level", caption="Right steps.")
    study.say("It holds.")
    study.write()
    page = tmp_path / "results.md"
    report.write_page(tmp_path, page, tmp_path)
    assert "some.py --smallest" in page.read_text(encoding="utf-8")
    text = (tmp_path / report.NOTES).read_text(encoding="utf-8")
    for part in ("## Title", "Text.", "### Part", "Right steps.", "| a | 0.5 |", "It holds.", "some.py --smallest"):
        assert part in text
    assert json.loads((tmp_path / "some.json").read_text(encoding="utf-8"))["records"][0]["value"] == 0.5


def test_the_one_table_has_at_most_ten_rows(runner):
    import summary

    paths = sorted((EXPERIMENTS / "results").glob("*.json"))
    found = {path.stem: json.loads(path.read_text(encoding="utf-8")) for path in paths}
    rows = summary.table(found).splitlines()[2:]
    assert 0 < len(rows) <= 10
    assert all(row.count(" | ") == len(summary.HEAD) - 1 and "nan" not in row for row in rows)


def test_the_table_compares_the_plain_call_with_the_best_pipeline(runner, tmp_path):
    import plain
    import summary

    study = runner.Study("plain", "Title.", "smallest", out=tmp_path)
    for system, bits in ((plain.PLAIN, "1110"), (plain.UP, "1000"), (plain.DOWN, "0000"), (plain.BY_HAND, "1111")):
        keys = {"data": "some", "system": system, "place": ""}
        study.record("score", bits.count("1") / 4, measure="whole", **keys)
        study.record("marks", 4, whole=bits, steps=[1.0] * 4, **keys)
    content = json.loads(study.write().read_text(encoding="utf-8"))
    (row,) = summary.table({"plain": content}).splitlines()[2:]
    assert row == "| complete | some | whole sequences | 75.0 | 25.0 (cascade up) | +50.0 (p = 0.5) |"


def test_a_resumed_study_keeps_its_numbers(runner, tmp_path):
    def run(study):
        if not study.select("accuracy", system="a"):
            study.record("accuracy", 0.5, system="a")
        study.record("accuracy", 0.6, system="b")

    options = ["--smallest", "--out", str(tmp_path)]
    seconds = []
    for extra, expected in (([], 2), (["--resume"], 3), ([], 2)):
        assert runner.main(run, "some.py", "Title.", [*options, *extra]) == 0
        content = json.loads((tmp_path / "some.json").read_text(encoding="utf-8"))
        assert len(content["records"]) == expected
        seconds.append(content["seconds"])
    assert seconds[1] > 1.9 * seconds[0]  # those of both runs
    assert seconds[2] < 1.9 * seconds[0]


def test_a_study_that_is_ended_early_keeps_what_it_has(runner, tmp_path):
    import report

    def run(study):
        study.heading("First")
        study.say("Done.")
        study.heading("Second")
        assert json.loads((tmp_path / "some.json").read_text(encoding="utf-8"))["blocks"][-1]["text"] == "Done."
        study.record("accuracy", 0.5)
        raise KeyboardInterrupt

    assert runner.main(run, "some.py", "Title.", ["--smallest", "--out", str(tmp_path)]) == 130
    content = json.loads((tmp_path / "some.json").read_text(encoding="utf-8"))
    assert (content["finished"], content["records"][0]["value"]) == (False, 0.5)
    assert "ended early" in report.origin(content)
    assert "ended early" not in report.origin({**content, "finished": True})


def test_pairs_are_compared_by_their_other_keys(runner, tmp_path):
    study = runner.Study("some", "", "smallest", out=tmp_path)
    for seed in range(8):
        study.record("accuracy", 0.6 + 0.01 * seed, system="a", seed=seed)
    for seed in reversed(range(8)):
        study.record("accuracy", 0.5 + 0.012 * seed, system="b", seed=seed)
    found = study.compare("accuracy", "a", "b", "system")
    assert (found.n, found.wins, found.better) == (8, 8, True)
    assert found.difference == pytest.approx(0.1 - 0.002 * 3.5)
    assert str(study.compare("accuracy", "a", "c", "system")) == "–"


def test_folds_cut_everything_once(runner):
    parts = runner.folds(10, 3)
    assert sorted(n for _, fold in parts for n in fold) == list(range(10))
    assert all(not set(rest) & set(fold) for rest, fold in parts)
    assert runner.group_folds("aab") == {"a": ([2], [0, 1]), "b": ([0, 1], [2])}


def test_the_readme_shows_the_results_of_the_studies(monkeypatch):
    monkeypatch.syspath_prepend(str(EXPERIMENTS))
    import headline
    import report

    table = headline.lines(report.studies(EXPERIMENTS / "results"))
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert len(table.splitlines()) == 2 + len(headline.CHOSEN)
    assert headline.written(text, table) == text, "run python experiments/report.py"
    assert headline.written(text, "| another |") != text


def test_the_page_of_neural_encoders_shows_the_results_of_their_study(monkeypatch):
    monkeypatch.syspath_prepend(str(EXPERIMENTS))
    import encoders
    import headline
    import report

    text = encoders.PAGE.read_text(encoding="utf-8")
    found = report.studies(EXPERIMENTS / "results")
    assert headline.written(text, "\n" + encoders.block(found) + "\n", "layers") == text, "run experiments/report.py"

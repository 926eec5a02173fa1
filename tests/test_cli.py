"""The command itself, in processes of its own: files in, files out, messages, exit codes."""

import contextlib
import io
import json
import os
import random
import re
import signal
import subprocess
import sys
import time
from collections import Counter, defaultdict
from pathlib import Path

import pytest

import hscrf
from comparing import texts_of
from hscrf import cli, metrics
from hscrf.cli import prediction
from hscrf.cli.shell import counted
from hscrf.datasets.activities import make_activities
from hscrf.labels.schemes import is_stray
from hscrf.progress import Waiting

SOURCE = Path(__file__).resolve().parents[1] / "src"
COMMAND = [sys.executable, "-m", "hscrf.cli"]
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(SOURCE), "MPLBACKEND": "agg"}
WORDS = {"D": ["the", "a"], "J": ["old", "red", "big"], "N": ["cat", "dog", "house"], "V": ["sees", "has", "is"]}
PHRASES = {"NP": (["D", "N"], ["D", "J", "N"], ["N"]), "VP": (["V"], ["V", "V"])}


def run(*arguments, code=0, **options):
    """Standard output and standard error of a command that must end with a code."""
    words = [*COMMAND, *map(str, arguments)]
    done = subprocess.run(words, env=ENVIRONMENT, capture_output=True, text=True, encoding="utf-8", **options)
    assert done.returncode == code, done.stderr
    assert "Traceback" not in done.stderr
    return done.stdout, done.stderr


@pytest.fixture
def call_here(tmp_path, monkeypatch, capsys):
    """The same within this process, which is faster, in an empty folder."""

    def called(*arguments, code=0, input=None):
        if input is not None:
            Path("input.txt").write_text(input)
        assert cli.main([*map(str, arguments)]) == code, capsys.readouterr().err
        return capsys.readouterr()

    monkeypatch.chdir(tmp_path)
    return called


@pytest.fixture
def call(call_here, folder, monkeypatch):
    """That in the folder of files and a model."""
    monkeypatch.chdir(folder)
    return call_here


def sentence(rng):
    """Rows word, tag, phrase in BIO."""
    rows = []
    for phrase in rng.choices(["NP", "VP"], k=rng.randint(2, 4)):
        for k, tag in enumerate(rng.choice(PHRASES[phrase])):
            rows.append([rng.choice(WORDS[tag]), tag, ("I-" if k else "B-") + phrase])
    return rows


def as_columns(sentences):
    return "".join("".join(" ".join(row) + "\n" for row in rows) + "\n" for rows in sentences)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A training file, a test file, and a model trained by the command."""
    place = tmp_path_factory.mktemp("cli")
    rng = random.Random(3)
    (place / "train.txt").write_text(as_columns(sentence(rng) for _ in range(60)))
    (place / "test.txt").write_text(as_columns(sentence(rng) for _ in range(20)))
    _, said = run("fit", "train.txt", "-m", "model", "--levels", "phrase=3,tag=2", "--progress", "lines", cwd=place)
    assert "iteration 1  loss" in said
    assert "60 sequences" in said
    return place


@pytest.fixture(scope="module")
def days():
    """Activities as (features, labels)."""
    return list(zip(*make_activities(10, n_activities=2, random_state=1), strict=True))


class TestColumns:
    def test_fit_predict_score(self, folder):
        _, said = run("predict", "test.txt", "-m", "model", "-t", "-o", "out.txt", cwd=folder)
        assert "all levels right" in said
        given, found = ((folder / name).read_text().splitlines() for name in ("test.txt", "out.txt"))
        assert all(b.startswith(a) for a, b in zip(given, found, strict=True))
        printed, _ = run("score", "out.txt", "-m", "model", "--json", "scores.json", cwd=folder)
        assert printed == said
        scores = json.loads((folder / "scores.json").read_text())
        assert scores["levels"]["tag"]["accuracy"] > 0.99
        assert scores["joint_accuracy"] > 0.9

    def test_score_agrees_with_conlleval(self, call):
        call("predict", "test.txt", "-m", "model", "-t", "-o", "out2.txt")
        printed, _ = call("score", "out2.txt", "--conlleval", "--columns", "w,t,p", "--levels", "p,t")
        rows = [block.splitlines() for block in Path("out2.txt").read_text().split("\n\n") if block]
        gold, guess = ([[line.split()[k] for line in block] for block in rows] for k in (2, 4))
        assert printed == metrics.conlleval_text(metrics.conlleval(gold, guess)) + "\n"

    def test_evidence_from_the_shell(self, folder):
        """Labels in the input are kept and the others predicted; files need no labels."""
        text = "the ? ?\ncat ? B-VP\nsees V ?\n\ncat N B-NP\n"
        found, _ = run("predict", "-m", "model", input=text, cwd=folder)
        rows = [line.split() for line in found.splitlines()]
        assert rows[1] == ["cat", "?", "B-VP", "V", "B-VP"]  # a VP holds nothing but V
        assert rows[2][:3] == ["sees", "V", "?"]

    def test_files_without_labels(self, call):
        free, _ = call("predict", "input.txt", "-m", "model", input="the\ncat\nsees\n")
        assert free == "the D B-NP\ncat N I-NP\nsees V B-VP\n\n"

    def test_marginals_samples_and_the_best(self, call):
        options = ["--marginals", "--samples", 2, "--k-best", 3]
        found, _ = call("predict", "input.txt", "-m", "model", *options, input="the\ncat\n")
        (word, tag, phrase, *rest), _ = (line.split() for line in found.splitlines() if line)
        assert (word, tag, phrase) == ("the", "D", "B-NP")
        assert len(rest) == 2 + 2 * 2 + 3 * 2
        assert 0.5 < float(rest[0]) <= 1
        assert rest[6:8] == [tag, phrase]  # the best is the prediction

    def test_what_is_labelled_is_not_predicted(self, call):
        _, said = call("predict", "input.txt", "-m", "model", input="the D B-NP\n")
        assert "nothing was predicted; -t" in said
        text = "the D B-NP\ncat N I-NP\n"
        _, said = call("predict", "input.txt", "-m", "model", "-t", "--given", "tag", input=text)
        assert "tag: accuracy 1.000 of 2 steps" in said

    def test_models_are_those_of_the_library(self, folder):
        model = hscrf.load(folder / "model")
        assert model.topology_.levels == ("root", "phrase", "tag")

    def test_templates(self, call):
        Path("crfpp").write_text("U0:%x[0,0]\nU1:%x[-1,0]/%x[0,0]\nB\n")
        options = ["--template", "crfpp", "--levels", "phrase=3", "--progress", "none", "--max-iter", 5]
        call("fit", "train.txt", "-m", "model2", *options)
        printed, _ = call("show", "model2", "--top", 2)
        assert "features column 1, column 2 by a template of 2 patterns (columns are counted from 0 there)" in printed
        assert "U0:" in printed

    def test_features_of_columns_without_names_are_called_as_in_the_template(self, call):
        _, said = call("fit", "train.txt", "-m", "model2", "--levels", "phrase=3", "--max-iter", 5)
        assert "columns: 1, 2 (text" in said
        printed, _ = call("show", "model2", "--top", 200)
        assert "features column 1, column 2 by" in printed
        assert "  0[-1]|0[0]=" in printed
        patterns = set(re.findall(r'^    "(.*?)=', call("show", "model2", "--template")[0], re.MULTILINE))
        shown = set(re.findall(r"  ([^ ]+\[-?\d\])=\S+\n", printed))
        assert "1[0]" in shown <= patterns

    def test_label_pairs_see_their_words(self, tmp_path, monkeypatch, capsys):
        """Labels that depend on pairs of labels and a word: only B01:%x[0,0] has such features."""
        monkeypatch.chdir(tmp_path)
        rng = random.Random(0)
        with open("turns.txt", "w") as file:
            for _ in range(60):
                label = rng.choice("ab")
                file.write(f"{label} {label}\n")
                for word in rng.choices(["turn", "stay"], k=8):
                    label = {"a": "b", "b": "a"}[label] if word == "turn" else label
                    file.write(f"{word} {label}\n")
                file.write("\n")
        Path("with").write_text("U:%x[0,0]\nB01:%x[0,0]\n")
        Path("without").write_text("U:%x[0,0]\nB\n")
        scores = {}
        for name in ("with", "without"):
            assert cli.main(["fit", "turns.txt", "-m", f"{name}.m", "--template", name, "--progress", "none"]) == 0
            assert cli.main(["predict", "turns.txt", "-m", f"{name}.m", "-t", "-o", "out.txt"]) == 0
            capsys.readouterr()
            assert cli.main(["score", "out.txt", "--json", "-"]) == 0
            scores[name] = json.loads(capsys.readouterr().out)["joint_accuracy"]
        assert scores["with"] == 1
        assert scores["without"] < 0.8
        weights = hscrf.load("with.m").weights_
        fed = {part: set(rows["feature"]) for part, rows in weights.groupby("part")}
        assert fed["token"] == {"U:a", "U:b", "U:turn", "U:stay"}
        assert fed["trans"] - {""} == {"pair:B01:turn", "pair:B01:stay"}

    def test_transitions_that_were_not_seen(self, call):
        options = ["--levels", "phrase=3,tag=2", "--progress", "none", "--max-iter", 2]
        sizes = {}
        for choice in ("all", "seen"):
            call("fit", "train.txt", "-m", "model4", *options, "--transitions", choice)
            sizes[choice] = hscrf.load("model4").coef_.size
        assert sizes["seen"] < sizes["all"]

    def test_children_that_were_not_seen(self, call):
        options = ["--levels", "phrase=3,tag=2", "--progress", "none", "--max-iter", 2]
        call("fit", "train.txt", "-m", "model5", *options, "--children", "all")
        assert hscrf.load("model5").topology_.children[1].all()
        assert not hscrf.load("model").topology_.children[1].all()

    def test_development_file_and_checkpoint(self, call):
        options = ["--levels", "phrase=3,tag=2", "--dev", "test.txt", "--checkpoint", "half"]
        options += ["--progress", "lines"]
        _, said = call("fit", "train.txt", "-m", "model3", *options, "--max-iter", 3)
        assert "  dev " in said
        assert re.search(r"kept iteration \d of 3: \d+\.\d\d % of the steps of --dev are right", said)
        assert "--max-iter 3 iterations done" in said
        _, said = call("fit", "train.txt", "-m", "model3", *options, "--patience", 2)
        assert "no improvement on the development set for 2 evaluations" in said
        assert "resumed at iteration 3\niteration 4  loss" in said
        best, last, share = re.search(r"kept iteration (\d+) of (\d+): ([\d.]+) %", said).groups()
        history = hscrf.load("model3").history_
        scores = {entry["iteration"]: entry["score"] for entry in history}
        assert min(scores) == 4
        assert max(scores) == int(last)
        assert scores[int(best)] == max(scores.values()) == pytest.approx(float(share) / 100, abs=1e-4)

    def test_show(self, call):
        printed, _ = call("show", "model")
        assert "phrase (bio), tag (plain)" in printed
        assert "  VP: V\n" in printed
        assert "strongest token weights of level tag" in printed
        assert "training: " in printed

    def test_crfsuite_items(self, call):
        text = "".join(f"{tag}\tw={word}\tbias:2\n" for word, tag, _ in sentence(random.Random(1)))
        Path("items.crfsuite").write_text(text)
        call("fit", "items.crfsuite", "-m", "items", "--progress", "none")
        found, _ = call("predict", "items.crfsuite", "-m", "items", "-t")
        assert all(len(set(line.split("\t"))) == 1 for line in found.splitlines())


class TestScore:
    """One file or two, whatever was appended."""

    OTHER = "the D B-NP\ncat N I-NP\nsees V B-VP\n\ncat N B-NP\n"

    @pytest.fixture
    def truth(self, call):
        """A file on which the model errs: its first words are called verbs."""
        Path("truth.txt").write_text("the V B-VP\ncat N B-NP\nsees V B-VP\n\ncat N B-NP\n")
        return "truth.txt"

    @pytest.fixture
    def expected(self, call, truth):
        """What predict itself reports."""
        return call("predict", truth, "-m", "model", "-t", "-o", "plain.txt").err

    def test_columns_that_were_appended_do_not_matter(self, call, truth, expected):
        assert "tag: accuracy 0.750 of 4 steps" in expected
        options = ["-t", "--marginals", "--samples", 2, "--k-best", 2, "-o", "wide.txt"]
        call("predict", truth, "-m", "model", *options)
        assert len(Path("wide.txt").read_text().split("\n")[0].split()) == 3 + 2 + 2 + 4 + 4
        for words in (["-m", "model"], ["--columns", "word,tag,phrase", "--levels", "phrase,tag"]):
            assert call("score", "wide.txt", *words).out == expected

    def test_two_files(self, call, truth, expected):
        Path("words.txt").write_text("the\ncat\nsees\n\ncat\n")
        call("predict", "words.txt", "-m", "model", "-o", "guess.txt")
        assert Path("guess.txt").read_text() == self.OTHER + "\n"
        for other in ("guess.txt", "plain.txt"):
            assert call("score", truth, other, "-m", "model").out == expected
        assert call("score", truth, "guess.txt", "--levels", "phrase=3,tag=2").out == expected

    def test_levels_given_by_number_are_enough(self, call, truth, expected):
        """What predict has appended is found by the number of columns, in their order."""
        assert call("score", truth, "plain.txt", "--levels", "phrase=3,tag=2").out == expected
        assert call("score", "plain.txt", "--levels", "phrase=3,tag=2").out == expected

    def test_levels_in_the_wrong_order_do_not_nest(self, call, truth, expected):
        said = call("score", "plain.txt", "--levels", "tag=2,phrase=3", code=2).err
        assert "level 'tag' ends at 0, but 'phrase' goes on there" in said

    def test_columns_given_by_number(self, call, truth, expected, monkeypatch):
        places = ["--levels", "phrase=3,tag=2", "--predicted", "phrase=5,tag=4"]
        assert call("score", "plain.txt", *places).out == expected
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(Path("plain.txt").read_bytes())))
        assert call("score", *places).out == expected
        assert "either -m or --levels" in call("score", "plain.txt", "-m", "model", *places, code=2).err
        assert call("score", "plain.txt", "--levels", "tag=2", "--predicted", "4").out.startswith("tag: accuracy 0.750")

    def test_json_alone(self, call, truth, expected):
        printed = call("score", "plain.txt", "-m", "model", "--json", "-", "--conlleval").out
        assert json.loads(printed)["levels"]["tag"]["accuracy"] == 0.75
        assert json.loads(printed)["conlleval"]["tokens"] == 4

    def test_json_lines_in_two_files(self, call):
        def write(name, **more):
            Path(name).write_text(json.dumps({"id": "a", "tokens": ["x", "y"], **more}) + "\n")

        write("truth.jsonl", labels={"phrase": [[0, 2, "NP"]], "tag": ["D", "N"]})
        write("labels.jsonl", labels={"phrase": [[0, 2, "NP"]], "tag": ["D", "V"]})
        write("prediction.jsonl", prediction={"phrase": [[0, 2, "NP"]], "tag": ["D", "V"]})
        for other in ("labels.jsonl", "prediction.jsonl"):
            assert "tag: accuracy 0.500 of 2 steps" in call("score", "truth.jsonl", other).out
        assert "precision: 100.00%" in call("score", "truth.jsonl", "labels.jsonl", "--conlleval", "phrase").out

    def test_tables_in_two_files(self, call):
        Path("truth.csv").write_text("sequence,x,tag\na,1,N\na,2,V\n")
        Path("guess.csv").write_text("sequence,x,tag_predicted,p\na,1,N,0.5\na,2,N,0.5\n")
        Path("both.csv").write_text("sequence,x,tag,crf\na,1,N,V\na,2,V,V\n")
        words = ["--levels", "tag"]
        assert "tag: accuracy 0.500" in call("score", "truth.csv", "guess.csv", *words).out
        assert "tag: accuracy 0.500" in call("score", "both.csv", *words, "--predicted", "tag=crf").out

    def test_a_table_teaches_other_features_than_words(self, call):
        Path("table.csv").write_text("sequence,x,tag\na,1,N\na,2,V\n")
        call("fit", "table.csv", "-m", "table", "--levels", "tag", "--progress", "none")
        Path("words.jsonl").write_text('{"tokens": ["a", "b"]}\n')
        said = call("predict", "words.jsonl", "-m", "table", code=2).err
        assert said == "hscrf: words.jsonl, line 1: there are the features token, but the model was trained on x\n"

    def test_crfsuite_items(self, call):
        Path("items.crfsuite").write_text("N\tw=a\nV\tw=b\n\nN\tw=a\n")
        call("fit", "items.crfsuite", "-m", "items", "--progress", "none")
        said = call("predict", "items.crfsuite", "-m", "items", "-t", "-o", "labels.txt").err
        assert call("score", "labels.txt", "-m", "items").out == said
        assert call("score", "labels.txt").out == said

    BROKEN = (
        (["truth.txt", "-m", "model"], "truth.txt, line 1: some level has no predicted labels"),
        (["truth.txt", "short.txt", "-m", "model"], "short.txt, line 1: sequence 1 has 1 step, but 3 from line 1"),
        (["truth.txt", "one.txt", "-m", "model"], "truth.txt has 2 sequences, but one.txt has 1"),
        (["truth.txt", "--predicted", "x=1"], "--predicted names x, but the levels are label"),
        (["truth.txt", "--predicted", "x"], "--predicted: 'label=x' is not LEVEL=NUMBER"),
        (["truth.jsonl", "--predicted", "1", "--levels", "tag"], "--predicted is for column files and tables"),
        (["both.csv", "--predicted", "tag=a,x", "--levels", "tag"], "--predicted: 'tag=a,x' is not LEVEL=VALUE"),
    )

    @pytest.mark.parametrize(("words", "message"), BROKEN, ids=range(len(BROKEN)))
    def test_what_does_not_fit_is_reported(self, call, truth, words, message):
        Path("short.txt").write_text("the D B-NP\n\ncat N B-NP\n")
        Path("one.txt").write_text("the D B-NP\ncat N I-NP\nsees V B-VP\n")
        Path("truth.jsonl").write_text('{"tokens": ["x"], "labels": {"tag": ["N"]}}\n')
        said = call("score", *words, code=2).err
        assert said.startswith(f"hscrf: {message}")
        assert said.count("\n") == 1


class TestOtherFormats:
    def test_json_lines(self, call_here, tmp_path, days):
        with open(tmp_path / "days.jsonl", "w") as file:
            for n, (x, y) in enumerate(days):
                labels = {"activity": y.segments("activity"), "trajectory": y.column("trajectory")}
                file.write(json.dumps({"id": f"day {n}", "tokens": x, "labels": labels, "mood": n}) + "\n")
        call_here("fit", "days.jsonl", "-m", "model", "--progress", "none")
        options = ["--marginals", "--samples", 2, "--k-best", 3]
        _, said = call_here("predict", "days.jsonl", "-m", "model", "-t", "-o", "out.jsonl", *options)
        assert call_here("score", "out.jsonl", "-m", "model").out == said
        first = json.loads((tmp_path / "out.jsonl").read_text().splitlines()[0])
        more = ["prediction", "marginals", "samples", "k_best", "log_probability"]
        assert list(first) == ["id", "tokens", "labels", "mood", *more]
        assert (len(first["samples"]), len(first["k_best"])) == (2, 3)
        assert first["prediction"]["activity"][0][0] == 0
        row = first["marginals"]["activity"]["probabilities"][0]
        assert sum(row) == pytest.approx(1, abs=1e-5)
        known = {"trajectory": [first["labels"]["trajectory"][0], *[None] * (len(first["tokens"]) - 1)]}
        record = json.dumps({"tokens": first["tokens"], "labels": known})  # nothing is said of activities
        found = json.loads(run("predict", "-m", "model", "--format", "jsonl", input=record, cwd=tmp_path)[0])
        assert found["prediction"]["trajectory"][0] == known["trajectory"][0]

    def test_tables(self, call_here, tmp_path, days):
        with open(tmp_path / "days.csv", "w") as file:
            file.write("time,sequence,x,y,speed,activity,trajectory\n")
            for n, (x, y) in enumerate(days):
                columns = zip(x, y.column("activity"), y.column("trajectory"), strict=True)
                for t, (seen, activity, walk) in enumerate(columns):
                    cell, speed = seen[0].removeprefix("pos="), seen[3].removeprefix("speed=")
                    file.write(f"{t},{n},{cell},{speed},{activity},{walk if t % 7 else '?'}\n")
        options = ["--levels", "activity,trajectory", "--durations", "activity=gamma", "--max-duration", "activity=90"]
        _, said = call_here("fit", "days.csv", "-m", "model", *options, "--progress", "none", "--max-iter", "20")
        assert "columns: x, y, speed (numbers, standardised)\n" in said
        _, said = call_here("predict", "days.csv", "-m", "model", "-t", "-o", "out.csv")
        assert call_here("score", "out.csv", "-m", "model").out == said
        lines = (tmp_path / "out.csv").read_text().splitlines()
        assert lines[0] == "time,sequence,x,y,speed,activity,trajectory,activity_predicted,trajectory_predicted"
        given = (tmp_path / "days.csv").read_text().splitlines()
        assert all(b.startswith(a) for a, b in zip(given, lines, strict=True))


ENDINGS = {"columns": ".txt", "jsonl": ".jsonl", "table": ".csv", "crfsuite": ".crfsuite"}


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """A folder with the same sequences and a model in each format."""
    folder = tmp_path_factory.mktemp("formats")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        rng = random.Random(5)
        rows = [[(word, "I-" + phrase[2:]) for word, _, phrase in sentence(rng)] for _ in range(9)]
        Path("d.txt").write_text(as_columns(rows))
        records = [{"tokens": [w for w, _ in r], "labels": {"label": [p for _, p in r]}} for r in rows]
        Path("d.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))
        lines = [f"{n},{w},{p}\n" for n, r in enumerate(rows) for w, p in r]
        Path("d.csv").write_text("sequence,word,label\n" + "".join(lines))
        Path("d.crfsuite").write_text("\n".join("".join(f"{p}\tw={w}\n" for w, p in r) for r in rows))
        for ending in ENDINGS.values():
            words = ["fit", f"d{ending}", "-m", f"m{ending}", "--levels", "label", "--progress", "none"]
            assert cli.main([*words, "--max-iter", "5"]) == 0
    return folder


class TestOutput:
    """Written whole or not at all, in any format."""

    def test_a_command_that_fails_leaves_the_former_file(self, call):
        Path("kept.txt").write_text("former\n")
        good = "cat N B-NP\n" * (prediction.BATCH + 1) + "\n"  # a batch that is written before the wrong one
        Path("late.txt").write_text(good + "sees V B-VP\ncat N I-VP\n")
        before = set(Path().iterdir())
        call("predict", "late.txt", "-m", "model", "-o", "kept.txt", code=2)
        call("predict", "late.txt", "-m", "model", "-o", "new.txt", code=2)
        assert Path("kept.txt").read_text() == "former\n"
        assert set(Path().iterdir()) == before

    def test_a_file_can_be_labelled_in_its_place(self, call):
        Path("own.txt").write_text("the\ncat\n")
        call("predict", "own.txt", "-m", "model", "-o", "own.txt")
        assert Path("own.txt").read_text() == "the D B-NP\ncat N I-NP\n\n"

    def test_what_is_no_file_is_written_directly(self, call):
        call("predict", "test.txt", "-m", "model", "-o", os.devnull)
        assert not Path(os.devnull).is_file()

    def test_a_folder_that_is_not_there_is_reported(self, call):
        said = call("predict", "test.txt", "-m", "model", "-o", "no/such.txt", code=2).err
        assert said == "hscrf: no/such.txt: No such file or directory\n"

    FORMATS = ("columns", "jsonl", "table", "crfsuite")

    @pytest.fixture
    def examples(self, written, monkeypatch, capsys):
        monkeypatch.chdir(written)
        return capsys

    @pytest.mark.parametrize("to", FORMATS)
    @pytest.mark.parametrize("given", FORMATS)
    def test_every_format_as_every_other(self, examples, given, to):
        source, target = f"d{ENDINGS[given]}", f"{given}{ENDINGS[to]}"
        model = f"m{ENDINGS[given]}"
        assert cli.main(["predict", source, "-m", model, "-t", "--to", to, "-o", target]) == 0
        said = examples.readouterr().err
        if to == "crfsuite":  # the prediction is the label
            assert Path(target).read_text().count("\t") >= Path("d.crfsuite").read_text().count("\t")
            return
        assert cli.main(["score", target, "-m", model]) == 0, examples.readouterr().err
        assert said.endswith(examples.readouterr().out)

    def test_numbers_come_back_as_numbers(self, tmp_path, monkeypatch, capsys):
        monkeypatch.chdir(tmp_path)
        Path("d.csv").write_text("sequence,x,y,tag\n" + "a,0.5,2,N\na,3,1,V\n" * 5)
        cli.main(["fit", "d.csv", "-m", "m", "--levels", "tag", "--progress", "none"])
        cli.main(["predict", "d.csv", "-m", "m", "-t", "--to", "columns", "-o", "d.txt", "--given", "none"])
        assert Path("d.txt").read_text().startswith("0.5\t2\tN\tN\n3\t1\tV\tV\n")
        Path("bare.txt").write_text("0.5 2\n3 1\n")
        capsys.readouterr()
        assert cli.main(["predict", "bare.txt", "-m", "m", "--format", "columns"]) == 0
        assert capsys.readouterr().out.split() == ["0.5", "2", "N", "3", "1", "V"]

    def test_segments_become_bio(self, tmp_path, monkeypatch, capsys, days):
        monkeypatch.chdir(tmp_path)
        with open("days.jsonl", "w") as file:
            for x, y in days:
                labels = {"activity": y.segments("activity"), "trajectory": y.column("trajectory")}
                file.write(json.dumps({"tokens": x, "labels": labels}) + "\n")
        assert cli.main(["fit", "days.jsonl", "-m", "m", "--progress", "none", "--max-iter", "5"]) == 0
        for name, to in (("out.txt", "columns"), ("out.csv", "table")):
            assert cli.main(["predict", "days.jsonl", "-m", "m", "-t", "--to", to, "-o", name]) == 0
            said = capsys.readouterr().err
            assert cli.main(["score", name, "-m", "m", "--format", to]) == 0, capsys.readouterr().err
            assert said.endswith(capsys.readouterr().out)
        assert "B-" in Path("out.csv").read_text().splitlines()[1]

    def test_one_label_for_several_levels_is_refused(self, call):
        said = call("predict", "test.txt", "-m", "model", "--to", "crfsuite", code=2).err
        assert "--to crfsuite has one label, but the levels are phrase, tag" in said


class TestMemory:
    """A model remembers how its file was read."""

    TEXT = "# one\nthe cat\tD\tB-NP\n# within\ncat\tN\tI-NP\n\n# two\n# three\nsees\tV\tB-VP\n# behind\n\n# end\n"

    @pytest.fixture
    def here(self, tmp_path, monkeypatch, capsys):
        """Run a command in an empty folder."""

        def called(*words, code=0):
            assert cli.main([*words]) == code, capsys.readouterr().err
            return capsys.readouterr()

        monkeypatch.chdir(tmp_path)
        return called

    def fit(self, here, name, *words):
        return here("fit", name, "-m", "m", "--progress", "none", "--max-iter", "5", *words)

    def test_separator_and_comments(self, here):
        Path("train.txt").write_text(self.TEXT)
        self.fit(here, "train.txt", "--levels", "phrase=3,tag=2", "--separator", "tab", "--comment", "#")
        Path("test.txt").write_text(self.TEXT)
        found = here("predict", "test.txt", "-m", "m", "-t", "-o", "out.txt")
        lines = Path("out.txt").read_text().splitlines()
        assert [line.split("\t")[:3] for line in lines] == [line.split("\t") for line in self.TEXT.splitlines()]
        assert here("score", "out.txt", "-m", "m").out == found.err
        here("plot", "test.txt", "-m", "m", "-o", "out.png", "--sequence", "2")

    def test_the_output_has_the_separator_of_the_input(self, here):
        for sign in "\t ":
            Path("data.txt").write_text(self.TEXT.replace("the cat", "the").replace("\t", sign).replace("# ", "#"))
            self.fit(here, "data.txt", "--levels", "phrase=3,tag=2", "--comment", "#")
            row = here("predict", "data.txt", "-m", "m", "-t").out.splitlines()[1]
            assert len(row.split(sign)) == 5

    def test_the_format_of_files_that_end_alike(self, here):
        Path("a.data").write_text('{"tokens": ["the", "cat"], "labels": {"tag": ["D", "N"]}}\n')
        self.fit(here, "a.data", "--format", "jsonl")
        assert json.loads(here("predict", "a.data", "-m", "m", "-t").out)["prediction"] == {"tag": ["D", "N"]}
        Path("a.csv").write_text("the,D\ncat,N\n\ncat,N\n")
        self.fit(here, "a.csv", "--format", "columns", "--separator", "comma")
        assert here("predict", "a.csv", "-m", "m", "-t").out == "the,D,D\ncat,N,N\n\ncat,N,N\n\n"

    def test_tabs_with_and_without_a_header(self, here):
        Path("bare.tsv").write_text("the cat\tD\nsees\tV\n\ncat\tN\n")
        self.fit(here, "bare.tsv")
        assert here("predict", "bare.tsv", "-m", "m", "-t").out.startswith("the cat\tD\t")
        Path("table.tsv").write_text("sequence\tx\ttag\na\t1\tN\na\t2\tV\n")
        self.fit(here, "table.tsv", "--levels", "tag")
        assert here("predict", "table.tsv", "-m", "m", "-t").out.startswith("sequence\tx\ttag\ttag_predicted\na\t1")
        here("predict", "table.tsv", "-m", "m", "-t", "-o", "out.csv")
        assert Path("out.csv").read_text().startswith("sequence,x,tag,tag_predicted\n")

    RECORD = '{"tokens": ["a", "c d"], "labels": {"t": ["N", "V"]}}\n{"tokens": ["a"], "labels": {"t": ["N"]}}\n'
    HINTS = (
        ("train.txt", "the cat\tD\nsees\tV\n", [], "--separator tab"),
        ("train.txt", "# a b c\nthe D\nsees V\n", [], "--comment '#'"),
        ("train.txt", "# a\nthe cat\tD\nsees\tV\n", [], "--separator tab --comment '#'"),
        ("train.txt", '{"tokens": ["a b", "c"]}\n{}\n', [], ""),
        ("train.txt", RECORD, ["--levels", "t"], "--format jsonl"),
        ("train.csv", "the D\n\nsees V\n", ["--levels", "tag"], "--format columns"),
        ("train.csv", "sequence;x;tag\na;1;N\n", ["--levels", "tag"], "--separator ';'"),
    )

    @pytest.mark.parametrize(("name", "content", "words", "hint"), HINTS, ids=range(len(HINTS)))
    def test_a_mismatch_says_which_options_would_read_the_file(self, here, name, content, words, hint):
        Path(name).write_text(content)
        said = here("fit", name, "-m", "m", "--progress", "none", *words, code=2).err
        assert said.count("\n") == 1
        if hint:
            assert said.endswith(f"; {hint} would read the file\n")
            self.fit(here, name, *words, *(word.strip("'") for word in hint.split()))
        else:
            assert "would read" not in said

    def test_a_model_reports_its_cost_too(self, here):
        Path("train.txt").write_text("the D\ncat N\n")
        self.fit(here, "train.txt")
        Path("test.txt").write_text("# one two three\nthe D\ncat N\n")
        said = here("predict", "test.txt", "-m", "m", code=2).err
        assert "line 1: there are 4 columns, expected 2 (column 1, label); --comment '#' would read the file\n" in said
        here("predict", "test.txt", "-m", "m", "--comment", "#")

    def test_names_of_columns(self, here):
        Path("days.csv").write_text("sequence,speed,height,tag\n" + "a,1,3,N\na,2,5,V\n" * 9)
        self.fit(here, "days.csv", "--levels", "tag")
        printed = here("show", "m").out
        assert re.search(r"N  speed\n", printed)
        assert "x0" not in printed
        assert here("predict", "days.csv", "-m", "m", "-t").err


class TestWarnings:
    """Ambiguous lines are reported with file and line."""

    STRAY = "the D B-NP\ncat N I-NP\n\nsees V B-VP\nis V I-NP\ncat N I-NP\n\nis V I-VP\n"
    LINE = "hscrf: stray.txt, line 5: level 'phrase' has I-NP after B-VP, which begins a segment as B-NP would"

    def test_labels_that_continue_nothing(self, call):
        Path("stray.txt").write_text(self.STRAY)
        fit = ["-m", "stray", "--levels", "phrase=3,tag=2", "--progress", "none", "--max-iter", 2]
        assert f"{self.LINE} (2 such labels)\n" in call("fit", "stray.txt", *fit).err
        said = call("predict", "stray.txt", "-m", "stray", "-t", "-o", "out.txt").err
        assert f"{self.LINE} (2 such labels)\n" in said
        said = call("score", "out.txt", "-m", "stray").err
        assert said == f"{self.LINE} (2 such labels)\n".replace("stray.txt", "out.txt")
        Path("stray.txt").write_text(self.STRAY.replace("I-VP", "B-VP"))
        assert f"{self.LINE}\n" in call("fit", "stray.txt", *fit).err

    def test_prefixes_that_are_not_read(self, call):
        Path("stray.txt").write_text(self.STRAY)
        fit = ["-m", "m", "--levels", "phrase=3,tag=2", "--progress", "none", "--max-iter", 2]
        line = "hscrf: level 'phrase' has labels such as B-NP, which --scheme plain reads as names of states"
        assert line in call("fit", "stray.txt", *fit, "--scheme", "plain").err
        assert "names of states" not in call("fit", "stray.txt", *fit).err

    @pytest.mark.parametrize(
        ("tags", "within", "stray"),
        [
            ("B-a I-a I-a", "I", []),
            ("B-a ? I-a", "I", []),
            ("O I-a B-b", "I", [1]),
            ("I-a", "I", [0]),
            ("B-a E-a E-a S-b I-b", "IEL", [2, 4]),
        ],
    )
    def test_which_labels_they_are(self, tags, within, stray):
        column = tags.split()
        pairs = enumerate(zip([None, *column], column, strict=False))
        assert [t for t, (before, tag) in pairs if is_stray(before, tag, within, t)] == stray

    def test_missing_labels_leave_children_open_unless_the_option_decides(self, call):
        fit = ["fit", "holes.txt", "-m", "h", "--levels", "phrase=3,tag=2", "--progress", "none", "--max-iter", 2]
        holes = "the D B-NP\ncat N I-NP\n\nsees V B-VP\n\nsees ? B-VP\n\n"
        Path("holes.txt").write_text(holes * 3)
        line = "too few labels are known for the children of phrase NP, VP: any child is allowed"
        assert f"{line} (--children seen or all changes that)\n" in call(*fit).err
        assert hscrf.load("h").topology_.children[1].all()
        assert "missing" not in call(*fit, "--children", "seen").err
        assert hscrf.load("h").topology_.children[1].tolist() == [[True, True, False], [False, False, True]]
        assert "missing" not in call(*fit, "--children", "all").err
        assert hscrf.load("h").topology_.children[1].all()
        Path("holes.txt").write_text(holes * 20)
        assert "missing" not in call(*fit).err
        assert hscrf.load("h").topology_.children[1].tolist() == [[True, True, False], [False, False, True]]

    def test_fillers_remember_unless_the_option_decides(self, call):
        fit = ["fit", "fillers.txt", "-m", "h", "--levels", "part=2", "--progress", "none", "--max-iter", 2]
        Path("fillers.txt").write_text("X B-X\n, O\nz B-X\n\nY B-Y\n, O\nz B-Y\n\n" * 3)
        call(*fit)
        assert hscrf.load("h").topology_.remembers
        call(*fit, "--fillers", "none")
        assert not hscrf.load("h").topology_.remembers


class TestErrors:
    """One line with file and line number, exit code 2."""

    FIT = (
        (b"the D B-NP\ncat N\n", "data.txt, line 2: there are 2 columns, expected 3"),
        (b"the D B-NP\ncat N NP\n", "data.txt, line 2: level 'phrase' has the label 'NP', expected B-x, I-x, O or ?"),
        (b"the D B-NP\n\xfe\xff N O\n", "data.txt, line 2: byte 1 is 0xfe, expected UTF-8"),
        (b"", "data.txt, line 1: the file is empty, expected at least one sequence"),
    )

    @pytest.mark.parametrize(("content", "message"), FIT, ids=["columns", "label", "utf-8", "empty"])
    def test_broken_columns(self, tmp_path, monkeypatch, capsys, content, message):
        monkeypatch.chdir(tmp_path)
        Path("data.txt").write_bytes(content)
        assert cli.main(["fit", "data.txt", "-m", "m", "--levels", "phrase=3,tag=2"]) == 2
        assert capsys.readouterr().err == f"hscrf: {message}\n"
        assert not Path("m").exists()

    OTHERS = (
        (
            "data.jsonl",
            '{"tokens": ["a"], "labels": {"t": ["N"]}}\n{"tokens": ["a',
            "data.jsonl, line 2: not valid JSON",
        ),
        ("data.csv", "sequence,x,tag\na,1,N\na,2\n", "data.csv, line 3: there are 2 columns, expected 3"),
        ("data.csv", "sequence,x,tga\na,1,N\n", "data.csv, line 1: there is no column 'tag', only sequence, x, tga"),
        ("data.crfsuite", "N\ta\nN\ta:x\n", "data.crfsuite, line 2: the attribute 'a:x' is not name or name:weight"),
        (
            "data.csv",
            "day,x,tag\na,1,N\n",
            "data.csv, line 1: there is no column 'sequence', only day, x, tag (blank lines",
        ),
        (
            "data.csv",
            "sequence,x,tag\n" + "a,1,N\n" * 19 + "a,warm,N\n",
            "data.csv, line 21: column 'x' is 'warm', expected a finite number",
        ),
        (
            "data.jsonl",
            '{"tokens": ["a"], "labels": {"t": ["N"]}}\n{"tokens": ["a"], "labels": {"u": ["N"]}}\n',
            "data.jsonl, line 2: level 't' has no labels, there are only u",
        ),
        ("data.txt", "N\nV\n", "data.txt, line 1: there is no column but the labels label, expected a feature column"),
    )

    @pytest.mark.parametrize(
        ("name", "content", "message"),
        OTHERS,
        ids=["json", "csv", "header", "items", "sequence", "number", "level", "no-features"],
    )
    def test_broken_others(self, tmp_path, monkeypatch, capsys, name, content, message):
        monkeypatch.chdir(tmp_path)
        Path(name).write_text(content)
        levels = {"data.csv": ["--levels", "tag"], "data.jsonl": ["--levels", "t"]}.get(name, [])
        assert cli.main(["fit", name, "-m", "m", *levels]) == 2
        said = capsys.readouterr().err
        assert said.startswith(f"hscrf: {message}")
        assert said.count("\n") == 1

    @pytest.mark.parametrize(
        ("words", "message"),
        [
            (["predict", "--samples", "-1"], "'-1' is not a whole number of at least 1"),
            (["predict", "--k-best", "x"], "'x' is not a whole number of at least 1"),
            (["score", "--tolerance", "-1"], "'-1' is not a whole number of at least 0"),
            (["fit", "--max-duration", "phrase=x"], "'phrase=x' is not LEVEL=NUMBER"),
            (["fit", "--max-duration", "tag=3,tag=4"], "'tag=3,tag=4' names a level twice"),
            (["fit", "--levels", "tag=2,tag=3"], "--levels: 'tag=2,tag=3' names a level twice"),
        ],
    )
    def test_values_of_options(self, folder, words, message, monkeypatch, capsys):
        monkeypatch.chdir(folder)
        try:
            code = cli.main([*words, "train.txt", "-m", "none"])
        except SystemExit as end:
            code = end.code
        assert code == 2
        assert message in capsys.readouterr().err

    def test_the_real_command(self, folder):
        """The same in a separate process, and for errors after reading."""
        (folder / "bad.txt").write_bytes(b"the D B-NP\r\ncat X I-NP\r\n")
        _, said = run("predict", "bad.txt", "-m", "model", "--strict", code=2, cwd=folder)
        assert said.startswith("hscrf: bad.txt, line 2: ")
        assert "'X'" in said
        assert said.count("\n") == 1

    def test_contradictions(self, folder, monkeypatch, capsys):
        monkeypatch.chdir(folder)
        Path("odd.txt").write_text("cat N B-NP\n\nsees V B-VP\ncat N I-VP\n")
        assert cli.main(["predict", "odd.txt", "-m", "model", "-o", "x"]) == 2
        expected = "odd.txt, line 4: tag 'N' at 1 is not a child of phrase 'VP' (steps are counted from 0 at line 3)"
        assert capsys.readouterr().err == f"hscrf: {expected}\n"

    COMMANDS = (
        (["fit", "none.txt", "-m", "m"], "none.txt: No such file or directory"),
        (["predict", "test.txt", "-m", "test.txt"], "test.txt is not an hscrf file"),
        (["predict", "test.txt", "-m", "none"], "none: No such file or directory"),
        (["predict", "test.txt", "-m", "model", "--given", "x"], "--given has 'x', but the levels are phrase, tag"),
        (["fit", "train.csv", "-m", "m"], "say which columns of the table are labels"),
        (["fit", "train.txt", "-m", "m", "--levels", "a=1,b"], "--levels: 'a=1,b' is not LEVEL=NUMBER"),
        (["fit", "train.txt", "-m", "m", "--scheme", "label=bio,x"], "--scheme: 'label=bio,x' is not LEVEL=VALUE"),
        (["fit", "train.txt", "-m", "m", "--scheme", "x=bio"], "--scheme names the level 'x', which --levels does not"),
        (["fit", "train.txt", "-m", "m", "--scheme", "iob"], "--scheme is 'iob', expected plain, bio or bioes"),
        (["fit", "train.txt", "-m", "m", "--durations", "label=cubic"], "Duration kind is 'cubic'"),
        (["fit", "train.txt", "-m", "m", "--max-duration", "label=1"], "train.txt, line "),
        (["fit", "train.txt", "-m", "no/such/folder", "--max-iter", "1"], "no/such/folder"),
        (["plot", "test.txt", "-o", "x.png"], "a data file needs the model that reads it: -m MODEL"),
        (["plot", "model", "-o", "x.png", "--what", "segments"], "--what segments needs a data file"),
        (["plot", "model", "-o", "x.png", "--what", "durations"], "the model has no durations"),
    )

    @pytest.mark.parametrize(("arguments", "message"), COMMANDS, ids=lambda value: None)
    def test_wrong_commands(self, folder, monkeypatch, capsys, arguments, message):
        monkeypatch.chdir(folder)
        assert cli.main(arguments) == 2
        said = capsys.readouterr().err.splitlines()
        assert said[-1].startswith("hscrf: ")
        assert message in said[-1]

    def test_usage(self, capsys):
        with pytest.raises(SystemExit) as caught:
            cli.main(["fit", "data.txt"])
        assert caught.value.code == 2
        said = capsys.readouterr().err
        assert said == "hscrf fit: the following arguments are required: -m/--model (see hscrf fit --help)\n"

    @pytest.mark.parametrize("command", ["", "fit", "predict", "score", "show", "plot", "demo"])
    def test_help_teaches(self, command, capsys):
        with pytest.raises(SystemExit) as caught:
            cli.main([*filter(None, [command]), "--help"])
        assert caught.value.code == 0
        assert "\n  hscrf " in capsys.readouterr().out


@pytest.mark.usefixtures("fast_clock")
class TestProgress:
    """A live line on terminals for what takes longer than a second."""

    class Terminal(io.StringIO):
        def isatty(self):
            return True

    @staticmethod
    def slow(n, seconds):
        for k in range(n):
            time.sleep(seconds)
            yield k

    def test_what_takes_long_is_counted(self):
        terminal = self.Terminal()
        assert list(counted(self.slow(3, 0.125), "reading", terminal)) == [0, 1, 2]
        said = terminal.getvalue()
        assert "\rreading: 2 sequences, " in said
        assert re.search(r"\rreading: 3 sequences, \d+ per second, \d s \n$", said)

    def test_one_long_step_is_alive_too(self):
        terminal = self.Terminal()
        with Waiting("drawing", terminal):
            time.sleep(0.375)
        assert len(re.findall(r"\rdrawing: \d+ s ", terminal.getvalue())) >= 2

    def test_what_is_short_or_no_terminal_is_silent(self):
        terminal, file = self.Terminal(), io.StringIO()
        list(counted(range(5), "reading", terminal))
        list(counted(self.slow(3, 0.125), "reading", file))
        assert terminal.getvalue() == file.getvalue() == ""


class TestProcesses:
    def test_closed_pipe_is_quiet(self, folder):
        (folder / "long.txt").write_text((folder / "test.txt").read_text() * 40)
        words = [*COMMAND, "predict", "long.txt", "-m", "model"]
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        with subprocess.Popen(words, env=ENVIRONMENT, cwd=folder, **pipes) as process:
            assert len(process.stdout.readline().split()) == 5  # word, two labels, two predictions
            process.stdout.close()
            said = process.stderr.read()
        assert b"Traceback" not in said
        assert b"Exception" not in said
        assert process.returncode == 141

    @pytest.mark.skipif(os.name == "nt", reason="signals are sent differently there")
    def test_ctrl_c_leaves_a_usable_model(self, folder, tmp_path):
        rng = random.Random(0)
        rows = (
            [[rng.choice("abcdef"), rng.choice("NVD"), "B-" + rng.choice("xy")] for _ in range(8)] for _ in range(99)
        )
        (tmp_path / "noise.txt").write_text(as_columns(rows))
        options = [
            "--levels",
            "phrase=3,tag=2",
            "--solver",
            "perceptron",
            "--max-iter",
            "1000000",
            "--progress",
            "lines",
        ]
        words = [*COMMAND, "fit", "noise.txt", "-m", "model", *options]
        options = {"stderr": subprocess.PIPE, "text": True}
        options["preexec_fn"] = lambda: signal.signal(signal.SIGINT, signal.SIG_DFL)  # even in a background job
        with subprocess.Popen(words, env=ENVIRONMENT, cwd=tmp_path, **options) as process:
            for line in process.stderr:
                if line.startswith("iteration 2 "):
                    process.send_signal(signal.SIGINT)
                    break
            rest = process.stderr.read()
        assert process.returncode == 130
        assert "Traceback" not in rest
        assert rest.splitlines()[-1].startswith("hscrf: interrupted: model holds the best of ")
        found, _ = run("predict", "-m", "model", input="a\nb\n", cwd=tmp_path)
        assert len(found.splitlines()) == 3

    @pytest.mark.parametrize("form", ["png", "svg", "pdf"])
    def test_pictures_have_the_format_of_their_names(self, call, form):
        pytest.importorskip("matplotlib")
        call("plot", "model", "-o", f"picture.{form}")
        begin = {"png": b"\x89PNG\r\n", "svg": b"<?xml", "pdf": b"%PDF-"}[form]
        assert Path(f"picture.{form}").read_bytes().startswith(begin)

    def test_pictures_of_a_file_that_the_command_made(self, call):
        pytest.importorskip("matplotlib")
        call("plot", "test.txt", "-m", "model", "-o", "picture.svg", "--sequence", 2)
        steps = Path("test.txt").read_text().split("\n\n")[1].count("\n") + 1
        assert {"phrase", "tag", "predicted", "time step", "NP"} <= texts_of("picture.svg")
        assert str(steps + 1) not in texts_of("picture.svg")  # the axis ends with the sequence that was asked for
        said = call("plot", "test.txt", "-m", "model", "-o", "no.svg", "--sequence", 99, code=2).err
        assert "--sequence is 99, but test.txt has 20 sequences" in said


def test_demo(tmp_path, capsys):
    pytest.importorskip("matplotlib")
    assert cli.main(["demo", "--quick", "-o", str(tmp_path / "pictures")]) == 0
    printed = capsys.readouterr().out
    for name in ("HSCRF", "DCRF", "flat CRF", "A fifth of the labels improves the rest from"):
        assert f"\n{name} " in printed
    drawn = {"day", "day-with-labels", "topology", "training", "confusion", "known-labels"}
    assert {path.name for path in (tmp_path / "pictures").iterdir()} == {f"{name}.png" for name in drawn}


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A folder with example files."""
    place = tmp_path_factory.mktemp("examples")
    printed = io.StringIO()
    with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stdout(printed):
        patch.chdir(place)
        assert cli.main(["demo", "--write", "example"]) == 0
    assert "example/train.csv, test.csv: a table" in printed.getvalue().replace(os.sep, "/")
    return place


class TestExamples:
    """Files that hscrf demo --write makes."""

    LEVELS = (("txt", "chunk=3,pos=2"), ("jsonl", "chunk,pos"), ("crfsuite", "pos"), ("csv", "activity,trajectory"))

    @pytest.mark.parametrize(("ending", "levels"), LEVELS)
    def test_every_format_is_learned_from(self, place, ending, levels, monkeypatch, capsys):
        monkeypatch.chdir(place)
        words = ["--levels", levels, "--progress", "none", "--max-iter", "60"]
        assert cli.main(["fit", f"example/train.{ending}", "-m", f"m.{ending}", *words]) == 0
        out = f"out.{ending}" if ending != "crfsuite" else "out.txt"
        assert cli.main(["predict", f"example/test.{ending}", "-m", f"m.{ending}", "-t", "-o", out]) == 0
        assert cli.main(["score", out, "-m", f"m.{ending}", "--json", "scores.json"]) == 0
        assert json.loads(Path("scores.json").read_text())["joint_accuracy"] > 0.6

    @pytest.mark.skipif(os.name != "posix", reason="needs a shell")
    def test_the_shell_block_of_the_readme_runs_as_it_stands(self, tmp_path):
        text = (SOURCE.parent / "README.md").read_text(encoding="utf-8")
        (block,) = [body for body in re.findall(r"^```sh\n(.*?)^```", text, re.M | re.S) if "hscrf fit" in body]
        (tmp_path / "hscrf").write_text(f'#!/bin/sh\nexec "{sys.executable}" -m hscrf.cli "$@"\n')
        (tmp_path / "hscrf").chmod(0o755)
        path = f"{tmp_path}{os.pathsep}{os.environ['PATH']}"
        options = {"env": {**ENVIRONMENT, "PATH": path}, "cwd": tmp_path, "capture_output": True, "text": True}
        done = subprocess.run(["sh", "-e", "-c", block], **options)
        assert done.returncode == 0, done.stderr
        assert "precision: " in done.stdout


def test_the_help_page_loads_nothing_heavy():
    """Not even numpy: every command imports what it needs when it runs."""
    code = "import sys; from hscrf.cli.main import build_parser; build_parser(); print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], env=ENVIRONMENT, capture_output=True, text=True, check=True)
    loaded = {name.partition(".")[0] for name in done.stdout.split()}
    assert "argparse" in loaded
    assert not loaded & {"numpy", "scipy", "sklearn", "pandas", "matplotlib"}


def test_published_baseline_of_conll2000(data_folder, tmp_path, capsys):
    """``score`` on the shared task's own baseline prints conlleval's published numbers."""
    counts = defaultdict(Counter)
    for line in (data_folder / "conll2000" / "train.txt").read_text(encoding="ascii").splitlines():
        if line.strip():
            _, pos, tag = line.split()
            counts[pos][tag] += 1
    best = {pos: tags.most_common(1)[0][0] for pos, tags in counts.items()}
    with open(tmp_path / "baseline.txt", "w") as file:
        for line in (data_folder / "conll2000" / "test.txt").read_text(encoding="ascii").splitlines():
            file.write(f"{line.strip()} {best[line.split()[1]]}\n" if line.strip() else "\n")
    assert cli.main(["score", str(tmp_path / "baseline.txt"), "--conlleval", "--json", str(tmp_path / "json")]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("processed 47377 tokens with 23852 phrases; found: ")
    assert lines[1] == "accuracy:  77.29%; precision:  72.58%; recall:  82.14%; FB1:  77.07"
    found = json.loads((tmp_path / "json").read_text())["levels"]["label"]["segments"]
    assert [round(found[name], 3) for name in ("precision", "recall", "f1")] == [0.726, 0.821, 0.771]


class TestLastingBottom:
    """A lowest level with durations is compared by segments, also where its labels are a plain column."""

    ROWS = (
        ("s", 0.0, "a", "x"),
        ("s", 0.1, "a", "x"),
        ("s", 2.0, "a", "y"),
        ("s", 2.1, "b", "y"),
        ("s", 0.2, "b", "x"),
    )

    @pytest.fixture
    def days(self, call):
        lines = [f"{name}{k},{v},{act},{step}" for k in range(4) for name, v, act, step in self.ROWS]
        Path("days.csv").write_text("\n".join(["sequence,v,act,step", *lines]) + "\n")
        options = ["--levels", "act,step", "--progress", "none", "--max-iter", 3]
        call("fit", "days.csv", "-m", "long", "--durations", "step=gamma", *options)
        call("fit", "days.csv", "-m", "short", *options)
        return call

    def test_score_and_report_count_segments(self, days):
        for model, support in (("long", 16), ("short", 20)):
            report = days("predict", "days.csv", "-m", model, "-t", "-o", "out.csv").err
            days("score", "out.csv", "-m", model, "--json", "scores.json")
            assert json.loads(Path("scores.json").read_text())["levels"]["step"]["segments"]["support"] == support
            assert re.search(rf"micro avg .* {support}\n", report)

    def test_plain_columns_of_json_become_bio(self, days):
        labels = {"act": ["a", "a", "a", "b", "b"], "step": ["x", "x", "y", "y", "x"]}
        tokens = [[v] for _, v, _, _ in self.ROWS]
        Path("days.jsonl").write_text(json.dumps({"tokens": tokens, "labels": labels}) + "\n")
        days("predict", "days.jsonl", "-m", "long", "-t", "--to", "columns", "-o", "out.txt")
        assert [line.split("\t")[2] for line in Path("out.txt").read_text().split("\n")[:5]] == [
            "B-x",
            "I-x",
            "B-y",
            "B-y",
            "B-x",
        ]


class TestSegmentsAsColumns:
    """What was segments in JSON Lines and is BIO in columns, tables or JSON can be given back as evidence."""

    @pytest.fixture
    def trained(self, call):
        labels = {"chunk": [[0, 2, "NP"], [2, 3, "VP"], [3, 4, "NP"], [4, 5, "NP"]], "pos": ["D", "N", "V", "D", "N"]}
        line = json.dumps({"tokens": ["the", "cat", "sees", "a", "dog"], "labels": labels})
        Path("train.jsonl").write_text(f"{line}\n" * 4)
        call("fit", "train.jsonl", "-m", "m", "--progress", "none", "--max-iter", 5)
        return call

    @pytest.mark.parametrize(("form", "ending"), [("columns", "txt"), ("table", "csv")])
    def test_bio_is_evidence(self, trained, form, ending):
        trained("predict", "train.jsonl", "-m", "m", "-t", "--to", form, "-o", f"out.{ending}")
        sign = "\t" if ending == "txt" else ","
        lines = [line.split(sign)[:-2] for line in Path(f"out.{ending}").read_text().splitlines()]
        at = 0 if ending == "txt" else 1
        assert [line[at + 1] for line in lines[at : at + 5]] == ["B-NP", "I-NP", "B-VP", "B-NP", "B-NP"]
        Path(f"whole.{ending}").write_text("\n".join(map(sign.join, lines)) + "\n")
        assert "all levels right: 1.000" in trained("predict", f"whole.{ending}", "-m", "m", "-t", "-o", "-").err
        lines[at][at + 2] = "?"
        Path(f"in.{ending}").write_text("\n".join(map(sign.join, lines)) + "\n")
        said = trained("predict", f"in.{ending}", "-m", "m", "-o", f"again.{ending}").err
        assert "nothing was predicted" not in said
        again = [line.split(sign) for line in Path(f"again.{ending}").read_text().splitlines()]
        assert [line[-2] for line in again[at : at + 5]] == ["B-NP", "I-NP", "B-VP", "B-NP", "B-NP"]
        trained("plot", f"in.{ending}", "-m", "m", "-o", "a.png")

    def test_a_file_without_labels_gets_borders(self, trained):
        Path("bare.txt").write_text("the\ncat\nsees\na\ndog\n")
        trained("predict", "bare.txt", "-m", "m", "-o", "out.txt")
        assert all(line.split("\t")[1][:2] in ("B-", "I-") for line in Path("out.txt").read_text().split("\n")[:5])

    def test_bio_in_json_is_evidence(self, trained):
        labels = {"chunk": ["B-NP", "I-NP", "?", "?", "B-NP"]}
        Path("in.jsonl").write_text(json.dumps({"tokens": ["the", "cat", "sees", "a", "dog"], "labels": labels}) + "\n")
        trained("predict", "in.jsonl", "-m", "m", "--given", "chunk", "-o", "out.jsonl")
        found = json.loads(Path("out.jsonl").read_text())["prediction"]["chunk"]
        assert found[0] == [0, 2, "NP"]
        assert found[-1] == [4, 5, "NP"]

    def test_labels_that_are_all_impossible_are_reported(self, trained):
        Path("in.txt").write_text("the\tXX\tD\ncat\tXX\tN\n")
        said = trained("plot", "in.txt", "-m", "m", "-o", "a.png", "--what", "evidence", code=2).err
        assert "the labels of all sequences of in.txt are impossible for the model" in said


class TestHints:
    def test_a_separator_that_is_not_there_is_no_hint(self, call):
        Path("train.txt").write_text("the\tD\ncat\tN\n\n" * 3)
        call("fit", "train.txt", "-m", "m", "--levels", "tag", "--progress", "none", "--max-iter", 2)
        Path("ragged.txt").write_text("the\tD\ncat\n")
        said = call("predict", "ragged.txt", "-m", "m", code=2).err
        assert said == "hscrf: ragged.txt, line 2: there is 1 column, expected 2\n"

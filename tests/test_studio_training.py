"""Training in the background: partial labels, take-over between sequences, death of the process."""

import os
import signal
import sys
import threading
import time

import numpy as np
import pytest
from sklearn.base import clone

from hscrf import HHMM, HSCRF, LBFGS, ChainCRF, Init, Labels, Token, Topology, Trans, load
from hscrf.cli.recipe import load_model
from hscrf.io import Document
from hscrf.studio import serve
from hscrf.studio.model import training_process
from hscrf.studio.model.training_process import Job, learn
from hscrf.studio.model.training_run import TrainingRun
from hscrf.studio.work.worker import Worker
from studio_fixtures import TOPOLOGY, Person, open_studio, sentences, small_model


def trained(project):
    return not project["training"]["running"] and project["model"] is not None


def wait_for_model(person, number):
    """Wait until a model is ready; it takes over when a sequence is opened."""
    models = []

    def ready(project):
        models[:] = person.get("/api/progress").json()["models"]
        return not project["training"]["running"] and models and models[-1]["number"] >= number

    return person.wait(ready)


def test_a_new_model_takes_over_between_two_sequences(tmp_path):
    session, person = open_studio(tmp_path, train_after=2)
    first = person.view(1)["model"]
    for n in (1, 2):
        person.view(n)
        person.accept(n)
    wait_for_model(person, first + 1)
    assert person.view(2, opened=0)["model"] == first, "the open sequence keeps its model"
    assert person.view(3)["model"] == first + 1
    model = person.get("/api/project").json()["model"]
    assert model["number"] == first + 1
    assert "2 sequences" in model["words"]
    person.close()
    session.stop()


@pytest.mark.usefixtures("training_here")
def test_the_database_goes_on_with_its_newest_model(tmp_path):
    session, person = open_studio(tmp_path)
    person.accept(1)
    assert person.post("/api/training", {}).status_code == 202
    assert person.post("/api/training", {}).status_code in (202, 409)
    wait_for_model(person, 2)
    person.close()
    session.stop()
    session, person = open_studio(tmp_path)
    assert person.view(2)["model"] >= 2
    numbers = [entry["number"] for entry in person.get("/api/progress").json()["models"]]
    assert numbers == list(range(1, len(numbers) + 1)), "the model that is given again is not a new one"
    person.close()
    session.stop()


WORDS = [["the", "cat", "sleeps"], ["a", "dog", "sees", "the", "cat"]] * 2
THREE = Topology({"part": ["p", "q"], "phrase": ["NP", "VP"], "tag": ["D", "N", "V"]})
PHRASE = {"level": "phrase", "start": 0, "stop": 2, "label": "NP"}
TAG = {"level": "tag", "start": 0, "stop": 1, "label": "D"}
OWN = [Token("phrase"), Token("tag"), Init("phrase"), Trans("phrase"), Init("part"), Trans("root")]


@pytest.mark.usefixtures("training_here")
@pytest.mark.parametrize(
    ("events", "levels", "estimator"),
    [
        ([("segment", PHRASE), ("label", TAG)], ["phrase", "tag"], None),
        ([("segment", PHRASE)], ["phrase"], None),
        ([("label", TAG)], ["tag"], None),
        ([("segment", PHRASE)], ["phrase"], HSCRF(features=OWN)),
        ([("segment", PHRASE), ("label", TAG)], ["phrase", "tag"], HSCRF(features=OWN)),
    ],
    ids=["two of three levels", "middle", "bottom", "middle, own features", "two, own features"],
)
def test_a_first_model_of_plain_words_has_the_levels_that_have_labels(tmp_path, events, levels, estimator):
    options = {"topology": THREE, "estimator": estimator, "port": 0, "train_after": 1000}
    with serve(WORDS, db=tmp_path / "words.sqlite", **options) as session:
        person = Person(session.url).warm()
        for kind, body in events:
            person.do(1, kind, **body)
        assert person.post("/api/training", {}).status_code == 202
        person.wait(trained)
        assert list(session.model.topology_.levels[1:]) == levels
        file = session.studio.workspace.model_store.newest_file()
        person.close()
    model, recipe = load_model(str(file))
    assert model.predict([recipe.observe(Document(WORDS[0]))])[0].length == 3, "the file says how to read words"


@pytest.mark.usefixtures("training_here")
def test_a_level_that_gets_its_first_label_later_joins_the_next_model(tmp_path):
    options = {"topology": THREE, "estimator": HSCRF(features=OWN), "port": 0, "train_after": 1000}
    with serve(WORDS, db=tmp_path / "words.sqlite", **options) as session:
        person = Person(session.url).warm()
        for number, (kind, body) in enumerate([("segment", PHRASE), ("label", TAG)], start=1):
            person.do(1, kind, **body)
            person.post("/api/training", {})
            wait_for_model(person, number)
        person.view(2)  # the model that waits takes over
        assert session.model.topology_.levels[1:] == ("phrase", "tag")
        assert Token("tag") in session.model.features
        person.close()


@pytest.mark.usefixtures("training_here")
def test_a_hierarchical_hmm_is_trained_again(tmp_path):
    tags = [{"phrase": ["NP", "NP", "VP"], "tag": ["D", "N", "V"]},
            {"phrase": ["NP", "NP", "VP", "NP", "NP"], "tag": ["D", "N", "V", "D", "N"]}]  # fmt: skip
    model = HHMM(random_state=0).fit(WORDS, tags * 2)
    with serve(WORDS, model=model, db=tmp_path / "hhmm.sqlite", port=0, train_after=1000) as session:
        person = Person(session.url).warm()
        person.accept(1)
        person.post("/api/training", {})
        project = wait_for_model(person, 2)
        assert [n["message"] for n in project["notices"] if n["kind"] == "training_failed"] == []
        person.view(2)
        assert isinstance(session.model, HHMM)
        person.close()


@pytest.mark.usefixtures("training_here")
def test_cold_start_learns_from_the_first_labels_and_leaves_out_levels_without_any(tmp_path):
    session, person = open_studio(tmp_path, model=False)
    assert person.get("/api/project").json()["model"] is None
    view = person.view(1)
    assert view["segments"]["phrase"] == [[0, view["length"], None]]
    assert person.post("/api/training", {}).status_code == 422
    for n in (1, 2, 3):
        stop = 0
        for start, stop, label in sentences()[1][n - 1].segments("phrase"):
            view = person.do(n, "segment", level="phrase", start=start, stop=stop, label=label)
        assert [segment[2] for segment in view["segments"]["phrase"]] == [
            s[2] for s in sentences()[1][n - 1].segments("phrase")
        ]
    assert person.post("/api/training", {}).status_code == 202
    project = wait_for_model(person, 1)
    assert "leaves it out" in project["notices"][0]["message"]
    view = person.view(4)
    assert None not in [label for _, _, label in view["segments"]["phrase"]]
    assert [label for _, _, label in view["segments"]["tag"]] == [None]
    person.close()
    session.stop()


def test_a_level_without_labels_that_the_model_has_is_learned_as_latent_and_reported(tmp_path):
    session, person = open_studio(tmp_path)
    person.do(1, "label", level="phrase", start=0, stop=2, label="NP")
    assert person.post("/api/training", {}).status_code == 202
    notices = person.get("/api/project").json()["notices"]
    assert [notice["kind"] for notice in notices] == ["latent"]
    assert "level 'tag' has no labels here: it is learned as latent" in notices[0]["message"]
    person.close()
    session.stop()


@pytest.mark.usefixtures("training_here")
def test_labels_of_the_file_train_a_first_model_at_once(tmp_path):
    session, person = open_studio(tmp_path, model=False, labelled=4, estimator=HSCRF(c2="auto"))
    person.wait(trained)
    view = person.view(5)
    assert session.model.c2 == "auto", "as the given estimator"
    assert None not in [label for _, _, label in view["segments"]["tag"]]
    queue = person.get("/api/queue").json()
    assert queue["done"] == 4, "what came complete need not be done again"
    assert person.view(1)["by"]["tag"][0] == "file"
    person.close()
    session.stop()


def test_a_training_process_that_is_killed_harms_nothing(tmp_path):
    session, person = open_studio(tmp_path)
    person.accept(1)
    news = []
    listening, seen = threading.Event(), threading.Event()

    def listen():
        with person.http.stream("GET", "/api/news", timeout=60) as lines:
            for line in lines.iter_lines():
                news.append(line)
                listening.set()  # the first line is a greeting
                if "training failed" in line:
                    seen.set()
                    return

    listener = threading.Thread(target=listen)
    listener.start()
    assert listening.wait(300)
    person.post("/api/training", {})
    os.kill(session.studio.trainer.training.process.pid, signal.SIGKILL)
    assert seen.wait(300)
    listener.join()
    project = person.get("/api/project").json()
    assert not project["training"]["running"]
    assert "signal 9" in project["notices"][-1]["message"]
    assert person.do(2, "label", level="phrase", start=0, stop=1, label="O")["version"] == 1
    assert person.post("/api/training", {}).status_code == 202, "it can be tried again"
    wait_for_model(person, 2)
    assert list(tmp_path.glob("*.models/draft-*")) == []
    person.close()
    session.stop()


def test_training_can_be_stopped(tmp_path):
    session, person = open_studio(tmp_path)
    person.accept(1)
    person.post("/api/training", {})
    assert person.post("/api/training/stop", {}).json()["training"]["running"] is False
    assert len(person.get("/api/progress").json()["models"]) == 1
    person.close()
    session.stop()


def partly_labelled():
    """Sequences of which half have labels of the top level only."""
    X, Y = sentences()
    Y = [y if n % 2 else {"phrase": y.column("phrase")} for n, y in enumerate(Y)]
    return X, [y if isinstance(y, Labels) else Labels.from_columns(TOPOLOGY, y) for y in Y]


@pytest.mark.parametrize("family", ["nested", "chain"])
def test_training_in_the_studio_is_fit(tmp_path, family):
    """The same start at complete sequences and the same stopping rule; each iteration is reported."""
    entries = []
    if family == "nested":
        topology, (X, Y) = TOPOLOGY, partly_labelled()
        plain = HSCRF(topology)
    else:
        topology = Topology({"tag": ["D", "N", "V", "X"]})
        X, Y = sentences()
        Y = [Labels.from_columns(topology, {"tag": y.column("tag")}) for y in Y]
        plain = ChainCRF(topology, c2=1e-4)
    learn(Job(clone(plain), topology, X, Y, str(tmp_path / "m.hscrf")), entries.append)
    plain.fit(X, Y)
    np.testing.assert_array_equal(load(tmp_path / "m.hscrf").coef_, plain.coef_)
    assert [entry["iteration"] for entry in entries] == list(range(1, plain.n_iter_ + 1))


def test_learning_around_a_chain_keeps_its_stopping_rule(tmp_path, monkeypatch):
    seen = []
    monkeypatch.setattr(training_process, "Around", lambda solver: seen.append(solver) or solver)
    topology = Topology({"tag": ["D", "N", "V", "X"]})
    X, Y = sentences()
    Y = [Labels.from_columns(topology, {"tag": y.column("tag")}) for y in Y]
    learn(Job(ChainCRF(topology).fit(X, Y), topology, X, Y, str(tmp_path / "m.hscrf"), around=True))
    assert seen == [LBFGS(delta=1e-5)]


def test_new_models_are_regularised_towards_a_given_model(tmp_path):
    """Learning one odd sequence moves the weights a little from those of the given model, not back to zero."""
    X, Y = sentences()
    model = small_model()
    job = Job(HSCRF(TOPOLOGY, c2=10.0).fit(X, Y), TOPOLOGY, X[:1], Y[:1], str(tmp_path / "m.hscrf"), around=True)
    before = job.estimator.coef_.copy()
    learn(job)
    assert job.estimator.solver == "lbfgs"
    after = job.estimator.coef_
    assert np.abs(after).max() > 0
    alone = HSCRF(TOPOLOGY, c2=10.0).fit(X[:1], Y[:1])
    assert np.abs(before).sum() * 0.9 < np.abs(after).sum() > np.abs(alone.coef_).sum()
    assert model.score(X, Y) > 0.9


@pytest.mark.usefixtures("training_here")
def test_contradicting_fixes_do_not_stop_learning(tmp_path):
    session, person = open_studio(tmp_path)
    person.do(1, "label", level="tag", start=0, stop=1, label="D")
    assert person.do(1, "label", level="phrase", start=0, stop=1, label="VP")["conflict"]
    assert person.post("/api/training", {}).status_code == 202
    wait_for_model(person, 2)
    labels = session.labels()[0]
    assert isinstance(labels, Labels)
    labels.check()
    person.close()
    session.stop()


def test_an_error_in_training_is_reported_in_words(tmp_path):
    done, failed = [], threading.Event()
    words = []

    def fail(text):
        words.append(text)
        failed.set()

    X, Y = sentences(2)
    job = Job(HSCRF(TOPOLOGY, c2=-1.0), TOPOLOGY, X, Y, str(tmp_path / "m.hscrf"))
    training = TrainingRun(job, lambda *_: None, done.append, fail)
    assert failed.wait(300)
    assert "c2 is -1" in words[0]
    training.thread.join()
    assert not done


class Printing:
    """A solver that prints lines like those of progress and of JSON."""

    def minimize(self, *arguments):
        print("{not JSON", flush=True)
        print("iteration 99  loss 1.0", file=sys.stderr, flush=True)
        return LBFGS(max_iter=3).minimize(*arguments)


def test_what_libraries_print_is_not_taken_for_progress(tmp_path):
    done, told, ended = [], [], threading.Event()
    X, Y = sentences(2)
    Y = small_model().predict(X)
    job = Job(HSCRF(TOPOLOGY, solver=Printing()), TOPOLOGY, X, Y, str(tmp_path / "m.hscrf"))
    training = TrainingRun(
        job, lambda n, loss: told.append(n), lambda found: done.append(found) or ended.set(), lambda _: ended.set()
    )
    assert ended.wait(300)
    training.thread.join()
    assert told == [1, 2, 3]
    assert done[0]["iterations"] == 3


def test_a_closed_studio_leaves_no_process(tmp_path):
    session, person = open_studio(tmp_path)
    person.accept(1)
    person.post("/api/training", {})
    process = session.studio.trainer.training.process
    person.close()
    session.stop()
    assert process.poll() is not None


def test_serve_needs_to_know_the_labels(tmp_path):
    with pytest.raises(ValueError, match="give a model, or a topology"):
        serve(sentences(1)[0], db=tmp_path / "a.sqlite")


def test_news_end_when_the_studio_stops(tmp_path):
    session, person = open_studio(tmp_path)
    other = Person.__new__(Person)
    other.http = person.http
    ended = threading.Event()

    def listen():
        with person.http.stream("GET", "/api/news", timeout=60) as lines:
            names = [line for line in lines.iter_lines() if line.startswith("event:")]
        assert names[-1] == "event: stopping"
        ended.set()

    listener = threading.Thread(target=listen)
    listener.start()
    time.sleep(0.2)
    session.stop()
    assert ended.wait(20)
    listener.join()
    person.close()


def test_a_task_that_fails_does_not_end_the_worker(caplog):
    done = []
    worker = Worker()
    worker.urgent("bad", lambda: 1 / 0)
    worker.urgent("good", lambda: done.append(1))
    worker.stop(finish=True)
    assert done == [1]
    assert "ZeroDivisionError" in caplog.text

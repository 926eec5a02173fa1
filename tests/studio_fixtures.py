"""A small model, a studio on it over real HTTP, and what a scripted person does there."""

import itertools
import pickle
import threading
from urllib.parse import urlsplit

import httpx

from hscrf import HSCRF, Labels, Topology
from hscrf.studio import serve
from hscrf.studio.model.training_process import finite, learn

TOPOLOGY = Topology(
    {"phrase": ["NP", "VP", "O"], "tag": ["D", "N", "V", "X"]},
    children={"phrase": {"NP": ["D", "N"], "VP": ["V", "N"], "O": ["X", "N"]}},
)
WORDS = {"D": ["the", "a"], "N": ["cat", "dog", "sleep"], "V": ["sees", "sleep"], "X": [".", "so"]}
SENTENCES = [
    [("NP", "DN"), ("VP", "V"), ("O", "X")],
    [("NP", "DN"), ("VP", "VN"), ("O", "X")],
    [("O", "X"), ("NP", "DNN"), ("VP", "V")],
    [("NP", "N"), ("VP", "V"), ("NP", "DN"), ("O", "X")],
]


def sentences(n=8):
    """Words and labels of n sentences."""
    X, Y = [], []
    for k in range(n):
        tree = SENTENCES[k % len(SENTENCES)]
        tags = "".join(part for _, part in tree)
        words = [WORDS[tag][(k + t) % len(WORDS[tag])] for t, tag in enumerate(tags)]
        X.append([[f"w={word}"] for word in words])
        Y.append(Labels.from_tree(TOPOLOGY, [(name, list(part)) for name, part in tree]))
    return X, Y


_LOCK = threading.Lock()
_MODELS = []


def small_model():
    """A model of the sentences, trained once."""
    with _LOCK:
        if not _MODELS:
            X, Y = sentences()
            _MODELS.append(HSCRF(TOPOLOGY, c2=0.1).fit(X, Y))
    return _MODELS[0]


class TrainingHere:
    """Stands for TrainingRun: the same job in a thread, without the time that a process takes to start."""

    def __init__(self, job, told, done, failed):
        self.job, self.told, self.done, self.failed = pickle.loads(pickle.dumps(job)), told, done, failed
        self.iteration, self.loss, self.stopped = 0, None, False
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    @property
    def running(self):
        return self.thread.is_alive()

    def stop(self):
        self.stopped = True
        if threading.current_thread() is not self.thread:
            self.thread.join()

    def _run(self):
        try:
            metrics = learn(self.job, self._report)
        except Exception as error:
            end, words = self.failed, f"training failed, the former model stays: {error!r}"
        else:
            end, words = self.done, metrics
        if not self.stopped:
            end(words)

    def _report(self, entry):
        self.iteration, self.loss = int(entry["iteration"]), finite(entry["loss"])
        self.told(self.iteration, self.loss)


class Person:
    """A browser that has logged in, and the operations of a person."""

    numbers = itertools.count(1)

    def __init__(self, url, timeout=120):
        parts = urlsplit(url)
        self.base = f"{parts.scheme}://{parts.netloc}"
        self.http = httpx.Client(base_url=self.base, timeout=timeout)
        answer = self.http.get(f"/?{parts.query}")
        assert answer.status_code == 303, answer.text
        self.http.headers["x-studio-project"] = self.get("/api/project").json()["id"]

    def get(self, path, **query):
        return self.http.get(path, params=query)

    def post(self, path, content):
        return self.http.post(path, json=content)

    def view(self, sequence, opened=1):
        return self.get(f"/api/sequences/{sequence}", open=opened).json()

    def send(self, sequence, version, kind, body, uid=None):
        event = {"uid": uid or f"uid-{next(self.numbers)}", "version": version, "kind": kind, "body": body}
        return self.post(f"/api/sequences/{sequence}/events", event)

    def do(self, sequence, kind, **body):
        """An operation on the current version, which must succeed; the view after it."""
        answer = self.send(sequence, self.view(sequence, 0)["version"], kind, body)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def accept(self, sequence):
        return self.do(sequence, "accept", whole=True, segments=self.view(sequence, 0)["segments"])

    def wait(self, check, seconds=120):
        """News until something holds of the project."""
        with self.http.stream("GET", "/api/news", timeout=seconds) as lines:
            for line in lines.iter_lines():
                if line.startswith("data:"):
                    project = self.get("/api/project").json()
                    if check(project):
                        return project
        raise AssertionError("the news ended")

    def warm(self):
        self.wait(lambda project: project["warming"]["done"])
        return self

    def close(self):
        self.http.close()


def open_studio(folder, n=8, model=True, labelled=0, **options):
    """A session on some sentences and a person who has logged in."""
    X, Y = sentences(n)
    known = [y if k < labelled else None for k, y in enumerate(Y)] if labelled else None
    session = serve(
        X,
        known,
        model=small_model() if model else None,
        topology=TOPOLOGY,
        db=folder / "labels.sqlite",
        **{"port": 0, "kind": "text", "train_after": 1000, **options},
    )
    return session, Person(session.url).warm()

"""Label economy: corrections and sequences until the model is good.

A scripted annotator works through the studio's own HTTP interface, from a cold start: a few sequences came labelled
with the file, all others are unknown. Three ways. "studio": each sequence is the one that the queue names; the
annotator fixes the first wrong segment, the studio decodes the rest anew, and so on until all is right and accepted.
"without feedback": the same rule, but all wrong segments of the first suggestion are entered by hand. "random order":
feedback, but sequences are drawn at random. After every few accepted sequences a new model is trained from all labels
and judged on held-out sequences: the share of steps that are right, the mean of the levels. A correction is one segment
that is entered. Every training of the kitchen finds its penalties by `c2="auto"`, and then takes at most 30 iterations.
In citations such a search takes minutes each time, so they have the default penalty, c2 = 0.1. There are 85 kitchen
days and 45 citations; 5 of either came labelled, and a model is trained after every 20. One run of each: sequences that
wait are looked at in the background, so their order in the queue depends on time, and runs differ.
"""

from __future__ import annotations

import json
import tempfile
import urllib.request
from collections.abc import Sequence
from http.cookiejar import CookieJar
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from citations import FEATURES, citation_features
from hscrf import HSCRF, LBFGS, Labels, datasets, metrics
from hscrf.studio import serve
from hscrf.studio.demonstration import make_citations, seen_of
from hscrf.studio.model.suggestions import shown_segments
from runner import Study, main

STUDIO, ALONE, RANDOM = "studio", "without feedback", "random order"
WAYS = (STUDIO, ALONE, RANDOM)
GOAL = 0.95
SEEDS = (0,)
QUICK = LBFGS(max_iter=30)  # training goes on from where the search ended: most of the way is behind it


class Task(NamedTuple):
    name: str
    X: list[Any]  # to be labelled
    Y: list[Labels]
    test_X: list[Any]
    test_Y: list[Labels]
    estimator: HSCRF


def tasks(study: Study) -> list[Task]:
    """Kitchen days and citations; the smallest variant has only a few made-up citations."""
    if study.variant == "smallest":
        words, labels = make_citations(6)
        X = [seen_of(some) for some in words]
        quick = HSCRF(solver=LBFGS(max_iter=5))
        return [Task("citations", X[:4], labels[:4], X[4:], labels[4:], quick)]
    pool, test = study.pick((0, 0), (45, 40), (85, 60))
    X, Y = datasets.make_activities(pool + test, random_state=1)
    days = Task("kitchen days", X[:pool], Y[:pool], X[pool:], Y[pool:], HSCRF(c2="auto", solver=QUICK))
    pool, test = study.pick((0, 0), (25, 100), (45, 150))
    train, held = (datasets.load_citations(study.data, split) for split in ("train", "test"))
    X, held_X = ([citation_features(words) for words in some.tokens] for some in (train, held))
    estimator = HSCRF(features=FEATURES, solver=QUICK)
    return [days, Task("citations", X[:pool], train.Y[:pool], held_X[:test], held.Y[:test], estimator)]


# -- a person at the page --------------------------------------------------------------------------------------------


class Annotator:
    """Works through HTTP and knows the truth."""

    def __init__(self, url: str, truth: Sequence[Labels]) -> None:
        self.base, self.truth = url.partition("/?")[0], truth
        self.http = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(CookieJar()))
        self.http.open(url).read()
        self.project = self.get("/api/project")["id"]
        self.events = 0

    def get(self, path: str) -> Any:
        with self.http.open(self.base + path) as answer:
            return json.load(answer)

    def post(self, path: str, content: Any) -> Any:
        headers = {"Content-Type": "application/json", "X-Studio-Project": self.project}
        request = urllib.request.Request(self.base + path, json.dumps(content).encode(), headers)
        with self.http.open(request) as answer:
            return json.load(answer)

    def send(self, n: int, view: Any, kind: str, body: Any) -> Any:
        self.events += 1
        event = {"uid": f"a{self.events}", "version": view["version"], "kind": kind, "body": body}
        return self.post(f"/api/sequences/{n}/events", event)

    def right(self, n: int) -> dict[str, list[list[Any]]]:
        """The true segments of a sequence by level, top to bottom."""
        labels = self.truth[n - 1]
        levels = labels.topology.levels
        return {levels[d]: shown_segments(labels, d) for d in range(1, len(levels))}

    def wrong(self, n: int, view: Any) -> list[tuple[str, list[Any]]]:
        """The true segments that are not shown, in the order of time, the upper levels first."""
        found = []
        for depth, (level, segments) in enumerate(self.right(n).items()):
            shown = {tuple(segment) for segment in view["segments"][level]}
            found += [(s[0], depth, level, s) for s in segments if tuple(s) not in shown]
        return [(level, segment) for _, _, level, segment in sorted(found, key=lambda entry: entry[:2])]

    def work(self, n: int, feedback: bool) -> int:
        """Make a sequence right and accept it; the corrections it took."""
        view = self.get(f"/api/sequences/{n}?open=1")
        count = 0
        if feedback:
            entered: list[Any] = []  # a run of a unit level may seem to go on until its neighbour is entered too
            while missing := [one for one in self.wrong(n, view) if one not in entered]:
                entered.append(missing[0])
                level, (start, stop, label) = missing[0]
                body = {"level": level, "start": start, "stop": stop, "label": label}
                view = self.send(n, view, "segment", body)
                count += 1
        else:
            count = len(self.wrong(n, view))
        self.send(n, view, "accept", {"whole": True, "segments": self.right(n)})
        return count


# -- the study -------------------------------------------------------------------------------------------------------


def run(study: Study) -> None:
    first, every = study.pick((3, 6), (5, 10), (5, 20))
    every_task = tasks(study)
    try:
        for seed in SEEDS:
            for task in every_task:
                for way in study.pick((STUDIO, ALONE), WAYS, WAYS):
                    with tempfile.TemporaryDirectory() as folder:
                        label_all(study, task, way, seed, first, every, Path(folder))
    finally:  # what a run that is ended early has measured
        study.heading("Until 95 % of held-out steps are right")
        summarise(study)
        study.figure("economy", draw(study), "Held-out steps right against segments entered by hand.")


def label_all(study: Study, task: Task, way: str, seed: int, first: int, every: int, folder: Path) -> None:
    """One annotator on one task, from a cold start to the last sequence."""
    known = [y if n < first else None for n, y in enumerate(task.Y)]
    session = serve(task.X, known, topology=task.Y[0].topology, db=folder / "a.sqlite", port=0, train_after=10**6,
                    estimator=HSCRF(**task.estimator.get_params(deep=False)))  # fmt: skip
    try:
        person = Annotator(session.url, task.Y)
        keys = {"task": task.name, "way": way, "seed": seed}
        waiting = np.random.default_rng(seed).permutation(np.arange(first + 1, len(task.X) + 1)).tolist()
        next_model(person, 1)
        done = corrections = 0
        judge(study, session, task, person, {**keys, "sequences": 0, "corrections": 0})
        while waiting:
            n = waiting[0] if way == RANDOM else person.get("/api/queue")["next"]
            waiting.remove(n)
            corrections += person.work(n, feedback=way != ALONE)
            done += 1
            if done % every == 0 or not waiting:
                person.post("/api/training", {})
                next_model(person, len(person.get("/api/progress")["models"]) + 1)
                judge(study, session, task, person, {**keys, "sequences": done, "corrections": corrections})
    finally:
        session.stop()


def next_model(person: Annotator, number: int) -> None:
    """Wait for the news that a model is ready."""
    with person.http.open(person.base + "/api/news") as lines:
        for line in lines:
            if line.startswith((b"event: model", b"event: hello", b"event: training_failed")):
                if b"failed" in line:
                    raise RuntimeError(f"training failed: {next(lines)!r}")
                if (
                    len(person.get("/api/progress")["models"]) >= number
                    and not person.get("/api/project")["training"]["running"]
                ):
                    return


def judge(study: Study, session: Any, task: Task, person: Annotator, keys: dict[str, Any]) -> None:
    """How good the newest model is on held-out sequences; it takes over when a sequence is opened."""
    person.get("/api/sequences/1?open=1")
    guess = session.model.predict(task.test_X)
    share = metrics.accuracy(task.test_Y, guess)
    study.record("right", float(np.mean(list(share.values()))), **keys)


def summarise(study: Study) -> None:
    """Corrections and sequences at which the goal is reached first, and what all labels took."""
    names = list(dict.fromkeys(record["task"] for record in study.records))
    lines = [
        ["task", "way", "segments until 95 %", "sequences until 95 %", "segments in all", "right at the end, in %"]
    ]
    for task in names:
        for way in WAYS:
            rows = [reached(study, task, way, seed) for seed in seeds_of(study, task, way)]
            if not rows:
                continue
            cells = [number([row[k] for row in rows]) for k in range(4)]
            lines.append([task, way, *cells])
    study.lines(lines, "Means over the runs; a dash if 95 % was not reached.")
    for task in names:
        if not (seeds_of(study, task, STUDIO) and seeds_of(study, task, ALONE)):
            continue
        one, other = (total(study, task, way) for way in (STUDIO, ALONE))
        study.say(f"{task}: with feedback a person enters {one:.0f} segments for all sequences, without {other:.0f}.")


def seeds_of(study: Study, task: str, way: str) -> list[int]:
    """The seeds with which all sequences were labelled."""
    last = max(row["sequences"] for row in study.select("right", task=task))
    return sorted({row["seed"] for row in study.select("right", task=task, way=way, sequences=last)})


def reached(study: Study, task: str, way: str, seed: int) -> tuple[float | None, float | None, float, float]:
    rows = study.select("right", task=task, way=way, seed=seed)
    hit = next((row for row in rows if row["value"] >= GOAL), None)
    last = rows[-1]
    first = (None, None) if hit is None else (hit["corrections"], hit["sequences"])
    return (*first, last["corrections"], 100 * last["value"])


def total(study: Study, task: str, way: str) -> float:
    seeds = seeds_of(study, task, way)
    return float(np.mean([study.select("right", task=task, way=way, seed=n)[-1]["corrections"] for n in seeds]))


def number(values: Sequence[float | None]) -> str:
    some = [value for value in values if value is not None]
    return f"{np.mean(some):.1f}".removesuffix(".0") if len(some) == len(values) else "–"


def draw(study: Study) -> Any:
    """A panel a task, a line a way, of the first seed."""
    from matplotlib.figure import Figure

    names = list(dict.fromkeys(record["task"] for record in study.records))
    figure = Figure(figsize=(8, 3), layout="constrained")
    panels = figure.subplots(1, len(names), squeeze=False)[0]
    for ax, task in zip(panels, names, strict=True):
        for way, line in zip(WAYS, ("-o", "--s", ":^"), strict=True):
            rows = study.select("right", task=task, way=way, seed=0)
            ax.plot([r["corrections"] for r in rows], [100 * r["value"] for r in rows], line, label=way, markersize=4)
        ax.axhline(100 * GOAL, color="0.7", linewidth=0.8, zorder=0)
        ax.set(title=task, xlabel="segments entered by hand", ylabel="held-out steps right, in %")
    panels[0].legend(frameon=False)
    return panels[0]


if __name__ == "__main__":
    main(run, __file__, __doc__)

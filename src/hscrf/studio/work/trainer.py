"""Training in the background: the data, the process, and the moment when a new model is ready."""

from __future__ import annotations

import copy
import threading
import time
from collections.abc import Mapping
from typing import Any

from hscrf.studio.data.conflicts import feasible
from hscrf.studio.data.evidence import labels_of, without_levels
from hscrf.studio.data.knowledge import Knowledge
from hscrf.studio.data.problems import Invalid
from hscrf.studio.data.project import Project
from hscrf.studio.model.forecast import Forecast
from hscrf.studio.model.suggestions import Suggester, agrees
from hscrf.studio.model.training_process import Job
from hscrf.studio.model.training_run import TrainingRun
from hscrf.studio.work.notifications import Notifications
from hscrf.studio.work.workspace import TrackedSequence, Workspace

PAUSE = 0.3  # seconds between two pieces of news about training


class Running(RuntimeError):
    """Training runs already."""


class ModelTrainer:
    """Trains models from all partial labels, one at a time, in a process of its own.

    New models are learned around the weights of a model that was given, since its training data are not here.
    Without one, each starts from the weights of the former. Levels without labels are left out, or learned as
    latent if the former model has them; the page names them.
    """

    def __init__(self, workspace: Workspace, notifications: Notifications, project: Project) -> None:
        self.workspace, self.notifications, self.project, self.database = (
            workspace,
            notifications,
            project,
            workspace.database,
        )
        self.training: TrainingRun | None = None
        self._number = 0  # of the model in training
        self._forecast: Forecast | None = None
        self._guard = threading.RLock()
        self._told = 0.0

    def labelled(self) -> list[TrackedSequence]:
        """The sequences of which something is known."""
        return [tracked for tracked in self.workspace.sequences.values() if tracked.state.in_force]

    def train(self) -> dict[str, Any]:
        """Begin to train a model from all that is known."""
        with self._guard:
            if self.training is not None and self.training.running:
                raise Running("training runs already")
            job = self._job()
            self._number = len(self.database.models()) + 1
            upto = self.database.last_event()
            sequences = len(job.X)
            self._forecast = Forecast(_solver(job), job.topology, [y.length for y in job.Y])
            self.training = TrainingRun(
                job, self._progressed, lambda metrics: self._trained(job, upto, {**metrics, "sequences": sequences}),
                self.failed,
            )  # fmt: skip
        self._tell_training(force=True)
        return self.state()

    def wait(self) -> None:
        """Return when training, if there is some, has ended and its model is kept."""
        run = self.training
        if run is not None:
            run.thread.join()

    def stop(self) -> None:
        """End training; the model it was making is lost, the labels are not."""
        with self._guard:
            if self.training is not None:
                self.training.stop()
                self.training = None
        self._tell_training(force=True)

    def _job(self) -> Job:
        """What to learn from: all partial labels, as far as they do not contradict each other."""
        workspace, topology = self.workspace, self.project.topology
        suggester, given = workspace.model_store.suggester, workspace.model_store.given()
        estimator = given or (self.project.first_estimator() if suggester is None else suggester.model)
        had = () if suggester is None else suggester.topology.levels
        known = {}
        for tracked in self.labelled():
            with tracked.guard:
                knowledge = tracked.state.knowledge.copy()
                if tracked.suggestion is None:
                    tracked.state.drop_cells()
            if tracked.id in workspace.seen and not knowledge.empty:
                known[tracked.id] = feasible(knowledge, 0, lambda some: agrees(some, topology))[0]
        if not known:
            raise Invalid("there are no labels to learn from yet", "labels")
        bare = [
            level.name
            for level in workspace.levels
            if all((k.cells[level.name].label < 0).all() for k in known.values())
        ]
        left_out = [name for name in bare if name not in had and name != "root"]
        self._report_unlabelled_levels(bare, left_out)
        if len(left_out) == len(workspace.levels):
            raise Invalid("there are no labels to learn from yet", "labels")
        learned = without_levels(topology, left_out)
        X = [workspace.seen[n] for n in known]
        Y = [labels_of(k, learned) for k in known.values()]
        estimator = copy.copy(estimator)
        if given is None and "features" in estimator.get_params(deep=False):  # the former model may lack levels
            estimator.set_params(features=self.project.first_estimator().features)
        return Job(estimator, learned, X, Y, workspace.model_store.draft(), around=given is not None)

    def _report_unlabelled_levels(self, bare: list[str], left_out: list[str]) -> None:
        """Say plainly what becomes of levels without labels."""
        self._drop_notices("left_out", "latent")
        for name in bare:
            if name in left_out:
                notice = {"kind": "left_out", "message": f"level {name!r} has no labels yet: the model leaves it out"}
            else:
                words = (
                    f"level {name!r} has no labels here: it is learned as latent, from the weights of the former model"
                )
                notice = {"kind": "latent", "message": words}
            self.workspace.notices.append(notice)
        self._tell_notices()

    def _drop_notices(self, *kinds: str) -> None:
        """Forget what is no longer true."""
        self.workspace.notices[:] = [notice for notice in self.workspace.notices if notice["kind"] not in kinds]
        self._tell_notices()

    def _tell_notices(self) -> None:
        self.notifications.send("notices", {"notices": list(self.workspace.notices)})

    def _progressed(self, iteration: int, loss: float | None) -> None:
        if self._forecast is not None:
            self._forecast.note(iteration, loss, time.monotonic())
        self._tell_training()

    def _trained(self, job: Job, upto: int, metrics: dict[str, Any]) -> None:
        """Read the new model, warm it up, and let it wait for the next sequence."""
        try:
            model_store = self.workspace.model_store
            model = self.project.load(job.path)
            self.project.save(job.path, model)
            number = model_store.keep(job.path, upto, metrics)
            suggester = model_store.suggester_for(model)
            warm_up(suggester, self.workspace)
            model_store.waiting = (number, suggester)
            first = model_store.suggester is None
            if first:  # nothing is shown that could change under a person's hands
                self.workspace.take_over()
        except (OSError, ValueError) as error:
            self.failed(f"the new model could not be kept, the former one stays: {error}")
            return
        self.training = None
        self._tell_training(force=True)
        self._drop_notices("training_failed")
        words = f"model {number}, trained on {count_of(metrics)}"
        self.notifications.send("model", {"number": number, "words": words, "waiting": not first})

    def failed(self, words: str) -> None:
        self.training = None
        self._drop_notices("training_failed")
        self.workspace.notices.append({"kind": "training_failed", "message": words})
        self._tell_notices()
        self.notifications.send("training_failed", {"words": words})
        self._tell_training(force=True)

    def _tell_training(self, force: bool = False) -> None:
        if force or time.monotonic() - self._told > PAUSE:
            self._told = time.monotonic()
            self.notifications.send("training", self.state())

    def state(self) -> dict[str, Any]:
        """How training goes."""
        run = self.training
        if run is None or not run.running:
            return {
                "running": False,
                "number": None,
                "iteration": None,
                "loss": None,
                "seconds_left": None,
                "words": "",
            }
        now = time.monotonic()
        left = None if self._forecast is None else self._forecast.seconds(now)
        said = [f"iteration {run.iteration}"] if run.iteration else []
        said += filter(None, ["" if self._forecast is None else self._forecast.words(now)])
        words = f"training model {self._number}" + (f": {', '.join(said)}" if said else "")
        return {"running": True, "number": self._number, "iteration": run.iteration, "loss": run.loss,
                "seconds_left": None if left is None else round(left, 1), "words": words}  # fmt: skip


def _solver(job: Job) -> Any:
    """The solver of a job; None for a model without one."""
    options = job.estimator.get_params(deep=False)
    return job.estimator.solver_of(options["solver"]) if "solver" in options else None


def count_of(metrics: Mapping[str, Any]) -> str:
    """How many sequences a model was trained on, in words."""
    count = metrics["sequences"]
    return "1 sequence" if count == 1 else f"{count} sequences"


def warm_up(suggester: Suggester, workspace: Workspace) -> None:
    """Answer twice, with and without a fix, and rate alternatives: a model that cannot answer fails here."""
    sequence = min(workspace.seen, key=lambda n: workspace.sequences[n].length)
    knowledge = Knowledge(workspace.levels, workspace.sequences[sequence].length)
    found = suggester.suggest(sequence, knowledge)
    other = knowledge.copy()
    level = next(level for level in knowledge.levels if level.name in suggester.topology.levels)
    start, stop, label = found.segments[level.name][0]
    other.apply("label", {"level": level.name, "start": start, "stop": stop, "label": label}, 1)
    suggester.suggest(sequence, other, 1)
    suggester.alternatives(sequence, knowledge, level.name, start, stop)

"""Label data beyond memory and measure the labels: shard by shard, in this process or by a cluster."""

from __future__ import annotations

import copy
import hashlib
import json
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from hscrf.arrays import Floats
from hscrf.estimator.contract import Model
from hscrf.files.container import write_container
from hscrf.files.lazy import ALIGN, CHECKED_FILES
from hscrf.files.replacing import replaced
from hscrf.labels.labels import Labels
from hscrf.labels.packed import pack_labels
from hscrf.labels.shown import shown_levels
from hscrf.metrics.cells import pairs_of
from hscrf.metrics.counts import ALL, Counts, count_all, count_right, report_of
from hscrf.observations.packed import Observations
from hscrf.observations.readers import kind_of, length_of
from hscrf.progress import waiting
from hscrf.scale.arrays import OBSERVED, feature_count, labels_in, observation_arrays, observations_in
from hscrf.scale.cluster import PickledArgument, unpickled
from hscrf.scale.memory import keep_memory
from hscrf.scale.problems import Problems, without_bad
from hscrf.scale.sources import PartSource, SourceSequence
from hscrf.topology import Topology


class SequencesFile(NamedTuple):
    """Sequences on disk that were packed by a model, with their labels if they have any."""

    path: str
    digest: str
    number: int

    def observations(self) -> Observations:
        """The packed observations of the file."""
        file = CHECKED_FILES.open(self.path, self.digest)
        return observations_in(file.read([name for name in OBSERVED if name in file.table]), file.header["features"])

    def labels(self) -> list[Labels]:
        """The labels, over a topology of their own that has all their states."""
        file = CHECKED_FILES.open(self.path, self.digest)
        if "states" not in file.table:
            raise ValueError(f"{file.header['sources'][0]} has no labels to compare with")
        topology = Topology.from_dict(file.header["topology"])
        found = file.read(["offsets"]) | file.read(["states", "ends"])
        return [labels_in(found, topology, n) for n in range(len(found["offsets"]) - 1)]

    def places(self) -> Iterator[dict[str, Any]]:
        """Where each sequence comes from."""
        file = CHECKED_FILES.open(self.path, self.digest)
        found = file.read(["source", "place"])
        for source, (line, number) in zip(found["source"].tolist(), found["place"].tolist(), strict=True):
            kind, name = file.header["sources"][source]
            yield {"part": name, "sequence": number} if kind == "part" else {"file": name, "line": line}


class Labelling:
    """Data packed by a fitted model, ready to be labelled."""

    def __init__(self, shards: Any, model: Model) -> None:
        self.shards, self.model = shards, model
        self.cluster = None if shards.client is None else shards._cluster(model.n_jobs)
        self.problems = Problems(shards.errors == "skip")
        self.files = self._packed()
        self.sent: PickledArgument | None = None  # the model

    # -- packing

    def _packed(self) -> list[SequencesFile]:
        """The data packed by the model's names and scales, from the cache if possible."""
        shards, model = self.shards, self.model
        settings, arrays = model.encoder_.state()
        digest = hashlib.sha256(json.dumps(settings).encode())
        for array in arrays.values():
            digest.update(array.tobytes())
        frame = {
            "encoder": digest.hexdigest(),
            "topology": model.topology_.to_json(),
            "scheme": repr(model.found_scheme()),
        }

        def write(folder: str) -> tuple[dict[str, Any], dict[str, Any]]:
            with waiting("packing", model.verbose) as line:
                header: dict[str, Any] = {"kind": "sequences", "files": self._entries(folder, line)}
            return header | {"skipped": self.problems.count, "told": self.problems.messages}, {}

        settings = {"labelling": shards.sizes.labelled, "class": type(model).__name__, **frame}
        header, _, folder = shards.stored(settings, write)
        return [SequencesFile(os.path.join(folder, e["file"]), e["digest"], k) for k, e in enumerate(header["files"])]

    def _entries(self, folder: str, line: Any) -> list[dict[str, Any]]:
        """Write a file for each group with good sequences; return the manifest entry of each."""
        entries: list[dict[str, Any]] = []
        for items in self._groups(line):
            entry = self._write(folder, len(entries), items)
            if entry is not None:
                entries.append(entry)
        if not entries and self.problems.count:
            raise ValueError(
                f"all {self.problems.count} sequences are bad, expected a good one; "
                f"the first problem is: {self.problems.messages[0]}"
            )
        return entries

    def _groups(self, line: Any) -> Iterator[list[tuple[SourceSequence, int]]]:
        """Sequences that are packed together."""
        group: list[tuple[SourceSequence, int]] = []
        steps = done = 0
        for k, source in enumerate(self.shards.sources):
            for item in source.items(self.problems.note if self.problems.skip else None):
                length = length_of(item.x)
                if group and steps + length > self.shards.sizes.labelled:
                    yield group
                    group, steps = [], 0
                group.append((item, k))
                steps += length
                done += 1
                if line is not None:
                    line.count = done
        if group:
            yield group

    def _write(self, folder: str, k: int, items: Sequence[tuple[SourceSequence, int]]) -> dict[str, Any] | None:
        """Write the good sequences of a group; None if there are none."""
        try:
            observations, labels = self._read([item for item, _ in items])
        except (ValueError, TypeError) as error:
            items = without_bad(items, lambda one: self._problem(one[0]), lambda one, e: self._refuse(*one, e), error)
            if not items:
                return None
            observations, labels = self._read([item for item, _ in items])
        sources = [
            ("part" if isinstance(source, PartSource) else "file", source.name) for source in self.shards.sources
        ]
        header: dict[str, Any] = {"kind": "sequences", "sources": sources, "features": feature_count(observations)}
        arrays: dict[str, Any] = {"source": np.array([source for _, source in items], dtype=np.int32)}
        arrays["place"] = np.array([item.place for item, _ in items], dtype=np.int64)
        arrays |= observation_arrays(observations)
        if labels is not None:
            known = pack_labels(labels)
            header["topology"] = labels[0].topology.to_json()
            arrays |= {"states": known.states, "ends": known.ends}
        name = f"{k:06d}.sequences"
        return {"file": name, "digest": write_container(os.path.join(folder, name), header, arrays, align=ALIGN)}

    def _read(self, items: Sequence[SourceSequence]) -> tuple[Observations, list[Labels] | None]:
        """Sequences packed by the model; labels, if any, may break its rules."""
        model = self.model
        X = [item.x for item in items]
        kind_of(X)
        if all(item.y is None for item in items):
            return model.encoder_.pack(X), None
        observations, labels = model.pack_to_score(X, [item.y for item in items])
        return observations, labels

    def _problem(self, item: SourceSequence) -> Exception | None:
        """The problem of one sequence."""
        try:
            self._read([item])
        except (ValueError, TypeError) as problem:
            return problem
        return None

    def _refuse(self, item: SourceSequence, source: int, problem: Exception) -> None:
        self.problems.refuse(self.shards.sources[source].error(item.place, problem))

    # -- labels

    def accuracy(self, weights: Floats) -> float:
        """The share of steps with the right state at every level at once."""
        counts = added_counts(self._each(compared, weights))
        return counts["right", ALL] / counts["known", ALL] if counts["known", ALL] else float("nan")

    def report(self, tolerance: int = 0) -> tuple[dict[str, Any], int]:
        """The numbers of :func:`hscrf.metrics.report`, and the number of sequences that were counted."""
        counts = added_counts(self._each(measured, self.model.coef_, tolerance))
        topology = self.model.topology_
        return report_of(counts, topology.levels[topology.n_states[0] == 1 :]), counts["total",]

    def predict(self, folder: Any, loss: str) -> list[str]:
        """Write the best labels of each file, and return the names of the files."""
        if folder is None:
            raise ValueError("folder is None, expected a folder for the labels, which may not fit in memory")
        path = os.path.abspath(os.fspath(folder))
        os.makedirs(path, exist_ok=True)
        with waiting("predicting", self.model.verbose):
            return list(self._each(write_labels, self.model.coef_, path, loss))

    def _each(self, function: Any, weights: Floats, *arguments: Any) -> Iterator[Any]:
        """The results of a function for every file, computed here or on the cluster."""
        if self.cluster is None:
            return (function(file, self.model, weights, *arguments) for file in self.files)
        if self.sent is None:
            self.sent = PickledArgument.of(without_training_data(self.model), self.cluster)
        shipped = (function, self.sent.key, self.sent.future, self.cluster.send(weights), *arguments)
        return self.cluster.map(on_worker, self.files, *shipped)


def without_training_data(model: Model) -> Model:
    """The model without the data that only packing and learning need."""
    found = copy.copy(model)
    apart = ("encoder_", "history_", "penalties_", "coef_")
    found.__dict__ = {name: value for name, value in model.__dict__.items() if name not in apart}
    found.verbose = 0
    return found


def added_counts(counts: Iterable[Counts]) -> Counts:
    """The sum of the counts of files. Labels without a prediction, or without a true segment, are kept."""
    total: Counts = Counter()
    for own in counts:
        total.update(own)
    return total


# -- functions that run here or on workers


def on_worker(file: SequencesFile, function: Any, key: str, content: bytes, weights: Floats, *arguments: Any) -> Any:
    """Call a function of a file and the model on a worker."""
    keep_memory()
    return function(file, unpickled(key, content), np.array(weights), *arguments)


def best_labels(file: SequencesFile, model: Model, weights: Floats, loss: str) -> list[Labels]:
    """The best labels of the sequences of a file."""
    return model.label(file.observations(), weights, loss)


def compared(file: SequencesFile, model: Model, weights: Floats) -> Counts:
    """The numbers of known and of right steps."""
    return count_right(pairs_of(file.labels(), best_labels(file, model, weights, "sequence"), "auto"))


def measured(file: SequencesFile, model: Model, weights: Floats, tolerance: int) -> Counts:
    """All counts that the measures need."""
    return count_all(pairs_of(file.labels(), best_labels(file, model, weights, "sequence"), "auto"), tolerance)


def write_labels(file: SequencesFile, model: Model, weights: Floats, folder: str, loss: str) -> str:
    """Write the best labels of a file as JSON Lines, whole or not at all; return its name."""
    path = os.path.join(folder, f"{file.number:06d}.jsonl")
    with replaced(path) as name, open(name, "w", encoding="utf-8") as output:
        for place, labels in zip(file.places(), best_labels(file, model, weights, loss), strict=True):
            output.write(json.dumps({**place, "prediction": prediction_record(labels)}, ensure_ascii=False) + "\n")
    return path


def prediction_record(labels: Labels) -> dict[str, Any]:
    """Labels by level: segments, or one label for each step if segments have one step."""
    topology = labels.topology
    unit = topology.depth - 1 if topology.unit_bottom else topology.depth
    return {topology.levels[d]: labels.segments(d) if d < unit else labels.column(d) for d in shown_levels(topology)}

"""Nested sequences to play with: generators that need nothing, and loaders of files that the user has."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hscrf.labels import Labels
from hscrf.topology import Topology

__all__ = ["Dataset", "load_cad120", "load_citations", "load_conll2000", "make_activities", "make_nested"]

Random = int | np.random.Generator | None
Floats = NDArray[np.float64]


# ------------------------------------------------------------------------------
# Indoor activities, in the shape of the paper's first experiment

_ROOM = (8, 6)  # cells
_PLACES = {
    "door": (0, 1),
    "cupboard": (3, 5),
    "fridge": (6, 5),
    "stove": (7, 2),
    "dining": (5, 1),
    "tv": (4, 1),
}
_START = "door_cupboard cupboard_fridge "
_PLANS = {  # ways to go about an activity and how often they are taken; each begins and ends at the door
    "short_meal": {
        _START + "fridge_dining dining_door": 0.75,
        _START + "fridge_door": 0.25,
    },
    "have_snack": {
        "door_tv tv_cupboard cupboard_fridge fridge_tv tv_door": 0.75,
        "door_tv tv_cupboard cupboard_fridge fridge_door": 0.25,
    },
    "normal_meal": {
        _START + "fridge_stove stove_dining dining_door": 0.4,
        _START + "fridge_stove stove_dining dining_fridge fridge_dining dining_door": 0.2,
        _START + "fridge_dining dining_door": 0.4,  # a cold meal, told from a short one by its duration alone
    },
}
_STAYS = {"door": 1.0, "cupboard": 2.0, "fridge": 2.0, "stove": 6.0, "dining": 3.0, "tv": 4.0}  # mean steps
_LONG_STAYS = {("normal_meal", "dining"): 9.0, ("normal_meal", "fridge"): 3.0}
_STRIDE = 1.5  # cells in a time step


def make_activities(
    n_sequences: int = 90,
    *,
    n_activities: int | tuple[int, int] = (2, 3),
    noise: float = 0.6,
    persisting: bool = False,
    random_state: Random = None,
) -> tuple[list[list[list[str]]], list[Labels]]:
    """Generate a person's noisy positions in a kitchen, labelled by activity and by walk between two places.

    Three activities share twelve walks (``"door_cupboard"``: going there and staying a while). Positions are
    grid cells, seen with an error of ``noise`` cells (standard deviation). Each step has the paper's features
    as strings: position, velocity in x and y, speed. A sequence holds ``n_activities`` in a row, a number or
    a range; 1 is the paper's setting. ``persisting`` makes each walk one segment rather than unit steps.

    >>> X, Y = make_activities(2, random_state=0)
    >>> X[0][5]
    ['pos=4,0', 'vx=0', 'vy=-1', 'speed=1']
    >>> Y[0].topology
    Topology(root 1 > activity 3 > trajectory 12)
    >>> Y[0].segments("activity")
    [(0, 26, 'have_snack'), (26, 53, 'have_snack'), (53, 75, 'short_meal')]
    """
    _check_positive("n_sequences", n_sequences)
    if not noise >= 0:
        raise ValueError(f"noise is {noise}; expected a standard deviation in cells, 0 or more")
    random = np.random.default_rng(random_state)
    topology = _activity_topology(persisting)
    X, Y = [], []
    for _ in range(n_sequences):
        tree, path = _day(random, _draw_number(random, "n_activities", n_activities))
        X.append(_position_features(path + noise * random.normal(size=path.shape)))
        Y.append(_activity_labels(topology, tree))
    return X, Y


def _activity_topology(persisting: bool) -> Topology:
    walks = {name: list(dict.fromkeys(" ".join(plans).split())) for name, plans in _PLANS.items()}
    shared = list(dict.fromkeys(walk for some in walks.values() for walk in some))
    limits: dict[str, None] = {"trajectory": None} if persisting else {}
    return Topology({"activity": list(_PLANS), "trajectory": shared}, children={"activity": walks}, max_duration=limits)


def _day(random: np.random.Generator, n_activities: int) -> tuple[list[Any], Floats]:
    """Some activities as a tree of (activity, [(walk, duration)]), and the true positions (T, 2)."""
    tree, path = [], []
    for activity in random.choice(list(_PLANS), size=n_activities):
        plans = _PLANS[activity]
        plan = random.choice(list(plans), p=list(plans.values()))
        steps = [_walk(random, activity, *walk.split("_")) for walk in plan.split()]
        tree.append((str(activity), [(w, len(s)) for w, s in zip(plan.split(), steps, strict=True)]))
        path += steps
    return tree, np.concatenate(path)


def _walk(random: np.random.Generator, activity: str, origin: str, target: str) -> Floats:
    """Positions (t, 2) of a walk from one place to another and the stay there."""
    start, goal = np.array(_PLACES[origin]), np.array(_PLACES[target])
    stride = _STRIDE * random.uniform(0.8, 1.2)
    n_strides = max(1, round(float(np.linalg.norm(goal - start)) / stride))
    stay = _duration(random, _LONG_STAYS.get((activity, target), _STAYS[target]))
    progress = np.minimum(np.arange(1, n_strides + stay + 1) / n_strides, 1.0)
    return start + progress[:, None] * (goal - start)


def _duration(random: np.random.Generator, mean: float) -> int:
    """A duration in steps, at least 1: gamma of shape 16, far from geometric."""
    return max(1, round(random.gamma(16.0, mean / 16.0)))


def _position_features(path: Floats) -> list[list[str]]:
    """Feature strings of noisy positions (T, 2)."""
    cells = np.clip(np.rint(path), 0, np.array(_ROOM) - 1).astype(int)
    velocity = np.clip(np.diff(cells, axis=0, prepend=cells[:1]), -2, 2)
    speed = np.abs(velocity).max(axis=1)
    rows = zip(cells.tolist(), velocity.tolist(), speed.tolist(), strict=True)
    return [[f"pos={x},{y}", f"vx={vx}", f"vy={vy}", f"speed={v}"] for (x, y), (vx, vy), v in rows]


def _activity_labels(topology: Topology, tree: list[Any]) -> Labels:
    if topology.unit_bottom:
        tree = [(name, [walk for walk, n in walks for _ in range(n)]) for name, walks in tree]
    return Labels.from_tree(topology, tree)


# ------------------------------------------------------------------------------
# Nested sequences of any depth


def make_nested(
    n_sequences: int = 20,
    sizes: Sequence[int] = (3, 4),
    *,
    length: int | tuple[int, int] = (30, 60),
    n_features: int = 4,
    separation: float = 1.0,
    durations: Sequence[float] | None = None,
    random_state: Random = None,
) -> tuple[list[Floats], list[Labels]]:
    """Generate sequences with nested labels and numeric observations.

    ``sizes`` are the numbers of states from top to bottom, ``durations`` the mean lengths of their segments:
    by default 1 at the bottom, and six times that of the level below. A bottom of mean 1 has unit length,
    another persists. Every state lasts around its own mean; every parent has its own ways from child to
    child; an observation is normal (standard deviation 1) around the sum of its states' means, themselves
    normal with standard deviation ``separation``. ``length`` is a number of steps or a range.

    >>> X, Y = make_nested(2, sizes=(2, 3), length=20, random_state=0)
    >>> X[0].shape, Y[0].topology
    ((20, 4), Topology(root 1 > level1 2 > level2 3))
    >>> Y[0].segments("level1")
    [(0, 10, 'a1'), (10, 14, 'a0'), (14, 20, 'a1')]
    """
    _check_positive("n_sequences", n_sequences)
    _check_positive("n_features", n_features)
    random = np.random.default_rng(random_state)
    process = _nested_process(random, sizes, durations)
    means = [separation * random.normal(size=(size, n_features)) for size in sizes]
    X, Y = [], []
    for _ in range(n_sequences):
        labels = process.sample(random, _draw_number(random, "length", length))
        centre = sum(mean[states] for mean, states in zip(means, labels.states[1:], strict=True))
        X.append(centre + random.normal(size=(labels.length, n_features)))
        Y.append(labels)
    return X, Y


@dataclass(frozen=True)
class _NestedProcess:
    """Semi-Markov chains within the segments of semi-Markov chains."""

    topology: Topology
    means: list[Floats]  # mean durations (S_d,) of each level below the root
    init: list[Floats]  # (S_{d-1}, S_d)
    trans: list[Floats]  # (S_{d-1}, S_d, S_d)

    def sample(self, random: np.random.Generator, length: int) -> Labels:
        """Draw labels from the top down; the last child of a segment is cut at its end."""
        segments: dict[str, list[tuple[int, int, str]]] = {}
        parents = [(0, length, 0)]
        for d, level in enumerate(self.topology.levels[1:], start=1):
            parents = [child for parent in parents for child in self._tile(random, d - 1, *parent)]
            names = self.topology.states[d]
            segments[level] = [(start, stop, names[state]) for start, stop, state in parents]
        return Labels.from_segments(self.topology, segments)

    def _tile(
        self, random: np.random.Generator, k: int, start: int, stop: int, parent: int
    ) -> Iterator[tuple[int, int, int]]:
        """Children (start, stop, state) of one segment."""
        weights = self.init[k][parent]
        while start < stop:
            state = int(random.choice(len(weights), p=weights))
            mean = self.means[k][state]
            end = min(stop, start + (1 if mean == 1 else _duration(random, mean)))
            yield start, end, state
            start, weights = end, self.trans[k][parent, state]


def _nested_process(
    random: np.random.Generator, sizes: Sequence[int], durations: Sequence[float] | None
) -> _NestedProcess:
    """A process of random habits; what persists is not followed by itself unless it is alone."""
    lengths = [6.0 ** (len(sizes) - 1 - k) for k in range(len(sizes))] if durations is None else durations
    _check_nested(sizes, lengths)
    means = [
        mean * (np.linspace(0.6, 1.4, size) if mean > 1 else np.ones(size))
        for mean, size in zip(lengths, sizes, strict=True)
    ]
    above = (1, *sizes)
    init = [random.dirichlet(np.ones(size), size=above[k]) for k, size in enumerate(sizes)]
    trans = [
        _habits(random, above[k], size, stay=mean == 1 or size == 1)
        for k, (size, mean) in enumerate(zip(sizes, lengths, strict=True))
    ]
    return _NestedProcess(_nested_topology(sizes, lengths[-1] > 1), means, init, trans)


def _nested_topology(sizes: Sequence[int], persisting: bool) -> Topology:
    names = {
        f"level{d}": [f"{'abcdefghijklmnopqrstuvwxyz'[d - 1]}{s}" for s in range(size)]
        for d, size in enumerate(sizes, start=1)
    }
    limits: dict[str, None] = {f"level{len(sizes)}": None} if persisting else {}
    return Topology(names, max_duration=limits)


def _habits(random: np.random.Generator, parents: int, size: int, stay: bool) -> Floats:
    """Transition probabilities (parents, size, size) of which each parent prefers a few."""
    table = random.gamma(0.5, size=(parents, size, size)) + 1e-3
    if not stay:
        table[:, np.arange(size), np.arange(size)] = 0
    normalised: Floats = table / table.sum(axis=-1, keepdims=True)
    return normalised


def _check_nested(sizes: Sequence[int], durations: Sequence[float]) -> None:
    if not 1 <= len(sizes) <= 26:
        raise ValueError(f"sizes is {sizes!r}; expected 1 to 26 numbers of states, from top to bottom")
    if len(durations) != len(sizes):
        raise ValueError(f"durations has {len(durations)} levels but sizes has {len(sizes)}")
    for k, (size, mean) in enumerate(zip(sizes, durations, strict=True)):
        _check_positive(f"sizes[{k}]", size)
        if not mean >= 1:
            raise ValueError(f"durations[{k}] is {mean}; expected a mean of at least 1 step")


def _check_positive(what: str, value: int) -> None:
    if value < 1:
        raise ValueError(f"{what} is {value}; expected at least 1")


def _draw_number(random: np.random.Generator, what: str, given: int | tuple[int, int]) -> int:
    """The number given, or one drawn from the closed range given."""
    low, high = (given, given) if isinstance(given, (int, np.integer)) else given
    if not 1 <= low <= high:
        raise ValueError(f"{what} is {given!r}; expected a positive number or a range (low, high) of them")
    return int(random.integers(low, high + 1))


# ------------------------------------------------------------------------------
# Files that the user has


@dataclass(frozen=True, repr=False)
class Dataset:
    """Sequences read from a file: what was observed, the label columns as they stand there, and Labels.

    ``columns`` and ``Y`` are parallel to ``tokens``: one entry for each sequence.
    """

    name: str
    tokens: list[list[Any]]  # one word, or one list of feature strings, per time step
    columns: dict[str, list[list[str]]]  # label column -> one label per time step
    Y: list[Labels]
    names: list[str]  # of the sequences
    subjects: list[str] | None = None  # who was recorded, where there are several

    @property
    def topology(self) -> Topology:
        """The topology of all labels; the same for every split of a data set."""
        return self.Y[0].topology

    def __len__(self) -> int:
        return len(self.tokens)

    def __repr__(self) -> str:
        steps = sum(map(len, self.tokens))
        return f"Dataset({self.name}: {len(self)} sequences, {steps} steps, {self.topology})"


def load_conll2000(folder: str | os.PathLike[str] | None = None, split: str = "train") -> Dataset:
    """Read CoNLL-2000: words with part-of-speech tags and chunks, ``split`` train or test.

    Levels are chunk > pos; chunks are read from BIO tags, and a run of O is one segment. The folder, or else
    the environment variable HSCRF_DATA, is the one that holds ``train.txt`` and ``test.txt``, or the folder
    above it if that is named ``conll2000``.
    """
    files = _find_files("conll2000", folder, split, {"train": "train.txt", "test": "test.txt"})
    rows = {path: _read_rows(path, 3, None) for path in files.values() if path.is_file()}
    sentences = rows[files[split]]
    every = [row for some in rows.values() for sentence in some for row in sentence]
    chunks = [*sorted({tag.partition("-")[2] for *_, tag in every} - {""}), "O"]
    topology = Topology({"chunk": chunks, "pos": sorted({pos for _, pos, _ in every})})
    columns = {name: _column(sentences, k) for k, name in ((1, "pos"), (2, "chunk"))}
    Y = [_read_labels(topology, columns, n, {"chunk": "bio"}) for n in range(len(sentences))]
    return Dataset(f"conll2000 {split}", _column(sentences, 0), columns, Y, _numbered(split, Y))


_CITATION_LEVELS = ("field", "part", "name")


def load_citations(folder: str | os.PathLike[str] | None = None, split: str = "train") -> Dataset:
    """Read the UMass citations: tokens with three nested levels, ``split`` train, dev or test.

    Levels are field > part > name, all with segments of any length. Where a level has no label of its own,
    ``Y`` repeats the label above, O if there is none; ``columns`` are as in the file. The folder is found as
    in :func:`load_conll2000`; it holds ``training.tsv``, ``dev.tsv`` and ``testing.tsv``.
    """
    names = {"train": "training.tsv", "dev": "dev.tsv", "test": "testing.tsv"}
    files = _find_files("umass_citation", folder, split, names)
    rows = {path: _read_rows(path, 4, "\t") for path in files.values() if path.is_file()}
    padded = {path: list(map(_padded, sequences)) for path, sequences in rows.items()}
    topology = _citation_topology(padded.values())
    Y = [
        Labels.from_columns(topology, dict(zip(_CITATION_LEVELS, tags, strict=True)), scheme="bio")
        for tags in padded[files[split]]
    ]
    given = rows[files[split]]
    columns = {name: _column(given, k) for k, name in enumerate(_CITATION_LEVELS, start=1)}
    return Dataset(f"umass_citation {split}", _column(given, 0), columns, Y, _numbered(split, Y))


def load_cad120(folder: str | os.PathLike[str] | None = None) -> Dataset:
    """Read CAD-120: spatial relations of hands and objects, labelled activity > subactivity.

    Every video is one activity; subactivities have any length, unlabelled steps are unknown. ``tokens`` has
    one list of feature strings for each step, ``subjects`` the person of each video. The folder is found as
    in :func:`load_conll2000`; it holds ``sequences_step10.tsv``.
    """
    path = _find_files("cad120", folder, "all", {"all": "sequences_step10.tsv"})["all"]
    videos = _read_rows(path, 8, "\t", comment="#seq_id")
    columns = {name: _column(videos, k) for k, name in ((4, "activity"), (5, "subactivity"))}
    states = {
        name: sorted({label for column in columns[name] for label in column} - {"UNLABELLED"}) for name in columns
    }
    topology = Topology(states, max_duration={"subactivity": None})
    tags = {"activity": columns["activity"], "subactivity": list(map(_video_tags, videos))}
    return Dataset(
        name="cad120",
        tokens=[[row[7].split() for row in video] for video in videos],
        columns=columns,
        Y=[_read_labels(topology, tags, n, {"subactivity": "bio"}) for n in range(len(videos))],
        names=[video[0][0] for video in videos],
        subjects=[video[0][1] for video in videos],
    )


def _video_tags(video: list[list[str]]) -> list[str]:
    """Subactivities in BIO notation, ``?`` where unlabelled."""
    return ["?" if row[5] == "UNLABELLED" else ("B-" if row[6] == "1" else "I-") + row[5] for row in video]


def _read_labels(
    topology: Topology, columns: Mapping[str, list[list[str]]], n: int, scheme: Mapping[str, str]
) -> Labels:
    return Labels.from_columns(topology, {name: some[n] for name, some in columns.items()}, scheme=scheme)


def _numbered(split: str, Y: list[Labels]) -> list[str]:
    return [f"{split}-{n}" for n in range(len(Y))]


def _citation_topology(splits: Iterable[list[list[list[str]]]]) -> Topology:
    """States of each level, in the order of their names, O last."""
    every = [tags for sequences in splits for tags in sequences]
    states = {}
    for k, level in enumerate(_CITATION_LEVELS):
        found = {tag.partition("-")[2] for tags in every for tag in tags[k]} - {""}
        states[level] = [*sorted(found), "O"]
    return Topology(states, max_duration={"name": None})


def _padded(rows: list[list[str]]) -> list[list[str]]:
    """BIO tags of the three levels; where a level has none, the segment above is repeated."""
    levels = [[row[k] for row in rows] for k in (1, 2, 3)]
    for k in (1, 2):
        levels[k] = [
            _repeated(levels[k - 1][t], t > 0 and levels[k][t - 1] == "O") if tag == "O" else tag
            for t, tag in enumerate(levels[k])
        ]
    return levels


def _repeated(parent: str, goes_on: bool) -> str:
    """The tag of an unlabelled step below a parent's tag; it goes on if the last step was unlabelled too."""
    return parent if parent == "O" or goes_on else "B-" + parent.partition("-")[2]


# ------------------------------------------------------------------------------
# Finding and reading

_SOURCES = {
    "conll2000": "download train.txt and test.txt from https://www.clips.uantwerpen.be/conll2000/chunking/",
    "umass_citation": (
        "download the UMass citation field data (github.com/mmcmahon13/umass-citation) as columns "
        "token, level 1, 2, 3 in BIO notation"
    ),
    "cad120": (
        "download CAD-120 (Koppula, Gupta and Saxena, 2013) as columns sequence, subject, t, frame, "
        "activity, subactivity, segment_start, tokens"
    ),
}


def _find_files(
    name: str, folder: str | os.PathLike[str] | None, split: str, files: Mapping[str, str]
) -> dict[str, Path]:
    """The path of every split; the one asked for exists."""
    if split not in files:
        raise ValueError(f"split is {split!r}; expected {' or '.join(map(repr, files))}")
    given = folder if folder is not None else os.environ.get("HSCRF_DATA")
    how = f"{_SOURCES[name]} and give its folder as folder=..., or the folder above {name}/ as HSCRF_DATA"
    if not given:
        raise FileNotFoundError(f"no folder is given for {name} and HSCRF_DATA is not set: {how}")
    inner = Path(given) / name
    place = inner if inner.is_dir() else Path(given)
    if not (place / files[split]).is_file():
        raise FileNotFoundError(f"{place} has no file {files[split]}: {how}")
    return {key: place / file for key, file in files.items()}


def _read_rows(path: Path, width: int, separator: str | None, comment: str = "") -> list[list[list[str]]]:
    """Sequences of rows of columns, from a file with blank lines between sequences."""
    sequences: list[list[list[str]]] = [[]]
    with path.open(encoding="utf-8") as file:
        for number, line in enumerate(file, start=1):
            row = line.rstrip("\r\n").split(separator)
            if not line.strip():
                sequences.append([])
            elif comment and line.startswith(comment):
                continue
            elif len(row) != width:
                raise ValueError(f"{path}, line {number} has {len(row)} columns; expected {width}")
            else:
                sequences[-1].append(row)
    return [sequence for sequence in sequences if sequence]


def _column(sequences: list[list[list[str]]], k: int) -> list[list[str]]:
    return [[row[k] for row in sequence] for sequence in sequences]

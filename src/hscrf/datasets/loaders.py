"""Data sets of others, read from a folder."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hscrf.errors import several
from hscrf.labels.labels import Labels
from hscrf.topology import Topology


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
        return f"Dataset({self.name}: {several(len(self), 'sequence')}, {several(steps, 'step')}, {self.topology})"


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

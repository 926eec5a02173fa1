"""Public data sets, read from a folder."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from hscrf.datasets.files import find_files, read_row_sequences, sequence_names, take_column
from hscrf.errors import several
from hscrf.labels.labels import Labels
from hscrf.topology import Topology


@dataclass(frozen=True, repr=False)
class Dataset:
    """Sequences that were read from a file, with their labels.

    Parameters
    ----------
    name : str
        Name of the data set and split.
    tokens : list
        Observations of each sequence: a word or a list of feature strings for each step, or an array of numbers.
    columns : dict from str to list of list of str
        Label columns as in the file: for each sequence, one label for each step.
    Y : list of Labels
        Labels of each sequence.
    names : list of str
        Name of each sequence.
    subjects : list of str, optional
        The person of each sequence, if there are several.
    """

    name: str
    tokens: list[Any]  # of each sequence: a word or a list of feature strings per time step, or an array of numbers
    columns: dict[str, list[list[str]]]  # label column -> one label per time step
    Y: list[Labels]
    names: list[str]  # of the sequences
    subjects: list[str] | None = None  # the recorded person of each sequence, if there are several

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
    """Read CoNLL-2000: words with part-of-speech tags and chunks, labelled chunk > pos.

    Chunks are read from BIO tags. A run of O is one segment.

    Parameters
    ----------
    folder : path, optional
        The folder that holds ``train.txt`` and ``test.txt``, or its parent if it is named ``conll2000``. The default is
        the environment variable HSCRF_DATA.
    split : {"train", "test"}
        Which sequences to read.

    Returns
    -------
    Dataset
        Words, columns ``pos`` and ``chunk``, and Labels.

    Raises
    ------
    FileNotFoundError
        If the folder is not known or does not contain the file.
    """
    files = find_files("conll2000", folder, split, {"train": "train.txt", "test": "test.txt"})
    rows = {path: read_row_sequences(path, 3, None) for path in files.values() if path.is_file()}
    sentences = rows[files[split]]
    every = [row for some in rows.values() for sentence in some for row in sentence]
    chunks = [*sorted({tag.partition("-")[2] for *_, tag in every} - {""}), "O"]
    topology = Topology({"chunk": chunks, "pos": sorted({pos for _, pos, _ in every})})
    columns = {name: take_column(sentences, k) for k, name in ((1, "pos"), (2, "chunk"))}
    Y = [_read_labels(topology, columns, n, {"chunk": "bio"}) for n in range(len(sentences))]
    return Dataset(f"conll2000 {split}", take_column(sentences, 0), columns, Y, sequence_names(split, Y))


_CITATION_LEVELS = ("field", "part", "name")


def load_citations(folder: str | os.PathLike[str] | None = None, split: str = "train") -> Dataset:
    """Read the UMass citations: tokens with three nested levels, labelled field > part > name.

    Segments of all levels have any length. Where a level has no label, ``Y`` repeats the label above, or O.

    Parameters
    ----------
    folder : path, optional
        The folder that holds ``training.tsv``, ``dev.tsv`` and ``testing.tsv``, or its parent if it is named
        ``umass_citation``. The default is the environment variable HSCRF_DATA.
    split : {"train", "dev", "test"}
        Which sequences to read.

    Returns
    -------
    Dataset
        Tokens, columns as in the file, and Labels.

    Raises
    ------
    FileNotFoundError
        If the folder is not known or does not contain the file.
    """
    names = {"train": "training.tsv", "dev": "dev.tsv", "test": "testing.tsv"}
    files = find_files("umass_citation", folder, split, names)
    rows = {path: read_row_sequences(path, 4, "\t") for path in files.values() if path.is_file()}
    padded = {path: list(map(_padded, sequences)) for path, sequences in rows.items()}
    topology = _citation_topology(padded.values())
    Y = [
        Labels.from_columns(topology, dict(zip(_CITATION_LEVELS, tags, strict=True)), scheme="bio")
        for tags in padded[files[split]]
    ]
    given = rows[files[split]]
    columns = {name: take_column(given, k) for k, name in enumerate(_CITATION_LEVELS, start=1)}
    return Dataset(f"umass_citation {split}", take_column(given, 0), columns, Y, sequence_names(split, Y))


def load_cad120(folder: str | os.PathLike[str] | None = None) -> Dataset:
    """Read CAD-120: spatial relations of hands and objects, labelled activity > subactivity.

    Every video is one activity. Subactivities have any length. Steps without a label are unknown.

    Parameters
    ----------
    folder : path, optional
        The folder that holds ``sequences_step10.tsv``, or its parent if it is named ``cad120``. The default is the
        environment variable HSCRF_DATA.

    Returns
    -------
    Dataset
        ``tokens`` has a list of feature strings for each step, ``subjects`` the person of each video.

    Raises
    ------
    FileNotFoundError
        If the folder is not known or does not contain the file.
    """
    path = find_files("cad120", folder, "all", {"all": "sequences_step10.tsv"})["all"]
    videos = read_row_sequences(path, 8, "\t", comment="#seq_id")
    columns = {name: take_column(videos, k) for k, name in ((4, "activity"), (5, "subactivity"))}
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
    """The tag of an unlabelled step below a parent's tag; it continues a segment that is unlabelled too."""
    return parent if parent == "O" or goes_on else "B-" + parent.partition("-")[2]

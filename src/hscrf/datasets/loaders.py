"""Public data sets, read from a folder."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hscrf.datasets.files import find_files, read_row_sequences, sequence_names, take_column
from hscrf.errors import several
from hscrf.labels.labels import Labels
from hscrf.topology import Topology

_CITATION_LEVELS = ("field", "part", "name")
_MISSPELT = {"surename": "surname", "forenname": "forename", "firstname": "forename", "rolename": "roleName"}
Sequences = list[list[list[str]]]  # cells of rows of sequences


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
    tokens: list[Any]
    columns: dict[str, list[list[str]]]
    Y: list[Labels]
    names: list[str]
    subjects: list[str] | None = None

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
    given, every = _read_splits("conll2000", folder, split, {"train": "train.txt", "test": "test.txt"}, 3)
    rows = [row for sentence in every for row in sentence]
    topology = Topology({"chunk": _states(chunk for *_, chunk in rows), "pos": sorted({pos for _, pos, _ in rows})})
    columns = {"pos": take_column(given, 1), "chunk": take_column(given, 2)}
    Y = _read_labels(topology, columns, {"chunk": "bio"})
    return Dataset(f"conll2000 {split}", take_column(given, 0), columns, Y, sequence_names(split, Y))


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
    given, every = _read_splits("umass_citation", folder, split, names, 4, "\t")
    padded = list(map(_padded, every))
    states = {level: _states(tag for tags in padded for tag in tags[k]) for k, level in enumerate(_CITATION_LEVELS)}
    topology = Topology(states, max_duration={"name": None})
    tags = dict(zip(_CITATION_LEVELS, zip(*map(_padded, given), strict=True), strict=True))
    Y = _read_labels(topology, tags, "bio")
    columns = {name: take_column(given, k) for k, name in enumerate(_CITATION_LEVELS, start=1)}
    return Dataset(f"umass_citation {split}", take_column(given, 0), columns, Y, sequence_names(split, Y))


def load_author_names(folder: str | os.PathLike[str] | None = None, split: str = "train") -> Dataset:
    """Read the author names of GROBID: tokens of the headers of papers, labelled person > part.

    Parts are forename, middlename, surname, roleName, suffix and marker, or O between them. Four misspelt names of
    parts in the file are corrected. :func:`fetch_author_names` makes the files.

    Parameters
    ----------
    folder : path, optional
        The folder that holds ``train.tsv`` and ``test.tsv``, or its parent if it is named ``author_names``. The default
        is the environment variable HSCRF_DATA.
    split : {"train", "test"}
        Which sequences to read.

    Returns
    -------
    Dataset
        Words, BIO columns ``person`` and ``part``, and Labels.

    Raises
    ------
    FileNotFoundError
        If the folder is not known or does not contain the file.
    """
    names = {"train": "train.tsv", "test": "test.tsv"}
    given, every = _read_splits("author_names", folder, split, names, 3, "\t", comment="# source\t")
    for sequence in every:
        for row in sequence:
            row[2] = _mended(row[2])
    rows = [row for sequence in every for row in sequence]
    states = {level: _states(row[k] for row in rows) for k, level in ((1, "person"), (2, "part"))}
    topology = Topology(states, max_duration={"part": None})
    columns = {"person": take_column(given, 1), "part": take_column(given, 2)}
    Y = _read_labels(topology, columns, "bio")
    return Dataset(f"author_names {split}", take_column(given, 0), columns, Y, sequence_names(split, Y))


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
        Y=_read_labels(topology, tags, {"subactivity": "bio"}),
        names=[video[0][0] for video in videos],
        subjects=[video[0][1] for video in videos],
    )


def _video_tags(video: list[list[str]]) -> list[str]:
    """Subactivities in BIO notation, ``?`` where unlabelled."""
    return ["?" if row[5] == "UNLABELLED" else ("B-" if row[6] == "1" else "I-") + row[5] for row in video]


def _mended(tag: str) -> str:
    """A tag with the right name of its part."""
    prefix, hyphen, part = tag.partition("-")
    return prefix + hyphen + _MISSPELT.get(part, part)


def _read_splits(
    name: str,
    folder: str | os.PathLike[str] | None,
    split: str,
    files: Mapping[str, str],
    width: int,
    separator: str | None = None,
    comment: str = "",
) -> tuple[Sequences, Sequences]:
    """The rows of columns of each sequence of a split, and those of all splits that are there."""
    paths = find_files(name, folder, split, files)
    rows = {key: read_row_sequences(path, width, separator, comment) for key, path in paths.items() if path.is_file()}
    return rows[split], [sequence for sequences in rows.values() for sequence in sequences]


def _states(tags: Iterable[str]) -> list[str]:
    """The states of BIO tags in the order of their names, O last."""
    return [*sorted({tag.partition("-")[2] for tag in tags} - {""}), "O"]


def _read_labels(
    topology: Topology, columns: Mapping[str, Sequence[list[str]]], scheme: str | Mapping[str, str]
) -> list[Labels]:
    """The labels of all sequences, from a column of each level."""
    tags = zip(*columns.values(), strict=True)
    return [Labels.from_columns(topology, dict(zip(columns, own, strict=True)), scheme=scheme) for own in tags]


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

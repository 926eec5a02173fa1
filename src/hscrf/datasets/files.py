"""Find the files of a data set, and read files of columns."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

SOURCES = {
    "conll2000": "download train.txt and test.txt from https://www.clips.uantwerpen.be/conll2000/chunking/",
    "umass_citation": (
        "download the UMass citation field data (github.com/mmcmahon13/umass-citation) as columns "
        "token, level 1, 2, 3 in BIO notation"
    ),
    "author_names": "call hscrf.datasets.fetch_author_names(), which makes train.tsv and test.tsv,",
    "ludb": "call hscrf.datasets.fetch_ecg(), which makes signals_100hz.npz and labels.tsv,",
    "cad120": (
        "download CAD-120 (Koppula, Gupta and Saxena, 2013) as columns sequence, subject, t, frame, "
        "activity, subactivity, segment_start, tokens"
    ),
}


def place_of(name: str, folder: str | os.PathLike[str]) -> Path:
    """The folder of a data set: the one named like it in ``folder``, or ``folder`` itself."""
    inner = Path(folder) / name
    return inner if inner.is_dir() else Path(folder)


def check_split(split: str, known: Sequence[str]) -> None:
    """Raise an error for an unknown split."""
    if split not in known:
        raise ValueError(f"split is {split!r}; expected {' or '.join(map(repr, known))}")


def find_files(
    name: str, folder: str | os.PathLike[str] | None, split: str, files: Mapping[str, str]
) -> dict[str, Path]:
    """The path of every split; that of the given split exists."""
    check_split(split, list(files))
    given = folder if folder is not None else os.environ.get("HSCRF_DATA")
    how = f"{SOURCES[name]} and give its folder as folder=..., or the folder above {name}/ as HSCRF_DATA"
    if not given:
        raise FileNotFoundError(f"no folder is given for {name} and HSCRF_DATA is not set: {how}")
    place = place_of(name, given)
    if not (place / files[split]).is_file():
        raise FileNotFoundError(f"{place} has no file {files[split]}: {how}")
    return {key: place / file for key, file in files.items()}


def read_row_sequences(path: Path, width: int, separator: str | None, comment: str = "") -> list[list[list[str]]]:
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


def take_column(sequences: list[list[list[str]]], k: int) -> list[list[str]]:
    """Return column k of each sequence."""
    return [[row[k] for row in sequence] for sequence in sequences]


def sequence_names(split: str, Y: Sequence[Any]) -> list[str]:
    """Return names made of the split and the number of the sequence."""
    return [f"{split}-{n}" for n in range(len(Y))]

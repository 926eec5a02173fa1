"""Electrocardiograms, read from a folder."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from hscrf.datasets.files import check_split, find_files
from hscrf.datasets.loaders import Dataset
from hscrf.labels.labels import Labels
from hscrf.topology import Topology

SIGNALS, BORDERS = "signals_100hz.npz", "labels.tsv"  # the files of the ECG
PER_STEP = 2  # samples of the file in a step of 20 ms

Segment = tuple[int, int, str]


def load_ecg(folder: str | os.PathLike[str] | None = None, split: str = "train") -> Dataset:
    """Read the electrocardiograms of LUDB in steps of 20 ms, labelled beat > wave.

    The name of a beat lists its waves: PQRST, QRST, PQRS or QRS. A wave is P, QRS or T, or the interval between two of
    them: PQ, ST or TP. Steps before the first and after the last annotated wave are unknown, so these labels are
    partial. Odd records are for training, even ones for testing. :func:`fetch_ecg` makes the files.

    Parameters
    ----------
    folder : path, optional
        The folder that holds ``signals_100hz.npz`` and ``labels.tsv``, or its parent if it is named ``ludb``. The
        default is the environment variable HSCRF_DATA.
    split : {"train", "test"}
        Which records to read.

    Returns
    -------
    Dataset
        ``tokens`` has an array (500, 12) of microvolts for each record. Its columns are the leads i, ii, iii, avr, avl,
        avf and v1 to v6. ``columns`` are ``rhythm`` (one for the record) and the BIO tags of ``beat`` and ``wave``,
        with ``?`` for unknown. ``names`` are the numbers of the records. Every record is of a different person.

    Raises
    ------
    FileNotFoundError
        If the folder is not known or does not contain one of the files.
    """
    check_split(split, ["train", "test"])
    places = {name: find_files("ludb", folder, name, {name: name})[name] for name in (SIGNALS, BORDERS)}
    rhythms, spans = _read_borders(places[BORDERS])
    topology = Topology(
        {
            level: sorted({label for found in spans.values() for *_, label in found[level]})
            for level in ("beat", "wave")
        },
        max_duration={"wave": None},
    )
    side = 1 if split == "train" else 0
    names = [record for record in sorted(spans, key=int) if int(record) % 2 == side]
    with np.load(places[SIGNALS], allow_pickle=False) as signals:
        tokens = [_steps(signals[f"r{record}"]) for record in names]
    lengths = [len(values) for values in tokens]
    columns = {"rhythm": [[rhythms[name]] * length for name, length in zip(names, lengths, strict=True)]}
    for level in ("beat", "wave"):
        columns[level] = [_tags(spans[name][level], length) for name, length in zip(names, lengths, strict=True)]
    Y = [
        Labels.from_segments(topology, spans[name], length=length) for name, length in zip(names, lengths, strict=True)
    ]
    return Dataset(f"ludb {split}", tokens, columns, Y, names, names)


def _read_borders(path: Path) -> tuple[dict[str, str], dict[str, dict[str, list[Segment]]]]:
    """The rhythm of each record, and its segments of each level."""
    rhythms: dict[str, str] = {}
    spans: dict[str, dict[str, list[Segment]]] = {}
    lines = path.read_text(encoding="utf-8").splitlines()
    for number, line in enumerate(lines[1:], start=2):
        row = line.split("\t")
        if len(row) != 6 or row[2] not in ("beat", "wave"):
            raise ValueError(
                f"{path}, line {number} is {line!r}; expected record, rhythm, beat or wave, start, stop, label"
            )
        record, rhythm, level, start, stop, label = row
        rhythms[record] = rhythm
        spans.setdefault(record, {"beat": [], "wave": []})[level].append((int(start), int(stop), label))
    return rhythms, spans


def _steps(signal: np.ndarray) -> np.ndarray:
    """Means of the samples in each step: (T, leads) microvolts."""
    found: np.ndarray = signal.reshape(-1, PER_STEP, signal.shape[1]).mean(axis=1)
    return found


def _tags(spans: Sequence[Segment], length: int) -> list[str]:
    """A BIO column with ``?`` where no segment lies."""
    tags = ["?"] * length
    for start, stop, label in spans:
        tags[start:stop] = [f"B-{label}", *[f"I-{label}"] * (stop - start - 1)]
    return tags

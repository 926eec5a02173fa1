"""Electrocardiograms of PhysioNet: convert headers, signals and annotations in WFDB files to the files of the loader.

The formats are those of the WFDB library. Signals are in format 16: samples of all leads in turn, 16 bits each,
little-endian. Annotations are in the MIT format, 16 bits each: six for the type, ten for the samples since the
annotation before.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np

from hscrf.arrays import Floats
from hscrf.files.replacing import replaced

LEADS = ("i", "ii", "iii", "avr", "avl", "avf", "v1", "v2", "v3", "v4", "v5", "v6")
ANNOTATED = "ii"  # the lead whose annotations are the labels
RECORDS = range(1, 201)
RATE, PER_SAMPLE, PER_STEP = 500, 5, 10  # samples per second, and in a sample and a step of the files we write
ONSET, OFFSET = 39, 40  # types of annotations: "(" and ")"
WAVES = {24: "P", 1: "QRS", 27: "T"}
SKIP, NUMBER, SUBTYPE, CHANNEL, AUX = 59, 60, 61, 62, 63
BETWEEN = {"P": "PQ", "QRS": "ST", "T": "TP"}  # the interval after each wave

Span = tuple[int, int, str]


def convert_ecg(originals: Path, folder: Path, records: Sequence[int] = RECORDS) -> None:
    """Write signals of 100 Hz in microvolts, and segments of beats and waves in steps of 20 ms."""
    signals: dict[str, np.ndarray] = {}
    lines = ["record\trhythm\tlevel\tstart\tstop\tlabel\n"]
    for record in records:
        header = (originals / "data" / f"{record}.hea").read_text(encoding="utf-8")
        signal = read_signal(header, (originals / "data" / f"{record}.dat").read_bytes())
        signals[f"r{record}"] = np.round(1000 * signal.reshape(-1, PER_SAMPLE, len(LEADS)).mean(axis=1)).astype(
            np.int16
        )
        waves = read_waves((originals / "data" / f"{record}.{ANNOTATED}").read_bytes())
        for level, spans in beats_and_waves(waves).items():
            lines += [
                f"{record}\t{rhythm(header)}\t{level}\t{start}\t{stop}\t{label}\n" for start, stop, label in spans
            ]
    with replaced(folder / "labels.tsv") as name:
        Path(name).write_text("".join(lines), encoding="utf-8", newline="\n")
    with replaced(folder / "signals_100hz.npz") as name:
        np.savez_compressed(name, **signals)  # type: ignore[arg-type]


def rhythm(header: str) -> str:
    r"""The rhythm that a header names.

    >>> rhythm("1 12 500 5000\n#<age>: 51\n#Rhythm: Sinus bradycardia.\n")
    'Sinus bradycardia'
    """
    found = re.search(r"^#\s*Rhythm:\s*(.*?)\.?\s*$", header, re.MULTILINE)
    return found[1] if found else "unknown"


def read_signal(header: str, data: bytes) -> Floats:
    """Millivolts (T, leads) of a record in format 16."""
    lines = [line for line in header.splitlines() if line.strip() and not line.startswith("#")]
    name, n_leads, rate, length = lines[0].split()[:4]
    leads = [line.split() for line in lines[1:]]
    if [lead[-1] for lead in leads] != list(LEADS) or int(n_leads) != len(LEADS) or float(rate) != RATE:
        raise ValueError(
            f"record {name} has leads {[lead[-1] for lead in leads]} at {rate} Hz; expected LUDB's at {RATE}"
        )
    samples = np.frombuffer(data, dtype="<i2")
    if len(samples) != int(length) * len(LEADS) or any(lead[1] != "16" for lead in leads):
        raise ValueError(
            f"record {name} has {len(samples)} samples in {leads[0][1]}; expected {length} x 12 in format 16"
        )
    scales = [re.fullmatch(r"([\d.eE+-]+)\((-?\d+)\)/mV", lead[2]) for lead in leads]
    if None in scales:
        raise ValueError(f"record {name} has units {[lead[2] for lead in leads]}; expected gain(baseline)/mV")
    gain, baseline = (np.array([float(scale[k]) for scale in scales if scale]) for k in (1, 2))
    return (samples.reshape(-1, len(LEADS)) - baseline) / gain


def read_wave_annotations(data: bytes) -> list[tuple[int, int]]:
    """Sample and type of each annotation of a file in the MIT format."""
    words = np.frombuffer(data[: len(data) // 2 * 2], dtype="<u2").tolist()
    found, time, k = [], 0, 0
    while k < len(words) and words[k]:
        kind, value = words[k] >> 10, words[k] & 1023
        k += 1
        if kind == SKIP:  # a longer interval follows, its upper half first
            interval = (words[k] << 16) + words[k + 1]
            time += interval - (1 << 32) if interval >= 1 << 31 else interval
            k += 2
        elif kind == AUX:  # a text of that many bytes
            k += (value + 1) // 2
        elif kind not in (NUMBER, SUBTYPE, CHANNEL):
            time += value
            found.append((time, kind))
    return found


def read_waves(data: bytes) -> list[Span]:
    """Onset, offset and name of each wave: of every QRS, of a P right before one and of a T right after one."""
    found: list[Span] = []
    onset = name = None
    for sample, kind in read_wave_annotations(data):
        if kind == ONSET:
            onset, name = sample, None
        elif kind in WAVES:
            name = WAVES[kind]
        elif kind == OFFSET and onset is not None and name is not None:
            found.append((onset, sample, name))
            onset = name = None
    kept = [span for span, (*_, after) in pairwise([*found, (0, 0, "")]) if span[2] != "P" or after == "QRS"]
    return [span for (*_, before), span in pairwise([(0, 0, ""), *kept]) if span[2] != "T" or before == "QRS"]


def beats_and_waves(waves: list[Span]) -> dict[str, list[Span]]:
    """Beats and waves without gaps, in steps; pieces without a step after rounding are dropped.

    >>> waves = [(100, 150, "P"), (170, 220, "QRS"), (300, 400, "T"), (600, 650, "P"), (680, 720, "QRS")]
    >>> beats_and_waves(waves)["beat"]
    [(10, 60, 'PQRST'), (60, 72, 'PQRS')]
    """
    steps = [(round(start / PER_STEP), round(stop / PER_STEP), name) for start, stop, name in waves]
    chain = [
        span
        for (start, stop, name), (after, *_) in pairwise([*steps, (steps[-1][1], 0, "")] if steps else [])
        for span in ((start, min(stop, after), name), (stop, after, BETWEEN[name]))
    ]
    beats: list[tuple[int, str]] = []  # where each begins, and the waves that it has
    for start, _, name in steps:
        if not beats or name == "P" or (name == "QRS" and "QRS" in beats[-1][1]):
            beats.append((start, name))
        else:
            beats[-1] = (beats[-1][0], beats[-1][1] + name)
    borders = [*beats, (steps[-1][1], "")] if steps else []
    named = [(start, stop, name) for (start, name), (stop, _) in pairwise(borders)]
    return {
        "beat": [span for span in named if span[0] < span[1]],
        "wave": [span for span in chain if span[0] < span[1]],
    }

"""Sound as a sequence of steps: the energy of each step, in total and in bands of frequency."""

from __future__ import annotations

import itertools
import os
import wave
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from hscrf.errors import DataFileError
from hscrf.io.documents import Document

BANDS = 12
LOWEST, HIGHEST = 80.0, 8000.0  # Hz: the edges of the bands
FAINTEST = 1e-10  # added to energies, so that silence has a logarithm
LONGEST = 4 * 3600  # seconds of a recording


def read_audio(path: str | os.PathLike[str], rate: float = 50.0) -> Document:
    """Read a WAV file as a sequence of ``rate`` steps per second.

    Each step has the logarithm of its energy, and of its energy in 12 bands of frequency that are equally wide in mel.
    The window of a step is a Hann window of twice its length around its middle. Channels are averaged.

    Parameters
    ----------
    path : str or path
        A WAV file of 8, 16, 24 or 32 bits of linear PCM.
    rate : float
        Steps per second.

    Returns
    -------
    Document
        ``tokens`` is a list of rows of 13 numbers; ``columns`` names them; ``name`` is the file's name without its
        ending.

    Raises
    ------
    DataFileError
        If the file is not a readable WAV file, has no sound, or lasts longer than four hours.
    """
    file = os.fspath(path)
    samples, frequency = _samples(file)
    if not 1 <= rate <= frequency:
        raise ValueError(f"rate is {rate}, expected 1 to {frequency} steps per second: the samples of {file}")
    table, names = band_energies(samples, frequency, rate)
    return Document(table.tolist(), name=Path(file).stem, columns=names, file=file)


def band_energies(
    samples: NDArray[np.float64], frequency: int, rate: float
) -> tuple[NDArray[np.float64], tuple[str, ...]]:
    """Log energies (T, 1 + bands) of sound (n,) in steps, and the names of the columns."""
    steps = max(1, int(np.floor(len(samples) / frequency * rate)))
    width = max(2, round(2 * frequency / rate))
    centre = ((np.arange(steps) + 0.5) * frequency / rate).astype(np.int64)
    padded = np.concatenate([np.zeros(width), samples, np.zeros(width)])
    window = np.hanning(width)
    shape = np.fft.rfftfreq(width, 1 / frequency)
    edges = _edges(min(HIGHEST, frequency / 2))
    member = np.searchsorted(edges, shape, side="right") - 1
    table = np.empty((steps, BANDS + 1))
    for first in range(0, steps, 4096):  # a block at a time: an hour of sound has many steps
        part = centre[first : first + 4096]
        frames = padded[part[:, None] + (width - width // 2) + np.arange(width)] * window
        power = np.abs(np.fft.rfft(frames, axis=1)) ** 2 / width
        block = table[first : first + 4096]
        block[:, 0] = power.sum(axis=1)
        for band in range(BANDS):
            block[:, 1 + band] = power[:, member == band].sum(axis=1)
    names = ("energy", *(f"{low:.0f}-{high:.0f} Hz" for low, high in itertools.pairwise(edges)))
    return np.log(table + FAINTEST), names


def _edges(highest: float) -> NDArray[np.float64]:
    """Edges (bands + 1,) in Hz that are equally far from each other in mel."""
    low, high = (2595 * np.log10(1 + hertz / 700) for hertz in (LOWEST, highest))
    return 700 * (10 ** (np.linspace(low, high, BANDS + 1) / 2595) - 1)


def _samples(file: str) -> tuple[NDArray[np.float64], int]:
    """The sound of a WAV file (n,), between -1 and 1, and its samples per second."""
    try:
        with wave.open(file, "rb") as sound:
            channels, width, frequency, count = sound.getparams()[:4]
            if not count or not frequency:
                raise DataFileError(file, 1, "there is no sound in it")
            if count > LONGEST * frequency:
                raise DataFileError(file, 1, f"it lasts longer than {LONGEST // 3600} hours: cut it into parts")
            raw = sound.readframes(count)
    except (wave.Error, EOFError, RuntimeError) as error:  # a RuntimeError if the size of a chunk is wrong
        raise DataFileError(file, 1, f"not a WAV file that can be read: {str(error) or 'it ends too early'}") from None
    if len(raw) != count * channels * width:
        found = len(raw) // (channels * width)
        raise DataFileError(file, 1, f"there are {found} samples, but its header says {count}: it was cut off")
    if width == 3:
        padded = np.zeros((len(raw) // 3, 4), dtype=np.uint8)
        padded[:, 1:] = np.frombuffer(raw[: len(raw) // 3 * 3], dtype=np.uint8).reshape(-1, 3)
        values = padded.view("<i4").ravel() / 2.0**31
    elif width in (1, 2, 4):
        kind = {1: "u1", 2: "<i2", 4: "<i4"}[width]
        values = np.frombuffer(raw[: len(raw) // width * width], dtype=kind).astype(np.float64)
        values = (values - 128) / 128 if width == 1 else values / 2.0 ** (8 * width - 1)
    else:
        raise DataFileError(file, 1, f"its samples have {8 * width} bits, expected 8, 16, 24 or 32")
    return values[: values.size // channels * channels].reshape(-1, channels).mean(axis=1), frequency

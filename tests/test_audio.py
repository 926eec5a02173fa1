"""Sound as steps: energies against a plain transform, every width of samples, and files that are not sound."""

import wave

import numpy as np
import pytest

from hscrf.errors import DataFileError
from hscrf.io import read_audio
from hscrf.io.audio import BANDS, band_energies


def write_wave(path, samples, frequency=8000, width=2, channels=1):
    """Write samples (n,) between -1 and 1 as a WAV file, the same in each channel."""
    values = np.repeat(samples, channels)
    if width == 1:
        raw = np.round(values * 127 + 128).astype("u1").tobytes()
    elif width == 3:
        raw = np.round(values * (2**23 - 1)).astype("<i4").view("u1").reshape(-1, 4)[:, :3].tobytes()
    else:
        raw = np.round(values * (2 ** (8 * width - 1) - 1)).astype({2: "<i2", 4: "<i4"}[width]).tobytes()
    with wave.open(str(path), "wb") as file:
        file.setnchannels(channels)
        file.setsampwidth(width)
        file.setframerate(frequency)
        file.writeframes(raw)
    return path


def tone(hertz, seconds=1.0, frequency=8000):
    return 0.5 * np.sin(2 * np.pi * hertz * np.arange(int(seconds * frequency)) / frequency)


def test_energies_equal_a_plain_transform():
    samples = np.random.default_rng(0).normal(size=1600)
    table, names = band_energies(samples, 8000, 50.0)
    width = 320
    for t in range(table.shape[0]):
        centre = int((t + 0.5) * 160)
        frame = [samples[n] if 0 <= n < 1600 else 0.0 for n in range(centre - width // 2, centre + width - width // 2)]
        frame = np.array(frame) * np.hanning(width)
        bins = np.arange(width // 2 + 1)
        power = np.abs(np.exp(-2j * np.pi * np.outer(bins, np.arange(width)) / width) @ frame) ** 2 / width
        np.testing.assert_allclose(table[t, 0], np.log(power.sum() + 1e-10), rtol=1e-9)
        for band, name in enumerate(names[1:]):
            low, high = (float(part) for part in name.removesuffix(" Hz").split("-"))
            inside = (bins * 25.0 >= low - 0.5) & (bins * 25.0 < high + 0.5)
            loose = (np.abs(bins * 25.0 - low) > 1) & (np.abs(bins * 25.0 - high) > 1)
            if (inside == (inside & loose)).all():
                np.testing.assert_allclose(table[t, 1 + band], np.log(power[inside].sum() + 1e-10), rtol=1e-6)


@pytest.mark.parametrize("width", [1, 2, 3, 4])
@pytest.mark.parametrize("channels", [1, 2])
def test_a_tone_is_loudest_in_its_band(tmp_path, width, channels):
    document = read_audio(write_wave(tmp_path / "a.wav", tone(1000), width=width, channels=channels), rate=20)
    rows = np.array(document.tokens)
    assert rows.shape == (20, BANDS + 1)
    assert document.name == "a"
    low, high = (float(part) for part in document.columns[1 + rows[5, 1:].argmax()].removesuffix(" Hz").split("-"))
    assert low <= 1000 <= high
    np.testing.assert_allclose(rows[5, 0], rows[12, 0], rtol=1e-2)


def test_files_that_are_no_sound_are_refused_with_their_name(tmp_path):
    for name, content in (
        ("empty.wav", b""),
        ("text.wav", b"not a wave at all"),
        ("cut.wav", b"RIFF\x24\x00\x00\x00WAVE"),
    ):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(DataFileError, match=name):
            read_audio(tmp_path / name)
    silent = write_wave(tmp_path / "none.wav", np.zeros(0))
    with pytest.raises(DataFileError, match="no sound"):
        read_audio(silent)
    with pytest.raises(ValueError, match=r"rate is 0\.5"):
        read_audio(write_wave(tmp_path / "b.wav", tone(500)), rate=0.5)


def test_sound_that_was_cut_off_is_refused(tmp_path):
    path = write_wave(tmp_path / "a.wav", tone(1000))
    content = path.read_bytes()
    path.write_bytes(content[:-1000])
    with pytest.raises(DataFileError, match="there are 7500 samples, but its header says 8000: it was cut off"):
        read_audio(path)
    path.write_bytes(content[:40] + (4).to_bytes(4, "little") + content[44:])  # another chunk would begin in the sound
    assert len(read_audio(path)) == 1
    path.write_bytes(content[:16] + b"\xff\xff\xff\x7f" + content[20:])
    with pytest.raises(DataFileError, match="not a WAV file that can be read"):
        read_audio(path)

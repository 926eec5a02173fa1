"""Forty recordings from raw files to a better model: ``python benchmarks/studio_trial.py [--pictures FOLDER]``.

Recordings with five sounds in three phases are made, and the studio is started by its command. A script then works in a
real browser as a person would: it drags over steps or moves borders with the mouse, presses digits and ``A``, and looks
only at what the page shows. It knows where the sounds are to a step. It tells how many fixes each recording took, what
did not happen as meant, how much of the exported segments is right, and how the first and the last model label ten new
recordings.
"""

from __future__ import annotations

import argparse
import csv
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from playwright.sync_api import sync_playwright

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

import hscrf
from browsing import ROOM, PlaywrightError, Tab, start_browser
from hscrf.io.audio import band_energies
from test_audio import write_wave

RATE, FREQUENCY = 20, 16_000
SOUNDS = {"rest": ["wind", "rain"], "call": ["chirp", "wind"], "song": ["trill", "whistle", "chirp"]}
NAMES = {"phase": list(SOUNDS), "sound": ["wind", "rain", "chirp", "trill", "whistle"]}
LABELS = 'lasting = ["sound"]\n[levels]\n' + "".join(f"{level} = {names}\n" for level, names in NAMES.items())
LABELS += "[children.phase]\n" + "".join(f"{phase} = {sounds}\n" for phase, sounds in SOUNDS.items())
NEAR = 2  # steps that a border may be off
Truth = dict[str, list[tuple[int, int, str]]]


def sound(name: str, n: int, rng: Any) -> Any:
    """Samples (n,) of a sound."""
    t = np.arange(n) / FREQUENCY
    if name == "rain":
        return 0.06 * rng.normal(size=n)
    if name == "wind":
        walk = np.convolve(rng.normal(size=n), np.ones(200) / 200, "same")
        return 0.1 * walk / walk.std()
    if name == "trill":
        return 0.3 * np.sin(2 * np.pi * 2200 * t) * (np.sin(2 * np.pi * 18 * t) > 0)
    pitch = 3000 + 1500 * np.sin(2 * np.pi * 6 * t) if name == "chirp" else 1000 + 900 * np.arange(n) / n
    return 0.3 * np.sin(2 * np.pi * np.cumsum(pitch) / FREQUENCY)


def recording(rng: Any) -> tuple[Any, Truth]:
    """Samples of 12 to 30 seconds, and the segments of both levels in steps."""
    parts: list[Any] = []
    truth: Truth = {"phase": [], "sound": []}
    at, phase, long = 0, None, rng.uniform(12, 28) * RATE
    while at < long:
        phase = rng.choice([name for name in SOUNDS if name != phase])
        begin, last = at, None
        for _ in range(rng.integers(1, 4)):
            last = rng.choice([name for name in SOUNDS[phase] if name != last])
            steps = int(rng.integers(12, 50))
            parts.append(sound(last, steps * FREQUENCY // RATE, rng))
            truth["sound"].append((at, at + steps, str(last)))
            at += steps
        truth["phase"].append((begin, at, str(phase)))
    samples = np.concatenate(parts)
    return np.clip(samples + 0.01 * rng.normal(size=len(samples)), -1, 1), truth


class Annotator:
    """Makes the page show what is true."""

    def __init__(self, tab: Tab) -> None:
        self.tab, self.fixes = tab, 0
        self.stumbles: list[str] = []

    def label(self, truth: Truth) -> None:
        """Fix what is wrong, the phases first, until nothing is."""
        for _ in range(60):
            view = self.tab.view()
            if view["conflict"]:  # the page shows which labels contradict each other, and the last one is taken back
                self.stumbles.append(view["conflict"]["message"])
                self.tab.fix("z")
                view = self.tab.view()
            todo = [(level, *s) for level, all_ in truth.items() for s in all_ if not is_there(view, level, s)]
            if not todo:
                return
            self.fix(view, *todo[len(self.stumbles) % len(todo)])  # what failed is left for later
        self.stumbles.append(f"gave up: {todo[:2]}")

    def fix(self, view: dict[str, Any], level: str, start: int, stop: int, label: str) -> None:
        """Move a border of the segment, relabel it, or drag over its steps."""
        segments = view["segments"][level]
        first, last, shown = max(segments, key=lambda s: min(s[1], stop) - max(s[0], start))
        if shown == label and first and abs(first - start) > NEAR:
            self.done(lambda: self.drag(level, first, start), f"{level} border from {first} to {start}")
        elif shown == label and last < view["length"] and abs(last - stop) > NEAR:
            self.done(lambda: self.drag(level, last, stop), f"{level} border from {last} to {stop}")
        else:
            if abs(first - start) <= NEAR and abs(last - stop) <= NEAR:
                self.tab.choose(level, (first + last) // 2)
            else:
                width = self.tab.point(level, 1)[0] - self.tab.point(level, 0)[0]
                near = any(abs(start - s[0]) * width < 7 for s in segments[1:])
                self.drag(level, start, stop, shift=near and view["model"] is not None)
            self.done(lambda: self.tab.press(str(NAMES[level].index(label) + 1)), f"{label} on {start} to {stop}")

    def drag(self, level: str, start: int, stop: int, shift: bool = False) -> None:
        if shift:
            self.tab.page.keyboard.down("Shift")
        self.tab.drag(self.tab.point(level, start), self.tab.point(level, stop))
        if shift:
            self.tab.page.keyboard.up("Shift")

    def done(self, act: Any, words: str) -> None:
        """Do it; tell if nothing was saved."""
        self.fixes += 1
        try:
            self.tab.page.set_default_timeout(5_000)
            self.tab.saves(act)
        except PlaywrightError:
            self.stumbles.append(f"nothing saved: {words}")
        finally:
            self.tab.page.set_default_timeout(60_000)


def is_there(view: dict[str, Any], level: str, segment: tuple[int, int, str]) -> bool:
    return any(
        label == segment[2] and abs(start - segment[0]) <= NEAR and abs(stop - segment[1]) <= NEAR
        for start, stop, label in view["segments"][level]
    )


def work(tab: Tab, truth: dict[str, Truth], pictures: Path | None) -> list[int]:
    """Label and accept every recording; the fixes of each."""
    person, fixes = Annotator(tab), []
    for done in range(len(truth)):
        name, (sequence, _) = tab.text("#title"), tab.painted
        person.fixes, person.stumbles = 0, []
        person.label(truth[name])
        fixes.append(person.fixes)
        if pictures:
            tab.page.screenshot(path=str(pictures / f"{done:02d}_{name}.png"))
        for words in person.stumbles:
            print(f"  {name}: {words}", flush=True)
        tab.press("A")
        if done + 1 < len(truth):
            tab.wait_other(sequence)
        while tab.ask("/api/project")["training"]["running"]:  # a person is slower than this script
            time.sleep(0.2)
    tab.wait_text("#done", f"{len(truth)} of {len(truth)}")
    return fixes


def right(path: Path, truth: dict[str, Truth]) -> float:
    """The share of true segments that a file of segments has."""
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    found = [
        any(
            row["sequence"] == name
            and (row["level"], row["label"]) == (level, label)
            and max(abs(int(row["start"]) - start), abs(int(row["stop"]) - stop)) <= NEAR
            for row in rows
        )
        for name, levels in truth.items()
        for level, segments in levels.items()
        for start, stop, label in segments
    ]
    return statistics.mean(found)


def steps_right(model: Path, new: list[tuple[Any, Truth]]) -> dict[str, float]:
    """The share of steps of new recordings that a model labels right, by level."""
    tables = [band_energies(samples, FREQUENCY, float(RATE))[0] for samples, _ in new]
    guesses = hscrf.load(model).predict(tables)
    found = {}
    for level in NAMES:
        pairs = [
            (said, label)
            for guess, (_, truth) in zip(guesses, new, strict=True)
            for said, label in zip(steps(guess.segments(level)), steps(truth[level]), strict=False)
        ]
        found[level] = statistics.mean(said == label for said, label in pairs)
    return found


def steps(segments: Any) -> list[str]:
    return [label for start, stop, label in segments for _ in range(start, stop)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--recordings", type=int, default=40)
    parser.add_argument("--pictures", type=Path, help="a folder for a picture of each recording before it is accepted")
    args = parser.parse_args()
    rng = np.random.default_rng(11)
    truth: dict[str, Truth] = {}
    if args.pictures:
        args.pictures.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        work_in, waves = Path(folder), []
        for n in range(args.recordings):
            samples, truth[f"site_{n:02d}"] = recording(rng)
            waves.append(write_wave(work_in / f"site_{n:02d}.wav", samples, FREQUENCY))
        (work_in / "labels.toml").write_text(LABELS, encoding="utf-8")
        command = [sys.executable, "-m", "hscrf.cli", "studio"]
        options = ["--labels", "labels.toml", "--db", "labels.sqlite", "--rate", str(RATE), "--train-after", "4"]
        server = subprocess.Popen(
            [*command, *map(str, waves), *options, "--no-browser"], cwd=work_in, stdout=subprocess.PIPE, text=True
        )
        with sync_playwright() as playwright:
            browser = start_browser(playwright)
            page = browser.new_page(viewport=ROOM)
            tab = Tab(page).open(server.stdout.readline().split(": ")[1].strip())
            begin = time.monotonic()
            fixes = work(tab, truth, args.pictures)
            minutes = (time.monotonic() - begin) / 60
            browser.close()
        exported = work_in / "labels.segments.csv"
        subprocess.run([*command, "export", "labels.sqlite", "-o", exported.name], cwd=work_in, check=True)
        server.terminate()
        server.wait()
        models = sorted((work_in / "labels.sqlite.models").glob("*.hscrf"))
        total = sum(len(segments) for levels in truth.values() for segments in levels.values())
        print(f"{len(truth)} recordings, {total} segments, {sum(fixes)} fixes in {minutes:.0f} minutes of the script")
        print(f"fixes of the recordings in order: {' '.join(map(str, fixes))}")
        print(f"right in the export: {right(exported, truth):.1%} of the segments, within {NEAR} steps")
        new = [recording(rng) for _ in range(10)]
        for model in (models[0], models[-1]):
            shares = ", ".join(f"{level} {share:.1%}" for level, share in steps_right(model, new).items())
            print(f"{model.name} on ten new recordings, steps right: {shares}")


if __name__ == "__main__":
    main()

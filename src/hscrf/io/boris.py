"""Projects and tables of BORIS, both ways."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from hscrf.errors import DataFileError
from hscrf.io.axis import TimeAxis
from hscrf.io.cells import number_in
from hscrf.io.foreign import MOST_INTERVALS, csv_rows, decoded, is_number, parsed_json, stem_of
from hscrf.io.spans import Labelled
from hscrf.io.timelines import Interval, Timeline

_SUBJECT, _BEHAVIOR, _CATEGORY = "subject", "behavior", "behavioral category"


def write_boris(sequences: Iterable[Labelled], rate: float | None = None, date: str = "1970-01-01T00:00:00") -> bytes:
    """Return a project of BORIS: an observation for each sequence, a subject for each level, state events.

    Parameters
    ----------
    sequences : iterable of Labelled
    rate : float, optional
        Steps per second; without one a step is a second. Sequences that have times of their own keep them.
    date : str
        Date of the project and its observations, in ISO format.

    Returns
    -------
    bytes
        JSON, as in a ``.boris`` file.

    Examples
    --------
    >>> from hscrf.io import Labelled, Span
    >>> day = Labelled("monday", ["x"] * 50, [Span(0, 20, "action", "walk")], ("action",))
    >>> json.loads(write_boris([day], rate=50))["observations"]["monday"]["events"]
    [[0.0, 'action', 'walk', '', ''], [0.4, 'action', 'walk', '', '']]
    """
    observations: dict[str, Any] = {}
    levels: dict[str, None] = {}
    behaviors: dict[str, set[str]] = {}
    for n, sequence in enumerate(sequences, start=1):
        axis = TimeAxis(len(sequence.tokens), rate, sequence.times)
        levels.update(dict.fromkeys(sequence.levels))
        events: list[tuple[float, int, list[Any]]] = []
        for start, stop, level, label, _ in sequence.spans:
            behaviors.setdefault(str(label), set()).add(level)
            for border, rank in ((start, 1), (stop, 0)):  # at equal times, stops come before starts
                time = round(axis.seconds(border), 6)
                events.append((time, rank, [time, level, str(label), "", ""]))
        events.sort(key=lambda event: event[:2])
        observations[sequence.name or f"sequence_{n:04d}"] = _observation([event for *_, event in events], date)
    project = {
        "time_format": "s",
        "project_date": date,
        "project_name": "hscrf",
        "project_description": "",
        "project_format_version": "7.0",
        "subjects_conf": {str(k): {"key": "", "name": level, "description": ""} for k, level in enumerate(levels)},
        "behaviors_conf": {str(k): _behavior(code, of) for k, (code, of) in enumerate(behaviors.items())},
        "observations": observations,
        "behavioral_categories": list(levels),
        "independent_variables": {},
        "coding_map": {},
        "behaviors_coding_map": [],
        "converters": {},
    }
    return json.dumps(project, ensure_ascii=False, indent=1).encode("utf-8", "replace")


def _behavior(code: str, levels: set[str]) -> dict[str, str]:
    category = next(iter(levels)) if len(levels) == 1 else ""
    return {"type": "State event", "key": "", "code": code, "description": "", "category": category, "modifiers": "",
            "excluded": "", "coding map": ""}  # fmt: skip


def _observation(events: list[Any], date: str) -> dict[str, Any]:
    return {
        "file": {},
        "type": "LIVE",
        "date": date,
        "description": "",
        "time offset": 0.0,
        "events": events,
        "observation time interval": [0, 0],
        "independent_variables": {},
        "visualize_spectrogram": False,
        "visualize_waveform": False,
        "close_behaviors_between_videos": False,
        "scan_sampling_time": 0,
        "start_from_current_time": False,
        "start_from_current_epoch_time": False,
    }


def read_boris(content: bytes, file: str = "") -> list[Timeline]:
    """Read a project of BORIS (.boris), or a CSV or TSV table of its events, tabular or aggregated.

    A state event is an interval from its start to its stop. Point events are left out. The tier of an event is its
    subject; without one, the category of its behaviour.

    Parameters
    ----------
    content : bytes
        Content of the file.
    file : str
        Name of the file, for errors.

    Returns
    -------
    list of Timeline
        One for each observation.

    Raises
    ------
    DataFileError
        If the file cannot be read, or a state has a start without a stop; it names the line, or the event.
    """
    text = decoded(content, file)
    return _project(text, file) if text.lstrip()[:1] == "{" else _table(text, file)


# -- projects


def _project(text: str, file: str) -> list[Timeline]:
    project = parsed_json(text, file)
    observations = project.get("observations")
    if not isinstance(observations, dict):
        raise DataFileError(file, 1, "it has no 'observations', expected a project of BORIS")
    behaviors = project.get("behaviors_conf")
    entries = [entry for entry in behaviors.values() if isinstance(entry, dict)] if isinstance(behaviors, dict) else []
    points = {entry.get("code") for entry in entries if str(entry.get("type", "")).lower().startswith("point")}
    category = {entry.get("code"): str(entry.get("category") or "") for entry in entries}
    found = []
    for name, observation in observations.items():
        events = observation.get("events") if isinstance(observation, dict) else None
        if not isinstance(events, list):
            raise DataFileError(file, 1, f"observation {name!r} has no list of events")
        states = _States(file, name)
        for k, event in enumerate(events, start=1):
            where = f"observation {name!r}, event {k}"
            if not isinstance(event, list) or len(event) < 3 or not is_number(event[0]):
                raise DataFileError(file, 1, f"{where}: expected [time, subject, behaviour, ...]")
            code = str(event[2])
            if event[2] not in points:
                states.toggle(float(event[0]), str(event[1] or "") or category.get(code, ""), code, where)
        found.append(states.timeline(_media_names(observation)))
    return found


def _media_names(observation: Mapping[str, Any]) -> tuple[str, ...]:
    files = observation.get("file")
    if not isinstance(files, dict):
        return ()
    paths = [path for some in files.values() if isinstance(some, list) for path in some if isinstance(path, str)]
    return tuple(map(stem_of, paths))


class _States:
    """The states of one observation: each event of a behaviour begins it or ends it."""

    def __init__(self, file: str, name: str) -> None:
        self.file, self.name = file, name
        self.open: dict[tuple[str, str], tuple[float, str]] = {}
        self.found: list[Interval] = []
        self.line = 1

    def toggle(self, time: float, tier: str, code: str, where: str) -> None:
        if (tier, code) in self.open:
            start, begun = self.open.pop((tier, code))
            self.found.append(Interval(start, time, tier, code, begun))
            if len(self.found) > MOST_INTERVALS:
                raise DataFileError(self.file, self.line, f"there are more than {MOST_INTERVALS} events")
        else:
            self.open[tier, code] = (time, where)

    def timeline(self, names: tuple[str, ...] = ()) -> Timeline:
        for (_, code), (time, where) in self.open.items():
            raise DataFileError(self.file, self.line, f"{where}: {code!r} begins at {time:g} s and has no end")
        return Timeline(self.name, sorted(self.found, key=lambda one: one[:2]), names=names)


# -- tables


def _table(text: str, file: str) -> list[Timeline]:
    """Observations of a table; older versions of BORIS write other lines before the header."""
    header: list[str] | None = None
    states: dict[str, _States] = {}
    for line, row in csv_rows(text, text[:2000], file):
        if header is None:
            names = [cell.strip().lower() for cell in row]
            if _BEHAVIOR in names and ("time" in names or "start (s)" in names):
                header = names
            continue
        if any(cell.strip() for cell in row):
            _take_row(dict(zip(header, map(str.strip, row), strict=False)), states, file, line)
    if header is None:
        raise DataFileError(file, 1, "there is no header with 'Behavior' and 'Start (s)' or 'Time', as BORIS writes it")
    return [one.timeline() for one in states.values()]


def _take_row(row: Mapping[str, str], states: dict[str, _States], file: str, line: int) -> None:
    name = row.get("observation id", "") or stem_of(row.get("media file path", "") or row.get("media file name", ""))
    one = states.setdefault(name, _States(file, name))
    one.line = line
    code, kind = row.get(_BEHAVIOR, ""), (row.get("behavior type", "") or row.get("status", "")).upper()
    tier = row.get(_SUBJECT, "")
    if tier.lower() in ("", "no focal subject"):
        tier = row.get(_CATEGORY, "")
    if kind.startswith("POINT"):
        return
    if "start (s)" in row:
        start, stop = (_seconds(row, key, file, line) for key in ("start (s)", "stop (s)"))
        one.found.append(Interval(start, stop, tier, code, f"line {line}"))
        if len(one.found) > MOST_INTERVALS:
            raise DataFileError(file, line, f"there are more than {MOST_INTERVALS} events")
        return
    if kind in ("START", "STOP") and (kind == "START") == ((tier, code) in one.open):
        begun = "begins again before it has ended" if kind == "START" else "ends but has not begun"
        raise DataFileError(file, line, f"{code!r} {begun}")
    one.toggle(_seconds(row, "time", file, line), tier, code, f"line {line}")


def _seconds(row: Mapping[str, str], key: str, file: str, line: int) -> float:
    """A time in seconds, or as hours:minutes:seconds."""
    text = row.get(key, "")
    total = 0.0
    for part in map(number_in, text.split(":")):
        if part is None:
            raise DataFileError(file, line, f"{key!r} is {text[:40]!r}, expected a time in seconds")
        total = 60 * total + part
    return total

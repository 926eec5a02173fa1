"""Tables of segments as timelines: a row for each segment."""

from __future__ import annotations

from hscrf.errors import DataFileError
from hscrf.io.cells import number_in
from hscrf.io.foreign import MOST_INTERVALS, csv_rows, decoded, stem_of
from hscrf.io.timelines import Interval, Timeline

_START_TIMES, _STOP_TIMES = ("start_time", "start_s", "onset"), ("stop_time", "end_time", "stop_s", "end_s", "offset")


def read_segments(content: bytes, file: str = "") -> list[Timeline]:
    r"""Read a CSV or TSV table of segments, as ``export(..., "segments")`` writes it.

    It has a header. ``label`` is needed, and either ``start`` and ``stop`` in steps, half-open, or ``start_time`` and
    ``stop_time`` in seconds. Steps win where there are both. ``sequence`` names the sequence of each row; without it
    the name of the file does. ``level`` names the level; without it the label must belong to one level only.

    Parameters
    ----------
    content : bytes
        Content of the file.
    file : str
        Name of the file, for errors.

    Returns
    -------
    list of Timeline
        One for each sequence.

    Raises
    ------
    DataFileError
        If the table cannot be read; it names the line.

    Examples
    --------
    >>> read_segments(b"sequence,start,stop,level,label\nday,0,20,action,walk\n")[0].intervals
    [Interval(start=0.0, stop=20.0, tier='action', label='walk', where='line 2')]
    """
    text = decoded(content, file)
    rows = csv_rows(text, text.partition("\n")[0], file)
    found: dict[str, list[Interval]] = {}
    header = [name.strip().lower() for name in next(rows, (1, []))[1]]
    start, stop, unit = _places(header, file)
    label = header.index("label")
    sequence, level = (header.index(name) if name in header else None for name in ("sequence", "level"))
    for count, (line, row) in enumerate(rows):
        if not row:
            continue
        if len(row) != len(header):
            raise DataFileError(file, line, f"there are {len(row)} columns, expected {len(header)}")
        if count >= MOST_INTERVALS:
            raise DataFileError(file, line, f"there are more than {MOST_INTERVALS} segments")
        name = row[sequence] if sequence is not None else stem_of(file)
        tier = row[level] if level is not None else ""
        times = [_number(row[place], header[place], file, line) for place in (start, stop)]
        found.setdefault(name, []).append(Interval(times[0], times[1], tier, row[label], f"line {line}"))
    return [Timeline(name, intervals, unit, strict=True) for name, intervals in found.items()]


def _places(header: list[str], file: str) -> tuple[int, int, str]:
    """The columns of start and stop, and their unit."""
    if "label" in header and {"start", "stop"} <= set(header):
        return header.index("start"), header.index("stop"), "steps"
    first = next((name for name in _START_TIMES if name in header), None)
    last = next((name for name in _STOP_TIMES if name in header), None)
    if "label" not in header or first is None or last is None:
        said = ", ".join(header)[:100] or "nothing"
        raise DataFileError(file, 1, f"the header has {said}, expected label and start, stop or start_time, stop_time")
    return header.index(first), header.index(last), "seconds"


def _number(text: str, column: str, file: str, line: int) -> float:
    found = number_in(text)
    if found is None:
        raise DataFileError(file, line, f"{column} is {text[:40]!r}, expected a number")
    return found

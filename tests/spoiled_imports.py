"""Damaged files of other annotation programs, and damaged lines of a stream.

An import is "refused" in one sentence, or every interval that was read becomes a segment, unless its tier is named as
left out. Of a stream, each line that is not blank comes out once, in its place, with labels behind it.
"""

import io
import json

from hscrf.cli.streaming import LineStream
from hscrf.io import Labelled, Span, TimeAxis, Timeline, place, read_annotations, write_boris, write_eaf, write_textgrid

LEVELS = {"phrase": ["up", "down"], "tag": ["N", "V"]}
STEPS, RATE = 24, 10.0
SPANS = [
    Span(start, start + 3, level, names[start // 3 % 2])
    for level, names in LEVELS.items()
    for start in range(0, STEPS, 3)
]
REGIONS = [
    {
        "type": "timeserieslabels",
        "from_name": span.level,
        "to_name": "ts",
        "value": {"start": span.start, "end": span.stop - 1, "timeserieslabels": [span.label], "instant": False},
    }
    for span in SPANS
]
TASK = [{"id": 1, "data": {"ts": {"time": list(range(STEPS))}, "id": "day"}, "annotations": [{"result": REGIONS}]}]


DAY = Labelled("day", ["x"] * STEPS, SPANS, tuple(LEVELS))
TIERS = {level: [(span.start, span.stop, span.label) for span in DAY.of_level(level)] for level in LEVELS}


SOUND = {
    "elan": ("day.eaf", write_eaf(TIERS, RATE)),
    "textgrid": ("day.TextGrid", write_textgrid(TIERS, STEPS, RATE)),
    "boris": ("day.boris", write_boris([DAY], RATE)),
    "label studio": ("day.json", json.dumps(TASK, indent=1).encode()),
}
STREAMS = {"stream columns": "columns", "stream csv": "csv"}
IMPORTS = (*SOUND, *STREAMS)


def imported(name, content):
    """The outcome of a file of another program."""
    found = list(read_annotations(content, SOUND[name][0]))
    for one in found:
        if not isinstance(one, Timeline):
            raise one  # the error of one task
        axis = TimeAxis(STEPS, None if one.times else RATE, one.times)
        placed = place(one, LEVELS, axis)
        kept = [interval for interval in one.intervals if interval.tier not in placed.left_out]
        if len(kept) != len(placed.spans) or any(not 0 <= s.start < s.stop <= STEPS for s in placed.spans):
            return f"{len(kept)} intervals went in, {len(placed.spans)} came out"
    return "read"


def streamed(model, recipe, content):
    """The outcome of lines that a stream labels."""
    table = recipe if recipe.format == "table" else None
    stream = LineStream(recipe.as_format("columns"), model.stream(3), model.topology_, False, table)
    out = list(stream.labelled(io.BytesIO(content)))
    given = [line.rstrip("\r\n") for line in content.decode("utf-8-sig").split("\n")]
    left = iter([line for line in out if line])
    line = next(left, None)
    for text in given:
        begins = line is not None and (line.startswith(text) or text.startswith("# columns:"))
        cells = text.strip(" \t") or (text and begins and line.startswith(text + "\t"))  # they may be empty
        if begins and cells:
            line = next(left, None)
        elif text.strip(" \t"):
            return f"the line {text!r} went in, {line!r} came out"
    return "read" if line is None else f"{line!r} came out, but did not go in"

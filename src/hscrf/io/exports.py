"""Predictions for other programs: spaCy, brat, ELAN, Praat, BORIS, and tables of segments."""

from __future__ import annotations

import csv
import io
import json
import os
import re
import zipfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from hscrf.files.replacing import replacing
from hscrf.io.axis import TimeAxis, check_rate
from hscrf.io.boris import write_boris
from hscrf.io.elan import write_eaf
from hscrf.io.praat import write_textgrid
from hscrf.io.spans import Labelled, joined

EXPORTS = ("segments", "spacy", "brat", "elan", "textgrid", "boris")
ENDINGS = {
    ".segments.csv": "segments",
    ".spacy.jsonl": "spacy",
    ".ann": "brat",
    ".eaf": "elan",
    ".eaf.zip": "elan",
    ".textgrid": "textgrid",
    ".textgrid.zip": "textgrid",
    ".boris": "boris",
}


def export_format(path: str | os.PathLike[str]) -> str | None:
    """The export format that the ending of a file's name stands for; None if it is none of them.

    >>> export_format("day.TextGrid"), export_format("day.csv")
    ('textgrid', None)
    """
    name = os.fspath(path).lower()
    return next((form for ending, form in ENDINGS.items() if name.endswith(ending)), None)


def export(
    target: str | os.PathLike[str], sequences: Iterable[Labelled], form: str | None = None, *, rate: float | None = None
) -> list[str]:
    """Write labelled sequences for another program.

    Parameters
    ----------
    target : path
        The file to write. For ``brat`` it is the ``.ann`` file; the text goes to the ``.txt`` file of the same name.
        For ``elan`` and ``textgrid``, several sequences need a ``.zip`` or a folder.
    sequences : iterable of Labelled
        The sequences.
    form : str, optional
        The format. By default the ending of the name decides.

        - ``"segments"``: CSV with sequence, start, stop, level, label, confidence and, for words, text of each segment.
        - ``"spacy"``: JSON Lines for ``spacy.tokens.Doc.from_json``, with a span group for each level.
        - ``"brat"``: stand-off annotations.
        - ``"elan"``: ELAN documents (.eaf).
        - ``"textgrid"``: TextGrids of Praat.
        - ``"boris"``: a project of BORIS with an observation for each sequence.
    rate : float, optional
        Steps per second, for times in ELAN, TextGrid, BORIS and (as further columns) segments. Without it a step is a
        second. Sequences with their own times keep them.

    Returns
    -------
    list of str
        The files that were written.

    Examples
    --------
    >>> import os, pathlib, tempfile
    >>> from hscrf.io import Labelled, Span
    >>> day = Labelled("monday", [[0.5]] * 50, [Span(0, 20, "action", "walk", 0.9)], ("action",))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     (path,) = export(os.path.join(folder, "day.segments.csv"), [day], rate=50)
    ...     print(pathlib.Path(path).read_text().strip())
    sequence,start,stop,level,label,confidence,start_time,stop_time
    monday,0,20,action,walk,0.9,0.0,0.4
    """
    path = os.fspath(target)
    form = form or export_format(path)
    if form not in EXPORTS:
        raise ValueError(f"the export format is {form!r}, expected {', '.join(EXPORTS)}")
    if rate is not None:
        check_rate(rate)
    if form == "boris":
        with replacing(path) as file:
            file.write(write_boris(sequences, rate))
        return [path]
    if form in ("elan", "textgrid"):
        return _write_each(path, sequences, form, rate or 1.0)
    if form == "brat":
        return _write_brat(path, sequences)
    lines = segment_lines(sequences, rate) if form == "segments" else map(spacy_line, sequences)
    with replacing(path) as file:
        for line in lines:
            file.write(line.encode("utf-8", "replace"))
    return [path]


# -- tables of segments, spaCy


def segment_lines(sequences: Iterable[Labelled], rate: float | None = None) -> Iterator[str]:
    """Lines of a CSV file: a row for each segment, after a header; with times and words, if there are any."""
    several = list(sequences)
    worded = any(sequence.has_words for sequence in several)
    timed = rate is not None or any(sequence.times is not None for sequence in several)
    times = ["start_time", "stop_time"] if timed else []
    yield _csv_line(["sequence", "start", "stop", "level", "label", "confidence", *times, *["text"] * worded])
    for n, sequence in enumerate(several, start=1):
        axis = TimeAxis(len(sequence.tokens), rate, sequence.times)
        text, places = sequence.written() if sequence.has_words else ("", [])
        for start, stop, level, label, confidence in sequence.spans:
            seconds = [round(axis.seconds(start), 9), round(axis.seconds(stop), 9)] if timed else []
            sure = "" if confidence is None else confidence
            words = [text[places[start][0] : places[stop - 1][1]] if places else ""] if worded else []
            yield _csv_line([sequence.name or n, start, stop, level, label, sure, *seconds, *words])


def _csv_line(cells: list[Any]) -> str:
    target = io.StringIO()
    csv.writer(target, lineterminator="\n").writerow(cells)
    return target.getvalue()


def spacy_line(sequence: Labelled) -> str:
    """One sequence as a JSON document of spaCy: a span group for each level, offsets in characters and in tokens."""
    text, places = sequence.written()
    tokens, numbers = _spacy_tokens(text, places)
    content: dict[str, Any] = {
        "text": text,
        "tokens": [{"id": t, "start": start, "end": stop} for t, (start, stop) in enumerate(tokens)],
        "spans": {level: [] for level in sequence.levels},
    }
    if sequence.name:
        content["name"] = sequence.name
    for start, stop, level, label, confidence in sequence.spans:
        entry = {"start": places[start][0], "end": places[stop - 1][1], "label": str(label), "kb_id": ""}
        entry |= {"token_start": numbers[start], "token_end": numbers[stop - 1] + 1}
        content["spans"][level].append(entry if confidence is None else {**entry, "confidence": confidence})
    return json.dumps(content, ensure_ascii=False) + "\n"


def _spacy_tokens(text: str, places: Sequence[tuple[int, int]]) -> tuple[list[tuple[int, int]], list[int]]:
    """The tokens of a text as spaCy cuts it, and for each of our tokens its number among them.

    A token has at most one space after it; more white space is a token of its own there.
    """
    found: list[tuple[int, int]] = []
    numbers: list[int] = []
    end = 0
    for start, stop in places:
        if start > end:
            found.append((end, start))
        numbers.append(len(found))
        found.append((start, stop))
        end = stop + text.startswith(" ", stop)
    return found + ([(end, len(text))] if end < len(text) else []), numbers


# -- brat


def _write_brat(path: str, sequences: Iterable[Labelled]) -> list[str]:
    """Write annotations, and a text file with a line for each sequence or the original text of each."""
    text, base = os.path.splitext(path)[0] + ".txt", 0
    with replacing(text) as words, replacing(path) as notes:
        number = 0
        for sequence in sequences:
            line = _for_brat(sequence)[0]
            words.write((line + "\n").encode("utf-8", "replace"))
            for one in brat_lines(sequence, base, number):
                notes.write(one.encode("utf-8", "replace"))
            number += len(sequence.spans)
            base += len(line) + 1
    return [path, text]


def _for_brat(sequence: Labelled) -> tuple[str, list[tuple[int, int]]]:
    """The text of a sequence and the places of its steps; without a text its words, in which _ replaces white space."""
    if sequence.text is not None:
        return sequence.written()
    return joined([re.sub(r"\s", "_", word) for word in sequence.words])


def brat_lines(sequence: Labelled, base: int = 0, number: int = 0) -> Iterator[str]:
    """Stand-off annotations of one sequence whose text begins at character ``base``; a type is LEVEL-LABEL.

    A segment that goes over the end of a line has a part in each.
    """
    text, places = _for_brat(sequence)
    for n, (start, stop, level, label, confidence) in enumerate(sequence.spans, start=number + 1):
        first, last = places[start][0], places[stop - 1][1]
        parts = [(first + m.start(), first + m.end()) for m in re.finditer(r"\S(?:[^\r\n]*\S)?", text[first:last])]
        kind = re.sub(r"[^\w-]", "_", f"{level}-{label}")
        where = ";".join(f"{base + i} {base + j}" for i, j in parts)
        yield f"T{n}\t{kind} {where}\t{' '.join(text[i:j] for i, j in parts)}\n"
        if confidence is not None:
            yield f"#{n}\tAnnotatorNotes T{n}\tconfidence {confidence}\n"


# -- one sequence per file

_MADE: dict[str, tuple[str, Callable[[Labelled, float], bytes]]] = {
    "elan": (".eaf", lambda s, rate: write_eaf(_tiers(s), rate, times=s.times, name=s.name)),
    "textgrid": (".TextGrid", lambda s, rate: write_textgrid(_tiers(s), len(s.tokens), rate, times=s.times)),
}


def _tiers(sequence: Labelled) -> dict[str, list[tuple[int, int, Any]]]:
    """A tier for each level."""
    return {
        level: [(span.start, span.stop, span.label) for span in sequence.of_level(level)] for level in sequence.levels
    }


def _write_each(path: str, sequences: Iterable[Labelled], form: str, rate: float) -> list[str]:
    """A file for each sequence: in a folder or an archive, or the file itself if there is only one sequence."""
    ending, make = _MADE[form]
    made = ((file_name(n, one.name) + ending, make(one, rate)) for n, one in enumerate(sequences, start=1))
    if path.lower().endswith(".zip"):
        with replacing(path) as file, zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, content in made:
                archive.writestr(name, content)
        return [path]
    if path.endswith(("/", os.sep)) or os.path.isdir(path):
        os.makedirs(path, exist_ok=True)
        files: Iterable[tuple[str, bytes]] = ((os.path.join(path, name), content) for name, content in made)
    else:
        several = list(made)
        if len(several) != 1:
            raise ValueError(
                f"{path} holds one sequence, but there are {len(several)}; expected a folder, or a name that ends in "
                f"{ending}.zip"
            )
        files = [(path, several[0][1])]
    found = []
    for name, content in files:
        with replacing(name) as file:
            file.write(content)
        found.append(name)
    return found


def file_name(number: int, name: str) -> str:
    """A safe name for the file of a sequence: its number, and the letters and digits of its name.

    >>> file_name(3, "day 3/a")
    '0003_day_3_a'
    """
    safe = "".join(c if c.isalnum() or c in "-_" else "_" for c in name)[:60]
    return f"{number:04d}_{safe}" if safe else f"{number:04d}"

"""Read files of other annotation programs: ELAN, Praat, BORIS, Label Studio, tables of segments, archives of these."""

from __future__ import annotations

import io
import os
import zipfile
import zlib
from collections.abc import Iterator

from hscrf.errors import DataFileError
from hscrf.io.boris import read_boris
from hscrf.io.elan import read_eaf
from hscrf.io.foreign import MOST_BYTES, check_size, decoded
from hscrf.io.label_studio import read_task, read_tasks
from hscrf.io.praat import read_textgrid
from hscrf.io.segment_tables import read_segments
from hscrf.io.timelines import PlaceError, Timeline

ENDINGS = (".eaf", ".textgrid", ".boris", ".csv", ".tsv", ".json", ".zip")
MOST_FILES = 10_000  # of an archive
UNPACKED = 4  # limit of all files of an archive, as a multiple of the limit of one file


def read_annotations(
    content: bytes, file: str, *, most_bytes: int = MOST_BYTES
) -> Iterator[Timeline | PlaceError | DataFileError]:
    """Read a file of another annotation program.

    The ending of the name decides. ``.eaf`` is ELAN, ``.TextGrid`` Praat, ``.boris`` BORIS and ``.json`` Label Studio.
    ``.csv`` and ``.tsv`` are tables of segments or of BORIS. ``.zip`` is an archive of such files. Without an ending,
    the content decides.

    Parameters
    ----------
    content : bytes
        Content of the file.
    file : str
        Name of the file.
    most_bytes : int
        Larger files are an error; the files of an archive may have four times as many bytes in all.

    Yields
    ------
    Timeline, PlaceError or DataFileError
        A timeline, or the error of one task or one file of an archive; the others are still read.

    Raises
    ------
    DataFileError
        If the whole file cannot be read; it names the line.
    """
    check_size(content, file, most_bytes)
    ending = os.path.splitext(file)[1].lower() or _ending_of(content)
    if ending == ".eaf":
        yield read_eaf(content, file)
    elif ending == ".textgrid":
        yield read_textgrid(content, file)
    elif ending == ".boris":
        yield from read_boris(content, file)
    elif ending == ".json":
        yield from _tasks(content, file)
    elif ending in (".csv", ".tsv"):
        yield from _table(content, file)
    elif ending == ".zip":
        yield from _archive(content, file, most_bytes)
    else:
        raise DataFileError(
            file, 1, f"the ending {ending!r} is not one of a known format, expected {', '.join(ENDINGS)}"
        )


def _ending_of(content: bytes) -> str:
    """The ending of the format that the first bytes show; "" if they show none."""
    head = content[:2000].lstrip(b"\xef\xbb\xbf \t\r\n")
    signs = {b"PK\x03\x04": ".zip", b"[": ".json", b"{": ".boris", b"<?xml": ".eaf", b"<ANNOTATION_DOC": ".eaf"}
    found = next((ending for sign, ending in signs.items() if head.startswith(sign)), "")
    return ".textgrid" if b"ooTextFile" in head.replace(b"\x00", b"") else found


def _tasks(content: bytes, file: str) -> Iterator[Timeline | PlaceError | DataFileError]:
    tasks = read_tasks(content, file)
    for n, task in enumerate(tasks):
        try:
            yield read_task(task, n)
        except PlaceError as error:
            yield error


def _table(content: bytes, file: str) -> list[Timeline]:
    """A table of segments, unless its header is one of BORIS."""
    head = decoded(content, file).lower()[:20_000]
    boris = "behavior" in head and ("start (s)" in head or "time" in head) and "label" not in head.partition("\n")[0]
    return read_boris(content, file) if boris else read_segments(content, file)


def _archive(content: bytes, file: str, most_bytes: int) -> Iterator[Timeline | PlaceError | DataFileError]:
    """The files of an archive, unpacked in memory up to a limit of bytes in all."""
    left = most = UNPACKED * most_bytes
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            entries = [entry for entry in archive.infolist() if not entry.is_dir()]
            if len(entries) > MOST_FILES:
                raise DataFileError(file, 1, f"the archive has {len(entries)} files, expected at most {MOST_FILES}")
            for entry in entries:
                name = entry.filename.replace("\\", "/").rpartition("/")[2]
                if os.path.splitext(name)[1].lower() not in ENDINGS[:-1]:
                    continue
                with archive.open(entry) as stream:
                    part = stream.read(min(most_bytes, left) + 1)
                left -= len(part)
                if left < 0:
                    raise DataFileError(file, 1, f"the archive holds more than {most} bytes")
                try:
                    yield from read_annotations(part, name, most_bytes=most_bytes)
                except DataFileError as error:
                    yield error
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError, OSError) as error:
        raise DataFileError(file, 1, f"not an archive that can be read: {error}") from None

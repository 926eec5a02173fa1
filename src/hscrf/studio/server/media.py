"""Sound and film of sequences: files stay where they are, and browsers ask for the parts that they play."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

AUDIO = {".wav": "audio/wav", ".mp3": "audio/mpeg", ".ogg": "audio/ogg", ".oga": "audio/ogg", ".opus": "audio/ogg",
         ".flac": "audio/flac", ".m4a": "audio/mp4"}  # fmt: skip
VIDEO = {
    ".mp4": "video/mp4",
    ".m4v": "video/mp4",
    ".webm": "video/webm",
    ".ogv": "video/ogg",
    ".mov": "video/quicktime",
}


def kind_of(path: str) -> str | None:
    """The kind of a file by the ending of its name: "audio", "video", or None."""
    ending = Path(path).suffix.lower()
    return "audio" if ending in AUDIO else "video" if ending in VIDEO else None


def type_of(path: str) -> str:
    """The media type of a file."""
    return {**AUDIO, **VIDEO}[Path(path).suffix.lower()]


def media_in(folder: str, names: Iterable[str]) -> dict[str, str]:
    """The file of each sequence in a folder: the one of the same name, whatever its ending; a film before a sound."""
    found: dict[str, str] = {}
    files = sorted(Path(folder).iterdir(), key=lambda path: (kind_of(path.name) != "video", path.name))
    for path in files:
        if path.is_file() and kind_of(path.name):
            found.setdefault(path.stem, os.path.abspath(path))
    return {name: found[name] for name in names if name in found}

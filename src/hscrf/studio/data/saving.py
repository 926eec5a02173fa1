"""Why something cannot be written to a database, in words."""

from __future__ import annotations

import os
import sqlite3


class NotSaved(OSError):
    """Something could not be written; ``reason`` is "full", "read_only" or "disk"."""

    def __init__(self, reason: str, words: str) -> None:
        super().__init__(words)
        self.reason = reason


def is_read_only(path: str) -> bool:
    """Whether a database can only be read; it must not have a log that cannot be written back."""
    if not os.path.exists(path):
        folder = os.path.dirname(path)
        if not os.path.isdir(folder):
            raise FileNotFoundError(2, "there is no folder to write the database to", folder)
        return False
    if os.access(path, os.W_OK) and os.access(os.path.dirname(path), os.W_OK):
        return False
    log = path + "-wal"
    if os.path.exists(log) and os.path.getsize(log):
        raise NotSaved("read_only", f"{path} may not be written and has a log to write back: make it writable once")
    return True


def not_saved(error: sqlite3.OperationalError, path: str) -> NotSaved:
    """What went wrong, in words."""
    text = str(error)
    name = os.path.basename(path)
    if "full" in text:
        return NotSaved("full", f"NOT saved: the disk that holds {name} is full; make room and try again")
    if "readonly" in text or "read-only" in text:
        return NotSaved("read_only", f"NOT saved: {name} may only be read; make it writable and start again")
    return NotSaved("disk", f"NOT saved: {name}: {text}")

"""Locks on open files, which the system releases when their process ends."""

from __future__ import annotations

from typing import Any


def try_lock(file: Any) -> None:
    """Lock an open file for this process, or raise OSError at once if another one holds it."""
    try:
        import fcntl
    except ImportError:  # Windows
        import msvcrt

        file.seek(4096)  # the beginning stays readable for others
        msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined]
        return
    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)

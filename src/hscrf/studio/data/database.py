"""The database of a studio: sequences and all their events, on disk before they are acknowledged."""

from __future__ import annotations

import contextlib
import json
import os
import sqlite3
import threading
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from pathlib import Path
from typing import Any
from urllib.parse import quote

from hscrf.studio.data.label_edits import Change, Log, last_edit, translated
from hscrf.studio.data.locking import Lock
from hscrf.studio.data.saving import NotSaved as NotSaved
from hscrf.studio.data.saving import is_read_only, not_saved
from hscrf.studio.data.token_moves import moved_event

SCHEMA = 1
APPLICATION = 0x68736372  # "hscr": the application id of a studio's database

TABLES = """
CREATE TABLE setting(key TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE sequence(
    id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, length INTEGER NOT NULL,
    observations TEXT NOT NULL, sha256 TEXT NOT NULL);
CREATE TABLE event(
    id INTEGER PRIMARY KEY AUTOINCREMENT, sequence INTEGER NOT NULL REFERENCES sequence(id), version INTEGER NOT NULL,
    uid TEXT NOT NULL UNIQUE, kind TEXT NOT NULL, body TEXT NOT NULL, annotator TEXT NOT NULL, model INTEGER,
    at TEXT NOT NULL, UNIQUE(sequence, version));
CREATE TABLE model(
    number INTEGER PRIMARY KEY, path TEXT NOT NULL, sha256 TEXT NOT NULL, events_upto INTEGER NOT NULL,
    metrics TEXT NOT NULL, status TEXT NOT NULL, at TEXT NOT NULL);
CREATE TABLE suggestion(
    sequence INTEGER PRIMARY KEY REFERENCES sequence(id), version INTEGER NOT NULL, model INTEGER NOT NULL,
    entropy REAL, profile TEXT NOT NULL);
CREATE TRIGGER event_stays BEFORE UPDATE ON event BEGIN SELECT RAISE(ABORT, 'events are never changed'); END;
CREATE TRIGGER event_is_kept BEFORE DELETE ON event BEGIN SELECT RAISE(ABORT, 'events are never deleted'); END;
"""


ADDED = """
CREATE TABLE IF NOT EXISTS times(sequence INTEGER PRIMARY KEY REFERENCES sequence(id), seconds TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS text(
    sequence INTEGER PRIMARY KEY REFERENCES sequence(id), content TEXT NOT NULL, offsets TEXT NOT NULL);
"""


class Behind(Exception):
    """An event was based on another version than the current one."""


@dataclass(frozen=True)
class Event:
    """One thing that happened to a sequence; its version is the number of events up to it."""

    version: int
    kind: str
    body: dict[str, Any]
    annotator: str = ""
    model: int | None = None
    at: str = ""
    uid: str = ""


@dataclass(frozen=True)
class Stored:
    """A sequence without its observations."""

    id: int
    name: str
    length: int
    sha256: str


class Database:
    """A database that one process has opened.

    Write-ahead log, ``synchronous=FULL``: what ``append`` has returned from is on disk. Events are never changed or
    deleted. The order of events is that of their versions, whatever the clock says. ``reading`` opens a file
    that another process may be writing.

    >>> import tempfile, os
    >>> with tempfile.TemporaryDirectory() as folder, Database(os.path.join(folder, "a.sqlite")) as database:
    ...     n = database.add("day", 3, '["a", "b", "c"]', "0")
    ...     database.append(n, 0, "u1", "label", {"level": "tag"}).version
    ...     database.append(n, 0, "u1", "label", {"level": "tag"}).version  # a retry
    ...     [event.kind for event in database.events(n)]
    1
    1
    ['label']
    """

    def __init__(self, path: str | os.PathLike[str], reading: bool = False) -> None:
        self.path = os.path.abspath(os.fspath(path))
        if reading and not os.path.exists(self.path):
            raise FileNotFoundError(2, "there is no such database", self.path)
        self._guard = threading.RLock()
        self._lock: Lock | None = None
        self.clock_back = 0.0  # seconds by which the clock is behind the last event
        frozen = is_read_only(self.path)  # no other process writes it either
        self._mode = "?mode=ro&immutable=1" if frozen else "?mode=ro" if reading else ""
        self.read_only = frozen or reading
        if not self.read_only:
            self._lock = Lock(self.path + ".lock")
        try:
            self._connection = self._open()
        except BaseException:
            self.close()
            raise
        self._latest = self._one("SELECT max(at) FROM event") or ""
        self.identity = self._identity()

    def _open(self) -> sqlite3.Connection:
        uri = "file:" + quote(Path(self.path).as_posix()) + self._mode
        connection = sqlite3.connect(uri, uri=True, isolation_level=None, check_same_thread=False)
        self._connection = connection
        try:
            self._check()
            if not self.read_only:
                connection.execute("PRAGMA journal_mode=WAL").fetchone()
                connection.execute("PRAGMA synchronous=FULL")
                connection.executescript(ADDED)  # databases of earlier versions lack these
        except sqlite3.DatabaseError as error:
            if isinstance(error, sqlite3.OperationalError):
                raise not_saved(error, self.path) from error
            raise ValueError(f"{self.path} is not a database of a studio: {error}") from None
        return connection

    def _check(self) -> None:
        """Make the tables of a new file; raise if the file is another program's or another version's."""
        version, application = self._one("PRAGMA user_version"), self._one("PRAGMA application_id")
        if version == 0 and application == 0 and not self._one("SELECT count(*) FROM sqlite_master"):
            marks = f"PRAGMA application_id={APPLICATION}; PRAGMA user_version={SCHEMA};"
            self._connection.executescript(f"BEGIN IMMEDIATE; {TABLES} {marks} COMMIT;")
        elif application != APPLICATION:
            raise ValueError(f"{self.path} is a database of another program; give a new name, or a studio's own")
        elif version != SCHEMA:
            newer = "newer" if version > SCHEMA else "older"
            raise ValueError(
                f"{self.path} has version {version} of the studio's tables, but this hscrf writes version {SCHEMA}: "
                f"open it with the {newer} hscrf that made it, and export from there"
            )

    def _identity(self) -> str:
        """The random name of this database: made once, kept in it, the same wherever the file is moved to.

        A database that may only be read and has no name yet is named by its path.
        """
        found = self.setting("identity")
        if found is None and self.read_only:
            return uuid.uuid5(uuid.NAMESPACE_URL, self.path).hex
        if found is None:
            found = uuid.uuid4().hex
            self.set("identity", found)
        return str(found)

    def close(self) -> None:
        """Close the file and give the lock back."""
        with self._guard:
            if hasattr(self, "_connection"):
                self._connection.close()
            if self._lock is not None:
                self._lock.release()
                self._lock = None

    def __enter__(self) -> Database:
        return self

    def __exit__(self, *failure: object) -> None:
        self.close()

    # -- statements

    def _one(self, statement: str, *values: Any) -> Any:
        """The first cell of the first row."""
        with self._guard:
            row = self._connection.execute(statement, values).fetchone()
        return None if row is None else row[0]

    def _rows(self, statement: str, *values: Any) -> list[tuple[Any, ...]]:
        with self._guard:
            return self._connection.execute(statement, values).fetchall()

    @contextlib.contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """A transaction: all of it is on disk when the block is left, or nothing."""
        with self._guard:
            try:
                self._connection.execute("BEGIN IMMEDIATE")
                yield self._connection
                self._connection.execute("COMMIT")
            except BaseException as error:
                with contextlib.suppress(sqlite3.Error):
                    if self._connection.in_transaction:
                        self._connection.execute("ROLLBACK")
                if isinstance(error, sqlite3.OperationalError):
                    raise not_saved(error, self.path) from error
                raise

    # -- settings

    def setting(self, key: str, default: Any = None) -> Any:
        """A value that was kept under a name."""
        found = self._one("SELECT value FROM setting WHERE key=?", key)
        return default if found is None else json.loads(found)

    def set(self, key: str, value: Any) -> None:
        """Keep a value under a name."""
        with self.writing() as connection:
            connection.execute("INSERT OR REPLACE INTO setting VALUES(?, ?)", (key, json.dumps(value)))

    # -- sequences

    def add(self, name: str, length: int, observations: str, sha256: str) -> int:
        """Add one sequence; its number."""
        return self.add_all([(name, length, observations, sha256)])[0]

    def add_all(self, rows: Iterable[Sequence[Any]]) -> list[int]:
        """Add sequences (name, length, observations, sha256), all or none; their numbers."""
        statement = "INSERT INTO sequence(name, length, observations, sha256) VALUES(?, ?, ?, ?)"
        with self.writing() as connection:
            return [int(connection.execute(statement, tuple(row)).lastrowid or 0) for row in rows]

    def sequences(self) -> list[Stored]:
        """All sequences in the order in which they were added."""
        return [Stored(*row) for row in self._rows("SELECT id, name, length, sha256 FROM sequence ORDER BY id")]

    def observations(self, sequence: int) -> str:
        """The observations of a sequence, as JSON."""
        return str(self._one("SELECT observations FROM sequence WHERE id=?", sequence))

    def set_times(self, rows: Iterable[tuple[int, Sequence[float]]]) -> None:
        """Keep the seconds at which the steps of sequences begin, all or none."""
        with self.writing() as connection:
            for sequence, seconds in rows:
                text = json.dumps([float(time) for time in seconds])
                connection.execute("INSERT OR REPLACE INTO times VALUES(?, ?)", (sequence, text))

    def times(self, sequence: int) -> list[float] | None:
        """The seconds at which the steps of a sequence begin; None where only their order is known."""
        if not self._has("times"):
            return None
        found = self._one("SELECT seconds FROM times WHERE sequence=?", sequence)
        return None if found is None else list(json.loads(found))

    def _has(self, table: str) -> bool:
        return bool(self._one("SELECT count(*) FROM sqlite_master WHERE name=?", table))

    def set_texts(self, rows: Iterable[tuple[int, str, Sequence[Sequence[int]]]]) -> None:
        """Keep the texts that words of sequences were cut from, and the places of the words there, all or none."""
        with self.writing() as connection:
            for sequence, text, offsets in rows:
                row = (sequence, text, json.dumps([list(place) for place in offsets]))
                connection.execute("INSERT OR REPLACE INTO text VALUES(?, ?, ?)", row)

    def text(self, sequence: int) -> tuple[str, list[tuple[int, int]]] | None:
        """The text of a sequence and the places of its words; None where it was not cut from a text."""
        rows = self._rows("SELECT content, offsets FROM text WHERE sequence=?", sequence) if self._has("text") else []
        return (rows[0][0], [(start, stop) for start, stop in json.loads(rows[0][1])]) if rows else None

    def recut(self, rows: Iterable[tuple[int, int, str, str, Sequence[Sequence[int]]]], tokens: str) -> None:
        """Keep other tokens (sequence, length, observations, sha256, offsets) and the way in which they were cut."""
        cuts = [*self.setting("cuts", []), {"tokens": tokens, "at": self.last_event()}]
        with self.writing() as connection:
            for sequence, length, observations, sha256, offsets in rows:
                changed = (length, observations, sha256, sequence)
                connection.execute("UPDATE sequence SET length=?, observations=?, sha256=? WHERE id=?", changed)
                places = json.dumps([list(place) for place in offsets])
                connection.execute("UPDATE text SET offsets=? WHERE sequence=?", (places, sequence))
            connection.execute("INSERT OR REPLACE INTO setting VALUES('cuts', ?)", (json.dumps(cuts),))
            connection.execute("DELETE FROM suggestion")

    # -- events

    def append(
        self,
        sequence: int,
        version: int,
        uid: str,
        kind: str,
        body: dict[str, Any],
        annotator: str = "",
        model: int | None = None,
    ) -> Event:
        """Add an event that was based on a version; it is on disk when this returns.

        The same uid again gives the event that was stored, whatever the version. Another version than the current one
        raises :class:`Behind`.
        """
        with self.writing() as connection:
            former = self.find(uid)
            if former is not None:
                if former[0] != sequence or former[1].kind != kind:
                    raise ValueError(f"uid {uid!r} belongs to another event")
                return former[1]
            current = self.version(sequence)
            if version != current:
                raise Behind(f"the sequence has version {current}, but the event was based on {version}")
            event = Event(version + 1, kind, body, annotator, model, self._now(), uid)
            text = json.dumps(body)
            connection.execute(
                "INSERT INTO event(sequence, version, uid, kind, body, annotator, model, at) VALUES(?,?,?,?,?,?,?,?)",
                (sequence, event.version, uid, kind, text, annotator, model, event.at),
            )
        self._latest = event.at
        return event

    def find(self, uid: str) -> tuple[int, Event] | None:
        """The sequence and the event with a uid."""
        rows = self._rows(f"SELECT sequence, {EVENT} FROM event WHERE uid=?", uid)
        return (rows[0][0], _event(rows[0][1:])) if rows else None

    def version(self, sequence: int) -> int:
        """The number of events of a sequence."""
        return int(self._one("SELECT coalesce(max(version), 0) FROM event WHERE sequence=?", sequence))

    def events(self, sequence: int, cuts: Sequence[Mapping[str, Any]] | None = None) -> list[Event]:
        """The events of a sequence in their order, in the names that labels have today and on the tokens of today.

        ``cuts`` are the ways in which texts were cut, by default those of the database.
        """
        rows = self._rows(f"SELECT id, {EVENT} FROM event WHERE sequence=? ORDER BY version", sequence)
        log = self.label_edits() if rows else []
        cuts = (self.setting("cuts", []) if cuts is None else cuts) if rows else []
        text = self.text(sequence) if len(cuts) > 1 else None
        found = []
        for number, *row in rows:
            event = _event(row)
            kind, body = translated(event.kind, event.body, number, log)
            if text is not None:
                kind, body = moved_event(kind, body, number, cuts, text[0])
            found.append(replace(event, kind=kind, body=body))
        return found

    # -- edits of labels

    def label_edits(self) -> Log:
        """The log of edits of labels."""
        return list(self.setting("label_edits", []))

    def edit_labels(self, changes: Sequence[Change]) -> None:
        """Keep an edit of labels: events up to now are read with it from now on."""
        log = list(self.label_edits())
        entry = {"edit": len(log), "kind": "do", "at": self.last_event(), "changes": list(changes)}
        self.set("label_edits", [*log, entry])

    def undo_label_edit(self) -> bool:
        """Take the last edit of labels back; whether there was one."""
        log = list(self.label_edits())
        last = last_edit(log)
        if last is not None:
            self.set("label_edits", [*log, {**last, "kind": "undo", "at": self.last_event()}])
        return last is not None

    def event_times(self) -> list[str]:
        """When people did something, oldest first; labels that came with the data are left out."""
        return [row[0] for row in self._rows("SELECT at FROM event WHERE kind != 'import' ORDER BY id")]

    def last_event(self) -> int:
        """The number of the last event of all."""
        return int(self._one("SELECT coalesce(max(id), 0) FROM event"))

    def accepted_since(self, event: int) -> int:
        """How many whole sequences were accepted after an event, given by its number."""
        return int(
            self._one(
                "SELECT count(DISTINCT sequence) FROM event WHERE id>? AND kind='accept' AND body LIKE ?",
                event,
                '%"whole": true%',
            )
        )

    def _now(self) -> str:
        """The time in UTC; never before that of the last event, even if the clock goes back."""
        now = datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        if now >= self._latest:
            return now
        self.clock_back = max(self.clock_back, (_time(self._latest) - _time(now)).total_seconds())
        return self._latest

    # -- models and suggestions

    def add_model(self, path: str, sha256: str, events_upto: int, metrics: dict[str, Any], status: str) -> int:
        """Add a model; its number."""
        with self.writing() as connection:
            cursor = connection.execute(
                "INSERT INTO model(path, sha256, events_upto, metrics, status, at) VALUES(?,?,?,?,?,?)",
                (path, sha256, events_upto, json.dumps(metrics), status, self._now()),
            )
            return int(cursor.lastrowid or 0)

    def models(self) -> list[dict[str, Any]]:
        """All models, oldest first."""
        names = ("number", "path", "sha256", "events_upto", "metrics", "status", "at")
        rows = self._rows(f"SELECT {', '.join(names)} FROM model ORDER BY number")
        found = [dict(zip(names, row, strict=True)) for row in rows]
        return [{**model, "metrics": json.loads(model["metrics"])} for model in found]

    def remember(self, rows: Iterable[tuple[int, int, int, float, Sequence[float]]]) -> None:
        """Store the data of suggestions that the queue needs: sequence, version, model, entropy, profile."""
        with self.writing() as connection:
            for *row, profile in rows:
                text = json.dumps([round(share, 4) for share in profile])
                connection.execute("INSERT OR REPLACE INTO suggestion VALUES(?,?,?,?,?)", (*row, text))

    def remembered(self) -> dict[int, tuple[int, int, float, list[float]]]:
        """Version, model, entropy and profile of the last suggestion of each sequence."""
        rows = self._rows("SELECT sequence, version, model, entropy, profile FROM suggestion")
        return {row[0]: (row[1], row[2], row[3], json.loads(row[4])) for row in rows}


EVENT = "version, kind, body, annotator, model, at, uid"


def _event(row: Sequence[Any]) -> Event:
    return Event(row[0], row[1], json.loads(row[2]), *row[3:])


def _time(text: str) -> datetime:
    return datetime.strptime(text, "%Y-%m-%dT%H:%M:%S.%fZ")

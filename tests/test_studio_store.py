"""The database: nothing lost, nothing twice, clear words when it cannot be."""

import os
import sqlite3
import subprocess
import sys

import pytest

from hscrf.studio.data.database import SCHEMA, Behind, Database, NotSaved
from hscrf.studio.data.locking import Locked
from processes import SOURCE


@pytest.fixture
def store(tmp_path):
    with Database(tmp_path / "a.sqlite") as store:
        store.add("day", 3, '["a", "b", "c"]', "0")
        yield store


def test_an_event_is_there_after_opening_again(tmp_path):
    with Database(tmp_path / "a.sqlite") as store:
        store.add("day", 3, "[]", "0")
        store.append(1, 0, "u", "label", {"level": "tag", "label": "é \ud83d\ude00 </script>"}, "ann", 4)
    with Database(tmp_path / "a.sqlite") as store:
        (event,) = store.events(1)
        assert (event.version, event.kind, event.annotator, event.model) == (1, "label", "ann", 4)
        assert event.body["label"].endswith("</script>")


def test_the_same_uid_is_stored_once(store):
    store.append(1, 0, "u", "label", {})
    store.append(1, 1, "v", "label", {})
    assert store.append(1, 0, "u", "label", {}).version == 1
    assert [event.uid for event in store.events(1)] == ["u", "v"]


def test_a_uid_of_another_event_is_refused(store):
    store.append(1, 0, "u", "label", {})
    with pytest.raises(ValueError, match="another event"):
        store.append(1, 1, "u", "undo", {})


def test_an_event_based_on_an_old_version_is_refused(store):
    store.append(1, 0, "u", "label", {})
    with pytest.raises(Behind):
        store.append(1, 0, "v", "label", {})
    assert store.version(1) == 1


def test_events_are_never_changed_nor_deleted(store):
    store.append(1, 0, "u", "label", {})
    with sqlite3.connect(store.path) as other:
        for statement in ("DELETE FROM event", "UPDATE event SET kind='undo'"):
            with pytest.raises(sqlite3.IntegrityError, match="never"):
                other.execute(statement)
    other.close()


def test_the_log_is_written_before_the_answer(store):
    assert store._one("PRAGMA journal_mode") == "wal"
    assert store._one("PRAGMA synchronous") == 2


def test_one_process_a_database(store):
    code = f"from hscrf.studio.data.database import Database; Database({store.path!r})"
    done = subprocess.run([sys.executable, "-c", code], env={**os.environ, "PYTHONPATH": str(SOURCE)},
                          capture_output=True, text=True)  # fmt: skip
    assert f"stop process {os.getpid()} first" in done.stderr
    with pytest.raises(Locked, match="another process"):
        Database(store.path)


def test_reading_needs_no_lock(store):
    store.append(1, 0, "u", "label", {})
    with Database(store.path, reading=True) as other:
        assert len(other.events(1)) == 1
        with pytest.raises(NotSaved) as failure:
            other.append(1, 1, "v", "label", {})
        assert failure.value.reason == "read_only"


def test_a_database_that_becomes_read_only_says_so(store):
    store._connection.execute("PRAGMA query_only=ON")
    with pytest.raises(NotSaved, match="may only be read") as failure:
        store.append(1, 0, "u", "label", {})
    assert failure.value.reason == "read_only"
    store._connection.execute("PRAGMA query_only=OFF")
    assert store.append(1, 0, "u", "label", {}).version == 1


def test_a_full_disk_says_so_and_loses_nothing(store):
    store.append(1, 0, "u", "label", {})
    pages = store._one("PRAGMA page_count")
    store._connection.execute(f"PRAGMA max_page_count={pages}").fetchone()
    with pytest.raises(NotSaved, match="full") as failure:
        store.append(1, 1, "v", "label", {"text": "x" * 100_000})
    assert failure.value.reason == "full"
    store._connection.execute("PRAGMA max_page_count=1000000").fetchone()
    assert store.append(1, 1, "v", "label", {"text": "x" * 100_000}).version == 2
    assert store._one("PRAGMA integrity_check") == "ok"


LIMITED = """
import resource, sys
from hscrf.studio.data.database import NotSaved, Database
store = Database(sys.argv[1])
store.add("day", 3, "[]", "0")
resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, resource.RLIM_INFINITY))
done = 0
try:
    while True:
        store.append(1, done, f"u{done}", "label", {"text": "x" * 5000})
        done += 1
except NotSaved as error:
    print(done, error.reason)
"""


def test_a_file_that_may_not_grow_loses_nothing(tmp_path):
    """A limit of the system on the size of files, which SQLite meets as an error of the disk."""
    pytest.importorskip("resource")
    path = tmp_path / "a.sqlite"
    run = subprocess.run([sys.executable, "-c", LIMITED, str(path)], env={**os.environ, "PYTHONPATH": str(SOURCE)},
                         capture_output=True, text=True)  # fmt: skip
    assert run.returncode == 0, run.stderr
    done, reason = run.stdout.split()
    assert reason in ("full", "disk")
    with Database(path) as store:
        assert [event.uid for event in store.events(1)] == [f"u{k}" for k in range(int(done))]
        assert int(done) > 5
        store.append(1, int(done), "more", "label", {})


@pytest.mark.parametrize("version", [SCHEMA + 1, 0])
def test_a_database_of_another_version_is_left_alone(tmp_path, version):
    path = tmp_path / "a.sqlite"
    Database(path).close()
    with sqlite3.connect(path) as other:
        other.execute(f"PRAGMA user_version={version}")
    other.close()
    with pytest.raises(ValueError, match=f"version {version} of the studio's tables"):
        Database(path)
    with sqlite3.connect(path) as other:
        other.execute(f"PRAGMA user_version={SCHEMA}")
    other.close()
    Database(path).close()


def test_a_file_of_another_program_is_left_alone(tmp_path):
    path = tmp_path / "a.sqlite"
    with sqlite3.connect(path) as other:
        other.execute("CREATE TABLE song(title)")
    other.close()
    with pytest.raises(ValueError, match="another program"):
        Database(path)
    path = tmp_path / "text.sqlite"
    path.write_text("this is no database at all, but it is long enough to look at\n" * 20)
    with pytest.raises(ValueError, match="not a database of a studio"):
        Database(path)


def test_a_folder_that_is_not_there(tmp_path):
    with pytest.raises(FileNotFoundError):
        Database(tmp_path / "nowhere" / "a.sqlite")
    with pytest.raises(FileNotFoundError):
        Database(tmp_path / "a.sqlite", reading=True)


def test_a_clock_that_goes_back_keeps_the_order(store, monkeypatch):
    import hscrf.studio.data.database as module

    class Past(module.datetime):
        @classmethod
        def now(cls, zone=None):
            return module.datetime(2001, 1, 1, tzinfo=zone)

    first = store.append(1, 0, "u", "label", {})
    monkeypatch.setattr(module, "datetime", Past)
    second = store.append(1, 1, "v", "label", {})
    assert second.at >= first.at
    assert store.clock_back > 1e6
    assert [event.uid for event in store.events(1)] == ["u", "v"]

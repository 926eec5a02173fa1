"""Two commits in one run, each in processes of its own."""

import io
import json
import os
import subprocess
import sys
import tarfile
import tempfile
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent


@dataclass(frozen=True)
class Commit:
    """A checkout, and where its results are kept."""

    folder: Path
    kept: Path

    def environment(self):
        path = os.pathsep.join([str(self.folder / "src"), str(HERE.parent / "tests")])
        return {"PYTHONPATH": path}

    def run(self, *command, **environment):
        """Run Python with this checkout; what it printed."""
        return child([sys.executable, *map(str, command)], **{**self.environment(), **environment})

    @contextmanager
    def asked(self, *command):
        """Run Python with this checkout in the background; a function that sends a line of JSON and reads one."""
        environment = {**os.environ, **self.environment()}
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        with subprocess.Popen([sys.executable, *map(str, command)], env=environment, **pipes) as process:

            def ask(*question):
                print(json.dumps(question), file=process.stdin, flush=True)
                answer = process.stdout.readline()
                if not answer:
                    raise RuntimeError(f"{self.folder} has no answer to {question}")
                return json.loads(answer)

            yield ask

    def check(self):
        """Raise unless it is this checkout that is imported."""
        found = Path(self.run("-c", "import hscrf; print(hscrf.__file__)").strip()).resolve()
        if not found.is_relative_to(self.folder):
            raise SystemExit(f"{self.folder} has no package in src: {found} is imported")


@contextmanager
def both(old, new, kept=None):
    """Two commits, each the folder of a checkout or a name that git knows; all is gone afterwards unless ``kept``."""
    with tempfile.TemporaryDirectory() as folder:
        commits = []
        for side, name in (("old", old), ("new", new)):
            place = Path(name).resolve() if Path(name).is_dir() else unpack(name, Path(folder).resolve() / side)
            commits.append(Commit(place, Path(kept or folder).resolve() / f"results {side}"))
            commits[-1].kept.mkdir(parents=True, exist_ok=True)
            commits[-1].check()
        yield commits


def unpack(name, folder):
    """Write the package of a commit into a folder; commits with C++ sources must be built first, so give a folder."""
    listed = ["git", "-C", HERE.parent, "ls-tree", "--name-only", name, "core/"]
    if subprocess.run(listed, capture_output=True, text=True).stdout:
        raise SystemExit(f"{name} has a compiled core: check it out, run `make core` there, and give that folder")
    archive = subprocess.run(["git", "-C", HERE.parent, "archive", name, "src"], capture_output=True)
    if archive.returncode:
        raise SystemExit(f"{name} is no folder, and git knows no such commit: {archive.stderr.decode().strip()}")
    with tarfile.open(fileobj=io.BytesIO(archive.stdout)) as files:
        files.extractall(folder, filter="data")
    return folder


def child(command, **environment):
    """What a command printed. Python may keep the bytecode of modules, as it does where nobody forbids it."""
    given = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    done = subprocess.run(command, env={**given, **environment}, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)} failed:\n{done.stderr}")
    return done.stdout

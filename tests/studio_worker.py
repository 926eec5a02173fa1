"""A studio in a process of its own, to be killed: prints its address, serves until it dies.

    python studio_worker.py FOLDER TRAIN_AFTER [PORT]

Without a port it takes that of the last time, so that an open page finds it again.
"""

import sys
from functools import partial
from pathlib import Path

from hscrf import load
from hscrf.studio.data.project import Project
from hscrf.studio.data.sequences import items_of
from hscrf.studio.server.serving import Server
from hscrf.studio.server.studio import Studio
from studio_fixtures import TOPOLOGY, sentences

if __name__ == "__main__":
    folder = Path(sys.argv[1])
    after = int(sys.argv[2])
    model = load(folder / "model.hscrf")
    project = Project(items_of(sentences()[0]), TOPOLOGY, model=model, kind="text", train_after=after)
    port = int(sys.argv[3]) if len(sys.argv) > 3 else None
    server = Server(Studio(project, str(folder / "labels.sqlite")), port)
    server.on_new_address = partial(print, flush=True)
    server.on_new_address(server.url)
    server.run()

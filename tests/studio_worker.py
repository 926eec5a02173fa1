"""A studio in a process of its own, to be killed: prints its address, serves until it dies."""

import sys
from pathlib import Path

from hscrf import load
from hscrf.studio.items import items_of
from hscrf.studio.project import Project
from hscrf.studio.serving import Server
from hscrf.studio.studio import Studio
from studio_fixtures import TOPOLOGY, sentences

if __name__ == "__main__":
    folder = Path(sys.argv[1])
    after = int(sys.argv[2])
    model = load(folder / "model.hscrf")
    project = Project(items_of(sentences()[0]), TOPOLOGY, model=model, kind="text", train_after=after)
    server = Server(Studio(project, str(folder / "labels.sqlite")), 0)
    print(server.url, flush=True)
    server.run()

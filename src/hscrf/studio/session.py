"""The studio from Python: serve sequences in the background and read the labels."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any

from hscrf.labels.given import given_labels
from hscrf.labels.labels import Labels
from hscrf.labels.reading import as_labels
from hscrf.studio.data.conflicts import feasible
from hscrf.studio.data.evidence import labels_of
from hscrf.studio.data.project import Project, plain_texts, save_plainly, with_features
from hscrf.studio.data.sequences import InputSequence, items_of
from hscrf.studio.data.texts import Texts
from hscrf.studio.model.suggestions import agrees
from hscrf.studio.server.media import AUDIO, VIDEO, kind_of
from hscrf.studio.server.serving import Server
from hscrf.studio.server.studio import Studio
from hscrf.topology import Topology


class Session:
    """A studio that runs in a background thread; made by :func:`serve`. As a context manager it stops at the end.

    Parameters
    ----------
    server : Server
        The running server.
    """

    def __init__(self, server: Server) -> None:
        self._server = server
        self.studio = server.studio

    @property
    def url(self) -> str:
        """The address that admits one browser. It changes after each unknown browser."""
        return self._server.url

    def invite(self, name: str) -> str:
        """Return an address for another person. Their browser works at the same time as yours, under their name.

        A sequence that one person has open is read-only for the others.

        Parameters
        ----------
        name : str
            Stored with every label that the person fixes or accepts.

        Returns
        -------
        str
            An address that admits one browser.
        """
        return self._server.invite(name)

    def labels(self, accepted_only: bool = False) -> list[Labels | None]:
        """Return the labels that people gave to each sequence.

        Parameters
        ----------
        accepted_only : bool
            Whether to leave out sequences that were not accepted.

        Returns
        -------
        list of Labels or None
            One entry for each sequence, in order; None without labels. The labels may be partial.
        """
        found: list[Labels | None] = []
        topology = self.studio.project.topology
        for tracked in self.studio.workspace.sequences.values():
            with tracked.guard:
                said = tracked.state.status == "done" if accepted_only else bool(tracked.state.in_force)
                known = feasible(tracked.state.knowledge, 0, lambda some: agrees(some, topology))[0] if said else None
                found.append(None if known is None else labels_of(known, topology))
        return found

    @property
    def model(self) -> Any:
        """The model of the suggestions; None before the first one."""
        suggester = self.studio.workspace.model_store.suggester
        return None if suggester is None else suggester.model

    def stop(self) -> None:
        """Stop the server. The database stays."""
        self._server.stop()

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *failure: object) -> None:
        self.stop()

    def __repr__(self) -> str:
        return f"Session({self.url})"


def serve(
    X: Sequence[Any],
    Y: Sequence[Any] | None = None,
    *,
    model: Any = None,
    topology: Topology | None = None,
    db: str | os.PathLike[str],
    names: Sequence[str] | None = None,
    kind: str | None = None,
    port: int | None = None,
    train_after: int = 10,
    estimator: Any = None,
    rate: float | None = None,
    media: Sequence[str | os.PathLike[str] | None] | None = None,
    times: Sequence[Sequence[float] | None] | None = None,
) -> Session:
    """Open a studio on sequences, in a background thread.

    Parameters
    ----------
    X : sequence
        Sequences in a form that ``fit`` takes. Without a model, steps may be plain words: the default template makes
        their features, as in ``hscrf fit``, and model files record this. X may also hold plain texts, without ``model``
        and ``Y``. They are cut into words (:func:`hscrf.io.tokenize`); the page can change this.
    Y : sequence, optional
        Known labels of each sequence, complete or partial, or None.
    model : estimator, optional
        A trained model that makes the first suggestions.
    topology : Topology, optional
        Levels and labels. Required without a model.
    db : path
        The SQLite file of all work. An existing file is continued.
    names : sequence of str, optional
        Names of the sequences.
    kind : {"text", "time"}, optional
        How the page shows sequences. By default the data decide.
    port : int, optional
        Port of the server; 0 takes any free one. By default the port of the last time, if it is free.
    train_after : int
        Number of accepted sequences after which a new model is trained.
    estimator : estimator, optional
        The model to train if none is given; by default ``HSCRF()``.
    rate : float, optional
        Steps per second. Times are then shown in seconds.
    media : sequence of path or None, optional
        A sound or film for each sequence, played next to the tracks. The files stay where they are.
    times : sequence of sequence of float or None, optional
        For each sequence the seconds at which its steps begin, if steps are not equally long. Exports contain them.

    Returns
    -------
    Session
        The running studio. Open ``session.url`` in a browser.

    Raises
    ------
    ValueError
        If there is neither model nor topology, or if lengths differ.
    FileNotFoundError
        If a file of ``media`` does not exist.
    """
    if topology is None:
        if model is None:
            raise ValueError("give a model, or a topology that says which levels and labels there are")
        topology = model.topology_
    is_text = any(isinstance(x, str) for x in X)
    labels = None
    if Y is not None and not is_text:
        given = given_labels(Y, topology.levels[1:])
        labels = [
            None if y is None else as_labels(y, n, len(x) if not hasattr(x, "shape") else x.shape[0], topology, "plain")
            for n, (x, y) in enumerate(zip(X, given, strict=True))
        ]
    if times is not None and len(times) != len(X):
        raise ValueError(f"times has {len(times)} entries, but there are {len(X)} sequences")
    texts: Texts | None = None
    save: Callable[[str, Any], None] = save_plainly
    if is_text:
        items, save, texts = plain_texts(X, names, topology, os.fspath(db), model is not None or Y is not None)
    else:
        items = items_of(X, names, labels, times)
        if model is None:
            items, save = with_features(items, topology)
    project = Project(
        items,
        topology,
        model=model,
        save=save,
        estimator=estimator,
        kind=kind,
        name=os.path.basename(os.fspath(db)),
        train_after=train_after,
        rate=rate,
        media=_media(items, media),
        column_names=_columns(X),
        texts=texts,
    )
    studio = Studio(project, os.fspath(db))
    try:
        server = Server(studio, port)
    except BaseException:
        studio.close()
        raise
    server.start()
    return Session(server)


def _media(items: Sequence[InputSequence], media: Sequence[str | os.PathLike[str] | None] | None) -> dict[str, str]:
    """The file of each sequence by its name."""
    if media is None:
        return {}
    if len(media) != len(items):
        raise ValueError(f"media has {len(media)} files, but there are {len(items)} sequences")
    found = {item.name: os.path.abspath(path) for item, path in zip(items, media, strict=True) if path is not None}
    for name, path in found.items():
        if kind_of(path) is None:
            raise ValueError(f"media of {name!r} is {path}, expected a sound or a film ({', '.join((*AUDIO, *VIDEO))})")
        if not os.path.isfile(path):
            raise FileNotFoundError(2, f"there is no such file for sequence {name!r}", path)
    return found


def _columns(X: Sequence[Any]) -> tuple[str, ...]:
    """The names of the numeric columns, if the data have names."""
    names = getattr(X[0], "columns", ()) if len(X) else ()
    return tuple(map(str, names))

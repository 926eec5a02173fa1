"""Data beyond memory: sources that are packed into shards on disk, for training and labelling."""

from __future__ import annotations

import copy
import json
import os
import shutil
import sys
import tempfile
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hscrf.arrays import Floats, Ints
from hscrf.errors import a_type
from hscrf.estimator.contract import Learner, Model
from hscrf.estimator.frame import Frame, Part
from hscrf.features.specifications import Segment
from hscrf.objective.likelihood import checked_weights
from hscrf.objective.margin import Costs
from hscrf.objective.scorer import Scorer
from hscrf.objective.workers import Workers
from hscrf.scale.cache import Cache, key_of, write_manifest
from hscrf.scale.cluster import PATIENCE, Cluster, ClusterLoss, known_workers
from hscrf.scale.loss import StoredLoss
from hscrf.scale.packing import Packer, load_frame, settings_of
from hscrf.scale.problems import Problems
from hscrf.scale.shardfile import ShardFile
from hscrf.scale.sizes import SIZES
from hscrf.scale.sources import FileSource, PartSource, Source, files_of
from hscrf.scale.tasks import TaskRunner

FORMAT = 4  # version of the format of packed data
Manifest = tuple[dict[str, Any], dict[str, Any]]  # header and arrays


class Shards:
    """Labelled sequences that need not fit in memory: the X of ``fit``, ``predict`` and ``score``.

    The first model that needs the data packs them into shards of about half a million steps. Later calls and processes
    use the same shards if the sources and the model's settings of names, states and scales are unchanged.

    Parameters
    ----------
    sources : sequence of Source
        Files or parts; made by :meth:`from_files` and :meth:`from_parts`.
    cache : path, optional
        Folder of the shards. Without one, a temporary folder exists as long as this object.
    errors : {"raise", "skip"}
        ``"raise"``: the first bad sequence raises an error that names file and line. ``"skip"``: sequences that cannot
        be read or contradict themselves are left out. ``skipped`` counts them; ``problems`` holds the first messages.
    key : str, optional
        Version of the parts, see :meth:`from_parts`.

    Examples
    --------
    >>> import hscrf
    >>> def part():
    ...     return [[["w=the"], ["w=cat"], ["w=sleeps"]]] * 2, [["D", "N", "V"]] * 2
    >>> shards = Shards.from_parts([part, part])
    >>> model = hscrf.ChainCRF().fit(shards)
    >>> model.predict([[["w=the"], ["w=cat"]]])[0].column()
    ['D', 'N']
    """

    def __init__(
        self,
        sources: Sequence[Source],
        cache: str | os.PathLike[str] | None = None,
        errors: str = "raise",
        key: Any = None,
    ) -> None:
        if errors not in ("raise", "skip"):
            raise ValueError(f"errors is {errors!r}, expected 'raise' or 'skip'")
        self.sources, self.errors, self.key = list(sources), errors, key
        self.sizes, self.patience = SIZES, PATIENCE
        self.client: Any = None
        self.bad = Problems(errors == "skip")  # set when the data are packed; shared with copies
        self.done: set[str] = set()  # keys that this object has packed
        self.whole: Any = None  # keeps a temporary folder alive for copies of this object
        if cache is None:
            cache = tempfile.mkdtemp(prefix="hscrf-shards-")
            weakref.finalize(self, shutil.rmtree, cache, ignore_errors=True)
        self.cache = Cache(os.fspath(cache))

    @classmethod
    def from_files(
        cls,
        files: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
        levels: Sequence[str] | Mapping[str, int] | None = None,
        *,
        template: str | None = None,
        unlabelled: bool = False,
        cache: str | os.PathLike[str] | None = None,
        errors: str = "raise",
        **layout: Any,
    ) -> Shards:
        """Return shards of files. The files may be compressed (.gz, .bz2, .xz, .zst).

        A table is read whole, so a large one should be several files.

        Parameters
        ----------
        files : path, or sequence of paths
            Names, or patterns such as ``"data/*.jsonl.gz"``.
        levels : sequence of str, or mapping from str to int, optional
            Names of the label levels from top to bottom, or their columns.
        template : str, optional
            Features of column files of words: a template file, "default" or "none".
        unlabelled : bool
            Whether files may lack the labels.
        cache : path, optional
            Folder of the shards.
        errors : {"raise", "skip"}
            What happens to bad sequences, see :class:`Shards`.
        **layout
            format, columns, features, separator, comment, sequence and time, as in the readers of :mod:`hscrf.io`.
            Without ``format``, the names of the files decide: columns, JSON Lines, CSV, Parquet or CRFsuite items.

        Returns
        -------
        Shards
        """
        return cls(files_of(files, levels, template, unlabelled, errors == "skip", **layout), cache, errors)

    @classmethod
    def from_parts(
        cls,
        parts: Sequence[Any],
        *,
        cache: str | os.PathLike[str] | None = None,
        errors: str = "raise",
        key: str | None = None,
    ) -> Shards:
        """Return shards of parts that are computed on demand. Each part is computed once.

        Parameters
        ----------
        parts : sequence
            Functions without arguments, or Dask delayed objects. Each returns (X, Y).
        cache : path, optional
            Folder of the shards.
        errors : {"raise", "skip"}
            What happens to bad sequences, see :class:`Shards`.
        key : str, optional
            A name that you change when the parts change. Without one, other processes do not reuse the shards.

        Returns
        -------
        Shards
        """
        for k, part in enumerate(parts):
            if not callable(part) and not hasattr(part, "compute"):
                raise ValueError(f"parts[{k}] is {a_type(part)}, expected a function or a delayed object")
        return cls([PartSource(f"part {k}", part, k) for k, part in enumerate(parts)], cache, errors, key)

    @property
    def skipped(self) -> int:
        """Number of bad sequences that the last packing left out."""
        return self.bad.count

    @property
    def problems(self) -> list[str]:
        """The first messages about sequences that were left out."""
        return self.bad.messages

    def __repr__(self) -> str:
        return f"Shards({len(self.sources)} sources, packed in {self.cache.folder})"

    # -- the contract of stores

    def on_cluster(self, client: Any) -> Shards:
        """Return the same data, evaluated by the workers of a Dask client.

        Parameters
        ----------
        client : Dask client or None
            None returns this object.

        Returns
        -------
        Shards
        """
        if client is None:
            return self
        found = copy.copy(self)
        found.client, found.whole = client, self  # the temporary folder lives as long as self
        return found

    def packed_for(self, model: Learner) -> PackedShards:
        """Learn the frame of a model and pack the data in it, or find them packed.

        Parameters
        ----------
        model : Learner
            The model that is being fitted.

        Returns
        -------
        PackedShards
        """
        if any(isinstance(spec, Segment) for spec in model.asked_features()):
            raise ValueError("a Segment function reads the user's observations, which shards do not keep")

        def write(folder: str) -> Manifest:
            runner = self._runner(model, folder)
            return Packer(model, self.sources, folder, self.errors == "skip", runner, self.sizes).run()

        settings = {"chunk": self.sizes.cuts.chunk, "model": settings_of(model)}
        header, arrays, folder = self.stored(settings, write, verbose=bool(model.verbose))
        return PackedShards(load_frame(header, arrays, model), header, arrays, folder, self)

    def pack(self, model: Learner, *, client: Any = None) -> None:
        """Pack the data for a model with these settings, so that its ``fit`` finds them in the cache.

        Parameters
        ----------
        model : HSCRF, ChainCRF, SemiCRF or DynamicCRF
            ``model.n_jobs`` processes pack. The result does not depend on their number.
        client : Dask client or None
            Its workers pack, if they can read the files and write to the cache.
        """
        from sklearn.base import clone

        self.on_cluster(client).packed_for(clone(model))

    def _cluster(self, n_jobs: int) -> Cluster:
        """The workers of the client, each with ``n_jobs`` threads."""
        return Cluster(self.client, n_jobs, self.patience)

    def _runner(self, model: Learner, folder: str) -> TaskRunner:
        """The workers that pack into a folder: those of the client, or processes of this machine."""
        jobs = (os.cpu_count() or 1) if model.n_jobs == -1 else model.n_jobs
        if self.client is None:
            return TaskRunner(jobs)

        def connect() -> Cluster | None:
            cluster = self._cluster(model.n_jobs)
            files = [source.name for source in self.sources if isinstance(source, FileSource)]
            if cluster.can_pack([os.path.abspath(name) for name in files[:1]], folder):
                return cluster
            if model.verbose:
                print("not all workers can read the files and write to the cache: packing here", file=sys.stderr)
            return None

        return TaskRunner(jobs, len(known_workers(self.client)), connect)

    # -- the cache

    def stored(
        self, settings: Mapping[str, Any], write: Callable[[str], Manifest], verbose: bool = False
    ) -> tuple[dict[str, Any], dict[str, Any], str]:
        """Return these data packed with some settings: from the cache, or written now.

        Parts without a key are found only if this object has packed them.

        Parameters
        ----------
        settings : mapping
            Settings of the model that packed data depend on.
        write : callable
            Writes the packed data into a folder and returns header and arrays of their manifest.
        verbose : bool
            Whether to print how the settings differ from those of shards of the same sources.

        Returns
        -------
        header, arrays : dict
            The manifest.
        folder : str
        """
        names = [self._name(source) for source in self.sources]
        made_of = {"format": FORMAT, "shard": self.sizes.cuts.shard, "errors": self.errors, "names": names, **settings}
        key = key_of(made_of)
        before = [source.state() for source in self.sources]
        found = None
        if all(state is not None for state in before) or self.key is not None or key in self.done:
            found = self.cache.find(key, self.sources)
        if found is None:
            made_of = json.loads(json.dumps(made_of))
            if verbose:
                self._print_differences(made_of)
            with self.cache.making(key) as folder:
                header, arrays = found = write(folder)
                write_manifest(folder, {**header, "made_of": made_of}, arrays, self.sources)
                self._check_unchanged(before)
            self.done.add(key)
        self.bad.count, self.bad.messages[:] = found[0].get("skipped", 0), found[0].get("told", [])
        return *found, self.cache.path(key)

    def _print_differences(self, made_of: dict[str, Any]) -> None:
        """Print which settings differ from those of cached shards of the same sources."""
        differ = self.cache.difference(made_of, self.sources)
        if differ:
            told = f"{self.cache.folder} has these sources, but packed with another {', '.join(differ)}"
            print(f"{told}: packing them again", file=sys.stderr, flush=True)

    def _name(self, source: Source) -> Any:
        if isinstance(source, FileSource):
            return [os.path.abspath(source.name), source.recipe.to_dict(), source.unlabelled]
        return [source.name, self.key]

    def _check_unchanged(self, before: Sequence[Any]) -> None:
        for source, state in zip(self.sources, before, strict=True):
            if source.state() != state:
                raise ValueError(f"{source.name} was changed while it was packed: pack it again")

    def scorer_for(self, model: Model) -> Callable[[Floats], float]:
        """Return the accuracy on these data as a function of the weights.

        Parameters
        ----------
        model : Model
            A fitted model.

        Returns
        -------
        callable
            From weights to accuracy.
        """
        from hscrf.scale.labelling import Labelling

        return Labelling(self, model).accuracy

    def predict_by(self, model: Model, folder: Any, loss: str = "sequence") -> list[str]:
        """Write the best labels of each shard to a file.

        Parameters
        ----------
        model : Model
            A fitted model.
        folder : path
            Folder of the files.
        loss : {"sequence", "step", "segment"}
            As in ``predict``.

        Returns
        -------
        list of str
            The files.
        """
        from hscrf.scale.labelling import Labelling

        return Labelling(self, model).predict(folder, loss)


class PackedShards:
    """Data on disk in the final form of a model's frame; see :class:`hscrf.estimator.contract.Packed`."""

    def __init__(
        self, frame: Frame, header: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]], folder: str, shards: Shards
    ) -> None:
        self.frame, self.shards = frame, shards
        self.files = shard_files(folder, header["shards"])
        self.lengths: Ints = arrays["lengths"]
        self.labelled, self.complete = arrays["labelled"], header["complete"]

    def parts(self) -> Iterator[Part]:
        """Yield the sequences of each shard."""
        topology = self.frame.topology
        assert topology is not None
        for file in self.files:
            rows = file.rows()
            labels = [rows.labels(n, topology) for n in range(file.count)]
            yield Part(rows.observations, labels, file.first)

    def labelled_levels(self) -> NDArray[np.bool_]:
        """Return whether any label of each level (D,) is known."""
        return self.labelled

    def objective(self, scorer: Scorer, sample_weight: Any, workers: Workers, costs: Costs | None) -> StoredLoss:
        """Return the loss over all shards, evaluated here or by the cluster."""
        weights = None if sample_weight is None else checked_weights(sample_weight, len(self.lengths))
        chunk = self.shards.sizes.cuts.chunk
        loss = StoredLoss(scorer, self.files, weights, workers, costs, self.complete, self._error, chunk)
        return loss if self.shards.client is None else ClusterLoss(loss, self.shards._cluster(workers.n_jobs))

    def _error(self, n: int, error: Exception) -> Exception:
        """An error about a sequence with its file and line."""
        file = next(file for file in self.files if file.first <= n < file.first + file.count)
        source, place = file.places()
        return self.shards.sources[source[n - file.first]].error(tuple(place[n - file.first].tolist()), error)


def shard_files(folder: str, entries: Sequence[Mapping[str, Any]]) -> list[ShardFile]:
    """The shards of a set."""
    names = ("digest", "first", "count", "steps", "chunks", "complete")
    return [ShardFile(os.path.join(folder, entry["file"]), *(entry[name] for name in names)) for entry in entries]

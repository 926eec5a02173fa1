"""Files of stacked models: the CRF in arrays and JSON, the classifiers by skops, nothing by pickle.

Skops stores estimators as JSON and arrays. It builds only types that it lists as safe, and those that the caller names
as trusted. Models of trees need ``trusted=["sklearn.tree._tree.Tree"]``: a file could hold a tree that reads memory it
does not own.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hscrf.errors import FileFormatError
from hscrf.families.loading import model_of
from hscrf.features.specifications import Score
from hscrf.files.container import read_container, write_container
from hscrf.files.content import ContentError, Field, array_of, naming
from hscrf.files.model import OBSERVATIONS, check_encoder, check_kind
from hscrf.observations.encoder import ObservationEncoder
from hscrf.stacking.model import StackedCRF
from hscrf.stacking.scores import LevelScores

File = str | os.PathLike[str]
Arrays = Mapping[str, NDArray[Any]]
CRF = "crf."  # before the names of the arrays of the model on top


def load(
    path: File, functions: Mapping[str, Callable[..., Any]] | None = None, trusted: Sequence[str] = ()
) -> StackedCRF:
    """Read a model that :meth:`StackedCRF.save` wrote; ``hscrf.load`` does the same.

    Parameters
    ----------
    path : str or path
        The file.
    functions : dict or None
        Segment functions of the CRF by name, as in :func:`hscrf.load`.
    trusted : sequence of str
        Types of the classifiers to build although skops does not list them as safe, such as
        ``"sklearn.tree._tree.Tree"`` for forests.

    Returns
    -------
    StackedCRF

    Raises
    ------
    FileFormatError
        If the file is damaged, holds no stacked model, or holds classifiers of types that are not trusted.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from sklearn.linear_model import LogisticRegression
    >>> X, Y = [[["a"], ["b"]]] * 4, [["N", "V"]] * 4
    >>> model = StackedCRF(classifier=LogisticRegression(), window=1, cv=2).fit(X, Y)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     model.save(pathlib.Path(folder, "m"))
    ...     load(pathlib.Path(folder, "m")).predict(X[:1])[0].column()
    ['N', 'V']
    """
    header, arrays = read_container(path)
    check_kind(path, header)
    if header.get("class") != "StackedCRF":
        raise FileFormatError(f"{os.fspath(path)} holds a {header.get('class')}, expected a StackedCRF: use hscrf.load")
    return opened(path, header, arrays, functions, trusted)


def save(model: StackedCRF, path: File) -> None:
    """Write a fitted model."""
    settings, arrays = model.encoder_.state()
    crf, inner = model.crf_.content()
    arrays = dict(arrays) | {f"{CRF}{name}": array for name, array in inner.items()}
    scores = []
    for k, own in enumerate(model.scores_):
        classes = [[state, begins] for state, begins in own.classes]
        scores.append({"level": own.level, "classes": classes, "delimited": own.delimited})
        if own.model is not None:
            arrays[f"classifier{k}"] = _dumped(own.model)
    if model.classifier is not None:
        arrays["classifier"] = _dumped(model.classifier)
    seed = model.random_state if isinstance(model.random_state, int) else None
    parameters = {
        "window": int(model.window),
        "cv": int(model.cv) if isinstance(model.cv, int | np.integer) else 5,
        "passthrough": bool(model.passthrough),
        "random_state": seed,
    }
    header = {
        "kind": "model",
        "class": "StackedCRF",
        "parameters": parameters,
        "encoder": settings,
        "scores": scores,
        "crf": crf,
        "crf_given": model.crf is not None,
    }
    write_container(path, header, arrays)


def opened(path: File, header: Mapping[str, Any], arrays: Arrays, functions: Any, trusted: Sequence[str]) -> StackedCRF:
    """Return the model in the content of a file; all of the content is checked.

    Parameters
    ----------
    path : str or path
        The file, for messages.
    header : dict
    arrays : dict of str to ndarray
        The content of the file.
    functions : dict or None
    trusted : sequence of str
        As in :func:`load`.

    Returns
    -------
    StackedCRF
    """
    with naming(path, "model"):
        content = Field(dict(header), "", arrays)
        model = StackedCRF(**_parameters(content["parameters"]))
        crf = content["crf"]
        crf.items()
        inner = {name.removeprefix(CRF): array for name, array in arrays.items() if name.startswith(CRF)}
        model.crf_ = model_of(path, crf.value, inner, functions or {})
        own = Field(content["encoder"].value, "encoder", arrays)
        check_encoder(own, OBSERVATIONS)
        model.encoder_ = ObservationEncoder.restore(own.value, arrays)
        model.scores_ = [
            _level(entry, f"classifier{k}", path, arrays, trusted, model.crf_.topology_.levels)
            for k, entry in enumerate(content["scores"].entries())
        ]
        given = content["crf_given"].read(bool)
    model.crf = _unfitted(model.crf_) if given else None
    if "classifier" in arrays:
        model.classifier = _loaded(path, arrays["classifier"], trusted)
    return model


def _parameters(given: Field) -> dict[str, Any]:
    """Arguments of the constructor that a file holds."""
    hints = {"window": int, "cv": int, "passthrough": bool, "random_state": int | None}
    found = {name: given[name].read(hint) for name, hint in hints.items()}
    for name, least in (("window", 0), ("cv", 2)):
        if found[name] < least:
            raise given[name].wrong(f"a number of at least {least}")
    return found


def _level(
    entry: Field, name: str, path: File, arrays: Arrays, trusted: Sequence[str], levels: Sequence[str]
) -> LevelScores:
    """The classifier of one level."""
    level = entry["level"].choice(*levels)
    classes = []
    for item in entry["classes"].entries():
        pair = item.entries()
        if len(pair) != 2 or not isinstance(pair[0].value, str | int | float | bool):
            raise item.wrong("a state, and whether a segment begins")
        classes.append((pair[0].value, pair[1].read(bool)))
    if not classes:
        raise entry["classes"].wrong("at least one class")
    own = LevelScores(level, classes, entry["delimited"].read(bool))
    if name in arrays:
        own.model = _loaded(path, array_of(arrays, name, np.int8), trusted)
        known = np.asarray(getattr(own.model, "classes_", np.empty(0)))
        if known.dtype.kind not in "iu" or not known.size or known.min() < 0 or known.max() >= len(classes):
            raise ContentError(f"{name} has classes that do not fit the {len(classes)} of {entry.name}")
    elif len(classes) > 1:
        raise ContentError(f"it has no array {name!r}", "complete")
    return own


def _unfitted(crf: Any) -> Any:
    """The CRF as it was given: without what fit learned and the features of scores that it added."""
    from sklearn.base import clone

    found = clone(crf)
    features = [spec for spec in found.features or [] if not isinstance(spec, Score)]
    found.features = None if features == ["default"] else features
    return found


def _skops() -> Any:
    try:
        from skops import io
    except ImportError:
        raise ImportError(
            "files of a StackedCRF need skops, which is not installed: pip install 'hscrf[stacking]'"
        ) from None
    return io


def _dumped(classifier: Any) -> NDArray[np.int8]:
    return np.frombuffer(_skops().dumps(classifier), dtype=np.int8)


def _loaded(path: File, content: NDArray[Any], trusted: Sequence[str]) -> Any:
    """A classifier, if all of its types are trusted."""
    io, data = _skops(), content.astype(np.int8).tobytes()
    name = Path(path).name
    try:
        unknown = sorted(set(io.get_untrusted_types(data=data)) - set(trusted))
    except Exception as error:
        raise FileFormatError(f"{name} holds a classifier that cannot be read: {error}") from None
    if unknown:
        raise FileFormatError(
            f"{name} holds a classifier of types that are not trusted, {', '.join(unknown)}: "
            "expected them in load(path, trusted=[...]) if you know who wrote the file"
        )
    try:
        return io.loads(data, trusted=list(trusted))
    except Exception as error:
        raise FileFormatError(f"{name} holds a classifier that cannot be read: {error}") from None

"""Models from files."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any

from hscrf.errors import FileFormatError
from hscrf.estimator.blocks import load_options
from hscrf.estimator.container import read_container
from hscrf.estimator.hscrf import HSCRF
from hscrf.families.chain import ChainCRF
from hscrf.families.dynamic import DynamicCRF
from hscrf.families.hhmm.model import HHMM
from hscrf.families.semi import SemiCRF
from hscrf.solvers.choice import load_solver

MODELS: dict[str, Any] = {model.__name__: model for model in (HSCRF, ChainCRF, SemiCRF, DynamicCRF, HHMM)}


def load(path: str | os.PathLike[str], functions: Mapping[str, Callable[..., Any]] | None = None) -> Any:
    """Read a model that ``save`` wrote. Nothing in the file is executed.

    A model with segment functions needs them again, by name: ``functions={"name": function}``. A solver of one's own
    is not in the file: a warning names it, and ``model.solver`` is the default.
    """
    header, arrays = read_container(path)
    if header.get("kind") != "model":
        raise FileFormatError(f"{os.fspath(path)} is a {header.get('kind', 'file')!s}, expected a model")
    if header.get("class") not in MODELS:
        raise FileFormatError(f"{os.fspath(path)} holds a {header.get('class')}, expected one of {', '.join(MODELS)}")
    try:
        parameters = dict(header["parameters"])
        if "solver" in parameters:
            parameters["solver"] = load_solver(parameters["solver"])
        if parameters.get("features") is not None:
            known = {c.__name__: c for c in MODELS[header["class"]]._feature_classes}
            parameters["features"] = [load_options(entry, known, functions or {}) for entry in parameters["features"]]
        model = MODELS[header["class"]](**parameters)
        model._restore(header, arrays, functions or {})
    except (KeyError, TypeError) as error:
        raise FileFormatError(f"{os.fspath(path)} is not a complete model: {error}") from None
    return model

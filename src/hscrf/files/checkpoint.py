"""Weights and history of a training run in a file."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import numpy as np

from hscrf.arrays import Floats
from hscrf.files.container import read_container, write_container
from hscrf.files.content import ContentError, Field, array_of, naming
from hscrf.files.model import check_history, check_weights


class Checkpoint:
    """Weights and history of a training run in a file."""

    def __init__(self, path: str | os.PathLike[str], fingerprint: str) -> None:
        self.path = path
        self.fingerprint = fingerprint
        self.former: list[dict[str, Any]] = []  # history of the run that is resumed
        self.state: dict[str, Any] | None = None  # the state of its solver

    def write(self, weights: Floats, history: list[dict[str, Any]], state: Mapping[str, Any] | None = None) -> None:
        """Write the weights, the history and, if the solver has one, its state for resuming: numbers and arrays."""
        history = [*self.former, *history]
        header: dict[str, Any] = {"kind": "checkpoint", "fingerprint": self.fingerprint, "history": history}
        arrays = {"weights": weights}
        if state is not None:
            arrays |= {f"state.{name}": value for name, value in state.items() if isinstance(value, np.ndarray)}
            header["state"] = {name: value for name, value in state.items() if not isinstance(value, np.ndarray)}
        write_container(self.path, header, arrays)

    def resume(self, weights: Floats) -> Floats:
        """The weights in the file if there is one, else those given."""
        if not os.path.exists(self.path):
            return weights
        header, arrays = read_container(self.path)
        if header.get("kind") != "checkpoint" or header.get("fingerprint") != self.fingerprint:
            raise ValueError(
                f"{os.fspath(self.path)} is not a checkpoint of this model on this data; remove it or name another"
            )
        with naming(self.path, "checkpoint"):
            check_history(Field(header)["history"])
            found = array_of(arrays, "weights", np.float64)
            if found.size != weights.size:
                raise ContentError(
                    f"array 'weights' has {found.size} numbers, but the model has {weights.size} weights"
                )
            check_weights("weights", found)
            self.state = _state_in(header, arrays, found.size)
        self.former = header["history"]
        return found


def _state_in(header: Mapping[str, Any], arrays: Mapping[str, Any], size: int) -> dict[str, Any] | None:
    """The solver's state in a checkpoint, None if there is none; raises unless its arrays are sound."""
    if "state" not in header:
        return None
    if not isinstance(header["state"], dict):
        raise ContentError("field 'state' is not an object")
    found = dict(header["state"])
    for name in arrays:
        if name.startswith("state."):
            array = array_of(arrays, name, np.float64)
            if name != "state.summed" and array.size != size:
                raise ContentError(f"array {name!r} has {array.size} numbers, but there are {size} weights")
            check_weights(name, array)
            found[name.removeprefix("state.")] = array
    return found

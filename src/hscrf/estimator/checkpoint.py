"""Weights and history of a training run in a file."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hscrf.arrays import Floats
from hscrf.estimator.blocks import dump_block
from hscrf.estimator.container import read_container, write_container
from hscrf.estimator.content import ContentError, Field, array_of, naming
from hscrf.estimator.files import check_history, check_weights

if TYPE_CHECKING:
    from hscrf.estimator.hscrf import HSCRF


class Checkpoint:
    """Weights and history of a training run in a file."""

    def __init__(self, path: str | os.PathLike[str], fingerprint: str) -> None:
        self.path = path
        self.fingerprint = fingerprint
        self.former: list[dict[str, Any]] = []  # history of the run that is resumed
        self.state: dict[str, Any] | None = None  # where its solver was

    def write(self, weights: Floats, history: list[dict[str, Any]], state: Mapping[str, Any] | None = None) -> None:
        """Write the weights, the history and, if the solver has one, the state to go on from: numbers and arrays."""
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
        raise ContentError("field 'state' is no object")
    found = dict(header["state"])
    for name in arrays:
        if name.startswith("state."):
            array = array_of(arrays, name, np.float64)
            if name != "state.summed" and array.size != size:
                raise ContentError(f"array {name!r} has {array.size} numbers, but there are {size} weights")
            check_weights(name, array)
            found[name.removeprefix("state.")] = array
    return found


def fingerprint_of(model: HSCRF, objective: Any) -> str:
    """What a checkpoint must agree with: the same weights in the same order, penalties and labels."""
    arrays: dict[str, NDArray[Any]] = {}
    blocks = [dump_block(block, f"block{k}", arrays) for k, block in enumerate(model.blocks_)]
    names = [*model.encoder_.names, *model.encoder_.columns]
    factors = [model.factors_, *model._penalty_factors()]
    penalties = [model.c1, model.c2_, model.margin, factors]
    frame = [model.topology_.to_json(), names, blocks, penalties]
    digest = hashlib.sha256(json.dumps(frame).encode())
    for array in (*arrays.values(), *objective.identity()):
        digest.update(array.tobytes())
    return digest.hexdigest()

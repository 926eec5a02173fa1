"""Weights and history of a training run in a file."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from hscrf.arrays import Floats
from hscrf.estimator.container import read_container, write_container
from hscrf.estimator.content import ContentError, Field, array_of, naming
from hscrf.estimator.files import check_history, check_weights


class Checkpoint:
    """Weights and history of a training run in a file."""

    def __init__(self, path: str | os.PathLike[str], fingerprint: str) -> None:
        self.path = path
        self.fingerprint = fingerprint
        self.former: list[dict[str, Any]] = []  # history of the run that is resumed

    def write(self, weights: Floats, history: list[dict[str, Any]]) -> None:
        header = {"kind": "checkpoint", "fingerprint": self.fingerprint, "history": [*self.former, *history]}
        write_container(self.path, header, {"weights": weights})

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
        self.former = header["history"]
        return found

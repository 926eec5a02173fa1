"""Models from files."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hscrf.errors import FileFormatError
from hscrf.estimator.hscrf import HSCRF
from hscrf.families.chain import ChainCRF
from hscrf.families.dynamic import DynamicCRF
from hscrf.families.hhmm.checks import check_generative
from hscrf.families.hhmm.emissions import MomentBlock
from hscrf.families.hhmm.model import HHMM
from hscrf.families.semi import SemiCRF
from hscrf.features.blocks import Block
from hscrf.files.container import read_container
from hscrf.files.content import ContentError, Field, array_of, naming
from hscrf.files.model import (
    OBSERVATIONS,
    check_found_scheme,
    check_kind,
    check_model,
    check_weights,
    plain_name,
    read_parameters,
    read_topology,
)
from hscrf.potentials import FAMILY
from hscrf.solvers.choice import known_solver
from hscrf.topology import Topology

MODELS: dict[str, Any] = {model.__name__: model for model in (HSCRF, ChainCRF, SemiCRF, DynamicCRF, HHMM)}


def load(path: str | os.PathLike[str], functions: Mapping[str, Callable[..., Any]] | None = None) -> HSCRF | HHMM:
    """Read a model of one of the families; :func:`hscrf.load` also reads stacked models.

    Parameters
    ----------
    path : str or path
    functions : mapping or None
        As in :func:`hscrf.load`.

    Returns
    -------
    HSCRF, ChainCRF, SemiCRF, DynamicCRF or HHMM

    Raises
    ------
    FileFormatError
        If the file is damaged or holds another model.
    """
    header, arrays = read_container(path)
    check_kind(path, header)
    return model_of(path, header, arrays, functions or {})


def model_of(
    path: str | os.PathLike[str],
    header: dict[str, Any],
    arrays: Mapping[str, NDArray[Any]],
    functions: Mapping[str, Callable[..., Any]],
) -> HSCRF | HHMM:
    """The model of one of the families that a header and arrays of a file hold."""
    name = header.get("class")
    if not isinstance(name, str) or name not in MODELS:
        raise FileFormatError(f"{os.fspath(path)} holds a {plain_name(name)}, expected one of {', '.join(MODELS)}")
    with naming(path, "model"):
        content = Field(header, "", arrays, functions)
        classes = {cls.__name__: cls for cls in MODELS[name]._feature_classes}
        parameters = read_parameters(content["parameters"], MODELS[name], classes)
        checked = check_model(content, ("symbols", "dense") if name == "HHMM" else OBSERVATIONS, name == "HHMM")
        check_found_scheme(content, parameters.get("scheme", "plain"))
        if name in RULES:
            RULES[name](content, *checked)
        if "solver" in parameters:
            parameters["solver"] = known_solver(parameters["solver"])
        model: HSCRF | HHMM = MODELS[name](**parameters)
        model.restore(header, arrays, functions)
    return model


# -- the rules of each family


def check_chain(content: Field, topology: Topology, blocks: Sequence[Block]) -> None:
    """Raise an error unless the model has one level below the root with segments of one step."""
    if topology.depth != 2 or not topology.unit_bottom:
        raise ContentError(f"topology is {topology}, expected one level below the root with segments of length 1")


def check_semi(content: Field, topology: Topology, blocks: Sequence[Block]) -> None:
    """Raise an error unless the model has one level below the root."""
    if topology.depth != 2:
        raise ContentError(f"topology is {topology}, expected one level below the root")


def check_dynamic(content: Field, topology: Topology, blocks: Sequence[Block]) -> None:
    """Raise unless the states of the topology are distinct combinations of the states of the levels."""
    check_chain(content, topology, blocks)
    levels = read_topology(content["levels"])
    combinations = array_of(content.arrays, "combinations", np.int64, 2)
    expected = (topology.n_states[1], levels.depth - 1)
    if combinations.shape != expected:
        raise ContentError(f"array 'combinations' has shape {combinations.shape}, expected {expected}")
    if not ((combinations >= 0) & (combinations < levels.n_states[1:])).all():
        raise ContentError("array 'combinations' has states that the levels do not have")
    if len(np.unique(combinations, axis=0)) < len(combinations):
        raise ContentError("array 'combinations' has the same combination twice")
    if topology.n_states[0] != 1:
        raise ContentError(f"topology is {topology}, expected a root of one state")


def check_hhmm(content: Field, topology: Topology, blocks: Sequence[Block]) -> None:
    """Raise unless the blocks are the tables of probabilities in order, then the emission; Gaussians must be finite."""
    with content["topology"].blamed():
        check_generative(topology)
    ends = content["parameters"].items().get("root_ends", Field(False)).read(bool)
    expected = [("start", 0)] if topology.n_states[0] > 1 else []
    expected += [(part, d) for d in range(topology.depth - 1) for part in FAMILY if part != "end" or d > 0 or ends]
    expected.append(("token", topology.depth - 1))
    found = [block.key for block in blocks]
    if found != expected:
        raise ContentError(f"blocks are {found}, expected {expected}")
    emission, states = blocks[-1], topology.n_states[-1]
    if isinstance(emission, MomentBlock):
        check_weights("coef", content.arrays["coef"][-emission.size :])
    elif emission.size != states * len(content["encoder"]["names"].value):
        raise ContentError(
            f"blocks[{len(blocks) - 1}] has {emission.size} weights, expected one of each symbol and state"
        )


RULES = {"ChainCRF": check_chain, "SemiCRF": check_semi, "DynamicCRF": check_dynamic, "HHMM": check_hhmm}

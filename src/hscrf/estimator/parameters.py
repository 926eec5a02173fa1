"""Constructor arguments in a file."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hscrf.estimator.blocks import dump_options
from hscrf.solvers.choice import dump_solver


def saved_parameters(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments that JSON can hold; a given topology lives on in what was learned."""
    kept = {**parameters, "topology": None}
    if kept.get("features") is not None:
        kept["features"] = [spec if isinstance(spec, str) else dump_options(spec) for spec in kept["features"]]
    if "solver" in kept:
        kept["solver"] = dump_solver(kept["solver"])
    if not isinstance(kept.get("random_state"), (int, type(None))):
        kept["random_state"] = None
    return kept

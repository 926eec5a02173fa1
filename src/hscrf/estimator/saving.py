"""What the file of a model holds, and a model from it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hscrf.errors import FileFormatError
from hscrf.estimator.blocks import dump_block, load_block
from hscrf.estimator.confidence import dump_temperatures, restored_temperatures
from hscrf.estimator.parameters import saved_parameters
from hscrf.estimator.penalties import chosen
from hscrf.topology import Topology

if TYPE_CHECKING:
    from hscrf.estimator.predictor import Predictor


def content_of(model: Predictor) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """What the file of a model holds: a header for JSON, and arrays."""
    settings, arrays = model.encoder_.state()
    header: dict[str, Any] = {
        "kind": "model",
        "class": type(model).__name__,
        "parameters": saved_parameters(model.get_params(deep=False)),
        "topology": model.topology_.to_json(),
        "topology_given": model.topology is not None,
        "encoder": settings,
        "training": {
            "loss": model.loss_,
            "converged": bool(model.converged_),
            "n_iter": model.n_iter_,
            "stop_reason": model.stop_reason_,
            "history": model.history_,
        },
    }
    if getattr(model, "penalties_", None):
        header["training"]["penalties"] = model.penalties_
        header["training"]["penalty_reason"] = model.penalty_reason_
    if getattr(model, "mean_lengths_", None):
        header["training"]["mean_lengths"] = model.mean_lengths_
    if model.found_scheme() != getattr(model, "scheme", None):
        header["scheme"] = dict(model.found_scheme())
    if model.temperature_:
        header["temperature"] = dump_temperatures(model.temperature_)
    arrays = {"coef": model.coef_, **arrays}
    header["blocks"] = [dump_block(block, f"block{k}", arrays) for k, block in enumerate(model.blocks_)]
    return header, arrays


def restore_model(
    model: Predictor, header: Mapping[str, Any], arrays: Mapping[str, Any], functions: Mapping[str, Any]
) -> None:
    """Let an empty model become the one that a file holds."""
    model.topology_ = Topology.from_dict(header["topology"])
    model.topology = model.topology_ if header["topology_given"] else None
    model.encoder_ = model._encoder_class.restore(header["encoder"], arrays)
    model.blocks_ = [load_block(entry, arrays, functions) for entry in header["blocks"]]
    model.coef_ = np.array(arrays["coef"])
    if model.coef_.size != sum(block.size for block in model.blocks_):
        raise FileFormatError(f"the model has {model.coef_.size} weights, which do not fit its features")
    model.scheme_ = header.get("scheme", model.scheme)
    model.temperature_ = restored_temperatures(header)
    training = header["training"]
    model.loss_, model.converged_, model.n_iter_ = training["loss"], training["converged"], training["n_iter"]
    model.stop_reason_, model.history_ = training["stop_reason"], training["history"]
    if training.get("mean_lengths"):
        model.mean_lengths_ = training["mean_lengths"]
    if training.get("penalties"):
        model.penalties_ = training["penalties"]
        model.c2_, model.factors_ = chosen(model.penalties_)
        model.penalty_reason_ = training.get("penalty_reason", "")

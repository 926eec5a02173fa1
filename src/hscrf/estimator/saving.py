"""The content of a model file, a model from it, and the fingerprint of checkpoints."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hscrf.errors import FileFormatError
from hscrf.files.blocks import dump_block, load_block, saved_parameters
from hscrf.inference.temperatures import Temperature
from hscrf.solvers.penalties import chosen
from hscrf.topology import Topology

if TYPE_CHECKING:
    from hscrf.estimator.hscrf import HSCRF
    from hscrf.estimator.predictor import Predictor


def content_of(model: Predictor) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """The content of a model file: a header for JSON, and arrays."""
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
    if getattr(model, "sizes_", None):
        header["training"]["sizes"] = model.sizes_
    scheme = model.found_scheme()
    if scheme != getattr(model, "scheme", None):
        header["scheme"] = dict(scheme)  # type: ignore[arg-type]  # by level, where it was found
    if model.temperature_:
        header["temperature"] = {level: list(pair) for level, pair in model.temperature_.items()}
    if model.recipe_:
        header["recipe"] = model.recipe_
    arrays = {"coef": model.coef_, **arrays}
    header["blocks"] = [dump_block(block, f"block{k}", arrays) for k, block in enumerate(model.blocks_)]
    return header, arrays


def restore_model(
    model: Predictor, header: Mapping[str, Any], arrays: Mapping[str, Any], functions: Mapping[str, Any]
) -> None:
    """Set the attributes of an empty model from the content of a file."""
    model.topology_ = Topology.from_dict(header["topology"])
    model.topology = model.topology_ if header["topology_given"] else None
    model.encoder_ = model._encoder_class.restore(header["encoder"], arrays)
    model.blocks_ = [load_block(entry, arrays, functions) for entry in header["blocks"]]
    model.coef_ = np.array(arrays["coef"])
    if model.coef_.size != sum(block.size for block in model.blocks_):
        raise FileFormatError(f"the model has {model.coef_.size} weights, which do not fit its features")
    model.scheme_ = header.get("scheme", model.scheme)
    warm = header.get("temperature", {})
    model.temperature_ = {level: Temperature(*map(float, pair)) for level, pair in warm.items()}
    model.recipe_ = header.get("recipe")
    training = header["training"]
    model.loss_, model.converged_, model.n_iter_ = training["loss"], training["converged"], training["n_iter"]
    model.stop_reason_, model.history_ = training["stop_reason"], training["history"]
    if training.get("mean_lengths"):
        model.mean_lengths_ = training["mean_lengths"]
    model.sizes_ = training.get("sizes", {})
    if training.get("penalties"):
        model.penalties_ = training["penalties"]
        model.c2_, model.factors_ = chosen(model.penalties_)
        model.penalty_reason_ = training.get("penalty_reason", "")


def fingerprint_of(model: HSCRF, objective: Any) -> str:
    """The fingerprint of a checkpoint: weights in order, penalties and labels."""
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

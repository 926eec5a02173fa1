"""Taggers in files: tensors as safetensors, all else as JSON in the header of the file. Nothing is executed."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from inspect import signature
from typing import Any

import torch

from hscrf.errors import FileFormatError
from hscrf.files.replacing import replaced
from hscrf.topology import Topology
from hscrf.torch.crf import CRF
from hscrf.torch.inputs import Inputs
from hscrf.torch.options import Design, check_design, check_tagger_options, design_of, network_for
from hscrf.torch.tagger import Tagger

FORMAT, VERSION = "hscrf.torch.Tagger", 2
LEARNED = ("loss_", "history_", "best_iter_", "n_iter_", "stop_reason_", "converged_")
NOT_SAVED = ("topology", "random_state")  # what was learned stands for the first; a generator is not data


def save(path: str | os.PathLike[str], model: Tagger, recipe: Mapping[str, Any] | None = None) -> None:
    """Write a tagger, and how its files are read if a recipe says so."""
    from safetensors.torch import save_file

    options = {name: value for name, value in model.get_params().items() if name not in NOT_SAVED}
    header = {
        "version": VERSION,
        "options": options,
        "topology": model.topology_.to_json(),
        "inputs": model.inputs_.to_json(),
        "design": model.design_._asdict(),
        "scheme": model.scheme_,
        "learned": {name: getattr(model, name) for name in LEARNED},
        "recipe": recipe,
    }
    tensors = {f"encoder.{name}": tensor for name, tensor in model.network_.state_dict().items()}
    tensors |= {f"crf.{name}": tensor for name, tensor in model.crf_.tables.items()}
    contiguous = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    with replaced(path) as name:
        save_file(contiguous, name, metadata={"format": FORMAT, "content": json.dumps(header)})


def load(path: str | os.PathLike[str]) -> tuple[Tagger, Any]:
    """Read a tagger and its recipe, or None."""
    header, tensors = read(path)
    name = os.fspath(path)
    try:
        if header["version"] not in (1, VERSION):
            raise FileFormatError(f"{name} has version {header['version']!r}, expected {VERSION}")
        model = Tagger(**_options(header["options"]))
        check_tagger_options(model.get_params())
        model.topology_ = Topology.from_dict(header["topology"])
        model.inputs_ = Inputs.from_json(header["inputs"])
        model.design_ = _design(header, model)
        model.scheme_ = header["scheme"]
        for field in LEARNED:
            setattr(model, field, header["learned"][field])
        _restore(model, tensors)
    except FileFormatError:
        raise
    except (KeyError, TypeError, ValueError, RuntimeError, AttributeError, IndexError) as error:
        problem = f"it lacks {error}" if isinstance(error, KeyError) else str(error).splitlines()[0]
        raise FileFormatError(f"{name} is damaged: {problem}") from None
    return model, header.get("recipe")


def read(path: str | os.PathLike[str]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The header and the tensors of a file."""
    from safetensors import SafetensorError, safe_open

    name = os.fspath(path)
    if os.path.isdir(name):
        raise FileFormatError(f"{name} is a folder, not a model of hscrf.torch.Tagger")
    try:
        with safe_open(name, framework="pt") as file:
            metadata = file.metadata() or {}
            if metadata.get("format") != FORMAT:
                raise FileFormatError(f"{name} is not a model of hscrf.torch.Tagger")
            tensors = {key: file.get_tensor(key) for key in file.keys()}  # noqa: SIM118
        header = json.loads(metadata["content"])
    except (SafetensorError, KeyError, json.JSONDecodeError) as error:
        raise FileFormatError(f"{name} is damaged or not a model of hscrf.torch.Tagger: {error}") from None
    if not isinstance(header, dict):
        raise FileFormatError(f"{name} is damaged: its content is a {type(header).__name__}, expected an object")
    return header, tensors


def _options(given: Any) -> dict[str, Any]:
    """Constructor arguments; JSON made lists of tuples."""
    found = dict(given)
    unknown = set(found) - set(signature(Tagger).parameters)
    if unknown:
        raise ValueError(f"options has {sorted(unknown)[0]!r}, which Tagger does not know")
    if isinstance(found.get("parts"), list):
        found["parts"] = tuple(found["parts"])
    return found | {"device": "cpu"}


def _design(header: Mapping[str, Any], model: Tagger) -> Design:
    """The sizes of the encoder. Files of version 1 lack them: their convolutions had six blocks and no BiLSTM."""
    if header["version"] == VERSION:
        return check_design(Design(**header["design"]))
    design = design_of(model.get_params(), model.inputs_)
    return design if design.encoder == "bilstm" else design._replace(layers=model.layers or 6, recurrent=0)


def _restore(model: Tagger, tensors: Mapping[str, Any]) -> None:
    """Put the tensors of a file into a network without values: the file decides how much memory there is."""
    with torch.device("meta"):
        model.crf_ = CRF(model.topology_, model.parts, model.durations, n_jobs=model.n_jobs)
        model.network_ = network_for(model.design_, model.inputs_, model.crf_.size)
    network = torch.nn.ModuleDict({"encoder": model.network_, "crf": model.crf_.tables})
    network.load_state_dict(dict(tensors), assign=True)
    for key, tensor in tensors.items():
        if not torch.isfinite(tensor).all():
            raise ValueError(f"tensor {key!r} has numbers that are not finite")
    network.eval()

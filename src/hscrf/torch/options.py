"""Options and data of the tagger: what they may be, and the encoder that options describe."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import torch

from hscrf.arrays import Floats
from hscrf.estimator.checks import warn_of_weights
from hscrf.labels.given import given_labels
from hscrf.labels.labels import Labels
from hscrf.objective.likelihood import checked_weights
from hscrf.observations.readers import length_of
from hscrf.topology import Topology
from hscrf.torch.columns import check_is_sequence
from hscrf.torch.inputs import Inputs
from hscrf.torch.modules import BiLSTM, ColumnEmbedding, Encoder, Stack, TemporalConvolution

ENCODERS = ("auto", "bilstm", "tcn")
WIDEST, DEEPEST = 1 << 14, 64  # of layers


def check_tagger_options(options: Mapping[str, Any]) -> None:
    """Raise for an option that no tagger can have."""
    _check_sizes(options)
    for name in ("min_count", "batch_size", "epochs", "patience", "n_jobs"):
        _check_whole(name, options[name], 1 << 31, or_none=name == "epochs")
    if not (_is_number(options["learning_rate"]) and 0 < options["learning_rate"] < np.inf):
        raise ValueError(f"learning_rate is {options['learning_rate']!r}; expected a positive number")
    if not isinstance(options["topology"], Topology | None):
        raise ValueError(f"topology is a {type(options['topology']).__name__}; expected a Topology or None")
    _check_device(options["device"])


def _check_sizes(options: Mapping[str, Any]) -> None:
    """Raise for sizes that no encoder can have."""
    if options["encoder"] not in ENCODERS:
        raise ValueError(f"encoder is {options['encoder']!r}; expected one of {', '.join(map(repr, ENCODERS))}")
    for name, most in (("hidden", WIDEST), ("layers", DEEPEST), ("word_size", WIDEST), ("character_size", WIDEST)):
        _check_whole(name, options[name], most, or_none=name in ("hidden", "layers"))
    dropout = options["dropout"]
    if dropout is not None and not (_is_number(dropout) and 0 <= dropout < 1):
        raise ValueError(f"dropout is {dropout!r}; expected a number from 0 to less than 1, or None")


def _check_device(device: Any) -> None:
    """Raise unless tensors can be made on a device."""
    try:
        torch.zeros(1, device=device).sum().item()
    except (RuntimeError, AssertionError, TypeError):
        raise ValueError(f"device is {device!r}, which PyTorch does not have here; expected such as 'cpu'") from None


def _check_whole(name: str, value: Any, most: int, or_none: bool = False) -> None:
    if value is None and or_none:
        return
    whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
    if not whole or not 1 <= value <= most:
        raise ValueError(f"{name} is {value!r}; expected an integer from 1 to {most}{' or None' if or_none else ''}")


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float | np.number) and not isinstance(value, bool)


class Design(NamedTuple):
    """The encoder of a tagger, with all defaults filled in; files hold it, so that defaults may change."""

    encoder: str  # "bilstm" or "tcn"
    hidden: int
    layers: int
    recurrent: int  # units of each direction of the BiLSTM behind a convolution, 0 if there is none
    dropout: float
    word_size: int
    character_size: int


DEFAULTS: dict[str, dict[str, Any]] = {  # of the options that are None
    "bilstm": {"hidden": 100, "layers": 1, "dropout": 0.4},
    "tcn": {"hidden": 64, "layers": 5, "dropout": 0.4},
}


def design_of(options: Mapping[str, Any], inputs: Inputs) -> Design:
    """The encoder that options describe, for some inputs."""
    kind = options["encoder"]
    if kind == "auto":
        kind = "bilstm" if inputs.names or inputs.bag else "tcn"
    chosen = {name: value if options[name] is None else options[name] for name, value in DEFAULTS[kind].items()}
    recurrent = 2 * chosen["hidden"] if kind == "tcn" else 0
    return Design(
        kind, **chosen, recurrent=recurrent, word_size=options["word_size"], character_size=options["character_size"]
    )


def check_design(design: Design) -> Design:
    """Return a design from a file; raise unless its sizes are possible."""
    _check_sizes(design._asdict())
    if design.encoder not in DEFAULTS or None in design:
        raise ValueError(f"design is {design}; expected an encoder and sizes")
    if design.recurrent != 0:
        _check_whole("recurrent", design.recurrent, WIDEST)
    return design


def network_for(design: Design, inputs: Inputs, size: int) -> Encoder:
    """The encoder of a design, for some inputs and a width of scores."""
    dropout = design.dropout
    embed = ColumnEmbedding(
        **inputs.sizes, word_size=design.word_size, character_size=design.character_size, dropout=dropout
    )
    read = BiLSTM if design.encoder == "bilstm" else TemporalConvolution
    context = read(embed.size, design.hidden, design.layers, dropout=dropout)
    if design.recurrent:
        context = Stack(context, BiLSTM(context.size, design.recurrent, dropout=dropout))
    return Encoder(embed, context, size, inputs.n_features)


def check_sequences(X: Any) -> None:
    """Raise unless X is a list of sequences."""
    if isinstance(X, str) or not hasattr(X, "__len__") or (isinstance(X, np.ndarray) and X.ndim == 2):
        raise ValueError(f"X is a {type(X).__name__}; expected a list of sequences, [X] if it is one")
    if len(X) == 0:
        raise ValueError("X is empty; expected at least one sequence")


def check_development(development: Any) -> None:
    """Raise unless development data are a pair of X and Y that fit."""
    if not isinstance(development, tuple | list) or len(development) != 2:
        found = f"has {len(development)} items" if hasattr(development, "__len__") else f"is {development!r}"
        raise ValueError(f"development {found}; expected a pair (X, Y)")
    X, Y = development
    try:
        check_data(X, given_labels(Y), None)
    except ValueError as error:
        raise ValueError(f"development: {error}") from None


def check_data(X: Any, Y: Any, sample_weight: Any) -> Floats | None:
    """Raise unless X and Y fit; return a weight for each sequence, or None."""
    check_sequences(X)
    if len(X) != len(Y):
        raise ValueError(f"X has {len(X)} sequences but Y has {len(Y)}")
    for n, (x, y) in enumerate(zip(X, Y, strict=True)):
        check_is_sequence(x, n)
        for column in y.values() if isinstance(y, Mapping) else ():
            plain = hasattr(column, "__len__") and not isinstance(column, str) and len(column) > 0
            if plain and not isinstance(column[0], tuple | list) and len(column) != length_of(x):
                raise ValueError(f"X[{n}] has {length_of(x)} steps but Y[{n}] has {len(column)}")
        if isinstance(y, Labels) and y.length != length_of(x):
            raise ValueError(f"X[{n}] has {length_of(x)} steps but Y[{n}] has {y.length}")
    if sample_weight is None:
        return None
    warn_of_weights(sample_weight)
    return checked_weights(sample_weight, len(X))

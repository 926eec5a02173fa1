"""Options and data of the tagger: what they may be, and the encoder that options describe."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch

from hscrf.arrays import Floats
from hscrf.estimator.checks import warn_of_weights
from hscrf.labels.given import given_labels
from hscrf.labels.labels import Labels
from hscrf.objective.likelihood import checked_weights
from hscrf.observations.readers import length_of
from hscrf.topology import Topology
from hscrf.torch.inputs import Inputs, check_is_sequence
from hscrf.torch.modules import BiLSTM, ColumnEmbedding, Encoder, TemporalConvolution

ENCODERS = ("auto", "bilstm", "tcn")
WIDEST, DEEPEST = 1 << 14, 64  # of layers


def check_tagger_options(options: Mapping[str, Any]) -> None:
    """Raise for an option that no tagger can have."""
    if options["encoder"] not in ENCODERS:
        raise ValueError(f"encoder is {options['encoder']!r}; expected one of {', '.join(map(repr, ENCODERS))}")
    for name, most in (("hidden", WIDEST), ("layers", DEEPEST), ("word_size", WIDEST), ("character_size", WIDEST)):
        _check_whole(name, options[name], most, or_none=name in ("hidden", "layers"))
    for name in ("min_count", "batch_size", "epochs", "patience", "n_jobs"):
        _check_whole(name, options[name], 1 << 31, or_none=name == "epochs")
    dropout = options["dropout"]
    if dropout is not None and not (_is_number(dropout) and 0 <= dropout < 1):
        raise ValueError(f"dropout is {dropout!r}; expected a number from 0 to less than 1, or None")
    if not (_is_number(options["learning_rate"]) and 0 < options["learning_rate"] < np.inf):
        raise ValueError(f"learning_rate is {options['learning_rate']!r}; expected a positive number")
    if not isinstance(options["topology"], Topology | None):
        raise ValueError(f"topology is a {type(options['topology']).__name__}; expected a Topology or None")
    _check_device(options["device"])


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


def network_for(options: Mapping[str, Any], inputs: Inputs, size: int) -> Encoder:
    """The encoder that options describe, for some inputs and a width of scores."""
    kind = options["encoder"]
    if kind == "auto":
        kind = "bilstm" if inputs.names or inputs.bag else "tcn"
    dropout = options["dropout"]
    if dropout is None:
        dropout = 0.4 if kind == "bilstm" else 0.2
    widths = {"word_size": options["word_size"], "character_size": options["character_size"]}
    embed = ColumnEmbedding(**inputs.sizes, **widths, dropout=dropout)
    context = (
        BiLSTM(embed.size, options["hidden"] or 100, options["layers"] or 1, dropout)
        if kind == "bilstm"
        else TemporalConvolution(embed.size, options["hidden"] or 64, options["layers"] or 6, dropout=dropout)
    )
    return Encoder(embed, context, size)


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

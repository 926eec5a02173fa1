"""Fillers that remember, in tensors: the engine's arrays have a place for each copy, those of users have none."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

from hscrf.fillers import Copies, copies_of
from hscrf.potentials import FAMILY, Key
from hscrf.topology import Topology


def hidden_values(topology: Topology, values: Mapping[Key, Any]) -> dict[Key, Any]:
    """The engine's values of all parts. Copies of a state share the scores of its segments and its scores as a parent.

    Tables already have a column for each copy of a child. No first child remembers a state.
    """
    copies = copies_of(topology)
    if copies is None:
        return dict(values)
    found = {key: _spread(copies, key, value) for key, value in values.items()}
    like = next(iter(values.values()))
    for d, later in copies.later.items():
        mask = torch.from_numpy(later).to(like.device)
        init = found.get(("init", d - 1))
        if init is None:
            init = like.new_zeros(1, copies.origin[d - 1].size, later.size)
        found["init", d - 1] = init.masked_fill(mask, -torch.inf)
    return found


def hidden_children(topology: Topology, key: Key, value: Any) -> Any:
    """A table by children as users give it, with a column for each of their copies."""
    part, d = key
    copies = copies_of(topology)
    if copies is None or part not in FAMILY or not copies.has_copies(d + 1):
        return value
    place = torch.from_numpy(copies.origin[d + 1]).to(value.device)
    for axis in (-1, -2) if part == "trans" else (-1,):
        value = value.index_select(axis, place)
    return value


def _spread(copies: Copies, key: Key, value: Any) -> Any:
    part, d = key
    if part in FAMILY and value.ndim == (3 if part == "trans" else 2):
        value = value[None]  # a table of the layer
    if not copies.has_copies(d):
        return value
    place = torch.from_numpy(copies.origin[d]).to(value.device)
    return value.index_select(1 if part in FAMILY else value.ndim - 1, place)


def summed_states(topology: Topology, d: int, posterior: Any) -> Any:
    """Posteriors (..., S) of states from those (..., H) of hidden states."""
    copies = copies_of(topology)
    if copies is None or not copies.has_copies(d):
        return posterior
    place = torch.from_numpy(copies.origin[d]).to(posterior.device)
    blank = posterior.new_zeros(*posterior.shape[:-1], copies.begin[d].size)
    return blank.index_add(posterior.ndim - 1, place, posterior)

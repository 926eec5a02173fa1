"""Padded batches and packed ones: which steps of (B, T) there are, and how tensors go there and back."""

from __future__ import annotations

from functools import cached_property, lru_cache
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from hscrf.arrays import Ints


class PaddedBatch:
    """The steps of a padded batch (B, T) that belong to its sequences, row by row.

    A mask may have holes anywhere: the steps that it keeps are neighbours.
    """

    def __init__(self, rows: int, width: int, mask: NDArray[np.bool_] | None = None) -> None:
        self.rows, self.width = rows, width
        lengths = np.full(rows, width) if mask is None else mask.sum(axis=1)
        self.offsets: Ints = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
        self.cells: Ints | None = None  # (N,) flat places in (B, T), if they are not all
        if mask is not None and not mask.all():
            self.cells = np.flatnonzero(mask)

    @cached_property
    def content(self) -> Any:
        """The identity of this frame."""
        return self.rows, self.width, None if self.cells is None else self.cells.tobytes()

    @property
    def lengths(self) -> Ints:
        return np.diff(self.offsets)

    @property
    def steps(self) -> int:
        return int(self.offsets[-1])

    def place(self, step: int) -> tuple[int, int]:
        """Row and column in (B, T) of a packed step."""
        cell = step if self.cells is None else int(self.cells[step])
        return divmod(cell, self.width)

    def pack(self, tensor: Any) -> Any:
        """The steps (N, ...) of a padded tensor (B, T, ...)."""
        flat = tensor.reshape(self.rows * self.width, *tensor.shape[2:])
        return flat if self.cells is None else flat.index_select(0, self._index(tensor))

    def pad(self, packed: Any) -> Any:
        """A padded tensor (B, T, ...) with zeros where there are no steps."""
        if self.cells is not None:
            blank = packed.new_zeros(self.rows * self.width, *packed.shape[1:])
            packed = blank.index_copy(0, self._index(packed), packed)
        return packed.reshape(self.rows, self.width, *packed.shape[1:])

    def _index(self, tensor: Any) -> Any:
        return torch.from_numpy(self.cells).to(tensor.device)


def padded_batch(rows: int, width: int, mask: Any = None, lengths: Any = None) -> PaddedBatch:
    """The frame that a mask (B, T) or lengths (B,) describe; without either, all steps."""
    if mask is not None and lengths is not None:
        raise ValueError("mask and lengths are both given; expected one of them")
    if mask is not None:
        kept = checked_mask(mask, rows, width)
    elif lengths is not None:
        kept = np.arange(width) < checked_lengths(lengths, rows, width)[:, None]
    else:
        return whole_frame(rows, width)
    empty = np.flatnonzero(~kept.any(axis=1))
    if empty.size:
        raise ValueError(f"mask[{empty[0]}] keeps no step; expected at least one step of each sequence")
    return PaddedBatch(rows, width, kept)


@lru_cache(maxsize=64)
def whole_frame(rows: int, width: int) -> PaddedBatch:
    """The frame of all steps."""
    return PaddedBatch(rows, width)


def checked_mask(mask: Any, rows: int, width: int) -> NDArray[np.bool_]:
    """Return the mask (rows, width) of the steps that count, as bool."""
    kept = host_array(mask, "mask")
    if kept.shape != (rows, width):
        raise ValueError(f"mask has shape {kept.shape}; expected {(rows, width)}, a cell for each step of scores")
    if kept.dtype.kind not in "bui" or (kept.dtype.kind != "b" and not np.isin(kept, (0, 1)).all()):
        raise ValueError(f"mask has type {kept.dtype} and values from {kept.min()} to {kept.max()}; expected bool")
    return kept.astype(bool)


def checked_lengths(lengths: Any, rows: int, width: int) -> Ints:
    """Return the number of steps of each row, at most the width."""
    found = host_array(lengths, "lengths")
    if found.shape != (rows,):
        raise ValueError(f"lengths has shape {found.shape}; expected ({rows},), a length for each sequence")
    if found.dtype.kind not in "ui":
        raise ValueError(f"lengths has type {found.dtype}; expected integers")
    bad = np.flatnonzero((found < 1) | (found > width))
    if bad.size:
        raise ValueError(f"lengths[{bad[0]}] is {found[bad[0]]}; expected 1 to {width}, the steps of scores")
    return found.astype(np.int64)


def host_array(given: Any, name: str) -> NDArray[Any]:
    """A tensor of any device, or whatever NumPy reads, as an array."""
    if isinstance(given, torch.Tensor):
        check_has_values(given, name)
        try:
            found: NDArray[Any] = given.numpy()
            return found
        except (RuntimeError, TypeError):  # another device or precision, or a wrapper of torch.func
            pass
        place = Place()
        HostCopy.apply(place, given)
        return place.array
    try:
        return np.asarray(given)
    except ValueError:
        raise ValueError(f"{name} has rows of different lengths; expected a tensor") from None


class Place:
    """Where a function leaves an array; an object of its own, because ``torch.func`` copies lists."""

    array: NDArray[Any]


class HostCopy(torch.autograd.Function):
    """Copies the values of a tensor to the host. Its result is not used.

    Under the transforms of ``torch.func`` tensors are wrappers; inside a function they have values.
    """

    @staticmethod
    def forward(place: Place, tensor: Any) -> Any:
        narrow = tensor.dtype in (torch.float16, torch.bfloat16)
        place.array = (tensor.float() if narrow else tensor).cpu().numpy()
        return tensor.new_zeros(())

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.mark_non_differentiable(output)

    @staticmethod
    def backward(ctx: Any, cotangent: Any) -> Any:
        return None, None


def check_has_values(tensor: Any, name: str) -> None:
    """Raise if a tensor is on the meta device."""
    if tensor.device.type == "meta":
        raise ValueError(f"{name} is on the meta device, which holds no values; expected a tensor with values")

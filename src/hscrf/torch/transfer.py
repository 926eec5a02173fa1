"""Tensors of any device and precision to float64 arrays of NumPy and back, with one copy each way."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from hscrf.arrays import Floats

Reader = Callable[[], "list[Floats]"]


def begin_reading(tensors: Sequence[Any]) -> Reader:
    """Start to copy tensors to the host, and return a function that waits for the arrays.

    CPU tensors are read in place where they are contiguous float64. Tensors of another device cross as one block; on
    CUDA the copy goes to pinned memory and overlaps with what the host does before it asks for the arrays.
    """
    tensors = [tensor.detach() for tensor in tensors]
    if all(tensor.device.type == "cpu" for tensor in tensors):
        return lambda: [as_array(tensor) for tensor in tensors]
    block, arrive = cross(torch.cat([tensor.reshape(-1) for tensor in tensors]))

    def read() -> list[Floats]:
        arrive()
        parts = block.split([tensor.numel() for tensor in tensors])
        return [as_array(part).reshape(tuple(tensor.shape)) for part, tensor in zip(parts, tensors, strict=True)]

    return read


def begin_early(tensors: Sequence[Any]) -> Reader | None:
    """Start to copy tensors where the copy overlaps with what the host does meanwhile: on CUDA; None elsewhere."""
    overlaps = any(tensor.device.type == "cuda" for tensor in tensors)
    return begin_reading(tensors) if overlaps else None


def cross(block: Any) -> tuple[Any, Callable[[], object]]:
    """A copy of a tensor on the host, and a function that returns when the copy is complete."""
    if block.device.type != "cuda":
        return block.cpu(), lambda: None
    target = torch.empty(block.shape, dtype=block.dtype, pin_memory=True)
    target.copy_(block, non_blocking=True)
    done = torch.cuda.Event()
    done.record()
    return target, done.synchronize


def as_array(tensor: Any) -> Floats:
    """The numbers of a CPU tensor, float64 and contiguous."""
    narrow = tensor.dtype == torch.bfloat16  # NumPy has no such type
    return np.ascontiguousarray((tensor.float() if narrow else tensor).numpy(), dtype=np.float64)


def to_tensors(arrays: Sequence[NDArray[Any]], like: Sequence[Any]) -> tuple[Any, ...]:
    """Tensors with the devices, types and shapes of others; those for another device cross as one block."""
    pairs = list(zip(arrays, like, strict=True))
    if all(other.device.type == "cpu" for other in like):
        return tuple(
            torch.from_numpy(np.ascontiguousarray(array)).to(other.dtype).view(other.shape) for array, other in pairs
        )
    device = next(other.device for other in like if other.device.type != "cpu")
    widest = max((other.dtype for other in like), key=lambda dtype: dtype.itemsize)
    block = torch.from_numpy(np.concatenate([array.reshape(-1) for array in arrays])).to(widest)
    if device.type == "cuda":
        block = block.pin_memory()
    parts = block.to(device, non_blocking=True).split([array.size for array in arrays])
    return tuple(part.to(other.device, other.dtype).view(other.shape) for part, other in zip(parts, like, strict=True))

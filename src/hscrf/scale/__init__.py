"""Data beyond memory and beyond one machine: shards on disk, evaluated here or by the workers of a Dask cluster."""

from hscrf.scale.shards import Shards

__all__ = ["Shards"]

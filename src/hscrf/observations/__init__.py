"""Packed observations, from feature dicts, strings, arrays, sparse matrices or tables of ragged lengths.

:class:`ObservationEncoder` learns names and scales from training data; :class:`Observations` are all sequences in one
place, a few bytes for each feature.
"""

from hscrf.observations.encoder import ObservationEncoder
from hscrf.observations.packed import Observations

__all__ = ["ObservationEncoder", "Observations"]

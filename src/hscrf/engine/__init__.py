"""The engine: packed potentials in, log Z and expected counts out.

:class:`Batch` is the interface that all learners and all functions of inference use.
"""

from hscrf.engine.batch import Batch
from hscrf.engine.evidence import Evidence
from hscrf.engine.expectations import Expectations

__all__ = ["Batch", "Evidence", "Expectations"]

"""The engine: packed potentials in, log Z and expected counts out.

:class:`Batch` is the seam that every learner, every verb and every wing goes through.
"""

from hscrf.engine.batch import Batch
from hscrf.engine.evidence import Evidence
from hscrf.engine.expectations import Expectations

__all__ = ["Batch", "Evidence", "Expectations"]

"""Pictures of segmentations, models and results; every function draws into ``ax``, or a new figure, and returns it.

Colours run from dark to light and repeat with hatches, so states are distinct in greyscale and for colour-blind
readers. Matplotlib is imported by the functions that draw: ``pip install 'hscrf[plots]'``.
"""

from hscrf.plots.accuracy import plot_confusion, plot_evidence_curve
from hscrf.plots.calibration import plot_calibration
from hscrf.plots.durations import plot_durations
from hscrf.plots.segments import plot_segments
from hscrf.plots.style import colours
from hscrf.plots.topology import plot_topology
from hscrf.plots.training import plot_penalties, plot_training
from hscrf.plots.transitions import plot_transitions

__all__ = [
    "colours",
    "plot_calibration",
    "plot_confusion",
    "plot_durations",
    "plot_evidence_curve",
    "plot_penalties",
    "plot_segments",
    "plot_topology",
    "plot_training",
    "plot_transitions",
]

"""A CRF over the scores of any classifier of scikit-learn, and windows of neighbouring steps."""

from hscrf.stacking.files import load, opened
from hscrf.stacking.model import StackedCRF
from hscrf.stacking.neighbours import Windows, windows

__all__ = ["StackedCRF", "Windows", "load", "opened", "windows"]

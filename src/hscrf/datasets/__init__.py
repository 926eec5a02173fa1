"""Data sets: generated, or read from a folder."""

from hscrf.datasets.activities import make_activities
from hscrf.datasets.loaders import Dataset, load_cad120, load_citations, load_conll2000
from hscrf.datasets.nested import make_nested

__all__ = ["Dataset", "load_cad120", "load_citations", "load_conll2000", "make_activities", "make_nested"]

"""Data sets: generated, read from a folder, or fetched from the network."""

from hscrf.datasets.activities import make_activities
from hscrf.datasets.fetching import fetch_author_names, fetch_citations, fetch_conll2000, fetch_ecg
from hscrf.datasets.loaders import Dataset, load_author_names, load_cad120, load_citations, load_conll2000
from hscrf.datasets.nested import make_nested
from hscrf.datasets.records import load_ecg

__all__ = [
    "Dataset",
    "fetch_author_names",
    "fetch_citations",
    "fetch_conll2000",
    "fetch_ecg",
    "load_author_names",
    "load_cad120",
    "load_citations",
    "load_conll2000",
    "load_ecg",
    "make_activities",
    "make_nested",
]

"""Files of labelled sequences: columns, JSON Lines, long tables and CRFsuite items.

Readers are iterators of :class:`Document`; each raises a :class:`DataFileError` that names file and line. Writers
write documents of any reader as they were read, and then the columns that were added to ``extra``.
"""

from hscrf.errors import DataFileError
from hscrf.io.columns import column_names, read_columns, write_columns
from hscrf.io.crfsuite import read_crfsuite, write_crfsuite
from hscrf.io.documents import Document
from hscrf.io.jsonl import read_jsonl, write_jsonl
from hscrf.io.lines import cell_text
from hscrf.io.tables import read_table, write_table
from hscrf.io.tags import detect_scheme, to_labels

__all__ = [
    "DataFileError",
    "Document",
    "cell_text",
    "column_names",
    "detect_scheme",
    "read_columns",
    "read_crfsuite",
    "read_jsonl",
    "read_table",
    "to_labels",
    "write_columns",
    "write_crfsuite",
    "write_jsonl",
    "write_table",
]

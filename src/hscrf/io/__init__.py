"""Read and write files of sequences: columns, JSON Lines, long tables, CRFsuite items, plain text, annotation programs.

Readers are iterators of :class:`Document`. They raise a :class:`DataFileError` that names file and line. Writers keep
the columns of a document as they were read and append those of ``extra``.
"""

from typing import TYPE_CHECKING, Any

from hscrf.errors import DataFileError
from hscrf.io.annotations import read_annotations
from hscrf.io.audio import read_audio
from hscrf.io.axis import TimeAxis
from hscrf.io.boris import read_boris, write_boris
from hscrf.io.cells import cell_text
from hscrf.io.columns import column_names, read_columns, write_columns
from hscrf.io.confidence import confidence_columns, confidence_records
from hscrf.io.crfsuite import read_crfsuite, write_crfsuite
from hscrf.io.documents import Document
from hscrf.io.elan import read_eaf, write_eaf
from hscrf.io.exports import EXPORTS, export
from hscrf.io.jsonl import read_jsonl, write_jsonl
from hscrf.io.label_studio import read_label_config, read_task, write_label_config
from hscrf.io.praat import read_textgrid, write_textgrid
from hscrf.io.segment_tables import read_segments
from hscrf.io.spans import Labelled, Span, spans_of
from hscrf.io.tables import read_table, write_table
from hscrf.io.tags import detect_scheme, to_labels
from hscrf.io.texts import read_text, tokenize
from hscrf.io.timelines import Interval, PlaceError, Timeline, place

if TYPE_CHECKING:
    from hscrf.io.transformer import TokenFeatures

__all__ = [
    "EXPORTS",
    "DataFileError",
    "Document",
    "Interval",
    "Labelled",
    "PlaceError",
    "Span",
    "TimeAxis",
    "Timeline",
    "TokenFeatures",
    "cell_text",
    "column_names",
    "confidence_columns",
    "confidence_records",
    "detect_scheme",
    "export",
    "place",
    "read_annotations",
    "read_audio",
    "read_boris",
    "read_columns",
    "read_crfsuite",
    "read_eaf",
    "read_jsonl",
    "read_label_config",
    "read_segments",
    "read_table",
    "read_task",
    "read_text",
    "read_textgrid",
    "spans_of",
    "to_labels",
    "tokenize",
    "write_boris",
    "write_columns",
    "write_crfsuite",
    "write_eaf",
    "write_jsonl",
    "write_label_config",
    "write_table",
    "write_textgrid",
]


def __getattr__(name: str) -> Any:
    """``TokenFeatures``, imported when first used: files need no scikit-learn, whose import is slow."""
    if name != "TokenFeatures":
        raise AttributeError(f"module 'hscrf.io' has no attribute {name!r}")
    from hscrf.io.transformer import TokenFeatures

    return TokenFeatures

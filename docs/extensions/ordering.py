"""The order of the gallery, and which of its pages can run here."""

import os
import re
from pathlib import Path

ORDER = [
    *("segments", "evidence", "inference", "durations", "topology", "fillers", "streams", "penalties"),
    *("author_names", "heart_beats", "citations", "partial_labels", "calibration"),
]
DATA = {  # page of examples/real -> folder of its data set in HSCRF_DATA
    "author_names": "author_names",
    "calibration": "conll2000",
    "citations": "umass_citation",
    "heart_beats": "ludb",
    "partial_labels": "author_names",
}


class Order:
    """Sort key of the pages within a section."""

    def __init__(self, folder):
        self.folder = folder

    def __call__(self, filename):
        name = Path(filename).stem
        return (ORDER.index(name) if name in ORDER else len(ORDER), name)

    def __repr__(self):
        return "Order"


def has_data(name):
    """Whether a data set is in the folder of HSCRF_DATA, or has been downloaded before."""
    folders = [os.environ.get("HSCRF_DATA")]
    try:
        import pooch

        folders.append(str(pooch.os_cache("hscrf")))
    except ImportError:
        pass
    return any(folder and Path(folder, name).is_dir() for folder in folders)


def runnable():
    """The pattern of the files that are run: those on real data only where the data are."""
    missing = [page for page, name in DATA.items() if not has_data(name)]
    skipped = "|".join(rf"real{re.escape(os.sep)}{page}\.py" for page in missing)
    return rf"^(?!.*({skipped})$).*\.py$" if missing else r"\.py$"

"""Data sets from the network: originals are downloaded once, checked, converted, and kept in a cache.

What is in the folder of the environment variable HSCRF_DATA is used as it is. Everything else is kept in the folder
that ``pooch.os_cache("hscrf")`` names, a subfolder for each data set, with the originals in ``originals``.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import warnings
import zipfile
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path
from typing import Any
from urllib.parse import quote

from hscrf.datasets.files import check_split
from hscrf.datasets.loaders import Dataset, load_author_names, load_citations, load_conll2000
from hscrf.datasets.originals import CITATION_FILES, convert_author_names, convert_citations
from hscrf.datasets.records import load_ecg
from hscrf.datasets.waveforms import ANNOTATED, RECORDS, convert_ecg
from hscrf.files.replacing import replaced
from hscrf.progress import Waiting

AT_ONCE = 8  # downloads
SUMS = "SHA256SUMS.txt"  # the list of hashes that PhysioNet keeps with a database

Folder = str | os.PathLike[str] | None


@dataclass(frozen=True)
class DownloadSource:
    """The originals of a data set, and the files made of them."""

    name: str  # of the folder that the loaders read
    base: str  # address of the originals, with a slash at its end
    originals: Mapping[str, str | None]  # file -> SHA-256, None where it is not known
    convert: Callable[[Path, Path], None]
    made: Mapping[str, str | None]  # file that the loader reads -> SHA-256 of the file that the documentation used
    strict: bool = False  # whether a file that differs from that is an error
    sums: str = ""  # a file with SHA-256 of the originals, downloaded first
    hint: str = field(default="", compare=False)
    retries: int = 2  # of a download that failed


def fetch_conll2000(split: str = "train", *, folder: Folder = None) -> Dataset:
    """Get CoNLL-2000: words of the Wall Street Journal with part-of-speech tags and chunks.

    The original is the corpus file of NLTK, a ZIP archive of 0.7 MB. It is checked by its SHA-256, and so are the two
    files in it.

    Parameters
    ----------
    split : {"train", "test"}
        8,936 or 2,012 sentences.
    folder : path, optional
        Where to keep the data. By default HSCRF_DATA if it has them, else the cache of the user.

    Returns
    -------
    Dataset
        As that of :func:`load_conll2000`.

    Raises
    ------
    ImportError
        If something must be downloaded and pooch is not installed (``pip install 'hscrf[data]'``).
    ConnectionError
        If the original cannot be downloaded.
    ValueError
        If a file is not the one that was expected.

    Notes
    -----
    Licence: none is stated; the text is of the Penn Treebank. Use it, do not redistribute it. Cite Erik F. Tjong Kim
    Sang and Sabine Buchholz, *Introduction to the CoNLL-2000 shared task: chunking*, CoNLL-2000.

    Examples
    --------
    >>> train = fetch_conll2000("train")  # doctest: +SKIP
    >>> len(train)  # doctest: +SKIP
    8936
    """
    check_split(split, ["train", "test"])
    return load_conll2000(prepared(CONLL2000, folder), split)


def fetch_citations(split: str = "train", *, folder: Folder = None) -> Dataset:
    """Get the UMass citations: tokens of references with three nested levels.

    The originals are three files of citations with inline tags, 1.2 MB, of a fixed commit of a public repository. No
    SHA-256 of them is published: a warning says if the converted files are not those that the documentation used.

    Parameters
    ----------
    split : {"train", "dev", "test"}
        1,448, 655 or 362 citations.
    folder : path, optional
        Where to keep the data. By default HSCRF_DATA if it has them, else the cache of the user.

    Returns
    -------
    Dataset
        As that of :func:`load_citations`.

    Raises
    ------
    ImportError, ConnectionError
        As :func:`fetch_conll2000`.

    Notes
    -----
    Licence: none is stated; the authors ask for a citation. Use it, do not redistribute it. Cite Sam Anzaroot and
    Andrew McCallum, *A new dataset for fine-grained citation field extraction*, ICML Workshop on Peer Reviewing and
    Publishing Models, 2013.

    Examples
    --------
    >>> dev = fetch_citations("dev")  # doctest: +SKIP
    >>> dev.topology  # doctest: +SKIP
    Topology(root 1 > field 8 > part 33 > name 39)
    """
    check_split(split, ["train", "dev", "test"])
    return load_citations(prepared(CITATIONS, folder), split)


def fetch_author_names(split: str = "train", *, folder: Folder = None) -> Dataset:
    """Get the author names of GROBID: tokens of the headers of papers, labelled person > part.

    The originals are 1,099 small TEI files of a fixed commit of GROBID's repository. No SHA-256 of them is published:
    a warning says if the converted files are not those that the documentation used.

    Parameters
    ----------
    split : {"train", "test"}
        1,121 or 278 sequences.
    folder : path, optional
        Where to keep the data. By default HSCRF_DATA if it has them, else the cache of the user.

    Returns
    -------
    Dataset
        As that of :func:`load_author_names`.

    Raises
    ------
    ImportError, ConnectionError
        As :func:`fetch_conll2000`.

    Notes
    -----
    Licence: Creative Commons Attribution 4.0 (CC BY 4.0). Cite *GROBID*, https://github.com/kermitt2/grobid, 2008-2026.

    Examples
    --------
    >>> train = fetch_author_names("train")  # doctest: +SKIP
    >>> train.Y[0].segments("part")  # doctest: +SKIP
    [(0, 1, 'forename'), (1, 2, 'surname')]
    """
    check_split(split, ["train", "test"])
    return load_author_names(prepared(AUTHOR_NAMES, folder), split)


def fetch_ecg(split: str = "train", *, folder: Folder = None) -> Dataset:
    """Get the electrocardiograms of LUDB: twelve leads in steps of 20 ms, labelled beat > wave.

    The originals are 600 files of PhysioNet, 25 MB, each checked by the list of SHA-256 that PhysioNet keeps with the
    database. Labels are the annotations of lead ii. They are ``?`` before the first and after the last annotated wave:
    scores of segments need records cut to what is annotated.

    Parameters
    ----------
    split : {"train", "test"}
        Odd or even records, one for each person.
    folder : path, optional
        Where to keep the data. By default HSCRF_DATA if it has them, else the cache of the user.

    Returns
    -------
    Dataset
        As that of :func:`load_ecg`.

    Raises
    ------
    ImportError, ConnectionError
        As :func:`fetch_conll2000`.
    ValueError
        If an original is not the one that PhysioNet lists.

    Notes
    -----
    Licence: Open Data Commons Attribution (ODC-By 1.0). Cite A. I. Kalyakulina et al., *LUDB: a new open-access
    validation tool for electrocardiogram delineation algorithms*, IEEE Access 8, 2020, doi 10.1109/ACCESS.2020.3029211,
    and the database, version 1.0.1, doi 10.13026/eegm-h675.

    Examples
    --------
    >>> train = fetch_ecg("train")  # doctest: +SKIP
    >>> train.tokens[0].shape  # doctest: +SKIP
    (500, 12)
    """
    check_split(split, ["train", "test"])
    return load_ecg(prepared(ECG, folder), split)


def prepared(source: DownloadSource, folder: Folder) -> Path:
    """The folder with the files of a data set that the loader reads; they are made there if they are missing."""
    given = os.environ.get("HSCRF_DATA") if folder is None else folder
    if given and _is_made(source, Path(given) / source.name):
        return Path(given) / source.name
    target = Path(_pooch().os_cache("hscrf") if folder is None else folder) / source.name
    if not _is_made(source, target):
        _download(source, target / "originals")
        source.convert(target / "originals", target)
        _compare(source, target)
    return target


def _is_made(source: DownloadSource, folder: Path) -> bool:
    """Whether a folder has all files of a data set that its loader reads."""
    return all((folder / file).is_file() for file in source.made)


def _download(source: DownloadSource, folder: Path) -> None:
    """Get the originals that are not in the folder, several at once; each is checked and then moved into place."""
    known = dict(source.originals)
    if source.sums:
        _get(source, {source.sums: None}, folder)
        listed = _read_sums(folder / source.sums)
        missing = [file for file in known if file not in listed]
        if missing:
            raise ValueError(f"{source.base}{source.sums} does not list {missing[0]}; expected all {len(known)} files")
        known = {file: listed[file] for file in known}
    _get(source, known, folder)


def _get(source: DownloadSource, known: Mapping[str, str | None], folder: Path) -> None:
    pooch = _pooch()
    keeper = pooch.create(
        path=folder,
        base_url=source.base,
        registry={file: f"sha256:{sum}" if sum else None for file, sum in known.items()},
        urls={file: source.base + quote(file) for file in known},
        retry_if_failed=source.retries,
    )
    for place in {(folder / file).parent for file in known}:  # threads of pooch would make them at the same time
        place.mkdir(parents=True, exist_ok=True)
    with _quiet(pooch), Waiting(f"downloading {source.name}, {len(known)} files"), ThreadPoolExecutor(AT_ONCE) as pool:
        waiting = [pool.submit(_get_one, keeper, source, file) for file in known]
        try:
            for one in waiting:
                one.result()
        finally:
            pool.shutdown(cancel_futures=True)


def _get_one(keeper: Any, source: DownloadSource, file: str) -> None:
    address = source.base + quote(file)
    try:
        keeper.fetch(file)
    except ValueError as error:  # pooch: the hash differs; nothing was kept
        found = str(error).rpartition("but got ")[2].split(" ")[0].strip(".")
        expected = keeper.registry[file].partition(":")[2]
        raise ValueError(
            f"{address} has SHA-256 {found}; expected {expected}: it has changed, or was damaged on its way"
        ) from None
    except OSError as error:  # that of the network library too
        raise ConnectionError(
            f"{address} cannot be downloaded ({_reason(error)}): connect to the network, or set HSCRF_DATA to a folder "
            f"with {source.name}/{', '.join(source.made)}"
        ) from None


def _reason(error: BaseException) -> str:
    """The cause as short text: network libraries wrap it several times."""
    response = getattr(error, "response", None)
    if response is not None:
        return f"HTTP status {response.status_code}"
    while True:
        inner = getattr(error, "reason", None) or next(
            (one for one in error.args if isinstance(one, BaseException)), None
        )
        if not isinstance(inner, BaseException):
            return str(error) or type(error).__name__
        error = inner


def _compare(source: DownloadSource, folder: Path) -> None:
    """Warn if converted files differ from those that the documentation used."""
    for file, expected in source.made.items():
        found = hashlib.sha256((folder / file).read_bytes()).hexdigest()
        if expected and found != expected:
            text = f"{folder / file} has SHA-256 {found}; the documentation used {expected}"
            if source.strict:
                (folder / file).unlink()
                raise ValueError(text)
            warnings.warn(f"{text}: numbers may differ from those of its pages", stacklevel=4)


def _read_sums(path: Path) -> dict[str, str]:
    """File to SHA-256, of a list in which each line has a hash and a name."""
    rows = [line.split(maxsplit=1) for line in path.read_text(encoding="utf-8").splitlines()]
    return {row[1].strip().removeprefix("*"): row[0] for row in rows if len(row) == 2}


@contextlib.contextmanager
def _quiet(pooch: Any) -> Iterator[None]:
    """Suppress pooch's line for each file."""
    logger = pooch.get_logger()
    level = logger.level
    logger.setLevel("ERROR")
    try:
        yield
    finally:
        logger.setLevel(level)


def _pooch() -> Any:
    try:
        import pooch
    except ImportError:
        raise ImportError("downloading data needs pooch: pip install 'hscrf[data]'") from None
    return pooch


def _unpack_conll2000(originals: Path, folder: Path) -> None:
    with zipfile.ZipFile(originals / "conll2000.zip") as archive:
        for file in ("train.txt", "test.txt"):
            with replaced(folder / file) as name:
                Path(name).write_bytes(archive.read(f"conll2000/{file}"))


def _author_files() -> list[str]:
    """The names of the TEI files that hold author names."""
    listed = files("hscrf.datasets").joinpath("author_names.txt").read_text(encoding="utf-8")
    return [line for line in listed.splitlines() if line and not line.startswith("#")]


CONLL2000 = DownloadSource(
    "conll2000",
    "https://raw.githubusercontent.com/nltk/nltk_data/5db857e6f7df11eabb5e5665836db9ec8df07e28/packages/corpora/",
    {"conll2000.zip": "01e65164f268366e7caa0db92332a1955d081908c87016e2c7640c3c5279b7cd"},
    _unpack_conll2000,
    {
        "train.txt": "82033cd7a72b209923a98007793e8f9de3abc1c8b79d646c50648eb949b87cea",
        "test.txt": "73b7b1e565fa75a1e22fe52ecdf41b6624d6f59dacb591d44252bf4d692b1628",
    },
    strict=True,
)
CITATIONS = DownloadSource(
    "umass_citation",
    "https://raw.githubusercontent.com/mmcmahon13/umass-citation/ecbbd739a8ea9aa6aa76b67e83fe50d5229abade/",
    dict.fromkeys(CITATION_FILES),
    convert_citations,
    {
        "training.tsv": "85fbcbaa48873f4e897fcb22039f939a92dc1f81126c2f6f638fd58fbecf085c",
        "dev.tsv": "01a9a600380bcd38b8a3a9954dd88a3ec714b50da57a2afd516de8c724c975b0",
        "testing.tsv": "01782037962dbe4c4268e2d23af69158051ebaa9450ceaaecbdfd690f8979405",
    },
)
AUTHOR_NAMES = DownloadSource(
    "author_names",
    "https://raw.githubusercontent.com/kermitt2/grobid/b8d6bec/grobid-trainer/resources/dataset/name/header/corpus/",
    dict.fromkeys(_author_files()),
    lambda originals, folder: convert_author_names(originals, folder, _author_files()),
    {
        "train.tsv": "eb4c50007408146f3b62be2cd54d8fa70736b948e9d4ff4ffd84a24ab010ac56",
        "test.tsv": "6b25ea998c5686964ae3d2323d2644f8aa4473036fdc302786daa3124bdd22f6",
    },
)
ECG = DownloadSource(
    "ludb",
    "https://physionet.org/files/ludb/1.0.1/",
    dict.fromkeys(f"data/{record}.{kind}" for record in RECORDS for kind in ("hea", "dat", ANNOTATED)),
    convert_ecg,
    {"signals_100hz.npz": None, "labels.tsv": None},
    sums=SUMS,
)

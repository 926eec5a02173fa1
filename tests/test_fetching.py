"""Fetching data sets: downloads from a server on this machine, checks, the cache, and converters of the originals."""

import gc
import hashlib
import io
import os
import socket
import sys
import threading
import zipfile
from dataclasses import replace
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from xml.sax.saxutils import escape

import numpy as np
import pytest

from hscrf import datasets
from hscrf.datasets import fetching, load_author_names, load_ecg, originals, waveforms

pytest.importorskip("pooch")

SHARED = os.environ.get("HSCRF_DATA")
with_data = pytest.mark.skipif(not SHARED, reason="HSCRF_DATA is not set")


class Handler(SimpleHTTPRequestHandler):
    def log_message(self, *_):
        self.server.asked.append(self.path)


@pytest.fixture
def server(tmp_path):
    """A folder and the address at which it is served; the paths that were asked for."""
    root = tmp_path / "served"
    root.mkdir()
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Handler, directory=str(root))) as http:
        http.asked, http.root, http.base = [], root, f"http://127.0.0.1:{http.server_port}/"
        thread = threading.Thread(target=http.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        yield http
        http.shutdown()
        thread.join()


@pytest.fixture(autouse=True)
def alone(monkeypatch, tmp_path):
    """No data of this machine, and a cache of its own."""
    monkeypatch.delenv("HSCRF_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def sha256(data):
    return hashlib.sha256(data).hexdigest()


def redirect(monkeypatch, name, server, **changes):
    source = replace(getattr(fetching, name), base=server.base, retries=0, **changes)
    monkeypatch.setattr(fetching, name, source)


# -- CoNLL-2000 -------------------------------------------------------------------------------------------------------

SENTENCES = b"the DT B-NP\ncat NN I-NP\nsees VBZ B-VP\n\nit PRP B-NP\n\n"


@pytest.fixture
def conll2000(server, monkeypatch):
    """A made archive at the server, and the hashes of it and of its files."""
    memory = io.BytesIO()
    with zipfile.ZipFile(memory, "w") as archive:
        archive.writestr("conll2000/train.txt", SENTENCES)
        archive.writestr("conll2000/test.txt", SENTENCES)
    (server.root / "conll2000.zip").write_bytes(memory.getvalue())
    redirect(
        monkeypatch,
        "CONLL2000",
        server,
        originals={"conll2000.zip": sha256(memory.getvalue())},
        made=dict.fromkeys(["train.txt", "test.txt"], sha256(SENTENCES)),
    )
    return server


def test_an_archive_is_downloaded_once(conll2000, tmp_path):
    first = datasets.fetch_conll2000("train")
    assert first.tokens == [["the", "cat", "sees"], ["it"]]
    assert conll2000.asked == ["/conll2000.zip"]
    again = datasets.fetch_conll2000("test")
    assert conll2000.asked == ["/conll2000.zip"]
    assert again.Y[0] == first.Y[0]
    kept = {path.relative_to(tmp_path / "cache").as_posix() for path in (tmp_path / "cache").rglob("*.*")}
    assert kept == {f"hscrf/conll2000/{file}" for file in ("train.txt", "test.txt", "originals/conll2000.zip")}


def test_a_wrong_checksum_is_an_error_and_nothing_is_kept(conll2000, monkeypatch, tmp_path):
    wrong = "0" * 64
    redirect(monkeypatch, "CONLL2000", conll2000, originals={"conll2000.zip": wrong})
    found = sha256((conll2000.root / "conll2000.zip").read_bytes())
    with pytest.raises(ValueError, match=rf"conll2000\.zip has SHA-256 {found}; expected {wrong}: it has changed"):
        datasets.fetch_conll2000(folder=tmp_path / "mine")
    assert [path for path in (tmp_path / "mine").rglob("*") if path.is_file()] == []


def test_files_of_the_archive_are_checked_too(conll2000, monkeypatch, tmp_path):
    redirect(monkeypatch, "CONLL2000", conll2000, made={"train.txt": sha256(SENTENCES), "test.txt": "0" * 64})
    with pytest.raises(ValueError, match=r"test\.txt has SHA-256 \w+; the documentation used 0000"):
        datasets.fetch_conll2000(folder=tmp_path / "mine")
    assert not (tmp_path / "mine" / "conll2000" / "test.txt").exists()


def test_hscrf_data_comes_first_and_needs_no_pooch(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "pooch", None)
    with pytest.raises(ImportError, match=r"downloading data needs pooch: pip install 'hscrf\[data\]'"):
        datasets.fetch_conll2000()
    (tmp_path / "conll2000").mkdir()
    for file in ("train.txt", "test.txt"):
        (tmp_path / "conll2000" / file).write_bytes(SENTENCES)
    monkeypatch.setenv("HSCRF_DATA", str(tmp_path))
    assert len(datasets.fetch_conll2000()) == 2


def test_without_a_network_the_error_says_what_to_do(monkeypatch):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    source = replace(fetching.CITATIONS, base=f"http://127.0.0.1:{port}/", retries=0)
    monkeypatch.setattr(fetching, "CITATIONS", source)
    with pytest.raises(
        ConnectionError, match=r"training\.docs cannot be downloaded \(.*efused.*set HSCRF_DATA to a folder"
    ):
        datasets.fetch_citations()


@pytest.mark.filterwarnings("ignore:unclosed <socket", "ignore:.*<socket.socket")  # pooch leaves answers of 404 open
def test_a_missing_file_is_named(server, monkeypatch):
    redirect(monkeypatch, "CITATIONS", server)
    with pytest.raises(ConnectionError, match=r"/training\.docs cannot be downloaded \(HTTP status 404\)"):
        datasets.fetch_citations()
    gc.collect()


@pytest.mark.parametrize("name", ["conll2000", "citations", "author_names", "ecg"])
def test_an_unknown_split_is_an_error_before_anything_is_downloaded(name):
    with pytest.raises(ValueError, match="split is 'all'; expected 'train' or"):
        getattr(datasets, f"fetch_{name}")("all")


# -- citations --------------------------------------------------------------------------------------------------------

CITATIONS = (
    "<authors> <person> <person-last> Doe , </person-last> <person-first> J. </person-first> </person> and others"
    " </authors> <venue> <editor> ed . by <person> <person-last> Roe </person-last> </person> </editor> < 3 </venue> \n"
    "<title> never closed \n"
    "<title> A note </authors> \n"
    "\n"
    "<date> <year> 2006 . </year> </date>\n"
)
CITATION_ROWS = """Doe B-authors B-person B-person-last
, I-authors I-person I-person-last
J. I-authors I-person B-person-first
and I-authors O O
others I-authors O O
ed B-venue B-editor O
. I-venue I-editor O
by I-venue I-editor O
Roe I-venue I-editor B-person
< I-venue O O
3 I-venue O O

2006 B-date B-year O
. I-date I-year O

""".replace(" ", "\t")


def test_citations_are_read_from_inline_tags(server, monkeypatch, tmp_path):
    for file in originals.CITATION_FILES:
        (server.root / file).write_text(CITATIONS, encoding="utf-8")
    made = dict.fromkeys(originals.CITATION_FILES.values(), sha256(CITATION_ROWS.encode()))
    redirect(monkeypatch, "CITATIONS", server, made=made)
    found = datasets.fetch_citations("dev", folder=tmp_path)
    assert (tmp_path / "umass_citation" / "dev.tsv").read_text(encoding="utf-8") == CITATION_ROWS
    assert found.Y[0].segments("field") == [(0, 5, "authors"), (5, 11, "venue")]
    assert found.Y[0].segments("part")[:2] == [(0, 3, "person"), (3, 5, "authors")]
    assert sorted(server.asked) == ["/dev.docs", "/testing.docs", "/training.docs"]


def test_other_content_than_that_of_the_documentation_is_a_warning(server, monkeypatch, tmp_path):
    for file in originals.CITATION_FILES:
        (server.root / file).write_text(CITATIONS, encoding="utf-8")
    made = {**dict.fromkeys(originals.CITATION_FILES.values()), "dev.tsv": "0" * 64}
    redirect(monkeypatch, "CITATIONS", server, made=made)
    with pytest.warns(
        UserWarning, match=r"dev\.tsv has SHA-256 \w{64}; the documentation used 0{64}: numbers may differ"
    ):
        assert len(datasets.fetch_citations("train", folder=tmp_path)) == 2


# -- author names -----------------------------------------------------------------------------------------------------

TEI = """<?xml version="1.0" encoding="UTF-8"?>
<tei xmlns="http://www.tei-c.org/ns/1.0"><teiHeader><analytic>{}</analytic></teiHeader></tei>
"""
AUTHORS = [
    "<author>by <persName><forename>Anne-Marie</forename> <!-- a comment --> <middlename>B</middlename>.<lb/>"
    "<surname>Noël</surname><marker>1,*</marker>, </persName> <marker>2</marker> and <persName><firstname>Jo"
    "</firstname></persName></author>",
    "<author><persName><surname>Sa&apos;d</surname></persName></author>"
    "<author><persName><surname>Sa&apos;d</surname></persName></author><author> <lb/> </author>",
]
AUTHOR_ROWS = [
    ["by", "O", "O"],
    ["Anne", "B-person", "B-forename"],
    ["-", "I-person", "I-forename"],
    ["Marie", "I-person", "I-forename"],
    ["B", "I-person", "B-middlename"],
    [".", "I-person", "O"],
    ["Noël", "I-person", "B-surname"],
    ["1", "I-person", "B-marker"],
    [",", "I-person", "I-marker"],
    ["*", "I-person", "I-marker"],
    [",", "I-person", "O"],
    ["2", "O", "B-marker"],
    ["and", "O", "O"],
    ["Jo", "B-person", "B-firstname"],
]


def test_author_names_are_read_from_tei(server, monkeypatch, tmp_path):
    names = ["a b.tei.xml", "c.tei.xml", "d.tei.xml"]  # a name may need quoting
    for name, content in zip(names, [*AUTHORS, AUTHORS[1]], strict=True):
        (server.root / name).write_text(TEI.format(content), encoding="utf-8")
    convert = partial(originals.convert_author_names, names=names, one_in=10**40)  # everything is to train
    made = dict.fromkeys(["train.tsv", "test.tsv"])
    redirect(monkeypatch, "AUTHOR_NAMES", server, originals=dict.fromkeys(names), made=made, convert=convert)
    found = datasets.fetch_author_names(folder=tmp_path)
    assert [[row[0] for row in AUTHOR_ROWS], ["Sa", "'", "d"]] == found.tokens  # the same text once
    mended = [row[2].replace("firstname", "forename") for row in AUTHOR_ROWS]
    assert found.columns == {
        "person": [[row[1] for row in AUTHOR_ROWS], ["B-person", "I-person", "I-person"]],
        "part": [mended, ["B-surname", "I-surname", "I-surname"]],
    }
    assert found.Y[0].segments("person")[1] == (1, 11, "person")


def test_author_names_that_are_not_xml_are_named():
    with pytest.raises(ValueError, match=r"bad\.xml is not XML: "):
        list(originals.author_rows(b"<author>", "bad.xml"))


def test_the_list_of_files_is_sorted_and_complete():
    names = fetching._author_files()
    assert len(names) == len(set(names)) == 1099
    assert names == sorted(names)


# -- electrocardiograms -----------------------------------------------------------------------------------------------

KINDS = {"P": 24, "QRS": 1, "T": 27}
HEADER = "{0} 12 500 {1}\n" + "".join(
    f"{{0}}.dat 16 {100 * (k + 1)}({k - 3})/mV 0 0 0 0 0 {lead}\n" for k, lead in enumerate(waveforms.LEADS)
)


def annotation_file(events):
    """Sample and type in the MIT format, by the book of the format and not by the reader."""
    words, before = [], 0
    for time, kind in events:
        step = time - before
        if step > 1023:  # SKIP 59, then an interval of 32 bits, upper half first
            words += [59 << 10, step >> 16, step & 0xFFFF]
            step = 0
        words += [kind << 10 | step, 62 << 10 | 1]  # and a channel, which does not move the time
        before = time
    text = b"note"  # AUX 63 with four bytes
    return np.array(words, "<u2").tobytes() + np.array([63 << 10 | 4], "<u2").tobytes() + text + b"\0\0"


def events(waves):
    return [event for a, b, name in waves for event in ((a, 39), ((a + b) // 2, KINDS[name]), (b, 40))]


WAVES = [
    (20, 60, "T"),  # of a beat before the record: no QRS comes first
    (101, 149, "P"),
    (170, 220, "QRS"),
    (300, 396, "T"),
    (600, 650, "P"),  # blocked: no QRS follows
    (1700, 1750, "P"),  # a long interval
    (1751, 1790, "QRS"),
    (2100, 2140, "QRS"),
]
BEATS = [(10, 170, "PQRST"), (170, 210, "PQRS"), (210, 214, "QRS")]
SEGMENTS = [
    *[(10, 15, "P"), (15, 17, "PQ"), (17, 22, "QRS"), (22, 30, "ST"), (30, 40, "T"), (40, 170, "TP")],
    *[(170, 175, "P"), (175, 179, "QRS"), (179, 210, "ST"), (210, 214, "QRS")],
]


def spans(tags):
    """Segments of a BIO column."""
    starts = [t for t, tag in enumerate(tags) if tag.startswith("B-")]
    stops = [next((k for k in range(t + 1, len(tags)) if not tags[k].startswith("I-")), len(tags)) for t in starts]
    return [(start, stop, tags[start][2:]) for start, stop in zip(starts, stops, strict=True)]


@pytest.fixture
def ecg(server, monkeypatch):
    """Records 1 and 2, and the list of their hashes."""
    data = server.root / "data"
    data.mkdir()
    counts = np.random.default_rng(0).integers(-2000, 2000, (2500, 12)).astype("<i2")
    for record, rhythm in ((1, "Sinus rhythm"), (2, "Atrial flutter, typical")):
        header = HEADER.format(record, 2500) + f"#<age>: 51\n#Rhythm: {rhythm}.\n#Hypertrophy. \n"
        (data / f"{record}.hea").write_text(header, encoding="utf-8")
        (data / f"{record}.dat").write_bytes(counts.tobytes())
        (data / f"{record}.ii").write_bytes(annotation_file(events(WAVES)))
    sums = [f"{sha256(path.read_bytes())} data/{path.name}\n" for path in sorted(data.iterdir())]
    (server.root / "SHA256SUMS.txt").write_text("".join(sums), encoding="utf-8")
    names = dict.fromkeys(f"data/{record}.{kind}" for record in (1, 2) for kind in ("hea", "dat", "ii"))
    redirect(monkeypatch, "ECG", server, originals=names, convert=partial(waveforms.convert_ecg, records=(1, 2)))
    return server, counts


def test_electrocardiograms_are_read_from_physionets_files(ecg, tmp_path):
    _, counts = ecg
    train, test = (datasets.fetch_ecg(split, folder=tmp_path) for split in ("train", "test"))
    assert (train.names, test.names) == (["1"], ["2"])
    assert spans(train.columns["beat"][0]) == BEATS
    assert spans(train.columns["wave"][0]) == SEGMENTS
    for level in ("beat", "wave"):
        assert train.Y[0].column(level) == [tag[2:] or "?" for tag in train.columns[level][0]]
    assert train.columns["beat"][0][8:12] == ["?", "?", "B-PQRST", "I-PQRST"]
    assert set(test.columns["rhythm"][0]) == {"Atrial flutter, typical"}
    microvolts = 1000 * (counts - (np.arange(12) - 3)) / (100 * np.arange(1, 13))
    slow = np.round(microvolts.reshape(500, 5, 12).mean(axis=1))
    np.testing.assert_allclose(
        train.tokens[0], slow.reshape(250, 2, 12).mean(axis=1), rtol=0, atol=1
    )  # halves may round either way


def test_a_record_that_is_not_the_listed_one_is_an_error(ecg, tmp_path):
    server, _ = ecg
    (server.root / "data" / "2.ii").write_bytes(b"\0\0")
    with pytest.raises(ValueError, match=r"data/2\.ii has SHA-256 \w{64}; expected \w{64}: it has changed"):
        datasets.fetch_ecg(folder=tmp_path)
    assert not (tmp_path / "ludb" / "labels.tsv").exists()


def test_a_list_of_hashes_must_be_complete(ecg, tmp_path):
    server, _ = ecg
    (server.root / "SHA256SUMS.txt").write_text(f"{'0' * 64} data/1.hea\n", encoding="utf-8")
    with pytest.raises(ValueError, match=r"SHA256SUMS\.txt does not list data/1\.dat; expected all 6 files"):
        datasets.fetch_ecg(folder=tmp_path)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("12 500", "12 250"), r"record 1 has leads .* at 250 Hz; expected LUDB's at 500"),
        (("2500\n", "2400\n"), r"record 1 has 30000 samples in 16; expected 2400 x 12 in format 16"),
        (("100(-3)/mV", "100"), r"record 1 has units \['100', .*; expected gain\(baseline\)/mV"),
    ],
)
def test_an_unexpected_header_is_an_error(change, message):
    with pytest.raises(ValueError, match=message):
        waveforms.read_signal(HEADER.format(1, 2500).replace(*change), bytes(2 * 30000))


def test_records_without_waves_have_no_segments():
    assert waveforms.beats_and_waves(waveforms.read_waves(b"\0\0")) == {"beat": [], "wave": []}


# -- the files that the documentation used ----------------------------------------------------------------------------


def inline(rows):
    """A citation with inline tags, from its rows."""
    words, open_tags = [], []
    for token, *levels in rows:
        depth = next((k for k, tag in enumerate(levels) if not tag.startswith("I-")), len(levels))
        words += [f"</{tag}>" for tag in reversed(open_tags[depth:])]
        names = [tag[2:] for tag in levels if tag != "O"]
        words += [f"<{name}>" for name in names[depth:]]
        open_tags = names
        words.append(token)
    return " ".join([*words, *[f"</{tag}>" for tag in reversed(open_tags)]])


def blocks(path):
    return [block for block in path.read_text(encoding="utf-8").split("\n\n") if block]


@with_data
def test_citations_survive_the_way_through_inline_tags(tmp_path):
    for source, target in originals.CITATION_FILES.items():
        found = blocks(Path(SHARED, "umass_citation", target))
        lines = [inline([line.split("\t") for line in block.split("\n")]) for block in found]
        (tmp_path / source).write_text("\n".join(lines), encoding="utf-8")
    originals.convert_citations(tmp_path, tmp_path)
    for target, expected in fetching.CITATIONS.made.items():
        assert sha256((tmp_path / target).read_bytes()) == expected


def tei(rows):
    """A group of authors in TEI, from its rows."""
    text, inside = [], ["O", "O"]  # the open person and part
    for token, person, part in [*rows, ["", "O", "O"]]:
        for k, (tag, name) in reversed(list(enumerate(((person, "persName"), (part, inside[1]))))):
            if inside[k] != "O" and (
                not tag.startswith("I-") or (k == 1 and not person.startswith("I-") and person != "O")
            ):
                text.append(f"</{name}>")
                inside[k] = "O"
        if person != "O" and inside[0] == "O":
            text.append("<persName>")
            inside[0] = "person"
        if part != "O" and inside[1] == "O":
            inside[1] = part[2:]
            text.append(f"<{part[2:]}>")
        text.append(f" {escape(token)} ")
    return f"<author>{''.join(text)}</author>"


@with_data
def test_author_names_survive_the_way_through_tei(tmp_path):
    documents = dict.fromkeys(fetching._author_files(), "")
    for split in ("train", "test"):
        for block in blocks(Path(SHARED, "author_names", f"{split}.tsv")):
            first, *lines = block.split("\n")
            documents[first.split("\t")[1]] += tei([line.split("\t") for line in lines])
    for name, content in documents.items():
        (tmp_path / name).write_text(TEI.format(content), encoding="utf-8")
    originals.convert_author_names(tmp_path, tmp_path, list(documents))
    for split in ("train", "test"):
        # sequences of one document are in the order of the document, which the two files do not tell
        made, given = (
            sorted(blocks(Path(place, f"{split}.tsv"))) for place in (tmp_path, Path(SHARED, "author_names"))
        )
        assert made == given


@with_data
def test_electrocardiograms_survive_the_way_through_wfdb(tmp_path):
    place = Path(SHARED, "ludb")
    rows = [line.split("\t") for line in (place / "labels.tsv").read_text(encoding="utf-8").splitlines()[1:]]
    records = sorted({int(row[0]) for row in rows})[::9]
    (tmp_path / "data").mkdir()
    signals = np.load(place / "signals_100hz.npz")
    leads = "".join(f"x.dat 16 1000(0)/mV 0 0 0 0 0 {lead}\n" for lead in waveforms.LEADS)
    for record in records:
        own = [row for row in rows if row[0] == str(record)]
        header = f"{record} 12 500 5000\n{leads}#Rhythm: {own[0][1]}.\n"
        (tmp_path / "data" / f"{record}.hea").write_text(header, encoding="utf-8")
        (tmp_path / "data" / f"{record}.dat").write_bytes(signals[f"r{record}"].repeat(5, axis=0).tobytes())
        waves = [(10 * int(row[3]), 10 * int(row[4]), row[5]) for row in own if row[5] in KINDS and row[2] == "wave"]
        (tmp_path / "data" / f"{record}.ii").write_bytes(annotation_file(events(waves)))
    waveforms.convert_ecg(tmp_path, tmp_path, records)
    made = [line.split("\t") for line in (tmp_path / "labels.tsv").read_text(encoding="utf-8").splitlines()[1:]]
    assert made == sorted((row for row in rows if int(row[0]) in records), key=lambda row: (int(row[0]), row[2]))
    with np.load(tmp_path / "signals_100hz.npz") as found:
        for record in records:
            np.testing.assert_array_equal(found[f"r{record}"], signals[f"r{record}"])


@with_data
def test_loaders_count_what_the_readme_counts(monkeypatch):
    monkeypatch.setenv("HSCRF_DATA", SHARED)
    names = [load_author_names(split=split) for split in ("train", "test")]
    assert [len(one) for one in names] == [1121, 278]
    assert names[0].topology == names[1].topology
    records = [load_ecg(split=split) for split in ("train", "test")]
    assert [len(one) for one in records] == [100, 99]
    beats = [name for one in records for column in one.columns["beat"] for *_, name in spans(column)]
    assert {name: beats.count(name) for name in sorted(set(beats))} == {
        "PQRS": 163,
        "PQRST": 1238,
        "QRS": 25,
        "QRST": 391,
    }
    assert sum(len(set(one.names)) for one in records) == 199

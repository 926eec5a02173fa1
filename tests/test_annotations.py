"""Files of other annotation programs: round trips, and damaged or hostile files, which are refused with a line."""

import io
import itertools
import json
import zipfile

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hscrf.errors import DataFileError
from hscrf.io import (
    Interval,
    Labelled,
    PlaceError,
    Span,
    TimeAxis,
    Timeline,
    export,
    place,
    read_annotations,
    read_boris,
    read_eaf,
    read_label_config,
    read_segments,
    read_task,
    read_textgrid,
    write_boris,
    write_eaf,
    write_label_config,
    write_textgrid,
)
from hscrf.io.axis import rate_of
from hscrf.io.exports import segment_lines

LEVELS = {"part": ["low", 'hi "gh"', "élan & <co>"], "sound": ["low", "beep"]}
SPANS = [
    Span(0, 7, "part", "low"),
    Span(7, 20, "part", 'hi "gh"'),
    Span(25, 30, "part", "élan & <co>"),
    Span(3, 4, "sound", "beep"),
    Span(4, 30, "sound", "low"),
]
UNEVEN = [0.5 + 0.04 * n + (0.013 if n > 10 else 0) for n in range(30)]
AXES = [{"rate": 25}, {"rate": 30}, {"rate": 44.1}, {"times": UNEVEN}, {}]


def labelled(axis):
    return Labelled("day 1/ä", [[0.0]] * 30, SPANS, ("part", "sound"), axis.get("times"))


def written(form, axis):
    """Content and readers of each format."""
    sequence, rate = labelled(axis), axis.get("rate")
    tiers = {level: [span[:2] + (span.label,) for span in sequence.of_level(level)] for level in sequence.levels}
    if form == "eaf":
        return read_eaf(write_eaf(tiers, rate or 1.0, times=sequence.times, name=sequence.name), "x.eaf")
    if form == "textgrid":
        return read_textgrid(write_textgrid(tiers, 30, rate or 1.0, times=sequence.times), "day 1/ä.TextGrid")
    if form == "boris":
        return read_boris(write_boris([sequence], rate))[0]
    return read_segments("".join(segment_lines([sequence], rate)).encode())[0]


@pytest.mark.parametrize("axis", AXES)
@pytest.mark.parametrize("form", ["eaf", "textgrid", "boris", "segments"])
def test_what_goes_out_comes_in_again(form, axis):
    timeline = written(form, axis)
    assert timeline.name.endswith("ä")
    assert place(timeline, LEVELS, TimeAxis(30, **axis)).spans == SPANS


@given(
    st.lists(st.integers(1, 60), min_size=2, max_size=20, unique=True),
    st.floats(0.1, 400),
    st.sampled_from(["eaf", "textgrid", "boris"]),
)
def test_random_segments_survive(borders, rate, form):
    borders = sorted(borders)
    spans = [Span(i, j, "a", "x y") for i, j in itertools.pairwise(borders)]
    tiers = {"a": [(i, j, label) for i, j, _, label, _ in spans]}
    content = {
        "eaf": lambda: read_eaf(write_eaf(tiers, rate)),
        "textgrid": lambda: read_textgrid(write_textgrid(tiers, 60, rate)),
        "boris": lambda: read_boris(write_boris([Labelled("n", [0] * 60, spans, ("a",))], rate))[0],
    }
    assert place(content[form](), {"a": ["x y"]}, TimeAxis(60, rate)).spans == spans


def test_an_archive_is_read_file_by_file(tmp_path):
    days = [Labelled(f"day {n}", [0] * 30, SPANS, ("part", "sound")) for n in range(3)]
    export(tmp_path / "x.eaf.zip", days, rate=25)
    found = list(read_annotations((tmp_path / "x.eaf.zip").read_bytes(), "x.eaf.zip"))
    assert [timeline.name for timeline in found] == ["day 0", "day 1", "day 2"]
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w") as archive:
        archive.writestr("../../a.eaf", write_eaf({"part": [(0, 1, "low")]}))
        archive.writestr("b.eaf", "<ANNOTATION_DOCUMENT>")
        archive.writestr("notes.txt", "hello")
    good, bad = read_annotations(target.getvalue(), "x.zip")
    assert (good.name, isinstance(bad, DataFileError)) == ("a", True)


# -- other programs' own files

SHORT = (
    'File type = "ooTextFile"\nObject class = "TextGrid"\n\n0\n2.3\n<exists>\n2\n"IntervalTier"\n"Mary ""M"""\n0\n2.3\n'
    '1\n0\n2.3\n"two\nlines"\n"TextTier"\n"bell"\n0\n2.3\n1\n1\n"ding"\n'
)
LONG = """File type = "ooTextFile"
Object class = "TextGrid"

xmin = 0
xmax = 2
tiers? <exists>
size = 1
item []:
    item [1]:
        class = "IntervalTier"
        name = "part"
        xmin = 0
        xmax = 2
        intervals: size = 2
        intervals [1]:
            xmin = 0
            xmax = 1.5
            text = "low" ! a comment "here
        intervals [2]:
            xmin = 1.5
            xmax = 2
            text = ""
"""


def test_textgrids_of_praat():
    found = read_textgrid(SHORT.encode("utf-16"))
    assert [interval[:4] for interval in found.intervals] == [(0, 2.3, 'Mary "M"', "two\nlines")]
    for content in (LONG.encode(), b"\xef\xbb\xbf" + LONG.replace("\n", "\r\n").encode()):
        assert read_textgrid(content).intervals == [Interval(0, 1.5, "part", "low", "line 16")]


EAF = """<?xml version="1.0" encoding="UTF-8"?>
<ANNOTATION_DOCUMENT AUTHOR="" DATE="" FORMAT="3.0" VERSION="3.0">
<HEADER MEDIA_FILE="" TIME_UNITS="milliseconds">
<MEDIA_DESCRIPTOR MEDIA_URL="file:///films/my%20day.mp4" MIME_TYPE="video/mp4"/></HEADER>
<TIME_ORDER><TIME_SLOT TIME_SLOT_ID="t1" TIME_VALUE="0"/><TIME_SLOT TIME_SLOT_ID="t2"/>
<TIME_SLOT TIME_SLOT_ID="t3" TIME_VALUE="2000"/></TIME_ORDER>
<TIER LINGUISTIC_TYPE_REF="x" TIER_ID="part"><ANNOTATION>
<ALIGNABLE_ANNOTATION ANNOTATION_ID="a1" TIME_SLOT_REF1="t1" TIME_SLOT_REF2="t2">
<ANNOTATION_VALUE>low</ANNOTATION_VALUE>
</ALIGNABLE_ANNOTATION></ANNOTATION></TIER>
<TIER LINGUISTIC_TYPE_REF="y" PARENT_REF="part" TIER_ID="comment"><ANNOTATION>
<REF_ANNOTATION ANNOTATION_ID="a2" ANNOTATION_REF="a1"><ANNOTATION_VALUE>so &amp; so</ANNOTATION_VALUE></REF_ANNOTATION>
</ANNOTATION></TIER></ANNOTATION_DOCUMENT>"""


def test_documents_of_elan_with_free_slots_and_references():
    found = read_eaf(EAF.encode(), "session7.eaf")
    assert found.names == ("session7", "my day")
    assert [interval[:4] for interval in found.intervals] == [(0, 1, "part", "low"), (0, 1, "comment", "so & so")]
    placed = place(found, LEVELS, TimeAxis(20, 10))
    assert (placed.spans, placed.left_out) == ([Span(0, 10, "part", "low")], ["comment"])


AGGREGATED = (
    "Observation id,Subject,Behavior,Behavioral category,Behavior type,Start (s),Stop (s)\n"
    "obs1,No focal subject,low,part,STATE,0.0,1.5\nobs1,,ring,,POINT,1.0,1.0\nobs2,sound,beep,,STATE,0,0:0:2\n"
)
TABULAR = (
    "Observation id\tobs1\n\nTime\tMedia file path\tSubject\tBehavior\tStatus\n"
    "0.0\t/films/day 1.mp4\tpart\tlow\tSTART\n1.5\t/films/day 1.mp4\tpart\tlow\tSTOP\n"
)


def test_tables_of_boris():
    one, two = read_annotations(AGGREGATED.encode(), "x.csv")
    assert (one.name, [i[:4] for i in one.intervals]) == ("obs1", [(0, 1.5, "part", "low")])
    assert [i[:4] for i in two.intervals] == [(0, 2, "sound", "beep")]
    (three,) = read_annotations(TABULAR.encode(), "x.tsv")
    assert (three.name, [i[:4] for i in three.intervals]) == ("day 1", [(0, 1.5, "part", "low")])


def test_projects_of_boris():
    project = {
        "behaviors_conf": {
            "0": {"type": "State event", "code": "low", "category": "part"},
            "1": {"type": "Point event", "code": "ring", "category": ""},
        },
        "observations": {
            "o": {"file": {"1": ["films/day.mp4"]}, "events": [[0, "", "low", "", ""], [1, "", "ring"], [2, "", "low"]]}
        },
    }
    (found,) = read_boris(json.dumps(project).encode())
    assert (found.names, [i[:4] for i in found.intervals]) == (("day",), [(0, 2, "part", "low")])
    project["observations"]["o"]["events"].pop()
    with pytest.raises(DataFileError, match="event 1: 'low' begins at 0 s and has no end"):
        read_boris(json.dumps(project).encode())


def test_label_configurations_both_ways():
    levels = {"part": ["low", 'a "b" <c>'], "sound": ["beep"]}
    for kind in ("text", "time"):
        assert read_label_config(write_label_config(levels, kind, ["x", "y"]).encode()) == levels
    for bad, line, words in [
        ("<View/>", 1, "no control"),
        ("<View>\n<Labels toName='t'/></View>", 2, "no name"),
        ("<View>\n<Labels name='a'>\n<Label value='x'/>\n<Label value='x'/></Labels></View>", 4, "value of its own"),
        ('<!DOCTYPE a [<!ENTITY b "c">]><View/>', 1, "DOCTYPE"),
        ("<View>\n<Labels", 2, "not valid XML"),
    ]:
        with pytest.raises(DataFileError, match=words) as caught:
            read_label_config(bad.encode(), "c.xml")
        assert caught.value.line == line


def test_regions_of_recordings_and_series_of_label_studio():
    sound = {"from_name": "part", "to_name": "audio", "value": {"start": 0, "end": 1.2, "labels": ["low"]}}
    found = read_task({"data": {"audio": "/data/upload/1/day.wav?x=1"}, "annotations": [{"result": [sound]}]})
    assert (found.unit, found.names) == ("seconds", ("day",))
    assert place(found, LEVELS, TimeAxis(20, 10)).spans == [Span(0, 12, "part", "low")]
    series = {"from_name": "part", "value": {"start": 0.1, "end": 0.3, "timeserieslabels": ["low"]}}
    times = [0.0, 0.1, 0.3, 0.7]
    found = read_task({"data": {"ts": {"time": times}}, "annotations": [{"result": [series]}]})
    assert place(found, LEVELS, TimeAxis(4)).spans == [Span(1, 3, "part", "low")]
    with pytest.raises(PlaceError, match="task 0, region 0: its series has 4 samples, expected 5"):
        place(found, LEVELS, TimeAxis(5))
    whole = {"from_name": "part", "value": {"start": 1, "end": 2, "timeserieslabels": ["low"]}}
    found = read_task({"data": {"ts": "/data/x.csv"}, "annotations": [{"result": [whole]}]})
    assert place(found, LEVELS, TimeAxis(4)).spans == [Span(1, 3, "part", "low")]


def test_a_file_without_an_ending_is_known_by_its_content(tmp_path):
    export(tmp_path / "x.eaf.zip", [Labelled("a", [0] * 30, SPANS, ("part", "sound"))])
    for content in (EAF.encode(), LONG.encode(), SHORT.encode("utf-16"), (tmp_path / "x.eaf.zip").read_bytes()):
        assert next(read_annotations(content, "x")).intervals
    assert next(read_annotations(write_boris([labelled({})]), "x")).name == "day 1/ä"
    assert next(read_annotations(b'[{"data": {"name": "a"}}]', "x")).name == "a"


# -- hostile and damaged files

LAUGHS = (
    '<!DOCTYPE x [<!ENTITY a "ha">'
    + "".join(f'<!ENTITY {chr(98 + k)} "{f"&{chr(97 + k)};" * 10}">' for k in range(9))
    + "]>\n<ANNOTATION_DOCUMENT>&j;</ANNOTATION_DOCUMENT>"
)
OUTSIDE = '<!DOCTYPE x [<!ENTITY a SYSTEM "file:///etc/passwd">]><ANNOTATION_DOCUMENT>&a;</ANNOTATION_DOCUMENT>'


@pytest.mark.parametrize(
    ("name", "content", "line", "words"),
    [
        ("a.eaf", LAUGHS.encode(), 1, "DOCTYPE"),
        ("a.eaf", OUTSIDE.encode(), 1, "DOCTYPE"),
        ("a.eaf", b"<html></html>", 1, "expected an <ANNOTATION_DOCUMENT>"),
        ("a.eaf", EAF.encode()[: EAF.index("low")], 9, "not valid XML"),
        ("a.eaf", b"", 1, "not valid XML: no element found"),
        ("a.eaf", EAF.replace("so &amp; so", "caf\xe9").encode("latin-1"), 12, "not valid XML"),
        ("a.eaf", b'<?xml version="1.0" encoding="nope"?><ANNOTATION_DOCUMENT/>', 1, "not valid XML: unknown encoding"),
        ("a.eaf", b"<ANNOTATION_DOCUMENT>\n" + b"<A>" * 100, 2, "more than 50 elements"),
        ("a.eaf", EAF.replace('"2000"', '"1e999"').encode(), 6, "TIME_VALUE is '1e999'"),
        ("a.eaf", EAF.replace(' TIME_VALUE="2000"', "").encode(), 6, "'t3' has no TIME_VALUE"),
        ("a.eaf", EAF.replace('REF2="t2"', 'REF2="t9"').encode(), 8, "TIME_SLOT_REF2 is 't9'"),
        ("a.eaf", EAF.replace('ANNOTATION_REF="a1"', 'ANNOTATION_REF="a2"').encode(), 12, "ANNOTATION_REF is 'a2'"),
        ("a.TextGrid", LONG.encode()[: LONG.index("xmax = 1.5")], 16, "cut off"),
        ("a.TextGrid", LONG.encode()[:-2], 22, "no closing quote"),
        ("a.TextGrid", LONG.replace("low", "caf\xe9").encode("latin-1"), 18, "is not UTF-8"),
        ("a.TextGrid", b"ooBinaryFile\x08TextGrid", 1, "binary"),
        ("a.TextGrid", b"hello", 1, "expected a TextGrid"),
        ("a.TextGrid", LONG.replace("size = 2", "size = 1e9").encode(), 14, "number of intervals is 1e"),
        ("a.TextGrid", LONG.replace("size = 2", "size = 9").encode(), 22, "cut off"),
        ("a.TextGrid", LONG.replace("xmax = 1.5", 'xmax = "a"').encode(), 17, "expected a number"),
        ("a.boris", b'{"observations": \n', 2, "not valid JSON"),
        ("a.boris", b"{" + b'"a":[' * 100_000, 1, "not valid JSON"),
        ("a.boris", b'{"observations": {"o": {"events": [["x", 1, 2]]}}}', 1, "event 1: expected"),
        ("a.boris", b'{"observations": {"o": 3}}', 1, "no list of events"),
        ("a.csv", AGGREGATED.replace("1.5", "soon").encode(), 2, "'stop \\(s\\)' is 'soon'"),
        ("a.tsv", TABULAR.replace("START", "STOP").encode(), 4, "ends but has not begun"),
        ("a.csv", b"sequence,start,stop\n", 1, "expected label"),
        ("a.csv", b"start,stop,label\n0,1\n", 2, "2 columns, expected 3"),
        ("a.csv", b"start,stop,label\n0,1,a\n0,nan,a\n", 3, "stop is 'nan'"),
        ("a.csv", b"", 1, "the header has nothing"),
        ("a.json", b"[\n{", 2, "not valid JSON"),
        ("a.json", b"[" * 100_000, 1, "not valid JSON"),
        ("a.json", b'{"a": 1}', 1, "not a list of tasks"),
        ("a.zip", b"PK\x03\x04 no", 1, "not an archive"),
        ("a.exe", b"", 1, "not one of a known format"),
        ("a", b"hello", 1, "not one of a known format"),
    ],
)
def test_damaged_and_hostile_files_are_refused_by_line(name, content, line, words):
    with pytest.raises(DataFileError, match=words) as caught:
        list(read_annotations(content, name))
    assert (caught.value.file, caught.value.line) == (name, line)


def test_large_files_are_refused():
    for name in ("a.eaf", "a.TextGrid", "a.boris", "a.csv", "a.json", "a.zip"):
        with pytest.raises(DataFileError, match="the file has 1001 bytes, expected at most 1000"):
            list(read_annotations(b" " * 1001, name, most_bytes=1000))
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in "abcd":
            archive.writestr(f"{name}.csv", b"0" * 1_000_000)
    assert len(target.getvalue()) < 5_000
    with pytest.raises(DataFileError, match="holds more than 20000 bytes"):
        list(read_annotations(target.getvalue(), "bomb.zip", most_bytes=5_000))


@pytest.mark.parametrize(
    ("intervals", "words"),
    [
        ([(0, 1, "part", "loud")], "line 1: level 'part' has no label 'loud'"),
        ([(0, 1, "part", "low"), (0.9, 2, "part", "low")], "line 2: 'low' overlaps 'low' .* \\(line 1\\)"),
        ([(0, 9, "part", "low")], "line 1: 'low' goes from 0 to 9, outside the sequence \\(0 to 2 s\\)"),
        ([(-1, 1, "part", "low")], "outside"),
        ([(0.5, 0.52, "part", "low")], "shorter than half a step"),
        ([(1, 0.5, "part", "low")], "expected times in order"),
        ([(float("nan"), 1, "part", "low")], "expected times in order"),
    ],
)
def test_intervals_that_do_not_fit_are_refused(intervals, words):
    rows = [Interval(*one, f"line {n}") for n, one in enumerate(intervals, start=1)]
    with pytest.raises(PlaceError, match=words):
        place(Timeline("x", rows), LEVELS, TimeAxis(20, 10))


def test_gaps_stay_and_borders_off_the_grid_move_to_the_nearest_step():
    rows = [Interval(0.04, 0.46, "part", "low", "line 1"), Interval(1.0, 2.05, "part", "low", "line 2")]
    placed = place(Timeline("x", rows), LEVELS, TimeAxis(20, 10))
    assert placed.spans == [Span(0, 5, "part", "low"), Span(10, 20, "part", "low")]
    assert placed.moved == 3


def test_a_tier_belongs_to_the_only_level_that_has_its_labels():
    rows = [
        Interval(0, 1, "x", "beep", ""),
        Interval(0, 1, "y", "low", ""),
        Interval(0, 1, "sound (model)", "beep", ""),
    ]
    placed = place(Timeline("x", rows), LEVELS, TimeAxis(20, 10))
    assert (placed.spans, placed.left_out) == ([Span(0, 10, "sound", "beep")], ["y", "sound (model)"])
    with pytest.raises(PlaceError, match="'y' is not a level, and several levels have the label 'low'"):
        place(Timeline("x", rows[1:2], strict=True), LEVELS, TimeAxis(20, 10))


# -- times


def test_times_of_steps():
    axis = TimeAxis(4, times=[1, 2, 4, 5])
    assert [axis.seconds(k) for k in range(5)] == [1, 2, 4, 5, 6]
    assert [axis.border(time) for time in (-5, 1.4, 1.5, 2.9, 3.1, 99)] == [0, 0, 1, 1, 2, 4]
    for times, words in (([0, 1], "2 times, expected 3"), ([0, 1, 1], "step 2 is 1.0"), ([0, 1, "nan"], "step 2")):
        with pytest.raises(ValueError, match=words):
            TimeAxis(3, times=times)
    assert rate_of([0.0]) is None
    assert rate_of([5, 6, 7]) is None
    assert rate_of([n / 30 for n in range(100)]) == 30

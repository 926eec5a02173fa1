"""Files: round trips, and errors that name file and line."""

import io
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hscrf import Labels, Topology
from hscrf.errors import DataFileError
from hscrf.io.columns import column_names, read_columns, write_columns
from hscrf.io.crfsuite import read_crfsuite, write_crfsuite
from hscrf.io.documents import Document
from hscrf.io.jsonl import read_jsonl, write_jsonl
from hscrf.io.tables import read_table, write_table
from hscrf.io.tags import detect_scheme, to_labels

CONLL = "the D B-NP\ncat N I-NP\n\nsleeps V B-VP\n"
WORDS = st.text(st.characters(exclude_categories=["Cs", "Cc", "Zs", "Zl", "Zp"]), min_size=1, max_size=5)
TAGS = st.sampled_from(["?", "B-NP", "I-NP", "O", "N", "ß"])
NUMBERS = st.floats(allow_nan=False, allow_infinity=False)


examples = settings(max_examples=40)  # of the profile in conftest.py


def sequences(row):
    return st.lists(st.lists(row, min_size=1, max_size=4), min_size=1, max_size=4)


def back(write, read, documents, **options):
    """Documents that were written and read again."""
    file = io.StringIO()
    write(file, documents, **options.pop("writing", {}))
    return list(read(io.BytesIO(file.getvalue().encode()), **options))


def complaint(read, content, **options):
    """The message of reading a broken file."""
    stream = io.BytesIO(content if isinstance(content, bytes) else content.encode())
    stream.name = "data.txt"
    with pytest.raises(DataFileError) as caught:
        list(read(stream, **options))
    message = str(caught.value)
    assert "\n" not in message
    return message


class TestRoundTrips:
    @examples
    @given(sequences(st.tuples(WORDS, WORDS, TAGS)), st.sampled_from([None, " ", "\t", "|"]))
    def test_columns(self, rows, separator):
        if separator == "|":
            rows = [[[cell.replace("|", "/") for cell in row] for row in block] for block in rows]
        documents = [Document([list(r[:2]) for r in block], {"tag": [r[2] for r in block]}) for block in rows]
        options = {"writing": {"separator": separator}, "separator": separator, "levels": ["tag"]}
        assert back(write_columns, read_columns, documents, **options) == documents

    def test_columns_keep_order_comments_and_additions(self):
        text = "# sent 1\nthe D B-NP\ncat N I-NP\n\n# sent 2\nsleeps V B-VP\n\n"
        with pytest.warns(UserWarning, match=r"line 1: the line is a comment, .* \(2 such lines"):
            documents = list(read_columns(io.StringIO(text), {"chunk": 2, "pos": 1}, comment="# "))
        file = io.StringIO()
        write_columns(file, documents)
        assert file.getvalue() == text
        documents[0].extra["guess"] = ["D", "V"]
        file = io.StringIO()
        write_columns(file, documents[:1])
        assert file.getvalue() == "# sent 1\nthe D B-NP D\ncat N I-NP V\n\n"

    def test_columns_that_cannot_be_written_are_refused(self):
        with pytest.raises(ValueError, match=r"\['a b'\] cannot be written"):
            write_columns(io.StringIO(), [Document([["a b"]])])
        with pytest.raises(ValueError, match="cannot be written"):
            write_columns(io.StringIO(), [Document([[""]])], separator="\t")

    @examples
    @given(st.lists(st.sampled_from(["strings", "dicts", "lists", "numbers"]), min_size=1, max_size=3), st.data())
    def test_jsonl(self, kinds, data):
        makers = {
            "strings": st.text(max_size=4),
            "dicts": st.dictionaries(st.text(max_size=3), st.text(max_size=3) | NUMBERS, max_size=2),
            "lists": st.lists(st.text(max_size=3), max_size=3),
            "numbers": st.tuples(NUMBERS, NUMBERS).map(list),
        }
        documents = []
        for kind in kinds:
            tokens = data.draw(st.lists(makers[kind], min_size=1, max_size=4))
            tags = data.draw(st.lists(TAGS | st.none(), min_size=len(tokens), max_size=len(tokens)))
            labels = data.draw(st.sampled_from([None, {"phrase": [(0, len(tokens), "NP")], "tag": tags}]))
            documents.append(Document(tokens, labels, {"mood": data.draw(st.text())}, name=data.draw(WORDS)))
        assert back(write_jsonl, read_jsonl, documents) == documents

    @examples
    @given(sequences(st.tuples(NUMBERS, NUMBERS, TAGS)))
    def test_table_of_numbers(self, rows):
        documents = [
            Document([list(r[:2]) for r in block], {"tag": [r[2] for r in block]}, name=f"day {n}")
            for n, block in enumerate(rows)
        ]
        options = {"writing": {"features": ["x", "y"]}, "levels": ["tag"]}
        assert back(write_table, read_table, documents, **options) == documents

    @examples
    @given(
        sequences(
            st.tuples(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\r\0"), max_size=4), NUMBERS)
        )
    )
    def test_table_of_text_and_numbers(self, rows):
        documents = [
            Document([{"word": "a" + word, "x": x} for word, x in block], {"tag": ["N"] * len(block)}, name=str(n))
            for n, block in enumerate(rows)
        ]
        assert back(write_table, read_table, documents, levels=["tag"]) == documents

    def test_table_keeps_the_order_of_columns_and_sorts_time(self):
        text = "tag,time,note,sequence,x\nN,2,b,one,0.5\nD,1,a,one,3\nV,1,c,two,2\n"
        documents = list(read_table(io.StringIO(text), ["tag"], features=["x"]))
        assert [d.labels["tag"] for d in documents] == [["D", "N"], ["V"]]
        file = io.StringIO()
        write_table(file, documents)
        assert file.getvalue() == "tag,time,note,sequence,x\nD,1,a,one,3\nN,2,b,one,0.5\nV,1,c,two,2\n"

    @pytest.mark.parametrize("gap", ["\n", "\n\n", ",,\n", " ,\t,\n"])
    def test_without_a_column_that_names_them_sequences_end_at_blank_lines(self, gap):
        text = f"word,n,tag\n{gap}a,1,N\nb,2,?\n{gap}c,3,V\n{gap}"
        documents = list(read_table(io.StringIO(text), ["tag"]))
        assert [(d.name, [t["word"] for t in d.tokens], d.labels["tag"]) for d in documents] == [
            ("1", ["a", "b"], ["N", "?"]),
            ("2", ["c"], ["V"]),
        ]
        file = io.StringIO()
        write_table(file, documents)
        assert file.getvalue() == "word,n,tag,sequence\na,1,N,1\nb,2,?,1\nc,3,V,2\n"

    def test_blank_lines_mean_nothing_where_a_column_names_sequences(self):
        text = "sequence,x,tag\na,1,N\n\na,2,V\n"
        assert [d.labels["tag"] for d in read_table(io.StringIO(text), ["tag"])] == [["N", "V"]]
        text = "chapter,x,tag\na,1,N\n\na,2,V\n"
        assert [d.labels["tag"] for d in read_table(io.StringIO(text), ["tag"], sequence="chapter")] == [["N", "V"]]

    @pytest.mark.parametrize("kind", ["frame", "parquet"])
    def test_frames_and_parquet(self, tmp_path, kind):
        pandas = pytest.importorskip("pandas")
        frame = pandas.DataFrame({"sequence": ["a", "a", "b"], "x": [1.0, 2.5, 3.0], "tag": ["N", None, "V"]})
        source = frame
        if kind == "parquet":
            pytest.importorskip("pyarrow")
            source = tmp_path / "data.parquet"
            frame.to_parquet(source)
        documents = list(read_table(source, ["tag"]))
        assert [(d.tokens, d.labels["tag"]) for d in documents] == [([[1.0], [2.5]], ["N", "?"]), ([[3.0]], ["V"])]
        if kind == "parquet":
            write_table(tmp_path / "back.parquet", documents)
            assert list(read_table(tmp_path / "back.parquet", ["tag"])) == documents

    @examples
    @given(sequences(st.tuples(TAGS, st.dictionaries(WORDS, NUMBERS | st.just(1.0), max_size=3))))
    def test_crfsuite(self, rows):
        documents = [Document([r[1] for r in block], {"label": [r[0] for r in block]}) for block in rows]
        assert back(write_crfsuite, read_crfsuite, documents) == documents

    def test_crfsuite_as_crfsuite_writes_it(self):
        text = "B-NP\tw[0]=a\\:b\tw[0]=back\\\\slash:2.5\tw\\:x:-1\n"
        (document,) = read_crfsuite(io.StringIO(text))
        assert document.tokens == [{"w[0]=a:b": 1.0, "w[0]=back\\slash": 2.5, "w:x": -1.0}]


class TestReading:
    def test_carriage_returns_and_byte_order_mark(self):
        plain = list(read_columns(io.BytesIO(CONLL.encode()), {"chunk": 2, "pos": 1}))
        windows = b"\xef\xbb\xbf" + CONLL.replace("\n", "\r\n").encode()
        assert list(read_columns(io.BytesIO(windows), {"chunk": 2, "pos": 1})) == plain
        assert plain[0].labels == {"chunk": ["B-NP", "I-NP"], "pos": ["D", "N"]}
        assert plain[1].lines == [4]

    def test_reading_streams(self):
        def endless():
            while True:
                yield b"a N\n"
                yield b"\n"

        class Stream:
            name = "endless"

            def read(self):
                raise AssertionError

            def __iter__(self):
                return endless()

        documents = read_columns(Stream(), ["tag"])
        assert [next(documents).tokens for _ in range(3)] == [[["a"]]] * 3

    def test_white_space_of_other_scripts_belongs_to_words(self):
        (document,) = read_columns(io.StringIO("a\u00a0b N\n"), ["tag"])
        assert document.tokens == [["a\u00a0b"]]

    def test_unlabelled_files(self):
        names = ("word", "pos", "chunk")
        (document,) = read_columns(io.StringIO("the\ncat\n"), ["chunk", "pos"], names, unlabelled=True)
        assert document.labels is None
        assert document.tokens == [["the"], ["cat"]]
        (document,) = read_table(io.StringIO("sequence,x\na,1\n"), ["tag"], unlabelled=True)
        assert document.labels is None

    def test_huge_lines(self):
        word = "x" * 3_000_000
        (document,) = read_columns(io.StringIO(f"{word} N\n"), ["tag"])
        assert document.tokens == [[word]]
        (document,) = read_table(io.StringIO(f"sequence,w,tag\na,{word},N\n"), ["tag"])
        assert document.tokens == [{"w": word}]

    def test_column_names(self):
        with pytest.raises(ValueError, match="level 'pos' is column 4, but there are 3 columns"):
            column_names(3, {"pos": 3})
        with pytest.raises(ValueError, match="the same column"):
            column_names(3, {"pos": 1, "chunk": 1})
        with pytest.raises(ValueError, match="there is no column 'pos', only word"):
            column_names(1, ["pos"], ["word"])

    def test_detect_scheme(self):
        def scheme(*tags):
            return detect_scheme([Document(["x"] * len(tags), {"a": list(tags)})], "a")

        assert scheme("N", "V") == "plain"
        assert scheme("O", "?", "I-NP") == "bio"
        assert scheme("B-NP", "E-NP", "S-VP") == "bioes"
        assert scheme("S-bahn") == "plain"


UNKNOWN = "; if a level has no labels there, add a column of ?"


class TestBrokenFiles:
    COLUMNS = (
        ("the D B-NP\ncat N\n", "data.txt, line 2: there are 2 columns, expected 3"),
        ("", "data.txt, line 1: the file is empty, expected at least one sequence"),
        ("\n\n\n", "data.txt, line 1: the file is empty, expected at least one sequence"),
        (b"the D B-NP\n\xff N O\n", "data.txt, line 2: byte 1 is 0xff, expected UTF-8"),
        ("a D O\n\nb N NP\n", "data.txt, line 3: level 'chunk' has the label 'NP', expected B-x, I-x, O or ?"),
        ("one\n", "data.txt, line 1: level 'chunk' is column 3, but there is 1 column" + UNKNOWN),
    )

    @pytest.mark.parametrize(("content", "message"), COLUMNS)
    def test_columns(self, content, message):
        options = {"levels": {"chunk": 2, "pos": 1}, "scheme": {"chunk": "bio"}}
        assert complaint(read_columns, content, **options) == message

    def test_too_few_columns(self):
        message = complaint(read_columns, "a\n", levels=["tag"], extra=["guess"])
        assert message == "data.txt, line 1: there is 1 column, expected at least 2"

    def test_columns_with_names(self):
        message = complaint(read_columns, "a b\n", levels=["pos"], names=["word", "lemma", "pos"])
        assert message == "data.txt, line 1: there are 2 columns, expected 3 (word, lemma, pos)"

    JSON = (
        ('{"tokens": ["a"]}\n{"tokens": ["a", ', "line 2: not valid JSON: Expecting value"),
        ("[1]", 'line 1: expected an object with a list "tokens" that is not empty'),
        ('{"tokens": []}', 'line 1: expected an object with a list "tokens" that is not empty'),
        ('{"tokens": [3]}', "line 1: token 0 is 3, expected a string, an object of features or a list"),
        ('{"tokens": ["a", {}]}', "line 1: token 1 is {}, but token 0 is 'a': expected one kind"),
        ('{"tokens": [[1, 2], [1]]}', "line 1: token 1 has 1 cell, expected 2"),
        ('{"tokens": [[Infinity]]}', "line 1: not valid JSON: Infinity is not a finite number"),
        ('{"tokens": [[1, [2]]]}', "line 1: token 0 has the cell [2], expected a number, text or null"),
        ('{"tokens": ["a"], "labels": {"t": ["N", "V"]}}', "line 1: level 't' has 2 labels for 1 tokens"),
        ('{"tokens": ["a"], "labels": {"t": [3]}}', "line 1: level 't' has the label 3 at 0, expected a string"),
        ('{"tokens": ["a"], "labels": 3}', 'line 1: expected "labels" with one entry for each level'),
        (
            '{"tokens": ["a"], "labels": {"t": [[0, 2, "N"]]}}',
            "line 1: level 't' has the segment [0, 2, \"N\"], expected [start, stop, state] with 0 <= start < stop",
        ),
        (
            '{"tokens": ["a", "b"], "labels": {"t": [[0, 2, "N"], [1, 2, "V"]]}}',
            "line 1: level 't': the segments [0, 2, 'N'] and [1, 2, 'V'] overlap",
        ),
        ("[" * 100_000, "line 1: not valid JSON: maximum recursion depth exceeded"),
    )

    @pytest.mark.parametrize(("content", "message"), JSON, ids=range(len(JSON)))
    def test_jsonl(self, content, message):
        assert complaint(read_jsonl, content).startswith(f"data.txt, {message}")

    TABLES = (
        ("sequence,x,tag\na,1\n", "line 2: there are 2 columns, expected 3"),
        ("sequence,x\na,1\n", "line 1: there is no column 'tag', only sequence, x"),
        (
            "x,tag\n1,N\n\n",
            "line 1: there is no column 'sequence', only x, tag (blank lines can separate sequences; "
            "or --sequence NAME, in Python sequence=NAME, says which column names them; "
            "--sequence none: all rows are one)",
        ),
        ("sequence,x,tag\n", "line 1: the file is empty, expected at least one sequence"),
        ("sequence,tag\na,N\n", "line 1: no column is left for features, only sequence, tag"),
        ('sequence,x,tag\na,"1,N\n', "line 2: not valid CSV: unexpected end of data"),
    )

    @pytest.mark.parametrize(("content", "message"), TABLES)
    def test_tables(self, content, message):
        assert complaint(read_table, content, levels=["tag"]) == f"data.txt, {message}"

    def test_a_number_that_is_none(self):
        content = 'sequence,w,x,tag\na,"two\nlines",1,N\na,b,?,N\n'
        message = complaint(read_table, content, levels=["tag"], numeric=["x"])
        assert message == "data.txt, line 4: column 'x' is '?', expected a finite number, or nothing if it is missing"

    def test_crfsuite(self):
        message = complaint(read_crfsuite, "N\ta\nN\ta:b\n")
        assert message == "data.txt, line 2: the attribute 'a:b' is not name or name:weight"


class TestLabels:
    topology = Topology({"phrase": ["NP", "VP"], "tag": ["D", "N"]}, children={"phrase": {"VP": ["N"]}})

    def test_segments_and_columns_together(self):
        document = Document(list("abc"), {"phrase": [(0, 2, "NP")], "tag": ["D", None, "N"]})
        labels = to_labels(document, self.topology)
        assert labels.column("phrase") == ["NP", "NP", "?"]
        assert labels.column("tag") == ["D", "?", "N"]
        assert labels.ends[1].tolist() == [0, 1, -1]

    def test_levels_that_are_missing_are_unknown(self):
        assert to_labels(Document(["a"]), self.topology) == Labels.from_segments(self.topology, {}, 1)

    def test_an_unknown_state_is_found_in_its_line(self):
        document = Document(list("abc"), {"phrase": ["NP"] * 3, "tag": ["D", "X", "N"]}, lines=[4, 5, 7], file="f")
        with pytest.raises(DataFileError, match=r"^f, line 5: .*'X'"):
            to_labels(document, self.topology)

    def test_a_contradiction_is_found_in_its_line(self):
        document = Document(list("abc"), {"phrase": ["VP"] * 3, "tag": ["N", "N", "D"]}, lines=[4, 5, 7], file="f")
        with pytest.raises(DataFileError, match=r"^f, line 7: tag 'D' at 2 is not a child of phrase 'VP'"):
            to_labels(document, self.topology)


def test_writing_to_a_path(tmp_path):
    path = tmp_path / "a.jsonl"
    document = Document(["ß"], {"tag": ["N"]})
    write_jsonl(path, [document])
    assert json.loads(path.read_text(encoding="utf-8")) == {"tokens": ["ß"], "labels": {"tag": ["N"]}}
    assert list(read_jsonl(path)) == [document]
    assert next(read_jsonl(str(path))).file == str(path)


@pytest.mark.parametrize("content", [b"", b"PAR1", b"PAR1" + bytes(50) + b"PAR1", b"no table at all"])
def test_parquet_that_cannot_be_read_is_named(tmp_path, content):
    pytest.importorskip("pyarrow")
    (tmp_path / "a.parquet").write_bytes(content)
    with pytest.raises(DataFileError, match=r"a\.parquet, line 1: not a Parquet file that can be read: \S") as caught:
        list(read_table(tmp_path / "a.parquet", ["tag"]))
    assert "\n" not in str(caught.value)
    with pytest.raises(FileNotFoundError):
        list(read_table(tmp_path / "b.parquet", ["tag"]))

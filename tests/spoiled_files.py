"""Damaged files that belong to the data, or hold them in other forms than text, given to the shell.

Label files, templates, lexicons, clusters, Parquet, sound, models, shards: each is damaged as :mod:`spoiled` damages
texts and :mod:`damage` damages models, and a command runs over it in this process. A command that ends with code 2 and
one line has refused the file. All others must write as many steps as went in.
"""

import contextlib
import io
import shutil
import tempfile
import wave
import weakref
from pathlib import Path

import numpy as np
import pandas

from damage import KINDS, damaged
from hscrf.cli import main
from hscrf.io import read_audio

WORDS = "the D B-NP\ncat N I-NP\nsees V B-VP\n\nthe D B-NP\nold J I-NP\ndog N I-NP\nbarks V B-VP\nhere R O\n\n"
STEPS = 8  # of WORDS
LABELS = """\
[levels]
phrase = ["NP", "VP", "O"]
tag = ["D", "N", "V", "J", "R"]

[children.phrase]
NP = ["D", "N", "J"]
VP = ["V"]

[successors.tag]
D = ["N", "J", "V"]

[max_duration.phrase]
NP = 5

[min_duration.phrase]
VP = 1

[colours.phrase]
NP = "#aa0000"
"""
TEMPLATE = """\
patterns = ["{word[0]}", "s={word[0]:suffix 2}"]

[word]
window = 1
prefixes = 2
shape = true
regex = {cap = "^[A-Z]"}

[lexicon.animal]
entries = ["cat", "old dog"]
column = "word"

[cluster.brown]
entries = {cat = "0110", dog = "0111"}
column = "word"
prefixes = [2]

[[join]]
cells = ["word[0]", "word[-1]"]
"""
MACROS = 'U0:%x[0,0]\nU1:%x[-1,0]/%x[0,0]\nU2:%m[0,0,"^."]\nB1:%x[0,0]\n# a comment\n'
BESIDE = '[word]\nwindow = 1\n\n[lexicon.a]\nfile = "lexicon.txt"\ncolumn = "word"\n'
CLUSTERS = '[word]\nwindow = 1\n\n[cluster.a]\nfile = "clusters.txt"\ncolumn = "word"\nprefixes = [1]\n'
LEXICON = "cat\nold dog\n# no comment\nthe cat sees\n"
PATHS = "0110\tcat\t3\n0111\tdog\t7\n10\tthe\t1\n"
COLUMNS = ["--columns", "word,tag,phrase", "--levels", "phrase,tag"]
RATE = 50.0  # steps a second of sound


class Files:
    """Sound files in a folder, and what the shell does with damaged ones in their place."""

    def __init__(self, texts):
        self.folder = Path(tempfile.mkdtemp())
        weakref.finalize(self, shutil.rmtree, self.folder, ignore_errors=True)
        self.texts = texts  # ways to damage a text
        self.write("words.txt", WORDS)
        self.write("beside.toml", BESIDE)
        self.write("beside-clusters.toml", CLUSTERS)
        self.write("labels.toml", LABELS)
        self.content = {
            "labels": LABELS.encode(),
            "template": TEMPLATE.encode(),
            "macros": MACROS.encode(),
            "lexicon": LEXICON.encode(),
            "clusters": PATHS.encode(),
            "parquet": self.parquet(),
            "audio": self.sound(),
        }
        self.run(*self.fit(), "-m", self.path("m.hscrf"), expect=0)
        self.content["model"] = (self.folder / "m.hscrf").read_bytes()
        table = self.path("table.csv")
        pandas.read_parquet(self.path("table.parquet")).to_csv(table, index=False)
        levels = ["--levels", "phrase,tag", "--sequence", "sequence", "--max-iter", "2", "--progress", "none"]
        self.run("fit", table, "-m", self.path("t.hscrf"), *levels, expect=0)
        (self.folder / "words2.txt").write_text(WORDS * 2, encoding="utf-8")
        self.pack(self.path("words2.txt"), expect=0)
        self.shards = sorted(path for path in (self.folder / "shards").rglob("*") if path.is_file())
        self.content["shard"] = b""

    def path(self, name):
        return str(self.folder / name)

    def write(self, name, content):
        (self.folder / name).write_bytes(content if isinstance(content, bytes) else content.encode())
        return self.path(name)

    def fit(self):
        return ["fit", self.path("words.txt"), *COLUMNS, "--max-iter", "2", "--progress", "none"]

    def pack(self, source, expect=None):
        folder = self.path("shards")
        return self.run("pack", source, "--shards", folder, *COLUMNS, expect=expect)

    def parquet(self):
        rows = [
            (q, w, k / 2, p, t) for q in "ab" for k, (w, p, t) in enumerate([("the", "NP", "D"), ("cat", "NP", "N")])
        ]
        table = pandas.DataFrame(rows, columns=["sequence", "word", "x", "phrase", "tag"])
        table.to_parquet(self.path("table.parquet"))
        return (self.folder / "table.parquet").read_bytes()

    def other_cells(self, random):
        """A Parquet file with a column, a row or some cells other than they should be."""
        table = pandas.read_parquet(self.path("table.parquet"))
        name = str(random.choice(table.columns))
        if random.random() < 0.3:
            table = table.drop(columns=name)
        elif random.random() < 0.3:
            table = table.iloc[: int(random.integers(len(table) + 1))]
        else:
            value = [None, "", "?", "new", 3, 0.5, float("nan"), float("inf"), True][int(random.integers(9))]
            cells = list(table[name])
            cells[int(random.integers(len(cells)))] = value
            table[name] = cells if random.random() < 0.5 and len(set(map(type, cells))) == 1 else [value] * len(cells)
        table.to_parquet(self.path("other.parquet"))
        return (self.folder / "other.parquet").read_bytes()

    def sound(self):
        target = io.BytesIO()
        with wave.open(target, "wb") as file:
            file.setparams((1, 2, 8000, 0, "NONE", ""))
            file.writeframes((np.sin(np.arange(4000)) * 9000).astype("<i2").tobytes())
        return target.getvalue()

    # -- one damaged file

    def outcome(self, name, number, random):
        if name == "shard":
            return self.of_shard(number, random)
        content = self.content[name]
        if name == "model":
            spoiled = damaged(content, list(KINDS)[number % len(KINDS)], random)
        elif name == "parquet" and number % 2:
            spoiled = self.other_cells(random)
        elif name in ("parquet", "audio"):
            spoiled = self.texts[number // 2 % 2](content, random)  # bytes, or cut
        else:
            spoiled = self.texts[number % len(self.texts)](content, random)
        return getattr(self, f"of_{name}")(spoiled)

    def run(self, *arguments, expect=None):
        """Run a command; the code, and what it wrote to the two streams."""
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            out.reconfigure = lambda **options: None  # as a file has it
            try:
                code = main(list(map(str, arguments)))
            except SystemExit as stop:
                code = stop.code
        if expect is not None:
            assert code == expect, err.getvalue()
        return code, out.getvalue(), err.getvalue()

    def judged(self, result, steps=STEPS):
        """Whether a command refused, or wrote all steps."""
        code, out, err = result
        if code == 2:
            lines = [line for line in err.splitlines() if line.startswith("hscrf: ")]
            return "refused" if len(lines) == 1 and len(lines[0]) > 12 else f"code 2, but it said {err!r}"
        if code != 0:
            return f"code {code}: {err}"
        came = sum(bool(line.strip()) for line in out.splitlines())
        return "read" if came == steps else f"{steps} steps went in, {came} came out"

    def learned(self, *options):
        """Fit with some options, and predict."""
        code, out, err = self.run(*self.fit(), "-m", self.path("new.hscrf"), *options)
        if code:
            return self.judged((code, out, err))
        return self.judged(self.run("predict", self.path("words.txt"), "-t", "-m", self.path("new.hscrf")))

    def of_labels(self, content):
        path = self.write("given.toml", content)
        first = self.learned("--labels", path)
        then = self.judged(
            self.run("predict", self.path("words.txt"), "-m", self.path("m.hscrf"), "--labels", path, "-t")
        )
        return then if then not in ("refused", "read") else first

    def of_template(self, content):
        return self.learned("--template", self.write("given.toml", content))

    def of_macros(self, content):
        return self.learned("--template", self.write("given.txt", content))

    def of_lexicon(self, content):
        self.write("lexicon.txt", content)
        return self.learned("--template", self.path("beside.toml"))

    def of_clusters(self, content):
        self.write("clusters.txt", content)
        return self.learned("--template", self.path("beside-clusters.toml"))

    def of_parquet(self, content):
        path = self.write("given.parquet", content)
        result = self.run("predict", path, "-m", self.path("t.hscrf"), "--to", "columns", "-t")
        try:
            steps = len(pandas.read_parquet(path))
        except Exception:
            steps = 0
        return self.judged(result, steps)

    def of_audio(self, content):
        found = read_audio(self.write("given.wav", content), RATE)
        size = len(content) - 44  # bytes of sound after the shortest header
        whole = len(found) * 8000 / RATE * 2
        if content[:44] == self.content["audio"][:44] and abs(whole - size) > 8000 / RATE * 2:
            return f"{size} bytes of sound went in, {whole:.0f} came out"
        return "read"

    def of_model(self, content):
        path = self.write("given.hscrf", content)
        return self.judged(self.run("predict", self.path("words.txt"), "-t", "-m", path))

    def of_shard(self, number, random):
        """Damage one file of a folder of shards; fitting from it refuses it, or packs it anew and says so."""
        path = self.shards[number % len(self.shards)]
        content = path.read_bytes()
        if not content:
            return "refused"
        path.write_bytes(self.texts[number % 2](content, random))
        try:
            code, out, err = self.run(
                "fit", self.path("words2.txt"), "--shards", self.path("shards"), *COLUMNS,
                "-m", self.path("new.hscrf"), "--max-iter", "1", "--progress", "none",
            )  # fmt: skip
            return self.judged((code, out, err), 0)
        finally:
            for other in (self.folder / "shards").rglob("*"):
                if other.is_file() and other not in self.shards:
                    other.unlink()
            path.write_bytes(content)


SIDES = ("labels", "template", "macros", "lexicon", "clusters", "parquet", "audio", "model", "shard")

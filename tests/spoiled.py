"""Data as they should not be: files of every format and observations in Python, damaged in many ways.

``outcome(format, number)`` damages a sound input, the same for the same number, and gives it to a model and to what
``fit`` does before it learns. It is "refused" if that ends in one sentence, "read" if as many steps come out as went
in; anything else is a description of the failure. The steps that go in are counted here, without the library.
"""

import contextlib
import csv
import io
import json
import signal
import warnings
from dataclasses import replace

import numpy as np
import pandas

import hscrf
from hscrf.cli.recipe import learn_labels
from hscrf.cli.writing import Output
from hscrf.io.described import describe_features
from hscrf.io.doubts import doubts
from hscrf.io.recipe import Recipe
from hscrf.observations.encoder import ObservationEncoder
from spoiled_files import SIDES, Files
from spoiled_imports import IMPORTS, SOUND, STREAMS, imported, streamed

SECONDS = 30
ROOMS = ["hall", "bath", "B-52", "#", "7"]
CELLS = [
    "",
    " ",
    "NaN",
    "NA",
    "?",
    "#",
    "0,5",
    "1.5",
    "-1e300",
    "inf",
    "x" * 50,
    "ä",
    "B-x",
    "O",
    '"',
    "a b",
    "\u2028",
    "1_0",
]
SIGNS = [",", ";", "\t", " ", "|", '"', "#", "\\", ":", "\r", "\x00", "\ufeff", "\u00e9", "-", "[", "{", "null"]
VALUES = [None, float("nan"), float("inf"), "", "text", True, 3, -1e300, [1], {}, b"x", pandas.NaT, pandas.NA, 1 + 2j]


# ------------------------------------------------------------------------------
# Sound inputs


def sequences(seed=0, n=4, length=6):
    """Rows (a, b, room), and labels of two levels."""
    random = np.random.default_rng(seed)
    found = []
    for _ in range(n):
        states = random.integers(0, 2, size=length)
        rows = [
            (round(float(s + random.normal()), 3), round(float(random.normal()), 3), str(random.choice(ROOMS)))
            for s in states
        ]
        found.append((rows, ["up" if s else "down" for s in states], ["NV"[s] for s in states]))
    return found


def table_text(separator=",", text=True):
    lines = [separator.join(["sequence", "a", "b", *(["room"] if text else []), "phrase", "tag"])]
    for n, (rows, phrases, tags) in enumerate(sequences()):
        for (a, b, room), phrase, tag in zip(rows, phrases, tags, strict=True):
            lines.append(separator.join([f"q{n}", str(a), str(b), *([room] if text else []), phrase, tag]))
    return "\n".join(lines) + "\n"


def columns_text(header=""):
    blocks = []
    for rows, phrases, tags in sequences():
        lines = [f"{room}\t{phrase}\t{tag}" for (_, _, room), phrase, tag in zip(rows, phrases, tags, strict=True)]
        blocks.append("\n".join(["# a comment in many words", *lines]) + "\n\n")
    return header + "".join(blocks)


def jsonl_text(token):
    lines = [
        json.dumps({"id": f"q{n}", "tokens": [token(*row) for row in rows], "labels": {"phrase": phrases, "tag": tags}})
        for n, (rows, phrases, tags) in enumerate(sequences())
    ]
    return "\n".join(lines) + "\n"


def crfsuite_text():
    blocks = [
        "".join(f"{tag}\troom={room}\ta:{a}\n" for (a, _, room), tag in zip(rows, tags, strict=True))
        for rows, _, tags in sequences()
    ]
    return "\n".join(blocks)


LEVELS = ("phrase", "tag")
TEXTS = {
    "columns": (columns_text(), Recipe("columns", LEVELS, comment="#")),
    "studio tsv": (
        columns_text("# columns:\troom\tphrase\ttag\n"),
        Recipe("columns", LEVELS, separator="\t", comment="#"),
    ),
    "csv": (table_text(), Recipe("table", LEVELS)),
    "numbers": (table_text(";", text=False), Recipe("table", LEVELS, separator=";")),
    "jsonl words": (jsonl_text(lambda a, b, room: room), Recipe("jsonl", LEVELS)),
    "jsonl rows": (jsonl_text(lambda a, b, room: [a, b, room]), Recipe("jsonl", LEVELS)),
    "jsonl dicts": (jsonl_text(lambda a, b, room: {"a": a, "b": None, "room": room}), Recipe("jsonl", LEVELS)),
    "crfsuite": (crfsuite_text(), Recipe("crfsuite", ("tag",))),
}
OBJECTS = ("arrays", "frames", "dicts", "strings", "rows")
FORMATS = (*TEXTS, *OBJECTS, *SIDES, *IMPORTS)


def count_steps(name, text):
    """The number of steps of a text; None if it cannot be counted here."""
    kind = TEXTS[name][1].format
    if kind == "jsonl":
        return sum(len(json.loads(line)["tokens"]) for line in split_lines(text) if line.strip())
    if kind == "table":
        return sum(map(bool, csv.reader(split_lines(text), delimiter=";" if name == "numbers" else ","))) - 1
    blank = " " if kind == "crfsuite" or name == "studio tsv" else " \t"
    lines = [line for line in split_lines(text) if line.strip(blank)]
    lines = lines[1:] if lines and lines[0].startswith("# columns:\t") else lines
    if kind == "crfsuite":
        return len(lines)
    regular = next((line for line in lines if not line.startswith("#")), None)
    if regular is None:
        return 0
    tabs = "\t" in regular.strip() or name == "studio tsv"
    width = len(fields(regular, tabs, name))
    return sum(
        not line.startswith("#") or (len(fields(line, tabs, name)) == width and (line[1:2] != " " or not tabs))
        for line in lines
    )


def fields(line, tabs, name):
    if tabs:
        return line.split("\t")
    return line.split(" ") if name == "studio tsv" else line.replace("\t", " ").split()


def split_lines(text):
    """Lines of a file, which only newlines end."""
    return [line.rstrip("\r") for line in text.removeprefix("\ufeff").split("\n")]


# ------------------------------------------------------------------------------
# Damage


def spoil_bytes(content, random):
    found = bytearray(content)
    for k in random.integers(len(found), size=random.choice([1, 2, 5])):
        found[k] = int(random.integers(256))
    return bytes(found)


def spoil_cut(content, random):
    return content[: random.integers(len(content))]


def spoil_signs(content, random):
    text = content.decode()
    for _ in range(random.choice([1, 2, 4])):
        k = int(random.integers(len(text)))
        text = text[:k] + str(random.choice(SIGNS)) + text[k + int(random.integers(2)) :]
    return text.encode()


def spoil_cells(content, random):
    """Cells exchanged for others, between whatever separates them."""
    text = content.decode()
    sign = next((sign for sign in "\t;," if sign in text), ",")
    lines = text.split("\n")
    for _ in range(random.choice([1, 3, 9])):
        k = int(random.integers(len(lines)))
        cells = lines[k].split(sign)
        cells[int(random.integers(len(cells)))] = str(random.choice(CELLS))
        lines[k] = sign.join(cells)
    return "\n".join(lines).encode()


def spoil_lines(content, random):
    """Lines dropped, doubled, swapped, blanked or commented."""
    lines = content.decode().split("\n")
    for _ in range(random.choice([1, 2, 5])):
        k = int(random.integers(len(lines)))
        lines[k : k + 1] = [[], [lines[k]] * 2, [""], ["# " + lines[k]], ["#" + lines[k]], [lines[0], lines[k]]][
            int(random.integers(6))
        ]
        lines = lines or [""]
    return "\n".join(lines).encode()


def spoil_coding(content, random):
    text = content.decode().replace("hall", "häll")
    return [
        text.encode("latin-1"),
        text.encode("utf-16"),
        text.encode("utf-8-sig"),
        text.replace("\n", "\r\n").encode(),
    ][int(random.integers(4))]


def spoil_separator(content, random):
    one, other = random.choice(["\t", ",", ";", " ", ".", ":", "="], size=2, replace=False)
    return content.decode().replace(str(one), str(other)).encode()


SPOIL = (spoil_bytes, spoil_cut, spoil_signs, spoil_cells, spoil_lines, spoil_coding, spoil_separator)


def spoil_object(X, random):
    """Observations in Python with other cells, rows or kinds."""
    X = list(X)
    n = int(random.integers(len(X)))
    value = VALUES[int(random.integers(len(VALUES)))]
    x = X[n]
    way = int(random.integers(4))
    if way == 0:
        X[n] = value
    elif way == 1:
        X[n] = x[: int(random.integers(len(x) + 1))]
    elif isinstance(x, pandas.DataFrame):
        x = x.astype(object)
        x.iat[int(random.integers(len(x))), int(random.integers(x.shape[1]))] = (
            value if not isinstance(value, dict) else 0
        )
        X[n] = x if way == 2 else x.iloc[:, : int(random.integers(x.shape[1] + 1))]
    elif isinstance(x, np.ndarray):
        x = x.astype(object)
        x[int(random.integers(len(x))), int(random.integers(x.shape[1]))] = value
        X[n] = x if way == 2 else x[:, : int(random.integers(x.shape[1] + 1))]
    else:
        x = [dict(step) if isinstance(step, dict) else list(step) for step in x]
        t = int(random.integers(len(x)))
        if way == 3:
            x[t] = value
        elif isinstance(x[t], dict):
            x[t][str(random.choice(["a", "room", "new"]))] = value
        else:
            x[t][int(random.integers(len(x[t])))] = value
        X[n] = x
    return X


# ------------------------------------------------------------------------------
# What happens


class Hangs(Exception):
    pass


@contextlib.contextmanager
def limited(seconds):
    def stop(*_):
        raise Hangs

    former = signal.signal(signal.SIGALRM, stop)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, former)


def observations(name):
    """Sound observations in Python, and labels."""
    made = sequences()
    Y = [{"phrase": phrases, "tag": tags} for _, phrases, tags in made]
    makers = {
        "arrays": lambda rows: np.array([row[:2] for row in rows]),
        "frames": lambda rows: pandas.DataFrame(rows, columns=["a", "b", "room"]),
        "dicts": lambda rows: [{"a": a, "b": None, "room": room} for a, _, room in rows],
        "strings": lambda rows: [[f"room={room}"] for _, _, room in rows],
        "rows": lambda rows: [list(row) for row in rows],
    }
    return [makers[name](rows) for rows, _, _ in made], Y


class Bench:
    """Models of sound inputs, made once."""

    def __init__(self):
        self.models = {}
        self.files = None

    def of(self, name):
        if name not in self.models:
            solver = hscrf.LBFGS(max_iter=5)
            if name in OBJECTS:
                X, Y = observations(name)
                self.models[name] = (hscrf.HSCRF(solver=solver).fit(X, Y), None)
            else:
                text, recipe = TEXTS[name]
                documents = list(recipe.documents(io.BytesIO(text.encode())))
                recipe = recipe.resolved(documents, None)
                topology, labels, _ = learn_labels(documents, recipe.scheme)
                X = [list(recipe.observe(d)) if recipe.template else recipe.observe(d) for d in documents]
                self.models[name] = (hscrf.HSCRF(topology, solver=solver).fit(X, labels), recipe)
        return self.models[name]

    def outcome(self, name, number):
        random = np.random.default_rng([number, FORMATS.index(name)])
        try:
            with limited(SECONDS), warnings.catch_warnings():
                warnings.simplefilter("error", RuntimeWarning)
                warnings.simplefilter("ignore", UserWarning)
                if name in OBJECTS:
                    return self.of_objects(name, random)
                if name in SIDES:
                    self.files = self.files or Files(SPOIL)
                    return self.files.outcome(name, number, random)
                spoil = SPOIL[number % len(SPOIL)]
                if name in SOUND:
                    return imported(name, spoil(SOUND[name][1], random))
                if name in STREAMS:
                    text = TEXTS[STREAMS[name]][0].encode()
                    return streamed(*self.of(STREAMS[name]), spoil(text, random))
                content = spoil(TEXTS[name][0].encode(), random)
                self.learned(name, content)
                return self.of_text(name, content)
        except ValueError as error:
            return "refused" if "\n" not in str(error) and len(str(error)) > 5 else f"{type(error).__name__}: {error}"
        except Hangs:
            return f"takes more than {SECONDS} seconds"
        except Exception as error:
            return f"{type(error).__name__}: {error}"

    def of_text(self, name, content):
        """Predict what a file holds, write it, and count the steps."""
        model, recipe = self.of(name)
        documents = list(recipe.documents(io.BytesIO(content), unlabelled=True))
        recipe = recipe.settled(documents, model.topology_)
        found = model.predict([recipe.observe(document) for document in documents])
        steps = count_steps(name, content.decode())
        output = Output(recipe, model.topology_)
        target = io.StringIO()
        shown = [
            replace(document, extra={**document.extra, "prediction": [str(k) for k in labels.column("tag")]})
            for document, labels in zip(documents, found, strict=True)
        ]
        output.write(target, iter(shown)) if recipe.format != "crfsuite" else None
        came = sum(map(len, found))
        return "read" if came == steps else f"{steps} steps went in, {came} came out"

    def learned(self, name, content):
        """The actions of ``fit`` before it learns, unless it refuses the file."""
        recipe = TEXTS[name][1]
        with contextlib.suppress(ValueError):
            documents = list(recipe.documents(io.BytesIO(content)))
            recipe = recipe.resolved(documents, None)
            learn_labels(documents, recipe.scheme)
            assert "\n" not in describe_features(documents, recipe)
            list(doubts(documents, recipe))
            ObservationEncoder().fit_pack([recipe.observe(document) for document in documents])

    def of_objects(self, name, random):
        X = spoil_object(observations(name)[0], random)
        with contextlib.suppress(ValueError):
            ObservationEncoder().fit_pack(X)
        found = self.of(name)[0].predict(X)
        lengths = [len(x) for x in X]
        return (
            "read" if list(map(len, found)) == lengths else f"{lengths} steps went in, {list(map(len, found))} came out"
        )

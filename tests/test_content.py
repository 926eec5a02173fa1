"""The content of a model's file is checked before a model is made: one broken rule at a time, one message each."""

import json

import numpy as np
import pytest

pytest.importorskip("resource")  # which the module of small models needs

import hscrf
from hscrf.cli import main
from hscrf.cli.recipe import load_model
from hscrf.errors import FileFormatError
from hscrf.features import bounds
from hscrf.features.blocks import DurationBlock
from hscrf.files.container import read_container, write_container
from hscrf.files.content import Field
from hscrf.topology import Topology
from strangers import MODELS, STRINGS, length, resumed, write_files


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("sound")
    write_files(place)
    return place


def put(place, value):
    """A change of the header: put a value at a place such as blocks.0.longest."""

    def change(header, arrays):
        *path, last = [int(step) if step.isdigit() else step for step in place.split(".")]
        for step in path:
            header = header[step]
        header[last] = value

    return change


def array(name, make):
    """A change of an array."""

    def change(header, arrays):
        arrays[name] = make(arrays[name])

    return change


def at(k, value):
    """An array with one other number."""

    def make(numbers):
        numbers.reshape(-1)[k] = value
        return numbers

    return make


def both(*changes):
    def change(header, arrays):
        for one in changes:
            one(header, arrays)

    return change


MANY = {f"level{d}": ["a", "b"] for d in range(40)}
WRONG = {
    # types of the header
    "a type": ("strings", put("parameters", []), "parameters is a list of 0, expected an object"),
    "an unknown parameter": ("strings", put("parameters.c3", 1), "parameters has a field 'c3'"),
    "a number": ("strings", put("parameters.c1", "1"), "parameters.c1 is '1', expected a number"),
    "not a number": ("strings", put("parameters.c1", float("nan")), "parameters.c1 is nan, expected a number"),
    "a large integer": ("strings", put("parameters.min_count", 2**64), "parameters.min_count is .*, expected an int"),
    "threads": ("strings", put("parameters.n_jobs", 0), "parameters.n_jobs is 0, expected a number of threads"),
    "a scheme": ("strings", put("parameters.scheme", "iob"), "parameters.scheme is 'iob', expected 'plain' or"),
    "schemes": ("strings", put("parameters.scheme.phrase", "x"), "parameters.scheme.phrase is 'x', expected 'plain'"),
    "a choice": ("strings", put("parameters.pairs", "some"), "parameters.pairs is 'some', expected 'seen' or 'all'"),
    "a seed": ("strings", put("parameters.random_state", "1"), "parameters.random_state is '1', expected an integer"),
    "a solver": ("strings", put("parameters.solver", "newton"), "parameters.solver is 'newton', expected 'lbfgs'"),
    "a solver's type": ("strings", put("parameters.solver.type", "Token"), "solver.type is 'Token', expected 'LBFGS'"),
    "a solver's option": ("strings", put("parameters.solver.tol", None), "parameters.solver.tol is null, expected a n"),
    "a solver's rule": ("strings", put("parameters.solver.memory", 0), "parameters.solver: .* memory is 0"),
    "a feature": ("strings", put("parameters.features.0.type", "LBFGS"), r"features\[0\].type is 'LBFGS', expected"),
    "a feature's field": ("strings", put("parameters.features.0.size", 1), r"features\[0\] has a field 'size'"),
    "a function": ("dense", put("blocks.7.function.function", "f"), r"uses the segment function 'f': give it as load"),
    "a topology": (
        "strings",
        put("topology.levels", {"phrase": [], "tag": ["a"]}),
        "topology: level 'phrase' is empty",
    ),
    "a topology's type": (
        "strings",
        put("topology.children", {"phrase": 1}),
        "topology.children.phrase is 1, expect",
    ),
    "a limit": ("dicts", put("topology.max_duration.phrase.NP", -1), "topology: max_duration of phrase 'NP' is -1"),
    "training": ("strings", put("training.history", [1]), r"training.history\[0\] is 1, expected an object"),
    "a loss": ("strings", put("training.history.0.loss", "1"), r"training.history\[0\].loss is '1', expected a number"),
    # names and observations
    "a kind": ("strings", put("encoder.kind", "symbols"), "encoder.kind is 'symbols', expected 'dicts'"),
    "the same name": ("strings", put("encoder.names.1", "w=the"), "encoder.names has the same name twice"),
    "a name": ("strings", put("encoder.names.1", 1), r"encoder.names\[1\] is 1, expected a string"),
    "a column": ("dense", put("encoder.columns.0", 1), r"encoder.columns\[0\] is 1, expected a string"),
    "columns": ("dense", put("encoder.columns", ["a"]), "array 'mean' has 2 numbers for 1 columns"),
    "a mean": ("dense", array("mean", at(0, np.nan)), "array 'mean' has a number beyond"),
    "a scale": ("dense", array("scale", at(0, 0.0)), "array 'scale' has a number that is not positive"),
    "names of columns": ("strings", put("encoder.kind", "matrix"), "encoder.names has names that are not numbers"),
    # arrays
    "a dtype": ("strings", array("coef", np.float32), "array 'coef' has dtype float32, expected float64"),
    "axes": ("strings", array("coef", lambda w: w[None]), "array 'coef' has 2 axes, expected 1"),
    "a weight": ("strings", array("coef", at(1, -np.inf)), "array 'coef' has the weight -inf at 1, expected a finite"),
    "a huge weight": ("strings", array("coef", at(1, 1e300)), r"array 'coef' has the weight 1e\+300 at 1"),
    "few weights": ("strings", array("coef", lambda w: w[1:]), r"\d+ weights, which do not fit its features"),
    "first offset": ("strings", array("block0.pair_at", at(0, 1)), r"blocks\[0\]: the first number of pair_at is 1"),
    "an offset": ("strings", array("block0.pair_at", at(2, 0)), r"blocks\[0\]: pair_at falls"),
    "last offset": ("strings", array("block0.pair_at", at(-1, 99)), r"blocks\[0\]: the last number of pair_at is 99"),
    "offsets": ("strings", array("block0.pair_at", lambda a: a[1:]), r"blocks\[0\]: the size of pair_at is \d, exp"),
    "rank": ("strings", array("block0.pair_at", lambda a: a[None]), r"the number of axes of pair_at is 2, expected 1"),
    "a cell": ("strings", array("block0.pair_cell", at(0, 2)), r"blocks\[0\]: pair_cell has cells from 0 to 2, but"),
    "cells": ("strings", array("block3.cells", at(0, -1)), r"blocks\[3\]: cells has cells from -1 to"),
    "the same cell": ("strings", array("block3.cells", at(0, 1)), r"blocks\[3\]: cells has the same cell twice"),
    # blocks
    "a block": ("strings", put("blocks.0.type", "Block"), r"blocks\[0\].type is 'Block', expected 'ConstantBlock'"),
    "a part": ("strings", put("blocks.0.key", ["trans", 1]), r"blocks\[0\]: shape is \(2,\), expected \(2, 3, 3\)"),
    "a level": ("strings", put("blocks.0.key", ["token", 9]), r"blocks\[0\]: key is of level 9, but 'token' has"),
    "a bottom": ("strings", put("blocks.3.key", ["init", 2]), r"blocks\[3\]: key is of level 2, but 'init' has"),
    "other observations": (
        "dense",
        put("blocks.1.type", "PairBlock"),
        r"blocks\[1\] has a field 'cells', which a PairBlock",
    ),
    "width": ("dense", put("blocks.1.features", 7), r"blocks\[1\]: features is 7, expected 2"),
    "averaged": ("dense", put("blocks.0.longest", 7), r"blocks\[0\]: longest is 7, expected 2"),
    "durations": ("dense", put("blocks.4.longest", 10**12), r"blocks\[4\]: longest is 10{12}, expected 2"),
    "states": ("dense", put("blocks.4.states", 3), r"blocks\[4\]: states is 3, expected 2"),
    "a kind of duration": ("dense", put("blocks.4.kind", "all"), r"blocks\[4\]: kind is 'all', expected 'gamma'"),
    "segments": ("dense", put("blocks.7.longest", 3), r"blocks\[7\]: longest is 3, expected 2"),
    "a limit beyond memory": (
        "semi",
        both(put("topology.max_duration.label", 10**9), put("blocks.6.longest", 10**9)),
        rf"blocks\[6\]: longest is 1000000000, expected at most {bounds.LONGEST}",
    ),
    "no limit": ("semi", put("topology.max_duration.label", None), r"blocks\[6\]: longest is 3, but .* have no limit"),
    "many states": (
        "strings",
        put("topology.levels.tag", [str(k) for k in range(bounds.STATES + 1)]),
        "topology: level 'tag' has 16385 states, expected at most 16384",
    ),
    "many stacks": ("strings", put("topology", {"levels": MANY}), "topology: level .* stacks of states, expected"),
    # families
    "no chain": ("chain", put("topology.levels.more", ["a"]), "topology is Topology.*, expected one level below"),
    "a factor": ("dynamic", array("block0.index", at(0, 2)), r"blocks\[0\]: index has cells from 0 to 2, but"),
    "a factor's key": ("dynamic", put("blocks.0.factor.key", ["token", 0]), r"blocks\[0\]: factor.key is "),
    "a factor's block": (
        "dynamic",
        put("blocks.0.factor.shape", [9]),
        r"blocks\[0\]: factor: shape is \(9,\), expected",
    ),
    "combinations": ("dynamic", array("combinations", at(0, 2)), "'combinations' has states that the levels do not"),
    "a combination": ("dynamic", array("combinations", lambda c: c[:1]), "'combinations' has shape"),
    "twice": (
        "dynamic",
        array("combinations", lambda c: c[[0, 0, 2]]),
        "has the same combination twice",
    ),
    "no emission": ("hhmm symbols", put("blocks.0.key", ["init", 0]), r"blocks\[0\]: factor.key is \('start', 0\)"),
    "tables": ("hhmm symbols", lambda header, arrays: header["blocks"].reverse(), "blocks are .*, expected"),
    "probabilities": ("hhmm symbols", array("coef", at(0, np.inf)), "the weight inf at 0"),
    "a density": ("hhmm gaussian", array("coef", at(-1, -np.inf)), "the weight -inf at"),
    "a persisting HHMM": (
        "hhmm symbols",
        put("topology.max_duration", {"tag": 3}),
        "level 'tag' has limited",
    ),
}


def changed(path, target, change):
    header, arrays = read_container(path)
    change(header, arrays)
    write_container(target, header, arrays)
    return target


@pytest.mark.parametrize("name", WRONG)
def test_every_rule_is_a_sentence_that_names_the_file_and_the_field(folder, tmp_path, name):
    family, change, message = WRONG[name]
    path = changed(folder / family, tmp_path / "file", change)
    with pytest.raises(FileFormatError, match=message) as caught:
        hscrf.load(path, functions={"length": length})
    assert str(caught.value).startswith(f"{path} ")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("family", MODELS)
def test_sound_files_pass(folder, tmp_path, family):
    model = hscrf.load(folder / family, functions={"length": length})
    model.save(tmp_path / "again")
    again = hscrf.load(tmp_path / "again", functions={"length": length})
    assert again.predict(MODELS[family][1]) == model.predict(MODELS[family][1])


def test_a_distant_limit_is_legal_and_takes_no_room(folder, tmp_path):
    path = changed(folder / "strings", tmp_path / "file", put("topology.max_duration", {"phrase": 10**15}))
    far, near = (hscrf.load(file).predict(STRINGS) for file in (path, folder / "strings"))
    assert [labels.tree() for labels in far] == [labels.tree() for labels in near]


def test_what_a_user_may_give_passes(folder, tmp_path):
    for place, value in (("parameters.verbose", True), ("parameters.c2", 1), ("parameters.warm_start", 1)):
        hscrf.load(changed(folder / "strings", tmp_path / "file", put(place, value)))


# ------------------------------------------------------------------------------
# Checkpoints and recipes


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (array("weights", lambda w: w[1:]), r"array 'weights' has \d+ numbers, but the model has"),
        (array("weights", lambda w: w[None]), "array 'weights' has 2 axes, expected 1"),
        (array("weights", np.float32), "array 'weights' has dtype float32"),
        (array("weights", at(0, np.nan)), "array 'weights' has the weight nan at 0"),
        (lambda header, arrays: arrays.clear(), "is not a complete checkpoint: it has no array 'weights'"),
        (put("history", {}), "history is an object, expected a list"),
        (put("history", [3]), r"history\[0\] is 3, expected an object"),
    ],
)
def test_checkpoints_are_checked_too(folder, tmp_path, change, message):
    path = changed(folder / "checkpoint", tmp_path / "run", change)
    with pytest.raises(FileFormatError, match=message) as caught:
        resumed(path)
    assert str(caught.value).startswith(f"{path} ")


@pytest.mark.parametrize(
    ("place", "value", "message"),
    [
        ("recipe", 3, "recipe is 3, expected an object"),
        ("recipe.format", "xml", "recipe: format is 'xml'"),
        ("recipe.levels", ["tag"], "recipe: levels are"),
        ("recipe.levels", "tag", "recipe.levels is 'tag', expected a list"),
        ("recipe.scheme", {"tag": "x"}, "recipe: scheme of level 'tag' is 'x'"),
        ("recipe.separator", "", "recipe: separator, joint or comment is empty"),
        ("recipe.features", ["a", "a"], "recipe: columns are .*, expected distinct"),
        ("recipe.names", ["\ud800"], "recipe: 'utf-8' codec can't encode"),
        ("recipe.more", 1, "recipe has a field 'more'"),
        ("recipe.template", [], "recipe.template is a list of 0, expected an object"),
        (
            "recipe.template.features.0.1",
            ["x", 0, 5, ""],
            r"recipe: template has TemplateCell\(.*column=5.*shows nothing",
        ),
        ("recipe.template.features.0.1", ["x", 10**9, 0, ""], "recipe: template has TemplateCell.*shows nothing"),
        ("recipe.template.features.0.1", ["y", 0, 0, ""], "recipe: template has TemplateCell.*shows nothing"),
        ("recipe.template.features.0.1", ["m", 0, 0, "("], "recipe: template has TemplateCell.*missing"),
        ("recipe.template.features.0.1", ["prefix", 0, 0, "x"], "recipe: template has TemplateCell.*invalid literal"),
        ("recipe.template.features.0.1", [0], r"recipe.template.features\[0\]\[1\] is a list of 1, expected"),
    ],
)
def test_recipes_are_checked_too(folder, tmp_path, capsys, place, value, message):
    path = changed(folder / "shell", tmp_path / "model", put(place, value))
    with pytest.raises(FileFormatError, match=message) as caught:
        load_model(str(path))
    assert str(caught.value).startswith(f"{path} is not a valid model: recipe")
    assert main(["show", str(path)]) == 2
    assert capsys.readouterr().err == f"hscrf: {' '.join(str(caught.value).split())}\n"


# ------------------------------------------------------------------------------
# Pieces


@pytest.mark.parametrize("kind", ["gamma", "bins", "each"])
def test_the_size_of_a_duration_block_needs_no_table(kind):
    for longest in range(1, 70):
        block = DurationBlock(("duration", 1), kind, longest, 3)
        assert block.size == block.basis.shape[1] * 3
    far = DurationBlock(("duration", 1), kind, 10**12, 3)
    assert far.size > 0
    with pytest.raises(ValueError, match=r"longest is 10{12}, expected at most"):
        far.check(Topology({"a": ["x", "y", "z"]}, max_duration={"a": 10**12}), None, None)


def test_a_value_in_a_message_is_short():
    deep = json.loads("[" * 300 + "]" * 300)
    for value in (deep, "x" * 10**6, 10**4000, {"a": deep}):
        with pytest.raises(FileFormatError) as caught:
            Field(value, "field").read(bool)
        assert len(str(caught.value)) < 120

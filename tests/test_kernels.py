"""How kernels are compiled: the cache on disk, the lanes and their twins in Python, and kernels without compilation."""

import gc
import json
import shutil
from types import SimpleNamespace
from typing import NamedTuple

import numpy as np
import pytest
from numba import errors, njit, typeof, types
from numba.core.registry import cpu_target

import hscrf
from drawing import MIXES, draw_evidence, draw_model, draw_topology
from hscrf.engine import Batch, bundling, passes
from hscrf.engine.kernels import compile as compilation
from hscrf.engine.kernels import compiler, plain, vectors
from hscrf.engine.kernels.grids import seen_as_grids
from hscrf.engine.kernels.runs import sweep
from processes import CACHE_USE, SOURCE, TESTS, run

# ------------------------------------------------------------------------------------ kernels without compilation

SHALLOW = [kinds for kinds in MIXES if len(kinds) <= 2]
SCALES = (1.0, 300.0)  # the second is too much for scaled numbers: logarithms take over


def answers(p, evidence):
    """What the verbs find, as one flat list of numbers."""
    found = hscrf.marginals(p, evidence)
    labels = [hscrf.decode(p, evidence), *hscrf.k_best(p, 3, evidence), *hscrf.sample(p, 2, 0, evidence)]
    numbers = [[hscrf.log_partition(p, evidence), found.log_partition]]
    numbers += [values for _, _, values in found.counts.parts()]
    numbers += [array for y in labels for array in (y.states, y.ends, [hscrf.score(p, y)])]
    return np.concatenate([np.ravel(array) for array in numbers]).tolist()


def all_answers():
    """Those for every kind of bottom and layer, free and under evidence; groups of five fill one lane and a bit."""
    found = []
    for kinds in SHALLOW:
        for scale in SCALES:
            rng = np.random.default_rng(1)
            p = draw_model(rng, kinds, 5, size=5, longest=3, scale=scale)
            found += [answers(p, None), answers(p, draw_evidence(rng, p))]
    return [*found, answers_of_a_batch(("unit",)), answers_of_a_batch(("markov", "markov"))]


def answers_of_a_batch(kinds):
    """Counts and the best of some sequences that walk side by side."""
    rng = np.random.default_rng(2)
    topology = draw_topology(rng, kinds, size=5)
    values, offsets = {}, np.cumsum([0, 1, 2, *[4] * 12, 5, 3])
    sizes = topology.n_states
    for d in range(1, topology.depth):
        values["token", d] = rng.standard_normal((offsets[-1], sizes[d]))
        values["trans", d - 1] = rng.standard_normal((1, sizes[d - 1], sizes[d], sizes[d]))
    batch = Batch(topology, offsets)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bundling, "WORTH", 0)
        assert batch.plan(values).layers[0].bundling is not None
    found, (states, ends, score) = batch.expectations(values), batch.best(values)
    numbers = [found.log_z, *found.counts.values(), *found.state, *found.ending, states, ends, score]
    return np.concatenate([np.ravel(array) for array in numbers]).tolist()


def test_kernels_run_without_compilation():
    """NUMBA_DISABLE_JIT=1: the same numbers, step by step in Python, and no warning on the way."""
    code = """
import gc
import json
import test_kernels
print(type(test_kernels.sweep).__name__, json.dumps(test_kernels.all_answers(), separators=(",", ":")))
"""
    kind, text = run(code, SOURCE, TESTS, NUMBA_DISABLE_JIT="1")
    assert kind == "function"
    assert type(sweep).__name__ != "function"
    interpreted, compiled = json.loads(text), all_answers()
    assert len(interpreted) == len(compiled) == 2 * len(SCALES) * len(SHALLOW) + 2
    for one, other in zip(interpreted, compiled, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-10, atol=1e-12)


# ------------------------------------------------------------------------------------------------------ the lanes


@njit
def load_compiled(array, index):
    return vectors.lane_sum(vectors.load(array, index))


def use_every_lane(form):
    """A function that applies all of ``form`` to the four numbers from index 0, 1, 2 and 3 on; fills nine rows."""
    load, store, spread, add, multiply = form.load, form.store, form.spread, form.add, form.multiply
    multiply_add, higher, lower_above = form.multiply_add, form.higher, form.lower_above
    lanes, lane_sum, lane_sums, prefetch = form.lanes, form.lane_sum, form.lane_sums, form.prefetch
    lane_max, lane_min, larger, smaller, place = form.lane_max, form.lane_min, form.larger, form.smaller, form.place
    at = np.uint64

    def apply(values, out):
        a, b, c, d = load(values, at(0)), load(values, at(1)), load(values, at(2)), load(values, at(3))
        prefetch(values, at(4))
        store(add(a, b), out, at(0))
        store(multiply(a, spread(2.5)), out, at(4))
        store(multiply_add(c, spread(0.5), d), out, at(8))
        store(higher(c, d), out, at(12))
        store(lower_above(spread(5.0), d, spread(-np.inf)), out, at(16))
        store(lane_sums(a, b, c, spread(1.0)), out, at(20))
        first, second, third, fourth = lanes(b)
        store(multiply(spread(lane_max(b)), spread(lane_min(a))), out, place(out, 7, 0))
        out[7, 1] = larger(values[0, 0], values[0, 1]) + 10.0 * smaller(values[0, 2], values[0, 3])
        out[7, 2] = larger(3, smaller(7, out.shape[0]))
        one, two, three, four = form.turn(a, b, c, d)
        store(add(one, multiply(two, spread(10.0))), out, at(32))
        out[8, 3] += lane_sum(multiply(three, four))
        store(spread(lane_sum(a) + 10.0 * first + 100.0 * second + 1000.0 * third + 1e4 * fourth), out, at(24))

    return apply


def test_plain_lanes_are_the_vector_lanes():
    values = np.array([[1.5, -2.0, 0.25, 3.0], [8.0, -np.inf, -1.0, 4.0]])
    compiled, interpreted = np.zeros((9, 4)), np.zeros((9, 4))
    njit(use_every_lane(vectors))(values, compiled)
    use_every_lane(plain)(values, interpreted)
    np.testing.assert_array_equal(interpreted, compiled)
    assert len(np.unique(compiled)) > 12


@pytest.mark.parametrize(("load", "error"), [(plain.load, ValueError), (load_compiled, errors.TypingError)])
def test_lanes_refuse_views(load, error):
    with pytest.raises(error, match="does not lie in memory row by row"):
        load(np.zeros((4, 8))[:, ::2], np.uint64(0))


@pytest.mark.parametrize("index", [-1, 5])
def test_plain_lanes_stay_inside_the_array(index):
    with pytest.raises(IndexError, match=f"four numbers from {index} on are not in an array of 8"):
        plain.load(np.zeros((2, 4)), index)


# ------------------------------------------------------------------------------------------------------ the grids


@seen_as_grids
class Given(NamedTuple):
    line: np.ndarray
    table: np.ndarray
    block: np.ndarray
    flags: np.ndarray
    unit: bool


def use_grids(given, found):
    """Read from and write to grids of every number of dimensions, and of every kind of numbers."""
    for i in range(given.block.shape[0]):
        for j in range(given.block.shape[1]):
            for k in range(given.block.shape[2]):
                given.block[i, j, k] += 100 * i + 10 * j + k
    for i in range(given.table.shape[0]):
        given.flags[i] = given.table[i, given.table.shape[1] - 1] > 4
        given.line[i] = given.table[i, 0] if given.flags[i] and given.unit else -0.5
    found[0] = given.block.size + given.table.size + given.line.size


def make_given():
    numbers = np.random.default_rng(0).integers(10, size=12)
    return Given(np.zeros(4), numbers.reshape(4, 3), np.ones((2, 3, 2)), np.zeros(4, dtype=bool), True)


def test_grids_are_numpy_arrays():
    compiled, interpreted = make_given(), make_given()
    found = np.zeros((2, 1))
    compilation.kernel(use_grids)(compiled, found[0])
    use_grids(interpreted, found[1])
    assert found.ravel().tolist() == [28, 28]
    for one, other in zip(interpreted, compiled, strict=True):
        np.testing.assert_array_equal(one, other)
    assert 0 < compiled.flags.sum() < 4


def test_grids_refuse_views():
    with pytest.raises(ValueError, match=r"Given.table has strides \(48, 16\): it does not lie row by row"):
        typeof(make_given()._replace(table=np.zeros((4, 6))[:, ::2]))


# ----------------------------------------------------------------------------------------------- what is compiled


@pytest.mark.parametrize(("name", "worth"), [("sweep", 2**60), ("sweep_bundles", 0)])
def test_learning_with_durations_needs_one_kernel_for_log_masses_and_counts(monkeypatch, name, worth):
    """Inside and outside share it: what goes backward is needed as soon as any count is."""
    topology = hscrf.Topology({"u": ["a", "b"], "l": ["x", "y"]}, max_duration={"u": 9})
    kernel, kinds = getattr(passes, name), []

    def watched(*given):
        kinds.append(tuple(map(typeof, given)))
        kernel(*given)

    monkeypatch.setattr(bundling, "WORTH", worth)
    monkeypatch.setattr(passes, name, watched)
    p = hscrf.Potentials(topology, 40)
    hscrf.log_partition(p)
    hscrf.marginals(p)
    without_table = [kind for kind in kinds if kind[4] == types.none]
    assert len(without_table) == 3  # inside, then inside and outside
    assert len(set(without_table)) == 1


def read_flag(given):
    """Only without the flag there is something that no kernel can read."""
    if given.unit:
        return given.line[0]
    return given.nothing


def test_a_kernel_leaves_out_what_its_flags_exclude():
    compiled, given = compilation.kernel(read_flag), make_given()
    assert compiled(given) == 0.0
    with pytest.raises(errors.TypingError, match="nothing"):
        compiled(given._replace(unit=None))


def test_flags_are_told_apart():
    compiled, given = compilation.kernel(use_flag), make_given()
    assert [compiled(given._replace(unit=unit)) for unit in (True, None, True)] == [1.0, 0.0, 1.0]
    assert [use_flag(given._replace(unit=unit)) for unit in (True, None)] == [1.0, 0.0]


def use_flag(given):
    return 1.0 if given.unit else given.line[0]


def test_compiling_leaves_numba_as_it_was():
    typing, target = cpu_target.typing_context, cpu_target.target_context
    compilation.kernel(use_grids)(make_given(), np.zeros(1))
    assert "resolve_function_type" not in vars(typing)
    assert "get_abi_sizeof" not in vars(type(target))


# ---------------------------------------------------------------------------------------------- the cache on disk

SMALL = """
from hscrf.engine.kernels.compile import kernel
from hscrf.engine.kernels.lanes import larger

@kernel
def highest(a, b):
    return larger(a, b)
"""


def test_a_change_in_a_helper_is_compiled(tmp_path):
    """The kernel that calls the helper lies in another file, which does not change."""
    shutil.copytree(SOURCE / "hscrf", tmp_path / "hscrf", ignore=shutil.ignore_patterns("__pycache__"))
    kernels = tmp_path / "hscrf" / "engine" / "kernels"
    (kernels / "small.py").write_text(SMALL, encoding="utf-8")
    code = "from hscrf.engine.kernels.small import highest; print(highest(1.0, 3.0))\n"

    def result():
        environment = {"NUMBA_CACHE_DIR": str(tmp_path / "cache"), "PYTHONDONTWRITEBYTECODE": "1"}
        value, misses, hits, *_ = run(code + CACHE_USE, tmp_path, **environment)
        return float(value), int(misses), int(hits)

    assert result() == (3.0, 1, 0)
    helper = kernels / "vectors.py"
    text = helper.read_text(encoding="utf-8")
    old, new = 'return _picked(">", a, b)', 'return _picked("<", a, b)'  # of two, the larger becomes the smaller
    assert text.count(old) == 1
    helper.write_text(text.replace(old, new), encoding="utf-8")
    assert result() == (1.0, 1, 0)
    assert result() == (1.0, 0, 1)


def double(x):
    return 2 * x


def cache_of(compiled):
    return type(compiled._cache).__name__


def test_kernels_are_cached():
    assert cache_of(compilation.kernel(double)) == "FunctionCache"


def test_kernels_are_not_cached_where_numba_has_no_place_for_the_stamp(monkeypatch):
    monkeypatch.setattr(compilation, "stamped", lambda compiled: False)
    compiled = compilation.kernel(double)
    assert cache_of(compiled) == "NullCache"
    assert compiled(3) == 6


@pytest.mark.parametrize("compiled", [object(), SimpleNamespace(_cache=SimpleNamespace(_cache_file=object()))])
def test_a_missing_place_for_the_stamp_is_seen(compiled):
    assert not compilation.stamped(compiled)


def test_kernels_are_not_cached_where_there_is_no_folder_for_a_cache():
    """Numba finds none for a function without a file."""
    names = {}
    exec(compile("def triple(x):\n    return 3 * x", "<no file>", "exec"), names)
    compiled = compilation.kernel(names["triple"])
    assert cache_of(compiled) == "NullCache"
    assert compiled(3) == 9


# ------------------------------------------------------------------------------------------------- the compiler


def halve(x):
    return x / 2


def spoil(x):
    return x.no_such_thing


def of_kernel(function):
    """A kernel that calls a part, neither of them compiled yet."""
    inner = compilation.part(function)

    def outer(x):
        return inner(x) + 1

    return compilation.jit(**compilation.KERNELS, **compilation.COMMON)(outer), inner


def test_parts_become_machine_code_only_within_kernels():
    outer, inner = of_kernel(halve)
    assert outer(3.0) == 2.5
    (part,), (whole,) = inner.overloads.values(), outer.overloads.values()
    assert part.library.get_pointer_to_function(part.fndesc.llvm_func_name) == 0
    assert whole.library.get_pointer_to_function(whole.fndesc.llvm_func_name) != 0


def test_parts_are_compiled_once_for_all_numbers_in_their_calls():
    inner = compilation.part(lambda x, k: x + k)
    outer = compilation.jit(**compilation.KERNELS, **compilation.COMMON)(lambda x: inner(x, 1) * inner(x, 2))
    assert outer(3.0) == 20.0
    assert len(inner.overloads) == 1


def test_numba_is_left_as_it_was():
    changes = compiler.OF_TYPES + compiler.OF_ANALYSIS
    before = [getattr(owner, name) for owner, name, _ in changes]
    of_kernel(halve)[0](3.0)
    with pytest.raises(errors.TypingError):
        of_kernel(spoil)[0](3.0)
    assert [getattr(owner, name) for owner, name, _ in changes] == before


@pytest.mark.parametrize("enabled", [True, False])
def test_the_garbage_collector_is_left_as_it_was(enabled):
    before = gc.isenabled()
    try:
        (gc.enable if enabled else gc.disable)()
        of_kernel(halve)[0](3.0)
        assert gc.isenabled() == enabled
        with pytest.raises(errors.TypingError):
            of_kernel(spoil)[0](3.0)
        assert gc.isenabled() == enabled
    finally:
        (gc.enable if before else gc.disable)()


def test_a_release_of_numba_that_is_not_known_compiles_in_its_own_way(tmp_path):
    code = (
        "import numba; numba.__version__ = '9.9.0'\n"
        "import numpy as np, hscrf\n"
        "from hscrf.engine.kernels import compile\n"
        "p = hscrf.Potentials(hscrf.Topology({'a': ['x', 'y']}), 3, token={'a': np.zeros((3, 2))})\n"
        "print('pipeline_class' in compile.PARTS, round(np.exp(hscrf.log_partition(p)), 6))\n"
    )
    assert run(code, NUMBA_CACHE_DIR=str(tmp_path)) == ["False", "8.0"]

"""The compiled core: which instruction set is in use, what happens without it, and its small kernels against NumPy."""

import os
import subprocess
import sys

import numpy as np
import pytest

from processes import SOURCE, run

WITHOUT = "import sys; sys.modules['hscrf._core'] = None\n"  # as if it had not been built


def test_the_core_refuses_arrays_that_do_not_fit(core):
    given, numbers = np.zeros(3, dtype=np.uint64), np.zeros(8, dtype=np.int32)
    with pytest.raises(ValueError, match="power of two"):
        core.store_names(given, np.zeros(7, dtype=np.uint64), numbers)
    with pytest.raises(TypeError):
        core.store_names(given, np.zeros(16, dtype=np.uint64)[::2], numbers)
    with pytest.raises(TypeError):
        core.store_names(given, np.zeros(8), numbers)


def test_an_upper_limit_of_the_instruction_set(core):
    found = run("from hscrf.native import core; print(core.instruction_set)", HSCRF_ISA="baseline")
    assert found == ["baseline"]
    found = run("from hscrf.native import core; print(core.instruction_set)", HSCRF_ISA="avx512")
    assert found == [core.instruction_set] or "HSCRF_ISA" in os.environ


RESULTS = """
import numpy as np
import hscrf
X, Y = hscrf.datasets.make_nested(6, sizes=(2, 3), length=(12, 30), random_state=0)
lasting, more = hscrf.datasets.make_nested(4, sizes=(2, 3), length=20, durations=(6, 3), random_state=1)
few = hscrf.LBFGS(max_iter=4)
for x, y in ((X, Y), (lasting, more)):
    model = hscrf.HSCRF(solver=few).fit(x, y)
    marginals = model.predict_marginals(x[:2])
    numbers = [model.loss_, *model.coef_, *model.log_likelihood(x, y), *model.entropy(x)]
    numbers += [value for one in marginals for level in ("level1", "level2") for value in np.ravel(one.state[level])]
    print(*(repr(float(value)) for value in numbers))
    print(*(state for one in model.predict(x) for state in one.column("level2")))
"""


def test_instruction_sets_give_the_same_results(core):
    """Training, log likelihood, marginals and labels, with the lowest instruction set and with that of this machine."""
    low, high = (run(RESULTS, HSCRF_ISA=limit) for limit in ("baseline", "avx512"))
    assert len(low) == len(high) > 500
    for one, other in zip(low, high, strict=True):
        if one[0].isalpha():
            assert one == other
        else:
            np.testing.assert_allclose(float(one), float(other), rtol=1e-10, atol=1e-10)


def test_a_wrong_instruction_set_is_named():
    environment = {**os.environ, "PYTHONPATH": str(SOURCE), "HSCRF_ISA": "sse9"}
    command = [sys.executable, "-c", "import hscrf.native"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode != 0
    assert "HSCRF_ISA is 'sse9', expected one of baseline, avx2, avx512" in done.stderr


def test_versions_name_the_core_and_the_instruction_set(core):
    words = run("import hscrf; hscrf.show_versions()")
    assert words[0] == "hscrf"
    assert words[words.index("set") + 1] == core.instruction_set
    words = run("import runpy, sys; sys.argv[1:] = ['--version']; runpy.run_module('hscrf', run_name='__main__')")
    assert words[words.index("set") + 1] == core.instruction_set


def test_without_the_core_the_versions_say_so():
    assert "installed without it" in " ".join(run(WITHOUT + "import hscrf; hscrf.show_versions()"))


def test_without_the_core_one_warning_says_what_to_install():
    code = (
        WITHOUT
        + """
import warnings
with warnings.catch_warnings(record=True) as seen:
    warnings.simplefilter("always")
    import hscrf.objective.workers, hscrf.observations.kernels
print(*(str(one.message) for one in seen if "compiled core" in str(one.message)))
"""
    )
    said = " ".join(run(code))
    assert said.count("hscrf runs without its compiled core") == 1
    assert "Install a C++ compiler" in said
    assert run("import hscrf.native; print('quiet')", HSCRF_ENGINE="reference") == ["quiet"]


def test_with_the_reference_everything_runs_in_numpy():
    code = "from hscrf.observations import kernels, plain; print(kernels.kernels is plain)"
    assert run(code, HSCRF_ENGINE="reference") == ["True"]
    assert "HSCRF_ENGINE is 'reference'" in " ".join(
        run("import hscrf; hscrf.show_versions()", HSCRF_ENGINE="reference")
    )


def test_engines_are_freed_at_exit(core):
    """Also where something keeps the cache of engines alive, as extension modules and waiting threads may."""
    code = """
import ctypes, hscrf
from hscrf.engine.compiled import make_core
hscrf.decode(hscrf.Potentials(hscrf.Topology({"tag": ["N", "V"]}), 3))
ctypes.pythonapi.Py_IncRef(ctypes.py_object(make_core))
"""
    environment = {**os.environ, "PYTHONPATH": str(SOURCE)}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")

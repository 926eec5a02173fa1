"""Exponentials and logarithms of whole arrays are those of NumPy."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from hscrf.engine.kernels.compile import ordered_kernel
from hscrf.engine.kernels.exponentials import take_logs


@ordered_kernel
def logarithms(values):
    """``take_logs`` for Python."""
    take_logs(values, 0, values.size)


@given(st.lists(st.floats(-690.0, 690.0), min_size=1, max_size=40))
def test_logarithms_are_those_of_numpy(logs):
    values = np.exp(logs)
    found = np.append(values, 0.0)
    logarithms(found)
    np.testing.assert_allclose(found[:-1], np.log(values), rtol=1e-15, atol=1e-15)
    assert found[-1] == -np.inf

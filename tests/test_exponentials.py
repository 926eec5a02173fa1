"""Exponentials and logarithms of whole arrays are those of NumPy."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from hscrf.engine.kernels.compile import ordered_kernel
from hscrf.engine.kernels.exponentials import raise_columns, take_logs


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


def test_columns_are_raised_from_their_highest():
    rng = np.random.default_rng(0)
    table = 300.0 * rng.standard_normal((3, 2_500))
    table[rng.random(table.shape) < 0.2] = -np.inf
    table[:, 7] = -np.inf
    out, shift = np.empty_like(table), np.empty(2_500)
    raise_columns(table.reshape(-1), out.reshape(-1), shift)
    np.testing.assert_array_equal(shift, table.max(axis=0))
    expected = np.exp(table - np.where(shift > -np.inf, shift, 0.0))
    np.testing.assert_allclose(out, expected, rtol=1e-13, atol=1e-299)
    np.testing.assert_array_equal(out == 0.0, table == -np.inf)

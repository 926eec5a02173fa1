"""Compare results of the compiled core with those of the reference; texts in pictures."""

import re
from pathlib import Path

import numpy as np
import pytest

from hscrf.engine.reference import Reference
from hscrf.engine.tally import COUNTER
from hscrf.inference import Posterior


def on_engines(names, compiled, reference):
    """A test for each case of the compiled core, and for fewer of the reference: it is slow, and always in logarithms.

    The test uses the fixture ``engine``.
    """
    cases = [("compiled", *case) for case in compiled] + [("reference", *case) for case in reference]
    ids = ["-".join("-".join(part) if isinstance(part, tuple) else str(part) for part in case) for case in cases]
    return pytest.mark.parametrize(("engine", *names), cases, indirect=["engine"], ids=ids)


def batch_of(p, labels=None):
    """Potentials of one sequence as a batch."""
    return Posterior(p, labels).batch


def reference_of(batch):
    """The reference engine for a batch."""
    return Reference(batch.topology, batch.offsets, batch.evidence)


def in_logarithms(batch, values):
    """How many sequences of a batch the core evaluates in logarithms, with counts."""
    before = COUNTER.total
    batch.expectations(values)
    return COUNTER.total.since(before).in_logarithms


def same_expectations(one, other, **close):
    """Two of the engines' results: log Z, every count and every posterior."""
    np.testing.assert_allclose(other.log_z, one.log_z, **close)
    for key, values in one.counts.items():
        np.testing.assert_allclose(other.counts[key], values, **close, err_msg=str(key))
    for d, (state, ending) in enumerate(zip(one.state, one.ending, strict=True)):
        np.testing.assert_allclose(other.state[d], state, **close, err_msg=f"state of level {d}")
        np.testing.assert_allclose(other.ending[d], ending, **close, err_msg=f"ending of level {d}")
    for d in one.segments.keys() & other.segments.keys():
        np.testing.assert_allclose(other.segments[d], one.segments[d], **close, err_msg=f"segments {d}")


def like_the_reference(batch, values, **close):
    """Log Z, counts, posteriors and best scores of the engine in use are those of the reference."""
    reference = reference_of(batch)
    expected, found = reference.expectations(values), batch.expectations(values)
    same_expectations(expected, found, **close)
    np.testing.assert_allclose(batch.log_partition(values), expected.log_z, **close)
    np.testing.assert_allclose(batch.best(values)[2], reference.best(values)[2], **close)


def texts_of(path):
    """The texts of an SVG, which matplotlib leaves as comments beside their outlines."""
    return set(re.findall(r"<!-- (.*) -->", Path(path).read_text()))

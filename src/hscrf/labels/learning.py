"""Learn a topology from labels, without a model."""

from __future__ import annotations

from typing import Any

from hscrf.labels.given import given_labels, steps_of
from hscrf.labels.induction import LabelStatistics
from hscrf.labels.schemes import schemes_in
from hscrf.topology import Topology


def learn_topology(Y: Any, scheme: Any = "auto") -> Topology:
    """Learn the topology that ``fit`` would learn from labels.

    Parameters
    ----------
    Y : sequences of labels
        As ``fit`` takes them.
    scheme : str or dict
        "plain", "bio" or "bioes", for all levels or as a dict by level. "auto" looks at the labels.

    Returns
    -------
    Topology
        The states of all levels, and the children of each parent if no label is missing.

    Examples
    --------
    >>> learn_topology([{"phrase": ["B-NP", "I-NP", "O"], "tag": ["D", "N", "V"]}])
    Topology(root 1 > phrase 2 > tag 3)
    """
    given = given_labels(Y)
    statistics = LabelStatistics(None, schemes_in(given, scheme))
    statistics.update(given, [steps_of(y) for y in given])
    return statistics.topology()

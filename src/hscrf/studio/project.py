"""What a studio works on: sequences, levels, the first model, and how new ones are made, kept and read."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from hscrf.estimator.hscrf import HSCRF
from hscrf.families.loading import load
from hscrf.studio.evidence import levels_of
from hscrf.studio.items import Item
from hscrf.studio.knowledge import Level
from hscrf.topology import Topology


def save_plainly(path: str, model: Any) -> None:
    """Write a model without anything else."""
    model.save(path)


@dataclass
class Project:
    """What a studio works on.

    ``save`` writes a model file; the shell adds there how files are read. ``kind`` is how sequences are shown, "text"
    or "time"; None asks the data.
    """

    items: Sequence[Item]
    topology: Topology
    model: Any = None
    estimator: Any = None  # what a first model is made from, without one
    kind: str | None = None
    name: str = ""
    train_after: int = 10
    save: Callable[[str, Any], None] = save_plainly
    load: Callable[[str], Any] = load
    demo: bool = False
    column_names: Sequence[str] = field(default=())  # of the channels, where tokens are rows of numbers

    @property
    def levels(self) -> list[Level]:
        return levels_of(self.topology)

    def first_estimator(self) -> Any:
        """An estimator that has learned nothing."""
        return HSCRF() if self.estimator is None else self.estimator


def topology_from(table: Mapping[str, Any]) -> Topology:
    """The topology that a file of labels describes.

    ``levels`` lists the labels of each level from top to bottom; ``children``, ``successors``, ``min_duration`` and
    ``max_duration`` are those of :class:`hscrf.Topology`. ``lasting`` names levels whose segments may be longer than
    one step though they are at the bottom.

    >>> topology_from({"levels": {"meal": ["lunch", "tea"], "walk": ["in", "out"]}, "lasting": ["walk"]}).unit_bottom
    False
    """
    known = {"levels", "children", "successors", "min_duration", "max_duration", "lasting", "root"}
    stray = set(table) - known
    if stray:
        raise ValueError(f"the file of labels has {', '.join(sorted(stray))}, expected {', '.join(sorted(known))}")
    if not isinstance(table.get("levels"), Mapping) or not table["levels"]:
        raise ValueError("the file of labels has no table [levels], expected the labels of each level, top to bottom")
    longest = {**dict.fromkeys(table.get("lasting", ())), **table.get("max_duration", {})}
    rest = {name: table[name] for name in ("children", "successors", "min_duration", "root") if name in table}
    return Topology(table["levels"], max_duration=longest, **rest)

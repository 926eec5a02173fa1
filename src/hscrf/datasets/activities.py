"""Generated days of a person in a kitchen: activities made of walks."""

from __future__ import annotations

from typing import Any

import numpy as np

from hscrf.arrays import Floats, Random, generator, whole_number
from hscrf.datasets.draws import draw_duration, draw_number
from hscrf.labels.labels import Labels
from hscrf.topology import Topology

_ROOM = (8, 6)  # cells


_PLACES = {
    "door": (0, 1),
    "cupboard": (3, 5),
    "fridge": (6, 5),
    "stove": (7, 2),
    "dining": (5, 1),
    "tv": (4, 1),
}


_START = "door_cupboard cupboard_fridge "
_PLANS = {  # sequences of walks that make an activity, with their probabilities; each begins and ends at the door
    "short_meal": {
        _START + "fridge_dining dining_door": 0.75,
        _START + "fridge_door": 0.25,
    },
    "have_snack": {
        "door_tv tv_cupboard cupboard_fridge fridge_tv tv_door": 0.75,
        "door_tv tv_cupboard cupboard_fridge fridge_door": 0.25,
    },
    "normal_meal": {
        _START + "fridge_stove stove_dining dining_door": 0.4,
        _START + "fridge_stove stove_dining dining_fridge fridge_dining dining_door": 0.2,
        _START
        + "fridge_dining dining_door": 0.4,  # a cold meal, which only its duration distinguishes from a short one
    },
}


_STAYS = {"door": 1.0, "cupboard": 2.0, "fridge": 2.0, "stove": 6.0, "dining": 3.0, "tv": 4.0}  # mean steps
_LONG_STAYS = {("normal_meal", "dining"): 9.0, ("normal_meal", "fridge"): 3.0}
_STRIDE = 1.5  # cells in a time step


def make_activities(
    n_sequences: int = 90,
    *,
    n_activities: int | tuple[int, int] = (2, 3),
    noise: float = 0.6,
    persisting: bool = False,
    random_state: Random = None,
) -> tuple[list[list[list[str]]], list[Labels]]:
    """Generate noisy positions of a person in a kitchen, labelled by activity and by walk between two places.

    Three activities share twelve walks, such as ``"door_cupboard"``: go from the door to the cupboard and stay there.
    Positions are grid cells. Each step has the features of the paper as strings: position, velocity in x and y, speed.

    Parameters
    ----------
    n_sequences : int
        Number of sequences.
    n_activities : int or (int, int)
        Activities in a sequence, or a range; 1 is the setting of the paper.
    noise : float
        Standard deviation of the observed positions, in cells.
    persisting : bool
        Whether a walk is one segment, rather than segments of one step.
    random_state : int, Generator or None
        Seed or generator.

    Returns
    -------
    X : list of list of list of str
        Feature strings of each step.
    Y : list of Labels
        Complete labels.

    Examples
    --------
    >>> X, Y = make_activities(2, random_state=0)
    >>> X[0][5]
    ['pos=4,0', 'vx=0', 'vy=-1', 'speed=1']
    >>> Y[0].topology
    Topology(root 1 > activity 3 > trajectory 12)
    >>> Y[0].segments("activity")
    [(0, 26, 'have_snack'), (26, 53, 'have_snack'), (53, 75, 'short_meal')]
    """
    whole_number(n_sequences, "n_sequences", least=1)
    if not noise >= 0:
        raise ValueError(f"noise is {noise}; expected a standard deviation in cells, 0 or more")
    random = generator(random_state)
    topology = _activity_topology(persisting)
    X, Y = [], []
    for _ in range(n_sequences):
        tree, path = _day(random, draw_number(random, "n_activities", n_activities))
        X.append(_position_features(path + noise * random.normal(size=path.shape)))
        Y.append(_activity_labels(topology, tree))
    return X, Y


def _activity_topology(persisting: bool) -> Topology:
    walks = {name: list(dict.fromkeys(" ".join(plans).split())) for name, plans in _PLANS.items()}
    shared = list(dict.fromkeys(walk for some in walks.values() for walk in some))
    limits: dict[str, None] = {"trajectory": None} if persisting else {}
    return Topology({"activity": list(_PLANS), "trajectory": shared}, children={"activity": walks}, max_duration=limits)


def _day(random: np.random.Generator, n_activities: int) -> tuple[list[Any], Floats]:
    """Some activities as a tree of (activity, [(walk, duration)]), and the true positions (T, 2)."""
    tree, path = [], []
    for activity in random.choice(list(_PLANS), size=n_activities):
        plans = _PLANS[activity]
        plan = random.choice(list(plans), p=list(plans.values()))
        steps = [_walk(random, activity, *walk.split("_")) for walk in plan.split()]
        tree.append((str(activity), [(w, len(s)) for w, s in zip(plan.split(), steps, strict=True)]))
        path += steps
    return tree, np.concatenate(path)


def _walk(random: np.random.Generator, activity: str, origin: str, target: str) -> Floats:
    """Positions (t, 2) of a walk from one place to another and the stay there."""
    start, goal = np.array(_PLACES[origin]), np.array(_PLACES[target])
    stride = _STRIDE * random.uniform(0.8, 1.2)
    n_strides = max(1, round(float(np.linalg.norm(goal - start)) / stride))
    stay = draw_duration(random, _LONG_STAYS.get((activity, target), _STAYS[target]))
    progress = np.minimum(np.arange(1, n_strides + stay + 1) / n_strides, 1.0)
    return start + progress[:, None] * (goal - start)


def _position_features(path: Floats) -> list[list[str]]:
    """Feature strings of noisy positions (T, 2)."""
    cells = np.clip(np.rint(path), 0, np.array(_ROOM) - 1).astype(int)
    velocity = np.clip(np.diff(cells, axis=0, prepend=cells[:1]), -2, 2)
    speed = np.abs(velocity).max(axis=1)
    rows = zip(cells.tolist(), velocity.tolist(), speed.tolist(), strict=True)
    return [[f"pos={x},{y}", f"vx={vx}", f"vy={vy}", f"speed={v}"] for (x, y), (vx, vy), v in rows]


def _activity_labels(topology: Topology, tree: list[Any]) -> Labels:
    if topology.unit_bottom:
        tree = [(name, [walk for walk, n in walks for _ in range(n)]) for name, walks in tree]
    return Labels.from_tree(topology, tree)

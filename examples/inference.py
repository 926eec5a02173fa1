"""A day in two levels: what the engine can say about activities and the actions they are made of.

Run it with ``python examples/inference.py``. One step is an hour. The scores come from a made-up sensor that hears
something of each action; nothing is learned here.
"""

import numpy as np

import hscrf

ACTIONS = {
    "sleep": ["rest", "wash"],
    "work": ["walk", "desk", "talk"],
    "home": ["cook", "eat", "rest", "talk"],
}
TRUTH = [
    ("sleep", ["rest"] * 6 + ["wash"]),
    ("work", ["walk", "desk", "desk", "desk", "talk", "desk", "desk", "talk", "walk"]),
    ("home", ["cook", "eat", "talk", "rest"]),
    ("sleep", ["wash", "rest", "rest", "rest"]),
]


def build_topology():
    """Activities last three hours or more; their actions change by the hour."""
    actions = list(dict.fromkeys(action for kids in ACTIONS.values() for action in kids))
    return hscrf.Topology(
        {"activity": list(ACTIONS), "action": actions},
        children={"activity": ACTIONS},
        successors={"activity": {s: [t for t in ACTIONS if t != s] for s in ACTIONS}},
        min_duration={"activity": 3},
        max_duration={"activity": 12},
    )


def hear(topology, truth, noise, random_state):
    """Potentials of a noisy day: the true action scores higher by two, and actions like to go on."""
    rng = np.random.default_rng(random_state)
    size = topology.n_states[2]
    heard = 2 * np.eye(size)[truth.states[2]] + noise * rng.standard_normal((truth.length, size))
    stay = np.tile(0.8 * np.eye(size), (1, topology.n_states[1], 1, 1))
    hours = np.arange(1, 13)[:, None]
    return hscrf.Potentials(
        topology,
        truth.length,
        token={"action": heard},
        trans={"activity": stay},
        duration={"activity": -np.abs(hours - [7, 9, 4]) / 2},  # sleep, work, home
    )


def draw(labels, mark="."):
    """One line of text a level: a segment's name from its first hour on, a bar where it starts."""
    for level in labels.topology.levels[1:]:
        column, width = [], 5
        starts = np.append(1, labels.ends[labels.topology.level(level), :-1])
        for name, new in zip(labels.column(level), starts, strict=True):
            column.append(("|" + name if new else " " + mark * (width - 1))[:width].ljust(width))
        print(f"  {level:9}{''.join(column)}|")


def main():
    topology = build_topology()
    truth = hscrf.Labels.from_tree(topology, TRUTH)
    p = hear(topology, truth, noise=1.2, random_state=24)
    print(f"A day of {p.length} hours: {topology}\n")
    print("What happened")
    draw(truth)

    best = hscrf.decode(p)
    log_z = hscrf.log_partition(p)
    print(f"\nThe best of all nested segmentations: score {best.score:.2f}, log Z of all {log_z:.2f}")
    draw(best)

    posterior = hscrf.marginals(p)
    for level in ("activity", "action"):
        right = np.mean(np.array(best.column(level)) == np.array(truth.column(level)))
        sure = posterior.state[level].max(axis=1).mean()
        print(f"  {level}: {right:.0%} of the hours are right, the mean certainty is {sure:.0%}")

    evidence = hscrf.Labels.from_segments(topology, {"activity": [(7, 16, "work")]}, length=p.length)
    told = hscrf.decode(p, evidence)
    lost = np.exp(hscrf.log_partition(p, evidence) - log_z)
    print(f"\nNow somebody tells that work lasted from 7 to 16, which had probability {lost:.1%}")
    draw(told)
    before, after = hscrf.entropy(p), hscrf.entropy(p, evidence)
    print(f"  the entropy falls from {before:.1f} to {after:.1f} nats")

    print("\nThe three best, and how likely each is beside the first")
    for y in hscrf.k_best(p, 3, evidence):
        hours = [f"{t}h {name}" for t, name in enumerate(y.column("action")) if name != told.column("action")[t]]
        print(f"  {np.exp(y.score - told.score):5.0%}  {', '.join(hours) or 'the one above'}")

    print("\nA day drawn from what is still possible")
    draw(hscrf.sample(p, 1, random_state=1, evidence=evidence)[0])

    columns = {"activity": ["?"] * 23 + ["work"], "action": ["?"] * 23 + ["cook"]}
    try:
        hscrf.decode(p, hscrf.Labels.from_columns(topology, columns))
    except hscrf.InfeasibleError as error:
        print(f"\nWhat cannot be is said: {error}")


if __name__ == "__main__":
    main()

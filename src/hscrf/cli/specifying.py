"""Options of hscrf fit for the features of levels and their penalties."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from hscrf.cli.options import Parser
from hscrf.cli.shell import Merge, UserError, amount, names_in, pairs_in

if TYPE_CHECKING:
    from hscrf.features.specifications import Specification
    from hscrf.topology import Topology

TRANSITIONS = "transitions"  # the name in --penalty for first, neighbouring and last children


def add_specifying(parser: Parser) -> None:
    """Add the options."""
    for part, which in (("start", "first"), ("stop", "last")):
        parser.add_argument(
            f"--{part}",
            metavar="LEVELS",
            help=f"levels whose segments have features of their {which} step (default: levels with segments of more "
            "than one step; none: no level)",
        )
    parser.add_argument(
        "--penalty",
        action=Merge,
        type=partial(pairs_in, kind=amount),
        default={},
        metavar="LEVEL=X",
        help=f"multiply the penalties of a level by X ({TRANSITIONS}=X: those of transitions)",
    )
    parser.add_argument(
        "--margin",
        action=Merge,
        type=margin,
        default=0.0,
        metavar="X",
        help="train with a margin: the cost of a wrong state, for all levels or as LEVEL=X (default: %(default)s)",
    )


def margin(text: str) -> float | dict[str, float]:
    """A number of at least 0, or such numbers by level."""
    return pairs_in(text, kind=amount) if "=" in text else amount(text)


def check_specifying(args: argparse.Namespace) -> None:
    """Refuse options that shards do not have: their features are learned during packing."""
    if args.shards:
        for option in ("start", "stop", "penalty"):
            if getattr(args, option):
                raise UserError(f"--{option} is not for --shards, which has the default features")


def specified(args: argparse.Namespace, usual: Sequence[Specification], topology: Topology) -> list[Specification]:
    """The default specifications, changed by the options for first and last steps and for penalties."""
    from hscrf.features.specifications import Start, Stop

    found = list(usual)
    for option, kind in (("start", Start), ("stop", Stop)):
        text = getattr(args, option)
        if text is None:
            continue
        wanted = () if text == "none" else names_in(text)
        for level in wanted:
            check_level(topology, level, f"--{option}")
        known = {spec.level for spec in found if isinstance(spec, kind)}
        found = [spec for spec in found if not isinstance(spec, kind) or spec.level in wanted]
        found += [kind(level) for level in wanted if level not in known]
    for level in args.penalty:
        if level != TRANSITIONS:
            check_level(topology, level, "--penalty")
    return [penalised(spec, args.penalty) for spec in found]


def check_level(topology: Topology, level: str, option: str) -> None:
    """Raise unless an option names a level below the root."""
    levels = topology.levels[1:]
    if level not in levels:
        raise UserError(f"{option} names the level {level!r}, but the levels are {', '.join(levels)}")


def penalised(spec: Specification, factors: dict[str, float]) -> Specification:
    """A specification with the penalty given for its level."""
    from hscrf.potentials import FAMILY

    name = TRANSITIONS if spec.part in FAMILY else spec.level
    return replace(spec, penalty=factors[name]) if name in factors else spec

"""Options of hscrf fit for features, durations and penalties, and the specifications that they describe."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from hscrf.cli.options import Parser
from hscrf.cli.shell import Merge, UserError, amount, names_in, pairs_in, whole

if TYPE_CHECKING:
    from hscrf.features.specifications import Duration, Specification
    from hscrf.io.templates import Template
    from hscrf.topology import Topology

TRANSITIONS = "transitions"  # the name in --penalty for first, neighbouring and last children


def add_frame(parser: Parser) -> None:
    """Add the options for features and durations."""
    parser.add_argument(
        "--template", metavar="FILE", help="a template in TOML or of CRF++; 'none': use columns as they are"
    )
    parser.add_argument(
        "--min-count", type=whole(1), default=1, metavar="N", help="leave out features that occur less often"
    )
    parser.add_argument(
        "--durations",
        action=Merge,
        type=pairs_in,
        default={},
        metavar="LEVEL=KIND",
        help="weights for durations: gamma, bins, each or none",
    )
    parser.add_argument(
        "--max-duration",
        action=Merge,
        type=partial(pairs_in, kind=int),
        default={},
        metavar="LEVEL=STEPS",
        help="longest segments",
    )
    parser.add_argument(
        "--closed-durations",
        action="store_true",
        help="forbid segments longer than the longest of the training data",
    )
    parser.add_argument(
        "--children",
        choices=("auto", "seen", "all"),
        default="auto",
        help="children that a state may have: those in the training data (seen), all, or (auto, the default) those in "
        "the training data unless too many labels are missing",
    )
    parser.add_argument(
        "--fillers",
        choices=("auto", "none"),
        default="auto",
        help="whether states named O remember the state before them (auto, the default) or not (none, faster)",
    )
    parser.add_argument(
        "--missing",
        choices=("indicator", "refuse"),
        default="indicator",
        help="missing numbers: a feature marks them (indicator, the default), or they are an error (refuse)",
    )


def add_feature_options(parser: Parser) -> None:
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


def check_feature_options(args: argparse.Namespace) -> None:
    """Refuse options that shards do not have: their features are learned during packing."""
    if args.shards:
        for option in ("start", "stop", "penalty"):
            if getattr(args, option):
                raise UserError(f"--{option} is not for --shards, which has the default features")


def durations_of(args: argparse.Namespace) -> list[Duration]:
    """The specifications for --durations."""
    from hscrf.features.specifications import Duration

    return [Duration(level, kind) for level, kind in args.durations.items() if kind != "none"]


def wanted_features(
    args: argparse.Namespace, topology: Topology, durations: Sequence[Duration], template: Template | None
) -> list[Specification]:
    """The specifications for the options; given durations replace those implied by limits."""
    from hscrf.cli.recipe import with_pairs
    from hscrf.estimator.specified import default_specifications
    from hscrf.features.specifications import Duration

    usual = default_specifications(topology)
    kept = [spec for spec in usual if not (isinstance(spec, Duration) and spec.level in args.durations)]
    return with_pairs(specified(args, [*kept, *durations], topology), template, topology)


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

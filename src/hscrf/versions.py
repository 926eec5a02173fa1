"""Which versions are in use: for bug reports, and to see whether the compiled core is there."""

from __future__ import annotations

import platform
import sys
from importlib.metadata import PackageNotFoundError, version

from hscrf.native import describe_core

PACKAGES = ("numpy", "scipy", "scikit-learn", "threadpoolctl", "matplotlib", "pandas", "pyarrow", "torch")


def show_versions() -> None:
    """Print the versions of hscrf, its compiled core, Python and the packages that hscrf works with.

    Paste the output into bug reports.

    >>> import hscrf
    >>> hscrf.show_versions()  # doctest: +ELLIPSIS
    hscrf         ...
    core          compiled core...
    python        ...
    """
    print(format_versions())


def format_versions() -> str:
    """What :func:`show_versions` prints."""
    system = f"{platform.system()} {platform.machine()}"
    lines = [
        ("hscrf", installed("hscrf")),
        ("core", describe_core()),
        ("python", f"{sys.version.split()[0]}, {system}"),
    ]
    lines += [(name, installed(name)) for name in PACKAGES]
    return "\n".join(f"{name:<13} {found}" for name, found in lines)


def installed(name: str) -> str:
    """The version of an installed package."""
    try:
        return version(name)
    except PackageNotFoundError:
        return "not installed"

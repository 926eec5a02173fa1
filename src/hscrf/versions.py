"""Versions in use, for bug reports; they also show whether the compiled core is installed."""

from __future__ import annotations

import platform
import sys
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from hscrf.native import describe_core

PACKAGES = ("numpy", "scipy", "scikit-learn", "threadpoolctl", "matplotlib", "pandas", "pyarrow", "torch")


def show_versions() -> None:
    """Print the versions of hscrf, its compiled core, Python and the packages that hscrf uses.

    Paste the output into bug reports.

    Examples
    --------
    >>> import hscrf
    >>> hscrf.show_versions()  # doctest: +ELLIPSIS
    hscrf         ...
    core          compiled core...
    python        ...
    """
    print(format_versions())


def format_versions() -> str:
    """Return the text that :func:`show_versions` prints."""
    system = f"{platform.system()} {platform.machine()}"
    lines = [
        ("hscrf", installed("hscrf")),
        ("core", describe_core()),
        ("python", f"{sys.version.split()[0]}, {system}"),
    ]
    lines += [(name, installed(name)) for name in PACKAGES]
    return "\n".join(f"{name:<13} {found}" for name, found in lines)


def installed(name: str) -> str:
    """Return the version of a package, or ``"not installed"``."""
    try:
        return version(name)
    except PackageNotFoundError:
        return "not installed"


def pandas_for(what: str) -> Any:
    """The module pandas, which is optional; where it is missing, an error says what needs it."""
    try:
        import pandas
    except ImportError as error:
        raise ImportError(f"{what} needs pandas: pip install 'hscrf[tables]'") from error
    return pandas

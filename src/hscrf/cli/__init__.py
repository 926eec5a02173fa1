"""The command line."""

from hscrf.cli.main import main

__all__ = ["main"]

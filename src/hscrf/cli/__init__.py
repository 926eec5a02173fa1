"""The command line: one module per command, each with HELP, add_arguments and run."""

from hscrf.cli.main import main

__all__ = ["main"]

"""``python -m hscrf`` is the command line."""

import sys

from hscrf.cli import main

if __name__ == "__main__":
    sys.exit(main())

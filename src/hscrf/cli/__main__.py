"""``python -m hscrf.cli``."""

import sys

from hscrf.cli.main import main

if __name__ == "__main__":
    sys.exit(main())

"""Which modules pytest may import: those of the torch wing only where PyTorch is installed."""

import importlib.util

collect_ignore_glob = [] if importlib.util.find_spec("torch") else ["src/hscrf/torch/*"]

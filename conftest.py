"""Which modules pytest may import: those of the torch wing only where PyTorch is installed."""

import importlib.util
from importlib.metadata import version

collect_ignore_glob = [] if importlib.util.find_spec("torch") else ["src/hscrf/torch/*"]
if tuple(map(int, version("scikit-learn").split(".")[:2])) < (1, 6):  # its checks of estimators were others
    collect_ignore_glob.append("tests/test_scikit_learn.py")

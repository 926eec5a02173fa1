"""Optimisers that know no CRF: they see a loss, its gradient, and pieces of both.

Every solver minimises ``objective + sum(c2 * w^2) + sum(c1 * |w|)`` (CRFsuite's convention: no half). ``minimize``
returns a ``Result`` that says what happened; Ctrl-C ends the run, not the program, and keeps the best weights so far.
"""

from hscrf.solvers.choice import solver_of
from hscrf.solvers.course import Monitor, Objective, Penalty, Result, Solver
from hscrf.solvers.lbfgs import LBFGS
from hscrf.solvers.perceptron import Perceptron
from hscrf.solvers.sgd import SGD

__all__ = ["LBFGS", "SGD", "Monitor", "Objective", "Penalty", "Perceptron", "Result", "Solver", "solver_of"]

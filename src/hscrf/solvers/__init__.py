"""Optimisers that do not depend on CRFs: they use a loss and its gradient, over all or some sequences.

Every solver minimises ``objective + sum(c2 * w^2) + sum(c1 * |w|)`` (CRFsuite's convention: no half). ``minimize``
returns a ``Result`` with the weights and the reason why it stopped. Ctrl-C ends the run, not the program, and keeps
the best weights so far.
"""

from hscrf.solvers.choice import dump_solver, known_solver, solver_of
from hscrf.solvers.course import Monitor, Objective, Penalty, Result, Solver
from hscrf.solvers.lbfgs import LBFGS
from hscrf.solvers.perceptron import Perceptron
from hscrf.solvers.sgd import SGD

__all__ = [
    "LBFGS",
    "SGD",
    "Monitor",
    "Objective",
    "Penalty",
    "Perceptron",
    "Result",
    "Solver",
    "dump_solver",
    "known_solver",
    "solver_of",
]

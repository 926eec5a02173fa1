"""The architecture is a test: imports point one way and heavy libraries stay out of ``import hscrf``."""

import ast
import graphlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parents[1] / "src" / "hscrf"
ORDER = (
    "topology",
    "labels",
    "potentials",
    "_vectors",
    "_kernels",
    "_engine",  # and every other private module
    "inference",
    "observations",
    "features",
    "objective",
    "solvers",
    "metrics",
    "estimator",
    "families",
    "hhmm",
    "templates",
    "io",
    "recipe",
    "scoring",
    "prediction",
    "datasets",
    "plots",
    "demo",
    "commands",
    "cli",
)
FACES = ("__init__", "__main__")  # may import everything, are imported by nothing
ONLY_IN_FUNCTIONS = {"matplotlib", "pandas"}
LAZY = {"numba", "scipy", "sklearn", "pandas", "matplotlib"}
MODULES = sorted(path.stem for path in PACKAGE.glob("*.py"))


def place(module):
    """Position of a module in ORDER; private modules that it does not name share the place of _engine."""
    if module in FACES:
        return len(ORDER)
    if module not in ORDER and module.startswith("_"):
        return ORDER.index("_engine")
    assert module in ORDER, f"src/hscrf/{module}.py has no place in ORDER: give it one"
    return ORDER.index(module)


def outside_functions(node):
    """Every node that runs when the module is imported."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            continue
        if isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test):
            continue
        yield child
        yield from outside_functions(child)


def imported(nodes):
    """Dotted names that the import statements among ``nodes`` ask for; this package's as ``hscrf.name``."""
    names = set()
    for node in nodes:
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = ".".join(filter(None, ["hscrf" if node.level else "", node.module or ""]))
            names.update(f"{base}.{alias.name}" for alias in node.names)
    return names


def own(names):
    """The modules of this package among dotted names."""
    parts = (name.split(".") for name in names)
    return {part[1] for part in parts if part[0] == "hscrf" and len(part) > 1 and part[1] in MODULES}


def libraries(names):
    """The top-level packages of dotted names."""
    return {name.split(".")[0] for name in names}


def parse(module):
    return ast.parse((PACKAGE / f"{module}.py").read_text(encoding="utf-8"))


def all_imports(module):
    return imported(ast.walk(parse(module)))


def import_time(module):
    return imported(outside_functions(parse(module)))


@pytest.mark.parametrize("module", MODULES)
def test_imports_point_down(module):
    for other in own(all_imports(module)):
        private_pair = place(other) == place(module) == ORDER.index("_engine")
        assert place(other) < place(module) or private_pair, f"{module} imports {other}, which stands above it"


def test_imports_have_no_cycle():
    graph = {module: own(all_imports(module)) for module in MODULES if module not in FACES}
    graphlib.TopologicalSorter(graph).prepare()


@pytest.mark.parametrize("module", MODULES)
def test_optional_libraries_are_imported_inside_functions(module):
    assert not libraries(import_time(module)) & ONLY_IN_FUNCTIONS


@pytest.mark.parametrize("module", MODULES)
def test_numba_lives_in_the_kernels(module):
    if module not in ("_vectors", "_kernels"):
        assert "numba" not in libraries(import_time(module))
        assert "_kernels" not in own(import_time(module)), "import _kernels inside the function that calls it"


def test_import_is_light():
    code = f"import hscrf, sys; print(*sorted({LAZY!r} & set(sys.modules)))"
    environment = {**os.environ, "PYTHONPATH": str(PACKAGE.parent)}
    run = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    assert run.stdout.split() == []

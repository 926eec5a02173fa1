"""The architecture is a test: imports point one way and heavy libraries stay out of ``import hscrf``."""

import ast
import graphlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parents[1] / "src" / "hscrf"
ROOMS = (  # in the order of their dependencies: each may import those before it
    "arrays",
    "native",
    "versions",
    "errors",
    "progress",
    "replacing",
    "locking",
    "names",
    "limits",
    "topology",
    "fillers",
    "potentials",
    "labels",
    "engine",
    "inference",
    "observations",
    "features",
    "objective",
    "solvers",
    "metrics",
    "streaming",
    "estimator",
    "families",
    "io",
    "datasets",
    "plots",
    "stacking",
    "torch",
    "scale",
    "studio",
    "cli",
)
WINGS = {"stacking", "torch", "scale", "studio"}  # nothing but the command line imports them, not even each other
FACES = {"__init__", "__main__"}  # of the package: may import everything, are imported by nothing
ONLY_IN_FUNCTIONS = {"matplotlib", "pandas", "pyarrow"}
LAZY = {"scipy", "sklearn", "pandas", "matplotlib"}
LONGEST = 450  # lines of a file, unless its head says why


def modules():
    """Every module of the package by its dotted name below ``hscrf``; a room's own name stands for its __init__."""
    found = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = path.relative_to(PACKAGE).with_suffix("").parts
        found[".".join(parts[:-1] if len(parts) > 1 and parts[-1] == "__init__" else parts)] = path
    return found


MODULES = modules()


def room_of(module):
    return module.split(".")[0]


def strings_that_name_modules(tree):
    """Modules of this package that are imported by name: string constants such as "hscrf.labels.rules"."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            name = node.value.strip()
            if name.startswith("hscrf.") and name[6:] in MODULES:
                yield name


def imports_in(nodes):
    """Dotted names that import statements ask for."""
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports name the package: from hscrf.room import thing"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def outside_functions(node):
    """Every node that runs when the module is imported."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            continue
        if isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test):
            continue
        yield child
        yield from outside_functions(child)


def own(names):
    """The modules of this package that dotted names lead to."""
    found = set()
    for name in names:
        parts = name.split(".")
        if parts[0] == "hscrf":
            inner = [".".join(parts[1:k]) for k in range(len(parts), 1, -1)]
            found.update([module for module in inner if module in MODULES][:1])
    return found


def edges(source):
    """Modules that a piece of source imports: at once, inside functions, for types, or by name."""
    tree = ast.parse(source)
    return own([*imports_in(ast.walk(tree)), *strings_that_name_modules(tree)])


def upward(module, source):
    """The imports of a module that do not point downwards."""
    room = room_of(module)
    for other in sorted(edges(source)):
        above = room_of(other)
        if above == room:
            continue
        if above in FACES or ROOMS.index(above) > ROOMS.index(room) or (above in WINGS and room != "cli"):
            yield other


def source_of(module):
    return MODULES[module].read_text(encoding="utf-8")


@pytest.mark.parametrize("module", sorted(MODULES))
def test_imports_point_down(module):
    if module not in FACES:
        assert room_of(module) in ROOMS, f"src/hscrf/{room_of(module)} has no place in ROOMS: give it one"
        assert list(upward(module, source_of(module))) == []


@pytest.mark.parametrize(
    "source",
    [
        "from hscrf.estimator.hscrf import HSCRF",
        "def f():\n    from hscrf.cli import main",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import hscrf.plots",
        "from importlib import import_module\nimport_module('hscrf.families.hhmm')",
        "import hscrf.metrics.reports",
    ],
)
def test_an_upward_import_is_found(source):
    assert list(upward("engine.plan", source))
    assert not list(upward("cli.main", source))


def test_files_import_each_other_without_a_cycle():
    graph = {module: own(imports_in(outside_functions(ast.parse(source_of(module))))) for module in MODULES}
    for module, others in graph.items():
        others.discard(module)
        if module in FACES:
            others.clear()
    graphlib.TopologicalSorter(graph).prepare()


def libraries(names):
    """The top-level packages of dotted names."""
    return {name.split(".")[0] for name in names}


@pytest.mark.parametrize("module", sorted(MODULES))
def test_optional_libraries_are_imported_inside_functions(module):
    names = libraries(imports_in(outside_functions(ast.parse(source_of(module)))))
    assert not names & ONLY_IN_FUNCTIONS


@pytest.mark.parametrize("module", sorted(MODULES))
def test_a_file_is_one_thought(module):
    source = source_of(module)
    head = ast.get_docstring(ast.parse(source)) or ""
    assert head, "a file says at its head what it is about"
    assert source.count("\n") <= LONGEST or "lines because" in head


def test_import_is_light():
    code = f"import hscrf, sys; print(*sorted({LAZY!r} & set(sys.modules)))"
    environment = {**os.environ, "PYTHONPATH": str(PACKAGE.parent)}
    run = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    assert run.stdout.split() == []

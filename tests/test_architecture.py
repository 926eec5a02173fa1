"""The architecture is a test: imports point one way and heavy libraries stay out of ``import hscrf``."""

import ast
import graphlib
import os
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parents[1] / "src" / "hscrf"
ROOMS = (  # in the order of their dependencies: each may import those before it
    "arrays",
    "native",
    "versions",
    "errors",
    "progress",
    "hierarchy",
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
    "files",
    "estimator",
    "families",
    "io",
    "datasets",
    "plots",
    "stacking",
    "torch",
    "scale",
    "loading",
    "studio",
    "cli",
)
WINGS = {"stacking", "torch", "scale", "studio"}  # only the rooms in OPENS_WINGS import them, not even each other
OPENS_WINGS = {"loading", "cli"}
SUBROOMS = {"studio": ("data", "model", "work", "exchange", "server")}  # as ROOMS; files next to them may import all
PUBLIC_UNDERSCORES = {"_asdict", "_fields", "_field_defaults", "_replace", "_make", "_exit"}  # of named tuples and os
CHANGES = {"add", "append", "clear", "extend", "insert", "pop", "remove", "setdefault", "update"}  # methods of tables
FACES = {"__init__", "__main__"}  # of the package: may import everything, are imported by nothing
AT_THE_TOP = {  # modules and rooms that import other libraries than NumPy at their top; others do it inside functions
    "sklearn": {
        "estimator.parameters",
        "io.transformer",
        "scale.packing",
        "stacking.model",
        "stacking.neighbours",
        "torch.tagger",
    },
    "starlette": {"studio.server.application", "studio.server.requests"},
    "torch": {"torch"},
}
LAZY = {"scipy", "sklearn", "pandas", "matplotlib"}
PUBLIC_TWICE = {"Score": ["features.specifications", "metrics.scores"]}  # both are public, and files hold the first
SET_UP = (12, 34, 4)  # rooms, files and re-entered files of fit's set-up, at most
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


parsed = cache(ast.parse)  # many tests read the same files


@cache
def nodes_of(tree):
    """All nodes of a tree."""
    return tuple(ast.walk(tree))


def strings_that_name_modules(tree):
    """Modules of this package that are imported by name: string constants such as "hscrf.labels.rules"."""
    for node in nodes_of(tree):
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
    tree = parsed(source)
    return own([*imports_in(nodes_of(tree)), *strings_that_name_modules(tree)])


def upward(module, source):
    """The imports of a module that do not point downwards."""
    room = room_of(module)
    for other in sorted(edges(source)):
        above = room_of(other)
        if above == room:
            continue
        if above in FACES or ROOMS.index(above) > ROOMS.index(room) or (above in WINGS and room not in OPENS_WINGS):
            yield other


@cache
def source_of(module):
    return MODULES[module].read_text(encoding="utf-8")


def places(find, chosen=MODULES):
    """What a check finds in files, by module; empty if all are in order."""
    found = {module: list(find(module, source_of(module))) for module in chosen}
    return {module: some for module, some in found.items() if some}


def test_imports_point_down():
    assert {room_of(module) for module in MODULES} - FACES == {*ROOMS}, "give each room a place in ROOMS"
    assert places(upward, MODULES.keys() - FACES) == {}


def upward_in_room(module, source):
    """The imports of a module that do not point downwards among the sub-rooms of its room."""
    room, _, inner = module.partition(".")
    order = SUBROOMS.get(room, ())
    if "." in inner or inner in order:
        place = order.index(inner.split(".")[0])
        for other in sorted(other for other in edges(source) if other.startswith(f"{room}.")):
            above = other.split(".")[1]
            if above not in order or order.index(above) > place:
                yield other


def test_imports_point_down_inside_a_room():
    assert places(upward_in_room, [module for module in MODULES if room_of(module) in SUBROOMS]) == {}


def test_an_upward_import_inside_a_room_is_found():
    source = "from hscrf.studio.server.studio import Studio"
    assert list(upward_in_room("studio.work.queue", source)) == ["studio.server.studio"]
    assert not list(upward_in_room("studio.session", source))


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
    graph = {module: own(imports_in(outside_functions(parsed(source_of(module))))) for module in MODULES}
    for module, others in graph.items():
        others.discard(module)
        if module in FACES:
            others.clear()
    graphlib.TopologicalSorter(graph).prepare()


def is_private(name):
    return name.startswith("_") and name.strip("_") and not name.endswith("__") and name not in PUBLIC_UNDERSCORES


def is_self(node):
    return isinstance(node, ast.Name) and node.id in ("self", "cls")


def private_definitions(tree):
    """Private names that a file defines: functions, classes, variables, and attributes that methods set on self."""
    for node in nodes_of(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) and is_self(node.value):
            yield node.attr


def private_uses(tree):
    """Private names that a file reads, sets or imports, each with its line."""
    for node in nodes_of(tree):
        if isinstance(node, ast.Attribute) and is_private(node.attr):
            yield node.attr, node.lineno
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("hscrf."):
            yield from ((alias.name, node.lineno) for alias in node.names if is_private(alias.name))


@cache
def own_private_names():
    """The private names that each room defines."""
    names: dict[str, set[str]] = {}
    for module in MODULES:
        found = {own for own in private_definitions(parsed(source_of(module))) if is_private(own)}
        names.setdefault(room_of(module), set()).update(found)
    return names


def foreign_private_names(module, source):
    """Private names that a file uses although its room does not define them."""
    tree = parsed(source)
    own = own_private_names()[room_of(module)] | {*private_definitions(tree)}
    return sorted({f"line {line}: {name}" for name, line in private_uses(tree) if name not in own})


def test_a_room_uses_private_names_of_its_own_only():
    assert places(foreign_private_names) == {}


@pytest.mark.parametrize(
    "source",
    ["model._new_frame()", "class A(B):\n    def f(self):\n        return self._settle()", "other._unknown_here = 3"]
    + ["from hscrf.estimator.frame import _hidden"],
)
def test_a_private_name_of_another_room_is_found(source):
    assert foreign_private_names("scale.packing", source)
    assert not foreign_private_names("scale.packing", "class A:\n    def _new_frame(self): ...\nA()._new_frame()")
    assert not foreign_private_names("scale.packing", "pair._replace(x=3), pair.__class__")


def imported_from_other_rooms(module, tree):
    """The names by which a file knows modules, classes, functions and tables of other rooms."""
    room = room_of(module)
    for node in nodes_of(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "hscrf":
            parts = [*node.module.split(".")[1:], ""]
            yield from (alias.asname or alias.name for alias in node.names if (parts[0] or alias.name) != room)
        elif isinstance(node, ast.Import):
            named = [alias for alias in node.names if alias.name.startswith("hscrf.")]
            yield from ((alias.asname or "hscrf") for alias in named if alias.name.split(".")[1] != room)


def root_of(node):
    """What attributes and items are asked of: a name, or a call such as import_module(...)."""
    while isinstance(node, ast.Attribute | ast.Subscript):
        node = node.value
    return node


def injections(module, source):
    """Places where a file changes what another room defines: sets an attribute, or puts something into a table."""
    tree = parsed(source)
    foreign = {*imported_from_other_rooms(module, tree)}

    def is_foreign(node):
        root = root_of(node)
        if isinstance(root, ast.Call):
            return "import_module" in ast.unparse(root.func) or "__import__" in ast.unparse(root.func)
        return isinstance(root, ast.Name) and root.id in foreign

    for node in nodes_of(tree):
        if isinstance(node, ast.Attribute | ast.Subscript) and not isinstance(node.ctx, ast.Load) and is_foreign(node):
            yield node.lineno, ast.unparse(node)
        if isinstance(node, ast.Call):
            if isinstance(node.func, ast.Attribute) and node.func.attr in CHANGES and is_foreign(node.func):
                table = node.func.value
                if not isinstance(table, ast.Name) or table.id.isupper():
                    yield node.lineno, ast.unparse(node)
            elif (
                isinstance(node.func, ast.Name) and node.func.id in ("setattr", "delattr") and is_foreign(node.args[0])
            ):
                yield node.lineno, ast.unparse(node)


def test_nothing_is_injected_into_another_room():
    assert places(injections) == {}


@pytest.mark.parametrize(
    "source",
    [
        "from hscrf.topology import Topology\nTopology._learn = len",
        "from hscrf.topology import Topology\nsetattr(Topology, 'learn', len)",
        "from hscrf.families.loading import OPENERS\nOPENERS['a'] = len",
        "from hscrf.families.loading import OPENERS\nOPENERS.setdefault('a', len)",
        "from hscrf.families import loading\ndef f():\n    loading.OPENERS.update(a=len)",
        "from importlib import import_module\nimport_module('hscrf.families.loading').OPENERS.setdefault('a', len)",
    ],
)
def test_an_injection_is_found(source):
    assert list(injections("labels", source))
    assert not list(injections("labels", "from hscrf.topology import Topology\na = Topology()\na.x = 3\na.update(3)"))


def classes_by_name():
    """The modules that define a class of each name."""
    found = {}
    for module in MODULES:
        for node in nodes_of(parsed(source_of(module))):
            if isinstance(node, ast.ClassDef):
                found.setdefault(node.name, []).append(module)
    return found


def test_a_class_name_is_defined_once():
    repeated = {name: modules for name, modules in classes_by_name().items() if len(modules) > 1}
    assert repeated == PUBLIC_TWICE


def test_the_set_up_of_fit_passes_few_files():
    """Counted from a trace, with all that is called before the solver begins."""
    script = PACKAGE.parents[1] / "benchmarks" / "walks.py"
    environment = {**os.environ, "PYTHONPATH": str(PACKAGE.parent)}
    command = [sys.executable, str(script), "--only", "fit"]
    run = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    (line,) = [line for line in run.stdout.splitlines() if "set-up" in line]
    cells = [cell.strip() for cell in line.split("|")]
    found = [int(cell) for cell in cells[2:5]]
    assert cells[5] == "none", "rooms that are re-entered"
    assert all(count <= most for count, most in zip(found, SET_UP, strict=True)), found


def patched_constants(tree):
    """The constants that a test module changes: ``setattr(module, "NAME", ...)`` or ``module.NAME = ...``."""
    found = set()
    for node in nodes_of(tree):
        if isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "setattr":
            named = [a.value for a in node.args[:2] if isinstance(a, ast.Constant) and isinstance(a.value, str)]
            found |= {name.rpartition(".")[2] for name in named}
        elif isinstance(node, ast.Assign):
            found |= {target.attr for target in node.targets if isinstance(target, ast.Attribute)}
    return {name for name in found if name.isupper() and len(name) > 1}


def test_tests_change_no_constant():
    """Limits are arguments or attributes, so that a test states the limit it needs. Addresses of data may change."""
    tree = ast.parse('monkeypatch.setattr(module, "LIMIT", 1)\nmodule.MOST = 2\nself.most = 3')
    assert patched_constants(tree) == {"LIMIT", "MOST"}
    found = {
        path.name: patched_constants(parsed(path.read_text(encoding="utf-8")))
        for path in Path(__file__).parent.glob("*.py")
    }
    assert {name: names for name, names in found.items() if names} == {"test_fetching.py": {"CITATIONS"}}


def libraries(names):
    """The top-level packages of dotted names."""
    return {name.split(".")[0] for name in names}


def imported_at_the_top(library):
    """The modules that import a library at their top; a room stands for all its modules that do."""
    found = {
        module for module in MODULES if library in libraries(imports_in(outside_functions(parsed(source_of(module)))))
    }
    return {module.split(".")[0] if library == "torch" else module for module in found}


def test_libraries_are_imported_at_the_top_of_known_modules_only():
    everywhere = {"numpy", "hscrf", "__future__", *sys.stdlib_module_names}
    used = {
        name for module in MODULES for name in libraries(imports_in(nodes_of(parsed(source_of(module)))))
    } - everywhere
    found = {library: imported_at_the_top(library) for library in sorted(used)}
    assert {library: modules for library, modules in found.items() if modules} == AT_THE_TOP


def more_than_a_thought(module, source):
    """Whether a file does not say at its head what it is about, or is too long."""
    head = ast.get_docstring(parsed(source)) or ""
    if not head:
        yield "no head"
    if source.count("\n") > LONGEST and "lines because" not in head:
        yield f"{source.count(chr(10))} lines"


def test_a_file_is_one_thought():
    assert places(more_than_a_thought) == {}
    assert list(more_than_a_thought("labels", "x = 1\n" * (LONGEST + 1))) == ["no head", f"{LONGEST + 1} lines"]


def test_import_is_light():
    code = f"import hscrf, sys; print(*sorted({LAZY!r} & set(sys.modules)))"
    environment = {**os.environ, "PYTHONPATH": str(PACKAGE.parent)}
    run = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    assert run.stdout.split() == []

"""One version in all places, metadata that an index shows, and types that Python 3.10 can read."""

import ast
import re
import sys
from pathlib import Path

import hscrf

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).resolve().parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
MODULES = sorted((ROOT / "src" / "hscrf").rglob("*.py"))


def text(name):
    return (ROOT / name).read_text(encoding="utf-8")


def test_the_version_stands_in_one_place():
    assert PROJECT["project"]["dynamic"] == ["version"]
    place = PROJECT["tool"]["scikit-build"]["metadata"]["version"]["input"]
    [version] = re.findall(r'^__version__ = "(\d+\.\d+\.\d+)"$', text(place), re.MULTILINE)
    assert version == hscrf.__version__


def test_documents_name_the_version():
    assert re.search(rf"^version: {re.escape(hscrf.__version__)}$", text("CITATION.cff"), re.MULTILINE)
    assert re.findall(r"^## \[(\d[^\]]*)\]", text("CHANGELOG.md"), re.MULTILINE)[0] == hscrf.__version__
    assert "10.1016/j.artint.2017.02.003" in text("CITATION.cff")


def test_the_metadata_are_complete():
    project = PROJECT["project"]
    assert project["license"] == "BSD-3-Clause"
    assert project["scripts"] == {"hscrf": "hscrf.cli:main"}
    lowest = re.fullmatch(r">=3\.(\d+)", project["requires-python"])[1]
    named = [one for one in project["classifiers"] if re.search(r"Python :: 3\.\d+$", one)]
    assert named[0].endswith(f"3.{lowest}")
    assert all(address.startswith("https://") for address in project["urls"].values())


def test_every_dependency_has_a_lower_bound():
    extras = PROJECT["project"]["optional-dependencies"]
    for requirement in [*PROJECT["project"]["dependencies"], *(one for some in extras.values() for one in some)]:
        assert requirement.startswith("hscrf[") or ">=" in requirement, requirement


def aliases_with_strings(source):
    """Names of types such as ``tuple["str | Cell", ...]``: Python 3.10 does not look into the string."""
    for node in ast.parse(source).body:
        value = getattr(node, "value", None)
        if isinstance(node, ast.Assign) and isinstance(value, ast.Subscript):
            inside = [one for one in ast.walk(value.slice) if isinstance(one, ast.Constant)]
            generic = ast.unparse(value.value) in ("tuple", "list", "dict", "Mapping", "Sequence")
            if generic and any(isinstance(one.value, str) for one in inside):
                yield ast.unparse(node)


def test_names_of_types_hold_no_strings():
    found = {path.name: list(aliases_with_strings(path.read_text(encoding="utf-8"))) for path in MODULES}
    assert {name: aliases for name, aliases in found.items() if aliases} == {}


def test_a_string_in_the_name_of_a_type_is_found():
    assert list(aliases_with_strings('Feature = tuple["str | Cell", ...]'))
    assert not list(aliases_with_strings('STATES = STATE["a"]\nNAMES = tuple[str, ...]'))

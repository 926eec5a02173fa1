"""Draws the rooms of the package and their imports, read from the code itself: ``python docs/rooms.py FOLDER``.

A row for each room, in the order of their dependencies; a mark where it imports the room of the column, with the number
of imports. Below the diagonal all imports point one way; a mark above it would be a mistake.
"""

import ast
import sys
from pathlib import Path

import matplotlib

matplotlib.use("agg")
import matplotlib.pyplot as plt

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "src" / "hscrf"


def rooms():
    """The rooms in the order that the architecture test holds."""
    tree = ast.parse((ROOT / "tests" / "test_architecture.py").read_text(encoding="utf-8"))
    order = next(node.value for node in tree.body if isinstance(node, ast.Assign) and node.targets[0].id == "ROOMS")
    return [room for room in ast.literal_eval(order) if any(PACKAGE.glob(f"{room}/*.py")) or files_of(room)]


def files_of(room):
    return [*PACKAGE.glob(f"{room}.py"), *PACKAGE.glob(f"{room}/**/*.py")]


def imports_of(room):
    """Names of rooms that a room imports, once for each import statement; at once, in functions, or for types."""
    for file in files_of(room):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            names = []
            if isinstance(node, ast.ImportFrom) and node.module:
                names = [node.module] if node.module != "hscrf" else [f"hscrf.{alias.name}" for alias in node.names]
            elif isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            yield from (name.split(".")[1] for name in names if name.startswith("hscrf."))


def draw(folder):
    order = rooms()
    figure, ax = plt.subplots(figsize=(8.5, 6.5), layout="constrained")
    for row, room in enumerate(order):
        counts = {}
        for other in imports_of(room):
            if other in order and other != room:
                counts[other] = counts.get(other, 0) + 1
        ax.add_patch(plt.Rectangle((row - 0.5, row - 0.5), 1, 1, color="0.85"))
        for other, count in counts.items():
            column = order.index(other)
            ax.add_patch(plt.Rectangle((column - 0.45, row - 0.45), 0.9, 0.9, color="#2a6f97"))
            ax.text(column, row, str(count), ha="center", va="center", fontsize=8, color="white")
    size = len(order)
    ax.set(xlim=(-0.5, size - 0.5), ylim=(size - 0.5, -0.5), aspect="equal")
    ax.set_xticks(range(size), order, rotation=60, ha="left")
    ax.set_yticks(range(size), [f"{room}  ({lines(room)} lines)" for room in order])
    ax.xaxis.tick_top()
    ax.tick_params(length=0)
    ax.grid(visible=False)
    for side in ax.spines.values():
        side.set_visible(False)
    ax.set_ylabel("imports ...")
    ax.set_xlabel("... these rooms (number of import statements)")
    figure.savefig(Path(folder) / "rooms.png", dpi=150)


def lines(room):
    return sum(file.read_text(encoding="utf-8").count("\n") for file in files_of(room))


if __name__ == "__main__":
    draw(sys.argv[1])

"""Sphinx: reads Markdown through MyST, docstrings through autodoc, and runs the examples for the gallery."""

import os
import re
import subprocess
import sys
from importlib.metadata import version as installed
from itertools import pairwise
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
GALLERY = Path(__file__).parent / "gallery"  # generated, never committed

project = "hscrf"
author = "The hscrf developers"
release = version = installed("hscrf")
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.mathjax", "sphinx.ext.viewcode"]
myst_enable_extensions = ["dollarmath", "amsmath"]
myst_heading_anchors = 3
autodoc_default_options = {
    "members": True,
    "member-order": "bysource",
    "exclude-members": "get_params, set_params",  # scikit-learn's, not ours
}
autodoc_typehints = "none"
html_theme = "furo"
html_title = "hscrf"
exclude_patterns = ["_build", "rooms.py", "screenshots.py"]


def write_gallery(app):
    """A page for each example: its docstring, its pictures, what it prints, and its code."""
    GALLERY.mkdir(exist_ok=True)
    scripts = sorted((ROOT / "examples").glob("*.py"))
    for script in scripts:
        folder = GALLERY / script.stem
        folder.mkdir(exist_ok=True)
        environment = {**os.environ, "MPLBACKEND": "Agg"}
        command = [sys.executable, str(script), str(folder)]
        printed = subprocess.run(
            command, env=environment, cwd=folder, check=True, capture_output=True, text=True
        ).stdout
        page = gallery_page(script.read_text(encoding="utf-8"), sorted(folder.glob("*.png")), printed)
        (GALLERY / f"{script.stem}.md").write_text(page, encoding="utf-8")
    for pictures in ("rooms.py", "screenshots.py"):
        subprocess.run([sys.executable, str(ROOT / "docs" / pictures), str(GALLERY)], check=True)
    entries = "\n".join(script.stem for script in scripts)
    index = (
        f"# Gallery\n\nEvery script of `examples/`, run when this site was built.\n\n```{{toctree}}\n{entries}\n```\n"
    )
    (GALLERY / "index.md").write_text(index, encoding="utf-8")


def gallery_page(source, pictures, printed):
    _, docstring, code = source.split('"""', 2)
    title, _, text = docstring.partition("\n")
    images = "\n\n".join(f"![{picture.stem}]({picture.parent.name}/{picture.name})" for picture in pictures)
    output = f"It prints\n\n```text\n{printed.rstrip()}\n```\n\n" if printed.strip() else ""
    heading = title.split(":")[0].rstrip(".")
    return f"# {heading}\n\n{title}\n{text}\n\n{images}\n\n{output}```python\n{code.strip()}\n```\n"


def tidy_docstring(app, what, name, obj, options, lines):
    """Underlined headings become bold, ``name : text`` below them a list; ``|w|`` is a magnitude, no substitution."""
    tidy, listing = [], False
    for line, after in pairwise([*lines, ""]):
        if set(after) == {"-"} and len(after) == len(line):
            tidy += [f"**{line}**", ""]
            listing = True
        elif set(line) == {"-"}:
            continue
        else:
            listing = listing and not line.startswith(">>>")
            if listing:
                line = re.sub(r"^(\w[\w, ]*) : ", r"* ``\1``: ", line)
                line = re.sub(r"(?<![`\w])(\w+_)(?![`\w])", r"``\1``", line)
            tidy.append(re.sub(r"(?<!`)\|(\w+)\|", r"\\|\1\\|", line))
    lines[:] = tidy


def setup(app):
    app.connect("builder-inited", write_gallery)
    app.connect("autodoc-process-docstring", tidy_docstring)

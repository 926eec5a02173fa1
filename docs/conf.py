"""Sphinx: reads Markdown through MyST, docstrings through numpydoc, and runs the examples for the gallery."""

import re
import subprocess
import sys
from importlib.metadata import version as installed
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
GALLERY = Path(__file__).parent / "gallery"  # generated, never committed
sys.path.insert(0, str(Path(__file__).parent / "extensions"))

import ordering  # noqa: E402

project = "hscrf"
author = copyright = "The hscrf developers"
release = version = installed("hscrf")
extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.viewcode",
    "numpydoc",
    "sphinx_gallery.gen_gallery",
    "mathml",  # ours, in docs/extensions
    "commands",  # ours
]
exclude_patterns = ["_build", "extensions", "gallery/**.ipynb", "gallery/**.py"]
nitpicky = False

myst_enable_extensions = ["dollarmath", "amsmath", "colon_fence", "deflist"]
myst_heading_anchors = 4
suppress_warnings = ["config.cache"]  # the sort key of the gallery is a class

autodoc_default_options = {
    "members": True,
    "member-order": "bysource",
}
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
python_use_unqualified_type_names = True
python_maximum_signature_line_length = 88
numpydoc_show_class_members = False
numpydoc_xref_param_type = False

sphinx_gallery_conf = {
    "examples_dirs": str(ROOT / "examples"),
    "gallery_dirs": "gallery",
    "filename_pattern": ordering.runnable(),
    "ignore_pattern": r"neural",
    "within_subsection_order": ordering.Order,
    "capture_repr": (),
    "show_memory": False,
    "show_signature": False,
    "download_all_examples": False,
    "abort_on_example_error": True,
    "remove_config_comments": True,
    "min_reported_time": 1000,
    "plot_gallery": "True",
}

html_theme = "furo"
html_title = "hscrf"
html_static_path = ["static"]
html_css_files = ["site.css"]


def draw_pictures(app):
    """The pictures of the architecture and of the studio, which their pages read from ``gallery``.

    Those of the studio take minutes, so they are taken only if one is missing; ``make clean`` removes them.
    """
    GALLERY.mkdir(exist_ok=True)
    folder = str(ROOT / "docs")
    subprocess.run([sys.executable, f"{folder}/rooms.py", str(GALLERY)], check=True)
    sys.path.insert(0, folder)
    import screenshots

    if all((GALLERY / f"{name}.png").exists() for name in screenshots.PICTURES):
        return
    if subprocess.run([sys.executable, f"{folder}/screenshots.py", str(GALLERY)], check=False).returncode:
        screenshots.write_blanks(GALLERY)


def tidy_docstring(app, what, name, obj, options, lines):
    """``|w|`` is a magnitude, no substitution; a name that ends in an underscore is no reference."""
    for k, line in enumerate(lines):
        if re.match(r"\w+(, \w+)*( :|$)", line):  # the name of a parameter or an attribute
            continue
        if not line.lstrip().startswith(">>>"):
            line = re.sub(r"(?<![`\w])(\w*[a-z]_)(?![`\w])", r"``\1``", line)
            lines[k] = re.sub(r"(?<!`)\|(\w+)\|", r"\\|\1\\|", line)


INHERITED = re.compile(r"get_params|set_params|get_metadata_routing|set_\w+_request")  # scikit-learn's
CONTRACT = set(  # what other parts of the package call on a model (src/hscrf/estimator/contract.py); not for users
    [
        "ask",
        "ask_possible",
        "ask_posteriors",
        "asked_features",
        "check_fitted",
        "content",
        "found_scheme",
        "label",
        "new_frame",
        "pack_to_score",
        "read_evidence",
        "restore",
        "specifications",
        "weighted_blocks",
    ]
)


def skip_members(app, what, name, obj, skip, options):
    """Leave out what scikit-learn gives to every estimator, and the contract between models and the package."""
    return True if INHERITED.fullmatch(name) or name in CONTRACT else None


def setup(app):
    app.connect("autodoc-skip-member", skip_members)
    app.connect("builder-inited", draw_pictures)
    app.connect("autodoc-process-docstring", tidy_docstring, priority=400)

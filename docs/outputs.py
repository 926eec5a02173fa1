"""Runs the Python blocks of pages and writes what they print into the pages: ``python docs/outputs.py PAGE ...``.

A block ``text`` after a block ``python`` is replaced by what the block prints. A comment between them states the
tolerance of the tests for numbers with a decimal point or a percent sign. Pictures that the blocks save, and that the
page shows from ``images/``, are copied there. The tests run the same blocks and compare (tests/test_docs.py).
"""

import contextlib
import io
import os
import re
import shutil
import sys
import tempfile
from pathlib import Path

IMAGES = Path(__file__).resolve().parent / "images"
BLOCK = re.compile(
    r"^```python\n(?P<code>.*?)^```\n(?:(?P<between>\n(?:<!-- [^\n]* -->\n\n)?)```text\n(?P<shown>.*?)^```\n)?",
    re.MULTILINE | re.DOTALL,
)


def refresh(page):
    """Run a page in an empty folder; rewrite its outputs and copy its pictures."""
    import matplotlib

    matplotlib.use("agg")
    text = page.read_text(encoding="utf-8")
    space = {"__name__": "__main__"}

    def replaced(match):
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(match["code"], str(page), "exec"), space)
        if match["shown"] is None:
            return match[0]
        output = "\n".join(line.rstrip() for line in printed.getvalue().strip().splitlines())
        return f"```python\n{match['code']}```\n{match['between']}```text\n{output}\n```\n"

    home = Path.cwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            page.write_text(BLOCK.sub(replaced, text), encoding="utf-8")
        finally:
            os.chdir(home)
        for picture in Path(folder).glob("*.png"):
            if f"images/{picture.name}" in text:
                shutil.copy(picture, IMAGES)


if __name__ == "__main__":
    for name in sys.argv[1:]:
        refresh(Path(name).resolve())

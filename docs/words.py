"""Counts what the project's style forbids in pages and docstrings.

    python docs/words.py README.md docs          # pages: banned phrases, sentences of more than 30 words
    python docs/words.py --docstrings            # public names: the same, and those without sections

Prints each place and a summary. The exit code is 1 if a page has a banned phrase.
"""

import argparse
import inspect
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LONGEST = 30  # words of a sentence
BANNED = [
    r"what cannot be told is told",
    r"\bnobody\b",
    r"a word before what will be dear",
    r"who has whom",
    r"\bsurely\b",
    r"\bbeside\b",
    r"\bend(s|ed)? with a sentence",
]
PENDING = {"studio.md", "architecture.md", "results.md", "results-notes.md"}  # pages that are being rewritten elsewhere
FENCE = re.compile(r"^(```+|:::+).*?^\1[ ]*$", re.MULTILINE | re.DOTALL)
MODULES = ("datasets", "errors", "inference", "io", "metrics", "plots", "scale", "stacking", "streaming", "studio")


def prose(text):
    """The running text of a Markdown page: no code, tables, formulas, headings, images or link targets."""
    text = re.sub(r"\A---\n.*?\n---\n", "", text, flags=re.DOTALL)
    text = re.sub(r"<!--.*?-->", "", FENCE.sub("\n\n", text), flags=re.DOTALL)
    text = re.sub(r"\$\$.*?\$\$", "\n\n", text, flags=re.DOTALL)
    text = re.sub(r"\$[^$\n]+\$", "x", text)
    text = re.sub(r"!\[[^\]]*\]\([^)]*\)", "", text)
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", text)
    text = re.sub(r"`[^`]*`", "x", text)
    lines = ["" if line.lstrip().startswith(("|", "#", "    ")) else line for line in text.splitlines()]
    return "\n".join(lines)


def sentences(text):
    """Sentences of running text; a list item or a paragraph ends one."""
    for paragraph in re.split(r"\n\s*\n|\n(?=\s*(?:[-*]|\d+\.)\s)", text):
        flat = " ".join(paragraph.split())
        yield from (found for found in re.split(r"(?<=[.!?])[)\"*]*\s+(?=[A-Z0-9\"'(*`x])", flat) if found.strip())


def long_sentences(text):
    """All sentences, and those of more than LONGEST words."""
    found = list(sentences(text))
    return found, [one for one in found if len(re.findall(r"[^\W\d_][\w'’-]*", one)) > LONGEST]


def banned(text):
    """The banned phrases of a text, with their lines."""
    flat = FENCE.sub(lambda match: "\n" * match[0].count("\n"), text)
    for pattern in BANNED:
        for match in re.finditer(pattern.replace(" ", r"\s+"), flat, re.IGNORECASE):
            yield flat.count("\n", 0, match.start()) + 1, match[0]


def pages(names):
    """Markdown files of the names: files, or the top of folders; pages that others rewrite are left out of folders."""
    for name in names:
        path = Path(name)
        if path.is_dir():
            yield from (page for page in sorted(path.glob("*.md")) if page.name not in PENDING)
        else:
            yield path


def public_objects():
    """Name and object of everything public: of hscrf, of its public modules, and the methods of their classes."""
    import importlib

    import hscrf

    for module in (hscrf, *(importlib.import_module(f"hscrf.{name}") for name in MODULES)):
        for name in getattr(module, "__all__", ()):
            thing = getattr(module, name)
            yield f"{module.__name__}.{name}", thing
            if inspect.isclass(thing):
                for method, found in vars(thing).items():
                    if not method.startswith("_") and inspect.isfunction(found):
                        yield f"{module.__name__}.{name}.{method}", found


def running_text(text):
    """A docstring without examples and without the lines that head sections and fields of numpydoc."""
    text = re.sub(r"^\s*>>>.*?(?=\n\s*\n|\Z)", "", text, flags=re.MULTILINE | re.DOTALL)
    return re.sub(r"^(\w[\w ]*\n-{3,}|[\w*, ]+ : .*)$", "\n", text, flags=re.MULTILINE)


def lacks(thing):
    """Sections that the docstring of a public name should have and has not."""
    text = inspect.getdoc(thing) or ""
    target = thing.__init__ if inspect.isclass(thing) else thing
    try:
        signature = inspect.signature(target)
    except (TypeError, ValueError):
        return []
    names = [name for name in signature.parameters if name not in ("self", "cls", "args", "kwargs")]
    missing = []
    if names and not re.search(r"^(Parameters|Attributes)\n-{3,}", text, re.MULTILINE):
        missing.append("Parameters")
    returns = signature.return_annotation not in (None, "None", inspect.Signature.empty)
    if not inspect.isclass(thing) and returns and not re.search(r"^(Returns|Yields)\n-{3,}", text, re.MULTILINE):
        missing.append("Returns")
    return missing


def report_pages(names):
    counts = [0, 0, 0]
    for page in pages(names):
        text = page.read_text(encoding="utf-8")
        for line, phrase in banned(text):
            counts[0] += 1
            print(f"{page}:{line}: banned: {phrase}")
        every, long = long_sentences(prose(text))
        counts[1] += len(every)
        counts[2] += len(long)
        for one in long:
            print(f"{page}: long: {one[:110]}")
    share = counts[2] / max(counts[1], 1)
    print(
        f"pages: {counts[0]} banned phrases; {counts[2]} of {counts[1]} sentences above {LONGEST} words ({share:.1%})"
    )
    return counts[0]


def report_docstrings():
    seen, incomplete, phrases, every, long = set(), 0, 0, 0, 0
    for name, thing in public_objects():
        if id(thing) in seen:
            continue
        seen.add(id(thing))
        missing = lacks(thing)
        incomplete += bool(missing)
        if missing:
            print(f"{name}: without {' and '.join(missing)}")
        text = inspect.getdoc(thing) or ""
        for _, phrase in banned(text):
            phrases += 1
            print(f"{name}: banned: {phrase}")
        found, lengthy = long_sentences(prose(running_text(text)))
        every += len(found)
        long += len(lengthy)
    print(
        f"docstrings: {len(seen)} public names, {incomplete} without Parameters or Returns; {phrases} banned phrases; "
        f"{long} of {every} sentences have more than {LONGEST} words ({long / max(every, 1):.1%})"
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pages", nargs="*", help="Markdown files, or folders of them")
    parser.add_argument("--docstrings", action="store_true", help="docstrings of the public names too")
    options = parser.parse_args()
    if options.docstrings:
        report_docstrings()
    sys.exit(1 if options.pages and report_pages(options.pages) else 0)

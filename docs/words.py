"""Counts what the project's style forbids in pages, docstrings and source files.

    python docs/words.py README.md docs          # pages: banned phrases, sentences of more than 30 words
    python docs/words.py --docstrings            # public names: the same, and those without sections
    python docs/words.py --source                # files of the package: banned phrases, also in comments and messages

Prints each place and a summary. The exit code is 1 if there is a banned phrase, or a public name without a section.
"""

import argparse
import ast
import functools
import importlib
import importlib.util
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
    r"\bworth a word\b",
    r"\bgoes astray\b",
    r"\boutlast whom\b",
    r"\bof which not all is known\b",
    r"\bone in so many\b",
    r"\bfor good\b",
    r"\bwhat (was|is) asked for\b",
    r"\bwhat is known of\b",
    r"\bmakes no sense\b",
    r"\b(knows|know) nothing of\b",
    r"\bmodel(s)? (says|wants|asks|speaks)\b",
    r"\b(a|one) (document|sequence|step|row|line|token|file|segment) a (document|sequence|step|row|line|token|file)\b",
    r"\b(steps|samples|rows|words|tokens) a (second|line|step)\b",
]
PENDING = {"results.md", "results-notes.md"}  # pages that are being rewritten elsewhere
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


def description(text):
    """The running text of a docstring: no examples, code, headings of sections or names and types of parameters."""
    text = re.sub(r"^\s*(>>>|\.\.\.).*$", "", text, flags=re.MULTILINE)
    text = re.sub(r"^\S.*\n-{3,}$", "\n", text, flags=re.MULTILINE)
    text = re.sub(r"^(\S.*(?=\n {4}\S)|\w[\w, ]* : .*)$", "\n", text, flags=re.MULTILINE)
    return prose(re.sub(r"``[^`]*``", "x", text))


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
    import hscrf

    names = (*MODULES, "torch") if importlib.util.find_spec("torch") else MODULES
    for module in (hscrf, *(importlib.import_module(f"hscrf.{name}") for name in names)):
        for name in getattr(module, "__all__", ()):
            thing = getattr(module, name)
            yield f"{module.__name__}.{name}", thing
            if inspect.isclass(thing):
                yield from members(f"{module.__name__}.{name}", thing)


def members(name, cls):
    """Name and object of the methods and properties of a class that the reference shows.

    These are the own ones and, of estimators, also inherited ones, without the contract between models and the package.
    """
    inherits, contract = hasattr(cls, "get_params"), contract_of_models()
    for member in dir(cls) if inherits else vars(cls):
        owner = next((base for base in cls.__mro__ if member in vars(base)), None)
        if member.startswith("_") or member in contract or owner is None or not owner.__module__.startswith("hscrf"):
            continue
        found = vars(owner)[member]
        found = found.__func__ if isinstance(found, classmethod | staticmethod) else found
        if inspect.isfunction(found) or isinstance(found, property | functools.cached_property):
            yield f"{name}.{member}", found


@functools.cache
def contract_of_models():
    """The methods that the reference leaves out: CONTRACT of docs/conf.py."""
    tree = ast.parse((ROOT / "docs" / "conf.py").read_text(encoding="utf-8"))
    named = {node.targets[0].id: node.value for node in tree.body if isinstance(node, ast.Assign)}
    return frozenset(ast.literal_eval(named["CONTRACT"].args[0]))


def lacks(thing):
    """Sections that the docstring of a public name should have and has not."""
    text = inspect.getdoc(thing) or ""
    if not text:
        return ["a docstring"]
    if isinstance(thing, property | functools.cached_property):
        return []
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


def examined():
    """Each public object once, with the first of its names."""
    found = {}
    for name, thing in public_objects():
        found.setdefault(id(thing), (name, thing))
    return list(found.values())


def report_docstrings():
    things, incomplete, phrases, every, long = examined(), 0, 0, 0, 0
    for name, thing in things:
        missing = lacks(thing)
        incomplete += bool(missing)
        if missing:
            print(f"{name}: without {' and '.join(missing)}")
        text = inspect.getdoc(thing) or ""
        for _, phrase in banned(text):
            phrases += 1
            print(f"{name}: banned: {phrase}")
        found, lengthy = long_sentences(description(text))
        every += len(found)
        long += len(lengthy)
        for one in lengthy:
            print(f"{name}: long: {one[:110]}")
    print(
        f"docstrings: {len(things)} public names, {incomplete} without Parameters or Returns; "
        f"{phrases} banned phrases; "
        f"{long} of {every} sentences have more than {LONGEST} words ({long / max(every, 1):.1%})"
    )
    return incomplete + phrases


def report_source():
    files, count = sorted((ROOT / "src" / "hscrf").rglob("*.py")), 0
    for file in files:
        for line, phrase in banned(file.read_text(encoding="utf-8")):
            count += 1
            print(f"{file.relative_to(ROOT)}:{line}: banned: {phrase}")
    print(f"source: {len(files)} files, {count} banned phrases")
    return count


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pages", nargs="*", help="Markdown files, or folders of them")
    parser.add_argument("--docstrings", action="store_true", help="docstrings of the public names too")
    parser.add_argument("--source", action="store_true", help="all files of the package too")
    options = parser.parse_args()
    faults = report_docstrings() if options.docstrings else 0
    faults += report_source() if options.source else 0
    faults += report_pages(options.pages) if options.pages else 0
    sys.exit(1 if faults else 0)

"""Build sdist and wheel, and try them as a stranger would: `make dist-check`.

Checks, in this order: twine and check-wheel-contents; the metadata (licence, keywords, classifiers, addresses, entry
points, one version in all places); what the sdist holds; the wheel in a clean environment without the checkout; and an
install without a compiler, which must warn once and run the quickstart.

    python packaging/check_dist.py [--folder build/dist] [--python python3.10]
"""

from __future__ import annotations

import argparse
import email
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
NEEDED = (
    "LICENSE",
    "README.md",
    "CHANGELOG.md",
    "CITATION.cff",
    "Makefile",
    "core/CMakeLists.txt",
    "tests/enumeration.py",
)
COMPILERS = ("cc", "c++", "gcc", "g++", "clang", "clang++")
WARNING = "hscrf runs without its compiled core"


def run(*command: object, **options: object) -> str:
    """The output of a command; its end with an error ends this script."""
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False, **options)  # type: ignore[call-overload]
    if done.returncode:
        sys.exit(f"{' '.join(map(str, command))} failed:\n{done.stdout}\n{done.stderr}")
    return str(done.stdout + done.stderr)


def check(holds: object, what: str) -> None:
    print(f"{'ok  ' if holds else 'FAIL'} {what}", flush=True)
    if not holds:
        sys.exit(1)


def environment(python: str, folder: Path) -> Path:
    """A new virtual environment; its interpreter."""
    run(python, "-m", "venv", "--clear", folder)
    return folder / "bin" / "python"


def install(python: Path, *what: object, **options: object) -> str:
    return run(python, "-m", "pip", "install", "--disable-pip-version-check", *what, **options)


def without_compilers(folder: Path) -> str:
    """A PATH with the programs of this one but for compilers."""
    folder.mkdir()
    for place in os.environ["PATH"].split(os.pathsep):
        for program in sorted(Path(place).iterdir()) if Path(place).is_dir() else ():
            compiler = re.fullmatch(r"(.*-)?(cc|c\+\+|gcc|g\+\+|clang|clang\+\+|c89|c99)(-[\d.]+)?", program.name)
            if not compiler and not (folder / program.name).exists():
                (folder / program.name).symlink_to(program)
    return str(folder)


def example(page: str = "README.md") -> str:
    """The first two Python blocks of a page."""
    text = (ROOT / page).read_text(encoding="utf-8")
    return "\n".join(re.findall(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL)[:2])


def check_metadata(sdist: Path, wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        [path] = [name for name in names if name.endswith(".dist-info/METADATA")]
        data = email.message_from_bytes(archive.read(path))
        entries = archive.read(path.replace("METADATA", "entry_points.txt")).decode()
    version = data["Version"]
    check(data["License-Expression"] == "BSD-3-Clause", f"licence is {data['License-Expression']}")
    check(any(name.endswith("licenses/LICENSE") for name in names), "the wheel holds the licence")
    check(data["Keywords"] and len(data["Keywords"].split(",")) >= 5, f"keywords: {data['Keywords']}")
    classifiers = data.get_all("Classifier", [])
    check(
        any("Python :: 3.10" in one for one in classifiers) and len(classifiers) >= 10,
        f"{len(classifiers)} classifiers",
    )
    check(data.get_all("Project-URL"), f"addresses: {data.get_all('Project-URL')}")
    check("hscrf = hscrf.cli:main" in entries, "the command hscrf is an entry point")
    check(data["Requires-Python"] == ">=3.10", f"Python {data['Requires-Python']}")
    check(data["Description-Content-Type"] == "text/markdown" and data.get_payload(), "the README is the description")
    check("hscrf/py.typed" in names and "hscrf/datasets/author_names.txt" in names, "types and lists are in the wheel")
    check(any(re.match(r"hscrf/_core\..*(so|pyd)$", name) for name in names), "the compiled core is in the wheel")
    check(not any(name.split("/")[0] in ("tests", "core") for name in names), "tests and sources are not in the wheel")
    changes = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    check(f"## [{version}]" in changes, f"CHANGELOG.md has a section {version}")
    with tarfile.open(sdist) as archive:
        held = {name.partition("/")[2] for name in archive.getnames()}
    missing = [name for name in NEEDED if name not in held]
    check(not missing, f"the sdist holds sources, tests and documents{f' but {missing}' if missing else ''}")
    large = [name for name in held if name.endswith((".npz", ".so", ".sqlite"))]
    check(not large, f"the sdist holds nothing built{f' but {large}' if large else ''}")


def try_wheel(wheel: Path, python: str, folder: Path) -> None:
    """Install the wheel alone and use it far from the checkout."""
    inside = environment(python, folder / "clean")
    install(inside, f"{wheel}[data]")  # as the README says: its example downloads data where HSCRF_DATA is not set
    alone = {**os.environ, "PYTHONPATH": ""}
    place = run(inside, "-c", "import hscrf; print(hscrf.__file__)", cwd=folder, env=alone)
    check("clean" in place, "hscrf is imported from the new environment")
    told = run(inside, "-m", "hscrf", "--version", cwd=folder, env=alone)
    check("compiled core, instruction set" in told, told.strip().replace("\n", ", "))
    run(inside, "-W", "error", "-c", example(), cwd=folder, env=alone)
    run(folder / "clean" / "bin" / "hscrf", "demo", "--write", folder / "example", cwd=folder, env=alone)
    train = folder / "example" / "train.txt"
    run(
        folder / "clean/bin/hscrf",
        "fit",
        train,
        "-m",
        folder / "m.hscrf",
        "--levels",
        "chunk=3,pos=2",
        cwd=folder,
        env=alone,
    )
    check((folder / "m.hscrf").is_file(), "the README's example and `hscrf fit` run in it")


def try_without_compiler(sdist: Path, python: str, folder: Path) -> None:
    """Install from source where no compiler is to be found."""
    inside = environment(python, folder / "bare")
    path = without_compilers(folder / "path")
    bare = {**os.environ, "PATH": path, "PYTHONPATH": "", "HSCRF_ENGINE": ""}
    for name in ("CC", "CXX"):
        bare.pop(name, None)
    found = [name for name in COMPILERS if shutil.which(name, path=path)]
    check(not found, "there is no compiler")
    install(inside, "--no-binary", "hscrf", sdist, env=bare)
    told = run(inside, "-c", "import hscrf\nhscrf.show_versions()\nimport hscrf.engine", cwd=folder, env=bare)
    check(told.count(WARNING) == 1, "without a compiler it installs, and warns once")
    run(inside, "-c", example("docs/quickstart.md"), cwd=folder, env=bare)  # that of the README takes minutes in NumPy
    check(True, "the quickstart runs without the core")


def main() -> None:
    parser = argparse.ArgumentParser(description="Build the distributions and try them.")
    parser.add_argument("--folder", type=Path, default=ROOT / "build" / "dist", help="where to put them")
    parser.add_argument("--python", default=sys.executable, help="interpreter of the environments (default: this one)")
    given = parser.parse_args()
    shutil.rmtree(given.folder, ignore_errors=True)
    run(sys.executable, "-m", "build", "--outdir", given.folder, ROOT)
    [sdist], [wheel] = given.folder.glob("*.tar.gz"), given.folder.glob("*.whl")
    print(f"{sdist.name} ({sdist.stat().st_size >> 10} KB), {wheel.name} ({wheel.stat().st_size >> 10} KB)")
    run(sys.executable, "-m", "twine", "check", "--strict", sdist, wheel)
    check(True, "twine check --strict")
    run(sys.executable, "-m", "check_wheel_contents", wheel)
    check(True, "check-wheel-contents")
    check_metadata(sdist, wheel)
    with tempfile.TemporaryDirectory() as folder:
        try_wheel(wheel, given.python, Path(folder))
        try_without_compiler(sdist, given.python, Path(folder))
    print("both distributions can be published")


if __name__ == "__main__":
    main()

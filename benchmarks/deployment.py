"""What a model costs a process that only predicts: start, memory, and the time of short requests.

    python benchmarks/deployment.py [--rounds 5]

Each line is the best of some new processes. The model labels phrases and tags of sentences that the script makes up.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

PROCESS = """
import json, resource, sys, time
begin = time.process_time()
import hscrf
imported = time.process_time()
model = hscrf.load(sys.argv[1])
loaded = time.process_time()
sentence = [["w=the"], ["w=cat"], ["w=sees"], ["w=a"], ["w=dog"]]
model.predict([sentence])
first = time.process_time()
for _ in range(500):
    model.predict([sentence])
told = {
    "import": imported - begin,
    "load": loaded - imported,
    "first": first - loaded,
    "request": (time.process_time() - first) / 500,
    "memory": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
}
print(json.dumps(told))
"""


def make_model(path: Path, words: Path) -> None:
    """A model of the shell, and a file for it."""
    text = "the D B-NP\ncat N I-NP\nsees V B-VP\na D B-NP\ndog N I-NP\n\n"
    train = path.parent / "train.txt"
    train.write_text(text * 20, encoding="utf-8")
    words.write_text("the\ndog\nsees\n\n", encoding="utf-8")
    command = [sys.executable, "-m", "hscrf", "fit", str(train), "-m", str(path), "--levels", "chunk=3,pos=2"]
    subprocess.run(command, check=True, capture_output=True)


def measured(model: Path, options: dict[str, str]) -> dict[str, float]:
    """What one new process tells of itself."""
    done = subprocess.run(
        [sys.executable, "-c", PROCESS, str(model)], check=True, capture_output=True, text=True, env=options
    )
    return dict(json.loads(done.stdout))


def shell_process(model: Path, words: Path, options: dict[str, str]) -> tuple[float, float]:
    """CPU seconds and memory in MB of `hscrf predict` for a small file."""
    with open(os.devnull, "w") as nothing:
        command = [sys.executable, "-m", "hscrf", "predict", str(words), "-m", str(model)]
        process = subprocess.Popen(command, stdout=nothing, env=options)
        _, status, used = os.wait4(process.pid, 0)
    if status:
        sys.exit("hscrf predict failed")
    return used.ru_utime + used.ru_stime, used.ru_maxrss / 1024


def main() -> None:
    parser = argparse.ArgumentParser(description="What a model costs a process that only predicts.")
    parser.add_argument("--rounds", type=int, default=5, help="new processes of each kind (default: 5)")
    rounds = parser.parse_args().rounds
    options = {**os.environ, "OMP_NUM_THREADS": "1"}
    with tempfile.TemporaryDirectory() as folder:
        model, words = Path(folder, "model.hscrf"), Path(folder, "words.txt")
        make_model(model, words)
        found = [measured(model, options) for _ in range(rounds)]
        shell = [shell_process(model, words, options) for _ in range(rounds)]
    best = {name: min(one[name] for one in found) for name in found[0]}
    print("| a process that only predicts | |\n|---|--:|")
    print(f"| `import hscrf` | {best['import'] * 1000:.0f} ms |")
    print(f"| `hscrf.load` of a small model | {best['load']:.1f} s |")
    print(f"| its first prediction | {best['first'] * 1000:.0f} ms |")
    print(f"| each further prediction, 5 steps | {best['request'] * 1000:.2f} ms |")
    print(f"| memory | {best['memory']:.0f} MB |")
    print(f"| `hscrf predict` of a small file, in all | {min(used for used, _ in shell):.1f} s |")
    print(f"| its memory | {min(memory for _, memory in shell):.0f} MB |")


if __name__ == "__main__":
    main()

"""The nested layer of hscrf.torch against other layers for PyTorch, in turns on one thread.

    python benchmarks/neural.py [--rounds 15] [--only NAME ...] [--lengths] [--page]

Loss with gradient, and decoding, in CPU time. Others are measured where they are installed: pytorch-crf; torch-struct
and flash-semicrf by ``pip install --no-deps``. Times are the best of the rounds, in which all take turns. ``--lengths``
measures time and memory of a training step against the length of the sequence instead. ``--page`` writes the table into
docs/neural.md.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

import hscrf
from hscrf.torch import CRF, BiLSTM, ColumnEmbedding, Encoder

PAGE = Path(__file__).resolve().parents[1] / "docs" / "neural.md"
LONGEST = 2.0  # seconds after which a call is not measured again
TURN = 0.01  # least seconds of a turn
Calls = dict[str, Callable[[], Any]]


def states(size: int, name: str = "s") -> list[str]:
    return [f"{name}{k}" for k in range(size)]


def learn(tensor: Any, loss: Callable[[], Any]) -> Callable[[], Any]:
    def call() -> None:
        tensor.grad = None
        loss().backward()

    return call


def chain(rows: int, width: int, size: int = 22) -> dict[str, Calls]:
    """A chain CRF: pytorch-crf and torch-struct."""
    torch.manual_seed(0)
    crf = CRF(hscrf.Topology({"tag": states(size)}))
    scores, tags = torch.randn(rows, width, size, requires_grad=True), torch.randint(size, (rows, width))
    loss: Calls = {"hscrf": learn(scores, lambda: crf(scores, tags))}
    decode: Calls = {"hscrf": lambda: crf.decode(scores)}
    if importlib.util.find_spec("torchcrf"):
        from torchcrf import CRF as Other

        other = Other(size, batch_first=True)
        loss["pytorch-crf"] = learn(scores, lambda: -other(scores, tags, reduction="mean"))
        decode["pytorch-crf"] = lambda: other.decode(scores)
    if importlib.util.find_spec("torch_struct"):
        from torch_struct import LinearChainCRF

        def distribution() -> Any:
            pairs = scores[:, 1:, :, None] + torch.zeros(size, size)
            first = scores[:, :1, None, :] * torch.eye(width - 1, 1)[None, :, :, None]
            return LinearChainCRF(pairs + first)

        parts = LinearChainCRF.struct.to_parts(tags, size)
        loss["torch-struct"] = learn(scores, lambda: -distribution().log_prob(parts.float()).mean())
        decode["torch-struct"] = lambda: distribution().argmax
    return {"loss": loss, "decode": decode}


def semi_markov(rows: int, width: int, longest: int, size: int) -> dict[str, Calls]:
    """Segments of limited length: torch-struct and flash-semicrf, all sequences of the same length."""
    torch.manual_seed(0)
    topology = hscrf.Topology({"part": states(size)}, max_duration={"part": longest})
    crf = CRF(topology, durations=["part"])
    scores = torch.randn(rows, width, size, requires_grad=True)
    labels = [y[0] for y in crf.sample(scores)]
    loss: Calls = {"hscrf": learn(scores, lambda: crf(scores, labels))}
    decode: Calls = {"hscrf": lambda: crf.decode(scores)}
    if importlib.util.find_spec("torch_struct") and width <= 50:  # its matrices of segments take gigabytes beyond
        from torch_struct import SemiMarkovCRF

        def potentials() -> Any:
            sums = torch.cat([torch.zeros(rows, 1, size), scores.cumsum(1)], dim=1)
            spans = []
            for k in range(1, longest + 1):
                span = sums[:, k:] - sums[:, :-k]
                spans.append(torch.nn.functional.pad(span, (0, 0, 0, width - span.shape[1]), value=-1e5))
            table = torch.stack(spans, dim=2)  # (B, T, K, C)
            empty = torch.full((rows, width, 1, size), -1e5)
            return torch.cat([empty, table], dim=2)[..., :, None] + torch.zeros(size)

        loss["torch-struct"] = learn(scores, lambda: SemiMarkovCRF(potentials()).partition.mean())
        decode["torch-struct"] = lambda: SemiMarkovCRF(potentials()).argmax
    if importlib.util.find_spec("flash_semicrf"):
        sums, best = flash(rows, width, longest, size, scores, "log"), flash(rows, width, longest, size, scores, "max")
        if sums is not None and best is not None:
            loss["flash-semicrf"], decode["flash-semicrf"] = learn(scores, sums), torch.no_grad()(best)
    return {"loss": loss, "decode": decode}


def flash(rows: int, width: int, longest: int, size: int, scores: Any, semiring: str) -> Callable[[], Any] | None:
    """Log Z or the best score, without its path, by the streaming form of flash-semicrf.

    None if its interface is not the one that this file knows.
    """
    import flash_semicrf

    forward = getattr(flash_semicrf, "semi_crf_streaming_forward", None)
    if forward is None:
        print("flash-semicrf has no semi_crf_streaming_forward: left out", file=sys.stderr)
        return None
    transition, bias = torch.zeros(size, size), torch.zeros(longest, size)
    lengths = torch.full((rows,), width)

    def call() -> Any:
        sums = torch.cat([torch.zeros(rows, 1, size), scores.cumsum(1)], dim=1)
        return forward(sums, transition, bias, lengths, longest, semiring).mean()

    return call


def nested(rows: int, width: int) -> dict[str, Calls]:
    """Two levels of 12 and 44 states."""
    torch.manual_seed(0)
    crf = CRF(hscrf.Topology({"a": states(12, "a"), "b": states(44, "b")}), parts=("token", "start", "stop"))
    scores = torch.randn(rows, width, crf.size, requires_grad=True)
    labels = {"a": torch.randint(12, (rows, width)), "b": torch.randint(44, (rows, width))}
    return {
        "loss": {"hscrf": learn(scores, lambda: crf(scores, labels))},
        "decode": {"hscrf": lambda: crf.decode(scores)},
    }


def share(rows: int = 32, width: int = 25) -> dict[str, Calls]:
    """A training step of a tagger of words, of the sizes of the citations, and the layer alone: loss and gradient.

    Embeddings of 4,000 words (50) and a convolution over the 12 characters of each (30), a BiLSTM (2 x 100), Adam.
    """
    torch.manual_seed(0)
    children = {"a": {f"a{k}": states(30, "b")[3 * k : 3 * k + 9] for k in range(8)}}
    children["a"]["a7"] = states(30, "b")
    topology = hscrf.Topology({"a": states(8, "a"), "b": states(30, "b")}, children=children)
    crf = CRF(topology, parts=("token", "start", "stop"))
    embed = ColumnEmbedding({"word": 4000}, text="word", characters=80)
    encoder = Encoder(embed, BiLSTM(embed.size), crf.size)
    words = torch.randint(4000, (rows, width)) * torch.rand(rows, width).square()  # some words are frequent
    names, spelling = words.long(), torch.randint(1, 80, (4000, 12))
    inputs, lengths = {"names": names[..., None], "characters": spelling[names]}, torch.full((rows,), width)
    scores = torch.randn(rows, width, crf.size, requires_grad=True)
    labels = [y[0] for y in crf.sample(scores)]
    optimizer = torch.optim.Adam([*encoder.parameters(), *crf.parameters()])

    def step() -> None:
        optimizer.zero_grad()
        crf(encoder(inputs, lengths), labels).backward()
        optimizer.step()

    return {"loss": {"whole step": step, "hscrf": learn(scores, lambda: crf(scores, labels))}}


AIMS = {  # how many times as fast the layer should be, at least
    "pytorch-crf": 8,
    "torch-struct": 300,
    "flash-semicrf": 20,
    "whole step": 10,  # the layer is at most a tenth of a training step
}
MOST = {("nested 12 x 44, T = 50", "loss"): 15.0}  # milliseconds

CASES: dict[str, Callable[[], dict[str, Calls]]] = {
    "chain of 22, T = 50": lambda: chain(32, 50),
    "chain of 22, T = 500": lambda: chain(32, 500),
    "semi-Markov 4 states, 10 steps, T = 50": lambda: semi_markov(32, 50, 10, 4),
    "semi-Markov 3 states, 4 steps, T = 128, B = 4": lambda: semi_markov(4, 128, 4, 3),
    "semi-Markov 6 states, 12 steps, T = 512, B = 4": lambda: semi_markov(4, 512, 12, 6),
    "semi-Markov 12 states, 24 steps, T = 1024, B = 4": lambda: semi_markov(4, 1024, 24, 12),
    "nested 12 x 44, T = 50": lambda: nested(32, 50),
    "step of a BiLSTM tagger, 8 x 30 states, T = 25": share,
}


def measure(calls: Calls, rounds: int) -> dict[str, float]:
    """Milliseconds of CPU time of each call, the best of rounds in which all take turns; the slow ones have fewer.

    A turn of fast calls holds several of them, so that not each begins with caches that another system has filled.
    """
    best, spent = dict.fromkeys(calls, float("inf")), dict.fromkeys(calls, 0.0)
    for _ in range(rounds):
        for name, call in calls.items():
            turn = 0.0
            while turn < TURN and spent[name] < LONGEST:
                begin = time.process_time()
                call()
                taken = time.process_time() - begin
                best[name], spent[name], turn = min(best[name], 1e3 * taken), spent[name] + taken, turn + taken
    return best


def compare(rounds: int, only: list[str]) -> list[str]:
    """The lines of a table; aims that are missed are printed."""
    lines = ["| case | what | hscrf, ms | others, ms (times as long) |", "|---|---|--:|---|"]
    for name, make in CASES.items():
        if only and not any(word in name for word in only):
            continue
        for what, calls in make().items():
            for call in calls.values():
                call()  # plans, kernels and memory are made
            found = measure(calls, rounds)
            own = found.pop("hscrf")
            others = ", ".join(f"{other} {value:.1f} ({value / own:.1f})" for other, value in found.items())
            lines.append(f"| {name} | {what} | {own:.2f} | {others or '–'} |")
            print(lines[-1], flush=True)
            missed = [f"{AIMS[other]} times {other}" for other, value in found.items() if value < AIMS[other] * own]
            missed += [f"{most:g} ms" for case, most in MOST.items() if case == (name, what) and own > most]
            for aim in missed:
                print(f"    missed: {aim}", flush=True)
    return lines


STEP = """
import resource, time
import torch, hscrf
from hscrf.torch import CRF
torch.set_num_threads(1)
levels = {{"a": [f"a{{k}}" for k in range(4)], "b": [f"b{{k}}" for k in range(8)]}}
topology = hscrf.Topology(levels, max_duration={limits})
crf = CRF(topology, parts=("token", "start", "stop"), durations={durations})
scores = torch.randn(1, {steps}, crf.size, requires_grad=True)
labels = crf.decode(scores.detach())
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
best = 1e9
for _ in range(20):
    begin = time.process_time()
    crf(scores, labels).backward()
    best = min(best, time.process_time() - begin)
print(1e3 * best, (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024)
"""


def lengths() -> list[str]:
    """Lines of a table: time and memory of loss and gradient against the length, each in a process of its own."""
    kinds = {"no durations": ("None", "None"), "durations up to 50": ('{"a": 50}', '["a"]')}
    lines = ["| T | " + " | ".join(f"{kind}, ms | MB" for kind in kinds) + " |", "|--:|" + "--:|--:|" * len(kinds)]
    for steps in (100, 1000, 3000, 10000):
        cells = []
        for limits, durations in kinds.values():
            code = STEP.format(steps=steps, limits=limits, durations=durations)
            run = subprocess.run(
                [sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True, check=True
            )
            milliseconds, megabytes = map(float, run.stdout.split())
            cells += [f"{milliseconds:.1f}", f"{megabytes:.0f}"]
        lines.append(f"| {steps} | " + " | ".join(cells) + " |")
        print(lines[-1], flush=True)
    return lines


def write(name: str, lines: list[str]) -> None:
    """Replace the table between the two comments of this name in docs/neural.md."""
    first, last = f"<!-- {name} -->\n", f"<!-- /{name} -->"
    before, _, rest = PAGE.read_text(encoding="utf-8").partition(first)
    _, found, after = rest.partition(last)
    if not found:
        raise ValueError(f"{PAGE.name} has no {first.strip()} and {last} around a table")
    PAGE.write_text("\n".join([before + first, *lines, "", last + after]), encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--only", nargs="*", default=[])
    parser.add_argument("--lengths", action="store_true")
    parser.add_argument("--page", action="store_true", help="write the table into docs/neural.md")
    options = parser.parse_args()
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    print(json.dumps({"torch": torch.__version__, "cores": os.cpu_count()}))
    lines = lengths() if options.lengths else compare(options.rounds, options.only)
    if options.page:
        write("lengths" if options.lengths else "speed", lines)


if __name__ == "__main__":
    main()

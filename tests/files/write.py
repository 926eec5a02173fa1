"""Write the models and the checkpoint that every later version must open: one small file for each family.

    python tests/files/write.py 0.2

Run it once for a release that changes what files hold (RELEASING.md), and commit what it writes. Files that were
written before are never written again.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np

import hscrf
from hscrf import HHMM, HSCRF, LBFGS, ChainCRF, Duration, DynamicCRF, SemiCRF, Token, Trans

WORDS = [
    [["w=the"], ["w=old"], ["w=cat"], ["w=sleeps"]],
    [["w=a"], ["w=dog"], ["w=sees"], ["w=the"], ["w=cat"]],
    [["w=the"], ["w=dog"], ["w=sleeps"]],
]
TAGS = [["D", "J", "N", "V"], ["D", "N", "V", "D", "N"], ["D", "N", "V"]]
CHUNKS = [["B-NP", "I-NP", "I-NP", "B-VP"], ["B-NP", "I-NP", "B-VP", "B-NP", "I-NP"], ["B-NP", "I-NP", "B-VP"]]
NESTED = [{"chunk": chunk, "tag": tag} for chunk, tag in zip(CHUNKS, TAGS, strict=True)]
PLAIN = [{"chunk": [tag[2:] for tag in chunk], "tag": tag} for chunk, tag in zip(CHUNKS, TAGS, strict=True)]
NUMBERS = [np.random.default_rng(n).normal(size=(6, 2)).round(2) + [n, -n] for n in range(3)]
FEW = LBFGS(max_iter=8)


def models() -> dict[str, tuple[Any, Any]]:
    """A fitted model of each family, and what it is asked."""
    return {
        "hscrf": (HSCRF(c2=1.0, solver=FEW).fit(WORDS, NESTED), WORDS),
        "hscrf-durations": (
            HSCRF(
                features=[Token("tag"), Token("chunk", average=True), Duration("chunk")],
                c2=1.0,
                solver=FEW,
            ).fit(WORDS, NESTED),
            WORDS,
        ),
        "hscrf-numbers": (HSCRF(c2=1.0, solver=FEW).fit(NUMBERS, [["a", "a", "b"] * 2] * 3), NUMBERS),
        "chain": (ChainCRF(solver=FEW).fit(WORDS, TAGS), WORDS),
        "semi": (SemiCRF(solver=FEW).fit(WORDS, CHUNKS), WORDS),
        "dynamic": (DynamicCRF(solver=FEW).fit(WORDS, PLAIN), WORDS),
        "hhmm": (HHMM(n_components=2, random_state=0).fit(NUMBERS), NUMBERS),
    }


def resumed(iterations: int, checkpoint: Path | None) -> Any:
    """A model of so many iterations, those before the checkpoint included."""
    features = [Token("chunk"), Token("tag"), Trans("chunk")]
    return HSCRF(features=features, c2=1.0, solver=LBFGS(max_iter=iterations)).fit(WORDS, NESTED, checkpoint=checkpoint)


def answers(model: Any, X: Any) -> dict[str, Any]:
    """What a model says: labels, their log probabilities, and the entropy of each sequence."""
    guess = model.predict(X)
    numbers = {"log_likelihood": model.log_likelihood(X, guess), "entropy": model.entropy(X)}
    return {
        "labels": [_plain(one) for one in guess],
        **{name: np.ravel(some).tolist() for name, some in numbers.items()},
    }


def _plain(labels: Any) -> Any:
    """Labels as JSON."""
    if hasattr(labels, "topology"):
        return {level: labels.column(level, "bio") for level in labels.topology.levels[1:]}
    return {"": [str(label) for label in labels]} if not isinstance(labels, dict) else labels


def main() -> None:
    folder = Path(__file__).parent / sys.argv[1]
    fitted = models()
    folder.mkdir()
    told = {}
    for name, (model, X) in fitted.items():
        model.save(folder / f"{name}.hscrf")
        told[name] = answers(model, X)
    resumed(3, folder / "lbfgs.checkpoint")
    (folder / "answers.json").write_text(json.dumps({"version": hscrf.__version__, "answers": told}, indent=1) + "\n")


if __name__ == "__main__":
    main()

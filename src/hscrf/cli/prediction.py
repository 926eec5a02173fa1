"""Prediction for the documents of a file, batch by batch."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from hscrf import inference, metrics
from hscrf.cli.comparison import Comparison, predicted
from hscrf.cli.shell import UserError, names_in, note
from hscrf.cli.stray import UnknownLabels
from hscrf.cli.writing import Output
from hscrf.engine.cost import estimate, timed_levels
from hscrf.errors import several
from hscrf.io.confidence import confidence_columns, confidence_records
from hscrf.io.documents import Document
from hscrf.io.recipe import PREDICTED, Recipe
from hscrf.io.tags import to_labels
from hscrf.labels.labels import Labels

if TYPE_CHECKING:
    from hscrf.estimator.predictor import Predictor
    from hscrf.inference import Marginals
    from hscrf.torch.tagger import Tagger

BATCH = 20_000  # time steps of a batch of documents

Known = list[Labels | None] | None  # the kept labels of each document; None if no document has any


def document_batches(documents: Iterable[Document]) -> Iterator[list[Document]]:
    """Lists of documents of at least BATCH steps each, except the last."""
    batch: list[Document] = []
    steps = 0
    for document in documents:
        batch.append(document)
        steps += len(document)
        if steps >= BATCH:
            yield batch
            batch, steps = [], 0
    if batch:
        yield batch


@dataclass
class Prediction:
    """The predictions of a command, batch by batch."""

    args: argparse.Namespace
    model: Predictor | Tagger
    recipe: Recipe
    output: Output

    def __post_init__(self) -> None:
        self.given = self._given()
        self.complete = True  # every label was given
        self.done: list[Document] = []
        self.sequences = 0
        self.warned = False  # of the cost
        strict = getattr(self.args, "strict", False)
        self.unknown = UnknownLabels(self.model.topology_, self.recipe.scheme, strict)

    def _given(self) -> tuple[str, ...]:
        """The levels whose labels are kept."""
        if self.args.given is None:
            return () if self.args.evaluate else self.recipe.levels
        given = () if self.args.given == "none" else names_in(self.args.given)
        for level in given:
            if level not in self.recipe.levels:
                raise UserError(f"--given has {level!r}, but the levels are {', '.join(self.recipe.levels)}")
        return given

    def batch(self, documents: list[Document]) -> Iterator[Document]:
        """The documents with their predictions."""
        self.report_cost(documents)
        X = [self.recipe.observe(document) for document in documents]
        evidence = self.evidence(documents)
        try:
            found = self.model.predict(X, evidence=evidence, loss=self.args.loss, confidence=bool(self.args.scores))
        except ValueError:
            self.raise_placed(documents, X, evidence)
            raise
        self.complete &= evidence is not None and all(y is not None and y.is_complete for y in evidence)
        extra = [self.columns(labels) for labels in found]
        for add in self.additions():
            for more, one in zip(extra, add(X, evidence, found), strict=True):
                more.update(one)
        self.sequences += len(documents)
        for document, more in zip(documents, extra, strict=True):
            if self.args.evaluate:
                self.done.append(replace(document, extra=more))
            shown = self.output.convert(document)
            yield replace(shown, extra={**shown.extra, **more})

    def report_cost(self, documents: list[Document]) -> None:
        """Report the estimated cost of a batch once, if it is high."""
        cost = estimate(self.model.topology_, list(map(len, documents)), timed_levels(self.model))
        line = cost.warning(
            jobs=self.args.jobs,
            option="fit with --max-duration {level}=STEPS",
            each=f"{several(len(documents), 'sequence')}",
        )
        if line and not self.warned:
            self.warned = True
            note(line)

    def evidence(self, documents: list[Document]) -> Known:
        """The kept labels of each document."""
        known = [self.known(document) for document in documents]
        return None if all(labels is None for labels in known) else known

    def known(self, document: Document) -> Labels | None:
        """The labels of a document that are kept; None if there are none."""
        given = {level: column for level, column in (document.labels or {}).items() if level in self.given}
        if not given:
            return None
        known = self.unknown.cleared(replace(document, labels=given))
        return to_labels(known, self.model.topology_, self.recipe.scheme)

    def raise_placed(self, documents: list[Document], X: list[Any], evidence: Known) -> None:
        """Raise an error that names the document that cannot be predicted."""
        for document, x, y in zip(documents, X, evidence or [None] * len(X), strict=True):
            try:
                inference.log_partition(self.model.potentials([x])[0], y)
            except ValueError as error:
                raise document.error_of(error) from None

    def columns(self, labels: Labels, name: str = PREDICTED, key: str = "prediction") -> dict[str, Any]:
        """A prediction as columns in the schemes of the model, or as segments for JSON Lines."""
        if self.output.form == "jsonl":
            return {key: {level: self.output.column(labels, level) for level in self.recipe.levels}}
        return {name.format(level): self.output.column(labels, level) for level in self.recipe.label_order}

    def additions(self) -> list[Callable[..., Iterable[dict[str, Any]]]]:
        """Functions that compute the columns to append to the prediction."""
        asked = {"marginals": self.marginals, "samples": self.samples, "k_best": self.k_best, "scores": self.scores}
        return [add for name, add in asked.items() if getattr(self.args, name)]

    def marginals(self, X: list[Any], evidence: Known, found: list[Labels]) -> Iterator[dict[str, Any]]:
        for labels, posterior in zip(found, self.model.predict_marginals(X, evidence=evidence), strict=True):
            yield self.probabilities(labels, posterior)

    def probabilities(self, labels: Labels, posterior: Marginals) -> dict[str, Any]:
        """The probabilities of the predicted states; for JSON Lines, of all states."""
        topology = self.model.topology_
        if self.output.form == "jsonl":
            tables = {level: posterior.state[level].round(6) for level in self.recipe.levels}
            names = {level: topology.states[topology.level(level)] for level in tables}
            return {"marginals": {k: {"states": names[k], "probabilities": p} for k, p in tables.items()}}
        columns = {}
        for level in self.recipe.label_order:
            own = posterior.state[level][range(len(labels)), labels.states[topology.level(level)]]
            columns[f"{level}_probability"] = [f"{p:.6f}" for p in own]
        return columns

    def samples(self, X: list[Any], evidence: Known, found: list[Labels]) -> Iterator[dict[str, Any]]:
        seed = self.args.seed + self.sequences
        for draws in self.model.sample(X, self.args.samples, random_state=seed, evidence=evidence):
            yield self.several(draws, "sample", self.args.samples)

    def k_best(self, X: list[Any], evidence: Known, found: list[Labels]) -> Iterator[dict[str, Any]]:
        for potentials, y in zip(self.model.potentials(X), evidence or [None] * len(X), strict=True):
            best = inference.k_best(potentials, self.args.k_best, y)
            result = self.several(best, "best", self.args.k_best)
            scores = [(labels.score or 0.0) - inference.log_partition(potentials, y) for labels in best]
            if self.output.form == "jsonl":
                result["log_probability"] = scores
            elif self.args.scores:
                missing = ["?"] * (self.args.k_best - len(scores))
                for n, text in enumerate([*(f"{score:.6f}" for score in scores), *missing], start=1):
                    result[f"best{n}_log_probability"] = [text] * potentials.length
            yield result

    def scores(self, X: list[Any], evidence: Known, found: list[Labels]) -> Iterator[dict[str, Any]]:
        """The confidence of each predicted segment: of its steps in columns, of itself in JSON Lines."""
        for labels in found:
            if self.output.form == "jsonl":
                yield {"confidence": confidence_records(labels, self.recipe.levels)}
            else:
                yield confidence_columns(labels, self.recipe.label_order)

    def several(self, labellings: list[Labels], name: str, k: int) -> dict[str, Any]:
        """Several labellings as columns; ? where there are fewer than k."""
        if self.output.form == "jsonl":
            return {
                {"sample": "samples", "best": "k_best"}[name]: [
                    self.columns(labels)["prediction"] for labels in labellings
                ]
            }
        columns: dict[str, Any] = {}
        for n in range(k):
            last = labellings[min(n, len(labellings) - 1)]
            named = self.columns(last, f"{{}}_{name}{n + 1}")
            columns |= named if n < len(labellings) else {key: ["?"] * len(last) for key in named}
        return columns

    def report(self) -> str:
        """The report that hscrf score prints for the output."""
        guess = [predicted(document, self.recipe.levels) for document in self.done]
        scheme = {level: self.output.scheme(level) for level in self.recipe.levels}
        truth = [replace(d, labels=self.output.labels(d)) for d in self.done] if not self.output.alike else self.done
        lasting = not self.model.topology_.unit_bottom
        return metrics.report(*Comparison(self.recipe.levels, scheme, truth, guess, lasting).labels())

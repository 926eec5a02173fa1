"""hscrf predict --to segments, spacy, brat, elan, textgrid or boris: predictions for other programs."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterable
from dataclasses import dataclass

from hscrf.cli.shell import UserError, note
from hscrf.io.documents import Document
from hscrf.io.exports import EXPORTS, export, export_format, segment_lines, spacy_line
from hscrf.io.spans import Labelled, Span
from hscrf.io.texts import located

TEXT = ("segments", "spacy")  # formats that can go to standard output


def export_of(args: argparse.Namespace) -> PredictionExport | None:
    """The export described by the options; None if hscrf reads the format of the output."""
    form = args.to or (export_format(args.output) if args.output != "-" else None)
    if form not in EXPORTS:
        if args.rate:
            raise UserError("--rate is for --to segments, elan, textgrid and boris, which have times")
        return None
    if args.rate and form not in ("segments", "elan", "textgrid", "boris"):
        raise UserError(f"--rate is not for {form}, which has no times")
    if args.output == "-" and form not in TEXT:
        raise UserError(f"--to {form} writes files: give a name by -o")
    text_file = os.path.splitext(args.output)[0] + ".txt"
    if (
        form == "brat"
        and os.path.exists(args.data)
        and os.path.exists(text_file)
        and os.path.samefile(args.data, text_file)
    ):
        raise UserError(f"-o {args.output} would write its text over {args.data}: give another name")
    for option, value in {"--samples": args.samples, "--k-best": args.k_best, "--marginals": args.marginals}.items():
        if value:
            raise UserError(f"{option} is not for --to {form}, which has the predicted segments and their confidence")
    if form in ("elan", "textgrid", "boris") and not args.rate:
        note("hscrf: without --rate a step lasts one second")
    args.scores = True
    return PredictionExport(form, args.output, args.rate)


@dataclass(frozen=True)
class PredictionExport:
    """The target and format of exported predictions."""

    form: str
    output: str
    rate: float | None

    def write(self, documents: Iterable[Document]) -> None:
        """Write documents whose prediction and confidence are those of JSON Lines."""
        sequences = (labelled_document(document, n) for n, document in enumerate(documents, start=1))
        if self.output == "-":
            sys.stdout.reconfigure(encoding="utf-8", newline="\n")  # type: ignore[union-attr]
            sys.stdout.writelines(
                segment_lines(sequences, self.rate) if self.form == "segments" else map(spacy_line, sequences)
            )
            return
        found = export(self.output, sequences, self.form, rate=self.rate)
        note(f"{', '.join(found)} written" if len(found) < 4 else f"{len(found)} files written to {self.output}")


def labelled_document(document: Document, number: int) -> Labelled:
    """A document with its predicted segments; steps outside any are left out."""
    confidence = document.extra["confidence"]
    spans = [
        Span(own["start"], own["stop"], level, own["state"], own["probability"])
        for level, segments in confidence.items()
        for own in segments
        if own["state"] != "O"
    ]
    text, offsets = located(document.tokens, document.extra) or (None, None)
    return Labelled(document.name or str(number), document.tokens, spans, tuple(confidence), text=text, offsets=offsets)

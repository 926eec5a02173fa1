"""The command line: hscrf fit, predict, score, show, plot, demo."""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import signal
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import TYPE_CHECKING, Any, NoReturn, TextIO, TypeVar

from hscrf.topology import UNLIMITED

if TYPE_CHECKING:
    from hscrf.io import Document
    from hscrf.labels import Labels
    from hscrf.recipe import Recipe

__all__ = ["main"]

T = TypeVar("T")
BATCH = 20_000  # time steps that are predicted together
PREDICTED = "{}_predicted"  # name of an appended column

# ------------------------------------------------------------------------------
# Words

ABOUT = """\
Label sequences at several nested levels at once: fit, predict, score, look.

  hscrf fit train.txt -m model.hscrf --levels chunk=3,pos=2
  hscrf predict test.txt -m model.hscrf -t > out.txt
  hscrf score out.txt -m model.hscrf
  hscrf show model.hscrf
  hscrf plot test.txt -m model.hscrf -o first.png
  hscrf demo

Each command explains itself: hscrf fit --help."""

FILES = """\
files:
  columns   one token a line, a blank line between sequences (CoNLL, CRF++, Wapiti)
  jsonl     one JSON object a line: {"tokens": [...], "labels": {"chunk": [[0, 2, "NP"]], "pos": ["DT", "NN"]}}
  table     CSV with a header, or Parquet: a row per time step, a column that names the sequence, one column a level
  crfsuite  items: label TAB attribute:weight TAB ...
The format follows from the name (.jsonl .csv .tsv .parquet .crfsuite, else columns) or from --format; - is a pipe.
Labels are plain, BIO or BIOES; ? is unknown."""

FIT = f"""\
Train a model from a file of labelled sequences.

Levels are named from top to bottom. In a column file they are the last columns unless you say which, counted from 1;
all other columns are features. Words are described by a template: a window of two, conjunctions, affixes and shapes,
unless you bring your own in TOML or as CRF++ and Wapiti write it (U01:%x[-1,0]). Labels may be missing (?): the model
learns from what there is.

  hscrf fit train.txt -m m.hscrf --levels chunk=3,pos=2
  hscrf fit train.txt -m m.hscrf --columns word,pos,chunk --levels chunk,pos --template words.toml
  hscrf fit days.csv  -m m.hscrf --levels activity,action --durations activity=gamma
  hscrf fit old.txt   -m m.hscrf --template template.crfpp --dev dev.txt
  zcat big.jsonl.gz | hscrf fit - --format jsonl -m m.hscrf

A line per iteration goes to standard error. Ctrl-C ends training, writes the best model so far and exits with 130.

{FILES}"""

PREDICT = f"""\
Label a file. What the input labels already stays, ? is filled in around it; nothing needs to be labelled.

The output is the input with one column a level appended (JSON Lines: "prediction"; CRFsuite items: labels only).
With -t the labels are the truth instead: they are not used, and a report goes to standard error.

  hscrf predict new.txt -m m.hscrf > labelled.txt
  hscrf predict half.txt -m m.hscrf -o full.txt           # constrained decoding: half.txt has labels and ?
  hscrf predict test.txt -m m.hscrf -t -o out.txt         # compare with the labels of test.txt
  hscrf predict test.txt -m m.hscrf -t --given pos        # the same, but the pos column is known
  hscrf predict day.jsonl -m m.hscrf --marginals --samples 10 | jq .samples

{FILES}"""

SCORE = f"""\
Compare true and predicted labels of a file that hscrf predict wrote: accuracy per step, precision, recall and F1 of
segments, boundaries; for each level and for all at once. Without a model the last two columns are truth and
prediction, as conlleval has it.

  hscrf score out.txt -m m.hscrf --json scores.json
  hscrf score out.txt --conlleval
  hscrf score out.csv --levels activity,action

{FILES}"""

SHOW = """\
Print what a model has learned: states and who contains whom, strongest weights, durations, training.

  hscrf show m.hscrf
  hscrf show m.hscrf --top 20 --level chunk"""

PLOT = """\
Draw a model or a file into a PNG, SVG or PDF (needs matplotlib: pip install 'hscrf[plots]').

  hscrf plot m.hscrf -o topology.svg                              # also --what transitions|durations|training
  hscrf plot days.csv -m m.hscrf -o day.png --sequence 3          # truth above prediction, certainty as shade
  hscrf plot days.csv -m m.hscrf -o c.png --what confusion --level action
  hscrf plot days.csv -m m.hscrf -o e.png --what evidence         # accuracy as labels become known"""

DEMO = """\
Generate days of activities, train a hierarchical, a dynamic and a flat model, compare them, show what 20 % of known
labels do to decoding, and draw pictures. Needs no data; takes about a minute."""


# ------------------------------------------------------------------------------
# The frame: arguments, errors, pipes


class Parser(argparse.ArgumentParser):
    """Says what is wrong in one line."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: {message} (see {self.prog} --help)\n")


class UserError(Exception):
    """Something the user can put right."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; the exit code is 0, 2 after a user's error, 130 after Ctrl-C, 141 if nobody reads the output."""
    args = build_parser().parse_args(arguments)
    try:
        code: int = args.run(args)
        sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # nothing is left to flush at exit
        return 128 + signal.SIGPIPE
    except KeyboardInterrupt:
        return complain("interrupted", 130)
    except Exception as error:
        if args.traceback or not isinstance(error, (UserError, ValueError, OSError, MemoryError, ImportError)):
            raise
        return complain(describe(error), 2)
    return code


def describe(error: BaseException) -> str:
    """One line for an error."""
    if isinstance(error, OSError) and error.strerror:
        return error.strerror if error.filename is None else f"{error.filename}: {error.strerror}"
    if isinstance(error, MemoryError):
        return f"out of memory: {error}"
    return " ".join(str(error).split())


def complain(message: str, code: int) -> int:
    """Say one line on standard error."""
    with contextlib.suppress(BrokenPipeError):
        print(f"hscrf: {message}", file=sys.stderr, flush=True)
    return code


def build_parser() -> Parser:
    from hscrf import __version__

    layout = argparse.RawDescriptionHelpFormatter
    parser = Parser(prog="hscrf", description=ABOUT, formatter_class=layout)
    parser.add_argument("--version", action="version", version=f"hscrf {__version__}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND", parser_class=Parser)
    for name, text, add, run in (
        ("fit", FIT, add_fit, fit),
        ("predict", PREDICT, add_predict, predict),
        ("score", SCORE, add_score, score),
        ("show", SHOW, add_show, show),
        ("plot", PLOT, add_plot, plot),
        ("demo", DEMO, add_demo, demo),
    ):
        first = text.split("\n\n")[0].split(".")[0].replace("\n", " ").replace("%", "%%")
        command = commands.add_parser(name, help=first, description=text, formatter_class=layout)
        add(command)
        command.add_argument("--traceback", action="store_true", help="show where an error comes from")
        command.set_defaults(run=run)
    return parser


def add_fit(parser: Parser) -> None:
    parser.add_argument("data", help="the training file, - for standard input")
    parser.add_argument("-m", "--model", required=True, help="where to write the model")
    add_layout(parser)
    parser.add_argument(
        "--template", metavar="FILE", help="a template in TOML or of CRF++; 'none': columns as they are"
    )
    parser.add_argument("--c1", type=float, default=0.0, help="L1 penalty (default: %(default)s)")
    parser.add_argument("--c2", type=float, help="L2 penalty (default: 1, the perceptron has none)")
    parser.add_argument("--solver", choices=("lbfgs", "sgd", "perceptron"), default="lbfgs")
    parser.add_argument("--max-iter", type=int, metavar="N", help="iterations, or epochs over the data")
    parser.add_argument("-j", "--jobs", type=int, default=1, metavar="N", help="threads (default: %(default)s)")
    parser.add_argument("--min-count", type=int, default=1, metavar="N", help="leave out features seen less often")
    parser.add_argument(
        "--durations", type=pairs_of(str), default={}, metavar="LEVEL=KIND", help="gamma, bins, each or none"
    )
    parser.add_argument("--max-duration", type=pairs_of(int), default={}, metavar="LEVEL=STEPS")
    parser.add_argument(
        "--children", choices=("seen", "all"), default="seen", help="which states may contain which (default: as seen)"
    )
    parser.add_argument("--checkpoint", metavar="FILE", help="written as training goes on; resumed from if it exists")
    parser.add_argument("--dev", metavar="FILE", help="stop early by the score on this file")
    parser.add_argument("--patience", type=int, default=10, metavar="N", help="iterations without a better dev score")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--progress", choices=("lines", "live", "none"), default="lines", help="a line per iteration (default), or one"
    )


def add_layout(parser: Parser) -> None:
    group = parser.add_argument_group("what the columns are")
    group.add_argument("--format", choices=("columns", "jsonl", "table", "crfsuite"))
    group.add_argument(
        "--levels",
        metavar="NAMES",
        help="label columns from top to bottom: chunk,pos or chunk=3,pos=2 (counted from 1)",
    )
    group.add_argument("--columns", metavar="NAMES", help="names of all columns of a column file, in their order")
    group.add_argument("--features", metavar="NAMES", help="feature columns of a table (default: all others)")
    group.add_argument(
        "--scheme", help="plain, bio or bioes, or by level: chunk=bio,pos=plain (default: seen by itself)"
    )
    group.add_argument("--separator", help="between columns: tab, comma, any text (default: spaces and tabs)")
    group.add_argument("--comment", metavar="TEXT", help="lines that begin so are comments")
    group.add_argument(
        "--sequence", metavar="NAME", help="column of a table that names the sequence ('none': only one)"
    )
    group.add_argument("--time", metavar="NAME", help="column of a table that orders the steps (default: time)")


def add_predict(parser: Parser) -> None:
    parser.add_argument("data", nargs="?", default="-", help="the file to label, - for standard input (default)")
    parser.add_argument("-m", "--model", required=True)
    parser.add_argument("-o", "--output", default="-", metavar="FILE", help="default: standard output")
    parser.add_argument("-t", "--evaluate", action="store_true", help="labels of the input are the truth: report")
    parser.add_argument("--given", metavar="LEVELS", help="levels whose labels are kept (default: all, with -t: none)")
    parser.add_argument("--marginals", action="store_true", help="append the probability of each predicted state")
    parser.add_argument("--samples", type=int, metavar="K", help="append K draws from the posterior")
    parser.add_argument("--k-best", type=int, metavar="K", help="append the K best labellings")
    parser.add_argument("--format", choices=("columns", "jsonl", "table", "crfsuite"))
    parser.add_argument("-j", "--jobs", type=int, default=1, metavar="N", help="threads (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=0, help="of --samples")


def add_score(parser: Parser) -> None:
    parser.add_argument("data", nargs="?", default="-", help="a file with true and predicted labels")
    parser.add_argument("-m", "--model", help="the model that knows the columns")
    parser.add_argument("--json", metavar="FILE", help="write all numbers as JSON")
    parser.add_argument(
        "--conlleval", nargs="?", const="", metavar="LEVEL", help="in the words of the CoNLL script, for one level"
    )
    parser.add_argument("--tolerance", type=int, default=0, metavar="STEPS", help="by which a boundary may be off")
    add_layout(parser)


def add_show(parser: Parser) -> None:
    parser.add_argument("model")
    parser.add_argument("--top", type=int, default=10, metavar="N", help="weights of each kind (default: %(default)s)")
    parser.add_argument("--level", help="only this level")


def add_plot(parser: Parser) -> None:
    parser.add_argument("file", help="a model or a data file")
    parser.add_argument("-o", "--output", required=True, metavar="FILE", help="a name that ends in .png, .svg or .pdf")
    parser.add_argument("-m", "--model", help="the model for a data file")
    parser.add_argument("--what", choices=(*MODEL_PLOTS, *DATA_PLOTS), help="default: topology, or segments")
    parser.add_argument("--level", help="default: the lowest that fits")
    parser.add_argument("--sequence", type=int, default=1, metavar="N", help="which to draw, counted from 1")
    parser.add_argument("--format", choices=("columns", "jsonl", "table", "crfsuite"))


def add_demo(parser: Parser) -> None:
    parser.add_argument("-o", "--output", default="hscrf-demo", metavar="FOLDER", help="for pictures and data")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--quick", action="store_true", help="a few sequences only")


def pairs_of(kind: Callable[[str], Any]) -> Callable[[str], dict[str, Any]]:
    """A reader of name=value,name=value."""

    def read(text: str) -> dict[str, Any]:
        try:
            return {name: kind(value) for name, value in (part.split("=") for part in text.split(","))}
        except ValueError:
            raise argparse.ArgumentTypeError(f"{text!r} is not LEVEL=VALUE[,LEVEL=VALUE]") from None

    return read


# ------------------------------------------------------------------------------
# Streams and progress


def source_of(path: str) -> Any:
    """What to read from."""
    return sys.stdin.buffer if path == "-" else path


@contextlib.contextmanager
def target_of(path: str) -> Iterator[Any]:
    """What to write to: a path, or standard output in UTF-8."""
    if path == "-":
        sys.stdout.reconfigure(encoding="utf-8", newline="\n")  # type: ignore[union-attr]
        yield sys.stdout
    else:
        yield path


def counted(items: Iterable[T], what: str, stream: TextIO | None = None) -> Iterator[T]:
    """The same items, with a live count on terminals for what takes longer than a second."""
    stream = stream or sys.stderr
    begin = shown = time.monotonic()
    n = 0
    try:
        for n, item in enumerate(items, start=1):
            now = time.monotonic()
            if stream.isatty() and now - begin > 1 and now - shown > 0.2:
                stream.write(f"\r{what}: {n} sequences, {n / (now - begin):.0f} a second ")
                stream.flush()
                shown = now
            yield item
    finally:
        if shown > begin:
            stream.write(f"\r{what}: {n} sequences in {time.monotonic() - begin:.1f} s \n")


def note(message: str) -> None:
    print(message, file=sys.stderr, flush=True)


def names_in(text: str | None) -> tuple[str, ...]:
    return tuple(filter(None, (text or "").split(",")))


def recipe_of(args: argparse.Namespace) -> Recipe:
    """The recipe that the options describe."""
    from hscrf.recipe import Recipe, format_of

    places = places_of(args.levels) if args.levels and "=" in args.levels else None
    form = args.format or format_of(args.data) or "columns"
    levels = tuple(places) if places else names_in(args.levels)
    if not levels and form == "columns":
        levels = ("label",)
    if not levels and form == "table":
        raise UserError("say which columns of the table are labels, from top to bottom: --levels NAME,NAME")
    return Recipe(
        format=form,
        levels=levels,
        places=places,
        names=names_in(args.columns) or None,
        features=names_in(args.features) or None,
        scheme=schemes_of(args.scheme, levels),
        separator={"tab": "\t", "comma": ",", "space": " "}.get(args.separator, args.separator),
        comment=args.comment,
        sequence=None if args.sequence == "none" else args.sequence or "sequence",
        time=args.time,
    )


def places_of(text: str) -> dict[str, int]:
    """Columns, counted from 0, from chunk=3,pos=2."""
    try:
        places = {name: int(place) - 1 for name, place in (part.split("=") for part in text.split(","))}
    except ValueError:
        raise UserError(f"--levels is {text!r}, expected names, or all with a column as in chunk=3,pos=2") from None
    return places


def schemes_of(text: str | None, levels: Sequence[str]) -> dict[str, str]:
    """Schemes by level from bio or chunk=bio,pos=plain."""
    schemes = dict.fromkeys(levels, text) if text and "=" not in text else pairs_of(str)(text) if text else {}
    for level, scheme in schemes.items():
        if level not in levels:
            raise UserError(f"--scheme speaks of level {level!r}, but --levels does not")
        if scheme not in ("plain", "bio", "bioes"):
            raise UserError(f"--scheme is {scheme!r}, expected plain, bio or bioes")
    return schemes


def open_model(path: str, data: str = "-", form: str | None = None) -> tuple[Any, Recipe]:
    """A model and the recipe for a data file; a model made in Python reads features as they are."""
    from hscrf.recipe import Recipe, format_of, load_model

    model, recipe = load_model(path)
    form = form or format_of(data)
    if recipe is None:
        if form not in ("jsonl", "crfsuite"):
            raise UserError(f"{path} was not made by hscrf fit, so it reads only features: jsonl or crfsuite")
        recipe = Recipe(levels=model.topology_.levels[1:])
    return model, replace(recipe, format=form or recipe.format)


# ------------------------------------------------------------------------------
# fit


def fit(args: argparse.Namespace) -> int:
    from hscrf.recipe import learn_labels, save_model

    check_folder(args.model)
    recipe = recipe_of(args)
    documents = list(counted(recipe.read(source_of(args.data)), "reading"))
    recipe = recipe.resolved(documents, args.template)
    for remark in recipe.template.notes if recipe.template else ():
        note(f"hscrf: {args.template}, {remark}")
    dev = list(recipe.read(args.dev)) if args.dev else []
    durations = durations_of(args)
    everyone = args.children == "all"
    topology, labels = learn_labels([*documents, *dev], recipe.scheme, durations, args.max_duration, everyone)
    model = make_model(args, topology, durations)
    steps = sum(map(len, documents))
    note(f"{len(documents)} sequences, {steps} steps, {' > '.join(describe_levels(topology))}")
    known = labels[len(documents) :]
    model.fit(
        [recipe.observe(document) for document in documents],
        labels[: len(documents)],
        development=([list(recipe.observe(document)) for document in dev], known) if dev else None,
        patience=args.patience,
        checkpoint=args.checkpoint,
    )
    return finish(args, model, lambda: save_model(args.model, model, recipe))


def check_folder(path: str) -> None:
    """Complain before training rather than after it."""
    folder = os.path.dirname(os.path.abspath(path))
    if not os.path.isdir(folder):
        raise UserError(f"{path}: there is no folder {folder} to write the model to")
    if not os.access(folder, os.W_OK) or os.path.isdir(path):
        raise UserError(f"{path}: the model cannot be written there")


def finish(args: argparse.Namespace, model: Any, save: Callable[[], None]) -> int:
    """Write the model, unless Ctrl-C came before there was one."""
    interrupted = model.stop_reason_ == "interrupted"
    if interrupted and not model.n_iter_:
        return complain("interrupted before the first iteration: no model written", 130)
    save()
    if interrupted:
        return complain(f"interrupted: {args.model} holds the best of {model.n_iter_} iterations", 130)
    note(f"{args.model}: {model.coef_.size} weights, loss {model.loss_:.2f}, {model.stop_reason_}")
    return 0


def durations_of(args: argparse.Namespace) -> list[Any]:
    from hscrf.features import Duration

    return [Duration(level, kind) for level, kind in args.durations.items() if kind != "none"]


def make_model(args: argparse.Namespace, topology: Any, durations: Sequence[Any]) -> Any:
    """An estimator with the options' settings; durations replace those that limits bring by themselves."""
    from hscrf.estimator import HSCRF
    from hscrf.features import Duration, default_specifications

    usual = default_specifications(topology)
    kept = [spec for spec in usual if not (isinstance(spec, Duration) and spec.level in args.durations)]
    c2 = args.c2 if args.c2 is not None else 0.0 if args.solver == "perceptron" else 1.0
    return HSCRF(
        topology,
        features=[*kept, *durations],
        c1=args.c1,
        c2=c2,
        solver=solver_of(args),
        min_count=args.min_count,
        n_jobs=args.jobs,
        random_state=args.seed,
        verbose={"lines": 2, "live": 1, "none": 0}[args.progress],
    )


def solver_of(args: argparse.Namespace) -> Any:
    from hscrf.solvers import LBFGS, SGD, Perceptron

    if args.max_iter is None:
        return args.solver
    return {
        "lbfgs": lambda: LBFGS(max_iter=args.max_iter),
        "sgd": lambda: SGD(epochs=args.max_iter),
        "perceptron": lambda: Perceptron(epochs=args.max_iter),
    }[args.solver]()


def describe_levels(topology: Any) -> list[str]:
    """Levels below a dummy root with their numbers of states."""
    sizes = zip(topology.levels, topology.n_states, strict=True)
    return [f"{level} ({size})" for level, size in sizes if level != "root" or size > 1]


# ------------------------------------------------------------------------------
# predict


def predict(args: argparse.Namespace) -> int:
    model, recipe = open_model(args.model, args.data, args.format)
    model.n_jobs = args.jobs
    run = Prediction(args, model, recipe)
    documents = counted(recipe.read(source_of(args.data), unlabelled=not args.evaluate), "predicting")
    results = chain.from_iterable(map(run.batch, batches(documents)))
    with target_of(args.output) as target:
        recipe.write(target, results)
    if args.evaluate:
        note(run.report())
    elif run.complete:
        note("hscrf: the input was labelled throughout, so nothing was predicted; -t predicts afresh and compares")
    return 0


def batches(documents: Iterable[Document]) -> Iterator[list[Document]]:
    """Documents together that have about BATCH steps."""
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
    """A run of prediction over batches of documents."""

    args: argparse.Namespace
    model: Any
    recipe: Recipe

    def __post_init__(self) -> None:
        self.given = self._given()
        self.complete = True  # everything was known beforehand
        self.truth: list[Document] = []
        self.found: list[Labels] = []
        self.sequences = 0

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
        X = [self.recipe.observe(document) for document in documents]
        evidence = self.evidence(documents)
        try:
            found = self.model.predict(X, evidence=evidence)
        except ValueError:
            self.blame(documents, X, evidence)
            raise
        if self.args.evaluate:
            self.truth += documents
            self.found += found
        self.complete &= evidence is not None and all(y is not None and y.is_complete for y in evidence)
        extra = [self.columns(labels) for labels in found]
        for add in self.additions():
            for more, one in zip(extra, add(X, evidence, found), strict=True):
                more.update(one)
        self.sequences += len(documents)
        yield from (replace(d, extra={**d.extra, **more}) for d, more in zip(documents, extra, strict=True))

    def evidence(self, documents: list[Document]) -> list[Labels | None] | None:
        """What is known of each document; None if nothing is known of any."""
        known = [self.known(document) for document in documents]
        return None if all(labels is None for labels in known) else known

    def known(self, document: Document) -> Labels | None:
        from hscrf.io import to_labels

        given = {level: column for level, column in (document.labels or {}).items() if level in self.given}
        return to_labels(replace(document, labels=given), self.model.topology_, self.recipe.scheme) if given else None

    def blame(self, documents: list[Document], X: list[Any], evidence: list[Labels | None] | None) -> None:
        """Find the document that cannot be predicted, and say why."""
        import hscrf

        for document, x, y in zip(documents, X, evidence or [None] * len(X), strict=True):
            try:
                hscrf.log_partition(self.model.potentials([x])[0], y)
            except ValueError as error:
                raise document.step_error(str(error)) from None

    def columns(self, labels: Labels, name: str = PREDICTED, key: str = "prediction") -> dict[str, Any]:
        """A prediction as columns in the schemes of the model, or as segments for JSON Lines."""
        if self.recipe.format == "jsonl":
            return {key: {level: segments_or_column(labels, level) for level in self.recipe.levels}}
        scheme = self.recipe.scheme
        return {name.format(level): labels.column(level, scheme.get(level, "plain")) for level in self.recipe.levels}

    def additions(self) -> list[Callable[..., Iterable[dict[str, Any]]]]:
        """What else was asked for."""
        asked = {"marginals": self.marginals, "samples": self.samples, "k_best": self.k_best}
        return [add for name, add in asked.items() if getattr(self.args, name)]

    def marginals(self, X: list[Any], evidence: Any, found: list[Labels]) -> Iterator[dict[str, Any]]:
        for labels, posterior in zip(found, self.model.predict_marginals(X, evidence=evidence), strict=True):
            yield self.certainty(labels, posterior)

    def certainty(self, labels: Labels, posterior: Any) -> dict[str, Any]:
        """The probability of the predicted states; for JSON Lines of all states."""
        topology = self.model.topology_
        if self.recipe.format == "jsonl":
            tables = {level: posterior.state[level].round(6) for level in self.recipe.levels}
            names = {level: topology.states[topology.level(level)] for level in tables}
            return {"marginals": {k: {"states": names[k], "probabilities": p} for k, p in tables.items()}}
        columns = {}
        for level in self.recipe.levels:
            own = posterior.state[level][range(len(labels)), labels.states[topology.level(level)]]
            columns[f"{level}_probability"] = [f"{p:.6f}" for p in own]
        return columns

    def samples(self, X: list[Any], evidence: Any, found: list[Labels]) -> Iterator[dict[str, Any]]:
        seed = self.args.seed + self.sequences
        for draws in self.model.sample(X, self.args.samples, random_state=seed, evidence=evidence):
            yield self.several(draws, "sample", self.args.samples)

    def k_best(self, X: list[Any], evidence: Any, found: list[Labels]) -> Iterator[dict[str, Any]]:
        import hscrf

        for potentials, y in zip(self.model.potentials(X), evidence or [None] * len(X), strict=True):
            best = hscrf.k_best(potentials, self.args.k_best, y)
            result = self.several(best, "best", self.args.k_best)
            if self.recipe.format == "jsonl":
                total = hscrf.log_partition(potentials, y)
                result["log_probability"] = [(labels.score or 0.0) - total for labels in best]
            yield result

    def several(self, labellings: list[Labels], name: str, k: int) -> dict[str, Any]:
        """Several labellings as columns; ? where there are fewer than k."""
        if self.recipe.format == "jsonl":
            return {name: [self.columns(labels)["prediction"] for labels in labellings]}
        columns: dict[str, Any] = {}
        for n in range(k):
            last = labellings[min(n, len(labellings) - 1)]
            named = self.columns(last, f"{{}}_{name}{n + 1}")
            columns |= named if n < len(labellings) else {key: ["?"] * len(last) for key in named}
        return columns

    def report(self) -> str:
        from hscrf import metrics

        return metrics.report(truth_labels(self.truth, self.recipe.scheme), self.found)


def segments_or_column(labels: Labels, level: str) -> list[Any]:
    """Segments of a level, or its column where all segments have one step."""
    topology = labels.topology
    unit = topology.unit_bottom and topology.level(level) == topology.depth - 1
    return labels.column(level) if unit else labels.segments(level)


def truth_labels(documents: Sequence[Document], scheme: Mapping[str, str]) -> list[Labels]:
    """Labels over all states that the documents have, whatever a model knows."""
    from hscrf.estimator import loose_topology
    from hscrf.io import to_labels

    topology = loose_topology([document.labels for document in documents], scheme, None)
    return [to_labels(document, topology, scheme) for document in documents]


# ------------------------------------------------------------------------------
# score


def score(args: argparse.Namespace) -> int:
    from hscrf import metrics

    recipe = open_model(args.model, args.data, args.format)[1] if args.model else recipe_of(args)
    extra = [PREDICTED.format(level) for level in recipe.levels]
    documents = list(counted(recipe.read(source_of(args.data), extra=extra), "reading"))
    recipe = recipe if recipe.scheme else with_schemes(recipe, documents)
    truth, guess = both_labels(recipe, documents)
    numbers = metrics.report(truth, guess, tolerance=args.tolerance, output_dict=True)
    text = metrics.report(truth, guess, tolerance=args.tolerance)
    if args.conlleval is not None:
        result = conll_scores(args.conlleval or conll_level(recipe), recipe, documents)
        numbers["conlleval"] = {**result.to_dict(), "accuracy": result.accuracy, "tokens": result.tokens}
        text = metrics.conlleval_text(result)
    if args.json:
        write_json(args.json, numbers)
    print(text)
    return 0


def with_schemes(recipe: Recipe, documents: Sequence[Document]) -> Recipe:
    """The recipe with schemes seen in the true and predicted labels."""
    from hscrf.io import detect_scheme

    levels = recipe.levels or tuple(documents[0].labels or ())
    return replace(recipe, levels=levels, scheme={level: detect_scheme(documents, level) for level in levels})


def both_labels(recipe: Recipe, documents: Sequence[Document]) -> tuple[list[Labels], list[Labels]]:
    """True and predicted labels over the states of both."""
    predicted = [replace(document, labels=predicted_labels(recipe, document)) for document in documents]
    both = truth_labels([*documents, *predicted], recipe.scheme)
    return both[: len(documents)], both[len(documents) :]


def predicted_labels(recipe: Recipe, document: Document) -> dict[str, Any]:
    """The predicted labels of a document, by level."""
    if recipe.format == "jsonl":
        found = document.extra.get("prediction")
        if not isinstance(found, dict) or set(recipe.levels) - set(found):
            raise document.error('there is no "prediction" with every level: hscrf predict writes it')
        return {level: found[level] for level in recipe.levels}
    return {level: document.extra[PREDICTED.format(level)] for level in recipe.levels}


def conll_level(recipe: Recipe) -> str:
    """The first level with BIO labels."""
    marked = [level for level in recipe.levels if recipe.scheme.get(level, "plain") != "plain"]
    return (marked or recipe.levels)[0]


def conll_scores(level: str, recipe: Recipe, documents: Sequence[Document]) -> Any:
    """What conlleval counts at one level."""
    from hscrf import metrics

    if level not in recipe.levels:
        raise UserError(f"--conlleval has {level!r}, but the levels are {', '.join(recipe.levels)}")
    if recipe.format == "jsonl":
        sides = [[labels.column(level, "bio") for labels in side] for side in both_labels(recipe, documents)]
    else:
        truth = [document.labels[level] for document in documents]  # type: ignore[index]
        sides = [truth, [predicted_labels(recipe, document)[level] for document in documents]]
    return metrics.conlleval(*sides)


def write_json(path: str, content: Any) -> None:
    text = json.dumps(content, indent=2, ensure_ascii=False) + "\n"
    if path == "-":
        sys.stdout.write(text)
    else:
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)


# ------------------------------------------------------------------------------
# show


def show(args: argparse.Namespace) -> int:
    from hscrf.recipe import load_model

    model, recipe = load_model(args.model)
    topology = model.topology_
    chosen = range(topology.depth) if args.level is None else [topology.level(args.level)]
    print(f"{args.model}: {type(model).__name__}, {model.coef_.size} weights, {np_count(model)} of them not zero")
    if recipe is not None:
        print(f"reads {recipe.format}: {describe_recipe(recipe)}")
    for d in chosen:
        if topology.n_states[d] > 1:
            print_level(model, d)
        for part, rows in strongest(model, d, args.top).items():
            print(f"\n  strongest {part} weights of level {topology.levels[d]}")
            for weight, name, states in rows:
                print(f"  {weight:9.4f}  {states}{'  ' + name if name else ''}")
    print_training(model)
    return 0


def np_count(model: Any) -> int:
    return int((model.coef_ != 0).sum())


def describe_recipe(recipe: Recipe) -> str:
    made = "as they are" if recipe.template is None else f"by a template of {len(recipe.template.features)}"
    schemes = ", ".join(f"{level} ({scheme})" for level, scheme in recipe.scheme.items())
    return f"labels {schemes or ', '.join(recipe.levels)}; features {', '.join(recipe.features or ('given',))} {made}"


def print_level(model: Any, d: int) -> None:
    """States of a level, what they contain and how long they last."""
    topology = model.topology_
    print(f"\nlevel {topology.levels[d]}, {topology.n_states[d]} states")
    if d + 1 < topology.depth:
        for name, row in zip(topology.states[d], topology.children[d], strict=True):
            kids = [topology.states[d + 1][u] for u in row.nonzero()[0]]
            print(f"  {name}: {'everything' if row.all() and len(kids) > 8 else ' '.join(kids)}")
    else:
        print(f"  {' '.join(topology.states[d])}")
    if topology.has_limits(d):
        print("  durations: " + ", ".join(describe_durations(model, d)))


def describe_durations(model: Any, d: int) -> list[str]:
    """The range of durations of every state."""
    topology = model.topology_
    rows = zip(topology.states[d], topology.min_duration[d].tolist(), topology.max_duration[d].tolist(), strict=True)
    return [f"{name} {low} to {'any' if high == UNLIMITED else high}" for name, low, high in rows]


def strongest(model: Any, d: int, top: int) -> dict[str, list[tuple[float, str, str]]]:
    """The strongest weights of each part of a level: weight, feature, states."""
    import numpy as np

    found: dict[str, list[tuple[float, str, str]]] = {}
    for block, weights in model._weighted_blocks():
        part, level = block.key
        if level != d or not weights.size:
            continue
        places = block.describe(model.encoder_)
        for k in np.argsort(-np.abs(weights), kind="stable")[:top].tolist():
            name, place = places[k]
            states = block.locate(model.topology_, place)[2]
            found.setdefault(part, []).append((float(weights[k]), name, states))
    return found


def print_training(model: Any) -> None:
    """The course of training in at most ten lines."""
    state = "converged" if model.converged_ else "not converged"
    print(f"\ntraining: {model.n_iter_} iterations, loss {model.loss_:.2f}, {state}: {model.stop_reason_}")
    history = model.history_
    stride = max(1, -(-len(history) // 10))
    for entry in [*history[:-1:stride], *history[-1:]]:
        score = "" if entry["score"] is None else f"  dev {entry['score']:.4f}"
        line = f"  iteration {entry['iteration']:4d}  loss {entry['loss']:12.2f}  |g| {entry['gradient_norm']:.1e}"
        print(f"{line}  {entry['seconds']:.1f} s{score}")


# ------------------------------------------------------------------------------
# plot

MODEL_PLOTS = ("topology", "transitions", "durations", "training")
DATA_PLOTS = ("segments", "confusion", "evidence")


def plot(args: argparse.Namespace) -> int:
    need_matplotlib()
    from hscrf._files import MAGIC
    from hscrf.demo import save_figure

    with open(args.file, "rb") as file:
        is_model = file.read(len(MAGIC)) == MAGIC
    what = args.what or (MODEL_PLOTS if is_model else DATA_PLOTS)[0]
    if (what in MODEL_PLOTS) != is_model:
        kind = "model" if what in MODEL_PLOTS else "data file"
        raise UserError(f"--what {what} needs a {kind}, and {args.file} is none")
    axes = plot_model(args, what) if is_model else plot_data(args, what)
    save_figure(axes, args.output)
    note(f"{args.output} written")
    return 0


def need_matplotlib() -> None:
    try:
        import matplotlib
    except ImportError:
        raise UserError("pictures need matplotlib: pip install 'hscrf[plots]'") from None
    matplotlib.use("agg")


def plot_model(args: argparse.Namespace, what: str) -> Any:
    from hscrf import plots
    from hscrf.recipe import load_model

    model = load_model(args.file)[0]
    topology = model.topology_
    if what == "topology":
        return plots.plot_topology(model)
    if what == "training":
        return plots.plot_training(model)
    if what == "transitions":
        return plots.plot_transitions(model, args.level or topology.levels[-1])
    timed = [level for d, level in enumerate(topology.levels) if topology.has_limits(d)]
    if not timed and args.level is None:
        raise UserError("no level has durations: fit with --durations or --max-duration")
    return plots.plot_durations(model, args.level or timed[-1])


def plot_data(args: argparse.Namespace, what: str) -> Any:
    from hscrf import plots
    from hscrf.demo import FRACTIONS, evidence_curve

    if not args.model:
        raise UserError("a data file needs the model that reads it: -m MODEL")
    model, recipe = open_model(args.model, args.file, args.format)
    documents = list(counted(recipe.read(args.file, unlabelled=what == "segments"), "reading"))
    if what == "segments":
        return plot_document(args, model, recipe, documents)
    if what == "confusion":
        found = model.predict([recipe.observe(document) for document in documents])
        return plots.plot_confusion(truth_labels(documents, recipe.scheme), found, args.level or recipe.levels[-1])
    possible = [document for document in documents if is_possible(document, model, recipe)]
    if len(possible) < len(documents):
        note(f"{len(documents) - len(possible)} of {len(documents)} sequences have labels that the model rules out")
    known = [known_labels(document, model, recipe) for document in possible]
    X = [recipe.observe(document) for document in possible]
    return plots.plot_evidence_curve(FRACTIONS, evidence_curve(model, X, known, FRACTIONS, 0))


def is_possible(document: Document, model: Any, recipe: Recipe) -> bool:
    """Whether the model can give a document its labels."""
    try:
        known_labels(document, model, recipe)
    except ValueError:
        return False
    return True


def known_labels(document: Document, model: Any, recipe: Recipe) -> Labels:
    from hscrf.io import to_labels

    return to_labels(document, model.topology_, recipe.scheme)


def plot_document(args: argparse.Namespace, model: Any, recipe: Recipe, documents: list[Document]) -> Any:
    """One sequence: truth above prediction if it is labelled, with what was known if only partly."""
    from hscrf import plots

    if not 1 <= args.sequence <= len(documents):
        raise UserError(f"--sequence is {args.sequence}, but {args.file} has {len(documents)} sequences")
    document = documents[args.sequence - 1]
    X = [recipe.observe(document)]
    labels = known_labels(document, model, recipe) if document.labels else None
    evidence = labels if labels is not None and not labels.is_complete else None
    given = None if evidence is None else [evidence]
    found, posterior = model.predict(X, evidence=given)[0], model.predict_marginals(X, evidence=given)[0]
    if labels is None or evidence is not None:
        return plots.plot_segments(found, marginals=posterior, evidence=evidence)
    return plots.plot_segments(labels, prediction=found, marginals=posterior)


def demo(args: argparse.Namespace) -> int:
    from hscrf.demo import run

    return run(args.output, args.seed, args.quick)


if __name__ == "__main__":
    sys.exit(main())

"""Wrong calls of the layer and of the tagger: each is one sentence that says what is wrong."""

import numpy as np
import pytest

import hscrf
from torching import require_torch

torch = require_torch()

from hscrf.torch import CRF, Tagger, TemporalConvolution  # noqa: E402

TOPOLOGY = hscrf.Topology({"phrase": ["NP", "VP"], "tag": ["D", "N", "V"]}, children={"phrase": {"VP": ["V"]}})
FLAT = hscrf.Topology({"tag": ["A", "B"]})
OPEN = hscrf.Topology({"tag": ["A", "B"]}, max_duration={"tag": 2}, open_duration={"tag": True})
SCORES = torch.zeros(2, 3, 7)
LABELS = {"phrase": torch.zeros(2, 3, dtype=torch.long), "tag": torch.zeros(2, 3, dtype=torch.long)}
WORDS, TAGS = [["a", "b"]] * 2, [["A", "B"]] * 2


def crf(**options):
    return CRF(TOPOLOGY, parts=("token", "start"), **options)


def loss(scores=SCORES, labels=LABELS, **options):
    return crf()(scores, labels, **options)


def changed(**levels):
    return {level: levels.get(level, tensor) for level, tensor in LABELS.items()}


def with_value(value, place=(1, 2, 0)):
    scores = SCORES.clone()
    scores[place] = value
    return scores


def nan_table():
    layer = crf()
    layer.table("trans", "phrase").data[0, 1, 2] = torch.nan
    return layer(SCORES, LABELS)


def other_state():
    crf().load_state_dict(CRF(hscrf.Topology({"phrase": ["NP", "X"], "tag": ["D", "N", "V"]})).state_dict())


def other_levels():
    CRF(FLAT).load_state_dict(crf().state_dict())


def third_derivative():
    scores = torch.zeros(1, 2, 2, dtype=torch.float64, requires_grad=True)
    found = CRF(FLAT).double().log_partition(scores).sum()
    for _ in range(3):
        (found,) = torch.autograd.grad(found.sum(), scores, create_graph=True)


def forbidden():
    scores = torch.zeros(1, 2, 2)
    scores[0, 1] = -torch.inf
    return CRF(FLAT).log_partition(scores)


def forbidden_label():
    scores = torch.zeros(1, 2, 2)
    scores[0, 1, 1] = -torch.inf
    return CRF(FLAT)(scores, torch.tensor([[0, 1]]))


def too_long():
    topology = hscrf.Topology({"p": ["A", "B"]}, max_duration={"p": None})
    return CRF(topology, durations={"p": 2})(torch.zeros(1, 3, 2), torch.tensor([[0, 0, 0]]))


WRONG = {
    "no topology": (lambda: CRF({"tag": ["A"]}), "topology is a dict; expected a hscrf.Topology such as Topology("),
    "parts as string": (lambda: CRF(FLAT, parts="token"), "parts is the string 'token'; expected a tuple"),
    "unknown part": (lambda: CRF(FLAT, parts=("tokens",)), "unknown part: 'tokens' (did you mean 'token'?)"),
    "no parts": (lambda: CRF(FLAT, parts=()), "parts is empty; expected one or more of 'token', 'start', 'stop'"),
    "part of no level": (lambda: CRF(FLAT, parts={"token": ["tags"]}), "unknown level: 'tags' (did you mean 'tag'?)"),
    "levels as string": (lambda: CRF(FLAT, parts={"token": "tag"}), "parts['token'] is the string 'tag'"),
    "unknown table": (lambda: CRF(FLAT, tables=("transitions",)), "unknown table: 'transitions'"),
    "no such table": (lambda: CRF(FLAT).table("trans", "tag"), "unknown table: ('trans', 'tag')"),
    "durations without limit": (lambda: crf(durations=["phrase"]), "durations['phrase'] has no limit"),
    "durations of unit": (lambda: crf(durations={"tag": 3}), "durations names 'tag', which has segments of one step"),
    "durations of root": (lambda: crf(durations={"root": 3}), "durations names 'root', which spans the sequence"),
    "negative duration": (lambda: crf(durations={"phrase": 0}), "durations['phrase'] is 0; expected a positive number"),
    "threads": (lambda: crf(n_jobs=0), "n_jobs is 0; expected a positive number of threads"),
    "scores as array": (lambda: loss(SCORES.numpy()), "scores is a ndarray; expected a tensor of floats"),
    "integer scores": (lambda: loss(SCORES.long()), "scores has type torch.int64; expected floats"),
    "width": (lambda: loss(torch.zeros(2, 3, 6)), "scores has shape (2, 3, 6); expected (B, T, 7)"),
    "no batch axis": (lambda: loss(torch.zeros(3, 7)), "expected (B, T, 7); add a batch axis by scores[None]"),
    "empty batch": (lambda: loss(torch.zeros(0, 3, 7)), "expected at least one sequence and one step"),
    "nan": (
        lambda: loss(with_value(torch.nan)),
        "token of level 'phrase' is NaN or infinite for 'NP' in sequence 1 at step 2",
    ),
    "infinity": (lambda: loss(with_value(torch.inf, (0, 1, 5))), "for 'N' in sequence 0 at step 1, expected a finite"),
    "nan table": (nan_table, "the table trans of level 'phrase' is NaN or infinite at [0, 1, 2]"),
    "size of a pytorch-crf": (lambda: CRF(5), "topology is a int; expected a hscrf.Topology such as Topology({'tag':"),
    "even convolution": (lambda: TemporalConvolution(3, 4, width=2), "width is 2; expected an odd number of steps"),
    "folder": (lambda: Tagger.load("."), ". is a folder, not a model of hscrf.torch.Tagger"),
    "part of scores": (lambda: loss({"tokens": {}}), "scores has unknown part: 'tokens' (did you mean 'token'?)"),
    "no dict by level": (lambda: loss({"token": SCORES}), "scores['token'] is a Tensor; expected a dict by level"),
    "shape of a part": (
        lambda: loss({"token": {"tag": SCORES}}),
        "scores['token']['tag'] has shape (2, 3, 7); expected (2, 3, 3)",
    ),
    "no timed part": (lambda: loss({"init": {"root": torch.zeros(1, 2)}}), "scores has no part (B, T, S)"),
    "tail of a closed level": (
        lambda: loss({"token": {"tag": SCORES[..., :3]}, "tail": {"phrase": torch.zeros(2)}}),
        "scores['tail']['phrase'] is given, but open_duration does not name the level",
    ),
    "shape of a tail": (
        lambda: CRF(OPEN)({"token": {"tag": SCORES[..., :2]}, "tail": {"tag": torch.zeros(3)}}, [None] * 2),
        "scores['tail']['tag'] has shape (3,); expected (2,)",
    ),
    "bottom as parent": (
        lambda: loss({"token": {"tag": SCORES[..., :3]}, "init": {"tag": torch.zeros(3, 3)}}),
        "scores['init']['tag'] names the bottom level",
    ),
    "mask and lengths": (lambda: loss(mask=torch.ones(2, 3).bool(), lengths=[3, 3]), "mask and lengths are both given"),
    "shape of mask": (lambda: loss(mask=torch.ones(2, 4).bool()), "mask has shape (2, 4); expected (2, 3)"),
    "type of mask": (lambda: loss(mask=torch.full((2, 3), 0.5)), "mask has type float32 and values from 0.5 to 0.5"),
    "empty sequence": (lambda: loss(mask=torch.tensor([[1, 1, 1], [0, 0, 0]]).bool()), "mask[1] keeps no step"),
    "lengths": (lambda: loss(lengths=[3, 4]), "lengths[1] is 4; expected 1 to 3, the steps of scores"),
    "type of lengths": (lambda: loss(lengths=[3.0, 1.0]), "lengths has type float64; expected integers"),
    "one tensor": (lambda: loss(labels=LABELS["tag"]), "labels is one tensor, but the levels are 'phrase', 'tag'"),
    "labels as string": (lambda: loss(labels="NP"), "labels is a str; expected a list of Labels or a dict of tensors"),
    "too few labels": (lambda: loss(labels=[None]), "labels has 1 sequences; expected 2, as many as scores"),
    "shape of labels": (
        lambda: loss(labels=changed(tag=LABELS["tag"][:, :2])),
        "labels['tag'] has shape (2, 2); expected (2, 3)",
    ),
    "type of labels": (
        lambda: loss(labels=changed(tag=SCORES[..., 0])),
        "labels['tag'] has type float32; expected integers",
    ),
    "unknown state": (
        lambda: loss(labels=changed(tag=LABELS["tag"] + 3)),
        "labels['tag'] is 3 in sequence 0 at step 0; expected less than 3",
    ),
    "unknown level": (lambda: loss(labels={"chunk": LABELS["tag"]}), "unknown level: 'chunk'"),
    "no labels": (lambda: loss(labels={}), "labels is an empty dict; expected tensors by level"),
    "broken rule": (
        lambda: loss(labels=changed(phrase=torch.tensor([[0] * 3, [0, 1, 1]]))),
        "labels[1]: tag 'D' at 1 is not a child of phrase 'VP'",
    ),
    "unknown name": (lambda: loss(labels=[{"tag": ["D", "N", "X"]}] * 2), "unknown state of level 'tag': 'X'"),
    "length of labels": (
        lambda: loss(labels=[hscrf.Labels.unknown(TOPOLOGY, 2)] * 2),
        "labels[0] has 2 steps; expected 3",
    ),
    "other topology": (
        lambda: loss(labels=[hscrf.Labels.unknown(FLAT, 3)] * 2),
        "with other states or rules than the layer's",
    ),
    "reduction": (lambda: loss(reduction="avg"), "reduction is 'avg'; expected one of 'mean', 'sum'"),
    "shape of weights": (lambda: loss(sample_weight=[1.0]), "sample_weight has shape (1,); expected (2,)"),
    "nan weights": (lambda: loss(sample_weight=[1.0, np.nan]), "sample_weight[1] is nan; expected a finite number"),
    "margin": (lambda: loss(margin=-1), "margin is -1; expected a finite number of at least 0"),
    "margin of a level": (lambda: loss(margin={"tag": "x"}), "margin['tag'] is 'x'; expected a finite number"),
    "meta scores": (
        lambda: loss(torch.zeros(2, 3, 7, device="meta")),
        "scores is on the meta device, which holds no values",
    ),
    "meta layer": (lambda: crf().to("meta")(SCORES, LABELS), "this CRF is on the meta device, which holds no values"),
    "k": (lambda: crf().k_best(SCORES, 0), "k is 0; expected a positive integer"),
    "draws": (lambda: crf().sample(SCORES, -1), "n is -1; expected a positive integer"),
    "no configuration": (forbidden, "scores[0]: the potentials and the topology allow no configuration of 2 steps"),
    "forbidden label": (
        forbidden_label,
        "labels[0]: no segmentation agrees with the evidence: level 'tag' is 'B' at 1",
    ),
    "too long": (too_long, "labels[0]: level 'p' has a segment of 3 steps from 0, but duration ends at 2"),
    "evidence": (
        lambda: crf().decode(SCORES[:1], evidence=[{"phrase": ["VP", "?", "?"], "tag": ["D", "?", "?"]}]),
        "evidence[0]: tag 'D' at 0 is not a child of phrase 'VP'",
    ),
    "state dict": (
        other_state,
        "the state dict is of another topology: level 'phrase' has 2 states, and 2 in this layer",
    ),
    "levels of state dict": (other_levels, "it has the levels root, phrase, tag; this layer has root, tag"),
    "third derivative": (third_derivative, "a third derivative of a CRF was asked for"),
    "encoder": (lambda: Tagger("lstm").fit(WORDS, TAGS), "encoder is 'lstm'; expected one of 'auto', 'bilstm', 'tcn'"),
    "epochs": (lambda: Tagger(epochs=0).fit(WORDS, TAGS), "epochs is 0; expected an integer from 1"),
    "dropout": (
        lambda: Tagger(dropout=1.0).fit(WORDS, TAGS),
        "dropout is 1.0; expected a number from 0 to less than 1",
    ),
    "rate": (lambda: Tagger(learning_rate=0).fit(WORDS, TAGS), "learning_rate is 0; expected a positive number"),
    "one sequence": (lambda: Tagger().fit(np.zeros((3, 2)), TAGS), "X is a ndarray; expected a list of sequences"),
    "numbers of sequences": (lambda: Tagger().fit(WORDS, TAGS[:1]), "X has 2 sequences but Y has 1"),
    "steps": (lambda: Tagger().fit(WORDS, [{"t": ["A"]}] * 2), "X[0] has 2 steps but Y[0] has 1"),
    "mixed steps": (lambda: Tagger().fit([["a", 3]], [["A", "B"]]), "X[0][1] is a int; expected a string"),
    "not fitted": (lambda: Tagger().predict(WORDS), "this Tagger is not fitted: call fit, or load a model"),
    "parts of nothing": (lambda: CRF(FLAT, parts=None), "parts is None; expected a tuple with some of 'token'"),
    "tables of nothing": (lambda: CRF(FLAT, tables=None), "tables is None; expected a tuple with some of 'init'"),
    "one duration": (lambda: crf(durations=3), "durations is 3; expected a list of levels or a dict"),
    "three of a pair": (
        lambda: loss(labels=changed(phrase=(LABELS["phrase"],) * 3)),
        "labels['phrase'] is a tuple of 3; expected a pair of states and ends",
    ),
    "ragged mask": (lambda: loss(mask=[[True], [True, True]]), "mask has rows of different lengths; expected a tensor"),
    "names as weights": (lambda: loss(sample_weight="balanced"), "sample_weight has type <U8; expected numbers"),
    "weights of nothing": (
        lambda: loss(sample_weight=[0.0, 0.0]),
        "the weights add up to 0; expected another sum for reduction='mean'",
    ),
    "seed": (lambda: crf().sample(SCORES, random_state="x"), "random_state is 'x'; expected a whole number"),
    "state without topology": (
        lambda: crf().load_state_dict({**crf().state_dict(), "_extra_state": None}),
        "the state dict holds no topology; expected that of a hscrf.torch.CRF",
    ),
    "order of states": (
        lambda: CRF(FLAT).load_state_dict(CRF(hscrf.Topology({"tag": ["B", "A"]})).state_dict()),
        "level 'tag' has 2 states, and 2 in this layer; their order differs",
    ),
    "device": (lambda: Tagger(device="gpu").fit(WORDS, TAGS), "device is 'gpu', which PyTorch does not have here"),
    "topology of a tagger": (
        lambda: Tagger(topology={"t": ["A"]}).fit(WORDS, TAGS),
        "topology is a dict; expected a Topology or None",
    ),
    "no labels at all": (lambda: Tagger().fit(WORDS, [None, None]), "Y[0]: there are no labels; expected those of"),
    "a string": (lambda: Tagger().fit(["a b"] * 2, [["A"] * 3] * 2), "X[0] is a str; expected a list of steps"),
    "columns": (
        lambda: Tagger().fit([np.zeros((2, 1)), np.zeros((2, 3))], TAGS),
        "X[1] has 3 columns; expected 1, as X[0] has",
    ),
    "weights of a tagger": (lambda: Tagger().fit(WORDS, TAGS, [0, 0]), "sample_weight is 0 for every sequence"),
    "development alone": (
        lambda: Tagger().fit(WORDS, TAGS, development=[["a"]] * 3),
        "development has 3 items; expected a pair (X, Y)",
    ),
    "no development": (lambda: Tagger().fit(WORDS, TAGS, development=([], [])), "development: X is empty"),
    "steps of development": (
        lambda: Tagger().fit(WORDS, TAGS, development=(WORDS, [{"t": ["A"]}] * 2)),
        "development: X[0] has 2 steps but Y[0] has 1",
    ),
    "other observations": (
        lambda: Tagger(hidden=2, epochs=1).fit(WORDS, TAGS).predict([np.zeros((2, 1))]),
        "X[0] has nothing that training had; expected the columns 'word'",
    ),
    "no numbers": (lambda: Tagger().fit([np.full((2, 1), np.inf)], [["A", "B"]]), "X[0] is inf at step 0, column 'x0'"),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_call_says_what_is_wrong(name):
    call, expected = WRONG[name]
    with pytest.raises((ValueError, TypeError, RuntimeError)) as caught:
        call()
    text = str(caught.value)
    assert expected in text
    assert "\n" not in text


def test_there_are_at_least_forty():
    assert len(WRONG) >= 40

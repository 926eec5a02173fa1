"""The layer against enumeration, against one run a sequence, and against differences."""

import copy
import pickle

import numpy as np
import pytest

import enumeration as twin
import hscrf
from drawing import MIXES, draw_topology, hide
from test_twin import draw
from torching import require_torch

torch = require_torch()

from torch.autograd import gradcheck, gradgradcheck  # noqa: E402

from hscrf.labels.packed import close_packed, pack_labels, pack_sets  # noqa: E402
from hscrf.torch import CRF, terms  # noqa: E402

CASES = [(depth, seed) for depth in (2, 3, 4) for seed in range(5)]
CLOSE = {"rtol": 1e-9, "atol": 1e-9}


def as_scores(potentials):
    """Potentials as scores of a batch of one sequence."""
    found = {}
    for part, level, values in potentials.parts():
        timed = part in ("token", "start", "stop", "segment") or (
            part not in ("duration", "tail") and values.shape[0] > 1
        )
        tensor = torch.from_numpy(values.copy())
        found.setdefault(part, {})[level] = (tensor[None] if timed else tensor).requires_grad_()
    return found


def with_steps(potentials):
    """The same with tokens, so that the number of steps is known."""
    level, size = potentials.topology.levels[1], potentials.topology.n_states[1]
    scores = as_scores(potentials)
    if not {"token", "start", "stop", "segment"} & scores.keys():
        scores["token"] = {level: torch.zeros(1, potentials.length, size, dtype=torch.float64, requires_grad=True)}
    return scores


@pytest.mark.parametrize(("depth", "seed"), CASES)
def test_agrees_with_enumeration(depth, seed):
    model, evidence, potentials, labels = draw(depth, seed)
    crf, scores = CRF(potentials.topology, tables=()), with_steps(potentials)
    known = None if labels is None else [labels]
    log_z = crf.log_partition(scores, evidence=known)
    np.testing.assert_allclose(log_z.detach(), [twin.log_partition(model, evidence)], **CLOSE)
    counts = twin.counts(model, evidence)
    log_z.sum().backward()
    for part, level, values in potentials.parts():
        gradient = scores[part][level].grad.numpy().reshape(values.shape)
        np.testing.assert_allclose(gradient, counts[part][potentials.topology.level(level)], **CLOSE, err_msg=part)
    found = crf.marginals(scores, evidence=known)
    for d, level in enumerate(potentials.topology.levels):
        np.testing.assert_allclose(found.state[level][0], twin.state_marginals(model, evidence)[d], **CLOSE)
        np.testing.assert_allclose(found.ending[level][0], twin.ending_marginals(model, evidence)[d], **CLOSE)
    entropy = crf.entropy(scores, evidence=known)
    np.testing.assert_allclose(entropy.detach(), [twin.entropy(model, evidence)], rtol=1e-9, atol=1e-8)
    ranked = [item.log_score for item in twin.ranked(model, evidence)[:5]]
    best = crf.k_best(scores, 5, evidence=known)[0]
    np.testing.assert_allclose([y.score for y in best], ranked, **CLOSE)
    np.testing.assert_allclose(crf.decode(scores, evidence=known)[0].score, ranked[0], **CLOSE)


@pytest.mark.parametrize(("depth", "seed"), CASES)
def test_loss_agrees_with_enumeration(depth, seed):
    model, evidence, potentials, labels = draw(depth, 1 + 3 * seed)
    crf, scores = CRF(potentials.topology, tables=()), with_steps(potentials)
    expected = twin.log_partition(model) - twin.log_partition(model, evidence)
    np.testing.assert_allclose(crf(scores, [labels]).item(), expected, **CLOSE)
    truth = twin.configurations(model)[-1]
    complete = hscrf.Labels(potentials.topology, truth.states, truth.ends)
    loss = crf(scores, [complete])
    np.testing.assert_allclose(loss.item(), twin.log_partition(model) - truth.log_score, **CLOSE)
    loss.backward()
    free, own = twin.counts(model), twin.counts(model, twin.Evidence(truth.states, truth.ends))
    for part, level, values in potentials.parts():
        d = potentials.topology.level(level)
        gradient = scores[part][level].grad.numpy().reshape(values.shape)
        np.testing.assert_allclose(gradient, free[part][d] - own[part][d], **CLOSE, err_msg=part)


class Batch:
    """A drawn layer, scores of unequal lengths with padding and holes, and labels of every kind."""

    def __init__(
        self,
        seed,
        kinds,
        classes=1,
        sparse=False,
        known=(0.0, 0.3, 1.0),
        rows=3,
        width=4,
        dtype=None,
        opened=False,
        size=2,
    ):
        rng = np.random.default_rng(seed)
        self.dtype = dtype or torch.float64
        segmental = [chr(97 + k) for k, kind in enumerate(kinds) if kind == "segmental"]
        self.topology = draw_topology(rng, kinds, size, classes, sparse, longest=3)
        if opened:
            self.topology = self.topology.limited(dict.fromkeys(segmental, 2)).opened(segmental)
        durations = {level: 3 for level in segmental[:1]}
        self.crf = CRF(self.topology, parts=("token", "start", "stop"), durations=durations).to(self.dtype)
        generator = torch.Generator().manual_seed(seed)
        for table in self.crf.parameters():
            table.data.normal_(generator=generator)
        self.scores = torch.randn(rows, width, self.crf.size, dtype=self.dtype, generator=generator)
        self.mask = torch.ones(rows, width, dtype=torch.bool)
        self.mask[1, 1] = self.mask[2, :2] = False
        drawn = [draws[0] for draws in self.crf.sample(self.scores, mask=self.mask, random_state=seed)]
        self.labels = [hide(rng, y, 1 - known[n % len(known)]) for n, y in enumerate(drawn)]

    @property
    def inputs(self):
        return [tensor.detach().clone().requires_grad_() for tensor in (self.scores, *self.crf.parameters())]

    def loss(self, scores, *tables, rows=slice(None), **options):
        named = dict(zip([name for name, _ in self.crf.named_parameters()], tables, strict=True))
        return torch.func.functional_call(
            self.crf, named, (scores[rows], self.labels[rows]), {"mask": self.mask[rows], **options}
        )


@pytest.mark.parametrize("kinds", MIXES, ids="-".join)
def test_first_and_second_derivatives(kinds):
    batch = Batch(len(kinds), kinds, classes=1 + len(kinds) % 2, sparse=True)
    weights = torch.tensor([0.5, 2.0, -1.0])

    def loss(*inputs):
        return batch.loss(*inputs, reduction="none", sample_weight=weights)

    assert gradcheck(loss, batch.inputs, fast_mode=True)
    assert gradgradcheck(loss, batch.inputs, fast_mode=True)


@pytest.mark.parametrize("kinds", [("segmental",), ("unit", "segmental"), ("segmental", "segmental")])
def test_derivatives_of_open_durations(kinds):
    batch = Batch(5, kinds, width=8, opened=True)
    batch.loss(*batch.inputs[:1], *batch.crf.parameters()).backward()
    tails = [table.grad for name, table in batch.crf.named_parameters() if "tail" in name]
    assert len(tails) == kinds.count("segmental")
    assert all((tail.abs() > 1e-3).any() for tail in tails)
    assert gradcheck(batch.loss, batch.inputs, fast_mode=True)
    assert gradgradcheck(batch.loss, batch.inputs, fast_mode=True)


@pytest.mark.parametrize(
    ("known", "reduction"),
    [((1.0,), "mean"), ((0.0,), "sum"), ((0.5,), "token_mean"), ((0.5,), "mean"), ((1.0,), "none")],
)
def test_gradient_of_every_reduction(known, reduction):
    batch = Batch(3, ("segmental", "unit"), known=known, rows=3, width=3)

    def loss(*inputs):
        return batch.loss(*inputs, reduction=reduction, margin=0.4)

    assert gradcheck(loss, batch.inputs, fast_mode=known != (1.0,) or reduction != "mean")


def test_second_derivatives_of_all_that_is_differentiable():
    batch = Batch(5, ("markov", "unit"), rows=3, width=3)
    scores, *_ = batch.inputs
    options = {"mask": batch.mask, "evidence": batch.labels}
    quick = {"fast_mode": True}
    assert gradcheck(lambda x: batch.crf.log_partition(x, **options), [scores], **quick)
    assert gradgradcheck(lambda x: batch.crf.log_partition(x, **options), [scores], **quick)
    assert gradcheck(lambda x: batch.crf.entropy(x, **options), [scores])
    for level in batch.topology.levels[1:]:

        def marginals(x, level=level):
            found = batch.crf.marginals(x, **options, differentiable=True)
            return found.state[level], found.ending[level]

        assert gradcheck(marginals, [scores], **quick)


def test_differences_stay_exact_in_long_sequences():
    crf = CRF(hscrf.Topology({"tag": ["A", "B"]})).double()
    crf.table("trans", "root").data.copy_(torch.eye(2, dtype=torch.float64)[None] * 6)  # states that last
    scores = torch.zeros(1, 200, 2, dtype=torch.float64, requires_grad=True)
    found = torch.autograd.functional.vhp(lambda x: crf.log_partition(x).sum(), scores, torch.ones_like(scores))[1]
    np.testing.assert_allclose(found, 0.0, atol=1e-9)  # a shift of all states of a step changes no probability
    direction = torch.zeros_like(scores)
    direction[..., 0] = 1.0
    found = torch.autograd.functional.vhp(lambda x: crf.log_partition(x).sum(), scores, direction)[1][0, :, 0]
    stay = np.exp(6) / (1 + np.exp(6))
    apart = np.abs(np.subtract.outer(np.arange(200), np.arange(200)))
    expected = (0.25 * (2 * stay - 1.0) ** apart).sum(axis=1)  # covariances of a symmetric chain
    np.testing.assert_allclose(found, expected, rtol=1e-7)


def test_marginals_that_are_differentiable_are_the_same():
    batch = Batch(7, ("segmental", "unit"), classes=2)
    options = {"mask": batch.mask, "evidence": batch.labels}
    plain = batch.crf.marginals(batch.scores, **options)
    smooth = batch.crf.marginals(batch.scores, **options, differentiable=True)
    for level in batch.topology.levels:
        torch.testing.assert_close(smooth.state[level], plain.state[level], rtol=1e-9, atol=1e-12)
        torch.testing.assert_close(smooth.ending[level], plain.ending[level], rtol=1e-9, atol=1e-12)
    sums = plain.state["a"].sum(dim=2)
    torch.testing.assert_close(sums, batch.mask.double(), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("kinds", [("unit",), ("segmental",), ("markov", "unit"), ("segmental", "segmental")])
def test_a_batch_is_one_run_a_sequence(kinds):
    batch = Batch(11, kinds, classes=2)
    inputs = batch.inputs
    weights = torch.tensor([1.0, 3.0, 0.25], dtype=torch.float64)
    whole = batch.loss(*inputs, reduction="sum", sample_weight=weights)
    gradients = torch.autograd.grad(whole, inputs)
    total, sums = 0.0, [torch.zeros_like(tensor) for tensor in inputs]
    for n in range(3):
        scores, *tables = batch.inputs
        own = scores[n : n + 1, batch.mask[n]]
        named = dict(zip([name for name, _ in batch.crf.named_parameters()], tables, strict=True))
        single = weights[n] * torch.func.functional_call(batch.crf, named, (own, batch.labels[n : n + 1]))
        total += single.item()
        for place, gradient in zip(sums, torch.autograd.grad(single, [scores, *tables]), strict=True):
            place += gradient
    np.testing.assert_allclose(whole.item(), total, rtol=1e-12)
    for gradient, expected in zip(gradients, sums, strict=True):
        torch.testing.assert_close(gradient, expected, rtol=1e-10, atol=1e-12)


def in_pieces(seed, kinds):
    """A batch that is computed in several pieces, because it has many transitions."""
    batch = Batch(seed, kinds, rows=24, width=5, size=80)
    offsets = np.append(0, np.cumsum(batch.mask.sum(1).numpy()))
    assert len(terms.sub_batch_bounds(offsets, terms.transitions(batch.topology))) > 3
    return batch


def test_same_bits_for_any_number_of_threads():
    found = []
    batch = in_pieces(13, ("segmental", "unit"))
    for jobs in (1, 3):
        batch.crf.n_jobs = jobs
        inputs = batch.inputs
        loss = batch.loss(*inputs, sample_weight=torch.arange(1.0, 25.0))
        entropy = batch.crf.entropy(batch.scores, mask=batch.mask)
        drawn = [y[0].states.tobytes() for y in batch.crf.sample(batch.scores, mask=batch.mask, random_state=1)]
        best = [y.states.tobytes() for y in batch.crf.decode(batch.scores, mask=batch.mask)]
        numbers = [tensor.detach().numpy().tobytes() for tensor in (loss, entropy, *torch.autograd.grad(loss, inputs))]
        found.append((numbers, drawn, best))
    assert found[0] == found[1]


def test_pieces_change_nothing():
    batch = in_pieces(17, ("markov", "unit"))
    inputs = batch.inputs
    loss = batch.loss(*inputs, reduction="sum")
    found = [loss, *torch.autograd.grad(loss, inputs)]
    few = [slice(k, k + 4) for k in range(0, 24, 4)]  # too few sequences for two pieces
    alone = sum(batch.loss(*inputs, rows=rows, reduction="sum") for rows in few)
    for one, other in zip(found, [alone, *torch.autograd.grad(alone, inputs)], strict=True):
        torch.testing.assert_close(one, other, rtol=1e-12, atol=1e-13)


def test_holes_are_as_if_the_steps_were_not_there():
    crf = CRF(hscrf.Topology({"tag": ["A", "B", "C"]})).double()
    crf.table("trans", "root").data.normal_()
    scores = torch.randn(1, 6, 3, dtype=torch.float64)
    mask = torch.tensor([[False, True, True, False, True, False]])
    tags = torch.tensor([[9, 0, 2, 7, 1, -5]])  # what the mask leaves out is not read
    packed = scores[:, mask[0]]
    torch.testing.assert_close(crf(scores, tags, mask=mask), crf(packed, tags[:, mask[0]]))
    assert crf.decode(scores, mask=mask)[0].column() == crf.decode(packed)[0].column()
    lengths = crf.log_partition(scores, lengths=[4])
    torch.testing.assert_close(lengths, crf.log_partition(scores[:, :4]))


def test_minus_100_is_unknown():
    crf = CRF(hscrf.Topology({"tag": ["A", "B"]}))
    scores = torch.randn(1, 3, 2)
    unknown = crf(scores, torch.tensor([[0, -100, 1]]))
    both = [crf(scores, torch.tensor([[0, tag, 1]])) for tag in (0, 1)]
    torch.testing.assert_close(torch.exp(-unknown), torch.exp(-both[0]) + torch.exp(-both[1]))


def test_labels_may_be_written_in_any_form():
    topology = hscrf.Topology({"phrase": ["NP", "VP"], "tag": ["D", "N", "V"]})
    crf, scores = CRF(topology, parts=("token", "start")), torch.randn(2, 3, 7)
    columns = [{"phrase": ["B-NP", "I-NP", "B-VP"], "tag": ["D", "N", "V"]}, {"phrase": ["?", "VP", "VP"]}]
    lists = [
        [{"phrase": ["NP", "NP", "VP"], "tag": ["D", "N", "V"]}, {"phrase": ["?", "VP", "VP"], "tag": ["?"] * 3}],
        [hscrf.Labels.from_columns(topology, y) for y in (lists_of(columns))],
        {
            "phrase": torch.tensor([[0, 0, 1], [-1, 1, 1]]),
            "tag": torch.tensor([[0, 1, 2], [-100, -100, -100]]),
        },
        [{"phrase": [(0, 2, "NP"), (2, 3, "VP")], "tag": ["D", "N", "V"]}, {"phrase": ["?", "VP", "VP"]}],
    ]
    losses = [crf(scores, labels).item() for labels in lists]
    np.testing.assert_allclose(losses, losses[0], rtol=1e-6)
    prefixed = crf(scores[:1], [columns[0]])
    np.testing.assert_allclose(prefixed.item(), crf(scores[:1], lists[0][:1]).item(), rtol=1e-6)


def lists_of(columns):
    return [{level: [tag.removeprefix("B-").removeprefix("I-") for tag in y[level]] for level in y} for y in columns]


def test_ends_in_a_tensor_tell_neighbours_apart():
    topology = hscrf.Topology({"phrase": ["NP", "VP"]}, max_duration={"phrase": None})
    crf = CRF(topology, parts=("token", "start")).double()
    scores = torch.randn(1, 3, 4, dtype=torch.float64)
    states = torch.tensor([[0, 0, 0]])
    two = crf(scores, {"phrase": (states, torch.tensor([[1, 0, 1]]))})
    expected = crf(scores, [{"phrase": ["B-NP", "B-NP", "I-NP"]}])
    torch.testing.assert_close(two, expected)
    assert not torch.isclose(two, crf(scores, {"phrase": states}))
    any_end = crf(scores, {"phrase": (states, torch.tensor([[-1, -100, 1]]))})
    ways = [crf(scores, {"phrase": (states, torch.tensor([[a, b, 1]]))}) for a in (0, 1) for b in (0, 1)]
    torch.testing.assert_close(torch.exp(-any_end), sum(torch.exp(-way) for way in ways))


def test_classes_of_the_root_may_be_one_tensor():
    topology = hscrf.Topology({"tag": ["A", "B"]}, root=["good", "bad"])
    crf, scores = CRF(topology).double(), torch.randn(2, 3, 4, dtype=torch.float64)
    both = [crf(scores, {"root": torch.tensor([k, k])}, reduction="none") for k in (0, 1)]
    torch.testing.assert_close(torch.exp(-both[0]) + torch.exp(-both[1]), torch.ones(2, dtype=torch.float64))
    assert [y.column("root")[0] for y in crf.decode(scores, evidence={"root": torch.tensor([1, 0])})] == ["bad", "good"]


def test_sample_weights():
    batch = Batch(19, ("markov", "unit"))
    each = batch.loss(*batch.inputs, reduction="none")
    weights = np.array([0.0, 2.0, -0.5])
    weighted = batch.loss(*batch.inputs, reduction="none", sample_weight=weights)
    torch.testing.assert_close(weighted, each * torch.from_numpy(weights))
    mean = batch.loss(*batch.inputs, sample_weight=weights)
    torch.testing.assert_close(mean, (each * torch.from_numpy(weights)).sum() / weights.sum())
    tokens = batch.loss(*batch.inputs, reduction="token_mean")
    torch.testing.assert_close(tokens, each.sum() / batch.mask.sum())


def test_a_gradient_that_is_not_the_expected_one_is_computed_again():
    batch = Batch(23, ("segmental", "unit"))
    cotangent = torch.tensor([1.0, -2.0, 0.5], dtype=torch.float64)
    inputs = batch.inputs
    whole = torch.autograd.grad(batch.loss(*inputs, reduction="none"), inputs, cotangent)
    for n, gradient in enumerate(whole):
        parts = 0
        for k in range(3):
            own = batch.inputs
            parts += cotangent[k] * torch.autograd.grad(batch.loss(*own, reduction="none")[k], own)[n]
        torch.testing.assert_close(gradient, parts, rtol=1e-10, atol=1e-12)


def test_margin_is_the_cost_of_wrong_states():
    topology = hscrf.Topology({"a": ["x", "y"], "b": ["u", "v"]})
    crf, scores = CRF(topology).double(), torch.randn(1, 3, 4, dtype=torch.float64)
    labels = {"a": torch.tensor([[0, 1, 1]]), "b": torch.tensor([[0, 1, -1]])}
    raised = scores.clone()
    raised[0, 0, 1] += 0.7  # a is x at 0
    raised[0, 1:, 0] += 0.7
    costs = [crf(scores, labels, margin={"a": 0.7}), crf(scores, labels, margin=0.7)]
    mass = crf.log_partition(scores) - crf(scores, labels)
    torch.testing.assert_close(costs[0], (crf.log_partition(raised) - mass)[0])
    raised[0, 0, 3] += 0.7
    raised[0, 1, 2] += 0.7
    torch.testing.assert_close(costs[1], (crf.log_partition(raised) - mass)[0])


def test_samples_follow_the_marginals():
    batch = Batch(29, ("markov", "unit"))
    found = batch.crf.marginals(batch.scores, mask=batch.mask).state["b"][0]
    drawn = batch.crf.sample(batch.scores, 4000, random_state=0, mask=batch.mask)[0]
    share = np.mean([y.states[2] == 1 for y in drawn], axis=0)
    np.testing.assert_allclose(share, found[:, 1], atol=0.03)
    torch.manual_seed(4)
    first = batch.crf.sample(batch.scores, 3)
    torch.manual_seed(4)
    assert first == batch.crf.sample(batch.scores, 3)


def test_evidence_is_kept():
    batch = Batch(31, ("segmental", "unit"))
    for found in (
        batch.crf.decode(batch.scores, mask=batch.mask, evidence=batch.labels),
        [y[0] for y in batch.crf.sample(batch.scores, 1, 0, batch.mask, evidence=batch.labels)],
        [y[-1] for y in batch.crf.k_best(batch.scores, 3, batch.mask, evidence=batch.labels)],
    ):
        for y, known in zip(found, batch.labels, strict=True):
            assert ((known.states < 0) | (known.states == y.states)).all()
            assert ((known.ends < 0) | (known.ends == y.ends)).all()


def test_labels_of_a_batch_are_read_once_and_forgotten():
    batch = Batch(37, ("markov", "unit"), known=(0.5,))
    crf = batch.crf
    loss = crf(batch.scores, batch.labels, mask=batch.mask)
    (first,) = crf._kept.kept.values()
    again = [hscrf.Labels(y.topology, y.states, y.ends) for y in batch.labels]
    assert crf(batch.scores, again, mask=batch.mask) == loss
    assert list(crf._kept.kept.values()) == [first]
    tags = torch.zeros(3, 4, dtype=torch.long)
    crf(batch.scores, {"b": tags}, mask=batch.mask)
    changed = crf(batch.scores, {"b": tags.add_(1)}, mask=batch.mask)  # another content in the same tensor
    whole = crf(batch.scores, {"b": tags})  # the same content in another frame
    assert len(crf._kept.kept) == 4
    assert not pickle.loads(pickle.dumps(crf._kept)).kept
    assert not copy.deepcopy(crf._kept).kept
    crf._kept = type(crf._kept)(memory=1)
    assert crf(batch.scores, {"b": tags}, mask=batch.mask) == changed
    assert crf(batch.scores, {"b": tags}) == whole
    assert not crf._kept.kept
    assert crf._kept.used == 0


@pytest.mark.parametrize("kinds", MIXES, ids="-".join)
@pytest.mark.parametrize("seed", [41, 43])
def test_labels_are_closed_in_one_piece_as_one_by_one(kinds, seed):
    batch = Batch(seed, kinds, classes=2, sparse=True, known=(0.2, 0.5, 0.8), rows=9)
    rng = np.random.default_rng(seed)
    level = batch.topology.levels[-1]
    some = batch.labels[4]
    sets = rng.random((some.length, batch.topology.n_states[-1])) < 0.8
    sets |= some.states[-1][:, None] < 0
    sets[some.states[-1] >= 0, some.states[-1][some.states[-1] >= 0]] = True
    batch.labels[4] = hscrf.Labels(batch.topology, some.states, some.ends, {level: sets})
    known, closed = close_packed(batch.topology, pack_labels(batch.labels), pack_sets(batch.labels))
    one_by_one = [y.closed() for y in batch.labels]
    expected = pack_labels(one_by_one)
    np.testing.assert_array_equal(known.states, expected.states)
    np.testing.assert_array_equal(known.ends, expected.ends)
    for d, name in enumerate(batch.topology.levels):
        np.testing.assert_array_equal(closed[d], np.concatenate([y.allowed[name] for y in one_by_one]))

"""The layer among the things of PyTorch: precision, transforms, compilation, processes, state dicts, other packages."""

import copy
import importlib.util
import inspect
import os
import runpy
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest

import hscrf
from torching import require_torch

torch = require_torch()

from torch import nn  # noqa: E402

from hscrf.torch import CRF, autograd, transfer  # noqa: E402

TOPOLOGY = hscrf.Topology({"phrase": ["NP", "VP"], "tag": ["D", "N", "V"]})
LABELS = {"phrase": torch.tensor([[0, 0, 1], [1, 1, 1]]), "tag": torch.tensor([[0, 1, 2], [2, -1, -100]])}


class Network(nn.Module):
    """A linear encoder with the layer on top."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.crf = CRF(TOPOLOGY, parts=("token", "start"))
        self.out = nn.Linear(4, self.crf.size)

    def forward(self, vectors, labels=None):
        scores = self.out(vectors)
        return scores if labels is None else self.crf(scores, labels)


@pytest.fixture
def vectors():
    return torch.randn(2, 3, 4, generator=torch.Generator().manual_seed(1))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_any_precision_outside_and_double_inside(dtype):
    crf = CRF(TOPOLOGY).to(dtype)
    scores = (torch.arange(30.0).reshape(2, 3, 5) / 8).to(dtype).requires_grad_()  # exact in every precision
    loss = crf(scores, LABELS)
    loss.backward()
    exact = CRF(TOPOLOGY).double()
    twin = scores.detach().double().requires_grad_()
    expected = exact(twin, LABELS)
    expected.backward()
    assert loss.dtype == (torch.float64 if dtype == torch.float64 else torch.float32)
    assert scores.grad.dtype == dtype
    np.testing.assert_allclose(loss.item(), expected.item(), rtol=1e-6)
    torch.testing.assert_close(scores.grad.double(), twin.grad, rtol=1e-2, atol=1e-2)


def test_autocast(vectors):
    network = Network()
    expected = network(vectors, LABELS)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        scores = network(vectors)
        loss = network.crf(scores, LABELS)
    assert scores.dtype == torch.bfloat16
    assert loss.dtype == torch.float32
    loss.backward()
    assert network.out.weight.grad.dtype == torch.float32
    np.testing.assert_allclose(loss.item(), expected.item(), rtol=0.05)


def test_a_scaled_loss_that_overflows_gives_no_finite_gradient(vectors):
    network = Network()
    (network(vectors, LABELS) * torch.inf).backward()
    assert not torch.isfinite(network.out.weight.grad).any()


def test_transforms_of_torch_func(vectors):
    network = Network().double()
    vectors = vectors.double()
    parameters = {name: value.detach() for name, value in network.named_parameters()}

    def loss(parameters):
        mask = vectors.sum(dim=2) < 1e9  # made inside of the transform
        scores = torch.func.functional_call(network, parameters, (vectors,))
        return torch.func.functional_call(network.crf, crf_part(parameters), (scores, LABELS), {"mask": mask})

    def crf_part(parameters):
        return {name.removeprefix("crf."): value for name, value in parameters.items() if name.startswith("crf.")}

    found = torch.func.grad(loss)(parameters)
    network(vectors, LABELS).backward()
    for name, parameter in network.named_parameters():
        torch.testing.assert_close(found[name], parameter.grad)
    value, _ = torch.func.vjp(lambda x: network.crf.log_partition(network(x)), vectors)
    torch.testing.assert_close(value, network.crf.log_partition(network(vectors)))


def test_compiled_models_leave_the_layer_alone(vectors):
    network = Network()
    torch.compiler.reset()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        compiled = torch.compile(network, backend="eager")  # traces the encoder; generates no code
        loss = compiled(vectors, LABELS)
        loss.backward()
    gradient = network.out.weight.grad.clone()
    network.zero_grad()
    network(vectors, LABELS).backward()
    torch.testing.assert_close(gradient, network.out.weight.grad)


def test_importing_hscrf_does_not_import_torch_nor_its_wing_the_compiler():
    code = """
import sys
import hscrf, hscrf.cli.main
hscrf.HSCRF
assert "torch" not in sys.modules
import hscrf.torch
assert "torch._dynamo" not in sys.modules
"""
    assert subprocess.run([sys.executable, "-W", "ignore", "-c", code]).returncode == 0


def test_distributed_data_parallel(tmp_path):
    # A process of its own that leaves at once: taking a group of processes down can wait for Python's lock for ever.
    code = """
import os, sys, warnings
warnings.simplefilter("ignore")
import test_torch_features as features
features.gradients_are_those_of_one_process(sys.argv[1])
os._exit(0)
"""
    here = str(Path(__file__).resolve().parent)
    paths = os.pathsep.join([here, str(Path(hscrf.__file__).resolve().parents[1]), os.environ.get("PYTHONPATH", "")])
    command = [sys.executable, "-c", code, str(tmp_path / "store")]
    assert subprocess.run(command, env={**os.environ, "PYTHONPATH": paths}, timeout=300).returncode == 0


def gradients_are_those_of_one_process(store):
    import torch.distributed

    vectors = torch.randn(2, 3, 4, generator=torch.Generator().manual_seed(1))
    torch.distributed.init_process_group("gloo", store=torch.distributed.FileStore(store, 1), rank=0, world_size=1)
    network = Network()
    wrapped = nn.parallel.DistributedDataParallel(copy.deepcopy(network))
    wrapped(vectors, LABELS).backward()
    network(vectors, LABELS).backward()
    for one, other in zip(wrapped.module.parameters(), network.parameters(), strict=True):
        torch.testing.assert_close(one.grad, other.grad)


def test_the_reference_has_every_class_with_its_parameters():
    text = (Path(__file__).resolve().parents[1] / "docs" / "api.md").read_text(encoding="utf-8")
    for name in hscrf.torch.__all__:
        assert f"- `{name}" in text
        if name != "TensorMarginals":
            bare = [
                p.replace(annotation=p.empty) for p in inspect.signature(getattr(hscrf.torch, name)).parameters.values()
            ]
            assert name + str(inspect.Signature(bare)).replace("'", '"') in text
    for name in ("log_partition", "marginals", "entropy", "decode", "k_best", "sample", "posteriors", "table"):
        bare = [p.replace(annotation=p.empty) for p in inspect.signature(getattr(CRF, name)).parameters.values()]
        assert name + str(inspect.Signature(bare[1:])) in text


def test_state_dicts_load_without_pickle(tmp_path):
    first, second = Network(), Network()
    first.crf.table("trans", "phrase").data.normal_()
    torch.save(first.state_dict(), tmp_path / "state.pt")
    second.load_state_dict(torch.load(tmp_path / "state.pt", weights_only=True))
    torch.testing.assert_close(second.crf.table("trans", "phrase"), first.crf.table("trans", "phrase"))
    ints = CRF(hscrf.Topology({"tag": [3, 5]}))
    CRF(hscrf.Topology({"tag": [3, 5]})).load_state_dict(ints.state_dict())


def test_a_layer_can_be_copied_and_pickled(vectors):
    import pickle

    network = Network()
    expected = network(vectors, LABELS)
    for twin in (copy.deepcopy(network), pickle.loads(pickle.dumps(network))):
        torch.testing.assert_close(twin(vectors, LABELS), expected)


def test_tensors_of_another_device_cross_as_one_block(vectors, monkeypatch):
    """There is no other device here: CPU tensors that say they are elsewhere take the same path."""
    crossed = []

    class Elsewhere:
        type = "elsewhere"

    def cross(block):
        crossed.append(block)
        return block, lambda: None

    class Foreign:
        def __init__(self, tensor):
            self.tensor, self.device, self.shape, self.dtype = tensor, Elsewhere(), tensor.shape, tensor.dtype

        def detach(self):
            return self

        def reshape(self, *shape):
            return self.tensor.reshape(*shape)

        def numel(self):
            return self.tensor.numel()

    monkeypatch.setattr(transfer, "cross", cross)
    tensors = [torch.randn(2, 3), torch.randn(4)]
    found = transfer.begin_reading([Foreign(tensor) for tensor in tensors])()
    assert len(crossed) == 1
    for array, tensor in zip(found, tensors, strict=True):
        np.testing.assert_array_equal(array, tensor.double().numpy())


def test_gradients_for_another_device_cross_as_one_block():
    """The meta device stands for another: it has no values, but devices, types and shapes."""
    like = [torch.zeros(2, 3, device="meta"), torch.zeros(1, 4, dtype=torch.float16, device="meta")]
    found = transfer.to_tensors([np.ones((2, 3)), np.ones((1, 1, 4))], like)
    assert [(one.device, one.dtype, one.shape) for one in found] == [(o.device, o.dtype, o.shape) for o in like]
    assert found[0].untyped_storage().size() == 4 * (6 + 4)  # part of the block


def test_the_copy_to_the_host_starts_before_labels_are_read(vectors, monkeypatch):
    """There is no CUDA device here: CPU tensors are copied in the same order."""
    from hscrf.torch import crf, layer

    network, done = Network(), []
    expected = network(vectors, LABELS)
    real = crf.read_target

    def begin_early(tensors):
        done.append("copy starts")
        reader = transfer.begin_reading(tensors)

        def wait():
            done.append("copy is complete")
            return reader()

        return wait

    def read_target(*arguments):
        done.append("labels are read")
        return real(*arguments)

    monkeypatch.setattr(layer, "begin_early", begin_early)
    monkeypatch.setattr(crf, "read_target", read_target)
    assert network(vectors, LABELS) == expected
    assert done == ["copy starts", "labels are read", "copy is complete"]


def test_scores_of_another_device_than_the_layer():
    from types import SimpleNamespace

    from hscrf.torch.frame import PaddedBatch
    from hscrf.torch.layout import Scores

    elsewhere = Scores(PaddedBatch(1, 1), {("token", 2): SimpleNamespace(device=torch.device("cuda:1"))})
    with pytest.raises(ValueError, match=r"scores \(token of level 'tag'\) are on cuda:1, but this CRF is on cpu"):
        Network().crf._check_device(elsewhere)


def test_a_hint_of_weights_saves_a_pass():
    weights = np.array([1.0, 2.0, 0.5])
    assert autograd.proportion(3 * weights, weights, 1e-12) == pytest.approx(3.0)
    assert autograd.proportion(np.array([3.0, 6.0, 1.6]), weights, 1e-12) is None
    assert autograd.proportion(np.zeros(3), weights, 1e-12) == 0.0
    assert autograd.proportion(np.ones(3), np.zeros(3), 1e-12) is None
    assert autograd.proportion(np.full(3, 0.1), None, 1e-12) == 0.1


EXAMPLES = Path(__file__).resolve().parents[1] / "examples" / "neural"


@pytest.mark.parametrize("package", ["skorch", "lightning"])
def test_nets_of_other_packages(package, monkeypatch, tmp_path):
    if importlib.util.find_spec(package) is None:
        pytest.skip(f"{package} is not installed")
    monkeypatch.chdir(tmp_path)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        space = runpy.run_path(str(EXAMPLES / f"in_{package}.py"))
    assert space["right"] > 0.9


def test_a_tagger_written_by_hand():
    main = runpy.run_path(str(EXAMPLES / "bilstm.py"))["main"]
    assert [y.column("pos") for y in main()][3] == ["D", "J", "N", "V", "D", "N"]


def test_the_example_of_partial_labels():
    found = runpy.run_path(str(EXAMPLES / "partial.py"))["main"](n=40, epochs=8)
    assert len(found) == 3
    assert min(found.values()) > 0.25  # two times four states


def test_the_electrocardiograms(data_folder):
    if not (data_folder / "ludb").is_dir():
        pytest.skip("HSCRF_DATA has no folder ludb")
    space = runpy.run_path(str(EXAMPLES / "ecg.py"))
    X, _ = space["load"](data_folder / "ludb", range(1, 6, 2))
    assert X[0].shape == (500, 24)
    assert space["main"](data_folder / "ludb", records=4, epochs=1) > 0

"""The nested layer in a skorch net: fit, predict and a grid search of scikit-learn around a network of one's own.

python examples/neural/in_skorch.py
"""

import numpy as np
import torch
from skorch import NeuralNet
from torch import nn

import hscrf
import hscrf.torch

TOPOLOGY = hscrf.Topology({"part": ["rise", "fall"], "step": ["low", "high"]})


class Network(nn.Module):
    def __init__(self, hidden: int = 8) -> None:
        super().__init__()
        self.crf = hscrf.torch.CRF(TOPOLOGY, parts=("token", "start"))
        self.encode = nn.Sequential(nn.Linear(1, hidden), nn.Tanh(), nn.Linear(hidden, self.crf.size))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.encode(x)


class NestedNet(NeuralNet):
    """A net whose loss is that of the layer in its module; labels are state indices (B, T, levels)."""

    def get_loss(self, y_pred, y_true, *args, **kwargs):
        labels = {level: y_true[..., k] for k, level in enumerate(TOPOLOGY.levels[1:])}
        return self.module_.crf(y_pred, labels)

    def predict(self, X) -> list[hscrf.Labels]:
        return self.module_.crf.decode(self.forward(X))


rng = np.random.default_rng(0)
steps = rng.integers(0, 2, (40, 6))
parts = np.repeat(steps[:, ::3], 3, axis=1)
X = (steps + 2 * parts + rng.normal(0, 0.2, steps.shape))[..., None].astype(np.float32)
y = np.stack([parts, steps], axis=2).astype(np.int64)

torch.manual_seed(0)
net = NestedNet(Network, nn.Identity, max_epochs=40, lr=0.05, batch_size=20, optimizer=torch.optim.Adam, verbose=0)
net.fit(X, y)
found = np.array([labels.states[2] for labels in net.predict(X)])
right = float((found == steps).mean())
print(f"{100 * right:.1f} % of the steps are right")

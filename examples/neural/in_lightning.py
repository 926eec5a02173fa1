"""The nested layer in a Lightning module.

python examples/neural/in_lightning.py
"""

import lightning
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import hscrf
import hscrf.torch

TOPOLOGY = hscrf.Topology({"part": ["rise", "fall"], "step": ["low", "high"]})


class Module(lightning.LightningModule):
    def __init__(self) -> None:
        super().__init__()
        self.crf = hscrf.torch.CRF(TOPOLOGY, parts=("token", "start"))
        self.encode = nn.Sequential(nn.Linear(1, 8), nn.Tanh(), nn.Linear(8, self.crf.size))

    def training_step(self, batch, index):
        x, parts, steps = batch
        return self.crf(self.encode(x), {"part": parts, "step": steps})

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=0.05)


torch.manual_seed(0)
steps = torch.randint(0, 2, (40, 6))
parts = steps[:, ::3].repeat_interleave(3, dim=1)
x = (steps + 2 * parts + 0.2 * torch.randn(40, 6))[..., None]
module = Module()
trainer = lightning.Trainer(
    max_epochs=30,
    accelerator="cpu",
    logger=False,
    enable_checkpointing=False,
    enable_progress_bar=False,
    enable_model_summary=False,
)
trainer.fit(module, DataLoader(TensorDataset(x, parts, steps), batch_size=20))
found = torch.stack([torch.from_numpy(labels.states[2].copy()) for labels in module.crf.decode(module.encode(x))])
right = float((found == steps).float().mean())
print(f"{100 * right:.1f} % of the steps are right")

"""The layer's calls where ``torch.compile`` traces: they run as they are, between the graphs of the encoder.

Imported only there, because the decorator imports the compiler.
"""

from __future__ import annotations

from typing import Any

import torch

from hscrf.torch.crf import CRF

loss = torch.compiler.disable(CRF._loss)


@torch.compiler.disable
def call(method: Any, layer: CRF, *arguments: Any) -> Any:
    """Call a method of the layer."""
    return method(layer, *arguments)

"""The layer's methods where ``torch.compile`` traces: they run as they are, between the graphs of the encoder.

Imported only there, because the decorator imports the compiler.
"""

from __future__ import annotations

from typing import Any

import torch


@torch.compiler.disable
def call(method: Any, *arguments: Any, **options: Any) -> Any:
    """Call a method of the layer."""
    return method(*arguments, **options)

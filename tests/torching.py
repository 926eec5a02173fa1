"""PyTorch for tests of the wing: they run where it is installed, and fail without it where it is required."""

import importlib.util
import os

import pytest


def require_torch():
    """PyTorch with one thread; the module that asks is skipped where there is none."""
    if importlib.util.find_spec("torch") is None:
        missing = "PyTorch is not installed (pip install 'hscrf[torch]')"
        if os.environ.get("HSCRF_TORCH") == "required":
            pytest.fail(f"HSCRF_TORCH=required, but {missing}", pytrace=False)
        pytest.skip(missing, allow_module_level=True)
    import torch

    torch.set_num_threads(1)
    return torch

"""Settings of PyTorch for measurements."""

from __future__ import annotations

import os
import warnings

import torch
import torch._functorch.config


def configure_torch(*, reuse_compiled_steps: bool = True) -> None:
    """Make PyTorch run on one thread, so that CPU seconds are comparable, and without warnings.

    Args:
        reuse_compiled_steps: Whether PyTorch's cache of compiled steps is enabled.
    """
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    if not reuse_compiled_steps:
        os.environ["TORCHINDUCTOR_AUTOGRAD_CACHE"] = "0"
        torch._functorch.config.enable_autograd_cache = False

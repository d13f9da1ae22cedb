"""Variants of a model that the benchmark runs: eager, checkpointed, with PyTorch's partitioners, or `recompute.torch`.

All compiled variants run the operations of AOTAutograd's graphs one by one in program order (`aot_eager`), and release
each value after its last use, including arguments. A graph called through `make_boxed_func(graph.forward)` would keep
every saved tensor alive until the end of the backward pass.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import partial
from typing import Any

import torch
from functorch.compile import default_partition, min_cut_rematerialization_partition
from torch import nn
from torch._dynamo.backends.common import aot_autograd
from torch._dynamo.backends.debugging import boxed_nop
from torch.utils.checkpoint import checkpoint

TORCH_BUDGETS = (0.9, 0.7, 0.5, 0.3, 0.2, 0.1, 0.05, 0.0)
RECOMPUTE_BUDGETS = (0.8, 0.6, 0.5, 0.4, 0.3)


@dataclass(frozen=True)
class ModelRun:
    """A model to run, with the properties that its variants need.

    Attributes:
        blocks: The patterns of the names of the modules that a user would checkpoint, separated by bars.
        device_bytes: The bytes of weights, buffers and inputs, plus the variant's budget.
    """

    model: nn.Module
    blocks: str
    device_bytes: int = 0


@dataclass(frozen=True)
class ModelForm:
    """A variant in which every model is run, such as eager mode.

    Attributes:
        name: The name in the table.
        wrap: Returns the function that a step calls in place of the model.
        budget: The budget as a share of the eager step's peak, for `recompute.torch`.
        settings: The values of `torch._functorch.config` that apply during compilation.
    """

    name: str
    wrap: Callable[[ModelRun], Callable[..., Any]]
    budget: float | None = None
    settings: tuple[tuple[str, Any], ...] = ()


def eager(run: ModelRun) -> Callable[..., Any]:
    """Return the model itself, to run it in eager mode."""
    return run.model


def checkpoint_blocks(run: ModelRun) -> Callable[..., Any]:
    """Wrap each block in `torch.utils.checkpoint`. Raises `ValueError` if no module name matches the patterns."""
    patterns = run.blocks.split("|")
    names = [name for name, _ in run.model.named_modules() if any(fnmatchcase(name, part) for part in patterns)]
    outermost = [name for name in names if not any(name.startswith(f"{other}.") for other in names)]
    if not outermost:
        raise ValueError(f"no module name matches '{run.blocks}', so there are no blocks to checkpoint")
    for name in outermost:
        module = run.model.get_submodule(name)
        module.forward = partial(checkpoint, module.forward, use_reentrant=False)
    return run.model


def compile_with(partition: Callable[..., Any], run: ModelRun) -> Callable[..., Any]:
    """Compile the model with one of PyTorch's partitioners."""
    backend = aot_autograd(fw_compiler=boxed_nop, bw_compiler=boxed_nop, partition_fn=partition)
    return torch.compile(run.model, backend=backend)


def checkpoint_and_compile(partition: Callable[..., Any], run: ModelRun) -> Callable[..., Any]:
    """Wrap each block in `torch.utils.checkpoint`, and compile the model with a partitioner."""
    checkpoint_blocks(run)
    return compile_with(partition, run)


def compile_within_budget(run: ModelRun) -> Callable[..., Any]:
    """Compile the model with `recompute.torch` within the run's budget, in program order."""
    import recompute.torch as rt

    return torch.compile(run.model, backend=rt.backend(budget=run.device_bytes))


def baselines() -> list[ModelForm]:
    """Return the variants that use only PyTorch. The first is eager mode, which is the reference."""
    min_cut = partial(compile_with, min_cut_rematerialization_partition)
    return [
        ModelForm("eager", eager),
        ModelForm("checkpoint per block", checkpoint_blocks),
        ModelForm("default_partition", partial(compile_with, default_partition)),
        ModelForm("checkpoint, default_partition", partial(checkpoint_and_compile, default_partition)),
        ModelForm("min_cut", min_cut),
        *(ModelForm(f"torch budget {b:g}", min_cut, None, (("activation_memory_budget", b),)) for b in TORCH_BUDGETS),
    ]


def recompute_forms(budgets: tuple[float, ...] = RECOMPUTE_BUDGETS) -> list[ModelForm]:
    """Return a variant of `recompute.torch` for each budget. Budgets are shares of the eager step's peak."""
    return [ModelForm(f"ours {budget:.3g}", compile_within_budget, budget) for budget in budgets]

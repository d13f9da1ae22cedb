"""Count the FLOPs of matrix products and convolutions in the same way as PyTorch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch._ops import OpOverload
from torch.utils._pytree import tree_map
from torch.utils.flop_counter import flop_registry

from .fake_values import hint_of


def flops_of(target: OpOverload, args: Sequence[Any], kwargs: Mapping[str, Any], value: Any) -> int | None:
    """Return the FLOPs of a call according to PyTorch, or None if PyTorch does not count the operation.

    Args:
        target: The called function.
        args: The positional arguments of the call.
        kwargs: The keyword arguments of the call.
        value: The result of the call, as fake tensors.
    """
    formula: Any = flop_registry.get(target._overloadpacket)
    if formula is None:
        return None
    fake = torch.fx.map_arg((tuple(args), dict(kwargs)), lambda node: node.meta["val"])
    sized_args, sized_kwargs = tree_map(_sizes_of, fake)
    return int(formula(*sized_args, **sized_kwargs, out_val=tree_map(_sizes_of, value)))


def _sizes_of(value: Any) -> Any:
    """Return the value with each tensor replaced with its shape, and each symbolic size with its hint."""
    if isinstance(value, torch.Tensor):
        return tuple(hint_of(size) for size in value.shape)
    return hint_of(value)

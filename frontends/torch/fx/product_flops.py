"""Count the FLOPs of matrix products and convolutions, as PyTorch does."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch._ops import OpOverload
from torch.utils._pytree import tree_map
from torch.utils.flop_counter import flop_registry

from .fake_values import hint_of


def flops_of(target: OpOverload, args: Sequence[Any], kwargs: Mapping[str, Any], value: Any) -> int | None:
    """Return PyTorch's FLOP count for a call, or None for an operation that it does not count.

    Args:
        target, args, kwargs: The function, and the arguments of the call.
        value: The result of the call, as fake tensors.
    """
    formula: Any = flop_registry.get(target._overloadpacket)
    if formula is None:
        return None
    fake = torch.fx.map_arg((tuple(args), dict(kwargs)), lambda node: node.meta["val"])
    sized_args, sized_kwargs = tree_map(_sizes_of, fake)
    return int(formula(*sized_args, **sized_kwargs, out_val=tree_map(_sizes_of, value)))


def _sizes_of(value: Any) -> Any:
    """Return the shape of a tensor, with hints for symbolic sizes; for a symbolic size, its hint."""
    if isinstance(value, torch.Tensor):
        return tuple(hint_of(size) for size in value.shape)
    return hint_of(value)

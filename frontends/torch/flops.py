"""FLOPs of products, as PyTorch counts them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch._ops import OpOverload
from torch.utils.flop_counter import flop_registry


def flops_of(target: OpOverload, args: Sequence[Any], kwargs: Mapping[str, Any], value: Any) -> int | None:
    """PyTorch's count for a call; None for operations that it does not count. `value`: what the call returns."""
    formula: Any = flop_registry.get(target._overloadpacket)
    if formula is None:
        return None
    fake_args, fake_kwargs = torch.fx.map_arg((tuple(args), dict(kwargs)), lambda node: node.meta["val"])
    return int(formula(*fake_args, **fake_kwargs, out_val=value))

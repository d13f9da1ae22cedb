"""What schemas and tags say of the operations that nodes call."""

from __future__ import annotations

from functools import cache

import torch
from torch._ops import OpOverload

STATE_BYTES = {"cpu": 5056, "cuda": 16}
"""The size of the random state of a device's generator."""


@cache
def draws(target: OpOverload) -> bool:
    """Whether the operation draws from a generator of random numbers."""
    return torch.Tag.nondeterministic_seeded in target.tags


@cache
def written_arguments(target: OpOverload) -> tuple[int, ...]:
    """The positions of the arguments that the operation writes to."""
    arguments = target._schema.arguments
    return tuple(
        index
        for index, argument in enumerate(arguments)
        if argument.alias_info is not None and argument.alias_info.is_write
    )


def qualified_name(target: OpOverload) -> str:
    """`aten.mm.default`."""
    return f"{target.namespace}.{target._schema.name.split('::')[1]}.{target._overloadname}"


def overload_named(name: str) -> OpOverload:
    """The operation of a qualified name."""
    namespace, packet, overload = name.split(".")
    return getattr(getattr(getattr(torch.ops, namespace), packet), overload)

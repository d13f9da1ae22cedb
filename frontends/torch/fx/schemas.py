"""Read the schemas and tags of the operations that nodes call."""

from __future__ import annotations

import operator
from functools import cache
from typing import Any

import torch
from torch._ops import OpOverload

_SIZE_FUNCTION_MODULES = (operator, torch)
READ_A_SEED = frozenset({"prims.inductor_random.default", "prims.inductor_randint.default"})
STATE_BYTES = {"cpu": 5056, "cuda": 16}
"""The size in bytes of a generator's state, by device type."""


@cache
def draws(target: OpOverload) -> bool:
    """Return whether the operation advances a random number generator.

    Inductor's own random operations do not advance a generator, because they read a seed that was drawn earlier.
    """
    return torch.Tag.nondeterministic_seeded in target.tags and qualified_name(target) not in READ_A_SEED


@cache
def written_arguments(target: OpOverload) -> tuple[int, ...]:
    """Return the indices of the arguments that the operation writes to."""
    arguments = target._schema.arguments
    return tuple(
        index
        for index, argument in enumerate(arguments)
        if argument.alias_info is not None and argument.alias_info.is_write
    )


def is_size_function(target: Any) -> bool:
    """Return whether the target is a Python or PyTorch function on symbolic sizes, such as `operator.mul`."""
    return any(getattr(module, getattr(target, "__name__", ""), None) is target for module in _SIZE_FUNCTION_MODULES)


def qualified_name(target: Any) -> str:
    """Return the qualified name of a target, such as `aten.mm.default`, or `python.mul.default` for sizes."""
    if not isinstance(target, OpOverload):
        return f"python.{target.__name__}.default"
    return f"{target.namespace}.{target._schema.name.split('::')[1]}.{target._overloadname}"


def target_named(name: str) -> Any:
    """Return the operator or function that a qualified name denotes."""
    namespace, packet, overload = name.split(".")
    if namespace == "python":
        return next(getattr(module, packet) for module in _SIZE_FUNCTION_MODULES if hasattr(module, packet))
    return getattr(getattr(getattr(torch.ops, namespace), packet), overload)

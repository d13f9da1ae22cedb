"""Values that are no arrays: tuples, as tuples of Python, and tokens, as None."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from xdsl.ir import Operation

from ...dialects.stablehlo.tuples import GetTupleElementOp

ValueKernel: TypeAlias = Callable[..., tuple[Any, ...]]


def tuple_(op: Operation) -> ValueKernel:
    """The operands themselves, not copies."""

    def run(*values: Any) -> tuple[Any, ...]:
        return (values,)

    return run


def element(op: GetTupleElementOp) -> ValueKernel:
    index = op.index.value.data

    def run(values: tuple[Any, ...]) -> tuple[Any, ...]:
        return (values[index],)

    return run


def token(op: Operation) -> ValueKernel:
    """A token orders operations, which run in order anyway."""

    def run(*tokens: None) -> tuple[Any, ...]:
        return (None,)

    return run


def leaves(value: Any) -> list[Any]:
    """The arrays of a value, from nested tuples in order."""
    if not isinstance(value, tuple):
        return [value]
    parts: tuple[Any, ...] = value  # pyright: ignore[reportUnknownVariableType]
    return [leaf for part in parts for leaf in leaves(part)]

"""Find arguments that a step could donate because it returns new values for them.

A new value could use the buffer of its argument, as with `donate_argnums` of `jax.jit`. This reduces memory without
extra work. A new value is computed from an argument only by elementwise operations; an example is a weight minus its
scaled gradient. A gradient has the type of its weight, but is not a new value of it, because the caller still needs the
weight.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import count, islice
from math import prod
from typing import Any

import jax
import numpy as np
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import BlockArgument, Operation, SSAValue

from ....dialects.stablehlo.binary import BINARY
from ....dialects.stablehlo.compare_select import ELEMENTWISE
from ....dialects.stablehlo.unary import UNARY
from ....rules.buffers import type_bytes
from ....support.type_guards import is_tensor

_TREE: Any = jax.tree
"""Typed as `Any`, because the types of the library are incomplete."""
_KINDS = (*UNARY, *BINARY, *ELEMENTWISE)
Type = tuple[tuple[int, ...], int]
"""The shape and the bytes of an array."""
MIN_UPDATED_SHARE = 0.9
"""The minimum share of an argument's bytes for which the step must return new values. The share is below 1, because the
step may return no new values of counters and random keys."""
MIN_DONATED_SHARE = 0.1
"""The minimum size of a donation that is reported, as a share of the bytes of arguments and results."""


@dataclass(frozen=True)
class Donation:
    """The arguments to donate.

    Attributes:
        option: The option of `recompute.jax.jit`, such as `donate_argnums=0`.
        bytes: The bytes of the results that would use donated buffers, counted for whole arrays.
        caution: A clause that describes the consequence for the caller.
    """

    option: str
    bytes: int
    caution: str = "the caller must not use the old values again"


def possible_donation(
    plain: jax.stages.Lowered, module: ModuleOp | None, options: Mapping[str, Any]
) -> Donation | None:
    """Return the arguments that the user does not donate, although the step returns new values for nearly all of their
    bytes.

    Return None if these arguments hold less than `MIN_DONATED_SHARE` of the bytes of arguments and results.

    Args:
        plain: The step.
        module: The step as a module of xDSL; None if it cannot be read.
        options: The keywords of `jax.jit` with which the step was jitted.
    """
    positional, named, returned = _arguments_and_results(plain)
    donated = Counter(_type_of(leaf) for leaf in _TREE.leaves((positional, named)) if leaf.donated)
    updated = Counter(() if module is None else _types_of_updates(module)) - donated
    numbers = _traced_numbers(options.get("static_argnums"), len(positional))
    donations = dict[str, list[Any]](donate_argnums=[], donate_argnames=[])
    saved = 0
    arguments = [
        *(("donate_argnums", number, leaves) for number, leaves in zip(numbers, positional, strict=True)),
        *(("donate_argnames", name, leaves) for name, leaves in named.items()),
    ]
    for option, key, argument in arguments:
        leaves = _TREE.leaves(argument)
        types = Counter(map(_type_of, leaves))
        matched = types & updated
        size = _bytes(matched.elements())
        if size and size >= MIN_UPDATED_SHARE * _bytes(types.elements()) and not any(leaf.donated for leaf in leaves):
            updated -= matched
            donations[option].append(key)
            saved += size
    whole = _bytes(map(_type_of, _TREE.leaves((positional, named, returned))))
    if saved < MIN_DONATED_SHARE * whole or not saved:
        return None
    spelled = [f"{option}={_spelled(keys)}" for option, keys in donations.items() if keys]
    return Donation(", ".join(spelled), saved)


def _types_of_updates(module: ModuleOp) -> Iterator[Type]:
    """Yield the types of the results of `main` that are new values of arguments."""
    main = next((op for op in module.ops if isinstance(op, FuncOp) and op.sym_name.data == "main"), None)
    if main is None or main.body.block.last_op is None:
        return
    for value in main.body.block.last_op.operands:
        size = type_bytes(value.type)
        if is_tensor(value.type) and size is not None and _is_new_value(value):
            yield tuple(value.type.get_shape()), size


def _is_new_value(value: SSAValue) -> bool:
    """Return whether a value is computed from an argument of its type by operations of `_KINDS` only."""
    stack, seen = [value], {value}
    while stack:
        reached = stack.pop()
        if isinstance(reached, BlockArgument):
            return True
        maker = reached.owner
        if isinstance(maker, Operation) and isinstance(maker, _KINDS):
            operands = {operand for operand in maker.operands if operand.type == value.type} - seen
            seen |= operands
            stack.extend(operands)
    return False


def _arguments_and_results(plain: Any) -> tuple[tuple[Any, ...], dict[str, Any], Any]:
    positional, named = plain.args_info
    return tuple(positional), dict(named), plain.out_info


def _traced_numbers(static: int | Iterable[int] | None, most: int) -> list[int]:
    """Return the indices of the first `most` arguments that are not static. The indices are positions among all
    arguments."""
    fixed = {static} if isinstance(static, int) else set(static or ())
    return list(islice((number for number in count() if number not in fixed), most))


def _type_of(leaf: Any) -> Type:
    dtype: Any = leaf.dtype
    return tuple(leaf.shape), prod(leaf.shape) * (dtype.itemsize if isinstance(dtype, np.dtype) else 0)


def _bytes(types: Iterable[Type]) -> int:
    return sum(size for _, size in types)


def _spelled(keys: list[Any]) -> str:
    return repr(keys[0] if len(keys) == 1 else tuple(keys))

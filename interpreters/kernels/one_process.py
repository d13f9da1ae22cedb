"""Collectives, among the processes that are run here: one. It receives what it has sent."""

from __future__ import annotations

import numpy as np
from xdsl.ir import Operation

from ...support.type_guards import is_integer_attribute
from .arrays import Array, Kernel, dtype_at, on_one, shape_at
from .conversion import convert
from .properties import table

FIRST = 0
# Attributes of the module: how many processes run it.
COUNTS = ("mhlo.num_replicas", "mhlo.num_partitions")


def collective(op: Operation) -> Kernel:
    """Combined with nothing, gathered from nobody else: the operands. `ValueError` where others take part."""
    _check_alone(op, "replica_groups")
    if [shape_at(result) for result in op.results] != [shape_at(operand) for operand in op.operands]:
        raise ValueError("its results have other shapes than its operands, and one process is run")
    dtypes = [dtype_at(result) for result in op.results]

    def run(*operands: Array) -> tuple[Array, ...]:
        # What a region captures comes behind the operands.
        return tuple(convert(operand, dtype) for operand, dtype in zip(operands, dtypes, strict=False))

    return run


def collective_permute(op: Operation) -> Kernel:
    """Zeros where nobody sends to it."""
    receives = bool(_check_alone(op, "source_target_pairs"))
    return on_one(lambda operand: operand.copy() if receives else np.zeros(operand.shape, operand.dtype))


def own_number(op: Operation) -> Kernel:
    _check_module(op)
    return lambda: (np.array(FIRST, np.uint32),)


def _check_alone(op: Operation, name: str) -> list[list[int]]:
    _check_module(op)
    rows = table(op, name)
    if any(process > FIRST for row in rows for process in row):
        raise ValueError(f"its '{name}' names other processes, and one is run")
    return rows


def _check_module(op: Operation) -> None:
    """Where it is the operation's business how many take part, the module should not say several."""
    module = op
    while (around := module.parent_op()) is not None:
        module = around
    for name in COUNTS:
        count = module.attributes.get(name)
        if count is not None and is_integer_attribute(count) and count.value.data > 1:
            raise ValueError(f"the module has {name} = {count.value.data}, and one process is run")

"""Collectives with a single process, which receives the values that it sends."""

from __future__ import annotations

import numpy as np
from xdsl.ir import Operation

from ...support.type_guards import is_integer_attribute
from .arrays import Array, Kernel, dtype_at, on_one, shape_at
from .conversion import convert
from .properties import table

FIRST = 0
# Attributes of the module: the number of processes.
COUNTS = ("mhlo.num_replicas", "mhlo.num_partitions")


def collective(op: Operation) -> Kernel:
    """With a single participant the results are the operands. Raises `ValueError` if others take part."""
    _check_alone(op, "replica_groups")
    if [shape_at(result) for result in op.results] != [shape_at(operand) for operand in op.operands]:
        raise ValueError("its results have other shapes than its operands, and one process is run")
    dtypes = [dtype_at(result) for result in op.results]

    def run(*operands: Array) -> tuple[Array, ...]:
        # Captures of a region come behind the operands.
        return tuple(convert(operand, dtype) for operand, dtype in zip(operands, dtypes, strict=False))

    return run


def collective_permute(op: Operation) -> Kernel:
    """Zeros if no process sends to this one."""
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
    """Raise `ValueError` if all processes take part and the module states several."""
    module = op
    while (around := module.parent_op()) is not None:
        module = around
    for name in COUNTS:
        count = module.attributes.get(name)
        if count is not None and is_integer_attribute(count) and count.value.data > 1:
            raise ValueError(f"the module has {name} = {count.value.data}, and one process is run")
